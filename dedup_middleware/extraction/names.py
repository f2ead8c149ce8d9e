"""Reads what the names of elements and classes tell about the text inside.

A word belongs here if web designers of many sites use it for the same part of a page; the name of a site or of an
author, or a phrase of running text, never does. Makers of widgets are on many sites.
"""

from __future__ import annotations

import re
from enum import IntEnum
from functools import lru_cache
from typing import cast

from lxml import etree

from dedup_middleware.extraction.marks import SET
from dedup_middleware.text.characters import THAI


class Role(IntEnum):
    """What an element does to the text around it. Elements without a role are inline: their text simply runs on."""

    BLOCK = 1
    LINK = 2
    BREAK = 3
    UNSEEN = 4
    SET = 5


_BLOCKS = """
    address article aside blockquote body button caption center dd details dialog dir div dl dt fieldset figcaption
    figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li listing main menu nav noscript ol p pre search
    section summary table tbody td tfoot th thead tr ul
"""
# Browsers show nothing of these, or controls rather than text. Ruby readings (rp, rt) repeat the word they explain.
# Buttons are read, for one that its author forgot to close holds the rest of the page; so is <noscript>, where some
# forums keep whole threads.
_UNSEEN = """
    applet area audio base canvas datalist embed frame frameset head iframe img input link map math meta noembed
    noframes object optgroup option param rp rt script select source style svg template textarea title track video
"""

ROLES: dict[object, Role] = {
    **dict.fromkeys(_BLOCKS.split(), Role.BLOCK),
    **dict.fromkeys(_UNSEEN.split(), Role.UNSEEN),
    "a": Role.LINK,
    "br": Role.BREAK,
    **dict.fromkeys(SET, Role.SET),
    # In lxml the tag of these is the function that makes them.
    **dict.fromkeys((etree.Comment, etree.ProcessingInstruction, etree.Entity), Role.UNSEEN),
}


def is_shadow_root(element: etree._Element) -> bool:
    """Return whether *element* is a template that browsers show: the shadow tree of the element around it."""
    return element.tag == "template" and element.get("shadowrootmode") in {"open", "closed"}


HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})

# Parts of running text rather than containers of it: never chosen, and transparent to the weights that pass through.
_PARTS = "blockquote dd dl dt figcaption figure li ol p pre table tbody thead tr ul"
PARTS_OF_TEXT = HEADINGS.union(_PARTS.split())
# The elements of which a list or a table has one for each of its lines.
LISTED = frozenset({"li", "dt", "dd", "th", "td"})

# Signs of an element, as bits, for an ``IntFlag`` would take ten times as long to combine.
MILD = 1
"""It calls itself boilerplate, by a word that many wrappers of main text have too."""
BOILERPLATE = 2
"""It calls itself boilerplate."""
HIDDEN = 4
"""It is not shown, or not at first: a tab, an accordion, a dialogue, a menu."""
MAIN = 8
"""It calls itself the main text of the page."""
COMMENTS = 16
"""It calls itself comments or replies: boilerplate, but for a page that states that it is a thread."""

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
    related relate recommend recommended recommends recommendation recommendations trending popular mostpopular mostread
    hotnews morenews readmore
    newsletter subscribe subscription signup login signin register
    adv advert advertisement sponsor sponsored outbrain taboola
    cookie cookies gdpr consent popup modal overlay tooltip dropdown
    authorbio bio aboutauthor authorinfo authorbox byline
    caption captions credit
    pinglun tuijian xiangguan daohang dibu toubu guanggao
"""
_COMMENT_WORDS = "comment comments commentlist disqus replies reply respond response responses"
_MILD_WORDS = """
    sidebar tag tags taglist share sharing social sns follow ad ads promo promos promotion banner lightbox paywall
    rating ratings video videos player
