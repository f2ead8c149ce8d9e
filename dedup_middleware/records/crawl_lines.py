"""Defines the lines of a crawl among its records, one at its begin and one at its end, and how a line is written."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import msgspec

_Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
_encoder = msgspec.json.Encoder()


class WrittenLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line of a file of records."""

    def to_line(self) -> str:
        """Return one line of JSON, ASCII only, without its line end: the fields that differ from their defaults."""
        try:
            line = _encoder.encode(self)
            if line.isascii() and b"\x7f" not in line:
                return line.decode("ascii")
        except UnicodeEncodeError:  # half a character
            pass
        return json.dumps(msgspec.to_builtins(self), separators=(",", ":"))


class CrawlLine(WrittenLine, frozen=True, kw_only=True):
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
