"""Keeps the tables of a batch and runs its steps: in SQLite, with a process for each core, or on Spark.

Both run the same SQL, and the same Python on parts of a table.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
from contextlib import closing, contextmanager, suppress
from functools import partial
from itertools import chain, islice
from multiprocessing import connection, get_context, parent_process
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeAlias

from dedup_middleware.batch.archive import records
from dedup_middleware.errors import ConfigError, DedupError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from dedup_middleware.batch.archive import Row

    #: Of the files, and of records with the numbers of their files and their own: the rows.
    Reads: TypeAlias = Callable[[Sequence[Path], Iterable[tuple[int, int, Any]]], Iterator[Row]]
    Works: TypeAlias = Callable[[Iterator[Any]], Iterable[Any]]
    #: Of a part, its number and how many there are, and of the values that are dealt to it.
    Task: TypeAlias = Callable[[tuple[int, int], Iterator[Any]], None]

# SQLite uses the index of a column without a type only where it is compared with another such column. With a
# write-ahead log, one process can read while another writes.
_SETUP = """
    PRAGMA journal_mode = WAL; PRAGMA cache_size = -262144;
    CREATE TABLE pages (page bigint, host bigint, url bigint, text bigint, content binary);
    CREATE TABLE postings (page bigint, host bigint, clause bigint, share bigint)"""
# A process takes half a second to start: as long as the pages of so many bytes of an archive take, packed or not.
_PROCESS_BYTES = 2**22
# Records that a process gets at once, rows that it writes at once, and seconds for which it waits until others have
# written.
_DEALT, _WRITTEN, _PATIENCE = 8, 256, 600
# Partitions of a shuffle: a few for each core, and none with more than the pages of so many bytes of the archive.
_PARTITIONS_A_CORE, _PARTITION = 2, 2**27


class Local:
    """Keeps tables in a SQLite database. Their rows have columns by name; hashes and ids are numbers.

    Each of so many *processes* does a part of the steps in Python.
    """

    joined = "group_concat({})"
    """The SQL for the values of the column ``{}`` of a group, separated by commas."""

    def __init__(self, scratch: Path, processes: int) -> None:
        self._path = scratch / "pages.sqlite"
        self._processes = Processes(processes)
        self._connection = _connected(self._path)
        self._connection.executescript(_SETUP)

    def close(self) -> None:
        self._processes.close()
        self._connection.close()

    def read(self, files: Sequence[Path], rows: Reads) -> None:
        """Fill the tables ``pages`` and ``postings`` with the *rows* of all *files*, each of which is read once."""
        found = (_of_file(number, file) for number, file in enumerate(files))
        self._processes.run(partial(_read, self._path, files, rows), chain.from_iterable(found))
        self._connection.execute("CREATE INDEX pages_by_id ON pages (page)")
        self._connection.execute("CREATE INDEX pages_by_host ON pages (host, page)")

    def table(self, name: str, sql: str, *, index: str) -> None:
        """Make the table *name* of the rows of *sql*, which are looked up by the columns *index*."""
        self._connection.execute(f"CREATE TABLE {name} AS {sql}")
        self._connection.execute(f"CREATE INDEX {name}_index ON {name} ({index})")

    def map(self, name: str, columns: str, work: Works, sql: str, by: str) -> None:
        """Make the table *name*, with *columns*, of what *work* makes of the rows of *sql*.

        Rows that are equal in the first of the columns *by*, a number, come together, in the order of all of these.
        """
        self._connection.execute(f"CREATE TABLE {name} ({columns})")
        first, places = by.partition(",")[0], ", ".join("?" for _ in columns.split(","))
        part = f"SELECT * FROM ({sql}) found WHERE ? = ABS({first} % ?) ORDER BY {by}"  # noqa: S608 - SQL of ours
        insert = f"INSERT INTO {name} VALUES ({places})"  # noqa: S608 - a name of ours
        self._processes.run(partial(_mapped, self._path, work, part, insert))

    def rows(self, sql: str) -> Iterator[Any]:
        """Yield the rows of *sql*."""
        return self._connection.execute(sql)


class Processes:
    """Processes that do the parts of tasks, each of them one part, from the first task on.

    Of one process, this one does it all. :class:`DedupError` if a process fails.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._running, self._pipes = list[Any](), list[Any]()

    def run(self, task: Task, values: Iterable[Any] = ()) -> None:
        """Do each part of *task*, and deal *values* to those that have none left."""
        if self._count == 1:
            task((0, 1), iter(values))
            return
        if not self._pipes:
            self._start()
        left = iter(values)
        pipe: Any
        try:
            for pipe in self._pipes:
                pipe.send(task)
            working, ahead = {*self._pipes}, [*islice(left, _DEALT)]
            while working:
                for pipe in connection.wait([*working]):
                    if pipe.recv() == "next":
                        pipe.send(ahead)
                        # Read while the processes are at work.
                        ahead = [*islice(left, _DEALT)]
                    else:
                        working.remove(pipe)
        except (EOFError, ConnectionError) as error:
            raise DedupError(
                "a process of the batch has failed, with the error above, or was killed, perhaps because "
                "memory ran out",
                "Start the batch again",
            ) from error

    def _start(self) -> None:
        # The same on all platforms; and what a process inherits of SQLite would be damaged.
        context = get_context("spawn")
        for part in range(self._count):
            pipe, theirs = context.Pipe()
            self._pipes.append(pipe)
            self._running.append(context.Process(target=_run, args=((part, self._count), theirs), daemon=True))
            self._running[-1].start()
            # Without their end of the pipe, this process notices that the other one has ended.
            theirs.close()

    def close(self) -> None:
        for process in self._running:
            process.terminate()
            process.join()
        for pipe in self._pipes:
            pipe.close()


