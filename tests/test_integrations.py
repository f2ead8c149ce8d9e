"""The plugin beside what else a project may use: reactors, caches, queues, page objects, other crawls."""

import threading

import pytest
from crawling import Running, run_job, write_job
from local_site import Answer, wait_until
from prose import article, blog, story, zh_story


def a_small_paper(site):
    """Serve some stories and their copies; return the URLs in order, and those that are dropped."""
    urls = [
        site.add("/a", article("A", story(1))),
        site.add("/b", article("B", zh_story(2))),
        site.add("/a-copy", blog("A", story(1)), host=1),
        site.add("/b-copy", blog("B", zh_story(2)), host=1),
        site.add("/c", article("C", story(3))),
    ]
    return urls, urls[2:4]


def test_page_objects(site, crawl):
    urls, dropped = a_small_paper(site)
    steps = [{"url": url} for url in urls] + [{"url": urls[2], "callback": "parse_bytes"}]
    settings = {"ADDONS": {"dedup_middleware.Addon": 500, "scrapy_poet.Addon": 300}}
    without = crawl(
        "sample_spiders_poet.Pages", steps=steps, plugin=False, settings={"ADDONS": {"scrapy_poet.Addon": 300}}
    )
    outcome = crawl("sample_spiders_poet.Pages", steps=steps, settings=settings)
    assert without.kept == [*urls, urls[2]]
    assert outcome.items == [i for i in without.items if i["url"] not in dropped]
    assert [i["url"] for i in outcome.dropped] == [*dropped, urls[2]]
    assert [p.partition("] ")[2] for p in outcome.problems] == [p.partition("] ")[2] for p in without.problems]


def test_pages_from_the_http_cache_get_the_same_verdicts(site, crawl):
    urls, dropped = a_small_paper(site)
    kept = [url for url in urls if url not in dropped]
    settings = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": "cache"}
    steps = [{"url": url} for url in urls]
    first = crawl("sample_spiders.Steps", steps=steps, settings=settings, folder="cached")
    verdicts, requests = first.verdicts, len(site.requests)
    assert first.kept == kept
    same_store = crawl("sample_spiders.Steps", steps=steps, settings=settings, folder="cached", afresh=True)
    assert same_store.stats["httpcache/hit"] == len(urls)
    assert same_store.kept == kept
    fresh = {**settings, "DEDUP_STORE": "sqlite:fresh"}
    fresh_store = crawl("sample_spiders.Steps", steps=steps, settings=fresh, folder="cached", afresh=True)
    assert fresh_store.kept == kept
    assert fresh_store.verdicts == verdicts
    assert len(site.requests) == requests
    assert same_store.problems == fresh_store.problems == []


# --- JOBDIR


@pytest.mark.every_scrapy
def test_an_interrupted_crawl_loses_no_story(site, tmp_path):
    texts = {n: story(n) for n in range(4)}
    urls = [site.add(f"/{n}", article("First", text)) for n, text in texts.items()]
    held = site.add("/held", Answer(article("Held", story(9)), hold=(release := threading.Event())))
    copies = [site.add(f"/copy{n}", blog("Copy", text)) for n, text in texts.items()]
    wanted = ",".join([*urls, held, *copies])
    settings = {"JOBDIR": "job", "CONCURRENT_REQUESTS": 1, "DEDUP_SCOPE": "crawl"}
    with Running(tmp_path, write_job(tmp_path, "sample_spiders.Articles", urls=wanted, settings=settings)) as running:
        wait_until(lambda: "/held" in site.paths())
        running.interrupt()
        log = tmp_path / "log.txt"
        wait_until(lambda: "Received SIGINT" in log.read_text(encoding="utf8"))
        release.set()
        first = running.wait()
    assert first.stats["finish_reason"] == "shutdown"
    assert first.kept == [*urls, held]
    outcome = run_job(tmp_path, write_job(tmp_path, "sample_spiders.Articles", urls=wanted, settings=settings))
    assert outcome.kept == [*urls, held]
    assert [i["url"] for i in outcome.dropped] == copies
    # Both runs are one crawl: its originals are of the first run.
    assert {r["original_crawl"] for r in outcome.records} == {r["crawl"] for r in outcome.records}
    assert "dedup/items/dropped_for_earlier_crawls" not in outcome.stats


# --- the queue


@pytest.mark.every_scrapy
@pytest.mark.parametrize("queue", ["DownloaderAwarePriorityQueue", "ScrapyPriorityQueue"])
def test_links_of_duplicates_come_last_within_their_slot(site, crawl, queue):
    def links(page, host):
        paths = [f"/{page}-{n}" for n in range(3)]
        for path in paths:
            site.add(path, article(path, story(f"{path}{host}")), host=host)
        return tuple(paths)

    starts = []
    for host in (0, 1):
        text = story(f"host {host}")
        for page, made in (("new", article), ("copy", blog), ("other", article)):
            told = story(f"other {host}") if page == "other" else text
            starts.append(site.add(f"/{page}", made(page, told, links=links(page, host)), host=host))
    steps = [{"url": url, "priority": 100 - n} for n, url in enumerate(starts)]
    settings = {"CONCURRENT_REQUESTS": 1, "SCHEDULER_PRIORITY_QUEUE": f"scrapy.pqueues.{queue}"}
    outcome = crawl("sample_spiders.Steps", steps=steps, together=True, settings=settings)
    for host in (1, 2):
        paths = [path for _, name, path in site.requests if name == f"127.0.0.{host}"]
        assert len(paths) == 12
        assert all(path.startswith("/copy-") for path in paths[-3:])
    assert outcome.stats["dedup/outlinks_last"] == 6
    assert outcome.problems == []


# --- other crawls


@pytest.mark.every_scrapy
def test_crawlers_of_one_process_share_a_store(site, tmp_path):
    """The second one goes on after the first has closed its store, and sees what the first kept."""
    urls, _ = a_small_paper(site)
    a, b, a_copy, b_copy, c = urls
    held = site.add("/held", Answer(article("Held", story(20)), hold=(release := threading.Event())))
    plans = [[a, a_copy, b], [held, b_copy, c, a_copy, held]]
    runs = [{"spider": "sample_spiders.Steps", "args": {"steps": [{"url": url} for url in plan]}} for plan in plans]
    with Running(tmp_path, write_job(tmp_path, "", runs=runs)) as running:
        log = tmp_path / "log.txt"
        wait_until(lambda: log.exists() and "Spider closed (finished)" in log.read_text(encoding="utf8"))
        release.set()
        outcome = running.wait()
    assert outcome.kept == [a, b, held, c, held]
    assert [i["url"] for i in outcome.dropped] == [a_copy, b_copy, a_copy]
    first, *others = [r for r in outcome.records if r["verdict"] == "duplicate"]
    assert first["original_crawl"] == first["crawl"]
    assert {r["original_crawl"] for r in others} == {first["crawl"]}
    assert "dedup/items/dropped_for_earlier_crawls" not in outcome.stats
    assert outcome.problems == []
    assert outcome.exit_status == 0
