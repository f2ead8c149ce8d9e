"""Whether an original is kept although somebody who copied it was fetched before.

Usage: python tests/benchmarks/poisoning.py CORPUS... [--stories 100]
`corpus.py` says what a corpus is. The victims are the first pages of its clusters, with their extracted text, at a
preferred host each. In each case, with a new store, what a thief has made of the story is crawled, then the victim.
Prints one table in Markdown: the victims of a case, how many are dropped without DEDUP_PREFERRED, and how many
with it. Exit status 1 if any is dropped with it.
"""

from __future__ import annotations

import argparse
import random
import sys
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from corpus import CRAWL_FIELDS, CorpusError, parsed, read_corpus, table
from library import Library
from second_opinion import misread, punctuate, reword
from w3lib.url import safe_url_string

from dedup_middleware.extraction import paragraphs_of
from dedup_middleware.urls import without_secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dedup_middleware.visit import Visit

PREFERRED = "example.org"
VICTIM = f"http://news.{PREFERRED}/story"
#: Addresses that show the preferred host, or one like it, and are not on it; as requests have and records tell them.
SPOOFS = [
    without_secrets(safe_url_string(url), redact=False)
    for url in (
        f"http://evil{PREFERRED}/story",
        f"http://{PREFERRED}.evil.test/story",
        f"http://news.{PREFERRED}.evil.test./story",
        f"http://{PREFERRED.replace('.', '-')}/story",
        f"http://{PREFERRED}@thief.test/story",
        f"http://{PREFERRED}:80@thief.test/story",
        f"http://user:{PREFERRED}@thief.test/story",
        f"http://thief.test/{PREFERRED}/story",
        f"http://thief.test/@{PREFERRED}/story",
        f"http://thief.test\\@{PREFERRED}/story",
        f"http://thief.test/?from=http://{PREFERRED}/story",
        f"http://thief.test?@{PREFERRED}/story",
        f"http://thief.test/#@{PREFERRED}/story",
    )
    # Before w3lib 2.5 the one with a backslash is on it: that is where its request goes.
    if urlsplit(safe_url_string(url)).hostname != PREFERRED
]

Text = list[str]
#: Pages in the order of the crawl: address and text.
Pages = list[tuple[str, Text]]

# Thieves' pages that differ in their spam.
_MAX_PAGES = 8
_FIFTH = 4


class Loot(NamedTuple):
    """What a thief has to work with."""

    story: Text
    others: Sequence[Text]
    """Other stories, none of them the same."""
    rng: random.Random

    def spam(self, page: int) -> Text:
        """Return the filling of the thief's *page*, from 0 on: at least twice the story, a different one for each."""
        filling = Text()
        for other in islice(cycle(self.others), page * len(self.others) // _MAX_PAGES, None):
            if _length(filling) >= 2 * _length(self.story):
                break
            filling += other
        return filling


def _length(text: Text) -> int:
    return sum(map(len, text))


def pages(*texts: Text) -> Pages:
    """Return pages of as many thieves."""
    return [(f"http://thief{number}.test/story", text) for number, text in enumerate(texts)]


def parts(text: Text, number: int) -> list[Text]:
    """Return *text* without the first of *number* parts, without the second, and so on."""
    return [[p for place, p in enumerate(text) if place % number != part] for part in range(number)]


#: What a thief makes of a story, by name.
CASES: dict[str, Callable[[Loot], Pages]] = {
    "word for word": lambda loot: pages(loot.story),
    "with spam before it": lambda loot: pages(loot.spam(0) + loot.story),
    "with spam behind it": lambda loot: pages(loot.story + loot.spam(0)),
    "with spam between its paragraphs": lambda loot: pages(
        [p for pair in zip(loot.story, cycle(loot.spam(0)), strict=False) for p in pair]
    ),
    "its paragraphs in another order": lambda loot: pages(loot.rng.sample(loot.story, len(loot.story))),
    "with a word in fifteen replaced": lambda loot: pages(reword(loot.story, loot.rng)),
    "with other commas": lambda loot: pages(punctuate(loot.story, loot.rng)),
    "with 2 % of its letters misread": lambda loot: pages(misread(0.02)(loot.story, loot.rng)),
    "on a page with other stories": lambda loot: pages([*loot.others[0], *loot.story, *loot.others[1]]),
    "by three thieves, one after the other": lambda loot: pages(
        loot.story, reword(loot.story, loot.rng), loot.story + loot.spam(0)
    ),
    "by three, each with spam of its own": lambda loot: pages(*(loot.story + loot.spam(n) for n in range(3))),
    "by four, so that it is boilerplate": lambda loot: pages(*(loot.story + loot.spam(n) for n in range(4))),
    "three quarters of it by each of four, among spam": lambda loot: pages(
        *(part + loot.spam(n) for n, part in enumerate(parts(loot.story, 4)))
    ),
    "half by four, so that it is boilerplate, half by a fifth": lambda loot: pages(
        *(parts(loot.story, 2)[n == _FIFTH] + loot.spam(n) for n in range(_FIFTH + 1))
    ),
    "at an address that shows the preferred host": lambda loot: [(loot.rng.choice(SPOOFS), loot.story)],
}


def crawled(thefts: Pages, story: Text, preferred: Sequence[str]) -> tuple[Library, Visit]:
    """Return a new library after a crawl of *thefts* and then of the victim, and the victim's case."""
    library = Library(preferred=preferred)
    for url, text in thefts:
        library.visit(url, text)
    return library, library.visit(VICTIM, story)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", metavar="CORPUS", nargs="+", type=Path)
    parser.add_argument("--stories", type=int, default=100)
    options = parser.parse_args()
    rows: dict[str, list[int]] = {name: [0, 0, 0] for name in CASES}
    for path in options.corpora:
        try:
            stories = first_pages(path)
        except CorpusError as error:
            sys.exit(str(error))
        for number, story in enumerate(stories[: options.stories]):
            others = stories[number + 1 :] + stories[:number]
            for name, row in rows.items():
                thefts = CASES[name](Loot(story, others, random.Random(f"{name} {number}")))
                row[0] += 1
                for column, preferred in enumerate(([], [PREFERRED]), start=1):
                    row[column] += crawled(thefts, story, preferred)[1].is_duplicate
    print(table(["a thief has the story", "victims", "dropped without the setting", "dropped with it"],
                [[name, *row] for name, row in rows.items()]))  # fmt: skip
    sys.exit(any(row[2] for row in rows.values()))


def first_pages(path: Path) -> list[Text]:
    """Return the text of the first page of each cluster of a corpus, where it has any; three at least."""
    first: dict[str, Text] = {}
    for page in read_corpus(path, CRAWL_FIELDS):
        if not page.optional and page.cluster not in first and (text := list(paragraphs_of(parsed(page.html)))):
            first[page.cluster] = text
    if len(first) < 3:
        raise CorpusError(f"{path} has too few stories: spam is made of others")
    return [*first.values()]


if __name__ == "__main__":
    main()
