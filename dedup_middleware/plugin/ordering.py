"""Loads the annexe that decides which requests are fetched last; a crawl without it fetches them as Scrapy does."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scrapy import Request
    from scrapy.http import Response

    from dedup_middleware.visits.visit import Visit

_ANNEX, _DOOR = "dedup_middleware.order", "dedup_middleware.order.door"


class Ordering(Protocol):
    """The order of the requests of one crawl, as the middlewares use it."""

    def mark(self, response: Response, request: Request) -> None:
        """Note in *request*, which comes from *response*, what `dispatched` or a queue needs to place it."""

    def dispatched(self, request: Request) -> Request | None:
        """Return *request* with a lower priority if Scrapy is to reschedule it, just before it would be sent."""

    def visited(self, visit: Visit, response: Response, links: Iterable[str]) -> None:
        """Learn from a page whose callback has finished, and gave requests for *links*."""

    def close(self) -> None:
        """Record what was put off."""


def annex() -> Any:
    """Return the door of the annexe; ``None`` where it is not installed."""
    try:
        return import_module(_DOOR)
    except ModuleNotFoundError as error:
        if error.name not in {_ANNEX, _DOOR}:
            raise
        return None
