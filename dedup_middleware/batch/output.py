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
from itertools import accumulate, groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from dedup_middleware import permissions
from dedup_middleware.api import as_item
from dedup_middleware.batch.archive import FILE_PAGES, POSITIONS
from dedup_middleware.batch.pairs import FIELDS
from dedup_middleware.budget import UncheckableError, page_budget
from dedup_middleware.checks.items import ItemCheck, content_of
from dedup_middleware.errors import ConfigError
from dedup_middleware.index import schema
from dedup_middleware.index.index import item_texts
from dedup_middleware.index.lookup import TEXT_LIMIT
from dedup_middleware.index.transfer import NewPage, filled, lines_of, put_pages
from dedup_middleware.model import Kept, StoredPage, VerdictKind
from dedup_middleware.registry import required
from dedup_middleware.stores import default_backend
from dedup_middleware.urls import canonical_identities

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dedup_middleware.batch.archive import Job
    from dedup_middleware.batch.pairs import Engine
    from dedup_middleware.model import ItemContent, Page

_KEPT = (VerdictKind.NEW.value, VerdictKind.RELATED.value)
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
    SELECT v.first, p.content, c.duplicate, c.score, w.first AS other_first, o.content AS other
    FROM versions v JOIN pages p ON p.page = v.page JOIN chosen c ON c.page = v.page
    LEFT JOIN versions w ON w.page = c.other AND (c.duplicate = 1 OR c.score >= {threshold})
    LEFT JOIN pages o ON o.page = w.page
    WHERE v.number = 1"""


@contextmanager
def results_in(folder: Path, names: Sequence[str]) -> Iterator[Path]:
    """Yield a scratch folder in *folder*; the files *names* leave it for *folder* when the block ends without an error.

    :class:`ConfigError` if *folder* cannot be written, or has such files.
    """
    try:
        _refuse_existing(folder, names)
        permissions.make_folder(folder)
        with tempfile.TemporaryDirectory(prefix=".batch-", dir=folder) as scratch:
            yield Path(scratch)
            _refuse_existing(folder, names)
            for name in names:
                path = Path(scratch, name)
                path.chmod(permissions.FILE_MODE)
                path.rename(folder / name)
    except (OSError, sqlite3.OperationalError) as error:
        why = getattr(error, "strerror", None) or error
        raise ConfigError(f"{folder} cannot be written ({why}); name another folder with -o") from error


def _refuse_existing(folder: Path, names: Iterable[str]) -> None:
    for path in (folder / name for name in names):
        if path.exists():
            raise ConfigError(f"{path} exists already; name another folder with -o, or remove the file")


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


def write_store(engine: Engine, job: Job, counts: Sequence[int], path: Path) -> None:
    """Write the export of a store that has all pages; *counts* has how many pages each file of the archive has."""
    engine.table("versions", _VERSIONS, index="page")
    starts = [*accumulate(counts, initial=1)]
    rows = _STORED.format(threshold=job.config.threshold)
    engine.map("stored", "first bigint, packed binary", partial(_packed, job, starts), rows, "first")
    packed = engine.rows("SELECT packed FROM stored ORDER BY first")
    templates = engine.rows("SELECT DISTINCT record FROM edges WHERE page < 0")
    uri = f"{default_backend()}:{path.with_name('store')}"
    with filled(uri, job.header) as store, gzip.open(path, "xt", _GZIP_LEVEL, "ascii") as file:
        put_pages(store, (msgspec.msgpack.decode(page, type=NewPage) for (page,) in packed))
        store.write((schema.template_key(bytes(template)), b"") for (template,) in templates)
        store.write([(schema.NEXT_PLACE_KEY, schema.encode_number(starts[-1]))])
        file.writelines(f"{line}\n" for line in lines_of(store))


def _packed(job: Job, starts: Sequence[int], rows: Iterator[Any]) -> Iterator[tuple[int, bytes]]:
    return ((row["first"], msgspec.msgpack.encode(_page(job, starts, row))) for row in rows)


def _page(job: Job, starts: Sequence[int], row: Any) -> NewPage:
    read, original, is_duplicate = job.decoded(row["content"]), None, bool(row["duplicate"])
    page, other = read.page, job.decoded(row["other"]).page if row["other"] else None
    assert page is not None
    stored, unlisted = StoredPage.of(page, _number(row["first"], page.url, starts), feeds=None), list[bytes]()
    if read.time:
        stored = replace(stored, kept=Kept(job.run, read.time, None))
    if other is not None and row["other_first"] is not None:
        original = StoredPage.of(other, _number(row["other_first"], other.url, starts))
    if original is not None and is_duplicate:
        score = round(row["score"], 4)
        stored = replace(stored, original=original.number, original_digest=original.content, score=score)
    else:
        stored = replace(stored, item_content=_content(job, page))
        if original is not None:
            # What look-alikes share is not boilerplate: it leads to the first of them alone.
            unlisted = sorted(schema.clause_keys(original.hashes & stored.hashes))
    texts = item_texts(stored)
    return NewPage(
        stored.number,
        schema.encode_page(stored),
        schema.encode_text(page.paragraphs, TEXT_LIMIT),
        schema.encode_text(texts, TEXT_LIMIT) if texts else None,
        unlisted,
        [*canonical_identities(page.features, page.url)],
    )


def _number(position: int, url: str, starts: Sequence[int]) -> int:
    file, place = divmod(position, FILE_PAGES)
    return schema.page_number(starts[file] + place, url)


def _content(job: Job, page: Page) -> ItemContent:
    """Return what an item with the text and the title of *page* contains."""
    check = ItemCheck(job.fingerprint, job.config.max_bytes, job.config.item_fields)
    with suppress(UncheckableError):
        return content_of([check.read(page, as_item(page, job.config.item_fields), page_budget())])
    return content_of([])
