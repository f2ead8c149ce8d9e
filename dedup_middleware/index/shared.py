"""The pages of a store that several processes share, and the open claims of all of them: those are in the store too.

A claim is a page with a number, postings and a text, as a stored one, but under a key of its own that names its worker;
no identity leads to it, so that whatever reads pages does not meet it. Once its worker is not at work any more, it is
nobody's, and whoever opens the store or is idle removes it.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, TypeVar

from dedup_middleware.index import codec, page_codec, shared_codec
from dedup_middleware.index.index import Index, Reads
from dedup_middleware.index.shared_ahead import Asker
from dedup_middleware.index.shared_line import SharedLine
from dedup_middleware.index.shared_titles import SharedTitles
from dedup_middleware.model import StoredPage
from dedup_middleware.stores.protocol import FarStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from dedup_middleware.index.shared_ahead import Fetch
    from dedup_middleware.model import Page
    from dedup_middleware.stores import OpenStore
    from dedup_middleware.stores.protocol import SharedStore

    _T = TypeVar("_T")

# Pages whose packed texts are at hand: as many as a crawl has claimed at a time, mostly.
_IN_FLIGHT = 32


class SharedIndex(Index):
    """See `Index`. What it reads in order to write, nobody else changes meanwhile; one lock, taken a page at a time."""

    store: OpenStore

    @cached_property
    def has_texts(self) -> bool:
        """See Lookup; others may keep some."""
        return True

    @property
    def version(self) -> int:
        """See Index; whatever another worker has changed may change any answer."""
        self._notice_others()
        return super().version

    def changed_since(self, version: int, page: Page) -> bool:
        """See Index."""
        self._notice_others()
        return super().changed_since(version, page)

    def _notice_others(self) -> None:
        self._claims.notice_others(self.store.changes_of_others())

    def atomically(self, work: Callable[[], _T]) -> _T:
        """See Index. Where *work* comes to nothing, the places in line that it has taken are free again."""
        line = self._shared_line
        taken = range(0) if line is None else line.taken

        def run() -> _T:
            if line is not None:
                line.taken = taken
            return work()

        try:
            return self.store.atomically(run)
        except BaseException:
            if line is not None:
                line.taken = taken
            raise

    def fetching(self, page: Page) -> Fetch | None:
        """See Index."""
        return None if self._asker is None else self._asker.fetch(page, self._shared_titles.key(page))

    @property
    def is_far(self) -> bool:
        """See Index."""
        return self._far is not None

    @cached_property
    def _far(self) -> FarStore | None:
        return self._workers if isinstance(self._workers, FarStore) else None

    @cached_property
    def _asker(self) -> Asker | None:
        return None if self._far is None else Asker(self._far)

    @cached_property
    def _shared_line(self) -> SharedLine | None:
        return None if self._far is None else SharedLine(self._far)

    @cached_property
    def _shared_titles(self) -> SharedTitles:
        return SharedTitles(self.store)

    def titles_beside(self, page: Page) -> list[str]:
        """See Lookup."""
        with self._reading():
            return self._shared_titles.told(page)

    @contextmanager
    def noting(self) -> Iterator[Reads | None]:
        """See Index."""
        if self._far is None:
            yield None
            return
        with self._far.noting() as values:
            yield Reads(values, self._claims.upsets)

    def is_upset(self, reads: Reads | None) -> bool:
        """See Index."""
        return reads is None or reads.upsets != self._claims.upsets

    def rests_on(self, reads: Reads) -> bool:
        """See Index."""
        return self._far is not None and not self.is_upset(reads) and self._far.rests_on(reads.values)

    def bring_near(self, numbers: Sequence[int]) -> None:
        """See Lookup. One round trip."""
        if self.is_far:
            self.store.get_many([codec.page_key(number) for number in numbers])

    # --- claims

    def claim(self, page: Page) -> StoredPage:
        """Open a claim, in the store. One batch, of what :meth:`commit` then finds there already."""
        return self.atomically(partial(self._claim, page))

    def _claim(self, page: Page) -> StoredPage:
        batch = self.batch(page.run)
        claimed = replace(StoredPage.of(page, batch.number_for(page.url)), is_claimed=True)
        with self._reading():
            batch.replace([], claimed.number, claimed, page.borrowed, page.fingerprint.made)
            batch.put_claim(claimed, self._workers.worker, self._packed(page.paragraphs))
            batch.puts += self._shared_titles.changes(page)
        batch.write()
        self.touch([claimed])
        return claimed

    def _packed(self, texts: tuple[str, ...]) -> bytes | None:
        # Of a page that is kept, it was packed when that was claimed.
        return self._packed_lately(texts)

    @cached_property
    def _packed_lately(self) -> Callable[[tuple[str, ...]], bytes | None]:
        return lru_cache(_IN_FLIGHT)(super()._packed)

    def release(self, number: int) -> None:
        """See Index; does nothing where it is released already."""
        self.atomically(partial(self._release, number))

    def _release(self, number: int) -> None:
        batch, ended = self.batch(), self._ended(number)
        with self._reading():
            batch.replace(ended, number, None)
        batch.write_if_any()
        self.touch(ended)

    def _ended(self, claim: int) -> list[StoredPage]:
        found = self._find_claim(claim)
        return [] if found is None else [found[1]]

    def claimed(self, number: int) -> StoredPage | None:
        """Return the page *number* if a worker who is at work holds its claim. One get."""
        found = self._find_claim(number)
        if found is None:
            return None
        if self._workers.is_at_work(found[0]):
            return found[1]
        # It is nobody's by now, though nobody has written that.
        self._claims.touch_all()
        return None

    def _find_claim(self, number: int) -> tuple[bytes, StoredPage] | None:
        (value,) = self.store.get_many([shared_codec.claimed_key(number)])
        if value is None:
            return None
        worker, page = shared_codec.decode_claimed(value)
        with self._reading():
            return worker, replace(page_codec.decode_page(number, page), is_claimed=True)

    @property
    def _workers(self) -> SharedStore:
        assert self.store.shared is not None
        return self.store.shared

    def numbers_of(self, page: Page, own: list[StoredPage]) -> set[int]:
        """See Lookup. One get an identity."""
        values = self.store.get_many([shared_codec.claims_key(identity) for identity in page.identities])
        with self._reading():
            claims = {number for value in values if value for number in codec.decode_postings(value)}
        return claims.union(stored.number for stored in own)

    # --- what is read and written as one

    def commit(
        self, page: Page, *, claim: int | None = None, durable: bool = False, feeds: frozenset[str] | None = frozenset()
    ) -> tuple[StoredPage | None, bool]:
        """See Index."""
        return self.atomically(partial(super().commit, page, claim=claim, durable=durable, feeds=feeds))

    def remove(self, numbers: Iterable[int]) -> None:
        """See Index."""
        self.atomically(partial(super().remove, numbers))

    def release_dead_claims(self) -> None:
        """See Index. One scan of the open claims."""
        for key, value in list(self.store.scan(*shared_codec.CLAIMED)):
            if not self._workers.is_at_work(shared_codec.decode_claimed(value)[0]):
                self.release(codec.decode_number(key[1:]))
