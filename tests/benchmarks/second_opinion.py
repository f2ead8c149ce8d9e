"""Measures the word-by-word comparison on edited copies and refilled templates of real texts.

Usage: python tests/benchmarks/second_opinion.py CORPUS... [--stories 100]
`corpus.py` documents the format of a corpus; pages with known text are needed. Copies of the first page of each cluster
are made with a fixed seed, and each is checked on another site than the page itself. Prints two tables in Markdown, the
share of copies that are taken for duplicates and the same for other reports, by three methods:

- the product without the word-by-word comparison (`alignment.compare`);
- the product;
- the Jaccard value of 5-character shingles from 0.7 on, which MinHash estimates.

The last row counts the pairs of different stories of the corpus that share a tenth of their clauses: all, and those
that each method takes for duplicates.
"""

from __future__ import annotations

import argparse
import collections
import random
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

from corpus import CorpusError, read_corpus, table
from rivals import shingles

from dedup_middleware import Deduplicator
from dedup_middleware.checks.detector import Detector
from dedup_middleware.text.clauses import clauses

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

FIELDS = ("id", "html", "text", "cluster")
SHINGLES = 0.7
SHARED = 0.1
#: Less text is not compared word by word; see `one_site.LITTLE_TEXT_WEIGHT`.
LEAST_CHARACTERS = 600
NAMES = ("Harlow", "Bexter", "Quillen", "Marston")
HAN_NAMES = ("欧阳雪", "司马川", "诸葛平", "上官云")
_HAN = "\u4e00-\u9fff"

Text = list[str]
Edit = "Callable[[Text, random.Random], Text]"


def misread(rate: float) -> Callable[[Text, random.Random], Text]:
    """Return an edit that takes a letter for another one of the paragraph, at *rate*; numbers are read well."""

    def edit(text: Text, rng: random.Random) -> Text:
        def read(character: str, paragraph: str) -> str:
            letters = [c for c in rng.choices(paragraph, k=8) if c.isalpha()]
            is_misread = character.isalpha() and rng.random() < rate and letters
            return letters[0] if is_misread else character

        return ["".join(read(c, paragraph) for c in paragraph) for paragraph in text]

    return edit


def punctuate(text: Text, rng: random.Random) -> Text:
    """Change or leave out most commas."""
    return [re.sub("[,，、]", lambda mark: rng.choice(["", ";", "；", mark[0]]), paragraph) for paragraph in text]


def reword(text: Text, rng: random.Random) -> Text:
    """Put another word of the text for one in fifteen, or another character for one in twenty-five."""

    def edit(paragraph: str) -> str:
        spaced = " " in paragraph.strip()
        words = paragraph.split(" ") if spaced else list(paragraph)
        for i in range(7, len(words), 15 if spaced else 25):
            if words[i].isalpha():
                words[i] = rng.choice([w for w in words if w.isalpha()])
        return (" " if spaced else "").join(words)

    return [edit(paragraph) for paragraph in text]


def rename(text: Text, rng: random.Random) -> Text:  # noqa: ARG001 - as the others
    """Put other names for those that come most often: words with a capital, or three Han characters."""
    whole = "\n".join(text)
    latin = collections.Counter(re.findall("(?<=[a-z,] )[A-Z][a-z]{3,}", whole))
    han = collections.Counter(m[1] for m in re.finditer(f"(?=([{_HAN}]{{3}}))", whole))
    names = {old: new for (old, _), new in zip(latin.most_common(3), NAMES, strict=False)}
    if not names:
        names = {old: new for (old, n), new in zip(han.most_common(1), HAN_NAMES, strict=False) if n > 1}
    for old, new in names.items():
        text = [paragraph.replace(old, new) for paragraph in text]
    return text


def renumber(text: Text, rng: random.Random) -> Text:
    """Put other digits for all."""
    return [re.sub(r"\d", lambda digit: str((int(digit[0]) + rng.randint(1, 9)) % 10), paragraph) for paragraph in text]


