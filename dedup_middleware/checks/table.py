"""Has the table that decides: which edits a copy may have, for each relation between a page and its original."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from dedup_middleware.model import Rejection
from dedup_middleware.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Iterable


class Relation(Enum):
    """How the URLs of a page and of its original are related."""

    SAME_ADDRESS = "same address"
    """They name one thing: a view of it, a version, parameters added."""
    SAME_SITE = "same site, another address"
    ACROSS = "across sites"


class Kind(Enum):
    """What an edit is, in the words of the docs."""

    LEFT_OUT = "words left out of a sentence"
    LABEL = "a credit, dateline, publication date or the site's own line, by itself"
    LINE_ADDED = "another line by itself added"
    SLIP = "a slip: a letter of one word"
    ADDED = "a sentence or words added, without a number or name of their own"
    PASSAGE = "a passage added"
    ADDED_FACT = "a number or name added that the original has nowhere"
    LINE = "a line or short sentence that replaces another"
    WORD = "a word or two replaced in an otherwise equal sentence, or each word by another"
    REWORDED = "a sentence rewritten in several places"
    NUMBER = "another number, or letter by itself"
    NAME = "another name"
    NEGATION = "a negation more or less"
    SYMBOL = "another symbol"
    TITLE = "words replaced in an otherwise equal title, a number more, another short title"
    TITLE_WORDS = "words added to the title"
    HEADLINE = "another headline"
    VALUE = "another short value of the item"
    CONTENT = "pictures, files and other content beside the text; values that only this page of the site shows"
    TOO_LONG = "text too long to be compared"


class Edit(NamedTuple):
    """A difference between a subject and its original."""

    kind: Kind
    here: str
    """What the subject has, as written; empty where it has less."""
    there: str = ""
    """What the original has in its place."""
    line: str = ""
    """The sentence or line of the subject that has the edit, as written."""

    @property
    def shown(self) -> str:
        """The edit as a record has it."""
        if self.here and self.there and self.here != self.line:
            return f"{self.here} (not {self.there})"
        return self.line or self.here or self.there


#: The edits that a copy may have. All others make two pages of two.
COPY: dict[Relation, frozenset[Kind]] = {
    Relation.SAME_ADDRESS: frozenset({Kind.LABEL}),
    Relation.SAME_SITE: frozenset(),
    Relation.ACROSS: frozenset(
        {
            Kind.LEFT_OUT,
            Kind.LABEL,
            Kind.LINE_ADDED,
            Kind.SLIP,
            Kind.ADDED,
            Kind.REWORDED,
            Kind.TITLE_WORDS,
            Kind.HEADLINE,
        }
    ),
}
#: With DEDUP_REWORDED = "drop", also these across sites.
REWORDED = frozenset({Kind.WORD})


@dataclass(frozen=True, slots=True)
class CopyRules:
    """The settings by which subjects are compared; `Config.rules` makes them."""

    threshold: float
    """Least share of a subject's text that the original of a copy has; with 1, all its clauses."""
    drops_reworded: bool = False
    """Whether a copy on another site may have words replaced, one for one, in an otherwise equal sentence."""

    def allowed(self, relation: Relation) -> frozenset[Kind]:
        """Return the edits that a copy of this *relation* to its original may have."""
        return COPY[relation] | (REWORDED if self.drops_reworded and relation is Relation.ACROSS else frozenset())


_REASONS = {
    Kind.NUMBER: Reason.OTHER_NUMBERS,
    Kind.SYMBOL: Reason.OTHER_NUMBERS,
    Kind.NAME: Reason.OTHER_NAMES,
    Kind.TITLE: Reason.OTHER_TITLE,
    Kind.TITLE_WORDS: Reason.OTHER_TITLE,
    Kind.HEADLINE: Reason.OTHER_TITLE,
    Kind.VALUE: Reason.ITEM_FIELD_DIFFERS,
    Kind.CONTENT: Reason.DIFFERENT_CONTEXT,
    Kind.TOO_LONG: Reason.NOT_COMPARED,
}


def rejection_of(edits: Iterable[Edit], allowed: frozenset[Kind]) -> Rejection | None:
    """Return why a subject with these *edits* is no copy, which may have the *allowed* ones; ``None`` if it is one."""
    found = [edit for edit in edits if edit.kind not in allowed]
    if not found:
        return None
    reason = _REASONS.get(found[0].kind, Reason.EXTRA_TEXT)
    shown = dict.fromkeys(e.shown for e in found if _REASONS.get(e.kind, Reason.EXTRA_TEXT) is reason)
    return Rejection(reason, tuple(each for each in shown if each))
