"""Holds what all parts of one crawl share: what was opened for it, who gets its events, and what has failed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

from dedup_middleware.checks.detector import Detector, Preferences
from dedup_middleware.errors import TROUBLE
from dedup_middleware.items.keys import ItemKeys
from dedup_middleware.items.reading import ItemCheck
from dedup_middleware.visits.drops import Drops
from dedup_middleware.visits.visit import ItemClasses

if TYPE_CHECKING:
    from collections.abc import Callable

    from dedup_middleware.driver.opening import Resources
    from dedup_middleware.errors import DedupError, UnreadableError
    from dedup_middleware.reasons import Reason
    from dedup_middleware.visits.durability import DiskWaits, Flush
    from dedup_middleware.visits.visit import Listener, Visit


@dataclass(eq=False)
class Core(ABC):
    """What the parts of one crawl share, or of one program that checks pages."""

    opened: Resources
    run: str
    """Its name."""
    listener: Listener
    _: KW_ONLY
    jobdir: str = ""
    """The name that it has in later processes, which go on with it; empty if none do."""
    feeds: frozenset[str] = frozenset()
    """The kinds of its feeds."""
    feeds_wanting: Callable[[Any], frozenset[str]] = lambda _: frozenset()
    """Returns the kinds of the feeds that want an item."""
    feeds_end_late: Callable[[], bool] = lambda: False
    """Returns whether a feed is on disk only when it ends."""
    flush: Flush | None = None
    """See `Durability`; the same for *disks*."""
    disks: DiskWaits | None = None
    store_failure: Reason | None = None
    """Why the store can not be used, once that is so: then pages are unchecked."""
    has_failed: bool = False
    """Whether something has failed: from then on nothing is dropped, and nothing made durable."""
    awaits_store: bool = False
    """Whether the only failure is a store that is away."""

    def __post_init__(self) -> None:
        config, index, fingerprint = self.opened.config, self.opened.index, self.opened.fingerprint
        self.spider, self.index = config.spider or "", index
        ours = Detector(index, fingerprint.hash, config.rules, Preferences(config.preferred), self.feeds)
        self.detector: Detector = ours if index.beside is None else index.beside.detector(ours)
        self.item_check = ItemCheck(fingerprint, config.max_bytes, config.item_fields)
        self.keys = ItemKeys(self.spider, config.key)
        self.classes = ItemClasses(self.listener)
        self.drops = Drops(index, self.classes, config, self.run, self.jobdir)
        self.open: dict[int, Visit] = {}
        """The visits with open claims, by the number of that in the index, or of the original that is kept again."""
        self.guard = _Guard(self.fail)

    def repeats_released(self, visit: Visit, item: Any, *, takes: bool = False) -> bool:
        """Return whether *item* was released in this crawl to the feeds that want it; if it *takes* it, once."""
        repeats = self.drops.repeat_released if takes else self.drops.is_released
        with self.guard:
            return not self.has_failed and repeats(visit, item, self.feeds_wanting)
        return False

    @abstractmethod
    def fail(self, error: DedupError | UnreadableError) -> None:
        """Drop nothing any more: from now on every page is kept."""


class _Guard:
    """A context that trouble ends without an error; *fail* gets it."""

    def __init__(self, fail: Callable[[DedupError | UnreadableError], None]) -> None:
        self._fail = fail

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        if not isinstance(error, TROUBLE):
            return False
        self._fail(error)
        return True
