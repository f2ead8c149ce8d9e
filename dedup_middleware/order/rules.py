"""Learns which parts of an address do not matter, from duplicates and their originals on the same host.

A rule is a class of pages that share certain parts of their address: it has one or two shapes, and for each of them the
variables that are left out and the names of the others. The values of these are its key. A rule says that pages with
one key have one text: ``sid`` does not matter, ``/a/1/print`` is ``/a/1``.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from dedup_middleware.order.addresses import Address, address_of
from dedup_middleware.order.recent import Recent

#: Distinct texts that a rule needs.
LEAST_TEXTS = 2
#: The share of its keys that may have two texts.
MAX_AGAINST = 0.05
#: Shapes, rules and judged pages of a shape, and keys that are remembered.
MAX_SHAPES, _RULES_OF_SHAPE, _PAGES_OF_SHAPE, MAX_KEYS = 200, 12, 200, 30_000
#: Texts of a rule that are counted.
_MAX_TEXTS = 500
#: Keys with one text, beyond which it is a notice or a login page that stands under many addresses, and proves nothing.
_MAX_KEYS_OF_TEXT = 2


class Judged(NamedTuple):
    """A page that was fetched and judged."""

    address: Address
    url: str
    original_url: str
    """Of the page whose text it shows: its own, if it is new."""


@dataclass(frozen=True, slots=True)
class Side:
    """One shape of a rule."""

    shape: str
    left_out: frozenset[str]
    """The names of variables that do not matter."""
    renamed: tuple[tuple[str, str], ...] = ()
    """Variables whose value stands elsewhere under another name, with that name."""

    def key(self, variables: dict[str, str]) -> tuple[tuple[str, str], ...]:
        """Return the variables that matter, under their common names."""
        matter = [pair for pair in variables.items() if pair[0] not in self.left_out]
        if self.renamed:
            names = dict(self.renamed)
            matter = [(names.get(name, name), value) for name, value in matter]
        return tuple(sorted(matter))

    def __str__(self) -> str:
        text = self.shape
        if self.renamed:
            text += " (" + ", ".join(f"{name} as {common}" for name, common in self.renamed) + ")"
        return text + (" without " + ", ".join(sorted(self.left_out)) if self.left_out else "")


@dataclass(slots=True, eq=False)
class Rule:
    """A class of pages, and what was counted for and against it."""

    sides: tuple[Side, ...]
    texts: set[int] = field(default_factory=set)
    """The texts of originals that a page of the rule repeated."""
    against: int = 0
    """Keys that turned out to have a second text."""
    against_url: str = ""
    """The last URL that counted against it."""
    mark: int = field(init=False)
    """Stands for the rule in the keys of what is counted."""

    def __post_init__(self) -> None:
        self.mark = hash(self.sides)

    @property
    def holds(self) -> bool:
        """Whether it is believed."""
        support = len(self.texts)
        return support >= LEAST_TEXTS and self.against <= MAX_AGAINST * (support + self.against)

    @property
    def name(self) -> str:
        """The rule in words, the same in each crawl."""
        return " = ".join(map(str, self.sides))

    def side(self, shape: str) -> Side | None:
        """Return its side with this *shape*."""
        return next((side for side in self.sides if side.shape == shape), None)


def sides_of(page: Address, original: Address) -> tuple[Side, ...] | None:
    """Return the sides of the rule by which *page* repeats *original*; ``None`` if they have nothing in common."""
    if page.shape == original.shape:
        names = page.variables.keys() | original.variables.keys()
        same = {n for n in names if page.variables.get(n) == original.variables.get(n)}
        if not same or same == names:
            return None
        return (Side(page.shape, frozenset(names - same)),)
    renamed, free = [], dict(original.variables)
    for name, value in sorted(page.variables.items(), key=lambda item: free.get(item[0]) != item[1]):
        twin = name if free.get(name) == value else next((n for n in free if free[n] == value), None)
        if twin is not None:
            renamed.append((name, twin))
            del free[twin]
    if not renamed:
        return None
    others = page.variables.keys() - {name for name, _ in renamed}
    renames = tuple((name, twin) for name, twin in sorted(renamed) if name != twin)
    return (Side(page.shape, frozenset(others), renames), Side(original.shape, frozenset(free)))


class Rules:
    """The rules of a crawl, and the pages that they were learned from."""

    def __init__(self) -> None:
        self._rules: Recent[str, list[Rule]] = Recent(MAX_SHAPES)
        self._pages: Recent[str, deque[Judged]] = Recent(MAX_SHAPES)
        self._texts: Recent[int, int] = Recent(MAX_KEYS)
        """Rule and key -> the text of its pages; 0 if they have several."""
        self._keys_of: Recent[int, int] = Recent(MAX_KEYS)
        """Rule, text and the names of variables -> how many keys have that text."""
        self._of_text: Recent[tuple[str, str], Address] = Recent(MAX_KEYS)
        """Shape and original -> the address of a page of that shape with its text."""

    def all(self) -> list[Rule]:
        """Return the rules."""
        return list(dict.fromkeys(rule for rules in self._rules.values() for rule in rules))

    def learn(self, url: str, original_url: str) -> bool:
        """Learn from a page that was fetched and judged; return whether a rule is believed no longer."""
        address = address_of(url)
        if address is None:
            return False
        page = Judged(address, url, original_url)
        is_withdrawn = False
        for rule in self._rules.get(address.shape, ()):
            held = rule.holds
            self._see(rule, page)
            is_withdrawn |= held and not rule.holds
        pages = self._pages.get(address.shape)
        if pages is None:
            pages = self._pages[address.shape] = deque(maxlen=_PAGES_OF_SHAPE)
        pages.append(page)
        if original_url != url:
            for twin in (address_of(original_url), self._of_text.get((address.shape, original_url))):
                if twin is not None and twin.host == address.host:
                    self._learn_rule(address, twin)
        self._of_text[address.shape, original_url] = address
        return is_withdrawn

    def _learn_rule(self, address: Address, twin: Address) -> None:
        """Note the rule by which the page at *address* repeats the one at *twin*, if it is new.

        Where a shape has too many, the one with the fewest texts is forgotten.
        """
        sides = sides_of(address, twin)
        if sides is None or any(rule.sides in {sides, sides[::-1]} for rule in self._rules.get(address.shape, ())):
            return
        rule = Rule(sides)
        for shape in {side.shape for side in sides}:
            rules = [*self._rules.get(shape, ())]
            if len(rules) >= _RULES_OF_SHAPE:
                rules.remove(min(rules, key=lambda rule: len(rule.texts)))
            self._rules[shape] = [*rules, rule]
            for earlier in self._pages.get(shape, ()):
                self._see(rule, earlier)

    def _see(self, rule: Rule, page: Judged) -> None:
        """Count *page* for or against *rule*."""
        side = rule.side(page.address.shape)
        assert side is not None
        values = side.key(page.address.variables)
        key, text = hash((rule.mark, values)), hash(page.original_url)
        known, place = self._texts.get(key), hash((rule.mark, text, *dict(values)))
        if known is None:
            self._texts[key] = text
            self._keys_of[place] = self._keys_of.get(place, 0) + 1
        elif known == text:
            if len(rule.texts) < _MAX_TEXTS:
                rule.texts.add(text)
        elif known:
            self._texts[key] = 0
            rule.against += 1
            rule.against_url = page.url

    def repeats(self, address: Address) -> bool:
        """Return whether a page was fetched that, by a rule, has the text of *address*."""
        for rule in self._rules.get(address.shape, ()):
            side = rule.side(address.shape) if rule.holds else None
            values = side.key(address.variables) if side is not None else ()
            text = self._texts.get(hash((rule.mark, values))) if values else None
            if text and self._keys_of.get(hash((rule.mark, text, *dict(values))), 0) <= _MAX_KEYS_OF_TEXT:
                return True
        return False
