"""Defines the visit of one page, with its verdict, its claim and the fate of its items, and who gets its events."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from dedup_middleware.common.budget import UNLIMITED, Budget, UncheckableError
from dedup_middleware.index import item_codec
from dedup_middleware.items.item_values import TAG_FIELD
from dedup_middleware.model import Action, Page, Rejection, Unchanged, Verdict, VerdictKind, is_marked
from dedup_middleware.reasons import Outcome, Reason
from dedup_middleware.text.clauses import MIN_TEXT_WEIGHT
from dedup_middleware.visits.states import Claim, Output

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dedup_middleware.errors import DedupError
    from dedup_middleware.index.dropped_items import DroppedItem
    from dedup_middleware.items.reading import ItemText
    from dedup_middleware.model import Standing, StoredPage

# Not enough for a verdict, but enough for a page to be an original.
_OWNS_UNCHECKED = (Reason.TOO_LITTLE_TEXT, Reason.NO_FEATURES, Reason.STILL_LEARNING)

_NOT_STORED = (
    "duplicates of class {} cannot be stored, so they are kept. Yield a dict, a Scrapy item, or an attrs, dataclass or "
    "pydantic object"
)
_VALUE_NOT_STORED = (
    "duplicates of class {} with a value of class {} cannot be stored, so they are kept. Set such a field in a "
    "pipeline, or give it as a text or a number"
)
_NOT_TAGGED = (
    "items of class {} cannot be tagged and are kept without a tag: declare a field {!r} in it (scrapy.Field() in an "
    "Item, a default of None elsewhere), not frozen"
)


def within(page: Page, budget: Budget) -> Page:
    """Return *page* with its text watched by the *budget*."""
    texts = budget.watched(page.paragraphs)
    return page if texts is page.paragraphs else replace(page, paragraphs=texts)


class Fate(Enum):
    """What is decided about an item."""

    KEEP = "keep"
    """It goes on to the pipelines."""
    DROP = "drop"
    """It is stored as dropped."""
    CHECK = "check"
    """It goes on to the pipelines, before which it is checked by itself."""
    HOLD = "hold"
    """What the page still gives decides: a later decision has it."""
    WAIT = "wait"
    """The claim of its original is open: process it again once that has ended."""


class Decision(NamedTuple):
    """What is decided about one item."""

    fate: Fate
    item: Any


class ItemVerdict(NamedTuple):
    """What the comparison of an item with the original of its page has found."""

    verdict: Verdict
    """That on the page, perhaps with another original, which the item repeats."""
    repeats: bool | None
    """Whether the original's items contain what it contains; ``None`` if it has no text, and follows its page."""
    rejection: Rejection | None = None
    """Why it is kept, if that is known."""


@dataclass(slots=True, eq=False)
class PageClaim:
    """What the store has of a page on its way: its claim, or a duplicate."""

    state: Claim = Claim.NONE
    page: Page | None = None
    """The page as it claims its text."""
    stored: StoredPage | None = None
    """The same in the index: a pending claim, or what an unchanged original owns already."""
    item_texts: list[ItemText] = field(default_factory=list)
    """What its items contain, as far as they could be read."""
    kept: list[tuple[str, bytes] | None] = field(default_factory=list)
    """Its kept items, as they came from the spider, to be stored with it if a feed is on disk only when it ends: class
    and data; ``None`` for one that cannot be."""
    feeds: frozenset[str] | None = frozenset()
    """The kinds of the feeds that have taken an item; ``None`` for all kinds."""
    yielded: int = 0
    """Items that were kept since it is open."""
    left: int = 0
    """Items that have left the pipelines."""
    written_for: int = 0
    """The number of the original that the page is stored as a duplicate of; 0 if it is not."""
    stored_number: int = 0
    """Its own number as that duplicate."""
    dropped_before: dict[int, dict[bytes, dict[bytes, int]]] = field(default_factory=dict)
    """What earlier responses had that was dropped, as `DroppedItems.by_sameness` returns it, by the number of a page.

    Items of one response that are checked by themselves share it: none of them takes the place of another one.
    """