COPIES = {
    "1 % of the letters misread": misread(0.01),
    "2 %": misread(0.02),
    "3 %": misread(0.03),
    "5 %": misread(0.05),
    "other commas": punctuate,
    "a word in fifteen replaced": reword,
    "paragraphs in another order": lambda text, rng: rng.sample(text, len(text)),
}
OTHERS = {"the same report with other names": rename, "the same report with other numbers": renumber}


def by_product(page: Text, original: Text) -> bool:
    """Return whether the product takes *page* for a duplicate of *original*."""
    with Deduplicator() as dedup:
        dedup.add("http://original.test/", paragraphs=original)
        return dedup.check("http://page.test/", paragraphs=page).is_duplicate


def without_alignment(page: Text, original: Text) -> bool:
    """Return whether equal clauses alone make *page* a duplicate."""
    with patch.object(Detector, "_compare", lambda *_: None):
        return by_product(page, original)


def by_shingles(page: Text, original: Text) -> bool:
    """Return whether enough shingles of both texts are equal."""
    ours, theirs = shingles(page), shingles(original)
    return len(ours & theirs) >= SHINGLES * len(ours | theirs)


METHODS = (without_alignment, by_product, by_shingles)


def counts(pairs: Iterable[tuple[Text, Text]]) -> list[int]:
    """Return how many (page, original) there are, and how many are duplicates by each of `METHODS`."""
    found = [(True, *(method(*pair) for method in METHODS)) for pair in pairs]
    return [sum(column) for column in zip(*found, strict=True)] or [0] * (1 + len(METHODS))


def different_pairs(stories: Sequence[Text]) -> Iterable[tuple[Text, Text]]:
    """Yield the pairs of *stories* of which the later one has a tenth of its clauses in common with the earlier."""
    holders: dict[str, list[int]] = collections.defaultdict(list)
    for number, text in enumerate(stories):
        said = {clause for clause, w in clauses("\n".join(text)) if w}
        shared = collections.Counter(holder for clause in said for holder in holders[clause])
        for holder, n in shared.items():
            if n >= SHARED * len(said):
                yield text, stories[holder]
        for clause in said:
            holders[clause].append(number)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", metavar="CORPUS", nargs="+", type=Path)
    parser.add_argument("--stories", type=int, default=100)
    options = parser.parse_args()
    rows: dict[str, list[str]] = {name: [] for name in (*COPIES, *OTHERS, "different stories that share clauses")}
    for path in options.corpora:
        try:
            pages = read_corpus(path, FIELDS)
        except CorpusError as error:
            sys.exit(str(error))
        first: dict[str, Text] = {}
        for page in pages:
            if sum(map(len, page.text)) >= LEAST_CHARACTERS and not page.optional:
                first.setdefault(page.cluster, list(page.text))
        if not first:
            sys.exit(f"{path} has no true text to make copies of")
        stories = [*first.values()][: options.stories]
        for name, edit in (COPIES | OTHERS).items():
            rng = random.Random(name)
            rows[name] += shares(counts((edit(text, rng), text) for text in stories))
        rows["different stories that share clauses"] += ["/".join(map(str, counts(different_pairs([*first.values()]))))]
    names = [path.name.partition(".")[0] for path in options.corpora]
    print(table(["copies taken for duplicates", *(f"{n}: no alignment / product / shingles" for n in names)],
                [[name, *rows[name]] for name in COPIES]))  # fmt: skip
    print()
    print(table(["others taken for duplicates", *(f"{n}: no alignment / product / shingles" for n in names)],
                [[name, *cells] for name, cells in rows.items() if name not in COPIES]))  # fmt: skip


def shares(sums: Sequence[int]) -> list[str]:
    """Return one cell: the shares of the three methods."""
    return [" / ".join(f"{n / sums[0]:.0%}" for n in sums[1:])]


if __name__ == "__main__":
    main()
