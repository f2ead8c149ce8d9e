"""Opens the index of a store: a private one, whose open claims are in memory, or one that processes share."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from dedup_middleware.fingerprints import another, fingerprinter
from dedup_middleware.index import schema
from dedup_middleware.index.claims import OpenClaims
from dedup_middleware.index.index import Index, PageWrite
from dedup_middleware.index.lookup import ALL
from dedup_middleware.model import StoredPage
from dedup_middleware.stores import open_store, refusals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dedup_middleware.index.dropped_items import KeyValue
    from dedup_middleware.model import Eligibility, Page
    from dedup_middleware.stores import OpenStore
    from dedup_middleware.stores.opened import Shared


class SharedIndex(Index):
    """An `Index` whose open claims are in the store. What it reads in order to write, no other process changes."""

    # --- claims

    def claim(self, page: Page) -> StoredPage:
        """Open a claim, in the store. One batch, of what :meth:`commit` then finds there already."""
        changes = PageWrite(self, page.run)
        claimed = replace(StoredPage.of(page, self.number_of(page.url)), is_claimed=True)
        changes.replace([], claimed.number, claimed, page.suppressed, page.note)
        changes.puts.append((schema.claimed_key(claimed.number), schema.encode_claim(self.store.worker, claimed)))
        if not page.is_keyed:
            changes.puts.append((schema.text_key(claimed.number), schema.encode_text(page.paragraphs)))
        changes.write()
        self.open_claims.touch(claimed)
        return claimed

    def void_claim(self, number: int) -> None:
        """See Index; does nothing where it is released already."""
        self.atomically(self._release, number)

    def _release(self, number: int) -> None:
        changes, ended = PageWrite(self), self._ended(number)
        changes.replace(ended, number, None)
        changes.write()
        self.open_claims.touch(*ended)

    def commit(
        self,
        page: Page,
        claim: int | None = None,
        feeds: frozenset[str] | None = frozenset(),
        items: Callable[[int], list[KeyValue]] = lambda _: [],
    ) -> StoredPage | None:
        """See Index."""
        if claim is not None:
            # In one round trip: a transaction reads a key once.
            keys = [schema.claimed_key(claim), *map(schema.identity_key, page.all_identities)]
            self.store.get_many([*keys, *map(schema.claims_key, page.identities)])
        return super().commit(page, claim, feeds, items)

    def _ended(self, claim: int) -> list[StoredPage]:
        found = self._find_claim(claim)
        return [] if found is None else [found[1]]

    def claimed(self, number: int) -> StoredPage | None:
        """See Lookup; ``None`` if the worker is dead. One read."""
        found = self._find_claim(number)
        return found[1] if found is not None and self.store.is_at_work(found[0]) else None

    def _find_claim(self, number: int) -> tuple[bytes, StoredPage] | None:
        (value,) = self.store.get_many([schema.claimed_key(number)])
        if value is None:
            return None
        return schema.decode_claim(number, value)

    def join(self) -> None:
        """See Index. A batch: this process is a worker, with the crawls that it has at work."""
        crawls = " ".join(self.open_claims.crawls).encode("utf8")
        self.store.write([(schema.worker_key(self.store.worker), crawls)])

    def begin(self, run: str) -> frozenset[str]:
        """See Index. A scan of the workers, and a batch."""
        workers = [pair for pair in self.store.scan(*schema.WORKERS) if self.store.is_at_work(pair[0][1:])]
        found = super().begin(run).union(*(value.decode("utf8", "replace").split() for _, value in workers))
        self.join()
        return found

    def end(self, run: str) -> None:
        """See Index. A batch."""
        super().end(run)
        self.join()

    def sweep(self) -> None:
        """See Index. A scan of the workers, and one of the claims if one of them is dead."""
        dead = [key[1:] for key, _ in self.store.scan(*schema.WORKERS) if not self.store.is_at_work(key[1:])]
        if not dead:
            return
        for key, value in list(self.store.scan(*schema.CLAIMED)):
            number = schema.decode_number(key[1:])
            if not self.store.is_at_work(schema.decode_claim(number, value)[0]):
                self.void_claim(number)
        self.store.write([], map(schema.worker_key, dead))


_claims: WeakKeyDictionary[Shared, OpenClaims] = WeakKeyDictionary()


def index_of(store: OpenStore, fingerprint: str | None = None, *, eligibility: Eligibility = ALL) -> Index:
    """Return an index of *store*, with what DEDUP_FINGERPRINT = *fingerprint* keeps beside, if that is known.

    Those of one process that share the store share their open claims.
    """
    claims = _claims.setdefault(store.in_process, OpenClaims())
    kind = SharedIndex if store.worker else Index
    room = None if fingerprint is None else another(fingerprint)
    beside = None if room is None else room.beside(fingerprint, store, claims)
    return kind(store, claims, beside=beside, eligibility=eligibility)


@contextmanager
def index_for_command(uri: str, command: str, *, fingerprint: str | None = None) -> Iterator[tuple[OpenStore, Index]]:
    """Open the store at *uri* for as long as the block runs; :class:`StoreError` if it is absent, or in use.

    To change its pages, with all that leads to them, *fingerprint* must be the one that it was made with, else
    `StoreVersionError`.
    """
    scheme = None if fingerprint is None else fingerprinter(fingerprint).scheme
    store = open_store(uri, fingerprint_scheme=None, who=f"scrapy dedup {command}")
    try:
        store.header.check_scheme(scheme, uri)
        with refusals.translated(store.uri, "read", refusals.of_value):
            yield store, index_of(store, fingerprint)
    finally:
        store.close()
