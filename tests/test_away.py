"""A store whose server goes away and comes back: meanwhile everything is kept, then pages are checked again."""

import json
import sys
import threading
from contextlib import closing, contextmanager, suppress

import away_store
import pytest
from crawling import Running, write_job
from library import Library, clause
from local_site import Answer, wait_until
from nightly import tries
from prose import article, blog, story
from redis_server import RedisServer
from scrapy.settings import Settings

from dedup_middleware import Deduplicator
from dedup_middleware.cli.store import to_release
from dedup_middleware.common.budget import UNLIMITED
from dedup_middleware.common.urls import url_identity
from dedup_middleware.driver.deduplicator import Deduplication
from dedup_middleware.driver.opening import open_at_once
from dedup_middleware.driver.releases import Releaser
from dedup_middleware.errors import StoreAwayError
from dedup_middleware.model import Action, VerdictKind
from dedup_middleware.reasons import Reason
from dedup_middleware.settings import Config
from dedup_middleware.stores import STORES, open_store
from dedup_middleware.visits.visit import Fate, Listener

FEED = {"FEEDS": {"feed-%(time)s.jsonl": {"format": "jsonlines"}}, "CHECKPOINT_INTERVAL": 1000}
LATE_FEED = {
    "FEEDS": {"late://feeds/feed-%(time)s.jsonl": {"format": "jsonlines"}},
    "FEED_STORAGES": {"late": "sample_spiders.LateStorage"},
}
GONE, BACK = "cannot be reached", "is back after"


class Server:
    """The server of a store ``away:PATH``, and the crawls that use it."""

    def __init__(self, folder, site, env):
        self.folder = folder
        self.site = site
        self.env = env
        self.flag = folder / "pages.away"
        self.settings = {"DEDUP_STORE": f"away:{folder}/pages"}
        self.running = None

    @contextmanager
    def crawl(self, name, steps, *, reactor=None, settings=None, **options):
        """Run a crawl of *steps* in the folder *name*."""
        folder = self.folder / name
        soon = {"CONSTANTS": {"dedup_middleware.plugin.threads:PAUSE": 0.2}}
        settings = self.settings | soon | (settings or {})
        env = self.env | options.pop("env", {})
        command = write_job(
            folder, "sample_spiders.Steps", steps=steps, settings=settings, env=env, reactor=reactor, **options
        )
        with Running(folder, command) as self.running:
            yield self.running

    def log(self):
        path = self.running.folder / "log.txt"
        return path.read_text(encoding="utf8") if path.exists() else ""

    def says(self, line, times=1):
        """Return once the log of the crawl has *line* so many times."""
        wait_until(lambda: self.log().count(line) >= times)

    def page(self, path, told, host=0):
        return self.site.add(path, (blog if host else article)(path, story(told)), host=host)

    def door(self, path, told):
        return Door(self, path, told)

    def fed(self):
        """Return the addresses of all items that any feed has."""
        lines = [line for feed in self.folder.rglob("feed-*") for line in feed.read_text().splitlines()]
        return [json.loads(line)["url"] for line in lines]


class Door:
    """A page that is answered when it is let through."""

    def __init__(self, server, path, told):
        self.path = path
        self._server = server
        self._let = threading.Event()
        self.url = server.site.add(path, Answer(article(path, story(told)), hold=self._let))

    @contextmanager
    def reached(self):
        """Do what the block does when the crawl asks for it, and before it gets it."""
        wait_until(lambda: self.path in self._server.site.paths())
        yield
        self._let.set()


@pytest.fixture
def server(site, tmp_path, install):
    return Server(tmp_path, site, install("stores", "from away_store import *\n", away=""))


def steps_of(*urls):
    return [{"url": url} for url in urls]


def dropped(outcome):
    return [item["url"] for item in outcome.dropped]


