"""The stored pages of one store, and how they are taken out of it again, or are as they were before.

Nothing changes but in one atomic batch a page.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from dedup_middleware.index import codec, page_codec
from dedup_middleware.index.batch import Batch
from dedup_middleware.index.lookup import Lookup

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from contextlib import AbstractContextManager

    from dedup_middleware.index.journal import Journal
    from dedup_middleware.index.shared_line import SharedLine
    from dedup_middleware.model import Delivery, StoredPage


class Reads(NamedTuple):
    """What a verdict rests on."""

    values: Mapping[bytes, bytes | None]
    """Of the store, by key."""
    upsets: int
    """See OpenClaims."""


class Revocable(Lookup):
    """What a store holds, to be read and revoked; see `Index` for the rest."""

    journal: Journal
    #: No posting list grows beyond this.
    _max_holders: int

    @cached_property
    def _shared_line(self) -> SharedLine | None:
        """The part that this process has in the line of a store far away."""
        return None

    def same_to_write(self, identities: Iterable[bytes]) -> list[StoredPage]:
        """Return what :meth:`same` does, for a change of these pages: those in doubt are rolled back first."""
        values = self.store.get_many([codec.identity_key(i) for i in identities])
        self._settle_first(codec.decode_identity(value)[0] for value in values if value is not None)
        return self.same(identities)

    def _settle_first(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            if number in self.unsettled:
                self._settle(number)

    def noting(self) -> AbstractContextManager[Reads | None]:
        """Note what is read within the block, for :meth:`rests_on`; ``None`` where it is as easily read again."""
        return nullcontext()

    def is_upset(self, reads: Reads | None) -> bool:  # noqa: ARG002
        """Tell whether anything has changed since for what the store does not tell, or may have."""
        return True

    def rests_on(self, reads: Reads) -> bool:  # noqa: ARG002
        """Tell whether what was read may still be so, on which whatever :meth:`atomically` writes is to rest, too."""
        return False

    def settle(self, count: int) -> None:
        """Roll back some of what an unclean shutdown left, *count* owners at most; 0.3 ms each."""
        for number in [*islice(self.unsettled, count)]:
            self._settle(number)

    def _settle(self, number: int) -> None:
        # First, for rolling back reads it; and as before if the store fails.
        before = self.journal.unsettled.pop(number)
        try:
            self.roll_back(number, before)
        except BaseException:
            self.journal.unsettled[number] = before
            raise

    def give_up(self, numbers: Iterable[int]) -> None:
        """Let these unsealed owners be what they were before they were delivered. Writes nothing: 1 µs each."""
        self.journal.give_up(numbers)
        self._claims.touch_all()

    def roll_back(self, number: int, before: Delivery | None) -> None:
        """Let an owner be what it was *before* it was delivered; ``None``: void it. One batch."""
        page = self.page(number)
        if before is None or page is None:
            self.revoke([number])
            return
        stored = replace(page, delivery=before)
        self.store.write([(codec.page_key(number), page_codec.encode_page(stored))], [codec.unsealed_key(number)])
        self.journal.note_rolled_back(number)
        self._claims.touch(page.hashes, page.identities)

    def revoke(self, numbers: Iterable[int]) -> None:
        """Remove these pages, in a batch each: what they own is nobody's."""
        for number in numbers:
            batch = self.batch()
            batch.deletes.append(codec.unsealed_key(number))
            page = self.page(number)
            if page is not None:
                with self._reading():
                    batch.replace([page], number, None)
                batch.remove_identities(page.identities)
                batch.remove_page(page)
            batch.write()
            self.journal.note_rolled_back(number)
            if page is not None:
                self._claims.touch(page.hashes, page.identities)

    def touch(self, pages: Iterable[StoredPage]) -> None:
        """Note that what is known of *pages* has changed."""
        self._claims.touch(*(keys for page in pages for keys in (page.hashes, page.identities)))

    def batch(self, run: str = "") -> Batch:
        """Return what collects the changes of one page, of the crawl *run*."""
        gives_way = None if self.reach.is_all or not run else self.counting(run)
        return Batch(
            self.store,
            self._paragraphs,
            self._max_holders,
            gives_way,
            self.unsettled,
            prints=self.prints,
            shared_line=self._shared_line,
        )
