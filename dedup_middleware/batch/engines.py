"""Runs the steps of a batch: in this process by SQLite, or on Spark by its own joins."""

from __future__ import annotations

import os
import sqlite3
import sys
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from dedup_middleware.errors import ConfigError, DedupError

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
        made = work(self.rows(f"SELECT * FROM ({sql}) found ORDER BY {by}"))  # noqa: S608 - SQL of ours
        self._connection.executemany(f"INSERT INTO {name} VALUES ({values})", made)  # noqa: S608 - a name of ours

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
        made = self._session.createDataFrame(rows.map(tuple), columns, verifySchema=False)
        made.persist(self._kept).createOrReplaceTempView(name)

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
