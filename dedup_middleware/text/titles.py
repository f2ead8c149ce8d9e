"""What a page is called.

Pure functions over titles. A title is often that of the page, a mark, and that of the site, or the
reverse; nothing here knows which is which, but that a page says more of itself than a site does.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from dedup_middleware.text.clauses import weight
from dedup_middleware.text.words import is_unspaced, split_words, terms, words_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dedup_middleware.model import PageFeatures

#: A title lighter than this, in letters (8 Han characters), is that of many pages: "Notice", "Our branches", "公告".
TELLING_TITLE_WEIGHT = 24
#: Characters of a part of a title in which words for a view are looked for.
MAX_PART = 120
# Letters of a word that tells what a page is about; shorter ones are in most texts.
_LONG_WORD = 4
# Between a title and the site's: a hyphen only where spaces are around it, for it joins words too.
_SEPARATOR = re.compile(r"\s+[-–—:·•]+\s+|\s*[|_»›｜–—]+\s*")

# Words for a view of a page, as sites add them to titles: English, German, French, Spanish, Italian, Chinese, Japanese.
_VIEW = (
    r"print(?:able|er[- ]friendly)?(?:[ -](?:version|view|page))?|amp|mobile(?:[ -](?:version|view|site))?|"
    r"druck(?:version|ansicht)|version imprimable|imprimir|versione? stampabile|stampa|打印(?:版|本页)?|手机版|移动版|"
    r"列印|印刷(?:用|版)?|(?:page|seite|p[aá]gina|pagina) \d+(?: (?:of|von|de|di|/) ?\d+)?|\d+ ?/ ?\d+|第 ?\d+ ?[页頁]"
)
_EDGE = r"[\s\-–—:·•|,.()\[\]（）【】]*"
_VIEW_FIRST = re.compile(rf"^{_EDGE}(?:{_VIEW})(?!\w){_EDGE}", re.IGNORECASE)
_VIEW_LAST = re.compile(rf"{_EDGE}(?<!\w)(?:{_VIEW}){_EDGE}$", re.IGNORECASE)
_VERSION = re.compile(r"(?<!\w)v?\d+(?:\.\d+)+\w*", re.IGNORECASE)


# A page's title is asked for several times on its way, and never again.
@lru_cache(maxsize=256)
def parts(title: str) -> tuple[str, ...]:
    """Return the parts of *title*, as written."""
    return tuple(part for part in _SEPARATOR.split(title) if part.strip())


@lru_cache(maxsize=1024)
def row_of(part: str) -> str:
    """Return the words of a *part*, folded and separated by spaces."""
    return " ".join(words_of(part))


@lru_cache(maxsize=256)
def _main_part(title: str, heading: str) -> str:
    return row_of(longest(parts(title) or [heading]))


def main_part(features: PageFeatures) -> str:
    """Return the longest part of a page's title, or of its heading if it has none: folded words."""
    return _main_part(features.title, features.heading)


def longest(found: Iterable[str]) -> str:
    """Return that of the parts of a title that says most."""
    return max(found, key=lambda part: weight(row_of(part).replace(" ", "")))


def is_echoed(title: str, texts: Iterable[str]) -> bool:
    """Tell whether any longer word of *title* is in *texts*; also where it has none. O(characters), 10 to 50 µs."""
    words = split_words(title.casefold())
    pairs = (one + other for one, other in pairwise(words) if is_unspaced(one) and is_unspaced(other))
    telling = {*pairs, *(word for word in words if len(word) >= _LONG_WORD and word.isalpha())}
    if not telling:
        return True
    text = "\n".join(texts).casefold()
    return any(word in text for word in telling)


def in_a_row(texts: Iterable[str]) -> str:
    """Return the words of *texts*, for :func:`says`."""
    return f" {' '.join(word for text in texts for word in words_of(text))} "


def says(row: str, part: str) -> bool:
    """Tell whether the words of *part* stand in a *row*, next to each other and in this order."""
    return f" {row_of(part)} " in row


def own_parts(page: PageFeatures, original: PageFeatures, text: Callable[[], Iterable[str]]) -> list[str]:
    """Return the parts of the names of *page*, title and heading, that its *original* lacks in its names and *text*.

    Words for a view of the page do not count: "(print)", "page 2". *text* is called only where it matters.
    """
    if (page.title, page.heading) == (original.title, original.heading):
        return []
    called = in_a_row([original.title, original.heading])
    words = set(called.split())
    named = [part for name in (page.title, page.heading) for part in parts(name)]
    own = [part for part in named if (rest := without_view(part)) and not words.issuperset(words_of(rest))]
    if own:
        said = in_a_row(text())
        own = [part for part in own if not says(said, without_view(part))]
    return own


@lru_cache(maxsize=1024)
def without_view(part: str) -> str:
    """Return *part* without the words for a view of a page at its ends: "(print version)", "AMP", "2/3", "page 2"."""
    if len(part) > MAX_PART:
        return part
    bare = _VIEW_LAST.sub("", _VIEW_FIRST.sub("", part))
    return bare if any(map(str.isalnum, bare)) else ""


@lru_cache(maxsize=1024)
def site_row(part: str) -> str:
    """Return :func:`row_of` *part* with each version number as one mark, for the site's part of titles."""
    return row_of(_VERSION.sub(" 0 ", part))


def shared_terms(own: Iterable[str], original: PageFeatures, text: Callable[[], Iterable[str]]) -> float:
    """Return how much of a page's *own* parts of its title the *original* has, in its names or *text*, by weight, 0-1.

    1 for a page that is not called anything.
    """
    named = {term: weight(term) for part in own for term in terms(words_of(part))}
    total = sum(named.values())
    if not total:
        return 1.0
    # Of parts too: a character that is a part by itself makes a pair with the next one in the whole.
    names = (f"{original.title}\n{original.heading}", *parts(original.title), *parts(original.heading))
    said = {term for name in names for term in terms(words_of(name))}
    if not named.keys() <= said:
        said.update(terms(words_of("\n".join(text()))))
    return sum(w for term, w in named.items() if term in said) / total
