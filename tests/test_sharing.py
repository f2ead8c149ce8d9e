"""Several processes share one store: each sees what the others own, and what any of them leaves, another takes over."""

from __future__ import annotations

import asyncio
import threading
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partialmethod
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn

import pytest
from beside import CLASSES, KINDS, beside, die, shared_uri
from crawling import Outcome, Running, write_job
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from library import Library, fingerprint
from local_site import Answer, wait_until
from prose import article, blog, story
from redis_server import RedisServer
from scrapy.settings import Settings

from dedup_middleware.budget import UNLIMITED
from dedup_middleware.delivery.claims import ClaimState
from dedup_middleware.errors import StoreError
from dedup_middleware.features import PageFeatures
from dedup_middleware.index.journal import PackedRequest
from dedup_middleware.inspection import left_over
from dedup_middleware.model import Action, VerdictKind
from dedup_middleware.plugin.waiting import OwnerWait
from dedup_middleware.stores import destroy_store, redis_memory
from dedup_middleware.stores.redis_store import RedisStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from dedup_middleware.delivery.page_state import PageState
    from dedup_middleware.model import Page

FEED = {"FEEDS": {"feed.jsonl": {"format": "jsonlines"}}}


def nothing() -> None:
    """What waits for no disk."""


class Worker(Library):
    """A process that crawls with a shared store, and has one feed, which is stored when it says so."""

    def __init__(self, uri: str, run: str, *, is_patient: bool = False) -> None:
        self.later: list[Callable[[], None]] = []
        self.judged: list[PageState] = []
        self.entered: list[PageState] = []
        super().__init__(
            store=beside(uri, fingerprint.scheme),
            flush=lambda: ({"feed"}, nothing),
            soon=self.later.append if is_patient else None,
        )
        self.index.journal.recover(self.store)
        self.index.take_over()
        self.begin(run)

    def drop(self, state: PageState) -> bool:
        """Let an item of the duplicate *state* be dropped, if it may be."""
        name = state.url.encode()
        state.request = PackedRequest(b"{}" + name, b"{}" + name, b"parse")
        dropped = self.session.may_drop(state, {})
        if dropped:
            self.session.count_drop(state)
        else:
            self.session.deliver(state, {})
        self.session.finish(state)
        return dropped

    def store_feed(self) -> None:
        self.session.safety.stored("feed", nothing)

    def a_moment_later(self) -> None:
        looks = [*self.later]
        self.later.clear()
        for look in looks:
            look()

    def to_request(self) -> list[bytes]:
        return [entry.request for _, entry in self.session.safety.to_request_again()]

    def die(self) -> None:
        """End as a process does that is killed: the system lets go of its lock, and nothing else happens."""
        die(self.store)


