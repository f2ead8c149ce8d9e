"""Writes the results of a batch to a folder: verdicts, clusters, and an export that a store imports."""

from __future__ import annotations

import gzip
import json
import sqlite3
import tempfile
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dedup_middleware.api import Deduplicator, as_item
from dedup_middleware.batch.archive import POSITIONS, Read, records
from dedup_middleware.batch.pairs import FIELDS
from dedup_middleware.common import permissions
from dedup_middleware.common.budget import UncheckableError, page_budget
from dedup_middleware.common.registry import required
from dedup_middleware.errors import ConfigError
from dedup_middleware.index import schema
from dedup_middleware.index.index import MAX_HOLDERS, packed_item_text, puts_of
from dedup_middleware.index.transfer import header_line, line_of
from dedup_middleware.items.reading import ItemCheck, content_of
from dedup_middleware.model import Kept, StoredPage, VerdictKind
from dedup_middleware.stores import default_backend

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from dedup_middleware.batch.archive import Job
    from dedup_middleware.batch.engine import Engine
    from dedup_middleware.model import ItemContent, Page

_KEPT = (VerdictKind.NEW.value, VerdictKind.RELATED.value)
_KEYED_FIELDS = ("key", "url", "verdict", "original_url", "reason")
# A third of the time of the default for a few more bytes.
_GZIP_LEVEL = 1
# Records of a row group.
_ROW_GROUP = 10_000

_VERDICTS = f"""
    SELECT c.record, ROW_NUMBER() OVER (PARTITION BY p.url, p.text ORDER BY p.page) AS fetch
    FROM chosen c JOIN pages p ON p.page = c.page ORDER BY c.page % {POSITIONS}"""  # noqa: S608 - a number of ours
_CLUSTERS = f"""
    SELECT other, record FROM chosen WHERE duplicate = 1
    ORDER BY other % {POSITIONS}, page % {POSITIONS}"""  # noqa: S608 - the same
# The fetches of a URL, the last one first.
_VERSIONS = f"""
    SELECT p.page, MIN(p.page % {POSITIONS}) OVER (PARTITION BY p.url) AS first,
        ROW_NUMBER() OVER (PARTITION BY p.url ORDER BY p.page DESC) AS number
    FROM pages p WHERE p.text IS NOT NULL"""  # noqa: S608 - the same
_STORED = """
    SELECT v.page, v.first, p.content, c.duplicate, c.score, w.first AS other_first, o.content AS other
    FROM versions v JOIN pages p ON p.page = v.page JOIN chosen c ON c.page = v.page
    LEFT JOIN versions w ON w.page = c.other AND (c.duplicate = 1 OR c.score >= {threshold})
    LEFT JOIN pages o ON o.page = w.page
    WHERE v.number = 1"""
_PAIRS = """
    SELECT part, key, value, number FROM stored UNION ALL
    SELECT {part}, X'{key}', X'{value}', CAST(NULL AS bigint)"""
# A process has a part of the store in memory: 2 to the power of so many pages, or 64 times as many posting lists.
_PART_BITS = 8
# Keys that have a page's number. The rest of another key is a hash.
_NUMBERED = b"nopst"


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """Yield a folder for files that *folder*, which is new or empty, has once the block ends without an error.

    :class:`ConfigError` if *folder* cannot be written, or is not empty.
    """
    try:
        permissions.make_folder(folder)
        if any(folder.iterdir()):
            raise ConfigError(f"{folder} is not empty", "name another folder with -o")
        with tempfile.TemporaryDirectory(prefix=".batch-", dir=folder) as scratch:
            yield Path(scratch)
            for path in Path(scratch).iterdir():
                path.chmod(permissions.FILE_MODE)
                path.rename(folder / path.name)
    except (OSError, sqlite3.OperationalError) as error:
        why = getattr(error, "strerror", None) or error
        raise ConfigError(f"{folder} cannot be written ({why})", "name another folder with -o") from error


