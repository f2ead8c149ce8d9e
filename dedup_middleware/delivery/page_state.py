"""One page on its way through the spider.

It holds what is known so far; what happens next is `session`'s business.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dedup_middleware.budget import Budget, UnjudgeableError
from dedup_middleware.checks.detector import MIN_LIVE_WEIGHT
from dedup_middleware.model import Action, Page, Rejection, Verdict, VerdictKind, Witness
from dedup_middleware.reasons import Outcome, Reason

if TYPE_CHECKING:
    from collections.abc import Callable

    from dedup_middleware.delivery.claims import Claim
    from dedup_middleware.index.journal import PackedRequest
    from dedup_middleware.index.revocable import Reads

# What is not enough for a verdict, and for a text of its own.
_OWNS_UNJUDGED = (Reason.TOO_LITTLE_TEXT, Reason.NOTHING_TO_GO_BY, Reason.LEARNING)
_OUTCOMES = {Action.DROP: Outcome.DROPPED, Action.TAG: Outcome.TAGGED, Action.DRY_RUN: Outcome.WOULD_DROP}


@dataclass(slots=True)
class PageState:
    """A page, or an item that stands for one, on its way through the spider."""

    url: str
    page: Page | None
    """``None`` when its text could not be read, or was not asked for."""
    verdict: Verdict
    action: Action
    threshold: float
    budget: Budget = field(default_factory=Budget)
    """What is left for the page and its items; its time stands still but where it is spent."""
    read: Callable[[], Page] | None = None
    """Reads the page, as long as it stands unread for what the store has of it."""
    version: int = 0
    """The index's version when the verdict was made."""
    reads: Reads | None = None
    """What of the store the verdict rests on, if that was noted."""
    suspected_template: bytes = b""
    """The key of the owner's text, if the page is to be requested again should that prove a template; else empty."""
    claim: Claim | None = None
    entered: bool = False
    """Whether the callback has got the page, and has not raised."""
    has_output: bool = False
    """Whether the spider's output for it has begun to flow."""
    finished: bool = False
    """Whether it has been counted and recorded: once, though an exception that a project handles brings it twice."""
    request: PackedRequest | None = None
    """The request of a page that may be dropped; ``None`` where it cannot be packed."""
    carried: frozenset[str] = frozenset()
    """The short values with numbers that the request of a duplicate carried, by their words."""
    recovered: frozenset[bytes] = frozenset()
    """The keys under which an unclean shutdown left the page, or items of it, in the journal."""
    objection: Rejection | None = None
    """What the item that was heard last says against withholding it, if anything."""
    agreed: bool = False
    """Whether an item with text has said no more than its owner's."""
    asks_again: bool = False
    """Whether its callback has requested the same page again; if it gave no item either, the page was not the one it
    wanted."""
    written_down: bool = False
    """Whether the store knows that it repeats its owner."""
    journalled_for: int = 0
    """The number of the owner until whose sealing it is in the journal; 0 while it is not."""
    quarantined: list[int] = field(default_factory=list)
    """The numbers of its items in the quarantine."""
    repeated: list[str] | None = None
    """The first repeated sentences, once they have been asked for."""
    keep: bool = False
    """Whether it is delivered, and owns its text, even if it is a duplicate: for its request says so."""
    bytes: int = 0
    """How long the body of the page was; 0 for an item."""
    items_are_judged: bool = False
    """Whether the page is unjudged, and its items are judged as if they were pages."""
    items_dropped: int = 0
    items_delivered: int = 0
    items_would_drop: int = 0
    items_tagged: int = 0

    @classmethod
    def unjudged(cls, url: str, reason: str, action: Action, threshold: float, *, keep: bool = False) -> PageState:
        """Return the state of a page that cannot be judged, for *reason*."""
        return cls(url, None, Verdict(VerdictKind.UNJUDGED, reason=reason), action, threshold, keep=keep)

    def read_in_full(self) -> None:
        """Read a page that was taken for what the store has of it; else do nothing.

        What that raises leaves it unjudged, and `UnjudgeableError` says why.
        """
        if self.read is None:
            return
        read, before = self.read, self.verdict
        self.page = self.read = None
        self.verdict = Verdict(VerdictKind.UNJUDGED, reason=Reason.ERROR)
        try:
            self.page = read()
        except UnjudgeableError as error:
            self.verdict = Verdict(VerdictKind.UNJUDGED, reason=error.reason)
            raise
        self.verdict = before

    def overrule(self, objection: Rejection, witness: Witness | None = None) -> None:
        """Let a duplicate be none, for the *objection* of a *witness* or of our own."""
        self.verdict = Verdict(VerdictKind.RELATED, self.verdict.match, objection.reason, witness, objection.difference)

    @property
    def owner_is_pending(self) -> bool:
        """Whether it is a duplicate whose owner may still fail."""
        return self.is_duplicate and self.verdict.match is not None and self.verdict.match.owner.pending

    def deliver_undecided(self) -> None:
        """Give up on a duplicate whose owner is still pending: it is delivered and owns nothing."""
        if self.owner_is_pending:
            self.verdict = dataclasses.replace(self.verdict, kind=VerdictKind.RELATED, reason=Reason.OWNER_PENDING)

    @property
    def is_worth_owning(self) -> bool:
        """Whether the page says enough to be told from others, even where all but little of it is boilerplate."""
        if self.page is None or self.verdict.kind is not VerdictKind.UNJUDGED:
            return self.page is not None
        has_text = self.page.fingerprint.weight >= MIN_LIVE_WEIGHT
        return has_text and self.verdict.reason in _OWNS_UNJUDGED

    @property
    def is_duplicate(self) -> bool:
        """Whether the verdict, as it stands, is that the page is a duplicate."""
        return self.verdict.kind is VerdictKind.DUPLICATE

    @property
    def is_undecided(self) -> bool:
        """Whether nothing can be told of the page, though that is wanted: then its items are asked."""
        return self.verdict.kind is VerdictKind.UNJUDGED and self.verdict.reason != Reason.SWITCHED_OFF

    @property
    def reason(self) -> str:
        """The reason that is recorded."""
        return Reason.ITEMS_JUDGED if self.items_are_judged else self.verdict.reason

    @property
    def has_items(self) -> bool:
        """Whether items of the page have come."""
        return self.items_dropped + self.items_delivered > 0

    @property
    def takes_effect(self) -> bool:
        """Whether items of the page were dropped or tagged, or would be dropped."""
        acted_on = {
            Action.DROP: self.items_dropped,
            Action.TAG: self.items_tagged,
            Action.DRY_RUN: self.items_would_drop,
        }
        return self.is_duplicate and acted_on[self.action] > 0

    @property
    def outcome(self) -> Outcome:
        """What came of the page."""
        if self.is_duplicate and not self.has_items and self.action is not Action.DRY_RUN:
            return Outcome.LINKS_LAST
        return _OUTCOMES[self.action] if self.takes_effect else Outcome.DELIVERED
