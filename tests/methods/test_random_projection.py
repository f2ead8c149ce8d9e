from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_middleware.errors import ConfigError
from dedup_middleware.fingerprints.method import Bits, Text
from dedup_middleware.methods.random_projection import RandomProjection

words = st.lists(st.sampled_from(["red", "boat", "gull", "pier", "net"]), min_size=1, max_size=30)


def bits_of(said: str, **options: float) -> int:
    made = RandomProjection(**options).fingerprint(Text((said,)))
    assert isinstance(made, Bits)
    return made.values[0]


def test_similarity_is_the_share_of_equal_bits() -> None:
    made = RandomProjection(bits=8, threshold=0.75)
    one, other = Bits((0b10101010,), 8), Bits((0b10001011,), 8)
    assert made.score(one, other) == 6 / 8
    assert made.is_alike(one, other)
    assert not RandomProjection(bits=8, threshold=0.8).is_alike(one, other)


def test_372_of_384_bits_are_alike() -> None:
    made = RandomProjection()
    assert made.is_alike(Bits((0,), 384), Bits(((1 << 12) - 1,), 384))
    assert not made.is_alike(Bits((0,), 384), Bits(((1 << 13) - 1,), 384))


def test_vectors_of_tokens_are_added() -> None:
    one, two, three = map(bits_of, ("red", "boat", "gull"))
    assert bits_of("red boat gull") == one & two | one & three | two & three
    # A sum of 0 is not above it.
    assert bits_of("red boat") == one & two


def test_half_of_the_bits_of_two_tokens_are_equal() -> None:
    assert 150 < (bits_of("red") ^ bits_of("boat")).bit_count() < 234


def test_a_stop_word_is_a_token_as_often_as_it_occurs() -> None:
    assert bits_of("the the the red boat") == bits_of("the")


@given(words, st.randoms(use_true_random=False))
def test_order_means_nothing(said: list[str], chance) -> None:
    mixed = [*said]
    chance.shuffle(mixed)
    assert bits_of(" ".join(mixed)) == bits_of(" ".join(said))


@pytest.mark.parametrize("bits", [8, 61, 64, 4096])
def test_there_are_as_many_bits_as_asked_for(bits: int) -> None:
    made = [bits_of(word, bits=bits) for word in ("red", "boat", "gull", "pier", "net", "rope", "mast", "sail")]
    assert max(made).bit_length() <= bits
    assert max(made).bit_length() > bits - 8


@pytest.mark.parametrize("options", [{"bits": 4}, {"bits": 4097}, {"threshold": 0.4}, {"threshold": 1.1}])
def test_options_that_make_no_sense_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        RandomProjection(**options)


@pytest.mark.parametrize("text", [Text(()), Text(("…!?",))])
def test_a_text_without_words_has_no_bits(text: Text) -> None:
    assert RandomProjection().fingerprint(text) is None
