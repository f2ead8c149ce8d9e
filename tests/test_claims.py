"""A page is durable once its items are on disk, void in every other case, and no call comes out of order."""

import sys
from datetime import timedelta

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from library import Library
from nightly import tries

from dedup_middleware.common.budget import UNLIMITED
from dedup_middleware.driver.releases import Releaser
from dedup_middleware.errors import FeedError, StoreError
from dedup_middleware.model import Action
from dedup_middleware.visits.states import Claim, Output, StateError
from dedup_middleware.visits.visit import Fate

PENDING, DURABLE, VOID = Claim.PENDING, Claim.DURABLE, Claim.VOID


def entered(library, name, clauses):
    """Return the visit of a new page, which has a pending claim."""
    visit = library.enter(library.page(name, clauses))
    assert visit.claim.state is PENDING
    return visit


class ClaimMachine(RuleBasedStateMachine):
    """Open, feed and end claims in every legal order, beside a model of what must come of each."""

    def __init__(self):
        super().__init__()
        self.library = Library()
        self.core = self.library.deduplication
        self.visits = []
        self.numbers = []
        # For each claim: items that came while it was pending, items that left the pipelines, whether the callback has
        # ended, and where the page stands.
        self.yielded = []
        self.left = []
        self.ended = []
        self.expected = []
        self.ends = {DURABLE: 0, VOID: 0}

    def _some(self, data):
        return data.draw(st.integers(0, len(self.visits) - 1), label="claim")

    def _end(self, number, stage):
        if self.expected[number] is PENDING:
            self.expected[number] = stage
            self.ends[stage] += 1

    def _confirm_if_complete(self, number):
        if self.ended[number] and self.left[number] == self.yielded[number]:
            self._end(number, DURABLE if self.yielded[number] else VOID)

    @rule()
    def open(self):
        number = len(self.visits)
        visit = entered(self.library, f"p{number}", range(9 * number, 9 * number + 9))
        self.visits.append(visit)
        self.numbers.append(visit.claim.stored.number)
        self.yielded.append(0)
        self.left.append(0)
        self.ended.append(False)
        self.expected.append(PENDING)

    @precondition(lambda self: self.visits)
    @rule(data=st.data())
    def yield_item(self, data):
        number = self._some(data)
        if not self.ended[number]:
            self.core.process(self.visits[number], {})
            self.yielded[number] += self.expected[number] is PENDING

    @precondition(lambda self: self.visits)
    @rule(data=st.data())
    def item_leaves(self, data):
        number = self._some(data)
        if self.left[number] < self.yielded[number]:
            self.left[number] += 1
            self.core.claims.item_left(self.visits[number])
            self._confirm_if_complete(number)

    @precondition(lambda self: self.visits)
    @rule(data=st.data())
    def lose_item(self, data):
        number = self._some(data)
        if self.left[number] < self.yielded[number]:
            self.core.claims.void(self.visits[number])
            self._end(number, VOID)

    @precondition(lambda self: self.visits)
    @rule(data=st.data(), well=st.booleans())
    def end(self, data, *, well):
        number = self._some(data)
        if self.ended[number]:
            return
        self.ended[number] = True
        if well:
            self.core.end(self.visits[number])
            self._confirm_if_complete(number)
        else:
            self.core.callback_failed(self.visits[number])
            self._end(number, VOID)

    @invariant()
    def every_page_stands_where_it_must(self):
        assert [visit.claim.state for visit in self.visits] == self.expected
        assert self.core.open.keys() == {
            number for number, stage in zip(self.numbers, self.expected, strict=True) if stage is PENDING
        }
        stats = self.library.stats
        assert (stats["claims/confirmed"], stats["claims/void"]) == (self.ends[DURABLE], self.ends[VOID])

    @invariant()
    def durable_pages_are_stored_pending_ones_in_memory_and_void_ones_nowhere(self):
        index = self.library.index
        for visit, number, stage in zip(self.visits, self.numbers, self.expected, strict=True):
            assert (index.find(visit.page.identities) is not None) == (stage is DURABLE)
            assert (index.page(number) is not None) == (stage is PENDING)
        self.library.check_invariants()


