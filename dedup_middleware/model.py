"""Defines the data types of the product, all of them frozen.

A page's parts beside its main text, the fingerprint of that, the stored page, the verdict, and the items' content.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from enum import Enum
from functools import lru_cache, reduce
from operator import xor
from typing import TYPE_CHECKING, NamedTuple

from dedup_middleware.times import now

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from collections.abc import Set as AbstractSet


class Action(str, Enum):
    """What is done with the items of a duplicate."""

    DROP = "drop"
    TAG = "tag"
    DRY_RUN = "dry-run"


class Scope(str, Enum):
    """Which originals may drop a page: those of this crawl, or all in the store."""

    AUTO = "auto"
    """``crawl`` if a feed of the crawl is overwritten, else ``store``: decided when the settings are read."""
    STORE = "store"
    CRAWL = "crawl"


class VerdictKind(str, Enum):
    """What was decided about a page."""

    NEW = "new"
    UNCHANGED = "unchanged"
    """The page itself, unchanged, is in the store: kept."""
    DUPLICATE = "duplicate"
    RELATED = "related"
    """It repeats a part of a stored page, too little to be a duplicate: kept."""
    UNCHECKED = "unchecked"
    """Nothing could be decided, for a reason that the verdict names: kept."""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What is kept of a page's text: a weighted set of clause hashes."""

    weights: Mapping[bytes, int]
    """Clause hash (8 bytes) -> weight of the clause in letters, in reading order."""
    masked_hashes: Mapping[bytes, bytes]
    """Clause hash -> hash (4 bytes) of the clause without its digits, for clauses that have digits."""
    digest: bytes
    """16 bytes that change whenever a clause does."""
    exact_digest: bytes = b""
    """8 bytes that change whenever a letter or a digit does, or their order; empty where nobody knows them."""
    made: Made | None = None
    """What a published method makes of it, where one decides."""
    portions: tuple[int, ...] = field(default=(0,), compare=False)
    """How many clauses came before each portion that the text was read in: where in a long text a clause is."""

    @property
    def weight(self) -> int:
        """The weight of all clauses, in letters."""
        return sum(self.weights.values())


class Fetched(NamedTuple):
    """What is known of a page before it is read: where it is, what makes it itself, and the digest of its bytes."""

    url: str
    identities: tuple[bytes, ...]
    body_digest: bytes


@dataclass(frozen=True, slots=True)
class Page:
    """A fetched response, or an item of one, as the core sees it."""

    url: str
    identities: tuple[bytes, ...]
    """16 bytes each; a stored page that shares one is this page itself, at an earlier time."""
    fingerprint: Fingerprint
    paragraphs: tuple[str, ...]
    run: str
    """The crawl that fetched it."""
    source: bytes = b""
    """For an item, 16 bytes of the request it came from: items of one request are never compared."""
    features: PageFeatures | None = None
    """``None`` for an item."""
    is_doubtful: bool = False
    """Whether its text may not be its main text."""
    is_boilerplate: bool = False
    """Whether its text stands in boilerplate while other text does not."""
    item_content: ItemContent | None = None
    """What its items said, once they have been kept."""
    suppressed: frozenset[bytes] = frozenset()
    """Clauses that lead to another page, and not to this one: what look-alikes share is no boilerplate."""
    replaces: StoredPage | None = None
    """The original that it replaces, as it was when this page was checked: see `checks.preferences`."""
    body_digest: bytes = b""
    """16 bytes of what it was read from, and how; empty where nobody knows."""
    known: StoredPage | None = None
    """What the store has of it, where that stands for it unread: then its clauses have no weights."""
    known_at: int = 0
    """The version of the index that had it."""

    def restricted_to(self, hashes: AbstractSet[bytes], texts: Iterable[str]) -> Page:
        """Return the page as saying nothing but *texts*, whose clauses have *hashes*; the same page nevertheless."""
        weights = {h: w for h, w in self.fingerprint.weights.items() if h in hashes}
        masked_hashes = {h: s for h, s in self.fingerprint.masked_hashes.items() if h in hashes}
        # It owns less than the whole page, which nothing may lead to.
        said = replace(self.fingerprint, weights=weights, masked_hashes=masked_hashes, exact_digest=b"", made=None)
        return replace(self, fingerprint=said, paragraphs=tuple(texts))

    def near(self, match: Match | None, threshold: float) -> Page:
        """Return the page as one that is kept beside *match*, if that is a page with so much of its text."""
        if match is None or match.score < threshold:
            return self
        return replace(self, suppressed=match.original.hashes & self.fingerprint.weights.keys())


