"""What earlier versions have written of a page, in JSON, and what is certain of an owner, which still is.

Pure functions over bytes; whoever changes a format raises ``layout.SCHEMA_VERSION``.

A page is a JSON head, a newline, 8 bytes of its letters, and hashes: of its clauses (8 bytes each) and their skeletons
(4), of the texts around it and those of them with digits (2), of the clauses (8) that its items said beside it and of
their values (4). Those of schemas 2 and 3 have no letters, and clauses and skeletons only; those of 2 know of no feeds.
"""

from __future__ import annotations

import json
from typing import Any

from dedup_middleware.errors import UnreadableError
from dedup_middleware.features import STORED_TEXT_BYTES, ItemContent, PageFeatures
from dedup_middleware.fingerprints.clauses import FAST_HASH_BYTES
from dedup_middleware.index.codec import SIMHASH_BYTES, decode_simhash
from dedup_middleware.model import HASH_BYTES, Delivery, StoredPage

# Bytes of each hash, in the order of the sections.
_SIZES = (HASH_BYTES, FAST_HASH_BYTES, STORED_TEXT_BYTES, STORED_TEXT_BYTES, HASH_BYTES, FAST_HASH_BYTES)
# Eight bytes of zeros: no keyed hash is that.
_UNKNOWN = bytes(HASH_BYTES)


def decode_page(number: int, value: bytes) -> StoredPage:
    """Return the page that *value* encodes; ``ValueError``, ``KeyError`` or ``TypeError`` for what is none."""
    head_bytes, _, body = value.partition(b"\n")
    head = json.loads(head_bytes.decode("utf8", "surrogatepass"))
    exact_digest, sections = _sections(head, body)
    hashes, skeletons, texts, facts, beside, values = sections
    return StoredPage(
        number=number,
        url=head["url"],
        identities=tuple(bytes.fromhex(i) for i in head["identities"]),
        digest=bytes.fromhex(head["digest"]),
        hashes=frozenset(hashes),
        skeletons=frozenset(skeletons),
        exact_digest=b"" if exact_digest == _UNKNOWN else exact_digest,
        delivery=_delivery(head),
        source=bytes.fromhex(head.get("source", "")),
        features=_features(head, texts, facts),
        item_content=_said(head, hashes, beside, values),
        simhashes=frozenset(map(decode_simhash, _cut(bytes.fromhex(head.get("simhashes", "")), SIMHASH_BYTES)[0])),
        owner=head.get("owner"),
        owner_digest=bytes.fromhex(head.get("owner_digest", "")),
        score=head.get("score", 0.0),
    )


def owner_in(value: bytes) -> int | None:
    """Return the owner of the page that *value* encodes, ``None`` if it is one; raises as :func:`decode_page` does."""
    head, _, _ = value.partition(b"\n")
    # Inside of a string, the quotation marks would be escaped.
    if b',"owner":' not in head:
        return None
    owner: int | None = json.loads(head.decode("utf8", "surrogatepass"))["owner"]
    return owner


def _sections(head: dict[str, Any], body: bytes) -> tuple[bytes, list[list[bytes]]]:
    """Return the letters and the hashes in the *body* of a page."""
    if "counts" not in head:
        hashes, body = _cut(body, HASH_BYTES, head["clauses"])
        return _UNKNOWN, [hashes, _cut(body, FAST_HASH_BYTES)[0], [], [], [], []]
    exact_digest, body = body[:HASH_BYTES], body[HASH_BYTES:]
    sections = []
    for size, count in zip(_SIZES, head["counts"], strict=True):
        pieces, body = _cut(body, size, count)
        sections.append(pieces)
    if body:
        raise ValueError("it goes on")
    return exact_digest, sections


def encode_certain(before: Delivery | None) -> bytes:
    """Return what was certain of an owner before it was delivered once more; empty if nothing was."""
    return b"" if before is None else json.dumps(_delivery_fields(before)).encode()


def decode_certain(value: bytes) -> Delivery | None:
    """Return what :func:`encode_certain` made *value* of."""
    try:
        return _delivery(json.loads(value)) if value else None
    except (ValueError, KeyError, TypeError) as error:
        raise UnreadableError(f"an owner that is not sealed cannot be read: {error}") from error


def _delivery_fields(delivery: Delivery) -> dict[str, Any]:
    fields: dict[str, Any] = {"run": delivery.run, "time": delivery.time}
    return fields if delivery.feeds is None else fields | {"feeds": sorted(delivery.feeds)}


def _delivery(fields: dict[str, Any]) -> Delivery:
    run, time, feeds = fields["run"], fields["time"], fields.get("feeds")
    return Delivery(run, time, None if feeds is None else frozenset(feeds))


def _features(head: dict[str, Any], texts: list[bytes], facts: list[bytes]) -> PageFeatures | None:
    # Of pages of before schema 4 nothing is known but a hash of their title.
    if "title" not in head or "counts" not in head:
        return None
    return PageFeatures(head["title"], head.get("heading", ""), frozenset(texts), frozenset(facts))


def _said(head: dict[str, Any], hashes: list[bytes], beside: list[bytes], values: list[bytes]) -> ItemContent | None:
    if "said" not in head:
        return None
    mask, has_text = head["said"]
    own = (h for place, h in enumerate(hashes) if mask >> place & 1)
    return ItemContent(frozenset(beside).union(own), frozenset(values), bool(has_text))


def _cut(value: bytes, size: int, count: int | None = None) -> tuple[list[bytes], bytes]:
    """Return the first *count* pieces of *size* bytes of *value*, or all there are, and what is left of it."""
    end = len(value) if count is None else count * size
    if not 0 <= end <= len(value) or end % size:
        raise ValueError("it was cut")
    return [value[i : i + size] for i in range(0, end, size)], value[end:]
