"""Labelled pages: how they are written down, and how what was done with them is scored.

A corpus is a file of JSON Lines, plain or packed with xz (``.xz``), one page a line, in the order of the crawl:

- ``id``, ``html``: a name of its own, and the page as it was decoded;
- ``text``: the paragraphs of its article, or all of them in one string; empty or missing where they are unknown;
- ``host``, ``path``: its address, ``http://{host}{path}``;
- ``cluster``: pages of one cluster tell the same story, so that one of them must be kept and the others dropped;
- ``kind``: how the page came to be ("verbatim", "templated"), to say which kinds go wrong; may be missing;
- ``optional``: true where dropping and keeping the page are both right; may be missing.

Where pages overlap, the right verdict depends on the order of the crawl: a trimmed copy that follows the whole story is
a duplicate, a trimmed copy that precedes it is a story of its own. `relabelled` returns the labels for an order. It
reads further fields, all of which may be missing:

- ``own``, ``of``: the cluster of the page alone, and the cluster that the page was made from;
- ``may``: true where the page is optional in every order. With ``own``, ``of``, ``may`` or ``site``, ``optional`` holds
  for the given order only; without these fields it holds for every order;
- ``facts``: texts that count beside ``text``; ``nt``: true where the first paragraph, a title, does not count;
- ``shingle``: true where runs of five words are compared, because quoted lines are wrapped again.

`extraction.py` reads the first three fields, `detection.py` all of them.
"""

from __future__ import annotations

import argparse
import collections
import json
import lzma
import re
import unicodedata
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import xxhash

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
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
    own: str = ""
    of: str = ""
    is_always_optional: bool = False
    is_shingled: bool = False
    pieces: Mapping[str, int] = field(default_factory=dict)
    """The sentences, or runs of five words, that the page contains, with their weights."""

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
    text = tuple(text.split("\n") if isinstance(text, str) else text)
    is_made = not _MADE.isdisjoint(row)
    return CorpusPage(
        id=row["id"],
        html=row["html"],
        text=text,
        host=row.get("host", ""),
        path=row.get("path", ""),
        cluster=row.get("cluster", ""),
        kind=row.get("kind", ""),
        optional=bool(row.get("optional")),
        own=row.get("own", row.get("cluster", "")),
        of=row.get("of", ""),
        is_always_optional=bool(row.get("may") or (row.get("optional") and not is_made)),
        is_shingled=bool(row.get("shingle")),
        pieces=_shingles(text)
        if row.get("shingle")
        else _sentences([*text[bool(row.get("nt")) :], *row.get("facts", ())]),
    )


# --- labels

# With these fields, ``optional`` holds for the given order only.
_MADE = frozenset({"own", "of", "may", "site"})
# Kinds of new versions: a site's own may be kept or dropped.
_EDITED = ("edit", "typo", "ocr", "light", "para", "repara", "heads", "rounded")
#: An earlier page with this share of the text that a page was made of makes it a duplicate.
SAME = 0.98
#: And this share of runs of five words is all of a page: quotes are trimmed and wrapped.
ALL_SHINGLES = 0.93
_SENTENCE_END = re.compile(r"(?<=[.!?。！？;；])\s+|(?<=[。！？；])|\n")
_QUOTE = re.compile(r"(?m)^[>|\s]+")
_NO_LETTER = re.compile(r"[\W_]+")
_SHINGLE = 5


def relabelled(pages: Iterable[CorpusPage]) -> list[CorpusPage]:
    """Return *pages* with the cluster and the optionality that are right in this order of the crawl.

    - A page made from a cluster belongs to it if an earlier page of that cluster contains its text.
    - The first page of a cluster is optional if an earlier page of another cluster contains all of it.
    - A site's new version of its page, and a brief that follows its story, are optional.
    """
    done: list[CorpusPage] = []
    containing: dict[str, list[int]] = collections.defaultdict(list)
    told, hosts = set[str](), dict[str, set[str]]()
    for page in pages:
        weight, held = sum(page.pieces.values()), collections.Counter[int]()
        for piece, piece_weight in page.pieces.items():
            held.update(dict.fromkeys(containing[piece], piece_weight))
            containing[piece].append(len(done))
        earlier = [(done[number], share / weight) for number, share in held.items()]
        sources = (e.cluster for e, share in earlier if share >= SAME and page.of in (e.cluster, e.of))
        cluster = next(sources, page.own) if page.of else page.own
        all_of_it = ALL_SHINGLES if page.is_shingled else 1
        is_covered = cluster not in told and any(s >= all_of_it and e.cluster != cluster for e, s in earlier)
        is_optional = page.is_always_optional or is_covered
        if not is_optional:
            told.add(cluster)
        is_brief = page.kind == "brief" and cluster.removesuffix("-brief") in hosts
        is_version = page.kind.startswith(_EDITED) and page.host in hosts.get(cluster, ())
        hosts.setdefault(cluster, set()).add(page.host)
        done.append(replace(page, cluster=cluster, optional=is_optional or is_brief or is_version))
    return done


