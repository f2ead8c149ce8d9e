"""Which stored pages hold a clause, and how much of a new page one of them covers.

Law of this file: the only home of scores and of posting lists. It knows the keys of a fingerprint, not why pages are
compared. Pages whose claim is open live in memory only, under negative numbers; confirming one writes it in one atomic
batch. A crash therefore leaves nothing provisional behind.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from dedup_middleware import codec
from dedup_middleware.model import Match, StoredPage
from dedup_middleware.openclaims import OpenClaims
from dedup_middleware.paragraphs import ParagraphIndex

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dedup_middleware.model import Fingerprint, Page
    from dedup_middleware.protocols import Store
    from dedup_middleware.stores.opened import Medium, OpenStore


#: A clause held by more kept pages of one host than this is boilerplate there: more such pages are a menu or a notice.
COMMON_ON_HOST = 2


class Index:
    """The stored pages and the open claims of one store.

    *common*: a clause held by more kept pages than this is boilerplate, without a vote, and its posting list is capped;
    on pages of one host, a clause held by more than two of that host's.
    *text_limit*: characters of a page's text kept, for `explain` and the second opinion; 0 keeps none.
    *distance*: within how many bits a paragraph is near, where pages have SimHashes; ``None`` where they have none.
    """

    def __init__(
        self, store: Store, claims: OpenClaims, *, common: int, text_limit: int, distance: int | None = None
    ) -> None:
        self.store = store
        self._claims = claims
        self._common = common
        # One more than makes a clause common: the page that is judged may be a holder itself, and does not count then.
        self._most_holders = common + 2
        self._text_limit = text_limit
        self._paragraphs = None if distance is None else ParagraphIndex(store, claims.paragraphs, distance)

    @property
    def version(self) -> int:
        """A number that grows whenever the answer to a lookup may have changed."""
        return self._claims.version

    def changed_since(self, version: int, page: Page) -> bool:
        """Tell whether a verdict on *page* that was made at *version* may be another by now."""
        return self._claims.changed_since(version, page)

    # --- reading

    def same(self, identities: Iterable[bytes]) -> list[StoredPage]:
        """Return the stored pages with one of these *identities*. One or two gets and one a page."""
        values = self.store.get_many([codec.identity_key(i) for i in identities])
        numbers = dict.fromkeys(codec.decode_number(value) for value in values if value is not None)
        return [page for number in numbers if (page := self.page(number)) is not None]

    def find(self, identities: Iterable[bytes]) -> StoredPage | None:
        """Return the first of the stored pages with one of these *identities*, if any."""
        return next(iter(self.same(identities)), None)

    def page(self, number: int) -> StoredPage | None:
        """Return a page by its number, stored or pending."""
        if number < 0:
            return self._claims.pages.get(number)
        (value,) = self.store.get_many([codec.page_key(number)])
        return None if value is None else codec.decode_page(number, value)

    def pages(self) -> Iterator[StoredPage]:
        """Yield every stored page, owners and dropped duplicates, oldest first."""
        for key, value in self.store.scan(*codec.PAGES):
            yield codec.decode_page(codec.decode_number(key[1:]), value)

    def text(self, number: int) -> list[str]:
        """Return the kept paragraphs of a page, stored or pending; empty if none were kept. One get."""
        if number < 0:
            return list(self._claims.texts.get(number, ()) if self._text_limit else ())
        (value,) = self.store.get_many([codec.text_key(number)])
        return [] if value is None else codec.decode_text(value)

    def live_clauses(self, page: Page, own: list[StoredPage]) -> dict[bytes, tuple[int, ...]]:
        """Return the clauses of *page* that are not boilerplate, each with the numbers of other pages that hold it.

        *own* is the stored page with the identity of *page*: no other page, and neither is a claim of that identity.
        Cost: one get a clause.
        """
        hashes = list(page.fingerprint.weights)
        mine = self._numbers_of(page, own)
        host = codec.host_mark(page.url)
        live = {}
        pending = self._claims.postings
        for clause_hash, value in zip(hashes, self.store.get_many([codec.clause_key(h) for h in hashes]), strict=True):
            holders = codec.decode_postings(value) if value else ()
            if clause_hash in pending:
                holders += tuple(pending[clause_hash])
            elif not holders:
                live[clause_hash] = holders
                continue
            if mine:
                holders = tuple(n for n in holders if n not in mine)
            on_host = [*map(codec.host_of, holders)].count(host) if len(holders) > COMMON_ON_HOST else 0
            if len(holders) <= self._common and on_host <= COMMON_ON_HOST:
                live[clause_hash] = holders
        return live

    def _numbers_of(self, page: Page, own: list[StoredPage]) -> set[int]:
        claimed = {number for identity in page.identities for number in self._claims.identities.get(identity, ())}
        return claimed.union(stored.number for stored in own)

    def near(self, page: Page, own: list[StoredPage]) -> Iterator[StoredPage]:
        """Yield the other pages with paragraphs near those of *page*, those with most of them first."""
        if self._paragraphs is not None and page.fingerprint.simhashes:
            mine = self._numbers_of(page, own)
            for number in self._paragraphs.near(page.fingerprint.simhashes):
                if number not in mine and (stored := self.page(number)) is not None:
                    yield stored

    def matches(self, fingerprint: Fingerprint, live: dict[bytes, tuple[int, ...]]) -> Iterator[Match]:
        """Yield the pages that hold some of the *live* clauses, the one that covers most of their weight first.

        Of equals, a stored page comes before a pending one and an older before a younger. Cost: one get a match taken.
        """
        total = sum(fingerprint.weights[h] for h in live)
        covered: defaultdict[int, int] = defaultdict(int)
        for clause_hash, holders in live.items():
            for number in holders:
                covered[number] += fingerprint.weights[clause_hash]
        for number in sorted(covered, key=lambda n: (-covered[n], n < 0, abs(n))):
            if (owner := self.page(number)) is not None:
                yield Match(owner, covered[number] / total, owner.hashes & fingerprint.weights.keys())

    # --- claims

    def hold(self, page: Page) -> StoredPage:
        """Open a claim: *page* owns its text from now on, in memory. Returns it under its pending number."""
        pending = self._claims.add(page)
        if self._paragraphs is not None:
            self._paragraphs.hold(pending.number, pending.simhashes)
        return pending

    def release(self, number: int) -> None:
        """End the claim *number*: its text is nobody's again."""
        pending = self._claims.remove(number)
        if self._paragraphs is not None:
            self._paragraphs.release(number, pending.simhashes)

    def keep(self, page: Page) -> StoredPage:
        """Store *page* as an owner; what its identity held before is superseded in the same batch."""
        return self._write(page)

    def remember_duplicate(self, page: Page, match: Match) -> StoredPage:
        """Store that *page* was dropped in favour of ``match.owner``: no postings, so it can never own."""
        return self._write(page, match)

    # --- writing

    def _write(self, page: Page, match: Match | None = None) -> StoredPage:
        own = self.same(page.identities)
        place = None if own else self._next_place()
        number = own[0].number if place is None else codec.page_number(place, page.url)
        stored = StoredPage.of(page, number, match)
        mine = frozenset(o.number for o in own) | {number}
        held_before = frozenset[bytes]().union(*(o.hashes for o in own if o.owner is None))
        holds_now = stored.hashes if match is None else frozenset[bytes]()
        puts, deletes = self._posting_changes(number, mine, held_before, holds_now)
        if self._paragraphs is not None:
            before = {(bits, o.number) for o in own if o.owner is None for bits in o.simhashes}
            now = {(bits, number) for bits in stored.simhashes if match is None}
            more_puts, more_deletes = self._paragraphs.changes(before, now)
            puts += more_puts
            deletes += more_deletes
        puts.append((codec.page_key(number), codec.encode_page(stored)))
        puts += [(codec.identity_key(i), codec.encode_number(number)) for i in stored.identities]
        deletes += [codec.identity_key(i) for o in own for i in o.identities if i not in stored.identities]
        deletes += [key(o.number) for o in own[1:] for key in (codec.page_key, codec.text_key)]
        if place is not None:
            puts.append((codec.NEXT_PLACE_KEY, codec.encode_number(place + 1)))
        if self._text_limit:
            puts.append((codec.text_key(number), codec.encode_text(page.paragraphs, self._text_limit)))
        self.store.write(puts, deletes)
        self._claims.touch(held_before.union(holds_now, *(known.identities for known in (stored, *own))))
        return stored

    def _next_place(self) -> int:
        (value,) = self.store.get_many([codec.NEXT_PLACE_KEY])
        return 1 if value is None else codec.decode_number(value)

    def _posting_changes(
        self, number: int, mine: frozenset[int], held_before: frozenset[bytes], holds_now: frozenset[bytes]
    ) -> tuple[list[tuple[bytes, bytes]], list[bytes]]:
        """Return the puts and deletes by which page *number* takes the place of *mine* in the posting lists."""
        puts: list[tuple[bytes, bytes]] = []
        deletes: list[bytes] = []
        alone = codec.encode_postings((number,))
        hashes = list(held_before | holds_now)
        keys = [codec.clause_key(h) for h in hashes]
        for clause_hash, key, value in zip(hashes, keys, self.store.get_many(keys), strict=True):
            if value is None:
                if clause_hash in holds_now:
                    puts.append((key, alone))
                continue
            holders = frozenset(codec.decode_postings(value))
            kept = holders - mine
            if clause_hash in holds_now and len(kept) < self._most_holders:
                kept |= {number}
            if kept == holders:
                continue
            if kept:
                puts.append((key, codec.encode_postings(tuple(sorted(kept)))))
            else:
                deletes.append(key)
        return puts, deletes


_open_claims: WeakKeyDictionary[Medium, OpenClaims] = WeakKeyDictionary()


def index_of(store: OpenStore, *, common: int, text_limit: int, distance: int | None = None) -> Index:
    """Return an index of *store*; those of one process that share the store share their open claims."""
    claims = _open_claims.setdefault(store.medium, OpenClaims())
    return Index(store, claims, common=common, text_limit=text_limit, distance=distance)
