"""Learn the numbers of the extraction "learned" of labelled pages, and say what they are worth on others.

Usage: python tests/benchmarks/train_blocks.py CORPUS...
`corpus.py` says what a corpus is; every other page of each, by `half_of`, is learned from, and the others are measured.
Prints the two constants of `dedup_middleware/methods/extractors/learned.py` and a table in Markdown: of all lines,
those that were labelled as main text and those accepted; and precision and recall of the pages' texts, as
`extraction.py` has them. Needs scikit-learn. A line is labelled as main text if at least half of its 4-grams are in the
true text, or, of fewer than four words, if it is a paragraph there. Half a minute for five hundred pages.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, NamedTuple

from corpus import ARTICLE_FIELDS, Agreement, CorpusError, grams, half_of, read_corpus, table, text_agreement

from dedup_middleware.budget import UNLIMITED
from dedup_middleware.extraction import parse
from dedup_middleware.methods.extractors import learned
from dedup_middleware.methods.extractors.reading import read

if TYPE_CHECKING:
    from collections.abc import Sequence

    from corpus import CorpusPage

_LABELLED = 0.5
_DIGITS = 3


class Page(NamedTuple):
    """A page as its lines."""

    true: tuple[str, ...]
    lines: list[str]
    features: list[list[float]]
    labels: list[bool]


def page_of(page: CorpusPage) -> Page:
    """Return the lines of *page*, with their features and labels."""
    lines = read(parse(page.html), UNLIMITED).lines
    whole = grams(page.text)
    alone = {tuple(grams([paragraph])) for paragraph in page.text}
    labels = []
    for line in lines:
        own = grams([line.text])
        known = sum(count for gram, count in own.items() if gram in whole)
        labels.append(bool(own) and (tuple(own) in alone or known >= _LABELLED * own.total()))
    return Page(page.text, [line.text for line in lines], learned.features_of_lines(lines), labels)


def learn(pages: Sequence[Page]) -> tuple[list[float], float]:
    """Return the weights and the bias that tell the lines of *pages* apart best."""
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - not needed to read the usage

    model = LogisticRegression(max_iter=1000)
    model.fit([row for page in pages for row in page.features], [label for page in pages for label in page.labels])
    return [round(float(weight), _DIGITS) for weight in model.coef_[0]], round(float(model.intercept_[0]), _DIGITS)


def row_of(name: str, pages: Sequence[Page]) -> list[str]:
    """Return what the constants that `learned` has now are worth on *pages*."""
    accepted = [[learned.score(features) > 0 for features in page.features] for page in pages]
    pairs = [pair for page, found in zip(pages, accepted, strict=True) for pair in zip(page.labels, found, strict=True)]
    right, labelled, found = (sum(map(test, pairs)) for test in (all, lambda pair: pair[0], lambda pair: pair[1]))
    lines = Agreement(right / max(1, found), right / max(1, labelled))
    scores = [
        text_agreement(page.true, [line for line, is_text in zip(page.lines, taken, strict=True) if is_text])
        for page, taken in zip(pages, accepted, strict=True)
    ]
    texts = Agreement(mean(s.precision for s in scores), mean(s.recall for s in scores))
    counts = [str(len(pages)), str(len(pairs)), f"{labelled / max(1, len(pairs)):.3f}"]
    return [name, *counts, *(f"{one:.3f}" for s in (lines, texts) for one in (s.f1, s.precision, s.recall))]


def main() -> None:
    """Print the constants and the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", metavar="CORPUS", nargs="+", type=Path)
    options = parser.parse_args()
    halves: tuple[list[Page], list[Page]] = ([], [])
    try:
        for corpus in options.corpora:
            for page in read_corpus(corpus, ARTICLE_FIELDS):
                if page.text:
                    halves[half_of(page)].append(page_of(page))
    except CorpusError as error:
        sys.exit(str(error))
    weights, bias = learn(halves[0])
    learned.WEIGHTS, learned.BIAS = tuple(weights), bias
    print(f"WEIGHTS = ({', '.join(map(str, weights))})\nBIAS = {bias}\n")
    header = ["half", "pages", "lines", "main text", "F1 of lines", "precision", "recall"]
    rows = [row_of(name, half) for name, half in zip(("learned from", "the other"), halves, strict=True)]
    print(table([*header, "F1 of texts", "precision", "recall"], rows))


if __name__ == "__main__":
    main()
