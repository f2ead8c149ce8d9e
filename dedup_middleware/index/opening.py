"""Opens the index of a store: a private one, whose open claims are in memory, or one that processes share."""

from __future__ import annotations

from collections import defaultdict, deque
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from dedup_middleware.fingerprints import fingerprinter, published_method
from dedup_middleware.index import schema
from dedup_middleware.index.index import Changes, Index
from dedup_middleware.index.lookup import ALL
from dedup_middleware.model import TEXT_LIMIT, StoredPage
from dedup_middleware.stores import open_store
from dedup_middleware.stores.files import Holder

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from dedup_middleware.fingerprints.method import Method
    from dedup_middleware.model import Eligibility, PackedSignature, Page
    from dedup_middleware.stores import OpenStore
    from dedup_middleware.stores.opened import Shared

# Changes of which is remembered what they touched: as many as come between a download and its callback, and more.
_REMEMBERED_CHANGES = 64


class OpenClaims:
    """The pages whose claims are open, in memory, under negative numbers.

    Crawlers of one process that share a store share these too, so that they see one another's claims.
    """

    def __init__(self) -> None:
        self.pages: dict[int, StoredPage] = {}
        self.signatures: dict[int, PackedSignature] = {}
        self.texts: dict[int, Sequence[str]] = {}
        self._keys: dict[int, set[bytes]] = {}
        self.holders: defaultdict[bytes, tuple[int, ...]] = defaultdict(tuple)
        """The claims by identity, clause hash, `schema.whole_text_key` and key of a published method. These have 16, 6,
        9 and 8 bytes."""
        self.version = 0
        self._recent: deque[tuple[Collection[bytes], ...]] = deque(maxlen=_REMEMBERED_CHANGES)
        self._last = 0
        self._changes_of_others = 0

    def add(self, page: Page) -> StoredPage:
        """Add *page* and return it under its pending number. O(clauses)."""
        self._last += 1
        number = -schema.page_number(self._last, page.url)
        pending = self.pages[number] = StoredPage.of(page, number)
        self.texts[number] = page.paragraphs
        keys = {*pending.hashes, *pending.identities} - page.suppressed
        if (whole := schema.whole_text_key(pending.exact_digest, pending.features)) is not None:
            keys.add(whole)
        if (signature := page.fingerprint.signature) is not None:
            self.signatures[number] = signature
            keys |= signature.keys
        for key in keys:
            self.holders[key] += (number,)
        self._keys[number] = keys
        self.touch(pending.hashes, pending.identities)
        return pending

    def remove(self, number: int) -> None:
        """Forget the page *number*. O(clauses)."""
        pending = self.pages.pop(number)
        for key in self._keys.pop(number):
            holders = self.holders.pop(key)
            if holders != (number,):
                self.holders[key] = tuple([n for n in holders if n != number])
        del self.texts[number]
        self.signatures.pop(number, None)
        self.touch(pending.hashes, pending.identities)

    def touch(self, *touched: Collection[bytes]) -> None:
        """Note that what is known of these clauses and identities has changed. They are kept, not copied."""
        self.version += 1
        self._recent.append(touched)

    def notice_others(self, changes: int) -> None:
        """Note how much other processes have changed by now: if that has changed, so may anything have."""
        if changes != self._changes_of_others:
            self._changes_of_others = changes
            self.touch_all()

    def touch_all(self) -> None:
        """Note that what is known of anything may have changed, though nothing is written."""
        self.version += _REMEMBERED_CHANGES + 1

    def changed_since(self, version: int, page: Page) -> bool:
        """Return whether anything that concerns *page* has changed since *version*. O(changes since * clauses)."""
        changes = self.version - version
        if not changes:
            return False
        # By a published method any page may be alike to it.
        if changes > len(self._recent) or page.fingerprint.signature is not None:
            return True
        its_keys = page.fingerprint.weights.keys() | page.identities
        recent = islice(reversed(self._recent), changes)
        return any(not its_keys.isdisjoint(keys) for touched in recent for keys in touched)