def write_verdicts(engine: Engine, path: Path) -> Counter[str]:
    """Write the verdict on each page, in the order of the archive; return how many there are of each kind."""
    kinds: Counter[str] = Counter()

    def records() -> Iterator[dict[str, Any]]:
        for row in engine.rows(_VERDICTS):
            record = json.loads(bytes(row["record"]))
            if row["fetch"] > 1 and record["verdict"] in _KEPT:
                record["verdict"] = VerdictKind.UNCHANGED.value
            kinds[record["verdict"]] += 1
            yield record

    _write(records(), path, (*FIELDS, "time"))
    return kinds


def write_clusters(engine: Engine, path: Path) -> None:
    """Write each original that has duplicates, with their URLs, in the order of the archive."""

    def records() -> Iterator[dict[str, Any]]:
        for _, rows in groupby(engine.rows(_CLUSTERS), key=itemgetter(0)):
            found = [json.loads(bytes(record)) for _, record in rows]
            original = found[0]["original_url"]
            urls = [original, *(record["url"] for record in found)]
            yield {"original": original, "size": len(urls), "urls": urls}

    _write(records(), path, ("original", "size", "urls"))


def write_keyed(job: Job, files: Sequence[Path], path: Path) -> Counter[str]:
    """Write the verdict on each item of *files* that has a key of *job*; return how many there are of each kind.

    In one process, 0.2 ms an item. An item without a ``url`` has the place of its line.
    """
    kinds: Counter[str] = Counter()
    options = {"key": job.config.key, "item_fields": job.config.item_fields, "redact_query": job.config.redact_query}
    with (
        tempfile.TemporaryDirectory(dir=path.parent) as folder,
        Deduplicator(f"{default_backend()}:{Path(folder, 'store')}", **options) as dedup,  # type: ignore[arg-type]
        path.open("x", encoding="ascii") as output,
    ):
        for file in files:
            for number, record in records(file):
                if (item := job.keyed_item(record)) is None:
                    continue
                url = item.get("url")
                found = dedup.add(url if url and isinstance(url, str) else f"{file}:{number}", item=item).as_dict()
                kinds[found["verdict"]] += 1
                changes = (found["changes"] or {}).get("values", [])
                output.write(json.dumps({name: found[name] for name in _KEYED_FIELDS} | {"changes": changes}) + "\n")
    return kinds


def _write(records: Iterator[dict[str, Any]], path: Path, columns: Sequence[str]) -> None:
    """Write *records* as JSON Lines or, if *path* ends in ``.parquet``, as Parquet with these *columns*."""
    if path.suffix != ".parquet":
        with path.open("x", encoding="ascii") as file:
            file.writelines(f"{json.dumps(record)}\n" for record in records)
        return
    arrow, parquet = (
        required("pyarrow", "--parquet", extra="archive"),
        required("pyarrow.parquet", "--parquet", extra="archive"),
    )
    texts = arrow.list_(arrow.string())
    kinds = {"score": arrow.float64(), "size": arrow.int64(), "difference": texts, "evidence": texts, "urls": texts}
    columns_of = arrow.schema([(name, kinds.get(name, arrow.string())) for name in columns])
    with parquet.ParquetWriter(path, columns_of) as writer:
        while some := [*islice(records, _ROW_GROUP)]:
            # Half of a surrogate pair is not UTF-8.
            text = str(json.dumps(some, ensure_ascii=False).encode("utf8", "replace"), "utf8")
            writer.write_table(arrow.Table.from_pylist(json.loads(text), columns_of))


