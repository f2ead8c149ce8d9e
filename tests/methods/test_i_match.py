from __future__ import annotations

import pytest

from dedup_middleware.errors import ConfigError, UnreadableError
from dedup_middleware.fingerprints.method import Text
from dedup_middleware.methods.i_match import IMatch


def told(words: str) -> Text:
    return Text((words,))


def corpus(size: int, **frequencies: int) -> list[Text]:
    """Return *size* texts, so many of which have each word."""
    return [
        told(" ".join([f"filler{n}", *(word for word, count in frequencies.items() if n < count)])) for n in range(size)
    ]


@pytest.fixture(scope="module")
def fitted() -> IMatch:
    made = IMatch()
    made.fit(corpus(1000, ferry=200, harbour=900, tide=20, pilot=20))
    return made


def test_the_idf_of_the_worked_example(fitted: IMatch) -> None:
    assert fitted.idf("ferry") == pytest.approx(0.699, abs=5e-4)
    assert fitted.idf("harbour") == pytest.approx(0.046, abs=5e-4)


def test_a_common_word_is_out_and_the_others_descend_by_idf_then_by_word(fitted: IMatch) -> None:
    assert fitted.telling(told("The harbour ferry, a tide and a pilot; a walrus!")) == [
        "walrus",
        "pilot",
        "tide",
        "ferry",
    ]


def test_texts_that_differ_in_common_words_and_order_have_one_fingerprint(fitted: IMatch) -> None:
    one = fitted.fingerprint(told("The ferry left the harbour with the tide."))
    assert one == fitted.fingerprint(told("With the tide left ferry after ferry."))
    assert one != fitted.fingerprint(told("The ferry left the harbour with the pilot."))


def test_a_text_of_common_words_has_no_fingerprint(fitted: IMatch) -> None:
    assert fitted.fingerprint(told("The harbour, and again the harbour.")) is None


def test_the_threshold_is_an_option() -> None:
    texts = corpus(1000, ferry=200, harbour=900)
    for idf, telling in ((0.04, ["ferry", "harbour"]), (0.05, ["ferry"]), (0.7, [])):
        made = IMatch(idf=idf)
        made.fit(texts)
        assert made.telling(told("ferry harbour")) == telling


def test_a_threshold_that_no_word_can_reach_leaves_the_rarest() -> None:
    made = IMatch()
    assert made.telling(told("ferry harbour")) == ["ferry", "harbour"]
    made.fit(corpus(3, harbour=2))
    assert made.telling(told("ferry harbour")) == ["ferry"]


@pytest.mark.parametrize("idf", [-0.1, 9.5, float("nan")])
def test_a_threshold_that_is_no_idf_is_a_mistake(idf: float) -> None:
    with pytest.raises(ConfigError, match="idf = "):
        IMatch(idf=idf)


def test_what_was_learned_comes_back(fitted: IMatch) -> None:
    other = IMatch()
    other.recall(fitted.learned())
    assert other.idf("ferry") == fitted.idf("ferry")
    with pytest.raises(UnreadableError):
        other.recall(b"no frequencies")
