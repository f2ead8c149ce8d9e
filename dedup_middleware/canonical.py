"""What pages say of their own addresses: that a story's own page is another one (``rel=canonical``, ``rel=amphtml``).

Authors err and lie. So such a word counts between pages of one host only, and all that it can do is to have a page
delivered.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dedup_middleware.identity import url_identity
from dedup_middleware.urls import absolute, host_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from dedup_middleware.features import PageFeatures


def addressed(features: PageFeatures, url: str, identities: Collection[bytes]) -> PageFeatures:
    """Return the *features* of the page at *url* with absolute addresses, its own left out."""
    if not features.canonical and not features.amp:
        return features
    canonical, amp = (_another(href, url, identities) for href in (features.canonical, features.amp))
    return replace(features, canonical=canonical, amp=amp)


def storys_own(features: PageFeatures | None, url: str) -> tuple[bytes, ...]:
    """Return the identities of what the page at *url* names as its story's own; empty if that is not on its host."""
    if features is None or not features.canonical or host_of(features.canonical) != host_of(url):
        return ()
    return identities_at(features.canonical)


def identities_at(address: str) -> tuple[bytes, ...]:
    """Return the identities of what is at *address*, over either protocol."""
    rest = address.partition("://")[2]
    return tuple(url_identity(f"{scheme}://{rest}") for scheme in ("http", "https")) if rest else ()


def _another(href: str, url: str, identities: Collection[bytes]) -> str:
    address = absolute(href, url) if href else ""
    return "" if any(i in identities for i in identities_at(address)) else address
