"""Several processes share one store: each drops what the others have, and releases what any of them has lost."""

from __future__ import annotations

import sys
import threading
from contextlib import ExitStack, closing, suppress
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from beside import KINDS, beside, die, shared_uri
from crawling import FEED, Running, write_job
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from library import Library, fingerprint
from local_site import Answer, wait_until
from nightly import tries
from prose import article, blog, story

from dedup_middleware.cli.store import crawls_at_work, to_release
from dedup_middleware.common.budget import UNLIMITED
from dedup_middleware.driver.releases import Releaser
from dedup_middleware.errors import StoreError
from dedup_middleware.model import Action, VerdictKind
from dedup_middleware.stores import destroy_store, redis
from dedup_middleware.stores.opened import OpenStore
from dedup_middleware.visits.states import Claim
from dedup_middleware.visits.visit import Fate

if TYPE_CHECKING:
    from collections.abc import Callable


def nothing():
    """What waits for no disk."""


class Worker(Library):
    """A process that crawls with a shared store, and has one feed, which is on disk once `store_feed` is called."""

    def __init__(self, uri, run, *, ends_late=True):
        self.checked = []
        self.entered = []
        store = beside(uri, fingerprint.scheme)
        super().__init__(store=store, flush=lambda: ({"feed"}, nothing), dropped_size=sys.maxsize)
        self.ends_late = ends_late
        self.index.join()
        self.index.sweep()
        self.begin(run)
        self.releaser = Releaser(self.deduplication)

    def check_page(self, page):
        return self.deduplication.verdicts.check(page, Action.DROP, UNLIMITED)

    def give(self, visit):
        """Let the page give its item, and end; return whether that is dropped."""
        ((fate, _),) = self.decide(visit, [{"of": visit.url}], is_compared=False)
        if fate is Fate.KEEP:
            self.deduplication.claims.item_left(visit)
        return fate is Fate.DROP

    def crawl(self, name, clauses):
        """Crawl a page from its response to its end; return whether it was dropped."""
        return self.give(self.enter(self.page(name, clauses)))

    def store_feed(self):
        self.deduplication.claims.durability.wait_for_disk(nothing, "feed")

    def release(self):
        """Do as a crawl does that is idle; return the URLs of the stored items that go on to the feed."""
        released = []
        self.releaser.sweep()
        if self.releaser.has_any():
            for stored, by_person in self.releaser.take():
                visit = self.releaser.visit(stored, by_person=by_person)
                items = [each.item for each in stored]
                for item, each in self.releaser.released(visit, items, self.decide(visit, items)):
                    assert item == {"of": each.url}
                    released.append(each.url)
                    self.deduplication.claims.item_left(visit)
                    self.deduplication.released_item_left(each)
        return released

    @property
    def dropped(self):
        """The URLs of the dropped items in the store."""
        return [item.url for item in self.index.dropped]

    def close(self):
        """End as a crawl does; its feed is on disk, or never will be."""
        self.deduplication.close()
        self.store.close()

    def die(self):
        """End as a process does that is killed: the system lets go of its lock, and nothing else happens."""
        die(self.store)


@pytest.fixture(params=KINDS)
def uri(request, tmp_path, monkeypatch):
    monkeypatch.setattr(redis, "_FRESH", 0)
    monkeypatch.setattr(redis, "_ALIVE", 0)
    return shared_uri(request.param, tmp_path, request)


@pytest.fixture
def two(uri):
    workers = Worker(uri, "one"), Worker(uri, "two")
    yield workers
    for worker in workers:
        worker.store.close()


def test_a_second_opener_of_a_process_leaves_its_crawls_at_work(two):
    one, other = two
    one.index.join()
    assert {"one", "two"} <= other.index.begin("three")


