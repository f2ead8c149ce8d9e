"""Extracts by a classifier of lines, learned from labelled pages: by their length, and by how much of them is links.

Source: C. Kohlschütter, P. Fankhauser and W. Nejdl, "Boilerplate Detection using Shallow Text Features", WSDM 2010.
Articles in Chinese that compare extractions have a learned one among them, without details.

Specified: a page is a row of blocks, the text between tags other than those of links. Each has a link density (words
in links / all words), a number of words, and a text density (words in a line that is wrapped at 80 characters). A
classifier decides on each block by these features of it, of the block before and of the next one; the main text is the
accepted blocks.

Left open: the classifier; the authors learned decision trees and others, of news in English. Ours is a logistic
regression: ten numbers are all that is learned, and hardly anything can be learned by heart. A tree of 16 leaves was
no better on pages that it had not seen. Numbers of words count by their logarithm.
The numbers were learned of one half of two sets of articles, mostly in English.

Departures: a line is the text between block-level elements and ``<br>``, so a bold word does not divide it, as in the
authors' own program. Link density is that of characters. Two characters of a script without spaces are a word. Lines
are not wrapped: the text density is words / eightieths of the length, and in a line of up to 80 characters the number
of its words. Only the first `LOOKED_AT` characters of a line count.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

from dedup_middleware.extraction.blocks import LOOKED_AT, measure
from dedup_middleware.methods.extractors.elements import extractor
from dedup_middleware.text.words import is_unspaced, split_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dedup_middleware.methods.extractors.elements import Line, PageElements

#: Of one line: the share of links, the logarithm of the number of words, the words on a line of 80 characters.
Features: TypeAlias = "tuple[float, float, float]"

#: By feature of the line itself, of the line before and of the next one; and the constant, see `score`.
WEIGHTS = (-1.775, 0.907, -0.038, -1.373, 0.209, 0.025, -1.39, 0.412, -0.012)
BIAS = -2.608
_WRAPPED_AT = 80
_NO_LINE: Features = (0.0, 0.0, 0.0)


@extractor
def by_learning(reading: PageElements) -> set[int]:
    """Return the main text of a page. O(elements + characters), about five bare parses."""
    return {i for i, features in enumerate(features_of_lines(reading.lines)) if score(features) > 0}


def score(features: Sequence[float]) -> float:
    """Return the logarithm of the odds that a line with these *features* is main text: above 0, it is."""
    return BIAS + sum(weight * value for weight, value in zip(WEIGHTS, features, strict=True))


def features_of_lines(lines: Sequence[Line]) -> list[list[float]]:
    """Return the features of each of the *lines* of a page, with those of its neighbours. O(characters)."""
    own = [_NO_LINE, *map(_features, lines), _NO_LINE]
    return [[*own[i], *own[i - 1], *own[i + 1]] for i in range(1, len(own) - 1)]


def _features(line: Line) -> Features:
    text = line.text[:LOOKED_AT]
    words = sum(0.5 if is_unspaced(word) else 1.0 for word in split_words(text))
    return line.linked, math.log1p(words), words / max(1.0, measure(text) / _WRAPPED_AT)
