"""A page that is found under another URL is the same page: its item is kept with the new URL, and the move is named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from crawling import IN_ORDER, run_job, write_job
from local_site import redirect
from prose import article, story
from test_crashes import FEED

if TYPE_CHECKING:
    from pathlib import Path

    from crawling import Outcome
    from local_site import Site

TOLD = [*story(1), "It costs 20 euros."]


def crawled(folder: Path, urls: list[str], **settings: Any) -> Outcome:
    steps = [{"url": url, "dont_filter": False} for url in urls]
    command = write_job(folder, "sample_spiders.Steps", steps=steps, settings=FEED | IN_ORDER | settings, afresh=True)
    outcome = run_job(folder, command)
    assert outcome.problems == []
    return outcome


def named(text: list[str], url: str) -> str:
    return article("The story", text).replace("<head>", f"<head><link rel='canonical' href='{url}'>")


@pytest.mark.parametrize("unchanged", ["keep", "tag", "drop"])
@pytest.mark.parametrize("host", [0, 1], ids=["one host", "two hosts"])
@pytest.mark.parametrize("asked", ["old", "old new", "new old"])
def test_a_page_whose_url_leads_to_another_has_moved(
    tmp_path: Path, site: Site, asked: str, host: int, unchanged: str
) -> None:
    urls = {"old": site.add("/old", article("The story", TOLD)), "new": site.url("/new", host=host)}
    crawled(tmp_path, [urls["old"]], DEDUP_UNCHANGED=unchanged)
    site.add("/new", article("The story", TOLD), host=host)
    site.add("/old", redirect(urls["new"]))
    outcome = crawled(tmp_path, [urls[name] for name in asked.split()], DEDUP_UNCHANGED=unchanged)
    assert outcome.kept == [urls["new"]]
    (record,) = [each for each in outcome.records if each["moved_from"]]
    assert (record["url"], record["verdict"], record["moved_from"]) == (urls["new"], "unchanged", urls["old"])
    again = crawled(tmp_path, [urls["new"]], DEDUP_UNCHANGED=unchanged)
    assert again.kept == ([] if unchanged == "drop" else [urls["new"]])
    assert [(each["verdict"], each["moved_from"]) for each in again.records] == [("unchanged", None)]


@pytest.mark.parametrize("unchanged", ["keep", "tag", "drop"])
@pytest.mark.parametrize("asked", ["new", "new old"])
def test_a_page_that_a_known_page_names_as_canonical_is_that_page(
    tmp_path: Path, site: Site, asked: str, unchanged: str
) -> None:
    urls = {name: site.url(f"/{name}") for name in ("old", "new")}
    site.add("/old", named(TOLD, urls["new"]))
    crawled(tmp_path, [urls["old"]], DEDUP_UNCHANGED=unchanged)
    site.add("/new", named(TOLD, urls["new"]))
    outcome = crawled(tmp_path, [urls[name] for name in asked.split()], DEDUP_UNCHANGED=unchanged)
    # Until the new one is on disk, both are there.
    assert urls["new"] in outcome.kept
    record = outcome.record(urls["new"])
    assert (record["verdict"], record["moved_from"]) == ("unchanged", urls["old"])


def test_a_canonical_url_of_a_page_that_the_crawl_has_met_is_its_copy(tmp_path: Path, site: Site) -> None:
    urls = [site.url(f"/{name}") for name in ("old", "new")]
    for path in ("/old", "/new"):
        site.add(path, named(TOLD, urls[1]))
    for _ in range(3):
        outcome = crawled(tmp_path, urls)
        assert outcome.kept == urls[:1]
        assert not any(each["moved_from"] for each in outcome.records)


def test_a_page_that_has_changed_as_it_moved_is_changed(tmp_path: Path, site: Site) -> None:
    old = site.add("/old", article("The story", TOLD))
    crawled(tmp_path, [old])
    new = site.add("/new", article("The story", [*TOLD[:-1], "It costs 25 euros."]))
    site.add("/old", redirect(new))
    outcome = crawled(tmp_path, [old])
    record = outcome.record(new)
    assert (outcome.kept, record["verdict"], record["moved_from"]) == ([new], "changed", old)
    assert [*map(tuple, record["changes"]["replaced"])] == [("It costs 20 euros.", "It costs 25 euros.")]


@pytest.mark.parametrize("is_known", [False, True])
def test_a_url_that_leads_to_another_story_has_not_moved(tmp_path: Path, site: Site, is_known: bool) -> None:  # noqa: FBT001
    old = site.add("/old", article("The story", TOLD))
    home = site.add("/", article("All stories", story(5)))
    crawled(tmp_path, [old, home] if is_known else [old])
    site.add("/old", redirect(home))
    outcome = crawled(tmp_path, [old])
    assert outcome.kept == [home]
    assert outcome.stats["dedup/verdict/unchanged" if is_known else "dedup/verdict/new"] == 1
    assert not any(each["moved_from"] for each in outcome.records)


def test_a_copy_of_a_page_that_has_moved_is_a_copy_of_it_there(tmp_path: Path, site: Site) -> None:
    old = site.add("/old", article("The story", TOLD))
    copy = site.add("/copy", article("The story", TOLD), host=1)
    assert crawled(tmp_path, [old, copy]).kept == [old]
    new = site.add("/new", article("The story", TOLD))
    site.add("/old", redirect(new))
    for _ in range(2):
        outcome = crawled(tmp_path, [old, copy])
        assert outcome.kept == [new]
    assert outcome.record(copy)["original_url"] == new
