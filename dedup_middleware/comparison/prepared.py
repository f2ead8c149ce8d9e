"""Pages as methods see them, extracted once for all of them and kept in a file for the processes that measure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from dedup_middleware.budget import Budget, UnjudgeableError
from dedup_middleware.extraction import parse
from dedup_middleware.extraction.extractor import weighted_dom
from dedup_middleware.extraction.features import description_of
from dedup_middleware.extraction.structure import elements_of
from dedup_middleware.fingerprints.literature.method import Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from dedup_middleware.comparison.corpus import CorpusPage


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
    except UnjudgeableError:
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