def test_a_crawl_that_runs_at_the_same_time_is_no_earlier_one(uri):
    def kept(worker, name, clauses):
        assert not worker.crawl(name, clauses)
        worker.store_feed()
        return worker

    def for_earlier(worker, name, clauses):
        before = worker.stats["items/dropped_for_earlier_crawls"]
        assert worker.crawl(name, clauses)
        return worker.stats["items/dropped_for_earlier_crawls"] - before

    kept(Worker(uri, "zero"), "old", range(9)).close()
    one, two = Worker(uri, "one"), Worker(uri, "two")
    kept(one, "new", range(10, 19))
    assert for_earlier(two, "old/copy", range(9)) == 1
    assert for_earlier(two, "new/copy", range(10, 19)) == 0
    # It begins while the first one is at work, which goes on.
    three = Worker(uri, "three")
    assert for_earlier(three, "new/2", range(10, 19)) == 0
    one.close()
    assert for_earlier(three, "new/3", range(10, 19)) == 0
    four = Worker(uri, "four")
    assert for_earlier(four, "new/4", range(10, 19)) == 1
    for worker in (two, three, four):
        worker.close()


@pytest.fixture(params=[False, True], ids=["once", "twice"])
def repeats(request, monkeypatch):
    """Let each transaction be carried out twice, as where others have come in between the first time."""
    if request.param:
        transaction = OpenStore.transaction
        monkeypatch.setattr(OpenStore, "transaction", lambda store, work: _done_twice(store, transaction, work))


def _done_twice(store, transaction, work):
    if store.in_process.view is store.in_process.store:
        with suppress(InterruptedError):
            transaction(store, lambda: _undone(work))
    return transaction(store, work)


def _undone(work):
    work()
    raise InterruptedError


@pytest.mark.usefixtures("repeats")
class TestOriginals:
    """What one worker has kept, the others drop."""

    def test_a_claim_of_another_is_waited_for(self, two):
        here, there = two
        claimed = there.enter(there.page("a", range(9)))
        visit = here.enter(here.page("b", range(9)))
        assert visit.original_is_pending
        assert here.deduplication.claims.rests_on_claim(visit)
        assert not here.deduplication.claims.await_original(visit, nothing), "no crawl of this process has it"
        there.give(claimed)
        assert not here.deduplication.claims.rests_on_claim(visit)
        assert here.give(visit)
        here.check_invariants()

    def test_it_lasts_until_the_items_are_on_disk(self, two):
        here, there = two
        there.ends_late = False
        there.crawl("a", range(9))
        visit = here.enter(here.page("b", range(9)))
        assert here.deduplication.claims.rests_on_claim(visit)
        assert [d.fate for d in here.deduplication.process(visit, {})] == [Fate.WAIT]
        there.store_feed()
        assert not here.deduplication.claims.rests_on_claim(visit)
        assert here.give(visit)
        here.check_invariants()

    def test_of_two_that_were_checked_before_a_claim_one_is_the_original(self, two):
        here, there = two
        checked = [worker.check_page(worker.page(name, range(9))) for worker, name in zip(two, "ab", strict=True)]
        assert [visit.verdict.kind for visit in checked] == [VerdictKind.NEW, VerdictKind.NEW]
        for worker, visit in zip(two, checked, strict=True):
            worker.deduplication.enter(visit)
        assert [visit.is_duplicate for visit in checked] == [False, True]
        assert not here.deduplication.claims.rests_on_claim(checked[0])
        there.check_invariants()

    def test_a_claim_of_a_worker_who_is_dead_is_nobodys(self, two):
        here, there = two
        there.enter(there.page("a", range(9)))
        visit = here.enter(here.page("b", range(9)))
        there.die()
        assert not here.deduplication.claims.rests_on_claim(visit)
        visit.version = None  # as one that has waited
        assert not here.give(visit)
        assert not visit.is_duplicate
        here.index.sweep()
        assert not any(key[:1] in (b"g", b"q") for key in here.contents())
        here.check_invariants()


