"""Decides which requests wait, which are fetched as samples, and what is released when the crawl has nothing else."""

from __future__ import annotations

from collections import defaultdict
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

from dedup_middleware.economy.addresses import address_of
from dedup_middleware.economy.recent import Recent
from dedup_middleware.economy.rules import Hold, Judged, Rules
from dedup_middleware.economy.values import OF_A_LINK, Values

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dedup_middleware.economy.rules import Rule

#: Requests of low value that are fetched all the same, so that an estimate that was wrong is found out.
_LET_THROUGH = 5
#: Samples of a rule when the crawl has nothing else to fetch: at least, and at most, and the share between.
LEAST_SAMPLES, MOST_SAMPLES, _SAMPLED_PART = 20, 60, 4
#: Requests of low value that are released at a time, those of the best shapes first.
_STEP = 20
_MAX_SEEN = 80_000


class Mode(str, Enum):
    """What the economy of a crawl does."""

    OFF = "off"
    WATCH = "watch"
    """It learns, and counts what it would hold back."""
    LAST = "last"
    """What is held back is fetched last; only traps are not fetched."""
    ON = "on"
    """What is held back by final rules is not fetched."""


class Visited(NamedTuple):
    """What became of a page."""

    urls: tuple[str, ...]
    """That of its request, and where its redirects ended."""
    original_url: str | None
    """Of the page whose text it shows, its own if it is new; ``None`` if it was not judged."""
    links: tuple[str, ...]
    """The URLs of the requests that came from it."""
    brings_item: bool = False


class Event(NamedTuple):
    """Something that a person may want to see."""

    kind: str
    """``found``: a rule holds requests from now on; ``withdrawn``: it does so no longer; ``trap``."""
    name: str
    """Of the rule, or the shape that is a trap."""
    rule: Rule | None = None
    url: str = ""
    """The page that counted against the rule, or that brought nothing."""


class Economy:
    """The economy of one crawl. Pure: requests are URLs here, and what is held is counted by where it waits."""

    def __init__(self, mode: Mode) -> None:
        self.mode = mode
        self.rules = Rules()
        self.values = Values()
        self.samples: defaultdict[int, int] = defaultdict(int)
        self._seen: Recent[int, bool] = Recent(_MAX_SEEN)

    # --- a request that is to be fetched

    def hold(self, url: str) -> Hold | None:
        """Return why the request of *url* is to wait; ``None`` if it is to be fetched, perhaps as a sample."""
        address = address_of(url)
        if address is None:
            return None
        hold = self.rules.hold(address)
        if hold is not None:
            return None if self.rules.is_sample(hold, url) else hold
        if address.shape in self.values.traps:
            return Hold("trap", address.shape)
        if self.values.is_low(address) and crc32(url.encode("utf8", "replace")) % 100 >= _LET_THROUGH:
            return Hold("low_value", address.form)
        return None

    def covers(self, url: str) -> bool:
        """Return whether a rule holds back the request of *url* still."""
        address = address_of(url)
        return address is not None and self.rules.hold(address) is not None

    # --- a page that was fetched

    def visited(self, page: Visited) -> list[Event]:
        """Learn from *page*; return what has changed."""
        events = []
        if page.original_url is not None:
            for url in dict.fromkeys(page.urls):
                for rule, holds in self.rules.judged(Judged(url, page.original_url)):
                    events.append(Event("found" if holds else "withdrawn", rule.name, rule, "" if holds else url))
        for url in page.urls:
            self._is_first(url)
        address = address_of(page.urls[-1])
        if address is not None:
            value = 1.0 if page.brings_item else OF_A_LINK * self._best_link(address.shape, page.links)
            if self.values.add(address, value, is_item=page.brings_item):
                events.append(Event("trap", address.shape, url=page.urls[-1]))
        return events

    def _best_link(self, shape: str, links: Iterable[str]) -> float:
        """Return the value of the best of *links* that was not seen before, and leads to another shape."""
        best = 0.0
        for url in links:
            address = address_of(url) if self._is_first(url) else None
            if address is None or address.shape == shape or address.shape in self.values.traps:
                continue
            if self.rules.hold(address) is None:
                best = max(best, self.values.of(address))
        return best

    def _is_first(self, url: str) -> bool:
        key = hash(url)
        if self._seen.get(key):
            return False
        self._seen[key] = True
        return True

    # --- nothing else to fetch

    def at_idle(self, waiting: Mapping[Hold, int]) -> dict[Hold, int]:
        """Return what is to be fetched of what is *waiting*, now that there is nothing else: how many for each reason.

        First what waits since an earlier run, then the best of what is of low value, then samples of the rules, then
        what rules hold that are not final.
        """
        earlier = {hold: count for hold, count in waiting.items() if hold.reason == "earlier_run"}
        if earlier:
            return earlier
        low = {hold: self.values.of_form(hold.pattern) for hold in waiting if hold.reason == "low_value"}
        best = max(low, key=lambda hold: low[hold], default=None)
        if best is not None and low[best]:
            return {best: min(_STEP, waiting[best])}
        samples: dict[Hold, int] = {}
        for hold, count in waiting.items():
            if hold.rule is not None and not hold.is_proved:
                wanted = min(max(count // _SAMPLED_PART, LEAST_SAMPLES), MOST_SAMPLES) - self.samples[hold.stratum]
                if wanted > 0:
                    samples[hold] = min(wanted, count)
                    self.samples[hold.stratum] += samples[hold]
        if samples:
            return samples
        if best is not None:
            return {best: min(_STEP, waiting[best])}
        return {
            hold: count
            for hold, count in waiting.items()
            if hold.rule is not None and (self.mode is not Mode.ON or not hold.rule.is_final)
        }
