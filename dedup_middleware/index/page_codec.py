"""What a store knows of a page <-> bytes.

Pure functions over bytes; whoever changes a format raises ``layout.SCHEMA_VERSION``. What decodes
raises :class:`UnreadableError`.

A page is a byte that says so, two of flags, and sizes and counts of what follows, a byte each, or four where one needs
it:

    url, title, heading      UTF-8
    run, time                UTF-8; by the flags six bytes of a run's twelve hexadecimal digits, and four of seconds
    digest, exact digest     16 and 8 bytes, as they are
    feeds                    JSON, where there are any
    identities               16 bytes each; that of the page's URL, as the last of them, is a flag
    hashes                   of its clauses, as long as those of its store; their skeletons (4), the texts around it and
                             those of them with digits (2), the clauses that its items said beside it, their values (4)
    said                     where its items said a part of its clauses, a bit for each of these
    simhashes                16 bytes each
    source                   16 bytes, for an item
    owner                    for a duplicate its number, score and digest
"""

from __future__ import annotations

import json
import struct
from datetime import datetime
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING

from dedup_middleware.errors import UnreadableError
from dedup_middleware.features import STORED_TEXT_BYTES, ItemContent, PageFeatures
from dedup_middleware.fingerprints.clauses import FAST_HASH_BYTES
from dedup_middleware.identity import url_identity
from dedup_middleware.index.codec import IDENTITY_BYTES, SIMHASH_BYTES, decode_simhash, encode_simhash
from dedup_middleware.model import Delivery, StoredPage
from dedup_middleware.times import as_time

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

_MARK = 5
_WIDE, _HAS_FEATURES, _HAS_FEEDS, _HAS_SAID, _SAID_HAS_TEXT, _SAID_ALL = (1 << bit for bit in range(6))
_URL_IDENTITY, _IS_DUPLICATE, _IS_HEX_RUN, _IS_IN_SECONDS = (1 << bit for bit in range(6, 10))

_HEAD = struct.Struct("<BH")
# The sizes in bytes: url, title, heading, run, time, digest, exact digest, feeds, source, owner's digest, a clause's
# hash; and the counts: identities, the six sections, simhashes.
_SIZES, _SECTIONS = 11, 6
_FIELDS = _SIZES + 1 + _SECTIONS + 1
_NARROW, _BROAD = struct.Struct(f"<{_FIELDS}B"), struct.Struct(f"<{_FIELDS}I")
_OWNER = struct.Struct("<Qd")
_SECONDS = struct.Struct("<I")
_HEX_RUN = 12
_HEX_DIGITS = frozenset("0123456789abcdef")


def encode_page(page: StoredPage) -> bytes:
    """Return *page* as bytes, without its number: about 420 for a news page of 40 clauses. 15 µs."""
    features, said = page.features or PageFeatures(), page.item_content
    hashes = sorted(page.hashes)
    beside = (said.hashes - page.hashes, said.values) if said is not None else ((), ())
    sections = [hashes, *map(sorted, (page.skeletons, features.texts, features.facts, *beside))]
    hash_size = len(next(chain(hashes, sections[4]), b""))
    run, run_flag = _packed_run(page.run)
    time, time_flag = _packed_time(page.time)
    feeds, mask = b"", b""
    flags = run_flag | time_flag | _HAS_FEATURES * (page.features is not None)
    if page.delivery.feeds is not None:
        flags |= _HAS_FEEDS
        feeds = json.dumps(sorted(page.delivery.feeds)).encode() if page.delivery.feeds else b""
    if said is not None:
        flags |= _HAS_SAID | _SAID_HAS_TEXT * said.has_text | _SAID_ALL * (said.hashes >= page.hashes)
        mask = b"" if flags & _SAID_ALL else _mask(hashes, said)
    identities = page.identities
    if identities and identities[-1] == url_identity(page.url):
        flags |= _URL_IDENTITY
        identities = identities[:-1]
    flags |= _IS_DUPLICATE * (page.owner is not None)
    texts = [text.encode("utf8", "surrogatepass") for text in (page.url, features.title, features.heading)]
    sized = [*texts, run, time, page.digest, page.exact_digest, feeds]
    fields = [*map(len, sized), len(page.source), len(page.owner_digest), hash_size]
    fields += [len(identities), *map(len, sections), len(page.simhashes)]
    wide = max(fields) > 255  # noqa: PLR2004 - what fits into a byte
    packed = _HEAD.pack(_MARK, flags | _WIDE * wide) + (_BROAD if wide else _NARROW).pack(*fields)
    simhashes = map(encode_simhash, sorted(page.simhashes))
    owner = () if page.owner is None else (_OWNER.pack(page.owner, page.score), page.owner_digest)
    parts = chain([packed], sized, identities, *sections, [mask], simhashes, [page.source], owner)
    return b"".join(parts)


def decode_page(number: int, value: bytes) -> StoredPage:
    """Return the page that *value* encodes. 15 µs for a news page."""
    try:
        return _decoded(number, value)
    except (ValueError, KeyError, TypeError, struct.error, OverflowError) as error:
        raise UnreadableError(f"page {number} cannot be read: {error}") from error


def owner_in(number: int, value: bytes) -> int | None:
    """Return the owner of the page that *value* encodes, ``None`` if it is one, and read little else. 1 µs."""
    try:
        flags = _flags(value)
        if not flags & _IS_DUPLICATE:
            return None
        sizes = (_BROAD if flags & _WIDE else _NARROW).unpack_from(value, _HEAD.size)
        return int(_OWNER.unpack_from(value, len(value) - sizes[_SIZES - 2] - _OWNER.size)[0])
    except (ValueError, KeyError, TypeError, struct.error) as error:
        raise UnreadableError(f"page {number} cannot be read: {error}") from error


