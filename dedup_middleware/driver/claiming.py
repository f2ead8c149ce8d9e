"""Opens the claims of a crawl, lets duplicates wait for them, and ends them: a page is durable, or owns nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dedup_middleware.driver.comparing import owned_by
from dedup_middleware.driver.keyed import claim_keyed
from dedup_middleware.errors import TROUBLE, FeedError
from dedup_middleware.model import Page, Rejection, VerdictKind
from dedup_middleware.records.recorder import RecordMaker
from dedup_middleware.visits.durability import Durability
from dedup_middleware.visits.states import Claim, Event, Output, after

if TYPE_CHECKING:
    from collections.abc import Callable

    from dedup_middleware.checks.detector import Detector
    from dedup_middleware.driver.verdicts import Verdicts
    from dedup_middleware.errors import DedupError, UnreadableError
    from dedup_middleware.index.dropped_items import KeyValue
    from dedup_middleware.model import StoredPage
    from dedup_middleware.visits.drops import Drops
    from dedup_middleware.visits.durability import DiskWaits, Flush
    from dedup_middleware.visits.visit import Listener, Visit


class Claims:
    """The claims of one crawl that are open."""

    def __init__(  # noqa: PLR0913, PLR0917 - what a claim is opened and ended with
        self,
        open_: dict[int, Visit],
        detector: Detector,
        verdicts: Verdicts,
        drops: Drops,
        listener: Listener,
        fail: Callable[[DedupError | UnreadableError], None],
        *,
        flush: Flush | None,
        disks: DiskWaits | None,
    ) -> None:
        """*flush* and *disks* are for `Durability`; *fail* gets the trouble with the store or a disk."""
        self.open = open_
        """The visits, by the number of the claim in the index, or that of the original that is kept again."""
        self._detector, self._index = detector, detector.index
        self._verdicts, self._drops = verdicts, drops
        self._listener, self._fail = listener, fail
        self.durability = Durability(
            self._index.store, flush=flush, disks=disks, write=self._write, fail=self._checkpoint_failed
        )

    def claim(self, visit: Visit, *, check: bool = False) -> None:
        """Let the page claim its text unless it is a duplicate; with *check*, a stale page is checked again before.

        Both in one transaction: of two processes that get a text at once, one does both before the other.
        """
        try:
            claimed = self._index.atomically(self._open_in_store, visit, check=check)
        except TROUBLE as error:
            self._fail(error)
            if check:
                self._verdicts.give(visit)
            return
        if claimed is not None:
            visit.claim.state = after(visit.claim.state, Event.CLAIM)
            visit.claim.page, visit.claim.stored = claimed
            self._note_open(visit.claim.stored.number, visit)

    def _open_in_store(self, visit: Visit, *, check: bool) -> tuple[Page, StoredPage] | None:
        """Open the claim; return the page as it will be stored, and its claim, or ``None`` if it claims nothing."""
        if check:
            self._verdicts.renew_if_stale(visit)
        # Items that were kept before would be counted as items of the claim.
        may_claim = visit.claim.state is Claim.NONE and visit.items.output is Output.FLOWS and not visit.items.kept
        if not may_claim or visit.is_duplicate or not visit.can_be_original:
            return None
        if visit.page is not None and visit.page.is_keyed:
            # Also one that is unchanged, which other pages may give at the same time.
            return claim_keyed(visit.page, visit.verdict, self._index)
        own = None
        if visit.verdict.kind is VerdictKind.UNCHANGED and visit.page is not None and visit.verdict.moved is None:
            # An unchanged original owns its text already.
            own = visit.page.known or self._index.find(visit.page.identities)
        page = visit.page if own is not None or visit.read is None else visit.read_in_full()
        if page is None:
            return None
        page = self._detector.to_stored(page, visit.verdict)
        return page, own or self._index.claim(page)

    def _note_open(self, number: int, visit: Visit) -> None:
        self.open[number] = visit
        self._index.open_claims.opened(number, self.durability.want)

    def reconsider(self, visit: Visit) -> None:
        """Check a duplicate again if its verdict is stale; it claims its text if it is not a duplicate any more."""
        try:
            self._verdicts.renew_if_stale(visit)
        except TROUBLE as error:
            self._fail(error)
        if not visit.is_duplicate:
            self.claim(visit, check=True)

    def overrule(self, visit: Visit, rejection: Rejection | None) -> None:
        """Make a duplicate a related page because of a *rejection*, if there is one; it claims its text."""
        if visit.is_duplicate and rejection is not None:
            visit.overrule(rejection)
            self.claim(visit)

    # --- a duplicate waits for its original

    def await_original(self, visit: Visit, then: Callable[[], object]) -> bool:
        """Have the original made durable soon; call *then* once its claim ends. ``False`` if another process has it."""
        match = visit.verdict.match
        return match is not None and self._index.open_claims.wait(match.original.number, then)

    def rests_on_claim(self, visit: Visit) -> bool:
        """Return whether *visit* is a duplicate of a claim that is open, of this or another process. A get."""
        match = visit.verdict.match if visit.original_is_pending else None
        try:
            return match is not None and self._index.claimed(match.original.number) is not None
        except TROUBLE as error:
            self._fail(error)
            return False

    def rests_on_release(self, visit: Visit) -> bool:
        """Return whether *visit* is a duplicate of an item that this crawl is releasing."""
        match = visit.verdict.match if visit.is_duplicate else None
        original = None if match is None else self.open.get(match.original.number)
        return original is not None and bool(original.items.released)

    def is_delivered(self, visit: Visit) -> bool:
        """Return whether the original of *visit* is one of this crawl that waits for disks only."""
        match = visit.verdict.match
        original = None if match is None else self.open.get(match.original.number)
        return original is not None and original.claim.state is Claim.DELIVERED

    # --- the claim ends

    def item_left(self, visit: Visit, feeds: frozenset[str] | None = frozenset()) -> None:
        """Note that an item has left the pipelines, and that *feeds* have taken it: ``None`` for all there are."""
        visit.claim.left += 1
        visit.claim.feeds = None if feeds is None or visit.claim.feeds is None else visit.claim.feeds | feeds
        self._deliver_if_complete(visit)

    def void(self, visit: Visit) -> None:
        """End the claim, if it is open: an item was dropped by a pipeline or has failed, and the page owns nothing."""
        if visit.claim.state in {Claim.PENDING, Claim.DELIVERED}:
            self._end_open(visit, Event.VOID)
            try:
                if visit.claim.stored is not None and visit.claim.stored.pending:
                    self._index.void_claim(visit.claim.stored.number)
            except TROUBLE as error:
                self._fail(error)

    def void_open(self, *, also_delivered: bool = False) -> None:
        """End the claims whose items have not all left the pipelines; with *also_delivered*, all that are open."""
        for visit in [*self.open.values()]:
            if visit.claim.state is Claim.PENDING or also_delivered:
                self.void(visit)

    def end(self, visit: Visit) -> None:
        """Note that no item will follow."""
        if visit.claim.state is not Claim.PENDING or visit.claim.page is None:
            return
        visit.claim.page = owned_by(visit, visit.claim.page, self._index)
        if visit.claim.page is None:
            self.void(visit)
        else:
            self._deliver_if_complete(visit)

    def _end_open(self, visit: Visit, event: Event) -> None:
        visit.claim.state = after(visit.claim.state, event)
        self._listener.count("claims/void" if visit.claim.state is Claim.VOID else "claims/confirmed", 1)
        assert visit.claim.stored is not None
        if self.open.get(visit.claim.stored.number) is visit:
            del self.open[visit.claim.stored.number]
        self._index.open_claims.ended(visit.claim.stored.number)

    def _deliver_if_complete(self, visit: Visit) -> None:
        is_over = visit.items.output is Output.ENDED and visit.claim.left == visit.claim.yielded
        if visit.claim.state is not Claim.PENDING or visit.claim.page is None or not is_over:
            return
        # Without an item that was kept, is checked by itself, or was dropped because the store has it.
        claim, items = visit.claim, visit.items
        has_items = claim.yielded or claim.item_texts or items.keyed or (visit.key and items.dropped)
        if not has_items or visit.claim.is_of_list:
            self.void(visit)
            return
        if (standing := RecordMaker.standing(visit)) != visit.claim.page.standing:
            visit.claim.page = replace(visit.claim.page, standing=standing)
        visit.claim.state = after(visit.claim.state, Event.DELIVER)
        self.durability.delivered(visit)

    def _write(self, visit: Visit, with_items: bool) -> list[bytes]:  # noqa: FBT001 - called back
        """Write the page of *visit*, which is durable; *with_items*, write these, too, and return their keys."""
        pairs: list[KeyValue] = []

        def items(number: int) -> list[KeyValue]:
            pairs[:] = self._drops.kept_pairs(visit, number) if with_items else []
            return pairs

        assert visit.claim.page is not None
        assert visit.claim.stored is not None
        claim = visit.claim.stored.number if visit.claim.stored.pending else None
        try:
            stored = self._index.commit(visit.claim.page, claim=claim, feeds=visit.claim.feeds, items=items)
        except TROUBLE:
            raise
        except Exception as error:  # noqa: BLE001 - a plugin bug: the other pages are durable all the same
            self.void(visit)
            self._listener.defect(error, visit.url)
            return []
        self._end_open(visit, Event.WRITE)
        if stored is not None and visit.claim.page.replaces is not None:
            self._listener.count("upgrades", 1)
        return [] if stored is None else [key for key, _ in pairs]

    def _checkpoint_failed(self, error: Exception) -> None:
        if not isinstance(error, TROUBLE):
            self._listener.defect(error, "a checkpoint")
            error = FeedError("it is not known what is on disk")
        self._fail(error)

    def resume_from(self, before: Claims) -> list[bytes]:
        """Go on with what *before* has made ready; return the keys of the items that are stored until feeds end."""
        keys = self.durability.resume_from(before.durability)
        for number, visit in before.open.items():
            if visit.claim.state is Claim.DELIVERED:
                self._note_open(number, visit)
        return keys
