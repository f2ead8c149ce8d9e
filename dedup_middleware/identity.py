"""What makes a page itself: 16 bytes from its request, its URL, or the item it is.

Pure functions. BLAKE2b, because two pages with one identity are never compared: a collision would
supersede a stored page.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def _identity(kind: bytes, *parts: bytes) -> bytes:
    return blake2b(b"\n".join(parts), digest_size=16, person=kind).digest()


def request_identity(request_fingerprint: bytes) -> bytes:
    """Return the identity of what a request fetches."""
    return _identity(b"request", request_fingerprint)


def url_identity(url: str) -> bytes:
    """Return the identity of what a GET of *url* ends at; the fragment does not matter."""
    return _identity(b"url", url.partition("#")[0].encode("utf8", "surrogatepass"))


def item_identity(source: bytes, texts: Iterable[str]) -> bytes:
    """Return the identity of one item among those of the request *source*: the request and what the item says."""
    return _identity(b"item", source, "\n".join(texts).encode("utf8", "surrogatepass"))
