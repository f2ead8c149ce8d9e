"""Which stored pages hold what a new page says, and how much of it.

The only home of scores and of what is boilerplate. It reads, and knows the keys of a fingerprint, not
why pages are compared.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from functools import cache, cached_property, partial
from itertools import chain, islice
from typing import TYPE_CHECKING

from dedup_middleware.errors import UnreadableError
from dedup_middleware.index import codec, page_codec
from dedup_middleware.index.overrides import Overrides
from dedup_middleware.index.paragraphs import ParagraphIndex
from dedup_middleware.index.prints import PrintIndex
from dedup_middleware.index.unchanged import Numbers, page_of
from dedup_middleware.index.whole_texts import equals_key
from dedup_middleware.model import Match, Reach
from dedup_middleware.stores import refusals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from dedup_middleware.fingerprints.literature.method import Method
    from dedup_middleware.index.open_claims import OpenClaims
    from dedup_middleware.model import Fetched, Fingerprint, Page, StoredPage
    from dedup_middleware.stores.protocol import Store

#: A clause held by more kept pages of one host than this is boilerplate there: more such pages are a menu or a notice.
COMMON_ON_HOST = 2


ALL = Reach()


class Lookup:
    """The stored pages and the open claims of one store, to be read; see `Index` for the arguments."""

    def __init__(  # noqa: PLR0913 - what there is to look up, by name
        self,
        store: Store,
        claims: OpenClaims,
        *,
        common: int,
        text_limit: int,
        distance: int | None = None,
        method: Method | None = None,
        reach: Reach = ALL,
    ) -> None:
        self.store = store
        self.reach = reach
        self._claims = claims
        self._common = common
        self._text_limit = text_limit
        self._reading = partial(refusals.of_value, store.uri, UnreadableError)
        self._paragraphs = None if distance is None else ParagraphIndex(store, claims.paragraphs, distance)
        self.prints = None if method is None else PrintIndex(store, claims, method)
        with self._reading():
            self.overrides = Overrides(store)
        # Pages that a crawl has met again as they are stored, so that nothing was written: by number, and the crawl.
        self._met_again, self._met_by = Numbers(), ""

    def unchanged(self, fetched: Fetched, run: str) -> Page | None:
        """Return the original that the crawl *run* has *fetched* as the store has it, unread; ``None`` for others.

        It was read from the same bytes, at the same URL and under all of these identities and no others. One get an
        identity, and one more.
        """
        url, identities, body_digest = fetched
        values = self.store.get_many([codec.identity_key(i) for i in identities])
        if not body_digest or values[0] is None or any(value != values[0] for value in values):
            return None
        number, digest = codec.decode_identity(values[0])
        known = self.page(number) if digest == body_digest else None
        if known is None or known.owner is not None or (known.url, known.identities) != (url, identities):
            return None
        return page_of(known, self._claims.version, run, body_digest)

    def same(self, identities: Iterable[bytes]) -> list[StoredPage]:
        """Return the stored pages with one of these *identities*. One or two gets and one a page."""
        values = self.store.get_many([codec.identity_key(i) for i in identities])
        numbers = dict.fromkeys(codec.decode_identity(value)[0] for value in values if value is not None)
        return [page for number in numbers if (page := self.page(number)) is not None]

    def find(self, identities: Iterable[bytes]) -> StoredPage | None:
        """Return the first of the stored pages with one of these *identities*, if any."""
        return next(iter(self.same(identities)), None)

    def page(self, number: int) -> StoredPage | None:
        """Return a page by its number, stored or pending."""
        if number < 0:
            return self._claims.pages.get(number)
        (value,) = self.store.get_many([codec.page_key(number)])
        if value is None:
            return self.claimed(number)
        with self._reading():
            page = page_codec.decode_page(number, value)
        if number in self._met_again:
            page = replace(page, delivery=replace(page.delivery, run=self._met_by))
        return page

    def bring_near(self, numbers: Sequence[int]) -> None:
        """Have these pages at hand, for some moments, where the store is far away."""

    def titles_beside(self, page: Page) -> list[str]:  # noqa: ARG002
        """Return what pages of the host of *page* are called that other processes have met, unless it did before."""
        return []

    def claimed(self, number: int) -> StoredPage | None:  # noqa: ARG002
        """Return the page *number* if its claim is open in the store; there is none where those are in memory."""
        return None

    def pages(self) -> Iterator[StoredPage]:
        """Yield every stored page, owners and dropped duplicates, oldest first."""
        with self._reading():
            for key, value in self.store.scan(*codec.PAGES):
                yield page_codec.decode_page(codec.decode_number(key[1:]), value)

    def text(self, number: int) -> list[str]:
        """Return the kept paragraphs of a page, stored or pending; empty if none were kept. One get."""
        if number < 0:
            return list(self._claims.texts.get(number, ()) if self._text_limit else ())
        (value,) = self.store.get_many([codec.text_key(number)])
        with self._reading():
            return [] if value is None else codec.decode_text(value)

    def item_text(self, owner: StoredPage) -> list[str]:
        """Return what is kept of the text that the items of *owner* said; empty if none is. One get."""
        if owner.item_content is None or owner.item_content.is_text_of(owner.hashes):
            return self.text(owner.number)
        (value,) = self.store.get_many([codec.item_text_key(owner.number)])
        with self._reading():
            return [] if value is None else codec.decode_text(value)

    def names(self, owner: StoredPage, identities: Iterable[bytes]) -> bool:
        """Tell whether *owner* names the page with these *identities* as its story's own. One get an identity."""
        values = self.store.get_many([codec.canonical_key(i) for i in identities])
        return any(value is not None and codec.decode_number(value) == owner.number for value in values)

    def is_cut(self, text: Sequence[str]) -> bool:
        """Tell whether *text*, as it was kept, may go on."""
        return sum(map(len, text)) + len(text) > self._text_limit

    def live_clauses(self, page: Page, own: list[StoredPage]) -> dict[bytes, tuple[int, ...]]:
        """Return the clauses of *page* that are not boilerplate, each with the numbers of other pages that hold it.

        *own* is the stored page with the identity of *page*: no other page, and neither is a claim of that identity.
        Cost: one get a clause.
        """
        hashes = list(page.fingerprint.weights)
        mine = self.numbers_of(page, own)
        host = codec.host_mark(page.url)
        live: dict[bytes, tuple[int, ...]] = dict.fromkeys(hashes, ())
        pending = self._claims.postings
        # Its equals are looked for next, see `equals`.
        equals = equals_key(page.fingerprint.exact_digest, page.features)
        values = self.store.get_many([*codec.clause_keys(hashes), *([] if equals is None else [equals])])
        held = [(h, value) for h, value in zip(hashes, values, strict=False) if value or h in pending]
        counts = None if self.reach.is_all else self.counting(page.run)
        with self._reading():
            for clause_hash, value in held:
                holders = codec.decode_postings(value) if value else ()
                if clause_hash in pending:
                    holders += pending[clause_hash]
                if mine:
                    holders = tuple(n for n in holders if n not in mine)
                if len(holders) > COMMON_ON_HOST and counts is not None:
                    holders = tuple(n for n in holders if counts(n))
                if len(holders) > self._common or (
                    len(holders) > COMMON_ON_HOST and [*map(codec.host_bits, holders)].count(host) > COMMON_ON_HOST
                ):
                    del live[clause_hash]
                else:
                    live[clause_hash] = holders
        return live

    def counting(self, run: str) -> Callable[[int], bool]:
        """Return what tells of the number of a page whether that may drop one of the crawl *run*. One get a page."""

        @cache
        def counts(number: int) -> bool:
            owner = Lookup.page(self, number)
            return owner is not None and self.reach.has(owner, run)

        return counts

    def numbers_of(self, page: Page, own: list[StoredPage]) -> set[int]:
        """Return the numbers under which *page* itself is stored, as its *own*, or claimed."""
        claimed = {number for identity in page.identities for number in self._claims.identities.get(identity, ())}
        return claimed.union(stored.number for stored in own)

    def near(self, page: Page, own: list[StoredPage]) -> Iterator[StoredPage]:
        """Yield the other pages with paragraphs near those of *page*, those with most of them first."""
        if self._paragraphs is not None and page.fingerprint.simhashes:
            mine = self.numbers_of(page, own)
            with self._reading():
                near = self._paragraphs.near(page.fingerprint.simhashes)
            for number in near:
                if number not in mine and (stored := self.page(number)) is not None:
                    yield stored

    def read_again(self, stored: StoredPage, run: str, fingerprint: Callable[[Sequence[str]], Fingerprint]) -> Page:
        """Return the *stored* page as one that the crawl *run* looks at, read from its text. One get.

        Where not all of its text is kept, its clauses have no weights.
        """
        text = self.text(stored.number)
        page = page_of(stored, self._claims.version, run, b"")
        made = fingerprint(text)
        if self.is_cut(text) or made.digest != stored.digest:
            return replace(page, paragraphs=tuple(text), known=None)
        return replace(page, paragraphs=tuple(text), known=None, fingerprint=made)

    @cached_property
    def has_texts(self) -> bool:
        """Whether the text of any page may be kept. One scan."""
        return self._text_limit > 0 or next(iter(self.store.scan(*codec.TEXTS)), None) is not None

    def matches(
        self, fingerprint: Fingerprint, live: dict[bytes, tuple[int, ...]], *, least: float = 0.0, first: float = 0.0
    ) -> Iterator[Match]:
        """Yield the pages that hold some of the *live* clauses, the one that covers most of their weight first.

        Only those that cover the share *least* or more, and none at all unless the first covers the share *first*. Of
        equals, a stored page comes before a pending one and an older before a younger. Cost: one get a match taken.
        """
        total = sum(map(fingerprint.weights.__getitem__, live))
        covered: defaultdict[int, int] = defaultdict(int)
        for clause_hash, holders in live.items():
            for number in holders:
                covered[number] += fingerprint.weights[clause_hash]
        for number in sorted(covered, key=lambda n: (-covered[n], n < 0, abs(n))):
            if covered[number] / total < max(first, least):
                return
            first = 0.0
            if (owner := self.page(number)) is not None:
                yield Match(owner, covered[number] / total, owner.hashes & fingerprint.weights.keys())

    def is_template(self, template: bytes) -> bool:
        """Tell whether the text with the id *template* is known to be one. One get."""
        return self.store.get_many([codec.template_key(template)]) != [None]

    def suspect_drops(self, template: bytes) -> Iterator[StoredPage]:
        """Yield the dropped pages that may fill in the text with the id *template*, oldest first. One get a page."""
        return self._suspects(key for key, _ in self.store.scan(*codec.suspect_range(template)))

    def suspects_unless_known(self, template: bytes) -> Iterator[StoredPage] | None:
        """Return `suspect_drops`; ``None`` where :meth:`is_template`. Both by one scan."""
        keys = (key for key, _ in self.store.scan(codec.template_key(template), codec.suspect_range(template)[1]))
        first = [*islice(keys, 1)]
        return None if first == [codec.template_key(template)] else self._suspects(chain(first, keys))

    def _suspects(self, keys: Iterable[bytes]) -> Iterator[StoredPage]:
        for key in keys:
            with self._reading():
                number = codec.last_number(key)
            page = self.page(number)
            # One that has been delivered since is none; its key stays.
            if page is not None and page.owner is not None:
                yield page

    def equals(self, page: Page, own: list[StoredPage]) -> Iterator[StoredPage]:
        """Yield the other pages, oldest first, with the very letters of *page* and, but for the site's part, its title.

        Whatever is boilerplate. Cost: one get, and one a page.
        """
        key = equals_key(page.fingerprint.exact_digest, page.features)
        if key is None:
            return
        (value,) = self.store.get_many([key])
        with self._reading():
            stored = codec.decode_postings(value) if value else ()
        mine = self.numbers_of(page, own)
        for number in (*stored, *self._claims.equals.get(key, ())):
            other = None if number in mine else self.page(number)
            if other is not None and other.exact_digest == page.fingerprint.exact_digest:
                yield other
