"""The priority queue of Scrapy's scheduler in two tiers: what is fetched first, and what is fetched last."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from scrapy.pqueues import DownloaderAwarePriorityQueue

from dedup_middleware.plugin.extension import DedupExtension

if TYPE_CHECKING:
    from scrapy import Request

    from dedup_middleware.plugin.requests import RequestOrder

# Between a download slot and the number of its queue in the second tier.
_LAST = "\tlast\t"
#: Requests that one `pop` moves to the second tier at most.
MOST_MOVES = 50
# Requests of a slot that are judged again for each that is fetched, at most.
_AGAIN = 10


class TwoTierQueue(DownloaderAwarePriorityQueue):
    """Serves what is expected to bring something new before the rest, and keeps no download slot waiting for it.

    Scrapy's queue has a queue of priorities for each download slot, and serves the slot with the fewest downloads. Here
    a slot has a second one, with a name of its own. Both are stored in a JOBDIR in Scrapy's own way: a job can be
    resumed with either queue. Where a guess has risen, the second tier of the slot becomes part of the first, and a new
    one gets what is still to be fetched last.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._extension: DedupExtension | None = None
        self._numbers: dict[str, int] = {}
        """Slot -> the number of its queue in the second tier; those with other numbers belong to the first."""
        self._served: Counter[str] = Counter()
        """Slot -> requests that were served since its second tier was judged last."""
        # A slot may have an empty name: that of the request by which items are released, and it comes first.
        self._served_last: str | None = None
        for name in self.pqueues:
            # What was learned is gone: all is judged again.
            slot, _, number = name.partition(_LAST)
            self._numbers[slot] = max(self._numbers.get(slot, 0), int(number or 0) + 1)

    @property
    def _order(self) -> RequestOrder | None:
        if self._extension is None:
            self._extension = self.crawler.get_extension(DedupExtension)
        order = None if self._extension is None else self._extension.requests
        if order is not None:
            order.queues.add(self)
        return order

    def push(self, request: Request) -> None:
        """Add *request* to its tier."""
        order = self._order
        if order is not None and order.is_last(request):
            self._put_off(request)
            order.count(request)
        else:
            super().push(request)

    def _put_off(self, request: Request) -> None:
        slot = self.crawler.engine.downloader.get_slot_key(request)
        name = f"{slot}{_LAST}{self._numbers.setdefault(slot, 0)}"
        if name not in self.pqueues:
            self.pqueues[name] = self.pqfactory(name)
        self.pqueues[name].push(request)

    def pop(self) -> Request | None:
        """Return the next request: of the first tier of a slot that can send one now, else of the second tier of one.

        Where no slot can, of the one with the fewest requests on their way.
        """
        order = self._order
        if order is None:
            return super().pop()
        request = None
        for move in range(MOST_MOVES):
            if not self.pqueues:
                break
            try:
                name = self._next()
            except Exception as error:  # noqa: BLE001 - a plugin bug, or a downloader of the project's own
                order.fail(error)
                return super().pop()
            slot, was_last, _ = name.partition(_LAST)
            request = self._take(name)
            if request is None:
                continue
            if move == MOST_MOVES - 1 or self._is_last(name) or not order.is_last(request):
                break
            try:
                self._put_off(request)
            except Exception:  # noqa: BLE001 - a full disk: it is fetched now
                break
            if not was_last:
                order.count(request)
        if request is not None:
            self._served_last = slot
            self._served[slot] += 1
        return request

    def _take(self, name: str) -> Request | None:
        queue = self.pqueues[name]
        request = queue.pop()
        if not queue:
            del self.pqueues[name]
            queue.close()
        return request

    def _is_last(self, name: str) -> bool:
        slot, is_numbered, number = name.partition(_LAST)
        return bool(is_numbered) and int(number) == self._numbers.get(slot)

    def _next(self) -> str:
        """Return the name of the queue whose turn it is. Without a second tier, it is Scrapy's choice."""
        downloader = self.crawler.engine.downloader
        last = {name for name in self.pqueues if _LAST in name and self._is_last(name)}
        on_their_way = Counter(map(downloader.get_slot_key, downloader.active)) if last else None

        def rank(name: str) -> tuple[bool, bool, int, bool, str, bool]:
            slot, is_last = name.partition(_LAST)[0], name in last
            known = downloader.slots.get(slot)
            is_busy = on_their_way is not None and self._is_busy(slot, on_their_way[slot])
            active = len(known.active) if known is not None else 0
            had_its_turn = self._served_last is not None and slot <= self._served_last
            return is_busy, is_last and not is_busy, active, had_its_turn, slot, is_last

        return min(self.pqueues, key=rank)

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
        number = self._numbers.get(slot, 0)
        last = self.pqueues.get(f"{slot}{_LAST}{number}")
        if last is not None and self._served[slot] * _AGAIN >= len(last):
            self._numbers[slot] = number + 1
            del self._served[slot]
