"""Defines what is in a store: keys and values for pages, posting lists, claims and the rest.

Pure functions of bytes. A change of a format raises ``stores.base.SCHEMA_VERSION``. What decodes raises
:class:`UnreadableError`, also for a value that is longer than we write.

    p<page number, 7>          the page, see `encode_page`
    t<page number, 7>          its text, zlib; apart, so that lookups never read it
    s<page number, 7>          the text of its items, zlib beside its own, where that is another one
    i<identity, 16>            page number, 7: the stored page of this request; then the digest, 16, of the bytes that
                               it was read from, where that decides whether it has to be read again
    c<clause hash, 6>          posting list: page numbers, 7 each, oldest first; a page with little text has a
                               digest of all that it shows in place of clauses
    e<text and title, 8>       posting list of a whole text under its title
    o<page number><page number>   nothing: of that original, this page is a duplicate
    x<identity><identity>      two pages that a person has marked as different, see `overrides.Override`
    j, v, r                    dropped items, see `dropped_items`
    k, l, m                    what another detector keeps, see `beside`
    n                          page number: the next place
    b<host, 8>                 what the pages of a host have shown, see `shown`

And where processes share the store:

    w<worker, 8>               the crawls that it has at work; it has the store open, or has died
    g<page number, 7>          worker, 8, and a page whose claim it has open
    q<identity, 16>            page numbers: the open claims of that identity

A page number is the page's place, from 1 on, followed by two bytes of its host. So a posting list shows how many of its
pages are on one host, and numbers still sort by age.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import replace
from functools import lru_cache, partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast

import msgspec
import xxhash

from dedup_middleware.common.bounded import unpacked
from dedup_middleware.errors import UnreadableError
from dedup_middleware.fingerprints import FAST_HASH_BYTES, HASH_BYTES
from dedup_middleware.model import STORED_TEXT_BYTES, TEXT_LIMIT, ItemContent, Kept, PageFeatures, Standing, StoredPage
from dedup_middleware.text import titles

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

_T = TypeVar("_T")

# Five bytes count a million million pages. Two of the host are enough: of hosts that share them, a clause may count as
# boilerplate too soon, and then a page is kept twice.
NUMBER_BYTES = 7
_HOST_BITS = 16
_IDENTITY_BYTES = 16
_WORKER_BYTES = 8
#: A value of this size, in records.
Identity = Annotated[bytes, msgspec.Meta(min_length=_IDENTITY_BYTES, max_length=_IDENTITY_BYTES)]
# A longer value was not written by us. A kept text has `TEXT_LIMIT` characters of at most four bytes. A page with the
# most clauses and texts that are allowed takes 1 MB. A posting list has as many pages as make a clause boilerplate, or
# as have open claims of one identity.
_MAX_TEXT, _MAX_PAGE, _MAX_POSTINGS, _MAX_VALUE = 4 * 120_000, 8 * 2**20, 2**16, 2**20

# --- keys


def within(prefix: bytes) -> tuple[bytes, bytes]:
    """Return the range of the keys that begin with *prefix*, as a scan takes it."""
    return prefix, (int.from_bytes(prefix, "big") + 1).to_bytes(len(prefix), "big")


NEXT_PLACE_KEY = b"n"
PAGES, DUPLICATES, SHOWN = map(within, (b"p", b"o", b"b"))
OVERRIDES, WORKERS, CLAIMED = map(within, (b"x", b"w", b"g"))
DROPPED, DROPPED_OF_PAGES, RELEASES = map(within, (b"j", b"v", b"r"))


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


def numbered(kind: bytes, number: int) -> bytes:
    """Return the key of this *kind* for the page *number*."""
    return kind + encode_number(number)


# Of a page's number, of an identity, of a worker: as in the table above.
page_key, text_key, item_text_key = (partial(numbered, kind) for kind in (b"p", b"t", b"s"))
claimed_key, repeats_key = (partial(numbered, kind) for kind in (b"g", b"o"))
identity_key, claims_key, worker_key = (kind.__add__ for kind in (b"i", b"q", b"w"))


def shown_key(url: str, key: bytes) -> bytes:
    """Return the key of what the pages of the host of *url* have shown, by the *key* of the store."""
    parts = url.split("/", 3)
    return b"b" + blake2b(_bytes(parts[2] if len(parts) > 2 else ""), key=key[:64], digest_size=8).digest()  # noqa: PLR2004


def clause_keys(hashes: Iterable[bytes]) -> list[bytes]:
    """Return the keys of the posting lists of clauses, in their order."""
    return [*map(b"c".__add__, hashes)]


def whole_text_key(exact_digest: bytes, features: PageFeatures | None) -> bytes | None:
    """Return the key of the posting list of a whole text under its title; ``None`` where its digest is not known."""
    if not exact_digest:
        return None
    title = "" if features is None else titles.main_part(features.title, features.heading)
    return b"e" + xxhash.xxh3_64_digest(exact_digest + _bytes(title))


def listed(pages: Iterable[StoredPage]) -> frozenset[bytes]:
    """Return the keys of the posting lists that lead to *pages*."""
    keys: set[bytes] = set()
    for page in pages:
        keys.update(clause_keys(page.hashes))
        if page.is_claimed:
            keys.update(map(claims_key, page.identities))
        if (key := whole_text_key(page.exact_digest, page.features)) is not None:
            keys.add(key)
    return frozenset(keys)


def repeat_key(original: int, number: int) -> bytes:
    """Return the key that marks the page *number* as a duplicate of *original*."""
    return repeats_key(original) + encode_number(number)


def last_number(key: bytes) -> int:
    """Return the number with which a *key* ends: the duplicate's in a :func:`repeat_key`."""
    return decode_number(key[-NUMBER_BYTES:])


