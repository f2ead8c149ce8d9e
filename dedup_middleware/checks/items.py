"""Compares an item of a duplicate page with the kept items of the page's original.

The item is dropped only if they contain what it contains: its text, and on the original's site its short values too.
Between sites values differ as titles do, and a copy is the page that has the text.
"""

from __future__ import annotations

import re
import time
from calendar import timegm
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from datetime import time as time_of_day
from decimal import Decimal
from email.utils import parsedate
from enum import Enum
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from dedup_middleware.budget import UncheckableError
from dedup_middleware.checks.address import is_same_address, site_of
from dedup_middleware.checks.alignment import MAX_CHARACTERS, MAX_LINE, compare, containment
from dedup_middleware.checks.checklist import not_in_text, own_clauses, own_symbols, own_title, renumbered, symbols_of
from dedup_middleware.checks.detector import MIN_DISTINCTIVE_WEIGHT, RELATED_THRESHOLD
from dedup_middleware.checks.pair import Pair, is_view
from dedup_middleware.extraction import parse, texts_of
from dedup_middleware.extraction.features import text_hash
from dedup_middleware.fingerprints import fast_hash
from dedup_middleware.model import STORED_TEXT_BYTES, ItemContent, PageFeatures, Rejection
from dedup_middleware.reasons import Reason
from dedup_middleware.text import titles
from dedup_middleware.text.clauses import MIN_CLAUSE_WEIGHT, as_written, clauses, pieces, portions, sentences, weight
from dedup_middleware.text.words import without_credits, without_numbering
from dedup_middleware.urls import host_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from dedup_middleware.budget import Budget
    from dedup_middleware.checks.detector import Detector
    from dedup_middleware.fingerprints import Fingerprinter
    from dedup_middleware.index.lookup import Lookup
    from dedup_middleware.model import Fingerprint, Page, StoredPage

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
# What may follow a time: fractions of a second, half of the day, time zone.
_AFTER_TIME = re.compile(r"(?:[.,]\d+)? ?(?:[AaPp]\.?[Mm]\.?)? ?(?:Z|UTC|GMT|[+-]\d\d(?::?\d\d)?)?")
# Seconds since 1970, and what programs write instead.
_UNITS = (1, 10**3, 10**6, 10**9)
_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
#: On so many pages a field has the same words before these are the site's.
SITE_PAGES = 3
# Fields that are remembered, of all sites.
MAX_FIELDS = 10_000
# What a program has made up: "N1234567890", "a1b2c3d4".
_IDENTIFIER = re.compile(r"(?=.*\d)(?=.*[a-zA-Z])[\w.~-]{8,}|[\d.]{9,}")
# Clauses that are looked up as they were written: more than a record shows.
_MAX_SHOWN = 8
# Between a field and its value, as a person reads it.
_IS = ": "


@dataclass(frozen=True, slots=True)
class ItemText:
    """What one item contains."""

    fingerprint: Fingerprint
    texts: Sequence[str]
    values: tuple[Value, ...]

    @property
    def has_text(self) -> bool:
        """Whether the text is enough to be compared."""
        return self.fingerprint.weight >= MIN_DISTINCTIVE_WEIGHT


