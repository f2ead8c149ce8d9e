"""A claim is confirmed when all items of its page have left the pipelines, and void in every other case."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from library import Library

from dedup_middleware.errors import StoreError
from dedup_middleware.visit import Stage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dedup_middleware.visit import Visit

PENDING, CONFIRMED, VOID = Stage.PENDING, Stage.CONFIRMED, Stage.VOID


def entered(library: Library, name: str, clauses: Iterable[int]) -> Visit:
    """Return the visit of a new page, which has a pending claim."""
    visit = library.enter(library.page(name, clauses))
    assert visit.stage is PENDING
    return visit


class ClaimMachine(RuleBasedStateMachine):
    """Open, feed and end claims in every legal order, beside a model of what must come of each."""

    def __init__(self) -> None:
        super().__init__()
        self.library = Library()
        self.core = self.library.deduplication
        self.visits: list[Visit] = []
        self.numbers: list[int] = []
        # For each claim: items that came while it was pending, items that left the pipelines, whether the callback has
        # ended, and where the page stands.
        self.yielded: list[int] = []
        self.left: list[int] = []
        self.ended: list[bool] = []
        self.expected: list[Stage] = []
        self.ends = {CONFIRMED: 0, VOID: 0}

    def _some(self, data: st.DataObject) -> int:
        return data.draw(st.integers(0, len(self.visits) - 1), label="claim")

    def _end(self, number: int, stage: Stage) -> None:
        if self.expected[number] is PENDING:
            self.expected[number] = stage
            self.ends[stage] += 1

    def _confirm_if_complete(self, number: int) -> None:
        if self.ended[number] and self.left[number] == self.yielded[number]:
            self._end(number, CONFIRMED if self.yielded[number] else VOID)

    @rule()
    def open(self) -> None:
        number = len(self.visits)
        visit = entered(self.library, f"p{number}", range(9 * number, 9 * number + 9))
        self.visits.append(visit)
        assert visit.stored is not None
        self.numbers.append(visit.stored.number)
        self.yielded.append(0)
        self.left.append(0)
        self.ended.append(False)
        self.expected.append(PENDING)

    @precondition(lambda self: self.visits)
    @rule(data=st.data())
    def yield_item(self, data: st.DataObject) -> None:
        number = self._some(data)
        if not self.ended[number]:
            self.core.keep_item(self.visits[number], {})
            self.yielded[number] += self.expected[number] is PENDING

    @precondition(lambda self: self.visits)
    @rule(data=st.data())
    def item_leaves(self, data: st.DataObject) -> None:
        number = self._some(data)
        if self.left[number] < self.yielded[number]:
            self.left[number] += 1
            self.core.item_left(self.visits[number])
            self._confirm_if_complete(number)

    @precondition(lambda self: self.visits)
    @rule(data=st.data())
    def lose_item(self, data: st.DataObject) -> None:
        number = self._some(data)
        if self.left[number] < self.yielded[number]:
            self.core.void(self.visits[number])
            self._end(number, VOID)

    @precondition(lambda self: self.visits)
    @rule(data=st.data(), well=st.booleans())
    def end_callback(self, data: st.DataObject, *, well: bool) -> None:
        number = self._some(data)
        if self.ended[number]:
            return
        self.ended[number] = True
        if well:
            self.core.end_callback(self.visits[number], several=False)
            self._confirm_if_complete(number)
        else:
            self.core.callback_failed(self.visits[number])
            self._end(number, VOID)
            # What comes in place of its output is not the page's.
            self.expected[number] = Stage.CHECKED

    @invariant()
    def every_page_stands_where_it_must(self) -> None:
        assert [visit.stage for visit in self.visits] == self.expected
        assert self.core._pending.keys() == {
            number for number, stage in zip(self.numbers, self.expected, strict=True) if stage is PENDING
        }
        stats = self.library.stats
        assert (stats["claims/confirmed"], stats["claims/void"]) == (self.ends[CONFIRMED], self.ends[VOID])

    @invariant()
    def confirmed_pages_are_stored_pending_ones_in_memory_and_void_ones_nowhere(self) -> None:
        index = self.library.index
        for visit, number, stage in zip(self.visits, self.numbers, self.expected, strict=True):
            assert visit.page is not None
            assert (index.find(visit.page.identities) is not None) == (stage is CONFIRMED)
            assert (index.page(number) is not None) == (stage is PENDING)
        self.library.check_invariants()


TestClaimMachine = ClaimMachine.TestCase
TestClaimMachine.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


class TestFailingStore:
    """The store fails under a claim: the claim is void."""

    def test_a_claim_that_cannot_be_stored_is_void(self) -> None:
        library = Library()
        visit = entered(library, "a", range(9))
        library.deduplication.keep_item(visit, {})
        library.deduplication.end_callback(visit, several=False)
        library.store.close()
        library.deduplication.item_left(visit)
        assert [type(failure) for failure in library.failures] == [StoreError]
        assert visit.stage is VOID
        assert library.deduplication._pending == {}
        assert library.stats["claims/confirmed"] == 0

    def test_voiding_needs_no_store(self) -> None:
        library = Library()
        three = [entered(library, f"p{number}", range(9 * number, 9 * number + 9)) for number in range(3)]
        library.store.close()
        library.deduplication.close()
        assert [visit.stage for visit in three] == [VOID] * 3
