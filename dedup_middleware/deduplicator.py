"""Decides what happens to each page and item of one crawl, or of one program: the only state machine.

    check                   page -> CHECKED, with a provisional verdict; writes nothing
    enter                   the callback gets the page. CHECKED -> PENDING: it claims its text;
                            CHECKED -> ENTERED: a duplicate, or an unchecked page, claims nothing
    check_item              each item of a duplicate; `overrule` the verdict if an item differs: then the page claims
    drop, keep_item         each item: it is stored, or goes on to the pipelines
    end_callback, item_left PENDING -> CONFIRMED once all items have left the pipelines, if there were any
    void                    PENDING -> VOID, because a pipeline has dropped an item, or something has failed
    callback_failed         PENDING -> VOID, then CHECKED: the output of an errback is not the page's
    finish                  the spider's output has ended: count and record the page

It depends neither on Scrapy nor on time: `plugin` and `api` call it. Trouble of our own is never a reason to drop:
after a failure of the store, the log or a feed every page is kept.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from dedup_middleware import item_codec
from dedup_middleware.budget import Budget, UncheckableError
from dedup_middleware.checks.items import ItemCheck, content_of
from dedup_middleware.durability import Durability
from dedup_middleware.errors import TROUBLE, StoreAwayError, StoreCorruptError, StoreError, UnreadableError
from dedup_middleware.extraction import weighted_dom
from dedup_middleware.index import schema
from dedup_middleware.model import Action, Fetched, Page, Rejection, Scope, Verdict, VerdictKind
from dedup_middleware.reading import PageReader
from dedup_middleware.reasons import Reason
from dedup_middleware.records.recorder import Recorder
from dedup_middleware.same_item import FetchedItem
from dedup_middleware.visit import ItemClasses, Stage, Visit, within

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from datetime import timedelta

    from dedup_middleware.checks.detector import Detector
    from dedup_middleware.durability import DiskWaits, Flush
    from dedup_middleware.errors import DedupError
    from dedup_middleware.extraction import Extractor
    from dedup_middleware.fingerprints import Fingerprinter, Learner
    from dedup_middleware.index.dropped_items import DroppedItem
    from dedup_middleware.index.index import Changed
    from dedup_middleware.model import ItemContent, StoredPage
    from dedup_middleware.records.crawls import CrawlCounts
    from dedup_middleware.records.log import RecordLog
    from dedup_middleware.visit import Listener


class Deduplication:
    """The pages and items of one crawl, *run*, of *spider*."""

    def __init__(  # noqa: PLR0913 - what a crawl is made of, by name
        self,
        *,
        spider: str,
        run: str,
        detector: Detector,
        fingerprint: Fingerprinter,
        extract: Extractor = weighted_dom,
        learner: Learner | None = None,
        log: RecordLog | None,
        crawl: CrawlCounts | None = None,
        listener: Listener,
        flush: Flush | None = None,
        disks: DiskWaits | None = None,
        feeds_wanting: Callable[[Any], frozenset[str]] = lambda _: frozenset(),
        max_characters: int = sys.maxsize,
        item_fields: Collection[str] = (),
        jobdir: str = "",
        dropped_size: int | None = None,
        dropped_age: timedelta | None = None,
    ) -> None:
        """Check with *detector* and report to *listener*.

        *flush* and *disks* are for `Durability`, *max_characters* and *item_fields* for `ItemCheck`; *feeds_wanting*
        returns the kinds of the feeds that want an item. Later processes go on with a crawl that has a *jobdir*, which
        is its name. Dropped items are stored, up to *dropped_size* bytes and for *dropped_age*; ``None`` stores none,
        for a program that gets no items back.
        """
        self.run = run
        self.spider = spider
        self.detector = detector
        self.index = detector.index
        self.has_failed = False
        """Whether something has failed: from then on nothing is dropped, and nothing made durable."""
        self.awaits_store = False
        """Whether the only failure is a store that is away."""
        self._store_failure: Reason | None = None
        published = None
        if learner is not None and self.index.signatures is not None:
            from dedup_middleware.published import Published  # noqa: PLC0415 - few crawls have another method

            published = Published(learner, self.index.signatures, self.fail)
        self.reader = PageReader(run, fingerprint, extract, published)
        self.item_check = ItemCheck(fingerprint, max_characters, item_fields)
        self._listener = listener
        self.durability = Durability(self.index, run, flush=flush, disks=disks, fail=self.fail)
        self._items = ItemClasses(listener)
        self.feeds_wanting = feeds_wanting
        self.jobdir = jobdir
        self._dropped_size, self._dropped_age = dropped_size, dropped_age
        # The visits with a pending claim, by the number of the claim in the index.
        self._pending: dict[int, Visit] = {}
        self._seen_templates: set[bytes] = set()
        # The released items that may be the same, with the feeds that have taken each, by page and `FetchedItem.key`.
        self._released: dict[tuple[int, bytes], list[tuple[DroppedItem, frozenset[str]]]] = {}
        self.recorder = Recorder(
            spider,
            run,
            log,
            crawl,
            listener,
            self.fail,
            hash_clause=fingerprint.hash,
            preferences=detector.preferences,
            find=lambda identity: self.index.find([identity]),
        )

    # --- check

    def check(self, page: Page, action: Action, budget: Budget, *, is_exempt: bool = False) -> Visit:
        """Return the visit of *page* with its provisional verdict; its items have what is left of its *budget*."""
        visit = Visit(page.url, page, Verdict(VerdictKind.NEW), action, budget, is_exempt=is_exempt)
        self._check(visit)
        budget.pause()
        return visit

    def check_unread(self, fetched: Fetched, action: Action, budget: Budget, read: Callable[[], Page]) -> Visit | None:
        """Return the visit of an original that was *fetched* again, byte for byte; ``None`` for any other page.

        *read* reads the page, should that be needed later.
        """
        try:
            version = self.index.version
            found = self._find_unread(fetched)
        except TROUBLE as error:
            self.fail(error)
            return None
        if found is None:
            return None
        budget.pause()
        self._listener.count("unread", 1)
        return Visit(fetched.url, *found, action, budget, read=read, version=version)

    def _find_unread(self, fetched: Fetched) -> tuple[Page, Verdict] | None:
        page = None if self.has_failed else self.index.unchanged(fetched, self.run)
        verdict = None if page is None else self.detector.check_unread(page)
        return None if page is None or verdict is None else (page, verdict)

    def _check(self, visit: Visit) -> None:
        """Check the page against what the store has now; it is unchecked if the store fails, or has failed."""
        if self._store_failure is None:
            try:
                visit.version = self.index.version
                if visit.read is not None and (page := visit.page) is not None:
                    found = self._find_unread(Fetched(page.url, page.identities, page.body_digest))
                    if found is not None:
                        visit.page, visit.verdict = found
                        return
                page = visit.page if visit.read is None else visit.read_in_full()
                if page is not None:
                    with visit.budget:
                        visit.verdict = self.detector.check(within(page, visit.budget))
                    if visit.verdict.kind is VerdictKind.DUPLICATE:
                        if visit.is_exempt:
                            visit.overrule(Rejection(Reason.KEPT_ON_REQUEST))
                        visit.suspected_template = self.detector.suspected_template(page, visit.verdict)
            except TROUBLE as error:
                self.fail(error)
            else:
                return
        if visit.page is not None:
            visit.verdict = Verdict(VerdictKind.UNCHECKED, reason=self._store_failure or Reason.STORE_FAILED)

    def _check_if_stale(self, visit: Visit) -> None:
        """Check the page again if the store has changed since in a way that may change its verdict."""
        page = visit.page
        if page is not None and (self._store_failure is not None or self.index.changed_since(visit.version, page)):
            self._check(visit)

    # --- claim

    def enter(self, visit: Visit) -> None:
        """Note that the callback gets the page, which claims its text unless it is a duplicate."""
        visit.stage = Stage.ENTERED
        if visit.is_duplicate:
            self.reconsider(visit)
        else:
            self._claim(visit, check=True)

    def reconsider(self, visit: Visit) -> None:
        """Check a duplicate again if its verdict is stale; it claims its text if it is not a duplicate any more."""
        if visit.is_duplicate:
            try:
                self._check_if_stale(visit)
            except TROUBLE as error:
                self.fail(error)
            if not visit.is_duplicate:
                self._claim(visit, check=True)

    def _claim(self, visit: Visit, *, check: bool = False) -> None:
        """Let the page claim its text unless it is a duplicate; with *check*, a stale page is checked again before.

        Both in one transaction: of two processes that get a text at once, one does both before the other.
        """
        try:
            claimed = self.index.atomically(partial(self._claim_in_store, visit, check=check))
        except TROUBLE as error:
            self.fail(error)
            if check:
                self._check(visit)
            return
        if claimed is not None:
            visit.claimed, visit.stored = claimed
            visit.stage, visit.items_left = Stage.PENDING, 0
            if visit.stored.pending:
                self._pending[visit.stored.number] = visit

    def _claim_in_store(self, visit: Visit, *, check: bool) -> tuple[Page, StoredPage] | None:
        """Open the claim; return the page as it will be stored, and its claim, or ``None`` if it claims nothing."""
        if check:
            self._check_if_stale(visit)
        if visit.stage is Stage.PENDING or visit.is_duplicate or not visit.can_be_original:
            return None
        if visit.items_kept:
            return None  # these would be counted as items of the claim
        own = None
        if visit.verdict.kind is VerdictKind.UNCHANGED and visit.page is not None:
            # An unchanged original owns its text already.
            own = visit.page.known or self.index.find(visit.page.identities)
        page = visit.page if own is not None or visit.read is None else visit.read_in_full()
        if page is None:
            return None
        page = self.detector.to_stored(page, visit.verdict)
        return page, own or self.index.claim(page)

    def rests_on_claim(self, visit: Visit) -> bool:
        """Return whether this duplicate depends on a pending claim, of this or another process. At most two gets."""
        match = visit.verdict.match
        if match is None or not visit.original_is_pending:
            return False
        try:
            return match.original.number in self._pending or self.index.claimed(match.original.number) is not None
        except TROUBLE as error:
            self.fail(error)
            return False

    # --- items: keep or drop

    def check_item(self, visit: Visit, item: Any) -> bool | None:
        """Return whether an *item* of a duplicate may be dropped; ``None`` if it has no text, and follows its page.

        Where the original's items lack something that it contains, there may be another original.
        ``visit.item_rejection`` is why the item is kept. An item that cannot be read, and any item after the store
        failed, is kept. If a feed wants the item that has none of the original's items, the verdict is overruled.
        """
        match, visit.item_rejection = visit.verdict.match, None
        if match is not None and not match.original.kept.has_reached(self.feeds_wanting(item)):
            self.overrule(visit, Rejection(Reason.ORIGINAL_MISSING_FROM_FEED))
            return False
        try:
            with visit.budget:
                return self._check_item(visit, item)
        except UncheckableError as error:
            visit.item_rejection = Rejection(error.reason)
        except TROUBLE as error:
            self.fail(error)
        return False

    def _check_item(self, visit: Visit, item: Any) -> bool | None:
        assert visit.page is not None
        page = within(visit.page, visit.budget)
        text = self.item_check.read(page, item, visit.budget)

        def rejects(original: StoredPage) -> Rejection | None:
            return self.item_check.rejection(page, text, original, self.detector)

        match = visit.verdict.match
        visit.item_rejection = None if match is None else rejects(match.original)
        if visit.item_rejection and not visit.items_dropped and not visit.items_kept:
            another = self.detector.check(page, rejects=rejects)
            if another.kind is VerdictKind.DUPLICATE:
                visit.verdict, visit.item_rejection = another, None
                visit.suspected_template = self.detector.suspected_template(page, another)
        if visit.item_rejection is not None:
            return False
        return True if text.has_text else None

    def overrule(self, visit: Visit, rejection: Rejection | None) -> None:
        """Make a duplicate a related page because of a *rejection*, if there is one; it claims its text."""
        if visit.is_duplicate and rejection is not None:
            visit.overrule(rejection)
            self._claim(visit)

    def drop(self, visit: Visit, item: Any) -> bool:
        """Store *item* of a duplicate, and that its page is one, in one batch; return whether it is dropped.

        The item is kept if its page is not a duplicate of the same original any more, or if anything fails. Only what
        is stored is dropped. If the action of *visit* is another, nothing is written: return whether it would be
        dropped. By the same steps, so that a dry run and tags show what a drop is.
        """
        if self.has_failed or not visit.is_duplicate:
            return False
        data = b"" if self._dropped_size is None else self._items.encode(item)
        if data is None:
            if not (visit.items_dropped or visit.items_would_drop or visit.items_tagged):
                visit.overrule(Rejection(Reason.ITEM_NOT_STORABLE))
            return False
        original = None if visit.verdict.match is None else visit.verdict.match.original.number
        try:
            written = self.index.atomically(partial(self._write_drop, visit, original, item, data))
            if written is not None and visit.action is Action.DROP:
                visit.stored_number, size, replaced = written
                visit.written_for = original or 0
                for alike in (visit.dropped_before or {}).values():
                    alike.pop(replaced, None)
                if self._dropped_size is not None:
                    self.index.dropped.make_room(size, size=self._dropped_size, age=self._dropped_age)
            if written is not None:
                return True
        except TROUBLE as error:
            self.fail(error)
            return False
        if visit.is_duplicate:
            visit.overrule(Rejection(Reason.ORIGINAL_PENDING))
        else:
            self._claim(visit)
        return False

    def _write_drop(self, visit: Visit, original: int | None, item: Any, data: bytes) -> tuple[int, int, bytes] | None:
        """Write the drop, if the action is one; return the page's number, the item's bytes, and the key it replaces.

        ``None`` if the item is to be kept. The transaction of a shared store fails if another process writes between
        what is read and what is written here.
        """
        self._check_if_stale(visit)
        match, page = visit.verdict.match, visit.page
        if not visit.is_duplicate or match is None or page is None or match.original.pending:
            return None
        feeds = self.feeds_wanting(item)
        if match.original.number != original or not match.original.kept.has_reached(feeds):
            return None
        relies_on = self.durability.relies_on(match.original, feeds)
        if relies_on is None:
            return None
        if visit.action is not Action.DROP:
            return 0, 0, b""
        header = {
            "spider": self.spider,
            "run": self.run,
            "crawl": self.jobdir if self.index.eligibility.scope is Scope.CRAWL else "",
            "url": visit.url,
            "original_url": match.original.url,
            "score": round(match.score, 4),
            "type": item_codec.name_of(type(item)),
        }
        fetched, size, replaced = FetchedItem(data, visit.url, self.spider), 0, b""

        def items(number: int, was_stored: bool) -> Changed:  # noqa: FBT001 - called back
            nonlocal size, replaced
            if self._dropped_size is None:
                return (), ()
            dropped, same = self.index.dropped, fetched.key
            if visit.dropped_before is None:
                visit.dropped_before = dropped.by_sameness(number) if was_stored else {}
            sizes = visit.dropped_before.get(same, {})
            before = fetched.nearest(dropped.replaceable(sizes))
            replaced = b"" if before is None else before.key
            header["for_feed"] = bool(feeds) or (before is not None and before.for_feed)
            pairs = dropped.pairs(number, match.original.number, relies_on, header, data, same)
            size = len(pairs[0][1]) - sizes.get(replaced, 0)
            return pairs, [] if before is None else dropped.deletes([before])

        if visit.written_for == original:
            self.index.store.write(*items(visit.stored_number, was_stored=True))
            return visit.stored_number, size, replaced
        number = self.index.remember_duplicate(page, match, items, template=visit.suspected_template)
        return number, size, replaced

    def count_drop(self, visit: Visit) -> None:
        """Count an item that is dropped now."""
        visit.items_dropped += 1
        self.recorder.dropped(visit)

    def keep_item(self, visit: Visit, item: Any, *, repeats: bool = False) -> None:
        """Count *item* as kept, and tag it where that is the action: it *repeats* the page's original, or not."""
        visit.items_kept += 1
        if visit.stage is Stage.PENDING and visit.claimed is not None:
            visit.items_yielded += 1
            with suppress(UncheckableError), visit.budget:
                visit.item_texts.append(self.item_check.read(visit.claimed, item, visit.budget))
        if visit.action is Action.TAG:
            self._items.tag(visit, item, repeats=repeats)

    # --- the claim ends

    def item_left(self, visit: Visit, feeds: frozenset[str] | None = frozenset()) -> None:
        """Note that an item has left the pipelines, and that *feeds* have taken it: ``None`` for all there are."""
        visit.items_left += 1
        visit.feeds = None if feeds is None or visit.feeds is None else visit.feeds | feeds
        self._confirm_if_complete(visit)

    def void(self, visit: Visit) -> None:
        """End the claim, because an item was dropped by a pipeline, or failed: the page owns nothing."""
        if visit.stage is Stage.PENDING:
            self._end(visit, Stage.VOID)
            if visit.stored is not None and visit.stored.pending:
                try:
                    self.index.void_claim(visit.stored.number)
                except TROUBLE as error:
                    self.fail(error)

    def released_item_left(self, item: DroppedItem, feeds: frozenset[str] | None = None) -> None:
        """Note that a released *item* has left the pipelines: it leaves the store, once that is durable.

        *feeds* have taken it as it was dropped; ``None`` if it was another, or a pipeline has dropped it.
        """
        if feeds is not None:
            same = FetchedItem(item.data, item.url, item.spider).key
            self._released.setdefault((item.number, same), []).append((item, feeds))
        self.durability.confirmed(None, self.index.dropped.deletes([item]))

    def drop_released(self, visit: Visit, item: Any) -> bool:
        """Return whether *item* of an unchanged page is dropped: this crawl has released the same to all its feeds.

        It need not be stored: until the released one is durable, the store has that. Each released item drops one.
        """
        if not self._released or visit.stored is None or self.has_failed or visit.action is not Action.DROP:
            return False
        with suppress(item_codec.NotStorableError):
            fetched = FetchedItem(item_codec.encode(item), visit.url, self.spider)
            released = self._released.get((visit.stored.number, fetched.key), [])
            wanting = self.feeds_wanting(item)
            before = fetched.nearest(each for each, feeds in released if wanting <= feeds)
            if before is not None:
                released[:] = [pair for pair in released if pair[0] is not before]
                return True
        return False

    def callback_failed(self, visit: Visit) -> None:
        """Note that the callback has raised: the output of an errback is not the page's."""
        self.void(visit)
        visit.stage = Stage.CHECKED

    def end_callback(self, visit: Visit, *, several: bool) -> None:
        """Note that no item will follow. A page with one item owns its whole text; one with *several* only their text.

        A list of teasers does not own the articles.
        """
        if visit.stage is not Stage.PENDING or visit.claimed is None:
            return
        content = content_of(visit.item_texts)
        if visit.read is not None and not self._has_same_content(visit.claimed, content, several=several):
            visit.claimed = visit.read_in_full()
            if visit.claimed is None:
                self.void(visit)
                return
        page = visit.claimed.restricted_to(content.hashes, content.texts) if several else visit.claimed
        visit.claimed = replace(page, item_content=content)
        visit.callback_ended = True
        self._confirm_if_complete(visit)

    def _has_same_content(self, page: Page, content: ItemContent, *, several: bool) -> bool:
        """Return whether an unread original still owns the same text, now that its items have this *content*.

        A page with one item owns its text, regardless of what the item contains. If it has *several* items, or had
        several the last time, they must contain what they contained then.
        """
        assert page.known is not None
        if page.known.exact_digest and not several:
            return True
        kept_text = "\n".join(self.index.item_text(page.known))
        is_same = page.known.item_content == content and kept_text == "\n".join(content.texts)
        return is_same and several and page.known.hashes <= content.hashes

    def _confirm_if_complete(self, visit: Visit) -> None:
        if visit.stage is Stage.PENDING and visit.callback_ended and visit.items_left == visit.items_yielded:
            if visit.items_yielded and not visit.is_list:
                self._confirm(visit)
            else:
                self.void(visit)

    def _confirm(self, visit: Visit) -> None:
        assert visit.claimed is not None
        claim = visit.stored.number if visit.stored is not None and visit.stored.pending else None
        try:
            visit.claimed = replace(visit.claimed, standing=self.recorder.standing(visit))
            kept = self.index.commit(visit.claimed, claim=claim, durable=self.durability.at_once, feeds=visit.feeds)
        except TROUBLE as error:
            self._end(visit, Stage.VOID)
            self.fail(error)
            return
        self._end(visit, Stage.CONFIRMED)
        if kept is not None:
            self.durability.confirmed(kept.number)
            if visit.claimed.replaces is not None:
                self._listener.count("upgrades", 1)

    def _end(self, visit: Visit, stage: Stage) -> None:
        if visit.stored is not None:
            self._pending.pop(visit.stored.number, None)
        visit.stage = stage
        self._listener.count(f"claims/{stage.value}", 1)

    # --- the end of a page, and of the crawl

    def finish(self, visit: Visit) -> None:
        """Count and record a page whose output has ended."""
        match, page = visit.verdict.match, visit.page
        try:
            has_items = visit.items_dropped or visit.items_kept
            if has_items and not visit.written_for and visit.is_duplicate and match and page is not None:
                # Tagged, or a dry run: nothing was dropped, but the page is stored as a duplicate.
                self.index.atomically(partial(self.index.remember_duplicate, page, match))
        except TROUBLE as error:
            self.fail(error)
        self.recorder.finished(visit)
        try:
            self._release_recognised(visit)
        except TROUBLE as error:
            self.fail(error)

    def gone(self, identities: Collection[bytes]) -> None:
        """Note that a page is gone from its URL: it owns nothing."""
        try:
            self.index.remove([page.number for page in self.index.same(identities) if page.original is None])
        except TROUBLE as error:
            self.fail(error)

    def _release_recognised(self, visit: Visit) -> None:
        """Release what was dropped for a text that has proved to be a template, unless it is a copy all the same."""
        recognised = self.detector.templates.recognised
        templates = recognised - self._seen_templates if len(recognised) > len(self._seen_templates) else set()
        if visit.suspected_template in recognised and visit.items_dropped:
            # Checked before that was known, and dropped since.
            templates = templates | {visit.suspected_template}
        self._seen_templates |= templates
        for template in templates:
            pages, looked_at = [], []
            for page in [*self.index.suspect_drops(template)]:
                if self.index.eligibility.has(page, self.run):
                    looked_at.append(schema.suspect_key(template, page.number))
                    again = self.reader.stored(self.index, page)
                    if self.detector.check_stored(again).kind is not VerdictKind.DUPLICATE:
                        pages.append(page)
            self.index.atomically(partial(self._write_recognised, template, pages, looked_at))
            if pages:
                self._listener.released(pages)

    def _write_recognised(self, template: bytes, pages: Sequence[StoredPage], looked_at: Sequence[bytes]) -> None:
        """Write that *template* is one, and mark the items of *pages* as to be released, unless they are already."""
        dropped = self.index.dropped
        items = dropped.get(key for page in pages for key in dropped.of_page(page.number))
        self.index.store.write([(schema.template_key(template), b""), *dropped.to_release(items)], looked_at)

    def resume_from(self, before: Deduplication) -> None:
        """Go on with what *before* has kept and counted, in the same crawl, until its store was away."""
        self.durability.resume_from(before.durability)
        self.recorder.resume_from(before.recorder)

    def close(self) -> None:
        """Make durable what has been kept, or roll it back after a failure; close the log."""
        self._void_all()
        try:
            self.durability.end(store_failed=self._store_failure is not None)
            if self._dropped_size is not None and self._store_failure is None:
                # Originals have become durable since the last drop, so that more dropped items may be removed.
                self.index.dropped.make_room(0, size=self._dropped_size, age=self._dropped_age)
        except TROUBLE as error:
            self.fail(error)
        self.recorder.close(self.index)

    def fail(self, error: DedupError | UnreadableError) -> None:
        """Drop nothing any more: from now on every page is kept."""
        if isinstance(error, UnreadableError):
            error = StoreCorruptError(
                f"the store is damaged ({error}): put back a copy, or begin a new one with `scrapy dedup store reset`"
            )
        if self._store_failure is None and isinstance(error, StoreError):
            self._store_failure = Reason.STORE_UNREACHABLE if isinstance(error, StoreAwayError) else Reason.STORE_FAILED
        # The return of the store does not mend another failure.
        if self.has_failed and (isinstance(error, StoreError) or not self.awaits_store):
            return
        self.awaits_store = isinstance(error, StoreAwayError)
        self.has_failed = True
        self.durability.fail()
        self._listener.count("away" if self.awaits_store else "failures", 1)
        self._listener.failed(error)
        self._void_all()

    def _void_all(self) -> None:
        for visit in [*self._pending.values()]:
            self.void(visit)
