"""Decides whether two URLs on the same site name one thing: a page, a view of it, a version."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote

from dedup_middleware.common.urls import host_of, split
from dedup_middleware.text.clauses import folded
from dedup_middleware.text.words import split_words

#: Words by which URLs name a view of a page.
VIEWS = frozenset(
    {"print", "printable", "printer", "friendly", "printview", "printversion", "amp", "mobile", "m", "wap", "touch"}
)
#: The same in names of files: "harbour-print.html".
VIEW_WORDS = VIEWS | {"html", "htm", "php", "asp", "aspx", "jsp"}
# What the value of a parameter may mean: "?size=m" names a thing.
_VIEW_VALUES = VIEWS - {"m", "touch"}
_HOST_VIEWS = VIEWS | {"www"}
_EXTENSION = re.compile(r"\.(?:[a-z]?html?|php\d?|aspx?|jspx?|amp|print)(?=\.|\Z)", re.IGNORECASE)
_VERSION = re.compile(
    r"v\d+|(?:rel(?:ease)?-?|v)?\d+(?:\.(?:\d+(?!\d)|x))+\w*|latest|stable|dev|devel|master|main|current|edge|nightly|old|archive",
    re.IGNORECASE,
)
_DATE = re.compile(r"\d{1,2}\.\d{1,2}\.\d{2,4}|(?:19|20)\d\d\.\d{1,2}(?:\.\d{1,2})?")
_INDEX = frozenset({"index", "default"})


class Address(NamedTuple):
    """What a URL names."""

    host: tuple[str, ...]
    path: tuple[str, ...]
    """The parts of its path, folded, without views and versions."""
    query: frozenset[tuple[str, str]]
    views: frozenset[str]
    """Words for a view and versions."""
    versions: frozenset[str]


# A page and its candidates, of which one is compared after the other.
@lru_cache(maxsize=64)
def address_of(url: str) -> Address:
    """Return what *url* names."""
    parts = split(url)
    views: set[str] = set()
    versions: set[str] = set()
    labels = host_of(url).split(".")
    views.update(_HOST_VIEWS.intersection(labels))
    host = [label for label in labels if label not in _HOST_VIEWS]
    path = []
    for part in unquote(parts.path).split("/"):
        bare = _EXTENSION.sub("", without_parameters(part))
        if bare.casefold() in VIEWS:
            views.add(bare.casefold())
        elif _VERSION.fullmatch(bare) and _DATE.fullmatch(bare) is None:
            versions.add(bare.casefold())
        elif bare and bare.casefold() not in _INDEX:
            path.append(folded(bare))
    query = set()
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name.casefold() in VIEWS or value.casefold() in _VIEW_VALUES:
            views.add(name.casefold())
        else:
            query.add((name, value))
    return Address(tuple(host), tuple(path), frozenset(query), frozenset(views | versions), frozenset(versions))


def is_same_address(url: str, other: str) -> bool:
    """Return whether two URLs name one thing, by their words: see the module.

    >>> is_same_address("https://www.a.example/x/?utm_source=rss", "http://a.example/x")
    True
    >>> is_same_address("http://a.example/x?id=2", "http://a.example/x?id=3")
    False
    """
    here, there = address_of(url), address_of(other)
    if here.host != there.host:
        return False
    return _is_view(here, there) or _is_view(there, here)


def has_other_version(url: str, other: str) -> bool:
    """Return whether two URLs that name one thing name versions of it."""
    return address_of(url).versions != address_of(other).versions


def _is_view(one: Address, other: Address) -> bool:
    """Return whether *one* is *other* with parameters added, or a view of it."""
    values = {folded(value) for _, value in one.query - other.query}
    if one.views - other.views and (one.query <= other.query or other.query <= one.query):
        words = [word for part in one.path for word in split_words(part)]
        named = [*other.path, *(folded(value) for _, value in other.query)]
        whole = {word for part in named for word in split_words(part)}
        if words and whole.issuperset(words):
            return True
    if not other.query <= one.query:
        return False
    # "/wiki/Cams" is "/wiki?title=Cams", too.
    rest = [part for part in other.path if part not in one.path]
    return one.path == other.path or (bool(rest) and values.issuperset(rest) and set(one.path) <= set(other.path))


def without_parameters(part: str) -> str:
    """Return a *part* of a path without its parameters: ";jsessionid=1", "(S(abc))"."""
    begin, end = part.find("("), part.rfind(")")
    return (part[:begin] + part[end + 1 :] if 0 <= begin < end else part).partition(";")[0]


def is_view(words: str, url: str, other: str) -> bool:
    """Return whether *words* are the part of *url* that names a view of the page at the *other* URL.

    They are words for a view, and words that both URLs contain: ``harbour print`` in ``/harbour-print.html``.
    """
    named = set(words.split())
    here, there = (set(split_words(unquote(f"{u.path} {u.query}").casefold())) for u in map(split, (url, other)))
    return bool(named - there) and named <= here and named - there <= VIEW_WORDS
