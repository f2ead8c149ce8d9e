"""The demo serves what its map says, and its spider keeps all of it when the plugin is off."""

from __future__ import annotations

import json
import os
import re
import socket
import struct
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


@pytest.fixture(scope="module")
def newspaper() -> Iterator[Newspaper]:
    with Newspaper(port=0) as running:
        yield running


def get(newspaper: Newspaper, page: Page) -> tuple[int, dict[str, str], bytes]:
    """Request *page* once, following nothing."""
    return get_path(newspaper.front_pages[page.site], page.path)


def get_path(front_page: str, path: str) -> tuple[int, dict[str, str], bytes]:
    connection = HTTPConnection(urlsplit(front_page).netloc, timeout=10)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, dict(response.getheaders()), response.read()
    finally:
        connection.close()


def get_text(newspaper: Newspaper, page: Page) -> str:
    """Return the decoded HTML of *page*, asking again where it fails once."""
    status, _, body = get(newspaper, page)
    if status == 503:
        _, _, body = get(newspaper, page)
    return body.decode(page.site.encoding)


def text_of(page: Page) -> str:
    return "\n".join(page.paragraphs)


def of_kind(kind: Kind) -> list[Page]:
    return [page for page in PAGES if page.kind is kind]


class TestMap:
    def test_urls_are_unique_and_every_kind_occurs(self) -> None:
        assert len({(page.site, page.path) for page in PAGES}) == len(PAGES)
        assert {page.kind for page in PAGES} == set(Kind)
        assert 120 <= len(PAGES) <= 180

    def test_every_story_has_a_page_with_the_whole_of_it(self) -> None:
        kinds = defaultdict(set)
        for page in ARTICLES:
            kinds[page.story].add(page.kind)
        assert all(found - PARTIAL_KINDS for found in kinds.values())


class TestServer:
    def test_every_page_answers_with_its_text(self, newspaper: Newspaper) -> None:
        for page in PAGES:
            if page.kind in {Kind.REDIRECT, Kind.FLAKY}:
                continue
            status, headers, body = get(newspaper, page)
            assert status == 200, page.path
            assert headers["Content-Type"] == f"text/html; charset={page.site.encoding}"
            seen = Selector(body.decode(page.site.encoding)).xpath("string(//body)").get("")
            assert page.title in seen
            assert all(paragraph in seen for paragraph in page.paragraphs)

    def test_a_flaky_page_fails_once(self) -> None:
        with Newspaper(port=0) as fresh:
            for page in of_kind(Kind.FLAKY):
                assert [get(fresh, page)[0] for _ in range(3)] == [503, 200, 200]

    def test_a_redirect_leads_to_its_article(self, newspaper: Newspaper) -> None:
        for page in of_kind(Kind.REDIRECT):
            status, headers, _ = get(newspaper, page)
            assert (status, headers["Location"]) == (301, page.target)
            target = next(p for p in PAGES if p.site == page.site and p.path == page.target)
            assert target.story == page.story

    def test_robots_txt_allows_and_unknown_paths_are_404(self, newspaper: Newspaper) -> None:
        for front_page in newspaper.front_pages.values():
            assert get_path(front_page, "/robots.txt")[0] == 200
            assert get_path(front_page, "/nowhere")[0] == 404

    def test_clients_that_hang_up_are_no_news(self, newspaper: Newspaper, capfd: pytest.CaptureFixture[str]) -> None:
        front_page = next(iter(newspaper.front_pages.values()))
        where = urlsplit(front_page)
        assert where.port
        for request in (b"GET / HT", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 50):
            with socket.create_connection((where.hostname, where.port), timeout=10) as client:
                # Lingering for no time makes close() reset the connection.
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                client.sendall(request)
        assert get_path(front_page, "/")[0] == 200
        assert capfd.readouterr() == ("", "")

    def test_one_address_serves_every_site_on_a_port_of_its_own(self) -> None:
        with Newspaper(port=0, one_address=True) as running:
            places = [urlsplit(url) for url in running.front_pages.values()]
            assert {place.hostname for place in places} == {"127.0.0.1"}
            assert len({place.port for place in places}) == len(SITES)
            assert all(get(running, page)[0] == 200 for page in of_kind(Kind.LIST))

    def test_a_taken_port_is_left_alone_and_a_freed_one_taken_again(self) -> None:
        with Newspaper(port=0) as first:
            port = urlsplit(first.front_pages[SITES[0]]).port
            assert port
            with Newspaper(port=port) as second:
                assert urlsplit(second.front_pages[SITES[0]]).port != port
        with Newspaper(port=port) as third:
            assert urlsplit(third.front_pages[SITES[0]]).port == port


