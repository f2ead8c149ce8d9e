"""What a request is: bytes, so that it can be made once more, and an identity. ★ Scrapy glue.

Packed as Scrapy's own job queues do it, with pickle: what a JOBDIR can hold, the journal can. Like a JOBDIR, a store is
therefore to be trusted as much as the spider's code: who can write to it can run code.
"""

from __future__ import annotations

import pickle
import zlib
from typing import TYPE_CHECKING, Any

from scrapy.utils.request import request_from_dict

from dedup_middleware.identity import request_identity, url_identity

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.crawler import Crawler

#: A larger request is not packed: what is kept for each dropped page should not outweigh the page.
MOST_BYTES = 100_000


def pack(request: Request, spider: Spider) -> bytes | None:
    """Return *request* as bytes; ``None`` if that cannot be done: a callback that is no method of *spider*, say."""
    try:
        return _packed(request.to_dict(spider=spider))
    except Exception:  # noqa: BLE001 - anything may be in meta, and raise anything when it is pickled
        return None


def unpack(packed: bytes, spider: Spider) -> Request | None:
    """Return the request that :func:`pack` made *packed* of; ``None`` if the spider has changed too much for that."""
    try:
        return request_from_dict(_unpacked(packed), spider=spider)
    except Exception:  # noqa: BLE001 - whatever a class of the project's own raises
        return None


def undropped(packed: bytes) -> bytes | None:
    """Return the packed request of a page that is not to be judged again; ``None`` if its parts cannot be had here."""
    try:
        fields = _unpacked(packed)
        return _packed({**fields, "meta": {**(fields.get("meta") or {}), "dedup": False}})
    except Exception:  # noqa: BLE001 - whatever a class of the project's own raises
        return None


def identities_of(crawler: Crawler, request: Request, url: str) -> tuple[bytes, ...]:
    """Return what makes a page itself: its *request*, and for GET its final *url* (one URL answers many POSTs)."""
    own = request_identity(crawler.request_fingerprinter.fingerprint(request))
    return (own, url_identity(url)) if request.method == "GET" else (own,)


def _packed(fields: dict[str, Any]) -> bytes | None:
    packed = zlib.compress(pickle.dumps(fields, protocol=4), 1)
    return packed if len(packed) <= MOST_BYTES else None


def _unpacked(packed: bytes) -> dict[str, Any]:
    fields: dict[str, Any] = pickle.loads(zlib.decompress(packed))  # noqa: S301 - see above
    return fields
