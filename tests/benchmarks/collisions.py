"""Make pairs of texts that have the same xxh64 under every seed: why clauses are not hashed with it, seeded or not.

Usage: python tests/benchmarks/collisions.py [--pairs 32] [--random 1] [--seeds 1000]
Prints one pair a line as JSON, a list of two texts. None is meaningful text; each is one clause, which reduction leaves
as it is. Exit status 1 if one of *seeds* random seeds tells the two of a pair apart.

The method is our own, from the specification of XXH64. Below 32 bytes it takes words of eight bytes, little-endian, one
after the other: h = rotl(h ^ k(word), 27) * P1 + P4, where k(x) = rotl(x * P2, 31) * P1, all modulo 2^64. The seed is
in the first h only. Where k of a word changes by the bit 2^36 alone, h changes, whatever it was, by that bit rotated to
2^63; no multiplication by an odd number and no addition moves the highest bit; and where k of the next word changes by
2^63 too, h is what it would have been.

k has an inverse, and so there are few differences x' - x, four and two, that change one bit of k(x): for most x, one of
them does. Words at such a difference are looked for byte by byte, lowest first, with the carry of the addition and the
place of both words in a character of UTF-8 as the state; a state from which no end was found is not tried again. Random
words would not do: 3 * 10^9 of them held no pair of letters and digits.
"""

from __future__ import annotations

import argparse
import json
import random
import string
import sys
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import xxhash

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from dedup_middleware.text.clauses import clauses, folded

if TYPE_CHECKING:
    from collections.abc import Iterator

P1, P2 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F
WORD = 8
BITS = 64
MODULUS = 1 << BITS
K_ROTATION, H_ROTATION = 31, 27
#: What k of the second word must change by, and what k of the first one must for that.
SECOND_BIT = BITS - 1
FIRST_BIT = SECOND_BIT - H_ROTATION
#: How many words are tried with one beginning: more of them differ in their ends only.
FIRST_WORDS, SECOND_WORDS = 60, 200

#: The bytes of a character so far; none between two characters.
State = bytes


class Words(NamedTuple):
    """Two words, and where in a character each ends."""

    one: bytes
    other: bytes
    one_end: State
    other_end: State


def k(word: int) -> int:
    """Return what xxh64 makes of a word before it goes into the hash."""
    product = word * P2 % MODULUS
    return (product << K_ROTATION | product >> BITS - K_ROTATION) * P1 % MODULUS


def differences(bit: int) -> list[int]:
    """Return the differences of words, modulo 2^64, that can change *bit* of k, from 31 on, and no other."""
    found = set()
    for step in (1 << bit, -1 << bit):
        # In the rotated product, only the bits from `bit` on change: by this much, with or without an overflow.
        high = step * pow(P1, -1, MODULUS) % MODULUS >> bit
        for change in (high, high - (1 << BITS - bit)):
            found.add((change << bit - K_ROTATION) * pow(P2, -1, MODULUS) % MODULUS)
    return sorted(found)


@cache
def transitions() -> dict[State, dict[int, State]]:
    """Return for each state what byte may follow and where it leads, in UTF-8 of what clauses keep as it is."""
    following: dict[State, dict[int, State]] = {}
    for character in map(chr, range(0x30, 0xD7A4)):
        # Scripts from right to left too: from left to right alone, there are no words for the second bit.
        if character.isalnum() and folded(character) == character:
            encoded = character.encode()
            for end, byte in enumerate(encoded, start=1):
                following.setdefault(encoded[: end - 1], {})[byte] = encoded[:end] if end < len(encoded) else b""
    return following


class Search:
    """All words at one difference."""

    def __init__(self, difference: int, bit: int, rng: random.Random, *, is_last: bool = False) -> None:
        """Look for words that change *bit* of k; those of the *is_last* pair end with a character."""
        self._digits = difference.to_bytes(WORD, "little")
        self._bit = bit
        self._is_last = is_last
        self._rng = rng
        self._dead: set[tuple[int, State, State, int]] = set()

    def words(self, one: State, other: State, *, most: int) -> Iterator[Words]:
        """Yield those of *most* words beginning at these states that change the bit, in no order."""
        for words in islice(self._words(b"", b"", one, other, 0), most):
            before, after = (k(int.from_bytes(word, "little")) for word in words[:2])
            if before ^ after == 1 << self._bit:
                yield words

    def _words(self, one: bytes, other: bytes, one_at: State, other_at: State, carry: int) -> Iterator[Words]:
        place = len(one)
        if place == WORD:
            if not self._is_last or not (one_at or other_at):
                yield Words(one, other, one_at, other_at)
            return
        state = (place, one_at, other_at, carry)
        if state in self._dead:
            return
        following = transitions()
        options = sorted(following[one_at].items())
        self._rng.shuffle(options)
        is_dead = True
        for byte, one_next in options:
            next_carry, other_byte = divmod(byte + self._digits[place] + carry, 256)
            other_next = following[other_at].get(other_byte)
            if other_next is None:
                continue
            for words in self._words(
                one + bytes([byte]), other + bytes([other_byte]), one_next, other_next, next_carry
            ):
                is_dead = False
                yield words
        if is_dead:
            self._dead.add(state)


def pairs(rng: random.Random) -> Iterator[tuple[str, str]]:
    """Yield pairs, each of 24 bytes: a word that both share, then the two that differ."""
    firsts = [Search(difference, FIRST_BIT, rng) for difference in differences(FIRST_BIT)]
    seconds = [Search(difference, SECOND_BIT, rng, is_last=True) for difference in differences(SECOND_BIT)]
    # The lowest byte changes by 32, which makes another letter of a second byte and hardly of ASCII.
    starts = [state for state in transitions() if len(state) == 1 and state < b"\xe0"]
    while True:
        start = rng.choice(starts)
        shared = "".join(rng.choices(string.ascii_lowercase, k=WORD - len(start))).encode() + start
        if (pair := _pair(shared, start, firsts, seconds)) is not None:
            yield pair


def _pair(shared: bytes, start: State, firsts: list[Search], seconds: list[Search]) -> tuple[str, str] | None:
    for first in (words for search in firsts for words in search.words(start, start, most=FIRST_WORDS)):
        for search in seconds:
            for second in search.words(first.one_end, first.other_end, most=SECOND_WORDS):
                pair = ((shared + first.one + second.one).decode(), (shared + first.other + second.other).decode())
                if all([clause for clause, weight in clauses(text) if weight] == [text] for text in pair):
                    return pair
    return None


def collides(pair: tuple[str, str], seed: int) -> bool:
    """Tell whether the two texts have the same xxh64 under *seed*, and are two."""
    one, other = pair
    return one != other and xxhash.xxh64_digest(one.encode(), seed) == xxhash.xxh64_digest(other.encode(), seed)


def main() -> None:
    """Print the pairs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=32)
    parser.add_argument("--random", type=int, default=1, help="another number makes other pairs")
    parser.add_argument("--seeds", type=int, default=1000)
    options = parser.parse_args()
    rng = random.Random(options.random)
    seeds = [0, MODULUS - 1, *(rng.getrandbits(BITS) for _ in range(options.seeds))]
    for pair in islice(pairs(rng), options.pairs):
        if not all(collides(pair, seed) for seed in seeds):
            sys.exit(f"told apart: {pair}")
        print(json.dumps(pair))


if __name__ == "__main__":
    main()