class ItemCheck:
    """Reads and compares items whose texts have *max_characters* in all at most, within the budgets of their pages."""

    def __init__(self, fingerprint: Fingerprinter, max_characters: int, fields: Iterable[str] = ()) -> None:
        """Read the *fields* of items; all fields if empty."""
        self._fingerprint = fingerprint
        self._max_characters = max_characters
        self._fields = tuple(fields) or None
        # The words of a field that all items of a site had so far, and of how many; the latest last.
        self._of_site: dict[tuple[str, str], tuple[str, int]] = {}
        self.fields_not_found: set[str] | None = None
        """The named fields that none of the items had that were read; ``None`` before the first one."""

    def read(self, page: Page, item: Any, budget: Budget) -> ItemText:
        """Return what *item* of *page* contains, within its *budget*, by which the texts are watched.

        `UncheckableError` if it cannot be read.
        """
        values = item_values(item, self._fields)
        if self._fields is not None:
            missing = set(self._fields).difference(_fields_of(item) or ())
            self.fields_not_found = missing if self.fields_not_found is None else self.fields_not_found & missing
        texts = [value for _, value in values if isinstance(value, str) and not _is_url(value)]
        if sum(map(len, texts)) > self._max_characters:
            raise UncheckableError(Reason.TOO_LARGE)
        budget.check_clauses(len(values))
        budget.check_time()
        prose = without_numbering(prose_in(texts, budget))
        fingerprint = self._fingerprint_of(prose, page, budget)
        short = tuple(dict.fromkeys(short_values(values, page.url, are_named=self._fields is not None)))
        budget.check_time()
        self._note(page, short)
        return ItemText(fingerprint, budget.watched(tuple(prose)), short)

    def _fingerprint_of(self, prose: list[str], page: Page, budget: Budget) -> Fingerprint:
        """Return the fingerprint of *prose*. The page's own lines are hashed already."""
        known = set(page.paragraphs)
        if not self._fingerprint.is_by_line or page.known is not None or not known.issubset(prose):
            return self._fingerprint(prose, budget)
        more = self._fingerprint([line for line in prose if line not in known], budget)
        weights, masked_hashes = page.fingerprint.weights, page.fingerprint.masked_hashes
        return replace(more, weights={**weights, **more.weights}, masked_hashes={**masked_hashes, **more.masked_hashes})

    def rejection(
        self,
        page: Page,
        item: ItemText,
        original: StoredPage,
        detector: Detector,
    ) -> Rejection | None:
        """Return what *item* of *page* contains and the items of *original* do not, or ``None``.

        Its text is compared by the detector's threshold.
        """
        content = original.item_content
        if item.has_text and not (original.source or (content is not None and content.has_text)):
            return Rejection(Reason.ORIGINAL_ITEM_HAS_NO_TEXT)
        if item.has_text and not self._is_contained(page, item, original, detector):
            hashes = original.hashes if content is None else content.hashes
            found = (clause for portion in portions(item.texts) for clause, _ in clauses(portion))
            own = [clause for clause in found if self._fingerprint.hash(clause) not in hashes]
            clauses_shown = as_written(item.texts, own[:_MAX_SHOWN])
            symbols = [] if clauses_shown else own_symbols(item.texts, detector.index.item_text(original))
            return Rejection(Reason.ITEM_HAS_NEW_TEXT, tuple(clauses_shown or symbols[:_MAX_SHOWN]))
        if content is None:
            return None
        new = [value for value in item.values if _hash(value) not in content.values]
        if not _is_on_site(page, original):
            # Between sites values differ as titles do, but for those that were given: by another page, or a program.
            new = [value for value in new if self._is_given(value, page)]
            return _differing(new)
        new = [value for value in new if not _is_name(value, page, original, detector)]
        if self._fields is None:
            # Words by which the URL names a view, such as "print".
            new = [value for value in new if value.is_number or not is_view(value.words, page.url, original.url)]
        return _differing(new)

    def _is_given(self, value: Value, page: Page) -> bool:
        """Return whether *value* is content that *page* does not show: not its title, its text, nor a part of its URL.

        A value that all pages of a site have, such as the name of the site, tells nothing about one of them.
        """
        if _is_url(value.written) or _IDENTIFIER.fullmatch(value.written) or value.words in titles.row_of(page.url):
            return False
        if f" {value.words} " in _shown_row(page) and all(sign in _shown(page) for sign in value.signs):
            return False
        met = self._of_site.get((site_of(host_of(page.url)), value.field))
        return met is None or met[0] != value.words or met[1] < SITE_PAGES

    def _note(self, page: Page, values: Iterable[Value]) -> None:
        """Note the *values* of an item: which fields are the same on all pages of a site."""
        site = site_of(host_of(page.url))
        for value in values:
            words, count = self._of_site.pop((site, value.field), (value.words, 0))
            self._of_site[site, value.field] = (words, count + 1) if words == value.words else ("", 0)
        while len(self._of_site) > MAX_FIELDS:
            del self._of_site[next(iter(self._of_site))]

    def _is_contained(self, page: Page, item: ItemText, original: StoredPage, detector: Detector) -> bool:
        lookup, threshold = detector.index, detector.threshold
        content = original.item_content
        hash_clause = self._fingerprint.hash
        hashes = original.hashes if content is None or original.source else content.hashes
        text = lookup.item_text(original)
        if content is not None and content.is_text_of(original.hashes) and (missing := original.hashes - hashes):
            # The store has the page's text, of which the items lack a part.
            text = [line for line in text if missing.isdisjoint([hash_clause(clause) for clause, _ in clauses(line)])]
        # Where a spider joins lines, sentences have other signs or words: "It lets you: - sail", "It lets you:- sail".
        joined = _joined(item.texts, " ")
        if joined in _joined(text, " ") or joined in _joined(text, ""):
            return True
        if _is_on_site(page, original) and self._has_own_text(item, original, text, hashes, lookup):
            return False
        others = renumbered(item.fingerprint, original, hashes)
        if others and not_in_text(others, item.texts, text, hash_clause):
            return False
        if containment(item.fingerprint.weights, hashes) >= threshold:
            return True
        if threshold == 1 or sum(map(len, item.texts)) > MAX_CHARACTERS:
            return False
        nearly = self._nearly(item, text, hashes)
        if RELATED_THRESHOLD <= nearly < threshold and _are_parts(page, item, original):
            # Summaries, cut elsewhere: the original's page contains what its item lacks.
            nearly = self._nearly(item, lookup.text(original.number), original.hashes)
        return nearly >= threshold

    def _has_own_text(
        self, item: ItemText, original: StoredPage, text: Sequence[str], hashes: AbstractSet[bytes], lookup: Lookup
    ) -> bool:
        """Return whether an item on its original's site has words or signs of its own."""
        named = [] if original.features is None else [*titles.parts(original.features.title), original.features.heading]
        # Of what comes after a text that was cut, the store has the clauses that are long enough.
        is_cut = lookup.is_cut(text)

        def has(clause: str) -> bool:
            return self._fingerprint.hash(clause) in hashes or (is_cut and weight(clause) < MIN_CLAUSE_WEIGHT)

        texts = [sentence for line in item.texts for sentence in without_credits(sentences(line))]
        around = frozenset() if original.features is None else original.features.texts
        texts = [t for t in texts if len(t) > MAX_LINE or text_hash(t)[:STORED_TEXT_BYTES] not in around]
        return bool(own_clauses(texts, [*text, *named], has) or own_symbols(item.texts, text))

    def _nearly(self, item: ItemText, text: Sequence[str], hashes: AbstractSet[bytes]) -> float:
        """Return the share of *item* that *text* contains in nearly the same words; 0 after a veto."""
        opinion = compare(item.texts, text, has=lambda clause: self._fingerprint.hash(clause) in hashes)
        others = opinion.other_numbers or opinion.other_names or opinion.other_units or opinion.negated
        return 0.0 if others else opinion.containment


