"""Which sentences of a page are repeated.

Sentences are shown as they were written; what counts as repeated is what the verdict counted.
"""

from __future__ import annotations

from bisect import bisect
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dedup_middleware.budget import UncheckableError
from dedup_middleware.text.clauses import clauses, portions, reduced, sentences

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from dedup_middleware.budget import Budget
    from dedup_middleware.model import Page

#: A sentence is repeated when its original holds at least this share of its telling clauses' weight.
_REPEATED = 0.5
#: Sentences that are looked at as one text.
_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence and how much of it, 0-1, is repeated; ``None`` when it is too short to tell."""

    text: str
    share: float | None

    @property
    def repeated(self) -> bool:
        """Whether the original says it too."""
        return self.share is not None and self.share >= _REPEATED


def marked_sentences(
    paragraphs: Iterable[str], held: Collection[bytes], hash_clause: Callable[[str], bytes]
) -> Iterator[Sentence]:
    """Yield every sentence of *paragraphs*, marked by the clause hashes that the original *held*."""
    for paragraph in paragraphs:
        for sentence in sentences(paragraph):
            total = shared = 0
            for clause, weight in clauses(sentence):
                total += weight
                shared += weight * (hash_clause(clause) in held)
            yield Sentence(sentence, shared / total if total else None)


def repeated_sentences(
    page: Page, held: Collection[bytes], hash_clause: Callable[[str], bytes], budget: Budget
) -> Iterator[str]:
    """Yield the sentences of *page* that repeat clauses *held*, in reading order, until the *budget* is spent.

    Only the portions of the text in which such clauses were first read are looked at: some 10 ms each, and 20 µs a
    sentence where one is found.
    """
    for portion in _portions_with(page, held):
        # A long text may be of very many sentences that say nothing: whole groups of them are passed over.
        for group in _groups(sentences(portion)):
            try:
                budget.check_time()
            except UncheckableError:
                return
            if any(weight and hash_clause(clause) in held for clause, weight in clauses("\n".join(group))):
                yield from (s.text for s in marked_sentences(group, held, hash_clause) if s.repeated)


def as_written(texts: Iterable[str], clauses_said: Sequence[str]) -> list[str]:
    """Return the sentences of *texts* that say these reduced clauses, as they were written; others as they are.

    O(characters), some 0.3 ms for a news page.
    """
    missing = dict.fromkeys(clauses_said)
    written: dict[str, str] = {}
    for sentence in (sentence for text in texts for sentence in sentences(text)):
        said = {*reduced(sentence).split("\n")} & missing.keys()
        written |= dict.fromkeys(said - written.keys(), sentence)
        if len(written) == len(missing):
            break
    return [*dict.fromkeys(written.get(clause, clause) for clause in missing)]


def _portions_with(page: Page, held: Collection[bytes]) -> Iterator[str]:
    starts = page.fingerprint.portions
    numbers = {bisect(starts, place) - 1 for place, h in enumerate(page.fingerprint.weights) if h in held}
    return (portion for number, portion in enumerate(portions(page.paragraphs)) if number in numbers)


def _groups(listed: list[str]) -> Iterator[list[str]]:
    return (listed[start : start + _AT_ONCE] for start in range(0, len(listed), _AT_ONCE))
