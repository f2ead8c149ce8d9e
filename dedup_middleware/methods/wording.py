"""Texts -> words, and what a corpus tells of them: what most published methods begin with.

The sources leave segmentation, stop words and what is unknown to a corpus open. Ours: jieba for Han, whole words for
other scripts, letters folded as everywhere in this product; stop words are the most common words of Chinese and English
that name nothing; a word that the corpus lacks counts as one that a single text has.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from dedup_middleware.errors import UnreadableError
from dedup_middleware.fingerprints.method import Method
from dedup_middleware.methods.learned import packed_before, unpacked_before
from dedup_middleware.methods.segmentation import load_dictionary, words_in
from dedup_middleware.text.clauses import folded

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dedup_middleware.fingerprints.method import Text

_STOP_WORDS = """
    a about after again against all also am an and any are as at be because been before being between both but by can
    could did do does doing down during each few for from further had has have having he her here hers him his how i if
    in into is it its itself just me more most my no nor not now of off on once only or other our out over own said same
    she should so some such than that the their them then there these they this those through to too under until up very
    was we were what when where which while who whom why will with would you your
    的 了 和 是 在 也 都 就 而 及 与 着 或 一个 没有 我们 你们 他们 她们 它们 我 你 他 她 它 这 那 这个 那个 这些
    那些 之 其 上 下 中 对 到 从 以 于 等 把 被 将 为 并 但 但是 因为 所以 如果 还 又 很 不 有 说 要 会
    可以 可能 向 让 给 由 此 该 各 个 年 月 日
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())


def load_words() -> None:
    """Load what `words` needs for Chinese, once a process: 0.8 s. `ConfigError` if jieba is not installed."""
    load_dictionary()


def words(text: str) -> list[str]:
    """Return the words of *text*, folded, in reading order, punctuation left out. O(len(text))."""
    return [word for line in folded(text).split("\n") for word in words_in(line)]


def telling_words(text: str) -> list[str]:
    """Return the words of *text* that are no stop words."""
    return [word for word in words(text) if word not in STOP_WORDS]


def whole(text: Text) -> str:
    """Return the paragraphs of *text* as one string, each on a line of its own."""
    return "\n".join(text.paragraphs)


class DocumentFrequencies:
    """In how many texts of a corpus each word stands."""

    def __init__(self) -> None:
        self.texts = 0
        """How many texts there were."""
        self._counts: Counter[str] = Counter()

    def fit(self, texts: Iterable[Iterable[str]]) -> None:
        """Count the words of each of *texts*."""
        for text in texts:
            self.texts += 1
            self._counts.update(set(text))
        # Most words of a corpus stand in one text: what is unknown counts as much.
        self._counts = Counter({word: count for word, count in self._counts.items() if count > 1})

    def __getitem__(self, word: str) -> int:
        """Return the number of texts with *word*, at least 1."""
        return self._counts.get(word, 1)

    def learned(self) -> bytes:
        """Return the counts for `recall`."""
        return packed_before(b"", [self.texts, dict(sorted(self._counts.items()))])

    def recall(self, learned: bytes) -> None:
        """Know these counts; :class:`UnreadableError` if they are none."""
        try:
            (texts, counts), _ = unpacked_before(learned)
            self.texts, self._counts = int(texts), Counter({str(word): int(n) for word, n in counts.items()})
        except (ValueError, TypeError, AttributeError, OverflowError) as error:
            raise UnreadableError(f"the frequencies of words cannot be read: {error}") from error


class FrequencyMethod(Method):
    """A method that learns in how many texts each word stands, and nothing else."""

    learns = True

    def __init__(self) -> None:
        """Know no corpus yet. `ConfigError` if jieba is not installed."""
        self._frequencies = DocumentFrequencies()
        load_words()

    def words_of(self, text: Text) -> list[str]:
        """Return the words of *text* that count, in reading order: all but stop words."""
        return telling_words(whole(text))

    def fit(self, texts: Iterable[Text]) -> None:
        """Learn in how many of *texts* each word stands."""
        self._frequencies.fit(map(self.words_of, texts))

    def learned(self) -> bytes:
        """Return the frequencies."""
        return self._frequencies.learned()

    def recall(self, learned: bytes) -> None:
        """Know these frequencies; `UnreadableError` if they are none."""
        self._frequencies.recall(learned)
