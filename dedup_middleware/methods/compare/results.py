"""Scores what methods have dropped, and returns the results as tables and as values for JSON."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

from dedup_middleware.text.terminal import Table

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from dedup_middleware.methods.compare.corpus import CorpusPage
    from dedup_middleware.methods.compare.measure import Measurement

# Digits of a score.
_DIGITS = 4
_SCORES = ("precision", "recall", "F1", "lost")
# Pages on which methods disagree, in a table; JSON has them all.
_MOST_DISPUTED = 50


class Scores(NamedTuple):
    """How right the drops of a corpus were.

    Of a cluster's n pages one must be kept and n - 1 should be dropped, in any choice. Optional pages are not counted;
    but if one of them is kept, all others of its cluster may be dropped.
    """

    precision: float
    """Right drops / drops, 0-1; 1 if nothing was dropped."""
    recall: float
    """Copies that were dropped / copies, 0-1: of a cluster at most n - 1 are; 1 without copies."""
    f1: float
    """Their harmonic mean."""
    lost: int
    """Clusters of which nothing was kept."""


def scores(pages: Sequence[CorpusPage], originals: Sequence[int]) -> Scores:
    """Return the scores of *originals*: for each page the number of the page for which it was dropped, or its own."""
    dropped: dict[str | None, list[bool]] = defaultdict(list)
    has_kept_optional = set()
    for number, (page, original) in enumerate(zip(pages, originals, strict=True)):
        if not page.is_optional:
            dropped[page.cluster].append(original != number)
        elif original == number:
            has_kept_optional.add(page.cluster)
    drops = right = found = copies = lost = 0
    for cluster, gone in dropped.items():
        drops += sum(gone)
        right += min(sum(gone), len(gone) - (cluster not in has_kept_optional))
        # A page that may be dropped, because an optional one was kept, makes up for no copy of another cluster.
        found += min(sum(gone), len(gone) - 1)
        copies += len(gone) - 1
        lost += all(gone) and cluster not in has_kept_optional
    precision = right / drops if drops else 1.0
    recall = found / copies if copies else 1.0
    both = precision + recall
    f1 = 2 * precision * recall / both if both else 0.0
    return Scores(round(precision, _DIGITS), round(recall, _DIGITS), round(f1, _DIGITS), lost)


class MethodRow(NamedTuple):
    """A method and its results."""

    method: str
    scores: Scores | None
    """``None`` if the pages have no clusters."""
    measured: Measurement

    @property
    def drops(self) -> set[int]:
        """The numbers of the dropped pages."""
        return {number for number, original in enumerate(self.measured.originals) if original != number}

    def as_dict(self) -> dict[str, Any]:
        """Return the row for JSON."""
        known = dict.fromkeys(Scores._fields) if self.scores is None else self.scores._asdict()
        costs = ("ms_per_page", "bytes_per_page", "peak_mb")
        return {"method": self.method, **known, **{name: getattr(self.measured, name) for name in costs}}

    def cells(self) -> list[str]:
        """Return the scores for a table."""
        return [] if self.scores is None else [*(f"{share:.4f}" for share in self.scores[:3]), str(self.scores.lost)]


def rows_of(pages: Sequence[CorpusPage], measured: Mapping[str, Measurement]) -> list[MethodRow]:
    """Return a row for each method that was *measured*."""
    labelled = pages[0].cluster is not None
    return [
        MethodRow(name, scores(pages, each.originals) if labelled else None, each) for name, each in measured.items()
    ]


def comparison_table(rows: Sequence[MethodRow]) -> Table:
    """Return scores and costs of each method; without clusters, the number of pages it drops, and costs."""
    labelled = rows[0].scores is not None
    header = ["method", *(_SCORES if labelled else ["drops"]), "ms/page", "bytes/page", "peak MB"]
    lines = []
    for row in rows:
        each = row.measured
        found = row.cells() if labelled else [str(len(row.drops))]
        peak = "-" if each.peak_mb is None else f"{each.peak_mb:.1f}"
        lines.append([row.method, *found, f"{each.ms_per_page:.2f}", f"{each.bytes_per_page:.0f}", peak])
    return Table(header, lines)


def sweep_table(option: str, values: Sequence[str], rows: Sequence[MethodRow]) -> Table:
    """Return the scores of each of the *values* of an *option*."""
    lines = [[value, *row.cells()] for value, row in zip(values, rows, strict=True)]
    return Table([option, *_SCORES], lines, names=0)


# --- pages without clusters


def pairs(drops: Mapping[str, AbstractSet[int]]) -> Iterator[dict[str, Any]]:
    """Yield each two of the methods whose *drops* these are, with the pages that both drop, and that either does.

    Their agreement is both / either; 1 if neither drops anything.
    """
    for (one, ours), (other, theirs) in combinations(drops.items(), 2):
        both, either = len(ours & theirs), len(ours | theirs)
        agreement = round(both / either, _DIGITS) if either else 1.0
        yield {"method": one, "other": other, "both": both, "either": either, "agreement": agreement}


def disputed(drops: Mapping[str, AbstractSet[int]]) -> Iterator[tuple[int, list[str]]]:
    """Yield the pages on which methods disagree, in their order, and the methods that drop each."""
    for number in sorted(set().union(*drops.values())):
        by = [name for name, numbers in drops.items() if number in numbers]
        if len(by) < len(drops):
            yield number, by


def agreement_table(drops: Mapping[str, AbstractSet[int]]) -> Table:
    """Return how many drops each two methods have in common; on the diagonal, how many each has."""
    names = enumerate(drops, start=1)
    lines = [[str(n), one, *(str(len(drops[one] & theirs)) for theirs in drops.values())] for n, one in names]
    return Table(["", "drops in common", *map(str, range(1, len(drops) + 1))], lines, names=2)


def disputed_table(pages: Sequence[CorpusPage], drops: Mapping[str, AbstractSet[int]]) -> tuple[Table, int]:
    """Return the pages on which methods disagree, and how many more there are than the table has."""
    found = list(disputed(drops))
    # Those most in doubt: dropped by about half of the methods.
    shown = sorted(found, key=lambda page: abs(2 * len(page[1]) - len(drops)))[:_MOST_DISPUTED]
    numbered = {name: str(n) for n, name in enumerate(drops, start=1)}

    def numbers(names: Collection[str]) -> str:
        return " ".join(number for name, number in numbered.items() if name in names)

    lines = [[pages[number].url, numbers(by), numbers(drops.keys() - by)] for number, by in sorted(shown)]
    return Table(["disputed page", "dropped by", "kept by"], lines, names=3), len(found) - len(shown)


def unlabelled_dict(
    pages: Sequence[CorpusPage], rows: Sequence[MethodRow], drops: Mapping[str, set[int]]
) -> dict[str, Any]:
    """Return all of this for JSON."""
    return {
        "methods": [row.as_dict() for row in rows],
        "agreement": [*pairs(drops)],
        "disputed": [
            {
                "id": pages[number].id,
                "url": pages[number].url,
                "dropped_by": by,
                "kept_by": [name for name in drops if name not in by],
            }
            for number, by in disputed(drops)
        ],
    }
