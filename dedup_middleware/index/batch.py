"""What one page changes in a store, as one atomic batch.

It reads what it must and collects what is to be written; it decides nothing and keeps nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dedup_middleware.index import codec, page_codec, shared_codec
from dedup_middleware.index.whole_texts import equals_key

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from dedup_middleware.features import Made
    from dedup_middleware.index.paragraphs import ParagraphIndex
    from dedup_middleware.index.prints import PrintIndex
    from dedup_middleware.index.shared_line import SharedLine
    from dedup_middleware.model import StoredPage
    from dedup_middleware.stores.protocol import Store


class Batch:
    """Puts and deletes for one page; :meth:`write` makes them all at once, or none."""

    def __init__(  # noqa: PLR0913 - what an index works with
        self,
        store: Store,
        paragraphs: ParagraphIndex | None,
        max_holders: int,
        counts: Callable[[int], bool] | None = None,
        *,
        prints: PrintIndex | None = None,
        shared_line: SharedLine | None = None,
    ) -> None:
        """Collect for *store*, whose line may be a *shared_line*; no posting list grows beyond *max_holders*.

        In a full one, those of which *counts* says that they may drop nothing any more make room.
        """
        self.puts: list[tuple[bytes, bytes]] = []
        self.deletes: list[bytes] = []
        self._store = store
        self._paragraphs = paragraphs
        self._prints = prints
        self._max_holders = max_holders
        self._counts = counts
        self._before: dict[int, StoredPage] = {}
        self._shared_line = shared_line
        self._line: codec.Line | None = None
        self.is_of_new_page = False
        """Whether a number was taken: nothing is stored under it."""
        # By how much the numbers of owners and of duplicates grow.
        self._growth = [0, 0]

    def write(self, *, sync: bool = False) -> None:
        """Apply what was collected; :class:`StoreError` if the medium fails."""
        owners, duplicates = self._growth
        if self._shared_line is not None:
            self._shared_line.count(owners, duplicates)
        elif self._line is not None or any(self._growth):
            line = self._line or self._read_line()
            line = line._replace(owners=line.owners + owners, duplicates=line.duplicates + duplicates)
            self.puts.append((codec.NEXT_PLACE_KEY, codec.encode_line(line)))
        self._store.write(self.puts, self.deletes, sync=sync)

    def write_if_any(self) -> None:
        """Apply what was collected, if anything was."""
        if self.puts or self.deletes:
            self.write()

    def put_or_delete(self, key: bytes, value: bytes | None) -> None:
        """Let *key* have this *value*, or none."""
        if value is None:
            self.deletes.append(key)
        else:
            self.puts.append((key, value))

    def number_for(self, url: str) -> int:
        """Take the next number for a page first seen at *url*."""
        self.is_of_new_page = True
        if self._shared_line is not None:
            return codec.page_number(self._shared_line.next_place(), url)
        line = self._read_line()
        self._line = line._replace(place=line.place + 1)
        return codec.page_number(line.place, url)

    def _read_line(self) -> codec.Line:
        (value,) = self._store.get_many([codec.NEXT_PLACE_KEY])
        return codec.decode_line(value)

    def replace(
        self,
        pages: Iterable[StoredPage],
        number: int,
        new: StoredPage | None,
        borrowed: frozenset[bytes] = frozenset(),
        made: Made | None = None,
    ) -> None:
        """Let *new*, under *number*, hold its text, but for the *borrowed*, instead of *pages*; ``None``: nobody.

        *made* is what a published method has made of it, where one decides.
        """
        pages = list(pages)
        for page in pages:
            if page.is_claimed:
                self._end_claim(page)
        self._before = {page.number: page for page in pages if not page.is_claimed}
        before = [page for page in pages if page.owner is None]
        mine = frozenset(owner.number for owner in before) | {number}
        held, now = listed(before), listed([] if new is None else [new])
        # What its own claim holds, under the number that the page has now, stays as it is, and need not be read.
        standing = (held & now) - listed([page for page in before if page.number != number or not page.is_claimed])
        self._postings(number, mine, held - standing, now - standing, borrowed)
        if self._paragraphs is not None:
            bits_before = {(bits, owner.number) for owner in before for bits in owner.simhashes}
            bits_now = set() if new is None else {(bits, number) for bits in new.simhashes}
            puts, deletes = self._paragraphs.changes(bits_before, bits_now)
            self.puts += puts
            self.deletes += deletes
        if self._prints is not None:
            puts, deletes = self._prints.changes(mine, number, None if new is None else made)
            self.puts += puts
            self.deletes += deletes

    def put_claim(self, page: StoredPage, worker: bytes, text: bytes | None) -> None:
        """Store *page*, with its packed *text*, as one whose claim *worker* holds, in a store that workers share.

        The claim ends when :meth:`replace` takes it as one of its pages.
        """
        self.puts.append((shared_codec.claimed_key(page.number), worker + page_codec.encode_page(page)))
        if text is not None:
            self.puts.append((codec.text_key(page.number), text))
        self._change_claims(page, lambda numbers: numbers | {page.number})

    def _end_claim(self, page: StoredPage) -> None:
        self.deletes += [shared_codec.claimed_key(page.number), codec.text_key(page.number)]
        self._change_claims(page, lambda numbers: numbers - {page.number})

    def _change_claims(self, page: StoredPage, change: Callable[[frozenset[int]], frozenset[int]]) -> None:
        """Let the open claims of the identities of *page* be what *change* makes of their numbers."""
        keys = [shared_codec.claims_key(identity) for identity in page.identities]
        for key, value in zip(keys, self._store.get_many(keys), strict=True):
            numbers = change(frozenset(codec.decode_postings(value or b"")))
            self.put_or_delete(key, codec.encode_postings(tuple(sorted(numbers))) if numbers else None)

    def put_again(self, page: StoredPage, known: StoredPage, body: bytes) -> None:
        """Store *page* in the place of the *known* one, whose text it has; *body* as for :meth:`put_page`."""
        self._before = {known.number: known}
        self.put_page(page, None, body=body)

    def put_page(self, page: StoredPage, text: bytes | None, said: bytes | None = None, body: bytes = b"") -> None:
        """Store *page* under its number and its identities, and, packed, its *text* and what its items *said*.

        *body* is the digest of the bytes that it was read from, if these are to tell that it is the same.
        """
        before = self._before.get(page.number)
        if before is not None:
            self._count(before, -1)
            if before.owner is not None and before.owner != page.owner:
                self.deletes.append(codec.repeat_key(before.owner, page.number))
        self._count(page, 1)
        if page.owner is not None:
            self.puts.append((codec.repeat_key(page.owner, page.number), b""))
        self.puts.append((codec.page_key(page.number), page_codec.encode_page(page)))
        self.puts += [(codec.identity_key(i), codec.encode_identity(page.number, body)) for i in page.identities]
        if text is not None:
            self.puts.append((codec.text_key(page.number), text))
        if said is not None:
            self.puts.append((codec.item_text_key(page.number), said))

    def remove_page(self, page: StoredPage) -> None:
        """Remove *page* itself and its texts."""
        self._count(page, -1)
        if page.owner is not None:
            self.deletes.append(codec.repeat_key(page.owner, page.number))
        keys = (codec.page_key, codec.text_key, codec.item_text_key)
        self.deletes += [key(page.number) for key in keys]

    def _count(self, page: StoredPage, change: int) -> None:
        self._growth[page.owner is not None] += change

    def remove_identities(self, identities: Iterable[bytes]) -> None:
        """Let these *identities* lead nowhere."""
        self.deletes += map(codec.identity_key, identities)

    def _postings(
        self,
        number: int,
        mine: frozenset[int],
        before: frozenset[bytes],
        now: frozenset[bytes],
        borrowed: frozenset[bytes],
    ) -> None:
        alone = codec.encode_postings((number,))
        others = frozenset(codec.clause_keys(borrowed))
        keys = list(before | now)
        pairs = [*zip(keys, self._store.get_many(keys), strict=True)]
        self.puts += [(key, alone) for key, value in pairs if value is None and key in now]
        for key, value in pairs:
            if value is None:
                continue
            holders = frozenset(codec.decode_postings(value))
            kept = holders - mine
            # What it said before it goes on holding as it did: as one of the holders, or not.
            holds = key in now and (bool(holders & mine) or not kept if key in before else key not in others)
            if holds and len(kept) >= self._max_holders and self._counts is not None:
                kept = frozenset(filter(self._counts, kept))
            if holds and len(kept) < self._max_holders:
                kept |= {number}
            if kept == holders:
                continue
            if kept:
                self.puts.append((key, codec.encode_postings(tuple(sorted(kept)))))
            else:
                self.deletes.append(key)


def listed(pages: Collection[StoredPage]) -> frozenset[bytes]:
    """Return the keys of the posting lists that lead to *pages*."""
    keys: set[bytes] = set()
    for page in pages:
        keys.update(codec.clause_keys(page.hashes))
        if (key := equals_key(page.exact_digest, page.features)) is not None:
            keys.add(key)
    return frozenset(keys)
