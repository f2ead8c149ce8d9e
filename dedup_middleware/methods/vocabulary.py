"""Cuts texts into words, and counts the words of a corpus.

The sources of the methods leave three things open, and here they are the same for all:

- Words: jieba cuts runs of Han characters, other scripts have whole words, letters are folded as in the whole package.
- Stop words: the most common words of Chinese and English that name nothing.
- A word that the corpus lacks counts as a word of one text.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

from dedup_middleware.errors import ConfigError
from dedup_middleware.methods.method import Method
from dedup_middleware.text.characters import HAN, HAN_EXTENSION_A, HAN_RARE, KANA, NOISE, SPACELESS
from dedup_middleware.text.clauses import folded

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from dedup_middleware.methods.method import Text

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

#: Scripts without spaces between words. For all but Han there is no dictionary here: their words are character pairs.
UNSPACED = SPACELESS + KANA + HAN_EXTENSION_A + HAN_RARE
# jieba keeps a list for each character of the run that it cuts, and no sentence has a thousand characters.
_RUN = re.compile(rf"([{HAN}]{{1,1000}})|([{UNSPACED}]+)|([^\s{HAN}{UNSPACED}]+)")


def words(text: str) -> list[str]:
    """Return the words of *text*, folded, in reading order, without punctuation. O(len(text))."""
    return [word for line in folded(text).split("\n") for word in _words_of_line(line)]


def content_words(text: str) -> list[str]:
    """Return the words of *text* that are not stop words."""
    return [word for word in words(text) if word not in STOP_WORDS]


def single_spaced(text: str) -> str:
    """Return *text* on one line, folded, with single spaces. O(len(text))."""
    return " ".join(folded(text).split())


def _words_of_line(line: str) -> Iterator[str]:
    for han, unspaced, word in _RUN.findall(NOISE.sub(" ", line)):
        if han:
            # Without the hidden Markov model for unknown words: an edit would change the cut of its neighbours, and the
            # model takes twice the time.
            yield from _tokenizer().cut(han, HMM=False)
        elif unspaced:
            yield from map("".join, pairwise(unspaced)) if unspaced[1:] else unspaced
        else:
            yield word


def load_dictionary() -> None:
    """Load the dictionary of Chinese: 0.8 s and 60 MB, once a process. `ConfigError` if jieba is not installed.

    A method that cuts words calls this in its constructor, so that the first Chinese page of a crawl does not wait.
    """
    _tokenizer()


@cache
def _tokenizer() -> Any:
    """Return a jieba tokenizer, put together from jieba's parts.

    jieba's own ``initialize()`` prints to stderr and unmarshals a file in the temporary directory that anybody may have
    written. jieba's shared tokenizer may contain words that a user's project added, so crawls would differ.
    """
    try:
        with warnings.catch_warnings():
            # jieba has old escapes in its source, and imports pkg_resources.
            warnings.simplefilter("ignore")
            import jieba  # noqa: PLC0415 - only methods that cut words need it
    except ImportError as error:
        raise ConfigError(f"cutting Chinese into words needs jieba ({error})", "run `pip install jieba`") from error
    tokenizer = jieba.Tokenizer()
    tokenizer.FREQ, tokenizer.total = tokenizer.gen_pfdict(tokenizer.get_dict_file())
    tokenizer.initialized = True
    return tokenizer


def by_frequency(found: Iterable[str]) -> list[tuple[str, int]]:
    """Return each word *found* once, with its count, the most frequent first, ties by word. O(n log n)."""
    return sorted(Counter(found).items(), key=lambda counted: (-counted[1], counted[0]))


def joined(found: Iterable[str]) -> bytes:
    """Return words, which contain no white space, as one string of bytes to be hashed."""
    return " ".join(found).encode("utf8", "surrogatepass")


# --- what a method learns of a corpus


class FrequencyMethod(Method):
    """A method that learns in how many texts of a corpus each word occurs."""

    learns = True
    memory: ClassVar[Mapping[str, Any]] = {"texts": int, "_frequencies": dict[str, int]}

    def __init__(self) -> None:
        """Start without a corpus. `ConfigError` if jieba is not installed."""
        self.texts = 0
        self._frequencies: dict[str, int] = {}
        load_dictionary()

    def words_of(self, text: Text) -> list[str]:
        """Return the words of *text* that count, in reading order: by default all but stop words."""
        return content_words(text.body)

    def frequency(self, word: str) -> int:
        """Return the number of texts that contain *word*, at least 1."""
        return self._frequencies.get(word, 1)

    def fit(self, texts: Iterable[Text]) -> None:
        self.count(map(self.words_of, texts))

    def count(self, texts: Iterable[Iterable[str]]) -> None:
        """Count in how many of *texts*, which are given by their words, each word occurs."""
        counts: Counter[str] = Counter()
        self.texts = 0
        for found in texts:
            self.texts += 1
            counts.update(set(found))
        # Most words of a corpus occur in one text, which is also what an unknown word counts.
        self._frequencies = {word: count for word, count in counts.items() if count > 1}