@pytest.fixture(params=KINDS)
def uri(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(redis_memory, "FRESH", 0)
    return shared_uri(request.param, tmp_path, request)


@pytest.fixture
def two(uri: str) -> Iterator[tuple[Worker, Worker]]:
    workers = Worker(uri, "one"), Worker(uri, "two")
    yield workers
    for worker in workers:
        worker.store.close()


@pytest.fixture(params=[False, True], ids=["once", "twice"])
def repeats(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what is done atomically be done twice, as where others have come in between the first time."""
    for shared, is_within in CLASSES.items() if request.param else ():
        monkeypatch.setattr(shared, "atomically", partialmethod(_done_twice, shared.atomically, is_within))


def _done_twice(store: object, atomically: Any, is_within: str, work: Callable[[], object]) -> object:
    if getattr(store, is_within):
        return work()
    with suppress(InterruptedError):
        atomically(store, lambda: _undone(work))
    return atomically(store, work)


def _undone(work: Callable[[], object]) -> NoReturn:
    work()
    raise InterruptedError


@pytest.mark.usefixtures("repeats")
class TestOwners:
    """What one worker has, the others repeat."""

    def test_a_claim_of_another_is_waited_for(self, two: tuple[Worker, Worker]) -> None:
        here, there = two
        claimed = there.enter(there.page("a", range(9)))
        state = here.enter(here.page("b", range(9)))
        assert state.owner_is_pending
        assert here.session.claiming.of_owner(state) is None
        assert here.session.claiming.another_holds_owner(state)
        there.leave(claimed)
        assert not here.session.claiming.another_holds_owner(state)
        here.session.reconsider(state)
        assert state.is_duplicate
        assert not state.owner_is_pending
        here.check()

    def test_a_claim_that_comes_to_nothing_leaves_the_story_to_the_other(self, two: tuple[Worker, Worker]) -> None:
        here, there = two
        claimed = there.enter(there.page("a", range(9)))
        state = here.enter(here.page("b", range(9)))
        there.leave(claimed, items=0)
        here.session.reconsider(state)
        assert not state.is_duplicate
        assert state.claim is not None
        here.check()

    def test_of_two_that_were_judged_before_either_claimed_one_owns_the_story(self, two: tuple[Worker, Worker]) -> None:
        here, there = two
        judged = [
            worker.session.examine(worker.page(name, range(9)), Action.DROP, worker.detector.threshold, UNLIMITED)
            for worker, name in zip(two, "ab", strict=True)
        ]
        assert [state.verdict.kind for state in judged] == [VerdictKind.NEW, VerdictKind.NEW]
        for worker, state in zip(two, judged, strict=True):
            worker.session.enter(state)
        assert [state.is_duplicate for state in judged] == [False, True]
        assert here.session.claiming.of_owner(judged[0]) is None
        there.check()

    def test_the_same_page_met_by_both_is_no_duplicate_of_itself(self, two: tuple[Worker, Worker]) -> None:
        here = two[0]
        states = [worker.enter(worker.page("a", range(9))) for worker in two]
        assert [state.is_duplicate for state in states] == [False, False]
        for worker, state in zip(two, states, strict=True):
            worker.leave(state)
        assert [page.url for page in here.index.pages()] == ["http://site/a"]
        here.check()

    def test_a_claim_of_a_worker_who_is_dead_is_nobodys(self, two: tuple[Worker, Worker]) -> None:
        here, there = two
        there.enter(there.page("a", range(9)))
        state = here.enter(here.page("b", range(9)))
        there.die()
        assert not here.session.claiming.another_holds_owner(state)
        here.session.reconsider(state)
        assert not state.is_duplicate
        here.leave(state)
        here.index.take_over()
        assert not any(key[:1] in (b"g", b"q") for key in here.contents())
        here.check()


def called(page: Page, title: str) -> Page:
    return replace(page, features=PageFeatures(title))


@pytest.mark.usefixtures("repeats")
def test_what_others_have_met_tells_what_of_a_title_is_a_sites_own(two: tuple[Worker, Worker]) -> None:
    here, there = two
    site = "The Harbour Chronicle and Evening News of the Three Counties"
    there.leave(there.enter(called(there.page("http://paper/story", range(9)), "First snow")))
    first = here.enter(called(here.page("http://copies/first", range(9)), f"First snow | {site}"))
    assert not first.is_duplicate, "whose the longer part is, nothing tells yet"
    for number in range(1, 4):
        other = there.page(f"http://copies/{number}", range(9 * number, 9 * number + 9))
        there.leave(there.enter(called(other, f"Story {number} | {site}")))
    last = here.enter(called(here.page("http://copies/last", range(9)), f"First snow | {site}"))
    assert last.is_duplicate


@pytest.mark.usefixtures("repeats")
class TestJournal:
    """What a drop rests on may be another worker's to lose."""

    def test_it_stays_until_the_other_has_sealed_its_delivery(self, two: tuple[Worker, Worker]) -> None:
        here, there = two
        there.visit("a", range(9))
        assert here.drop(here.enter(here.page("b", range(9))))
        here.visit("c", range(20, 29))
        here.store_feed()
        assert _journalled(here) == 1
        there.store_feed()
        here.visit("d", range(40, 49))
        here.store_feed()
        assert _journalled(here) == 0
        assert here.to_request() == []

    def test_it_is_not_left_over_as_long_as_the_other_delivers(self, two: tuple[Worker, Worker]) -> None:
        here, there = two
        there.visit("a", range(9))
        assert here.drop(here.enter(here.page("b", range(9))))
        shared = there.store.shared
        assert shared is not None
        assert left_over.journalled(here.store, [shared.worker]) == 0
        assert left_over.journalled(here.store, []) == 1

    def test_what_the_other_loses_is_requested_again(self, two: tuple[Worker, Worker]) -> None:
        here, there = two
        there.visit("a", range(9))
        assert here.drop(here.enter(here.page("b", range(9))))
        assert here.to_request() == []
        there.die()
        assert here.to_request() == [b"{}http://site/b"]
        assert here.to_request() == []
        state = here.visit("b", range(9))
        assert not state.is_duplicate

    def test_what_a_third_has_rolled_back_is_requested_again(self, uri: str, two: tuple[Worker, Worker]) -> None:
        here, there = two
        there.visit("a", range(9))
        assert here.drop(here.enter(here.page("b", range(9))))
        there.die()
        third = Worker(uri, "three")
        third.index.settle(10)
        third.store.close()
        assert here.index.find(here.page("a", []).identities) is None
        assert here.to_request() == [b"{}http://site/b"]

    def test_what_a_dead_worker_leaves_is_requested_by_one(self, uri: str, two: tuple[Worker, Worker]) -> None:
        here, there = two
        there.visit("a", range(9))
        assert there.drop(there.enter(there.page("b", range(9))))
        there.die()
        third = Worker(uri, "three")
        assert third.to_request() + here.to_request() == [b"{}http://site/b"]
        third.store.close()

    def test_what_was_left_and_is_dropped_again_for_what_is_lost_stays(
        self, uri: str, two: tuple[Worker, Worker]
    ) -> None:
        here, there = two
        dead = Worker(uri, "dead")
        dead.visit("a", range(9))
        assert dead.drop(dead.enter(dead.page("b", range(9))))
        dead.die()
        assert here.to_request() == [b"{}http://site/b"]
        here.index.settle(10)
        there.visit("c", range(9))
        state = here.enter(here.page("b", range(9)))
        assert state.page is not None
        state.recovered = here.session.safety.recovered(state.page.identities, b"parse")
        assert state.recovered
        assert here.drop(state)
        there.die()
        here.session.close()
        here.store.close()
        third = Worker(uri, "three")
        assert third.to_request() == [b"{}http://site/b"]
        for worker in (dead, third):
            worker.store.close()

    def test_what_cannot_be_made_ones_own_is_left_to_another(
        self, uri: str, two: tuple[Worker, Worker], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        here, there = two
        there.visit("a", range(9))
        assert there.drop(there.enter(there.page("b", range(9))))
        there.die()
        here.index.take_over()

        def full(*_: object, **__: object) -> None:
            raise StoreError("the disk is full")

        monkeypatch.setattr(here.store.shared, "write", full)
        assert here.to_request() == []
        assert [str(failure) for failure in here.failures] == ["the disk is full"]
        third = Worker(uri, "three")
        assert third.to_request() == [b"{}http://site/b"]
        third.store.close()

    def test_what_rests_on_a_delivery_that_was_sealed_since_is_not_requested(self, two: tuple[Worker, Worker]) -> None:
        here, there = two
        there.visit("a", range(9))
        assert here.drop(here.enter(here.page("b", range(9))))
        there.store_feed()
        here.die()
        assert there.to_request() == []
        assert _journalled(there) == 0

    def test_what_a_worker_who_has_closed_leaves_is_seen_to_by_the_other(self, two: tuple[Worker, Worker]) -> None:
        here, there = two
        there.visit("a", range(9))
        assert here.drop(here.enter(here.page("b", range(9))))
        here.session.close()
        here.store.close()
        assert there.to_request() == []
        assert _journalled(there) == 1
        there.store_feed()
        assert _journalled(there) == 0

    def test_a_delivery_that_another_has_made_since_is_not_sealed_by_the_first(
        self, two: tuple[Worker, Worker]
    ) -> None:
        here, there = two
        here.visit("a", range(9))
        there.visit("a", range(9))
        here.store_feed()
        there.die()
        state = here.enter(here.page("b", range(9)))
        here.index.take_over()
        here.session.reconsider(state)
        assert not state.is_duplicate


def test_a_claim_that_ends_while_it_is_looked_for_is_looked_at_anew(
    two: tuple[Worker, Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = two
    claimed = there.enter(there.page("a", range(9)))
    state = here.enter(here.page("b", range(9)))
    look = here.session.claiming.another_holds_owner

    def too_late(state: PageState) -> bool:
        if claimed.claim is not None and claimed.claim.state is ClaimState.PENDING:
            there.leave(claimed)
        return look(state)

    monkeypatch.setattr(here.session.claiming, "another_holds_owner", too_late)
    extension = SimpleNamespace(
        session=here.session,
        config=SimpleNamespace(wait=5),
        crawler=SimpleNamespace(settings=Settings(), engine=None),
        count=here.count,
    )
    asyncio.run(OwnerWait(extension).settle(here.session, state))  # type: ignore[arg-type]
    assert state.is_duplicate
    assert not state.owner_is_pending


@pytest.mark.parametrize("uri", ["redis"], indirect=True)
@pytest.mark.parametrize("look", ["look_at_others", "take_over"])
def test_what_is_sealed_by_one_who_leaves_while_others_look_is_not_lost(
    two: tuple[Worker, Worker], look: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = two
    there.visit("a", range(9))
    assert here.drop(here.enter(here.page("b", range(9))))
    shared, journal = here.store.shared, here.session.safety.journal
    assert shared is not None
    is_at_work = shared.is_at_work
    delivering = there.store.shared.worker if there.store.shared else b""

    def left_meanwhile(worker: bytes) -> bool:
        if worker == delivering and not there.store.closed:
            there.store_feed()
            there.session.close()
            there.store.close()
        return is_at_work(worker)

    monkeypatch.setattr(shared, "is_at_work", left_meanwhile)
    if look == "take_over":
        here.index.take_over()
    else:
        journal.look_at_others(is_idle=True)
    assert there.store.closed
    assert journal.recovered == {}
    assert journal.unsettled == {}
    assert here.to_request() == []
    state = here.enter(here.page("c", range(9)))
    assert state.is_duplicate


@pytest.mark.parametrize("kind", ["redis"])
def test_a_page_takes_two_round_trips_whatever_the_others_write(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    uri = shared_uri(kind, tmp_path, request)
    three = [Worker(uri, f"run{number}", is_patient=True) for number in range(3)]
    for worker in three:
        worker.visit(f"first of {worker.session.run}", range(9))  # it takes its places in line
    trips = [_trips(worker) for worker in three]
    visits = 30
    for number in range(visits):
        for which, worker in enumerate(three):
            told = (3 * number + which) * 9 + 9
            page = worker.page(f"{number}/{which}", range(told, told + 9))
            fetch = worker.session.judging.fetching(page)
            assert fetch is not None
            fetch.run()
            worker.leave(worker.enter(page))
    for worker, before in zip(three, trips, strict=True):
        # And now and then a third: where another has come in between, or what is complete has waited long enough.
        assert _trips(worker) - before <= 2.2 * visits
        worker.a_moment_later()
        worker.check()
        worker.store.close()


@pytest.mark.parametrize("kind", ["redis"])
def test_what_others_write_elsewhere_is_no_reason_to_judge_a_page_again(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = shared_uri(kind, tmp_path, request)
    here, there = Worker(uri, "here"), Worker(uri, "there")
    judged = []
    judge = type(here.detector).judge
    monkeypatch.setattr(
        type(here.detector), "judge", lambda self, page, **more: judged.append(page.url) or judge(self, page, **more)
    )
    told = iter(range(0, 10_000, 9))

    def next_page(worker: Worker, name: str) -> PageState:
        number = next(told)
        return worker.enter(worker.page(name, range(number, number + 9)))

    for number in range(4):
        there.leave(next_page(there, f"theirs{number}"))
        here.leave(next_page(here, f"before{number}"))
    judged.clear()
    first = here.page("a", range(20_000, 20_009))
    state = here.session.examine(first, Action.DROP, here.detector.threshold, UNLIMITED)
    there.leave(next_page(there, "elsewhere"))
    here.session.enter(state)
    assert judged.count(first.url) == 1
    assert state.claim is not None
    second = here.page("b", range(30_000, 30_009))
    state = here.session.examine(second, Action.DROP, here.detector.threshold, UNLIMITED)
    there.visit("the same", range(30_000, 30_009))
    here.session.enter(state)
    assert judged.count(second.url) > 1, "what others write of it is one"
    assert state.is_duplicate
    for worker in (here, there):
        worker.store.close()


def _trips(worker: Worker) -> int:
    shared = worker.store.shared
    assert isinstance(shared, RedisStore)
    return shared.trips


def _journalled(worker: Worker) -> int:
    return sum(key[:1] == b"j" for key in worker.contents())


class SharingMachine(RuleBasedStateMachine):
    """Workers come, crawl, die and close; each story is delivered by one of them, or will be."""

    new_uri: Callable[[], str]

    def __init__(self) -> None:
        super().__init__()
        self.uri = type(self).new_uri()
        self.workers: list[Worker] = []
        self.fed: list[list[int]] = []
        self.safe: set[int] = set()
        self.dropped: set[int] = set()
        self.runs = 0
        self.join()

    @rule()
    def join(self) -> None:
        if len(self.workers) < 3:
            self.runs += 1
            self.workers.append(Worker(self.uri, f"run{self.runs}", is_patient=self.runs % 2 == 0))
            self.fed.append([])

    @rule(who=st.integers(0, 2), told=st.integers(0, 4), page=st.integers(0, 5))
    def visit(self, who: int, told: int, page: int) -> None:
        number = who % len(self.workers)
        worker = self.workers[number]
        self._go_on(number, worker.enter(worker.page(f"{told}/{page}", range(told * 20, told * 20 + 9))))

    @rule(who=st.integers(0, 2), told=st.integers(0, 4), page=st.integers(0, 5), fetches=st.booleans())
    def judge(self, who: int, told: int, page: int, *, fetches: bool) -> None:
        worker = self.workers[who % len(self.workers)]
        judged = worker.page(f"{told}/{page}", range(told * 20, told * 20 + 9))
        fetch = worker.session.judging.fetching(judged)
        if fetch is not None and fetches:
            fetch.run()
        worker.judged.append(worker.session.examine(judged, Action.DROP, worker.detector.threshold, UNLIMITED))

    @rule(who=st.integers(0, 2))
    def enter(self, who: int) -> None:
        worker = self.workers[who % len(self.workers)]
        if worker.judged:
            state = worker.judged.pop(0)
            worker.session.enter(state)
            worker.entered.append(state)

    @rule(who=st.integers(0, 2))
    def go_on(self, who: int) -> None:
        number = who % len(self.workers)
        if self.workers[number].entered:
            self._go_on(number, self.workers[number].entered.pop(0))

    def _go_on(self, number: int, state: PageState) -> None:
        worker, told = self.workers[number], int(state.url.removeprefix("http://site/").partition("/")[0])
        if state.is_duplicate and worker.drop(state):
            self.dropped.add(told)
        elif not state.is_duplicate:
            worker.leave(state)
            self.fed[number].append(told)
        else:
            self.fed[number].append(told)

    @rule(who=st.integers(0, 2))
    def store_feed(self, who: int) -> None:
        number = who % len(self.workers)
        self.safe.update(self.fed[number])
        self.workers[number].store_feed()

    @rule(who=st.integers(0, 2))
    def wait_a_moment(self, who: int) -> None:
        self.workers[who % len(self.workers)].a_moment_later()

    @rule(who=st.integers(0, 2))
    def request_again(self, who: int) -> None:
        number = who % len(self.workers)
        worker = self.workers[number]
        for request in worker.to_request():
            told, page = map(int, request.decode().removeprefix("{}http://site/").split("/"))
            self.visit(number, told, page)

    @precondition(lambda self: len(self.workers) > 1)
    @rule(who=st.integers(0, 2), cleanly=st.booleans())
    def leave(self, who: int, *, cleanly: bool) -> None:
        number = who % len(self.workers)
        worker, fed = self.workers.pop(number), self.fed.pop(number)
        if cleanly:
            self.safe.update(fed)
            worker.store_feed()
            worker.session.close()
        else:
            worker.die()
        worker.store.close()

    @invariant()
    def holds_together(self) -> None:
        self.workers[0].check()

    def teardown(self) -> None:
        # Whoever is left requests what is to be requested, until there is nothing any more.
        last = Worker(self.uri, "last")
        for number in range(len(self.workers)):
            self.safe.update(self.fed[number])
            self.workers[number].store_feed()
            self.workers[number].session.close()
            self.workers[number].store.close()
        self.workers, self.fed = [last], [[]]
        self.request_again(0)
        self.store_feed(0)
        assert self.dropped <= self.safe
        last.store.close()
        destroy_store(self.uri)


@pytest.mark.parametrize(("kind", "fresh"), [("sqlite", 0), ("redis", 0), ("redis", 3600)])
def test_each_story_is_delivered(
    kind: str, fresh: int, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Also where who only reads notices next to nothing of what the others write."""
    monkeypatch.setattr(redis_memory, "FRESH", fresh)
    machine = type("Sharing", (SharingMachine,), {"new_uri": staticmethod(lambda: shared_uri(kind, tmp_path, request))})
    run_state_machine_as_test(machine, settings=settings(max_examples=25, stateful_step_count=30, deadline=None))


# --- crawls


def crawls(uri: str, tmp_path: Path, parts: list[list[str]], **more: object) -> list[Outcome]:
    """Crawl each of *parts* in a process of its own, all at once, with one store."""
    shared = {**FEED, "DEDUP_STORE": uri, **more}
    with ExitStack() as running:
        begun = []
        for number, urls in enumerate(parts):
            folder = tmp_path / str(number)
            command = write_job(folder, "sample_spiders.Articles", urls=",".join(urls), settings=shared)
            begun.append(running.enter_context(Running(folder, command)))
        return [crawl.wait() for crawl in begun]


def fed(*outcomes: Outcome) -> list[str]:
    return [item["url"] for outcome in outcomes for item in outcome.lines("feed.jsonl")]


def test_of_processes_that_meet_a_story_at_once_one_delivers_it(uri, site, tmp_path):
    stories = range(12)
    parts = [
        [
            site.add(f"/{told}/{copy}", (article, blog)[copy % 2](f"Story {told}", story(told)), host=copy)
            for told in stories
        ]
        for copy in range(3)
    ]
    outcomes = crawls(uri, tmp_path, parts)
    assert [outcome.problems for outcome in outcomes] == [[], [], []]
    assert [outcome.exit_status for outcome in outcomes] == [0, 0, 0]
    told = [url.split("/")[3] for url in fed(*outcomes)]
    assert sorted(told, key=int) == [str(number) for number in stories]
    assert sum(len(outcome.dropped) for outcome in outcomes) == 2 * len(stories)
    owners = {record["owner_url"] for outcome in outcomes for record in outcome.records if record["owner_url"]}
    assert owners == set(fed(*outcomes))


def test_what_waits_for_a_process_that_is_killed_is_delivered(site, tmp_path):
    a, b = (site.add(f"/{n}", article(n, story(1)), host=h) for h, n in enumerate("ab"))
    c = site.add("/c", article("c", story(3)))
    never = {"url": site.add("/never", Answer(article("Never", story(2)), hold=(hold := threading.Event())))}
    shared = {**FEED, "DEDUP_STORE": f"sqlite:{tmp_path / 'store'}?shared=1", "DEDUP_WAIT": 30}
    fates = shared | {"EXTRA_PIPELINES": {"sample_spiders.FatePipeline": 100}, "HOLD_UNTIL": {"never": 1}}
    steps = [{"url": a, "cb_kwargs": {"fate": "hold"}}, never]
    held = write_job(tmp_path / "first", "sample_spiders.Steps", steps=steps, settings=fates)
    with ExitStack() as running:
        first = running.enter_context(Running(tmp_path / "first", held))
        wait_until((tmp_path / "first" / "held").exists)
        folder = tmp_path / "second"
        one_by_one = shared | {"CONCURRENT_REQUESTS": 1}
        command = write_job(folder, "sample_spiders.Articles", urls=f"{b},{c}", settings=one_by_one)
        second = running.enter_context(Running(folder, command))
        # It has come in after the other one, which waits.
        wait_until((folder / "items.jsonl").exists)
        first.kill()
        outcome = second.wait()
    hold.set()
    assert fed(outcome) == [c, b]
    assert outcome.stats["dedup/waits"] == 1
    assert outcome.problems == []


def test_a_store_that_is_shared_is_not_for_a_process_that_wants_it_alone(site, tmp_path, crawl):
    urls = [site.add(f"/{n}", article(n, story(1)), host=h) for h, n in enumerate("ab")]
    store = beside(f"sqlite:{tmp_path / 'store'}?shared=1", fingerprint.scheme)
    outcome = crawl(
        "sample_spiders.OneByOne", urls=",".join(urls), settings={"DEDUP_STORE": f"sqlite:{tmp_path / 'store'}"}
    )
    (warning,) = outcome.problems
    assert f"the store sqlite:{tmp_path / 'store'} is in use by another crawl or program, process" in warning
    assert outcome.delivered == urls
    store.close()


def test_two_workers_of_scrapy_redis_deliver_each_story_once(site, tmp_path):
    pytest.importorskip("scrapy_redis")
    redis = pytest.importorskip("redis")
    forms = list(enumerate((article, blog, article)))
    urls = [site.add(f"/{n}/{copy}", form(f"Story {n}", story(n)), host=copy) for n in range(8) for copy, form in forms]
    # One of them has to wait for this page, and the other goes on.
    held = site.add("/8/0", Answer(article("Story 8", story(8)), hold=(hold := threading.Event())))
    folders = [tmp_path / str(number) for number in range(2)]
    with RedisServer(tmp_path / "redis") as server, redis.Redis(port=server.port) as queue, ExitStack() as running:
        queue.rpush("fleet:urls", held, *urls)
        shared = {
            **FEED,
            "DEDUP_STORE": f"sqlite:{tmp_path / 'store'}?shared=1",
            "REDIS_URL": server.url,
            "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
            "SCHEDULER_QUEUE_CLASS": "scrapy_redis.queue.FifoQueue",
            "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
        }
        workers = []
        for folder in folders:
            command = write_job(folder, "sample_spiders_redis.Fleet", settings=shared)
            workers.append(running.enter_context(Running(folder, command)))
        wait_until(lambda: len(site.paths()) > len(urls) // 2)
        hold.set()
        outcomes = [worker.wait() for worker in workers]
    assert all(outcome.items or outcome.dropped for outcome in outcomes)
    assert sorted(url.split("/")[3] for url in fed(*outcomes)) == [str(number) for number in range(9)]
    assert sum(len(outcome.dropped) for outcome in outcomes) == 2 * 8
