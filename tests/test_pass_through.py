"""Beside a second process, and with a store that cannot be used, a crawl runs in pass-through and keeps every item."""

from __future__ import annotations

import contextlib
import platform
import threading
from pathlib import Path
from typing import NamedTuple

import pytest
from crawling import Outcome, Running, store_uri, write_job
from fault_injection import faults
from local_site import Answer, wait_until
from prose import article, blog, story

from dedup_middleware.fingerprints import ClauseFingerprinter
from dedup_middleware.index.shared import index_of
from dedup_middleware.records.file import Records
from dedup_middleware.stores import open_store


@pytest.fixture
def paper(site):
    """Return the URLs of two stories and their copies, and what of them is dropped."""
    a, b = (site.add(f"/{n}", article(n, story(n))) for n in "ab")
    copies = [site.add(f"/{n}-copy", blog(n, story(n)), host=1) for n in "ab"]
    return [a, b, *copies], copies


class Held(NamedTuple):
    """A crawl that is held up; its outcome, once it has ended, is the only one in *outcomes*."""

    pid: int
    outcomes: list[Outcome]


@contextlib.contextmanager
def held(site, folder, urls):
    """Run a crawl of *urls* in *folder*, hold it after the first two while the block runs, and let it end."""
    release = threading.Event()
    hold = site.add("/held", Answer(article("Held", story(20)), hold=release))
    steps = [{"url": url} for url in (*urls[:2], hold, *urls[2:])]
    with Running(folder, write_job(folder, "sample_spiders.Steps", steps=steps)) as running:
        wait_until(lambda: "/held" in site.paths())
        yield (crawl := Held(running.pid, []))
        release.set()
        crawl.outcomes.append(running.wait())


def test_a_second_process_keeps_everything_and_the_first_drops_what_it_would_alone(site, tmp_path, crawl, paper):
    urls, copies = paper
    first_folder = tmp_path / "first"
    shared = {"DEDUP_STORE": store_uri(first_folder), "DEDUP_LOG": str(first_folder / "records.jsonl")}
    with held(site, first_folder, urls) as (pid, firsts):
        second = crawl("sample_spiders.OneByOne", urls=",".join(urls), settings=shared)
    (first,) = firsts

    assert second.exit_status == 0
    assert second.kept == urls
    assert second.dropped == []
    (warning,) = second.problems
    assert "WARNING: dedup: the store" in warning
    assert shared["DEDUP_STORE"] in warning
    assert f"process {pid} on {platform.node()} (spider steps, since " in warning
    assert "set DEDUP_STORE to another store" in warning
    summary = second.log.partition("dedup summary")[2]
    assert f"pass-through: nothing was dropped, because the store {shared['DEDUP_STORE']} is in use by" in summary
    assert f"process {pid}" in summary
    assert (second.stats["dedup/pass_through"], second.stats["dedup/items/would_drop"]) == (1, 2)
    assert "dedup/items/dropped" not in second.stats

    (log,) = first_folder.glob("records.pass-through-*.jsonl")
    assert str(log) in warning
    assert {r.url: r.outcome for r in Records(log) if r.outcome != "kept"} == dict.fromkeys(copies, "would_drop")

    assert (first.exit_status, first.problems) == (0, [])
    assert [i["url"] for i in first.dropped] == copies
    assert {r["url"]: r["outcome"] for r in first.records} == dict.fromkeys(copies, "dropped")
    assert "dedup/pass_through" not in first.stats
    with contextlib.closing(open_store(shared["DEDUP_STORE"], fingerprint_scheme=None)) as store:
        runs = {page.run for page in index_of(store).pages()}
    assert runs == {first.records[0]["crawl"]}


def test_tags_are_put_on_all_the_same(site, tmp_path, crawl, paper):
    """Readers of a feed of tagged items rely on the field."""
    urls, copies = paper
    settings = {"DEDUP_STORE": store_uri(tmp_path / "first"), "DEDUP_ACTION": "tag"}
    with held(site, tmp_path / "first", urls):
        outcome = crawl("sample_spiders.OneByOne", urls=",".join(urls), settings=settings)
    assert {i["url"]: i["dedup"]["verdict"] for i in outcome.items} == dict.fromkeys(urls[:2], "new") | dict.fromkeys(
        copies, "duplicate"
    )


def test_a_crawl_waits_for_a_command_to_be_done(site, tmp_path, paper):
    """Or it would stay in pass-through, because the sums were read while it began."""
    urls, copies = paper
    folder = tmp_path / "crawl"
    command = write_job(folder, "sample_spiders.OneByOne", urls=",".join(urls))
    scheme = ClauseFingerprinter.scheme
    store = open_store(store_uri(folder), fingerprint_scheme=scheme, who="scrapy dedup stats")
    with contextlib.closing(store), Running(folder, command) as running:
        log = folder / "log.txt"
        wait_until(lambda: log.exists() and "Spider opened" in log.read_text(encoding="utf8"))
        assert site.requests == []
        store.close()
        outcome = running.wait()
    assert [i["url"] for i in outcome.dropped] == copies
    assert outcome.problems == []


def test_a_store_that_the_system_refuses_costs_no_item(crawl, paper):
    urls, _ = paper
    settings = faults("driver.opening:open_store", kind="fail")
    outcome = crawl("sample_spiders.OneByOne", urls=",".join(urls), settings=settings)
    assert outcome.exit_status == 0
    assert outcome.kept == urls
    (warning,) = outcome.problems
    assert "a fault" in warning
    assert "Until it ends, this crawl runs in pass-through" in warning
    assert outcome.stats["dedup/pass_through"] == 1


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="where Linux makes no folder, even for root")
def test_without_a_log_the_crawl_drops_all_the_same(crawl, paper):
    urls, copies = paper
    log = "/proc/nowhere/log.jsonl"
    outcome = crawl("sample_spiders.OneByOne", urls=",".join(urls), settings={"DEDUP_LOG": log})
    assert outcome.kept == [url for url in urls if url not in copies]
    assert [i["url"] for i in outcome.dropped] == copies
    (warning,) = outcome.problems
    assert f"WARNING: dedup: DEDUP_LOG = '{log}' cannot be written" in warning
    assert "This crawl keeps no records" in warning


@pytest.mark.parametrize("setting", ["DEDUP_STORE", "DEDUP_LOG"])
def test_a_path_where_nothing_can_ever_be_is_a_bad_setting(site, crawl, paper, setting):
    urls, _ = paper
    value = "sqlite:/dev/null/store" if setting == "DEDUP_STORE" else "/dev/null/log"
    outcome = crawl("sample_spiders.Articles", urls=urls[0], settings={setting: value})
    assert outcome.exit_status == 1
    assert site.requests == []
    (line,) = outcome.problems
    assert setting in line
    assert "/dev/null/" in line
