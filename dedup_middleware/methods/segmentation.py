"""Splits text into words, Chinese by jieba's dictionary: what methods of the literature count and hash."""

from __future__ import annotations

import re
import warnings
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from dedup_middleware.errors import ConfigError
from dedup_middleware.text.characters import HAN, HAN_EXTENSION_A, HAN_RARE, KANA, NOISE, SPACELESS

if TYPE_CHECKING:
    from collections.abc import Iterator

# Scripts without spaces between words for which there is no dictionary here: Thai to Lao, Myanmar, Khmer, kana, and the
# rare Han characters outside the basic block. Their words are pairs of characters.
_UNSPACED = SPACELESS + KANA + HAN_EXTENSION_A + HAN_RARE
# jieba keeps a list for each character of the run that it cuts; a thousand of them are more than any sentence has.
_RUN = re.compile(rf"([{HAN}]{{1,1000}})|([{_UNSPACED}]+)|([^\s{HAN}{_UNSPACED}]+)")


def load_dictionary() -> None:
    """Load the Chinese dictionary: 0.8 s and 60 MB, once a process. ``ConfigError`` if jieba is not installed.

    For callers that want the error and the pause at their start instead of in the first Chinese text.
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

    jieba's ``initialize()`` prints to stderr, leaves 9 MB in the temporary directory, and unmarshals any file of
    that name there: all to save 0.3 s. The shared tokenizer may also know words that the user's
    project added, and then no two crawls would agree. So its parts are put together here: nothing is written, nothing
    is logged, and the level of the project's jieba logger stays as it is.
    """
    try:
        with warnings.catch_warnings():
            # Old escapes in its source, and pkg_resources.
            warnings.simplefilter("ignore")
            import jieba  # noqa: PLC0415 - only Chinese text needs it
    except ImportError as error:
        raise ConfigError(f"the words of Chinese are found with jieba ({error}): `pip install jieba`") from error
    tokenizer = jieba.Tokenizer()
    tokenizer.FREQ, tokenizer.total = tokenizer.gen_pfdict(tokenizer.get_dict_file())
    tokenizer.initialized = True
    return tokenizer
