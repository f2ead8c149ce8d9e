"""Methods that hash a few of a text's words: `keywords` and `idf`."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_middleware.methods.digests import IdfTop, IMatch, NearPages, TopWords, ap_hash
from dedup_middleware.methods.method import Digest, Text


def counted(**counts):
    return Text(tuple(word for word, count in counts.items() for _ in range(count)))


def alike(method, one, other):
    new, old = method.fingerprint(one), method.fingerprint(other)
    return method.is_alike(new, old)


# --- top words


def test_the_digest_of_the_worked_example():
    text = counted(网页=12, 搜索=10, 引擎=7, 算法=6)
    assert TopWords().fingerprint(text) == Digest(bytes.fromhex("a7eb9d92a83cf438881915e0bc2df70b"))


# --- near pages


@given(st.integers(0, 10_000), st.integers(1, 100), st.integers(1, 1000))
def test_what_is_taken_is_the_largest_multiple_within_the_share(count, percent, sum_interval):
    taken = NearPages(percentage=percent / 100, sum_interval=sum_interval).taken(count)
    assert taken % sum_interval == 0
    assert 100 * taken <= count * percent < 100 * (taken + sum_interval)


# --- IDF


def test_i_match_chooses_by_the_idf_of_the_worked_example():
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


def test_strings_are_looked_up_by_their_hash():
    made, text = IdfTop(), Text((CORPUS[0],))
    assert [*made.keys(made.fingerprint(text))] == [ap_hash(made.string(text)).to_bytes(4, "big")]
    # What Partow's reference code prints of this key, and of nothing.
    assert (ap_hash(b"abcdefghijklmnopqrstuvwxyz1234567890"), ap_hash(b"")) == (882643939, 0xAAAAAAAA)
