"""What one page changes in a store, as one atomic batch.

Law of this file: it reads what it must and collects what is to be written; it decides nothing and keeps nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dedup_middleware import codec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dedup_middleware.model import StoredPage
    from dedup_middleware.paragraphs import ParagraphIndex
    from dedup_middleware.protocols import Store


class Batch:
    """Puts and deletes for one page; :meth:`write` makes them all at once, or none."""

    def __init__(self, store: Store, paragraphs: ParagraphIndex | None, most_holders: int) -> None:
        """Collect for *store*; no posting list grows beyond *most_holders*."""
        self.puts: list[tuple[bytes, bytes]] = []
        self.deletes: list[bytes] = []
        self._store = store
        self._paragraphs = paragraphs
        self._most_holders = most_holders

    def write(self, *, sync: bool = False) -> None:
        """Apply what was collected; :class:`StoreError` if the medium fails."""
        self._store.write(self.puts, self.deletes, sync=sync)

    def number_for(self, url: str) -> int:
        """Take the next number for a page first seen at *url*."""
        (value,) = self._store.get_many([codec.NEXT_PLACE_KEY])
        place = 1 if value is None else codec.decode_number(value)
        self.puts.append((codec.NEXT_PLACE_KEY, codec.encode_number(place + 1)))
        return codec.page_number(place, url)

    def replace(self, owners: Iterable[StoredPage], number: int, new: StoredPage | None) -> None:
        """Let *new*, under *number*, hold its clauses and paragraphs instead of *owners*; ``None``: let nobody."""
        before = [owner for owner in owners if owner.owner is None]
        mine = frozenset(owner.number for owner in before) | {number}
        held = frozenset[bytes]().union(*(owner.hashes for owner in before))
        self._postings(number, mine, held, frozenset() if new is None else new.hashes)
        if self._paragraphs is not None:
            bits_before = {(bits, owner.number) for owner in before for bits in owner.simhashes}
            bits_now = set() if new is None else {(bits, number) for bits in new.simhashes}
            puts, deletes = self._paragraphs.changes(bits_before, bits_now)
            self.puts += puts
            self.deletes += deletes

    def put_page(self, page: StoredPage, text: bytes | None) -> None:
        """Store *page* under its number and its identities, with its packed *text* if that is kept."""
        self.puts.append((codec.page_key(page.number), codec.encode_page(page)))
        self.puts += [(codec.identity_key(i), codec.encode_number(page.number)) for i in page.identities]
        if text is not None:
            self.puts.append((codec.text_key(page.number), text))

    def remove_page(self, page: StoredPage) -> None:
        """Remove *page* itself and its text, and that it is unsealed."""
        keys = (codec.page_key, codec.text_key, codec.unsealed_key, codec.request_key)
        self.deletes += [key(page.number) for key in keys]

    def remove_identities(self, identities: Iterable[bytes]) -> None:
        """Let these *identities* lead nowhere."""
        self.deletes += map(codec.identity_key, identities)

    def _postings(self, number: int, mine: frozenset[int], before: frozenset[bytes], now: frozenset[bytes]) -> None:
        alone = codec.encode_postings((number,))
        hashes = list(before | now)
        keys = [codec.clause_key(h) for h in hashes]
        for clause_hash, key, value in zip(hashes, keys, self._store.get_many(keys), strict=True):
            if value is None:
                if clause_hash in now:
                    self.puts.append((key, alone))
                continue
            holders = frozenset(codec.decode_postings(value))
            kept = holders - mine
            if clause_hash in now and len(kept) < self._most_holders:
                kept |= {number}
            if kept == holders:
                continue
            if kept:
                self.puts.append((key, codec.encode_postings(tuple(sorted(kept)))))
            else:
                self.deletes.append(key)
