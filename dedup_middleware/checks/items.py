"""Items as witnesses: what they say, and whether what an owner delivered says it too.

An item that cannot be read, or costs more than its page may, is not withheld. The witness is the item
as the callback yields it: before the pipelines, and without our tag.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dedup_middleware.budget import UnjudgeableError
from dedup_middleware.checks.addresses import has_other_parameter
from dedup_middleware.checks.alignment import MAX_CHARACTERS, compare, cover
from dedup_middleware.checks.detector import MIN_LIVE_WEIGHT, RELATED_THRESHOLD
from dedup_middleware.checks.editions import is_edition
from dedup_middleware.checks.item_values import item_values, prose_in
from dedup_middleware.checks.vetoes import are_namesakes, other_numbers, replaced, said_nowhere
from dedup_middleware.checks.witness import LITTLE_TEXT_WEIGHT, own_clauses, own_marks
from dedup_middleware.features import ItemContent
from dedup_middleware.fingerprints import fast_hash
from dedup_middleware.model import Objection
from dedup_middleware.reasons import Reason
from dedup_middleware.text import titles
from dedup_middleware.text.clauses import MIN_CLAUSE_WEIGHT, clauses, weight
from dedup_middleware.text.evidence import as_written
from dedup_middleware.text.words import shows
from dedup_middleware.urls import host_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from decimal import Decimal

    from dedup_middleware.budget import Budget
    from dedup_middleware.checks.detector import Detector
    from dedup_middleware.fingerprints import Fingerprinter
    from dedup_middleware.index.lookup import Lookup
    from dedup_middleware.model import Fingerprint, Page, StoredPage

#: A field of which pages show fewer of the values than this says nothing of them.
OFTEN_SHOWN = 0.5
# Fields that pages do not show are looked for again on every eighth page.
_LOOKED_AT_AGAIN = 8
# Clauses that are looked up as they were written: more than a record shows.
_MAX_SHOWN = 8
# Between a field and its value, as a person reads it.
_IS = ": "


@dataclass(frozen=True, slots=True)
class Statement:
    """What one item says."""

    fingerprint: Fingerprint
    texts: tuple[str, ...]
    values: Mapping[str, str]
    """Its short values, by their words, and the field of each."""

    @property
    def has_text(self) -> bool:
        """Whether it says enough to be compared."""
        return self.fingerprint.weight >= MIN_LIVE_WEIGHT


class ItemWitness:
    """Reads items whose texts have *max_characters* in all at most; no longer than the budgets of their pages last."""

    def __init__(self, fingerprint: Fingerprinter, max_characters: int, fields: Iterable[str] = ()) -> None:
        """Read the *fields* of items; all of them where none are named."""
        self._fingerprint = fingerprint
        self._max_characters = max_characters
        self._fields = tuple(fields) or None
        # By field: how often a value that its owner did not have was looked for on its page, and found.
        self._asked: Counter[str] = Counter()
        self._found: Counter[str] = Counter()
        self._passed_over = 0

    def read(self, page: Page, item: Any, budget: Budget) -> Statement:
        """Return what *item* of *page* says, within what is left of its *budget*.

        `UnjudgeableError` if it cannot be read.
        """
        values = item_values(item, self._fields)
        texts = [value for _, value in values if isinstance(value, str)]
        if sum(map(len, texts)) > self._max_characters:
            raise UnjudgeableError(Reason.TOO_LARGE)
        budget.resume()
        try:
            budget.check_time()
            prose, short = prose_in(texts, budget)
            fingerprint = self._fingerprint_of(prose, page, budget)
        finally:
            budget.pause()
        named: dict[str, str] = {}
        for name, value in values:
            parts = _as_shown(value) if not isinstance(value, str) else titles.parts(value) if value in short else ()
            named |= {row: name for part in parts if (row := titles.row_of(part))}
        return Statement(fingerprint, tuple(prose), named)

    def _fingerprint_of(self, prose: list[str], page: Page, budget: Budget) -> Fingerprint:
        """Return the fingerprint of *prose*. What is the page's, line by line, has been hashed already."""
        known = set(page.paragraphs)
        if not self._fingerprint.is_by_line or page.known is not None or not known.issubset(prose):
            return self._fingerprint(prose, budget)
        more = self._fingerprint([line for line in prose if line not in known], budget)
        weights, skeletons = page.fingerprint.weights, page.fingerprint.skeletons
        return replace(more, weights={**weights, **more.weights}, skeletons={**skeletons, **more.skeletons})

    def content_of(self, statements: Iterable[Statement]) -> ItemContent:
        """Return what an owner's items, which made these *statements*, said together."""
        weights: dict[bytes, int] = {}
        values: set[bytes] = set()
        texts: list[str] = []
        for statement in statements:
            weights |= statement.fingerprint.weights
            values.update(map(fast_hash, statement.values))
            texts += statement.texts
        return ItemContent(
            frozenset(weights), frozenset(values), sum(weights.values()) >= MIN_LIVE_WEIGHT, tuple(texts)
        )

    def objection(  # noqa: PLR0913 - an item, its page, and whom it is held to
        self,
        page: Page,
        statement: Statement,
        owner: StoredPage,
        detector: Detector,
        shown: Callable[[], str],
        *,
        threshold: float,
    ) -> Objection | None:
        """Return what *statement*, of an item of *page*, says against withholding it for *owner*, if anything.

        Its text is held to the page's *threshold*. *detector* knows what is kept of what the owner said, and its site's
        own words; *shown* returns all that the page shows, folded.
        """
        lookup, sites = detector.index, detector.sites
        has_text = owner.source or (owner.item_content is not None and owner.item_content.has_text)
        if statement.has_text and not has_text:
            return Objection(Reason.NO_TEXT_DELIVERED)
        if statement.has_text and not self._is_said(page, statement, owner, lookup, threshold):
            said = owner.hashes if owner.item_content is None else owner.item_content.hashes
            found = (clause for clause, _ in clauses("\n".join(statement.texts)))
            own = [clause for clause in found if self._fingerprint.hash(clause) not in said]
            return Objection(Reason.ITEM_TEXT, tuple(as_written(statement.texts, own[:_MAX_SHOWN])))
        if host_of(page.url) == host_of(owner.url) and owner.item_content is not None:
            new = (value for value in statement.values if fast_hash(value) not in owner.item_content.values)
            others = [value for value in new if not sites.has_part(host_of(page.url), value)]
            # What the page does not show (ids, serials, the time of the fetch) says nothing of it, unless it is asked
            # for by another value itself: variants of a product may be in a script only.
            if others and not has_other_parameter(page.url, owner.url):
                others = self._shown(statement, others, shown)
            if others:
                return Objection(Reason.ITEM_VALUE, tuple(f"{statement.values[value]}{_IS}{value}" for value in others))
        return None

    def _shown(self, statement: Statement, values: list[str], shown: Callable[[], str]) -> list[str]:
        """Return those *values* that stand on their page, and not by chance as a length or a rank may.

        *shown* returns all of its text, and takes as long as all else: where none of the fields could be heard whatever
        it shows, it is asked for on every eighth page only, to learn of them.
        """
        fields = {statement.values[value] for value in values}
        if not any(self._found[f] + 1 >= OFTEN_SHOWN * (self._asked[f] + 1) for f in fields):
            self._passed_over += 1
            if self._passed_over % _LOOKED_AT_AGAIN:
                return []
        text, found = shown(), []
        for value in values:
            field = statement.values[value]
            is_shown = shows(text, value)
            self._asked[field] += 1
            self._found[field] += is_shown
            if is_shown and self._found[field] >= OFTEN_SHOWN * self._asked[field]:
                found.append(value)
        return found

    def _is_said(self, page: Page, statement: Statement, owner: StoredPage, lookup: Lookup, threshold: float) -> bool:
        said = owner.hashes if owner.item_content is None or owner.source else owner.item_content.hashes
        text = lookup.item_text(owner)
        if host_of(page.url) == host_of(owner.url) and self._has_own_clauses(statement, owner, text, said, lookup):
            return False
        others = other_numbers(statement.fingerprint, owner, said)
        if said_nowhere(others, statement.texts, lambda: text, self._fingerprint.hash):
            return False
        if cover(statement.fingerprint.weights, said) >= threshold:
            return True
        if threshold == 1 or sum(map(len, statement.texts)) > MAX_CHARACTERS:
            return False
        nearly = self._nearly(page, statement, owner, text, said)
        if nearly < threshold and nearly >= RELATED_THRESHOLD and _are_parts(page, statement, owner):
            # Summaries, cut elsewhere: what is missing in the owner's stands in its page.
            nearly = self._nearly(page, statement, owner, lookup.text(owner.number), owner.hashes)
        return nearly >= threshold

    def _nearly(
        self, page: Page, statement: Statement, owner: StoredPage, text: Sequence[str], said: AbstractSet[bytes]
    ) -> float:
        """Return how much of *statement* stands in *text*, in the same or nearly the same words; 0 after a veto."""
        opinion = compare(statement.texts, text, says=lambda clause: self._fingerprint.hash(clause) in said)
        namesakes = are_namesakes(page.features, owner.features)
        return 0.0 if replaced(opinion, nearly=True, namesakes=namesakes) else opinion.cover

    def _has_own_clauses(
        self, statement: Statement, owner: StoredPage, text: Sequence[str], said: AbstractSet[bytes], lookup: Lookup
    ) -> bool:
        """Tell whether an item on its owner's host has words of its own, but for an edition of one story."""
        if own_marks(statement.texts, text):
            return True
        own = [c for c in own_clauses(statement.texts, text, owner.features) if self._fingerprint.hash(c) not in said]
        if lookup.is_cut(text):
            # Of what comes after, the telling clauses are known.
            own = [clause for clause in own if weight(clause) >= MIN_CLAUSE_WEIGHT]
        return bool(own) and (
            statement.fingerprint.weight < LITTLE_TEXT_WEIGHT or not is_edition(statement.texts, text)
        )


def field_of(own: str) -> str:
    """Return the field that an objection named *own*."""
    return own.partition(_IS)[0]


def _are_parts(page: Page, statement: Statement, owner: StoredPage) -> bool:
    """Tell whether both items say but a part of what their pages do."""
    if owner.item_content is None or owner.item_content.is_text_of(owner.hashes):
        return False
    item = frozenset(statement.fingerprint.weights)
    return not ItemContent(item, frozenset(), has_text=True).is_text_of(page.fingerprint.weights.keys())


def _as_shown(number: float | Decimal) -> list[str]:
    """Return *number* as pages write it: a price has two decimals."""
    return [str(number)] if isinstance(number, int) else [str(number), f"{number:.2f}"]
