"""Keeps the tables of a batch and runs its steps: in SQLite, with a process for each core, or on Spark.

Both run the same SQL, and the same Python on parts of a table.
"""

from __future__ import annotations

import logging
import os
import signal
import sqlite3
import sys
from contextlib import closing, contextmanager, suppress
from functools import partial
from itertools import islice
from multiprocessing import connection, get_context
from typing import TYPE_CHECKING, Any, TypeAlias

from dedup_middleware.errors import ConfigError, DedupError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from dedup_middleware.batch.archive import Row

    #: Of the number and the path of a file, a part and how many there are: the rows of that part of the file.
    Reads: TypeAlias = Callable[[int, Path, int, int], Iterator[Row]]
    Works: TypeAlias = Callable[[Iterator[Any]], Iterable[Any]]
    Task: TypeAlias = Callable[[], Iterable[Any]]

logger = logging.getLogger(__name__)

#: The suffix of the files of `Local`.
DATABASE = ".sqlite"
_SETUP = """
    PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -262144;
    PRAGMA mapped.journal_mode = OFF; PRAGMA mapped.synchronous = OFF;
    CREATE TABLE pages (page bigint, host bigint, url bigint, text bigint, content blob);
    CREATE TABLE postings (page bigint, host bigint, clause bigint, share bigint)"""
# A process takes half a second to start, as long as the pages of so many bytes of an archive take, packed or not.
_PROCESS_BYTES = 2**21
# Results of a process that are sent at once.
_SENT = 32
# Partitions of a shuffle: a few for each core, and none with more than the pages of so many bytes of the archive.
_PARTITIONS_A_CORE, _PARTITION = 2, 2**27


class Workers:
    """Processes, each of which does a part of every task; one part is done in this process."""

    def __init__(self, count: int) -> None:
        self.count = count
        # The same on all platforms; and what a process inherits of SQLite would be damaged.
        context = get_context("spawn")
        self._processes, self._connections = [], list[Any]()
        for _ in range(count if count > 1 else 0):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs,), daemon=True)
            process.start()
            theirs.close()
            self._processes.append(process)
            self._connections.append(ours)

    def results(self, tasks: Sequence[Task]) -> Iterator[Any]:
        """Yield what *tasks* yield, one for each process, as it comes. Processes wait where it is not taken."""
        if self.count == 1:
            yield from tasks[0]()
            return
        try:
            for each, task in zip(self._connections, tasks, strict=True):
                each.send(task)
            working = [*self._connections]
            while working:
                ready: Any
                for ready in connection.wait(working):
                    results = ready.recv()
                    if isinstance(results, Exception):
                        raise results
                    if results is None:
                        working.remove(ready)
                    else:
                        yield from results
        except (EOFError, ConnectionError) as error:
            raise DedupError("a process of the batch was killed, perhaps for want of memory; start it again") from error

    def close(self) -> None:
        """End the processes."""
        for process in self._processes:
            process.terminate()
            process.join()


