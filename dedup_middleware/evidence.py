"""Which sentences of a page are repeated.

Law of this file: sentences are shown as they were written; what counts as repeated is what the verdict counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dedup_middleware.text import clauses, sentences

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

#: A sentence is repeated when its owner holds at least this share of its telling clauses' weight.
_REPEATED = 0.5


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence and how much of it, 0-1, is repeated; ``None`` when it is too short to tell."""

    text: str
    share: float | None

    @property
    def repeated(self) -> bool:
        """Whether the owner says it too."""
        return self.share is not None and self.share >= _REPEATED


def marked_sentences(
    paragraphs: Iterable[str], held: Collection[bytes], hash_clause: Callable[[str], bytes]
) -> Iterator[Sentence]:
    """Yield every sentence of *paragraphs*, marked by the clause hashes that the owner *held*."""
    for paragraph in paragraphs:
        for sentence in sentences(paragraph):
            total = shared = 0
            for clause, weight in clauses(sentence):
                total += weight
                shared += weight * (hash_clause(clause) in held)
            yield Sentence(sentence, shared / total if total else None)


def repeated_sentences(
    paragraphs: Iterable[str], held: Collection[bytes], hash_clause: Callable[[str], bytes]
) -> Iterator[str]:
    """Yield the repeated sentences in reading order. About 20 µs each, so take no more than are shown."""
    return (s.text for s in marked_sentences(paragraphs, held, hash_clause) if s.repeated)
