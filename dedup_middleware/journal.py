"""What is in the store although no medium vouches for it yet, so that a crash costs nobody a story.

Law of this file: it remembers and forgets, and says what to write; `index` writes it, in the batch of the page itself.

An owner is *unsealed* from the batch that confirms it until its items are known to be on their medium: a feed's buffer
dies with the process. A page that is dropped in favour of an unsealed owner is *journalled*, with its request. Sealing
an owner clears both. What an unclean end leaves is found when the store is opened again: its owners are void, and its
journalled pages are requested once more.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from dedup_middleware import codec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dedup_middleware.protocols import Store


class Entry(NamedTuple):
    """A page that was dropped in favour of an unsealed owner."""

    identity: bytes
    """16 bytes: that of its request."""
    spider: str
    """Whose callback its request names."""
    request: bytes
    """The request, as the glue packed it."""


class Journal:
    """The unsealed owners and the journalled pages of one open store; those who share the store share it."""

    def __init__(self) -> None:
        self.owners: set[int] = set()
        self.left: dict[bytes, Entry] = {}
        """By identity: pages that an unclean end left, whose second visit is not over yet."""
        self._dropped: defaultdict[int, set[bytes]] = defaultdict(set)
        self._owner_of: dict[bytes, int] = {}
        self._handed_out: set[bytes] = set()
        self._recovered = False

    def recover(self, store: Store) -> list[int]:
        """Read, once, what an unclean end left in *store*; return the owners that are void. O(what is left)."""
        if self._recovered:
            return []
        self._recovered = True
        for _, value in store.scan(*codec.JOURNAL):
            entry = Entry(*codec.decode_entry(value))
            self.left[entry.identity] = entry
        return [codec.decode_number(key[1:]) for key, _ in store.scan(*codec.UNSEALED)]

    # --- what to write, and what has been written

    def confirm(self, number: int) -> tuple[bytes, bytes]:
        """Return the pair that says of an owner that it is unsealed."""
        return codec.unsealed_key(number), b""

    def confirmed(self, number: int) -> None:
        """Note that the owner *number* is in the store."""
        self.owners.add(number)

    def drop(self, entry: Entry) -> tuple[bytes, bytes]:
        """Return the pair that journals a page."""
        return codec.journal_key(entry.identity), codec.encode_entry(*entry)

    def dropped(self, identity: bytes, owner: int) -> None:
        """Note that a page is journalled, in favour of the unsealed *owner*."""
        self.forget(identity)
        self._dropped[owner].add(identity)
        self._owner_of[identity] = owner

    def seal(self, numbers: Iterable[int], visited: Iterable[bytes]) -> list[bytes]:
        """Return the keys to delete, now that what the owners *numbers* and the pages *visited* gave is safe."""
        numbers = [number for number in numbers if number in self.owners]
        identities = set(visited).union(*(self._dropped.get(number, ()) for number in numbers))
        return [*map(codec.unsealed_key, numbers), *map(codec.journal_key, identities)]

    def sealed(self, numbers: Iterable[int], visited: Iterable[bytes]) -> None:
        """Note that the keys of :meth:`seal` are gone."""
        for identity in visited:
            self.forget(identity)
        for number in numbers:
            self.void(number)

    def void(self, number: int) -> None:
        """Note that *number* is an unsealed owner no more. What was dropped in its favour is up to the store's keys."""
        self.owners.discard(number)
        for identity in self._dropped.pop(number, ()):
            del self._owner_of[identity]

    def hand_out(self, spider: str) -> Iterator[Entry]:
        """Yield the pages of *spider* that an unclean end left, each to one caller only."""
        for identity, entry in list(self.left.items()):
            if entry.spider == spider and identity not in self._handed_out:
                self._handed_out.add(identity)
                yield entry

    def has(self, identity: bytes) -> bool:
        """Tell whether a page is journalled, by this crawl or an earlier one."""
        return identity in self.left or identity in self._owner_of

    def forget(self, identity: bytes) -> None:
        """Note that a page is journalled no more."""
        self.left.pop(identity, None)
        if (owner := self._owner_of.pop(identity, None)) is not None:
            self._dropped[owner].discard(identity)
