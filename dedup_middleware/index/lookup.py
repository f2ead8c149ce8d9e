"""Finds the stored pages and open claims that contain what a new page does, and how much of it.

Decides which clauses are boilerplate.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

from dedup_middleware.index import schema, shown
from dedup_middleware.index.dropped_items import DroppedItems
from dedup_middleware.index.known_words import KnownWords
from dedup_middleware.index.overrides import Overrides
from dedup_middleware.model import Eligibility, Fingerprint, Page, is_cut

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from dedup_middleware.index.beside import Beside
    from dedup_middleware.index.claims import OpenClaims
    from dedup_middleware.model import Fetched, StoredPage
    from dedup_middleware.stores import OpenStore

#: A clause on more kept pages of its host than this is boilerplate there: a notice, a credit or a menu.
COMMON_ON_HOST = 2
#: A clause on more kept pages of any hosts than this does not prove a copy.
COMMON_IN_STORE = 3

ALL = Eligibility()
# The texts of originals are read from the check of a page to the end of its items.
_decoded_text = lru_cache(64)(schema.decode_text)


class Found(NamedTuple):
    """What the store and the open claims have for one page."""

    own: list[StoredPage]
    """The stored pages that share an identity with it."""
    mine: set[int]
    """The numbers of those, and of the claims that share an identity with it: none is another page."""
    holders: dict[bytes, tuple[int, ...]]
    """The other pages that contain a clause, for each clause that any page has."""
    equal: list[int]
    """The other pages with the same text and, but for the site's part, title, boilerplate included; oldest first."""


class Distinctive(NamedTuple):
    """The clauses of one page that are not boilerplate of its own host."""

    holders: dict[bytes, tuple[int, ...]]
    """The numbers of other pages that contain a clause, by its hash."""
    common: frozenset[bytes] = frozenset()
    """Those of them that many pages contain, of any hosts."""

    def beside(self, original: StoredPage) -> frozenset[bytes]:
        """Return the clauses that count when the page is compared with *original*.

        Those that many pages contain do not count where the original has them: they do not prove a copy. Where it lacks
        them they count, else other hosts could discount what sets the page apart by publishing it.
        """
        return frozenset(self.holders) - (self.common & original.hashes)


