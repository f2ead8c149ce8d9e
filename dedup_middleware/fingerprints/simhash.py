"""The second fingerprint kind: bits. One SimHash of 128 bits for each telling paragraph.

SimHash: M. Charikar, "Similarity estimation techniques from rounding algorithms", STOC 2002; for web pages: G. Manku,
A. Jain and A. Das Sarma, "Detecting near-duplicates for web crawling", WWW 2007. One SimHash a paragraph with long
sentences weighing more is the paragraph fingerprint of the Chinese literature. What is taken over and what is not:

- *A long sentence* has 20 Han characters or 60 letters (the published 20 characters); its words count twice, because
  short sentences ("he said", "点击查看") are what unrelated paragraphs share. One step, not a share of the length: an
  edited word must not shift the weight of its whole sentence.
- *Place in the paragraph* has no weight: reposts prepend a dateline and join or split paragraphs. So the order of
  sentences, and of the words in them, means nothing, and neither does what separates them.
- *IDF* would need the corpus that a crawl does not have yet. In its stead a word counts once a paragraph, and words of
  one Han character or up to three letters, mostly grammar, count half. On news this moved the nearest thousandth of
  unrelated English paragraphs from distance 25 to 44, and an edited copy by a bit or two.
- *Numbers* count twice: daily reports and prices differ in nothing else. Of 188 pairs of paragraphs in different
  Chinese stories that were within 10 bits, 23 were left, and nearly all of those quote the same sentences.
- *Similarity to the topic* needs a trained model, and is left out.

What a distance means: a share *s* of the weight replaced moves about ``128 · acos(1 - s) / π`` bits: 3 bits are a third
of a percent, 10 are three percent, 16 are eight. In news paragraphs of 90 Han characters or 70 English words, one word
replaced moved 8 bits in the median and 14 in nine of ten; unrelated ones stand 62 apart, 99.9 % of them 41 or more.
A SimHash is a bag of words: "dog bites man" is "man bites dog", another name moves as few bits as another word,
and anybody can write two texts that agree. So it tells where to look; that a page may be dropped, it does not tell.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from xxhash import xxh3_128_intdigest

from dedup_middleware.budget import UNLIMITED
from dedup_middleware.errors import ConfigError
from dedup_middleware.fingerprints.clauses import ClauseFingerprinter
from dedup_middleware.model import HASH_BYTES
from dedup_middleware.text.characters import NOISE
from dedup_middleware.text.clauses import DENSE_WEIGHT, folded, portions, sentences, weight
from dedup_middleware.text.scripts import HAN, HAN_EXTENSION_A, HAN_RARE, KANA, SPACELESS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dedup_middleware.budget import Budget
    from dedup_middleware.model import Fingerprint

SIMHASH_BITS = 128

#: In letters: 20 Han characters, about a dozen English words.
LONG_SENTENCE_WEIGHT = 60

#: A paragraph lighter than one long sentence is not telling: captions, bylines, "share this" are the same everywhere.
MIN_PARAGRAPH_WEIGHT = LONG_SENTENCE_WEIGHT

# Scripts without spaces between words for which there is no dictionary here: Thai to Lao, Myanmar, Khmer, kana, and the
# rare Han characters outside the basic block. Their words are pairs of characters.
_UNSPACED = SPACELESS + KANA + HAN_EXTENSION_A + HAN_RARE
# jieba keeps a list for each character of the run that it cuts; a thousand of them are more than any sentence has.
_RUN = re.compile(rf"([{HAN}]{{1,1000}})|([{_UNSPACED}]+)|([^\s{HAN}{_UNSPACED}]+)")


class SimHashFingerprinter(ClauseFingerprinter):
    """A `Fingerprinter` of both kinds: a page's clauses, and the bits of its paragraphs.

    ``ConfigError`` if jieba is not installed. The first one of a process takes 0.8 s, see :func:`load_dictionary`.
    """

    scheme = ClauseFingerprinter.scheme + "+simhash-1"
    has_bits = True

    def __init__(self, key: bytes, hash_bytes: int = HASH_BYTES) -> None:
        """Use *key*, 16 to 64 random bytes, for the clauses, whose hashes have *hash_bytes*."""
        super().__init__(key, hash_bytes)
        load_dictionary()

    def __call__(self, paragraphs: Iterable[str], budget: Budget = UNLIMITED) -> Fingerprint:
        """Return the fingerprint of a text. About 2 ms for an English news page, 4 for a Chinese one.

        :class:`UnjudgeableError` once more than the *budget* is spent.
        """
        paragraphs = list(paragraphs)
        return replace(
            super().__call__(paragraphs, budget), simhashes=frozenset(paragraph_simhashes(paragraphs, budget))
        )


def paragraph_simhashes(paragraphs: Iterable[str], budget: Budget = UNLIMITED) -> list[int]:
    """Return the SimHash of each telling paragraph, in order; see :func:`simhash`.

    Of a paragraph too long to be one, a dozen pages, each such portion has its own. `UnjudgeableError` once the time of
    the *budget* is over.
    """
    found = []
    for paragraph in paragraphs:
        for portion in portions([paragraph]):
            bits = simhash(portion)
            if bits is not None:
                found.append(bits)
            budget.check_time()
    return found


def simhash(paragraph: str) -> int | None:
    """Return the 128 bits of *paragraph*, or ``None`` if it is lighter than ``MIN_PARAGRAPH_WEIGHT``. O(len).

    The same in every process; another Python's Unicode data or another jieba's dictionary may cut rare words otherwise.
    0.1 ms for an English news paragraph, 0.3 for a Chinese one, two thirds of it jieba's. The first Chinese paragraph
    loads the dictionary; ``ConfigError`` if there is none.
    """
    told = 0
    powers: dict[str, int] = {}
    for sentence in sentences(folded(paragraph)):
        words = [(word, weight(word)) for word in words_in(sentence)]
        sentence_weight = sum(w for _, w in words)
        told += sentence_weight
        long = sentence_weight >= LONG_SENTENCE_WEIGHT
        for word, w in words:
            powers[word] = max(powers.get(word, 0), long + (2 if word.isdigit() else w > DENSE_WEIGHT))
    if told < MIN_PARAGRAPH_WEIGHT:
        return None
    columns: list[list[int]] = [[], [], [], []]
    for word, power in powers.items():
        columns[power].append(xxh3_128_intdigest(word.encode("utf8", "surrogatepass")))
    return _majority(columns)


def load_dictionary() -> None:
    """Load the Chinese dictionary: 0.8 s and 60 MB, once a process. ``ConfigError`` if jieba is not installed.

    For callers that want the error and the pause at their start instead of in the first Chinese paragraph.
    """
    _tokenizer()


def words_in(sentence: str) -> Iterator[str]:
    """Yield the words of a folded *sentence*, in order, without what is neither a letter nor a digit. O(len)."""
    for han, unspaced, word in _RUN.findall(NOISE.sub(" ", sentence)):
        if han:
            # Without the hidden Markov model for unknown words: it lets an edit change the cut of its neighbours, takes
            # twice the time, and separated no better.
            yield from _tokenizer().cut(han, HMM=False)
        elif unspaced:
            yield from map("".join, pairwise(unspaced)) if unspaced[1:] else unspaced
        else:
            yield word


@cache
def _tokenizer() -> Any:
    """Return a jieba tokenizer of our own.

    jieba's ``initialize()`` prints to stderr, leaves 9 MB in the temporary directory, and unmarshals whatever file of
    that name is there, whoever wrote it: all to save 0.3 s. The shared tokenizer may also know words that the user's
    project added, and then no two crawls would agree. So its parts are put together here: nothing is written, nothing
    is logged, and the level of the project's jieba logger stays as it is.
    """
    try:
        with warnings.catch_warnings():
            # Old escapes in its source, and pkg_resources.
            warnings.simplefilter("ignore")
            import jieba  # noqa: PLC0415 - only Chinese text needs it
    except ImportError as error:
        raise ConfigError(f"paragraph SimHashes cut Chinese with jieba ({error}): `pip install jieba`") from error
    tokenizer = jieba.Tokenizer()
    tokenizer.FREQ, tokenizer.total = tokenizer.gen_pfdict(tokenizer.get_dict_file())
    tokenizer.initialized = True
    return tokenizer


def _majority(columns: list[list[int]]) -> int:
    """Return the bits that more than half of the weight has set, where a hash in ``columns[i]`` weighs ``2**i``.

    All 128 sums at once, bit-sliced: full adders turn three addends of one power into one of it and one of the next.
    Some 0.4 µs an addend against 11 for a loop over bits, and no lane can overflow.
    """
    total = sum(len(column) << power for power, column in enumerate(columns))
    planes: list[int] = []
    carried: list[int] = []
    for power in range(total.bit_length()):
        addends, carried = carried + (columns[power] if power < len(columns) else []), []
        while len(addends) > 1:
            a, b = addends.pop(), addends.pop()
            c = addends.pop() if addends else 0
            addends.append(a ^ b ^ c)
            carried.append(a & b | (a ^ b) & c)
        planes.append(addends[0] if addends else 0)
    above, equal = 0, (1 << SIMHASH_BITS) - 1
    for power, plane in reversed([*enumerate(planes)]):
        if total // 2 >> power & 1:
            equal &= plane
        else:
            above |= equal & plane
            equal &= ~plane
    return above
