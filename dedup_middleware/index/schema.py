"""What is in a store: pages, posting lists and claims <-> keys and values.

Pure functions of bytes. A change of a format raises ``stores.base.SCHEMA_VERSION``. What decodes raises
:class:`UnreadableError`.

    p<page number, 7>          the page, see `encode_page`
    t<page number, 7>          its text, zlib; apart, so that lookups never read it
    s<page number, 7>          the text of its items, zlib, where that is not its own
    i<identity, 16>            page number, 7: which stored page this request is; then the digest, 16, of the bytes that
                               it was read from, where that tells whether it has to be read again
    c<clause hash, 6>          posting list: page numbers, 7 each, oldest first
    e<text and title, 8>       posting list of a whole text under its title
    a<identity, 16>            page number: the original that names this address, of its own host, as its story's
    o<page number><page number>   nothing: of that original, this page is a duplicate
    u<page number, 7>          why an original is in doubt, see `in_doubt`
    j, v, r                    dropped items, see `dropped_items`
    d<template, 8>             nothing: that text is a template
    d<template, 8><page number>   nothing: the page was dropped for that text, which may be a template
    x<identity><identity>      two pages that a person has marked as different, see `overrides`
    k, l, m                    what published methods look pages up by, see `prints`
    n                          page number: the next place in line

And where processes share the store:

    w<worker, 8>               nothing: it has the store open, or has died
    g<page number, 7>          worker, 8, and a page whose claim it has open
    q<identity, 16>            page numbers: the open claims of that identity
    h<host, 8>                 titles of its first pages, a line each

A page number is the page's place in line, from 1 on, followed by two bytes of its host. So a posting list tells by
itself how many of its pages are on one host, and numbers still sort by age.
"""

from __future__ import annotations

import zlib
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec
import xxhash

from dedup_middleware.bounded import unpacked
from dedup_middleware.errors import UnreadableError
from dedup_middleware.fingerprints import FAST_HASH_BYTES
from dedup_middleware.model import STORED_TEXT_BYTES, ItemContent, Kept, PageFeatures, StoredPage
from dedup_middleware.text import titles
from dedup_middleware.times import as_time
from dedup_middleware.urls import url_identity

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

# Five bytes count a million million pages. Two of the host are enough: of hosts that share them, a clause may count as
# boilerplate too soon, and then a page is kept twice.
NUMBER_BYTES = 7
_HOST_BITS = 16
IDENTITY_BYTES = 16
TEMPLATE_BYTES = 8
_WORKER_BYTES = 8
# A longer value was not written by us. A kept text has `TEXT_LIMIT` characters of at most four bytes. A page with the
# most clauses and texts that are allowed takes 1 MB. A posting list has as many pages as make a clause boilerplate, or
# as have open claims of one identity.
_MAX_TEXT, _MAX_PAGE, _MAX_POSTINGS = 4 * 20_000, 8 * 2**20, 2**16

# --- keys

NEXT_PLACE_KEY = b"n"
# The ranges of keys of one kind.
PAGES = (b"p", b"q")
TEXTS = (b"t", b"u")
IN_DOUBT = (b"u", b"v")
DROPPED = (b"j", b"k")
DROPPED_OF_PAGES = (b"v", b"w")
RELEASES = (b"r", b"s")
CANONICAL = (b"a", b"b")
TEMPLATES = (b"d", b"e")
OVERRIDES = (b"x", b"y")
WORKERS = (b"w", b"x")
CLAIMED = (b"g", b"h")
#: The kinds of keys whose value is a posting list.
POSTINGS = frozenset((b"c", b"e", b"q"))


def page_key(number: int) -> bytes:
    """Return the key of a page."""
    return b"p" + encode_number(number)


def text_key(number: int) -> bytes:
    """Return the key of a page's text."""
    return b"t" + encode_number(number)


def item_text_key(number: int) -> bytes:
    """Return the key of the text of a page's items."""
    return b"s" + encode_number(number)


def identity_key(identity: bytes) -> bytes:
    """Return the key that leads from an identity to a page's number."""
    return b"i" + identity


def clause_keys(hashes: Iterable[bytes]) -> list[bytes]:
    """Return the keys of the posting lists of clauses, in their order."""
    return [b"c" + clause_hash for clause_hash in hashes]


def whole_text_key(exact_digest: bytes, features: PageFeatures | None) -> bytes | None:
    """Return the key of the posting list of a whole text under its title; ``None`` where its digest is not known."""
    if not exact_digest:
        return None
    title = "" if features is None else titles.main_part(features)
    return b"e" + xxhash.xxh3_64_digest(exact_digest + _bytes(title))


def canonical_key(identity: bytes) -> bytes:
    """Return the key that leads from the *identity* of an address to the original that names it as its story's."""
    return b"a" + identity


