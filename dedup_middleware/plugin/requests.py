"""What a request is: bytes, so that it can be made once more, and what makes its page itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.utils.request import request_from_dict

from dedup_middleware.identity import request_identity, url_identity
from dedup_middleware.index.journal import PackedRequest
from dedup_middleware.index.packing import bare, or_none, packed, purpose, unpacked

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.crawler import Crawler

    from dedup_middleware.plugin.origins import Origins


@or_none
def pack(request: Request, spider: Spider, origins: Origins, *, redact_query: bool) -> PackedRequest | None:
    """Return *request*, as it was at its origin, as bytes; ``None`` if that cannot be done.

    Its callback may be no method of *spider*, say, or its meta hold what cannot be pickled.
    """
    fields = origins.first(request).to_dict(spider=spider)
    # That of this fetch: with it, one request would be packed otherwise each time.
    fields["meta"] = {key: value for key, value in fields["meta"].items() if key != "download_latency"}
    whole = packed(fields)
    if whole is None:
        return None
    to_keep = bare(fields, redact_query=redact_query)
    kept = whole if to_keep == fields else None if to_keep is None else packed(to_keep)
    return PackedRequest(whole, kept, purpose(fields))


@or_none
def purpose_of(request: Request, spider: Spider) -> bytes | None:
    """Return what *request* was made for, as that of :func:`pack`; ``None`` where that cannot be told."""
    return purpose(request.to_dict(spider=spider))


@or_none
def unpack(value: bytes, spider: Spider) -> Request | None:
    """Return the request that :func:`pack` made *value* of; ``None`` if the spider has changed too much for that."""
    return request_from_dict(unpacked(value), spider=spider)


def identities_of(crawler: Crawler, request: Request, *urls: str) -> tuple[bytes, ...]:
    """Return what makes a page itself: its *request*, and for GET the *urls* at which its redirects began and ended.

    One URL answers many POSTs. Those between are hops that other pages may share: consent, login, a cookie.
    """
    own = request_identity(crawler.request_fingerprinter.fingerprint(request))
    return (own, *dict.fromkeys(map(url_identity, urls))) if request.method == "GET" else (own,)