@dataclass(frozen=True, slots=True)
class Kept:
    """Who has got what an original gave."""

    run: str
    """The crawl that kept it last."""
    time: str
    """When it was fetched: ISO 8601, UTC, to the second."""
    feeds: frozenset[str] | None
    """The kinds of the feeds that have taken an item of it.

    ``None`` for whatever there are: of an archive, of a program or a person that has it, and in stores of before.
    """

    def has_reached(self, feeds: AbstractSet[str]) -> bool:
        """Tell whether all of these *feeds* have taken an item of it, as far as is known."""
        return self.feeds is None or feeds <= self.feeds


@dataclass(frozen=True, slots=True)
class StoredPage:
    """What the store knows of a page: an original of its text, or a duplicate that was dropped."""

    number: int
    """Positive once stored; negative while its claim is pending, in memory."""
    url: str
    identities: tuple[bytes, ...]
    digest: bytes
    hashes: frozenset[bytes]
    masked_hashes: frozenset[bytes]
    kept: Kept
    exact_digest: bytes = b""
    source: bytes = b""
    features: PageFeatures | None = None
    item_content: ItemContent | None = None
    """``None`` where nobody knows: in stores of before, while its claim is open, and for a duplicate."""
    original: int | None = None
    """The number of the page that this one repeats; ``None`` for an original."""
    original_digest: bytes = b""
    """The :attr:`content` of that page when this one was dropped; from schema 2, its digest alone."""
    score: float = 0.0
    is_claimed: bool = False
    """Whether its claim is pending, in a store that workers share."""

    @classmethod
    def of(
        cls, page: Page, number: int, match: Match | None = None, feeds: frozenset[str] | None = frozenset()
    ) -> StoredPage:
        """Return *page* as it is stored now under *number*: as an original, or as what *match* says that it repeats."""
        return cls(
            number=number,
            url=page.url,
            identities=page.identities,
            digest=page.fingerprint.digest,
            hashes=frozenset(page.fingerprint.weights),
            masked_hashes=frozenset(page.fingerprint.masked_hashes.values()),
            kept=Kept(page.run, now(), feeds),
            exact_digest=page.fingerprint.exact_digest,
            source=page.source,
            features=None if page.features is None else page.features.stored(),
            item_content=page.item_content,
            original=match.original.number if match else None,
            original_digest=match.original.content if match else b"",
            score=round(match.score, 4) if match else 0.0,
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
    def content(self) -> bytes:
        """24 bytes that change whenever what it owns does: its digest, and its clause hashes in any order."""
        return self.digest + reduce(xor, [int.from_bytes(h, "big") for h in self.hashes], 0).to_bytes(8, "big")

    def is_original_of(self, duplicate: StoredPage) -> bool:
        """Tell whether this is an original, and still what it was when *duplicate* was dropped in favour of it."""
        return self.original is None and self.content.startswith(duplicate.original_digest)

    def says(self, page: Page) -> bool:
        """Tell whether this is an original that says all that *page*, with the same text, does.

        One that owned only what its items said then may own less than its text.
        """
        unchanged = self.original is None and self.digest == page.fingerprint.digest
        return unchanged and self.hashes >= page.fingerprint.weights.keys()

    @property
    def pending(self) -> bool:
        """Whether the claim of this page is still open."""
        return self.number < 0 or self.is_claimed


@dataclass(frozen=True, slots=True)
class Eligibility:
    """Which originals may drop a page: those within it, and only they make a clause common."""

    scope: Scope = Scope.STORE
    lease: timedelta | None = None
    """How long after it was fetched last an original may drop a page; ``None`` for ever."""

    @property
    def is_all(self) -> bool:
        """Whether every original is within it."""
        return self.scope is Scope.STORE and self.lease is None

    def has(self, original: StoredPage, run: str) -> bool:
        """Tell whether *original* may drop a page of the crawl *run*."""
        if self.lease is not None and datetime.fromisoformat(original.time) < datetime.now(timezone.utc) - self.lease:
            return False
        return self.scope is Scope.STORE or original.run == run


@dataclass(frozen=True, slots=True)
class Match:
    """The best stored page for a new one."""

    original: StoredPage
    score: float
    """Share of the new page's non-boilerplate text that the original already holds, 0-1."""
    shared: frozenset[bytes] = field(repr=False)
    """Hashes of the clauses that the original already holds."""


class Rejection(NamedTuple):
    """Why a page may be another one, although its text is its original's."""

    reason: str
    difference: tuple[str, ...] = ()
    """What it says and its original does not, where that can be shown."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was decided about a page, and why."""

    kind: VerdictKind
    match: Match | None = None
    reason: str = ""
    """Why a page is unchecked, or why a match did not make it a duplicate; else empty."""
    difference: tuple[str, ...] = ()
    """What the page, or its item, says and the match does not, by which it was kept."""


#: What a store keeps of the hash of a text around a page.
STORED_TEXT_BYTES = 2
# Two texts with this share of their clauses in common are one.
_SAME_TEXT_SHARE = 0.8


@dataclass(frozen=True, slots=True)
class PageFeatures:
    """What a page says beside its main text: what it is called, and what stands around it."""

    title: str = ""
    """As written, on one line."""
    heading: str = ""
    """The first heading, where the title does not contain it."""
    texts: frozenset[bytes] = frozenset()
    """Hashes of the texts around the main text, without links and digits: labels, addresses, boilerplate.

    4 bytes each of a page that is fetched, 2 of one that is stored."""
    facts: frozenset[bytes] = frozenset()
    """Hashes, 4 bytes each, of the facts there and in what scripts carry as data: prices, amounts, serial numbers."""
    canonical: str = ""
    """The address that it names as its story's own (``rel=canonical``), as written; of a page whose address is known,
    absolute, and empty if it is the same. Not stored."""

    # Asked for when a page opens its claim, and when that is confirmed.
    @lru_cache(maxsize=256)  # noqa: B019 - what is kept is few, small and refers to nothing
    def stored(self) -> PageFeatures:
        """Return them as they are stored: of two pages' few texts, one in a thousand is taken for another."""
        texts = frozenset([h[:STORED_TEXT_BYTES] for h in self.texts])
        return PageFeatures(self.title, self.heading, texts, self.facts)


@dataclass(frozen=True, slots=True)
class ItemContent:
    """What the items of an original said when it was kept, all of them together."""

    hashes: frozenset[bytes]
    """Of the clauses of their texts, 8 bytes each."""
    values: frozenset[bytes]
    """Hashes (4 bytes each) of their short values: names, prices, labels."""
    has_text: bool
    """Whether their texts are enough to be compared."""
    texts: tuple[str, ...] = field(default=(), compare=False, repr=False)
    """Their texts, as long as it has not been stored."""

    def is_text_of(self, hashes: AbstractSet[bytes]) -> bool:
        """Tell whether this is most of what a page with clauses of these *hashes* says, and no more."""
        return self.hashes <= hashes and len(self.hashes) >= _SAME_TEXT_SHARE * len(hashes)


class Made(NamedTuple):
    """What a published method has made of a text, see `fingerprints.method`."""

    value: bytes
    """Its fingerprint, packed."""
    keys: frozenset[bytes]
    """What to look it up by, 8 bytes each."""
