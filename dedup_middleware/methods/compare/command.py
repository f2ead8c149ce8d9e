"""``scrapy dedup compare``: what a user asks for, and what is answered."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dedup_middleware import permissions
from dedup_middleware.errors import ConfigError, DedupError
from dedup_middleware.methods.compare import plots, results
from dedup_middleware.methods.compare.corpus import prepare
from dedup_middleware.methods.compare.trial import CLAUSES, MissingPackageError, Sweep, all_choices, contestant
from dedup_middleware.methods.compare.worker import Job, measure_all
from dedup_middleware.terminal import progress, rendered

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from dedup_middleware.methods.compare.corpus import CorpusPage
    from dedup_middleware.methods.compare.worker import Measured
    from dedup_middleware.terminal import Table


def compare(
    opts: argparse.Namespace, corpus: Iterable[tuple[CorpusPage, str]], tell: Callable[[str], None]
) -> Iterator[str]:
    """Yield what to print of the pages of a *corpus*, and *tell* a line on each method that is left out.

    :class:`DedupError` for a mistake, before anything is measured where that can be known; and at the end, where a
    method failed.
    """
    _check(opts)
    sweep = None if opts.sweep is None else Sweep(opts.sweep)
    wanted = opts.method and [CLAUSES, *opts.method]
    choices = list(_available(sweep.choices if sweep else wanted or all_choices(), tell))
    with tempfile.TemporaryDirectory(prefix="dedup-compare-") as folder:
        prepared = Path(folder, "pages.jsonl")
        with_html = not (opts.pure or opts.curve)
        with progress("pages read") as read:
            pages = prepare(corpus, prepared, with_html=with_html, read=read)
        if sweep and pages[0].cluster is None:
            raise ConfigError(f"{opts.corpus} has no clusters to score a sweep by; give its pages some")
        jobs = [Job(choice, str(prepared), not with_html, opts.fit, opts.curve) for choice in choices]
        with progress("methods measured", len(jobs)) as done:
            found = dict(zip(choices, measure_all(jobs, done), strict=True))
    problems = [f"{choice} failed: {line}" for choice, each in found.items() if (line := each.refused or each.failed)]
    for line in dict.fromkeys(_left_out(choice, each.missing) for choice, each in found.items() if each.missing):
        tell(line)
    measured = {choice: each for choice, each in found.items() if not (each.missing or each.refused or each.failed)}
    if measured:
        yield from _answer(opts, sweep, pages, measured)
        for line in problems:
            tell(line)
    if problems:
        raise DedupError(f"{len(problems)} of {len(jobs)} could not be measured" if measured else problems[0])


def _check(opts: argparse.Namespace) -> None:
    """Raise :class:`ConfigError` for what could not be done in the end."""
    if opts.sweep is not None and (opts.method or opts.curve):
        raise ConfigError(f"--sweep names its method; leave out {'--method' if opts.method else '--curve'}")
    if opts.clusters is not None and (len(set(opts.method)) != 1 or opts.curve):
        raise ConfigError("--clusters is for what one method decides; add one --method, without --curve")
    if opts.plot is not None:
        plots.check(opts.plot)
    for path in (opts.plot, opts.clusters):
        if path is not None and (path.is_dir() or not path.parent.is_dir()):
            raise ConfigError(f"{path} cannot be written; name a file in a folder that exists")


def _available(choices: Iterable[str], tell: Callable[[str], None]) -> Iterator[str]:
    told = set()
    for choice in dict.fromkeys(choices):
        try:
            contestant(choice)
        except MissingPackageError as error:
            line = _left_out(choice, str(error))
            if line not in told:
                tell(line)
            told.add(line)
            continue
        yield choice


def _left_out(choice: str, why: str) -> str:
    return f"left out {choice.partition(':')[0]}: {why}"


def _answer(
    opts: argparse.Namespace, sweep: Sweep | None, pages: Sequence[CorpusPage], measured: dict[str, Measured]
) -> Iterator[str]:
    if opts.curve:
        yield _shown(opts, results.curve_dicts(measured), results.curve_table(measured))
        _plot(opts, lambda: plots.curve(measured))
        return
    rows = results.rows_of(pages, measured)
    dicts = [row.as_dict() for row in rows]
    if sweep:
        values = [value for value, choice in zip(sweep.values, sweep.choices, strict=True) if choice in measured]
        yield _shown(opts, dicts, results.sweep_table(sweep.option, values, rows))
        _plot(opts, lambda: plots.sweep(sweep, values, rows))
    elif rows[0].scores is not None:
        yield _shown(opts, dicts, results.comparison_table(rows))
        _plot(opts, lambda: plots.comparison(rows, opts.corpus.name.partition(".")[0], pure=opts.pure))
    else:
        drops = results.drops_of(rows)
        disputed, more = results.disputed_table(pages, drops)
        tables = [results.comparison_table(rows), results.agreement_table(drops), *[disputed] * bool(disputed.rows)]
        yield _shown(opts, results.unlabelled_dict(pages, rows), *tables)
        if more and not opts.json:
            yield f"and {more} more pages; --json has them all"
        _plot(opts, lambda: plots.agreement(drops))
    if opts.clusters is not None:
        _write_stories(opts, pages, measured)


def _shown(opts: argparse.Namespace, values: Any, *tables: Table) -> str:
    if not opts.json:
        return "\n\n".join(rendered(table, terminal=sys.stdout.isatty()) for table in tables)
    if isinstance(values, list):
        return "[\n" + ",\n".join(map(json.dumps, values)) + "\n]"
    return json.dumps(values)


def _plot(opts: argparse.Namespace, drawn: Callable[[], Any]) -> None:
    if opts.plot is not None:
        plots.save(drawn(), opts.plot)


def _write_stories(opts: argparse.Namespace, pages: Sequence[CorpusPage], measured: dict[str, Measured]) -> None:
    (choice,) = set(opts.method)
    if choice not in measured:
        raise DedupError(f"{choice} was not measured: {opts.clusters} was not written")
    try:
        with permissions.replaced(opts.clusters, results.are_stories) as file:
            stories = results.stories(pages, measured[choice].originals)
            file.writelines(f"{json.dumps(story)}\n".encode("ascii") for story in stories)
    except OSError as error:
        raise ConfigError(f"{opts.clusters} cannot be written ({error.strerror}); name another file") from error
