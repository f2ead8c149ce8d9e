"""A page that is found under another URL is the same page: its item is kept with the new URL, and the move is named."""

import json
import re

import pytest
from crawling import IN_ORDER, stepped, store_uri
from local_site import redirect
from prose import article, story
from test_commands import run_here

from dedup_middleware.records.file import Records

TOLD = [*story(1), "It costs 20 euros."]


def crawled(folder, urls, price=20, **settings):
    steps = [{"url": url, "dont_filter": False, "cb_kwargs": {"price": price}} for url in urls]
    return stepped(folder, steps, **IN_ORDER, DEDUP_LOG=str(folder / "kept.jsonl"), **settings)


def records(folder):
    """Return the records of the last crawl."""
    found = [*Records(folder / "kept.jsonl")]
    return [record for record in found if record.crawl == found[-1].crawl]


def record_of(folder, url):
    (found,) = [record for record in records(folder) if record.url == url]
    return found


def view(folder, *options, command="changes"):
    named = "-s", f"DEDUP_LOG={folder / 'kept.jsonl'}", "-s", f"DEDUP_STORE={store_uri(folder)}"
    output = run_here(command, *options, *named, folder=folder)
    assert output.exit_status == 0, output.err
    return output.out


def changes(folder, *options):
    lines = map(json.loads, view(folder, "--json", *options).splitlines())
    return [(line["change"], line["url"], line.get("moved_from")) for line in lines]


def named(text, url):
    return article("The story", text).replace("<head>", f"<head><link rel='canonical' href='{url}'>")


@pytest.mark.parametrize("unchanged", ["keep", "tag", "drop"])
@pytest.mark.parametrize("host", [0, 1], ids=["one host", "two hosts"])
@pytest.mark.parametrize("asked", ["old", "old new", "new old"])
def test_a_page_whose_url_leads_to_another_has_moved(tmp_path, site, asked, host, unchanged):
    urls = {"old": site.add("/old", article("The story", TOLD)), "new": site.url("/new", host=host)}
    crawled(tmp_path, [urls["old"]], DEDUP_UNCHANGED=unchanged)
    site.add("/new", article("The story", TOLD), host=host)
    site.add("/old", redirect(urls["new"]))
    outcome = crawled(tmp_path, [urls[name] for name in asked.split()], DEDUP_UNCHANGED=unchanged)
    assert outcome.kept == [urls["new"]]
    (record,) = [each for each in records(tmp_path) if each.moved_from]
    assert (record.url, record.verdict, record.moved_from) == (urls["new"], "unchanged", urls["old"])
    assert changes(tmp_path) == [("moved", urls["new"], urls["old"])]
    shown = view(tmp_path)
    assert f"moved 1\n  {urls['old']} -> {urls['new']}\n" in shown
    again = crawled(tmp_path, [urls["new"]], DEDUP_UNCHANGED=unchanged)
    assert again.kept == ([] if unchanged == "drop" else [urls["new"]])
    assert [(each.verdict, each.moved_from) for each in records(tmp_path)] == [("unchanged", None)]


@pytest.mark.parametrize("unchanged", ["keep", "tag", "drop"])
@pytest.mark.parametrize("asked", ["new", "new old"])
def test_a_page_that_a_known_page_names_as_canonical_is_that_page(tmp_path, site, asked, unchanged):
    urls = {name: site.url(f"/{name}") for name in ("old", "new")}
    site.add("/old", named(TOLD, urls["new"]))
    crawled(tmp_path, [urls["old"]], DEDUP_UNCHANGED=unchanged)
    site.add("/new", named(TOLD, urls["new"]))
    outcome = crawled(tmp_path, [urls[name] for name in asked.split()], DEDUP_UNCHANGED=unchanged)
    # Until the new one is on disk, both are there.
    assert urls["new"] in outcome.kept
    record = record_of(tmp_path, urls["new"])
    assert (record.verdict, record.moved_from) == ("unchanged", urls["old"])
    assert ("moved", urls["new"], urls["old"]) in changes(tmp_path)


def test_it_is_that_page_also_where_it_was_dropped_as_its_copy(tmp_path, site):
    urls = [site.url(f"/{name}") for name in ("old", "new")]
    for path in ("/old", "/new"):
        site.add(path, named(TOLD, urls[1]))
    assert crawled(tmp_path, urls).kept == urls[:1]
    assert crawled(tmp_path, urls[1:]).kept == urls[1:]
    assert changes(tmp_path) == [("moved", urls[1], urls[0])]
    # What is still at the old URL is its copy from then on.
    for _ in range(2):
        assert crawled(tmp_path, urls).kept == urls[1:]
        assert {url for kind, url, _ in changes(tmp_path) if kind in {"not seen", "moved", "changed"}} == set()


