"""Reads the texts and the short values of an item, and decides which of these come from the fetch alone."""

from __future__ import annotations

import re
import time
from calendar import timegm
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from email.utils import parsedate
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

from dedup_middleware.common.budget import UncheckableError
from dedup_middleware.common.values import MAX_LEVELS, VALUES, is_markup
from dedup_middleware.extraction import parse, texts_of
from dedup_middleware.extraction.features import is_age
from dedup_middleware.extraction.marks import is_file
from dedup_middleware.reasons import Reason
from dedup_middleware.text import titles
from dedup_middleware.text.addresses import is_same_address
from dedup_middleware.text.clauses import MIN_TEXT_WEIGHT, folded, pieces, reduced_once, significant_clauses, weight
from dedup_middleware.text.words import symbols_of

if TYPE_CHECKING:
    from dedup_middleware.common.budget import Budget

# Fields that number pages; not "city_id" and the like, which number what repeats.
_KEYS = frozenset({"id", "_id", "pid", "uid", "uuid", "guid", "hash", "key", "url"})
# Fields that count pages, or measure one. Under such a name a bare number is not content, but "Grade 7 welder" is.
_COUNTERS = frozenset({"index", "position", "rank", "depth", "views", "chars", "bytes", "word_count", "content_length"})
# How the name of a field for the time, or the way, of the fetch begins.
_FETCH = ("scraped", "scrape_", "crawled", "crawl_", "fetched", "fetch_", "retrieved", "download_latency")
# A digest or a UUID.
_RANDOM = re.compile(r"(?=.*[a-f])[0-9a-f]{32,}")
_DATE_AND_TIME = (
    re.compile(r"(?P<y>\d{4})[-/.]?(?P<m>\d\d?)[-/.]?(?P<d>\d\d?)\D{0,2}(?P<H>\d\d?):?(?P<M>\d\d):?(?P<S>\d\d)"),
    re.compile(r"(?P<d>\d\d?)[-/.](?P<m>\d\d?)[-/.](?P<y>\d{4})\D{1,2}(?P<H>\d\d?):(?P<M>\d\d):(?P<S>\d\d)"),
    re.compile(r"(?P<m>\d\d?)[-/.](?P<d>\d\d?)[-/.](?P<y>\d{4})\D{1,2}(?P<H>\d\d?):(?P<M>\d\d):(?P<S>\d\d)"),
)
# A day: 2027-05-12, 2027年5月12日, 12.05.2027.
_DAY_OF = re.compile(r"(\d{4})[-/.年](\d\d?)[-/.月](\d\d?)|(\d\d?)[-/.](\d\d?)[-/.](\d{4})(?!\d)")
# A moment to the second has more digits than most texts with a number: a quick test for what takes long to read.
_MANY_DIGITS = re.compile(r"(?:\D*\d){9}")
# What may follow a time: fractions of a second, half of the day, time zone.
_AFTER_TIME = re.compile(r"(?:[.,]\d+)? ?(?:[AaPp]\.?[Mm]\.?)? ?(?:Z|UTC|GMT|[+-]\d\d(?::?\d\d)?)?")
# Seconds since 1970, and what programs write instead.
_UNITS = (1, 10**3, 10**6, 10**9)
_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
TAG_FIELD = "dedup"
#: Characters of a path, from which on it does not grow: items may nest without end.
MAX_PATH = 200
#: Characters of a value, with its markup: longer ones are texts.
MAX_SHORT = 2_000
# A moment in words: "Wednesday, 25-Nov-2026 23:11:02.123456 +0000".
_LONGEST_MOMENT = 48
_DIGIT = re.compile(r"\d")

Plain: TypeAlias = "str | int | float | Decimal"
_PLAIN = (str, int, float, Decimal)


