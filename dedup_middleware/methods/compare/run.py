"""Runs ``scrapy dedup compare``: measures the methods that a user names, and yields the results to print."""

from __future__ import annotations

import json
import re
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dedup_middleware.errors import ConfigError, DedupError
from dedup_middleware.methods.compare import plots, results
from dedup_middleware.methods.compare.corpus import prepare
from dedup_middleware.methods.compare.measure import CLAUSES, Run, all_choices, measure_all, method_of
from dedup_middleware.text.terminal import columns, progress, rendered

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from dedup_middleware.methods.compare.corpus import CorpusPage
    from dedup_middleware.methods.compare.measure import Measurement
    from dedup_middleware.text.terminal import Table

_NUMBER = r"-?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)"
_SWEEP = re.compile(
    r"(?P<choice>[^:]+:(?:.*,)?\s*(?P<option>[^=,:]+?)\s*=)\s*"
    rf"(?P<first>{_NUMBER})\.\.(?P<last>{_NUMBER})(?::(?P<step>{_NUMBER}))?"
)
# Each is a process.
_MAX_VALUES = 200


class Sweep:
    """The values of one option, from the first to the last."""

    def __init__(self, text: str) -> None:
        """Read *text*, ``METHOD:OPTION=A..B`` or ``METHOD:OPTION=A..B:STEP``; `ConfigError` if that is not possible.

        The default step is one unit of the finest digit given: 1 in 0..16, 0.1 in 0.5..0.9.
        """
        found = _SWEEP.fullmatch(text.strip())
        if found is None:
            raise ConfigError(f"{text!r} is not a sweep", "write METHOD:OPTION=A..B or METHOD:OPTION=A..B:STEP")
        first, last = Decimal(found["first"]), Decimal(found["last"])
        digits = max(len(found[name].partition(".")[2]) for name in ("first", "last"))
        step = Decimal(found["step"]) if found["step"] else Decimal(1).scaleb(-digits)
        if last < first or step <= 0:
            raise ConfigError(f"invalid range {text!r}", "write the smaller value first, and a step above 0")
        count = int((last - first) / step) + 1
        if count > _MAX_VALUES:
            raise ConfigError(f"{text!r} has {count} values, more than {_MAX_VALUES}", "take larger steps")
        self.method: str = found["choice"].partition(":")[0]
        self.option: str = found["option"]
        self.values = [str(first + n * step) for n in range(count)]
        self.choices = [found["choice"] + value for value in self.values]


def compare(
    opts: argparse.Namespace, corpus: Iterable[tuple[CorpusPage, str]], tell: Callable[[str], None]
) -> Iterator[str]:
    """Yield what to print about the pages of a *corpus*, and *tell* a line on each method that is left out.

    `DedupError` for a mistake, before anything is measured if possible; and at the end, if a method failed.
    """
    _check(opts)
    sweep = None if opts.sweep is None else Sweep(opts.sweep)
    wanted = opts.method and [CLAUSES, *opts.method]
    choices = list(_available(sweep.choices if sweep else wanted or all_choices(), tell))
    pages, found = _measured(opts, corpus, choices)
    measured = {choice: each for choice, each in found.items() if not each.error}
    failed = [f"{choice} failed: {each.error}" for choice, each in found.items() if each.error]
    if not measured:
        raise DedupError(failed[0] if failed else "no method can be measured")
    yield from _results(opts, sweep, pages, measured)
    for line in failed:
        tell(line)
    if failed:
        raise DedupError(f"{len(failed)} of {len(found)} methods could not be measured")


def _measured(
    opts: argparse.Namespace, corpus: Iterable[tuple[CorpusPage, str]], choices: Sequence[str]
) -> tuple[Sequence[CorpusPage], dict[str, Measurement]]:
    """Return the pages of *corpus*, and what was measured of each of *choices*."""
    with tempfile.TemporaryDirectory(prefix="dedup-compare-") as folder:
        prepared = Path(folder, "pages.jsonl")
        with progress("pages read") as read:
            pages = prepare(corpus, prepared, with_html=not opts.pure, read=read)
        if (opts.sweep or opts.plot) and pages[0].cluster is None:
            raise ConfigError(f"{opts.corpus} has no clusters to score by", "label its pages for --sweep and --plot")
        runs = [Run(choice, str(prepared), opts.pure, opts.fit) for choice in choices]
        with progress("methods measured", len(runs)) as done:
            return pages, dict(zip(choices, measure_all(runs, done), strict=True))


def _check(opts: argparse.Namespace) -> None:
    """Raise `ConfigError` for options that cannot work together, and for files that cannot be written."""
    if opts.sweep is not None and opts.method:
        raise ConfigError("--sweep names its method", "leave out --method")
    if opts.plot is not None:
        plots.check(opts.plot)
        if opts.plot.is_dir() or not opts.plot.parent.is_dir():
            raise ConfigError(f"{opts.plot} cannot be written", "name a file in a folder that exists")


def _available(choices: Iterable[str], tell: Callable[[str], None]) -> Iterator[str]:
    """Yield the *choices* that can be measured, and *tell* once of each method whose package is missing."""
    left_out = set()
    for choice in dict.fromkeys(choices):
        try:
            method_of(choice)
        except (ImportError, ConfigError) as error:
            if not isinstance(error, ImportError) and not isinstance(error.__cause__, ImportError):
                raise
            name = choice.partition(":")[0]
            if name not in left_out:
                tell(f"left out {name}: {error}")
            left_out.add(name)
            continue
        yield choice


def _results(
    opts: argparse.Namespace, sweep: Sweep | None, pages: Sequence[CorpusPage], measured: dict[str, Measurement]
) -> Iterator[str]:
    rows = results.rows_of(pages, measured)
    dicts = [row.as_dict() for row in rows]
    if sweep:
        values = [value for value, choice in zip(sweep.values, sweep.choices, strict=True) if choice in measured]
        yield _shown(opts, dicts, results.sweep_table(sweep.option, values, rows))
        _plot(opts, lambda: plots.sweep(sweep.method, sweep.option, values, rows))
    elif rows[0].scores is not None:
        yield _shown(opts, dicts, results.comparison_table(rows))
        _plot(opts, lambda: plots.comparison(rows, opts.corpus.name.partition(".")[0], pure=opts.pure))
    else:
        drops = {row.method: row.drops for row in rows}
        disputed, more = results.disputed_table(pages, drops)
        tables = [results.comparison_table(rows), results.agreement_table(drops), *[disputed] * bool(disputed.rows)]
        yield _shown(opts, results.unlabelled_dict(pages, rows, drops), *tables)
        if more and not opts.json:
            yield f"and {more} more pages; --json has them all"


def _shown(opts: argparse.Namespace, values: Any, *tables: Table) -> str:
    if not opts.json:
        return "\n\n".join(rendered(table, columns()) for table in tables)
    if isinstance(values, list):
        return "[\n" + ",\n".join(map(json.dumps, values)) + "\n]"
    return json.dumps(values)


def _plot(opts: argparse.Namespace, draw: Callable[[], Any]) -> None:
    if opts.plot is not None:
        plots.save(draw(), opts.plot)