def test_a_canonical_url_of_a_page_that_the_crawl_has_met_is_its_copy(tmp_path, site):
    urls = [site.url(f"/{name}") for name in ("old", "new")]
    for path in ("/old", "/new"):
        site.add(path, named(TOLD, urls[1]))
    for _ in range(3):
        outcome = crawled(tmp_path, urls)
        assert outcome.kept == urls[:1]
        assert not any(each.moved_from for each in records(tmp_path))


def test_a_page_that_has_changed_as_it_moved_is_changed(tmp_path, site):
    old = site.add("/old", article("The story", TOLD))
    crawled(tmp_path, [old])
    new = site.add("/new", article("The story", [*TOLD[:-1], "It costs 25 euros."]))
    site.add("/old", redirect(new))
    outcome = crawled(tmp_path, [old])
    record = record_of(tmp_path, new)
    assert (outcome.kept, record.verdict, record.moved_from) == ([new], "changed", old)
    assert [*map(tuple, record.changes.replaced)] == [("It costs 20 euros.", "It costs 25 euros.")]
    assert changes(tmp_path) == [("changed", new, old)]
    assert re.search(rf"was at +{old}\n", view(tmp_path, new, command="explain"))
    # A page is named once over several crawls, by all that became of it.
    crawled(tmp_path, [new])
    assert changes(tmp_path) == [("unchanged", new, None)]
    since = next(iter(Records(tmp_path / "kept.jsonl"))).crawl
    assert changes(tmp_path, "--since", since) == [("changed", new, old)]


def test_a_page_that_has_moved_twice_is_named_once(tmp_path, site):
    urls = [site.url(f"/{n}") for n in range(3)]
    for n, url in enumerate(urls):
        site.add(f"/{n}", article("The story", TOLD))
        crawled(tmp_path, urls[max(0, n - 1) : n] or [url])
        if n < 2:
            site.add(f"/{n}", redirect(urls[n + 1]))
    since = next(iter(Records(tmp_path / "kept.jsonl"))).crawl
    assert changes(tmp_path, "--since", since) == [("moved", urls[2], urls[0])]


@pytest.mark.parametrize("unchanged", ["keep", "drop"])
def test_a_page_whose_item_has_changed_as_it_moved_is_changed(tmp_path, site, unchanged):
    old = site.add("/old", article("The story", TOLD))
    crawled(tmp_path, [old], DEDUP_UNCHANGED=unchanged)
    new = site.add("/new", article("The story", TOLD))
    site.add("/old", redirect(new))
    assert crawled(tmp_path, [old], price=25, DEDUP_UNCHANGED=unchanged).kept == [new]
    record = record_of(tmp_path, new)
    assert record.changes.values == [("price", "20", "25")]
    assert "price: 20 -> 25" in view(tmp_path)


@pytest.mark.parametrize("is_known", [False, True])
def test_a_url_that_leads_to_another_story_has_not_moved(tmp_path, site, is_known):
    old = site.add("/old", article("The story", TOLD))
    home = site.add("/", article("All stories", story(5)))
    crawled(tmp_path, [old, home] if is_known else [old])
    site.add("/old", redirect(home))
    outcome = crawled(tmp_path, [old])
    assert outcome.kept == [home]
    assert outcome.stats["dedup/verdict/unchanged" if is_known else "dedup/verdict/new"] == 1
    assert not any(each.moved_from for each in records(tmp_path))


@pytest.mark.parametrize("store", [{}, {"DEDUP_STORE": "sqlite:shared.db?shared=1"}], ids=["private", "shared"])
@pytest.mark.parametrize("host", [0, 1], ids=["one host", "two hosts"])
def test_a_copy_of_a_page_that_has_moved_is_a_copy_of_it_there(tmp_path, site, host, store):
    old = site.add("/old", article("The story", TOLD))
    copy = site.add("/copy", article("The story", TOLD), host=2)
    assert crawled(tmp_path, [old, copy], **store).kept == [old]
    new = site.add("/new", article("The story", TOLD), host=host)
    site.add("/old", redirect(new))
    for _ in range(2):
        assert crawled(tmp_path, [old, copy], **store).kept == [new]
    assert record_of(tmp_path, copy).original_url == new
