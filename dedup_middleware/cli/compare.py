"""Runs ``scrapy dedup compare``: measures published methods on a corpus of pages. It opens no store.

The corpus may be the HTTP cache of a crawl. Scrapy reads its cache request by request, and with pickle. Here the whole
cache is read, in the order of the crawl, and nothing is unpickled: another person may have recorded it.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.http import Headers, HtmlResponse
from scrapy.responsetypes import responsetypes
from scrapy.settings import Settings
from scrapy.statscollectors import StatsCollector
from scrapy.utils.python import to_unicode
from w3lib.http import headers_raw_to_dict

from dedup_middleware.cli.options import Subcommand, option, share
from dedup_middleware.common import bounded
from dedup_middleware.common.plain_files import open_file
from dedup_middleware.errors import ConfigError
from dedup_middleware.extraction.decoding import NO_CHARSETS
from dedup_middleware.methods.compare.corpus import CorpusPage
from dedup_middleware.text.terminal import tell

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from scrapy.http import Response
    from scrapy.settings import BaseSettings

    from dedup_middleware.cli.call import Call

_GZIP = b"\x1f\x8b"
_REMEDY = "name the folder of a spider's cache, as in .scrapy/httpcache/news"
# A damaged or foreign `meta` raises any of these.
_UNREADABLE = (OSError, ValueError, SyntaxError, TypeError, KeyError, OverflowError, RecursionError, MemoryError)
# Bytes of a page, and of its `meta`, which has its URL twice and some words.
_MAX_BYTES, _MAX_META = 24 * 2**20, 2**18


class _Entry(NamedTuple):
    fetched: float
    folder: Path
    url: str
    is_packed: bool
    """Whether the crawl had ``HTTPCACHE_GZIP``."""

    def read(self, name: str, max_size: int) -> bytes:
        return _content(self.folder / name, max_size, is_packed=self.is_packed)


def recorded_pages(
    folder: Path, settings: BaseSettings, tell: Callable[[str], None]
) -> Iterator[tuple[CorpusPage, str]]:
    """Yield the HTML pages of the cache in *folder*, each with its HTML, in the order of the crawl.

    If a page was fetched several times, the last response counts. *tell* gets a line on responses that cannot be read.
    `ConfigError` if there is no page.
    """
    if any(folder.glob("*.db*")):
        raise ConfigError(
            f"{folder} is a cache of DbmCacheStorage", "crawl with FilesystemCacheStorage, Scrapy's default"
        )
    compression = _compression(settings)
    max_size = _max_size(settings)
    entries, damaged = _entries(folder)
    found = False
    for entry in sorted(entries):
        try:
            response = compression.process_response(Request(entry.url), _downloaded(entry, max_size))
            html = _html(response) if isinstance(response, HtmlResponse) else None
        except Exception:  # noqa: BLE001 - each library that unpacks or decodes has its own errors
            damaged += 1
            continue
        if html is not None:
            found = True
            yield CorpusPage(entry.url, entry.url, None), html
    if damaged:
        tell(f"left out {damaged} responses in {folder} that cannot be read")
    if not found:
        raise ConfigError(f"{folder} has no recorded page", f"crawl with HTTPCACHE_ENABLED=True, and {_REMEDY}")


def _content(path: Path, most: int, *, is_packed: bool) -> bytes:
    with bounded.opened(path) if is_packed else open_file(path) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise ValueError(f"{path} has more than {most} bytes")
    return content


def _entries(folder: Path) -> tuple[list[_Entry], int]:
    """Return the last good response of each URL, and how many cannot be read."""
    last: dict[str, _Entry] = {}
    damaged = 0
    for path in sorted(folder.glob("**/meta")):
        try:
            with open_file(path) as file:
                packed = file.read(len(_GZIP)) == _GZIP
            meta = ast.literal_eval(to_unicode(_content(path, _MAX_META, is_packed=packed)))
            entry = _Entry(float(meta["timestamp"]), path.parent, str(meta["response_url"]), packed)
            is_good = meta["status"] == 200 and meta["method"] == "GET"  # noqa: PLR2004
        except _UNREADABLE:
            damaged += 1
            continue
        if is_good and (entry.url not in last or last[entry.url] < entry):
            last[entry.url] = entry
    return [*last.values()], damaged


def _max_size(settings: BaseSettings) -> int:
    return min(settings.getint("DOWNLOAD_MAXSIZE") or _MAX_BYTES, _MAX_BYTES)


def _compression(settings: BaseSettings) -> HttpCompressionMiddleware:
    crawler = Crawler(Spider, Settings(settings))
    crawler.settings.set("DOWNLOAD_MAXSIZE", _max_size(settings), priority="cmdline")
    # The middleware needs it; the crawler never runs.
    crawler.stats = StatsCollector(crawler)
    return HttpCompressionMiddleware(crawler=crawler)


def _downloaded(entry: _Entry, max_size: int) -> Response:
    """Return the response as it was downloaded: its body may be compressed."""
    headers = Headers(headers_raw_to_dict(entry.read("response_headers", max_size)) or {})
    body = entry.read("response_body", max_size)
    kind = responsetypes.from_args(headers=headers, url=entry.url, body=body)
    return kind(entry.url, headers=headers, body=body)


def _html(response: HtmlResponse) -> str:
    if response.encoding in NO_CHARSETS:
        raise ValueError(response.encoding)
    return response.text


_FIT = 0.2
_FIRST = f"share of the pages, the first ones, to learn from (default: {_FIT})"
_METHOD = "NAME or NAME:OPTION=VALUE,… (repeatable; default: all)"


def run(call: Call) -> None:
    """Print the results."""
    # 25 ms that no other command needs.
    from dedup_middleware.methods.compare.corpus import read_pages  # noqa: PLC0415
    from dedup_middleware.methods.compare.run import compare  # noqa: PLC0415

    corpus = call.opts.corpus
    pages = recorded_pages(corpus, call.settings, tell) if corpus.is_dir() else read_pages(corpus)
    for text in compare(call.opts, pages, tell):
        print(text, flush=True)


COMMAND = Subcommand(
    run,
    ("compare pages.jsonl", "compare pages.jsonl --method simhash --method minhash"),
    (
        option(
            "corpus",
            metavar="CORPUS",
            type=Path,
            help="pages: JSON Lines (.gz, .xz), or the folder of an HTTP cache",
        ),
        option("--method", metavar="CHOICE", action="append", default=[], help=_METHOD),
        option("--pure", action="store_true", help="use no checks besides the method itself"),
        option("--fit", metavar="SHARE", type=share, default=_FIT, help=_FIRST),
        option("--sweep", metavar="METHOD:OPTION=A..B[:STEP]", help="measure all values of one option instead"),
        option("--plot", metavar="FILE", type=Path, help="draw the results (.png, .svg, .pdf)"),
        option("--json", action="store_true", help="output JSON"),
    ),
    is_of_spider=False,
)