@pytest.mark.parametrize(
    ("reactor", "path", "settings"),
    [
        ("asyncio", "pages", FEED),
        ("default", "pages", {}),
        ("reactorless", "pages", {}),
        ("asyncio", "alone/pages", LATE_FEED),
        ("asyncio", "pages", {"JOBDIR": "job", "DEDUP_SCOPE": "crawl"}),
    ],
)
def test_it_is_checked_again_when_the_store_is_back(server, reactor, path, settings):
    server.settings = {"DEDUP_STORE": f"away:{path.replace('pages', f'{server.folder}/pages')}"}
    a, b, c = server.page("/a", 1), server.page("/b", 1, host=1), server.page("/c", 1, host=2)
    d, e, unchecked = server.page("/d", 2), server.page("/e", 2, host=1), server.page("/unchecked", 1, host=1)
    gone, back = server.door("/gone", 3), server.door("/back", 4)
    steps = steps_of(a, b, gone.url, unchecked, back.url, c, d, e)
    with server.crawl("one", steps, reactor=reactor, settings=settings) as running:
        with gone.reached():
            server.flag.touch()
        with back.reached():
            server.flag.unlink()
            server.says(BACK)
        outcome = running.wait()
    assert outcome.kept == [a, gone.url, unchecked, back.url, d]
    assert dropped(outcome) == [b, c, e]
    assert (outcome.log.count(GONE), outcome.log.count(BACK)) == (1, 1)
    assert "Traceback" not in outcome.log
    assert [line for line in outcome.problems if GONE not in line and BACK not in line] == []
    assert {r["url"] for r in outcome.records if r["reason"] == "store_unreachable"} >= {gone.url, unchecked}
    assert outcome.stats["dedup/away"] == 1
    assert outcome.stats["dedup/away_seconds"] > 0
    assert "dedup/failures" not in outcome.stats
    assert "times the store was away" in outcome.log
    assert outcome.stats["dedup/items/dropped"] == 3
    assert len({r["crawl"] for r in outcome.records}) == 1
    if "FEEDS" in settings:
        # What was confirmed before is durable all the same: nothing is left for the next crawl to release.
        assert server.fed() == outcome.kept
        with server.crawl("two", steps_of(server.page("/f", 1)), settings=settings) as running:
            again = running.wait()
        assert again.kept == []
        assert "dedup/items/released" not in again.stats


def test_so_it_is_with_a_redis_server_that_is_killed_and_begun_again(server, tmp_path):
    a, b = server.page("/a", 1), server.page("/b", 1, host=1)
    unchecked, c = server.page("/c", 1, host=2), server.page("/d", 1, host=1)
    gone, back = server.door("/gone", 3), server.door("/back", 4)
    with RedisServer(tmp_path / "redis", appendfsync="always") as redis:
        server.settings, server.env = {"DEDUP_STORE": f"{redis.url}?store=news&timeout=1"}, {}
        with server.crawl("one", steps_of(a, b, gone.url, unchecked, back.url, c), settings=FEED) as running:
            with gone.reached():
                redis.kill()
            with back.reached():
                redis.begin()
                server.says(BACK)
            outcome = running.wait()
        assert dropped(outcome) == [b, c]
        assert server.fed() == outcome.kept == [a, gone.url, unchecked, back.url]
        assert (outcome.log.count("cannot reach the store"), outcome.log.count(BACK)) == (1, 1)
        assert "Traceback" not in outcome.log
        # What was kept before is durable all the same: nothing is left for the next crawl to release.
        with closing(open_store(server.settings["DEDUP_STORE"], fingerprint_scheme=None)) as store:
            assert to_release(store) == 0
        with server.crawl("two", [], settings=FEED) as running:
            running.wait()
        assert len(server.fed()) == 4


def test_away_at_the_end_what_was_dropped_is_released_by_the_next_crawl(server):
    a, b = server.page("/a", 1), server.page("/b", 1, host=1)
    gone = server.door("/gone", 2)
    with server.crawl("one", steps_of(a, b, gone.url), settings=FEED) as running:
        with gone.reached():
            server.flag.touch()
        outcome = running.wait()
    assert outcome.exit_status == 0
    assert dropped(outcome) == [b]
    assert "the store is still away" in outcome.log
    server.flag.unlink()
    with server.crawl("two", [], settings=FEED) as running:
        outcome = running.wait()
    # Its original was not made durable, so the story is kept again.
    assert server.fed() == [a, gone.url]


@pytest.mark.parametrize("path", ["pages", "alone/pages"], ids=["shared", "alone"])
def test_crawlers_of_one_process_that_share_it_each_go_on(server, path):
    server.settings = {"DEDUP_STORE": f"away:{path.replace('pages', f'{server.folder}/pages')}"}
    gone, back = ([server.door(f"/{name}{n}", 10 + len(name) + n) for n in range(2)] for name in ("gone", "at-last"))
    pairs = [(server.page(f"/{n}", n), server.page(f"/{n}", n, host=1)) for n in range(2)]
    crawls = [[first, gone[n].url, back[n].url, second] for n, (first, second) in enumerate(pairs)]
    runs = [{"spider": "sample_spiders.Steps", "args": {"steps": steps_of(*urls)}} for urls in crawls]
    with server.crawl("one", [], runs=runs) as running:
        with gone[0].reached(), gone[1].reached():
            server.flag.touch()
        with back[0].reached(), back[1].reached():
            server.flag.unlink()
            server.says(BACK, 2)
        outcome = running.wait()
    assert sorted(dropped(outcome)) == [second for _, second in pairs]
    assert (outcome.log.count(GONE), outcome.log.count(BACK)) == (2, 2)
    assert "Traceback" not in outcome.log


