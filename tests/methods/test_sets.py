"""Methods that compare sets of features: shingles, sentences, segments, vectors and others."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_middleware.methods.method import Text, WeightedSet, feature, method
from dedup_middleware.methods.parts import neighbours
from dedup_middleware.methods.shingling import Heintze, Shingles
from dedup_middleware.methods.topic_distances import (
    MAX_VECTORS,
    MAX_WORDS,
    TopicDistances,
    as_print,
    distances,
)
from dedup_middleware.methods.vector_space import CharacterVectors

# Each character occurs once, and so does each shingle.
ALPHABET = "".join(map(chr, range(0x4E00, 0x4E00 + 2000)))
WORDS = [f"word{n}" for n in range(400)]


def set_of(made, *paragraphs, title=""):
    found = made.fingerprint(Text(paragraphs, title))
    assert isinstance(found, WeightedSet)
    return found


def score(made, new, old):
    return made.score(set_of(made, new), set_of(made, old))


def numbered(numbers):
    return WeightedSet({feature(str(n)): 1.0 for n in numbers})


# --- shingles


def test_only_the_first_hundred_thousand_characters_count():
    long = "".join(chr(0x4E00 + n % 9973) for n in range(100_000))
    assert set_of(Shingles(), long) == set_of(Shingles(), long + "unread")


@given(
    new=st.sets(st.integers(0, 60), min_size=1),
    old=st.sets(st.integers(0, 60), min_size=1),
    threshold=st.sampled_from([0.01, 0.3, 0.5, 2 / 3, 0.8, 1.0]),
)
def test_sets_of_shingles_that_are_alike_share_a_key(new, old, threshold):
    made = Shingles(threshold=threshold)
    one, other = numbered(new), numbered(old)
    assert made.is_alike(one, other) <= bool(set(made.keys(one)) & set(made.keys(other)))
    assert len([*Shingles(threshold=0.8).keys(numbered(set(range(10))))]) == 3


@pytest.mark.parametrize(("having", "others", "frequent"), [(10, 0, False), (30, 30, False), (31, 29, True)])
def test_a_frequent_shingle_is_in_more_than_ten_texts_and_in_more_than_the_share(
    having,
    others,
    frequent,
):
    last = "Every text of the corpus ends alike"
    made = Heintze(frequent=0.5)
    texts = [Text((ALPHABET[20 * n : 20 * n + 20], last)) for n in range(having)]
    made.fit([*texts, *(Text((ALPHABET[1000 + 10 * n :][:10],)) for n in range(others))])
    assert (made.fingerprint(Text((last,))) is None) is frequent


# --- MinHash


def signature(values):
    return WeightedSet({place.to_bytes(4, "big") + value.to_bytes(4, "big"): 1.0 for place, value in enumerate(values)})


def test_minhash_looks_up_by_the_bands_of_datasketch():
    pytest.importorskip("datasketch")
    made, old = method("minhash"), [*range(128)]
    assert made.score(signature([1] * 128), signature([1] * 90 + [2] * 38)) == 90 / 128
    assert len({*made.keys(signature([1] * 128))}) == 14
    for band in range(14):
        new = [*range(1000, 1128)]
        new[9 * band : 9 * band + 9] = old[9 * band : 9 * band + 9]
        assert len(set(made.keys(signature(new))) & set(made.keys(signature(old)))) == 1


# --- vectors


VECTORS = st.dictionaries(st.integers(0, 12).map(lambda n: bytes([n] * 8)), st.floats(0.25, 50), min_size=1)


@given(new=VECTORS, old=VECTORS, threshold=st.sampled_from([0.01, 0.3, 0.6, 0.9]))
def test_vectors_that_are_alike_share_a_key(new, old, threshold):
    made, one, other = CharacterVectors(threshold=threshold), WeightedSet(new), WeightedSet(old)
    assert made.is_alike(one, other) <= bool(set(made.keys(one)) & set(made.keys(other)))
    # Those left have a length of √0.8, too little; nine would have √0.9.
    assert len([*CharacterVectors().keys(WeightedSet({bytes([n] * 8): 3.0 for n in range(10)}))]) == 2


# --- punctuation

# Six marks, so that each of the three strings has two of them.
CLAUSES = ("港口的旧渡船", "下周停止运营", "因为船身已经生锈", "渔民们都很担心", "他们写信给议会", "希望买一艘新船")


def edited(*places):
    """Return the text with the end of some clauses rewritten, each in front of its mark."""
    clauses = [clause[:-2] + "山羊" if n in places else clause for n, clause in enumerate(CLAUSES)]
    return "".join(map("".join, zip(clauses, "，。！？，。", strict=True)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (edited(), ["渡船下周", "运营因为", "生锈渔民", "担心他们", "议会希望", "新船"]),
        ("One two, three four. Five!", ["woth", "urfi", "ve"]),
        ("ＡＢ，ＣＤ", ["abcd"]),
        ("“Stop!” he said?! Then", ["ophe", "idth"]),
        ("up 1.5 to 1,600 now, then", ["owth"]),
        ("a, b, c", ["ab", "bc"]),
        ("nothing here; nothing: there", []),
    ],
)
def test_two_characters_stand_on_either_side_of_a_mark(text, expected):
    assert neighbours(text) == expected


# --- topic distances

TOPIC = ("郑州", "黄河", "游览区")
# The published positions, and the distances that follow from them by the definition.
PLACES = {
    "A": [[8, 73], [1, 13], [3, 15, 45, 80]],
    "B": [[23, 42, 89], [4, 57, 91, 124, 138], [140]],
    "C": [[32, 71], [73], [75]],
    "D": [[3], [9], [11, 40, 73]],
}
DISTANCES = {
    "A": [9, 21, 51, 86, 15, 7, 37, 72, 74, 86, 116, 151, 70, 62, 92, 127],
    "B": [155, 117, 117, 117, 117, 174, 98, 98, 98, 98, 221, 115, 51, 51, 51],
    "C": [43, 4],
    "D": [8, 37, 70],
}
# With the misprints; and with every occurrence of a word in the published texts.
PRINTED = DISTANCES | {
    "A": [9, 21, 51, 86, 15, 7, 37, 73, 74, 86, 116, 151, 70, 62, 92, 127],
    "B": [155, 115, 117, 107, 117, 174, 98, 98, 98, 98, 221, 115, 51, 51],
}
COUNTED = DISTANCES | {
    "A": distances([[8, 82], [1, 14, 28], [3, 16, 45, 89]]),
    "D": distances([[3, 75], [9, 23], [11, 40, 82]]),
}


@pytest.mark.parametrize(
    ("lists", "repeats"),
    [(DISTANCES, ["DA"]), (PRINTED, ["DA"]), (COUNTED, ["CA", "DA"])],
    ids=["defined", "printed", "counted"],
)
def test_which_of_the_published_texts_repeat_others(lists, repeats):
    assert {name: distances(places) for name, places in PLACES.items()} == DISTANCES
    made = TopicDistances(topic=" ".join(TOPIC))
    prints = {name: as_print(TOPIC, each) for name, each in lists.items()}
    pairs = itertools.permutations("ABCD", 2)
    assert [new + old for new, old in pairs if made.is_alike(prints[new], prints[old])] == repeats


def test_a_hostile_text_has_a_bounded_number_of_vectors():
    topic = [f"w{chr(97 + n)}" for n in range(20)]
    # One vector, for two positions of each word would make 2 ** 16.
    found = TopicDistances(topic=" ".join(topic)).fingerprint(Text((" ".join(topic * 1000),)))
    assert found == as_print(topic[:MAX_WORDS], [MAX_WORDS - 1])
    assert 1 <= len(distances([[*range(40)]] * 5)) <= MAX_VECTORS


@given(
    st.sets(st.integers(0, 300), min_size=1, max_size=8), st.sets(st.integers(0, 300), max_size=8), st.integers(1, 9)
)
def test_distances_that_agree_share_a_key(new, more, b):
    made = TopicDistances(topic="x y", b=b)
    one, nearby = as_print("xy", new), as_print("xy", {number + number % (b + 1) for number in new} | more)
    assert made.is_alike(one, nearby)
    assert set(made.keys(one)) & set(made.keys(nearby))
