"""IDF top: the rarer 70 % of a text's words as one string, found by a 32-bit hash and compared as a whole.

Source: Told in Chinese articles on duplicate detection, which name no author; for the hashes, see `string_hashes`.

Specified: The IDF of all words of the corpus; of each text, the 70 % of its words with the larger IDF, in descending
order, are its string. Texts with equal hashes are compared by their strings, and are alike if these are equal. O(N)
for N texts; O(N^2) if all hashes are equal. Of eight hashes tried on 1000 pages AP, with the fewest collisions, was
chosen; tests/benchmarks/string_hashes.py repeats the trial.

Left open: Ties, of which there are many: by word. 70 % of few words are rounded down, but to one at least. A word that
the corpus lacks counts as one that a single text has.

Departures: Of the string a 128-bit digest is kept beside the hash, for the string is as long as the text. So equal
strings are told from others but for a collision of BLAKE2b.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

from dedup_middleware.fingerprints.method import ROUNDING, Digest, one_of, within
from dedup_middleware.methods.ranked_words import as_bytes
from dedup_middleware.methods.string_hashes import STRING_HASHES
from dedup_middleware.methods.wording import FrequencyMethod, whole, words

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dedup_middleware.fingerprints.method import Print, Text

HASH_BYTES = 4
_STRING_BYTES = 16


class IdfTop(FrequencyMethod):
    """Equal strings of the words with the higher IDF."""

    threshold = 1.0

    def __init__(self, *, share: float = 0.7, hash: str = "ap") -> None:  # noqa: A002 - what the source calls it
        """Keep the *share* of the words, 0.01 to 1; look strings up by *hash*, one of `STRING_HASHES`.

        `ConfigError` if jieba is not installed.
        """
        self._share = within("share", share, 0.01, 1)
        self._hash = STRING_HASHES[one_of("hash", hash, STRING_HASHES)]
        super().__init__()

    def words_of(self, text: Text) -> list[str]:
        """Return all words of *text*, in reading order."""
        return words(whole(text))

    def string(self, text: Text) -> bytes:
        """Return the string of *text*; empty if it has no words. O(n log n)."""
        # A larger IDF is a smaller frequency.
        ranked = sorted({*self.words_of(text)}, key=lambda word: (self._frequencies[word], word))
        return as_bytes(ranked[: max(1, int(len(ranked) * self._share + ROUNDING))])

    def fingerprint(self, text: Text) -> Digest | None:
        """Return the hash and the digest of the string of *text*; ``None`` if it has no words."""
        string = self.string(text)
        if not string:
            return None
        return Digest(
            self._hash(string).to_bytes(HASH_BYTES, "big") + blake2b(string, digest_size=_STRING_BYTES).digest()
        )

    def keys(self, made: Print) -> Iterable[bytes]:
        """Yield the hash alone."""
        if isinstance(made, Digest):
            yield made.value[:HASH_BYTES]
