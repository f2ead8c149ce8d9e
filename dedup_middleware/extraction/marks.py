"""Reads what a page shows that is not text: pictures, media, files, formulas, form values and icons.

Two pages with the same words and another picture, formula or chosen box are two pages. A mark is compared as a whole;
it identifies nothing by itself.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast
from urllib.parse import unquote

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
_FILE = re.compile(r"((?:[^?#]*/)?)[^/?#]*\.([a-z][a-z0-9]{1,4})(?![^?#])", re.IGNORECASE)
# Characters of a mark: a picture may be written into its URL.
_LONGEST = 1_000


def is_file(href: str) -> bool:
    """Return whether *href* leads to a file: the last part of its path has an extension that is not that of a page."""
    found = _FILE.match(href)
    # After two slashes stands a host.
    return found is not None and not found[1].endswith("//") and found[2].lower() not in _PAGES


def mark_of(element: _Element) -> str:
    """Return what a `MARKED` or `SET` *element* shows; empty if that is nothing. O(what is inside)."""
    tag, get = element.tag, element.get
    if tag == "img":
        source = get("data-src") or get("data-original") or get("src") or ""
        return f"img {_name(source)} {_line(get('alt'))}".rstrip()
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
    """Return what an inline *element* without text shows by its attributes: an icon, or what a style sheet writes."""
    shown = [
        value
        for name, value in cast("list[tuple[str, str]]", element.items())
        if name in {"class", "aria-label", "title"} or (name.startswith("data-") and not value.isdecimal())
    ]
    return f"icon {_line(' '.join(shown))}" if shown else ""


def _name(source: str) -> str:
    """Return the last part of the path of a picture: its host and its folder change with its size.

    A query counts where that is no name of a file: "/image?id=3".
    """
    if source.startswith("data:"):
        return source[:_LONGEST]
    name = unquote(_path(source).rpartition("/")[2])
    return (name if "." in name else f"{name} {source.partition('?')[2]}".rstrip())[:_LONGEST]


def _path(url: str) -> str:
    return url.partition("#")[0].partition("?")[0]


def _text(element: _Element) -> str:
    return _line("".join(cast("Iterator[str]", element.itertext()))[: 10 * _LONGEST])


def _line(text: str | None) -> str:
    return " ".join((text or "")[: 10 * _LONGEST].split())[:_LONGEST]
