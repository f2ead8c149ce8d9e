"""Commands as messages print them.

Law of this file: what it returns is safe to run as it stands, in any folder, and touches nothing but what it names.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def scrapy_dedup(*words: str, spider: str | None = None, store: str | None = None, log: Path | None = None) -> str:
    """Return the command ``scrapy dedup WORDS`` for a shell, on this *store* (a URI) and *log* or the *spider*'s."""
    named = [*words]
    if spider is not None:
        named += ["--spider", spider]
    if store is not None:
        named += ["-s", f"DEDUP_STORE={store}"]
    if log is not None:
        named += ["-s", f"DEDUP_LOG={log}"]
    return shlex.join(["scrapy", "dedup", *named])
