"""How much a search tries: some of it by day, and all by night, with ``BY_NIGHT=1 pytest -m nightly``."""

from __future__ import annotations

import os

BY_NIGHT = bool(os.environ.get("BY_NIGHT"))


def tries(by_day: int, by_night: int) -> int:
    """Return how many cases are tried now."""
    return by_night if BY_NIGHT else by_day
