"""Opens the claims of a crawl, lets duplicates wait for them, and ends them: a page is durable, or owns nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dedup_middleware.driver.comparing import owned_by
from dedup_middleware.driver.verdicts import placed
from dedup_middleware.errors import TROUBLE, FeedError
from dedup_middleware.model import Page, Rejection, VerdictKind
from dedup_middleware.records.recorder import RecordMaker
from dedup_middleware.visits.durability import Durability
from dedup_middleware.visits.states import Claim, Event, Output, after

if TYPE_CHECKING:
    from collections.abc import Callable

    from dedup_middleware.driver.core import Core
    from dedup_middleware.driver.verdicts import Verdicts
    from dedup_middleware.index.dropped_items import KeyValue
    from dedup_middleware.model import StoredPage
    from dedup_middleware.visits.visit import Visit


class Claims:
    """The claims of one crawl that are open."""

    def __init__(self, core: Core, verdicts: Verdicts) -> None:
        """Let *verdicts* renew those that are stale before a page claims its text."""
        self._core, self._index, self._verdicts = core, core.index, verdicts
        self.durability = Durability(
            core.index.store,
            # What is in memory needs no disk.
            flush=None if core.opened.trouble else core.flush,
            disks=core.disks,
            write=self._write,
            fail=self._checkpoint_failed,
        )

    def claim(self, visit: Visit, *, check: bool = False) -> None:
        """Let the page claim its text unless it is a duplicate; with *check*, a stale page is checked again before.

        Both in one transaction: of two processes that get a text at once, one does both before the other.
        """
        try:
            claimed = self._index.atomically(self._open_in_store, visit, check=check)
        except TROUBLE as error:
            self._core.fail(error)
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
        page, verdict, own = visit.page, visit.verdict, None
        if not may_claim or page is None or visit.is_duplicate or not visit.can_be_original:
            return None
        # Other pages may give an unchanged item with a key at the same time: each claims it.
        if verdict.kind is VerdictKind.UNCHANGED and verdict.moved is None and not page.is_keyed:
            # An unchanged original owns its text already.
            own = page.known or self._index.find(page.identities)
        page = page if own is not None else visit.read_in_full()
        if page is None:
            return None
        page = placed(page, verdict) if page.is_keyed else self._core.detector.to_stored(page, visit.verdict)
        return page, own or self._index.claim(page)

    def _note_open(self, number: int, visit: Visit) -> None:
        self._core.open[number] = visit
        self._index.open_claims.opened(number, self.durability.want)

    def reconsider(self, visit: Visit) -> None:
        """Check a duplicate again if its verdict is stale; it claims its text if it is not a duplicate any more."""
        with self._core.guard:
            self._verdicts.renew_if_stale(visit)
        if not visit.is_duplicate:
            self.claim(visit, check=True)

    def overrule(self, visit: Visit, rejection: Rejection) -> None:
        """Make a duplicate a related page because of a *rejection*; it claims its text."""
        if visit.is_duplicate:
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
        with self._core.guard:
            return match is not None and self._index.claimed(match.original.number) is not None
        return False

    def is_delivered(self, visit: Visit) -> bool:
        """Return whether the original of *visit* is one of this crawl that waits for disks only."""
        match = visit.verdict.match
        original = None if match is None else self._core.open.get(match.original.number)
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
            stored = self._end_open(visit, Event.VOID)
            with self._core.guard:
                if stored.pending:
                    self._index.void_claim(stored.number)

    def void_open(self, *, also_delivered: bool = False) -> None:
        """End the claims whose items have not all left the pipelines; with *also_delivered*, all that are open."""
        for visit in [*self._core.open.values()]:
            if visit.claim.state is Claim.PENDING or also_delivered:
                self.void(visit)

    def end(self, visit: Visit) -> None:
        """Note that no item will follow."""
        if visit.claim.state is Claim.PENDING:
            visit.claim.page = owned_by(visit, self._index)
            if visit.claim.page is None:
                self.void(visit)
            self._deliver_if_complete(visit)

    def _end_open(self, visit: Visit, event: Event) -> StoredPage:
        """End the claim by *event*; return what the store has of it."""
        stored = visit.claim.stored
        assert stored is not None
        visit.claim.state = after(visit.claim.state, event)
        self._core.listener.count("claims/void" if visit.claim.state is Claim.VOID else "claims/confirmed", 1)
        if self._core.open.get(stored.number) is visit:
            del self._core.open[stored.number]
        self._index.open_claims.ended(stored.number)
        return stored

    def _deliver_if_complete(self, visit: Visit) -> None:
        claim, items = visit.claim, visit.items
        if claim.state is not Claim.PENDING or items.output is not Output.ENDED or claim.left != claim.yielded:
            return
        # Without an item that was kept, is checked by itself, or was dropped because the store has it.
        has_items = claim.yielded or claim.item_texts or items.keyed or (visit.key and items.dropped)
        # A page with little text and several items owns none of these.
        is_list = claim.yielded > 1 and claim.page is not None and claim.page.fingerprint.is_whole
        if claim.page is None or not has_items or is_list:
            self.void(visit)
            return
        if (standing := RecordMaker.standing(visit)) != claim.page.standing:
            claim.page = replace(claim.page, standing=standing)
        claim.state = after(claim.state, Event.DELIVER)
        self.durability.delivered(visit)

    def _write(self, visit: Visit, with_items: bool) -> list[bytes]:  # noqa: FBT001 - called back
        """Write the page of *visit*, which is durable; *with_items*, write these, too, and return their keys."""
        keys: list[bytes] = []
        claim = visit.claim

        def items(number: int) -> list[KeyValue]:
            pairs = self._core.drops.kept_pairs(visit, number) if with_items else []
            keys[:] = [key for key, _ in pairs]
            return pairs

        assert claim.page is not None
        assert claim.stored is not None
        pending = claim.stored.number if claim.stored.pending else None
        try:
            stored = self._index.atomically(self._index.commit, claim.page, pending, claim.feeds, items)
        except TROUBLE:
            raise
        except Exception as error:  # noqa: BLE001 - a plugin bug: the other pages are durable all the same
            self.void(visit)
            self._core.listener.defect(error, visit.url)
            return []
        self._end_open(visit, Event.WRITE)
        if stored is not None and claim.page.replaces is not None:
            self._core.listener.count("upgrades", 1)
        return keys if stored is not None else []

    def _checkpoint_failed(self, error: Exception) -> None:
        if not isinstance(error, TROUBLE):
            self._core.listener.defect(error, "a checkpoint")
            error = FeedError("it is not known what is on disk")
        self._core.fail(error)

    def resume_from(self, before: Claims) -> list[bytes]:
        """Go on with what *before* has made ready; return the keys of the items that are stored until feeds end."""
        keys = self.durability.resume_from(before.durability)
        for number, visit in before._core.open.items():
            if visit.claim.state is Claim.DELIVERED:
                self._note_open(number, visit)
        return keys
