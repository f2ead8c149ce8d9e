"""A host of which most pages repeat one and the same page: furniture taken for text, or a circle of sessions.

Either way a person wants to know at once, and not from the summary. Law of this file: it counts, and keeps little.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

#: Fewer pages of a host tell nothing.
FEWEST_PAGES = 20
_MOST_HOSTS = 10_000


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

    Of very many hosts, those are forgotten from which no page has come for longest.
    """

    def __init__(self) -> None:
        self._hosts: OrderedDict[str, _Host] = OrderedDict()

    def note_page(self, host: str, owner: str | None) -> tuple[int, int] | None:
        """Note a page of *host* that repeats the page *owner*, or none; O(1).

        Return (pages that repeat *owner*, pages of the host) the first time that the former are most of the latter.
        """
        seen = self._hosts.setdefault(host, _Host())
        self._hosts.move_to_end(host)
        if len(self._hosts) > _MOST_HOSTS:
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
        if seen.told or seen.pages < FEWEST_PAGES or 2 * seen.repeats <= seen.pages:
            return None
        seen.told = True
        return seen.repeats, seen.pages
