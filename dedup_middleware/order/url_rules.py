"""Takes an address apart, and learns which parts do not matter from duplicates and originals of one host and shape."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from dedup_middleware.order.recent import Recent

#: Characters of an address, and variables in it, beyond which it is not taken apart.
MAX_LENGTH, MAX_VARIABLES = 1000, 24

# Digits; a hexadecimal or mixed identifier; a slug of three words or more, which may end in a number.
_IDENTIFIER = re.compile(r"(?=[^\W_]*[0-9])(?:[0-9a-fA-F]{8,}|(?=[^\W_]*[a-zA-Z])[^\W_]{10,})")
_SLUG = re.compile(r"(?:[^\W_]|%[0-9A-Fa-f]{2})+(?:[-_+.~](?:[^\W_]|%[0-9A-Fa-f]{2})+){2,}")
_DIGITS = re.compile(r"[0-9]+")
_LONG_SEGMENT = 30
_VARIABLE = "*"
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


# A page that was fetched and judged: its URL, and that of the page whose text it shows; its own, if it is new. Plain
# tuples of strings, which garbage collections do not look at; a `UrlShape` is five times as large, too.
_Judged = tuple[str, str]


class UrlShape(NamedTuple):
    """An http address without its fragment."""

    host: str
    """With its port, if it has one."""
    segments: tuple[str, ...]
    """Of the path, with ``*`` where a variable was taken out."""
    shape: str
    """Host and path, with these."""
    names: str
    """Of its parameters, as a query has them, sorted; empty if it has none."""
    variables: dict[str, str]
    """Name -> value: those of the path by place (``1``, ``2``), those after ``;`` and in the query by name."""

    @property
    def form(self) -> str:
        """The shape, with the names of the parameters."""
        return self.shape + self.names


# The links of a page, which are looked at in turn.
@lru_cache(maxsize=128)
def address_of(url: str) -> UrlShape | None:
    """Return the address of *url*; ``None`` if it is not http, or too long to be taken apart.

    >>> address_of("http://shop.example/p/12.html?sid=9").form
    'shop.example/p/*.html?sid'
    """
    if len(url) > MAX_LENGTH or not url.startswith(("http://", "https://")):
        return None
    before, _, query = url.partition("#")[0].partition("?")
    netloc, _, path = before.partition("://")[2].partition("/")
    values: list[str] = []
    parameters: dict[str, str] = {}
    segments = []
    for segment in path.split("/"):
        name, *after = segment.split(";")
        segments.append(_taken_out(name, values))
        for parameter in after:
            _add(parameters, ";", parameter)
    for parameter in query.split("&"):
        _add(parameters, "", parameter)
    if len(values) + len(parameters) > MAX_VARIABLES:
        return None
    host = netloc.rpartition("@")[2].lower()
    variables = {str(place): value for place, value in enumerate(values, 1)} | parameters
    names = f"?{'&'.join(sorted(parameters))}" if parameters else ""
    return UrlShape(host, tuple(segments), "/".join((host, *segments)), names, variables)


def _taken_out(segment: str, values: list[str]) -> str:
    """Return *segment* with ``*`` for each variable, and add what was there to *values*."""
    if segment.isalpha() and len(segment) <= _LONG_SEGMENT:
        return segment
    stem, dot, suffix = segment.rpartition(".")
    if not dot or len(suffix) > 5 or not suffix.isalpha():  # noqa: PLR2004 - .xhtml
        stem, dot, suffix = segment, "", ""
    if len(stem) > _LONG_SEGMENT or _IDENTIFIER.fullmatch(stem) or _SLUG.fullmatch(stem):
        values.append(stem)
        return _VARIABLE + dot + suffix
    values.extend(_DIGITS.findall(stem))
    return _DIGITS.sub(_VARIABLE, stem) + dot + suffix


def _add(parameters: dict[str, str], mark: str, parameter: str) -> None:
    name, _, value = parameter.partition("=")
    if name or value:
        before = parameters.get(mark + name)
        parameters[mark + name] = value if before is None else f"{before},{value}"


@dataclass(slots=True, eq=False)
class Rule:
    """Says that pages of one shape whose addresses differ in some variables only have one text: ``sid`` is no matter.

    The other variables are the key of a page.
    """

    shape: str
    left_out: frozenset[str]
    """The names of the variables that do not matter."""
    texts: set[int] = field(default_factory=set)
    """The texts of originals that a page of the rule repeated."""
    against: int = 0
    """Keys that turned out to have a second text."""
    against_url: str = ""
    """The last URL that counted against it."""

    @property
    def holds(self) -> bool:
        """Whether it is believed."""
        support = len(self.texts)
        return support >= LEAST_TEXTS and self.against <= MAX_AGAINST * (support + self.against)

    @property
    def name(self) -> str:
        """The rule in words, the same in each crawl."""
        return f"{self.shape} without {', '.join(sorted(self.left_out))}"

    def key(self, address: UrlShape) -> int:
        """Return what is equal for all addresses that differ only in what does not matter."""
        matter = [pair for pair in address.variables.items() if pair[0] not in self.left_out]
        return hash((self.shape, self.left_out, *sorted(matter)))


class Rules:
    """The rules of a crawl, and the pages that they were learned from."""

    def __init__(self) -> None:
        self._rules: Recent[str, list[Rule]] = Recent(MAX_SHAPES)
        self._pages: Recent[str, deque[_Judged]] = Recent(MAX_SHAPES)
        self._texts: Recent[int, int] = Recent(MAX_KEYS)
        """Key of a rule -> the text of its pages; 0 if they have several."""
        self._keys_of: Recent[int, int] = Recent(MAX_KEYS)
        """Rule and text -> how many keys have that text."""
        self._of_text: Recent[int, str] = Recent(MAX_KEYS)
        """Shape and original -> the URL of a page of that shape that repeats it."""

    def all(self) -> list[Rule]:
        """Return the rules."""
        return [rule for rules in self._rules.values() for rule in rules]

    def learn(self, url: str, original_url: str) -> bool:
        """Learn from a page that was fetched and judged; return whether a rule is believed no longer."""
        address = address_of(url)
        if address is None:
            return False
        page = url, original_url
        is_withdrawn = False
        for rule in self._rules.get(address.shape, ()):
            held = rule.holds
            self._see(rule, page, address)
            is_withdrawn |= held and not rule.holds
        if address.shape not in self._pages:
            self._pages[address.shape] = deque(maxlen=_PAGES_OF_SHAPE)
        self._pages[address.shape].append(page)
        if original_url != url:
            key = hash((address.shape, original_url))
            for twin in map(address_of, (original_url, self._of_text.get(key, ""))):
                if twin is not None and twin.shape == address.shape:
                    self._learn_rule(address, twin)
            self._of_text[key] = url
        return is_withdrawn

    def _learn_rule(self, address: UrlShape, twin: UrlShape) -> None:
        """Note the rule by which the page at *address* repeats the one at *twin*, if it is new.

        Where the shape has too many, the one with the fewest texts is forgotten.
        """
        mine, other = address.variables, twin.variables
        different = frozenset(name for name in mine.keys() | other.keys() if mine.get(name) != other.get(name))
        rules = self._rules.get(address.shape, [])
        if not 0 < len(different) < len(mine.keys() | other.keys()) or any(r.left_out == different for r in rules):
            return
        if len(rules) >= _RULES_OF_SHAPE:
            rules.remove(min(rules, key=lambda rule: len(rule.texts)))
        rule = Rule(address.shape, different)
        self._rules[address.shape] = [*rules, rule]
        for earlier in self._pages.get(address.shape, ()):
            if (there := address_of(earlier[0])) is not None:
                self._see(rule, earlier, there)

    def _see(self, rule: Rule, page: _Judged, address: UrlShape) -> None:
        """Count *page*, at this *address*, for or against *rule*."""
        url, original_url = page
        key, text = rule.key(address), hash(original_url)
        known = self._texts.get(key)
        if known is None:
            self._texts[key] = text
            place = hash((rule.shape, rule.left_out, text))
            self._keys_of[place] = self._keys_of.get(place, 0) + 1
        elif known == text:
            if len(rule.texts) < _MAX_TEXTS:
                rule.texts.add(text)
        elif known:
            self._texts[key] = 0
            rule.against += 1
            rule.against_url = url

    def repeats(self, address: UrlShape) -> bool:
        """Return whether a page was fetched that, by a rule, has the text of *address*."""
        for rule in self._rules.get(address.shape, ()):
            text = self._texts.get(rule.key(address)) if rule.holds else None
            if text and self._keys_of.get(hash((rule.shape, rule.left_out, text)), 0) <= _MAX_KEYS_OF_TEXT:
                return True
        return False
