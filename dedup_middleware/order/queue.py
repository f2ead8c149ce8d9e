"""The priority queue of Scrapy's scheduler in two tiers: what is fetched first, and what is fetched last."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from scrapy.pqueues import DownloaderAwarePriorityQueue, DownloaderInterface

from dedup_middleware.order.disk_queues import keeping, priorities_in, slots_in
from dedup_middleware.order.requests import RequestOrder
from dedup_middleware.plugin.extension import DedupExtension
from dedup_middleware.text.terminal import plural

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scrapy import Request

#: What the priority of a request is lowered by for each level; no spider asks for half of it.
LEVEL = 10**9
#: Requests that one `pop` puts off at most.
MOST_MOVES = 50
# Requests of a slot that wait, and may be judged again, for each that is fetched, at most.
_AGAIN = 10


class TwoTierQueue(DownloaderAwarePriorityQueue):
    """Serves what is expected to bring something new before the rest, and keeps no download slot waiting for it.

    Scrapy's queue has a queue of priorities for each download slot. What is to be fetched last waits in that of its
    slot, at a priority far below all others, which it loses when it is taken out. So a JOBDIR is stored in Scrapy's own
    way, and can be resumed with either queue. Where a guess has risen, the second tier of the slot moves one level
    down: what waits above it is judged again when its turn comes.

    A JOBDIR of a crawl that was killed is resumed with all that waits in it, also what its `active.json` does not name.
    """

    def __init__(
        self,
        crawler: Any,
        downstream_queue_cls: Any,
        key: str,
        slot_startprios: dict[str, Iterable[int]] | None = None,
        *,
        start_queue_cls: Any = None,
    ) -> None:
        self._extension: DedupExtension | None = None
        self._levels: dict[str, int] = {}
        """Slot -> the level of its second tier; the first requests that are put off in a crawl have 1."""
        self._served: Counter[str] = Counter()
        """Slot -> requests that were served since its second tier was judged last."""
        self._unreadable: set[str] = set()
        """The queues of which requests could not be read."""
        self._has_lost = False
        startprios: Any = slot_startprios or {}
        if key and isinstance(startprios, dict):  # else it is of another kind of queue, and refused
            downstream_queue_cls, start_queue_cls = (
                keeping(kind, self._lose) for kind in (downstream_queue_cls, start_queue_cls)
            )
            startprios = dict.fromkeys(slots_in(key), ()) | startprios
        super().__init__(crawler, downstream_queue_cls, key, startprios, start_queue_cls=start_queue_cls)
        self._downloader_interface = _Turns(self)
        # All that waited in them was taken out before the crawl was killed.
        self.pqueues = {slot: queue for slot, queue in self.pqueues.items() if len(queue)}

    def pqfactory(self, slot: str, startprios: Iterable[int] = ()) -> Any:
        """Return the queue of *slot*, with all that it has on disk."""
        queue = super().pqfactory(slot)
        if self.key:
            startprios = {*startprios, *priorities_in(queue.key)}
        queue.init_prios(startprios)
        if len(queue):
            # What was learned is gone: all is judged again.
            self._levels[slot] = 1 + max(_level(-priority) for priority in startprios)
        return queue

    def _lose(self, path: str, number: int, cause: str) -> None:
        """Count and report that so many requests of the queue at *path* cannot be read."""
        self._has_lost = True
        if (extension := self.crawler.get_extension(DedupExtension)) is not None:
            extension.count("requests_unreadable", number)
            if path not in self._unreadable:
                extension.warn(
                    f"{plural(number, 'request')} in {path} cannot be read ({cause}). The crawl goes on, and their "
                    "pages may be missing: to fetch all pages again, set another JOBDIR"
                )
        self._unreadable.add(path)

    @property
    def _order(self) -> RequestOrder | None:
        if self._extension is None:
            self._extension = self.crawler.get_extension(DedupExtension)
        order = None if self._extension is None else self._extension.requests
        if not isinstance(order, RequestOrder):
            return None
        order.queues.add(self)
        return order

    def _slot_of(self, request: Request) -> str:
        slot: str = self.crawler.engine.downloader.get_slot_key(request)
        return slot

    def push(self, request: Request) -> None:
        """Add *request* to its tier."""
        order = self._order
        # What cannot be stored on disk comes here a second time.
        if order is not None and not _level(request.priority) and order.is_last(request):
            order.count(request)
            self._put_off(request, self._levels.setdefault(self._slot_of(request), 1))
        else:
            super().push(request)

    def _put_off(self, request: Request, level: int) -> None:
        request.priority -= LEVEL * level
        super().push(request)

    def pop(self) -> Request | None:
        """Return the next request: of the first tier of a slot that can send one now, else of the second tier of one.

        Where no slot can, it is Scrapy's choice.
        """
        request = self._pop()
        while request is None and self._has_lost:
            self._has_lost = False
            request = self._pop()
        return request

    def _pop(self) -> Request | None:
        order, request, slot = self._order, None, ""
        for move in range(MOST_MOVES):
            request = super().pop()
            if request is None:
                break
            slot, level = self._slot_of(request), _level(request.priority)
            last = self._levels.setdefault(slot, 1)
            request.priority += LEVEL * level
            if level == last or move == MOST_MOVES - 1 or order is None or not order.is_last(request):
                break
            priority = request.priority
            try:
                self._put_off(request, last)
            except Exception:  # noqa: BLE001 - a full disk: it is fetched now
                request.priority = priority
                break
            if not level:
                order.count(request)
        if slot in self.pqueues:
            self._served[slot] += 1
        else:
            # Nothing waits there: a crawl meets more hosts than it could remember.
            self._levels.pop(slot, None)
            del self._served[slot]
        return request

    def _has_first(self, slot: str) -> bool:
        """Return whether *slot* has a first tier: then its best request is in it."""
        best = self.pqueues[slot].curprio
        return best is not None and _level(-best) != self._levels.get(slot, 1)

    def turn(self, all_slots: Iterable[str]) -> list[str]:
        """Return the slots of which one is served now: those that can send a request, with a first tier if any has."""
        order, slots = self._order, [*all_slots]
        if order is None or all(map(self._has_first, slots)):
            return slots
        try:
            downloader = self.crawler.engine.downloader
            on_their_way = Counter(map(downloader.get_slot_key, downloader.active))
            ready = [slot for slot in slots if not self._is_busy(slot, on_their_way[slot])]
        except Exception as error:  # noqa: BLE001 - a plugin bug, or a downloader of the project's own
            order.fail(error)
            return slots
        return [slot for slot in ready if self._has_first(slot)] or ready or slots

    def _is_busy(self, slot: str, on_their_way: int) -> bool:
        """Return whether *slot* cannot send a request now, with so many *on their way*."""
        downloader = self.crawler.engine.downloader
        known = downloader.slots.get(slot)
        if known is None:
            return on_their_way >= max(downloader.domain_concurrency, 1)
        # With a delay, one that waits for it is enough.
        return on_their_way > len(known.transferring) if known.delay else on_their_way >= known.concurrency

    def judge_again(self, slot: str) -> None:
        """Judge again what is fetched last in *slot*, unless that was done a short while ago."""
        queue = self.pqueues.get(slot)
        if queue is not None and slot in self._levels and self._served[slot] * _AGAIN >= len(queue):
            self._levels[slot] += 1
            del self._served[slot]


class _Turns(DownloaderInterface):
    """Gives Scrapy's choice of a slot only those whose turn it is."""

    def __init__(self, queue: TwoTierQueue) -> None:
        super().__init__(queue.crawler)
        self._queue = queue

    def stats(self, possible_slots: Iterable[str]) -> list[tuple[int, str]]:
        return super().stats(self._queue.turn(possible_slots))


def _level(priority: int) -> int:
    """Return the level at which a request of this *priority* waits; 0 in the first tier."""
    return max(round(-priority / LEVEL), 0)
