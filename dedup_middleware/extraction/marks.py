"""Reads what a page shows that is not text: pictures, media, files, formulas, form values and icons.

Two pages with the same words and another picture, formula or chosen box are two pages. A mark is compared as a whole;
it identifies nothing by itself.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, cast
from urllib.parse import unquote

from dedup_middleware.common.patterns import pattern

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lxml.etree import _Element

_MARKED = """audio canvas embed iframe img input math object rp rt select source svg textarea track video"""
#: The elements that browsers show, and that hold no text of the page.
MARKED = frozenset(_MARKED.split())
#: The elements whose text is read otherwise than it is written: raised, struck out, inserted.
SET = frozenset({"del", "ins", "s", "strike", "sub", "sup"})
_FORMS = frozenset({"button", "hidden", "image", "reset", "submit"})
# Of a URL: what a server names a page, not a file.
_PAGE_NAMES = """html htm xhtml shtml php php3 php5 asp aspx jsp jspx jsf do action cgi cfm pl com org net"""
_PAGES = frozenset(_PAGE_NAMES.split())
# Of an extension with its point.
_LONGEST_NAME = 6
_FILE = pattern(r"((?:[^?#]*/)?)[^/?#]*\.([a-z][a-z0-9]{1,4})(?![^?#])", re.IGNORECASE)
# Characters of a mark: a picture may be written into its URL.
_LONGEST = 1_000


def is_file(href: str) -> bool:
    """Return whether *href* leads to a file: the last part of its path has an extension that is not that of a page."""
    if "." not in href[-_LONGEST_NAME:] and "?" not in href and "#" not in href:
        # Most of the links of a page.
        return False
    found = _FILE.match(href)
    # After two slashes stands a host.
    return found is not None and not found[1].endswith("//") and found[2].lower() not in _PAGES


def mark_of(element: _Element) -> str:
    """Return what a `MARKED` or `SET` *element* shows; empty if that is nothing. O(what is inside)."""
    tag, get = element.tag, element.get
    if tag == "img":
        return f"img {picture_of(_source_of(element))} {_line(get('alt'))}".rstrip()
    if tag == "input":
        kind = get("type", "text").lower()
        if kind in {"checkbox", "radio"}:
            return f"{kind} {'on' if get('checked') is not None else 'off'}"
        value = _line(get("value"))
        return f"input {value}" if value and kind not in _FORMS else ""
    if tag == "select":
        chosen = [_text(option) for option in element.iter("option") if option.get("selected") is not None]
        return f"select {' '.join(chosen)}" if chosen else ""
    if tag in SET or tag in {"math", "svg", "rt", "textarea"}:
        # The former may be nested: each is read to its first child only.
        text = _line(element.text) if tag in SET else _text(element)
        return f"{tag} {text}".rstrip() if text or tag in SET else ""
    # Those of a player are its children: to look deeper would read the sources of nested ones again for each.
    inside = filter(None, (each.get("src") for each in element.iterchildren("source")))
    source = get("src") or get("data-src") or get("data") or get("srcset") or next(inside, "")
    return f"{tag} {source[:_LONGEST]}" if source else ""


def icon_of(element: _Element) -> str:
    """Return what an *element* without text and children shows by its attributes.

    That is an icon, what a style sheet writes, a picture in the background, or what an element of the page's own draws:
    ``<amp-img src>``, ``<lite-youtube videoid>``.
    """
    if "-" in element.tag:
        values = [value for name, value in _attributes(element) if name not in _LAYOUT]
        return f"{element.tag} {_line(' '.join(values))}" if values else ""
    shown, drawn = list[str](), None
    # Some sixty elements of a page are looked at.
    for name, value in _attributes(element):
        if name in _SHOWN or (name[:5] == "data-" and not value.isdecimal()):
            shown.append(value)
        elif name == "style" and "url(" in value:
            drawn = _DRAWN.search(value)
    if drawn:
        shown.append(picture_of(drawn[1]))
    return f"icon {_line(' '.join(shown))}" if shown else ""


_SHOWN = frozenset({"class", "aria-label", "title"})
# Attributes of a custom element that say where and how large it is.
_LAYOUT = frozenset({"class", "height", "id", "layout", "sizes", "style", "width"})
_DRAWN = pattern(r"""url\(\s*["']?([^"')]{1,1000})""")


def _attributes(element: _Element) -> list[tuple[str, str]]:
    return cast("list[tuple[str, str]]", element.items())


def _source_of(element: _Element) -> str:
    """Return the URL of the picture that an ``<img>`` shows in the end: scripts load it from an attribute of theirs."""
    lazy = [value for name, value in _attributes(element) if name.startswith("data-") and _PICTURE.search(value)]
    return next(iter(lazy), "") or element.get("src") or _first(element.get("srcset") or "")


def _first(srcset: str) -> str:
    return srcset.strip().partition(" ")[0].rstrip(",")


# A URL, perhaps the first of a set, that names a picture.
_PICTURE = pattern(r"\.(?:avif|gif|jpe?g|png|svg|webp)(?![a-z])", re.IGNORECASE)
# The size in the name of a file, and a folder that is named for one: "-300x200", "/300x200/", "/w_300,h_200/".
_SIZE_IN_NAME = pattern(r"[-_@](?:\d+x\d*|\d*x\d+|scaled|\d+w)(?=\Z)")
_SIZE = pattern(r"\d+x\d*|(?:[whq]_?\d+[,-]?)+", re.IGNORECASE)


def picture_of(url: str) -> str:
    """Return what names the picture at *url*, in any size and format: its path without these.

    A query counts where the path names no file: "/image?id=3". The host does not: it changes with the size.

    >>> picture_of("https://cdn.example/2026/w_300/gate-300x200.webp?w=300")
    '2026/gate'
    """
    if url.startswith("data:"):
        return url[:_LONGEST]
    return _named_picture(url) if len(url) <= _LONGEST else _named_picture.__wrapped__(url)


# The icons of a site stand on each of its pages.
@lru_cache(maxsize=2048)
def _named_picture(url: str) -> str:
    has_host = url[:2] == "//" or "://" in url
    *folders, name = unquote(_path(url.partition("//")[2] if has_host else url)).split("/")
    if has_host:
        del folders[:1]
    stem, point, _ = name.rpartition(".")
    named = _SIZE_IN_NAME.sub("", stem) if point else f"{name} {url.partition('?')[2]}".rstrip()
    return "/".join([*(each for each in folders if each and not _SIZE.fullmatch(each)), named])[:_LONGEST]


def _path(url: str) -> str:
    return url.partition("#")[0].partition("?")[0]


def _text(element: _Element) -> str:
    return _line("".join(cast("Iterator[str]", element.itertext()))[: 10 * _LONGEST])


def _line(text: str | None) -> str:
    return " ".join((text or "")[: 10 * _LONGEST].split())[:_LONGEST]
