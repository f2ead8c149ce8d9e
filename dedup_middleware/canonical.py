"""What a page says of its own address: that its story's own page is another one (``rel=canonical``).

Authors err and lie. So a page can only give up its own place, for a copy of its own origin that was fetched as well. No
page takes the place of another by a link of its own: of ``rel=amphtml`` the AMP page's ``rel=canonical`` is enough.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dedup_middleware.identity import url_identity
from dedup_middleware.urls import absolute, origin_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from dedup_middleware.features import PageFeatures


def addressed(features: PageFeatures, url: str, identities: Collection[bytes]) -> PageFeatures:
    """Return the *features* of the page at *url* with an absolute canonical address, or none if that is its own."""
    if not features.canonical:
        return features
    address = absolute(features.canonical, url)
    is_its_own = any(identity in identities for identity in identities_at(address))
    return replace(features, canonical="" if is_its_own else address)


def storys_own(features: PageFeatures | None, url: str) -> tuple[bytes, ...]:
    """Return the identities of what the page at *url* names as its story's own; empty if that has another origin."""
    if features is None or not features.canonical or origin_of(features.canonical) != origin_of(url):
        return ()
    return identities_at(features.canonical)


def identities_at(address: str) -> tuple[bytes, ...]:
    """Return the identities of what is at *address*, over either protocol."""
    rest = address.partition("://")[2]
    return tuple(url_identity(f"{scheme}://{rest}") for scheme in ("http", "https")) if rest else ()
