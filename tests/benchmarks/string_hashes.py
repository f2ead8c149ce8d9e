"""How often the classical string hashes collide on the strings of `idf-top`, and what they cost.

Usage: python tests/benchmarks/string_hashes.py CORPUS... [--slots N] [--only HASH]...
`corpus.py` says what a corpus is; a page's text is the true one where the corpus has it, else all text of the page. The
corpora are taken for one collection, of which the words' IDF is learned. Prints one table in Markdown.

A page collides if its value is that of a page before it, equal strings or not: the first row says for how many pages
the strings are equal, which no hash can avoid. All 32 bits are one column; a table of so many slots, by default as many
as there are pages, where the value modulo their number counts, is the other. The time is that of one hash of a string.

Beside it stands what was published for 1000 blogs of which 419 were copies. These numbers are what a table of about a
thousand slots gives: 581 strings that are thrown into 1000 slots at random leave 441 occupied, and 559 pages collide.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from corpus import ARTICLE_FIELDS, CorpusError, command, read_corpus, table, whole_body

from dedup_middleware.fingerprints.method import Text
from dedup_middleware.methods.idf_top import IdfTop
from dedup_middleware.methods.string_hashes import STRING_HASHES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

EQUAL = "equal strings"
#: Collisions and seconds, as they were published.
PUBLISHED: dict[str, tuple[int, float]] = {
    "elf": (594, 60),
    "rs": (584, 60),
    "js": (546, 58),
    "pjw": (594, 61.4),
    "bkdr": (601, 64.5),
    "sdbm": (546, 61.5),
    "djb": (595, 66),
    "ap": (543, 57.1),
}
PUBLISHED_EQUAL = 419


def collisions(values: Collection[object]) -> int:
    """Return how many of *values* come again."""
    return len(values) - len(set(values))


def strings_of(texts: Sequence[Text]) -> list[bytes]:
    """Return the strings that `idf-top` would hash, of those texts that have words."""
    method = IdfTop()
    method.fit(texts)
    return [string for text in texts if (string := method.string(text))]


def row(name: str, function: Callable[[bytes], int], strings: Sequence[bytes], slots: int) -> Iterator[object]:
    """Yield the cells of one hash."""
    start = time.perf_counter()
    values = [function(string) for string in strings]
    seconds = time.perf_counter() - start
    yield from (name, collisions(values), collisions([value % slots for value in values]))
    yield f"{1e6 * seconds / len(strings):.0f}"
    yield from PUBLISHED[name]


def main() -> None:
    """Print the table."""
    parser = command(__doc__, STRING_HASHES)
    parser.add_argument("--slots", type=int, help="of the table; default: as many as pages")
    options = parser.parse_args()
    try:
        pages = [page for corpus in options.corpora for page in read_corpus(corpus, ARTICLE_FIELDS)]
    except CorpusError as error:
        sys.exit(str(error))
    strings = strings_of([Text(page.text or tuple(whole_body(page.html))) for page in pages])
    slots = options.slots or len(strings)
    if slots < 1:
        sys.exit("there is nothing to hash, or no slot for it")
    header = ["hash", f"collisions of {len(strings)}", f"in {slots} slots", "µs a string"]
    print(
        table(
            [*header, "published: collisions of 1000", "published: s"],
            [
                [EQUAL, collisions(strings), "-", "-", PUBLISHED_EQUAL, "-"],
                *(row(name, STRING_HASHES[name], strings, slots) for name in options.only or STRING_HASHES),
            ],
        )
    )


if __name__ == "__main__":
    main()
