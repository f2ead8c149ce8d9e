"""A dry run (``DEDUP_ACTION = "dry-run"``): the verdicts of a crawl, and nothing that another crawl sees."""

from functools import partial

import pytest
from beside import shared_uri
from crawling import store_uri
from library import contents_of
from prose import article, blog, story
from test_crashes import GZIP, again, fed, killed

DRY = {"DEDUP_ACTION": "dry-run"}


def told(outcome):
    """Return what the records say of each page."""
    names = ("url", "verdict", "original_url", "score", "reason", "difference", "evidence", "title")
    return [tuple(map(str, map(record.get, names))) for record in outcome.records]


@pytest.fixture
def later(site):
    """Return three pages that an earlier crawl has, copies of them, new pages, their copies, a view, and a fact."""
    earlier = [{"url": site.add(f"/{n}", article(f"Page {n}", story(n)))} for n in range(3)]
    copies = [site.add(f"/copy/{n}", blog(f"Copy {n}", story(n)), host=1) for n in (0, 1)]
    new = [site.add(f"/new/{n}", article(f"New {n}", story(n))) for n in (10, 11)]
    more = [site.add(f"/more/{n}", blog(f"More {n}", story(n)), host=2) for n in (10, 11, 2)]
    printed = blog("Print", story(12)).replace("</head>", '<link rel="canonical" href="/own"></head>')
    views = [site.add("/print", printed), site.add("/own", article("Own", story(12)))]
    told = story(0)
    other = site.add("/other", blog("Other", [told[0], "The bill came to 1,204 crowns.", *told[1:]]), host=2)
    return [*earlier, *({"url": url} for url in (*copies, *new, *more, *views, other))]


@pytest.mark.parametrize("kind", ["default", "sqlite", "redis"])
def test_it_checks_as_a_crawl_does_and_changes_nothing(crawl, request, tmp_path, kind, later):
    uri = store_uri(tmp_path / "one") if kind == "default" else shared_uri(kind, tmp_path, request)
    run = partial(crawl, "sample_spiders.Steps", settings={"DEDUP_STORE": uri})
    run(steps=later[:3])
    before = contents_of(uri)
    dry = run(steps=later, settings={"DEDUP_STORE": uri, **DRY})
    assert contents_of(uri) == before
    assert dry.kept == [step["url"] for step in later]
    assert dry.problems == []
    real = run(steps=later)
    assert told(real) == told(dry)
    assert {verdict for verdict, _ in dry.verdicts.values()} == {"unchanged", "duplicate", "related"}
    assert dry.stats["dedup/items/would_drop"] == real.stats["dedup/items/dropped"] == 6


def test_where_there_is_no_store_none_is_made(crawl, later):
    dry = crawl("sample_spiders.Steps", steps=later, settings=DRY, folder="first")
    made = {path.name for path in dry.folder.iterdir() if path.name.startswith(("store", "records"))}
    assert made == {"records.jsonl"}
    assert "(not there, and not created)" in dry.log
    dry_run = told(dry)
    assert len(dry_run) == 6 + 1
    real = crawl("sample_spiders.Steps", steps=later, folder="first", afresh=True)
    other = crawl("sample_spiders.Steps", steps=later, folder="alone")
    assert dry_run == told(real) == told(other)
    assert real.kept == other.kept


def test_of_a_page_that_a_request_wants_dropped_the_item_is_kept(site, crawl):
    """Nothing would be stored by which it could be had again."""
    urls = [site.add(f"/{n}", blog(str(n), story(1)), host=n) for n in range(3)]
    wanted = [{}, {"dedup": {"action": "drop"}}, {"dedup": {"action": "tag"}}]
    steps = [{"url": url, "meta": meta} for url, meta in zip(urls, wanted, strict=True)]
    outcome = crawl("sample_spiders.Steps", steps=steps, settings=DRY)
    assert outcome.kept == urls
    assert [record["outcome"] for record in outcome.records] == ["would_drop", "tagged"]


def test_what_a_crash_has_left_is_there_after_it(site, tmp_path):
    a, b = site.add("/a", article("a", story(1))), site.add("/b", blog("b", story(1)), host=1)
    assert [item["url"] for item in killed(tmp_path, site, [{"url": a}, {"url": b}], **GZIP).dropped] == [b]
    uri = store_uri(tmp_path)
    before = contents_of(uri)
    again(tmp_path, [], **DRY, FEEDS={"dry.jsonl": {"format": "jsonlines"}})
    assert contents_of(uri) == before
    assert fed(again(tmp_path, [])) == [a]
