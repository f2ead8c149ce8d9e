"""Counts records, with the names of Scrapy's stats, and sums up the counts for people.

A crawl counts its records as it writes them. The commands count the same records with the same function, so that the
summary of a crawl, its stats, ``scrapy dedup stats``, ``doctor`` and the report have the same numbers.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING

from dedup_middleware.common.urls import host_of
from dedup_middleware.model import VerdictKind
from dedup_middleware.reasons import Outcome, Reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from dedup_middleware.records.file import Record

#: Kinds of page, and of item that is checked by itself. Each has one; the first four and tagged duplicates are kept.
KINDS = (
    "new",
    "related",
    "unchanged",
    "changed",
    "duplicate",
    "unchanged_dropped",
    "without_items",
    "lists",
    "unchecked",
    "skipped",
)
#: Stands for the host of a URL that has none.
NO_HOST = "?"
#: Reasons of unchecked pages that count neither as checked nor as unchecked: the user has switched the plugin off for
#: these pages, or their items are checked one by one.
NOT_COUNTED = (Reason.SWITCHED_OFF, Reason.ITEMS_CHECKED, Reason.ITEMS_HAVE_KEYS)
# Pairs of hosts that are counted at once. Of more, those that were met least are counted from 1 again.
_MAX_PAIRS = 100_000
# A host name has at most 253 characters, and a scheme and a port a few more.
_MAX_ORIGIN = 300
_DUPLICATE, _UNCHECKED = VerdictKind.DUPLICATE.value, VerdictKind.UNCHECKED.value
_RELATED = VerdictKind.RELATED.value
_UNCHANGED, _GONE = VerdictKind.UNCHANGED.value, VerdictKind.GONE.value
_UNCHANGED_DROPPED = "unchanged_dropped"
_SOMETIMES = (_UNCHANGED_DROPPED, "without_items", "lists")
#: What counts pages, and items that are checked by themselves: the name of their number, and how the others begin.
OF_PAGES, OF_ITEMS = ("pages", ""), ("items/checked", "items/checked/")
_KEYED = Reason.ITEMS_HAVE_KEYS.value
_LITTLE_TEXT = Reason.TOO_LITTLE_TEXT.value
_FOR_EARLIER = "items/dropped_for_earlier_crawls"


@lru_cache(maxsize=100_000)
def _host_of_origin(origin: str) -> str:
    return host_of(origin) or NO_HOST


def host_at(url: str) -> str:
    """Return the host of *url*, or `NO_HOST`."""
    origin = "/".join(url.split("/", 3)[:3])
    return _host_of_origin(origin) if len(origin) <= _MAX_ORIGIN else NO_HOST


#: What a record is counted by.
_Key = tuple[str, str, str, int, int, int, bool]


def counted_as(record: Record) -> tuple[str | None, tuple[tuple[str, int], ...]]:
    """Return the kind of *record*, and what it adds to the stats, each with its name without ``dedup/``.

    It has no kind if it is of no page and no item: of released items, of a page that is gone.
    """
    items = record.items_dropped, record.items_kept, record.items_would_drop
    return _counted((record.verdict, record.outcome, record.reason, *items, record.is_item))


def _kind(verdict: str, outcome: str, reason: str, *, has_items: bool) -> str | None:
    if outcome == Outcome.RELEASED.value or verdict == _GONE:
        return None
    if (verdict == _UNCHECKED and reason in NOT_COUNTED) or (verdict != _DUPLICATE and reason == _KEYED):
        return "skipped"
    if verdict == _UNCHECKED:
        return "lists" if reason == _LITTLE_TEXT and not has_items else _UNCHECKED
    if verdict == _UNCHANGED and outcome == Outcome.DROPPED.value:
        return _UNCHANGED_DROPPED
    if not has_items and verdict != _DUPLICATE:
        return "without_items"
    # Of another release: its items were kept, and that is all that is known.
    return verdict if verdict in KINDS else _RELATED


@lru_cache(maxsize=10_000)
def _counted(key: _Key) -> tuple[str | None, tuple[tuple[str, int], ...]]:
    verdict, outcome, reason, dropped, kept, would_drop, is_item = key
    kind = _kind(verdict, outcome, reason, has_items=bool(kept or dropped))
    numbers = {"items/dropped": dropped, "gone": int(verdict == _GONE)}
    if kind is None:
        numbers["items/released"] = kept
    else:
        all_of_them, of = OF_ITEMS if is_item else OF_PAGES
        numbers[all_of_them] = numbers[f"{of}verdict/{verdict}"] = 1
        # The items of a page whose items are checked have records of their own.
        numbers["items/kept"] = 0 if reason == Reason.ITEMS_CHECKED.value else kept
        numbers["items/tagged" if outcome == Outcome.TAGGED.value else "items/would_drop"] = would_drop
        if kind in _SOMETIMES:
            numbers[f"{of}{kind}"] = 1
        if verdict == _UNCHECKED:
            numbers[f"{of}unchecked/{reason}"] = 1
            numbers[f"items/unchecked/{reason}"] = kept if kind == _UNCHECKED else 0
        elif kind != _DUPLICATE and kind not in _SOMETIMES:
            numbers[f"{of}kept/{reason or verdict}"] = 1
    return kind, tuple((name, number) for name, number in numbers.items() if number)


class Counts:
    """The sums of the numbers of records, and who repeats whom. Its size is bounded for any records."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self.numbers: Counter[str] = Counter()
        self.pairs: Counter[tuple[str, str]] = Counter()
        """By host of the page and of its original: duplicates, items apart."""
        # Drops of earlier crawls' duplicates by their original, as long as the crawl has not kept that itself.
        self._for_earlier: dict[int, int] = {}
        for record in records:
            self.add(record)

    def add(self, record: Record) -> tuple[tuple[str, int], ...]:
        """Count *record*, and return what it adds."""
        _, numbers = counted_as(record)
        if drops := self._drops_for_earlier(record):
            numbers += ((_FOR_EARLIER, drops),)
        for name, number in numbers:
            self.numbers[name] += number
        if record.verdict == _DUPLICATE and not record.is_item:
            self.pairs[host_at(record.url), host_at(record.original_url or "")] += 1
            if len(self.pairs) > _MAX_PAIRS:
                self.pairs = Counter(dict(self.pairs.most_common(_MAX_PAIRS // 2)))
        return numbers

    def counted(self, records: Iterable[Record]) -> Iterator[Record]:
        """Yield *records*, each when it is counted."""
        for record in records:
            self.add(record)
            yield record

    def _drops_for_earlier(self, record: Record) -> int:
        """Return how many drops for originals of earlier crawls *record* adds; less than 0 if its crawl keeps one."""
        if record.items_dropped and record.original_is_earlier:
            original = hash((record.crawl, record.original_url))
            self._for_earlier[original] = self._for_earlier.get(original, 0) + record.items_dropped
            if len(self._for_earlier) > _MAX_PAIRS:
                del self._for_earlier[next(iter(self._for_earlier))]
            return record.items_dropped
        if record.items_kept and self._for_earlier and not record.is_item and record.reason not in NOT_COUNTED:
            return -self._for_earlier.pop(hash((record.crawl, record.url)), 0)
        return 0


# --- for people


def kept(numbers: Mapping[str, int], of: str = "") -> Counter[str]:
    """Return how many pages were kept, by reason, or by verdict without a reason; or of the items *of* that name.

    Without pages whose items are judged by their keys: none of these keeps an item.
    """
    pages = _by_reason(numbers, f"{of}kept/")
    del pages[_KEYED]
    return pages


def skipped(numbers: Mapping[str, int], reason: str, of: str = "") -> int:
    """Return how many pages, or items *of* that name, count neither as kept nor as unchecked for this *reason*."""
    # The text of a page whose items have keys is checked, for the sake of its links.
    found = ("unchecked", "kept") if reason == _KEYED else ("unchecked",)
    return sum(numbers.get(f"{of}{each}/{reason}", 0) for each in found)


def unchecked(numbers: Mapping[str, int], of: str = "") -> Counter[str]:
    """Return how many pages were not checked, by reason, without lists; or of the items *of* that name."""
    pages = _by_reason(numbers, f"{of}unchecked/")
    for reason in NOT_COUNTED:
        del pages[reason]
    pages[_LITTLE_TEXT] -= numbers.get(f"{of}lists", 0)
    return +pages


def _by_reason(numbers: Mapping[str, int], start: str) -> Counter[str]:
    return +Counter({name.removeprefix(start): count for name, count in numbers.items() if name.startswith(start)})


def summary(numbers: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return the lines about pages and items, each with its count.

    Each page is in one of the lines below the first that begin with two spaces, and each of those that were kept or
    unchecked in one with four. So is each item that was checked by itself.
    """
    found = Counter(numbers)
    of_items = (
        ("dropped for earlier crawls", found[_FOR_EARLIER]),
        ("duplicates tagged", found["items/tagged"]),
        ("duplicates not dropped", found["items/would_drop"]),
        ("dropped items released", found["items/released"]),
    )
    checked = found[OF_ITEMS[0]]
    return [
        ("pages", found[OF_PAGES[0]]),
        *_lines(found, OF_PAGES[1]),
        *([("items checked", checked), *_lines(found, OF_ITEMS[1])] if checked else ()),
        ("items kept", found["items/kept"]),
        ("items dropped", found["items/dropped"]),
        *((label, count) for label, count in of_items if count),
    ]


def _lines(numbers: Mapping[str, int], of: str) -> Iterator[tuple[str, int]]:
    """Yield the lines that count pages, or the items *of* that name, by what became of them."""
    sometimes = (
        ("unchanged, items dropped", _UNCHANGED_DROPPED),
        ("without items", "without_items"),
        ("list pages (no items)", "lists"),
    )
    labels = dict(zip(NOT_COUNTED, ("switched off", "checked by item", "judged by key"), strict=True))
    yield from _with_reasons("kept", kept(numbers, of))
    yield "  duplicates", numbers.get(f"{of}verdict/duplicate", 0)
    yield from ((f"  {label}", count) for label, name in sometimes if (count := numbers.get(f"{of}{name}", 0)))
    yield from ((f"  {label}", count) for reason, label in labels.items() if (count := skipped(numbers, reason, of)))
    yield from _with_reasons("unchecked", unchecked(numbers, of))


def _with_reasons(label: str, reasons: Counter[str]) -> Iterator[tuple[str, int]]:
    yield f"  {label}", reasons.total()
    yield from ((f"    {reason}", count) for reason, count in reasons.most_common())


#: In a smaller crawl a few lists of links can be most of the pages.
MIN_PAGES = 10

#: What to do about each reason.
REMEDIES: dict[str, str] = {
    Reason.TOO_LARGE: "raise DEDUP_MAX_BYTES if such pages are expected",
    Reason.TOO_MANY_ELEMENTS: "nothing to do: such pages are kept, like every unchecked page",
    Reason.TOO_MANY_CLAUSES: "nothing to do: such pages are kept, like every unchecked page",
    Reason.TOO_SLOW: "nothing to do: such pages are kept, like every unchecked page",
    Reason.OTHER_CONTENT_TYPE: "only HTML and plain text are checked; to check the items of other responses, name the "
    "fields with their text in DEDUP_ITEM_FIELDS",
    Reason.NOT_PARSED: "open a page with `scrapy shell URL`: its charset or its <base> URL is not valid",
    Reason.NO_CHARSET: "correct the charset that the site declares in a downloader middleware",
    Reason.TRUNCATED_RESPONSE: "check that nothing stops the downloads early; a page without a Content-Length must end "
    "with </body> or </html>",
    Reason.NESTED_TOO_DEEPLY: "look for elements that the site does not close",
    Reason.UNREADABLE_ITEM: "check the fields of the items: reading them raises an exception",
    Reason.TOO_LITTLE_TEXT: "if their items have a number or name of their own, as products do, set DEDUP_KEY; if a "
    "browser shows more text, render the pages, for example with scrapy-playwright; lists of links need no check",
    Reason.NO_FEATURES: "choose another DEDUP_FINGERPRINT",
    Reason.STILL_LEARNING: "crawl again with the same store: later copies of these pages are found then",
    Reason.STORE_FAILED: "see the error above in Scrapy's log, and run `scrapy dedup doctor`",
    Reason.STORE_UNREACHABLE: "check the server of the store",
    Reason.ERROR: "report the traceback in Scrapy's log: it is a bug of the plugin",
}


def mostly_unchecked(numbers: Mapping[str, int]) -> str | None:
    """Return the warning that most pages of a crawl, or of their items, were not checked; ``None`` if most were.

    Unchecked pages are kept: where they are most of a crawl, the plugin has next to no effect.
    """
    not_checked, lists = unchecked(numbers), numbers.get("lists", 0)
    not_checked[_LITTLE_TEXT] += lists
    counted = numbers.get("pages", 0) - sum(numbers.get(f"unchecked/{reason}", 0) for reason in NOT_COUNTED)
    # The summary has the lists in a line of their own.
    among_them = f", {lists} of them {'a list page' if lists == 1 else 'list pages'}" if lists else ""
    if (pages := _warning(not_checked, counted, "pages", among_them)) is not None:
        return pages
    # An error has reported a store that failed.
    reasons = (reason for reason in Reason if reason is not Reason.STORE_FAILED)
    items = +Counter({reason.value: numbers.get(f"items/unchecked/{reason}", 0) for reason in reasons})
    return _warning(items, numbers.get("items/kept", 0) + numbers.get("items/dropped", 0), "items")


def _warning(not_checked: Counter[str], total: int, what: str, among_them: str = "") -> str | None:
    count = not_checked.total()
    if total < MIN_PAGES or 2 * count <= total:
        return None
    ((reason, most),) = not_checked.most_common(1)
    return (
        f"{count} of {total} {what} were not checked for duplicates{among_them}. The most frequent reason: {reason} "
        f"({most}). What to do: {REMEDIES.get(reason, 'look it up in the documentation')}"
    )