def _differing(values: Iterable[Value]) -> Rejection | None:
    shown = tuple(dict.fromkeys(f"{value.field}{_IS}{value.written}" for value in values))
    return Rejection(Reason.ITEM_FIELD_DIFFERS, shown) if shown else None


def _shown(page: Page) -> str:
    """Return all the text that *page* shows."""
    features = page.features or PageFeatures()
    return "\n".join([features.title, features.heading, *features.lines, *page.paragraphs])


@lru_cache(maxsize=4)
def _words_of_shown(shown: str) -> str:
    return titles.row_of_all([shown])


def _shown_row(page: Page) -> str:
    return _words_of_shown(_shown(page))


def content_of(items: Iterable[ItemText]) -> ItemContent:
    """Return what an original's *items* contain together."""
    weights: dict[bytes, int] = {}
    values: set[bytes] = set()
    texts: list[str] = []
    for item in items:
        weights |= item.fingerprint.weights
        values.update(map(_hash, item.values))
        texts += item.texts
    return ItemContent(
        frozenset(weights), frozenset(values), sum(weights.values()) >= MIN_DISTINCTIVE_WEIGHT, tuple(texts)
    )


def field_of(own: str) -> str:
    """Return the field that a rejection named *own*."""
    return own.partition(_IS)[0]


def _is_on_site(page: Page, original: StoredPage) -> bool:
    return site_of(host_of(page.url)) == site_of(host_of(original.url))


def _is_name(value: Value, page: Page, original: StoredPage, detector: Detector) -> bool:
    """Return whether *value* is a part of the page's title or heading that is the site's, or the original's too.

    A headline may stand in the original's text instead; a short part, such as a colour, may stand there by chance.
    """
    here, there = page.features, original.features
    if here is None or there is None:
        return False
    named = [part for name in (here.title, here.heading) for part in titles.parts(name)]
    named = [part for part in named if titles.row_of(part) == value.words]
    if not named or not all(sign in there.title + there.heading for sign in value.signs):
        return False
    is_headline = weight(value.words.replace(" ", "")) >= titles.TELLING_TITLE_WEIGHT

    def text() -> list[str]:
        return detector.index.text(original.number) if is_headline else []

    pair = Pair(page, original, detector.sites, text, detector.hash_clause)
    own = own_title(pair)
    return any(part not in own or detector.sites.has(pair.host, titles.site_row(part)) for part in named)


def _joined(texts: Iterable[str], joint: str) -> str:
    """Return *texts* between spaces: the end of one is no part of a word, or a number, of another."""
    return f" {joint.join([' '.join(text.split()) for text in texts])} "


