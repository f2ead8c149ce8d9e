"""Which stored bits are within a Hamming distance of new ones, exactly, in the sorted store.

The only home of Hamming keys. It knows bits and page numbers, not what the bits are made of.

    h                          -> the number of blocks, one byte: how the bits in this store are split
    hb<block, 1><value>        -> bits, 16 bytes each, that have this value in this block; then b"+" if there are more
    hb<block, 1><value><bits>  -> nothing: one of those more
    hn<bits, 16><number, 7>    -> nothing: the page of this number holds these bits

*Search.* Split the bits into blocks and give each block a radius so that the sum of (radius + 1) is k + 1: by the
pigeonhole principle, bits within distance k are within the radius of at least one block. So a search gets the lists of
all values that near, and compares what they hold. With k + 1 blocks of radius 0 this is the table per permuted block of
G. Manku, A. Jain and A. Das Sarma (WWW 2007); with fewer blocks, the multi-index hashing of M. Norouzi, A. Punjani and
D. Fleet (CVPR 2012); the uneven radii are the general pigeonhole principle of J. Qin et al. (ICDE 2018).

*Number of blocks.* With N different bits stored and b blocks, a list holds ``N / 2**(128 / b)`` of them, an insertion
gets and puts b lists, and a search gets as many as there are values within the radii. At k = 3, four blocks take 4 gets
of nearly empty lists. At k = 10 and N = 10 million, eleven blocks would take 11 gets but compare 35 000 bits and put
eleven lists of 50 kB; seven take 80 and 2 400, six 113 and 430, five 460 and 90. Hence k + 1 blocks, but at most six:
21 bits wide, four bits a list.

*What is bounded.* Bits that many pages hold, boilerplate, stand in the lists once, and their holders are read only as
far as the caller takes them. A value that very many different bits share (a flood of crafted or templated paragraphs)
keeps a list of ``LIST_LIMIT`` and one key for each of the others, so that no insertion rewrites more. By default a
search compares those too, 1 to 3 µs each, and misses nothing; over a flood that is quadratic. With *crowd* it compares
at most so many of them for each value, and then misses what is near, but not identical, if each value by which it could
be found is shared by more than *crowd* others.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import combinations, islice
from typing import TYPE_CHECKING

from dedup_middleware.commandlines import scrapy_dedup
from dedup_middleware.errors import StoreVersionError, UnreadableError
from dedup_middleware.index.codec import SIMHASH_BYTES, decode_number, decode_simhash, encode_number, encode_simhash

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dedup_middleware.stores.protocol import Store

MAX_BLOCKS = 6
#: A search takes 1 200 gets there, some 8 ms, and each bit more adds 200.
MAX_DISTANCE = 16
#: Bits in one list: a kilobyte.
LIST_LIMIT = 64

_BITS = 8 * SIMHASH_BYTES
_LAYOUT_KEY = b"h"
_BLOCK = b"hb"
HOLDER = b"hn"
_MORE = b"+"


class HammingIndex:
    """The 128-bit fingerprints of pages in *store*, each with the numbers of the pages that hold it.

    *k*: the distance up to which a search finds, 0 to ``MAX_DISTANCE``; ``ValueError`` for another. From 5 on all share
    one layout; a store that was filled under another layout raises ``StoreVersionError``. One get.
    *crowd*: how many bits to compare beyond those in a list; ``None``: all, and a search misses nothing.
    """

    def __init__(self, store: Store, k: int = 3, *, crowd: int | None = None) -> None:
        if not 0 <= k <= MAX_DISTANCE:
            raise ValueError(f"a Hamming distance of {k} cannot be searched: allowed are 0 to {MAX_DISTANCE}")
        self._store = store
        self._k = k
        self._crowd = crowd
        count = min(k + 1, MAX_BLOCKS)
        self._layout = bytes([count])
        (layout,) = store.get_many([_LAYOUT_KEY])
        if layout is not None and layout != self._layout:
            raise StoreVersionError(
                f"{store.uri} splits its paragraph fingerprints into {layout[0] if layout else 0} blocks, and distance "
                f"{k} needs {count}: set DEDUP_SIMHASH_DISTANCE to what it was made with, or begin anew with "
                f"`{scrapy_dedup('reset', store=store.uri)}`"
            )
        self._blocks = [_Block(i, count, radius=(k + 1 + i) // count - 1) for i in range(count)]

    def search(self, bits: int) -> Iterator[tuple[int, int]]:
        """Return an iterator of (page number, distance) for all that is stored within distance *k* of *bits*.

        Nearest first; the pages that hold the same bits by number. A page comes once for each of its bits. All
        comparing is done before the return, and each different match costs one scan when it is taken; whoever has seen
        enough may stop. Gets: k + 1 up to k = 5, 113 at k = 10, 1 200 at k = 16.
        """
        keys = [key for block in self._blocks for key in block.keys_near(bits)]
        candidates: set[int] = set()
        for key, value in zip(keys, self._store.get_many(keys), strict=True):
            if value is not None:
                listed, more = _decode(value)
                candidates.update(listed)
                if more:
                    # Identical bits are found wherever they stand.
                    candidates.add(bits)
                    candidates.update(map(decode_simhash, islice(self._tails(key), self._crowd)))
        matches = sorted((d, c) for c in candidates if (d := (c ^ bits).bit_count()) <= self._k)
        return ((number, distance) for distance, match in matches for number in self._holders(match))

    def changes(
        self, added: Iterable[tuple[int, int]] = (), removed: Iterable[tuple[int, int]] = ()
    ) -> tuple[list[tuple[bytes, bytes]], list[bytes]]:
        """Return the puts and deletes after which the pairs (bits, page number) *added* are stored, *removed* are not.

        For one batch with all that belongs to the page. Pairs of one batch must come in one call, and be written before
        the next: they may share lists. A pair in both is stored; adding what is stored and removing what is not change
        nothing. Cost: one get and one put a block for each different bits, and a scan for each that is removed.
        """
        wanted = set(added)
        unwanted = set(removed) - wanted
        puts = [(_holder_key(bits, number), b"") for bits, number in sorted(wanted)]
        deletes = [_holder_key(bits, number) for bits, number in sorted(unwanted)]
        held = {bits for bits, _ in wanted}
        freed = {
            bits
            for bits in {bits for bits, _ in unwanted} - held
            if all((bits, number) in unwanted for number in self._holders(bits))
        }
        edits: defaultdict[bytes, _Edit] = defaultdict(_Edit)
        for block in self._blocks:
            for bits in held:
                edits[block.key(bits)].added.add(bits)
            for bits in freed:
                edits[block.key(bits)].removed.add(bits)
        for (key, edit), value in zip(edits.items(), self._store.get_many(list(edits)), strict=True):
            more_puts, more_deletes = edit.apply(key, value)
            puts += more_puts
            deletes += more_deletes
        if puts:
            puts.append((_LAYOUT_KEY, self._layout))
        return puts, deletes

    def add(self, bits: int, number: int) -> None:
        """Store by itself that page *number*, 1 or more, holds *bits*."""
        self._store.write(*self.changes(added=[(bits, number)]))

    def remove(self, bits: int, number: int) -> None:
        """Store by itself that page *number* does not hold *bits*."""
        self._store.write(*self.changes(removed=[(bits, number)]))

    def _holders(self, bits: int) -> Iterator[int]:
        return map(decode_number, self._tails(HOLDER + encode_simhash(bits)))

    def _tails(self, key: bytes) -> Iterator[bytes]:
        """Return what follows *key*, bits or a number, in the keys that begin with it; *key* itself is left out."""
        keys = self._store.scan(key + b"\x00", key + b"\xff" * (SIMHASH_BYTES + 1))
        return (longer[len(key) :] for longer, _ in keys)


class _Block:
    """The *i*-th of *count* nearly equal parts of the bits, and the values of it that count as near."""

    def __init__(self, i: int, count: int, *, radius: int) -> None:
        self._shift, end = _BITS * i // count, _BITS * (i + 1) // count
        width = end - self._shift
        self._mask = (1 << width) - 1
        self._bytes = (width + 7) // 8
        self._prefix = _BLOCK + bytes([i])
        self._flips = [
            sum(1 << bit for bit in flipped) for n in range(radius + 1) for flipped in combinations(range(width), n)
        ]

    def key(self, bits: int) -> bytes:
        return self._key(bits >> self._shift & self._mask)

    def keys_near(self, bits: int) -> list[bytes]:
        value = bits >> self._shift & self._mask
        return [self._key(value ^ flip) for flip in self._flips]

    def _key(self, value: int) -> bytes:
        return self._prefix + value.to_bytes(self._bytes, "big")


@dataclass
class _Edit:
    """What one list is to gain and to lose; no bits are in both."""

    added: set[int] = field(default_factory=set)
    removed: set[int] = field(default_factory=set)

    def apply(self, key: bytes, value: bytes | None) -> tuple[list[tuple[bytes, bytes]], list[bytes]]:
        """Return the puts and deletes for the list at *key*, which is *value* so far."""
        before, more = _decode(value or b"")
        after = [bits for bits in before if bits not in self.removed]
        new = sorted(self.added.difference(before))
        deletes = [key + encode_simhash(bits) for bits in self.removed.difference(before)] if more else []
        # Once there are more, new bits always go there: a place that is free in the list may belong to one of them.
        room = 0 if more else LIST_LIMIT - len(after)
        puts = [(key + encode_simhash(bits), b"") for bits in new[room:]]
        after += new[:room]
        more = more or len(new) > room
        now = b"".join(map(encode_simhash, after)) + (_MORE if more else b"")
        if now and now != value:
            puts.append((key, now))
        if value and not now:
            deletes.append(key)
        return puts, deletes


def _holder_key(bits: int, number: int) -> bytes:
    return HOLDER + encode_simhash(bits) + encode_number(number)


def _decode(value: bytes) -> tuple[list[int], bool]:
    """Return the bits of a list, and whether there are more."""
    more = len(value) % SIMHASH_BYTES == 1 and value.endswith(_MORE)
    if len(value) % SIMHASH_BYTES != more:
        raise UnreadableError(f"a list of paragraph fingerprints is {len(value)} bytes long")
    return [decode_simhash(value[i : i + SIMHASH_BYTES]) for i in range(0, len(value) - more, SIMHASH_BYTES)], more