# --- page numbers


@lru_cache(256)
def host_mark(url: str, key: bytes) -> int:
    """Return the two bytes, as a number, that stand for the host and port of *url*; 0 if it has none.

    Hashed with the *key* of the store, so that no site can choose a host that has the mark of another one.
    """
    parts = url.split("/", 3)
    if len(parts) <= 2:  # noqa: PLR2004
        return 0
    return int.from_bytes(blake2b(_bytes(parts[2]), key=key[:64], digest_size=_HOST_BITS // 8).digest(), "big")


def page_number(place: int, mark: int) -> int:
    """Return the number of the page at that *place*, 1 or more, that was first seen on the host with this *mark*."""
    return place << _HOST_BITS | mark


def host_bits(number: int) -> int:
    """Return the :func:`host_mark` in a page number, stored or pending."""
    return abs(number) & (1 << _HOST_BITS) - 1


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


def decode_identity(value: bytes) -> tuple[int, bytes]:
    """Return what an identity leads to: the number of a page, and the digest of its bytes, or nothing."""
    return decode_number(value), value[NUMBER_BYTES:]


# --- texts: surrogates are kept, too


_bytes = partial(str.encode, encoding="utf8", errors="surrogatepass")
_text = partial(bytes.decode, encoding="utf8", errors="surrogatepass")


# Beside level 1, real texts take 4 to 10 % less, and 10 µs more; level 6 takes a third more of time for 2 % more.
_LEVEL = 4


def _dictionary(texts: Iterable[str]) -> bytes:
    """Return what zlib can refer to: the last bytes of *texts* that its window holds."""
    return _bytes("\n".join(texts)[:TEXT_LIMIT])[-(2**15) :]


def whole(text: str) -> str:
    """Return *text* as records and JSON can have it: without surrogates."""
    return text.encode("utf8", "replace").decode("utf8")


def encode_text(paragraphs: Iterable[str], limit: int = TEXT_LIMIT, beside: Iterable[str] = ()) -> bytes:
    """Pack *paragraphs*, cut to *limit* characters in all: in few bytes if most of them are those *beside*."""
    dictionary = _dictionary(beside)
    packer = zlib.compressobj(_LEVEL, zdict=dictionary) if dictionary else zlib.compressobj(_LEVEL)
    return packer.compress(_bytes("\n".join(paragraphs)[:limit])) + packer.flush()


def decode_text(value: bytes, beside: Iterable[str] = ()) -> list[str]:
    """Return the paragraphs that :func:`encode_text` packed."""
    try:
        return _text(unpacked(value, _MAX_TEXT, _dictionary(beside))).split("\n")
    except UnicodeDecodeError as error:
        raise UnreadableError(f"a text cannot be read: {error}") from error


# Between the texts and the values of items; the characters of the values that are kept.
_BETWEEN, _VALUES_LIMIT = "\n\x1e\n", 10_000


def encode_item_text(texts: Iterable[str], values: Iterable[str], beside: Iterable[str]) -> bytes:
    """Pack the *texts* and *values* of items in few bytes if most of them are in the text *beside*."""
    packed = "\n".join(texts)[:TEXT_LIMIT], "\n".join(values)[:_VALUES_LIMIT]
    return encode_text([_BETWEEN.join(packed)], TEXT_LIMIT + len(_BETWEEN) + _VALUES_LIMIT, beside)


def decode_item_text(value: bytes, beside: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the texts and values that :func:`encode_item_text` packed."""
    texts, _, values = "\n".join(decode_text(value, beside)).partition(_BETWEEN)
    return texts.split("\n") if texts else [], values.split("\n") if values else []


# --- records, in MessagePack

# Sets are sorted: the same page makes the same export.
encode = msgspec.msgpack.Encoder(order="deterministic").encode


@lru_cache
def _decoder(kind: Any) -> msgspec.msgpack.Decoder[Any]:
    return msgspec.msgpack.Decoder(kind)


def decode(kind: type[_T], value: bytes, most: int = _MAX_VALUE) -> _T:
    """Return the *kind* of record that :func:`encode` has made *value* of; not of more than *most* bytes."""
    if len(value) > most:
        raise UnreadableError(f"a record of the kind {kind.__name__} has {len(value)} bytes")
    try:
        record: _T = _decoder(cast("Hashable", kind)).decode(value)
    except ValueError as error:
        raise UnreadableError(f"a record of the kind {kind.__name__} cannot be read") from error
    return record


class _Page(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """A page as it is stored. Texts from the web are bytes, for surrogates; hashes are sorted, and joined.

    What neighbours have in common comes first, and hashes last: an engine that compresses its blocks finds longer runs.
    """

    run: str
    time: str
    feeds: frozenset[str] | None
    source: bytes
    url: bytes
    features: tuple[bytes, bytes, bytes, bytes, bytes, bytes] | None
    """Title, heading, texts and facts of the context, the marks of the content, the sketch of the template."""
    items: tuple[bool, bytes, bytes, bool, bytes] | None
    """Of the content of its items: whether all hashes of the page are in it, the others, values, has_text, digest."""
    original: tuple[int, Annotated[float, msgspec.Meta(ge=0, le=1)], bytes] | None
    """Of a duplicate: its original's number, its score, and the original's content."""
    standing: tuple[bytes, str, float | None, str] | None
    """Of an original: see `Standing`."""
    canonical: bytes
    identities: bytes
    digest: Annotated[bytes, msgspec.Meta(min_length=1)]
    exact_digest: bytes
    hashes: bytes


def encode_page(page: StoredPage) -> bytes:
    """Return *page* as bytes, without its number: about 450 for a news page of 40 clauses."""
    shown, content = page.features, page.item_content
    features = items = None
    if shown is not None:
        texts, facts, marks, template = map(_joined, (shown.texts, shown.facts, shown.marks, shown.template))
        features = (_bytes(shown.title), _bytes(shown.heading), texts, facts, marks, template)
    if content is not None:
        has_all = content.hashes >= page.hashes
        others = content.hashes - page.hashes if has_all else content.hashes
        items = (has_all, _joined(others), _joined_items(content.items), content.has_text, content.digest)
    record = _Page(
        page.run,
        page.time,
        page.kept.feeds,
        page.source,
        _bytes(page.url),
        features,
        items,
        None if page.original is None else (page.original, page.score, page.original_digest),
        page.standing,
        page.canonical,
        b"".join(page.identities),
        page.digest,
        page.exact_digest,
        _joined(page.hashes),
    )
    return encode(record)


def decode_page(number: int, value: bytes) -> StoredPage:
    """Return the page that *value* encodes."""
    record = decode(_Page, value, _MAX_PAGE)
    features = content = None
    try:
        hashes = frozenset(_split(record.hashes))
        if record.features is not None:
            title, heading, texts, *hashed = record.features
            facts, marks, template = (frozenset(_split(each, FAST_HASH_BYTES)) for each in hashed)
            shown = frozenset(_split(texts, STORED_TEXT_BYTES))
            features = PageFeatures(_text(title), _text(heading), shown, facts, marks=marks, template=template)
        if record.items is not None:
            has_all, others, values, has_text, digest = record.items
            own, short = frozenset(_split(others)), _split_items(values)
            content = ItemContent(hashes | own if has_all else own, short, has_text, digest=digest)
        original, score, original_digest = record.original or (None, 0.0, b"")
        return StoredPage(
            number=number,
            url=_text(record.url),
            identities=tuple(_split(record.identities, _IDENTITY_BYTES)),
            digest=record.digest,
            hashes=hashes,
            kept=Kept(record.run, record.time, record.feeds),
            exact_digest=record.exact_digest,
            source=record.source,
            features=features,
            item_content=content,
            original=original,
            original_digest=original_digest,
            score=score,
            standing=None if record.standing is None else Standing(*record.standing),
            canonical=record.canonical,
        )
    except ValueError as error:
        raise UnreadableError(f"page {number} cannot be read") from error


def _joined(hashes: Iterable[bytes]) -> bytes:
    return b"".join(sorted(hashes))


_SIZES = HASH_BYTES, FAST_HASH_BYTES, STORED_TEXT_BYTES, _IDENTITY_BYTES
_HASHES = {size: re.compile(rb".{%d}" % size, re.DOTALL) for size in _SIZES}


# Between two items of a page; what has this hash divides one, whose copies are kept then.
_NEXT_ITEM = b"\0" * FAST_HASH_BYTES


def _joined_items(items: Iterable[Iterable[bytes]]) -> bytes:
    return _NEXT_ITEM.join(sorted(map(_joined, items)))


def _split_items(joined: bytes) -> frozenset[frozenset[bytes]]:
    items: list[list[bytes]] = [[]]
    for each in _split(joined, FAST_HASH_BYTES):
        if each == _NEXT_ITEM:
            items.append([])
        else:
            items[-1].append(each)
    return frozenset(frozenset(each) for each in items if each)


def _split(joined: bytes, size: int = HASH_BYTES) -> list[bytes]:
    if len(joined) % size:
        raise ValueError("its hashes are cut off")
    return _HASHES[size].findall(joined)


def encode_claim(worker: bytes, page: StoredPage) -> bytes:
    """Return the value of a page whose claim *worker* has open."""
    return worker + encode_page(page)


def decode_claim(number: int, value: bytes) -> tuple[bytes, StoredPage]:
    """Return what :func:`encode_claim` has made *value* of; the page is marked as claimed."""
    return value[:_WORKER_BYTES], replace(decode_page(number, value[_WORKER_BYTES:]), is_claimed=True)
