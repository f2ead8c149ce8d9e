"""Keeps the pages whose claims are open, in memory, and who waits for a claim to end."""

from __future__ import annotations

from collections import defaultdict, deque
from contextlib import suppress
from itertools import islice
from os import urandom
from typing import TYPE_CHECKING

from dedup_middleware.index import schema
from dedup_middleware.model import StoredPage

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from dedup_middleware.model import Page

# Changes of which is remembered what they touched: as many as come between a download and its callback, and more.
_REMEMBERED_CHANGES = 64


class OpenClaims:
    """The pages whose claims are open, in memory, under negative numbers.

    Crawlers of one process that share a store share these too, so that they see one another's claims.
    """

    def __init__(self) -> None:
        self.pages: dict[int, StoredPage] = {}
        self.texts: dict[int, Sequence[str]] = {}
        self._outdated: defaultdict[int, set[int]] = defaultdict(set)
        """By claim, the stored pages that it gives something else for; under 0, pages that lead elsewhere now."""
        self.leads: defaultdict[bytes, list[int]] = defaultdict(list)
        """By identity, the numbers of the originals whose URLs lead to that page now."""
        self._keys: dict[int, set[bytes]] = {}
        self.holders: defaultdict[bytes, tuple[int, ...]] = defaultdict(tuple)
        """The claims by identity, clause hash and `schema.whole_text_key`. These have 16, 6 and 9 bytes."""
        self.version = 0
        self._recent: deque[list[Collection[bytes]]] = deque(maxlen=_REMEMBERED_CHANGES)
        self._last = 0
        self._changes_of_others = 0
        # By the number of a claim, or of an original that is kept again: how to have it made durable, and who waits.
        self._owners: dict[int, Callable[[int], None]] = {}
        self._waiting: defaultdict[int, list[Callable[[], object]]] = defaultdict(list)
        self.crawls: list[str] = []
        """Those of this process that are at work."""
        self.holder = urandom(8)
        """The name of what this process has open, as that of a worker: after a crash, no process has it."""

    def add(self, page: Page, mark: int) -> StoredPage:
        """Add *page*, of the host with this *mark*, and return it under its pending number. O(clauses)."""
        self._last += 1
        number = -schema.page_number(self._last, mark)
        pending = self.pages[number] = StoredPage.of(page, number)
        self.texts[number] = page.paragraphs
        keys = {*pending.hashes, *pending.identities} - page.suppressed
        if (whole := schema.whole_text_key(pending.exact_digest, pending.features)) is not None:
            keys.add(whole)
        for key in keys:
            self.holders[key] += (number,)
        self._keys[number] = keys
        self.touch(pending)
        return pending

    def remove(self, number: int) -> None:
        """Forget the page *number*, if it is there. O(clauses)."""
        pending = self.pages.pop(number, None)
        if pending is None:
            return
        for key in self._keys.pop(number):
            holders = self.holders.pop(key)
            if holders != (number,):
                self.holders[key] = tuple([n for n in holders if n != number])
        del self.texts[number]
        self._outdated.pop(number, None)
        self.touch(pending)

    def outdate(self, claim: int, stored: list[StoredPage]) -> None:
        """Note that what is *stored* of the page of a *claim* is not what it gives now, until the claim ends."""
        self._outdated[claim].update(page.number for page in stored)
        self.touch(*stored)

    def renewed(self, number: int) -> None:
        """Note that the stored page *number* is what it gives now."""
        self._outdated[0].discard(number)

    def is_outdated(self, number: int) -> bool:
        """Return whether the stored page *number* has another text now."""
        return any(number in pages for claim, pages in self._outdated.items() if claim <= 0)

    def gives_other_items(self, number: int) -> bool:
        """Return whether the stored page *number* gives other items now, with its text."""
        return number in self._outdated

    def crawl_ended(self, run: str) -> None:
        """Note that the crawl *run* is over. What leads elsewhere is forgotten with the last one."""
        with suppress(ValueError):
            self.crawls.remove(run)
        if not self.crawls:
            self._outdated.pop(0, None)
            self.leads.clear()

    def is_kept_again(self, number: int) -> bool:
        """Return whether a crawl of this process is keeping the stored page *number* again."""
        return number in self._owners

    # --- who waits

    def opened(self, number: int, want: Callable[[int], None]) -> None:
        """Note that a crawl of this process has the claim *number*; *want* has it make the page durable soon."""
        self._owners[number] = want

    def ended(self, number: int) -> None:
        """Call those who wait for the claim *number*."""
        self._owners.pop(number, None)
        self._outdated.pop(number, None)
        for then in self._waiting.pop(number, ()):
            then()

    def wait(self, number: int, then: Callable[[], object]) -> bool:
        """Have the page of the claim *number* made durable soon, and call *then* once it has ended.

        Return ``False`` if no crawl of this process has it.
        """
        want = self._owners.get(number)
        if want is None:
            return False
        self._waiting[number].append(then)
        want(number)
        return True

    # --- what has changed

    def touch(self, *pages: StoredPage) -> None:
        """Note that what is known of *pages* has changed. Their clauses and identities are kept, not copied."""
        self.version += 1
        touched: list[Collection[bytes]] = []
        for page in pages:
            touched.append(page.identities)
            if page.original is None:
                touched.append(page.hashes)
        self._recent.append(touched)

    def notice_others(self, changes: int) -> None:
        """Note how much other processes have changed by now: if that has changed, so may anything have."""
        if changes != self._changes_of_others:
            self._changes_of_others = changes
            self.version += _REMEMBERED_CHANGES + 1

    def changed_since(self, version: int, page: Page) -> bool:
        """Return whether anything that concerns *page* has changed since *version*. O(changes since * clauses)."""
        changes = self.version - version
        if not changes:
            return False
        if changes > len(self._recent):
            return True
        its_keys = page.fingerprint.weights.keys() | page.identities
        recent = islice(reversed(self._recent), changes)
        return any(not its_keys.isdisjoint(keys) for touched in recent for keys in touched)