class SharedIndex(Index):
    """An `Index` whose open claims are in the store. What it reads in order to write, no other process changes."""

    # --- claims

    def claim(self, page: Page) -> StoredPage:
        """Open a claim, in the store. One batch, of what :meth:`commit` then finds there already."""
        return self.atomically(partial(self._claim, page))

    def _claim(self, page: Page) -> StoredPage:
        changes = Changes(self, page.run)
        claimed = replace(StoredPage.of(page, self.new_number(page.url)), is_claimed=True)
        with self._reading:
            changes.replace([], claimed.number, claimed, page.suppressed, page.fingerprint.signature)
            changes.put_claim(claimed, self.store.worker, schema.encode_text(page.paragraphs, TEXT_LIMIT))
        changes.write()
        self.touch([claimed])
        return claimed

    def void_claim(self, number: int) -> None:
        """See Index; does nothing where it is released already."""
        self.atomically(partial(self._release, number))

    def _release(self, number: int) -> None:
        changes, ended = Changes(self), self._ended(number)
        with self._reading:
            changes.replace(ended, number, None)
        changes.write()
        self.touch(ended)

    def _commit(
        self, page: Page, claim: int | None, feeds: frozenset[str] | None, *, durable: bool
    ) -> StoredPage | None:
        if claim is not None:
            # In one round trip: a transaction reads a key once.
            keys = [schema.claimed_key(claim), *map(schema.identity_key, page.identities)]
            self.store.get_many([*keys, *map(schema.claims_key, page.identities)])
        return super()._commit(page, claim, feeds, durable=durable)

    def _ended(self, claim: int) -> list[StoredPage]:
        found = self._find_claim(claim)
        return [] if found is None else [found[1]]

    def claimed(self, number: int) -> StoredPage | None:
        """See Lookup; of a worker that is at work. One read."""
        found = self._find_claim(number)
        if found is None:
            return None
        if self.store.is_at_work(found[0]):
            return found[1]
        # It does not count by now, though nothing was written.
        self._claims.touch_all()
        return None

    def _find_claim(self, number: int) -> tuple[bytes, StoredPage] | None:
        (value,) = self.store.get_many([schema.claimed_key(number)])
        if value is None:
            return None
        with self._reading:
            return schema.decode_claim(number, value)

    def void_dead_claims(self) -> None:
        """See Index. One scan of the open claims."""
        for key, value in list(self.store.scan(*schema.CLAIMED)):
            number = schema.decode_number(key[1:])
            if not self.store.is_at_work(schema.decode_claim(number, value)[0]):
                self.void_claim(number)


_claims: WeakKeyDictionary[Shared, OpenClaims] = WeakKeyDictionary()


def index_of(store: OpenStore, *, method: Method | None = None, eligibility: Eligibility = ALL) -> Index:
    """Return an index of *store*; those of one process that share the store share their open claims."""
    claims = _claims.setdefault(store.in_process, OpenClaims())
    kind = SharedIndex if store.worker else Index
    return kind(store, claims, method=method, eligibility=eligibility)


@contextmanager
def index_for_command(uri: str, command: str, *, fingerprint: str | None = None) -> Iterator[tuple[OpenStore, Index]]:
    """Open the store at *uri* for as long as the block runs; :class:`StoreError` if it is absent, or in use.

    To change its pages, with all that leads to them, *fingerprint* must be the one that it was made with, else
    `StoreVersionError`.
    """
    holder = Holder.this_process(f"scrapy dedup {command}", brief=True)
    scheme = None if fingerprint is None else fingerprinter(fingerprint).scheme
    method = None if fingerprint is None else published_method(fingerprint)
    store = open_store(uri, fingerprint_scheme=None, holder=holder)
    try:
        store.header.check_scheme(scheme, uri)
        yield store, index_of(store, method=method)
    finally:
        store.close()