TestClaimMachine = ClaimMachine.TestCase
TestClaimMachine.settings = settings(max_examples=tries(30, 1000), stateful_step_count=30)


class TestFailingStore:
    """The store fails under a claim: the claim is void."""

    def test_a_claim_that_cannot_be_stored_is_void(self):
        library = Library()
        visit = entered(library, "a", range(9))
        library.deduplication.process(visit, {})
        library.deduplication.end(visit)
        library.store.close()
        library.deduplication.claims.item_left(visit)
        assert [type(failure) for failure in library.failures] == [StoreError]
        assert visit.claim.state is VOID
        assert library.deduplication.open == {}
        assert library.stats["claims/confirmed"] == 0

    def test_voiding_needs_no_store(self):
        library = Library()
        three = [entered(library, f"p{number}", range(9 * number, 9 * number + 9)) for number in range(3)]
        library.store.close()
        library.deduplication.close()
        assert [visit.claim.state for visit in three] == [VOID] * 3


class TestOrder:
    """A call in a wrong state raises, and changes nothing."""

    def test_each_step_has_its_place(self):
        library = Library()
        core, visit = (
            library.deduplication,
            library.deduplication.verdicts.check(library.page("a", range(9)), Action.DROP, UNLIMITED),
        )
        for early in (lambda: core.process(visit, {}), lambda: core.end(visit), lambda: core.callback_failed(visit)):
            with pytest.raises(StateError):
                early()
        assert (visit.items.output, visit.claim.state, visit.items.processed) == (Output.AWAITED, Claim.NONE, 0)
        core.enter(visit)
        with pytest.raises(StateError):
            core.enter(visit)
        core.process(visit, {})
        core.end(visit)
        for late in (lambda: core.process(visit, {}), lambda: core.end(visit), lambda: core.callback_failed(visit)):
            with pytest.raises(StateError):
                late()
        assert (visit.items.output, visit.claim.state, visit.items.processed) == (Output.ENDED, Claim.PENDING, 1)
        core.claims.item_left(visit)
        assert visit.claim.state is DURABLE
        core.claims.void(visit)
        assert visit.claim.state is DURABLE, "what has failed later is not of this page"


