"""Loads the annexe that decides which requests are fetched last; a crawl without it fetches them as Scrapy does."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_ANNEX, _DOOR = "dedup_middleware.order", "dedup_middleware.order.door"


def annex() -> Any:
    """Return the door of the annexe; ``None`` where it is not installed."""
    try:
        return import_module(_DOOR)
    except ModuleNotFoundError as error:
        if error.name not in {_ANNEX, _DOOR}:
            raise
        return None