def repeat_key(original: int, number: int) -> bytes:
    """Return the key that marks the page *number* as a duplicate of *original*."""
    return b"o" + encode_number(original) + encode_number(number)


def repeat_range(original: int) -> tuple[bytes, bytes]:
    """Return the range of the keys of :func:`repeat_key`."""
    return b"o" + encode_number(original), b"o" + encode_number(original + 1)


def doubt_key(number: int) -> bytes:
    """Return the key of why the original *number* is in doubt."""
    return b"u" + encode_number(number)


def override_key(identity: bytes, original: bytes) -> bytes:
    """Return the key of the override for the pages with these identities."""
    return b"x" + identity + original


def template_hash(host: str, digest: bytes, title: str) -> bytes:
    """Return 8 bytes that identify a text under its *title*, for the pages of *host*; its original has *digest*."""
    return xxhash.xxh3_64_digest(_bytes(f"{host}\0{title}\0") + digest)


def template_key(template: bytes) -> bytes:
    """Return the key that marks the text with that :func:`template_hash` as a template."""
    return b"d" + template


def is_template_key(key: bytes) -> bool:
    """Return whether *key* is one of :func:`template_key`."""
    return key[:1] == b"d" and len(key) == 1 + TEMPLATE_BYTES


def suspect_key(template: bytes, number: int) -> bytes:
    """Return the key that marks a dropped page as one that may fill in the text with that :func:`template_hash`."""
    return b"d" + template + encode_number(number)


def suspect_range(template: bytes) -> tuple[bytes, bytes]:
    """Return the range of the keys of :func:`suspect_key`."""
    return b"d" + template + b"\0", b"d" + template + b"\xff" * (NUMBER_BYTES + 1)


def suspected_template(key: bytes) -> bytes:
    """Return the :func:`template_hash` in a :func:`suspect_key`."""
    return key[1 : 1 + TEMPLATE_BYTES]


def last_number(key: bytes) -> int:
    """Return the number in a :func:`suspect_key`, or the duplicate's in a :func:`repeat_key`."""
    return decode_number(key[-NUMBER_BYTES:])


def worker_key(worker: bytes) -> bytes:
    """Return the key that marks *worker* as one that has the store open, or has died."""
    return b"w" + worker


def claimed_key(number: int) -> bytes:
    """Return the key of a page whose claim is open, where processes share the store."""
    return b"g" + encode_number(number)


def claims_key(identity: bytes) -> bytes:
    """Return the key that leads from an *identity* to its open claims."""
    return b"q" + identity


def titles_key(host: str) -> bytes:
    """Return the key of the titles of the first pages of *host*."""
    return b"h" + xxhash.xxh3_64_digest(_bytes(host))


# --- numbers


def host_mark(url: str) -> int:
    """Return the two bytes, as a number, that stand for the host and port of *url*; 0 if it has none. 0.5 µs."""
    parts = url.split("/", 3)
    return xxhash.xxh32_intdigest(_bytes(parts[2])) >> _HOST_BITS if len(parts) > 2 else 0  # noqa: PLR2004


def page_number(place: int, url: str) -> int:
    """Return the number of the page that is the *place*-th in line, 1 or more, and was first seen at *url*."""
    return place << _HOST_BITS | host_mark(url)


def place_of(number: int) -> int:
    """Return the place in line of the stored page with this number, 1 or more."""
    return number >> _HOST_BITS


def host_bits(number: int) -> int:
    """Return the :func:`host_mark` in a page number, stored or pending."""
    return abs(number) & (1 << _HOST_BITS) - 1


def encode_number(number: int) -> bytes:
    """Return a number, 0 or more, as seven bytes that sort like it; :class:`UnreadableError` if no page can have it."""
    try:
        return number.to_bytes(NUMBER_BYTES, "big")
    except OverflowError as error:
        raise UnreadableError(f"no page can have the number {number}") from error


def decode_number(value: bytes) -> int:
    """Return the number with which *value* begins, as :func:`encode_number` has made it."""
    if len(value) < NUMBER_BYTES:
        raise UnreadableError(f"a page number is {len(value)} bytes long")
    return int.from_bytes(value[:NUMBER_BYTES], "big")


def encode_postings(numbers: Iterable[int]) -> bytes:
    """Return a posting list, seven bytes a page."""
    return b"".join(map(encode_number, numbers))


