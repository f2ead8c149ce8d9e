"""What names of elements and classes tell about the text inside.

Kinds of page only. A word belongs here if web designers of many sites use it for the same boilerplate;
the name of a site or of an author, or a phrase of running text, never does. Makers of widgets are on many sites.
"""

from __future__ import annotations

import re
from enum import IntEnum
from functools import lru_cache
from typing import TYPE_CHECKING, cast

from lxml import etree

from dedup_middleware.text.characters import THAI

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Role(IntEnum):
    """What an element does to the text around it. Elements without a role are inline: their text simply runs on."""

    BLOCK = 1
    LINK = 2
    BREAK = 3
    UNSEEN = 4


_BLOCKS = """
    address article aside blockquote body button caption center dd details dialog dir div dl dt fieldset figcaption
    figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li listing main menu nav noscript ol p pre search
    section summary table tbody td tfoot th thead tr ul
"""
# Browsers show nothing of these, or controls rather than text. Ruby readings (rp, rt) repeat the word they explain.
# Buttons are read, for one that its author forgot to close holds the rest of the page; so is <noscript>, where some
# forums keep whole threads.
_UNSEEN = """
    applet area audio base canvas datalist embed frame frameset head iframe input link map math meta noembed noframes
    object optgroup option param rp rt script select source style svg template textarea title track video
"""

ROLES: dict[object, Role] = {
    **dict.fromkeys(_BLOCKS.split(), Role.BLOCK),
    **dict.fromkeys(_UNSEEN.split(), Role.UNSEEN),
    "a": Role.LINK,
    "br": Role.BREAK,
    # In lxml the tag of these is the function that makes them.
    **dict.fromkeys((etree.Comment, etree.ProcessingInstruction, etree.Entity), Role.UNSEEN),
}


def is_shadow_root(element: etree._Element) -> bool:
    """Tell whether *element* is a template that browsers show: the shadow tree of the element around it."""
    return element.tag == "template" and element.get("shadowrootmode") in {"open", "closed"}


HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})

# Parts of running text rather than containers of it: never chosen, and transparent to the weights that pass through.
_PARTS = "blockquote dd dl dt figcaption figure li ol p pre table tbody thead tr ul"
PARTS_OF_TEXT = HEADINGS.union(_PARTS.split())
# The elements of which a list or a table has one for each of its lines.
LISTED = frozenset({"li", "dt", "dd", "th", "td"})

# What an element says of itself, as bits, for an ``IntFlag`` would take ten times as long to combine.
MILD = 1
"""It calls itself something else than main text, by a word that many wrappers of main text have too."""
BOILERPLATE = 2
"""It calls itself something else than main text."""
HIDDEN = 4
"""It is not shown, or not at first: a tab, an accordion, a dialogue, a menu."""
MAIN = 8
"""It calls itself the main text of the page."""

_TAGS = {
    **dict.fromkeys(("nav", "footer", "form", "figcaption", "noscript"), BOILERPLATE),
    "aside": MILD,
    "dialog": BOILERPLATE | HIDDEN,
    "main": MAIN,
}
# By attribute and value: WAI-ARIA, and the property that schema.org has for the text of an article.
_ATTRIBUTES = {
    ("role", "main"): MAIN,
    ("role", "navigation"): BOILERPLATE,
    ("role", "contentinfo"): BOILERPLATE,
    ("role", "complementary"): MILD,
    ("itemprop", "articleBody"): MAIN,
    # A dialog covers the page until it is answered.
    **dict.fromkeys([("role", "dialog"), ("role", "alertdialog"), ("aria-modal", "true")], BOILERPLATE | HIDDEN),
    ("aria-hidden", "true"): MILD | HIDDEN,
}

_READ = frozenset(["hidden", "style", *(name for name, _ in _ATTRIBUTES)])

