"""Pages and posting lists <-> keys and values of a store.

Pure functions over bytes; whoever changes a format raises ``layout.SCHEMA_VERSION``. What decodes
raises :class:`UnreadableError`.

    c<clause hash, 6>  -> page numbers, 7 bytes each, oldest first: who holds the clause; 8 in stores of before schema 5
    i<identity, 16>    -> page number, 7 bytes: which stored page this request is; and behind it the digest, 16, of the
                          bytes that it was read from, where that tells whether it has to be read again
    p<page number, 7>  -> the page, see `page_codec`
    e<exact digest and title, 8> -> page numbers, likewise: whose whole text this is, under this title
    t<page number, 7>  -> its text, zlib: for `explain` and the second opinion; apart, so that lookups never read it
    s<page number, 7>  -> the text of its items, likewise, where that is not its own
    n                  -> the next page's place in line, as a number, and how many owners and duplicates there are,
                          6 bytes each; without these in a store of before schema 5, until somebody asks
    o<page number, 7><page number, 7>
                       -> nothing: of that owner, this page is a duplicate; likewise
    u<page number, 7>  -> why an original is in doubt, see `in_doubt`
    j, v, r            -> dropped items, see `dropped_items`
    d<template, 8><page number, 7>
                       -> nothing: the page was dropped for that text, and may be another one if it is a template
    d<template, 8>     -> nothing: it is one
    a<identity, 16>    -> page number, 7 bytes: the owner that names this address, of its own host, as its story's
    x<identity, 16><identity, 16>
                       -> two pages that a person has marked as different: JSON, see `overrides`

What only a store has that workers share, see `shared_codec`.

A page number is the page's place in line, from 1 on, followed by two bytes of its host. So a posting list tells by
itself how many of its pages are on one host, and numbers still sort by age.
"""

from __future__ import annotations

import zlib
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import xxhash

from dedup_middleware.errors import UnreadableError

if TYPE_CHECKING:
    from collections.abc import Iterable

# Five bytes count a million million pages. Two of the host are enough: of hosts that share them, a clause may count as
# boilerplate too soon, and then a page is delivered twice.
_NUMBER_BYTES = 7
_HOST_BITS = 16
SIMHASH_BYTES = 16
IDENTITY_BYTES = 16
_TEMPLATE_BYTES = 8
_COUNT_BYTES = 6

NEXT_PLACE_KEY = b"n"
PAGES = (b"p", b"q")
"""The range of keys that hold pages."""
TEXTS = (b"t", b"u")
IN_DOUBT = (b"u", b"v")
DROPPED = (b"j", b"k")
"""The range of keys of dropped items, see `dropped_items`, as the next two."""
DROPPED_OF_PAGES = (b"v", b"w")
RELEASES = (b"r", b"s")
REPEATS = (b"o", b"p")
CANONICAL = (b"a", b"b")
OVERRIDES = (b"x", b"y")


def host_mark(url: str) -> int:
    """Return the two bytes, as a number, that stand for the host and port of *url*; 0 if it has none. 0.5 µs."""
    parts = url.split("/", 3)
    return xxhash.xxh32_intdigest(parts[2].encode("utf8", "surrogatepass")) >> _HOST_BITS if len(parts) > 2 else 0  # noqa: PLR2004


def page_number(place: int, url: str) -> int:
    """Return the number of the page that is the *place*-th in line, 1 or more, and was first seen at *url*."""
    return place << _HOST_BITS | host_mark(url)


def place_of(number: int) -> int:
    """Return the place in line of the stored page with this number, 1 or more."""
    return number >> _HOST_BITS


def host_bits(number: int) -> int:
    """Return the :func:`host_mark` in a page number, stored or pending."""
    return abs(number) & (1 << _HOST_BITS) - 1


class Line(NamedTuple):
    """Where new pages queue up, and how many stand there already."""

    place: int = 1
    """The next page's."""
    owners: int = 0
    duplicates: int = 0
    is_counted: bool = True
    """Whether these are known, and every duplicate has its :func:`repeat_key`."""


def encode_line(line: Line) -> bytes:
    """Return *line* as bytes."""
    counts = (line.owners, line.duplicates) if line.is_counted else ()
    return encode_number(line.place) + b"".join(max(0, count).to_bytes(_COUNT_BYTES, "big") for count in counts)


def decode_line(value: bytes | None) -> Line:
    """Return what :func:`encode_line` made *value* of; ``None`` is that of an empty store."""
    if value is None:
        return Line()
    place, counts = decode_number(value[:_NUMBER_BYTES]), value[_NUMBER_BYTES:]
    if len(counts) != 2 * _COUNT_BYTES:
        return Line(place, is_counted=False)
    return Line(place, decode_number(counts[:_COUNT_BYTES]), decode_number(counts[_COUNT_BYTES:]))


def grown(owners: int, duplicates: int) -> list[tuple[int, int, int]]:
    """Return what `FarStore.add` adds to a line for so many pages more; one that is not counted has no counts."""
    counts = zip((_NUMBER_BYTES, _NUMBER_BYTES + _COUNT_BYTES), (owners, duplicates), strict=True)
    return [(at, _COUNT_BYTES, amount) for at, amount in counts if amount]


def repeat_key(owner: int, number: int) -> bytes:
    """Return the key that says of the page *number* that it is a duplicate of *owner*."""
    return b"o" + encode_number(owner) + encode_number(number)


def repeat_range(owner: int) -> tuple[bytes, bytes]:
    """Return the range of the keys of :func:`repeat_key`."""
    return b"o" + encode_number(owner), b"o" + encode_number(owner + 1)


