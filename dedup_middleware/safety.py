"""What is written down around a drop, so that neither a crash nor a failure costs a story.

Law of this file: nothing is dropped before the store knows of it, nor after anything has failed.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING

from dedup_middleware.journal import Entry
from dedup_middleware.model import VerdictKind
from dedup_middleware.sealing import Sealing

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterable
    from contextlib import AbstractContextManager

    from dedup_middleware.case import Case
    from dedup_middleware.claims import Claim
    from dedup_middleware.index import Index
    from dedup_middleware.journal import Journal

NOT_JOURNALLED = "the owner is not sealed yet, and the request cannot be journalled"


class Safety:
    """The drops and deliveries of one crawl, until they are safe."""

    def __init__(
        self,
        index: Index,
        spider: str,
        *,
        flush: Callable[[], set[Hashable]] | None,
        interval: int,
        guard: Callable[[], AbstractContextManager[None]],
    ) -> None:
        """Seal after *interval* confirmed pages.

        *flush* brings what was delivered onto its media, and returns those that will have it later; without it, what
        has left the pipelines is safe. *guard* notes what fails inside it.
        """
        self.failed = False
        """Whether something has failed: from then on nothing is dropped, and nothing sealed."""
        self._index = index
        self._spider = spider
        self._flush = flush
        self._guard = guard
        self._sealing = Sealing(index, interval)
        # What an unclean end left, by the identities of the pages that are requested again for it; and what of that the
        # crawl has been to.
        self._left: defaultdict[bytes, set[bytes]] = defaultdict(set)
        self._visited_by_end: set[bytes] = set()
        self._failed_again: set[bytes] = set()

    @property
    def journal(self) -> Journal:
        """The pages that are dropped and not yet safe, and those that an unclean end left."""
        return self._index.journal

    def requested_again(self, left: bytes, identities: Iterable[bytes]) -> None:
        """Note that what an unclean end *left*, a page or an item of one, is looked for at these *identities*."""
        for identity in identities:
            self._left[identity].add(left)

    def left(self, identities: Collection[bytes]) -> frozenset[bytes]:
        """Return what an unclean end left of the page, or is the item, with these *identities*."""
        if not self.journal.left:
            return frozenset()
        return frozenset(identities).union(*(self._left.get(i, ()) for i in identities)) & self.journal.left.keys()

    def may_drop(self, case: Case) -> bool:
        """Write down that the page is dropped, before it is; tell whether it may be.

        Where the owner's items are not safe yet, the page must be there to be requested again after a crash.
        """
        if not case.written_down and case.verdict.match is not None and case.page is not None:
            if case.request is not None:
                self._write_down(case, Entry(case.page.identities[0], self._spider, case.request))
            elif case.verdict.match.owner.number not in self.journal.owners:
                self._write_down(case, None)
            else:
                case.verdict = dataclasses.replace(case.verdict, kind=VerdictKind.RELATED, reason=NOT_JOURNALLED)
        return case.written_down and not self.failed

    def finished(self, case: Case) -> None:
        """Note that the output of *case* has been seen to its end."""
        if case.is_duplicate and case.items_dropped + case.items_delivered:
            self._write_down(case, None)
        if not case.entered:
            return  # its callback has raised: to be requested once more
        # Its items may still be in the pipelines, and a round that began now would not have them. A claim tells when
        # they have left, and how; without one, and for items that the page does not have any more, only the crawl's end
        # does. What was dropped again is written down again, under the identity that the page has now.
        for identity in case.left:
            if case.claim is not None and case.page is not None and identity in case.page.identities:
                case.claim.when_settled(partial(self._visited, identity, case.claim))
            else:
                self._visited_by_end.add(identity)

    def confirmed(self, number: int) -> None:
        """Note that the items of the owner *number* have left the pipelines."""
        self._sealing.confirmed(number)
        self._seal_if_due()

    def stored(self, medium: Hashable) -> None:
        """Note that *medium*, which `flush` returned, has got what was delivered."""
        if not self.failed:
            with self._guard():
                self._sealing.stored(medium)

    def gone(self, identities: Collection[bytes]) -> None:
        """Note that there is nothing at a page's address any more: it owns nothing, and need not be requested."""
        with self._guard():
            owners = [page.number for page in self._index.same(identities) if page.owner is None]
            self._index.void(owners)
            for identity in self.left(identities):
                self._sealing.visited(identity)

    def end(self, *, store_failed: bool) -> None:
        """Seal what has been delivered; void it after a failure."""
        if not self.failed:
            for identity in (self._visited_by_end - self._failed_again) & self.journal.left.keys():
                self._sealing.visited(identity)
            self._sealing.begin_round(set())
        elif not store_failed:
            self._sealing.give_up()

    def _visited(self, identity: bytes, claim: Claim) -> None:
        if claim.failed:
            self._failed_again.add(identity)
        else:
            self._sealing.visited(identity)
            self._seal_if_due()

    def _seal_if_due(self) -> None:
        if self._sealing.is_due and not self.failed:
            with self._guard():
                self._sealing.begin_round(set() if self._flush is None else self._flush())

    def _write_down(self, case: Case, entry: Entry | None) -> None:
        if not case.written_down and case.page is not None and case.verdict.match is not None:
            with self._guard():
                self._index.remember_duplicate(case.page, case.verdict.match, entry)
                case.written_down = True
