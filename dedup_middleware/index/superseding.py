"""Originals that give way to a better one: a preferred page, or the one that they name as canonical."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dedup_middleware.model import StoredPage

# A page with fewer clauses than this share of the former original's contains too little of its text to replace it.
_MIN_CLAUSE_SHARE = 0.5


def superseded_by(stored: StoredPage, former: StoredPage, known: Iterable[StoredPage]) -> list[StoredPage]:
    """Return the originals that *stored*, which is confirmed, replaces.

    *former* is the original when *stored* was judged, *known* what its identities lead to now. None of them is replaced
    if it has another text by now, is no original any more, or is still pending.
    """
    return [
        page
        for page in known
        if page.owner is None
        and not page.pending
        and page.number != stored.number
        and page.digest == former.digest
        and len(stored.hashes) >= _MIN_CLAUSE_SHARE * len(page.hashes)
    ]


def as_duplicate(former: StoredPage, original: StoredPage) -> StoredPage:
    """Return the *former* original as a duplicate of *original*. Its score counts clauses: their weights are unknown.

    No check has compared it with *original*, only the reverse. So it has its own content as that of its original: the
    verdict stands where both have the same clauses, else the page is judged when it is fetched again.
    """
    share = len(former.hashes & original.hashes) / len(former.hashes) if former.hashes else 0.0
    return replace(former, owner=original.number, owner_digest=former.content, item_content=None, score=round(share, 4))
