"""Crawls and commands with a store on a Redis server, as a user of one has them."""

import json

import pytest
from crawling import run_scrapy
from prose import article, blog, story
from redis_server import RedisServer

redis = pytest.importorskip("redis")


def ask(folder, uri, *arguments):
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
        said = [ask(outcome.folder, uri, *what) for what in (["store", "info"], ["doctor"], ["explain", urls[1]])]
        wrong = ask(outcome.folder, uri.replace("geheim", "verraten"), "store", "info")
        absent = ask(outcome.folder, uri.replace("news", "none"), "store", "export", "-o", "none.jsonl")
        dumped = ask(outcome.folder, uri, "store", "export", "-o", "pages.jsonl")
    assert outcome.problems == []
    assert outcome.kept == urls[:1]
    assert [status for status, _ in said] == [0, 0, 0]
    assert (wrong[0], absent[0], dumped[0]) == (1, 1, 0)
    assert "refuses the connection" in wrong[1]
    assert "no store found at redis://127.0.0.1" in absent[1]
    assert len((outcome.folder / "pages.jsonl").read_text().splitlines()) >= 2
    for text in (*(text for _, text in (*said, wrong, absent, dumped)), outcome.log, json.dumps(outcome.records)):
        assert "geheim" not in text
        assert "verraten" not in text


@pytest.mark.parametrize("reactor", ["asyncio", "reactorless"])
def test_crawls_of_one_process_share_a_connection(site, crawl, tmp_path, reactor):
    urls = [site.add(f"/{number}", article(f"Story {number}", story(number))) for number in range(60)]
    halves = [",".join(urls[:30]), ",".join(urls[30:])]
    with RedisServer(tmp_path / "redis") as server:
        settings = {"DEDUP_STORE": f"{server.url}?timeout=100", "CONCURRENT_REQUESTS_PER_DOMAIN": 16}
        runs = [{"spider": "sample_spiders.Articles", "args": {"urls": half}} for half in halves]
        outcome = crawl("", runs=runs, settings=settings, reactor=reactor)
    assert outcome.problems == []
    assert sorted(outcome.kept) == sorted(urls)
