"""Methods that hash a few of a text's words: `keywords` and `idf`."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_middleware.fingerprints.method import Digest, Method, Text
from dedup_middleware.methods.idf import IdfTop, IMatch, ap_hash
from dedup_middleware.methods.keywords import KeywordDigests, NearPages, TopWords, summary_of


def counted(**counts: int) -> Text:
    return Text(tuple(word for word, count in counts.items() for _ in range(count)))


def alike(method: Method, one: Text, other: Text) -> bool:
    new, old = method.fingerprint(one), method.fingerprint(other)
    assert new is not None
    assert old is not None
    return method.is_alike(new, old)


# --- keywords

PAGE = {"ferry": 9, "tide": 7, "pilot": 5, "rope": 4}
OTHERS = {"order": {**PAGE, "rope": 6}, "weights": {**PAGE, "ferry": 90}, "word": {**PAGE, "walrus": 3}}


@pytest.mark.parametrize(("variant", "same"), [(2, ["weights"]), (3, ["order", "weights"]), (4, []), (5, ["order"])])
def test_what_may_differ_in_each_variant_of_keywords(variant: int, same: list[str]) -> None:
    method = KeywordDigests(variant=variant)
    assert [name for name, counts in OTHERS.items() if alike(method, counted(**PAGE), counted(**counts))] == same


def test_the_first_variant_compares_descriptions_or_512_bytes_of_text() -> None:
    method = KeywordDigests(variant=1)
    assert alike(method, Text(("Of ferries.",), description="On Boats"), Text(("Of tides.",), description="on boats."))
    assert not alike(method, Text(("a",), description="On boats"), Text(("a",), description="On ships"))
    long = "一" * 170 + "二"
    assert len(summary_of(Text((long,)))) == 512
    assert alike(method, Text((long, "end")), Text((long + "三四五",)))
    assert not alike(method, Text((long,)), Text(("三" + long,)))


def test_the_difference_is_that_of_the_vectors_of_weights() -> None:
    method = KeywordDigests(difference=0.2)
    one, other = (
        method.fingerprint(counted(**counts)) for counts in ({"ferry": 3, "tide": 1}, {"ferry": 2, "tide": 2})
    )
    apart, together = 0.25**2 + 0.25**2, 0.75**2 + 0.25**2 + 0.5**2 + 0.5**2
    assert method.score(one, other) == pytest.approx(1 - apart / together)
    assert method.is_alike(one, other)
    assert not KeywordDigests(difference=0.1).is_alike(one, other)
    twice = counted(**{word: 2 * count for word, count in PAGE.items()})
    assert alike(KeywordDigests(difference=0), counted(**PAGE), twice)


def test_only_the_first_keywords_count() -> None:
    assert alike(KeywordDigests(keywords=4), counted(**PAGE), counted(**OTHERS["word"]))
    many = {f"word{n}": 30 - n for n in range(12)}
    assert alike(KeywordDigests(variant=3), counted(**many), counted(**{**many, "word11": 1}))
    assert not alike(KeywordDigests(variant=3), counted(**many), counted(**{**many, "word0": 1}))


# --- top words


def test_the_digest_of_the_worked_example() -> None:
    text = counted(网页=12, 搜索=10, 引擎=7, 算法=6)
    assert TopWords().fingerprint(text) == Digest(bytes.fromhex("a7eb9d92a83cf438881915e0bc2df70b"))


def test_counts_of_the_first_words_decide_and_ties_are_by_word() -> None:
    one = counted(ferry=5, tide=4, pilot=3, rope=2)
    assert alike(TopWords(), one, counted(the=9, pilot=3, walrus=1, tide=4, ferry=5))
    assert not alike(TopWords(words=4), one, counted(ferry=5, tide=4, pilot=3, sail=2))
    assert not alike(TopWords(), one, counted(ferry=6, tide=4, pilot=3))
    assert TopWords(words=1).fingerprint(counted(tide=2, ferry=2)) == TopWords().fingerprint(counted(ferry=2))


# --- near pages


@given(st.integers(0, 10_000), st.integers(1, 100), st.integers(1, 1000))
def test_what_is_taken_is_the_largest_multiple_within_the_share(count: int, percent: int, sum_interval: int) -> None:
    taken = NearPages(percentage=percent / 100, sum_interval=sum_interval).taken(count)
    assert taken % sum_interval == 0
    assert 100 * taken <= count * percent < 100 * (taken + sum_interval)


def test_the_most_frequent_words_descend_by_character() -> None:
    method = NearPages(sum_interval=1)
    assert method.chosen(counted(alga=3, cable=1, buoy=9, deck=2, eel=1, fog=1).paragraphs) == ["deck", "buoy", "alga"]
    assert method.chosen(["cable", "alga", "eel", "buoy"]) == ["eel", "cable"]
    text = Text(("Buoy! The buoy, a cable; fog.",))
    digest = Digest(hashlib.md5(b"fog buoy").digest())
    assert NearPages(sum_interval=1, percentage=0.7).fingerprint(text) == digest
    assert NearPages().fingerprint(Text((" ".join(f"word{n}" for n in range(19)),))) is None


# --- IDF


def test_i_match_chooses_by_the_idf_of_the_worked_example() -> None:
    frequencies = {"ferry": 200, "harbour": 900, "tide": 20, "pilot": 20}
    texts = [
        Text((" ".join([f"filler{n}", *(word for word, count in frequencies.items() if n < count)]),))
        for n in range(1000)
    ]
    made = IMatch()
    # Without a corpus, or in a small one, no word reaches the threshold; then the rarest words are left.
    assert made.chosen(Text(("ferry harbour",))) == ["ferry", "harbour"]
    made.fit(texts)
    assert (made.idf("ferry"), made.idf("harbour")) == pytest.approx((0.699, 0.046), abs=5e-4)
    text = Text(("The harbour ferry, a tide and a pilot; a walrus!",))
    assert made.chosen(text) == ["walrus", "pilot", "tide", "ferry"]
    assert made.fingerprint(Text(("The harbour, and again the harbour.",))) is None
    assert alike(made, Text(("The ferry left the harbour with the tide",)), Text(("With the tide left ferry",)))
    for idf, chosen in ((0.04, ["ferry", "harbour"]), (0.7, [])):
        made = IMatch(idf=idf)
        made.fit(texts)
        assert made.chosen(Text(("ferry harbour",))) == chosen


CORPUS = [
    "alga buoy cable deck eel fog gull hull ink jib",
    "alga buoy cable deck eel fog gull",
    "alga buoy cable deck",
    "alga buoy",
    "alga",
    *["kelp loch"] * 4,
]


def test_idf_top_keeps_the_seven_rarest_of_ten_words() -> None:
    made = IdfTop()
    made.fit(Text((line,)) for line in CORPUS)
    text = Text(("jib, ink; hull? gull! fog eel deck cable buoy alga",))
    assert made.string(text) == b"hull ink jib eel fog gull cable"
    assert alike(made, text, Text(("kelp loch alga gull fog eel cable hull ink jib jib",)))
    assert not alike(made, text, Text(("jib ink hull gull fog mole cable deck buoy alga",)))
    for share, count in ((0.01, 1), (0.3, 3), (1, 10)):
        assert len(IdfTop(share=share).string(Text((CORPUS[0],))).split()) == count


def test_strings_are_looked_up_by_their_hash() -> None:
    made, text = IdfTop(), Text((CORPUS[0],))
    assert [*made.keys(made.fingerprint(text))] == [ap_hash(made.string(text)).to_bytes(4, "big")]
    # What Partow's reference code prints of this key, and of nothing.
    assert (ap_hash(b"abcdefghijklmnopqrstuvwxyz1234567890"), ap_hash(b"")) == (882643939, 0xAAAAAAAA)