def _hash(value: Value) -> bytes:
    return fast_hash(f"{value.field}\n{value.words}\n{value.signs}")


def _are_parts(page: Page, item: ItemText, original: StoredPage) -> bool:
    """Return whether both items contain only a part of their pages."""
    if original.item_content is None or original.item_content.is_text_of(original.hashes):
        return False
    hashes = frozenset(item.fingerprint.weights)
    return not ItemContent(hashes, frozenset(), has_text=True).is_text_of(page.fingerprint.weights.keys())


TAG_FIELD = "dedup"
#: Characters of a path, from which on it does not grow: items may nest without end.
MAX_PATH = 200
#: Characters of a URL that is compared.
MAX_URL = 2_000
#: Less than this, in letters, is a value rather than a text.
MAX_VALUE_WEIGHT = 150
# A moment in words: "Wednesday, 25-Nov-2026 23:11:02.123456 +0000".
_LONGEST_MOMENT = 48
# A text is markup if a tag stands in so many first characters.
_START = 200
_MARKUP = re.compile(r"<[a-zA-Z][^<>]*>")
_DIGIT = re.compile(r"\d")

Plain: TypeAlias = "str | int | float | Decimal"


class Value(NamedTuple):
    """A short value of an item: a name, a price, a label; a title is one for each of its parts."""

    field: str
    words: str
    """Folded, separated by spaces."""
    signs: str
    """The symbols beside the words: ``✓``, ``€``, ``++``."""
    written: str
    """As the item has it."""

    @property
    def is_number(self) -> bool:
        """Whether it has digits and no word."""
        return self.words.replace(" ", "").isdecimal()


def item_texts(item: Any, fields: Iterable[str] | None = None) -> list[str]:
    """Return the texts in *item*, nested ones too; of *fields* only, where they are named. URLs are left out.

    `UncheckableError` if it cannot be read: an item's class is the project's, and what it looks up may be gone.
    """
    return [value for _, value in item_values(item, fields) if isinstance(value, str) and not _is_url(value)]


def item_values(item: Any, fields: Iterable[str] | None = None) -> list[tuple[str, Plain]]:
    """Return the texts and numbers in *item*, each with its field, as :func:`item_texts` does."""
    try:
        adapter = _fields_of(item)
        if adapter is None:
            return []
        names = adapter.keys() if fields is None else [f for f in fields if f in adapter]
        values = [each for name in names if name != TAG_FIELD for each in _values(item, name, adapter[name])]
    except Exception as error:
        raise UncheckableError(Reason.UNREADABLE_ITEM) from error
    return values


def _is_url(text: str) -> bool:
    return text.startswith(("http://", "https://"))


def short_values(values: Iterable[tuple[str, Plain]], url: str, *, are_named: bool) -> Iterator[Value]:
    """Yield what is short in *values* of an item of the page at *url*, by its words and signs.

    Unless their fields *are_named* in the settings, without what is not content. `UncheckableError` for a number that
    has no text.
    """
    now = time.time()
    for field, value in values:
        try:
            name = str(field)
            if not are_named and is_incidental(innermost(name), str(value), url, now):
                continue
            if isinstance(value, str) and _is_url(value):
                # A picture, a file: the page's own URL, and views of it, are no content.
                texts = [] if is_same_address(value, url) or len(value) > MAX_URL else [value]
            elif isinstance(value, str):
                texts = [] if _is_prose(value) else [*titles.parts(value)] or [value]
            elif isinstance(value, (bool, int)):
                texts = [str(value)]
            else:
                # A page writes a price with two decimals. As a Decimal, 1E+999999999 would have a gigabyte of digits.
                texts = [str(value), f"{float(value):.2f}"]
        except ValueError as error:  # more digits than Python writes
            raise UncheckableError(Reason.UNREADABLE_ITEM) from error
        for text in texts:
            written = text if isinstance(value, str) else str(value)
            found = Value(name, titles.row_of(text), "".join(symbols_of(text)), written)
            if found.words or found.signs:
                yield found


def innermost(path: str) -> str:
    """Return the last name in a *path*, folded, without places in lists."""
    return next((name for name in reversed(path.casefold().split(".")) if not name.isdecimal()), "")


