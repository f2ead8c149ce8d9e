"""Shingles, all of them and samples."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_middleware.errors import ConfigError, UnreadableError
from dedup_middleware.fingerprints.method import Text, WeightedSet, feature, method
from dedup_middleware.methods.shingling import Bharat, Heintze, Shingles, shingles

# Each character occurs once, and so does each shingle.
ALPHABET = "".join(map(chr, range(0x4E00, 0x4E00 + 2000)))


def text(*paragraphs: str) -> Text:
    return Text(paragraphs)


def print_of(made: Shingles | Heintze | Bharat, *paragraphs: str) -> WeightedSet:
    found = made.fingerprint(text(*paragraphs))
    assert found is not None
    return found


def set_of(numbers: set[int]) -> WeightedSet:
    return WeightedSet({feature(str(n)): 1.0 for n in numbers})


def test_sixty_shared_shingles_of_a_hundred_and_of_a_hundred_and_twenty_are_a_resemblance_of_three_eighths() -> None:
    made = Shingles()
    new, old = set_of(set(range(100))), set_of(set(range(40, 160)))
    assert made.score(new, old) == 60 / 160 == 0.375
    assert made.is_alike(new, old)
    assert not Shingles(threshold=0.4).is_alike(new, old)


def test_texts_have_as_many_shingles_as_runs_of_five_characters() -> None:
    made = Shingles()
    # 104 characters and 124, of which 64 in a row are the same.
    new, old = print_of(made, ALPHABET[:104]), print_of(made, ALPHABET[40:164])
    assert (len(new.weights), len(old.weights)) == (100, 120)
    assert made.score(new, old) == 0.375


@pytest.mark.parametrize(
    ("unit", "k", "expected"),
    [
        ("characters", 5, ["aboat", "boats", "oatsa", "atsan", "tsank"]),
        ("words", 2, ["a boat", "boat sank"]),
        ("words", 3, ["a boat sank"]),
        ("words", 9, ["a boat sank"]),
        ("characters", 100, ["aboatsank"]),
    ],
)
def test_shingles_are_runs_of_characters_or_words(unit: str, k: int, expected: list[str]) -> None:
    found = shingles(text("A boat,", "Sank!"), k, unit)
    assert found[: len(expected)] == expected
    assert len(found) == {"characters": max(1, 10 - k), "words": max(1, 4 - k)}[unit]


@pytest.mark.parametrize("unit", ["characters", "words"])
@pytest.mark.parametrize("nothing", [(), ("…!", "—")])
def test_a_text_without_letters_has_no_shingles(unit: str, nothing: tuple[str, ...]) -> None:
    assert shingles(text(*nothing), 5, unit) == []
    assert Shingles(unit=unit).fingerprint(text(*nothing)) is None


def test_case_punctuation_and_the_ends_of_paragraphs_do_not_matter() -> None:
    made = Shingles()
    assert print_of(made, "The Old Ferry; it stops.") == print_of(made, "the old ferry", "IT STOPS")


def test_a_text_is_read_up_to_its_hundred_thousandth_character() -> None:
    long = "".join(chr(0x4E00 + n % 9973) for n in range(100_000))
    assert print_of(Shingles(), long) == print_of(Shingles(), long + "unread")


@given(
    new=st.sets(st.integers(0, 60), min_size=1),
    old=st.sets(st.integers(0, 60), min_size=1),
    threshold=st.sampled_from([0.01, 0.3, 0.5, 2 / 3, 0.8, 1.0]),
)
def test_texts_that_are_alike_are_found_by_a_key(new: set[int], old: set[int], threshold: float) -> None:
    made = Shingles(threshold=threshold)
    one, other = set_of(new), set_of(old)
    if made.is_alike(one, other):
        assert set(made.keys(one)) & set(made.keys(other))


def test_of_ten_shingles_two_cannot_differ_in_more_than_three_at_eight_tenths() -> None:
    assert len(list(Shingles(threshold=0.8).keys(set_of(set(range(10)))))) == 3


def test_heintze_keeps_the_hundred_smallest_of_all_shingles() -> None:
    everything = sorted(print_of(Shingles(), ALPHABET[:500]).weights)
    assert sorted(print_of(Heintze(), ALPHABET[:500]).weights) == everything[:100]
    assert sorted(print_of(Heintze(smallest=7), ALPHABET[:500]).weights) == everything[:7]


def notices(number: int) -> list[Text]:
    """Return texts that share their last sentence, and nothing else."""
    return [text(ALPHABET[20 * n : 20 * n + 20], "Every text of the corpus ends alike") for n in range(number)]


def test_heintze_leaves_out_what_is_frequent_in_the_corpus() -> None:
    made = Heintze()
    made.fit(notices(11))
    assert made.fingerprint(text("every text of the corpus ends alike")) is None
    new = print_of(made, ALPHABET[1000:1020], "Every text of the corpus ends alike")
    old = print_of(Heintze(), ALPHABET[1000:1020])
    # And the four shingles that reach from one paragraph into the other.
    assert new.weights.keys() >= old.weights.keys()
    assert len(new.weights) == len(old.weights) + 4


@pytest.mark.parametrize(("having", "others", "frequent"), [(10, 0, False), (30, 30, False), (31, 29, True)])
def test_frequent_is_what_more_than_ten_texts_and_more_than_the_share_asked_for_have(
    having: int,
    others: int,
    frequent: bool,  # noqa: FBT001
) -> None:
    made = Heintze(frequent=0.5)
    made.fit([*notices(having), *(text(ALPHABET[1000 + 10 * n :][:10]) for n in range(others))])
    assert (made.fingerprint(text("Every text of the corpus ends alike")) is None) is frequent


def test_a_shingle_beyond_those_that_a_text_would_keep_is_frequent_too() -> None:
    made = Heintze(smallest=10)
    long = ALPHABET[:34]
    made.fit([text(long)] * 11)
    # 30 shingles, of which the greater 20 become the smallest once the others are gone.
    assert made.fingerprint(text(long)) is None


def test_another_one_knows_what_heintze_has_learned() -> None:
    made, other = Heintze(), Heintze()
    made.fit(notices(11))
    other.recall(made.learned())
    assert other.fingerprint(text("Every text of the corpus ends alike")) is None
    assert other.learned() == made.learned()


@pytest.mark.parametrize("garbage", [b"", b"garbage", Heintze().learned()[:-3]])
def test_garbage_is_no_frequent_shingles(garbage: bytes) -> None:
    with pytest.raises(UnreadableError, match="frequent shingles cannot be read"):
        Heintze().recall(garbage)


def test_bharat_keeps_hashes_that_twenty_five_divides() -> None:
    everything = print_of(Shingles(), ALPHABET).weights
    kept = print_of(Bharat(), ALPHABET).weights
    assert set(kept) == {name for name in everything if int.from_bytes(name, "big") % 25 == 0}
    assert 40 < len(kept) < 120


def test_bharat_keeps_the_four_hundred_smallest_at_most() -> None:
    long = text("".join(chr(0x4E00 + n * n % 20_011) for n in range(15_000)))
    every, kept = Shingles().fingerprint(long), Bharat().fingerprint(long)
    assert every is not None
    assert kept is not None
    divisible = sorted(name for name in every.weights if int.from_bytes(name, "big") % 25 == 0)
    assert len(divisible) > 400
    assert sorted(kept.weights) == divisible[:400]


@pytest.mark.parametrize(
    "choice",
    [
        "shingles:k=0",
        "shingles:unit=letters",
        "shingles:threshold=0",
        "shingles:threshold=1.1",
        "heintze:smallest=0",
        "heintze:frequent=2",
        "bharat:k=-1",
    ],
)
def test_an_option_out_of_its_range_is_one_line(choice: str) -> None:
    option = choice.partition(":")[2].partition("=")[0]
    with pytest.raises(ConfigError, match=f"^{option} = "):
        method(choice)
