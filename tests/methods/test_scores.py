"""How alike each method finds an edited story: a change of a method, or of what an option does, shows in its row."""

import pytest
from prose import story, zh_story

from dedup_middleware.methods.method import METHODS, Digest, Text, method

CORPUS = [Text(tuple(tell(n)), f"Story {n}") for n in range(20, 60) for tell in (story, zh_story)]


def edited(tell):
    """Return a story, and itself at another URL; a word and a mark changed in it; its title; its order; a part of it.

    Then more than the story, and another story.
    """
    told, other = tell(1), tell(2)
    whole = Text(tuple(told), " ".join(told)[:40], url="https://one.example/1")
    elements = ("main/p", "main/p", "main/h2", "main/ol/li", "main/p", "main/p")
    return whole, [
        whole._replace(url="https://other.example/9"),
        whole._replace(paragraphs=(*told[:2], told[2].replace("the ", "a ").replace("市", "城"), *told[3:])),
        whole._replace(paragraphs=tuple(p.replace(",", "").replace("，", "") for p in told)),
        whole._replace(title="Another title 另一个"),
        whole._replace(paragraphs=(*told[:1], *told[:0:-1])),
        whole._replace(paragraphs=tuple(told), elements=elements),
        whole._replace(paragraphs=tuple(told[:3])),
        whole._replace(paragraphs=(*told, *other[:2])),
        Text(tuple(other), "Title 标题"),
    ]


