"""Defines the frozen data types that all rooms share: pages, fingerprints, stored pages, matches and verdicts."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from enum import Enum
from functools import lru_cache, reduce
from operator import xor
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet


# Each page needs the present time.
@lru_cache(64)
def as_time(seconds: int) -> str:
    """Return the time *seconds* after the epoch: ISO 8601, UTC, to the second."""
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="seconds")


def now() -> str:
    """Return the present time, as `as_time` does."""
    return as_time(int(time.time()))


def now_exactly() -> str:
    """Return the present time to the millisecond, which sorts behind that to the second."""
    milliseconds = time.time_ns() // 1_000_000
    return f"{as_time(milliseconds // 1_000)[:19]}.{milliseconds % 1_000:03}+00:00"


class Action(str, Enum):
    """What happens to the items of a duplicate."""

    DROP = "drop"
    TAG = "tag"
    DRY_RUN = "dry-run"


class Unchanged(str, Enum):
    """What happens to the items of a page that the store has as it is."""

    KEEP = "keep"
    DROP = "drop"
    TAG = "tag"


class Reworded(str, Enum):
    """What happens to a page of another site with a word or two replaced in an otherwise equal sentence."""

    KEEP = "keep"
    DROP = "drop"


class Scope(str, Enum):
    """Which originals may drop a page: those of this crawl, or all in the store."""

    AUTO = "auto"
    """``crawl`` if a feed of the crawl is overwritten, else ``store``: decided when the settings are read."""
    STORE = "store"
    CRAWL = "crawl"


class VerdictKind(str, Enum):
    """The kinds of verdict. Only a duplicate is dropped."""

    NEW = "new"
    UNCHANGED = "unchanged"
    """The store has the page itself, with this content."""
    CHANGED = "changed"
    """The store has the page itself, with other content."""
    DUPLICATE = "duplicate"
    RELATED = "related"
    """Shares text with a stored page, but differs from it, or shares too little."""
    UNCHECKED = "unchecked"
    """Could not be checked, for the reason in the verdict."""
    GONE = "gone"
    """The store has the page, and its URL leads to nothing any more."""


# --- a page that was fetched


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """A weighted set of clause hashes."""

    weights: Mapping[bytes, int]
    """Clause hash (8 bytes) -> characters of the clause, in reading order."""
    digest: bytes
    """16 bytes that change whenever a clause does."""
    exact_digest: bytes = b""
    """Bytes that change whenever a letter or a digit does, or their order, and any character beyond `TEXT_LIMIT`;
    empty if unknown."""
    is_whole: bool = False
    """Whether its only clause, without weight, is a digest of all that the page shows: of a page with little text."""
    portions: tuple[int, ...] = field(default=(0,), compare=False)
    """The number of clauses before each portion that the text was read in, to find a clause in a long text."""

    @property
    def weight(self) -> int:
        """The characters of all clauses."""
        return sum(self.weights.values())


#: Characters of a page's text that are stored, for `explain` and comparisons: an article is shorter, and no page can
#: fill a disk.
TEXT_LIMIT = 100_000


def is_cut(text: Sequence[str]) -> bool:
    """Return whether *text*, paragraphs as they are stored, may go on."""
    return sum(map(len, text)) + len(text) > TEXT_LIMIT


#: Bytes of the hash of a context text in the store.
STORED_TEXT_BYTES = 2


@dataclass(frozen=True, slots=True)
class PageFeatures:
    """The title of a page and its context."""

    title: str = ""
    """As written, on one line."""
    heading: str = ""
    """The first heading, if it is not in the title."""
    texts: frozenset[bytes] = frozenset()
    """Hashes of the texts of the context, without links and digits: labels, addresses, boilerplate.

    4 bytes each of a page that is fetched, 2 of one that is stored."""
    facts: frozenset[bytes] = frozenset()
    """Hashes, 4 bytes each, of prices, amounts and serial numbers in the context and in the data of scripts."""
    canonical: str = ""
    """``rel=canonical``, as written; absolute where the page's URL is known, and empty if it is that. Not stored."""
    marks: frozenset[bytes] = frozenset()
    """Hashes, 4 bytes each, of what is not text in the content: pictures, media, files, formulas, form values; and of
    the names that the page's data has for it."""
    template: frozenset[bytes] = frozenset()
    """The least hashes, 4 bytes each, of the formats of the page's elements: pages of one template share most."""
    lines: tuple[str, ...] = field(default=(), compare=False, repr=False)
    """The texts of the context, as written. Not stored."""
    is_boilerplate: bool = field(default=False, compare=False, repr=False)
    """Whether the main text may not be what the page is about: a notice, comments. Not stored."""
    site_names: tuple[str, ...] = field(default=(), compare=False, repr=False)
    """What the page says that its site is called: ``og:site_name``, links to ``/`` above the heading. Not stored."""

    def stored(self) -> PageFeatures:
        """Return them as they are stored: with short hashes, of which one in a thousand is another text's."""
        texts = frozenset([h[:STORED_TEXT_BYTES] for h in self.texts])
        return PageFeatures(self.title, self.heading, texts, self.facts, marks=self.marks, template=self.template)


