"""Which of two pages with one text a project would rather have.

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
    """What a project prefers."""

    hosts: Collection[str] = ()
    """With their subdomains."""
    urls: Collection[re.Pattern[str]] = ()
    """Found somewhere in an address."""
    canonical: bool = True
    """Whether a story's own page is preferred to its views."""

    def reason(self, url: str) -> str:
        """Return why the page at *url* is preferred; empty if it is not."""
        if self.hosts and is_under(host_of(url), self.hosts):
            return Reason.PREFERRED_HOST
        return Reason.PREFERRED_URL if any(pattern.search(url) for pattern in self.urls) else ""

    def allow(self, url: str) -> bool:
        """Tell whether the page at *url* is as good an owner as any: there are no others that are preferred."""
        return not (self.hosts or self.urls) or bool(self.reason(url))

    def applied(self, page: Page, verdict: Verdict, index: Lookup) -> Verdict:
        """Return *verdict*; of a duplicate that is to be delivered all the same, that it is one, and why."""
        if verdict.kind is not VerdictKind.DUPLICATE or verdict.match is None:
            return verdict
        reason = self.reason(page.url)
        if not reason and self.canonical and is_storys_own(page, verdict.match.owner, index):
            reason = Reason.STORYS_OWN
        return Verdict(VerdictKind.RELATED, verdict.match, reason) if reason else verdict


def is_storys_own(page: Page, owner: StoredPage, index: Lookup) -> bool:
    """Tell whether *page* is the story's own, and *owner*, which has its text, a view of it: for print, or phones.

    The *owner* says so, or the *page*, which then must not name a third one. One or two gets.
    """
    features = page.features
    if features is None or features.canonical or owner.pending or host_of(page.url) != host_of(owner.url):
        return False
    return any(i in owner.identities for i in identities_at(features.amp)) or index.names(owner, page.identities)
