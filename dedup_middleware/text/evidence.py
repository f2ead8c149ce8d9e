"""Finds the sentences of a page that its original repeats: the evidence that is shown and logged."""

from __future__ import annotations

from bisect import bisect
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dedup_middleware.budget import UncheckableError
from dedup_middleware.text.clauses import DENSE_WEIGHT, MIN_CLAUSE_WEIGHT, clauses, portions, reduced, sentences

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from dedup_middleware.budget import Budget
    from dedup_middleware.model import Page

#: A sentence is repeated when the original has at least this share of its clauses, by weight.
_REPEATED = 0.5
# Sentences between two looks at the budget.
_CHECKED_AFTER = 16
# Characters, of any script, from which on a sentence can have a clause that counts.
_MIN_SENTENCE = MIN_CLAUSE_WEIGHT // DENSE_WEIGHT


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence as written, and the share of it, 0-1, that is repeated; ``None`` if it is too short to tell."""

    text: str
    share: float | None

    @property
    def repeated(self) -> bool:
        """Whether the original has it too."""
        return self.share is not None and self.share >= _REPEATED


def marked_sentences(
    paragraphs: Iterable[str], held: Collection[bytes], hash_clause: Callable[[str], bytes]
) -> Iterator[Sentence]:
    """Yield every sentence of *paragraphs*, marked by the clause hashes *held* by the original."""
    for paragraph in paragraphs:
        for sentence in sentences(paragraph):
            total = shared = 0
            # A long text may be of very many sentences that are too short.
            for clause, weight in clauses(sentence) if len(sentence) >= _MIN_SENTENCE else ():
                total += weight
                shared += weight * (hash_clause(clause) in held)
            yield Sentence(sentence, shared / total if total else None)


def repeated_sentences(
    page: Page, held: Collection[bytes], hash_clause: Callable[[str], bytes], budget: Budget
) -> Iterator[str]:
    """Yield the sentences of *page* that repeat clauses *held*, in reading order, until the *budget* is spent.

    Only the portions of the text in which such clauses were first read are looked at, 20 µs a sentence.
    """
    starts = page.fingerprint.portions
    numbers = {bisect(starts, place) - 1 for place, h in enumerate(page.fingerprint.weights) if h in held}
    for number, portion in enumerate(portions(page.paragraphs)):
        for count, sentence in enumerate(marked_sentences([portion] if number in numbers else [], held, hash_clause)):
            try:
                if count % _CHECKED_AFTER == 0:
                    budget.check_time()
            except UncheckableError:
                return
            if sentence.share is not None and sentence.share >= _REPEATED:
                yield sentence.text


def as_written(texts: Iterable[str], reduced_clauses: Sequence[str]) -> list[str]:
    """Return the sentences of *texts* with these clauses, as written, or the clauses where not found. O(characters)."""
    missing = dict.fromkeys(reduced_clauses)
    written: dict[str, str] = {}
    for sentence in (sentence for text in texts for sentence in sentences(text)):
        found = {*reduced(sentence).split("\n")} & missing.keys()
        written |= dict.fromkeys(found - written.keys(), sentence)
        if len(written) == len(missing):
            break
    return [*dict.fromkeys(written.get(clause, clause) for clause in missing)]
