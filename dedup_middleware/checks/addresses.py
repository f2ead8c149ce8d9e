"""Compares two URLs: whether they may lead to the same page, and what one names that the other does not.

Pure functions over URLs, without the pages.
"""

from __future__ import annotations

import re
from collections import Counter
from urllib.parse import parse_qsl, unquote

from dedup_middleware.text.words import split_words
from dedup_middleware.urls import split

#: Words by which URLs name a view of a page, and the files of pages.
VIEWS = frozenset(
    {"print", "printable", "printer", "friendly", "amp", "mobile", "m", "html", "htm", "php", "asp", "aspx", "jsp"}
)

# Of a part of a path: ";jsessionid=1", "(S(abc))".
_PARAMETERS = re.compile(r";[^/]*|\([^/]*\)")
_EXTENSION = re.compile(r"\.[a-z]{2,5}$", re.IGNORECASE)
_DIGIT = re.compile(r"\d")
# Of a session, a visitor, a fetch: no person would name a page so.
_TOKEN = re.compile(r"(?=.*\d)(?=.*[a-zA-Z])[\w.~-]{8,}$")
# A part of a path that names a version of a site, or a view of a page: "/v2/", "/10.0/", "/latest/", "/amp/".
_VIEW = re.compile(
    r"v\d+|(?:rel(?:ease)?-?|v)?\d+(?:\.(?:\d+|x))+\w*|latest|stable|dev|devel|master|main|current|edge|nightly|old|archive|"
    r"print|printable|amp|mobile|m",
    re.IGNORECASE,
)
# In a path: a number by itself, or at its end three words.
_NAME = re.compile(r"(?<![^\W_])\d+(?![^\W_])|[^\W_]+(?:[-_][^\W_]+){2}[^/]*/?$")


def is_same_address(url: str, other: str) -> bool:
    """Return whether one URL is the other with parameters added to its query: a session, a campaign."""
    here, there = split(url), split(other)
    first, second = (Counter(parse_qsl(parts.query, keep_blank_values=True)) for parts in (here, there))
    return here.path == there.path and (first <= second or second <= first)


def own_address(url: str, other: str) -> list[str]:
    """Return the numbers in the path of *url*, and the words of its last part, that the path of the *other* lacks.

    A print view has the name of its page in another place; another notice has another number or name.
    """
    path, there = _path_words(url), _path_words(other)
    last = path[-1] if path else []
    named = [*last, *(word for part in path for word in part if word.isdigit())]
    return [word for word in dict.fromkeys(named) if not any(word in part for part in there)]


def is_view(words: str, url: str, other: str) -> bool:
    """Return whether *words* are a part of *url* that leads to the same page as the *other* URL does.

    They are words that both URLs contain, and words for a view: ``harbour print`` in ``/harbour-print.html``.
    """
    named = set(words.split())
    here, there = (set(split_words(unquote(f"{u.path} {u.query}").casefold())) for u in map(split, (url, other)))
    return bool(named) and named <= here and named - there <= VIEWS


def has_own_address(url: str, other: str) -> bool:
    """Return whether *url* names something that the *other* does not, in its path or by a parameter of its query.

    Where both have the same number or several words, parameters only record the way to the page:
    ``/news/17?ref=home``, ``?id=17&sid=5``. Tokens name nothing: ``?sid=826d9947``.
    """
    if own_address(url, other):
        return True
    here, there = (split(each) for each in (url, other))
    if here.path == there.path and _NAME.search(unquote(here.path)):
        return False
    mine, theirs = (dict(parse_qsl(each.query, keep_blank_values=True)) for each in (here, there))
    if any(_DIGIT.search(value) for name, value in mine.items() if theirs.get(name) == value):
        return False
    named = ((name, value) for name, value in mine.items() if not _TOKEN.match(value))
    return any(theirs.get(name, value or None) != value for name, value in named)


def _path_words(url: str) -> list[list[str]]:
    path = _EXTENSION.sub("", _PARAMETERS.sub("", unquote(split(url).path)))
    words = [found for part in path.split("/") if not _VIEW.fullmatch(part) and (found := split_words(part))]
    return words[:-1] if words and words[-1] in (["index"], ["default"]) else words
