"""Loads the annexe that decides which requests are fetched last; a crawl without it fetches them as Scrapy does."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_ANNEX = "dedup_middleware.order"


def annex(module: str) -> Any:
    """Return a *module* of the annexe; ``None`` where that is not installed."""
    name = f"{_ANNEX}.{module}"
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name not in {_ANNEX, name}:
            raise
        return None