def text_mark(digest: bytes, exact_digest: bytes) -> str:
    """Return 16 hexadecimal digits that change with a text that has these digests; 8 if only its clauses are known."""
    return (digest[:4] + exact_digest[:4]).hex()


def is_marked(mark: str, other: str) -> bool:
    """Return whether two :func:`text_mark` are those of one text, as far as both are known."""
    return bool(mark and other) and (mark.startswith(other) or other.startswith(mark))


class Standing(NamedTuple):
    """Why an original was kept, or not compared, when its text was read: that stands as long as its text does."""

    original: bytes
    """An identity of the page that it shares text with; empty if there is none."""
    original_text: str
    """The `text_mark` of that page then."""
    score: float | None
    reason: str


@dataclass(frozen=True, slots=True)
class ItemContent:
    """The content of all items of a page together."""

    hashes: frozenset[bytes]
    """Of the clauses of their texts, 8 bytes each."""
    items: frozenset[frozenset[bytes]]
    """Of each item the hashes (4 bytes) of what it has: see `ItemText.hashes`."""
    has_text: bool
    """Whether their texts are long enough to be compared."""
    texts: tuple[str, ...] = field(default=(), compare=False, repr=False)
    """Their texts, until they are stored."""
    shown: tuple[str, ...] = field(default=(), compare=False, repr=False)
    """Their short values, each with its field, as they are shown: ``price: 20``. Until they are stored."""
    digest: bytes = b""
    """8 bytes that change with any character of their texts and values; empty if unknown."""

    @property
    def values(self) -> frozenset[bytes]:
        """What the items have together."""
        return frozenset().union(*self.items)


class Fetched(NamedTuple):
    """A page before it is read."""

    url: str
    identities: tuple[bytes, ...]
    body_digest: bytes


#: The source of items that are judged by their keys.
KEYED = b"k"


