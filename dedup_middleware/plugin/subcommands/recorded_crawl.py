"""The pages of a recorded crawl: what Scrapy's HTTP cache keeps of it in files.

Scrapy reads its cache request by request, and with pickle. Here all of it is read, in the order in which it was
fetched, and nothing is unpickled: somebody else may have recorded it.
"""

from __future__ import annotations

import ast
import zlib
from typing import TYPE_CHECKING, NamedTuple

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.http import Headers, HtmlResponse
from scrapy.responsetypes import responsetypes
from scrapy.settings import Settings
from scrapy.statscollectors import StatsCollector
from scrapy.utils.gz import gunzip
from scrapy.utils.python import to_unicode
from w3lib.http import headers_raw_to_dict

from dedup_middleware.comparison.corpus import CorpusPage
from dedup_middleware.errors import ConfigError
from dedup_middleware.extraction.charsets import NO_CHARSETS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from scrapy.http import Response
    from scrapy.settings import BaseSettings

_GZIP = b"\x1f\x8b"
_REMEDY = "name the folder of a spider's cache, as in .scrapy/httpcache/news"
# What a damaged or foreign `meta` raises.
_UNREADABLE = (
    *(OSError, EOFError, ValueError, SyntaxError, TypeError, KeyError),
    *(OverflowError, RecursionError, MemoryError, zlib.error),
)


class _Entry(NamedTuple):
    fetched: float
    folder: Path
    url: str
    is_packed: bool
    """Whether the crawl had ``HTTPCACHE_GZIP``."""

    def read(self, name: str, max_size: int) -> bytes:
        content = (self.folder / name).read_bytes()
        return gunzip(content, max_size=max_size) if self.is_packed else content


def recorded_pages(
    folder: Path, settings: BaseSettings, tell: Callable[[str], None]
) -> Iterator[tuple[CorpusPage, str]]:
    """Yield the HTML pages that the cache in *folder* holds, each with its text, in the order of the crawl.

    Of a page that was fetched several times the last one. *tell* takes a line on what could not be read;
    :class:`ConfigError` if there is no page.
    """
    if any(folder.glob("*.db*")):
        raise ConfigError(
            f"{folder} is a cache of DbmCacheStorage; crawl with FilesystemCacheStorage, Scrapy's default"
        )
    compression = _compression(settings)
    max_size = settings.getint("DOWNLOAD_MAXSIZE")
    entries, damaged = _entries(folder, max_size)
    found = False
    for entry in sorted(entries):
        try:
            response = compression.process_response(Request(entry.url), _downloaded(entry, max_size))
            html = _html(response) if isinstance(response, HtmlResponse) else None
        except Exception:  # noqa: BLE001 - each library that unpacks or decodes has errors of its own
            damaged += 1
            continue
        if html is not None:
            found = True
            yield CorpusPage(entry.url, entry.url, None), html
    if damaged:
        tell(f"left out {damaged} responses in {folder} that cannot be read")
    if not found:
        raise ConfigError(f"{folder} holds no recorded page; crawl with HTTPCACHE_ENABLED=True, and {_REMEDY}")


def _entries(folder: Path, max_size: int) -> tuple[list[_Entry], int]:
    """Return the last good response of each address, and how many cannot be read."""
    last: dict[str, _Entry] = {}
    damaged = 0
    for path in sorted(folder.glob("**/meta")):
        try:
            content = path.read_bytes()
            packed = content.startswith(_GZIP)
            meta = ast.literal_eval(to_unicode(gunzip(content, max_size=max_size) if packed else content))
            entry = _Entry(float(meta["timestamp"]), path.parent, str(meta["response_url"]), packed)
            is_good = meta["status"] == 200 and meta["method"] == "GET"  # noqa: PLR2004
        except _UNREADABLE:
            damaged += 1
            continue
        if is_good and (entry.url not in last or last[entry.url] < entry):
            last[entry.url] = entry
    return [*last.values()], damaged


def _compression(settings: BaseSettings) -> HttpCompressionMiddleware:
    crawler = Crawler(Spider, Settings(settings))
    # As a crawl would begin; it is never run.
    crawler.stats = StatsCollector(crawler)
    return HttpCompressionMiddleware(crawler=crawler)


def _downloaded(entry: _Entry, max_size: int) -> Response:
    """Return the response as it was downloaded: its body may be packed."""
    headers = Headers(headers_raw_to_dict(entry.read("response_headers", max_size)) or {})
    body = entry.read("response_body", max_size)
    kind = responsetypes.from_args(headers=headers, url=entry.url, body=body)
    return kind(entry.url, headers=headers, body=body)


def _html(response: HtmlResponse) -> str:
    if response.encoding in NO_CHARSETS:
        raise ValueError(response.encoding)
    return response.text
