"""What is shown of a comparison, as tables and as plain values for JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from dedup_middleware.methods.compare.scoring import Scores, disputed, dropped, pairs, scores
from dedup_middleware.methods.compare.trial import LENGTHS
from dedup_middleware.terminal import Table

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from dedup_middleware.methods.compare.corpus import CorpusPage
    from dedup_middleware.methods.compare.worker import Measured

_UNKNOWN = "-"
# Pages on which methods disagree, in a table; JSON has them all.
_MOST_DISPUTED = 50


class Row(NamedTuple):
    """A method and what came of it."""

    method: str
    scores: Scores | None
    """``None`` where nobody knows what is right."""
    measured: Measured

    def as_dict(self) -> dict[str, Any]:
        """Return the row for JSON."""
        known = dict.fromkeys(Scores._fields) if self.scores is None else self.scores._asdict()
        costs = ("ms_per_page", "bytes_per_page", "peak_mb")
        return {"method": self.method, **known, **{name: getattr(self.measured, name) for name in costs}}


def rows_of(pages: Sequence[CorpusPage], measured: Mapping[str, Measured]) -> list[Row]:
    """Return a row for each method that was *measured*."""
    labelled = pages[0].cluster is not None
    return [Row(name, scores(pages, each.originals) if labelled else None, each) for name, each in measured.items()]


def _scores(row: Row) -> list[str]:
    if row.scores is None:
        return []
    return [*(f"{share:.4f}" for share in row.scores[:3]), str(row.scores.lost)]


_SCORES = ("precision", "recall", "F1", "lost")


def comparison_table(rows: Sequence[Row]) -> Table:
    """Return precision, recall and costs of each method; without labels, how many pages it drops, and costs."""
    labelled = rows[0].scores is not None
    header = ["method", *(_SCORES if labelled else ["drops"]), "ms/page", "bytes/page", "peak MB"]
    lines = []
    for row in rows:
        each = row.measured
        told = _scores(row) if labelled else [str(len(dropped(each.originals)))]
        peak = _UNKNOWN if each.peak_mb is None else f"{each.peak_mb:.1f}"
        lines.append([row.method, *told, f"{each.ms_per_page:.2f}", f"{each.bytes_per_page:.0f}", peak])
    return Table(header, lines)


def sweep_table(option: str, values: Sequence[str], rows: Sequence[Row]) -> Table:
    """Return what comes of each of the *values* of an *option*."""
    lines = [[value, *_scores(row)] for value, row in zip(values, rows, strict=True)]
    return Table([option, *_SCORES], lines, names=0)


def curve_table(measured: Mapping[str, Measured]) -> Table:
    """Return the milliseconds of a fingerprint by the length of its text."""
    header = ["ms per fingerprint", *(f"{length} characters" for length in LENGTHS)]
    return Table(header, [[name, *(f"{ms:.3f}" for ms in each.curve)] for name, each in measured.items()])


def curve_dicts(measured: Mapping[str, Measured]) -> list[dict[str, Any]]:
    """Return the same for JSON."""
    return [
        {"method": name, **dict(zip(map(str, LENGTHS), each.curve, strict=True))} for name, each in measured.items()
    ]


# --- where nobody knows what is right


def drops_of(rows: Sequence[Row]) -> dict[str, set[int]]:
    """Return which pages each method drops."""
    return {row.method: dropped(row.measured.originals) for row in rows}


def agreement_table(drops: Mapping[str, set[int]]) -> Table:
    """Return how many drops each two methods have in common; on the diagonal, how many each has."""
    common = {(pair.method, pair.other): str(pair.both) for pair in pairs(drops)}
    common |= {(other, one): both for (one, other), both in common.items()}
    common |= {(name, name): str(len(numbers)) for name, numbers in drops.items()}
    lines = [[str(n), one, *(common[one, other] for other in drops)] for n, one in enumerate(drops, start=1)]
    return Table(["", "drops in common", *map(str, range(1, len(drops) + 1))], lines, names=2)


def disputed_table(pages: Sequence[CorpusPage], drops: Mapping[str, set[int]]) -> tuple[Table, int]:
    """Return the pages on which methods disagree, and how many more there are than it shows."""
    found = list(disputed(drops))
    # Those most in doubt: dropped by about half of the methods.
    shown = sorted(found, key=lambda page: abs(2 * len(page[1]) - len(drops)))[:_MOST_DISPUTED]
    numbered = {name: str(n) for n, name in enumerate(drops, start=1)}
    lines = [
        [pages[number].url, _numbers(numbered, by), _numbers(numbered, drops.keys() - by)]
        for number, by in sorted(shown)
    ]
    return Table(["disputed page", "dropped by", "kept by"], lines, names=3), len(found) - len(shown)


def _numbers(numbered: Mapping[str, str], names: Collection[str]) -> str:
    return " ".join(number for name, number in numbered.items() if name in names)


def unlabelled_dict(pages: Sequence[CorpusPage], rows: Sequence[Row]) -> dict[str, Any]:
    """Return all of this for JSON."""
    drops = drops_of(rows)
    disagreements = ((pages[number], by, [name for name in drops if name not in by]) for number, by in disputed(drops))
    return {
        "methods": [row.as_dict() for row in rows],
        "agreement": [{**pair._asdict(), "agreement": pair.agreement} for pair in pairs(drops)],
        "disputed": [
            {"id": page.id, "url": page.url, "dropped_by": by, "kept_by": others} for page, by, others in disagreements
        ],
    }


# --- stories


def stories(pages: Sequence[CorpusPage], originals: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Yield, for each page that was kept, its story: that page first, then those dropped for it, in their order."""
    told: dict[int, list[int]] = {}
    for number in range(len(pages)):
        told.setdefault(_kept(number, originals), []).append(number)
    for kept, numbers in sorted(told.items()):
        ordered = [kept, *(number for number in numbers if number != kept)]
        yield {"pages": [{"id": pages[number].id, "url": pages[number].url} for number in ordered]}


def are_stories(start: bytes) -> bool:
    """Return whether a file that begins so has :func:`stories`."""
    return start.startswith(b'{"pages": [{"id": ')


def _kept(number: int, originals: Sequence[int]) -> int:
    # The page for which one was dropped may have been dropped itself, later on, for another.
    seen = set()
    while originals[number] != number and number not in seen:
        seen.add(number)
        number = originals[number]
    return number