def _flags(value: bytes) -> int:
    mark, flags = _HEAD.unpack_from(value)
    if mark != _MARK:
        raise ValueError("unknown record version")
    return int(flags)


def _decoded(number: int, value: bytes) -> StoredPage:
    flags = _flags(value)
    form = _BROAD if flags & _WIDE else _NARROW
    *sizes, identity_count, a, b, c, d, e, f, simhash_count = form.unpack_from(value, _HEAD.size)
    counts = (a, b, c, d, e, f)
    pieces = _Pieces(value, _HEAD.size + form.size)
    url, *named, run, time, digest, exact_digest, feeds = map(pieces.take, sizes[:8])
    source_size, owner_digest_size, hash_size = sizes[8:]
    if not digest or (any((a, e)) and not hash_size):
        raise ValueError("it has no digest, or hashes of no length")
    address = url.decode("utf8", "surrogatepass")
    identities = pieces.several(IDENTITY_BYTES, identity_count)
    lengths = (hash_size, FAST_HASH_BYTES, STORED_TEXT_BYTES, FAST_HASH_BYTES, hash_size, FAST_HASH_BYTES)
    hashes, skeletons, texts, facts, beside, values = map(pieces.several, lengths, counts)
    features = said = None
    if flags & _HAS_FEATURES:
        title, heading = (text.decode("utf8", "surrogatepass") for text in named)
        features = PageFeatures(title, heading, frozenset(texts), frozenset(facts))
    clauses = frozenset(hashes)
    if flags & _HAS_SAID:
        own = clauses if flags & _SAID_ALL else _chosen(hashes, pieces.take((len(hashes) + 7) // 8))
        said = ItemContent(own.union(beside) if beside else own, frozenset(values), bool(flags & _SAID_HAS_TEXT))
    simhashes = frozenset(map(decode_simhash, pieces.several(SIMHASH_BYTES, simhash_count)))
    source = pieces.take(source_size)
    owner, score, owner_digest = None, 0.0, b""
    if flags & _IS_DUPLICATE:
        owner, score = _OWNER.unpack(pieces.take(_OWNER.size))
        owner_digest = pieces.take(owner_digest_size)
    pieces.end()
    return StoredPage(
        number=number,
        url=address,
        identities=(*identities, url_identity(address)) if flags & _URL_IDENTITY else identities,
        digest=digest,
        hashes=clauses,
        skeletons=frozenset(skeletons),
        delivery=Delivery(_run(run, flags), _time(time, flags), _feeds(feeds, flags)),
        exact_digest=exact_digest,
        source=source,
        features=features,
        item_content=said,
        simhashes=simhashes,
        owner=owner,
        owner_digest=owner_digest,
        score=score,
    )


class _Pieces:
    """Bytes, taken one piece after the other; ``ValueError`` where they do not last, or are left over."""

    def __init__(self, value: bytes, start: int) -> None:
        self._value = value
        self._at = start

    def take(self, size: int) -> bytes:
        start, self._at = self._at, self._at + size
        if self._at > len(self._value):
            raise ValueError("truncated record")
        return self._value[start : self._at]

    def several(self, size: int, count: int) -> tuple[bytes, ...]:
        if not count:
            return ()
        form = _pieces_of(size, count)
        start, self._at = self._at, self._at + form.size
        return form.unpack_from(self._value, start)

    def end(self) -> None:
        if self._at != len(self._value):
            raise ValueError("trailing bytes")


@lru_cache(256)
def _pieces_of(size: int, count: int) -> struct.Struct:
    # A third of the time of slicing.
    if size * count > 2**24:
        raise ValueError("it has more hashes than a page can have")
    return struct.Struct(f"{size}s" * count)


# --- what is packed where it has the form that it mostly has


def _packed_run(run: str) -> tuple[bytes, int]:
    if len(run) == _HEX_RUN and _HEX_DIGITS.issuperset(run):
        return bytes.fromhex(run), _IS_HEX_RUN
    return run.encode("utf8", "surrogatepass"), 0


def _run(packed: bytes, flags: int) -> str:
    return packed.hex() if flags & _IS_HEX_RUN else packed.decode("utf8", "surrogatepass")


@lru_cache(16)
def _packed_time(time: str) -> tuple[bytes, int]:
    try:
        seconds = int(datetime.fromisoformat(time).timestamp())
        packed = _SECONDS.pack(seconds)
        if as_time(seconds) == time:
            return packed, _IS_IN_SECONDS
    except (ValueError, OverflowError, struct.error):
        pass
    return time.encode("utf8", "surrogatepass"), 0


def _time(packed: bytes, flags: int) -> str:
    return as_time(*_SECONDS.unpack(packed)) if flags & _IS_IN_SECONDS else packed.decode("utf8", "surrogatepass")


def _feeds(packed: bytes, flags: int) -> frozenset[str] | None:
    if not flags & _HAS_FEEDS:
        return None
    return frozenset(json.loads(packed)) if packed else frozenset()


def _mask(hashes: Collection[bytes], said: ItemContent) -> bytes:
    """Return a bit for each of *hashes*: whether it was *said*."""
    bits = sum([1 << place for place, h in enumerate(hashes) if h in said.hashes])
    return bits.to_bytes((len(hashes) + 7) // 8, "little")


def _chosen(hashes: Iterable[bytes], mask: bytes) -> frozenset[bytes]:
    bits = int.from_bytes(mask, "little")
    return frozenset(h for place, h in enumerate(hashes) if bits >> place & 1)