def write_store(engine: Engine, job: Job, path: Path) -> None:
    """Write a copy of a store that has all pages, as `scrapy dedup store import` reads it."""
    engine.table("versions", _VERSIONS, index="page")
    ((last,),) = engine.rows("SELECT MAX(first) FROM versions")
    ((postings,),) = engine.rows("SELECT COUNT(*) FROM postings")
    part_of = partial(_part_of, (postings >> _PART_BITS + 6).bit_length())
    rows = _STORED.format(threshold=job.config.threshold)
    columns = "part bigint, key binary, value binary, number bigint"
    engine.map("stored", columns, partial(_stored, job, part_of), rows, "page")
    key, value = schema.NEXT_PLACE_KEY, schema.encode_number((last or 0) + 1)
    pairs = _PAIRS.format(part=part_of(key), key=key.hex(), value=value.hex())
    engine.map("packed", "part bigint, pairs bigint, packed binary", _packed, pairs, "part, key")
    with path.open("xb") as file:
        count = 0
        file.write(_gzip([header_line(job.header).encode("ascii")]))
        for row in engine.rows("SELECT pairs, packed FROM packed ORDER BY part"):
            count += row["pairs"]
            file.write(row["packed"])
        file.write(_gzip([b"%d" % count]))


def _gzip(lines: Iterable[bytes]) -> bytes:
    return gzip.compress(b"".join(b"%b\n" % line for line in lines), _GZIP_LEVEL)


def _packed(rows: Iterable[Any]) -> Iterator[tuple[int, int, bytes]]:
    """Yield each part of the copy of a store, as a member of a gzip file, with how many pairs it has."""
    for part, of_part in groupby(rows, key=itemgetter("part")):
        lines = [line_of(_pair(bytes(key), some)) for key, some in groupby(of_part, key=itemgetter("key"))]
        yield part, len(lines), _gzip(lines)


def _pair(key: bytes, rows: Iterable[Any]) -> tuple[bytes, bytes]:
    """Return a *key* with the greatest of the values that *rows* have, or with the first of their numbers."""
    _, _, values, numbers = zip(*rows, strict=True)
    if values[0] is None:
        return key, schema.encode_postings(sorted(numbers)[:MAX_HOLDERS])
    return key, max(map(bytes, values))


def _part_of(bits: int, key: bytes) -> int:
    """Return the part of the store that has *key*: greater for greater keys. A hash has it in its first *bits*."""
    return key[0] << 40 | int.from_bytes(key[1:6], "big") >> (_PART_BITS if key[:1] in _NUMBERED else 40 - bits)


def _stored(
    job: Job, part_of: Callable[[bytes], int], rows: Iterable[Any]
) -> Iterator[tuple[int, bytes, bytes | None, int | None]]:
    """Yield the keys that a store has for each page, with a value, or with the page's number for a posting list."""
    return ((part_of(key), key, value, number) for row in rows for key, value, number in _pairs(job, row))


def _pairs(job: Job, row: Any) -> Iterator[tuple[bytes, bytes | None, int | None]]:
    read, original = Read.of(row["content"]), None
    page, other = read.page, Read.of(row["other"]).page if row["other"] else None
    assert page is not None
    stored = StoredPage.of(page, _number(job, row["first"], page), feeds=None)
    if read.time:
        stored = replace(stored, kept=Kept(job.run, read.time, None))
    if other is not None and row["other_first"] is not None:
        original = StoredPage.of(other, _number(job, row["other_first"], other))
    if original is not None and row["duplicate"]:
        score = round(row["score"], 4)
        stored = replace(stored, original=original.number, original_digest=original.content, score=score)
    else:
        stored = replace(stored, item_content=_content(job, page))
        # What look-alikes share is not boilerplate: it leads to the first of them alone.
        shared = frozenset() if original is None else original.hashes & stored.hashes
        listed = schema.listed([stored]).difference(schema.clause_keys(shared))
        yield from ((key, None, stored.number) for key in listed)
    for key, value in puts_of(stored, schema.encode_text(page.paragraphs), packed_item_text(stored, page.paragraphs)):
        yield key, value, None


def _number(job: Job, place: int, page: Page) -> int:
    return schema.page_number(place, schema.host_mark(page.url, job.header.key))


def _content(job: Job, page: Page) -> ItemContent:
    """Return what an item with the text and the title of *page* contains."""
    check = ItemCheck(job.fingerprint, job.config.max_bytes, job.config.item_fields)
    with suppress(UncheckableError):
        item = check.read(page, as_item(page, job.config.item_fields), page_budget())
        return content_of([replace(item, kind="")])
    return content_of([])
