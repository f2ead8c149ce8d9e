"""How much memory this process has taken at most."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path

_STATUS = Path("/proc/self/status")


def peak() -> int | None:
    """Return the most bytes of RAM that this process has had so far; ``None`` where the system does not tell.

    On Linux `getrusage` would tell what the parent had, if that was more: the mark survives ``exec``.
    """
    if _STATUS.exists() and (found := re.search(r"VmHWM:\s*(\d+) kB", _STATUS.read_text(encoding="ascii"))):
        return int(found[1]) * 1024
    try:
        resource = import_module("resource")
    except ImportError:  # Windows
        return None
    most: int = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
