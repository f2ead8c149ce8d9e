"""Verdicts that are taken back: pages that were dropped for a text which later pages show to be a template.

Law of this file: it remembers what was dropped and chooses what to request again, each page once a crawl. What it
chooses is in the store's journal first, so that a crash costs nobody a page.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, NamedTuple

from dedup_middleware.model import VerdictKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dedup_middleware.case import Case
    from dedup_middleware.journal import PackedRequest
    from dedup_middleware.records import Record
    from dedup_middleware.safety import Safety
    from dedup_middleware.templates import Templates, TextKey

#: Dropped pages that are remembered; about 2 kB each.
MOST_DROPPED = 10_000
#: What a record says came of such a page, and why.
OUTCOME = "taken-back"
A_TEMPLATE = "its owner's text is a template"


@dataclass(frozen=True, slots=True)
class Dropped:
    """A page that was dropped for a text which may be a template."""

    identity: bytes
    owner_url: str
    request: PackedRequest | None
    """``None`` where it cannot be packed."""
    record: Record | None
    """That of its drop; ``None`` where none are kept."""

    def taken_back(self) -> Record | None:
        """Return the record of its drop being taken back."""
        now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        return self.record and replace(
            self.record,
            time=now,
            verdict=VerdictKind.RELATED.value,
            outcome=OUTCOME,
            reason=A_TEMPLATE,
            items_dropped=0,
            items_delivered=0,
        )


class Again(NamedTuple):
    """A page that is requested once more."""

    page: Dropped
    request: bytes
    """As it was packed when the page was dropped."""
    key: bytes
    """Of its entry in the journal."""


class TakenBack(NamedTuple):
    """The pages of one template whose drops were wrong."""

    again: list[Again]
    left: list[Dropped]
    """Those that must not or cannot be requested again."""


class TakingBack:
    """The pages of one crawl that were dropped and may have to be taken back."""

    def __init__(self, templates: Templates, safety: Safety, *, enabled: bool) -> None:
        self._templates = templates
        self._safety = safety
        self._enabled = enabled
        self._dropped: dict[TextKey, list[Dropped]] = {}
        self._remembered = 0
        self._met: set[bytes] = set()

    def finished(self, case: Case, record: Record | None) -> Iterator[TakenBack]:
        """Note *case*, whose output has been seen to its end; yield what is to be taken back by now."""
        self._remember(case, record)
        for key in self._dropped.keys() & self._templates.recognised:
            dropped = self._dropped.pop(key)
            self._remembered -= len(dropped)
            found = [(page, self._again(page)) for page in dropped]
            yield TakenBack([again for _, again in found if again], [page for page, again in found if not again])

    def _again(self, page: Dropped) -> Again | None:
        if not self._enabled or page.request is None or not page.request.is_repeatable:
            return None
        key = self._safety.take_back(page.identity, page.request)
        return None if key is None else Again(page, page.request.whole, key)

    def _remember(self, case: Case, record: Record | None) -> None:
        page, match = case.page, case.verdict.match
        if not case.items_dropped or page is None or match is None:
            return
        identity = page.identities[0]
        if identity in self._met or not self._templates.is_filled_in(page, match.owner):
            return
        self._met.add(identity)
        dropped = Dropped(identity, match.owner.url, case.request, record)
        self._dropped.setdefault(self._templates.key(page, match.owner), []).append(dropped)
        self._remembered += 1
        while self._remembered > MOST_DROPPED:
            self._remembered -= len(self._dropped.pop(next(iter(self._dropped))))
