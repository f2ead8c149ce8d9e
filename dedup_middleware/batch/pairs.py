"""Runs the steps from pages to verdicts, in SQL that Spark and SQLite have in common.

The engine is SQLite in this process, or Spark with its own joins. A clause counts for the first page that has it. It
counts for later pages unless most of their text is in an earlier page: copies and look-alikes make no boilerplate.
Every posting list is cut to its first pages. So the number of pairs grows with the number of pages, also if many of
them are equal.
"""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import sys
from contextlib import closing, contextmanager
from functools import partial
from itertools import groupby
from operator import itemgetter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from dedup_middleware.batch.archive import EQUAL, MAX_FILES, WHOLE, Refused, number_of
from dedup_middleware.checks.alignment import containment
from dedup_middleware.checks.detector import MIN_DISTINCTIVE_WEIGHT, Detector
from dedup_middleware.errors import ConfigError, DedupError
from dedup_middleware.index.lookup import COMMON_IN_STORE, COMMON_ON_HOST
from dedup_middleware.model import Action, Eligibility, Match, StoredPage, Verdict, VerdictKind
from dedup_middleware.reasons import Reason
from dedup_middleware.records.recorder import Recorder
from dedup_middleware.urls import canonical_identities, host_of
from dedup_middleware.visit import Visit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from dedup_middleware.batch.archive import Job, Read
    from dedup_middleware.model import Page

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from dedup_middleware.batch.archive import Row

    Reads: TypeAlias = Callable[[int, Path], Iterator[Row]]
    Works: TypeAlias = Callable[[Iterator[Any]], Iterable[Any]]

_SETUP = """
    PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE; PRAGMA cache_size = -262144;
    CREATE TABLE pages (page, host, url, text, content);
    CREATE TABLE postings (page, host, clause, share);
    BEGIN"""
# Partitions of a shuffle: a few for each core, and none with more than the pages of so many bytes of the archive.
_PARTITIONS_A_CORE, _PARTITION = 2, 2**27