class Value(NamedTuple):
    """A short value of an item: a name, a price, a label; a headline is one for each of its parts."""

    field: str
    words: str
    """Folded, separated by spaces."""
    signs: str
    """The symbols beside the words: ``✓``, ``€``, ``++``."""
    written: str
    """As the item has it."""
    whole: str
    """What two values are equal by: folded, with one kind of quotes and dashes; of a headline, words and symbols."""
    is_headline: bool = False
    """Whether it is a part of a headline by which its page calls itself."""
    is_to_come: bool = False
    """Whether it is a date after tomorrow: of an event, a deadline, never that of a publication."""


def item_texts(item: Any, fields: Iterable[str] | None = None) -> list[str]:
    """Return the texts in *item*, nested ones too; of *fields* only, where they are named. URLs are left out.

    `UncheckableError` if it cannot be read: an item's class is the project's, and what it looks up may be gone.
    """
    return [value for _, value in item_values(item, fields) if isinstance(value, str) and not is_url(value)]


def item_values(item: Any, fields: Iterable[str] | None = None) -> list[tuple[str, Plain]]:
    """Return the texts and numbers in *item*, each with its field, as :func:`item_texts` does."""
    try:
        adapter = item_fields(item)
        if adapter is None:
            return []
        names = adapter.keys() if fields is None else [f for f in fields if f in adapter]
        found = [(name, adapter[name]) for name in names]
        values = [each for field in found if not _is_tag(*field) for each in _values(*field)]
    except UncheckableError:
        raise
    except Exception as error:
        raise UncheckableError(Reason.UNREADABLE_ITEM) from error
    return values


def _is_tag(name: object, value: object) -> bool:
    return name == TAG_FIELD and isinstance(value, Mapping)


def is_url(text: str) -> bool:
    """Return whether *text* is an absolute URL of the web."""
    return text.startswith(("http://", "https://"))


def lists_of_paragraphs(values: Iterable[tuple[str, Plain]]) -> frozenset[str]:
    """Return the paths of the lists in *values* that are texts: some of their texts are long."""
    long = (field for field, value in values if isinstance(value, str) and not is_markup(value) and is_long(value))
    return frozenset(filter(None, map(list_of, long)))


def list_of(path: str) -> str:
    """Return the *path* of the list that a value is in, or an empty string."""
    field, _, place = path.rpartition(".")
    return field if place.isdecimal() else ""


class Given(NamedTuple):
    """A value of an item as it was given."""

    field: str
    value: Plain
    texts: Sequence[str]
    """The value as a text; of a price, with two decimals too."""
    counts: bool
    """Whether it is content of the page, and does not come from the fetch."""


def given_by(values: Iterable[tuple[str, Plain]], url: str, *, are_named: bool) -> Iterator[Given]:
    """Yield each of the *values* of an item of the page at *url*; where its fields *are_named* in a setting, all count.

    `UncheckableError` for a number that has no text.
    """
    now = time.time()
    for field, value in values:
        try:
            texts = [value if isinstance(value, str) else str(value)]
            if not isinstance(value, (str, int)):
                # A page writes a price with two decimals. As a Decimal, 1E+999999999 would have a gigabyte of digits.
                texts.append(f"{float(value):.2f}")
        except ValueError as error:  # more digits than Python writes
            raise UncheckableError(Reason.UNREADABLE_ITEM) from error
        yield Given(field, value, texts, are_named or not _is_of_fetch(field, texts[0], url, now))


def short_values(given: Iterable[Given], lists: frozenset[str], headlines: Collection[str]) -> Iterator[Value]:
    """Yield what counts and is short of what an item has *given*: *headlines* by their parts, nothing of *lists*."""
    now = time.time()
    for field, value, texts, counts in given:
        is_text = isinstance(value, str) and not is_url(value)
        if not counts or (is_text and list_of(field) in lists):
            continue
        written, parts = texts[0], texts
        is_title = is_text and " ".join(written.split()) in headlines
        if is_text:
            short = _short_text(written)
            parts = [] if short is None else titles.parts(short) if is_title else [short]
        for part, whole in zip(parts, parts if is_title else texts, strict=False):
            words, signs, to_come = titles.row_of(part), "".join(symbols_of(part)), is_to_come(part, now)
            equal_by = f"{words} {signs}" if is_title else whole_of(whole)
            if equal_by.strip():
                yield Value(field, words, signs, part if is_title else written, equal_by, is_title, to_come)