@pytest.mark.usefixtures("repeats")
class TestLateFeeds:
    """What a worker keeps is stored until its feed has ended; if the worker dies before, another one releases it."""

    def test_what_a_feed_has_is_not_released(self, two):
        here, there = two
        there.crawl("a", range(9))
        assert here.crawl("b", range(9))
        assert (here.release(), here.dropped) == ([], ["http://site/b"])
        there.store_feed()
        there.die()
        assert here.release() == []
        assert to_release(here.store) == 0
        here.check_invariants()

    def test_what_a_dead_worker_has_kept_is_released_by_one(self, uri, two):
        here, there = two
        for n, name in enumerate("abcd"):
            there.crawl(name, range(20 * n, 20 * n + 9))
        assert here.crawl("copy", range(9))
        assert here.release() == []
        there.die()
        third = Worker(uri, "three")
        takes = [worker.releaser.take() for worker in (third, here)]
        taken = [[item.url for item in items] for take in (*takes, *takes) for items, _ in [next(take, ([], False))]]
        assert sorted(url for urls in taken for url in urls) == [f"http://site/{name}" for name in "abcd"]
        assert all(taken[:2]), "each has one of them"
        third.close()

    def test_it_stays_stored_until_it_is_in_the_feed_of_that_one(self, two):
        here, there = two
        there.crawl("a", range(9))
        assert here.crawl("b", range(9))
        there.die()
        assert here.release() == ["http://site/a"]
        assert here.release() == []
        assert len([*here.index.dropped.releases("spider", "")]) == 1
        here.store_feed()
        assert [*here.index.dropped.releases("spider", "")] == []
        visit = here.enter(here.page("c", range(9)))
        assert visit.verdict.match.original.url == "http://site/a"
        here.check_invariants()

    def test_what_cannot_be_taken_is_left_to_another(self, uri, two, monkeypatch):
        here, there = two
        there.crawl("a", range(9))
        there.die()

        def full(*_, **__):
            raise StoreError("the disk is full")

        monkeypatch.setattr(here.store, "write", full)
        assert here.release() == []
        assert [str(failure) for failure in here.failures] == ["the disk is full."]
        third = Worker(uri, "three")
        assert third.release() == ["http://site/a"]
        third.store.close()

    def test_no_drop_rests_on_a_claim_of_a_worker_that_is_dead(self, two):
        here, there = two
        there.ends_late = False
        there.crawl("a", range(9))
        entered = here.enter(here.page("b", range(9)))
        assert entered.is_duplicate
        there.die()
        for visit in (entered, here.enter(here.page("c", range(20, 29)))):
            assert not here.give(visit)
        assert here.dropped == []
        here.store_feed()
        assert here.release() == []
        assert "http://site/a" not in [page.url for page in here.index.pages()], "what was kept there is new"
        here.check_invariants()

    def test_what_a_worker_has_that_is_at_work_no_other_takes(self, uri, two):
        here, there = two
        there.crawl("a", range(9))
        claimed = there.enter(there.page("b", range(20, 29)))
        dead = Worker(uri, "dead", ends_late=False)
        dead.crawl("c", range(40, 49))
        dead.enter(dead.page("d", range(60, 69)))
        dead.die()
        third = Worker(uri, "three")
        for worker in (here, third):
            worker.index.sweep()
            visits = [worker.enter(worker.page(f"copy{n}", range(n, n + 9))) for n in (0, 20)]
            assert [visit.is_duplicate for visit in visits] == [True, True]
            assert [visit.original_is_pending for visit in visits] == [False, True]
            assert worker.release() == []
        assert [page.url for page in here.index.pages()] == ["http://site/a"]
        there.give(claimed)
        assert claimed.claim.state is Claim.DURABLE
        there.store_feed()
        assert to_release(here.store) == 0
        dead.store.close()
        third.close()
        here.check_invariants()

    def test_what_one_spider_has_kept_no_other_releases(self, uri, two):
        here, _ = two
        stranger = Worker(uri, "stranger")
        stranger.deduplication.drops._spider = "stranger"
        stranger.crawl("a", range(9))
        stranger.die()
        assert here.release() == []
        again = Worker(uri, "again")
        again.deduplication.spider = "stranger"
        assert again.release() == ["http://site/a"]
        stranger.store.close()
        again.close()


