"""What a request is: bytes, so that it can be made once more, and what makes its page itself. ★ Scrapy glue.

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
#: The key in a request's meta under which stands where it began.
BEGAN = "dedup_began"


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


def identities_of(crawler: Crawler, request: Request, *urls: str) -> tuple[bytes, ...]:
    """Return what makes a page itself: its *request*, and for GET the *urls* at which its redirects began and ended.

    One URL answers many POSTs. Those between are hops that other pages may share: consent, login, a cookie.
    """
    own = request_identity(crawler.request_fingerprinter.fingerprint(request))
    return (own, *dict.fromkeys(map(url_identity, urls))) if request.method == "GET" else (own,)


def note_beginning(request: Request) -> None:
    """Note in its meta where *request*, which goes to the downloader, was first looked for; "" for what is no GET.

    A redirect and a retry are requests of their own, and meta is all that they have of the first one. Spiders copy it
    too, so the note names the request that it is of: a retry is at the same URL behind the same redirects, and a
    redirect has that request as the last of those that it is behind. Keeping count of what is under way instead would
    confuse what goes through one hop, or is requested twice, at the same time.
    """
    behind = request.meta.get("redirect_urls") or []
    trail = [*behind, request.url]
    noted, began = request.meta.get(BEGAN) or ([], "")
    if request.method != "GET":
        began = ""
    elif not began or noted not in (trail, behind):
        began = request.url
    request.meta[BEGAN] = (trail, began)


def beginning(request: Request) -> str:
    """Return the URL at which the answer to *request* was first looked for."""
    _, began = request.meta.get(BEGAN) or ([], "")
    return began or request.url


def _packed(fields: dict[str, Any]) -> bytes | None:
    packed = zlib.compress(pickle.dumps(fields, protocol=4), 1)
    return packed if len(packed) <= MOST_BYTES else None


def _unpacked(packed: bytes) -> dict[str, Any]:
    fields: dict[str, Any] = pickle.loads(zlib.decompress(packed))  # noqa: S301 - see above
    return fields