def _sentences(texts: Iterable[str]) -> dict[str, int]:
    sentences = (s for text in texts for s in _SENTENCE_END.split(text))
    letters = (_NO_LETTER.sub("", unicodedata.normalize("NFKC", s).casefold()) for s in sentences)
    return {sentence: len(sentence) for sentence in letters if sentence}


def _shingles(texts: Iterable[str]) -> dict[str, int]:
    words = re.findall(r"\w+", _QUOTE.sub(" ", " ".join(texts).casefold()))
    return {" ".join(words[i : i + _SHINGLE]): 1 for i in range(max(1, len(words) - _SHINGLE + 1))}


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


class Score(NamedTuple):
    """How well a crawl has done."""

    lost: int
    """Clusters of which no page was kept."""
    found: int
    """Copies that were dropped."""
    copies: int
    """Copies that should go: of a cluster's n pages n - 1, whichever they are."""


def score(pages: Iterable[CorpusPage], kept: AbstractSet[str]) -> Score:
    """Return how right it was to keep just the pages with the ids *kept*.

    Optional pages are not counted, but one that was kept has told the story: then all the others may go.
    """
    clusters, told = _clusters(pages, kept)
    lost = found = copies = 0
    for cluster, ids in clusters.items():
        dropped = sum(id_ not in kept for id_ in ids)
        lost += cluster not in told and dropped == len(ids)
        found += min(dropped, len(ids) - 1)
        copies += len(ids) - 1
    return Score(lost, found, copies)


def drop_agreement(pages: Iterable[CorpusPage], kept: AbstractSet[str]) -> Agreement:
    """Return how right it was to keep just the pages with the ids *kept*: right drops / drops, and found / copies.

    Where an optional page has told the story, all the others may go, which is right; but they are no more copies.
    """
    pages = [*pages]
    clusters, told = _clusters(pages, kept)
    gone = {cluster: sum(id_ not in kept for id_ in ids) for cluster, ids in clusters.items()}
    right = sum(min(number, len(clusters[each]) - (each not in told)) for each, number in gone.items())
    drops, (_, found, copies) = sum(gone.values()), score(pages, kept)
    return Agreement(right / drops if drops else 1.0, found / copies if copies else 1.0)


def lost_pages(pages: Iterable[CorpusPage], kept: AbstractSet[str]) -> int:
    """Return of how many clusters no page was *kept*."""
    return score(pages, kept).lost


def _clusters(pages: Iterable[CorpusPage], kept: AbstractSet[str]) -> tuple[dict[str, list[str]], set[str]]:
    """Return the ids of each cluster, optional pages apart, and the clusters that an optional page has told."""
    clusters: dict[str, list[str]] = collections.defaultdict(list)
    told = set()
    for page in pages:
        if not page.optional:
            clusters[page.cluster].append(page.id)
        elif page.id in kept:
            told.add(page.cluster)
    return clusters, told


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


# --- commands


def parser_of(description: str | None, *, corpora: str = "", **defaults: float | str) -> argparse.ArgumentParser:
    """Return a parser of options with these *defaults*: flags for those that are false, and how many *corpora*."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    if corpora:
        parser.add_argument("corpora", metavar="CORPUS", nargs=corpora, type=Path)
    for name, default in defaults.items():
        how: dict[str, Any] = {"type": type(default), "default": default}
        parser.add_argument(f"--{name.replace('_', '-')}", **({"action": "store_true"} if default is False else how))
    return parser


def command(description: str | None, variants: Collection[str]) -> argparse.ArgumentParser:
    """Return a parser of what both commands take: corpora, and which of the *variants* to measure."""
    parser = parser_of(description, corpora="+")
    parser.add_argument("--only", metavar="VARIANT", action="append", choices=variants, help="may be given repeatedly")
    return parser


def name_of(corpus: Path) -> str:
    """Return the name of the corpus at this path, for a table."""
    return corpus.name.removesuffix(".xz").removesuffix(".jsonl")


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table in Markdown."""
    return "\n".join([rule(header), *map(line, rows)])


def rule(header: Sequence[str]) -> str:
    """Return the first two lines of a table in Markdown."""
    return f"{line(header)}\n{line(['---'] * len(header))}"


def line(cells: Iterable[object]) -> str:
    """Return a line of a table in Markdown."""
    return f"| {' | '.join(map(str, cells))} |"