# Dashes and quotes that sites set otherwise.
_TYPOGRAPHIC = str.maketrans("–—−‘’“”„«»", '---\'\'"""""')


def whole_of(text: str) -> str:
    """Return what a value with this *text* is equal by: its characters, but for letter case, quotes and dashes.

    >>> whole_of("LHR – JFK") == whole_of("lhr - jfk") != whole_of("JFK – LHR")
    True
    """
    return " ".join(folded(text).translate(_TYPOGRAPHIC).split())


def _is_of_fetch(field: str, text: str, url: str, now: float) -> bool:
    """Return whether the value *text* of a *field* comes from the fetch, or is the address of the page at *url*.

    The URL of a file is content, also where it differs from that of the page in parameters alone.
    """
    if is_url(text) and is_same_address(text, url) and not is_file(text):
        return True
    return is_incidental(innermost(field), text, url, now)


def _short_text(value: str) -> str | None:
    """Return *value*, of markup its text, if that is too little to be compared as a text."""
    if len(value) > MAX_SHORT:
        return None
    text = " ".join(cast("Iterator[str]", parse(value).itertext())) if is_markup(value) else value
    if not is_long(text):
        return text
    return None if sum(each for _, each in significant_clauses(reduced_once(text))) >= MIN_TEXT_WEIGHT else text


def innermost(path: str) -> str:
    """Return the last name in a *path*, folded, without places in lists."""
    for name in reversed(path.casefold().split(".")):
        if not name.isdecimal():
            return name
    return ""


def is_incidental(name: str, text: str, url: str, now: float | None) -> bool:
    """Return whether the value *text* of the field *name* comes from the fetch of the page at *url*: it is no content.

    It is a key with a digit, a count of pages, a time or a measure of the fetch, the path of the page itself, a digest,
    an age, or a reading of the clock; *now* is in seconds since 1970, ``None`` for any time.
    """
    if text.startswith("/") and url.endswith(text):
        return True
    if _DIGIT.search(text) is None:
        return is_age(text)
    return (
        name in _KEYS
        or name.startswith(_FETCH)
        or (name in _COUNTERS and text.strip().isdecimal())
        or is_age(text)
        or _RANDOM.fullmatch(text.replace("-", "").casefold()) is not None
        or (
            len(text.strip()) <= _LONGEST_MOMENT
            and _MANY_DIGITS.match(text) is not None
            and _is_clock_reading(text, now)
        )
    )


def _is_clock_reading(text: str, now: float | None) -> bool:
    """Return whether *text* is a moment of the two days before *now*, to the second, in one of the usual writings.

    A moment on a full minute may have been planned, unless it is now, and so may one that is to come. Time zones are
    left out: a local clock may be 14 hours ahead. Without *now*, each moment is one.
    """
    moments = _moments(text.strip())
    if now is None:
        return bool(moments)
    return any(
        (second % _MINUTE and now - 2 * _DAY <= second <= now + 14 * _HOUR) or abs(now - second) < _MINUTE
        for second in moments
    )


def is_to_come(text: str, now: float) -> bool:
    """Return whether *text* begins with a day that is later than tomorrow, wherever one reads it."""
    if len(text) > _LONGEST_MOMENT or _DIGIT.search(text) is None:
        return False
    with suppress(ValueError, OverflowError, TypeError, IndexError):
        day: tuple[int, ...] | None = parsedate(f"{text} 00:00")
        if found := _DAY_OF.match(text):
            numbers = [int(number) for number in found.groups() if number]
            day = (*(numbers if found[1] else numbers[::-1]), 0, 0, 0)
        return day is not None and timegm(day) > now + 2 * _DAY
    return False


