"""What came of a page, and why it was checked so.

Records have these texts, and so have stats, with underscores; docs/stats.md lists them. They are stable.
"""

from __future__ import annotations

from enum import Enum


class Outcome(str, Enum):
    """What came of a page and its items."""

    KEPT = "kept"
    DROPPED = "dropped"
    TAGGED = "tagged"
    WOULD_DROP = "would_drop"
    LINKS_LAST = "links_last"
    """A duplicate that gave no item: its links are followed last."""
    RELEASED = "released"
    """A duplicate whose dropped items were released."""


class Reason(str, Enum):
    """Why a page is unchecked, or kept although its text is known; or in what way it is a duplicate."""

    __str__ = str.__str__

    # Unchecked: it costs more than it may,
    TOO_LARGE = "too large"
    TOO_MANY_ELEMENTS = "too many elements"
    TOO_MANY_CLAUSES = "too many clauses"
    TOO_SLOW = "too slow"
    # is not a whole text,
    NOT_TEXT = "not text"
    NOT_PARSED = "not parsed"
    NO_CHARSET = "no charset"
    CUT_OFF = "cut off"
    TRUNCATED = "truncated"
    UNREADABLE = "unreadable item"
    TOO_LITTLE_TEXT = "too little text"
    # has nothing that the method goes by, or comes while that learns,
    NOTHING_TO_GO_BY = "nothing that the method goes by"
    LEARNING = "the method is still learning"
    # or something stands in the way.
    SWITCHED_OFF = "switched off"
    ITEMS_CHECKED = "its items are checked instead"
    STORE_FAILED = "the store failed"
    STORE_AWAY = "the store was away"
    ERROR = "error"

    # A duplicate: how its text was found, and where.
    NEARLY = "in nearly the same words"
    ANOTHER_HOST = "on another host"

    # Related: too little is repeated, or the page is preferred.
    BELOW_THRESHOLD = "below the threshold"
    DOUBTFUL = "too little of a main text that is in doubt"
    PREFERRED = "preferred"
    STORYS_OWN = "the story's own page"
    # The same sentences tell of something else.
    OTHER_NUMBERS = "other numbers in the same sentences"
    OTHER_NAMES = "other names in the same sentences"
    # The page says something for itself,
    ANOTHER_TITLE = "another title"
    OWN_WORDS = "words of its own in the same text"
    OWN_FACTS = "other facts around the same text"
    ANOTHER_ADDRESS = "another address, and too little to tell both from"
    # or its item does.
    ORIGINAL_ITEM_HAS_NO_TEXT = "the original's items had no text"
    ITEM_TEXT = "its item says what the original's did not"
    ITEM_VALUE = "another value in its item"
    # or it is kept in any case, by a program.
    KEPT = "kept all the same"
    # What is safe elsewhere is not yet, or not everywhere,
    ORIGINAL_PENDING = "the original's claim was still open"
    NOT_KEEPABLE = "its item cannot be stored"
    NOT_REACHED = "a feed that takes such items has taken none of the original's"
    # or its original was lost after it was dropped.
    RELEASED = "its dropped items were released"
