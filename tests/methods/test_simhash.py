"""SimHash and the methods that are made of it."""

import math
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from prose import story

from dedup_middleware.methods.method import Bits, Text
from dedup_middleware.methods.paragraph_simhash import (
    JOINED,
    MOST_PARAGRAPHS,
    ParagraphSimHash,
    heaviest,
    paragraphs_of,
)
from dedup_middleware.methods.simhash import bdr, pbdr, signs

vectors = st.lists(
    st.tuples(st.integers(0, 255), st.floats(-1e6, 1e6, allow_subnormal=False).map(lambda w: round(w * 8) / 8)),
    max_size=30,
)
some_places = st.lists(st.integers(0, 10_000), unique=True, max_size=300)


# --- signs


@given(vectors)
def test_a_bit_is_set_where_the_sum_of_the_signs_is_above_0(pairs):
    made = signs(pairs, 8)
    total = math.fsum(abs(weight) for _, weight in pairs)
    for bit in range(8):
        column = math.fsum(weight if ones >> bit & 1 else -weight for ones, weight in pairs)
        # Nearer to 0 than this, rounding may decide.
        if abs(column) > total * 2**-30 * len(pairs):
            assert made >> bit & 1 == (column > 0)


# --- P-SimHash


@given(some_places)
def test_positions_are_mapped_to_bits_and_counted(places):
    counts = Counter(pbdr([place], 8) for place in places)
    assert all(bit.bit_count() == 1 for bit in counts)
    assert pbdr(places, 8) == sum(bit for bit, count in counts.items() if count > len(places) / 8)
    assert bdr(places, 8) == sum(bit for bit, count in counts.items() if count % 2)


# --- paragraphs


def paragraph_bits(text, **options):
    return ParagraphSimHash(**options).fingerprint(text)


def test_of_weights_of_80_70_65_and_60_percent_the_first_two_are_chosen():
    assert heaviest([0.8, 0.7, 0.65, 0.6], 2) == [0, 1]
    # In order, and the first of equals.
    assert heaviest([0.1, 0.5, 0.9, 0.5], 2) == [1, 2]
    assert heaviest([0.5], 2) == [0]


def test_paragraphs_are_those_of_the_tags_or_lines_or_joined_sentences():
    def cut(*paragraphs):
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


values = st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=4)


@given(values, st.lists(st.sets(st.integers(0, 63), max_size=3), min_size=4, max_size=4), st.booleans(), st.randoms())
def test_what_is_alike_has_a_key_in_common(old, flips, ordered, chance):
    method = ParagraphSimHash(bits=64, distance=3, ordered=ordered)
    new = [value ^ sum(1 << n for n in places) for value, places in zip(old, flips, strict=False)]
    if not ordered:
        chance.shuffle(new)
    one, other = Bits(tuple(new), 64), Bits(tuple(old), 64)
    assert method.is_alike(one, other)
    assert {*method.keys(one)} & {*method.keys(other)}
