"""What a crawl is called.

Runs that share a JOBDIR are one crawl.
"""

from __future__ import annotations

import uuid
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def run_id(jobdir: Path | None) -> str:
    """Return a name for this crawl, the same for all that share *jobdir*.

    Where the JOBDIR cannot be used, which is Scrapy's to say, they are not, and each delivers what the other did.
    """
    run = uuid.uuid4().hex[:12]
    if jobdir is not None:
        path = jobdir / "dedup.run"
        with suppress(OSError, UnicodeError):
            if path.exists() and (said := path.read_text(encoding="ascii").strip()):
                return said
            jobdir.mkdir(parents=True, exist_ok=True)
            path.write_text(run, encoding="ascii")
    return run