class SharingMachine(RuleBasedStateMachine):
    """Workers come, crawl, die and close; each story is kept by one of them, or will be."""

    new_uri: Callable[[], str]

    def __init__(self):
        super().__init__()
        self.uri = type(self).new_uri()
        self.workers = []
        self.fed = []
        self.safe = set()
        self.dropped = set()
        self.runs = 0
        self.join()

    @rule(ends_late=st.booleans())
    def join(self, *, ends_late=True):
        if len(self.workers) < 3:
            self.runs += 1
            self.workers.append(Worker(self.uri, f"run{self.runs}", ends_late=ends_late))
            self.fed.append([])

    @rule(who=st.integers(0, 2), told=st.integers(0, 4), page=st.integers(0, 5))
    def visit(self, who, told, page):
        number = who % len(self.workers)
        worker = self.workers[number]
        self._go_on(number, worker.enter(worker.page(f"{told}/{page}", range(told * 20, told * 20 + 9))))

    @rule(who=st.integers(0, 2), told=st.integers(0, 4), page=st.integers(0, 5))
    def check(self, who, told, page):
        worker = self.workers[who % len(self.workers)]
        checked = worker.page(f"{told}/{page}", range(told * 20, told * 20 + 9))
        worker.checked.append(worker.check_page(checked))

    @rule(who=st.integers(0, 2))
    def enter(self, who):
        worker = self.workers[who % len(self.workers)]
        if worker.checked:
            visit = worker.checked.pop(0)
            worker.deduplication.enter(visit)
            worker.entered.append(visit)

    @rule(who=st.integers(0, 2))
    def go_on(self, who):
        number = who % len(self.workers)
        if self.workers[number].entered:
            self._go_on(number, self.workers[number].entered.pop(0))

    def _go_on(self, number, visit):
        told = self._told(visit.url)
        if self.workers[number].give(visit):
            self.dropped.add(told)
        else:
            self.fed[number].append(told)

    @staticmethod
    def _told(url):
        return int(url.removeprefix("http://site/").partition("/")[0])

    @rule(who=st.integers(0, 2))
    def store_feed(self, who):
        number = who % len(self.workers)
        self.safe.update(self.fed[number])
        self.workers[number].store_feed()

    @rule(who=st.integers(0, 2))
    def release(self, who):
        number = who % len(self.workers)
        self.fed[number] += map(self._told, self.workers[number].release())

    @precondition(lambda self: len(self.workers) > 1)
    @rule(who=st.integers(0, 2), cleanly=st.booleans())
    def leave(self, who, *, cleanly):
        number = who % len(self.workers)
        worker, fed = self.workers.pop(number), self.fed.pop(number)
        if cleanly:
            self.safe.update(fed)
            worker.store_feed()
            worker.deduplication.close()
        else:
            worker.die()
        worker.store.close()

    @invariant()
    def holds_together(self):
        self.workers[0].check_invariants()

    def teardown(self):
        # The last process releases what is to be released.
        last = Worker(self.uri, "last")
        for number in range(len(self.workers)):
            self.safe.update(self.fed[number])
            self.workers[number].store_feed()
            self.workers[number].close()
        self.workers, self.fed = [last], [[]]
        self.release(0)
        self.store_feed(0)
        assert self.dropped <= self.safe
        last.store.close()
        destroy_store(self.uri)


@pytest.mark.nightly
@pytest.mark.parametrize(("kind", "fresh"), [("sqlite", 0), ("redis", 0), ("redis", 3600)])
def test_each_story_is_kept(kind, fresh, monkeypatch, request, tmp_path):
    """Also where who only reads notices next to nothing of what the others write."""
    monkeypatch.setattr(redis, "_FRESH", fresh)
    monkeypatch.setattr(redis, "_ALIVE", 0)
    machine = type("Sharing", (SharingMachine,), {"new_uri": staticmethod(lambda: shared_uri(kind, tmp_path, request))})
    run_state_machine_as_test(machine, settings=settings(max_examples=tries(8, 200), stateful_step_count=30))


