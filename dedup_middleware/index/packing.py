"""Requests as bytes, and those bytes without credentials.

Packed as Scrapy's own job queues do it, with pickle: what a JOBDIR can hold, the journal can. Like a JOBDIR, a store is
therefore to be trusted as much as the spider's code: who can write to it can run code.
It knows the fields of a request, and needs no Scrapy.
"""

from __future__ import annotations

import functools
import logging
import pickle
import zlib
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from dedup_middleware.urls import without_secrets

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger(__name__)

_P = ParamSpec("_P")
_T = TypeVar("_T")

#: A larger request is not packed: what is kept for each dropped page should not outweigh the page.
MAX_BYTES = 100_000
# What the fields of most requests have, as pickle writes it: a dictionary for zlib, so that a request takes a third.
# Whatever is packed with it can be unpacked with it alone: it must stay as it is, to the letter.
_COMMON = (
    b"\x80\x04\x95\xa2\x01\x00\x00\x00\x00\x00\x00}\x94(\x8c\x03url\x94\x8c\x0chttps://www.\x94\x8c\x08callback\x94\x8c\x05pa"
    b"rse\x94\x8c\x07errback\x94N\x8c\x07headers\x94}\x94(C\nUser-Agent\x94]\x94C!Scrap"
    b"y/2.19 (+https://scrapy.org)\x94aC\x06Accept\x94]\x94C?text/ht"
    b"ml,application/xhtml+xml,application/xml;q=0.9,*/*"
    b";q=0.8\x94aC\x0fAccept-Language\x94]\x94C\x02en\x94aC\x0fAccept-Encodin"
    b"g\x94]\x94C\rgzip, deflate\x94aC\x07Referer\x94]\x94C\x0bhttp://www.\x94au\x8c"
    b"\x04body\x94C\x00\x94\x8c\x07cookies\x94}\x94\x8c\x04meta\x94}\x94\x8c\x05depth\x94K\x01s\x8c\x08encodin"
    b"g\x94\x8c\x05utf-8\x94\x8c\x05flags\x94]\x94\x8c\tcb_kwargs\x94}\x94\x8c\x0bdont_filter\x94\x89\x8c"
    b"\x06method\x94\x8c\x03GET\x94\x8c\x08priority\x94K\x00u."
)
#: The key in a request's meta under which its origin stands. Its value is an old name: JOBDIRs and journals have it.
ORIGIN = "dedup_began"
#: And the one of the journal keys for which it is made once more.
RECOVERED = "dedup_leftover"
#: Keys of meta that Scrapy and its middlewares set on the way.
_OF_SCRAPY = frozenset(
    {"cache_timestamp", "cookiejar", "depth", "download_latency", "download_slot", "download_timeout"}
    | {"is_start_request", "proxy", "_auth_proxy", "_scheme_proxy"}
    | {"redirect_reasons", "redirect_times", "redirect_ttl", "redirect_urls", "retry_times", ORIGIN, RECOVERED}
)
#: Headers that say who asks; in lower case.
_CREDENTIALS = frozenset({b"authorization", b"proxy-authorization", b"cookie"})


def or_none(function: Callable[_P, _T]) -> Callable[_P, _T | None]:
    """Return *function* with ``None`` for whatever it raises: a project's classes may raise anything when pickled."""

    @functools.wraps(function)
    def wrapper(*args: _P.args, **kwargs: _P.kwargs) -> _T | None:
        try:
            return function(*args, **kwargs)
        except Exception:
            logger.debug("dedup: %s failed", function.__name__, exc_info=True)
            return None

    return wrapper


def packed(fields: dict[str, Any]) -> bytes | None:
    """Return the *fields* of a request as bytes; ``None`` if that is too large."""
    packer = zlib.compressobj(1, zdict=_COMMON)
    value = packer.compress(pickle.dumps(fields, protocol=4)) + packer.flush()
    return value if len(value) <= MAX_BYTES else None


def unpacked(value: bytes) -> dict[str, Any]:
    """Return the fields that :func:`packed` made *value* of."""
    unpacker = zlib.decompressobj(zdict=_COMMON)
    fields: dict[str, Any] = pickle.loads(unpacker.decompress(value))  # noqa: S301 - see the head
    return fields


@or_none
def undropped(value: bytes, *, owns: bool) -> bytes | None:
    """Return the packed request of a page that is not to be dropped again; ``None`` if its parts cannot be had here.

    It is not judged, or, if it *owns* its text from now on, delivered whatever the verdict.
    """
    fields = unpacked(value)
    asked: object = {"keep": True} if owns else False
    return packed({**fields, "meta": {**(fields.get("meta") or {}), "dedup": asked}})


def is_repeatable(value: bytes) -> bool:
    """Tell whether the packed request does no harm if it is made once more: whether it is a GET."""
    try:
        return bool(unpacked(value).get("method") == "GET")
    except Exception:  # noqa: BLE001 - what a project's classes raise
        return False


@or_none
def without_credentials(value: bytes) -> bytes | None:
    """Return the packed request without what says who asks; ``None`` if its parts cannot be had here."""
    fields = bare(unpacked(value), redact_query=False)
    return None if fields is None else packed(fields)


def purpose(fields: dict[str, Any]) -> bytes:
    """Return what the *fields* of a request say of what is made of its page, as bytes; in every process the same.

    Not with what differs each time that it is made: cookies, a proxy, how often it was tried.
    """
    meta = {key: value for key, value in fields["meta"].items() if key not in _OF_SCRAPY}
    return _canonical([fields["callback"], fields["cb_kwargs"], meta]).encode()


def _canonical(value: Any) -> str:
    # Not pickle for the whole: it writes equal values differently, by identity, by order and by hash seed.
    if isinstance(value, dict):
        return f"{{{','.join(sorted(f'{_canonical(key)}:{_canonical(v)}' for key, v in value.items()))}}}"
    if isinstance(value, (set, frozenset)):
        return f"({','.join(sorted(map(_canonical, value)))})"
    if isinstance(value, (list, tuple)):
        return f"[{','.join(map(_canonical, value))}]"
    if value is None or isinstance(value, (str, bytes, int, float)):
        return ascii(value)
    return pickle.dumps(value, protocol=4).hex()


def bare(fields: dict[str, Any], *, redact_query: bool) -> dict[str, Any] | None:
    """Return the *fields* of a request without what says who asks.

    ``None`` where, with *redact_query*, its address has a query or a fragment of which nothing may be kept.
    """
    url = without_secrets(fields["url"], redact=redact_query)
    if redact_query and url != without_secrets(fields["url"], redact=False):
        return None

    def address(value: Any, *, redact: bool = redact_query) -> Any:
        return without_secrets(value, redact=redact) if isinstance(value, str) else value

    headers = {
        name: [address(v.decode("latin-1")).encode("latin-1") for v in values] if name == b"Referer" else values
        for name, values in fields["headers"].items()
        if name.lower() not in _CREDENTIALS
    }
    meta = dict(fields["meta"])
    if "proxy" in meta:
        meta["proxy"] = address(meta["proxy"], redact=False)
    if "redirect_urls" in meta:
        meta["redirect_urls"] = [*map(address, meta["redirect_urls"])]
    if ORIGIN in meta:
        # In schema 2 it was packed with the rest.
        trail, original_url = meta[ORIGIN][:2]
        meta[ORIGIN] = ([*map(address, trail)], address(original_url))
    return {**fields, "url": url, "headers": headers, "cookies": type(fields["cookies"])(), "meta": meta}
