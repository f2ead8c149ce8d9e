"""Which stored pages hold a clause, and how much of a new page one of them covers.

Law of this file: the only home of scores and of posting lists. It knows the keys of a fingerprint, not why pages are
compared. Pages whose claim is open live in memory only, under negative numbers; confirming one writes it in one atomic
batch. A crash therefore leaves nothing provisional behind.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from dedup_middleware import codec
from dedup_middleware.batch import Batch
from dedup_middleware.errors import UnreadableError
from dedup_middleware.journal import Journal
from dedup_middleware.model import Match, Scope, StoredPage
from dedup_middleware.openclaims import OpenClaims
from dedup_middleware.paragraphs import ParagraphIndex
from dedup_middleware.stores import refusals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from dedup_middleware.journal import Entry
    from dedup_middleware.model import Delivery, Fingerprint, Page
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
    *scope*: whether what earlier crawls have delivered counts as delivered.
    Every method that reads the store raises :class:`StoreCorruptError` for what it cannot read there.
    """

    def __init__(  # noqa: PLR0913 - what an index is made of, by name
        self,
        store: Store,
        claims: OpenClaims,
        journal: Journal,
        *,
        common: int,
        text_limit: int,
        distance: int | None = None,
        scope: Scope = Scope.STORE,
    ) -> None:
        self.store = store
        self.journal = journal
        self._claims = claims
        self._common = common
        # One more than makes a clause common: the page that is judged may be a holder itself, and does not count then.
        self._most_holders = common + 2
        self._text_limit = text_limit
        self._scope = scope
        self._reading = partial(refusals.of_value, store.uri, UnreadableError)
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
        with self._reading():
            return None if value is None else codec.decode_page(number, value)

    def pages(self) -> Iterator[StoredPage]:
        """Yield every stored page, owners and dropped duplicates, oldest first."""
        with self._reading():
            for key, value in self.store.scan(*codec.PAGES):
                yield codec.decode_page(codec.decode_number(key[1:]), value)

    def text(self, number: int) -> list[str]:
        """Return the kept paragraphs of a page, stored or pending; empty if none were kept. One get."""
        if number < 0:
            return list(self._claims.texts.get(number, ()) if self._text_limit else ())
        (value,) = self.store.get_many([codec.text_key(number)])
        with self._reading():
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
        values = self.store.get_many([codec.clause_key(h) for h in hashes])
        with self._reading():
            stored = [codec.decode_postings(value) if value else () for value in values]
        for clause_hash, numbers in zip(hashes, stored, strict=True):
            holders = numbers
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
            with self._reading():
                near = self._paragraphs.near(page.fingerprint.simhashes)
            for number in near:
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

    def keep(self, page: Page, *, sealed: bool = False, feeds: frozenset[str] = frozenset()) -> StoredPage:
        """Store *page* as an owner that *feeds* have taken; what its identity held before is superseded.

        In one batch. It is unsealed, unless it is *sealed* now, or all it says was, by the same crawl and feeds.
        """
        own = self.same(page.identities)
        known = own[0] if own and own[0].says(page) else None
        reached = self._reached(page, known, feeds)
        batch = self._batch()
        stored = StoredPage.of(page, own[0].number if own else batch.number_for(page.url), feeds=reached)
        batch.deletes += [codec.request_key(o.number) for o in own[:1] if o.owner is not None]
        unsealed = None if sealed else self.journal.unsealed(stored, known)
        if unsealed is not None:
            batch.puts.append(self.journal.unsealed_pair(stored.number, unsealed))
        self._write(batch, stored, page.paragraphs, own)
        if unsealed is not None:
            self.journal.note_unsealed(stored.number, unsealed)
        return stored

    def _reached(self, page: Page, known: StoredPage | None, feeds: frozenset[str]) -> frozenset[str] | None:
        """Return the feeds that have items of *page* now, that is, *feeds* and those that count of before."""
        if known is None:
            return feeds
        # What another crawl has delivered and not sealed may still be lost.
        before = known.delivery if known.run == page.run else self.journal.certain(known)
        if before is None or (self._scope is Scope.CRAWL and before.run != page.run):
            return feeds
        return None if before.feeds is None else feeds | before.feeds

    def remember_duplicate(
        self, page: Page, match: Match, entry: Entry | None = None, *, kept: bytes | None = None, journal: bool = False
    ) -> None:
        """Store that *page* repeats ``match.owner``: no postings, so it can never own.

        *entry* is how to request it again, if it was dropped: in the *journal* until that owner is sealed, else cleared
        from there. Its request as it is to be *kept* stays for as long as the page is stored.
        """
        own = self.same(page.identities)
        batch = self._batch()
        stored = StoredPage.of(page, own[0].number if own else batch.number_for(page.url), match)
        note: Callable[[], None] = lambda: None  # noqa: E731 - the others are partials
        if entry is not None:
            key = codec.request_key(stored.number)
            if kept is None:
                batch.deletes.append(key)
            else:
                batch.puts.append((key, entry._replace(request=kept, crawl="").encode()))
            if journal:
                batch.puts.append(self.journal.entry_pair(entry))
                note = partial(self.journal.note_entry, entry, match.owner.number)
            elif entry.key in self.journal.left_over:
                batch.deletes.append(codec.journal_key(entry.key))
                note = partial(self.journal.forget, [entry.key])
        self._write(batch, stored, page.paragraphs, own)
        note()

    def take_back(self, number: int, before: Delivery | None) -> None:
        """Let an owner be what it was *before* it was delivered; ``None``: void it. One batch."""
        page = self.page(number)
        if before is None or page is None:
            self.void([number])
            return
        stored = replace(page, delivery=before)
        self.store.write([(codec.page_key(number), codec.encode_page(stored))], [codec.unsealed_key(number)])
        self.journal.note_taken_back(number)
        self._claims.touch(page.hashes.union(page.identities))

    def void(self, numbers: Iterable[int]) -> None:
        """Remove these pages, in a batch each: what they own is nobody's."""
        for number in numbers:
            batch = self._batch()
            batch.deletes.append(codec.unsealed_key(number))
            page = self.page(number)
            if page is not None:
                with self._reading():
                    batch.replace([page], number, None)
                batch.remove_identities(page.identities)
                batch.remove_page(page)
            batch.write()
            self.journal.note_taken_back(number)
            if page is not None:
                self._claims.touch(page.hashes.union(page.identities))

    # --- writing

    def _batch(self) -> Batch:
        return Batch(self.store, self._paragraphs, self._most_holders)

    def _write(self, batch: Batch, stored: StoredPage, paragraphs: tuple[str, ...], own: list[StoredPage]) -> None:
        """Write *batch*, and with it *stored* and its text in the place of what was its *own*."""
        with self._reading():
            batch.replace(own, stored.number, stored if stored.owner is None else None)
        batch.put_page(stored, codec.encode_text(paragraphs, self._text_limit) if self._text_limit else None)
        batch.remove_identities(i for known in own for i in known.identities if i not in stored.identities)
        for other in own[1:]:
            batch.remove_page(other)
        batch.write()
        owned = frozenset[bytes]().union(*(o.hashes for o in (stored, *own) if o.owner is None))
        self._claims.touch(owned.union(*(known.identities for known in (stored, *own))))


_shared: WeakKeyDictionary[Medium, tuple[OpenClaims, Journal]] = WeakKeyDictionary()


def index_of(
    store: OpenStore, *, common: int, text_limit: int, distance: int | None = None, scope: Scope = Scope.STORE
) -> Index:
    """Return an index of *store*; those of one process that share the store share their open claims and its journal."""
    claims, journal = _shared.setdefault(store.medium, (OpenClaims(), Journal()))
    return Index(store, claims, journal, common=common, text_limit=text_limit, distance=distance, scope=scope)
