"""Has the steps from pages to verdicts, in SQL that Spark and SQLite have in common.

A clause counts for the first page that has it. It
counts for later pages unless most of their text is in an earlier page: copies and look-alikes make no boilerplate.
Every posting list is cut to its first pages. So the number of pairs grows with the number of pages, also if many of
them are equal.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from contextlib import closing
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from dedup_middleware.batch.archive import EQUAL, MAX_FILES, NAMED, WHOLE, Read, kept_text, number_of
from dedup_middleware.checks.detector import Detector
from dedup_middleware.common.urls import host_of
from dedup_middleware.errors import ConfigError, DedupError
from dedup_middleware.index import shown
from dedup_middleware.index.candidates import has_enough, match_of
from dedup_middleware.index.claims import OpenClaims
from dedup_middleware.index.index import MAX_HOLDERS, Index
from dedup_middleware.index.lookup import COMMON_IN_STORE, COMMON_ON_HOST, Distinctive
from dedup_middleware.model import Action, Match, StoredPage, Verdict, VerdictKind
from dedup_middleware.reasons import Reason
from dedup_middleware.records.recorder import RecordMaker
from dedup_middleware.stores import open_store
from dedup_middleware.text.terminal import plural
from dedup_middleware.visits.visit import Visit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from dedup_middleware.batch.archive import Job
    from dedup_middleware.batch.engine import Engine
    from dedup_middleware.model import Page

# Earlier pages with a clause that are looked at for those that have most of a page's text.
_FIRST = 10
# Candidates have this share of a page's text at least, and there are so many for each page.
_LEAST, _CANDIDATES = WHOLE // 50, 8
# Rounds after which pages that are still undecided are originals. A chain of copies of copies takes one for each.
_MAX_ROUNDS = 40

_REPORTS = "SELECT content FROM pages WHERE page < 0"
_COUNT = "SELECT COUNT(*) FROM pages WHERE page >= 0"
# The postings of clauses that several pages have.
_SHARED = """
    SELECT clause, page, host, share FROM postings
    WHERE clause IN (SELECT clause FROM postings GROUP BY clause HAVING COUNT(*) > 1)"""
# The first pages with a clause. All pages may have it: nothing else may be done with all pages of a clause at once, for
# one task would do it.
_EARLIEST = """
    SELECT clause, page FROM (
        SELECT clause, page, ROW_NUMBER() OVER (PARTITION BY clause ORDER BY page) AS place FROM shared) found
    WHERE place <= {first}"""
# The earlier pages that have most of a page's text.
_NEAR = """
    SELECT s.page, e.page AS other FROM shared s JOIN earliest e ON e.clause = s.clause AND e.page < s.page
    GROUP BY s.page, e.page HAVING SUM(s.share) >= {most}"""
# The first pages that count for a clause: all but those with an earlier page near them that has the clause, too.
_HOLDERS = """
    SELECT clause, page, host FROM (
        SELECT s.clause, s.page, s.host, ROW_NUMBER() OVER (PARTITION BY s.clause ORDER BY s.page) AS place
        FROM shared s WHERE NOT EXISTS (
            SELECT 1 FROM near n JOIN shared b ON b.page = n.other WHERE n.page = s.page AND b.clause = s.clause)) found
    WHERE place <= {most}"""
# Pages and the first earlier holders of their clauses; see `index.lookup.Distinctive` for those that many hold.
_MEETINGS = """
    SELECT page, clause, share, other, here > {on_host} AS is_boilerplate, holders > {common} AS is_common FROM (
        SELECT s.page, s.clause, s.share, h.page AS other, COUNT(*) OVER (PARTITION BY s.page, s.clause) AS holders,
            SUM(CASE WHEN h.host = s.host THEN 1 ELSE 0 END) OVER (PARTITION BY s.page, s.clause) AS here
        FROM shared s JOIN holders h ON h.clause = s.clause AND h.page < s.page) met"""
_BOILERPLATE = """
    SELECT page, {boilerplate} AS boilerplate, {common} AS common FROM (
        SELECT DISTINCT page, clause, is_boilerplate FROM meetings WHERE is_boilerplate OR is_common) found
    GROUP BY page"""
# A page is not compared with an earlier fetch of itself.
_CANDIDATE_PAIRS = """
    SELECT page, other, share FROM (
        SELECT m.page, m.other, m.share, ROW_NUMBER() OVER (PARTITION BY m.page ORDER BY m.share DESC, m.other) AS place
        FROM (SELECT page, other, SUM(share) AS share FROM meetings
            WHERE NOT is_boilerplate AND NOT is_common
            GROUP BY page, other HAVING SUM(share) >= {least}) m
        JOIN pages p ON p.page = m.page JOIN pages o ON o.page = m.other WHERE p.url <> o.url) ranked
    WHERE place <= {most}"""
# The pages of each host that `shown` counts, and one more.
_FIRST_OF_HOST = """
    SELECT p.host, p.page, f.place, p.content FROM (
        SELECT page, ROW_NUMBER() OVER (PARTITION BY host ORDER BY page) AS place
        FROM pages WHERE host IS NOT NULL AND page >= 0) f
    JOIN pages p ON p.page = f.page WHERE f.place <= {most}"""
# What the earlier pages of a host have shown is the same for all pages after those that are counted.
_CANDIDATE_ROWS = """
    SELECT p.page, p.content, COALESCE(s.value, l.value) AS shown, b.boilerplate, b.common, c.other, c.share,
        o.content AS original
    FROM pages p LEFT JOIN shown s ON s.page = p.page LEFT JOIN shown l ON l.host = p.host AND l.place = {most}
    LEFT JOIN boilerplate b ON b.page = p.page
    LEFT JOIN candidates c ON c.page = p.page LEFT JOIN pages o ON o.page = c.other
    WHERE p.page >= 0"""
#: The columns of the table ``edges``.
EDGES = "page bigint, other bigint, place bigint, duplicate bigint, score double, record binary"
_DUPLICATES = """
    SELECT DISTINCT e.page FROM edges e LEFT JOIN {before} d ON d.page = e.other
    WHERE e.duplicate = 1 AND d.page IS NULL"""
# The best edge to an original; for pages that are not duplicates, the best of those that are not accepted.
_CHOSEN = """
    SELECT page, other, duplicate, score, record FROM (
        SELECT e.*, ROW_NUMBER() OVER (PARTITION BY e.page ORDER BY e.place) AS number
        FROM edges e LEFT JOIN {duplicates} d ON d.page = e.page LEFT JOIN {duplicates} o ON o.page = e.other
        WHERE o.page IS NULL AND e.duplicate = CASE WHEN d.page IS NULL THEN 0 ELSE 1 END) ranked
    WHERE number = 1"""


def check(
    engine: Engine, job: Job, files: Sequence[Path], tell: Callable[[str], None]
) -> tuple[Counter[str], list[str]]:
    """Check the pages of *files*: make the table ``chosen``, with the decisive `Edge` of each page.

    Return how many records are not pages, by reason, and where the first of them are, with reasons.
    """
    if len(files) > MAX_FILES:
        raise ConfigError(f"the archive has {len(files)} files, more than {MAX_FILES}", "check it in several batches")
    engine.read(files, job.rows)
    refused, named = Counter[str](), list[Any]()
    for report in engine.rows(_REPORTS):
        counts, first = json.loads(bytes(report["content"]))
        refused.update(counts)
        named = sorted([*named, *first])[:NAMED]
    ((count,),) = engine.rows(_COUNT)
    if not count and not job.config.key:  # all may be items with keys
        reasons = ", ".join(f"{number} × {reason}" for reason, number in refused.items())
        first = f"; {named[0][-1]}" if named else ""
        raise DedupError(f"no pages found in {plural(len(files), 'file')} ({reasons or 'no records'}{first})")
    tell(f"{count} pages read")
    _find_candidates(engine, job.config.threshold)
    first = {"most": shown.COUNTED_PAGES + 1}
    engine.map(
        "seen",
        "page bigint, host bigint, place bigint, value binary",
        shown_before,
        _FIRST_OF_HOST.format(**first),
        "host, page",
    )
    engine.table("shown", "SELECT * FROM seen", index="page")
    engine.map("edges", EDGES, partial(checked, job), _CANDIDATE_ROWS.format(**first), "page")
    duplicates, rounds = find_duplicates(engine)
    tell(f"candidates compared; originals found in {plural(rounds, 'round')}")
    engine.table("chosen", _CHOSEN.format(duplicates=duplicates), index="page")
    return refused, [text for *_, text in named]


def _find_candidates(engine: Engine, threshold: float) -> None:
    """Make the tables ``candidates`` and ``boilerplate``: clauses that many pages before a page contain."""
    joined = engine.joined.format("CASE WHEN {}is_boilerplate THEN clause END")
    engine.table("shared", _SHARED, index="clause, page")
    engine.table("earliest", _EARLIEST.format(first=_FIRST), index="clause, page")
    engine.table("near", _NEAR.format(most=int(WHOLE * threshold)), index="page")
    engine.table("holders", _HOLDERS.format(most=MAX_HOLDERS), index="clause, page")
    meetings = _MEETINGS.format(on_host=COMMON_ON_HOST, common=COMMON_IN_STORE)
    engine.table("meetings", meetings, index="page")
    boilerplate = _BOILERPLATE.format(boilerplate=joined.format(""), common=joined.format("NOT "))
    engine.table("boilerplate", boilerplate, index="page")
    pairs = _CANDIDATE_PAIRS.format(least=_LEAST, most=_CANDIDATES)
    engine.table("candidates", pairs, index="page")


def find_duplicates(engine: Engine) -> tuple[str, int]:
    """Return the table of the pages of which an accepted original is not a duplicate itself, and the number of rounds.

    The first table is empty, and each further one has the pages with an original that is not in the table before. Even
    tables lack duplicates and odd ones have too many, until two are equal; so the search may end after an even one.
    """
    table, count = "duplicates_0", 0
    engine.table(table, "SELECT page FROM edges WHERE 1 = 0", index="page")
    for number in range(1, _MAX_ROUNDS + 1):
        before, table = table, f"duplicates_{number}"
        engine.table(table, _DUPLICATES.format(before=before), index="page")
        was, ((count,),) = count, engine.rows(f"SELECT COUNT(*) FROM {table}")  # noqa: S608 - a name of ours
        if was == count:
            break
    return table, number


logger = logging.getLogger(__name__)

#: Of a verdict; ``time`` only where the archive has it.
FIELDS = ("url", "verdict", "original_url", "score", "reason", "message", "difference", "evidence", "title")
# The place of the verdict on a page none of whose candidates is an original.
_LAST = 99


class Edge(NamedTuple):
    """The verdict on a page if the other page is an original; -1 stands for no original.

    A candidate with a lower place is better. The ``record`` is the line of the verdict.
    """

    page: int
    other: int
    place: int
    duplicate: int
    score: float
    record: bytes


def shown_before(rows: Iterable[Any]) -> Iterator[tuple[int, int, int, bytes]]:
    """Yield what the earlier pages of its host have shown before each of *rows*, the first pages of hosts in order."""
    for host, of_host in groupby(rows, key=itemgetter("host")):
        found: Mapping[bytes, bytes] = {}
        for row in of_host:
            yield row["page"], host, row["place"], shown.encode(found)
            if (page := Read.of(row["content"]).page) is not None:
                found = shown.updated(found, page)


def checked(job: Job, rows: Iterable[Any]) -> Iterator[Edge]:
    """Yield the edges of pages; *rows* has the rows of each page together.

    A row has a page's id (``page``) and ``content``, what the earlier pages of its host have ``shown``, its
    ``boilerplate`` and ``common`` clauses (numbers, separated by commas); and, unless the page has no candidates, the
    id of one of them (``other``), the ``share`` of the text by which it was found, and its content (``original``).
    """
    with closing(open_store("memory:", fingerprint_scheme=job.fingerprint.scheme)) as store:
        pairs = _Pairs(job, _Candidate(store, OpenClaims()))
        for _, of_page in groupby(rows, key=itemgetter("page")):
            yield from pairs.edges([*of_page])


class _Candidate(Index):
    """An empty store, and the one *original* of an archive that a page is compared with."""

    original: Page
    host: str
    shown: Mapping[bytes, bytes]
    """What the earlier pages of *host* have shown."""

    def shown_on(self, url: str) -> Mapping[bytes, bytes]:
        return self.shown if host_of(url) == self.host else {}

    def text(self, number: int) -> list[str]:  # noqa: ARG002 - there is one
        return kept_text(self.original)


class _Pairs:
    """Compares pages with their candidates."""

    def __init__(self, job: Job, index: _Candidate) -> None:
        self._index = index
        self._detector = Detector(index, job.fingerprint.hash, job.config.rules)
        self._records = RecordMaker("", job.run, job.fingerprint.hash)

    def edges(self, rows: Sequence[Any]) -> Iterator[Edge]:
        """Yield the edges of a page, which has these *rows*."""
        read = Read.of(rows[0]["content"])
        yield self._without_original(rows[0], read)
        if (page := read.page) is None:
            return
        self._index.host, self._index.shown = host_of(page.url), shown.decode(bytes(rows[0]["shown"]))
        checked = [(self._checked(row, page), row) for row in rows]
        checked.sort(key=lambda pair: _rank(*pair))
        for place, (verdict, row) in enumerate(checked):
            if verdict.match is not None:
                yield self._edge(row["page"], row["other"], place, read, verdict)

    def _without_original(self, row: Any, read: Read) -> Edge:
        """Return the verdict on a page if no candidate is an original."""
        reason, page = read.reason, read.page
        if page is not None and not has_enough(page, _distinctive(page, row)):
            reason = Reason.TOO_LITTLE_TEXT
        verdict = Verdict(VerdictKind.UNCHECKED if reason else VerdictKind.NEW, reason=reason)
        return self._edge(row["page"], -1, _LAST, read, verdict)

    def _checked(self, row: Any, page: Page) -> Verdict:
        """Return what *page* is beside one candidate; ``new`` if they have too little in common."""
        if not row["original"] or (original := Read.of(row["original"]).page) is None:
            return Verdict(VerdictKind.NEW)
        stored, distinctive = StoredPage.of(original, row["other"] + 1), _distinctive(page, row)
        if row["share"] >= EQUAL:
            match = Match(stored, 1.0, frozenset(page.fingerprint.weights))
        elif has_enough(page, distinctive):
            match = match_of(page, stored, distinctive)
        else:
            return Verdict(VerdictKind.NEW)
        self._index.original = original
        try:
            verdict = self._detector.check_pair(page, match, distinctive)
            return self._detector.preferences.applied(page, verdict)
        except Exception:
            # A bug, or a hostile page: the page is kept, and the batch goes on.
            logger.exception("%s could not be compared with %s", page.url, original.url)
            return Verdict(VerdictKind.NEW)

    def _edge(self, page: int, other: int, place: int, read: Read, verdict: Verdict) -> Edge:
        is_duplicate = verdict.kind is VerdictKind.DUPLICATE
        score = 0.0 if verdict.match is None else verdict.match.score
        visit = Visit(read.url, read.page, verdict, Action.DROP)
        record = self._records.record(visit)
        values = {name: getattr(record, name) for name in FIELDS} | ({"time": read.time} if read.time else {})
        return Edge(page, other, place, int(is_duplicate), score, json.dumps(values).encode("ascii"))


def _rank(verdict: Verdict, row: Any) -> tuple[float, int, int]:
    """Return the place of a candidate, which does not depend on the order of the rows: Spark has none."""
    return -verdict.match.score if verdict.match else 0.0, -(row["share"] or 0), row["other"] or 0


def _distinctive(page: Page, row: Any) -> Distinctive:
    """Return the clauses of *page* that are not boilerplate, by its *row*."""
    boilerplate, common = ({*map(int, (row[name] or "0").split(","))} for name in ("boilerplate", "common"))
    numbers = {clause: number_of(clause) for clause in page.fingerprint.weights}
    found = [clause for clause, number in numbers.items() if number not in boilerplate]
    return Distinctive(dict.fromkeys(found, ()), frozenset(clause for clause in found if numbers[clause] in common))
