"""What a crawl is called.

Runs that share a JOBDIR are one crawl.
"""

from __future__ import annotations

import uuid
from contextlib import suppress
from typing import TYPE_CHECKING

from dedup_middleware import permissions

if TYPE_CHECKING:
    from pathlib import Path

# Characters of a name: ours have twelve.
_MAX_NAME = 100


def run_id(jobdir: Path | None) -> str:
    """Return a name for this crawl, the same for all that share *jobdir*.

    Where the JOBDIR cannot be used, which is Scrapy's to say, they are not, and each delivers what the other did.
    """
    run = uuid.uuid4().hex[:12]
    if jobdir is not None:
        path = jobdir / "dedup.run"
        with suppress(OSError, UnicodeError):
            if path.exists():
                with path.open(encoding="ascii") as file:
                    if said := file.read(_MAX_NAME).strip():
                        return said
            permissions.make_folder(jobdir)
            permissions.make_file(path)
            path.write_text(run, encoding="ascii")
    return run
