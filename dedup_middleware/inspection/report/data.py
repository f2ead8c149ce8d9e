"""Log and store -> what a report shows, as plain data."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from dedup_middleware import times
from dedup_middleware.errors import NothingFoundError
from dedup_middleware.fingerprints import published_method
from dedup_middleware.inspection.chosen_records import RecordFilter, log_of, records, run_named
from dedup_middleware.inspection.records import (
    DIFFERENCE_CHARACTERS,
    DIFFERENCES,
    EVIDENCE_CHARACTERS,
    EVIDENCE_SENTENCES,
    TITLE_CHARACTERS,
)
from dedup_middleware.inspection.report.pairs import most_doubtful, stored
from dedup_middleware.inspection.report.signs import signs, suspects
from dedup_middleware.inspection.report.tallies import Tallies, host_at, score_of
from dedup_middleware.text.clauses import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from dedup_middleware.inspection.records import Record
    from dedup_middleware.inspection.report.pairs import Stored
    from dedup_middleware.settings.config import Config

#: Dropped pages in the table: the latest.
ROWS = 100_000
#: Pairs of which both whole texts are shown: the most doubtful.
PAIRS = 2_000
_HOSTS = 12
_CLUSTERS = 12
_OF_A_CLUSTER = 10
#: Columns whose values come again and again: a table of them is kept, and its numbers.
_TABLED = ("owner", "host", "reason", "witness", "outcome", "run")


@dataclass(slots=True)
class Report:
    """What a report shows."""

    summary: dict[str, Any]
    """All but the pairs; with the table of dropped pages by columns, the latest first."""
    details: list[dict[str, Any]] = field(default_factory=list)
    """Of each of these pages, what is shown when it is opened."""


def gather(
    config: Config, run: str | None = None, *, step: Callable[[], None] = lambda: None, pairs: int = PAIRS
) -> Report:
    """Read the log of *config*, of the crawl *run* (``last``: the latest) if given, and its store where that is closed.

    *step* is called for each record, and for each of the *pairs* whose texts are compared. :class:`NothingFoundError`
    if there is no record. 0.1 ms a record, 3 ms a pair, and 15 µs a stored page where a host is suspicious.
    """
    run = run_named(log_of(config), run)
    tallies = Tallies(ROWS)
    for record in records(config, RecordFilter(run=run, everything=True)):
        tallies.add(record)
        step()
    if not tallies.records:
        whose = f"of the crawl {run}" if run else "yet"
        raise NothingFoundError(f"{log_of(config)} has no record {whose}, so there is nothing to report")
    rows = [*reversed(tallies.duplicates)]
    with stored(config) as (store, note):
        summary = _summary(config, tallies, rows, run) | {"note": note}
        summary["signs"] = _signs(tallies, store, run)
        details = [_detail(record) for record in rows]
        for number in most_doubtful(rows, pairs) if store is not None else ():
            details[number]["texts"] = store.side_by_side(rows[number]) if store is not None else None
            step()
    return Report(summary, details)


def _summary(config: Config, tallies: Tallies, rows: list[Record], run: str | None) -> dict[str, Any]:
    method = published_method(config.fingerprint)
    return {
        "made": times.now(),
        "log": str(config.log),
        "spiders": [*tallies.spiders],
        "run": run,
        "runs": [*tallies.runs],
        "first": tallies.first,
        "latest": tallies.latest,
        "threshold": config.threshold if method is None else method.threshold,
        "records": tallies.records,
        "duplicates": tallies.duplicates_met,
        "outcomes": dict(tallies.outcomes),
        "saved": tallies.totals(),
        "over_time": tallies.over_time(),
        "hosts": _hosts(tallies.pairs_of_hosts()),
        "clusters": _clusters(tallies.clusters()),
        "scores": {"dropped": tallies.dropped_by_score, "kept": tallies.kept_by_score},
        "kept": _kept(tallies),
        "drops": _columns(rows),
    }


def _signs(tallies: Tallies, store: Stored | None, run: str | None) -> dict[str, Any]:
    hosts = suspects(tallies)
    if store is not None and hosts:
        for host, url in store.pages_of(hosts.keys(), run):
            hosts[host].pages += url not in tallies.last
    return signs(tallies, hosts) | {"pages_are_known": store is not None}


def _hosts(pairs: Counter[tuple[str, str]]) -> dict[str, Any]:
    """Return the hosts that copy most and those that are copied most, and how often each did from each."""
    copying: Counter[str] = Counter()
    copied: Counter[str] = Counter()
    for (host, owner), count in pairs.items():
        copying[host] += count
        copied[owner] += count
    rows, columns = ([name for name, _ in counts.most_common(_HOSTS)] for counts in (copying, copied))
    return {
        "copying": rows,
        "copied": columns,
        "pages": [[pairs[row, column] for column in columns] for row in rows],
        "copying_total": [copying[row] for row in rows],
        "others": {"copying": max(0, len(copying) - _HOSTS), "copied": max(0, len(copied) - _HOSTS)},
    }


def _clusters(clusters: dict[str, list[str]]) -> list[dict[str, Any]]:
    largest = sorted(clusters.items(), key=lambda item: -len(item[1]))[:_CLUSTERS]
    return [
        {"owner": owner, "pages": len(urls), "hosts": len({*map(host_at, urls)}), "some": urls[:_OF_A_CLUSTER]}
        for owner, urls in largest
    ]


def _kept(tallies: Tallies) -> list[dict[str, Any]]:
    return [
        {"witness": witness, "reason": reason, "pages": kept.pages, "examples": [*map(_short, kept.examples)]}
        for (witness, reason), kept in sorted(tallies.kept.items(), key=lambda item: -item[1].pages)
    ]


def _short(example: dict[str, Any]) -> dict[str, Any]:
    return example | {"difference": _cut(example["difference"], DIFFERENCES, DIFFERENCE_CHARACTERS)}


def _columns(rows: Iterable[Record]) -> dict[str, Any]:
    """Return *rows* by column; of a column of few values a table, and the number of each row's."""
    columns: dict[str, list[Any]] = {name: [] for name in ("url", "title", "score", "time", *_TABLED)}
    tables: dict[str, dict[str, int]] = {name: {} for name in _TABLED}
    for record in rows:
        columns["url"].append(record.url)
        columns["title"].append(one_line(record.title, TITLE_CHARACTERS))
        columns["score"].append(score_of(record))
        columns["time"].append(record.time[:19])
        values = (record.owner_url, host_at(record.url), record.reason, record.witness, record.outcome, record.run)
        for name, value in zip(_TABLED, values, strict=True):
            columns[name].append(tables[name].setdefault(value or "", len(tables[name])))
    return {
        "columns": columns,
        "tables": {name: [*table] for name, table in tables.items()},
        "hosts_of_owners": [*map(host_at, tables["owner"])],
    }


def _detail(record: Record) -> dict[str, Any]:
    return {
        "evidence": _cut(record.evidence, EVIDENCE_SENTENCES, EVIDENCE_CHARACTERS),
        "difference": _cut(record.difference, DIFFERENCES, DIFFERENCE_CHARACTERS),
        "bytes": record.bytes,
        "items_dropped": record.items_dropped,
        "owner_run": record.owner_run,
        "texts": None,
    }


def _cut(texts: list[str], count: int, characters: int) -> list[str]:
    return [one_line(text, characters) for text in islice(texts, count)]


def chunks(details: list[dict[str, Any]], size: int) -> Iterator[list[dict[str, Any]]]:
    """Yield *details* in lists of *size*."""
    return (details[start : start + size] for start in range(0, len(details), size))