class Local:
    """Keeps tables in a SQLite database. Their rows have columns by name; hashes and ids are numbers."""

    joined = "group_concat({})"
    """The SQL for the values of the column ``{}`` of a group, separated by commas."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        connection.row_factory = sqlite3.Row
        connection.executescript(_SETUP)

    def read(self, files: Sequence[Path], rows: Reads) -> None:
        """Fill the tables ``pages`` and ``postings`` with the *rows* of each file and its number."""
        execute, execute_many = self._connection.execute, self._connection.executemany
        for row in (row for number, path in enumerate(files) for row in rows(number, path)):
            execute("INSERT INTO pages VALUES (?, ?, ?, ?, ?)", row[:5])
            postings = ((row.page, row.host, *posting) for posting in zip(row.clauses, row.shares, strict=True))
            execute_many("INSERT INTO postings VALUES (?, ?, ?, ?)", postings)
        execute("CREATE INDEX pages_by_id ON pages (page)")
        execute("CREATE INDEX pages_by_host ON pages (host, page)")

    def table(self, name: str, sql: str, *, index: str, once: bool = False) -> None:  # noqa: ARG002 - for Spark
        """Make the table *name* of the rows of *sql*, which are looked up by the columns *index*.

        *once*: only one further step reads the table.
        """
        self._connection.execute(f"CREATE TABLE {name} AS {sql}")
        self._connection.execute(f"CREATE INDEX {name}_index ON {name} ({index})")

    def map(self, name: str, columns: str, work: Works, sql: str, by: str) -> None:
        """Make the table *name*, with *columns*, of what *work* makes of the rows of *sql*.

        Rows that are equal in the first of the columns *by* come together, in the order of all of these.
        """
        self._connection.execute(f"CREATE TABLE {name} ({columns})")
        values = ", ".join("?" for _ in columns.split(","))
        found = work(self.rows(f"SELECT * FROM ({sql}) found ORDER BY {by}"))  # noqa: S608 - SQL of ours
        self._connection.executemany(f"INSERT INTO {name} VALUES ({values})", found)  # noqa: S608 - a name of ours

    def rows(self, sql: str) -> Iterator[Any]:
        """Yield the rows of *sql*."""
        return self._connection.execute(sql)


class Spark:
    """Keeps tables in Spark; see `Local` for the methods. A table that several steps read is kept on disk."""

    joined = "array_join(collect_list({}), ',')"

    def __init__(self, session: Any) -> None:
        from pyspark import StorageLevel  # noqa: PLC0415 - optional

        self._session = session
        self._kept = StorageLevel.DISK_ONLY

    def read(self, files: Sequence[Path], rows: Reads) -> None:
        numbered = self._session.sparkContext.parallelize([*enumerate(files)], len(files) or 1)
        columns = "page bigint, host bigint, url bigint, text bigint, content binary"
        columns += ", clauses array<bigint>, shares array<bigint>"
        self._make("read", numbered.flatMap(lambda file: rows(*file)), columns)
        self.table("pages", "SELECT page, host, url, text, content FROM read", once=True)
        self.table("exploded", "SELECT page, host, EXPLODE(ARRAYS_ZIP(clauses, shares)) AS each FROM read", once=True)
        postings = "SELECT page, host, each.clauses AS clause, each.shares AS share FROM exploded"
        self.table("postings", postings, once=True)

    def table(self, name: str, sql: str, *, index: str = "", once: bool = False) -> None:  # noqa: ARG002 - for SQLite
        rows = self._session.sql(sql)
        (rows if once else rows.persist(self._kept)).createOrReplaceTempView(name)

    def map(self, name: str, columns: str, work: Works, sql: str, by: str) -> None:
        names = by.split(", ")
        partitions = int(self._session.conf.get("spark.sql.shuffle.partitions"))
        rows = self._session.sql(sql).repartition(partitions, names[0]).sortWithinPartitions(*names)
        self._make(name, rows.rdd.mapPartitions(work), columns)

    def _make(self, name: str, rows: Any, columns: str) -> None:
        found = self._session.createDataFrame(rows.map(tuple), columns, verifySchema=False)
        found.persist(self._kept).createOrReplaceTempView(name)

    def rows(self, sql: str) -> Iterator[Any]:
        yield from self._session.sql(sql).toLocalIterator()


Engine: TypeAlias = Local | Spark


@contextmanager
def engine(master: str | None, files: Sequence[Path], scratch: Path) -> Iterator[Engine]:
    """Yield an engine for *files*: `Local` with a database in *scratch*, or `Spark` at *master*.

    An empty *master* is that of ``spark-submit``, or all cores of this machine. :class:`ConfigError` if Spark is not
    installed or does not start, :class:`DedupError` if a step fails.
    """
    if master is None:
        with closing(sqlite3.connect(scratch / "pages.sqlite", isolation_level=None)) as connection:
            yield Local(connection)
        return
    try:
        from py4j.protocol import Py4JError  # noqa: PLC0415 - optional
        from pyspark.errors import PySparkException  # noqa: PLC0415
    except ImportError as error:
        install = 'pip install "dedup-middleware[spark]"'
        raise ConfigError(f"--spark needs pyspark, which is not installed; run {install}") from error
    session = _spark_session(master, sum(path.stat().st_size for path in files))
    try:
        yield Spark(session)
    except (Py4JError, PySparkException) as error:
        lines = [line.strip() for line in str(error).splitlines()]
        causes = [line for line in lines if "Error: " in line and not line.startswith(("at ", "org.", "Caused", ":"))]
        raise DedupError(f"a step failed on Spark: {(causes or lines or [repr(error)])[-1]:.500}") from error
    finally:
        session.stop()


def _spark_session(master: str, size: int) -> Any:
    from pyspark import SparkConf  # noqa: PLC0415 - optional
    from pyspark.sql import SparkSession  # noqa: PLC0415

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    conf = SparkConf().setIfMissing("spark.master", "local[*]").setIfMissing("spark.app.name", "scrapy dedup batch")
    for name in ("spark.ui.enabled", "spark.ui.showConsoleProgress"):
        conf.setIfMissing(name, "false")
    if master:
        conf.setMaster(master)
    try:
        session = SparkSession.builder.config(conf=conf).getOrCreate()
    except Exception as error:
        why = next(iter(str(error).splitlines()), "") or repr(error)
        where = f"Spark does not start at {conf.get('spark.master')} ({why:.200})"
        raise ConfigError(f"{where}; it needs Java 17 or newer, and a master that answers") from error
    session.sparkContext.setLogLevel("ERROR")
    if not conf.contains("spark.sql.shuffle.partitions"):
        cores = session.sparkContext.defaultParallelism
        session.conf.set("spark.sql.shuffle.partitions", max(_PARTITIONS_A_CORE * cores, size // _PARTITION))
    return session


# Earlier pages with a clause that are looked at for those that have most of a page's text.
_FIRST = 10
# Candidates have this share of a page's text at least, and there are so many for each page.
_LEAST, _CANDIDATES = WHOLE // 50, 8
# Rounds after which pages that are still undecided are originals. A chain of copies of copies takes one for each.
_MAX_ROUNDS = 40

_REPORTS = "SELECT content FROM pages WHERE page < 0"
# The postings of clauses that several pages have.
_SHARED = """
    SELECT clause, page, host, share, place FROM (
        SELECT clause, page, host, share, COUNT(*) OVER (PARTITION BY clause) AS pages,
            ROW_NUMBER() OVER (PARTITION BY clause ORDER BY page) AS place
        FROM postings) found
    WHERE pages > 1"""
# The earlier pages that have most of a page's text.
_NEAR = """
    SELECT s.page, e.page AS other
    FROM shared s JOIN shared e ON e.clause = s.clause AND e.page < s.page AND e.place <= {first}
    GROUP BY s.page, e.page HAVING SUM(s.share) >= {most}"""
# The pages that count for a clause: all but those with an earlier page near them that has the clause, too.
_HOLDERS = """
    SELECT s.clause, s.page, s.host, ROW_NUMBER() OVER (PARTITION BY s.clause ORDER BY s.page) AS place
    FROM shared s WHERE NOT EXISTS (
        SELECT 1 FROM near n JOIN shared b ON b.page = n.other WHERE n.page = s.page AND b.clause = s.clause)"""
# Pages and the first earlier holders of their clauses. A clause with too many of them is boilerplate.
_MEETINGS = """
    SELECT page, clause, share, other, (holders > {common} OR here > {on_host}) AS is_common FROM (
        SELECT s.page, s.clause, s.share, h.page AS other, COUNT(*) OVER (PARTITION BY s.page, s.clause) AS holders,
            SUM(CASE WHEN h.host = s.host THEN 1 ELSE 0 END) OVER (PARTITION BY s.page, s.clause) AS here
        FROM shared s JOIN holders h ON h.clause = s.clause AND h.page < s.page AND h.place <= {common} + 1) met"""
_BOILERPLATE = """
    SELECT page, {joined} AS common FROM (SELECT DISTINCT page, clause FROM meetings WHERE is_common) found
    GROUP BY page"""
# A page is not compared with an earlier fetch of itself.
_CANDIDATE_PAIRS = """
    SELECT page, other, share FROM (
        SELECT m.page, m.other, m.share, ROW_NUMBER() OVER (PARTITION BY m.page ORDER BY m.share DESC, m.other) AS place
        FROM (SELECT page, other, SUM(share) AS share FROM meetings WHERE NOT is_common
            GROUP BY page, other HAVING SUM(share) >= {least}) m
        JOIN pages p ON p.page = m.page JOIN pages o ON o.page = m.other WHERE p.url <> o.url) ranked
    WHERE place <= {most}"""
_CANDIDATE_ROWS = """
    SELECT p.host, p.page, p.content, b.common, c.other, c.share, o.content AS original
    FROM pages p LEFT JOIN boilerplate b ON b.page = p.page
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
        WHERE e.page >= 0 AND o.page IS NULL AND e.duplicate = CASE WHEN d.page IS NULL THEN 0 ELSE 1 END) ranked
    WHERE number = 1"""


def check(engine: Engine, job: Job, files: Sequence[Path], tell: Callable[[str], None]) -> tuple[list[int], Refused]:
    """Check the pages of *files*: make the table ``chosen``, with the decisive `Edge` of each page.

    Return how many pages each file has, and the records that are not pages.
    """
    if len(files) > MAX_FILES:
        raise ConfigError(f"the archive has {len(files)} files, more than {MAX_FILES}; check it in several batches")
    engine.read(files, job.rows)
    counts, refused = [0] * len(files), Refused()
    for report in sorted(json.loads(bytes(row["content"])) for row in engine.rows(_REPORTS)):
        number, counts[number], by_reason, first = report
        refused.update(by_reason, first)
    tell(f"{sum(counts)} pages read")
    _find_candidates(engine, COMMON_IN_STORE)
    engine.map("edges", EDGES, partial(checked, job), _CANDIDATE_ROWS, "host, page")
    duplicates, rounds = find_duplicates(engine)
    tell(f"candidates compared; originals found in {rounds} rounds")
    engine.table("chosen", _CHOSEN.format(duplicates=duplicates), index="page")
    return counts, refused


def _find_candidates(engine: Engine, common: int) -> None:
    """Make the tables ``candidates`` and ``boilerplate``: clauses that more than *common* pages before a page hold."""
    engine.table("shared", _SHARED, index="clause, page")
    engine.table("near", _NEAR.format(first=_FIRST, most=WHOLE // 2), index="page", once=True)
    engine.table("holders", _HOLDERS, index="clause, page", once=True)
    engine.table("meetings", _MEETINGS.format(common=common, on_host=COMMON_ON_HOST), index="page")
    engine.table("boilerplate", _BOILERPLATE.format(joined=engine.joined.format("clause")), index="page", once=True)
    pairs = _CANDIDATE_PAIRS.format(least=_LEAST, most=_CANDIDATES)
    engine.table("candidates", pairs, index="page", once=True)


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

    A candidate with a lower place is better. The page -1 is a recognised template, whose id is the ``record``; of other
    pages, that is the line of the verdict.
    """

    page: int
    other: int
    place: int
    duplicate: int
    score: float
    record: bytes