# The values of one item, and those of one crawl, are often the same.
@lru_cache(maxsize=1000)
def _moments(text: str) -> list[int]:
    """Return the moments that *text* may be, in seconds since 1970; without its time zone."""
    found: list[int] = []
    with suppress(ValueError, OverflowError):
        found += [int(float(text) / unit) for unit in _UNITS]
    for pattern in _DATE_AND_TIME:
        written = pattern.match(text)
        if written is not None and _AFTER_TIME.fullmatch(text, written.end()):
            with suppress(ValueError):
                found.append(timegm(tuple(int(written[part]) for part in "ymdHMS")))
    with suppress(ValueError, OverflowError, TypeError, IndexError):
        if (parsed := parsedate(text)) is not None:
            found.append(timegm(parsed))
    return found


def prose_in(values: Iterable[tuple[str, Plain]], lists: frozenset[str], budget: Budget) -> list[str]:
    """Return the paragraphs in *values* of an item: of markup its main text; of short values only if nothing is long.

    Those in *lists* of paragraphs are long together.

    `UncheckableError` once the *budget* is spent.
    """
    prose, short = list[str](), list[str]()
    for field, text in values:
        if not isinstance(text, str) or is_url(text):
            continue
        if is_markup(text):
            found = texts_of(parse(text, budget), budget)
            prose += found.paragraphs or found.others
        elif list_of(field) in lists or is_long(text):
            for piece in pieces([text]):
                prose += piece.split("\n")
        else:
            short.append(text)
    return prose or short


def is_long(text: str) -> bool:
    """Return whether *text* is long enough to be compared as a text."""
    return len(text) >= MIN_TEXT_WEIGHT or (not text.isascii() and weight(text) >= MIN_TEXT_WEIGHT)


def _values(name: Any, value: Any) -> list[tuple[str, Plain]]:
    """Return the texts and numbers in a *value*, each with its path under *name*: ``variants.1.stock``.

    Without recursion, for values may nest. `UncheckableError` for an object of any other type, such as a response.
    """
    if type(value) in _PLAIN:
        return [(str(name), value)]
    found: list[tuple[str, Plain]] = []
    waiting = [(str(name), value, MAX_LEVELS)]
    while waiting:
        path, value, levels = waiting.pop()
        text = _text_or_values(value)
        if isinstance(text, _PLAIN):
            found.append((path, text))
        elif text is None:
            continue
        elif levels:
            inner = [(path if key is None else _joined_path(path, key), each, levels - 1) for key, each in text]
            waiting += reversed(inner)
        else:
            raise UncheckableError(Reason.UNREADABLE_ITEM)
    return found


def _text_or_values(value: Any) -> Any:
    """Return the text or number that *value* is, or ``None``; of what contains values, an iterator of these."""
    if (known := VALUES.get(type(value))) is not None:
        return known.text(value)
    while isinstance(value, Enum):
        value = value.value
    for kind in type(value).__mro__:
        if kind in VALUES:
            return VALUES[kind].text(value)
    nested = value if isinstance(value, Mapping) else item_fields(value)
    if nested is None:
        # Two such values may be equal or not: what is not understood is kept.
        raise UncheckableError(Reason.ITEM_NOT_STORABLE)
    return iter(nested.items())


def _joined_path(path: str, key: object) -> str:
    return f"{path}.{key}" if len(path) < MAX_PATH else path


def item_fields(item: Any) -> Mapping[str, Any] | None:
    """Return the fields of *item*; ``None`` if it is not an item."""
    if type(item) is dict:
        return item
    # Where Scrapy is installed itemadapter imports it, which a program that has dicts and pages need not wait for.
    from itemadapter import ItemAdapter  # noqa: PLC0415

    return ItemAdapter(item) if ItemAdapter.is_item(item) else None
