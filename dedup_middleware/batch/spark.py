"""The steps of a batch on Spark, by what it has had from the start: distributed collections, and nothing of tables."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dedup_middleware.batch.engine import Element
from dedup_middleware.errors import ConfigError, DedupError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dedup_middleware.batch.archive import Part
    from dedup_middleware.batch.engine import Gathers, Maps, Reads, Values

_EXTRA = 'pip install "dedup-middleware[spark]"'
#: Where nobody has named a master: all cores of this machine.
HERE = "local[*]"


class Spark:
    """An `Engine` on the Spark of *context*, with *buckets* partitions of what is gathered."""

    def __init__(self, context: Any, buckets: int) -> None:
        from pyspark import StorageLevel  # noqa: PLC0415 - optional

        self._context = context
        self._buckets = buckets
        self._kept = StorageLevel.DISK_ONLY

    def read(self, parts: Sequence[Part], work: Reads) -> Any:
        """See Engine."""
        numbered = self._context.parallelize([*enumerate(parts)], len(parts) or 1)
        return numbered.flatMap(lambda part: work(*part)).persist(self._kept)

    def each(self, data: Any, kind: str, work: Maps) -> Any:
        """See Engine."""
        return data.filter(lambda element: element[0] == kind).flatMap(lambda element: work(Element(*element)))

    def gathered(self, data: Sequence[Any], kinds: Sequence[str], work: Gathers) -> Any:
        """See Engine."""
        wanted = frozenset(kinds)
        chosen = self._context.union([*data]).filter(lambda element: element[0] in wanted)
        by_key = chosen.map(lambda element: (element[1], (element[0], element[2]))).groupByKey(self._buckets)

        def worked(pair: tuple[int, Iterable[tuple[str, Any]]]) -> Iterable[Element]:
            values: Values = {kind: [] for kind in kinds}
            for kind, value in pair[1]:
                values[kind].append(value)
            return work(pair[0], values)

        return by_key.flatMap(worked).persist(self._kept)

    def collect(self, data: Any, kind: str) -> Iterable[Any]:
        """See Engine."""
        found: Iterable[Any] = _only(data, kind).collect()
        return found

    def stream(self, data: Any, kind: str) -> Iterable[Any]:
        """See Engine. A partition at a time: each has one key."""
        yield from _only(data, kind).toLocalIterator()


def _only(data: Any, kind: str) -> Any:
    return data.filter(lambda element: element[0] == kind).map(lambda element: element[2])


@contextmanager
def spark_context(master: str | None) -> Iterator[Any]:
    """Yield the context of Spark at *master*, or of ``spark-submit``, or of this machine.

    :class:`ConfigError` where it is not installed or does not start, :class:`DedupError` where a step fails.
    """
    try:
        from py4j.protocol import Py4JError  # noqa: PLC0415 - optional
        from pyspark import SparkConf, SparkContext  # noqa: PLC0415
    except ImportError as error:
        raise ConfigError(f"--spark needs pyspark, which is not installed: {_EXTRA}") from error
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    conf = SparkConf().setIfMissing("spark.app.name", "scrapy dedup batch").setIfMissing("spark.ui.enabled", "false")
    conf = conf.setMaster(master) if master else conf.setIfMissing("spark.master", HERE)
    try:
        context = SparkContext(conf=conf)
    except Exception as error:
        why = next(iter(str(error).splitlines()), "") or repr(error)
        raise ConfigError(
            f"Spark does not start at {conf.get('spark.master')} ({why:.200}): it needs Java 17 or newer, in the PATH "
            "or in JAVA_HOME, and a master that answers"
        ) from error
    context.setLogLevel("ERROR")
    try:
        yield context
    except Py4JError as error:
        raise DedupError(f"a step failed on Spark: {_cause(str(error))}") from error
    finally:
        context.stop()


def _cause(text: str) -> str:
    """Return the line of a traceback, in what Java says, that tells what went wrong."""
    lines = [line.strip() for line in text.splitlines()]
    found = [line for line in lines if "Error: " in line and not line.startswith(("at ", "org.", "Caused", ":"))]
    return f"{(found or lines or ['nothing is known'])[-1]:.500}"
