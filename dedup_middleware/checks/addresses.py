"""What addresses say of which pages they lead to.

Pure functions over two URLs. Nothing here knows what the pages say.
"""

from __future__ import annotations

import re
from collections import Counter
from urllib.parse import parse_qsl, unquote

from dedup_middleware.text.words import split_words
from dedup_middleware.urls import split

# Of a part of a path: ";jsessionid=1", "(S(abc))".
_PARAMETERS = re.compile(r";[^/]*|\([^/]*\)")
_EXTENSION = re.compile(r"\.[a-z]{2,5}$", re.IGNORECASE)
_DIGIT = re.compile(r"\d")
# Of a session, a visitor, a fetch: no person would name a page so.
_TOKEN = re.compile(r"(?=.*\d)(?=.*[a-zA-Z])[\w.~-]{8,}$")
# In a path: a number by itself, or at its end three words.
_NAME = re.compile(r"(?<![^\W_])\d+(?![^\W_])|[^\W_]+(?:[-_][^\W_]+){2}[^/]*/?$")


def is_same_address(url: str, owner: str) -> bool:
    """Tell whether one of the two is the other with something added to its query: a session, a mark of a campaign."""
    here, there = split(url), split(owner)
    first, second = (Counter(parse_qsl(parts.query, keep_blank_values=True)) for parts in (here, there))
    return here.path == there.path and (first <= second or second <= first)


def has_other_parameter(url: str, owner: str) -> bool:
    """Tell whether both give one parameter of their queries other values: ``?id=1`` and ``?id=2``."""
    here, there = (dict(parse_qsl(split(each).query, keep_blank_values=True)) for each in (url, owner))
    return any(there.get(name, value) != value for name, value in here.items())


def own_address(url: str, owner: str) -> list[str]:
    """Return what the path of *url* names that *owner* nowhere does: its numbers, and the words of its last part.

    A print view is named as its story is, somewhere else; another notice has another number or name.
    """
    path, there = _path_words(url), _path_words(owner)
    last = path[-1] if path else []
    named = [*last, *(word for part in path for word in part if word.isdigit())]
    return [word for word in dict.fromkeys(named) if not any(word in part for part in there)]


def has_own_address(url: str, other: str) -> bool:
    """Tell whether *url* names something that the *other* does not, in its path or by a parameter of its query.

    Where both name the same by a number or several words, parameters say by which way one came there:
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
    words = [found for part in path.split("/") if (found := split_words(part))]
    return words[:-1] if words and words[-1] in (["index"], ["default"]) else words
