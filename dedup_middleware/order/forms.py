"""Reads the forms of requests that were fetched last from the lines of crawls, where `RequestOrder` has put them."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from dedup_middleware.errors import RecordsError
from dedup_middleware.order.url_rules import address_of
from dedup_middleware.records.file import crawl_lines

if TYPE_CHECKING:
    from pathlib import Path

    from dedup_middleware.records.crawl_lines import CrawlLine

#: Forms of a line.
MAX_FORMS = 100
_Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]


class FormLast(msgspec.Struct):
    """The requests of one form, shape and names of parameters, that a crawl has fetched last."""

    form: str
    requests: _Count
    pages: _Count
    """Those of the form that were fetched."""
    nothing: _Count
    """Those that brought nothing new."""


def forms_of(line: CrawlLine) -> list[FormLast]:
    """Return the forms of *line*; none if they are not valid."""
    with suppress(msgspec.ValidationError):
        return msgspec.convert(line.last, list[FormLast])
    return []


def last_form(log: Path, url: str) -> dict[str, Any] | None:
    """Return what a crawl has counted of the form of *url*, if it has fetched requests of that form last."""
    address, found = address_of(url), None
    if address is not None:
        with suppress(RecordsError):
            for line in crawl_lines(log):
                found = next((form for form in forms_of(line) if form.form == address.form), found)
    return None if found is None else msgspec.to_builtins(found)
