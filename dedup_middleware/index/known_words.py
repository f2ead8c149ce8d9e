"""Knows the words of the texts in a store, to tell a slip from another word, and a name from a word.

They are read when something asks for them: of the first texts in the store, which are the same for each process.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from dedup_middleware.index import schema
from dedup_middleware.text.words import split_words

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dedup_middleware.stores import OpenStore

#: Texts whose words are known at most: 15,000 words of news in one language.
MOST_TEXTS = 250
#: Fewer texts do not tell a slip from a rare word.
FEWEST_TEXTS = 20


class KnownWords:
    """The words of the first texts in *store*, as written, each with the number of texts that have it."""

    def __init__(self, store: OpenStore) -> None:
        self._store = store
        self.forget()

    def forget(self) -> None:
        """Read all again when something asks: a text has gone, or is another one."""
        self._next = schema.text_key(0)
        self._texts = 0
        self._counts = Counter[str]()

    def read(self) -> None:
        """Read the texts that have come since."""
        if self._texts >= MOST_TEXTS:
            return
        stop = schema.within(b"t")[1]
        for key, value in self._store.scan(self._next, stop):
            self._next = key + b"\0"
            self._counts.update(_words(schema.decode_text(value)))
            self._texts += 1
            if self._texts >= MOST_TEXTS:
                return

    def replace(self, number: int, now: Sequence[str]) -> None:
        """Note that the text of the page *number* will be another one from *now* on. One read, or none."""
        if (key := schema.text_key(number)) < self._next:
            self._counts.subtract(self._words_of(key))
            self._counts.update(_words(now))

    def beside(self, number: int) -> Callable[[str], bool] | None:
        """Return whether another text than that of *number* has a word, as written; ``None`` for too few texts.

        Reads the store: some 50 ms for the first time, then what has come since and the text of *number*.
        """
        self.read()
        if self._texts < FEWEST_TEXTS:
            return None
        key, counts = schema.text_key(number), self._counts
        own = self._words_of(key) if key < self._next else frozenset()
        return lambda word: counts[word] > (word in own)

    def _words_of(self, key: bytes) -> frozenset[str]:
        (value,) = self._store.get_many([key])
        return frozenset() if value is None else _words(schema.decode_text(value))


def _words(text: Sequence[str]) -> frozenset[str]:
    return frozenset(split_words("\n".join(text)))