def _run(part: tuple[int, int], pipe: Any) -> None:
    """Do a *part* of each task that comes through *pipe*, and ask it for the values that are dealt."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(EOFError, ConnectionError):  # the process that started this one was killed
        while True:
            task = pipe.recv()
            task(part, chain.from_iterable(iter(partial(_asked, pipe), [])))
            pipe.send("done")


def _asked(pipe: Any) -> Any:
    pipe.send("next")
    return pipe.recv()


def _of_file(number: int, path: Path) -> Iterator[tuple[int, int, Any]]:
    return ((number, *record) for record in records(path))


def _read(path: Path, files: Sequence[Path], rows: Reads, _: tuple[int, int], dealt: Iterator[Any]) -> None:
    with closing(_connected(path)) as writing:
        for some in _pieces(rows(files, dealt)):
            postings = ((r.page, r.host, *posting) for r in some for posting in zip(r.clauses, r.shares, strict=True))
            with writing:
                writing.executemany("INSERT INTO pages VALUES (?, ?, ?, ?, ?)", (row[:5] for row in some))
                writing.executemany("INSERT INTO postings VALUES (?, ?, ?, ?)", postings)


def _mapped(path: Path, work: Works, sql: str, insert: str, part: tuple[int, int], _: Iterator[Any]) -> None:
    with closing(_connected(path)) as reading, closing(_connected(path)) as writing:
        for some in _pieces(work(reading.execute(sql, part))):
            with writing:
                writing.executemany(insert, some)


def _pieces(rows: Iterable[Any]) -> Iterator[list[Any]]:
    """Yield *rows*, some at once, as long as the process that started this one is there."""
    left, parent = iter(rows), parent_process()
    while (some := [*islice(left, _WRITTEN)]) and (parent is None or parent.is_alive()):
        yield some


def _connected(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path, timeout=_PATIENCE)
    database.row_factory = sqlite3.Row
    database.execute("PRAGMA synchronous = OFF")
    return database


class Spark:
    """Keeps tables in Spark, which writes them to its disks; see `Local` for the methods."""

    joined = "array_join(collect_list({}), ',')"

    def __init__(self, session: Any) -> None:
        from pyspark import StorageLevel  # noqa: PLC0415 - optional

        self._session = session
        self._kept = StorageLevel.DISK_ONLY

    def read(self, files: Sequence[Path], rows: Reads) -> None:
        context, sizes = self._session.sparkContext, [path.stat().st_size for path in files]
        found = context.parallelize([*enumerate(files)], len(files) or 1).flatMap(lambda file: _of_file(*file))
        parts = int(self._session.conf.get("spark.sql.shuffle.partitions"))
        if max(sizes, default=0) * context.defaultParallelism > sum(sizes):
            # One core would extract the pages of a large file while the others wait.
            found = found.repartition(parts)
        columns = "page bigint, host bigint, url bigint, text bigint, content binary"
        columns += ", clauses array<bigint>, shares array<bigint>"
        self._make("read", found.mapPartitions(partial(rows, files)), columns)
        self._view("pages", "SELECT page, host, url, text, content FROM read")
        self._view("exploded", "SELECT page, host, EXPLODE(ARRAYS_ZIP(clauses, shares)) AS each FROM read")
        self._view("postings", "SELECT page, host, each.clauses AS clause, each.shares AS share FROM exploded")

    def _view(self, name: str, sql: str) -> None:
        self._session.sql(sql).createOrReplaceTempView(name)

    def table(self, name: str, sql: str, *, index: str) -> None:  # noqa: ARG002 - for SQLite
        self._session.sql(sql).persist(self._kept).createOrReplaceTempView(name)

    def map(self, name: str, columns: str, work: Works, sql: str, by: str) -> None:
        names = by.split(", ")
        partitions = int(self._session.conf.get("spark.sql.shuffle.partitions"))
        rows = self._session.sql(sql).repartition(partitions, names[0]).sortWithinPartitions(*names)
        self._make(name, rows.rdd.mapPartitions(work), columns)

    def _make(self, name: str, rows: Any, columns: str) -> None:
        made = self._session.createDataFrame(rows.map(tuple), columns, verifySchema=False)
        made.persist(self._kept).createOrReplaceTempView(name)
        # All parts at once: a query that returns rows would make one after the other.
        made.count()

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
        processes = min(cores, size // _PROCESS_BYTES + 1)
        with TemporaryDirectory(dir=scratch) as folder, closing(Local(Path(folder), processes)) as local:
            yield local
        return
    try:
        from py4j.protocol import Py4JError  # noqa: PLC0415 - optional
        from pyspark.errors import PySparkException  # noqa: PLC0415
    except ImportError as error:
        install = 'pip install "dedup-middleware[spark]"'
        raise ConfigError("--spark needs pyspark, which is not installed", f"run {install}") from error
    with closing(Spark(_spark_session(master, size))) as spark:
        try:
            yield spark
        except (Py4JError, PySparkException) as error:
            raise DedupError(f"a step failed on Spark: {_cause(error):.500}") from error


def _cause(error: Exception) -> str:
    """Return the line of an *error* of Spark that names its cause."""
    lines = [line.strip() for line in str(error).splitlines()]
    causes = [line for line in lines if "Error: " in line and not line.startswith(("at ", "org.", "Caused", ":"))]
    return (causes or lines or [repr(error)])[-1]


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
        raise ConfigError(where, "it needs Java 17 or newer, and a master that answers") from error
    session.sparkContext.setLogLevel("ERROR")
    if not conf.contains("spark.sql.shuffle.partitions"):
        cores = session.sparkContext.defaultParallelism
        session.conf.set("spark.sql.shuffle.partitions", max(_PARTITIONS_A_CORE * cores, size // _PARTITION))
    return session
