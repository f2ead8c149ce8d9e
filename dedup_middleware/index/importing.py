"""The lines of `exchange` -> an empty store, which is then the one that they were made of: same key, same verdicts."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from dedup_middleware.fingerprints import fingerprinter, published_method
from dedup_middleware.index import codec
from dedup_middleware.index.batch import Batch, listed
from dedup_middleware.index.open_claims import OpenClaims
from dedup_middleware.index.opening import index_for_command
from dedup_middleware.index.paragraphs import ParagraphIndex
from dedup_middleware.index.prints import PrintIndex
from dedup_middleware.stores import open_store, schema, store_exists
from dedup_middleware.stores.holder import Holder
from dedup_middleware.stores.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dedup_middleware.index.exchange import Exported
    from dedup_middleware.index.spool import Spool
    from dedup_middleware.stores.protocol import Store

_COMMAND = "scrapy dedup import"


def is_empty(uri: str) -> bool:
    """Tell whether the store at *uri* has no page, or is not there. :class:`StoreError` where it cannot be opened."""
    if not store_exists(uri):
        return True
    with index_for_command(uri, "import", common=1, text_limit=0) as (store, _):
        return next(iter(store.scan(b"\x01", b"\xff" * 64)), None) is None


def fill(uri: str, spool: Spool, *, common: int, fingerprint: str, distance: int) -> dict[str, int]:
    """Let the empty store at *uri*, which is made if it is not there, be the one that the pages in *spool* are of.

    *common*, *fingerprint* and *distance* as for `index_for_upkeep`. Returns how many owners and duplicates it has.
    """
    (origin,) = spool.origins
    method, published = fingerprinter(fingerprint), published_method(fingerprint)
    holder = Holder.this_process(_COMMAND, brief=True)
    store = open_store(uri, fingerprint_scheme=method.scheme, holder=holder)
    try:
        schema.adopt(store, origin.header)
        owners = {entry.number for entry in spool.entries}
        entries = []
        for entry in sorted(spool.entries, key=lambda entry: entry.number):
            if entry.owner is None or entry.owner in owners:
                entries.append(entry)
            else:
                spool.refuse(f"page {entry.number}", "the page that it repeats is not in the file")
        places = [codec.place_of(entry.number) + 1 for entry in entries]
        importer = Importer(
            store,
            max([origin.place, *places]),
            origin.learned,
            max_holders=common + 2,
            paragraphs=ParagraphIndex(store, MemoryStore(), distance) if method.has_bits else None,
            prints=None if published is None else PrintIndex(store, OpenClaims(), published),
        )
        for _, exported in spool.pages(entries):
            importer.put(exported)
        importer.finish(spool.pairs)
    finally:
        store.close()
    duplicates = sum(entry.is_duplicate for entry in entries)
    return {"owners": len(entries) - duplicates, "duplicates": duplicates}


class Importer:
    """Writes pages into *store*, which has nothing but its header, under the numbers that they had.

    New pages will queue up behind *place*; *learned* is what a published method has learned. No posting list grows
    beyond *max_holders*.
    """

    def __init__(  # noqa: PLR0913 - what a store is filled with, by name
        self,
        store: Store,
        place: int,
        learned: bytes,
        *,
        max_holders: int,
        paragraphs: ParagraphIndex | None,
        prints: PrintIndex | None,
    ) -> None:
        self._store = store
        self._max_holders = max_holders
        self._paragraphs = paragraphs
        self._prints = prints
        # First: where an import is interrupted, no later page may take the number of one that is there.
        store.write([(codec.NEXT_PLACE_KEY, codec.encode_line(codec.Line(place)))])
        if prints is not None and learned:
            prints.remember(learned)

    def put(self, exported: Exported) -> None:
        """Write a page and what leads to it: one batch, 1 ms."""
        page = exported.page
        batch = Batch(self._store, None, 0)
        batch.put_page(page, _packed(exported.text), _packed(exported.said), exported.body_digest)
        batch.puts += [(codec.suspect_key(template, page.number), b"") for template in exported.suspect_of]
        named = codec.encode_number(page.number)
        batch.puts += [(codec.canonical_key(identity), named) for identity in exported.names]
        if page.owner is None:
            batch.puts += self._postings(exported)
            if self._paragraphs is not None:
                puts, _ = self._paragraphs.changes(set(), {(bits, page.number) for bits in page.simhashes})
                batch.puts += puts
            if self._prints is not None and exported.made:
                puts, _ = self._prints.changes((), page.number, self._prints.remade(exported.made))
                batch.puts += puts
        batch.write()

    def _postings(self, exported: Exported) -> list[tuple[bytes, bytes]]:
        keys = sorted(listed([exported.page]) - exported.unlisted)
        puts = []
        for key, value in zip(keys, self._store.get_many(keys), strict=True):
            holders = codec.decode_postings(value or b"")
            if len(holders) < self._max_holders:
                puts.append((key, codec.encode_postings(tuple(sorted({*holders, exported.page.number})))))
        return puts

    def finish(self, pairs: Iterable[tuple[bytes, bytes]]) -> None:
        """Write these *pairs* too; all of it is on the medium then."""
        self._store.write([*pairs], sync=True)


def _packed(text: tuple[str, ...] | None) -> bytes | None:
    return None if text is None else codec.encode_text(text, sys.maxsize)