class TestCheckpoints:
    """A page is written once, when its items are on disk; a duplicate waits for that."""

    @staticmethod
    def library():
        """Return a crawl with a feed, what it waits for, and the feeds that end late at its next checkpoints."""
        waits = []
        late = []
        library = Library(
            flush=lambda: (late.pop(0) if late else set(), lambda: None), disks=Disks(waits), dropped_size=sys.maxsize
        )
        library.deduplication.claims.durability.interval = 100
        return library, waits, late

    @staticmethod
    def kept(library, name, clauses):
        """Return the visit of a page whose items have left the pipelines."""
        return library.leave(entered(library, name, clauses))

    def test_nothing_is_written_before_its_items_are_on_disk(self):
        library, waits, _ = self.library()
        before = library.contents()
        visit = self.kept(library, "a", range(9))
        assert (visit.claim.state, library.contents()) == (Claim.DELIVERED, before)
        copy = library.enter(library.page("b", range(9)))
        (decision,) = library.deduplication.process(copy, {})
        assert decision.fate is Fate.WAIT
        called = []
        assert library.deduplication.claims.await_original(copy, lambda: called.append(True))
        assert (visit.claim.state, called, library.contents()) == (Claim.DELIVERED, [], before)
        waits.pop(0)()
        assert (visit.claim.state, called) == (DURABLE, [True])
        (decision,) = library.deduplication.process(copy, {}, is_compared=False)
        assert decision.fate is Fate.DROP
        library.check_invariants()

    def test_what_is_wanted_is_made_durable_once_it_has_left_the_pipelines(self):
        library, waits, _ = self.library()
        visit = entered(library, "a", range(9))
        copy = library.enter(library.page("b", range(9)))
        library.deduplication.process(copy, {})
        library.deduplication.claims.await_original(copy, lambda: None)
        assert waits == []
        library.leave(visit)
        waits.pop(0)()
        assert visit.claim.state is DURABLE

    def test_one_checkpoint_at_a_time_takes_all_that_wait(self):
        library, waits, _ = self.library()
        library.deduplication.claims.durability.interval = 1
        visits = [self.kept(library, f"p{n}", range(20 * n, 20 * n + 9)) for n in range(4)]
        assert len(waits) == 1
        waits.pop(0)()
        assert [visit.claim.state for visit in visits] == [DURABLE, *[Claim.DELIVERED] * 3]
        waits.pop(0)()  # the store
        waits.pop(0)()
        assert [visit.claim.state for visit in visits] == [DURABLE] * 4

    def test_a_failure_makes_nothing_durable(self):
        library, waits, _ = self.library()
        before = library.contents()
        visit, copy = self.kept(library, "a", range(9)), library.enter(library.page("b", range(9)))
        library.deduplication.process(copy, {})
        ended = []
        library.deduplication.claims.await_original(copy, lambda: ended.append(True))
        library.deduplication.fail(FeedError("the feed is gone"))
        waits.pop(0)()
        assert (visit.claim.state, ended) == (VOID, [True])
        (decision,) = library.deduplication.process(copy, {})
        assert decision.fate is Fate.KEEP
        library.deduplication.close()
        assert library.contents() == before

    @pytest.mark.parametrize("ends", [True, False], ids=["ends", "is lost"])
    def test_items_of_a_feed_that_ends_late_are_stored_until_then(self, *, ends):
        library, waits, late = self.library()
        library.ends_late = True
        late.append({"s3"})
        library.deduplication.claims.durability.interval = 1
        visit = library.leave(entered(library, "a", range(9)), items=[{"n": 1}])
        waits.pop(0)()
        waits.pop(0)()
        assert visit.claim.state is DURABLE
        dropped = library.index.dropped
        assert ([*dropped], dropped.count, dropped.size) == ([], 0, 0), "it is no dropped item"
        assert [*dropped.releases("spider", "")] != []
        assert not any(map(dropped.is_free, dropped.releases("spider", "")))
        dropped.make_room(0, size=0, age=timedelta(0))
        copy = library.enter(library.page("b", range(9)))
        assert [d.fate for d in library.deduplication.process(copy, {}, is_compared=False)] == [Fate.DROP]
        if ends:
            library.deduplication.claims.durability.wait_for_disk(lambda: None, "s3")
            waits.pop(0)()
            assert [*dropped.releases("spider", "")] == []
            return
        library.crash()
        library.begin("next")
        releaser = Releaser(library.deduplication)
        assert releaser.has_any()
        ((items, by_person),) = releaser.take()
        assert not by_person
        again = releaser.visit(items, by_person=False)
        decisions = library.decide(again, [each.item for each in items])
        assert [(d.fate, d.item) for d in decisions] == [(Fate.KEEP, {"n": 1})]
        library.deduplication.claims.item_left(again)
        library.deduplication.released_item_left(items[0])
        library.deduplication.close()
        assert [*library.index.dropped.releases("spider", "")] == []
        assert library.index.page(items[0].number) is not None
        library.check_invariants()

    def test_a_page_whose_item_cannot_be_stored_waits_for_its_feed(self):
        library, waits, late = self.library()
        library.ends_late = True
        late.append({"s3"})
        library.deduplication.claims.durability.interval = 1
        visit = library.leave(entered(library, "a", range(9)), items=[{"n": object()}])
        waits.pop(0)()
        assert visit.claim.state is Claim.DELIVERED
        library.deduplication.claims.durability.wait_for_disk(lambda: None, "s3")
        waits.pop(0)()
        assert visit.claim.state is DURABLE


class Disks:
    """Waits for disks when a test says so."""

    def __init__(self, waits):
        self.waits = waits

    def begin(self, wait, then):
        self.waits.append(lambda: then(wait))

    def finish(self):
        while self.waits:
            self.waits.pop(0)()
