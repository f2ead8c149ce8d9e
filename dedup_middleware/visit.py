"""Defines the visit of one page: its verdict, its claim and its items, and the listener that is told of each."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

from dedup_middleware import item_codec
from dedup_middleware.budget import Budget, UncheckableError
from dedup_middleware.checks.detector import MIN_LIVE_WEIGHT
from dedup_middleware.checks.items import TAG_FIELD
from dedup_middleware.errors import DedupError, StoreCorruptError, UnreadableError
from dedup_middleware.model import Action, Page, Rejection, Verdict, VerdictKind, Witness
from dedup_middleware.reasons import Outcome, Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dedup_middleware.checks.items import ItemText
    from dedup_middleware.index.dropped_items import DroppedItem
    from dedup_middleware.model import StoredPage

# What is not enough for a verdict, and for a text of its own.
_OWNS_UNCHECKED = (Reason.TOO_LITTLE_TEXT, Reason.NOTHING_TO_GO_BY, Reason.LEARNING)
_OUTCOMES = {Action.DROP: Outcome.DROPPED, Action.TAG: Outcome.TAGGED, Action.DRY_RUN: Outcome.WOULD_DROP}


class Stage(Enum):
    """Where a page stands.

    CHECKED -> ENTERED                          its callback has it, and it claims nothing: a duplicate, or unchecked
    CHECKED -> PENDING -> CONFIRMED or VOID    its callback has it, and it claims its text until it is known what became
                                               of its items
    """

    CHECKED = "checked"
    ENTERED = "entered"
    PENDING = "pending"
    CONFIRMED = "confirmed"
    VOID = "void"


@dataclass(slots=True, eq=False)
class Visit:
    """A page, or an item that stands for one, on its way through the spider."""

    url: str
    page: Page | None
    """``None`` when its text could not be read, or was not asked for."""
    verdict: Verdict
    action: Action
    threshold: float
    budget: Budget = field(default_factory=Budget)
    """What is left for the page and its items; its time stands still but where it is spent."""
    keep: bool = False
    """Whether it is kept, and owns its text, even if it is a duplicate: its request, or a person, has said so."""
    stage: Stage = Stage.CHECKED
    size: int = 0
    """Bytes of the body of the page; 0 for an item."""
    carried: frozenset[str] = frozenset()
    """The short values with numbers that the request of a duplicate carried, by their words."""

    # --- what the verdict rests on
    read: Callable[[], Page] | None = None
    """Reads the page, as long as its stored record stands for it."""
    version: int = 0
    """The index's version when the verdict was made."""
    suspected_template: bytes = b""
    """The key of the original's text, if the page may fill in a template; else empty."""
    repeated: list[str] | None = None
    """The first repeated sentences, once they have been asked for."""
    objection: Rejection | None = None
    """What the item that was compared last contains and the original's items do not, if anything."""
    agreed: bool = False
    """Whether an item with text contains no more than the original's."""

    # --- its claim
    claimed: Page | None = None
    """The page as it claims its text."""
    stored: StoredPage | None = None
    """The same as the index has it while the claim is pending."""
    kept: StoredPage | None = None
    """The page as it is stored, once the claim is confirmed and anything was written."""
    item_texts: list[ItemText] = field(default_factory=list)
    """What its items contain, those that could be read."""
    feeds: frozenset[str] | None = frozenset()
    """The kinds of the feeds that have taken an item; ``None`` for all there are."""
    has_failed: bool = False
    """Whether an item or the callback failed; an item that a pipeline drops has not failed."""
    on_settled: list[Callable[[], None]] = field(default_factory=list)
    """Called once when the claim is confirmed or void."""
    items_yielded: int = 0
    items_left: int = 0
    """How many items have left the pipelines."""
    callback_ended: bool = False
    """Whether no item will follow."""

    # --- what was done with its items
    released: Sequence[DroppedItem] = ()
    """The dropped items of an earlier visit that this one releases."""
    has_output: bool = False
    """Whether the spider's output for it has begun to flow."""
    finished: bool = False
    """Whether it has been counted and recorded: once, though an exception that a project handles brings it twice."""
    items_are_checked: bool = False
    """Whether the page is unchecked, and its items are checked as if they were pages."""
    written_for: int = 0
    """The number of the original that the store has it as a duplicate of; 0 for none."""
    stored_number: int = 0
    """Its own number as that duplicate."""
    items_dropped: int = 0
    items_kept: int = 0
    items_would_drop: int = 0
    items_tagged: int = 0

    @classmethod
    def unchecked(cls, url: str, reason: str, action: Action, threshold: float, *, keep: bool = False) -> Visit:
        """Return the visit of a page that cannot be checked, for *reason*."""
        return cls(url, None, Verdict(VerdictKind.UNCHECKED, reason=reason), action, threshold, keep=keep)

    def read_in_full(self) -> bool:
        """Read the page if its stored record stands for it; return whether there is a page now.

        Its verdict stays; it is unchecked if reading fails.
        """
        if self.read is None:
            return self.page is not None
        read, before = self.read, self.verdict
        self.page = self.read = None
        self.verdict = Verdict(VerdictKind.UNCHECKED, reason=Reason.ERROR)
        try:
            self.page = read()
        except UncheckableError as error:
            self.verdict = Verdict(VerdictKind.UNCHECKED, reason=error.reason)
            return False
        self.verdict = before
        return True

    def overrule(self, rejection: Rejection, witness: Witness | None = None) -> None:
        """Let a duplicate be related only, for the *rejection* of a *witness* or of our own."""
        self.verdict = Verdict(VerdictKind.RELATED, self.verdict.match, rejection.reason, witness, rejection.difference)

    def keep_undecided(self) -> None:
        """Give up on a duplicate whose original is still pending: it is kept and owns nothing."""
        if self.original_is_pending:
            self.verdict = replace(self.verdict, kind=VerdictKind.RELATED, reason=Reason.ORIGINAL_PENDING)

    @property
    def is_complete(self) -> bool:
        """Whether the callback has ended and all its items have left the pipelines."""
        return self.callback_ended and self.items_left == self.items_yielded

    @property
    def original_is_pending(self) -> bool:
        """Whether it is a duplicate whose original may still fail."""
        return self.is_duplicate and self.verdict.match is not None and self.verdict.match.original.pending

    @property
    def is_worth_owning(self) -> bool:
        """Whether the page has enough text to be told from others, even where all but little of it is boilerplate."""
        if self.page is None or self.verdict.kind is not VerdictKind.UNCHECKED:
            return self.page is not None
        has_text = self.page.fingerprint.weight >= MIN_LIVE_WEIGHT
        return has_text and self.verdict.reason in _OWNS_UNCHECKED

    @property
    def is_duplicate(self) -> bool:
        """Whether the verdict, as it stands, is that the page is a duplicate."""
        return self.verdict.kind is VerdictKind.DUPLICATE

    @property
    def is_undecided(self) -> bool:
        """Whether the page could not be checked, though that is wanted: then its items are checked."""
        return self.verdict.kind is VerdictKind.UNCHECKED and self.verdict.reason != Reason.SWITCHED_OFF

    @property
    def has_entered(self) -> bool:
        """Whether the callback has got the page."""
        return self.stage is not Stage.CHECKED

    @property
    def reason(self) -> str:
        """The reason that is recorded."""
        return Reason.ITEMS_CHECKED if self.items_are_checked else self.verdict.reason

    @property
    def has_items(self) -> bool:
        """Whether items of the page have come."""
        return self.items_dropped + self.items_kept > 0

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
        if self.released:
            return Outcome.RELEASED if self.items_kept else Outcome.DROPPED
        if self.is_duplicate and not self.has_items and self.action is not Action.DRY_RUN:
            return Outcome.LINKS_LAST
        return _OUTCOMES[self.action] if self.takes_effect else Outcome.KEPT


