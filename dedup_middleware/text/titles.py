"""Splits and compares the titles of pages.

A title often consists of the page's, a separator, and the site's, in either order. The longest part is taken for the
page's where nothing is known of the site.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from dedup_middleware.common.patterns import pattern
from dedup_middleware.text.clauses import weight
from dedup_middleware.text.words import words_of

if TYPE_CHECKING:
    from collections.abc import Iterable


#: A title lighter than this, in letters (8 Han characters), is that of many pages: "Notice", "Our branches", "公告".
TELLING_TITLE_WEIGHT = 24
#: Characters of a part of a title in which words for a view are looked for.
MAX_PART = 120
# Between a title and the site's: a hyphen only where spaces are around it, for it joins words too. Only the first of
# several spaces can be where it begins: at each of them, it would be quadratic.
_SEPARATOR = pattern(r"(?<!\s)\s+[-–—:·•]+\s+|(?:(?<!\s)\s+)?[|_»›｜–—]+\s*")

# Words for a view of a page, as sites add them to titles: English, German, French, Spanish, Italian, Chinese, Japanese.
_VIEW = (
    r"print(?:able|er[- ]friendly)?(?:[ -](?:version|view|page))?|amp|mobile(?:[ -](?:version|view|site))?|"
    r"druck(?:version|ansicht)|version imprimable|imprimir|versione? stampabile|stampa|打印(?:版|本页)?|手机版|移动版|"
    r"列印|印刷(?:用|版)?|(?:page|seite|p[aá]gina|pagina) \d+(?: (?:of|von|de|di|/) ?\d+)?|"
    r"\d{1,2} ?/ ?\d{1,2}|第 ?\d+ ?[页頁]"
)
_EDGE = r"[\s\-–—:·•|,.()\[\]（）【】]*"
_VIEW_FIRST = pattern(rf"^{_EDGE}(?:{_VIEW})(?!\w){_EDGE}", re.IGNORECASE)
_VIEW_LAST = pattern(rf"{_EDGE}(?<!\w)(?:{_VIEW}){_EDGE}$", re.IGNORECASE)
_VERSION = pattern(r"(?<!\w)v?\d+(?:\.\d+)+\w*", re.IGNORECASE)


# These are called several times for a page, and not again after it.
@lru_cache(maxsize=256)
def parts(title: str) -> tuple[str, ...]:
    """Return the parts of *title*, as written.

    >>> parts("Bridge closed | The Harbour Times")
    ('Bridge closed', 'The Harbour Times')
    """
    return tuple([part for part in _SEPARATOR.split(title) if part.strip()])


@lru_cache(maxsize=1024)
def row_of(part: str) -> str:
    """Return the words of a *part*, folded and separated by spaces."""
    return " ".join(words_of(part))


@lru_cache(maxsize=256)
def main_part(title: str, heading: str) -> str:
    """Return the words of the longest part of a page's *title*, or of its *heading* if it has no title."""
    return row_of(longest(parts(title) or [heading]))


def longest(found: Iterable[str]) -> str:
    """Return the heaviest of the parts of a title."""
    return max(found, key=lambda part: weight(row_of(part).replace(" ", "")))


def is_headline(row: str) -> bool:
    """Return whether a title, the words of a *row*, is long enough to name one text."""
    return weight(row.replace(" ", "")) >= TELLING_TITLE_WEIGHT


def row_of_all(texts: Iterable[str]) -> str:
    """Return the words of all *texts*, folded and separated by spaces, with a space at both ends."""
    return f" {' '.join(words_of(chr(10).join(texts)))} "


@lru_cache(maxsize=1024)
def without_view(part: str) -> str:
    """Return *part* without the words for a view of a page at its ends: "(print version)", "AMP", "2/3", "page 2"."""
    if len(part) > MAX_PART:
        return part
    bare = _VIEW_LAST.sub("", _VIEW_FIRST.sub("", part))
    return bare if any(map(str.isalnum, bare)) else ""


def without_versions(title: str) -> str:
    """Return *title* with each version number as one mark."""
    return _VERSION.sub(" 0 ", title)


@lru_cache(maxsize=1024)
def site_row(part: str) -> str:
    """Return :func:`row_of` *part* with each version number as one mark, for the site's part of titles."""
    return row_of(_VERSION.sub(" 0 ", part))
