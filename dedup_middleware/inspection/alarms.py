"""What a person wants to know at once, and not from the summary.

A host of which most pages repeat one and the same page: furniture taken for text, or a circle of sessions. A host of
which most pages repeat one other host: a mirror, or the source of a mirror that was fetched first. And a field by which
nearly every duplicate is kept: a counter, or the time of the day.

It counts, and keeps little.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dedup_middleware.checks.items import field_of
from dedup_middleware.reasons import Reason
from dedup_middleware.urls import host_of

if TYPE_CHECKING:
    from dedup_middleware.checks.preferences import Preferences
    from dedup_middleware.listener import Listener
    from dedup_middleware.visit import Visit

#: Fewer pages of a host tell nothing.
MIN_PAGES = 20
#: Fewer pages that repeat one other host tell nothing: stories of agencies are on every newspaper's.
MIN_PAGES_OF_ANOTHER = 30
#: A field that keeps so many of the pages that repeat another says nothing of them.
NEARLY_ALL = 0.9
_MAX_HOSTS = 10_000


@dataclass(slots=True)
class _Host:
    pages: int = 0
    owner: str = ""
    repeats: int = 0
    """How many pages repeated *owner* since it became the candidate: no more than really did."""
    votes: int = 0
    told: bool = False


class OneOwnerAlarm:
    """Counts by the majority vote of R. Boyer and J. Moore (1981): one candidate a host, whatever many owners it has.

    An owner is a page, or a host. Of very many hosts, those are forgotten from which no page has come for longest.
    """

    def __init__(self, min_repeats: int = 0) -> None:
        """Take fewer than *min_repeats* of one owner for no sign."""
        self._min_repeats = min_repeats
        self._hosts: OrderedDict[str, _Host] = OrderedDict()

    def note_page(self, host: str, owner: str | None) -> tuple[int, int] | None:
        """Note a page of *host* that repeats *owner*, or none; O(1).

        Return (pages that repeat *owner*, pages of the host) the first time that the former are most of the latter.
        """
        seen = self._hosts.setdefault(host, _Host())
        self._hosts.move_to_end(host)
        if len(self._hosts) > _MAX_HOSTS:
            self._hosts.popitem(last=False)
        seen.pages += 1
        if owner is None:
            return None
        if owner == seen.owner:
            seen.repeats += 1
            seen.votes += 1
        elif seen.votes:
            seen.votes -= 1
        else:
            seen.owner, seen.repeats, seen.votes = owner, 1, 1
        least = max(self._min_repeats, seen.pages // 2 + 1)
        if seen.told or seen.pages < MIN_PAGES or seen.repeats < least:
            return None
        seen.told = True
        return seen.repeats, seen.pages

    def has_told(self, host: str) -> bool:
        """Return whether most pages of *host* have repeated one owner."""
        return host in self._hosts and self._hosts[host].told


class FieldAlarm:
    """Counts the pages whose items were heard, and by which field each was kept."""

    def __init__(self) -> None:
        self._heard = 0
        self._kept: Counter[str] = Counter()
        self._told: set[str] = set()

    def note_page(self, fields: frozenset[str]) -> tuple[str, int, int] | None:
        """Note a page that was kept by *fields* of its item alone, or by none and dropped; O(fields).

        Return (field, pages that it kept, pages) the first time that the former are nearly all of the latter.
        """
        self._heard += 1
        self._kept.update(fields)
        for name in fields - self._told:
            if self._heard >= MIN_PAGES and self._kept[name] >= NEARLY_ALL * self._heard:
                self._told.add(name)
                return name, self._kept[name], self._heard
        return None


class Alarms:
    """Tells a *listener* once of what it should know."""

    def __init__(self, listener: Listener, preferences: Preferences) -> None:
        self._listener = listener
        self._preferences = preferences
        self._owners = OneOwnerAlarm()
        self._others = OneOwnerAlarm(MIN_PAGES_OF_ANOTHER)
        self._fields = FieldAlarm()

    def finished(self, visit: Visit) -> None:
        """Note *visit*, whose output has been seen to its end."""
        match, host = visit.verdict.match, host_of(visit.url)
        owner = match.owner.url if match is not None and visit.takes_effect else None
        if host:
            self._note_page(host, owner)
        kept = visit.verdict.reason == Reason.ITEM_VALUE
        if kept or visit.takes_effect:
            told = self._fields.note_page(frozenset(map(field_of, visit.verdict.difference if kept else ())))
            if told is not None:
                self._listener.field_that_keeps(*told)

    def _note_page(self, host: str, owner: str | None) -> None:
        if (numbers := self._owners.note_page(host, owner)) is not None and owner is not None:
            self._listener.count("hosts_with_one_owner", 1)
            self._listener.one_owner(host, owner, *numbers)
        other = None if owner is None or self._preferences.include(owner) else host_of(owner)
        numbers = self._others.note_page(host, other if other != host else None)
        # If they repeat one page of it, that says more.
        if numbers is not None and other is not None and not self._owners.has_told(host):
            self._listener.count("hosts_that_repeat_another", 1)
            self._listener.one_other_host(host, other, *numbers)
