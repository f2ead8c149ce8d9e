from __future__ import annotations

import pytest

from dedup_middleware.errors import ConfigError, UnreadableError
from dedup_middleware.fingerprints.method import Text
from dedup_middleware.methods.idf_top import IdfTop
from dedup_middleware.methods.string_hashes import STRING_HASHES

CORPUS = [
    "alga buoy cable deck eel fog gull hull ink jib",
    "alga buoy cable deck eel fog gull",
    "alga buoy cable deck",
    "alga buoy",
    "alga",
    *["kelp loch"] * 4,
]


def told(words: str) -> Text:
    return Text((words,))


@pytest.fixture(scope="module")
def fitted() -> IdfTop:
    made = IdfTop()
    made.fit(map(told, CORPUS))
    return made


def test_the_seven_rarest_of_ten_words_descend_by_idf_then_by_word(fitted: IdfTop) -> None:
    assert (
        fitted.string(told("jib, ink; hull? gull! fog eel deck cable buoy alga")) == b"hull ink jib eel fog gull cable"
    )


def test_the_common_three_in_ten_may_be_others(fitted: IdfTop) -> None:
    one = told("jib ink hull gull fog eel cable deck buoy alga")
    assert fitted.fingerprint(one) == fitted.fingerprint(told("kelp loch alga gull fog eel cable hull ink jib jib"))
    assert fitted.fingerprint(one) != fitted.fingerprint(told("jib ink hull gull fog mole cable deck buoy alga"))


@pytest.mark.parametrize(("share", "count"), [(0.01, 1), (0.3, 3), (0.7, 7), (0.9, 9), (1, 10)])
def test_the_share_is_an_option(share: float, count: int) -> None:
    assert len(IdfTop(share=share).string(told(CORPUS[0])).split()) == count


@pytest.mark.parametrize("name", STRING_HASHES)
def test_texts_are_looked_up_by_the_hash_of_their_string(name: str) -> None:
    made = IdfTop(hash=name)
    text = told(CORPUS[0])
    fingerprint = made.fingerprint(text)
    assert fingerprint is not None
    assert [*made.keys(fingerprint)] == [STRING_HASHES[name](made.string(text)).to_bytes(4, "big")]


def test_the_hash_that_was_chosen_is_the_default() -> None:
    assert IdfTop().fingerprint(told("ferry")) == IdfTop(hash="ap").fingerprint(told("ferry"))


def test_strings_with_one_hash_are_compared() -> None:
    made = IdfTop(hash="djb")
    # Two less in a byte are 66 more in the next one.
    one, other = made.fingerprint(told("c0")), made.fingerprint(told("ar"))
    assert one is not None
    assert other is not None
    assert [*made.keys(one)] == [*made.keys(other)]
    assert not made.is_alike(one, other)


def test_a_text_without_words_has_no_fingerprint() -> None:
    assert IdfTop().fingerprint(told("…!")) is None


@pytest.mark.parametrize("options", [{"share": 0}, {"share": 1.1}, {"hash": "md5"}])
def test_options_that_cannot_be_are_mistakes(options: dict[str, float | str]) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        IdfTop(**options)


def test_what_was_learned_comes_back(fitted: IdfTop) -> None:
    other = IdfTop()
    other.recall(fitted.learned())
    assert other.string(told(CORPUS[0])) == fitted.string(told(CORPUS[0]))
    with pytest.raises(UnreadableError):
        other.recall(b"no frequencies")
