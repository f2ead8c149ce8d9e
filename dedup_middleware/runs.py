"""What a crawl is called.

Law of this file: runs that share a JOBDIR are one crawl.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from dedup_middleware.errors import DedupError

if TYPE_CHECKING:
    from pathlib import Path


def run_id(jobdir: Path | None) -> str:
    """Return a name for this crawl; runs that share a JOBDIR are one crawl."""
    run = uuid.uuid4().hex[:12]
    if jobdir is None:
        return run
    path = jobdir / "dedup.run"
    try:
        if path.exists():
            return path.read_text(encoding="ascii").strip() or run
        jobdir.mkdir(parents=True, exist_ok=True)
        path.write_text(run, encoding="ascii")
    except (OSError, UnicodeError) as error:
        raise DedupError(f"JOBDIR {jobdir} cannot be used ({error}); make it writable") from error
    return run
