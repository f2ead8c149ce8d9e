"""Knows the words of the texts in a store, to tell a slip from another word, and a name from a word.

They are read when something asks for them: of the first texts in the store, which are the same for each process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dedup_middleware.index import schema
from dedup_middleware.text.words import split_words

if TYPE_CHECKING:
    from collections.abc import Callable

    from dedup_middleware.stores import OpenStore

#: Texts whose words are known at most: 25,000 words of news in one language.
MOST_TEXTS = 600
#: Fewer texts do not tell a slip from a rare word.
FEWEST_TEXTS = 20


class Vocabulary:
    """The words of the first texts in *store*, as written."""

    def __init__(self, store: OpenStore) -> None:
        self._store = store
        self._next = schema.text_key(0)
        self._texts = 0
        # The number of the text that has a word, or 0 if several have it.
        self._words: dict[str, int] = {}

    def read(self) -> None:
        """Read the texts that have come since."""
        if self._texts >= MOST_TEXTS:
            return
        stop = schema.within(b"t")[1]
        for key, value in self._store.scan(self._next, stop):
            self._next = key + b"\0"
            number = schema.last_number(key)
            for word in {word for line in schema.decode_text(value) for word in split_words(line)}:
                self._words[word] = 0 if word in self._words else number
            self._texts += 1
            if self._texts >= MOST_TEXTS:
                return

    def beside(self, number: int) -> Callable[[str], bool] | None:
        """Return whether another text than that of *number* has a word, as written; ``None`` for too few texts."""
        self.read()
        if self._texts < FEWEST_TEXTS:
            return None
        return lambda word: self._words.get(word, number) != number
