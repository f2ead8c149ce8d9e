"""Methods compared on what Scrapy's HTTP cache keeps of a crawl."""

import gzip
import json

import pytest
from local_site import Answer
from prose import article, blog, story, zh_story
from scrapy.downloadermiddlewares.httpcompression import ACCEPTED_ENCODINGS
from scrapy.settings import Settings
from test_commands import run_here

from dedup_middleware.cli.compare import recorded_pages

ONE = ("--pure", "--json", "--method", "long-sentences")


@pytest.fixture(params=[False, True], ids=["plain", "packed"])
def pages(request, site, crawl, tmp_path):
    """Record a crawl: a story, its copy, packed on the way, a Chinese one in GB 18030, and what is no page.

    Return the folder of the spider, and the addresses of the first three.
    """
    chinese = article("c", zh_story(2)).replace("<meta charset='utf-8'>", "").encode("gb18030")
    urls = [
        site.add("/a", article("a", story(1))),
        site.add("/b", Answer(gzip.compress(blog("b", story(1)).encode()), headers={"Content-Encoding": "gzip"})),
        site.add("/c", Answer(chinese, headers={"Content-Type": "text/html; charset=gb18030"})),
    ]
    others = [
        site.add("/image", Answer(b"\x89PNG\r\n", headers={"Content-Type": "image/png"})),
        site.add("/missing", Answer("gone", status=404)),
    ]
    cache = tmp_path / "cache"
    settings = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(cache), "HTTPCACHE_GZIP": request.param}
    steps = [{"url": url, "callback": "parse_nothing_but_number"} for url in (*urls, *others)]
    crawl("sample_spiders.Steps", steps=steps, settings=settings)
    return cache / "steps", urls


def test_its_pages_are_compared_as_the_crawl_got_them(pages, tmp_path):
    folder, _ = pages
    said = run_here("compare", str(folder), *ONE, folder=tmp_path)
    assert (said.exit_status, said.err) == (0, "")
    found = json.loads(said.out)
    assert [row["method"] for row in found["methods"]] == ["clauses", "long-sentences"]
    assert found["disputed"] == []
    assert found["agreement"][0]["both"] == found["agreement"][0]["either"] == 1
    assert all("\ufffd" not in line for line in said.out.splitlines())


def test_what_cannot_be_read_is_told_and_left_out(pages, tmp_path):
    folder, _ = pages
    metas = sorted(folder.glob("**/meta"))
    (metas[0].parent / "response_headers").unlink()
    metas[1].write_bytes(b"__import__('os').system('true')")
    (folder / "foreign").mkdir()
    (folder / "foreign" / "meta").write_bytes(b"\x1f\x8b\xff")
    said = run_here("compare", str(folder), *ONE, folder=tmp_path)
    assert said.exit_status in (0, 1)
    assert f"responses in {folder} that cannot be read" in said.err


@pytest.mark.parametrize(
    ("header", "body", "timestamp"),
    [
        # Scrapy takes what is no deflate for an empty page, and reads what its installation cannot unpack as it is.
        *[(b"Content-Encoding: " + name, b"not packed", "1") for name in ACCEPTED_ENCODINGS if name != b"deflate"],
        (b"Content-Type: text/html; charset=idna", b"<p>", "1"),
        (b"Content-Type: text/html; charset=punycode", b"<html>\xff", "1"),
        (b"Content-Type: text/html", b"<p>", "1" + "0" * 400),
    ],
)
@pytest.mark.parametrize("is_packed", [False, True])
def test_a_damaged_response_is_passed_over(tmp_path, header, body, timestamp, *, is_packed):
    only_the_other_is_read(tmp_path, header, body, timestamp, is_packed=is_packed)


def test_what_unpacks_to_more_than_scrapy_would_download_is_passed_over(tmp_path):
    body = b"<p>" * 100_000
    only_the_other_is_read(tmp_path, b"Content-Type: text/html", body, "1", is_packed=True, DOWNLOAD_MAXSIZE=100_000)


def only_the_other_is_read(folder, header, body, timestamp, *, is_packed, **settings):
    """Assert that of this response and a good one the other is read, and that this is said."""
    keep(folder / "bad", header, body, timestamp, is_packed=is_packed)
    keep(folder / "good", b"Content-Type: text/html", b"<p>", "2", is_packed=is_packed)
    told = []
    assert [page.url for page, _ in recorded_pages(folder, Settings(settings), told.append)] == ["http://a.test/good"]
    assert told == [f"left out 1 responses in {folder} that cannot be read"]


def keep(folder, header, body, timestamp, *, is_packed):
    """Write a response as Scrapy's cache does."""
    url = f"http://a.test/{folder.name}"
    meta = f"{{'method': 'GET', 'status': 200, 'response_url': {url!r}, 'timestamp': {timestamp}}}".encode()
    folder.mkdir()
    for name, content in {"meta": meta, "response_headers": header, "response_body": body}.items():
        (folder / name).write_bytes(gzip.compress(content) if is_packed else content)


@pytest.mark.parametrize(("name", "told"), [("", "has no recorded page"), ("news.db", "FilesystemCacheStorage")])
def test_a_folder_without_pages_is_told(tmp_path, name, told):
    if name:
        (tmp_path / name).touch()
    said = run_here("compare", str(tmp_path), *ONE, folder=tmp_path)
    assert (said.exit_status, said.err.count("\n")) == (1, 1)
    assert told in said.err