class Listener(Protocol):
    """Reports what happens in a crawl, and does what only its door can."""

    def count(self, name: str, amount: int = 1) -> None:
        """Add to the stat ``dedup/NAME``."""

    def failed(self, error: DedupError) -> None:
        """Report that the store, the log or a feed has failed: from now on nothing is dropped. Once.

        After a ``StoreAwayError`` another `Deduplication` may go on; what else fails meanwhile is reported, too.
        """

    def one_original(self, host: str, original: str, repeats: int, pages: int) -> None:
        """Report that *repeats* of the *pages* of *host*, most of them, repeat the page *original*. Once a host."""

    def one_other_host(self, host: str, other: str, repeats: int, pages: int) -> None:
        """Report that *repeats* of the *pages* of *host*, most of them, repeat pages of the host *other*. Once a host.

        Not where the project prefers those.
        """

    def field_that_keeps(self, field: str, kept: int, pages: int) -> None:
        """Report that *field* alone kept nearly all of the *pages* whose text is in the store. Once a field."""

    def released(self, pages: Sequence[StoredPage]) -> None:
        """Release the items of *pages*, dropped for a text that has proved to be a template."""

    def not_keepable(self, kind: type, left_out: Mapping[str, type]) -> None:
        """Report that dropped items of *kind* are stored without some fields; if none, they are kept. Once a class."""

    def tag_refused(self, kind: type) -> None:
        """Report that items of this class take no tag. Once a class."""


