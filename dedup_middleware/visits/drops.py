"""Writes the items of one crawl that are dropped, those that are kept until a feed ends, and what is to be released."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from dedup_middleware.index import item_codec
from dedup_middleware.index.dropped_items import DroppedItem, basis_of
from dedup_middleware.items.same_item import FetchedItem
from dedup_middleware.model import Action, Scope

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dedup_middleware.index.dropped_items import KeyValue
    from dedup_middleware.index.index import Changed, Index
    from dedup_middleware.model import Match, Page
    from dedup_middleware.settings import Config
    from dedup_middleware.visits.visit import ItemClasses, Visit


class Written(NamedTuple):
    """A drop that was written, unless the action is another."""

    number: int = 0
    """That of the page, as a duplicate."""
    original: int = 0
    size: int = 0
    """Bytes by which the dropped items have grown."""
    replaced: bytes = b""
    """The key of the same item, dropped before; empty if there is none."""


class Drops:
    """The stored items of one *crawl*; none of a program, which gets no items back."""

    def __init__(self, index: Index, classes: ItemClasses, config: Config, crawl: str, jobdir: str) -> None:
        self._index = index
        self._classes = classes
        self._spider = config.spider or ""
        self._named = config.item_fields
        self._crawl = crawl
        self._jobdir = jobdir if index.eligibility.scope is Scope.CRAWL else ""
        self._size = None if config.spider is None else config.dropped_size
        self._age = config.dropped_age
        # The released items that may be the same, with the feeds that have taken each, by page and `FetchedItem.key`.
        self._released: dict[tuple[int, bytes], list[tuple[DroppedItem, frozenset[str]]]] = {}

    # --- dropped

    def encode(self, item: Any) -> bytes | None:
        """Return *item* as it is stored; ``None`` if it cannot be, and empty where dropped items are not stored."""
        return b"" if self._size is None else self._classes.encode(item)

    def write(  # noqa: PLR0913, PLR0917 - what a drop consists of
        self, visit: Visit, page: Page, match: Match, item: Any, data: bytes, feeds: frozenset[str]
    ) -> Written:
        """Write that *item*, encoded as *data*, of *page* is dropped for *match*, in one batch with the duplicate.

        *feeds* wanted it. Call it within a transaction.
        """
        original, dropped, size, replaced = match.original, self._index.dropped, 0, b""
        fetched = self._fetched(data, visit.url)

        def items(number: int, was_stored: bool) -> Changed:  # noqa: FBT001 - called back
            nonlocal size, replaced
            if self._size is None:
                return (), ()
            sizes = self._alike(visit, fetched, number, was_stored=was_stored)
            # What comes from no response, such as the items of start(), takes the place of no item of this crawl.
            alike = (each for each in dropped.replaceable(sizes) if visit.url or each.crawl != self._crawl)
            before = fetched.nearest(alike)
            replaced = b"" if before is None else before.key
            for_feed = bool(feeds) or (before is not None and before.for_feed)
            kind = item_codec.name_of(type(item))
            pairs = dropped.pairs(self._new(visit, number, kind, data, match, for_feed=for_feed), fetched.key)
            size = len(pairs[0][1]) - sizes.get(replaced, 0)
            return pairs, [] if before is None else dropped.deletes([before])

        if visit.claim.written_for == original.number:
            number = visit.claim.stored_number
            self._index.store.write(*items(number, was_stored=True))
        else:
            number = self._index.remember_duplicate(page, match, items)
        return Written(number, original.number, size, replaced)

    def note(self, visit: Visit, written: Written) -> None:
        """Note what was *written*, and make room for it."""
        visit.claim.stored_number, visit.claim.written_for = written.number, written.original
        for alike in visit.claim.dropped_before.get(written.number, {}).values():
            alike.pop(written.replaced, None)
        self.make_room(written.size)

    def remember_undropped(self, visit: Visit) -> None:
        """Store the page of a duplicate whose items were tagged, or kept in a dry run, as one."""
        match, has_items = visit.verdict.match, visit.items.dropped or visit.items.kept
        # After a failure, copies of claims that are still open are kept, too: these have no page yet.
        is_one = not visit.original_is_pending and not visit.claim.written_for
        if is_one and has_items and match is not None and (page := visit.as_copy) is not None:
            self._index.atomically(self._index.remember_duplicate, page, match, is_dropped=False)

    def make_room(self, added: int) -> None:
        """Remove the oldest dropped items beyond the bounds, now that *added* bytes were written."""
        if self._size is not None:
            self._index.dropped.make_room(added, size=self._size, age=self._age)

    def _new(  # noqa: PLR0913 - what an item is stored with
        self, visit: Visit, number: int, kind: str, data: bytes, match: Match | None, *, for_feed: bool
    ) -> DroppedItem:
        """Return an item of the page *number*, of the class *kind*: dropped for *match*, or kept."""
        return DroppedItem(
            number=number,
            original=number if match is None else match.original.number,
            spider=self._spider,
            crawl=self._crawl,
            jobdir=self._jobdir,
            for_feed=for_feed,
            time="",
            url=visit.url,
            original_url=visit.url if match is None else match.original.url,
            score=1.0 if match is None else round(match.score, 4),
            type=kind,
            data=data,
            basis=b"" if match is None else basis_of(match.original),
        )

    def note_again(self, visit: Visit, item: Any, feeds: frozenset[str]) -> bool:
        """Note and return whether *item*, for *feeds*, was dropped before, as it would be now; its page was not read.

        So it would if its original's text and items are as they were. Then nothing is written but by which crawl, as
        long as that has not fetched the original.
        """
        match, known = visit.verdict.match, None if visit.page is None else visit.page.known
        if match is None or known is None or visit.action is not Action.DROP:
            return False
        original = match.original
        with suppress(item_codec.NotStorableError):
            fetched = self._fetched(item_codec.encode(item), visit.url)
            before = fetched.nearest(self._index.dropped.replaceable(self._alike(visit, fetched, known.number)))
            if before is None or before.original != original.number or not original.kept.has_reached(feeds):
                return False
            if before.basis == basis_of(original) != b"":
                visit.claim.written_for, visit.claim.stored_number = original.number, known.number
                self._index.note_dropped_again(known, self._crawl)
                return True
        return False

    def _fetched(self, data: bytes, url: str) -> FetchedItem:
        return FetchedItem(data, url, self._spider, self._named)

    def _alike(
        self, visit: Visit, fetched: FetchedItem, number: int, *, was_stored: bool = True
    ) -> Mapping[bytes, int]:
        """Return what earlier responses had of the page *number* that may be the item *fetched*: keys, and sizes.

        A scan, once a response, if the page *was stored*.
        """
        before = visit.claim.dropped_before
        if number not in before:
            before[number] = self._index.dropped.by_sameness(number) if was_stored else {}
        return before[number].get(fetched.key, {})

    # --- kept until a feed ends

    def as_stored(self, item: Any) -> tuple[str, bytes] | None:
        """Return the class and the data of *item*, before the pipelines; ``None`` if it cannot be stored."""
        with suppress(item_codec.NotStorableError):
            if self._size is not None:
                return item_codec.name_of(type(item)), item_codec.encode(item)
        return None

    def kept_pairs(self, visit: Visit, number: int) -> list[KeyValue]:
        """Return what stores the kept items of *visit*, which becomes the original *number*."""
        pairs = []
        for kind, data in filter(None, visit.claim.kept):
            item = self._new(visit, number, kind, data, None, for_feed=bool(visit.claim.feeds))
            pairs += self._index.dropped.kept_pairs(item)
        return pairs

    # --- released

    def note_released(self, item: DroppedItem, feeds: frozenset[str] | None) -> None:
        """Note that *item* was released, and that *feeds* have taken it as it was; ``None`` if it was another then."""
        if feeds is not None:
            same = self._fetched(item.data, item.url).key
            self._released.setdefault((item.number, same), []).append((item, feeds))

    def repeat_released(self, visit: Visit, item: Any, wanting: Callable[[Any], frozenset[str]]) -> bool:
        """Return whether *item* of an unchanged page is dropped, because it was released to all feeds *wanting* it.

        Each released item once. It need not be stored: until the released one is durable, the store has that.
        """
        released, before = self._released_as(visit, item, wanting)
        released[:] = [pair for pair in released if pair[0] is not before]
        return before is not None

    def is_released(self, visit: Visit, item: Any, wanting: Callable[[Any], frozenset[str]]) -> bool:
        """Return what `repeat_released` returns, and note nothing."""
        return self._released_as(visit, item, wanting)[1] is not None

    def _released_as(
        self, visit: Visit, item: Any, wanting: Callable[[Any], frozenset[str]]
    ) -> tuple[list[tuple[DroppedItem, frozenset[str]]], DroppedItem | None]:
        """Return the released *item* of the page of *visit*, if there is one, and the list that has it."""
        page, stored = visit.page, visit.claim.stored
        if not self._released or page is None or visit.action is not Action.DROP:
            return [], None
        if page.is_keyed:
            numbers = [known.number for known in self._index.same(page.identities[:2])]
        else:
            numbers = [] if stored is None else [stored.number]
        with suppress(item_codec.NotStorableError):
            fetched = self._fetched(item_codec.encode(item), visit.url)
            for released in (self._released.get((number, fetched.key), []) for number in numbers):
                before = fetched.nearest(each for each, feeds in released if wanting(item) <= feeds)
                if before is not None:
                    return released, before
        return [], None
