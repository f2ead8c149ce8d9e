"""What is written down around a drop, so that neither a crash nor a failure costs a story."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING

from dedup_middleware.delivery.disk_waits import AtOnce, Waits
from dedup_middleware.index import codec
from dedup_middleware.index.codec import entry_key, identity_of
from dedup_middleware.index.journal import JournalEntry
from dedup_middleware.index.packing import is_repeatable
from dedup_middleware.model import Action, VerdictKind
from dedup_middleware.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
    from collections.abc import Set as AbstractSet
    from contextlib import AbstractContextManager

    from dedup_middleware.delivery.claims import Claim, Claims
    from dedup_middleware.delivery.disk_waits import DiskWaits, Flush, Wait
    from dedup_middleware.delivery.page_state import PageState
    from dedup_middleware.delivery.sealing import Sealing
    from dedup_middleware.index.journal import Journal, PackedRequest
    from dedup_middleware.model import StoredPage


# Of the owners that an unclean shutdown left, with each one that is confirmed. What is left over the next crawl has.
_SETTLED_AT_ONCE = 2
# Journalled pages that are looked through for each page: 5 µs.
_MAX_AWAITED = 100


class Safety:
    """The drops and deliveries of one crawl, until they are safe."""

    def __init__(  # noqa: PLR0913 - what a crawl has, by name
        self,
        sealing: Sealing,
        spider: str,
        claims: Claims,
        *,
        crawl: str,
        flush: Flush | None,
        disks: DiskWaits | None = None,
        guard: Callable[[], AbstractContextManager[None]],
    ) -> None:
        """Seal by *sealing* what *claims* confirm.

        *crawl* is the only one that may deliver, after a crash, what was dropped; "" if any may. *flush* hands what was
        delivered to its media, and returns those that will have it later, and what waits until the others have it;
        without it, what has left the pipelines is safe. *disks* are waited for at once, unless it says how. *guard*
        notes what fails inside it.
        """
        self.failed = False
        """Whether something has failed: from then on nothing is dropped, and nothing sealed."""
        self._index = sealing.index
        self._spider = spider
        self._crawl = crawl
        self._flush = flush
        self._waits = Waits(disks or AtOnce(), guard)
        self._guard = guard
        self._claims = claims
        self._sealing = sealing
        # Entries that an unclean shutdown left, which the crawl has met: all; those whose callback has asked for their
        # page once more; those whose page has been seen to its end without an owner; those whose items failed.
        self._met: set[bytes] = set()
        self._asked_again: set[bytes] = set()
        self._visited_by_end: set[bytes] = set()
        self._failed: set[bytes] = set()

    def go_on_from(self, before: Safety) -> None:
        """Go on with what *before* has noted in the same crawl, and with what it still notes of pages on their way."""
        self._met, self._asked_again = before._met, before._asked_again
        self._visited_by_end, self._failed = before._visited_by_end, before._failed
        self._sealing.go_on_from(before._sealing)

    @property
    def journal(self) -> Journal:
        """The pages that are dropped and not yet safe, and those that an unclean shutdown left."""
        return self._index.journal

    def to_request_again(self) -> Iterator[tuple[bytes, JournalEntry]]:
        """Yield, by key, what an unclean shutdown left of this crawl's spider, and the crawl has not met by itself."""
        with self._guard():
            self._index.take_over()
        with self._guard():
            yield from self._left()

    def _left(self) -> Iterator[tuple[bytes, JournalEntry]]:
        for key, entry in self.journal.hand_out(self._spider, self._sealing.run, self._met):
            page = self._index.find([entry.identity]) if entry.is_to_be_delivered(key) else None
            if page is not None and page.owner is None and page.run == self._sealing.run:
                # The spider has visited it itself, and it was delivered.
                self._sealing.visited(key)
            else:
                yield key, entry

    def recovered(self, identities: Iterable[bytes], purpose: bytes | None) -> frozenset[bytes]:
        """Return the keys of what an unclean shutdown left of a page, or an item, that was requested for *purpose*."""
        recovered = self.journal.recovered
        if not recovered or purpose is None:
            return frozenset()
        keys = {entry_key(i, purpose, self._spider, crawl) for i in identities for crawl in ("", self._sealing.run)}
        return frozenset(keys & recovered.keys())

    def awaits(self, identities: Collection[bytes]) -> bool:
        """Tell whether an unclean shutdown, a person or a template has left a page with these to be delivered.

        Where very many are left, it may say so of any page. O(what is left).
        """
        recovered = self.journal.recovered
        return len(recovered) > _MAX_AWAITED or any(identity_of(key) in identities for key in recovered)

    def may_drop(self, state: PageState, feeds: AbstractSet[str], stands: Callable[[], bool]) -> bool | None:
        """Write down that an item of the page, which *feeds* would take, is dropped before it is; tell if it may be.

        Where a crash could still take the owner's items, the page must be there to be requested again after it.
        ``None`` if its verdict does not *stand*, with nothing written.
        """
        before = state.written_down, state.journalled_for

        def work() -> bool | None:
            state.written_down, state.journalled_for = before
            return self._may_drop(state, feeds) if stands() else None

        with self._guard():
            return self._claims.atomically(work)
        return False

    def _may_drop(self, state: PageState, feeds: AbstractSet[str]) -> bool:
        match, page, request = state.verdict.match, state.page, state.request
        if match is None or page is None:
            return False
        needs_journal = not self._sealing.is_certain(match.owner, feeds)
        if needs_journal and request is None:
            state.verdict = dataclasses.replace(state.verdict, kind=VerdictKind.RELATED, reason=Reason.NOT_JOURNALLED)
            return False
        if not state.written_down or (needs_journal and state.journalled_for != match.owner.number):
            entry = None
            if request is not None:
                entry = JournalEntry(page.identities[0], self._spider, request.full, self._crawl, request.purpose)
            kept = None if request is None else request.redacted
            self._write_down(state, entry, kept=kept, journal=needs_journal)
        return state.written_down and not self.failed

    def note_template(self, template: bytes, copies: Iterable[StoredPage]) -> None:
        """Write down that the text with the id *template* is one, of which *copies* need not be taken back."""
        with self._guard():
            deletes = [codec.suspect_key(template, page.number) for page in copies]
            self._index.store.write([(codec.template_key(template), b"")], deletes)

    def journal_again(
        self, page: StoredPage, template: bytes, request: PackedRequest | None, *, at_once: bool
    ) -> JournalEntry | None:
        """Write down that *page*, which was dropped for a *template*, is to be delivered: *at_once*, or when idle.

        *request* is what is known of its request; else the store may have that. Return its entry, with the request as
        it was, of whichever spider; ``None`` if it must not, or cannot, be requested again.
        """
        with self._guard():
            if request is None:
                dropped = self._index.request_of(page)
                if dropped is not None and dropped.spider == self._spider:
                    dropped = dropped._replace(crawl=self._crawl)
            else:
                dropped = JournalEntry(page.identities[0], self._spider, request.full, self._crawl, request.purpose)
            entry = None if dropped is None or not is_repeatable(dropped.request) else dropped.to_deliver()
            if dropped is None or entry is None:
                return None
            deletes = [codec.journal_key(dropped.key), codec.suspect_key(template, page.number)]
            self._index.store.write([self.journal.entry_pair(entry)], deletes)
            self.journal.note_taken_back(entry, dropped, requested=at_once)
            return entry._replace(request=dropped.request)
        return None

    def finished(self, state: PageState) -> None:
        """Note that the output of *state* has been seen to its end."""
        if state.is_duplicate and state.has_items and not state.written_down:
            self._write_down(state)
        # One that was written down anew, for it was dropped again, is not what was left any more.
        left = state.recovered & self.journal.recovered.keys()
        self._met |= left
        if state.asks_again:
            self._asked_again |= left
        if not state.entered or (not state.has_items and self._asked_again & left):
            return  # its callback has raised, or has not got the page that it wants: to be requested once more
        # Its items may still be in the pipelines, and a round that began now would not have them. A claim tells when
        # they have left, and how; without one, and for items that the page does not have any more, only the crawl's end
        # does. What was dropped again is written down again, under the identity that the page has now.
        for key in left:
            if state.claim is not None and state.page is not None and identity_of(key) in state.page.identities:
                state.claim.when_settled(partial(self._visited, key, state.claim))
            else:
                self._visited_by_end.add(key)

    def item_failed(self, state: PageState) -> None:
        """Note that an item of the page is lost on its way: what an unclean shutdown left of it stays journalled."""
        self._failed |= state.recovered

    def confirmed(self, number: int) -> None:
        """Note that the items of the owner *number* have left the pipelines."""
        self._sealing.confirmed(number)
        with self._guard():
            self._index.settle(_SETTLED_AT_ONCE)
        self._seal_if_due()

    def stored(self, medium: Hashable, wait: Wait) -> None:
        """Note that *medium*, which `flush` returned, has got what was delivered, once *wait* is over."""
        self._waits.begin(wait, partial(self._has_stored, medium))

    def _has_stored(self, medium: Hashable) -> None:
        self._sealing.stored(medium)
        if not self.failed:
            self._waits.begin(self._sealing.seal())

    def gone(self, identities: Collection[bytes], recovered: Iterable[bytes]) -> None:
        """Note that there is nothing at a page's address any more: it owns nothing, and need not be requested again."""
        with self._guard():
            owners = [page.number for page in self._index.same(identities) if page.owner is None]
            self._index.revoke(owners)
            for key in recovered:
                self._sealing.visited(key)

    def end(self, *, store_failed: bool) -> None:
        """Seal what has been delivered; void it after a failure. No disk is waited for any more then."""
        self._waits.finish()
        if not self.failed:
            for key in self._visited_by_end - self._failed:
                self._sealing.visited(key)
            self.journal.look_at_others(is_idle=True)
            self._waits.begin(self._sealing.begin_round(set()))
            self._waits.finish()
        elif not store_failed:
            self._sealing.give_up()

    def _visited(self, key: bytes, claim: Claim) -> None:
        if claim.failed:
            self._failed.add(key)
        else:
            self._sealing.visited(key)
            self._seal_if_due()

    def _seal_if_due(self) -> None:
        # A slow disk has one round at a time: what is confirmed meanwhile is for the next.
        if self._sealing.is_due and not self.failed and not self._waits.under_way:
            with self._guard():
                self._begin_round()

    def _begin_round(self) -> None:
        if self._flush is None:
            self._waits.begin(self._sealing.begin_round(set()))
            return
        closing, wait = self._flush()
        disks = object()
        try:
            self._waits.begin(self._sealing.begin_round({*closing, disks}))
        finally:
            # Also where the store fails on what was ready before: the wait has files open, and the round waits for it.
            self._waits.begin(wait, partial(self._has_stored, disks))

    def _write_down(
        self, state: PageState, entry: JournalEntry | None = None, *, kept: bytes | None = None, journal: bool = False
    ) -> None:
        if state.page is not None and state.verdict.match is not None:
            with self._guard():
                suspected_template = state.suspected_template if state.action is Action.DROP else b""
                state.written_down = self._index.remember_duplicate(
                    state.page,
                    state.verdict.match,
                    entry,
                    kept=kept,
                    journal=journal,
                    suspected_template=suspected_template,
                )
                if journal and state.written_down:
                    state.journalled_for = state.verdict.match.owner.number