"""
_MAIN_WORDS = "articlebody articletext entrybody postbody storybody"
_SIGNS = {
    **dict.fromkeys(_WORDS.split(), BOILERPLATE),
    **dict.fromkeys(_COMMENT_WORDS.split(), COMMENTS),
    **dict.fromkeys(_MILD_WORDS.split(), MILD),
    **dict.fromkeys(_MAIN_WORDS.split(), MAIN),
}
# On an element that holds one paragraph or line, other words describe how it looks: "ad" in "p.gs.ad.hk".
_LINES = HEADINGS | {"p", "blockquote", "pre"}
_WORDS_ON_LINES = "caption captions credit byline copyright disclaimer"
_SIGNS_ON_LINES = {**dict.fromkeys(_WORDS_ON_LINES.split(), BOILERPLATE), "comment": COMMENTS, "comments": COMMENTS}
# Only as a whole class: in "label-hidden" it is the label, not this element, that is hidden.
_HIDING_FOR_GOOD = dict.fromkeys(
    ["sr-only", "visually-hidden", "visuallyhidden", "screen-reader-text"], BOILERPLATE | HIDDEN
)
_HIDING = {
    **_HIDING_FOR_GOOD,
    **dict.fromkeys(["hidden", "hide", "no-display", "invisible", "w-condition-invisible"], MILD | HIDDEN),
}
_NAME_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_HIDDEN_STYLE = re.compile(r"display\s*:\s*none", re.IGNORECASE)

# Names longer than this are generated, and would let a hostile page fill the cache.
_NAME_LENGTH = 200


# Apart from `_signs_of_names`, for a site has hundreds of combinations of the same classes. 10 MB at the most.
@lru_cache(maxsize=32768)
def _signs_of_name(name: str, *, is_line: bool) -> int:
    words = _NAME_PART.findall(name)
    if not name.islower():
        words = [word.lower() for word in words]
    signs, hiding = (_SIGNS_ON_LINES, _HIDING_FOR_GOOD) if is_line else (_SIGNS, _HIDING)
    found = hiding.get(name, 0)
    before = ""
    for word in words:
        found |= signs.get(word, 0) | signs.get(before + word, 0)
        before = word
    return found


@lru_cache(maxsize=4096)
def _signs_of_names(names: str, is_line: bool) -> int:  # noqa: FBT001 - a keyword costs more
    found = 0
    for name in names.split():
        found |= _signs_of_name(name, is_line=is_line)
    return found


def signs_of(element: etree._Element) -> int:
    """Return the signs in the tag and the attributes of *element*. O(attributes), names cached."""
    tag = element.tag
    signs = _TAGS.get(tag, 0)
    for name, value in cast("list[tuple[str, str]]", element.items()):
        if name == "class" or name == "id":  # noqa: PLR1714 - quicker than a look into a tuple
            signs |= _signs_of_names(value[:_NAME_LENGTH], tag in _LINES)
        elif name in _READ:
            signs |= _ATTRIBUTES.get((name, value), 0)
            if name == "hidden":
                signs |= MILD | HIDDEN
            elif name == "style" and _HIDDEN_STYLE.search(value):
                signs |= BOILERPLATE | HIDDEN
    return signs


# Marks that running text has and labels lack, in the scripts that have them; in Thai and Lao a space ends a phrase.
# Two expressions, for a set of letters is found far quicker than the first of two alternatives.
_MARK = re.compile("[.,，。、;:!?；：！？…「」“”،؛؟۔।॥։።]")
_PHRASE_END = re.compile(f"[{THAI}] (?=[{THAI}])")
CUT_OFF = re.compile(r"(?:\.\.|…|»|>>|\u203a)\W*$")
"""Found at the end of teasers."""


def has_mark(text: str) -> bool:
    """Return whether *text* has a punctuation mark. O(len(text))."""
    return _MARK.search(text) is not None or _PHRASE_END.search(text) is not None


def count_marks(text: str) -> int:
    """Return the number of punctuation marks in *text*. O(len(text))."""
    return len(_MARK.findall(text)) or len(_PHRASE_END.findall(text))
