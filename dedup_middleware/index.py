"""Which stored pages hold a clause, and how much of a new page one of them covers.

Law of this file: the only home of scores and of posting lists. It knows the keys of a fingerprint, not why pages are
compared. Pages whose claim is open live in memory only, under negative numbers; confirming one writes it in one atomic
batch. A crash therefore leaves nothing provisional behind.
"""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from dedup_middleware import codec
from dedup_middleware.batch import Batch
from dedup_middleware.journal import Entry, Journal
from dedup_middleware.model import Match, StoredPage
from dedup_middleware.openclaims import OpenClaims
from dedup_middleware.paragraphs import ParagraphIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

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

    def __init__(  # noqa: PLR0913 - what an index is made of, by name
        self,
        store: Store,
        claims: OpenClaims,
        journal: Journal,
        *,
        common: int,
        text_limit: int,
        distance: int | None = None,
    ) -> None:
        self.store = store
        self.journal = journal
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

    def keep(self, page: Page, *, sealed: bool = False) -> StoredPage:
        """Store *page* as an owner; what its identity held before is superseded in the same batch.

        It is unsealed, unless it is *sealed* now, or was before with the same text.
        """
        return self._write(page, sealed=sealed)

    def remember_duplicate(self, page: Page, match: Match, entry: Entry | None = None) -> StoredPage:
        """Store that *page* was dropped in favour of ``match.owner``: no postings, so it can never own.

        With *entry*, journal it where that owner is unsealed, and clear what the journal held of it where it is not.
        """
        return self._write(page, match, entry)

    def seal(self, numbers: Collection[int], visited: Collection[bytes] = ()) -> None:
        """Note that what these owners, and these pages that an unclean end left, have given is safe. Synced."""
        if deletes := self.journal.seal(numbers, visited):
            self.store.write([], deletes, sync=True)
            self.journal.sealed(numbers, visited)

    def void(self, numbers: Iterable[int]) -> None:
        """Remove these pages, in a batch each: what they own is nobody's."""
        for number in numbers:
            batch = self._batch()
            batch.deletes.append(codec.unsealed_key(number))
            page = self.page(number)
            if page is not None:
                batch.replace([page], number, None)
                batch.remove_identities(page.identities)
                batch.remove_page(page)
            batch.write()
            self.journal.void(number)
            if page is not None:
                self._claims.touch(page.hashes.union(page.identities))

    def dropped_request(self, number: int) -> Entry | None:
        """Return the request of a page that was dropped; ``None`` if it is not kept. One get."""
        (value,) = self.store.get_many([codec.request_key(number)])
        return None if value is None else Entry(*codec.decode_entry(value))

    def request_again(self, entries: Iterable[Entry]) -> None:
        """Let the next crawl of their spiders request these pages, as after an unclean end. One synced batch."""
        self.store.write(map(self.journal.drop, entries), sync=True)

    def recover(self) -> None:
        """Void the owners that an unclean end left unsealed; what was dropped for them is then in the journal's `left`.

        The first crawl of a process to open a store does; 0.5 ms an owner.
        """
        self.void(self.journal.recover(self.store))

    # --- writing

    def _batch(self) -> Batch:
        return Batch(self.store, self._paragraphs, self._most_holders)

    def _write(
        self, page: Page, match: Match | None = None, entry: Entry | None = None, *, sealed: bool = False
    ) -> StoredPage:
        own = self.same(page.identities)
        batch = self._batch()
        number = own[0].number if own else batch.number_for(page.url)
        stored = StoredPage.of(page, number, match)
        batch.replace(own, number, stored if match is None else None)
        batch.put_page(stored, codec.encode_text(page.paragraphs, self._text_limit) if self._text_limit else None)
        batch.remove_identities(i for known in own for i in known.identities if i not in stored.identities)
        for other in own[1:]:
            batch.remove_page(other)
        note: Callable[[], None] = lambda: None  # noqa: E731 - the others are partials
        if match is not None:
            note = self._note_drop(number, match, entry, batch)
        elif own and own[0].owner is not None:
            batch.deletes.append(codec.request_key(number))
        if match is None and not (sealed or _is_unchanged(stored, own)):
            note = partial(self.journal.confirmed, number)
            batch.puts.append(self.journal.confirm(number))
        batch.write()
        note()
        owned = frozenset[bytes]().union(*(o.hashes for o in (stored, *own) if o.owner is None))
        self._claims.touch(owned.union(*(known.identities for known in (stored, *own))))
        return stored

    def _note_drop(self, number: int, match: Match, entry: Entry | None, batch: Batch) -> Callable[[], None]:
        """Add to *batch* what the journal says of a dropped page; return what to call once that is written."""
        if entry is None:
            return lambda: None
        batch.puts.append((codec.request_key(number), codec.encode_entry(*entry)))
        if match.owner.number in self.journal.owners:
            batch.puts.append(self.journal.drop(entry))
            return partial(self.journal.dropped, entry.identity, match.owner.number)
        if self.journal.has(entry.identity):
            batch.deletes.append(codec.journal_key(entry.identity))
        return partial(self.journal.forget, entry.identity)


def _is_unchanged(page: StoredPage, own: list[StoredPage]) -> bool:
    """Tell whether *page* was an owner with this text already: then it is as safe as it was."""
    return bool(own) and own[0].owner is None and own[0].digest == page.digest


_shared: WeakKeyDictionary[Medium, tuple[OpenClaims, Journal]] = WeakKeyDictionary()


def index_of(store: OpenStore, *, common: int, text_limit: int, distance: int | None = None) -> Index:
    """Return an index of *store*; those of one process that share the store share their open claims and its journal."""
    claims, journal = _shared.setdefault(store.medium, (OpenClaims(), Journal()))
    return Index(store, claims, journal, common=common, text_limit=text_limit, distance=distance)
