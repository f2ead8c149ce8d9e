"""Estimates what the pages of a shape bring: new items, or links to pages that bring some."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dedup_middleware.economy.recent import Recent

if TYPE_CHECKING:
    from dedup_middleware.economy.addresses import Address

#: What a link to a page is worth, beside the page.
OF_A_LINK = 0.6
#: A request that is worth less is held back; never more than half of what a page brings at present.
LEAST_VALUE = 0.15
#: Pages of a shape that bring nothing, one after the other, until it counts as a trap. Twenty would hide the stories
#: behind a calendar.
TRAP = 150
#: Hosts with fewer forms than that have opaque addresses: there the estimate did harm.
LEAST_FORMS = 3
# Pages over which an estimate is taken; older ones count half, a quarter... The weight of the wider estimate, in pages.
_WINDOW, _LEANING = 40, 2.0
#: What a host is thought to bring before its first page.
_PRIOR = 0.5
_NOTHING = (0.0, 0.0)
#: Hosts, shapes and forms that are remembered.
MAX_PATTERNS = 40_000


class Values:
    """What hosts, shapes and forms have brought so far."""

    def __init__(self) -> None:
        self.traps: set[str] = set()
        """Shapes that get no more pages."""
        self.lifted: set[str] = set()
        """Shapes that are no traps, because a person has said so."""
        self.present = 0.0
        """Items a page, over the last pages of the crawl."""
        self._sums: Recent[int, tuple[float, float]] = Recent(MAX_PATTERNS)
        """Of a pattern, its pages and what they brought; both halved now and then."""
        self._forms: Recent[int, int] = Recent(MAX_PATTERNS)
        self._barren: Recent[int, int] = Recent(MAX_PATTERNS)

    def add(self, address: Address, value: float, *, is_item: bool) -> bool:
        """Note that the page at *address* brought *value*; return whether its shape has just become a trap."""
        self.present += (is_item - self.present) / _WINDOW
        host, shape, form = keys = _keys(address)
        if self._sums.get(form) is None:
            self._forms[host] = self._forms.get(host, 0) + 1
        for pattern in {*keys}:
            pages, total = self._sums.get(pattern, _NOTHING)
            if pages >= _WINDOW:
                pages, total = pages / 2, total / 2
            self._sums[pattern] = (pages + 1, total + value)
        barren = self._barren[shape] = 0 if value else self._barren.get(shape, 0) + 1
        if barren != TRAP or address.shape in self.lifted:
            return False
        self.traps.add(address.shape)
        return True

    def of_form(self, form: str) -> float:
        """Return what a page of *form* has brought by itself; 0 if nothing."""
        pages, total = self._sums.get(hash(form), _NOTHING)
        return total / (pages + 1)

    def of(self, address: Address) -> float:
        """Return what the page at *address* is expected to bring: 1 for an item. Each estimate leans on a wider one."""
        value = _PRIOR
        for pattern in _keys(address):
            pages, total = self._sums.get(pattern, _NOTHING)
            value = (total + _LEANING * value) / (pages + _LEANING)
        return value

    def is_low(self, address: Address) -> bool:
        """Return whether the request of *address* is to wait until others have been fetched."""
        if self._forms.get(hash("//" + address.host), 0) < LEAST_FORMS:
            return False
        return self.of(address) < min(LEAST_VALUE, self.present / 2)


def _keys(address: Address) -> tuple[int, int, int]:
    """Return the keys of the patterns of *address*, the widest first; a form without parameters is its shape."""
    return hash("//" + address.host), hash(address.shape), hash(address.form)
