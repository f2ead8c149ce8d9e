"""Checks pages of two sites: a copy has the same story.

A repost has another title and other things around it, a sentence less or more, and slips. What it must not have is
another number, name, symbol or negation in the sentences that both have, or a passage of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dedup_middleware.checks.own_content import letters_of, own_symbols
from dedup_middleware.extraction.features import text_hash
from dedup_middleware.model import Rejection
from dedup_middleware.reasons import Reason
from dedup_middleware.text import titles
from dedup_middleware.text.clauses import clauses, sentences
from dedup_middleware.text.credits import without_credits, without_links

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dedup_middleware.checks.pair import Pair

#: Share of the words of a page's title that the original must have in its names or its text.
SHARED_TITLE = 0.5
#: The same where the texts match word by word only: two reports of one event have titles of their own.
SHARED_TITLE_NEARLY = 0.8
#: A passage of this weight, in letters (80 Han characters), that the original lacks is a part of another story.
MAX_OWN_PASSAGE = 250


def title(pair: Pair) -> Rejection | None:
    """Reject a page whose title has too few words in common with the original's names and text."""
    called = pair.sites.own_parts(pair.host, pair.here)
    # Unless the site's part is known, the longest part is taken for the page's.
    own = [titles.longest(called)] if called else []
    # A title that is a sentence of the text adds nothing to it.
    letters = letters_of(pair.page.paragraphs) if own else ""
    own = [part for part in own if letters_of([part]) not in letters]
    shared = titles.shared_terms(own, pair.there, lambda: pair.text)
    if pair.is_nearly and shared < 1:
        # Words of a title stand in any report of one event.
        shared = min(shared, titles.shared_terms(own, pair.there, list))
    if shared >= (SHARED_TITLE_NEARLY if pair.is_nearly else SHARED_TITLE):
        return None
    return Rejection(Reason.ANOTHER_TITLE, tuple(own))


def furniture(pair: Pair) -> Rejection | None:
    """Reject a page whose extracted text is furniture, such as a notice of its software, and has other text around."""
    own = pair.sites.own_texts(pair.host, pair.own_context) if pair.page.is_furniture else set()
    return Rejection(Reason.OWN_FACTS) if own.difference(map(text_hash, pair.text)) else None


def passage(pair: Pair) -> Rejection | None:
    """Reject a page with a passage in one piece that neither the original has nor other sites."""
    weights = pair.page.fingerprint.weights
    if sum(weights[clause_hash] for clause_hash in pair.live if clause_hash not in pair.shared) < MAX_OWN_PASSAGE:
        return None
    nearly = frozenset(pair.comparison.near) if pair.comparison else frozenset()
    reworded = frozenset(pair.comparison.reworded) if pair.comparison else frozenset()
    for paragraph in without_links(without_credits(pair.page.paragraphs)):
        passage: list[str] = []
        run = 0
        for sentence in sentences(paragraph):
            for clause, weight in clauses(sentence):
                clause_hash = pair.hash_clause(clause)
                if clause_hash in pair.shared or clause in nearly or sentence in reworded:
                    run = 0
                    passage.clear()
                elif clause_hash in pair.live:
                    run += weight
                    passage.append(clause)
            if run >= MAX_OWN_PASSAGE:
                return Rejection(Reason.OWN_WORDS, tuple(passage))
    return None


def symbols(pair: Pair) -> Rejection | None:
    """Reject a page that has other symbols in the sentences of the original."""
    own = own_symbols(pair.page.paragraphs, pair.text, replaced=True)
    return Rejection(Reason.OWN_WORDS, tuple(own)) if own else None


def replaced(pair: Pair) -> Rejection | None:
    """Reject a page with other numbers, names or negations in sentences that are nearly the original's."""
    if (found := pair.comparison) is None:
        return None
    # Where clauses match, a number must stand alone in the place of another one.
    numbers = [two for two in found.other_numbers if pair.is_nearly or "".join(two).replace(" ", "").isdigit()]
    if numbers:
        return Rejection(Reason.OTHER_NUMBERS, _shown(numbers))
    if found.other_names:
        return Rejection(Reason.OTHER_NAMES, _shown(found.other_names))
    return Rejection(Reason.OWN_WORDS, found.negated) if found.negated else None


def _shown(pairs: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    return tuple(f"{here} (not {there})" for there, here in pairs)
