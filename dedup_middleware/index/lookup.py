"""Which stored pages contain what a new page does, and how much of it.

The only place of scores and of what is boilerplate. It reads, and does not decide.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from functools import cache, cached_property, partial
from itertools import chain, islice
from typing import TYPE_CHECKING

from dedup_middleware.errors import UnreadableError
from dedup_middleware.index import schema
from dedup_middleware.index.in_doubt import Overrides
from dedup_middleware.index.prints import PrintIndex
from dedup_middleware.model import Eligibility, Fingerprint, Match, Page
from dedup_middleware.stores import refusals
from dedup_middleware.text import titles
from dedup_middleware.urls import host_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from dedup_middleware.fingerprints.method import Method
    from dedup_middleware.index.shared import OpenClaims
    from dedup_middleware.model import Fetched, StoredPage
    from dedup_middleware.stores import OpenStore

#: A clause on more kept pages than this is boilerplate: copies are dropped, so a clause of a story is on few kept
#: pages, and one of a notice, a credit or a menu on many.
COMMON_IN_STORE = 3
#: The same on the pages of one host: more of these are a menu or a notice.
COMMON_ON_HOST = 2
#: Characters of a page's text that are kept, for `explain` and alignment: an article is shorter, and no page can fill
#: a disk.
TEXT_LIMIT = 20_000

ALL = Eligibility()


def own_template_id(page: Page) -> bytes:
    """Return the template hash that other pages of the host of *page* have for the text of *page*."""
    title = "" if page.features is None else titles.main_part(page.features)
    return schema.template_hash(host_of(page.url), page.fingerprint.digest, title)


class Lookup:
    """The stored pages and the open claims of one store, to be read; see `Index` for the arguments."""

    def __init__(  # noqa: PLR0913 - what there is to look up, by name
        self,
        store: OpenStore,
        claims: OpenClaims,
        *,
        common: int = COMMON_IN_STORE,
        text_limit: int = TEXT_LIMIT,
        method: Method | None = None,
        eligibility: Eligibility = ALL,
    ) -> None:
        self.store = store
        self.eligibility = eligibility
        self._claims = claims
        self._common = common
        self._text_limit = text_limit
        self._reading = partial(refusals.of_value, store.uri, UnreadableError)
        self.prints = None if method is None else PrintIndex(store, claims, method)
        with self._reading():
            self.overrides = Overrides(store)
        # Pages that a crawl has met again as they are stored, so that nothing was written: by number, and the crawl.
        self._met_again, self._met_by = Numbers(), ""

    # --- pages and their texts

    def unchanged(self, fetched: Fetched, run: str) -> Page | None:
        """Return the original that the crawl *run* has *fetched* as the store has it, unread; ``None`` for others.

        It was read from the same bytes, at the same URL and under all of these identities and no others. One get an
        identity, and one more.
        """
        url, identities, body_digest = fetched
        values = self.store.get_many([schema.identity_key(i) for i in identities])
        if not body_digest or values[0] is None or any(value != values[0] for value in values):
            return None
        number, digest = schema.decode_identity(values[0])
        known = self.page(number) if digest == body_digest else None
        if known is None or known.original is not None or (known.url, known.identities) != (url, identities):
            return None
        return _unread(known, self._claims.version, run, body_digest)

    def same(self, identities: Iterable[bytes]) -> list[StoredPage]:
        """Return the stored pages with one of these *identities*. One or two gets and one a page."""
        values = self.store.get_many([schema.identity_key(i) for i in identities])
        numbers = dict.fromkeys(schema.decode_identity(value)[0] for value in values if value is not None)
        return [page for number in numbers if (page := self.page(number)) is not None]

    def find(self, identities: Iterable[bytes]) -> StoredPage | None:
        """Return the first of the stored pages with one of these *identities*, if any."""
        return next(iter(self.same(identities)), None)

    def page(self, number: int) -> StoredPage | None:
        """Return a page by its number, stored or pending. One get."""
        if number < 0:
            return self._claims.pages.get(number)
        (value,) = self.store.get_many([schema.page_key(number)])
        if value is None:
            return self.claimed(number)
        with self._reading():
            page = schema.decode_page(number, value)
        if number in self._met_again:
            page = replace(page, kept=replace(page.kept, run=self._met_by))
        return page

    def claimed(self, number: int) -> StoredPage | None:
        """Return the page *number* if its claim is open."""
        return self._claims.pages.get(number)

    def pages(self) -> Iterator[StoredPage]:
        """Yield every stored page, originals and duplicates, oldest first."""
        with self._reading():
            for key, value in self.store.scan(*schema.PAGES):
                yield schema.decode_page(schema.decode_number(key[1:]), value)

    def count(self) -> tuple[int, int]:
        """Return how many originals and duplicates there are. One scan of all pages, 1 µs each."""
        counts = [0, 0]
        with self._reading():
            for key, value in self.store.scan(*schema.PAGES):
                counts[schema.original_in(schema.decode_number(key[1:]), value) is not None] += 1
        return counts[0], counts[1]

    def duplicates_of(self, original: int) -> list[int]:
        """Return the numbers of the duplicates of the page *original*, oldest first. One scan of them."""
        return [schema.last_number(key) for key, _ in self.store.scan(*schema.repeat_range(original))]

    def text(self, number: int) -> list[str]:
        """Return the kept paragraphs of a page, stored or pending; empty if none were kept. One get."""
        if number < 0:
            return list(self._claims.texts.get(number, ()) if self._text_limit else ())
        return self._text(schema.text_key(number))

    def item_text(self, original: StoredPage) -> list[str]:
        """Return what is kept of the text of the items of *original*; empty if nothing is. One get."""
        if original.item_content is None or original.item_content.is_text_of(original.hashes):
            return self.text(original.number)
        return self._text(schema.item_text_key(original.number))

    def _text(self, key: bytes) -> list[str]:
        (value,) = self.store.get_many([key])
        with self._reading():
            return [] if value is None else schema.decode_text(value)

    def is_cut(self, text: Sequence[str]) -> bool:
        """Return whether *text*, as it was kept, may go on."""
        return sum(map(len, text)) + len(text) > self._text_limit

    @cached_property
    def has_texts(self) -> bool:
        """Whether the text of any page may be kept. One scan."""
        return self._text_limit > 0 or next(iter(self.store.scan(*schema.TEXTS)), None) is not None

    def read_again(self, stored: StoredPage, run: str, fingerprint: Callable[[Sequence[str]], Fingerprint]) -> Page:
        """Return the *stored* page as one that the crawl *run* looks at, read from its text. One get.

        Where not all of its text is kept, its clauses have no weights.
        """
        text = self.text(stored.number)
        page = replace(_unread(stored, self._claims.version, run, b""), paragraphs=tuple(text), known=None)
        made = fingerprint(text)
        if self.is_cut(text) or made.digest != stored.digest:
            return page
        return replace(page, fingerprint=made)

    # --- candidates

    def live_clauses(self, page: Page, own: list[StoredPage]) -> dict[bytes, tuple[int, ...]]:
        """Return the clauses of *page* that are not boilerplate, each with the numbers of other pages that contain it.

        *own* is the stored page with the identity of *page*: no other page, and neither is a claim of that identity.
        Cost: one get a clause.
        """
        hashes = list(page.fingerprint.weights)
        mine = self.numbers_of(page, own)
        host = schema.host_mark(page.url)
        live: dict[bytes, tuple[int, ...]] = dict.fromkeys(hashes, ())
        pending = self._claims.postings
        values = self.store.get_many(schema.clause_keys(hashes))
        held = [(h, value) for h, value in zip(hashes, values, strict=True) if value or h in pending]
        counts = None if self.eligibility.is_all else self.counting(page.run)
        with self._reading():
            for clause_hash, value in held:
                holders = schema.decode_postings(value) if value else ()
                if clause_hash in pending:
                    holders += pending[clause_hash]
                if mine:
                    holders = tuple(n for n in holders if n not in mine)
                if len(holders) > COMMON_ON_HOST and counts is not None:
                    holders = tuple(n for n in holders if counts(n))
                if len(holders) > self._common or (
                    len(holders) > COMMON_ON_HOST and [*map(schema.host_bits, holders)].count(host) > COMMON_ON_HOST
                ):
                    del live[clause_hash]
                else:
                    live[clause_hash] = holders
        return live

    def counting(self, run: str) -> Callable[[int], bool]:
        """Return a predicate of page numbers: whether that page may drop one of the crawl *run*. One get a page."""

        @cache
        def counts(number: int) -> bool:
            original = Lookup.page(self, number)
            return original is not None and self.eligibility.has(original, run)

        return counts

    def numbers_of(self, page: Page, own: list[StoredPage]) -> set[int]:
        """Return the numbers under which *page* itself is stored, as its *own*, or claimed."""
        claimed = {number for identity in page.identities for number in self._claims.identities.get(identity, ())}
        return claimed.union(stored.number for stored in own)

    def matches(
        self, fingerprint: Fingerprint, live: dict[bytes, tuple[int, ...]], *, least: float = 0.0, first: float = 0.0
    ) -> Iterator[Match]:
        """Yield the pages that contain some of the *live* clauses, the one with most of their weight first.

        Only those that contain the share *least* or more, and none at all unless the first contains the share *first*.
        Of equals, a stored page comes before a pending one and an older before a younger. Cost: one get a match taken.
        """
        total = sum(map(fingerprint.weights.__getitem__, live))
        contained: defaultdict[int, int] = defaultdict(int)
        for clause_hash, holders in live.items():
            for number in holders:
                contained[number] += fingerprint.weights[clause_hash]
        for number in sorted(contained, key=lambda n: (-contained[n], n < 0, abs(n))):
            if contained[number] / total < max(first, least):
                return
            first = 0.0
            if (original := self.page(number)) is not None:
                yield Match(original, contained[number] / total, original.hashes & fingerprint.weights.keys())

    def equals(self, page: Page, own: list[StoredPage]) -> Iterator[StoredPage]:
        """Yield the other pages, oldest first, with the very letters of *page* and, but for the site's part, its title.

        Regardless of what is boilerplate. Cost: one get, and one a page.
        """
        key = schema.whole_text_key(page.fingerprint.exact_digest, page.features)
        if key is None:
            return
        (value,) = self.store.get_many([key])
        with self._reading():
            stored = schema.decode_postings(value) if value else ()
        mine = self.numbers_of(page, own)
        for number in (*stored, *self._claims.equals.get(key, ())):
            other = None if number in mine else self.page(number)
            if other is not None and other.exact_digest == page.fingerprint.exact_digest:
                yield other

    def names(self, original: StoredPage, identities: Iterable[bytes]) -> bool:
        """Return whether *original* names the page with these *identities* as its story's own. One get an identity."""
        values = self.store.get_many([schema.canonical_key(i) for i in identities])
        return any(value is not None and schema.decode_number(value) == original.number for value in values)

    def titles_beside(self, page: Page) -> list[str]:  # noqa: ARG002
        """Return titles of the host of *page* that other processes have met, unless they were returned before."""
        return []

    # --- templates

    def is_template(self, template: bytes) -> bool:
        """Return whether the text with the id *template* is known to be one. One get."""
        return self.store.get_many([schema.template_key(template)]) != [None]

    def suspect_drops(self, template: bytes) -> Iterator[StoredPage]:
        """Yield the dropped pages that may fill in the text with the id *template*, oldest first. One get a page."""
        return self._suspects(key for key, _ in self.store.scan(*schema.suspect_range(template)))

    def suspects_unless_known(self, template: bytes) -> Iterator[StoredPage] | None:
        """Return `suspect_drops`; ``None`` where :meth:`is_template`. Both by one scan."""
        keys = (key for key, _ in self.store.scan(schema.template_key(template), schema.suspect_range(template)[1]))
        first = [*islice(keys, 1)]
        return None if first == [schema.template_key(template)] else self._suspects(chain(first, keys))

    def _suspects(self, keys: Iterable[bytes]) -> Iterator[StoredPage]:
        for key in keys:
            page = self.page(schema.last_number(key))
            # One that has been kept since is none; its key stays.
            if page is not None and page.original is not None:
                yield page


def _unread(known: StoredPage, version: int, run: str, body_digest: bytes) -> Page:
    """Return the page that the crawl *run* has fetched again, *known* at a *version* of the index, without its text."""
    # Weights are unknown here; read the page to get them.
    unweighed = Fingerprint(
        dict.fromkeys(known.hashes, 0),
        dict(zip(known.masked_hashes, known.masked_hashes, strict=True)),
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


class Numbers:
    """A set of page numbers, a bit for each page of the store: 125 kB for a million."""

    def __init__(self) -> None:
        self._bits = bytearray()

    def add(self, number: int) -> None:
        """Add the *number* of a stored page. O(1), amortised."""
        byte, bit = divmod(schema.place_of(number), 8)
        if byte >= len(self._bits):
            self._bits.extend(bytes(byte + 1 - len(self._bits)))
        self._bits[byte] |= 1 << bit

    def __contains__(self, number: int) -> bool:
        """Return whether the *number* of a stored page was added."""
        byte, bit = divmod(schema.place_of(number), 8)
        return byte < len(self._bits) and bool(self._bits[byte] >> bit & 1)
