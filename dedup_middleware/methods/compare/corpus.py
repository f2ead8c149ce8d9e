"""Reads a corpus: JSON Lines, plain or packed, with a page a line and labels for pages of the same text.

A page is an object with ``html`` and, if it is known, ``cluster``: pages of one cluster repeat each other. Its URL is
``url``, or ``host`` and ``path``; ``id`` is a name of its own; ``optional`` is true where dropping and keeping the page
are both right. Other fields are ignored.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from dedup_middleware.common import bounded
from dedup_middleware.common.budget import Budget, UncheckableError
from dedup_middleware.errors import ConfigError, UnreadableError
from dedup_middleware.extraction import parse, weighted_dom
from dedup_middleware.extraction.blocks import elements_of
from dedup_middleware.extraction.features import description_of
from dedup_middleware.methods.method import Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

# Bytes of a line: more than twice of a page that a crawl checks by default.
_MAX_LINE = 24 * 2**20
_STRING = ("a string", (str,))
_NAME = ("a string or a whole number", (str, int))
_FIELDS = {
    **dict.fromkeys(("html", "url", "host", "path"), _STRING),
    **dict.fromkeys(("id", "cluster"), _NAME),
    "optional": ("true or false", (bool,)),
}
# Fields of a record that no page of a corpus has.
_OF_RECORDS = {"verdict", "outcome", "url"}


class CorpusPage(NamedTuple):
    """The labels of a page."""

    id: str
    url: str
    cluster: str | None
    """Pages of one cluster repeat each other; ``None`` if that is unknown."""
    is_optional: bool = False
    """Whether dropping and keeping the page are both right."""


def read_pages(path: Path) -> Iterator[tuple[CorpusPage, str]]:
    """Yield the pages of the corpus at *path*, each with its HTML, in order.

    Either all of them have a cluster, or none. `ConfigError` contains file, line and remedy.
    """
    lines_of_ids: dict[str, int] = {}
    labelled = None
    for number, line in _lines(path):
        where = f"{path}, line {number}"
        page, html = _page(where, line, number)
        if (other := lines_of_ids.setdefault(page.id, number)) != number:
            raise ConfigError(f"{where}: the id {page.id!r} is that of line {other}", "give each page its own")
        labelled = page.cluster is not None if labelled is None else labelled
        if labelled != (page.cluster is not None):
            raise ConfigError(f"{where}: some pages have a cluster and others do not", "label all pages, or none")
        yield page, html
    if labelled is None:
        raise ConfigError(f"{path} is empty", "write a page a line, as a JSON object with html and cluster")


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    number = 0
    try:
        with bounded.opened(path) as file:
            for number, line in enumerate(bounded.lines(file, _MAX_LINE), start=1):
                if line is None:
                    raise ConfigError(
                        f"{path}, line {number}: the line has more than {_MAX_LINE} bytes", "leave it out"
                    )
                if text := line.decode("utf-8-sig" if number == 1 else "utf8").strip():
                    yield number, text
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(
            f"{path} cannot be read near line {number} ({reason})",
            "name a file of JSON Lines in UTF-8, plain or packed by gzip or xz",
        ) from error


def _page(where: str, line: str, number: int) -> tuple[CorpusPage, str]:
    try:
        row = bounded.loads(line)
    except UnreadableError as error:
        raise ConfigError(f"{where}: {error}", "write a page a line, as a JSON object with html and cluster") from error
    if not isinstance(row, dict):
        raise ConfigError(f"{where}: this is not a JSON object", "write a page as an object with html and cluster")
    for name, (kind, types) in _FIELDS.items():
        # `isinstance` would take true for a whole number.
        if row.get(name) is not None and type(row[name]) not in types:
            raise ConfigError(f"{where}: {name} must be {kind}, got {row[name]!r:.50}")
    if row.get("html") is None:
        if row.keys() >= _OF_RECORDS:
            raise ConfigError(
                f"{where}: these are records, which contain no pages",
                "crawl with HTTPCACHE_ENABLED=True and "
                "name the folder of the spider's cache, as in .scrapy/httpcache/news",
            )
        raise ConfigError(f"{where}: the page has no html", "write the page as it was decoded")
    return _labels(row, number), row["html"]


def _labels(row: dict[str, Any], number: int) -> CorpusPage:
    own, cluster = row.get("id"), row.get("cluster")
    id_ = str(number) if own is None else str(own)
    # A page without a URL gets one that no other page has.
    url = row.get("url") or (f"http://{row['host']}{row.get('path') or '/'}" if row.get("host") else f"page:{id_}")
    return CorpusPage(id_, url, None if cluster is None else str(cluster), bool(row.get("optional")))


class PreparedPage(NamedTuple):
    """A page as a process that measures a method gets it."""

    text: Text
    """Without paragraphs if the page has no main text; such a page is kept."""
    html: str
    """Empty if it is not needed."""


def text_of(html: str, url: str) -> Text:
    """Return the text of a page as methods get it, by the default extraction. 1 to 8 ms."""
    root = parse(html)
    try:
        extracted = weighted_dom(root, Budget())
    except UncheckableError:
        return Text((), url=url)
    paragraphs = tuple(extracted.paragraphs)
    return Text(paragraphs, extracted.features.title, url, description_of(root), elements_of(root, paragraphs))


def prepare(
    corpus: Iterable[tuple[CorpusPage, str]], target: Path, *, with_html: bool, read: Callable[[], None]
) -> list[CorpusPage]:
    """Write the pages of *corpus* to *target* for `prepared_pages`, call *read* after each, and return their labels."""
    pages = []
    with target.open("w", encoding="ascii") as file:
        for page, html in corpus:
            file.write(json.dumps([*text_of(html, page.url), html if with_html else ""]) + "\n")
            pages.append(page)
            read()
    return pages


def prepared_pages(path: Path) -> Iterator[PreparedPage]:
    """Yield the pages that `prepare` has written to *path*."""
    with path.open(encoding="ascii") as file:
        for line in file:
            paragraphs, title, url, description, elements, html = json.loads(line)
            yield PreparedPage(Text(tuple(paragraphs), title, url, description, tuple(elements)), html)
