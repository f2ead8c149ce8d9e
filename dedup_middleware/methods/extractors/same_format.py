"""Extracts the text in one format: of all formats, the one with the most text.

Source: S. Liu, Y. Zhang, Y. Xia and S. Qian, an algorithm that finds duplicate pages by HTML marks and long sentences,
Microcomputer Applications (in Chinese), 2009. The product's own extraction has taken from it the idea that a page has
its text in one format.

Specified: links are removed, for menus and advertisements are mostly links. Of the rest, the part in one format (size,
colour and style of its letters, by the marks) with the largest share of the page's text is the main text; headings
inside it are lost. Its first and last tenth are cut off, which contain the introductions and remarks of reposts.

Left open: formats in style sheets. Here a format is the elements around a text that change how letters look (headings,
``<b>``, ``<font>``), with the class, style, face, size and color of any element, all the way up, as browsers inherit
them. The tenths end at an end of a sentence, and a sentence that is partly in one of them is kept.

Departures: none.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from dedup_middleware.extraction.blocks import collapsed
from dedup_middleware.methods.extractors.elements import extractor
from dedup_middleware.text.clauses import sentences

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dedup_middleware.methods.extractors.elements import PageElements

#: The share of the text that is cut off at each of its ends.
TRIMMED = 0.1


@extractor
def by_format(reading: PageElements) -> dict[int, str]:
    """Return the main text of a page. O(elements + characters), about five bare parses."""
    found = _of_one_format(reading)
    return {line: text for line, text in zip(found, trimmed([*found.values()]), strict=True) if text}


def _of_one_format(reading: PageElements) -> dict[int, str]:
    """Return, by the index of its line, the text outside links in the format with the most of such text."""
    amounts: defaultdict[int, int] = defaultdict(int)
    for piece in reading.pieces:
        if not piece.is_link:
            amounts[piece.format] += len(piece.text.strip())
    main = max(amounts, key=amounts.__getitem__, default=0)
    texts: defaultdict[int, list[str]] = defaultdict(list)
    for piece in reading.pieces:
        if piece.format == main and not piece.is_link:
            texts[piece.line].append(piece.text)
    return {line: collapsed(" ".join(pieces)) for line, pieces in texts.items()}


def trimmed(paragraphs: Sequence[str]) -> Iterator[str]:
    """Yield the *paragraphs*, some empty, without the sentences wholly in the first or the last tenth of them all."""
    total = sum(map(len, paragraphs))
    first, last = total * TRIMMED, total * (1 - TRIMMED)
    before = 0
    for paragraph in paragraphs:
        kept = [(start, end) for start, end in _spans(paragraph) if before + end > first and before + start < last]
        yield paragraph[kept[0][0] : kept[-1][1]] if kept else ""
        before += len(paragraph)


def _spans(paragraph: str) -> Iterator[tuple[int, int]]:
    """Yield where each sentence of *paragraph* begins and ends."""
    end = 0
    for sentence in sentences(paragraph):
        start = paragraph.index(sentence, end)
        end = start + len(sentence)
        yield start, end