@dataclass(slots=True, eq=False)
class VisitItems:
    """What the spider gives for a page, and what becomes of it."""

    output: Output = Output.AWAITED
    is_passed_on: bool = False
    """Whether output has begun to flow to the engine."""
    held: list[Any] = field(default_factory=list)
    """Items that are not decided yet: those without text, and those of an unchanged page."""
    decided: list[Decision] = field(default_factory=list)
    """What was decided and not yet returned."""
    is_partly_kept: bool = False
    """Whether an item was kept that does not repeat the original."""
    is_sound: bool = True
    """Whether items may be dropped; not after a bug of the plugin."""
    are_checked: bool = False
    """Whether they are checked as pages, because the page is unchecked."""
    released: Sequence[DroppedItem] = ()
    """The stored items of an earlier visit that this one releases."""
    processed: int = 0
    """Without those that have keys."""
    keyed: int = 0
    """Items that are judged by their keys, each by itself."""
    dropped: int = 0
    kept: int = 0
    would_drop: int = 0
    tagged: int = 0

    def distrust(self, *items: Any) -> list[Decision]:
        """Keep what is held, then *items*, and drop nothing of the page any more: a bug of the plugin was seen."""
        self.is_sound = False
        kept, self.held = [*self.held, *items], []
        return [*self.take_decided(), *(Decision(Fate.KEEP, item) for item in kept)]

    def take_decided(self) -> list[Decision]:
        """Return what was decided and not yet returned."""
        decided, self.decided = self.decided, []
        return decided


@dataclass(slots=True, eq=False)
class Visit:
    """A page, or an item that stands for one, on its way through the spider."""

    url: str
    page: Page | None
    """``None`` if its text was not read."""
    verdict: Verdict
    action: Action
    budget: Budget = UNLIMITED
    """What is left for the page and its items; paused while other pages have their turn."""
    is_exempt: bool = False
    """Whether its request, or a person, wants its items kept although it is a duplicate."""
    unchanged: Unchanged = Unchanged.KEEP
    """What happens to its items if it is unchanged."""
    is_item: bool = False
    """Whether it stands for one item of a page, or for items that were dropped before."""
    key: str = ""
    """The key of the item that it stands for, if that has one."""
    size: int = 0
    """Bytes of the body; 0 for an item."""
    read: Callable[[], Page] | None = None
    """Reads in full a page whose bytes are as they were; ``None`` once that is done, and for all other pages."""
    version: int | None = 0
    """The version of the index that was checked against; ``None`` to check again: its original was waited for."""
    claim: PageClaim = field(default_factory=PageClaim)
    items: VisitItems = field(default_factory=VisitItems)

    @classmethod
    def unchecked(
        cls, url: str, reason: str, action: Action, *, is_exempt: bool = False, is_item: bool = False
    ) -> Visit:
        """Return the visit of a page that cannot be checked, for *reason*."""
        verdict = Verdict(VerdictKind.UNCHECKED, reason=reason)
        return cls(url, None, verdict, action, is_exempt=is_exempt, is_item=is_item)

    def read_in_full(self) -> Page | None:
        """Return the page, read now if it was not; ``None``, and unchecked, if that fails."""
        if self.read is not None:
            read, before = self.read, self.verdict
            self.read = self.page = None
            self.verdict = Verdict(VerdictKind.UNCHECKED, reason=Reason.ERROR)
            try:
                self.page = read()
                self.verdict = before
            except UncheckableError as error:
                self.verdict = Verdict(VerdictKind.UNCHECKED, reason=error.reason)
        return self.page

    def overrule(self, rejection: Rejection) -> None:
        """Make a duplicate a related page, or a changed one, because of a *rejection*."""
        kind = VerdictKind.CHANGED if self.verdict.changes else VerdictKind.RELATED
        self.verdict = replace(
            self.verdict, kind=kind, reason=rejection.reason, difference=rejection.difference, candidates=()
        )

    @property
    def as_before(self) -> StoredPage | None:
        """What the store has of an unchanged page; ``None`` if the text that is too short for a clause has changed."""
        if self.page is None or self.verdict.kind is not VerdictKind.UNCHANGED:
            return None
        known = self.page.known or self.claim.stored
        return known if known is not None and is_marked(known.text_mark, self.page.text_mark) else None

    @property
    def as_copy(self) -> Page | None:
        """The page as it is stored if it is a duplicate: an item with the key of its original is a page beside that."""
        page = self.page
        return replace(page, identities=page.identities[2:]) if page is not None and page.is_keyed else page

    @property
    def standing(self) -> Standing | None:
        """The verdict that stands on an unchanged page; ``None`` if that is ``new``."""
        before = self.as_before
        return None if before is None else before.standing

    @property
    def compares_itself(self) -> bool:
        """Whether its items are compared with what it gave before, should it be unchanged."""
        return self.unchanged is not Unchanged.KEEP or self.action is Action.TAG

    @property
    def is_duplicate(self) -> bool:
        """Whether the verdict, as it stands, is that the page is a duplicate."""
        return self.verdict.kind is VerdictKind.DUPLICATE

    @property
    def original_is_pending(self) -> bool:
        """Whether it is a duplicate whose original may still become void."""
        match = self.verdict.match
        return self.is_duplicate and match is not None and match.original.pending

    @property
    def can_be_original(self) -> bool:
        """Whether the page has enough text to be an original, or may be that of a page at its own address."""
        if self.page is None or self.verdict.kind is not VerdictKind.UNCHECKED:
            return self.page is not None
        fingerprint = self.page.fingerprint
        has_text = fingerprint.weight >= MIN_TEXT_WEIGHT or fingerprint.is_whole
        return self.verdict.reason in _OWNS_UNCHECKED and has_text

    @property
    def outcome(self) -> Outcome:
        """What became of the page."""
        items, action = self.items, self.action
        if items.released:
            return Outcome.RELEASED if items.kept else Outcome.DROPPED
        if not self.is_duplicate:
            return Outcome.DROPPED if items.dropped else Outcome.KEPT
        count, outcome = {
            Action.DROP: (items.dropped, Outcome.DROPPED),
            Action.TAG: (items.tagged, Outcome.TAGGED),
            Action.DRY_RUN: (items.would_drop, Outcome.WOULD_DROP),
        }[action]
        if count:
            return outcome
        return Outcome.KEPT if items.dropped or items.kept or action is Action.DRY_RUN else Outcome.LINKS_LAST


