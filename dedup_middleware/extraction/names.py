"""What names of elements and classes tell about the text inside.

Kinds of page only. A word belongs here if web designers of many sites use it for the same furniture;
the name of a site or of an author, or a phrase of running text, never does. Makers of widgets are on many sites.
"""

from __future__ import annotations

import re
from enum import IntEnum
from functools import lru_cache
from operator import add

from lxml import etree

from dedup_middleware.text.scripts import THAI


class Role(IntEnum):
    """What an element does to the text around it. Elements without a role are inline: their text simply runs on."""

    BLOCK = 1
    LINK = 2
    BREAK = 3
    UNSEEN = 4


_BLOCKS = """
    address article aside blockquote body caption center dd details dialog dir div dl dt fieldset figcaption figure
    footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li listing main menu nav ol p pre search section summary
    table tbody td tfoot th thead tr ul
"""
# Browsers show nothing of these, or controls rather than text. Ruby readings (rp, rt) repeat the word they explain.
_UNSEEN = """
    applet area audio base button canvas datalist embed frame frameset head iframe input link map math meta noembed
    noframes noscript object optgroup option param rp rt script select source style svg template textarea title track
    video
"""

ROLES: dict[object, Role] = {
    **dict.fromkeys(_BLOCKS.split(), Role.BLOCK),
    **dict.fromkeys(_UNSEEN.split(), Role.UNSEEN),
    "a": Role.LINK,
    "br": Role.BREAK,
    # In lxml the tag of these is the function that makes them.
    **dict.fromkeys((etree.Comment, etree.ProcessingInstruction, etree.Entity), Role.UNSEEN),
}

HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})

# Parts of running text rather than containers of it: never chosen, and transparent to the weights that pass through.
_PARTS = "blockquote dd dl dt figcaption figure li ol p pre table tbody thead tr ul"
PARTS_OF_TEXT = HEADINGS.union(_PARTS.split())

FURNITURE_TAGS = frozenset({"nav", "aside", "footer", "form", "figcaption"})

# Whole words only, so "ad" is not in "read". Two words in a row count as one: "sidebar" is "side-bar", "sideBar".
_WORDS = """
    sidebar sidenav nav navi navbar navigation menu breadcrumb breadcrumbs crumb crumbs pager pagination pagenav toolbar
    masthead footer foot footnav copyright disclaimer
    comment comments commentlist disqus replies reply respond response responses
    related relate recommend recommended recommends recommendation recommendations trending popular mostpopular mostread
    hotnews morenews readmore tag tags taglist
    share sharing social sns follow newsletter subscribe subscription signup login signin register
    promo promos promotion advert advertisement ad ads adv banner sponsor sponsored outbrain taboola
    cookie cookies gdpr consent popup modal overlay lightbox paywall tooltip dropdown
    authorbio bio aboutauthor authorinfo authorbox byline
    caption captions credit rating ratings video videos player
    pinglun tuijian xiangguan daohang dibu toubu guanggao
"""
_FURNITURE_WORDS = frozenset(_WORDS.split())
# Only as a whole class: in "label-hidden" it is the label, not this element, that is hidden.
_CLASSES = "hidden hide sr-only visually-hidden visuallyhidden screen-reader-text no-display"
_HIDING_CLASSES = frozenset(_CLASSES.split())
_NAME_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_HIDDEN_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)

# Names longer than this are generated, and would let a hostile page fill the cache.
_NAME_LENGTH = 200


def names_furniture(name: str) -> bool:
    """Say whether *name*, the value of a ``class`` or ``id``, names something else than main text. O(1), cached."""
    return _names_furniture(name[:_NAME_LENGTH])


@lru_cache(maxsize=4096)
def _names_furniture(name: str) -> bool:
    words = [word.lower() for word in _NAME_PART.findall(name)]
    return (
        not _FURNITURE_WORDS.isdisjoint(words)
        or not _FURNITURE_WORDS.isdisjoint(map(add, words, words[1:]))
        or not _HIDING_CLASSES.isdisjoint(name.split())
    )


def hides(style: str) -> bool:
    """Say whether the inline *style* hides its element."""
    return _HIDDEN_STYLE.search(style) is not None


# Marks that running text has and labels lack, in the scripts that have them, the most frequent ones first; in Thai and
# Lao a space ends a phrase.
_MARKS = ".,，。、;:!?；：！？…「」“”،؛؟۔।॥։።။"
# Two expressions, for a set of letters is found far quicker than the first of two alternatives.
_MARK = re.compile(f"[{re.escape(_MARKS)}]")
_PHRASE_END = re.compile(f"[{THAI}] (?=[{THAI}])")
# How teasers end.
ENDS_CUT_OFF = re.compile(r"(?:\.\.|…|»|>>|\u203a)\W*$")


def has_mark(text: str) -> bool:
    """Say whether *text* has a punctuation mark. O(len(text))."""
    return _MARK.search(text) is not None or _PHRASE_END.search(text) is not None


def count_marks(text: str, enough: float) -> int:
    """Return the number of punctuation marks in *text*, or some number from *enough* up if it has as many.

    O(len(text)), and most texts have enough of the first two kinds of mark.
    """
    count = 0
    for mark in _MARKS:
        count += text.count(mark)
        if count >= enough:
            return count
    return count or len(_PHRASE_END.findall(text))
