"""Learns which parts of an address do not matter, from duplicates and their originals.

A rule is a class of pages that share certain parts of their address: it has one or two shapes, and for each of them the
variables that are left out and the names of the others. The values of these are its key. A rule says that pages with
one key have one text: ``sid`` does not matter, ``/a/1/print`` is ``/a/1``, one host is a mirror of another.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

from dedup_middleware.economy.addresses import Address, address_of
from dedup_middleware.economy.recent import Recent

if TYPE_CHECKING:
    from collections.abc import Iterator


#: Distinct texts that a rule needs until it holds requests back, and until what it holds may stay unfetched.
TO_HOLD, TO_BE_FINAL = 2, 20
#: The share of its keys that may have two texts.
MAX_AGAINST = 0.05
#: Of held requests whose key is not proved, the share that is fetched as a sample, beside the 4th, 8th, 16th...
SAMPLED = 0.06
_FIRST_SAMPLE = 4
#: Characters of a value that is left out up to which pages with another value are sampled by themselves: ``page=2``.
_SHORT = 3
#: Rules, rules of a shape, keys, judged pages, and judged pages of a shape that are remembered.
MAX_RULES, _RULES_OF_SHAPE, MAX_KEYS, _MAX_PAGES, _PAGES_OF_SHAPE = 2000, 12, 30_000, 8_000, 1000
#: Texts of a rule that are counted.
_MAX_TEXTS = 500
#: Keys with one text, beyond which it is a notice or a login page that stands under many addresses, and proves nothing.
_MAX_KEYS_OF_TEXT = 2


class Judged(NamedTuple):
    """A page that was fetched and judged."""

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


@dataclass(slots=True, eq=False)
class Rule:
    """A class of pages, and what was counted for and against it."""

    sides: tuple[Side, ...]
    texts: set[int] = field(default_factory=set)
    """The texts of originals that a page of the rule repeated."""
    inherited: int = 0
    """Texts of earlier crawls, at half weight."""
    against: int = 0
    """Keys that turned out to have a second text."""
    is_off: bool = False
    """Whether a person has switched it off."""
    against_url: str = ""
    """The last URL that counted against it."""
    mark: int = field(init=False)
    """Stands for the rule in the keys of what is counted."""

    def __post_init__(self) -> None:
        self.mark = hash(self.sides)

    @property
    def support(self) -> int:
        """The distinct texts that speak for it."""
        return len(self.texts) + self.inherited

    @property
    def holds(self) -> bool:
        """Whether requests are held back by it."""
        support = self.support
        return not self.is_off and support >= TO_HOLD and self.against <= MAX_AGAINST * (support + self.against)

    @property
    def is_final(self) -> bool:
        """Whether what it holds may stay unfetched."""
        return self.holds and self.support >= TO_BE_FINAL and not self.against

    @property
    def name(self) -> str:
        """The rule in words, the same in each crawl."""
        return " = ".join(map(_described, self.sides))

    @property
    def id(self) -> str:
        """A short name for the command line."""
        return rule_id(self.name)

    def side(self, shape: str) -> Side | None:
        """Return its side with this *shape*."""
        return next((side for side in self.sides if side.shape == shape), None)


def rule_id(name: str) -> str:
    """Return the id of the rule, or trap, with this *name*: eight hexadecimal digits."""
    return f"{crc32(name.encode('utf8', 'replace')):08x}"


def _described(side: Side) -> str:
    text = side.shape
    if side.renamed:
        text += " (" + ", ".join(f"{name} as {common}" for name, common in side.renamed) + ")"
    if side.left_out:
        text += " without " + ", ".join(sorted(side.left_out))
    return text


def rule_of(page: Address, original: Address) -> tuple[Side, ...] | None:
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


def _place(rule: Rule, text: int, values: tuple[tuple[str, str], ...]) -> int:
    """Return the place of a *text* among the addresses of *rule* with these variables, with any values."""
    return hash((rule.mark, text, *[name for name, _ in values]))


class Hold(NamedTuple):
    """What a request waits for."""

    reason: str
    """``rule``, ``low_value``, ``trap`` or ``earlier_run``."""
    pattern: str = ""
    """The form that is of low value, or the shape that is a trap."""
    rule: Rule | None = None
    stratum: int = 0
    """The pages of *rule* that are sampled together: their form, and the short values that are left out."""
    is_proved: bool = False
    """Whether a page of the stratum with its key was fetched and judged: then it need not be sampled."""

    @property
    def text(self) -> str:
        """The reason in words."""
        return f"{self.reason} {self.pattern}" if self.rule is None else f"rule {self.rule.id} {self.rule.name}"


class Rules:
    """The rules of a crawl, and the pages that they were learned from."""

    def __init__(self) -> None:
        self.by_sides: dict[tuple[Side, ...], Rule] = {}
        self._by_shape: defaultdict[str, list[Rule]] = defaultdict(list)
        self._pages: OrderedDict[str, deque[Judged]] = OrderedDict()
        self._count = 0
        self._texts: Recent[int, int] = Recent(MAX_KEYS)
        """Rule and key -> the text of its pages; 0 if they have several."""
        self._keys_of: Recent[int, int] = Recent(MAX_KEYS)
        """Rule, text and the names of variables -> how many keys have that text."""
        self._proved: Recent[int, bool] = Recent(MAX_KEYS)
        self._unproved: Recent[int, int] = Recent(MAX_KEYS)
        self._of_text: Recent[tuple[str, str], str] = Recent(_MAX_PAGES)
        """Shape and original -> a page of that shape with its text."""

    def add(self, rule: Rule) -> None:
        """Add *rule*; where a shape has too many, the one with the least support is forgotten."""
        self.by_sides[rule.sides] = rule
        for side in rule.sides:
            rules = self._by_shape[side.shape]
            rules.append(rule)
            if len(rules) > _RULES_OF_SHAPE:
                self._remove(min(rules[:-1], key=lambda r: r.support))
        if len(self.by_sides) > MAX_RULES:
            self._remove(min(list(self.by_sides.values())[:-1], key=lambda r: r.support))

    def _remove(self, rule: Rule) -> None:
        self.by_sides.pop(rule.sides, None)
        for side in rule.sides:
            rules = self._by_shape[side.shape]
            rules.remove(rule)
            if not rules:
                del self._by_shape[side.shape]

    def judged(self, page: Judged) -> Iterator[tuple[Rule, bool]]:
        """Learn from *page*; yield the rules that hold now and did not, with ``True``, or no longer, with ``False``."""
        address = address_of(page.url)
        if address is None:
            return
        for rule in [*self._by_shape.get(address.shape, ())]:
            held = rule.holds
            self._see(rule, page)
            if rule.holds is not held:
                yield rule, rule.holds
        self._remember(address.shape, page)
        if page.original_url != page.url:
            sibling = self._of_text.get((address.shape, page.original_url))
            for twin in {page.original_url, sibling or page.original_url}:
                rule = self._learned(address, twin)
                if rule is not None and rule.holds:
                    yield rule, True
        self._of_text[address.shape, page.original_url] = page.url

    def _learned(self, address: Address, twin_url: str) -> Rule | None:
        """Return the rule by which the page at *address* repeats the one at *twin_url*, if it is new."""
        twin = address_of(twin_url)
        sides = None if twin is None else rule_of(address, twin)
        if sides is None or sides in self.by_sides or sides[::-1] in self.by_sides:
            return None
        rule = Rule(sides)
        self.add(rule)
        for shape in {side.shape for side in sides}:
            for earlier in self._pages.get(shape, ()):
                self._see(rule, earlier)
        return rule

    def _remember(self, shape: str, page: Judged) -> None:
        pages = self._pages.get(shape)
        if pages is None:
            pages = self._pages[shape] = deque(maxlen=_PAGES_OF_SHAPE)
        self._count += len(pages) < _PAGES_OF_SHAPE
        pages.append(page)
        self._pages.move_to_end(shape)
        while self._count > _MAX_PAGES:
            self._count -= len(self._pages.popitem(last=False)[1])

    def _see(self, rule: Rule, page: Judged) -> None:
        """Count *page* for or against *rule*, and note the key that it proves."""
        address = address_of(page.url)
        side = None if address is None else rule.side(address.shape)
        if address is None or side is None:
            return
        values = side.key(address.variables)
        key, text = hash((rule.mark, values)), hash(page.original_url)
        known, place = self._texts.get(key), _place(rule, text, values)
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
        self._proved[hash((self._stratum(rule, side, address), values))] = True

    def hold(self, address: Address) -> Hold | None:
        """Return why the request of *address* is held back by a rule, if it is."""
        found = None
        for rule in self._by_shape.get(address.shape, ()):
            if not rule.holds:
                continue
            side = rule.side(address.shape)
            assert side is not None
            values = side.key(address.variables)
            text = self._texts.get(hash((rule.mark, values))) if values else None
            if text and self._keys_of.get(_place(rule, text, values), 0) <= _MAX_KEYS_OF_TEXT:
                stratum = self._stratum(rule, side, address)
                if self._proved.get(hash((stratum, values))):
                    return Hold("rule", "", rule, stratum, is_proved=True)
                found = found or Hold("rule", "", rule, stratum)
        return found

    def is_sample(self, hold: Hold, url: str) -> bool:
        """Return whether the request of *url* is to be fetched as a sample, though there is a *hold*; counts it."""
        if hold.is_proved:
            return False
        count = self._unproved[hold.stratum] = (self._unproved.get(hold.stratum) or 0) + 1
        is_power = count >= _FIRST_SAMPLE and not count & (count - 1)
        return is_power or crc32(url.encode("utf8", "replace")) % 100 < 100 * SAMPLED

    def _stratum(self, rule: Rule, side: Side, address: Address) -> int:
        short = [(n, address.variables.get(n)) for n in sorted(side.left_out)]
        values = tuple((n, value if len(value) <= _SHORT else "") for n, value in short if value is not None)
        return hash((rule.mark, address.form, values))

    def all(self) -> Iterator[Rule]:
        """Yield the rules, those that hold something back and the others."""
        yield from self.by_sides.values()
