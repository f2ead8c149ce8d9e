"""Commands as messages print them.

What it returns is safe to run as it stands, in any folder, and touches nothing but what it names.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from dedup_middleware.urls import without_secrets

if TYPE_CHECKING:
    from pathlib import Path


def scrapy_dedup(*words: str, spider: str | None = None, store: str | None = None, log: Path | None = None) -> str:
    """Return the command ``scrapy dedup WORDS`` for a shell, on this *store* (a URI) and *log* or the *spider*'s."""
    named = [*words]
    if spider is not None:
        named += ["--spider", spider]
    if store is not None:
        # Without the password that a server's address may have: what we print is read by others.
        named += ["-s", f"DEDUP_STORE={without_secrets(store, redact=False)}"]
    if log is not None:
        named += ["-s", f"DEDUP_LOG={log}"]
    return shlex.join(["scrapy", "dedup", *named])
