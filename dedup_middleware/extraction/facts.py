"""What a page says beside its main text: its title, and the numbers in its visible text.

Law of this file: it is asked only about pages with little text, where a table of prices or a name in a heading may be
all that sets two pages apart. It may cost as much as a parse.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lxml import etree

if TYPE_CHECKING:
    from collections.abc import Iterator

# Not //title: icons have titles too.
_TITLE = etree.XPath("string(/html/head/title)")
_HEADING = etree.XPath("string((//h1)[1])")
# Links are other pages' facts; scripts and styles are nobody's.
_UNSEEN = frozenset({"a", "script", "style", "noscript", "template", "select", "textarea", "head"})
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
#: More numbers than this tell nothing more: it is a table or a timetable, and the first ones set it apart.
MOST_NUMBERS = 256
#: What follows so many characters is no title any more.
MOST_TITLE = 10_000


def title_of(root: etree._Element) -> str:
    """Return the title of the page under *root*, or its first heading; empty if it has neither. O(1) for most pages."""
    return str(_TITLE(root))[:MOST_TITLE].strip() or str(_HEADING(root))[:MOST_TITLE].strip()


def numbers_of(root: etree._Element) -> frozenset[str]:
    """Return the first `MOST_NUMBERS` numbers in the visible text under *root*, links apart, as written. O(page)."""
    numbers: dict[str, None] = {}
    for text in _visible(root):
        for number in _NUMBER.findall(text):
            numbers[number] = None
            if len(numbers) == MOST_NUMBERS:
                return frozenset(numbers)
    return frozenset(numbers)


def _visible(root: etree._Element) -> Iterator[str]:
    hidden: etree._Element | None = None
    for event, element in etree.iterwalk(root, events=("start", "end", "comment", "pi")):
        if event == "start":
            if hidden is None and element.tag in _UNSEEN:
                hidden = element
            if hidden is None and element.text:
                yield element.text
            continue
        if element is hidden:
            hidden = None
        if hidden is None and element.tail:
            yield element.tail
