"""What a published method has made of the stored pages, and which of them share a key with a new one.

The only home of its keys. It proposes pages and decides nothing.

    k<xxh3_64 of the method's key, 8><page number, 7> -> nothing: what to look the page up by
    m<page number, 7>                                 -> its fingerprint, see `method.packed`
    l                                                 -> what the method has learned, once it has
"""

from __future__ import annotations

from collections import Counter
from itertools import chain, islice
from typing import TYPE_CHECKING

import xxhash

from dedup_middleware.fingerprints.method import MAX_PACKED, packed
from dedup_middleware.index.schema import decode_number, encode_number
from dedup_middleware.model import Made

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dedup_middleware.fingerprints.method import Method, Print
    from dedup_middleware.index.shared import OpenClaims
    from dedup_middleware.stores import OpenStore

# Holders of one key that are looked at, oldest first: what more pages have is what all pages of a site have.
_MAX_HOLDERS = 64
_LEARNED_KEY = b"l"


class PrintIndex:
    """What *method* has made of the pages in a store, and of the open claims."""

    def __init__(self, store: OpenStore, claims: OpenClaims, method: Method) -> None:
        self.method = method
        self._store = store
        self._claims = claims

    def made(self, found: Print | None) -> Made | None:
        """Return what was *found* of a text, as it is stored."""
        packed = b"" if found is None else _packed(found)
        if found is None or not packed:
            return None
        return Made(packed, frozenset(map(xxhash.xxh3_64_digest, self.method.keys(found))))

    def learned(self) -> bytes:
        """Return what the method has learned for this store; empty as long as it has not. One get."""
        return self._store.get_many([_LEARNED_KEY])[0] or b""

    def remember(self, learned: bytes) -> bytes:
        """Keep for good what the method has *learned*, unless the store has something; return what it has then."""
        kept = self.learned() or learned
        self._store.write([(_LEARNED_KEY, kept)])
        return kept

    def changes(
        self, before: Iterable[int], number: int, made: Made | None
    ) -> tuple[list[tuple[bytes, bytes]], list[bytes]]:
        """Return the puts and deletes by which the page *number* is what is *made* of it, in the place of *before*.

        ``None``: none of these has any more what a method goes by.
        """
        puts = [] if made is None else _pairs(number, made)
        kept = {key for key, _ in puts}
        gone = {key for n in before if (old := self.made(self.of(n))) is not None for key, _ in _pairs(n, old)}
        return puts, sorted(gone - kept)

    def of(self, number: int) -> Print | None:
        """Return what is made of the page or the open claim *number*; ``None`` where nothing is. One get."""
        if number < 0:
            made = self._claims.made.get(number)
            value = None if made is None else made.value
        else:
            (value,) = self._store.get_many([_print_key(number)])
        return None if value is None else _unpacked(value)

    def packed(self, number: int) -> bytes:
        """Return what is made of the stored page *number*, as it is stored; empty where nothing is. One get."""
        return self._store.get_many([_print_key(number)])[0] or b""

    def remade(self, packed: bytes) -> Made | None:
        """Return what :meth:`packed` returned, with the keys to look it up by."""
        return self.made(_unpacked(packed))

    def like(self, made: Made) -> list[int]:
        """Return the numbers of the pages that share a key with what is *made* of one, those with most of them first.

        Of equals, a stored page comes before a claimed one and an older before a younger. One scan a key.
        """
        counts: Counter[int] = Counter()
        for key in made.keys:
            claimed = self._claims.made_alike.get(key, ())
            counts.update(chain(islice(self._holders(key), _MAX_HOLDERS), claimed))
        return sorted(counts, key=lambda number: (-counts[number], number < 0, abs(number)))

    def _holders(self, key: bytes) -> Iterator[int]:
        prefix = b"k" + key
        return (decode_number(pair[len(prefix) :]) for pair, _ in self._store.scan(prefix, prefix + b"\xff" * 8))


def _pairs(number: int, made: Made) -> list[tuple[bytes, bytes]]:
    page = encode_number(number)
    return [(_print_key(number), made.value), *((b"k" + key + page, b"") for key in sorted(made.keys))]


def _print_key(number: int) -> bytes:
    return b"m" + encode_number(number)


def _packed(found: Print) -> bytes:
    """Return *found* packed; empty if it is larger than may be stored."""
    made = packed(found)
    return made if len(made) <= MAX_PACKED else b""


def _unpacked(value: bytes) -> Print:
    from dedup_middleware.fingerprints.method import unpacked  # noqa: PLC0415 - the same

    return unpacked(value)
