"""A corpus -> its pages: JSON Lines, plain or packed, whose labels tell which pages tell the same story.

A page is an object with ``html`` and, if known, ``cluster``: pages of one cluster tell the same story. Its address is
``url``, or ``host`` and ``path``; ``id`` is a name of its own; ``optional`` is true where dropping and keeping it are
both right. What else there is (``kind``, ``text``) is for others.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from dedup_middleware import bounded
from dedup_middleware.budget import Budget, UncheckableError
from dedup_middleware.errors import ConfigError, UnreadableError
from dedup_middleware.extraction import parse, weighted_dom
from dedup_middleware.extraction.blocks import elements_of
from dedup_middleware.extraction.features import description_of
from dedup_middleware.fingerprints.method import Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

# Bytes of a line: more than twice of a page that a crawl checks by default.
_MAX_LINE = 24 * 2**20
_TEXTS = ("html", "url", "host", "path")
_LABELS = ("id", "cluster")
# Fields of a record that no page of a corpus has.
_OF_RECORDS = {"verdict", "outcome", "url"}


@dataclass(frozen=True, slots=True)
class CorpusPage:
    """What is known of a page beside its HTML."""

    id: str
    url: str
    cluster: str | None
    """Pages of one cluster tell the same story; ``None`` where nobody knows."""
    is_optional: bool = False
    """Whether dropping and keeping it are both right."""


def read_pages(path: Path) -> Iterator[tuple[CorpusPage, str]]:
    """Yield the pages of the corpus at *path*, each with its HTML, in order.

    Either all of them have a cluster or none has. :class:`ConfigError` names file, line and remedy.
    """
    lines_of_ids: dict[str, int] = {}
    labelled = None
    for number, line in _lines(path):
        where = f"{path}, line {number}"
        row = _row(where, line)
        page = _page(where, row, number)
        if (other := lines_of_ids.setdefault(page.id, number)) != number:
            raise ConfigError(f"{where}: the id {page.id!r} is that of line {other}; give each page its own")
        labelled = page.cluster is not None if labelled is None else labelled
        if labelled != (page.cluster is not None):
            raise ConfigError(f"{where}: some pages have a cluster and others have none; label all pages, or none")
        yield page, row["html"]
    if labelled is None:
        raise ConfigError(f"{path} is empty; write one page a line, a JSON object with html and cluster")


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    number = 0
    try:
        with bounded.opened(path) as file:
            for number, line in enumerate(bounded.lines(file, _MAX_LINE), start=1):
                if line is None:
                    raise ConfigError(f"{path}, line {number}: it has more than {_MAX_LINE} bytes; leave it out")
                if text := line.decode("utf-8-sig" if number == 1 else "utf8").strip():
                    yield number, text
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{path}, line {number}: it is not in UTF-8 (byte {error.start}); write it in UTF-8, plain or packed by "
            "gzip or xz"
        ) from error
    except UnreadableError as error:
        raise ConfigError(f"{path} cannot be unpacked after line {number} ({error}); pack it again") from error
    except OSError as error:
        raise ConfigError(f"{path} cannot be read ({error.strerror or error}); name a file of JSON Lines") from error
    except ValueError as error:  # a NUL in the path
        raise ConfigError(f"{str(path)!r} cannot be read ({error}); name a file of JSON Lines") from error


def _row(where: str, line: str) -> dict[str, Any]:
    try:
        row = bounded.loads(line)
    except UnreadableError as error:
        raise ConfigError(f"{where}: it is no JSON ({error}); write one page a line, a JSON object") from error
    if not isinstance(row, dict):
        raise ConfigError(f"{where}: it is no JSON object; write one page a line, as an object with html and cluster")
    if row.keys() >= _OF_RECORDS and "html" not in row:
        raise ConfigError(
            f"{where}: this is a log of records, which keeps no pages; crawl with HTTPCACHE_ENABLED=True and name the "
            "folder of the spider's cache, as in .scrapy/httpcache/news"
        )
    return row


def _page(where: str, row: dict[str, Any], number: int) -> CorpusPage:
    for name in _TEXTS:
        if not isinstance(row.get(name, ""), str):
            raise ConfigError(f"{where}: its {name} is no text; write a JSON string")
    for name in _LABELS:
        if isinstance(row.get(name), (bool, float, list, dict)):
            raise ConfigError(f"{where}: its {name} is no name; write a JSON string, or a whole number")
    if not isinstance(row.get("optional"), (bool, type(None))):
        raise ConfigError(f"{where}: its optional is neither true nor false; write one of them")
    if "html" not in row:
        raise ConfigError(f"{where}: a page without html; write the page as it was decoded")
    own = row.get("id")
    id_ = str(number) if own is None else str(own)
    # One that a page lacks must be no other page's.
    url = row.get("url") or (f"http://{row['host']}{row.get('path', '/')}" if row.get("host") else f"page:{id_}")
    cluster = row.get("cluster")
    return CorpusPage(id_, url, None if cluster is None else str(cluster), bool(row.get("optional")))


class PreparedPage(NamedTuple):
    """What is handed to a process."""

    text: Text
    """Without paragraphs where the page has no main text: then no method is asked."""
    html: str
    """Empty where nobody needs it."""


def text_of(html: str, url: str) -> Text:
    """Return what methods see of a page, as the default extraction finds it. 1 to 8 ms."""
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
            text = text_of(html, page.url)
            row = [*text, html if with_html else ""]
            file.write(json.dumps(row) + "\n")
            pages.append(page)
            read()
    return pages


def prepared_pages(path: Path) -> Iterator[PreparedPage]:
    """Yield the pages that `prepare` has written to *path*."""
    with path.open(encoding="ascii") as file:
        for line in file:
            paragraphs, title, url, description, elements, html = json.loads(line)
            yield PreparedPage(Text(tuple(paragraphs), title, url, description, tuple(elements)), html)
