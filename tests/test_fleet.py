"""Crawls and commands with a store on a Redis server, as a user of one has them."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
import time
import weakref
from functools import partial
from typing import TYPE_CHECKING

import pytest
from beside import shared_uri
from crawling import Running, run_scrapy, write_job
from local_site import Answer, wait_until
from prose import article, blog, story
from redis_server import RedisServer
from test_sharing import Worker

from dedup_middleware.plugin import arrivals
from dedup_middleware.plugin.arrivals import arrivals_here

if TYPE_CHECKING:
    from pathlib import Path

redis = pytest.importorskip("redis")


def ask(folder: Path, uri: str, *arguments: str) -> tuple[int, str]:
    """Return the status of ``scrapy dedup``, and all that it says."""
    done = run_scrapy(folder, "dedup", *arguments, "-s", f"DEDUP_STORE={uri}", "-s", "DEDUP_LOG=records.jsonl")
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout + done.stderr


def test_a_password_is_in_nothing_that_a_crawl_or_a_command_writes(site, crawl, tmp_path):
    urls = [site.add("/a", article("A", story(1))), site.add("/b", blog("B", story(1)), host=1)]
    with RedisServer(tmp_path / "redis", requirepass="geheim") as server:
        uri = server.url.replace("//", "//:geheim@") + "?store=news"
        outcome = crawl(
            "sample_spiders.OneByOne",
            urls=",".join(urls),
            settings={"DEDUP_STORE": uri, "LOG_LEVEL": "DEBUG"},
            folder="crawl",
        )
        said = [ask(outcome.folder, uri, *what) for what in (["stats"], ["doctor"], ["explain", urls[1]])]
        wrong = ask(outcome.folder, uri.replace("geheim", "verraten"), "stats")
        absent = ask(outcome.folder, uri.replace("news", "none"), "export", "-o", "none.jsonl")
        dumped = ask(outcome.folder, uri, "export", "-o", "pages.jsonl")
    assert outcome.problems == []
    assert outcome.delivered == urls[:1]
    assert [status for status, _ in said] == [0, 0, 0]
    assert (wrong[0], absent[0], dumped[0]) == (1, 1, 0)
    assert "refuses us" in wrong[1]
    assert "there is no store at redis://127.0.0.1" in absent[1]
    assert len((outcome.folder / "pages.jsonl").read_text().splitlines()) >= 2
    for text in (*(text for _, text in (*said, wrong, absent, dumped)), outcome.log, json.dumps(outcome.records)):
        assert "geheim" not in text
        assert "verraten" not in text


def test_what_is_exported_is_imported_elsewhere(site, crawl, request, tmp_path):
    urls = [site.add("/a", article("A", story(1))), site.add("/b", blog("B", story(1)), host=1)]
    one, other = (shared_uri("redis", tmp_path, request) for _ in range(2))
    outcome = crawl("sample_spiders.OneByOne", urls=",".join(urls), settings={"DEDUP_STORE": one})
    assert ask(outcome.folder, one, "export", "-o", "pages.jsonl")[0] == 0
    assert ask(outcome.folder, other, "import", "pages.jsonl")[0] == 0
    assert "owners" in ask(outcome.folder, other, "stats")[1]
    status, said = ask(outcome.folder, other, "repair")
    assert status == 1
    assert "has no files to mend" in said
    assert ask(outcome.folder, other, "reset", "--yes")[0] == 0
    assert "there is no store at" in ask(outcome.folder, other, "export", "-o", "none.jsonl")[1]


def test_a_page_is_judged_by_one_question_and_claimed_by_one(site, crawl, redis_server):
    urls = [site.add(f"/{number}", article(f"Story {number}", story(number))) for number in range(20)]
    client = redis.Redis(port=redis_server.port)

    def asked() -> int:
        found = client.info("commandstats")
        return sum(found[name]["calls"] for name in ("cmdstat_evalsha", "cmdstat_eval") if name in found)

    counts = []
    for some in (urls[:10], urls):
        before = asked()
        settings = {"DEDUP_STORE": f"{redis_server.url}?store=trips{len(some)}-{time.time_ns()}"}
        outcome = crawl("sample_spiders.OneByOne", urls=",".join(some), settings=settings)
        assert len(outcome.delivered) == len(some)
        counts.append(asked() - before)
    # And on a busy machine a third, by which it is kept, if that could not wait for the next one to be claimed; what a
    # crawl asks at its start and its end is the same in both.
    assert counts[1] - counts[0] <= 10 * 3 + 4


def test_a_server_that_goes_away_leaves_a_crawl_that_delivers_everything(site, crawl, tmp_path):
    urls = [site.add(f"/{copy}", form("A", story(1)), host=copy) for copy, form in enumerate((article, blog, article))]
    with RedisServer(tmp_path / "redis") as server:
        uri = server.url
        outcome = crawl("sample_spiders.OneByOne", urls=urls[0], settings={"DEDUP_STORE": uri})
    outcome = crawl("sample_spiders.OneByOne", urls=",".join(urls), settings={"DEDUP_STORE": uri})
    assert outcome.delivered == urls
    (warning,) = outcome.problems
    assert f"the store {uri} is away" in warning


@pytest.mark.parametrize("reactor", ["asyncio", "default", "reactorless"])
def test_while_a_server_does_not_answer_everything_is_delivered(site, tmp_path, reactor):
    held = Answer(article("Held", story(2)), hold=threading.Event())
    urls = [
        site.add("/a", article("A", story(1))),
        site.add("/held", held),
        site.add("/b", blog("B", story(1)), host=1),
    ]
    with RedisServer(tmp_path / "redis") as server:
        settings = {"DEDUP_STORE": f"{server.url}?timeout=0.5"}
        command = write_job(
            tmp_path / "crawl", "sample_spiders.OneByOne", urls=",".join(urls), settings=settings, reactor=reactor
        )
        with Running(tmp_path / "crawl", command) as crawl:
            wait_until(lambda: len(site.requests) > 1)
            server.freeze()
            held.hold.set()
            outcome = crawl.wait()
    assert outcome.delivered == urls
    (warning,) = outcome.problems
    assert f"the store {settings['DEDUP_STORE']} is away (timed out)" in warning


@pytest.mark.parametrize("reactor", ["asyncio", "default", "reactorless"])
def test_crawls_of_one_process_share_a_connection(site, crawl, tmp_path, reactor):
    urls = [site.add(f"/{number}", article(f"Story {number}", story(number))) for number in range(60)]
    halves = [",".join(urls[:30]), ",".join(urls[30:])]
    with RedisServer(tmp_path / "redis") as server:
        settings = {"DEDUP_STORE": f"{server.url}?timeout=100", "CONCURRENT_REQUESTS_PER_DOMAIN": 16}
        runs = [{"spider": "sample_spiders.Articles", "args": {"urls": half}} for half in halves]
        outcome = crawl("", runs=runs, settings=settings, reactor=reactor)
    assert outcome.problems == []
    assert sorted(outcome.delivered) == sorted(urls)


class TestArrivals:
    """What a server is asked beforehand no thread waits for."""

    @pytest.fixture
    def worker(self, request, tmp_path):
        worker = Worker(shared_uri("redis", tmp_path, request), "run")
        yield worker
        worker.store.close()

    def fetches(self, worker, count):
        pages = [worker.page(f"{number}", range(9 * number, 9 * number + 9)) for number in range(count)]
        return pages, [worker.index.fetching(page) for page in pages]

    def arrive(self, fetches, threads):
        async def ask():
            await arrivals_here().fetched(fetches[0])
            threads.clear()
            # As by several crawls of one process.
            at_once = [arrivals_here().fetched(fetch) for fetch in fetches[1:]]
            await asyncio.wait_for(asyncio.gather(*at_once), 2)
            assert not any(way.waiting for way in arrivals_here()._ways.values())

        asyncio.run(ask())

    @pytest.fixture
    def threads(self, monkeypatch):
        begun = []
        run = arrivals.run_in_thread
        monkeypatch.setattr(arrivals, "run_in_thread", lambda work: begun.append(work) or run(work))
        return begun

    def test_once_it_is_connected(self, worker, threads):
        pages, fetches = self.fetches(worker, 5)
        self.arrive(fetches, threads)
        assert threads == []
        asked = worker.store.shared.trips
        for page in pages:
            assert worker.judge_page(page).page is page
        assert worker.store.shared.trips == asked, "it is all at hand"

    def test_it_is_asked_again_where_the_connection_is_lost(self, worker, threads):
        _, fetches = self.fetches(worker, 2)
        fetches[0].run()
        client = redis.Redis.from_url(worker.store.uri.partition("?")[0])
        client.execute_command("CLIENT", "KILL", "TYPE", "normal")
        asked = worker.store.shared.trips
        self.arrive([fetches[1], *fetches], threads)
        assert worker.store.shared.trips > asked
        assert not worker.store.shared.is_away

    def test_it_is_asked_again_where_the_server_has_forgotten_its_scripts(self, worker, threads):
        _, fetches = self.fetches(worker, 3)
        fetches[0].run()
        redis.Redis.from_url(worker.store.uri.partition("?")[0]).script_flush()
        self.arrive(fetches, threads)
        assert threads == []

    @pytest.mark.parametrize("end", ["close", "lose", "idle"])
    def test_a_connection_is_listened_at_until_it_is_closed_or_nobody_waits(self, worker, end, monkeypatch):
        _, fetches = self.fetches(worker, 3)
        fetches[0].run()
        client = redis.Redis.from_url(worker.store.uri.partition("?")[0])
        monkeypatch.setattr(arrivals, "call_later", lambda _, look, *given: looks.append(partial(look, *given)))
        looks = []

        async def ask():
            for fetch in fetches[1:]:
                await arrivals_here().fetched(fetch)
                assert len(arrivals_here()._ways) == 1
            if end == "close":
                worker.store.shared._ahead.close()
            elif end == "lose":
                client.execute_command("CLIENT", "KILL", "TYPE", "normal")
            else:
                looks.pop(0)()
            for _ in range(5_000):
                if not arrivals_here()._ways:
                    break
                await asyncio.sleep(0.001)
            assert not arrivals_here()._ways
            assert not looks or end != "idle", "nothing is left to be looked at"

        asyncio.run(ask())

    def test_no_loop_outlives_its_end_for_it(self, worker):
        _, fetches = self.fetches(worker, 2)
        fetches[0].run()
        loops = []

        async def ask():
            loops.append(weakref.ref(asyncio.get_running_loop()))
            await arrivals_here().fetched(fetches[1])
            assert arrivals_here()._ways

        asyncio.run(ask())
        gc.collect()
        assert loops[0]() is None

    def test_it_is_over_when_its_store_is_closed(self, tmp_path):
        with RedisServer(tmp_path / "redis") as server:
            worker = Worker(f"{server.url}?timeout=60", "run")
            _, (first, second) = self.fetches(worker, 2)
            first.run()
            server.freeze()

            async def close_meanwhile():
                waiting = asyncio.ensure_future(arrivals_here().fetched(second))
                await asyncio.sleep(0)
                worker.store.shared._ahead.close()
                worker.store.shared._is_closed = True
                await asyncio.wait_for(waiting, 20)

            asyncio.run(close_meanwhile())

    def test_threads_wait_where_the_server_has_no_room_for_another_connection(self, tmp_path, threads):
        with RedisServer(tmp_path / "redis", maxclients="2") as server:
            worker = Worker(server.url, "run")
            _, fetches = self.fetches(worker, 3)
            self.arrive(fetches, threads)
            assert len(threads) == 2
            assert not worker.store.shared.is_away
            worker.store.close()
