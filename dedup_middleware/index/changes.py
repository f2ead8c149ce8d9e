"""What one page changes in a store, as one atomic batch.

It reads what it must and collects what is to be written; it decides nothing and keeps nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dedup_middleware.index import schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dedup_middleware.features import Made
    from dedup_middleware.index.prints import PrintIndex
    from dedup_middleware.model import StoredPage
    from dedup_middleware.stores import OpenStore


class Changes:
    """Puts and deletes for one page; :meth:`write` makes them all at once, or none."""

    def __init__(
        self,
        store: OpenStore,
        max_holders: int,
        counts: Callable[[int], bool] | None = None,
        prints: PrintIndex | None = None,
    ) -> None:
        """Collect for *store*, where no posting list grows beyond *max_holders*.

        In a full one, those of which *counts* returns that they may drop nothing any more make room.
        """
        self.puts: list[tuple[bytes, bytes]] = []
        self.deletes: list[bytes] = []
        self._store = store
        self._max_holders = max_holders
        self._counts = counts
        self._prints = prints
        self._before: dict[int, StoredPage] = {}

    def write(self) -> None:
        """Apply what was collected, if anything was; :class:`StoreError` if the medium fails."""
        if self.puts or self.deletes:
            self._store.write(self.puts, self.deletes)

    def put_or_delete(self, key: bytes, value: bytes | None) -> None:
        """Let *key* have this *value*, or none."""
        if value is None:
            self.deletes.append(key)
        else:
            self.puts.append((key, value))

    def replace(
        self,
        pages: Iterable[StoredPage],
        number: int,
        new: StoredPage | None,
        borrowed: frozenset[bytes] = frozenset(),
        made: Made | None = None,
    ) -> None:
        """Let *new*, under *number*, own its text, but for the *borrowed*, instead of *pages*; ``None``: no page does.

        *made* is what a published method has made of it, where one decides.
        """
        pages = list(pages)
        for page in pages:
            if page.is_claimed:
                self._end_claim(page)
        self._before = {page.number: page for page in pages if not page.is_claimed}
        before = [page for page in pages if page.owner is None]
        mine = frozenset(owner.number for owner in before) | {number}
        held, now = schema.listed(before), schema.listed([] if new is None else [new])
        # What its own claim holds, under the number that the page has now, stays as it is, and need not be read.
        standing = (held & now) - schema.listed(p for p in before if p.number != number or not p.is_claimed)
        self._change_postings(number, mine, held - standing, now - standing, borrowed)
        if self._prints is not None:
            puts, deletes = self._prints.changes(mine, number, None if new is None else made)
            self.puts += puts
            self.deletes += deletes

    def _change_postings(
        self,
        number: int,
        mine: frozenset[int],
        before: frozenset[bytes],
        now: frozenset[bytes],
        borrowed: frozenset[bytes],
    ) -> None:
        alone = schema.encode_number(number)
        others = frozenset(schema.clause_keys(borrowed))
        keys = list(before | now)
        for key, value in zip(keys, self._store.get_many(keys), strict=True):
            if value is None:
                if key in now:
                    self.puts.append((key, alone))
                continue
            holders = frozenset(schema.decode_postings(value))
            kept = holders - mine
            # What it had before it goes on holding as it did: as one of the holders, or not.
            holds = key in now and (bool(holders & mine) or not kept if key in before else key not in others)
            if holds and len(kept) >= self._max_holders and self._counts is not None:
                kept = frozenset(filter(self._counts, kept))
            if holds and len(kept) < self._max_holders:
                kept |= {number}
            if kept != holders:
                self.put_or_delete(key, schema.encode_postings(sorted(kept)) if kept else None)

    def put_page(self, page: StoredPage, text: bytes | None, item_text: bytes | None = None, body: bytes = b"") -> None:
        """Store *page* under its number and its identities, and, packed, its *text* and that of its items.

        *body* is the digest of the bytes that it was read from, if these are to tell that it is the same.
        """
        before = self._before.get(page.number)
        if before is not None and before.owner is not None and before.owner != page.owner:
            self.deletes.append(schema.repeat_key(before.owner, page.number))
        if page.owner is not None:
            self.puts.append((schema.repeat_key(page.owner, page.number), b""))
        self.puts.append((schema.page_key(page.number), schema.encode_page(page)))
        self.puts += [(schema.identity_key(i), schema.encode_identity(page.number, body)) for i in page.identities]
        if text is not None:
            self.puts.append((schema.text_key(page.number), text))
        if item_text is not None:
            self.puts.append((schema.item_text_key(page.number), item_text))

    def remove_page(self, page: StoredPage) -> None:
        """Remove *page* itself and its texts."""
        if page.owner is not None:
            self.deletes.append(schema.repeat_key(page.owner, page.number))
        keys = (schema.page_key, schema.text_key, schema.item_text_key)
        self.deletes += [key(page.number) for key in keys]

    # --- claims, where processes share the store

    def put_claim(self, page: StoredPage, worker: bytes, text: bytes | None) -> None:
        """Store *page*, with its packed *text*, as one whose claim *worker* has open.

        The claim ends when :meth:`replace` takes it as one of its pages.
        """
        self.puts.append((schema.claimed_key(page.number), schema.encode_claim(worker, page)))
        if text is not None:
            self.puts.append((schema.text_key(page.number), text))
        self._change_claims(page, lambda numbers: numbers | {page.number})

    def _end_claim(self, page: StoredPage) -> None:
        self.deletes += [schema.claimed_key(page.number), schema.text_key(page.number)]
        self._change_claims(page, lambda numbers: numbers - {page.number})

    def _change_claims(self, page: StoredPage, change: Callable[[frozenset[int]], frozenset[int]]) -> None:
        """Let the open claims of the identities of *page* be what *change* makes of their numbers."""
        keys = [schema.claims_key(identity) for identity in page.identities]
        for key, value in zip(keys, self._store.get_many(keys), strict=True):
            numbers = change(frozenset(schema.decode_postings(value or b"")))
            self.put_or_delete(key, schema.encode_postings(sorted(numbers)) if numbers else None)