# A page's lists are read when it is checked, and again when it is kept.
@lru_cache(512)
def decode_postings(value: bytes) -> tuple[int, ...]:
    """Return the page numbers of a posting list."""
    if len(value) % NUMBER_BYTES or len(value) > _MAX_POSTINGS:
        raise UnreadableError(f"a posting list is {len(value)} bytes long")
    from_bytes = int.from_bytes
    if len(value) == NUMBER_BYTES:
        return (from_bytes(value, "big"),)
    return tuple([from_bytes(value[i : i + NUMBER_BYTES], "big") for i in range(0, len(value), NUMBER_BYTES)])


def encode_identity(number: int, body_digest: bytes = b"") -> bytes:
    """Return what an identity leads to: the *number* of a page, and the digest of its bytes, or nothing."""
    return encode_number(number) + body_digest


def decode_identity(value: bytes) -> tuple[int, bytes]:
    """Return what :func:`encode_identity` made *value* of."""
    return decode_number(value), value[NUMBER_BYTES:]


# --- texts


def _bytes(text: str) -> bytes:
    return text.encode("utf8", "surrogatepass")


def encode_text(paragraphs: Iterable[str], limit: int) -> bytes:
    """Pack *paragraphs*, cut to *limit* characters in all."""
    # Level 1 takes a third of the time of 6 for a tenth more bytes.
    return zlib.compress(_bytes("\n".join(paragraphs)[:limit]), 1)


def decode_text(value: bytes) -> list[str]:
    """Return the paragraphs that :func:`encode_text` packed."""
    try:
        return unpacked(value, _MAX_TEXT).decode("utf8", "surrogatepass").split("\n")
    except UnicodeDecodeError as error:
        raise UnreadableError("a text cannot be read") from error


def encode_titles(found: Iterable[str]) -> bytes:
    """Return titles, each on one line, as they are stored."""
    return _bytes("\n".join(found))


def decode_titles(value: bytes) -> list[str]:
    """Return the titles in a value of :func:`encode_titles`."""
    try:
        return value.decode("utf8", "surrogatepass").split("\n")
    except UnicodeDecodeError as error:
        raise UnreadableError(str(error)) from error


# --- pages


class _Record(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """A page as it is stored, in MessagePack. Texts are UTF-8, surrogates too; hashes are joined, and sorted."""

    url: bytes
    identities: bytes
    """That of the URL, if it is the last of them, is left out."""
    has_url_identity: bool
    digest: bytes
    exact_digest: bytes
    hash_bytes: int
    hashes: bytes
    masked_hashes: bytes
    run: bytes
    """Six bytes for twelve hexadecimal digits, as mostly; else UTF-8."""
    has_hex_run: bool
    time: int | str
    """In seconds, where it is the time that they stand for."""
    feeds: list[str] | None
    source: bytes
    features: tuple[bytes, bytes, bytes, bytes] | None
    """Title, heading, the texts around the page and those of them with facts."""
    items: tuple[bytes, bytes, bytes, bool] | None
    """Of the content of its items: a bit for each of the page's hashes, empty for all; the others; values; has_text."""
    original: tuple[int, float, bytes] | None
    """Of a duplicate: its original's number, its score, and the original's content."""


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Record)
_HEX_RUN, _HEX_DIGITS = 12, frozenset("0123456789abcdef")


def encode_page(page: StoredPage) -> bytes:
    """Return *page* as bytes, without its number: about 430 for a news page of 40 clauses."""
    features, content = page.features, page.item_content
    hashes = sorted(page.hashes)
    identities = page.identities
    has_url_identity = bool(identities) and identities[-1] == url_identity(page.url)
    items, hash_bytes = None, len(hashes[0]) if hashes else 0
    if content is not None:
        mask = b"" if content.hashes >= page.hashes else _mask(hashes, content.hashes)
        beside = sorted(content.hashes - page.hashes)
        hash_bytes = hash_bytes or len(next(iter(beside), b""))
        items = (mask, b"".join(beside), b"".join(sorted(content.values)), content.has_text)
    has_hex_run = len(page.run) == _HEX_RUN and _HEX_DIGITS.issuperset(page.run)
    record = _Record(
        url=_bytes(page.url),
        identities=b"".join(identities[:-1] if has_url_identity else identities),
        has_url_identity=has_url_identity,
        digest=page.digest,
        exact_digest=page.exact_digest,
        hash_bytes=hash_bytes,
        hashes=b"".join(hashes),
        masked_hashes=b"".join(sorted(page.masked_hashes)),
        run=bytes.fromhex(page.run) if has_hex_run else _bytes(page.run),
        has_hex_run=has_hex_run,
        time=_seconds(page.time),
        feeds=None if page.kept.feeds is None else sorted(page.kept.feeds),
        source=page.source,
        features=None if features is None else _packed_features(features),
        items=items,
        original=None if page.original is None else (page.original, page.score, page.original_digest),
    )
    return _encoder.encode(record)


