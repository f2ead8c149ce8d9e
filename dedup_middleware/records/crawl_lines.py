"""Defines the lines of a crawl among its records: one when it begins, with its settings, and one when it ends."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

_Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]


class CrawlLine(msgspec.Struct, omit_defaults=True, kw_only=True):
    """The beginning or the end of a crawl. Each process that resumes a JOBDIR writes both."""

    event: Literal["begin", "end"]
    time: str
    """UTC, ISO 8601."""
    spider: str
    crawl: str
    project: str = ""
    """The BOT_NAME."""
    version: str = ""
    settings: dict[str, str] = {}
    """Those that differ from their defaults."""
    scope: str = ""
    """What its pages were compared with: see `Scope`."""
    has_new: bool = True
    """Whether its new pages have records."""
    reason: str = ""
    """Why it ended, as Scrapy has it: ``finished`` when nothing was left to fetch; empty where that is not known."""
    requests_last: _Count = 0
    """Requests that were fetched last."""
    last: list[Any] = []
    """Their forms, those with the most requests, as plain data."""
