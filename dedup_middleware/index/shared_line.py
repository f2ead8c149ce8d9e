"""The line of a store far away, in which the new pages of several workers queue up: none waits for another.

A worker takes many places at once, and counts pages without reading how many there are. So numbers are given out in the
order of arrival by each worker, not by all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dedup_middleware.index import codec

if TYPE_CHECKING:
    from dedup_middleware.stores.protocol import FarStore

# A worker that ends leaves some of them empty: there are 10^12.
_TAKEN_AT_ONCE = 256


class SharedLine:
    """What one worker does in the line of *store*, each time inside ``store.atomically``."""

    def __init__(self, store: FarStore) -> None:
        self.taken = range(0)
        """The places that it has taken and not given out; set back where that comes to nothing."""
        self._store = store

    def next_place(self) -> int:
        """Return the place of the next new page. One get and one write in 256 times."""
        if not self.taken:
            line = codec.decode_line(self._store.get_many([codec.NEXT_PLACE_KEY])[0])
            self.taken = range(line.place, line.place + _TAKEN_AT_ONCE)
            line = line._replace(place=self.taken.stop)
            self._store.write([(codec.NEXT_PLACE_KEY, codec.encode_line(line))])
        place, self.taken = self.taken[0], self.taken[1:]
        return place

    def count(self, owners: int, duplicates: int) -> None:
        """Count so many pages more, or fewer."""
        if owners or duplicates:
            self._store.add(codec.NEXT_PLACE_KEY, codec.grown(owners, duplicates))