def _packed_features(features: PageFeatures) -> tuple[bytes, bytes, bytes, bytes]:
    texts, facts = (b"".join(sorted(hashes)) for hashes in (features.texts, features.facts))
    return _bytes(features.title), _bytes(features.heading), texts, facts


def decode_page(number: int, value: bytes) -> StoredPage:
    """Return the page that *value* encodes."""
    try:
        _check(len(value) <= _MAX_PAGE, "it is too long")
        record = _decoder.decode(value)
        _check(record.digest, "it has no digest")
        hashes = _split(record.hashes, record.hash_bytes)
        clauses = frozenset(hashes)
        url = record.url.decode("utf8", "surrogatepass")
        identities = _split(record.identities, IDENTITY_BYTES)
        features = content = None
        if record.features is not None:
            title, heading, texts, facts = record.features
            features = PageFeatures(
                title.decode("utf8", "surrogatepass"),
                heading.decode("utf8", "surrogatepass"),
                frozenset(_split(texts, STORED_TEXT_BYTES)),
                frozenset(_split(facts, FAST_HASH_BYTES)),
            )
        if record.items is not None:
            mask, beside, values, has_text = record.items
            own = _chosen(hashes, mask) if mask else clauses
            all_hashes = own.union(_split(beside, record.hash_bytes)) if beside else own
            content = ItemContent(all_hashes, frozenset(_split(values, FAST_HASH_BYTES)), has_text)
        original, score, original_content = record.original or (None, 0.0, b"")
        return StoredPage(
            number=number,
            url=url,
            identities=(*identities, url_identity(url)) if record.has_url_identity else identities,
            digest=record.digest,
            hashes=clauses,
            masked_hashes=frozenset(_split(record.masked_hashes, FAST_HASH_BYTES)),
            kept=Kept(
                record.run.hex() if record.has_hex_run else record.run.decode("utf8", "surrogatepass"),
                as_time(record.time) if isinstance(record.time, int) else record.time,
                None if record.feeds is None else frozenset(record.feeds),
            ),
            exact_digest=record.exact_digest,
            source=record.source,
            features=features,
            item_content=content,
            original=original,
            original_digest=original_content,
            score=score,
        )
    except (ValueError, OverflowError, OSError, msgspec.MsgspecError) as error:
        raise UnreadableError(f"page {number} cannot be read") from error


def original_in(number: int, value: bytes) -> int | None:
    """Return the number of the original of the page that *value* encodes; ``None`` if it is one itself. 1 µs."""
    try:
        _check(len(value) <= _MAX_PAGE, "it is too long")
        original = _decoder.decode(value).original
    except ValueError as error:
        raise UnreadableError(f"page {number} cannot be read") from error
    return None if original is None else original[0]


def encode_claim(worker: bytes, page: StoredPage) -> bytes:
    """Return the value of a page whose claim *worker* has open."""
    return worker + encode_page(page)


def worker_of_claim(value: bytes) -> bytes:
    """Return the worker in a value of :func:`encode_claim`."""
    return value[:_WORKER_BYTES]


def page_of_claim(number: int, value: bytes) -> StoredPage:
    """Return the page in a value of :func:`encode_claim`."""
    return decode_page(number, value[_WORKER_BYTES:])


def _check(holds: object, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)


def _split(joined: bytes, size: int) -> tuple[bytes, ...]:
    if not joined:
        return ()
    _check(size >= 1 and not len(joined) % size, "its hashes are cut off")
    return tuple([joined[i : i + size] for i in range(0, len(joined), size)])


def _mask(hashes: Collection[bytes], chosen: Collection[bytes]) -> bytes:
    """Return a bit for each of *hashes*: whether it is one of the *chosen*; a byte at least."""
    bits = sum([1 << place for place, h in enumerate(hashes) if h in chosen])
    return bits.to_bytes(len(hashes) // 8 + 1, "little")


def _chosen(hashes: Collection[bytes], mask: bytes) -> frozenset[bytes]:
    _check(len(mask) == len(hashes) // 8 + 1, "its hashes are cut off")
    return frozenset(h for place, h in enumerate(hashes) if mask[place >> 3] >> (place & 7) & 1)


@lru_cache(16)
def _seconds(time: str) -> int | str:
    try:
        seconds = int(datetime.fromisoformat(time).timestamp())
        return seconds if as_time(seconds) == time else time
    except (ValueError, OverflowError, OSError):
        return time


def listed(pages: Iterable[StoredPage]) -> frozenset[bytes]:
    """Return the keys of the posting lists that lead to *pages*."""
    keys: set[bytes] = set()
    for page in pages:
        keys.update(clause_keys(page.hashes))
        if (key := whole_text_key(page.exact_digest, page.features)) is not None:
            keys.add(key)
    return frozenset(keys)