class Guard:
    """Swallows a failure of the store or the log, and reports it.

    A class, for a page passes five of them: a generator takes 1.2 µs, this 0.3.
    """

    __slots__ = ("_fail",)

    def __init__(self, fail: Callable[[DedupError], None]) -> None:
        """Call *fail* with what fails within."""
        self._fail = fail

    def __call__(self) -> Guard:
        """Return the context manager."""
        return self

    def __enter__(self) -> None:
        """Begin the block."""

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        """End it, and with it a failure of ours."""
        if isinstance(error, UnreadableError):
            error = StoreCorruptError(
                f"the store is damaged ({error}): put back a copy, or begin a new one with `scrapy dedup store reset`"
            )
        if not isinstance(error, DedupError):
            return False
        self._fail(error)
        return True


class ItemHandler:
    """Encodes the dropped items of one crawl, tags others, and reports once each class with which that fails."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._reported: set[type] = set()
        self._untaggable: set[type] = set()

    def encode(self, item: Any) -> bytes | None:
        """Return *item* as it is stored; ``None`` if it must be kept because its class cannot be stored."""
        data: bytes | None = None
        left_out: dict[str, type] = {}
        with suppress(item_codec.UnkeepableError):
            data, left_out = item_codec.encode(item)
        if data is None or left_out:
            self._listener.count("items/not_keepable" if data is None else "items/stored_in_part", 1)
            if type(item) not in self._reported:
                self._reported.add(type(item))
                self._listener.not_keepable(type(item), left_out)
        return data

    def tag(self, item: Any, verdict: Verdict, *, repeats: bool) -> bool:
        """Put ``{original_url, score, verdict}`` on *item* under ``dedup``; return whether its type allows that.

        An item of a duplicate that does not itself repeat the original is related.
        """
        match, kind = verdict.match, verdict.kind
        if kind is VerdictKind.DUPLICATE and not repeats:
            kind = VerdictKind.RELATED
        tag = {
            "original_url": match.original.url if match else None,
            "score": round(match.score, 4) if match else None,
            "verdict": kind.value,
        }
        from itemadapter import ItemAdapter  # noqa: PLC0415 - as in `items`

        try:
            ItemAdapter(item)[TAG_FIELD] = tag
        except Exception:  # noqa: BLE001 - whatever a class of the project's own raises
            self._listener.count("items/tag_refused", 1)
            if type(item) not in self._untaggable:
                self._listener.tag_refused(type(item))
            self._untaggable.add(type(item))
            return False
        if kind is VerdictKind.DUPLICATE:
            self._listener.count("items/tagged", 1)
        return True
