"""The pages whose claims are open, in memory.

Nothing in it is written anywhere, so a crash leaves nothing provisional behind.
"""

from __future__ import annotations

from collections import defaultdict, deque
from itertools import islice
from typing import TYPE_CHECKING

from dedup_middleware.index import schema
from dedup_middleware.model import StoredPage

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from collections.abc import Set as AbstractSet

    from dedup_middleware.features import Made
    from dedup_middleware.model import Page

#: Changes of which is remembered what they touched: as many as come between a download and its callback, and more.
_REMEMBERED_CHANGES = 64


class OpenClaims:
    """The pages whose claims are open, in memory, under negative numbers.

    Crawlers of one process that share a store share these too, so that they see one another's claims.
    """

    def __init__(self) -> None:
        self.pages: dict[int, StoredPage] = {}
        self.identities: defaultdict[bytes, set[int]] = defaultdict(set)
        self.made: dict[int, Made] = {}
        self.texts: dict[int, tuple[str, ...]] = {}
        self.version = 0
        self._postings: dict[bytes, tuple[int, ...]] = {}
        self._equals: dict[bytes, tuple[int, ...]] = {}
        self._made_alike: dict[bytes, tuple[int, ...]] = {}
        # Claims that are in none of these yet, and of each the clauses that are not to lead to it: most claims of a
        # program, and many of a crawl, are over before another page is looked up.
        self._unlisted: dict[int, frozenset[bytes]] = {}
        self._recent: deque[tuple[Collection[bytes], ...]] = deque(maxlen=_REMEMBERED_CHANGES)
        self._last = 0
        self._changes_of_others = 0

    @property
    def postings(self) -> Mapping[bytes, tuple[int, ...]]:
        """The claims that hold a clause, by its hash."""
        self._list_all()
        return self._postings

    @property
    def equals(self) -> Mapping[bytes, tuple[int, ...]]:
        """The claims with the same whole text and title, by `schema.whole_text_key`."""
        self._list_all()
        return self._equals

    @property
    def made_alike(self) -> Mapping[bytes, tuple[int, ...]]:
        """The claims in whose text a published method has found such a key."""
        self._list_all()
        return self._made_alike

    def add(self, page: Page) -> StoredPage:
        """Add *page* and return it under its pending number. O(clauses)."""
        self._last += 1
        pending = StoredPage.of(page, -schema.page_number(self._last, page.url))
        self.pages[pending.number] = pending
        self.texts[pending.number] = page.paragraphs
        self._unlisted[pending.number] = page.borrowed
        if (made := page.fingerprint.made) is not None:
            self.made[pending.number] = made
        for identity in pending.identities:
            self.identities[identity].add(pending.number)
        self.touch(pending.hashes, pending.identities)
        return pending

    def remove(self, number: int) -> StoredPage:
        """Forget the page *number* and return it. O(clauses)."""
        pending = self.pages.pop(number)
        del self.texts[number]
        made = self.made.pop(number, None)
        if self._unlisted.pop(number, None) is None:
            for lists, keys in self._lists(pending, made):
                _remove(lists, keys, number)
        for identity in pending.identities:
            self.identities[identity].discard(number)
            if not self.identities[identity]:
                del self.identities[identity]
        self.touch(pending.hashes, pending.identities)
        return pending

    def _list_all(self) -> None:
        for number, borrowed in self._unlisted.items():
            for lists, keys in self._lists(self.pages[number], self.made.get(number), borrowed):
                _add(lists, keys, number)
        self._unlisted.clear()

    def _lists(
        self, page: StoredPage, made: Made | None, borrowed: frozenset[bytes] = frozenset()
    ) -> Iterator[tuple[dict[bytes, tuple[int, ...]], AbstractSet[bytes]]]:
        """Yield the lists, and the keys in each, that lead to *page* but for what is *borrowed*."""
        yield self._postings, page.hashes - borrowed
        if (key := schema.whole_text_key(page.exact_digest, page.features)) is not None:
            yield self._equals, {key}
        if made is not None:
            yield self._made_alike, made.keys

    def touch(self, *touched: Collection[bytes]) -> None:
        """Note that what is known of these clauses and identities has changed. They are kept, not copied."""
        self.version += 1
        self._recent.append(touched)

    def notice_others(self, changes: int) -> None:
        """Note how much other processes have changed by now: if that has changed, so may anything have."""
        if changes != self._changes_of_others:
            self._changes_of_others = changes
            self.touch_all()

    def touch_all(self) -> None:
        """Note that what is known of anything may have changed, though nothing is written."""
        self.version += _REMEMBERED_CHANGES + 1

    def changed_since(self, version: int, page: Page) -> bool:
        """Tell whether anything that concerns *page* has changed since *version*. O(changes since * clauses)."""
        changes = self.version - version
        if not changes:
            return False
        # By a published method any page may be alike to it.
        if changes > len(self._recent) or page.fingerprint.made is not None:
            return True
        its_keys = page.fingerprint.weights.keys() | page.identities
        recent = islice(reversed(self._recent), changes)
        return any(not its_keys.isdisjoint(keys) for touched in recent for keys in touched)


# Nearly every key has one holder, so all keys are changed at once and the few that are shared are mended after.


def _add(lists: dict[bytes, tuple[int, ...]], keys: AbstractSet[bytes], number: int) -> None:
    others = {key: (*lists[key], number) for key in lists.keys() & keys}
    lists.update(dict.fromkeys(keys, (number,)))
    lists.update(others)


def _remove(lists: dict[bytes, tuple[int, ...]], keys: AbstractSet[bytes], number: int) -> None:
    held = {key: lists.pop(key) for key in lists.keys() & keys}
    alone = (number,)
    lists.update({key: tuple(n for n in numbers if n != number) for key, numbers in held.items() if numbers != alone})
