"""Counts the records of a log, and warns where most pages of a crawl were not checked.

Unchecked pages are kept: where they are most of a crawl, the plugin has next to no effect. Two kinds do not count:
pages for which the user has switched the plugin off, and pages whose items are checked one by one.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from dedup_middleware.model import VerdictKind
from dedup_middleware.reasons import DIFFERENCES, Reason
from dedup_middleware.records.log import CODES, OTHER, blocks, opened, parse_record
from dedup_middleware.urls import host_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from dedup_middleware.records.log import Record

# Pairs of hosts that are counted at once. Of more, those that were met least are counted from 1 again.
_MAX_PAIRS = 100_000
# A host name has at most 253 characters, and a scheme and a port a few more.
_MAX_ORIGIN = 300
_DUPLICATE = VerdictKind.DUPLICATE.value


class _Line(msgspec.Struct, gc=False):
    """The fields of a record that are counted."""

    run: str
    url: str
    verdict: str
    outcome: str
    original_url: str | None = None
    reason: str = ""
    items_dropped: int = 0
    items_kept: int = 0


@dataclass(slots=True)
class Counts:
    """How many records of each kind a log has. Its size is bounded for any log."""

    verdicts: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    kept: Counter[str] = field(default_factory=Counter)
    """By reason: pages that were kept because of a difference, though another one has their text."""
    unchecked: Counter[str] = field(default_factory=Counter)
    """By reason: pages that were not checked, without lists."""
    pairs: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By host of the page and of its original: duplicates."""
    items_dropped: int = 0

    @property
    def records(self) -> int:
        """How many records there are in all."""
        return self.verdicts.total()

    def add(self, lines: Iterable[_Line | Record]) -> None:
        """Add these records."""
        for line in lines:
            verdict, reason = _code("verdict", line.verdict), _code("reason", line.reason)
            self.verdicts[verdict] += 1
            self.outcomes[_code("outcome", line.outcome)] += 1
            self.items_dropped += line.items_dropped
            if verdict == _DUPLICATE:
                self.pairs[_host(line.url), _host(line.original_url or "")] += 1
            if reason in DIFFERENCES:
                self.kept[reason] += 1
            has_items = bool(line.items_kept or line.items_dropped)
            if kind_of(verdict, reason, has_items=has_items) == VerdictKind.UNCHECKED.value:
                self.unchecked[reason] += 1
        if len(self.pairs) > _MAX_PAIRS:
            self.pairs = Counter(dict(self.pairs.most_common(_MAX_PAIRS // 2)))


def _code(name: str, value: str) -> str:
    return value if value in CODES[name] else OTHER


def _host(url: str) -> str:
    origin = "/".join(url.split("/", 3)[:3])
    return (host_of(origin) if len(origin) <= _MAX_ORIGIN else "") or "?"


def counts_of(path: Path, run: str | None = None) -> Counts:
    """Return the counts of the log at *path*, or of the crawl *run*; :class:`RecordsError` if it cannot be read."""
    found, decoder = Counts(), msgspec.json.Decoder(_Line)
    with opened(path) as file:
        for block in blocks(file):
            lines: Iterable[_Line | Record]
            try:
                lines = decoder.decode_lines(block)
            except (msgspec.MsgspecError, ValueError):
                # Half a character is JSON to Python alone; and a line may be torn, or no record.
                read = (parse_record(line.decode("utf8", "replace")) for line in block.splitlines(keepends=True))
                lines = [record for record in read if record is not None]
            found.add(line for line in lines if run in (None, line.run))
    return found


# --- pages that were not checked

#: In a smaller crawl a few lists of links can be most of the pages.
MIN_PAGES = 10

#: What to do about each reason.
REMEDIES: dict[str, str] = {
    Reason.TOO_LARGE: "raise DEDUP_MAX_BYTES if such pages are expected",
    Reason.TOO_MANY_ELEMENTS: "nothing to do: such pages are kept, like every unchecked page",
    Reason.TOO_MANY_CLAUSES: "nothing to do: such pages are kept, like every unchecked page",
    Reason.TOO_SLOW: "nothing to do: such pages are kept, like every unchecked page",
    Reason.NOT_TEXT: "only HTML pages are checked; to check the items of other responses, name the fields with their "
    "text in DEDUP_ITEM_FIELDS",
    Reason.NOT_PARSED: "open a page with `scrapy shell URL`: its charset or its <base> URL is not valid",
    Reason.NO_CHARSET: "correct the charset that the site declares in a downloader middleware",
    Reason.TRUNCATED_RESPONSE: "check that nothing stops the downloads early; a page without a Content-Length must end "
    "with </body> or </html>",
    Reason.NESTED_TOO_DEEPLY: "look for elements that the site does not close",
    Reason.UNREADABLE_ITEM: "check the fields of the items: reading them raises an exception",
    Reason.TOO_LITTLE_TEXT: "if a browser shows more text, render the pages, for example with scrapy-playwright; lists "
    "of links need no check",
    Reason.NO_FEATURES: "choose another DEDUP_FINGERPRINT",
    Reason.STILL_LEARNING: "crawl again with the same store: the method learns from the first pages",
    Reason.STORE_FAILED: "see the error above in the log, and run `scrapy dedup doctor`",
    Reason.STORE_UNREACHABLE: "check the server of the store",
    Reason.ERROR: "report the traceback in the log: it is a bug of the plugin",
}


#: Reasons of unchecked pages that count neither as checked nor as unchecked.
NOT_COUNTED = (Reason.SWITCHED_OFF, Reason.ITEMS_CHECKED)


def kind_of(verdict: str, reason: str, *, has_items: bool) -> str:
    """Return the kind of a page with this *verdict*, which gave items or not."""
    if verdict == VerdictKind.UNCHECKED.value:
        is_list = reason == Reason.TOO_LITTLE_TEXT.value and not has_items
        return "skipped" if reason in NOT_COUNTED else "lists" if is_list else verdict
    return verdict if has_items or verdict == VerdictKind.DUPLICATE.value else "without_items"


def mostly_unchecked(unchecked: Mapping[str, int], checked: int, what: str = "pages") -> str | None:
    """Return the warning for a crawl with these *unchecked* pages by reason and so many *checked* ones, if any.

    *what* may be the items of pages.
    """
    count = sum(unchecked.values())
    total = count + checked
    if total < MIN_PAGES or 2 * count <= total:
        return None
    ((reason, most),) = Counter(unchecked).most_common(1)
    return (
        f"{count} of {total} {what} were not checked for duplicates. The most frequent reason: {reason} ({most}). "
        f"What to do: {REMEDIES.get(reason, 'look it up in the documentation')}"
    )