def clause_key(clause_hash: bytes) -> bytes:
    """Return the key of a clause's posting list."""
    return b"c" + clause_hash


def clause_keys(hashes: Iterable[bytes]) -> list[bytes]:
    """Return the keys of the posting lists of clauses, in their order."""
    return [b"c" + clause_hash for clause_hash in hashes]


def equals_key(exact_digest: bytes, title: str) -> bytes:
    """Return the key that leads from the *exact_digest* of a whole text and its *title* to the pages that have both."""
    return b"e" + xxhash.xxh3_64_digest(exact_digest + title.encode("utf8", "surrogatepass"))


def identity_key(identity: bytes) -> bytes:
    """Return the key that leads from an identity to a page's number."""
    return b"i" + identity


def page_key(number: int) -> bytes:
    """Return the key of a page."""
    return b"p" + encode_number(number)


def text_key(number: int) -> bytes:
    """Return the key of a page's text."""
    return b"t" + encode_number(number)


def item_text_key(number: int) -> bytes:
    """Return the key of what the items of a page said."""
    return b"s" + encode_number(number)


def doubt_key(number: int) -> bytes:
    """Return the key of why the original *number* is in doubt."""
    return b"u" + encode_number(number)


def canonical_key(identity: bytes) -> bytes:
    """Return the key that leads from the *identity* of an address to the owner that names it as its story's."""
    return b"a" + identity


def override_key(identity: bytes, original: bytes) -> bytes:
    """Return the key of the override for the pages with these identities."""
    return b"x" + identity + original


def template_hash(host: str, digest: bytes, title: str) -> bytes:
    """Return 8 bytes that tell a text under its *title*, for the pages of *host*; its owner has *digest*."""
    return xxhash.xxh3_64_digest(f"{host}\0{title}\0".encode("utf8", "surrogatepass") + digest)


def template_key(template: bytes) -> bytes:
    """Return the key that says of the text with that :func:`template_hash` that it is a template."""
    return b"d" + template


def is_template_key(key: bytes) -> bool:
    """Tell whether *key* is one of :func:`template_key`."""
    return key[:1] == b"d" and len(key) == 1 + _TEMPLATE_BYTES


def suspect_key(template: bytes, number: int) -> bytes:
    """Return the key that says of a dropped page that it may fill in the text with that :func:`template_hash`."""
    return b"d" + template + encode_number(number)


def suspect_range(template: bytes) -> tuple[bytes, bytes]:
    """Return the range of the keys of :func:`suspect_key`."""
    return b"d" + template + b"\0", b"d" + template + b"\xff" * (_NUMBER_BYTES + 1)


def last_number(key: bytes) -> int:
    """Return the number in a :func:`suspect_key`, or the duplicate's in a :func:`repeat_key`."""
    return decode_number(key[-_NUMBER_BYTES:])


def suspected_template(key: bytes) -> bytes:
    """Return the :func:`template_hash` in a :func:`suspect_key`."""
    return key[1 : 1 + _TEMPLATE_BYTES]


def encode_number(number: int) -> bytes:
    """Return a number, 0 or more, as seven bytes that sort like it."""
    return number.to_bytes(_NUMBER_BYTES, "big")


def decode_number(value: bytes) -> int:
    """Return the number with which *value* begins, as :func:`encode_number` has made it."""
    return int.from_bytes(value[:_NUMBER_BYTES], "big")


def encode_identity(number: int, body_digest: bytes = b"") -> bytes:
    """Return what an identity leads to: the *number* of a page, and the digest of its bytes, or nothing."""
    return encode_number(number) + body_digest


def decode_identity(value: bytes) -> tuple[int, bytes]:
    """Return what :func:`encode_identity` made *value* of."""
    return decode_number(value[:_NUMBER_BYTES]), value[_NUMBER_BYTES:]


def encode_postings(numbers: tuple[int, ...]) -> bytes:
    """Return a posting list, seven bytes a page."""
    return b"".join(map(encode_number, numbers))


# A page's lists are read when it is judged, and again when it is kept.
@lru_cache(512)
def decode_postings(value: bytes) -> tuple[int, ...]:
    """Return the page numbers of a posting list."""
    if len(value) % _NUMBER_BYTES:
        raise UnreadableError(f"a posting list is {len(value)} bytes long")
    from_bytes = int.from_bytes
    if len(value) == _NUMBER_BYTES:
        return (from_bytes(value, "big"),)
    return tuple([from_bytes(value[i : i + _NUMBER_BYTES], "big") for i in range(0, len(value), _NUMBER_BYTES)])


def encode_simhash(bits: int) -> bytes:
    """Return 128 bits as 16 bytes that sort like them."""
    return bits.to_bytes(SIMHASH_BYTES, "big")


def decode_simhash(value: bytes) -> int:
    """Return the bits that :func:`encode_simhash` made *value* of."""
    return int.from_bytes(value, "big")


def encode_text(paragraphs: tuple[str, ...], limit: int) -> bytes:
    """Pack *paragraphs*, cut to *limit* characters in all."""
    # Level 1 takes a third of the time of 6 for a tenth more bytes.
    return zlib.compress("\n".join(paragraphs)[:limit].encode("utf8", "surrogatepass"), 1)


def decode_text(value: bytes) -> list[str]:
    """Return the paragraphs that :func:`encode_text` packed."""
    try:
        return zlib.decompress(value).decode("utf8", "surrogatepass").split("\n")
    except (zlib.error, UnicodeDecodeError) as error:
        raise UnreadableError(f"a text cannot be read: {error}") from error