class TestReading:
    def test_every_article_is_read_from_every_template(self, newspaper: Newspaper) -> None:
        for page in ARTICLES:
            article = read_article(Selector(get_text(newspaper, page)))
            assert article is not None, page.path
            assert article["text"] == text_of(page), page.path
            assert article["published"] == page.published
            assert article["title"].startswith(page.title)

    def test_lists_are_no_articles(self, newspaper: Newspaper) -> None:
        for page in of_kind(Kind.LIST):
            assert read_article(Selector(get_text(newspaper, page))) is None

    @pytest.mark.parametrize("html", ["<html></html>", "<p>short</p>", "<a>" + "linked text " * 99 + "</a>"])
    def test_pages_without_text_are_no_articles(self, html: str) -> None:
        assert read_article(Selector(html)) is None


def crawl(*arguments: str) -> subprocess.CompletedProcess[str]:
    settings = ["-s", "ADDONS={}", "-s", "FEEDS={}"]
    return scrapy("crawl", "news", *settings, *arguments, folder=ROOT, env=dict(os.environ))


def read_items(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


class TestSpider:
    def test_it_keeps_every_article_once(self, tmp_path: Path) -> None:
        run = crawl("-O", str(tmp_path / "out.jsonl"))
        assert run.returncode == 0, run.stderr
        assert "ERROR" not in run.stderr
        addresses = {site.address: site for site in SITES}
        kept = {}
        items = read_items(tmp_path / "out.jsonl")
        for item in items:
            parts = urlsplit(item["url"])
            path = parts.path + (f"?{parts.query}" if parts.query else "")
            kept[addresses[parts.hostname or ""], path] = item
        assert len(kept) == len(items)
        assert set(kept) == {(page.site, page.path) for page in ARTICLES}
        for page in ARTICLES:
            item = kept[page.site, page.path]
            assert set(item) == {"title", "url", "published", "text"}
            assert item["text"] == text_of(page)

    def test_limit_counts_articles(self, tmp_path: Path) -> None:
        run = crawl("-a", "limit=5", "-O", str(tmp_path / "out.jsonl"))
        assert run.returncode == 0, run.stderr
        assert len(read_items(tmp_path / "out.jsonl")) == 5

    def test_url_crawls_that_site_only(self, newspaper: Newspaper, tmp_path: Path) -> None:
        site = SITES[4]
        run = crawl("-a", f"url={newspaper.front_pages[site]}", "-O", str(tmp_path / "out.jsonl"))
        assert run.returncode == 0, run.stderr
        hosts = {urlsplit(item["url"]).hostname for item in read_items(tmp_path / "out.jsonl")}
        assert hosts == {site.address}
        assert len(read_items(tmp_path / "out.jsonl")) == sum(page.site == site for page in ARTICLES)

    @pytest.mark.parametrize("bad", ["limit=x", "limit=0", "limit=-1", "url=", "url=example.com", "url=http://[::1"])
    def test_a_bad_argument_ends_in_one_line(self, bad: str) -> None:
        run = crawl("-a", bad)
        assert run.returncode == 1
        assert "Traceback" not in run.stderr
        assert run.stderr.splitlines()[-1].startswith(f"scrapy crawl news: {bad.partition('=')[0]}=")

    def test_it_knows_nothing_of_the_plugin(self) -> None:
        sources = (ROOT / "spiders").rglob("*.py")
        assert not [path for path in sources if re.search(r"(import|from) dedup", path.read_text(encoding="utf-8"))]


class TestDemo:
    """`scrapy crawl news` as a newcomer runs it, with the plugin on."""

    def test_no_story_is_lost_and_the_summary_says_what_was_dropped(self, tmp_path: Path) -> None:
        own = [f"DEDUP_STORE=sqlite:{tmp_path / 'store'}", f"DEDUP_LOG={tmp_path / 'log.jsonl'}"]
        settings = [argument for setting in own for argument in ("-s", setting)]
        feed = ["-s", "FEEDS={}", "-O", str(tmp_path / "out.jsonl")]
        run = scrapy("crawl", "news", *feed, *settings, folder=ROOT, env=dict(os.environ))
        assert run.returncode == 0, run.stderr
        kinds = defaultdict(set)
        by_address = {(page.site.address, page.path): page for page in PAGES}
        items = read_items(tmp_path / "out.jsonl")
        for item in items:
            parts = urlsplit(item["url"])
            page = by_address[parts.hostname or "", parts.path + (f"?{parts.query}" if parts.query else "")]
            kinds[page.story].add(page.kind)
        assert set(kinds) == {page.story for page in ARTICLES}
        assert all(whole - PARTIAL_KINDS for whole in kinds.values()), "a part of a story is not the story"
        summary = run.stderr[run.stderr.index("dedup summary") :]
        said = {label: int(number) for label, number in re.findall(r"^ +(\S.*?) {2,}(\d+)$", summary, re.MULTILINE)}
        released = said.get("dropped items released", 0)
        assert said["items kept"] == len(items) == len(ARTICLES) - said["duplicates dropped"] + released
        assert said["duplicates dropped"] > len(ARTICLES) / 2
        assert said["links followed last"] > 0
        assert f"every verdict, with evidence:   {tmp_path / 'log.jsonl'}" in summary
        assert "ERROR" not in run.stderr
        assert "WARNING" not in run.stderr