@dataclass(frozen=True, slots=True)
class Page:
    """A fetched response, or an item of one that is compared like a page."""

    url: str
    identities: tuple[bytes, ...]
    """16 bytes each; a stored page with one of them is this page at an earlier time."""
    fingerprint: Fingerprint
    paragraphs: Sequence[str]
    run: str
    """The crawl that fetched it."""
    source: bytes = b""
    """Of an item, 16 bytes of its request: items of one request are not compared with each other. `KEYED`, of one with
    a key: its text is not compared, and it has the identities of the key, of that with its values, and of its copy."""
    features: PageFeatures | None = None
    """``None`` for an item."""
    former: tuple[bytes, ...] = ()
    """The identities that it had before it moved."""
    canonical: bytes = b""
    """The identity of its canonical URL, where that is another one."""
    item_content: ItemContent | None = None
    """The content of its items that were kept; ``None`` until then."""
    suppressed: frozenset[bytes] = frozenset()
    """Clauses whose posting lists lead to another page only: text of look-alikes does not become boilerplate."""
    replaces: StoredPage | None = None
    """The original that it replaces, as it was when this page was checked: see `checks.detector.Preferences`."""
    body_digest: bytes = b""
    """16 bytes of its body and how that was read; empty if unknown."""
    known: StoredPage | None = None
    """What the store has of it, if it was not read again: then its clauses have no weights."""
    known_at: int = 0
    """The version of the index that had *known*."""
    standing: Standing | None = None
    """Its verdict, once it is confirmed as an original; ``None`` if that is ``new``."""
    note: object = None
    """What an `index.beside.Beside` has noted of it, for itself; nothing else reads it."""

    @property
    def all_identities(self) -> tuple[bytes, ...]:
        """Those that it has, behind those that it had before it moved."""
        return self.former + self.identities

    @property
    def is_keyed(self) -> bool:
        """Whether it is an item that is judged by its key."""
        return self.source == KEYED

    @property
    def text_mark(self) -> str:
        """See :func:`text_mark`."""
        return text_mark(self.fingerprint.digest, self.fingerprint.exact_digest)

    def restricted_to(self, hashes: AbstractSet[bytes], texts: Iterable[str]) -> Page:
        """Return the page with *texts* only, whose clauses have *hashes*; its digest stays that of the whole page."""
        weights = {h: w for h, w in self.fingerprint.weights.items() if h in hashes}
        # Keys of the whole text must not lead to it.
        fingerprint = replace(self.fingerprint, weights=weights, exact_digest=b"")
        return replace(self, fingerprint=fingerprint, paragraphs=tuple(texts), note=None)

    def near(self, match: Match | None, threshold: float) -> Page:
        """Return the page as it is stored beside *match*, if that contains *threshold* of its text."""
        if match is None or match.score < threshold:
            return self
        return replace(self, suppressed=match.original.hashes & self.fingerprint.weights.keys())


# --- a page that is stored


@dataclass(frozen=True, slots=True)
class Kept:
    """When and by whom an original was kept last."""

    run: str
    """The crawl."""
    time: str
    """When the page was fetched: ISO 8601, UTC, to the second."""
    feeds: frozenset[str] | None
    """The kinds of the feeds that have an item of it; ``None`` for all: of an archive, a program or a person."""

    def has_reached(self, feeds: AbstractSet[str]) -> bool:
        """Return whether all of these *feeds* have an item of it."""
        return self.feeds is None or feeds <= self.feeds


@dataclass(frozen=True, slots=True)
class StoredPage:
    """A page in the store: an original, or a duplicate that was dropped."""

    number: int
    """Positive once stored; negative while its claim is pending, in memory."""
    url: str
    identities: tuple[bytes, ...]
    digest: bytes
    hashes: frozenset[bytes]
    kept: Kept
    exact_digest: bytes = b""
    source: bytes = b""
    features: PageFeatures | None = None
    item_content: ItemContent | None = None
    """``None`` if unknown: while its claim is pending, and of a duplicate."""
    original: int | None = None
    """The number of the page that this one repeats; ``None`` for an original."""
    original_digest: bytes = b""
    """The `content` of the original when this page was dropped."""
    score: float = 0.0
    standing: Standing | None = None
    """The verdict on an original; ``None`` if that is ``new``."""
    canonical: bytes = b""
    """The identity of its canonical URL, where that is another one."""
    is_claimed: bool = False
    """Whether its claim is pending, in a store that workers share."""

    @classmethod
    def of(
        cls, page: Page, number: int, match: Match | None = None, feeds: frozenset[str] | None = frozenset()
    ) -> StoredPage:
        """Return *page* as it is stored now under *number*: as an original, or as a duplicate of *match*."""
        return cls(
            number=number,
            url=page.url,
            identities=page.identities,
            digest=page.fingerprint.digest,
            hashes=frozenset(page.fingerprint.weights),
            # A key may be given again within the second in which a crawl begins.
            kept=Kept(page.run, now_exactly() if page.is_keyed else now(), feeds),
            exact_digest=page.fingerprint.exact_digest,
            source=page.source,
            features=None if page.features is None else page.features.stored(),
            item_content=page.item_content,
            original=match.original.number if match else None,
            original_digest=match.original.content if match else b"",
            score=round(match.score, 4) if match else 0.0,
            standing=None if match else page.standing,
            canonical=page.canonical,
        )

    @property
    def run(self) -> str:
        """The crawl that kept it last, or dropped it."""
        return self.kept.run

    @property
    def time(self) -> str:
        """When it was fetched last."""
        return self.kept.time

    @property
    def text_mark(self) -> str:
        """See :func:`text_mark`."""
        return text_mark(self.digest, self.exact_digest)

    @property
    def content(self) -> bytes:
        """24 bytes that change whenever its text or its clauses do."""
        return self.digest + reduce(xor, [int.from_bytes(h, "big") for h in self.hashes], 0).to_bytes(8, "big")

    def is_original_as(self, known: StoredPage) -> bool:
        """Return whether it gives what *known*, the same page at an earlier time, gave, if that was an original."""
        is_same = self.content == known.content and self.item_content == known.item_content
        return known.original is not None or (self.original is None and is_same)

    def is_original_of(self, duplicate: StoredPage) -> bool:
        """Return whether this is an original that has not changed since *duplicate* was dropped for it."""
        return self.original is None and self.content.startswith(duplicate.original_digest)

    def has_text_of(self, page: Page) -> bool:
        """Return whether this is an original with the text of *page* that owns all its clauses."""
        unchanged = self.original is None and self.digest == page.fingerprint.digest
        return unchanged and self.hashes >= page.fingerprint.weights.keys()

    @property
    def pending(self) -> bool:
        """Whether its claim is pending."""
        return self.number < 0 or self.is_claimed