# --- crawls


def crawls(uri, tmp_path, parts, **more):
    """Crawl each of *parts* in a process of its own, all at once, with one store."""
    shared = {**FEED, "DEDUP_STORE": uri, **more}
    with ExitStack() as running:
        begun = []
        for number, urls in enumerate(parts):
            folder = tmp_path / str(number)
            command = write_job(folder, "sample_spiders.Articles", urls=",".join(urls), settings=shared)
            begun.append(running.enter_context(Running(folder, command)))
        return [crawl.wait() for crawl in begun]


def fed(*outcomes):
    return [item["url"] for outcome in outcomes for item in outcome.lines("feed.jsonl")]


def has_asked(site, url):
    """Return whether a crawl has asked for *url*: what came before it has been seen to its end."""
    return urlsplit(url).path in site.paths()


def test_of_processes_that_meet_a_story_at_once_one_keeps_it(uri, site, tmp_path):
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
    originals = {record["original_url"] for outcome in outcomes for record in outcome.records if record["original_url"]}
    assert originals == set(fed(*outcomes))


def test_what_waits_for_a_process_that_is_killed_is_kept(site, tmp_path):
    a, b = (site.add(f"/{n}", article(n, story(1)), host=h) for h, n in enumerate("ab"))
    c = site.add("/c", article("c", story(3)))
    never = {"url": site.add("/never", Answer(article("Never", story(2)), hold=(hold := threading.Event())))}
    shared = {
        **FEED,
        "DEDUP_STORE": f"sqlite:{tmp_path / 'store'}?shared=1",
    }
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


def test_what_a_process_that_is_killed_had_kept_is_released_by_one_of_the_others(uri, site, tmp_path):
    """Its feed is stored at its end; the others crawl all the time, and the first of them that is idle releases it."""
    a, b, c, d = (
        site.add(f"/{name}", (article, blog)[host % 2]("paper", story(1)), host=host)
        for name, host in zip("abcd", (0, 1, 2, 1), strict=True)
    )
    own = site.add("/own", article("Own", story(2)))
    doors = [threading.Event() for _ in range(3)]
    held = [
        site.add(f"/held/{n}", Answer(article(f"Held {n}", story(10 + n)), hold=door)) for n, door in enumerate(doors)
    ]
    lease = {"CONSTANTS": {"dedup_middleware.stores.redis:_LEASE": 1}} if uri.startswith("redis") else {}
    packed = {"feed.jsonl": {"format": "jsonlines", "postprocessing": ["scrapy.extensions.postprocessing.GzipPlugin"]}}
    shared = {**FEED, "DEDUP_STORE": uri, **lease}
    plans = {"first": [a, held[0]], "second": [b, own, c, held[1]], "third": [d, held[2]]}
    begun = {}
    with ExitStack() as running:
        for name, urls in plans.items():
            more = {"FEEDS": packed} if name == "first" else {}
            command = write_job(tmp_path / name, "sample_spiders.OneByOne", urls=",".join(urls), settings=shared | more)
            begun[name] = running.enter_context(Running(tmp_path / name, command))
            wait_until(partial(has_asked, site, urls[-1]))
        begun["first"].kill()
        with closing(beside(uri, fingerprint.scheme)) as store:
            wait_until(lambda: len(crawls_at_work(store)) == 2)
        for door in doors[:2]:
            door.set()
        second = begun["second"].wait()
        doors[2].set()
        third = begun["third"].wait()
    assert [[item["url"] for item in outcome.dropped[:2]] for outcome in (second, third)] == [[b, c], [d]]
    assert (fed(second), fed(third)) == ([own, held[1], a], held[2:])
    assert [outcome.stats.get("dedup/items/released", 0) for outcome in (second, third)] == [1, 0]
    assert [outcome.problems for outcome in (second, third)] == [[], []]
    with closing(beside(uri, fingerprint.scheme)) as store:
        assert to_release(store) == 0
