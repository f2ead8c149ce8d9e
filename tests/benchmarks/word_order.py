"""How far apart SimHash and its descendants put sentences that differ in the order of words, or in a "not".

Usage: python tests/benchmarks/word_order.py
The pairs are those of the article on P-SimHash (dedup_middleware/methods/p_simhash.py); the bits of 64
that differ are printed as a table in Markdown. *learned*: after `fit` on a dozen sentences in which the words of the
second pair occur together; what co-occurs weighs less in P-SimHash.
"""

from __future__ import annotations

import sys

from corpus import table

from dedup_middleware.fingerprints.method import Bits, Text, method

PAIRS = {
    "word order": ("太阳队总决赛赢了雄鹿队", "雄鹿队总决赛赢了太阳队"),
    "negation": ("李白是唐代诗人", "李白不是唐代诗人"),
}
CHOICES = ("simhash", "e-simhash", "p-simhash", "p-simhash:positions=bdr", "p-simhash:mu=1")
SENTENCES = [
    Text((sentence,))
    for sentence in (
        *(f"唐代诗人李白到过{place}。" for place in ("长安", "洛阳", "扬州", "成都")),
        *(f"这不是{thing}，那才是{thing}。" for thing in ("河", "山", "桥", "船", "雨", "雪", "门", "灯")),
    )
]


def distance(choice: str, pair: tuple[str, str], corpus: list[Text]) -> int:
    """Return the Hamming distance of the sentences of *pair* by the method of *choice*, fitted on *corpus*."""
    made = method(choice)
    made.fit(corpus)
    one, other = (made.fingerprint(Text((sentence,))) for sentence in pair)
    assert isinstance(one, Bits)
    assert isinstance(other, Bits)
    return (one.values[0] ^ other.values[0]).bit_count()


def main() -> int:
    """Print the table; return the exit status."""
    header = ["method", *PAIRS, *(f"{name}, learned" for name in PAIRS)]
    rows = [
        [choice, *(distance(choice, pair, corpus) for corpus in ([], SENTENCES) for pair in PAIRS.values())]
        for choice in CHOICES
    ]
    print(table(header, rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
