"""What a whole text, under its title, is known by: where its equals are found, and whether it is a template."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dedup_middleware.index import codec
from dedup_middleware.text import titles
from dedup_middleware.urls import host_of

if TYPE_CHECKING:
    from dedup_middleware.features import PageFeatures
    from dedup_middleware.model import Page


def own_template_id(page: Page) -> bytes:
    """Return the `template_id` that other pages of the host of *page* have for the text of *page*."""
    title = "" if page.features is None else titles.main_part(page.features)
    return codec.template_hash(host_of(page.url), page.fingerprint.digest, title)


def equals_key(exact_digest: bytes, features: PageFeatures | None) -> bytes | None:
    """Return the key under which a page with this *exact_digest* is found by it; ``None`` where nobody knows it."""
    return (
        codec.equals_key(exact_digest, "" if features is None else titles.main_part(features)) if exact_digest else None
    )
