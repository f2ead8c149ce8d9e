"""Chooses which of two pages with one text is kept.

A preferred page is never a duplicate, so that such a wish costs a second delivery at most.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dedup_middleware.canonical import identities_at
from dedup_middleware.model import Verdict, VerdictKind
from dedup_middleware.reasons import Reason
from dedup_middleware.urls import host_of, is_under

if TYPE_CHECKING:
    import re
    from collections.abc import Collection

    from dedup_middleware.index.lookup import Lookup
    from dedup_middleware.model import Page, StoredPage


@dataclass(frozen=True, slots=True)
class Preferences:
    """The hosts and URLs that a project prefers."""

    hosts: Collection[str] = ()
    """With their subdomains."""
    urls: Collection[re.Pattern[str]] = ()
    """Found anywhere in a URL."""
    canonical: bool = True
    """Whether a page is preferred to its print and AMP views."""

    def reason(self, url: str) -> str:
        """Return why the page at *url* is preferred; empty if it is not."""
        if self.hosts and is_under(host_of(url), self.hosts):
            return Reason.PREFERRED_HOST
        return Reason.PREFERRED_URL if any(pattern.search(url) for pattern in self.urls) else ""

    def allow(self, url: str) -> bool:
        """Return whether no other page is preferred to the one at *url* as an original."""
        return not (self.hosts or self.urls) or bool(self.reason(url))

    def applied(self, page: Page, verdict: Verdict, index: Lookup) -> Verdict:
        """Return *verdict*; for a duplicate that is preferred, ``related`` with the reason."""
        if verdict.kind is not VerdictKind.DUPLICATE or verdict.match is None:
            return verdict
        reason = self.reason(page.url)
        if not reason and self.canonical and is_storys_own(page, verdict.match.owner, index):
            reason = Reason.STORYS_OWN
        return Verdict(VerdictKind.RELATED, verdict.match, reason) if reason else verdict


def is_storys_own(page: Page, owner: StoredPage, index: Lookup) -> bool:
    """Return whether *owner* is a view of *page*, for print or phones.

    Its ``rel=canonical`` names *page*, or the ``rel=amphtml`` of *page* names it; *page* must name no other canonical
    URL. One or two gets.
    """
    features = page.features
    if features is None or features.canonical or owner.pending or host_of(page.url) != host_of(owner.url):
        return False
    return any(i in owner.identities for i in identities_at(features.amp)) or index.names(owner, page.identities)
