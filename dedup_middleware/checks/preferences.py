"""Chooses which of two pages with one text is the original.

A preferred page, or one that the first copy names as canonical, is kept and takes the place of a copy that came first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dedup_middleware.model import Verdict, VerdictKind
from dedup_middleware.reasons import Reason
from dedup_middleware.urls import origin_of

if TYPE_CHECKING:
    import re
    from collections.abc import Collection

    from dedup_middleware.index.lookup import Lookup
    from dedup_middleware.model import Page, StoredPage
    from dedup_middleware.urls import HostPattern

#: Why a page that repeats another one is kept, and becomes the original.
REPLACES = (Reason.PREFERRED, Reason.STORYS_OWN)


@dataclass(frozen=True, slots=True)
class Preferences:
    """The pages that a project prefers."""

    preferred: Collection[HostPattern | re.Pattern[str]] = ()
    """Searched in URLs; one match is enough."""

    def include(self, url: str) -> bool:
        """Return whether the page at *url* is preferred."""
        return any(pattern.search(url) for pattern in self.preferred)

    def applied(self, page: Page, verdict: Verdict, index: Lookup) -> Verdict:
        """Return *verdict*; of a duplicate that is the better original, ``related`` with the reason."""
        if verdict.kind is not VerdictKind.DUPLICATE or verdict.match is None:
            return verdict
        original = verdict.match.owner
        is_preferred, original_is_preferred = self.include(page.url), self.include(original.url)
        if is_preferred and not original_is_preferred:
            reason = Reason.PREFERRED
        elif is_preferred == original_is_preferred and is_storys_own(page, original, index):
            reason = Reason.STORYS_OWN
        else:
            return verdict
        return Verdict(VerdictKind.RELATED, verdict.match, reason)


def is_storys_own(page: Page, owner: StoredPage, index: Lookup) -> bool:
    """Return whether *owner* is a view of *page*, for print or phones: its ``rel=canonical`` names *page*.

    Both must have one origin, and *page* must name no other canonical URL. One or two gets.
    """
    features = page.features
    if features is None or features.canonical or owner.pending or origin_of(page.url) != origin_of(owner.url):
        return False
    return index.names(owner, page.identities)
