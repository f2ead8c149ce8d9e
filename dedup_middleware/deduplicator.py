"""Decides what happens to each page and item of one crawl, or of one program: the only state machine.

A page is checked when it is downloaded, claims its text when its callback gets it, and is confirmed when all its items
have left the pipelines; then its copies are dropped. It knows neither Scrapy nor time: `plugin` and `api` call it.

    check      page -> provisional verdict; writes nothing
    enter      its callback gets it: unless it is a duplicate, it claims its text
    check_item, drop, keep_item              each item that the callback gives
    end_callback, item_left, item_failed   -> confirmed or void
    finish     its output has been seen to its end: count and record it

`releaser` takes dropped items back into this way. Trouble of our own is never a reason to drop: after a failure of the
store, the log or a feed every page is kept.
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
from dedup_middleware.errors import DedupError, StoreAwayError, StoreError
from dedup_middleware.extraction import weighted_dom
from dedup_middleware.index import schema
from dedup_middleware.model import Action, Fetched, Page, Rejection, Scope, Verdict, VerdictKind, Witness
from dedup_middleware.reading import PageReader
from dedup_middleware.reasons import Reason
from dedup_middleware.records.recorder import Recorder
from dedup_middleware.visit import Guard, ItemHandler, Stage, Visit

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from collections.abc import Set as AbstractSet
    from datetime import timedelta

    from dedup_middleware.checks.detector import Detector
    from dedup_middleware.durability import DiskWaits, Flush
    from dedup_middleware.extraction import Extractor
    from dedup_middleware.fingerprints import Fingerprinter, Learner
    from dedup_middleware.index.dropped_items import DroppedItem
    from dedup_middleware.model import StoredPage
    from dedup_middleware.records.records import RecordLog
    from dedup_middleware.visit import Listener

# How often a duplicate is checked again whose original other processes change meanwhile, before it is kept.
_LOOKS = 3


class Deduplication:
    """The pages and items of one crawl, *run*, of *spider*."""

    awaits_store = False
    """Whether nothing is dropped for no other reason than that the store is away."""

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
        listener: Listener,
        flush: Flush | None = None,
        disks: DiskWaits | None = None,
        feeds_wanting: Callable[[Any], frozenset[str]] = lambda _: frozenset(),
        max_characters: int = sys.maxsize,
        item_fields: Collection[str] = (),
        observes: bool = False,
        continues: bool = False,
        dropped_size: int | None = None,
        dropped_age: timedelta | None = None,
    ) -> None:
        """Check with *detector* and report to *listener*.

        *flush* and *disks* are for `Durability`, *max_characters* and *item_fields* for `ItemCheck`; *feeds_wanting*
        returns the kinds of the feeds that want an item. A crawl that *observes* drops nothing; later processes go on
        with one that *continues*. Dropped items are stored, up to *dropped_size* bytes and for *dropped_age*; ``None``
        stores none, for a program that gets no items back.
        """
        self.run = run
        self.spider = spider
        self.index = detector.index
        self.has_failed = False
        """Whether something has failed: from then on nothing is dropped, and nothing made durable."""
        self._store_failure: Reason | None = None
        guard = self.guarded = Guard(self.fail)
        prints = self.index.prints
        published = None
        if learner is not None and prints is not None:
            from dedup_middleware.published import Published  # noqa: PLC0415 - few crawls have another method

            published = Published(learner, prints, guard)
        self.reader = PageReader(run, fingerprint, extract, published)
        self.detector = detector
        self._item_check = ItemCheck(fingerprint, max_characters, item_fields)
        self._listener = listener
        self.durability = Durability(self.index, run, flush=flush, disks=disks, guard=guard)
        self._feeds_wanting = feeds_wanting
        self._observes = observes
        self._crawl = run if continues and self.index.eligibility.scope is Scope.CRAWL else ""
        self._dropped_size, self._dropped_age = dropped_size, dropped_age
        self._items = ItemHandler(listener)
        # The claims that are pending, by the number under which the index has them.
        self._pending: dict[int, Visit] = {}
        self._seen_templates: set[bytes] = set()
        self.recorder = Recorder(
            spider, run, log, listener, guard, hash_clause=fingerprint.hash, preferences=detector.preferences
        )

    # --- check

    def check(self, page: Page, action: Action, threshold: float, budget: Budget, *, keep: bool = False) -> Visit:
        """Return the visit of *page* with its provisional verdict; its items have what is left of its *budget*."""
        visit = Visit(page.url, page, Verdict(VerdictKind.NEW), self._allowed(action), threshold, budget, keep=keep)
        self._check(visit)
        visit.budget.pause()
        return visit

    def check_unread(
        self, fetched: Fetched, action: Action, threshold: float, budget: Budget, read: Callable[[], Page]
    ) -> Visit | None:
        """Return the visit of an original that was *fetched* again, byte for byte; ``None`` if it is to be read.

        *read* reads it, should that be needed later.
        """
        with self.guarded():
            version = self.index.version
            if (found := self._find_unread(fetched)) is not None:
                visit = Visit(fetched.url, *found, self._allowed(action), threshold, budget, read=read, version=version)
                visit.budget.pause()
                self._listener.count("unread", 1)
                return visit
        return None

    def _allowed(self, action: Action) -> Action:
        return Action.DRY_RUN if self._observes and action is Action.DROP else action

    def _find_unread(self, fetched: Fetched) -> tuple[Page, Verdict] | None:
        if self.has_failed:
            return None
        page = self.index.unchanged(fetched, self.run)
        verdict = None if page is None else self.detector.check_unread(page)
        return None if page is None or verdict is None else (page, verdict)

    def _check(self, visit: Visit) -> None:
        if self._store_failure is None:
            with self.guarded():
                visit.version, visit.repeated = self.index.version, None
                if visit.read is not None and visit.page is not None:
                    page = visit.page
                    found = self._find_unread(Fetched(page.url, page.identities, page.body_digest))
                    if found is not None:
                        visit.page, visit.verdict = found
                        return
                if not visit.read_in_full() or visit.page is None:
                    return
                visit.verdict = self.detector.check(visit.page, threshold=visit.threshold)
                if visit.keep and visit.is_duplicate:
                    visit.overrule(Rejection(Reason.KEPT))
                visit.suspected_template = self.detector.suspected_template(visit.page, visit.verdict)
                return
        if visit.page is not None:
            visit.verdict = Verdict(VerdictKind.UNCHECKED, reason=self._store_failure or Reason.STORE_FAILED)

    def _check_if_stale(self, visit: Visit) -> None:
        """Check the page again if anything that concerns it has changed."""
        if visit.page is None:
            return
        if self._store_failure is not None or self.index.changed_since(visit.version, visit.page):
            self._check(visit)

    # --- claim

    def enter(self, visit: Visit) -> None:
        """Make the verdict binding, for the callback gets the page: unless it is a duplicate, it claims its text."""
        visit.stage = Stage.ENTERED
        self._check_and_claim(visit)

    def reconsider(self, visit: Visit) -> None:
        """Check a duplicate again if anything has changed; if it is not a duplicate any more, it claims its text."""
        if visit.is_duplicate:
            self._check_and_claim(visit)

    def _check_and_claim(self, visit: Visit) -> None:
        """Check and claim as one: of two processes that meet a story at once, one does both before the other."""
        if visit.is_duplicate:
            with self.guarded():
                self._check_if_stale(visit)

        def work() -> tuple[Page, StoredPage] | None:
            self._check_if_stale(visit)
            return self._claimed(visit)

        if not visit.is_duplicate:
            self._open(visit, work)
        if self._store_failure is not None:
            # Where the store failed, nothing of that was done.
            self._check_if_stale(visit)

    def _claim(self, visit: Visit) -> None:
        self._open(visit, partial(self._claimed, visit))

    def _open(self, visit: Visit, work: Callable[[], tuple[Page, StoredPage] | None]) -> None:
        with self.guarded():
            if (claimed := self.index.atomically(work)) is not None:
                visit.claimed, visit.stored = claimed
                visit.stage, visit.items_left = Stage.PENDING, 0
                if visit.stored.pending:
                    self._pending[visit.stored.number] = visit

    def _claimed(self, visit: Visit) -> tuple[Page, StoredPage] | None:
        """Return the page as it is kept, claimed; ``None`` where it claims nothing."""
        if visit.page is None or visit.is_duplicate or not visit.is_worth_owning or visit.stage is Stage.PENDING:
            return None
        if visit.items_kept:
            return None  # what becomes of these would be taken for what becomes of the claim's own
        own = None
        if visit.verdict.kind is VerdictKind.UNCHANGED:
            own = visit.page.known or self.index.find(visit.page.identities)
        if own is None and not visit.read_in_full():
            return None
        page = self.detector.as_kept(visit.page, visit.verdict, visit.threshold)
        # An unchanged original owns its text already.
        return page, own or self.index.claim(page)

    def pending_original(self, visit: Visit) -> Visit | None:
        """Return the pending claim that this duplicate depends on, if it is one of this crawl."""
        match = visit.verdict.match
        return self._pending.get(match.original.number) if match and visit.original_is_pending else None

    def rests_on_claim(self, visit: Visit) -> bool:
        """Return whether this duplicate depends on a pending claim, of this or another process. Two gets at most."""
        match = visit.verdict.match
        if match is None or not visit.original_is_pending:
            return False
        with self.guarded():
            return match.original.number in self._pending or self.index.claimed(match.original.number) is not None
        return False

    # --- items: keep or drop

    def check_item(self, visit: Visit, item: Any, shows: Callable[[str], bool]) -> bool | None:
        """Return whether an *item* of a duplicate may be dropped; ``None`` if it has no text, and follows its page.

        Where the original's items lack something that it contains, there may be another original. *shows* returns
        whether the page contains words. ``visit.objection`` has what this item contains and they lack. An item that
        cannot be read, and any item after the store failed, is kept.
        """
        with self.guarded():
            try:
                return self._check_item(visit, item, visit.budget.limited(shows))
            except UncheckableError as error:
                visit.objection = Rejection(error.reason)
        return False

    def _check_item(self, visit: Visit, item: Any, shows: Callable[[str], bool]) -> bool | None:
        assert visit.page is not None
        page: Page = visit.page
        text = self._item_check.read(page, item, visit.budget)

        def objects(original: StoredPage) -> Rejection | None:
            return self._item_check.objection(
                page, text, original, self.detector, shows=shows, carried=visit.carried, threshold=visit.threshold
            )

        match = visit.verdict.match
        visit.objection = None if match is None else objects(match.original)
        if visit.objection and not visit.has_items:
            another = self.detector.check(page, threshold=visit.threshold, objects=objects)
            if another.kind is VerdictKind.DUPLICATE:
                visit.verdict, visit.repeated, visit.objection = another, None, None
                visit.suspected_template = self.detector.suspected_template(page, another)
        if visit.objection is not None:
            return False
        visit.agreed |= text.has_text
        return True if text.has_text else None

    def keep_if_feed_lacks_it(self, visit: Visit, item: Any) -> frozenset[str]:
        """Keep a duplicate, and let it own its text too, if a feed wants *item* that has none of its original's items.

        Return the kinds of the feeds that want it.
        """
        match = visit.verdict.match
        feeds = self._feeds_wanting(item) if visit.is_duplicate else frozenset()
        if visit.is_duplicate and match and not match.original.kept.has_reached(feeds):
            self.keep_page(visit, Rejection(Reason.NOT_REACHED))
        return feeds

    def keep_page(self, visit: Visit, rejection: Rejection, witness: Witness | None = None) -> None:
        """Keep a duplicate, for the *rejection* of a *witness* or of our own, and let it own its text."""
        if visit.is_duplicate:
            visit.overrule(rejection, witness)
            self._claim(visit)

    def drop(self, visit: Visit, item: Any) -> bool:
        """Store *item* of a duplicate, and that its page is one, in one batch; return whether it is dropped.

        It is kept if its page is not a duplicate any more, or if anything fails. Only what is stored is dropped.
        """
        for _ in range(_LOOKS):
            self.reconsider(visit)
            feeds = self.keep_if_feed_lacks_it(visit, item)
            visit.keep_undecided()
            if not visit.is_duplicate or self.has_failed:
                return False
            data = b"" if self._dropped_size is None else self._items.encode(item)
            if data is None:
                if not visit.items_dropped:
                    visit.overrule(Rejection(Reason.NOT_KEEPABLE))
                return False
            dropped: tuple[int, int] | bool | None = False
            with self.guarded():
                dropped = self.index.atomically(partial(self._store_drop, visit, item, data, feeds))
            if isinstance(dropped, tuple):
                self._note_dropped(visit, *dropped)
                return not self.has_failed
            if dropped is False:
                if not self.has_failed:
                    visit.overrule(Rejection(Reason.ORIGINAL_PENDING))
                return False
            self._claim(visit)
        self.keep_page(visit, Rejection(Reason.ORIGINAL_PENDING))
        return False

    def _store_drop(
        self, visit: Visit, item: Any, data: bytes, feeds: AbstractSet[str]
    ) -> tuple[int, int] | bool | None:
        """Write the drop; return the original's number and the bytes added. ``None`` if the verdict has changed.

        ``False`` if the original cannot be relied on. The only place where staleness counts: a store that is shared
        lets no other process write between what is read here and what is written.
        """
        before = visit.verdict.match
        self._check_if_stale(visit)
        match, page = visit.verdict.match, visit.page
        if before is None or match is None or page is None or not visit.is_duplicate or visit.original_is_pending:
            return None
        if match.original.number != before.original.number:
            return None
        relies_on = self.durability.relies_on(match.original, feeds)
        if relies_on is None:
            return False
        header = {
            "spider": self.spider,
            "run": self.run,
            "crawl": self._crawl,
            "url": visit.url,
            "original_url": match.original.url,
            "score": round(match.score, 4),
            "type": item_codec.name_of(type(item)),
        }
        added = 0

        def items(number: int) -> list[tuple[bytes, bytes]]:
            nonlocal added
            if self._dropped_size is None:
                return []
            pairs = self.index.dropped.pairs(number, match.original.number, relies_on, header, data)
            added = len(pairs[0][1])
            return pairs

        if visit.written_for == match.original.number and visit.stored_number:
            self.index.store.write(items(visit.stored_number))
            return visit.stored_number, added
        template = visit.suspected_template if visit.action is Action.DROP else b""
        number = self.index.remember_duplicate(page, match, items, template=template)
        return number, added

    def _note_dropped(self, visit: Visit, number: int, added: int) -> None:
        assert visit.verdict.match is not None
        visit.stored_number, visit.written_for = number, visit.verdict.match.original.number
        if self._dropped_size is not None:
            with self.guarded():
                self.index.dropped.make_room(added, size=self._dropped_size, age=self._dropped_age)

    def count_drop(self, visit: Visit) -> None:
        """Count an item that is dropped now."""
        visit.items_dropped += 1
        self.recorder.dropped(visit)

    def keep_item(self, visit: Visit, item: Any, *, repeats: bool = False) -> None:
        """Count *item* as kept, and tag it where that is the action: it *repeats* the page's original, or not."""
        visit.items_kept += 1
        if visit.stage is Stage.PENDING and visit.claimed is not None:
            visit.items_yielded += 1
            with suppress(UncheckableError):
                text = self._item_check.read(visit.claimed, item, visit.budget)
                visit.item_texts.append(text)
                self._item_check.keys.note(text.values)
        if visit.action is Action.TAG and self._items.tag(item, visit.verdict, repeats=repeats):
            visit.items_tagged += visit.is_duplicate and repeats

    # --- the claim ends

    def item_left(self, visit: Visit, feeds: frozenset[str] | None = frozenset()) -> None:
        """Note that an item has left the pipelines, and that *feeds* have taken it: ``None`` for all there are."""
        visit.items_left += 1
        visit.feeds = None if feeds is None or visit.feeds is None else visit.feeds | feeds
        self._settle_if_complete(visit)

    def item_dropped(self, visit: Visit) -> None:
        """Note that a pipeline does not want an item: the page owns nothing."""
        self._void(visit)

    def released_item_left(self, item: DroppedItem) -> None:
        """Note that a released *item* has left the pipelines: it leaves the store, once that is durable."""
        self.durability.confirmed(None, self.index.dropped.deletes([item]))

    def item_failed(self, visit: Visit) -> None:
        """Note that an item, or the callback, has failed: the page owns nothing."""
        visit.has_failed = True
        self._void(visit)

    def callback_failed(self, visit: Visit) -> None:
        """Note that the callback has raised: what comes instead of its output is not the page's."""
        self.item_failed(visit)
        visit.stage = Stage.CHECKED

    def end_callback(self, visit: Visit, *, several: bool) -> None:
        """Note that no item will follow; the page owns what its items contain, and if it has *several*, nothing else.

        A list of teasers keeps no story.
        """
        if visit.stage is Stage.PENDING and visit.claimed is not None:
            if visit.read is not None and not self._has_same_content(visit, several=several):
                if not visit.read_in_full() or visit.page is None:
                    self.item_failed(visit)
                    return
                visit.claimed = visit.page
            content = content_of(visit.item_texts)
            page = visit.claimed.restricted_to(content.hashes, content.texts) if several else visit.claimed
            visit.claimed = replace(page, item_content=content)
        visit.callback_ended = True
        self._settle_if_complete(visit)

    def _has_same_content(self, visit: Visit, *, several: bool) -> bool:
        """Return whether the items of an unread original leave it owning what it owns.

        A page with one item owns its text, regardless of what the item contains. If it has *several* items, or had
        several the last time, they must contain what they contained then.
        """
        known = None if visit.claimed is None else visit.claimed.known
        assert known is not None
        owns_text = bool(known.exact_digest)
        if owns_text and not several:
            return True
        content = content_of(visit.item_texts)
        as_kept = "\n".join(self.index.item_text(known))
        is_same = known.item_content == content and as_kept == "\n".join(content.texts)
        return is_same and several and known.hashes <= content.hashes

    def when_settled(self, visit: Visit, then: Callable[[], None]) -> None:
        """Call *then* once the claim is confirmed or void; at once if it is already."""
        if visit.stage is Stage.PENDING:
            visit.on_settled.append(then)
        else:
            then()

    def _settle_if_complete(self, visit: Visit) -> None:
        if visit.stage is Stage.PENDING and visit.is_complete:
            if visit.items_yielded:
                self._confirm(visit)
            else:
                self._void(visit)

    def _confirm(self, visit: Visit) -> None:
        assert visit.claimed is not None
        claim = visit.stored.number if visit.stored is not None and visit.stored.pending else None
        try:
            kept, was_duplicate = self.index.commit(
                visit.claimed, claim=claim, durable=self.durability.at_once, feeds=visit.feeds
            )
            obsolete = self.index.dropped.obsolete(kept.number, self.run) if kept and was_duplicate else []
        except DedupError as error:
            self._end(visit, Stage.VOID)
            self.fail(error)
            return
        visit.kept = kept
        self._end(visit, Stage.CONFIRMED)
        if kept is not None:
            self.durability.confirmed(kept.number, obsolete)
            if visit.claimed.replaces is not None:
                self._listener.count("upgrades", 1)

    def _void(self, visit: Visit) -> None:
        if visit.stage is Stage.PENDING:
            with self.guarded():
                if visit.stored is not None and visit.stored.pending:
                    self.index.release(visit.stored.number)
        # Unless the release has failed, and has ended all claims.
        if visit.stage is Stage.PENDING:
            self._end(visit, Stage.VOID)

    def _end(self, visit: Visit, stage: Stage) -> None:
        if visit.stored is not None:
            self._pending.pop(visit.stored.number, None)
        visit.stage = stage
        self._listener.count(f"claims/{stage.value}", 1)
        waiting, visit.on_settled = visit.on_settled, []
        for then in waiting:
            then()

    # --- the end of a page, and of the crawl

    def finish(self, visit: Visit) -> None:
        """Count and record a page whose output has been seen to its end."""
        if visit.finished:
            return
        visit.finished = True
        if visit.is_duplicate and visit.has_items and not visit.written_for and visit.page is not None:
            # Tagged, or a dry run: nothing was dropped, but the page is known.
            with self.guarded():
                assert visit.verdict.match is not None
                self.index.atomically(partial(self.index.remember_duplicate, visit.page, visit.verdict.match))
        self.recorder.finished(visit)
        with self.guarded():
            self._release_recognised(visit)

    def gone(self, identities: Collection[bytes]) -> None:
        """Note that there is nothing at a page's URL any more: it owns nothing."""
        with self.guarded():
            self.index.remove([page.number for page in self.index.same(identities) if page.original is None])

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

    def _write_recognised(self, template: bytes, pages: Collection[StoredPage], looked_at: Collection[bytes]) -> None:
        """Write that *template* is one, and mark the items of *pages* as to be released, unless they are already."""
        dropped = self.index.dropped
        items = dropped.get(key for page in pages for key in dropped.of_page(page.number))
        self.index.store.write([(schema.template_key(template), b""), *dropped.to_release(items)], looked_at)

    def go_on_from(self, before: Deduplication) -> None:
        """Go on with what *before* has kept and counted, in the same crawl, until its store was away."""
        self.durability.go_on_from(before.durability)
        self.recorder.go_on_from(before.recorder)

    def close(self) -> None:
        """Make durable what has been kept, or roll it back after a failure; close the log."""
        with self.guarded():
            for visit in [*self._pending.values()]:
                self.item_failed(visit)
        with self.guarded():
            self.durability.end(store_failed=self._store_failure is not None)
        if self._dropped_size is not None and self._store_failure is None:
            # Those of originals that have become durable since the last drop.
            with self.guarded():
                self.index.dropped.make_room(0, size=self._dropped_size, age=self._dropped_age)
        self.recorder.close(self.index)

    def fail(self, error: DedupError) -> None:
        """Drop nothing any more: from now on every page is kept."""
        if self._store_failure is None and isinstance(error, StoreError):
            self._store_failure = Reason.STORE_AWAY if isinstance(error, StoreAwayError) else Reason.STORE_FAILED
        # What else fails while the store is away, its return does not mend.
        if self.has_failed and (isinstance(error, StoreError) or not self.awaits_store):
            return
        self.awaits_store = isinstance(error, StoreAwayError)
        self.has_failed = True
        self.durability.fail()
        self._listener.count("away" if self.awaits_store else "failures", 1)
        self._listener.failed(error)
        with self.guarded():
            for visit in [*self._pending.values()]:
                self.item_failed(visit)