def test_a_crawl_that_begins_meanwhile_is_in_pass_through_until_it_is_back(server):
    server.flag.touch()
    a, b, c = server.page("/a", 1), server.page("/b", 1, host=1), server.page("/c", 1, host=2)
    d, e = server.page("/d", 2), server.page("/e", 2, host=1)
    back = server.door("/back", 3)
    with server.crawl("one", steps_of(a, b, back.url, c, d, e)) as running:
        with back.reached():
            server.flag.unlink()
            server.says(BACK)
        outcome = running.wait()
    assert outcome.kept == [a, b, back.url, c, d]
    assert dropped(outcome) == [e]
    assert (outcome.log.count("Until the store is back, this crawl runs in pass-through"), outcome.log.count(BACK)) == (
        1,
        1,
    )
    assert "dedup/failures" not in outcome.stats
    assert "pass-through: nothing was dropped" not in outcome.log
    with server.crawl("two", steps_of(server.page("/f", 2, host=2))) as running:
        assert running.wait().kept == []


def test_a_store_that_comes_back_as_another_ones_is_left_alone(server):
    a, b = server.page("/a", 1), server.page("/b", 1, host=1)
    gone, back = server.door("/gone", 2), server.door("/back", 3)
    with server.crawl("one", steps_of(a, gone.url, back.url, b)) as running:
        with gone.reached():
            server.flag.touch()
            (server.folder / "pages.foreign").touch()
        with back.reached():
            server.flag.unlink()
            server.says("it has no header")
        outcome = running.wait()
    assert outcome.kept == [a, gone.url, back.url, b]
    assert "To the end of this crawl every page is kept" in outcome.log
    assert outcome.stats["dedup/failures"] == 1


def test_a_server_that_does_not_answer_holds_nobody_up(server):
    a, gone, asked = server.page("/a", 1), server.door("/gone", 2), server.door("/asked", 3)
    with server.crawl("one", steps_of(a, gone.url, asked.url)) as running:
        with gone.reached():
            server.flag.touch()
            server.flag.with_suffix(".slow").touch()
        with asked.reached():
            wait_until(server.flag.with_suffix(".asked").exists)
        outcome = running.wait(10)
    assert (outcome.exit_status, outcome.kept) == (0, [a, gone.url, asked.url])
    assert "dedup summary" in outcome.log


def test_a_program_opens_it_again(tmp_path, monkeypatch):
    monkeypatch.setitem(STORES.ours, "away", "away_store")
    away_store.begin()
    uri, (first, other) = f"away:{tmp_path}/pages", (story(1), story(2))
    with Deduplicator(uri) as dedup:
        assert dedup.add("http://site/a", paragraphs=first).verdict == "new"
        away_store.away_calls = range(sys.maxsize)
        while_away = dedup.add("http://site/b", paragraphs=first)
        assert (while_away.verdict, while_away.reason) == ("unchecked", "store_unreachable")
        with pytest.raises(StoreAwayError):
            Deduplicator(uri)
        away_store.away_calls = ()
        assert dedup.add("http://site/c", paragraphs=other).verdict == "unchecked"
        with Deduplicator(uri) as again:
            assert again.add("http://elsewhere/d", paragraphs=first).is_duplicate
            assert again.add("http://site/e", paragraphs=other).verdict == "new"


def test_a_duplicate_whose_drop_cannot_be_written_is_unchecked(monkeypatch):
    library = Library()
    library.visit("http://site/a", story(1))

    def write(*_):
        raise StoreAwayError("the server is away", "start it")

    monkeypatch.setattr("dedup_middleware.index.index.PageWrite.write", write)
    visit = library.visit("http://elsewhere/b", story(1))
    assert (visit.verdict.kind, visit.verdict.reason) == (VerdictKind.UNCHECKED, Reason.STORE_UNREACHABLE)
    assert (visit.items.kept, visit.items.dropped) == (1, 0)


# --- wherever it happens


