"""Reads what a page has beside its main text: title, heading, the texts and facts around it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from lxml import etree
from xxhash import xxh32_digest

from dedup_middleware.model import PageFeatures
from dedup_middleware.text import fast_hash
from dedup_middleware.text.clauses import folded, one_line
from dedup_middleware.text.facts import all_facts, facts_of_data, has_number, without_dates
from dedup_middleware.text.titles import without_view

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dedup_middleware.extraction import Texts

# Not //title: icons have titles too.
_TITLE = etree.XPath("string(/html/head/title)")
_TEXT = etree.XPath("string()")
# Names of <meta> are compared without regard to case.
_DESCRIPTION = etree.XPath("string((//meta[translate(@name, 'DESCRIPTON', 'descripton') = 'description']/@content)[1])")
# In the head alone: what stands in the body, a reader may have written.
_CANONICAL = etree.XPath("string((/html/head/link[@rel = 'canonical'][@href])[last()]/@href)")
_DATA = frozenset({"application/ld+json", "application/json"})
#: What follows so many characters is no title any more.
MAX_TITLE = 300
#: Texts around the main text that are told apart; what follows counts as one.
MAX_TEXTS = 127
#: Values with numbers that are read from the data of one script, and characters of the data of all scripts.
MAX_DATA, MAX_DATA_LENGTH = 256, 200_000
#: An address is cut here, and then leads nowhere.
MAX_ADDRESS = 2_000
_DIGITS = b"0123456789"
_DIGIT = re.compile(r"[\d\u00b2\u00b3\u00b9]")
# Characters of a line that may be a date and little else.
_MAX_DATE = 60


def features_of(root: etree._Element, found: Texts) -> PageFeatures:
    """Return what the page under *root*, with the texts *found* there, has beside its main text. O(characters)."""
    title, heading, texts = _short(_TITLE(root)), _short(found.heading), found.others
    if not title and not heading and (first := next(root.iter("h1"), None)) is not None:
        heading = _short(_TEXT(first))
    if heading in title or folded(heading) in folded(title):
        heading = ""
    rest = "\n".join(texts[MAX_TEXTS:])
    around = frozenset(map(text_hash, [*texts[:MAX_TEXTS], *[rest] * bool(rest)]))
    # The numbers of a title are a part of it, and "page 1 of 2" names a view.
    with_facts = (
        text for text in texts if has_number(text) and text not in {title, found.heading} and without_view(text)
    )
    facts = [*all_facts(with_facts), *_data_facts(root)]
    canonical = str(_CANONICAL(root))[:MAX_ADDRESS].strip()
    return PageFeatures(title, heading, around, frozenset(map(fast_hash, facts)), canonical)


def _data_facts(root: etree._Element) -> Iterator[str]:
    """Yield the facts in what the scripts of the page carry as JSON; what exceeds `MAX_DATA_LENGTH` counts as one."""
    room = MAX_DATA_LENGTH
    for element in root.iter("script"):
        script = element.text if element.get("type") in _DATA else None
        if not script:
            continue
        room -= len(script)
        if room < 0:
            yield script
            return
        try:
            yield from facts_of_data(json.loads(script, strict=False), MAX_DATA)
        except (ValueError, RecursionError):
            yield from all_facts([script])


def description_of(root: etree._Element) -> str:
    """Return what the page under *root* gives as its summary, on one line; empty if it gives none. O(elements)."""
    return one_line(str(_DESCRIPTION(root)))


def _short(text: object) -> str:
    # A page can have a megabyte in its title: the beginning is cut off before anything reads it.
    return one_line(str(text)[: 10 * MAX_TITLE], MAX_TITLE)


def text_hash(text: str) -> bytes:
    """Return the hash of one *text*, as it is in :class:`PageFeatures`: without dates, times of day and digits."""
    if len(text) < _MAX_DATE and _DIGIT.search(text):
        text = without_dates(text)
    return xxh32_digest(text.encode("utf8", "surrogatepass").translate(None, _DIGITS))
