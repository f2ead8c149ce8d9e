"""Labelled pages: how they are written down, and how what was done with them is scored.

A corpus is a file of JSON Lines, plain or packed with xz (``.xz``), one page a line, in the order of the crawl:

- ``id``, ``html``: a name of its own, and the page as it was decoded;
- ``text``: the paragraphs of its article, or all of them in one string; empty or missing where nobody knows them;
- ``host``, ``path``: its address, ``http://{host}{path}``;
- ``cluster``: pages of one cluster tell the same story, so that one of them must be delivered and the others dropped;
- ``kind``: how the page came to be ("verbatim", "templated"), to say which kinds go wrong; may be missing;
- ``optional``: true where dropping and keeping the page are both right; may be missing.

`extraction.py` reads the first three fields, `detection.py` all of them.
"""

from __future__ import annotations

import argparse
import collections
import json
import lzma
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import xxhash
from lxml import etree
from parsel import Selector

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from collections.abc import Set as AbstractSet


class CorpusError(Exception):
    """A file that cannot be read as a corpus; the message is one line."""


@dataclass(frozen=True)
class CorpusPage:
    """One line of a corpus; fields that only `detection.py` reads are empty where the corpus has none."""

    id: str
    html: str
    text: tuple[str, ...]
    host: str
    path: str
    cluster: str
    kind: str
    optional: bool

    @property
    def url(self) -> str:
        return f"http://{self.host}{self.path}"


ARTICLE_FIELDS = ("id", "html")
CRAWL_FIELDS = ("id", "html", "host", "path", "cluster")


def read_corpus(path: Path, required: Collection[str]) -> list[CorpusPage]:
    """Return the pages of the corpus at *path*, each of which must have the *required* fields; else `CorpusError`."""
    pages = []
    try:
        with lzma.open(path, "rt", encoding="utf8") if path.suffix == ".xz" else path.open(encoding="utf8") as lines:
            for number, line in enumerate(lines, start=1):
                row = json.loads(line)
                missing = [name for name in required if row.get(name) is None]
                if missing:
                    raise CorpusError(f"{path}, line {number}: a page without {', '.join(missing)}")
                pages.append(_page(row))
    except OSError as error:
        raise CorpusError(f"{path} cannot be read: {error.strerror or error}") from error
    except (EOFError, lzma.LZMAError, ValueError, TypeError, AttributeError) as error:
        raise CorpusError(f"{path} is no corpus: after line {len(pages)}: {error}") from error
    if not pages:
        raise CorpusError(f"{path} is empty")
    return pages


def _page(row: dict[str, Any]) -> CorpusPage:
    text = row.get("text") or ()
    return CorpusPage(
        id=row["id"],
        html=row["html"],
        text=tuple(text.split("\n") if isinstance(text, str) else text),
        host=row.get("host", ""),
        path=row.get("path", ""),
        cluster=row.get("cluster", ""),
        kind=row.get("kind", ""),
        optional=bool(row.get("optional")),
    )


def half_of(page: CorpusPage) -> int:
    """Return which half of its corpus *page* is in, 0 or 1: what is learned from is in the first one."""
    return xxhash.xxh32_intdigest(page.id.encode("utf8", "surrogatepass")) % 2


# --- scores


@dataclass(frozen=True)
class Agreement:
    """How well what was found agrees with what is true, each 0-1."""

    precision: float
    recall: float

    @property
    def f1(self) -> float:
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0


def drop_agreement(pages: Iterable[CorpusPage], delivered: AbstractSet[str]) -> Agreement:
    """Return how right it was to deliver just the pages with the ids *delivered*.

    Of a cluster's n pages n - 1 should go, whichever they are. Optional pages are not counted, but one that was
    delivered has told the story: then all the others may go.
    """
    clusters, told = _clusters(pages, delivered)
    drops = right = should = 0
    for cluster, ids in clusters.items():
        dropped = sum(id_ not in delivered for id_ in ids)
        drops += dropped
        right += min(dropped, len(ids) - (cluster not in told))
        should += len(ids) - 1
    return Agreement(right / drops if drops else 1.0, min(1.0, right / should) if should else 1.0)