def is_incidental(name: str, text: str, url: str, now: float | None) -> bool:
    """Return whether the value *text* of the field *name* comes from the fetch of the page at *url*: it is no content.

    It is a key with a digit, a count of pages, a time or a measure of the fetch, the path of the page itself, a digest,
    or a reading of the clock; *now* is in seconds since 1970, ``None`` for any time.
    """
    if text.startswith("/") and url.endswith(text):
        return True
    if _DIGIT.search(text) is None:
        return False
    return (
        name in _KEYS
        or name.startswith(_FETCH)
        or (name in _COUNTERS and text.strip().isdecimal())
        or _RANDOM.fullmatch(text.replace("-", "").casefold()) is not None
        or _is_clock_reading(text, now)
    )


def _is_clock_reading(text: str, now: float | None) -> bool:
    """Return whether *text* is a moment of the two days before *now*, to the second, in one of the usual writings.

    A moment on a full minute may have been planned, unless it is now, and so may one that is to come. Time zones are
    left out: a local clock may be 14 hours ahead.
    """
    return any(
        (second % _MINUTE and (now is None or now - 2 * _DAY <= second <= now + 14 * _HOUR))
        or (now is not None and abs(now - second) < _MINUTE)
        for second in _moments(text.strip())
    )


def _moments(text: str) -> Iterator[int]:
    """Yield the moments that *text* may be, in seconds since 1970; without its time zone."""
    if len(text) > _LONGEST_MOMENT:
        return
    with suppress(ValueError, OverflowError):
        yield from (int(float(text) / unit) for unit in _UNITS)
    for pattern in _DATE_AND_TIME:
        found = pattern.match(text)
        if found is not None and _AFTER_TIME.fullmatch(text, found.end()):
            with suppress(ValueError):
                yield timegm(tuple(int(found[part]) for part in "ymdHMS"))
    with suppress(ValueError, OverflowError, TypeError, IndexError):
        if (parsed := parsedate(text)) is not None:
            yield timegm(parsed)


def prose_in(texts: Iterable[str], budget: Budget) -> list[str]:
    """Return the paragraphs in *texts* of an item: of markup its main text; of short values only if nothing is long.

    `UncheckableError` once the *budget* is spent.
    """
    prose: list[str] = []
    short: list[str] = []
    for text in texts:
        if _is_markup(text):
            found = texts_of(parse(text), budget)
            prose += found.paragraphs or found.others
        elif _is_prose(text):
            prose += chain.from_iterable(piece.split("\n") for piece in pieces([text]))
        else:
            short.append(text)
    return prose or short


def _is_markup(text: str) -> bool:
    return _MARKUP.search(text[:_START]) is not None


def _is_prose(text: str) -> bool:
    return len(text) >= MAX_VALUE_WEIGHT or weight(text) >= MAX_VALUE_WEIGHT or _is_markup(text)


def _values(item: Any, name: Any, value: Any) -> list[tuple[str, Plain]]:
    """Return the texts and numbers in a *value* of *item*, each with its path under *name*: ``variants.1.stock``.

    Each object's are returned once, for objects may refer to one another. Without recursion, for they may nest deeper
    than the stack. Other objects, such as a response, are left out.
    """
    found: list[tuple[str, Plain]] = []
    # The objects themselves are kept too: a new one may have the id of one that is gone.
    seen = {id(item): item}
    waiting = [(str(name), value)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, (str, int, float, Decimal)):
            found.append((path, value))
        elif isinstance(value, (date, time_of_day)):
            found.append((path, str(value)))
        elif value is None or id(value) in seen:
            continue
        elif isinstance(value, Enum):
            waiting.append((path, value.value))
        else:
            seen[id(value)] = value
            if isinstance(value, (set, frozenset)):
                # A set of texts has another order in each process, and no places.
                waiting += [(path, each) for each in sorted(value, key=repr, reverse=True)]
                continue
            if isinstance(value, (list, tuple)):
                inner: list[tuple[Any, Any]] = [*enumerate(value)]
            else:
                nested = value if isinstance(value, Mapping) else _fields_of(value)
                inner = [] if nested is None else [*nested.items()]
            waiting += [(_joined_path(path, key), each) for key, each in reversed(inner)]
    return found


def _joined_path(path: str, key: object) -> str:
    return f"{path}.{key}" if len(path) < MAX_PATH else path


def is_item(item: Any) -> bool:
    """Return whether *item* has fields."""
    return _fields_of(item) is not None


def _fields_of(item: Any) -> Mapping[str, Any] | None:
    """Return the fields of *item*; ``None`` if it is not an item."""
    if type(item) is dict:
        return item
    # Where Scrapy is installed itemadapter imports it, which a program that has dicts and pages need not wait for.
    from itemadapter import ItemAdapter  # noqa: PLC0415

    return ItemAdapter(item) if ItemAdapter.is_item(item) else None
