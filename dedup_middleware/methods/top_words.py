"""Top words: a digest of the most frequent words and their counts.

Source: Told in Chinese articles on how search engines drop copies of pages, which name no author.

Specified: Words by frequency; the MD5 of the first N of them, each followed by its count. The example has three, and
prints their digest. Texts are alike if their digests are equal.

Left open: N, for which we take the three of the example; what exactly is hashed. The digest of the example is that of
words and counts in GBK, with nothing between them and a line end after the last, so this is what we hash. Ties are by
word. Stop words are left out, for they are the three most frequent words of nearly every page. The weights may be
others than frequencies, and the words may be brought into another order before they are hashed; see `keyword_digests`.

Departures: GB 18030 instead of GBK: the same bytes for all that GBK has, and it has the rest of Unicode.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from dedup_middleware.fingerprints.method import Digest, Method, within
from dedup_middleware.methods.ranked_words import by_frequency
from dedup_middleware.methods.wording import load_words, telling_words, whole

if TYPE_CHECKING:
    from dedup_middleware.fingerprints.method import Text


class TopWords(Method):
    """Equal digests of the most frequent words."""

    threshold = 1.0

    def __init__(self, *, words: int = 3) -> None:
        """Hash the first *words*, 1 to 1000. `ConfigError` if jieba is not installed."""
        self._words = int(within("words", words, 1, 1000))
        load_words()

    def fingerprint(self, text: Text) -> Digest | None:
        """Return the digest of *text*, of all its words if it has fewer; ``None`` if it has none. O(n log n)."""
        top = by_frequency(telling_words(whole(text)))[: self._words]
        # Half a surrogate pair has no code there.
        line = "".join(f"{word}{count}" for word, count in top) + "\n"
        digest = hashlib.md5(line.encode("gb18030", "backslashreplace"), usedforsecurity=False)
        return Digest(digest.digest()) if top else None