@dataclass(frozen=True, slots=True)
class Eligibility:
    """Which originals may drop a page, and make a clause boilerplate."""

    scope: Scope = Scope.STORE
    expire_after: timedelta | None = None
    """How long after its last fetch an original may drop a page; ``None`` without a limit."""

    @property
    def is_all(self) -> bool:
        """Whether every original may."""
        return self.scope is Scope.STORE and self.expire_after is None

    def has(self, original: StoredPage, run: str) -> bool:
        """Return whether *original* may drop a page of the crawl *run*."""
        if self.expire_after is not None:
            age = datetime.now(timezone.utc) - datetime.fromisoformat(original.time)
            if age > self.expire_after:
                return False
        return self.scope is Scope.STORE or original.run == run


# --- what is decided


@dataclass(frozen=True, slots=True)
class Match:
    """The best stored page for a new one."""

    original: StoredPage
    score: float
    """Share of the new page's non-boilerplate text that *original* contains, 0-1."""
    shared: frozenset[bytes] = field(repr=False)
    """Hashes of the clauses that *original* contains."""
    counted: frozenset[bytes] = field(default=frozenset(), repr=False, compare=False)
    """Hashes of the clauses of the page that count beside *original*; empty for all."""


class Rejection(NamedTuple):
    """Why a page is not a duplicate of a page that contains its text."""

    reason: str
    difference: tuple[str, ...] = ()
    """What the page has and the other lacks, where it can be shown."""


class Changes(NamedTuple):
    """What a page has that it had not when it was stored, and the reverse, in reading order."""

    inserted: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    replaced: tuple[tuple[str, str], ...] = ()
    """Pairs: what stood there, and what stands there now."""
    is_shown_otherwise: bool = False
    """Whether pictures, media, files, formulas or form values are others."""
    values: tuple[tuple[str, str, str], ...] = ()
    """Title, heading and fields of items: the name, what it was and what it is, empty for nothing."""

    def __bool__(self) -> bool:
        return any(self)


NO_CHANGES = Changes()


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision about a page, and its reason."""

    kind: VerdictKind
    match: Match | None = None
    reason: str = ""
    """Why a page is unchecked, or why a match did not make it a duplicate; else empty or the kind of a duplicate."""
    difference: tuple[str, ...] = ()
    """What the page, or its item, has and the match lacks, for which it was kept."""
    changes: Changes = NO_CHANGES
    """What has changed on a page that the store has; nothing if it has not."""
    moved: StoredPage | None = None
    """The page as it is stored under its former URL, where it has moved."""
    known: tuple[StoredPage, ...] = field(default=(), repr=False)
    """Of an item with a key: what the store and the open claims have with that key."""
    candidates: tuple[Match, ...] = field(default=(), repr=False)
    """Of a duplicate that is not judged yet: the originals that it may repeat, the best first."""
