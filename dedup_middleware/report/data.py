"""Reads the records and the store, and returns what a report shows as plain data."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from dedup_middleware.checks.edits import Original, compare
from dedup_middleware.common.urls import url_identity, without_secrets
from dedup_middleware.errors import NothingFoundError, StoreError
from dedup_middleware.fingerprints import another, instance_of
from dedup_middleware.index.shared import index_for_command
from dedup_middleware.model import is_marked, now
from dedup_middleware.reasons import Outcome
from dedup_middleware.records.counts import host_at
from dedup_middleware.records.crawl_changes import NEW, NOT_SEEN, changes_since
from dedup_middleware.records.file import Record, crawl_named, cut_difference, cut_evidence, cut_title, lines, log_of
from dedup_middleware.records.signs import score_of
from dedup_middleware.report.tallies import Crawls, NearMisses, Tallies
from dedup_middleware.stores import store_exists
from dedup_middleware.text.clauses import Sentence, clauses, marked_sentences

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from dedup_middleware.index.index import Index
    from dedup_middleware.model import StoredPage
    from dedup_middleware.settings import Config

#: Dropped pages in the table: the latest.
ROWS = 100_000
#: Near misses in the queue: the most doubtful.
NEAR_MISSES = 5_000
#: Pairs of which both whole texts are shown: the most doubtful duplicates and near misses.
PAIRS = 2_000
_HOSTS = 12
# URLs of pages that are new, and that were not seen.
_SINCE = 20
#: The columns of the table, and what a record has in each.
_COLUMNS: dict[str, Callable[[Record], Any]] = {
    "url": lambda record: record.url,
    "title": lambda record: cut_title(record.title or record.key),
    "score": score_of,
    "time": lambda record: record.time[:19],
}
#: Those with few different values: each value is written once, and the rows have its number.
_TABLED: dict[str, Callable[[Record], str | None]] = {
    "original": lambda record: record.original_url,
    "host": lambda record: host_at(record.url),
    "reason": lambda record: record.reason,
    "outcome": lambda record: record.outcome,
    "crawl": lambda record: record.crawl,
    "key": lambda record: record.key,
}


@dataclass(slots=True)
class Report:
    """What a report shows."""

    summary: dict[str, Any]
    """All but the pairs; with their table by columns: duplicates, the latest first, and then near misses."""
    details: list[dict[str, Any]] = field(default_factory=list)
    """Of each of these pages, what is shown when it is opened."""


def gather(
    config: Config, crawl: str | None = None, *, step: Callable[[], None] = lambda: None, pairs: int = PAIRS
) -> Report:
    """Read the records of *config*, of *crawl* (``last``: the latest) if given, and its store where that is closed.

    *step* is called for each record, and for each of the *pairs* whose texts are compared. :class:`NothingFoundError`
    if there is no record. 0.1 ms a record of a duplicate, 0.01 of a new page, and 3 ms a pair.
    """
    log = log_of(config)
    crawl = crawl_named(log, crawl)
    tallies, near, crawls = _folded(log, crawl, step)
    duplicates = [
        replace(record, outcome=Outcome.RELEASED.value) if record.url in tallies.released else record
        for record in reversed(tallies.duplicates)
    ]
    queue = near.queue()
    rows = duplicates + queue
    with stored(config) as (store, note):
        summary = _summary(config, tallies, crawl) | {"crawls": crawls.summary(), "note": note}
        summary["pairs"], summary["since"] = _columns(rows), _since(log)
        differences = [cut_difference(record.difference, 1) for record in queue]
        summary["near"] = {"pages": len(near.urls), "differences": differences}
        summary["signs"] = tallies.signs.all()
        details = [_detail(record) for record in rows]
        near_pairs = range(len(duplicates), len(duplicates) + min(len(queue), pairs // 2))
        by_score = sorted(range(len(duplicates)), key=lambda n: (duplicates[n].score or 0.0, n))
        doubtful = [*by_score[: pairs - len(near_pairs)], *near_pairs]
        if store is not None:
            for number in doubtful:
                details[number]["texts"] = store.side_by_side(rows[number])
                step()
    return Report(summary, details)


def _folded(log: Path, crawl: str | None, step: Callable[[], None]) -> tuple[Tallies, NearMisses, Crawls]:
    tallies, near, crawls = Tallies(ROWS), NearMisses(NEAR_MISSES), Crawls(crawl)
    for line in lines(log):
        crawls.add(line)
        if isinstance(line, Record) and crawl in (None, line.crawl):
            tallies.add(line)
            near.add(line)
        step()
    if crawl not in crawls:
        whose = f"of the crawl {crawl}" if crawl else "yet"
        raise NothingFoundError(f"{log} has no record {whose}, so there is nothing to report.")
    return tallies, near, crawls


def _summary(config: Config, tallies: Tallies, crawl: str | None) -> dict[str, Any]:
    log = log_of(config)
    room = another(config.fingerprint)
    return {
        "made": now(),
        # A report is shared: the name of the file, and what tells files of that name apart in a browser.
        "log": log.name,
        "log_id": sha256(str(log.absolute()).encode()).hexdigest()[:16],
        "crawl": crawl,
        "threshold": config.threshold if room is None else room.method(config.fingerprint).threshold,
        "records": tallies.records,
        "duplicates": tallies.duplicates_met,
        "outcomes": dict(tallies.outcomes),
        "bytes": tallies.bytes,
        # With the options of this crawl, where the caller knows them.
        "commands": {"allow": "scrapy dedup allow", "tune": "scrapy dedup tune --labels dedup-labels.jsonl"},
        "hosts": _hosts(tallies.pairs_of_hosts()),
    }


def _since(log: Path) -> dict[str, Any]:
    """Return how many pages are new and how many were not seen, since the crawl before the last; and the first URLs."""
    urls: dict[str, list[str]] = {NEW: [], NOT_SEEN: []}
    # What comes through a pipe is read once.
    with suppress(NothingFoundError):
        for change in changes_since(log) if log.is_file() else ():
            if change.kind in urls:
                urls[change.kind].append(change.url)
    return {kind: {"pages": len(found), "urls": found[:_SINCE]} for kind, found in urls.items()}


def _hosts(pairs: Counter[tuple[str, str]]) -> dict[str, Any]:
    """Return the hosts with most duplicates and originals, in one order, and the number of duplicates of each two."""
    copying: Counter[str] = Counter()
    copied: Counter[str] = Counter()
    for (host, original), count in pairs.items():
        copying[host] += count
        copied[original] += count
    # In one order, so that a host's row and column cross on the diagonal.
    both = [name for name, _ in (copying + copied).most_common()]
    rows, columns = ([name for name in both if counts[name]][:_HOSTS] for counts in (copying, copied))
    return {
        "copying": rows,
        "copied": columns,
        "pages": [[pairs[row, column] for column in columns] for row in rows],
        "copying_total": [copying[row] for row in rows],
        "others": {"copying": max(0, len(copying) - _HOSTS), "copied": max(0, len(copied) - _HOSTS)},
    }


def _columns(rows: Sequence[Record]) -> dict[str, Any]:
    """Return *rows* by column; a column of `_TABLED` as a table of its values, and the number of each row's value."""
    columns: dict[str, list[Any]] = {name: [*map(value_in, rows)] for name, value_in in _COLUMNS.items()}
    tables: dict[str, dict[str, int]] = {name: {} for name in _TABLED}
    for name, value_in in _TABLED.items():
        table = tables[name]
        columns[name] = [table.setdefault(value_in(record) or "", len(table)) for record in rows]
    return {
        "columns": columns,
        "tables": {name: [*table] for name, table in tables.items()},
        "hosts_of_originals": [*map(host_at, tables["original"])],
    }


