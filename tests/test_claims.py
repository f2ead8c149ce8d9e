"""A claim is confirmed when the page's items are safe, and void in every other case."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from library import Library

from dedup_middleware.delivery.claims import Claim, Claims, ClaimState
from dedup_middleware.errors import DedupError, StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

PENDING, CONFIRMED, VOID = ClaimState


def fail(error: DedupError) -> None:
    raise AssertionError(f"the store of this test works: {error}")


def opened(claims: Claims, library: Library, name: str, clauses: Iterable[int]) -> Claim:
    """Return the open claim of a new page."""
    page = library.page(name, clauses)
    return claims.open(page, library.index.claim(page))


class ClaimMachine(RuleBasedStateMachine):
    """Open, feed and end claims in every legal order, beside a model of what must come of each."""

    is_patient = False

    def __init__(self) -> None:
        super().__init__()
        self.library = Library()
        self.settled: list[Claim] = []
        self.later: list[Callable[[], None]] = []
        soon = self.later.append if self.is_patient else None
        self.claims = Claims(self.library.index, self.settled.append, fail, soon=soon)
        self.opened: list[Claim] = []
        # For each claim: items on their way, items scraped, whether the callback has finished, whether it failed, and
        # whether, complete, it was confirmed.
        self.facts: list[dict[str, int]] = []
        self.calls: list[list[int]] = []

    def _some(self, data: st.DataObject) -> int:
        return data.draw(st.integers(0, len(self.opened) - 1), label="claim")

    @rule()
    def open(self) -> None:
        number = len(self.opened)
        self.opened.append(opened(self.claims, self.library, f"p{number}", range(number, number + 9)))
        self.facts.append({"yielded": 0, "scraped": 0, "finished": 0, "failed": 0, "confirmed": 0})
        self.calls.append([])

    @precondition(lambda self: self.opened)
    @rule(data=st.data())
    def yield_item(self, data: st.DataObject) -> None:
        number = self._some(data)
        if not self.facts[number]["finished"]:
            self.opened[number].item_yielded()
            self.facts[number]["yielded"] += 1

    @precondition(lambda self: self.opened)
    @rule(data=st.data())
    def scrape_item(self, data: st.DataObject) -> None:
        number = self._some(data)
        if self.facts[number]["scraped"] < self.facts[number]["yielded"]:
            self.facts[number]["scraped"] += 1
            self.opened[number].item_scraped()
            self._confirm_if_due()

    @precondition(lambda self: self.opened)
    @rule(data=st.data())
    def fail_item(self, data: st.DataObject) -> None:
        number = self._some(data)
        facts = self.facts[number]
        if facts["scraped"] < facts["yielded"]:
            facts["failed"] |= not self._complete(facts)
            self.opened[number].item_failed()

    @precondition(lambda self: self.opened)
    @rule(data=st.data(), well=st.booleans())
    def end_callback(self, data: st.DataObject, *, well: bool) -> None:
        number = self._some(data)
        facts = self.facts[number]
        if facts["finished"]:
            return
        if well:
            facts["finished"] = 1
            self.opened[number].callback_finished()
            self._confirm_if_due()
        else:
            facts["finished"] = facts["failed"] = 1
            self.opened[number].callback_failed()

    @precondition(lambda self: self.opened)
    @rule(data=st.data())
    def wait(self, data: st.DataObject) -> None:
        number = self._some(data)
        waiter = len(self.calls[number])
        self.calls[number].append(0)

        def settled() -> None:
            assert self.opened[number].state is not PENDING
            self.calls[number][waiter] += 1

        self.opened[number].when_settled(settled)
        self._confirm_if_due()

    @rule(writes=st.booleans())
    def work(self, *, writes: bool) -> None:
        assert self.claims.atomically(lambda: writes) is writes
        if writes:
            self._confirm()

    @precondition(lambda self: self.later)
    @rule()
    def look(self) -> None:
        while self.later:
            self.later.pop()()
        self._confirm()

    @rule()
    def revoke_all(self) -> None:
        for facts in self.facts:
            facts["failed"] |= not facts["confirmed"]
        self.claims.revoke_all()

    def _confirm_if_due(self) -> None:
        waiting = zip(self.facts, self.calls, strict=True)
        if not self.is_patient or any(
            calls and self._complete(facts) and not facts["failed"] for facts, calls in waiting
        ):
            self._confirm()

    def _confirm(self) -> None:
        for facts in self.facts:
            facts["confirmed"] |= self._complete(facts) and not facts["failed"]

    @staticmethod
    def _complete(facts: dict[str, int]) -> bool:
        return bool(facts["finished"] and facts["scraped"] == facts["yielded"])

    def _expected(self, facts: dict[str, int]) -> ClaimState:
        if facts["failed"]:
            return VOID
        if not self._complete(facts):
            return PENDING
        if not facts["yielded"]:
            return VOID
        return CONFIRMED if facts["confirmed"] else PENDING

    @invariant()
    def every_claim_stands_where_it_must(self) -> None:
        states = [claim.state for claim in self.opened]
        assert states == [self._expected(facts) for facts in self.facts]
        assert len(self.settled) == len({id(claim) for claim in self.settled}) == len(states) - states.count(PENDING)
        for claim, calls in zip(self.opened, self.calls, strict=True):
            assert all(count == (claim.state is not PENDING) for count in calls)
            assert self.claims.of(claim.stored) is (claim if claim.state is PENDING else None)

    @invariant()
    def confirmed_pages_are_stored_pending_ones_in_memory_and_void_ones_nowhere(self) -> None:
        index = self.library.index
        for claim in self.opened:
            assert (index.find(claim.page.identities) is not None) == (claim.state is CONFIRMED)
            assert (index.page(claim.stored.number) is not None) == (claim.state is PENDING)
        self.library.check()


class PatientClaimMachine(ClaimMachine):
    """The same where a claim that is complete is confirmed with what is written next."""

    is_patient = True


TestClaimMachine = ClaimMachine.TestCase
TestPatientClaimMachine = PatientClaimMachine.TestCase
TestClaimMachine.settings = TestPatientClaimMachine.settings = settings(
    max_examples=60, stateful_step_count=30, deadline=None
)


class TestFailingStore:
    """The medium fails under a claim: the claim is void, and whoever waits is told."""

    def test_a_claim_that_cannot_be_stored_is_void(self) -> None:
        library, states, told, failures = Library(), [], [], []
        claims = Claims(library.index, lambda claim: states.append(claim.state), failures.append)
        claim = opened(claims, library, "a", range(9))
        claim.when_settled(lambda: told.append(claim.state))
        claim.item_yielded()
        claim.callback_finished()
        library.store.close()
        claim.item_scraped()
        assert [type(failure) for failure in failures] == [StoreError]
        assert claim.state is VOID
        assert told == [VOID]
        assert library.index.page(claim.stored.number) is None
        assert claims.of(claim.stored) is None
        assert states == [VOID], "what is counted is what came of the claim"

    def test_those_that_wait_to_be_stored_are_void_too(self) -> None:
        library, later, failures = Library(), [], []
        claims = Claims(library.index, lambda _: None, failures.append, soon=later.append)
        three = [opened(claims, library, f"p{number}", range(9 * number, 9 * number + 9)) for number in range(3)]
        for claim in three[:2]:
            claim.item_yielded()
            claim.item_scraped()
            claim.callback_finished()
        assert [claim.state for claim in three] == [PENDING] * 3
        library.store.close()
        later.pop()()
        assert [type(failure) for failure in failures] == [StoreError]
        assert [claim.state for claim in three] == [VOID, VOID, PENDING]
        assert later == []

    def test_voiding_needs_no_store(self) -> None:
        library = Library()
        claims = Claims(library.index, lambda _: None, fail)
        three = [opened(claims, library, f"p{number}", range(9)) for number in range(3)]
        library.store.close()
        claims.revoke_all()
        assert [claim.state for claim in three] == [VOID] * 3


class TestUnchangedPage:
    """A page that the store owns already has nothing to claim, and nothing to lose."""

    def test_its_failure_leaves_it_an_owner(self) -> None:
        library = Library()
        page = library.page("a", range(9))
        own = library.index.commit(page)
        claims = Claims(library.index, lambda _: None, fail)
        claim = claims.open(page, own)
        assert claims.of(own) is None
        claim.callback_failed()
        assert library.index.page(own.number) == own

    def test_its_delivery_makes_it_a_page_of_this_crawl(self) -> None:
        library = Library()
        library.visit("a", range(9))
        (before,) = library.index.pages()
        library.begin("second")
        library.visit("a", range(9))
        (page,) = library.index.pages()
        assert (page.run, page.number) == ("second", before.number)
