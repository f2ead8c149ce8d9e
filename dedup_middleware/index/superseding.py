"""Views of a story, for print or for phones, that gave way to its own page."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dedup_middleware.index.lookup import Lookup
    from dedup_middleware.model import Page, StoredPage


def superseded_by(page: Page, stored: StoredPage, index: Lookup) -> list[StoredPage]:
    """Return the owner that *page*, *stored* so, supersedes, if that still is one. One get."""
    if page.instead_of is None or stored.owner is not None:
        return []
    view = index.page(page.instead_of.number)
    return [view] if view is not None and view.owner is None and view.number != stored.number else []


def as_duplicate(view: StoredPage, owner: StoredPage) -> StoredPage:
    """Return *view* as one that repeats *owner*; its score counts clauses, for nobody has kept what they weigh."""
    share = len(view.hashes & owner.hashes) / len(view.hashes) if view.hashes else 0.0
    return replace(view, owner=owner.number, owner_digest=owner.content, item_content=None, score=round(share, 4))