class Crawl:
    """A crawl of one of several workers, with a feed that is stored every few pages; it goes on as the plugin does."""

    def __init__(self, uri, run, interval=2):
        self.buffer = []
        self.safe = []
        self.dropped = []
        self.interval = interval
        settings = {"DEDUP_STORE": uri, "DEDUP_LOG": ""}
        self.opened = open_at_once(Config.from_settings(Settings(settings), "spider"))
        self.deduplication = self.begun(run)
        self.releaser = Releaser(self.deduplication)

    def begun(self, run):
        """Return the deduplication of what is open."""
        begun = Deduplication(self.opened, run, Quiet(), flush=self.store_feed)
        begun.claims.durability.interval = self.interval
        return begun

    def store_feed(self):
        self.safe += self.buffer
        self.buffer.clear()
        return set(), nothing

    def enter(self, name):
        """Begin with the page *name*, which tells the story before its dot."""
        self.go_on()
        url = f"http://site/{name}"
        told = int(name.partition(".")[0])
        clauses = [clause(20 * told + n) for n in range(9)]
        page = self.deduplication.reader.paragraphs(url, (url_identity(url),), clauses)
        visit = self.deduplication.verdicts.check(page, Action.DROP, UNLIMITED)
        self.deduplication.enter(visit)
        return self.deduplication, visit

    def go_on(self):
        """Try to open the store again, if it is away."""
        if self.deduplication.awaits_store:
            with suppress(StoreAwayError):
                if not self.opened.store.closed:
                    self.opened.store.close()
                self.opened = open_at_once(self.opened.config, lost=self.opened)
                before = self.deduplication
                self.deduplication = self.begun(before.run)
                self.deduplication.resume_from(before)
                self.releaser = Releaser(self.deduplication)

    def leave(self, deduplication, visit):
        name = visit.url.removeprefix("http://site/")
        item = {"name": name}
        # Nothing else happens that it could wait for.
        fates = deduplication.process(visit, item, is_compared=False, may_wait=False)
        deduplication.end(visit)
        if fates[0].fate is Fate.DROP:
            self.dropped.append(name)
        else:
            self.buffer.append(name)
            deduplication.claims.item_left(visit)

    def visit(self, names):
        """Visit pages, with two of them on their way at a time."""
        before = None
        for name in names:
            now = self.enter(name)
            if before is not None:
                self.leave(*before)
            before = now
        if before is not None:
            self.leave(*before)

    def idle(self):
        """Release what is to be released by now: what other processes have left behind, too."""
        self.go_on()
        self.releaser.sweep()
        deduplication = self.deduplication
        for dropped, by_person in self.releaser.take():
            visit = self.releaser.visit(dropped, by_person=by_person)
            items = [each.item for each in dropped]
            decisions = [decision for item in items for decision in deduplication.process(visit, item, may_wait=False)]
            for item, each in self.releaser.released(visit, items, [*decisions, *deduplication.end(visit)]):
                self.buffer.append(item["name"])
                deduplication.claims.item_left(visit)
                deduplication.released_item_left(each)

    def end(self):
        self.idle()
        self.store_feed()
        self.deduplication.close()
        self.opened.store.close()


def nothing():
    """What waits for no disk."""


class Quiet(Listener):
    """A Listener that hears nothing."""

    def count(self, name, amount=1):
        pass

    def failed(self, error):
        assert isinstance(error, StoreAwayError)


#: How far apart the calls are at which it goes away; each one is tried in four minutes.
STRIDE = tries(101, 1)
# By turns of the one and the other, who each repeat their own stories and the other's; few have a third copy.
PAGES = ["0.a", "2.a", "0.b", "3.a", "1.a", "2.b", "3.b", "1.b", "4.a", "5.a", "4.b", "5.b", "4.c", "1.c"]


@pytest.mark.nightly
@pytest.mark.parametrize("though_away", [False, True], ids=["", "though-written"])
@pytest.mark.parametrize("with_lease", [False, True], ids=["", "lease"])
@pytest.mark.parametrize("is_killed", [False, True], ids=["", "killed"])
def test_wherever_it_goes_away_each_story_is_kept(tmp_path, monkeypatch, is_killed, with_lease, though_away):
    monkeypatch.setitem(STORES.ours, "away", "away_store")
    number, is_over, dropped_at_all = 1 + 4 * is_killed + 2 * with_lease + though_away, False, 0
    while not is_over:
        away_store.begin(with_lease=with_lease, though_away=though_away)
        # To the plugin these are two stores, as they are to two processes.
        one, other = (
            Crawl(f"away:{tmp_path}/{number}", "one", 1000 if is_killed else 2),
            Crawl(f"away:{tmp_path}/./{number}", "other"),
        )
        away_store.calls, away_store.away_calls = 0, range(number, number + 4)
        for mine, theirs in zip(PAGES[::2], PAGES[1::2], strict=True):
            one.visit([mine])
            other.visit([theirs])
        other.end()
        if is_killed:
            one.opened.store.close()
        else:
            one.end()
        is_over = away_store.calls < number
        away_store.away_calls = ()
        away_store.end_leases()
        last = Crawl(f"away:{tmp_path}/././{number}", "last")
        last.end()
        safe = {name.partition(".")[0] for crawl in (one, other, last) for name in crawl.safe}
        dropped = {name.partition(".")[0] for crawl in (one, other) for name in crawl.dropped}
        kept = {name.partition(".")[0] for crawl in (one, other) for name in crawl.buffer}
        assert dropped <= safe, (number, dropped - safe)
        assert safe | kept == {"0", "1", "2", "3", "4", "5"}, number
        dropped_at_all += len(dropped)
        number += STRIDE
    assert dropped_at_all