def checked(job: Job, rows: Iterable[Any]) -> Iterator[Edge]:
    """Yield the edges of pages; *rows* has the pages of each host together, in the order of their ids.

    A row has a page's ``host``, id (``page``) and ``content``, and its boilerplate (``common``: the numbers of clauses,
    separated by commas); and, unless the page has no candidates, the id of one of them (``other``), the ``share`` of
    the text by which it was found, and its content (``original``).
    """
    for _, of_host in groupby(rows, key=itemgetter("host")):
        yield from _Host(job).edges(of_host)


class _Host:
    """The pages of one host. What they share is noted as in a crawl: their site, and templates that they fill in."""

    def __init__(self, job: Job) -> None:
        self._job = job
        # What a detector looks up in a store; of an archive there is one original at a time.
        index: Any = SimpleNamespace(
            eligibility=Eligibility(),
            overrides=SimpleNamespace(mark=lambda *_: None),
            is_template=lambda _: False,
            suspect_drops=lambda _: iter(()),
        )
        self._index = index
        self._detector = Detector(index, job.fingerprint.hash, job.config.threshold)
        listener: Any = SimpleNamespace(count=None)
        preferences = self._detector.preferences
        self._recorder = Recorder(
            "", job.run, None, listener, listener.count, hash_clause=job.fingerprint.hash, preferences=preferences
        )

    def edges(self, rows: Iterable[Any]) -> Iterator[Edge]:
        """Yield the edges of the pages in *rows*."""
        suspects: list[tuple[int, Any]] = []
        for _, of_page in groupby(rows, key=itemgetter("page")):
            found = [*of_page]
            read = self._job.decoded(found[0]["content"])
            yield self._without_original(found[0], read)
            if (page := read.page) is None:
                continue
            checked = [(self._checked(row, page), row) for row in found]
            checked.sort(key=lambda pair: -pair[0].match.score if pair[0].match else 0)
            for place, (verdict, row) in enumerate(checked):
                if self._detector.suspected_template(page, verdict):
                    suspects.append((place, row))
                elif verdict.match is not None:
                    yield self._edge(row["page"], row["other"], place, read, verdict)
        # The first of these were checked before their template was recognised, if it is one.
        for place, row in suspects:
            read = self._job.decoded(row["content"])
            if read.page is not None and (verdict := self._checked(row, read.page)).match is not None:
                yield self._edge(row["page"], row["other"], place, read, verdict)
        yield from (Edge(-1, -1, _LAST, 0, 0.0, template) for template in self._detector.templates.recognised)

    def _without_original(self, row: Any, read: Read) -> Edge:
        """Note the site of a page, and return the verdict on it if no candidate is an original."""
        reason, page = read.reason, read.page
        if page is not None and page.features is not None:
            self._detector.sites.note(host_of(page.url), page.features)
            if sum(_distinctive(page, row["common"]).values()) < MIN_DISTINCTIVE_WEIGHT:
                reason = Reason.TOO_LITTLE_TEXT
        verdict = Verdict(VerdictKind.UNCHECKED if reason else VerdictKind.NEW, reason=reason)
        return self._edge(row["page"], -1, _LAST, read, verdict)

    def _checked(self, row: Any, page: Page) -> Verdict:
        """Return what *page* is beside one candidate; ``new`` if they have too little in common."""
        if not row["original"] or (original := self._job.decoded(row["original"]).page) is None:
            return Verdict(VerdictKind.NEW)
        stored, distinctive = StoredPage.of(original, row["other"] + 1), _distinctive(page, row["common"])
        if row["share"] >= EQUAL:
            match = Match(stored, 1.0, frozenset(page.fingerprint.weights))
        elif sum(distinctive.values()) >= MIN_DISTINCTIVE_WEIGHT:
            match = Match(stored, containment(distinctive, stored.hashes), stored.hashes & distinctive.keys())
        else:
            return Verdict(VerdictKind.NEW)
        self._index.text = lambda _: self._job.kept_text(original)
        names = {*canonical_identities(original.features, original.url)}
        self._index.names = lambda _, identities: not names.isdisjoint(identities)
        try:
            verdict = self._detector.check_pair(page, match, distinctive.keys())
            return self._detector.preferences.applied(page, verdict, self._index)
        except Exception:
            # A bug, or a hostile page: the page is kept, and the batch goes on.
            logger.exception("%s could not be compared with %s", page.url, original.url)
            return Verdict(VerdictKind.NEW)

    def _edge(self, page: int, other: int, place: int, read: Read, verdict: Verdict) -> Edge:
        is_duplicate = verdict.kind is VerdictKind.DUPLICATE
        score = 0.0 if verdict.match is None else verdict.match.score
        visit = Visit(read.url, read.page, verdict, Action.DROP)
        record = self._recorder.record(visit)
        values = {name: getattr(record, name) for name in FIELDS} | ({"time": read.time} if read.time else {})
        return Edge(page, other, place, int(is_duplicate), score, json.dumps(values).encode("ascii"))


def _distinctive(page: Page, common: str | None) -> dict[bytes, int]:
    """Return the weights of the clauses of *page* that are not boilerplate."""
    boilerplate = {*map(int, common.split(","))} if common else ()
    return {clause: w for clause, w in page.fingerprint.weights.items() if number_of(clause) not in boilerplate}
