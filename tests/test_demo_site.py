"""The demo serves what its map says, and its spider keeps all of it when the plugin is off."""

import json
import os
import re
from collections import defaultdict
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from crawling import scrapy
from local_site import PATIENCE
from parsel import Selector

from spiders.newspaper import PARTIAL_KINDS, SITES, Kind, Newspaper, site_map
from spiders.reading import read_article

ROOT = Path(__file__).parent.parent
SILENT_KINDS = {Kind.LIST, Kind.REDIRECT}
PAGES = site_map()
ARTICLES = [page for page in PAGES if page.kind not in SILENT_KINDS]
BY_URL = {page.url: page for page in PAGES}


@pytest.fixture(scope="module")
def newspaper():
    with Newspaper() as running:
        yield running


def get(newspaper, target, headers=None):
    """Request *target* once, a URL for a proxy or a path, following nothing."""
    connection = HTTPConnection(urlsplit(newspaper.proxy).netloc, timeout=PATIENCE)
    try:
        connection.request("GET", target, headers=headers or {})
        response = connection.getresponse()
        return response.status, dict(response.getheaders()), response.read()
    finally:
        connection.close()


def test_the_map_has_every_kind_and_the_whole_of_each_story():
    assert len(BY_URL) == len(PAGES)
    assert {page.kind for page in PAGES} == set(Kind)
    kinds = defaultdict(set)
    for page in ARTICLES:
        kinds[page.story].add(page.kind)
    assert all(found - PARTIAL_KINDS for found in kinds.values())


def test_every_page_is_served_and_every_article_is_read_from_its_template(newspaper):
    for page in PAGES:
        status, headers, body = get(newspaper, page.url)
        if page.kind is Kind.REDIRECT:
            assert (status, headers["Location"]) == (301, page.target)
            continue
        if page.kind is Kind.FLAKY:
            assert status == 503
            status, headers, body = get(newspaper, page.url)
        assert (status, headers["Content-Type"]) == (200, f"text/html; charset={page.site.encoding}")
        article = read_article(Selector(body.decode(page.site.encoding)))
        if page.kind is Kind.LIST:
            assert article is None
        else:
            assert article is not None, page.path
            assert (article["text"], article["published"]) == ("\n".join(page.paragraphs), page.published)
            assert article["title"].startswith(page.title)


def test_the_host_may_be_in_a_header_and_two_demos_run_at_once(newspaper):
    with Newspaper() as second:
        assert second.proxy != newspaper.proxy
        statuses = [get(second, "/", {"Host": host})[0] for host in ("wire.example:80", "example.org")]
    assert statuses == [200, 404]


def crawl(*arguments, env=None):
    settings = ["-s", "ADDONS={}", "-s", "FEEDS={}"]
    return scrapy("crawl", "news", *settings, *arguments, folder=ROOT, env={**os.environ, **(env or {})})


def read_items(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_the_spider_crawls_one_site_and_so_many_articles(newspaper, tmp_path):
    """Through a proxy, as from a machine that has no other way out."""
    site = SITES[4]
    arguments = ("-a", "limit=5", "-a", f"url={site.front_page}", "-O", str(tmp_path / "out.jsonl"))
    run = crawl(*arguments, env={"http_proxy": newspaper.proxy, "no_proxy": ""})
    assert run.returncode == 0, run.stderr
    items = read_items(tmp_path / "out.jsonl")
    assert [urlsplit(item["url"]).hostname for item in items] == [site.host] * 5


@pytest.mark.parametrize("language", ["en", "zh"])
def test_with_the_plugin_no_story_is_lost_and_the_summary_adds_up(language, tmp_path):
    own = [f"DEDUP_STORE=sqlite:{tmp_path / 'store'}", f"DEDUP_LOG={tmp_path / 'log.jsonl'}", "FEEDS={}"]
    # As it is recorded for `scrapy dedup compare`.
    own += ["HTTPCACHE_ENABLED=True", f"HTTPCACHE_DIR={tmp_path / 'cache'}"]
    settings = [argument for setting in own for argument in ("-s", setting)]
    # A proxy of the user's own has no part in it.
    env = {**os.environ, "http_proxy": "http://127.0.0.1:9"}
    arguments = ("-a", f"language={language}", "-O", str(tmp_path / "out.jsonl"))
    run = scrapy("crawl", "news", *arguments, *settings, folder=ROOT, env=env)
    assert run.returncode == 0, run.stderr
    items, pages = read_items(tmp_path / "out.jsonl"), [page for page in PAGES if page.site.language == language]
    articles = [page for page in pages if page.kind not in SILENT_KINDS]
    kinds = defaultdict(set)
    for page in (BY_URL[item["url"]] for item in items):
        kinds[page.story].add(page.kind)
    assert set(kinds) == {page.story for page in articles}
    assert all(whole - PARTIAL_KINDS for whole in kinds.values()), "a part of a story is not the story"
    summary = run.stderr[run.stderr.index("dedup summary") :]
    counts = {label: int(number) for label, number in re.findall(r"^ +(\S.*?) {2,}(\d+)$", summary, re.MULTILINE)}
    ways = ("kept", "duplicates", "list pages (no items)", "unchecked")
    assert counts["pages"] == sum(counts[way] for way in ways)
    assert counts["unchecked"] == counts["too_little_text"]
    assert counts["list pages (no items)"] == sum(page.kind is Kind.LIST for page in pages)
    released = counts.get("dropped items released", 0)
    assert counts["items kept"] == len(items) == len(articles) - counts["items dropped"] + released
    assert counts["items dropped"] > len(articles) / 2
    assert counts["links followed last"] > 0
    command = summary.partition("open the report")[2].splitlines()[0]
    assert command.split()[:4] == ["scrapy", "dedup", "report", "--open"]
    assert f"DEDUP_LOG={tmp_path / 'log.jsonl'}" in command
    assert "ERROR" not in run.stderr
    assert "WARNING" not in run.stderr


@pytest.mark.parametrize("argument", ["language=fr", "limit=0", "url=example.com"])
def test_an_argument_that_cannot_be_used_ends_the_command_with_one_line(argument):
    run = crawl("-a", argument)
    (line,) = [line for line in run.stderr.splitlines() if "scrapy crawl news: " in line]
    assert run.returncode == 1
    assert argument.replace("=", "='", 1) in line
    assert "Traceback" not in run.stderr