class Listener(Protocol):
    """Gets the events of a crawl or a program."""

    def count(self, name: str, amount: int = 1) -> None:
        """Add to the stat ``dedup/NAME``."""

    def warn(self, line: str) -> None:
        """Log a warning."""

    def defect(self, error: Exception, where: object) -> None:
        """Report a bug of the plugin at *where*, which is kept."""

    def failed(self, error: DedupError) -> None:
        """Report that the store, the records or a feed have failed: from now on nothing is dropped.

        Called once; a second time if something else fails while the store is away.
        """

    def one_original(self, host: str, original: str, repeats: int, pages: int) -> None:
        """Report that *repeats* of the *pages* of *host*, most of them, repeat the page *original*. Once a host."""

    def one_other_host(self, host: str, other: str, repeats: int, pages: int) -> None:
        """Report that *repeats* of the *pages* of *host*, most of them, repeat pages of *other*, a host. Once a host.

        Not called if the project prefers *other*.
        """


class ItemClasses:
    """Encodes and tags the items of one crawl, and warns once of each class where that fails."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._warned: set[tuple[str, type]] = set()

    def encode(self, item: Any) -> bytes | None:
        """Return *item* as it is stored; ``None`` if its class, or a value in it, cannot be stored."""
        try:
            return item_codec.encode(item)
        except item_codec.NotStorableError as error:
            self._listener.count("items/not_storable", 1)
            if error.kind is type(item):
                self._warn_once(_NOT_STORED, type(item))
            else:
                self._warn_once(_VALUE_NOT_STORED, type(item), _name(error.kind))
            return None

    def tag(self, visit: Visit, item: Any, *, repeats: bool) -> None:
        """Put ``{original_url, score, verdict}`` on *item* under ``dedup``, if its class allows that.

        An item of a duplicate that does not itself *repeat* the original is related.
        """
        match, kind = visit.verdict.match, visit.verdict.kind
        if kind is VerdictKind.DUPLICATE and not repeats:
            kind = VerdictKind.RELATED
        from itemadapter import ItemAdapter  # noqa: PLC0415 - programs that tag nothing need not load it

        try:
            ItemAdapter(item)[TAG_FIELD] = {
                "original_url": match.original.url if match else None,
                "score": round(match.score, 4) if match else None,
                "verdict": kind.value,
            }
        except Exception:  # noqa: BLE001 - a class of the project's own may raise anything
            self._listener.count("items/tag_refused", 1)
            self._warn_once(_NOT_TAGGED, type(item), TAG_FIELD)
            return
        if kind is VerdictKind.DUPLICATE:
            visit.items.tagged += 1

    def _warn_once(self, line: str, kind: type, *more: str) -> None:
        if (line, kind) not in self._warned:
            self._warned.add((line, kind))
            self._listener.warn(line.format(_name(kind), *more))


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