class Lookup:
    """The stored pages and the open claims of one store, to be read.

    *beside*: what another detector keeps of the pages, if one decides.
    *eligibility*: which originals may drop a page, and so whether what earlier crawls have kept counts as kept.
    Every method that reads the store raises :class:`UnreadableError` for what it cannot read there.
    """

    def __init__(
        self, store: OpenStore, claims: OpenClaims, *, beside: Beside | None = None, eligibility: Eligibility = ALL
    ) -> None:
        self.store = store
        self.known_words = KnownWords(store)
        self.eligibility = eligibility
        self.open_claims = claims
        self.beside = beside
        self.overrides = Overrides(store)
        self.dropped = DroppedItems(store, store.worker or claims.holder)
        self.met_again: dict[int, str] = {}
        """The crawl that has kept a page again as it is stored, so that nothing was written, by the page's number.

        Some 100 bytes each, less than Scrapy's own filter of requests takes.
        """

    # --- pages and their texts

    def unchanged(self, fetched: Fetched, run: str) -> Page | None:
        """Return the page that the crawl *run* has *fetched* as the store has it, unread; ``None`` for others.

        It was read from the same bytes, at the same URL and under all of these identities and no others. One get an
        identity, and one more; a duplicate has its text, by another one.
        """
        url, identities, body_digest = fetched
        values = self.store.get_recent([schema.identity_key(i) for i in identities])
        if not body_digest or values[0] is None or any(value != values[0] for value in values):
            return None
        number, digest = schema.decode_identity(values[0])
        known = self.page(number) if digest == body_digest else None
        if known is None or (known.url, known.identities) != (url, identities):
            return None
        page = _unread(known, self.open_claims.version, run, body_digest)
        return page if known.original is None else replace(page, paragraphs=tuple(self.text(number)))

    def same(self, identities: Iterable[bytes]) -> list[StoredPage]:
        """Return the stored pages with one of these *identities*. Two reads; one less for what was looked up lately."""
        return self._led_to(self.store.get_recent([schema.identity_key(i) for i in identities]))

    def _led_to(self, values: Sequence[bytes | None]) -> list[StoredPage]:
        """Return the pages that the *values* of identities lead to."""
        if not any(values):
            return []
        numbers = dict.fromkeys(schema.decode_identity(value)[0] for value in values if value is not None)
        return [*self.numbered(numbers)]

    def leading_to(self, page: Page) -> list[StoredPage]:
        """Return the originals whose URLs lead to *page* now. One read, or none."""
        leads = self.open_claims.leads
        found = self.numbered(n for i in page.identities for n in leads.get(i, ())) if leads else ()
        return [each for each in found if each.original is None]

    def kept_at(self, identities: Sequence[bytes]) -> list[StoredPage]:
        """Return the originals with one of these *identities*, and the pages with open claims. Two reads, or one."""
        claims = self.open_claims.holders
        pending = [number for i in identities if i in claims for number in claims[i]]
        keys = [schema.identity_key(i) for i in identities]
        if self.store.worker:
            keys += map(schema.claims_key, identities)
        values = self.store.get_many(keys)
        numbers = [schema.decode_identity(value)[0] for value in values[: len(identities)] if value is not None]
        for value in values[len(identities) :]:
            numbers += schema.decode_postings(value or b"")
        return [page for page in self.numbered(dict.fromkeys((*numbers, *pending))) if page.original is None]

    def find(self, identities: Iterable[bytes]) -> StoredPage | None:
        """Return the first of the stored pages with one of these *identities*, if any."""
        return next(iter(self.same(identities)), None)

    def page(self, number: int) -> StoredPage | None:
        """Return a page by its number, stored or pending. One read."""
        return next(self.numbered([number]), None)

    def numbered(self, numbers: Iterable[int]) -> Iterator[StoredPage]:
        """Yield the pages with these numbers that are there, stored or pending. One read."""
        numbers = [*numbers]
        if not numbers:
            return
        stored = [number for number in numbers if number >= 0]
        values = dict(zip(stored, self.store.get_many([*map(schema.page_key, stored)]), strict=True)) if stored else {}
        for number in numbers:
            value = values.get(number)
            if value is None:
                page = self.claimed(number)
            else:
                page = schema.decode_page(number, value)
                if (run := self.met_again.get(number)) is not None:
                    page = replace(page, kept=replace(page.kept, run=run))
            if page is not None:
                yield page

    def claimed(self, number: int) -> StoredPage | None:
        """Return the page *number* if its claim is open."""
        return self.open_claims.pages.get(number)

    def pages(self) -> Iterator[StoredPage]:
        """Yield every stored page, originals and duplicates, oldest first."""
        for key, value in self.store.scan(*schema.PAGES):
            yield schema.decode_page(schema.decode_number(key[1:]), value)

    def count(self) -> tuple[int, int]:
        """Return how many originals and duplicates there are. One scan of all pages."""
        pages, duplicates = (sum(1 for _ in self.store.scan(*kind)) for kind in (schema.PAGES, schema.DUPLICATES))
        return pages - duplicates, duplicates

    def duplicates_of(self, original: int) -> list[int]:
        """Return the numbers of the duplicates of the page *original*, oldest first. One scan of them."""
        return [schema.last_number(key) for key, _ in self.store.scan(*schema.within(schema.repeats_key(original)))]

    def text(self, number: int) -> list[str]:
        """Return the kept paragraphs of a page, stored or pending; empty if none were kept. One read."""
        if number < 0:
            return [*self.open_claims.texts.get(number, ())]
        (value,) = self.store.get_recent([schema.text_key(number)])
        return [] if value is None else _decoded_text(value)

    def items_of(self, original: StoredPage) -> tuple[list[str], list[str]]:
        """Return the text of the items of *original*, and their short values, with their fields, that no title has.

        Without items, or where they have the same text, that of the page. Two reads at most.
        """
        text, value = self.text(original.number), None
        if original.item_content is not None and not original.pending:
            (value,) = self.store.get_many([schema.item_text_key(original.number)])
        texts, values = ([], []) if value is None else schema.decode_item_text(value, text)
        return texts or text, values

    def read_again(self, stored: StoredPage, run: str, fingerprint: Callable[[Sequence[str]], Fingerprint]) -> Page:
        """Return the *stored* page as one that the crawl *run* looks at, read from its text. One read.

        Where not all of its text is kept, its clauses have no weights.
        """
        text = self.text(stored.number)
        page = replace(_unread(stored, self.open_claims.version, run, b""), paragraphs=tuple(text), known=None)
        if page.is_keyed:
            return replace(page, item_content=stored.item_content)
        again = fingerprint(text)
        if is_cut(text) or again.digest != stored.digest:
            return page
        return replace(page, fingerprint=again)

    # --- candidates

    def host_mark(self, url: str) -> int:
        """Return what stands for the host of *url* in the numbers of its pages."""
        return schema.host_mark(url, self.store.header.key)

    def shown_on(self, url: str) -> Mapping[bytes, bytes]:
        """Return on how many pages of the host of *url* what they have shown stands, by hash. One read at most."""
        (value,) = self.store.get_recent([schema.shown_key(url, self.store.header.key)])
        return shown.decode(value)

    def look_up(self, page: Page) -> Found:
        """Return what there is for *page*. One read, and one more if the page itself is stored."""
        identities, hashes, pending = page.all_identities, [*page.fingerprint.weights], self.open_claims.holders
        whole = schema.whole_text_key(page.fingerprint.exact_digest, page.features)
        keys = [schema.identity_key(i) for i in identities]
        keys += map(schema.claims_key, identities if self.store.worker else ())
        split = len(keys)
        keys += schema.clause_keys(hashes)
        values = self.store.get_recent(keys if whole is None else [*keys, whole])
        own = self._led_to(values[: len(identities)])
        claimed = [n for value in values[len(identities) : split] if value for n in schema.decode_postings(value)]
        mine = {n for i in identities for n in pending.get(i, ())}.union(claimed, (p.number for p in own))
        holders = _holders(zip(hashes, values[split:], strict=False), pending, mine)
        equal: list[int] = []
        if whole is not None:
            equal = [*schema.decode_postings(values[-1] or b""), *pending.get(whole, ())]
        return Found(own, mine, holders, [n for n in equal if n not in mine])

    def distinctive_clauses(self, page: Page, found: Found) -> Distinctive:
        """Return the clauses of *page* that are not boilerplate of its host, with the other pages that contain them.

        One read for each of these, if not all that is stored counts.
        """
        host = self.host_mark(page.url)
        distinctive: dict[bytes, tuple[int, ...]] = dict.fromkeys(page.fingerprint.weights, ())
        counts = None if self.eligibility.is_all else self.counting(page.run)
        for clause_hash, numbers in found.holders.items():
            holders = numbers
            if len(holders) > COMMON_ON_HOST and counts is not None:
                holders = tuple(n for n in holders if counts(n))
            if len(holders) > COMMON_ON_HOST and [*map(schema.host_bits, holders)].count(host) > COMMON_ON_HOST:
                del distinctive[clause_hash]
            else:
                distinctive[clause_hash] = holders
        common = frozenset([h for h, holders in distinctive.items() if len(holders) > COMMON_IN_STORE])
        return Distinctive(distinctive, common)

    def counting(self, run: str) -> Callable[[int], bool]:
        """Return a predicate of page numbers: whether that page may drop one of the crawl *run*. One read a page."""

        @cache
        def counts(number: int) -> bool:
            original = self.page(number)
            return original is not None and self.eligibility.has(original, run)

        return counts


def _holders(
    postings: Iterable[tuple[bytes, bytes | None]], pending: Mapping[bytes, tuple[int, ...]], mine: set[int]
) -> dict[bytes, tuple[int, ...]]:
    """Return the pages that contain each clause, by its *postings* and the *pending* claims, but for *mine*."""
    holders = {}
    for clause_hash, value in postings:
        numbers = schema.decode_postings(value) if value else ()
        if clause_hash in pending:
            numbers += pending[clause_hash]
        if numbers:
            holders[clause_hash] = tuple(n for n in numbers if n not in mine) if mine else numbers
    return holders


def _unread(known: StoredPage, version: int, run: str, body_digest: bytes) -> Page:
    """Return the page that the crawl *run* has fetched again, *known* at a *version* of the index, without its text."""
    # Weights are unknown here; read the page to get them.
    unweighed = Fingerprint(
        dict.fromkeys(known.hashes, 0),
        known.digest,
        known.exact_digest,
    )
    return Page(
        known.url,
        known.identities,
        unweighed,
        (),
        run,
        source=known.source,
        features=known.features,
        body_digest=body_digest,
        known=known,
        known_at=version,
    )