def _detail(record: Record) -> dict[str, Any]:
    return {
        "evidence": cut_evidence(record.evidence),
        "difference": cut_difference(record.difference),
        "bytes": record.bytes,
        "items_dropped": record.items_dropped,
        "texts": None,
    }


SAME, NEARLY, OWN, TOO_SHORT = "=", "~", "+", ""


@dataclass(frozen=True, slots=True)
class Stored:
    """Reads an open store for a report."""

    index: Index
    hash_clause: Callable[[str], bytes]
    redact_query: bool

    def side_by_side(self, record: Record) -> dict[str, Any] | None:
        """Return the sentences of the page of *record* and of its original, each with its mark.

        ``None`` if they are not stored, or not as they were when the verdict was made.
        Some 3 ms for a news page that was edited, 80 for the longest text that a store keeps.
        """
        page = self.index.find([url_identity(record.url)])
        original = None if page is None else self._original_of(page, record.original_url)
        if page is None or original is None:
            return None
        # A verdict is shown beside the texts that it was made on, or beside none.
        if not is_marked(record.text, page.text_mark) or not is_marked(record.original_text, original.text_mark):
            return None
        text, held_text = self.index.text(page.number), self.index.text(original.number)
        if not text or not held_text:
            return None
        return {
            "page": self._marked(text, held_text, original.hashes),
            "original": self._marked(held_text, text, page.hashes),
        }

    def _original_of(self, page: StoredPage, url: str | None) -> StoredPage | None:
        """Return the page that *page* was compared with, if it still has the *url* that its record has."""
        if url is None:
            return None
        # A page that was kept has no original; those of a redacted log are found by the number only.
        found = self.index.find([url_identity(url)]) if page.original is None else self.index.page(page.original)
        return found if found and without_secrets(found.url, redact=self.redact_query) == url else None

    def _marked(self, text: list[str], other: list[str], held: frozenset[bytes]) -> list[tuple[str, str]]:
        """Return the sentences of *text*, each marked by whether *other*, with the clauses *held*, contains it."""
        contained = held | {self.hash_clause(clause) for clause, _ in clauses("\n".join(other))}
        exactly = [*marked_sentences(text, contained, self.hash_clause)]
        if all(sentence.repeated or sentence.share is None for sentence in exactly):
            return [(SAME if s.repeated else TOO_SHORT, s.text) for s in exactly]
        near = compare(text, Original(other)).near
        return [(_mark(sentence, near), sentence.text) for sentence in exactly]


def _mark(sentence: Sentence, near: frozenset[str]) -> str:
    if sentence.share is None:
        return TOO_SHORT
    return SAME if sentence.repeated else NEARLY if sentence.text in near else OWN


@contextmanager
def stored(config: Config) -> Iterator[tuple[Stored | None, str]]:
    """Yield the store of *config*, open while the block runs, or ``None`` and the reason."""
    opening = index_for_command(config.store, "report")
    with ExitStack() as opened:
        try:
            if not store_exists(config.store):
                yield None, f"no store found at {without_secrets(config.store, redact=False)}"
                return
            store, index = opened.enter_context(opening)
        except StoreError as error:
            yield None, str(error)
            return
        fingerprint = instance_of(config.fingerprint, store.header.key)
        yield Stored(index, fingerprint.hash, config.redact_query), ""
