"""The demo serves what its map says, and its spider keeps all of it when the plugin is off."""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from crawling import scrapy
from parsel import Selector

from spiders.newspaper import PARTIAL_KINDS, SITES, Kind, Newspaper, Page, site_map
from spiders.reading import read_article

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
SILENT_KINDS = {Kind.LIST, Kind.REDIRECT}
PAGES = site_map()
ARTICLES = [page for page in PAGES if page.kind not in SILENT_KINDS]
BY_URL = {(page.site.address, page.path): page for page in PAGES}


@pytest.fixture(scope="module")
def newspaper() -> Iterator[Newspaper]:
    with Newspaper(port=0) as running:
        yield running


def get(newspaper: Newspaper, page: Page) -> tuple[int, dict[str, str], bytes]:
    """Request *page* once, following nothing."""
    connection = HTTPConnection(urlsplit(newspaper.front_pages[page.site]).netloc, timeout=10)
    try:
        connection.request("GET", page.path)
        response = connection.getresponse()
        return response.status, dict(response.getheaders()), response.read()
    finally:
        connection.close()


def test_the_map_has_every_kind_and_the_whole_of_each_story() -> None:
    assert len({(page.site, page.path) for page in PAGES}) == len(PAGES)
    assert {page.kind for page in PAGES} == set(Kind)
    kinds = defaultdict(set)
    for page in ARTICLES:
        kinds[page.story].add(page.kind)
    assert all(found - PARTIAL_KINDS for found in kinds.values())


def test_every_page_is_served_and_every_article_is_read_from_its_template(newspaper: Newspaper) -> None:
    for page in PAGES:
        status, headers, body = get(newspaper, page)
        if page.kind is Kind.REDIRECT:
            assert (status, headers["Location"]) == (301, page.target)
            continue
        if page.kind is Kind.FLAKY:
            assert status == 503
            status, headers, body = get(newspaper, page)
        assert (status, headers["Content-Type"]) == (200, f"text/html; charset={page.site.encoding}")
        article = read_article(Selector(body.decode(page.site.encoding)))
        if page.kind is Kind.LIST:
            assert article is None
        else:
            assert article is not None, page.path
            assert (article["text"], article["published"]) == ("\n".join(page.paragraphs), page.published)
            assert article["title"].startswith(page.title)


def test_one_address_serves_every_site_and_a_taken_port_is_left_alone() -> None:
    with Newspaper(port=0, one_address=True) as running:
        places = [urlsplit(url) for url in running.front_pages.values()]
        assert {place.hostname for place in places} == {"127.0.0.1"}
        assert len({place.port for place in places}) == len(SITES)
        port = places[0].port
        assert port
        with Newspaper(port=port, one_address=True) as second:
            assert port not in {urlsplit(url).port for url in second.front_pages.values()}


def crawl(*arguments: str) -> subprocess.CompletedProcess[str]:
    settings = ["-s", "ADDONS={}", "-s", "FEEDS={}"]
    return scrapy("crawl", "news", *settings, *arguments, folder=ROOT, env=dict(os.environ))


def read_items(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def page_at(url: str) -> Page:
    parts = urlsplit(url)
    return BY_URL[parts.hostname or "", parts.path + (f"?{parts.query}" if parts.query else "")]


def test_the_spider_crawls_one_site_and_so_many_articles(newspaper: Newspaper, tmp_path: Path) -> None:
    run = crawl("-a", "limit=5", "-a", f"url={newspaper.front_pages[SITES[4]]}", "-O", str(tmp_path / "out.jsonl"))
    assert run.returncode == 0, run.stderr
    items = read_items(tmp_path / "out.jsonl")
    assert [urlsplit(item["url"]).hostname for item in items] == [SITES[4].address] * 5


def test_with_the_plugin_no_story_is_lost_and_the_summary_counts_what_was_dropped(tmp_path: Path) -> None:
    own = [f"DEDUP_STORE=sqlite:{tmp_path / 'store'}", f"DEDUP_LOG={tmp_path / 'log.jsonl'}", "FEEDS={}"]
    settings = [argument for setting in own for argument in ("-s", setting)]
    feed = ["-O", str(tmp_path / "out.jsonl")]
    run = scrapy("crawl", "news", *feed, *settings, folder=ROOT, env=dict(os.environ))
    assert run.returncode == 0, run.stderr
    items = read_items(tmp_path / "out.jsonl")
    kinds = defaultdict(set)
    for page in (page_at(item["url"]) for item in items):
        kinds[page.story].add(page.kind)
    assert set(kinds) == {page.story for page in ARTICLES}
    assert all(whole - PARTIAL_KINDS for whole in kinds.values()), "a part of a story is not the story"
    summary = run.stderr[run.stderr.index("dedup summary") :]
    counts = {label: int(number) for label, number in re.findall(r"^ +(\S.*?) {2,}(\d+)$", summary, re.MULTILINE)}
    released = counts.get("dropped items released", 0)
    assert counts["items kept"] == len(items) == len(ARTICLES) - counts["duplicates dropped"] + released
    assert counts["duplicates dropped"] > len(ARTICLES) / 2
    assert counts["links followed last"] > 0
    assert f"every verdict, with evidence:   {tmp_path / 'log.jsonl'}" in summary
    assert "ERROR" not in run.stderr
    assert "WARNING" not in run.stderr
