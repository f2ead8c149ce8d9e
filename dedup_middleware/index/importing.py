"""The lines of `exchange` -> an empty store, which is then the one that they were made of: same key, same verdicts."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from dedup_middleware.fingerprints import fingerprinter, published_method
from dedup_middleware.index import codec
from dedup_middleware.index.batch import Batch, listed
from dedup_middleware.index.open_claims import OpenClaims
from dedup_middleware.index.opening import index_for_command
from dedup_middleware.index.paragraphs import ParagraphIndex
from dedup_middleware.index.posting_spool import PostingSpool
from dedup_middleware.index.prints import PrintIndex
from dedup_middleware.stores import open_store, schema, store_exists
from dedup_middleware.stores.holder import Holder
from dedup_middleware.stores.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Iterable

    from typing_extensions import Self

    from dedup_middleware.index.exchange import Exported
    from dedup_middleware.index.spool import Spool
    from dedup_middleware.stores import OpenStore

_COMMAND = "scrapy dedup import"
# Of a news page: its clauses, and its text as a whole.
_KEYS_A_PAGE = 41


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
        schema.adopt(store, replace(origin.header, is_partial=True))
        owners = {entry.number for entry in spool.entries}
        entries = []
        for entry in sorted(spool.entries, key=lambda entry: entry.number):
            if entry.owner is None or entry.owner in owners:
                entries.append(entry)
            else:
                spool.refuse(f"page {entry.number}", "the page that it repeats is not in the file")
        places = [codec.place_of(entry.number) + 1 for entry in entries]
        with Importer(
            store,
            max([origin.place, *places]),
            origin.learned,
            pages=len(entries),
            paragraphs=ParagraphIndex(store, MemoryStore(), distance) if method.has_bits else None,
            prints=None if published is None else PrintIndex(store, OpenClaims(), published),
        ) as importer:
            for _, exported in spool.pages(entries):
                importer.put(exported)
            importer.finish(spool.pairs, max_holders=common + 2)
        schema.adopt(store, origin.header)
    finally:
        store.close()
    duplicates = sum(entry.is_duplicate for entry in entries)
    return {"owners": len(entries) - duplicates, "duplicates": duplicates}


class Importer:
    """Writes pages into *store*, which has nothing but its header, under the numbers that they had.

    New pages will queue up behind *place*; *learned* is what a published method has learned; there are about so many
    *pages*.
    """

    def __init__(  # noqa: PLR0913 - what a store is filled with, by name
        self,
        store: OpenStore,
        place: int,
        learned: bytes,
        *,
        pages: int,
        paragraphs: ParagraphIndex | None,
        prints: PrintIndex | None,
    ) -> None:
        self._store = store
        self._postings = PostingSpool(pages * _KEYS_A_PAGE)
        self._paragraphs = paragraphs
        self._prints = prints
        # First: where an import is interrupted, no later page may take the number of one that is there.
        store.write([(codec.NEXT_PLACE_KEY, codec.encode_line(codec.Line(place)))])
        if prints is not None and learned:
            prints.remember(learned)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._postings.__exit__()

    def put(self, exported: Exported) -> None:
        """Write a page, and note which posting lists lead to it: one batch, 0.1 ms."""
        page = exported.page
        batch = Batch(self._store, None, 0)
        batch.put_page(page, _packed(exported.text), _packed(exported.said), exported.body_digest)
        batch.puts += [(codec.suspect_key(template, page.number), b"") for template in exported.suspect_of]
        named = codec.encode_number(page.number)
        batch.puts += [(codec.canonical_key(identity), named) for identity in exported.names]
        if page.owner is None:
            self._postings.add(listed([page]) - exported.unlisted, page.number)
            if self._paragraphs is not None:
                puts, _ = self._paragraphs.changes(set(), {(bits, page.number) for bits in page.simhashes})
                batch.puts += puts
            if self._prints is not None and exported.made:
                puts, _ = self._prints.changes((), page.number, self._prints.remade(exported.made))
                batch.puts += puts
        batch.write()

    def finish(self, pairs: Iterable[tuple[bytes, bytes]], *, max_holders: int) -> None:
        """Write the posting lists, none longer than *max_holders*, and these *pairs*; all is on the medium then.

        And merged: otherwise the first crawl would do that while it runs, and be slower for minutes.
        """
        self._store.load(self._postings.lists(max_holders))
        self._store.merge()
        self._store.write([*pairs], sync=True)


def _packed(text: tuple[str, ...] | None) -> bytes | None:
    return None if text is None else codec.encode_text(text, sys.maxsize)
