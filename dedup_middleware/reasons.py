"""Defines the outcomes of pages and the reasons of verdicts, as codes; each reason has a message for people.

Records have the codes, and so have stats; docs/reference/records.md lists them.
"""

from __future__ import annotations

from enum import Enum


class Outcome(str, Enum):
    """What happened to a page and its items."""

    KEPT = "kept"
    DROPPED = "dropped"
    TAGGED = "tagged"
    WOULD_DROP = "would_drop"
    LINKS_LAST = "links_last"
    """A duplicate that gave no item: its links are followed last."""
    RELEASED = "released"
    """A duplicate whose dropped items were released."""


class Reason(str, Enum):
    """Why a page is unchecked, or kept although its text is known; or the kind of a duplicate."""

    message: str
    """For people."""

    def __new__(cls, code: str, message: str) -> Reason:  # noqa: PYI034 - an enum has no subclasses
        """Return the reason *code*."""
        reason = str.__new__(cls, code)
        reason._value_, reason.message = code, message
        return reason

    __str__ = str.__str__

    # Unchecked: a limit,
    TOO_LARGE = "too_large", "the response is larger than DEDUP_MAX_BYTES"
    TOO_MANY_ELEMENTS = "too_many_elements", "the page has too many elements"
    TOO_MANY_CLAUSES = "too_many_clauses", "the page has too many clauses"
    TOO_SLOW = "too_slow", "the page takes too much CPU time"
    # a page that is not complete, neither HTML nor text, or has little text,
    OTHER_CONTENT_TYPE = "other_content_type", "the response is neither HTML nor plain text"
    NOT_PARSED = "not_parsed", "the response cannot be parsed"
    NO_CHARSET = "no_charset", "the declared charset is not that of the text"
    TRUNCATED_RESPONSE = "truncated_response", "the response is incomplete"
    NESTED_TOO_DEEPLY = "nested_too_deeply", "elements are nested deeper than the parser follows"
    UNREADABLE_ITEM = "unreadable_item", "the item cannot be read"
    TOO_LITTLE_TEXT = "too_little_text", "the page has too little text of its own"
    # a method without features of the page,
    NO_FEATURES = "no_features", "the method finds nothing to compare"
    STILL_LEARNING = "still_learning", "the method is still learning"
    # or something else.
    SWITCHED_OFF = "switched_off", 'meta["dedup"] is False'
    ITEMS_CHECKED = "items_checked", "the items of the page are checked instead"
    ITEMS_HAVE_KEYS = "items_have_keys", "the items of the page are judged by their keys"
    STORE_FAILED = "store_failed", "the store has failed"
    STORE_UNREACHABLE = "store_unreachable", "the store was unreachable"
    ERROR = "error", "a bug of the plugin"

    # A duplicate, unless its text is the original's and both are on one host.
    NEAR_MATCH = "near_match", "the text is nearly the same"
    CROSS_HOST = "cross_host", "the original is on another host"

    # Related: too little text is shared, or the page is the better copy.
    BELOW_THRESHOLD = "below_threshold", "the score is below the threshold"
    NOT_COMPARED = "not_compared", "the text is too long to be compared word by word"
    PREFERRED = "preferred", "the page is in DEDUP_PREFERRED, and the match is not"
    # Related: the page or its item is different,
    OTHER_NUMBERS = "other_numbers", "the same sentences contain other numbers"
    OTHER_NAMES = "other_names", "the same sentences contain other names"
    OTHER_TITLE = "other_title", "the title or heading is different"
    EXTRA_TEXT = "extra_text", "the text differs from the original's"
    DIFFERENT_CONTEXT = "different_context", "the context of the text is different"
    DIFFERENT_URL_SHORT_TEXT = "different_url_short_text", "the URL is different, and the text is short"
    ORIGINAL_ITEM_HAS_NO_TEXT = "original_item_has_no_text", "the original's items contain no text"
    ITEM_FIELD_DIFFERS = "item_field_differs", "a field of the item has another value"
    # or the crawl has given the key of the item with other values before,
    KEY_GIVEN_TWICE = "key_given_twice", "the crawl has given the same key with other values"
    # a program or a request wants it,
    KEPT_ON_REQUEST = "kept_on_request", "the page is kept on request"
    # the original's items or the item itself may be lost,
    ORIGINAL_PENDING = "original_pending", "the items of the original were still in the pipelines"
    ITEM_NOT_STORABLE = "item_not_storable", "the item cannot be stored"
    ORIGINAL_MISSING_FROM_FEED = "original_missing_from_feed", "a feed for such items has none of the original's"
    # or its items were released after the drop.
    RELEASED = "released", "the dropped items were released"


#: Reasons of checks: differences of a page, or of its item, from a page with the same text.
DIFFERENCES = frozenset(
    {
        Reason.OTHER_NUMBERS,
        Reason.OTHER_NAMES,
        Reason.OTHER_TITLE,
        Reason.EXTRA_TEXT,
        Reason.DIFFERENT_CONTEXT,
        Reason.DIFFERENT_URL_SHORT_TEXT,
        Reason.ORIGINAL_ITEM_HAS_NO_TEXT,
        Reason.ITEM_FIELD_DIFFERS,
    }
)


def message_of(code: str) -> str:
    """Return the message of the reason *code*, and *code* itself if there is no such reason."""
    reason = Reason._value2member_map_.get(code)
    return reason.message if isinstance(reason, Reason) else code