SCORES = """
paragraphs 1+ 0.97+ 1+ 1+ 0.72 0.96+ 0 0 0.55 | 1+ 0.80 1+ 0.95+ 0.51 0.93 0 0 0.48
paragraphs:hash=murmur3 1+ 0.91 1+ 1+ 0.57 0.91 0 0 0.50 | 1+ 0.81 1+ 0.95+ 0.48 0.96+ 0 0 0.47
paragraphs:ordered=false,sentences=1,least=30 1+ 0.70 1+ 1+ 1+ 0.95+ 0 0 0.58 | 1+ 0.80 1+ 0.62 1+ 0.99+ 0 0 0.55
long-sentences 1+ 0.82+ 0 1+ 0.67+ 1+ 0.31 0.60+ 0 | 1+ 0.74+ 0 1+ 0.60+ 1+ 0.48 0.60+ 0
long-sentences:trim=0,least=30 1+ 0.90+ 0 1+ 0.90+ 1+ 0.41 0.60+ 0 | - - - - - - - - -
long-sentences:most=4,trim=0.3 1+ 1+ 0 1+ 0.33 1+ 0 0.33 0 | 1+ 0.33 0 1+ 0.33 1+ 0 0.60+ 0
shingles 1+ 0.99+ 1+ 1+ 0.99+ 1+ 0.64+ 0.84+ 0.28 | 1+ 0.92+ 1+ 1+ 0.92+ 1+ 0.60+ 0.80+ 0.14
shingles:k=2,unit=words,threshold=0.8 1+ 0.97+ 1+ 1+ 0.99+ 1+ 0.66 0.85+ 0.32 | 1+ 0.94+ 1+ 1+ 0.96+ 1+ 0.65 0.81+ 0.20
heintze 1+ 0.92+ 1+ 1+ 0.98+ 1+ 0.36+ 0.56+ 0.03 | 1+ 0.90+ 1+ 1+ 0.85+ 1+ 0.43+ 0.60+ 0.04
heintze:smallest=20 1+ 0.90+ 1+ 1+ 1+ 1+ 0.33+ 0.74+ 0.03 | 1+ 0.90+ 1+ 1+ 0.90+ 1+ 0.21 0.67+ 0.08
heintze:frequent=0.5 1+ 0.96+ 1+ 1+ 0.98+ 1+ 0.49+ 0.72+ 0.35+ | 1+ 0.92+ 1+ 1+ 0.87+ 1+ 0.50+ 0.71+ 0.14
bharat 1+ 1+ 1+ 1+ 0.97+ 1+ 0.68+ 0.85+ 0.23 | 1+ 1+ 1+ 1+ 0.86+ 1+ 0.50+ 0.83+ 0.16
bharat:k=3 1+ 1+ 1+ 1+ 1+ 1+ 0.81+ 1+ 0.46+ | 1+ 0.94+ 1+ 1+ 1+ 1+ 0.69+ 0.70+ 0.18
supershingles 1+ 1+ 1+ 1+ 1+ 1+ 0 1+ 0 | 1+ 1+ 1+ 1+ 1+ 1+ 0 0 0
supershingles:shared=20 1+ 1+ 1+ 1+ 1+ 1+ 0 0.75 0 | 1+ 1+ 1+ 1+ 1+ 1+ 0 0 0
fetterly 1+ 0.33+ 1+ 1+ 0.17 1+ 0 0 0 | 1+ 0 1+ 1+ 0.17 1+ 0 0 0
fetterly:equal=1 1+ 0.33+ 1+ 1+ 0.17+ 1+ 0 0 0 | 1+ 0 1+ 1+ 0.17+ 1+ 0 0 0
i-match 1+ 1+ 1+ 1+ 1+ 1+ 0 0 0 b8df1c | 1+ 0 1+ 1+ 1+ 1+ 0 0 0 e5ea98
i-match:idf=1.7 1+ 1+ 1+ 1+ 1+ 1+ 0 0 0 c5a0f2 | 1+ 0 1+ 1+ 1+ 1+ 0 0 0 ae1ca3
simhash 1+ 1+ 1+ 1+ 1+ 1+ 0.89 0.92 0.50 | 1+ 0.92 1+ 1+ 1+ 1+ 0.78 0.88 0.56
simhash:bits=128,distance=20 1+ 1+ 1+ 1+ 1+ 1+ 0.89+ 0.91+ 0.50 | 1+ 0.89+ 1+ 1+ 1+ 1+ 0.74 0.88+ 0.58
e-simhash 1+ 1+ 1+ 1+ 0.94+ 1+ 0.94+ 0.89+ 0.38 | 1+ 0.97+ 1+ 1+ 0.94+ 1+ 0.86+ 0.94+ 0.81
p-simhash 1+ 1+ 1+ 1+ 0.84+ 1+ 0.89+ 0.92+ 0.53 | 1+ 0.89+ 1+ 1+ 0.97+ 1+ 0.70 0.95+ 0.73
p-simhash:mu=0.4 1+ 1+ 1+ 1+ 0.83 1+ 0.84+ 0.97+ 0.69 | 1+ 1+ 1+ 1+ 0.95+ 1+ 0.98+ 0.95+ 0.95+
p-simhash:positions=bdr,mu=0.7,top=9 1+ 1+ 1+ 1+ 0.91+ 1+ 0.91+ 0.98+ 0.62 | 1+ 0.81 1+ 1+ 0.92+ 1+ 0.66 0.86+ 0.83
top-words 1+ 1+ 1+ 1+ 1+ 1+ 0 0 0 34e719 | 1+ 0 1+ 1+ 1+ 1+ 0 0 0 3379ae
top-words:words=9 1+ 1+ 1+ 1+ 1+ 1+ 0 0 0 48a939 | 1+ 0 1+ 1+ 1+ 1+ 0 0 0 1543d5
segments 1+ 0.90+ 1+ 1+ 0.40 1+ 0.10 0.10 0 | 1+ 0.80+ 1+ 1+ 0.20 1+ 0.10 0.40 0
segments:segments=4,equal=2 1+ 0.75+ 1+ 1+ 0 1+ 0 0 0 | 1+ 0.75+ 1+ 1+ 0 1+ 0 0 0
keywords 1+ 1+ 1+ 1+ 1+ 1+ 0 0.97+ 0 | 1+ 0.99+ 1+ 1+ 1+ 1+ 0 0 0
keywords:variant=1 1+ 1+ 1+ 1+ 0 1+ 1+ 1+ 0 a16a54 | 1+ 1+ 1+ 1+ 0 1+ 1+ 1+ 0 7f2e78
keywords:variant=2 1+ 1+ 1+ 1+ 1+ 1+ 0 1+ 0 af13ca | 1+ 1+ 1+ 1+ 1+ 1+ 0 0 0 110468
keywords:variant=3 1+ 1+ 1+ 1+ 1+ 1+ 0 1+ 0 7ca5da | 1+ 1+ 1+ 1+ 1+ 1+ 0 0 0 fa0137
keywords:variant=4 1+ 1+ 1+ 1+ 1+ 1+ 0 0.97+ 0 | 1+ 0.99+ 1+ 1+ 1+ 1+ 0 0 0
keywords:keywords=3,difference=0 1+ 1+ 1+ 1+ 1+ 1+ 0 0.96 0 | 1+ 0.99 1+ 1+ 1+ 1+ 0 0 0
random-projection 1+ 0.97+ 1+ 1+ 1+ 1+ 0.89 0.93 0.79 | 1+ 0.96 1+ 1+ 1+ 1+ 0.88 0.92 0.74
random-projection:bits=64 1+ 0.95 1+ 1+ 1+ 1+ 0.94 0.95 0.83 | 1+ 0.92 1+ 1+ 1+ 1+ 0.91 0.92 0.73
near-pages 1+ 1+ 1+ 1+ 1+ 1+ 0 0 0 b4de05 | 1+ 0 1+ 1+ 1+ 1+ 0 0 0 e351a9
near-pages:percentage=0.1,sum_interval=3 1+ 1+ 1+ 1+ 1+ 1+ 0 0 0 d7af2f | 1+ 1+ 1+ 1+ 1+ 1+ 0 0 0 e2fda7
idf-top 1+ 1+ 1+ 1+ 1+ 1+ 0 0 0 23d0e2 | 1+ 0 1+ 1+ 1+ 1+ 0 0 0 4e67d3
idf-top:share=0.1 1+ 1+ 1+ 1+ 1+ 1+ 0 0 0 9d5b63 | 1+ 1+ 1+ 1+ 1+ 1+ 0 0 0 ed9997
punctuation 1+ 1+ 0.50 1+ 0.50 1+ 0.50 0.50 0 | 1+ 1+ 0.50 1+ 0.50 1+ 0.50 0.50 0
punctuation:characters=1,strings=9,needed=5,title=1 1+ 1+ 0.20 1+ 1+ 1+ 0.20 0.20 0 | 1+ 1+ 0.20 1+ 0.80 1+ 0.20 0.20 0
topic-distances 1+ 1+ 0.80 - 0.87 1+ 0.93 1+ - | 1+ 1+ 0.11 - 0.38 1+ 0.95 1+ -
topic-distances:b=1 1+ 1+ 0.40 - 0.67 1+ 0.71 1+ - | 1+ 1+ 0.06 - 0.24 1+ 0.79 1+ -
length-classes 1+ 0.90+ 0 1+ 0.90+ 1+ 0.41 0.60+ 0 | 1+ 0.74+ 0 1+ 1+ 1+ 0.41 0.74+ 0
length-classes:ratio=1.2 1+ 0.90+ 0 1+ 0.90+ 1+ 0 0 0 | 1+ 0.74+ 0 1+ 1+ 1+ 0 0.74+ 0
length-classes:neighbours=false,ratio=1.2 1+ 0.90+ 0 1+ 0.90+ 1+ 0 0 0 | 1+ 0.74+ 0 1+ 1+ 1+ 0 0 0
two-stage 0.75+ 0 0 0.75+ 0 1+ 0 0 0 | 0.75+ 0 0 0.75+ 0 1+ 0 0 0
two-stage:first=keywords,equal=2 0.75+ 0.75+ 0.75+ 0.75+ 0.75+ 1+ 0 0.75+ 0 | 0.75+ 0.75+ 0.75+ 0.75+ 0.75+ 1+ 0 0 0
bloom 1+ 0 0 1+ 0 1+ 0 0 0 877c2a | 1+ 0 0 1+ 0 1+ 0 0 0 b149d4
vectors 1+ 1+ 1+ 1+ 1+ 1+ 0.96+ 0.95+ 0.04 | 1+ 0.95+ 1+ 1+ 1+ 1+ 0.75 0.89 0.19
characters 1+ 1+ 1+ 1+ 1+ 1+ 0.96+ 0.98+ 0.79 | 1+ 0.99+ 1+ 1+ 1+ 1+ 0.94+ 0.98+ 0.79
minhash 1+ 0.91+ 1+ 1+ 0.97+ 1+ 0.44 0.77+ 0.04 | 1+ 0.89+ 1+ 1+ 0.88+ 1+ 0.51 0.80+ 0.08
minhash:permutations=64,k=2 1+ 0.95+ 1+ 1+ 0.95+ 1+ 0.67 0.84+ 0.30 | 1+ 0.94+ 1+ 1+ 0.98+ 1+ 0.69 0.84+ 0.12
minhash:unit=characters 1+ 0.99+ 1+ 1+ 0.98+ 1+ 0.68 0.83+ 0.23 | 1+ 0.93+ 1+ 1+ 0.93+ 1+ 0.56 0.82+ 0.19
"""


def scores(choice):
    """Return the scores of the edited stories, in English and Chinese; + is alike. Of digests, also the first bytes."""
    made = method(choice)
    made.fit(CORPUS)
    found = []
    for tell in (story, zh_story):
        whole, others = edited(tell)
        old, *prints = (made.fingerprint(text) for text in (whole, *others))
        pairs = [(made.score(new, old), made.is_alike(new, old)) if new and old else None for new in prints]
        cells = [
            f"{pair[0]:.2f}{'+' * pair[1]}".replace("1.00", "1").replace("0.00", "0") if pair else "-" for pair in pairs
        ]
        digest = [old.value.hex()[:6]] if isinstance(old, Digest) else []
        found.append(" ".join([*cells, *digest]))
    return " | ".join(found)


@pytest.mark.parametrize("row", SCORES.strip().splitlines(), ids=lambda row: row.split()[0])
def test_the_scores_of_an_edited_story(row):
    choice, expected = row.split(maxsplit=1)
    if choice.startswith("minhash"):
        pytest.importorskip("datasketch")
    assert scores(choice) == expected


def test_each_method_has_a_row():
    assert METHODS.ours.keys() <= {row.split()[0] for row in SCORES.strip().splitlines()}