def lost_stories(pages: Iterable[CorpusPage], delivered: AbstractSet[str]) -> int:
    """Return of how many clusters no page was *delivered*."""
    clusters, told = _clusters(pages, delivered)
    return sum(cluster not in told and delivered.isdisjoint(ids) for cluster, ids in clusters.items())


def _clusters(pages: Iterable[CorpusPage], delivered: AbstractSet[str]) -> tuple[dict[str, list[str]], set[str]]:
    """Return the ids of each cluster, optional pages apart, and the clusters that an optional page has told."""
    clusters: dict[str, list[str]] = collections.defaultdict(list)
    told = set()
    for page in pages:
        if not page.optional:
            clusters[page.cluster].append(page.id)
        elif page.id in delivered:
            told.add(page.cluster)
    return clusters, told


def wrongly_dropped(pages: Iterable[CorpusPage], delivered: AbstractSet[str]) -> collections.Counter[str]:
    """Return, by kind, how many pages were dropped that are the first of their cluster, optional pages apart."""
    seen: set[str] = set()
    wrong: collections.Counter[str] = collections.Counter()
    for page in pages:
        if page.optional:
            continue
        if page.cluster not in seen and page.id not in delivered:
            wrong[page.kind] += 1
        seen.add(page.cluster)
    return wrong


_TOKEN = re.compile(r"[\u3400-\u9fff]|[^\W_\u3400-\u9fff]+")
_GRAM = 4


def text_agreement(true: Sequence[str], found: Sequence[str]) -> Agreement:
    """Return how well the paragraphs *found* agree with the *true* ones: 4-grams of words and Han characters."""
    a, b = grams(true), grams(found)
    hits = sum((a & b).values())
    precision = hits / sum(b.values()) if b else float(not a)
    return Agreement(precision, hits / sum(a.values()) if a else 1.0)


def grams(paragraphs: Sequence[str]) -> collections.Counter[tuple[str, ...]]:
    """Return the 4-grams of words and Han characters in *paragraphs*; of fewer than four of these, all of them."""
    tokens = _TOKEN.findall("\n".join(paragraphs).casefold())
    starts = range(max(1, len(tokens) - _GRAM + 1)) if tokens else ()
    return collections.Counter(tuple(tokens[i : i + _GRAM]) for i in starts)


# --- pages


def parsed(html: str) -> etree._Element:
    """Return the root of the tree that a callback gets: ``response.selector.root``."""
    root = Selector(text=html.encode("utf8", "replace").decode()).root
    assert isinstance(root, etree._Element)
    return root


_INLINE_TAGS = "a abbr b bdi bdo cite code del em font i ins kbd label mark q s small span strong sub sup u"
_INLINE = frozenset(_INLINE_TAGS.split())
_UNSEEN = frozenset({"head", "noscript", "script", "select", "style", "template", "textarea"})
_WHITE_SPACE = re.compile(r"\s+")


def whole_body(html: str) -> list[str]:
    """Return all text that the page *html* shows, menus and comments included, a line for each block."""
    pieces: list[str] = []
    unseen: etree._Element | None = None
    for event, element in etree.iterwalk(parsed(html), events=("start", "end", "comment", "pi")):
        if event == "start" and unseen is None and element.tag in _UNSEEN:
            unseen = element
        if unseen is None and event in ("start", "end") and element.tag not in _INLINE:
            pieces.append("\n")
        if event != "start" and element is unseen:
            unseen = None
        text = element.text if event == "start" else element.tail
        if unseen is None and text:
            pieces.append(_WHITE_SPACE.sub(" ", text))
    return [stripped for line in "".join(pieces).split("\n") if (stripped := line.strip())]


# --- commands


def command(description: str | None, variants: Collection[str]) -> argparse.ArgumentParser:
    """Return a parser of what both commands take: corpora, and which of the *variants* to measure."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", metavar="CORPUS", nargs="+", type=Path)
    parser.add_argument("--only", metavar="VARIANT", action="append", choices=variants, help="may be given repeatedly")
    return parser


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)