def _serve(ours: Any) -> None:
    """Do the tasks that come in, and send what they yield, in pieces; ``None`` after the last."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(EOFError, ConnectionError):
        while True:
            task = ours.recv()
            try:
                results = iter(task())
                while some := [*islice(results, _SENT)]:
                    ours.send(some)
                ours.send(None)
            except ConnectionError:
                raise
            except Exception as error:
                logger.exception("a part of the batch has failed")
                ours.send(error)


class Local:
    """Keeps tables in a SQLite database. Their rows have columns by name; hashes and ids are numbers."""

    joined = "group_concat({})"
    """The SQL for the values of the column ``{}`` of a group, separated by commas."""

    def __init__(self, scratch: Path, workers: Workers) -> None:
        self._path = scratch / f"pages{DATABASE}"
        self._workers = workers
        self._connection = sqlite3.connect(self._path, isolation_level=None)
        self._connection.row_factory = sqlite3.Row
        # What processes make of the rows of one database is written to another: they lock the first.
        self._connection.execute("ATTACH ? AS mapped", [str(scratch / f"mapped{DATABASE}")])
        self._connection.executescript(_SETUP)

    def close(self) -> None:
        self._connection.close()

    def read(self, files: Sequence[Path], rows: Reads) -> None:
        """Fill the tables ``pages`` and ``postings`` with the *rows* of each file and its number."""
        execute, execute_many = self._connection.execute, self._connection.executemany
        count = self._workers.count
        execute("BEGIN")
        for row in self._workers.results([partial(_read, files, rows, part, count) for part in range(count)]):
            execute("INSERT INTO pages VALUES (?, ?, ?, ?, ?)", row[:5])
            postings = ((row.page, row.host, *posting) for posting in zip(row.clauses, row.shares, strict=True))
            execute_many("INSERT INTO postings VALUES (?, ?, ?, ?)", postings)
        execute("CREATE INDEX pages_by_id ON pages (page)")
        execute("CREATE INDEX pages_by_host ON pages (host, page)")
        execute("COMMIT")

    def table(self, name: str, sql: str, *, index: str, once: bool = False) -> None:  # noqa: ARG002 - for Spark
        """Make the table *name* of the rows of *sql*, which are looked up by the columns *index*.

        *once*: only one further step reads the table.
        """
        self._connection.execute(f"CREATE TABLE {name} AS {sql}")
        self._connection.execute(f"CREATE INDEX {name}_index ON {name} ({index})")

    def map(self, name: str, columns: str, work: Works, sql: str, by: str) -> None:
        """Make the table *name*, with *columns*, of what *work* makes of the rows of *sql*.

        Rows that are equal in the first of the columns *by*, a number, come together, in the order of all of these.
        """
        count = self._workers.count
        parts = f"SELECT * FROM ({sql}) found WHERE ABS({by.split(',', maxsplit=1)[0]} % {count}) = {{}} ORDER BY {by}"  # noqa: S608 - SQL of ours
        tasks = [partial(_mapped, self._path, work, parts.format(part)) for part in range(count)]
        values = ", ".join("?" for _ in columns.split(","))
        self._connection.execute("BEGIN")
        self._connection.execute(f"CREATE TABLE mapped.{name} ({columns})")
        self._connection.executemany(f"INSERT INTO {name} VALUES ({values})", self._workers.results(tasks))  # noqa: S608 - a name of ours
        self._connection.execute("COMMIT")

    def rows(self, sql: str) -> Iterator[Any]:
        """Yield the rows of *sql*."""
        return self._connection.execute(sql)


def _read(files: Sequence[Path], rows: Reads, part: int, parts: int) -> Iterator[Row]:
    for number, path in enumerate(files):
        yield from rows(number, path, part, parts)


def _mapped(path: Path, work: Works, sql: str) -> Iterator[Any]:
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as reading:
        reading.row_factory = sqlite3.Row
        yield from work(reading.execute(sql))


class Spark:
    """Keeps tables in Spark; see `Local` for the methods. A table that several steps read is kept on disk."""

    joined = "array_join(collect_list({}), ',')"

    def __init__(self, session: Any) -> None:
        from pyspark import StorageLevel  # noqa: PLC0415 - optional

        self._session = session
        self._kept = StorageLevel.DISK_ONLY

    def read(self, files: Sequence[Path], rows: Reads) -> None:
        parts = -(-self._session.sparkContext.defaultParallelism // (len(files) or 1))
        tasks = [(number, path, part, parts) for number, path in enumerate(files) for part in range(parts)]
        numbered = self._session.sparkContext.parallelize(tasks, len(tasks) or 1)
        columns = "page bigint, host bigint, url bigint, text bigint, content binary"
        columns += ", clauses array<bigint>, shares array<bigint>"
        self._make("read", numbered.flatMap(lambda task: rows(*task)), columns)
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

    def close(self) -> None:
        self._session.stop()


Engine: TypeAlias = Local | Spark


@contextmanager
def engine(master: str | None, files: Sequence[Path], scratch: Path) -> Iterator[Engine]:
    """Yield an engine for *files*: `Local` with a database in *scratch*, or `Spark` at *master*.

    An empty *master* is that of ``spark-submit``, or all cores of this machine. :class:`ConfigError` if Spark is not
    installed or does not start, :class:`DedupError` if a step fails.
    """
    size = sum(path.stat().st_size for path in files)
    if master is None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        count = min(cores, size // _PROCESS_BYTES + 1)
        with closing(Workers(count)) as workers, closing(Local(scratch, workers)) as local:
            yield local
        return
    try:
        from py4j.protocol import Py4JError  # noqa: PLC0415 - optional
        from pyspark.errors import PySparkException  # noqa: PLC0415
    except ImportError as error:
        install = 'pip install "dedup-middleware[spark]"'
        raise ConfigError(f"--spark needs pyspark, which is not installed; run {install}") from error
    with closing(Spark(_spark_session(master, size))) as spark:
        try:
            yield spark
        except (Py4JError, PySparkException) as error:
            lines = [line.strip() for line in str(error).splitlines()]
            causes = [
                line for line in lines if "Error: " in line and not line.startswith(("at ", "org.", "Caused", ":"))
            ]
            raise DedupError(f"a step failed on Spark: {(causes or lines or [repr(error)])[-1]:.500}") from error


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
