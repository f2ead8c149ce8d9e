"""Decides what happens to each page and item of one crawl, or of one program: the only driver of the state machine.

`Verdicts.check` gives a page a provisional verdict. Then come `enter`, `process` for each item and `end`, and
`Claims.item_left` or `Claims.void` for each item that has left the pipelines.

`states` has the transitions; a call in a wrong state raises. It depends neither on Scrapy nor on time. Trouble of our
own is never a reason to drop: after a failure of the store, the records or a feed every page is kept.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dedup_middleware.common.budget import UncheckableError
from dedup_middleware.common.urls import url_identity
from dedup_middleware.driver.claiming import Claims
from dedup_middleware.driver.comparing import compare_with_itself, item_verdict
from dedup_middleware.driver.core import Core
from dedup_middleware.driver.verdicts import Verdicts
from dedup_middleware.errors import TROUBLE, StoreAwayError, StoreError, UnreadableError
from dedup_middleware.model import Action, Rejection, Unchanged, VerdictKind, now
from dedup_middleware.reasons import Reason
from dedup_middleware.records.crawl_lines import CrawlLine
from dedup_middleware.records.recorder import Recorder
from dedup_middleware.stores import refusals
from dedup_middleware.version import __version__
from dedup_middleware.visits.drops import Written
from dedup_middleware.visits.page_reader import PageReader
from dedup_middleware.visits.states import Claim, Event, Output, after
from dedup_middleware.visits.visit import Decision, Fate, ItemVerdict, Visit

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from dedup_middleware.errors import DedupError
    from dedup_middleware.index.dropped_items import DroppedItem
    from dedup_middleware.model import Match


class Deduplication(Core):
    """The pages and items of one crawl."""

    def __post_init__(self) -> None:
        super().__post_init__()
        config, index, fingerprint = self.opened.config, self.index, self.opened.fingerprint
        self.reader = PageReader(self.run, fingerprint, self.opened.extract, index.beside, self.fail)
        # Whether the items of unchecked pages are checked as pages.
        self._items_are_pages = config.spider is not None and bool(config.item_fields)
        self.verdicts = Verdicts(self)
        self.claims = Claims(self, self.verdicts)
        self.recorder = Recorder(
            *(self.spider, self.run, fingerprint.hash),
            log=self.opened.log,
            listener=self.listener,
            preferences=self.detector.preferences,
            fail=self.fail,
            begin=CrawlLine(
                event="begin",
                time=now(),
                spider=self.spider,
                crawl=self.run,
                project=config.bot,
                version=__version__,
                settings=config.changed,
                scope=config.scope.value,
                has_new=config.log_has_new,
            ),
            find=lambda identity: index.find([identity]),
            is_earlier=self.verdicts.is_earlier,
        )

    def enter(self, visit: Visit) -> None:
        """Note that the callback gets the page, which claims its text unless it is a duplicate."""
        visit.items.output = after(visit.items.output, Event.ENTER)
        if visit.is_duplicate:
            self.claims.reconsider(visit)
        else:
            self.claims.claim(visit, check=True)

    # --- items

    def process(self, visit: Visit, item: Any, *, is_compared: bool = True, may_wait: bool = True) -> list[Decision]:
        """Return what becomes of *item*, the next of the page, and of items that were held before it.

        An item with a key goes on, to be checked by itself. The first of the others decides whether the page is a
        duplicate. A later one is dropped if the original's items contain what it contains, and else kept; it follows
        its page if it is not to be *compared*. An item without text is held until the end: it is dropped unless an item
        of the page was kept. After a ``WAIT`` process the item again; where it *may not wait*, it is kept instead.
        """
        visit.items.output = after(visit.items.output, Event.PROCESS)
        if self.opened.config.key and self.verdicts.key_of(visit, item) is not None:
            visit.items.keyed += 1
            return [Decision(Fate.CHECK, item)]
        may_drop = visit.items.is_sound and visit.items.output is Output.FLOWS
        found = None
        if may_drop and visit.is_duplicate and visit.key and self.repeats_released(visit, item):
            visit.verdict = replace(visit.verdict, kind=VerdictKind.UNCHANGED, match=None)
        if may_drop and visit.is_duplicate:
            if visit.read is not None and not self._was_dropped(visit, item):
                visit.version = None
                visit.read_in_full()
            if visit.is_duplicate and (visit.version is None or visit.original_is_pending):
                self.claims.reconsider(visit)
            if visit.is_duplicate:
                found = self._compare(visit, item, is_compared=is_compared)
                if found is None and may_wait:
                    visit.version = None
                    return [Decision(Fate.WAIT, item)]
                if found is None:
                    visit.overrule(Rejection(Reason.ORIGINAL_PENDING))
        visit.items.processed += 1
        if found is None or not visit.is_duplicate:
            again = self._of_unchanged(visit, item) if may_drop and not self.has_failed else []
            return again or self._keep_all(visit, item)
        return self._of_duplicate(visit, item, found)

    def _was_dropped(self, visit: Visit, item: Any) -> bool:
        """Return whether an *item* of a duplicate that was not read was dropped before, as it would be now."""
        with self.guard:
            return not self.has_failed and self.drops.note_again(visit, item, self.feeds_wanting(item))
        return False

    def _of_duplicate(self, visit: Visit, item: Any, found: ItemVerdict) -> list[Decision]:
        """Return what becomes of an *item* of a page that is a duplicate, by what its comparison has *found*."""
        rejection = found.rejection
        if rejection is not None and (
            visit.items.processed == 1 or rejection.reason == Reason.ORIGINAL_MISSING_FROM_FEED
        ):
            self.claims.overrule(visit, rejection)
        if found.repeats and (decision := self._repeated(visit, item)) is not None:
            return [decision]
        if found.repeats is None and visit.is_duplicate and not visit.items.is_partly_kept:
            visit.items.held.append(item)
            return [Decision(Fate.HOLD, item)]
        return self._keep_all(visit, item)

    def _of_unchanged(self, visit: Visit, item: Any) -> list[Decision]:
        """Return what becomes of an *item* of an unchanged page; nothing if it is kept, or the page is another one."""
        if visit.verdict.kind is not VerdictKind.UNCHANGED:
            return []
        if self.repeats_released(visit, item, takes=True):
            visit.items.dropped += 1
            return [Decision(Fate.DROP, item)]
        if not visit.compares_itself or visit.claim.state is not Claim.PENDING:
            return []
        # Only all items together show whether the page gives what it gave before.
        visit.items.held.append(item)
        return [Decision(Fate.HOLD, item)]

    def _compare(self, visit: Visit, item: Any, *, is_compared: bool) -> ItemVerdict | None:
        """Return `check_item`; ``None`` if the original of the duplicate, or what it gives, is not durable yet."""
        if visit.original_is_pending and not visit.verdict.candidates and not self.has_failed:
            return None
        before = visit.verdict
        found = self.check_item(visit, item if is_compared else None)
        # An original that this crawl is keeping again may give more than before, and to more feeds.
        open_ = [m for m in before.candidates or (before.match,) if m is not None and m.original.number in self.open]
        is_open = found.repeats is False or any(
            self.index.open_claims.gives_other_items(m.original.number) for m in open_
        )
        if is_open and open_ and not self.has_failed:
            visit.verdict = replace(before, match=open_[0])
            return None
        visit.verdict = found.verdict
        if visit.original_is_pending and not self.has_failed:
            return None
        if not visit.is_duplicate:
            self.claims.claim(visit, check=True)
            if visit.is_duplicate:
                return self._compare(visit, item, is_compared=is_compared)
        return found

    def end(self, visit: Visit, *, is_complete: bool = True) -> list[Decision]:
        """End the output, count and record the page; return what becomes of the items that are held.

        If the output is not *complete*, because the callback has failed or was abandoned, the page owns nothing.
        """
        ended = after(visit.items.output, Event.END)
        if visit.verdict.candidates and visit.page is not None:
            # No item has come.
            visit.verdict = self.check_item(visit, None).verdict
            visit.verdict = replace(visit.verdict, candidates=())
        may_drop = visit.items.is_sound and not self.has_failed
        if (
            is_complete
            and may_drop
            and visit.verdict.kind is VerdictKind.UNCHANGED
            and (visit.items.held or visit.claim.item_texts)
        ):
            with self.guard, suppress(UncheckableError), visit.budget:
                compare_with_itself(self, visit)
        while visit.items.held:
            item = visit.items.held[0]
            decision = self._repeated(visit, item) or self._keep(visit, item)
            visit.items.held.pop(0)
            visit.items.decided.append(decision)
        visit.items.output = ended
        if is_complete:
            self.claims.end(visit)
        else:
            self.claims.void(visit)
        self._finish(visit)
        return visit.items.take_decided()

    def callback_failed(self, visit: Visit) -> None:
        """Note that the callback has raised: the output of an errback is not the page's."""
        visit.items.output = after(visit.items.output, Event.FAIL)
        self.claims.void(visit)

    def check_item(self, visit: Visit, item: Any) -> ItemVerdict:
        """Return `item_verdict` on an *item* of a duplicate. It is kept if it cannot be read, or if the store fails."""
        try:
            return item_verdict(self, visit, item)
        except UncheckableError as error:
            if error.reason == Reason.ITEM_NOT_STORABLE:
                self.drops.encode(item)  # says so
            return ItemVerdict(visit.verdict, repeats=False, rejection=Rejection(error.reason))
        except TROUBLE as error:
            self.fail(error)
        return ItemVerdict(visit.verdict, repeats=False)

    # --- what is decided

    def _keep_all(self, visit: Visit, *items: Any) -> list[Decision]:
        """Keep what is held, then *items*."""
        visit.items.is_partly_kept = True
        kept = [self._keep(visit, item) for item in (*visit.items.held, *items)]
        visit.items.held = []
        return kept

    def _keep(self, visit: Visit, item: Any, *, repeats: bool = False) -> Decision:
        """Count *item* as kept, and tag it where that is the action: it *repeats* the page's original, or not."""
        visit.items.kept += 1
        is_unchecked = visit.verdict.kind is VerdictKind.UNCHECKED and visit.verdict.reason != Reason.SWITCHED_OFF
        if self._items_are_pages and is_unchecked and not visit.is_item:
            visit.items.are_checked = True
            return Decision(Fate.CHECK, item)
        if visit.claim.state is Claim.PENDING and visit.claim.page is not None:
            visit.claim.yielded += 1
            if not visit.claim.page.is_keyed:
                with suppress(UncheckableError), visit.budget:
                    visit.claim.item_texts.append(self.item_check.read(visit.claim.page, item, visit.budget))
            if self.feeds_end_late():
                visit.claim.kept.append(self.drops.as_stored(item))
        if visit.action is Action.TAG or (
            visit.unchanged is Unchanged.TAG and visit.verdict.kind is VerdictKind.UNCHANGED
        ):
            self.classes.tag(visit, item, repeats=repeats)
        return Decision(Fate.KEEP, item)

    def _repeated(self, visit: Visit, item: Any) -> Decision | None:
        """Drop *item* of a duplicate, and store in one batch both it and that its page is one; only then it is dropped.

        ``None`` if it is kept: its page is not a duplicate of the same original any more, or something fails. If the
        action of *visit* is another, nothing is written, by the same steps: so a dry run and tags show what a drop is.
        """
        if not visit.items.is_sound or self.has_failed or not visit.is_duplicate:
            return None
        if (data := self.drops.encode(item)) is None:
            if not (visit.items.dropped or visit.items.would_drop or visit.items.tagged):
                visit.overrule(Rejection(Reason.ITEM_NOT_STORABLE))
            return None
        try:
            drop = self.index.atomically(self._write_drop, visit, visit.verdict.match, item, data)
            if drop is not None and visit.action is Action.DROP:
                self.drops.note(visit, drop)
                visit.items.dropped += 1
                return Decision(Fate.DROP, item)
        except TROUBLE as error:
            self.fail(error)
            if not visit.items.dropped:
                self.verdicts.give(visit)
            return None
        if drop is not None:
            visit.items.would_drop += visit.action is Action.DRY_RUN
            return self._keep(visit, item, repeats=True)
        if visit.is_duplicate:
            visit.overrule(Rejection(Reason.ORIGINAL_PENDING))
        else:
            self.claims.claim(visit)
        return None

    def _write_drop(self, visit: Visit, before: Match | None, item: Any, data: bytes) -> Written | None:
        """Write the drop, if the action is one; ``None`` if the match *before* does not stand, and the item is kept."""
        self.verdicts.renew_if_stale(visit)
        match, page, feeds = visit.verdict.match, visit.as_copy, self.feeds_wanting(item)
        if not visit.is_duplicate or match is None or before is None or page is None or match.original.pending:
            return None
        if match.original.number != before.original.number or not match.original.kept.has_reached(feeds):
            return None
        return self.drops.write(visit, page, match, item, data, feeds) if visit.action is Action.DROP else Written()

    # --- the end of a page, and of the crawl

    def _finish(self, visit: Visit) -> None:
        """Count and record a page whose output has ended."""
        is_duplicate = visit.is_duplicate
        if not is_duplicate:
            visit.items.would_drop = 0
        self.recorder.finished(visit)
        if visit.read is not None:
            self.listener.count("unread", 1)
        if is_duplicate:
            with self.guard:
                self.drops.remember_undropped(visit)

    def released_item_left(self, item: DroppedItem, feeds: frozenset[str] | None = None) -> None:
        """Note that a released *item* has left the pipelines: it leaves the store, once that is durable.

        *feeds* have taken it as it was dropped; ``None`` if it was another, or a pipeline has dropped it.
        """
        self.drops.note_released(item, feeds)
        self.claims.durability.delete_when_durable(self.index.dropped.deletes([item]))

    def redirected(self, urls: Iterable[str], end: str) -> None:
        """Note that *urls* lead to the URL *end* now: the pages that were there are gone, or have moved there."""
        with self.guard:
            self.index.lead_elsewhere(map(url_identity, urls), url_identity(end), self.run)

    def gone(self, url: str, identities: Collection[bytes]) -> None:
        """Note that the page at *url* is gone: it owns nothing."""
        with self.guard:
            stored = self.index.same(identities)
            for page in stored:
                if page.original is None:
                    self.index.atomically(self.index.remove, page.number, self.run)
            if stored:
                self.recorder.gone(url)

    def resume_from(self, before: Deduplication) -> None:
        """Go on with what *before* has kept and counted, in the same crawl, until its store was away."""
        keys = self.claims.resume_from(before.claims)
        self.recorder.resume_from(before.recorder)
        self.verdicts.resume_from(before.verdicts)
        with self.guard:
            self.index.atomically(self.index.dropped.adopt, keys, before.index.dropped.holder)

    def close(self) -> None:
        """Make durable what has left the pipelines; close the records."""
        self.claims.void_open()
        with self.guard:
            self.claims.durability.end()
            if self.store_failure is None:
                # Items have been released since the last drop, so that more dropped items may be removed.
                self.drops.make_room(0)
        self.verdicts.end()
        self.recorder.close()

    def fail(self, error: DedupError | UnreadableError) -> None:
        """Drop nothing any more: from now on every page is kept."""
        if isinstance(error, UnreadableError):
            error = refusals.corrupt(self.index.store.uri, str(error))
        if self.store_failure is None and isinstance(error, StoreError):
            is_away = isinstance(error, StoreAwayError)
            self.store_failure = Reason.STORE_UNREACHABLE if is_away else Reason.STORE_FAILED
        # The return of the store does not mend another failure.
        if self.has_failed and (isinstance(error, StoreError) or not self.awaits_store):
            return
        self.awaits_store = isinstance(error, StoreAwayError)
        self.has_failed = True
        self.claims.durability.fail()
        self.listener.count("away" if self.awaits_store else "failures", 1)
        self.listener.failed(error)
        self.claims.void_open(also_delivered=not self.awaits_store)  # which is durable once the store is back
