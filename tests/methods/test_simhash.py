"""SimHash and the methods that are made of it."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prose import story, zh_story

from dedup_middleware.fingerprints.method import Bits, Method, Text
from dedup_middleware.methods import p_simhash
from dedup_middleware.methods.e_simhash import ESimHash, entropy
from dedup_middleware.methods.p_simhash import PSimHash, bdr, overlap, pbdr
from dedup_middleware.methods.paragraph_simhash import (
    JOINED,
    MOST_PARAGRAPHS,
    PROMINENT,
    ParagraphSimHash,
    heaviest,
    in_lists,
    paragraphs_of,
    sentence_weight,
)
from dedup_middleware.methods.simhash import RandomProjection, SimHash, hash_of, signs

vectors = st.lists(
    st.tuples(st.integers(0, 255), st.floats(-1e6, 1e6, allow_subnormal=False).map(lambda w: round(w * 8) / 8)),
    max_size=30,
)
some_places = st.lists(st.integers(0, 10_000), unique=True, max_size=300)


def bits_of(method: Method, text: str) -> int:
    made = method.fingerprint(Text((text,)))
    assert isinstance(made, Bits)
    return made.values[0]


def corpus(*lines: str) -> list[Text]:
    return [Text((line,)) for line in lines]


# --- signs


@given(vectors)
def test_a_bit_is_set_where_the_sum_of_the_signs_is_above_0(pairs: list[tuple[int, float]]) -> None:
    made = signs(pairs, 8)
    total = math.fsum(abs(weight) for _, weight in pairs)
    for bit in range(8):
        column = math.fsum(weight if ones >> bit & 1 else -weight for ones, weight in pairs)
        # Nearer to 0 than this, rounding may decide.
        if abs(column) > total * 2**-30 * len(pairs):
            assert made >> bit & 1 == (column > 0)


@given(vectors, st.randoms(use_true_random=False), st.integers(-20, 20))
def test_neither_order_nor_a_power_of_two_changes_a_bit(pairs: list[tuple[int, float]], chance, power: int) -> None:
    mixed = [(ones, math.ldexp(weight, power)) for ones, weight in pairs]
    chance.shuffle(mixed)
    assert signs(mixed, 8) == signs(pairs, 8)


# --- SimHash


def test_two_of_eight_bits_differ() -> None:
    one, other = Bits((0b10101010,), 8), Bits((0b10001011,), 8)
    assert SimHash(bits=8, distance=2).score(one, other) == 1 - 2 / 8
    assert SimHash(bits=8, distance=2).is_alike(one, other)
    assert not SimHash(bits=8, distance=1).is_alike(one, other)


def test_tf_idf_counts_a_word_and_the_texts_without_it() -> None:
    made = SimHash()
    made.fit(corpus("boat net", "boat", "boat gull", "gull"))
    weights = made.weights(["boat", "gull", "gull", "pier"])
    assert weights == pytest.approx({"boat": math.log(1 + 4 / 3), "gull": 2 * math.log(3), "pier": math.log(5)})


def test_the_rarer_of_two_words_decides() -> None:
    made = SimHash()
    made.fit(corpus(*(f"Harbour number{n}" for n in range(5))))
    assert bits_of(made, "Harbour gulls harbour") == hash_of("gulls", 64)
    assert bits_of(SimHash(), "Harbour gulls harbour") == hash_of("harbour", 64)


def test_options_set_size_and_distance() -> None:
    assert SimHash(bits=128, distance=10).threshold == 1 - 10 / 128
    assert bits_of(SimHash(bits=128), "Fishermen repaired nets") >> 64
    assert (ESimHash().threshold, PSimHash().threshold) == (1 - 10 / 64, 1 - 10 / 64)


# --- random projection


def test_vectors_of_tokens_are_added_as_often_as_they_occur() -> None:
    made = RandomProjection()
    one, two, three = (bits_of(made, word) for word in ("red", "boat", "gull"))
    assert bits_of(made, "red boat gull") == one & two | one & three | two & three
    assert bits_of(made, "red boat") == one & two
    assert bits_of(made, "the the the red boat") == bits_of(made, "the")
    assert 150 < (one ^ two).bit_count() < 234


# --- E-SimHash

NEIGHBOURS = corpus("red boat sails", "blue boat sails", "green boat sails", "grey boat sails")


def test_a_hash_and_its_positions_are_combined_and_share_the_weight() -> None:
    assert bits_of(ESimHash(), "boat") == hash_of("boat", 64) ^ 0
    for text, words in (("red boat sails", ("red", "boat", "sails")), ("boat boat sails", ("boat", "boat", "sails"))):
        one, two, three = (hash_of(word, 64) ^ place for place, word in enumerate(words))
        assert bits_of(ESimHash(), text) == one & two | one & three | two & three
    assert bits_of(ESimHash(), "The red boat was sails") == bits_of(ESimHash(), "red boat sails")


def test_a_word_between_many_others_weighs_more_and_an_unknown_one_as_much_as_before() -> None:
    made = ESimHash()
    made.fit(NEIGHBOURS)
    # Four words stand before "boat", as often each: 2 bits; one after it: 0 bits. The mean is 1.
    idf = math.log(1 + 4 / 4)
    weights = {"boat": idf * (1 + 1), "sails": idf, "yawl": math.log(1 + 4)}
    assert made.weights(["boat", "sails", "yawl"]) == pytest.approx(weights)


@given(st.lists(st.integers(1, 50), min_size=1, max_size=20))
def test_entropy_is_greatest_where_all_neighbours_are_equally_frequent(counts: list[int]) -> None:
    made = entropy(Counter({str(n): count for n, count in enumerate(counts)}))
    assert -1e-9 <= made <= math.log2(len(counts)) + 1e-9
    assert entropy(Counter({str(n): 3 for n in range(len(counts))})) == pytest.approx(math.log2(len(counts)))


# --- P-SimHash

# "red" goes with "boat", as often as "boat" is there but for one text; "gull" goes with neither.
PAIRS = corpus("red boat", "red boat boat", "boat", "gull", "gull gull")


@given(some_places)
def test_positions_are_mapped_to_bits_and_counted(places: list[int]) -> None:
    counts = Counter(pbdr([place], 8) for place in places)
    assert all(bit.bit_count() == 1 for bit in counts)
    assert pbdr(places, 8) == sum(bit for bit, count in counts.items() if count > len(places) / 8)
    assert bdr(places, 8) == sum(bit for bit, count in counts.items() if count % 2)


def test_overlap_is_the_smaller_counts_by_the_larger() -> None:
    # min 1 + 2, max 3 + 2 + 4.
    assert overlap({0: 1, 1: 2}, {0: 3, 1: 2, 2: 4}) == overlap({0: 3, 1: 2, 2: 4}, {0: 1, 1: 2}) == 3 / 9
    assert overlap({0: 1}, {1: 1}) == overlap({}, {}) == overlap({}, {1: 1}) == 0


def test_a_word_that_goes_with_a_heavier_one_weighs_less(monkeypatch) -> None:
    made = PSimHash()
    words = ["red", "red", "boat", "gull"]
    assert made.j_tidf(words) == pytest.approx({"red": 2 * math.log(2), "boat": math.log(2), "gull": math.log(2)})
    made.fit(PAIRS)
    # Red is heavier: 2 x ln(1 + 5/2). With boat: min 1 + 1, max 1 + 2 + 1.
    red, boat, gull = 2 * math.log(1 + 5 / 2), math.log(1 + 5 / 3) * (1 - 2 / 4), math.log(1 + 5 / 2)
    assert made.j_tidf(words) == pytest.approx({"red": red, "boat": boat, "gull": gull})
    monkeypatch.setattr(p_simhash, "MOST_TEXTS", 1)
    made.fit(PAIRS)
    assert made.j_tidf(words)["boat"] == pytest.approx(math.log(1 + 5 / 3))


def test_mu_decides_between_hashes_and_positions() -> None:
    assert bits_of(PSimHash(mu=0.6), "boat") == bits_of(PSimHash(mu=1.9), "boat") == hash_of("boat", 64)
    assert bits_of(PSimHash(mu=0.4), "boat") == pbdr([0], 64)
    assert bits_of(PSimHash(mu=1), "red boat sails past grey pier") == bits_of(
        SimHash(), "red boat sails past grey pier"
    )
    # Where the hashes of two words differ, the sum is -0.5 x both signs of positions: -1 each for all but two bits.
    one, two = hash_of("red", 64), hash_of("boat", 64)
    assert bits_of(PSimHash(), "red boat") == one & two | (one ^ two) & ~(pbdr([0], 64) | pbdr([1], 64))
    often, moved = "red boat " * 30 + "gull " * 60, "gull " * 60 + "boat red " * 30
    assert bits_of(PSimHash(), often) != bits_of(PSimHash(), moved)
    assert bits_of(PSimHash(), often) != bits_of(PSimHash(positions="bdr"), often)


# --- paragraphs


def paragraph_bits(text: Text, **options: object) -> Bits:
    made = ParagraphSimHash(**options).fingerprint(text)  # type: ignore[arg-type]
    assert made is not None
    return made


def test_of_weights_of_80_70_65_and_60_percent_the_first_two_are_chosen() -> None:
    assert heaviest([0.8, 0.7, 0.65, 0.6], 2) == [0, 1]
    # In order, and the first of equals.
    assert heaviest([0.1, 0.5, 0.9, 0.5], 2) == [1, 2]
    assert heaviest([0.5], 2) == [0]


def test_length_relevance_and_place_weigh_3_4_and_3_tenths() -> None:
    assert [sentence_weight(1, 0, 0), sentence_weight(0, 1, 0), sentence_weight(0, 0, 1)] == [0.3, 0.4, 0.3]


def test_the_heaviest_sentences_are_the_feature_of_a_paragraph() -> None:
    first, middle, last = "The harbour was quiet this morning.", "Gulls sat on the wall there.", "It rained after noon."
    ferry, other = "One ferry left its pier in the fog again.", "Somewhere else entirely, people were asleep."
    whole = paragraph_bits(Text((f"{first} {middle} {last}", story(1)[0])))
    assert whole.values[0] == paragraph_bits(Text((f"{first} {last}", story(1)[0]))).values[0]
    for title, sentence in (("", first), ("ferry " * 50, ferry)):
        chosen = paragraph_bits(Text((other, f"{first} {ferry} {last}"), title), sentences=1).values[1]
        assert chosen == paragraph_bits(Text((other, sentence)), sentences=1).values[1]
    assert len(paragraph_bits(Text((story(1)[0], "By our staff.", story(1)[1]))).values) == 2
    assert ParagraphSimHash().fingerprint(Text(("Nineteen letters o.", "No."))) is None


def test_paragraphs_are_those_of_the_tags_or_lines_or_joined_sentences() -> None:
    def cut(*paragraphs: str) -> list[str]:
        return [paragraph for paragraph, _ in paragraphs_of(Text(paragraphs))]

    assert cut("One\nand.", "Two.") == ["One\nand.", "Two."]
    assert cut("One and.\n\nTwo.\n") == ["One and.", "Two."]
    line = " ".join(story(1))
    joined = cut(line)
    assert " ".join(joined) == line
    assert len(joined) > 2
    assert all(len(paragraph) >= JOINED for paragraph in joined[:-1])
    long = Text(tuple(f"This is line {n} of a very long page." for n in range(MOST_PARAGRAPHS + 5)))
    assert len(paragraph_bits(long).values) == MOST_PARAGRAPHS


def test_first_paragraphs_those_under_headings_and_items_weigh_more() -> None:
    text = Text(("a", "b", "c", "d"), elements=("main/p", "main/h2", "main/p", "main/p"))
    assert [prominence for _, prominence in paragraphs_of(text)] == [PROMINENT, 1, PROMINENT, 1]
    paths = ["main/p", "main/ol/li", "ul/li/p", "ul/li/ol/li", "ol/li/ol/li/ul/li"]
    assert [in_lists(path) for path in paths] == [1, 1.25, 1.125, 1.125, 1 + 0.125 / 4]
    plain, headed = (
        paragraph_bits(Text(tuple(story(1)), elements=elements))
        for elements in (("p",) * 6, ("p", "p", "h2", "p", "p", "p"))
    )
    assert [a != b for a, b in zip(plain.values, headed.values, strict=True)] == [False] * 3 + [True] + [False] * 2


def test_the_hash_and_its_bits_can_be_chosen() -> None:
    text = Text(tuple(story(1)))
    made = [paragraph_bits(text, bits=size, hash=name) for size in (64, 128) for name in ("blake2b", "murmur3")]
    assert len({each.values for each in made}) == 4
    assert all(value.bit_length() <= each.size for each in made for value in each.values)


@pytest.mark.parametrize("ordered", [True, False])
def test_paragraphs_in_another_order_are_alike_only_without_order(ordered: bool) -> None:  # noqa: FBT001
    method = ParagraphSimHash(ordered=ordered, distance=3)
    told = zh_story(1)
    one, other = (method.fingerprint(Text(tuple(text))) for text in (told, [*told[:1], *told[:0:-1]]))
    assert one is not None
    assert other is not None
    assert method.is_alike(one, other) != ordered
    # Three bits of a paragraph may differ.
    for values, alike in (
        (one.values[:-1], False),
        ((*one.values[:-1], one.values[-1] ^ 0b111), True),
        ((*one.values[:-1], one.values[-1] ^ 0b1111), False),
    ):
        assert method.is_alike(one, Bits(values, 128)) is alike


values = st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=4)


@given(values, st.lists(st.sets(st.integers(0, 63), max_size=3), min_size=4, max_size=4), st.booleans(), st.randoms())
def test_what_is_alike_has_a_key_in_common(old: list[int], flips, ordered: bool, chance) -> None:  # noqa: FBT001
    method = ParagraphSimHash(bits=64, distance=3, ordered=ordered)
    new = [value ^ sum(1 << n for n in places) for value, places in zip(old, flips, strict=False)]
    if not ordered:
        chance.shuffle(new)
    one, other = Bits(tuple(new), 64), Bits(tuple(old), 64)
    assert method.is_alike(one, other)
    assert {*method.keys(one)} & {*method.keys(other)}