# Whole words only, so "ad" is not in "read". Two words in a row count as one: "sidenav" is "side-nav", "sideNav".
_WORDS = """
    sidenav nav navi navbar navigation menu breadcrumb breadcrumbs crumb crumbs pager pagination pagenav toolbar
    masthead footer foot footnav copyright disclaimer
    comment comments commentlist disqus replies reply respond response responses
    related relate recommend recommended recommends recommendation recommendations trending popular mostpopular mostread
    hotnews morenews readmore
    newsletter subscribe subscription signup login signin register
    adv advert advertisement sponsor sponsored outbrain taboola
    cookie cookies gdpr consent popup modal overlay tooltip dropdown
    authorbio bio aboutauthor authorinfo authorbox byline
    caption captions credit
    pinglun tuijian xiangguan daohang dibu toubu guanggao
"""
_MILD_WORDS = """
    sidebar tag tags taglist share sharing social sns follow ad ads promo promos promotion banner lightbox paywall
    rating ratings video videos player
"""
_MAIN_WORDS = "articlebody articletext entrybody postbody storybody"
_SIGNS = {
    **dict.fromkeys(_WORDS.split(), BOILERPLATE),
    **dict.fromkeys(_MILD_WORDS.split(), MILD),
    **dict.fromkeys(_MAIN_WORDS.split(), MAIN),
}
# On an element that holds one paragraph or line, the other words tell how it looks: "ad" in "p.gs.ad.hk".
_LINES = HEADINGS | {"p", "blockquote", "pre"}
_WORDS_ON_LINES = "comment comments caption captions credit byline copyright disclaimer"
_SIGNS_ON_LINES = dict.fromkeys(_WORDS_ON_LINES.split(), BOILERPLATE)
# Only as a whole class: in "label-hidden" it is the label, not this element, that is hidden.
_HIDING_FOR_GOOD = dict.fromkeys(
    ["sr-only", "visually-hidden", "visuallyhidden", "screen-reader-text"], BOILERPLATE | HIDDEN
)
_HIDING = {
    **_HIDING_FOR_GOOD,
    **dict.fromkeys(["hidden", "hide", "no-display", "invisible", "w-condition-invisible"], MILD | HIDDEN),
}
_NAME_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_HIDDEN_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)

# Names longer than this are generated, and would let a hostile page fill the cache.
_NAME_LENGTH = 200


def _reader(signs: Mapping[str, int], hiding: Mapping[str, int]) -> Callable[[str], int]:
    """Return what reads the *signs* in a name; caches hold 10 MB at the most."""

    # Apart, for a site has hundreds of combinations of the same classes.
    @lru_cache(maxsize=32768)
    def of_class(name: str) -> int:
        words = _NAME_PART.findall(name)
        if not name.islower():
            words = [word.lower() for word in words]
        found = hiding.get(name, 0)
        before = ""
        for word in words:
            found |= signs.get(word, 0) | signs.get(before + word, 0)
            before = word
        return found

    @lru_cache(maxsize=4096)
    def of_name(name: str) -> int:
        found = 0
        for class_ in name.split():
            found |= of_class(class_)
        return found

    return of_name


_signs_of = _reader(_SIGNS, _HIDING)
_signs_of_line = _reader(_SIGNS_ON_LINES, _HIDING_FOR_GOOD)


def signs_of(name: str, tag: str = "") -> int:
    """Return what *name*, the value of a ``class`` or ``id`` of an element *tag*, says of it. O(1), cached."""
    read = _signs_of_line if tag in _LINES else _signs_of
    return read(name[:_NAME_LENGTH])


def signs_of_element(element: etree._Element) -> int:
    """Return what the tag and the attributes of *element* say of it. O(attributes), names cached."""
    tag = element.tag
    signs = _TAGS.get(tag, 0)
    read = _signs_of_line if tag in _LINES else _signs_of
    for name, value in cast("list[tuple[str, str]]", element.items()):
        if name == "class" or name == "id":  # noqa: PLR1714 - quicker than a look into a tuple
            signs |= read(value[:_NAME_LENGTH])
        elif name in _READ:
            signs |= _ATTRIBUTES.get((name, value), 0)
            if name == "hidden":
                signs |= MILD | HIDDEN
            elif name == "style" and _HIDDEN_STYLE.search(value):
                signs |= BOILERPLATE | HIDDEN
    return signs


# Marks that running text has and labels lack, in the scripts that have them, the most frequent ones first; in Thai and
# Lao a space ends a phrase.
_MARKS = ".,，。、;:!?；：！？…「」“”،؛؟۔।॥։።။"
# Two expressions, for a set of letters is found far quicker than the first of two alternatives.
_MARK = re.compile(f"[{re.escape(_MARKS)}]")
_PHRASE_END = re.compile(f"[{THAI}] (?=[{THAI}])")
# How teasers end.
_CUT_OFF = re.compile(r"(?:\.\.|…|»|>>|\u203a)\W*$")


def ends_cut_off(text: str) -> bool:
    """Say whether *text*, not empty, breaks off as teasers do. O(1)."""
    # Nearly all texts end in a letter, or in one mark.
    if text[-1].isalnum() or (text[-1] == "." and text[-2:-1].isalnum()):
        return False
    return _CUT_OFF.search(text, max(0, len(text) - 8)) is not None


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
