"""How the time of a fingerprint grows with the text: texts of chosen lengths, made of a corpus."""

from __future__ import annotations

import time
from itertools import chain, cycle
from typing import TYPE_CHECKING

from dedup_middleware.fingerprints.literature.method import Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dedup_middleware.fingerprints.literature.method import Method

#: Characters.
LENGTHS = (1000, 2000, 3000, 4000)
# Of each length. The fastest of some rounds counts: what else a machine does only ever adds to it.
_TEXTS = 20
_ROUNDS = 3


def texts_of_length(texts: Sequence[Text], length: int, count: int = _TEXTS) -> list[Text]:
    """Return *count* texts of just *length* characters: those of *texts*, cut where too long, spliced where too short.

    Paragraphs stay paragraphs, and begin again with the first where there are too few. `ValueError` if there are none.
    """
    if not any(text.paragraphs for text in texts):
        raise ValueError("no page has a main text")
    paragraphs = cycle(chain.from_iterable(text.paragraphs for text in texts))
    titles = cycle(text.title for text in texts if text.paragraphs)
    return [_text(paragraphs, next(titles), length) for _ in range(count)]


def _text(paragraphs: Iterator[str], title: str, length: int) -> Text:
    taken: list[str] = []
    while length:
        taken.append(next(paragraphs)[:length])
        length -= len(taken[-1])
    return Text(tuple(taken), title)


def milliseconds(made: Method, texts: Iterable[Text]) -> float:
    """Return how much CPU time, on average, the method takes for the fingerprint of one of *texts*."""
    chosen = list(texts)
    rounds = []
    for _ in range(_ROUNDS):
        began = time.process_time()
        for text in chosen:
            made.fingerprint(text)
        rounds.append(time.process_time() - began)
    return min(rounds) * 1000 / len(chosen)
