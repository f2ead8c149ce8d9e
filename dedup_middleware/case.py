"""One page on its way through the spider.

Law of this file: it holds what is known so far; what happens next is `crawl`'s business.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from dedup_middleware.model import Action, Page, Verdict, VerdictKind
from dedup_middleware.records import EVIDENCE_CHARACTERS, Record
from dedup_middleware.text import one_line

if TYPE_CHECKING:
    from dedup_middleware.claims import Claim

_OUTCOMES = {Action.DROP: "dropped", Action.TAG: "tagged", Action.DRY_RUN: "would-drop"}


@dataclass(slots=True)
class Case:
    """A page, or an item that stands for one, on its way through the spider."""

    url: str
    page: Page | None
    """``None`` when there is no text to judge."""
    verdict: Verdict
    action: Action
    threshold: float
    version: int = 0
    """The index's version when the verdict was made."""
    claim: Claim | None = None
    entered: bool = False
    """Whether the callback has got the page, and has not raised."""
    has_output: bool = False
    """Whether the spider's output for it has begun to flow."""
    finished: bool = False
    """Whether it has been counted and recorded: once, though an exception that a project handles brings it twice."""
    request: bytes | None = None
    """The request, packed, of a page that may be dropped; ``None`` where it cannot be packed."""
    left: frozenset[bytes] = frozenset()
    """The identities under which an unclean end left the page, or items of it, in the journal."""
    written_down: bool = False
    """Whether the store knows that it repeats its owner."""
    repeated: list[str] | None = None
    """The first repeated sentences, once they have been asked for."""
    items_dropped: int = 0
    items_delivered: int = 0
    items_would_drop: int = 0

    @property
    def is_duplicate(self) -> bool:
        """Whether the verdict, as it stands, is that the page is a duplicate."""
        return self.verdict.kind is VerdictKind.DUPLICATE

    @property
    def outcome(self) -> str:
        """What came of the page, as a record says it."""
        if not self.is_duplicate:
            return "delivered"
        if not self.items_dropped + self.items_delivered:
            return "links-last"
        if self.action is Action.DROP and not self.items_dropped:
            return "delivered"
        if self.action is Action.DRY_RUN and not self.items_would_drop:
            return "delivered"
        return _OUTCOMES[self.action]

    def record(self, *, spider: str, run: str, evidence: list[str]) -> Record:
        """Return what the log says of it."""
        match = self.verdict.match
        return Record(
            time=datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
            spider=spider,
            run=run,
            url=self.url,
            verdict=self.verdict.kind.value,
            outcome=self.outcome,
            owner_url=match.owner.url if match else None,
            owner_run=match.owner.run if match else None,
            score=round(match.score, 4) if match else None,
            reason=self.verdict.reason,
            evidence=[one_line(sentence, EVIDENCE_CHARACTERS) for sentence in evidence],
            items_dropped=self.items_dropped,
            items_delivered=self.items_delivered,
        )
