"""What every method promises."""

import inspect
import json
import os
import re
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nightly import tries
from prose import article, blog, story, zh_story

from dedup_middleware import Deduplicator
from dedup_middleware.errors import ConfigError, UnreadableError
from dedup_middleware.methods.method import METHODS, Bits, Digest, Text, WeightedSet, method, packed, unpacked

TIDES = (
    "The harbour master said on Monday that the old ferry will stop running, because its hull has rusted through.",
    "Fishermen who cross with it each morning fear for their work, and have written to the council about a new boat.",
    "A bridge, promised for twenty years, is to be built after all: the first piles are driven in this spring.",
)
MARKET = (
    "城里的老市场下个月关门，摊主们已经在这里卖了三十年的菜，谁也不知道该搬到哪里去。",
    "市政府表示，新的市场将建在河对岸，租金比现在高出一倍，许多人说他们付不起。",
    "一位卖豆腐的老人告诉记者，他打算在门口再卖一个星期，然后回乡下去种地。",
)
GLACIER = (
    "No one had climbed the northern glacier in winter before the three sisters set out with two sledges and a goat.",
    "They came back after eleven days, hungry, with frozen boots, and with photographs that the museum now shows.",
)
TEXTS = (Text(TIDES, "The ferry stops"), Text(MARKET, "老市场下月关门"), Text(GLACIER, "Three sisters and a goat"))
ODD = {
    "empty": Text(()),
    "one word": Text(("ferry",), "ferry"),
    "stop words": Text(("The of and",)),
    "emoji": Text(("😀😃😄 🎉", "👩‍👩‍👧‍👦!")),
    "punctuation": Text(("…!?。，", "—")),
    "half a character": Text(("\ud800 is half of one.",), "\udfff"),
    "a long report": Text(
        ("".join(f"Line {n} of a long report says {n * 7919 % 9973}. " for n in range(1_000)),), "Report"
    ),
}
HERE = Path(__file__).parent
METHODS_PAGE = HERE.parents[1] / "docs" / "benchmarks" / "methods.md"
LEARNERS = [name for name in METHODS.ours if METHODS.load(name).learns]
each_method = pytest.mark.parametrize("name", [*METHODS.ours])
#: Methods that need a package of the extra `compare`.
OF_A_PACKAGE = {"minhash": "datasketch"}
each_learner = pytest.mark.parametrize("name", LEARNERS)


def needed(choice):
    """Return a method, and skip the test where its package is not installed."""
    if package := OF_A_PACKAGE.get(choice.partition(":")[0]):
        pytest.importorskip(package)
    return method(choice)


def fitted(name):
    made = needed(name)
    made.fit(TEXTS)
    return made


@each_method
def test_a_text_is_alike_to_itself_and_comes_back_from_a_store(name):
    made = fitted(name)
    for case, text in [*zip(("tides", "market", "glacier"), TEXTS, strict=True), *ODD.items()]:
        one, other = made.fingerprint(text), made.fingerprint(text)
        assert one == other, case
        if one is None:
            continue
        assert isinstance(one, (Digest, Bits, WeightedSet)), case
        back = unpacked(packed(one))
        for same in (one, back):
            assert made.score(one, same) == pytest.approx(1), case
            assert made.is_alike(one, same), case
        assert list(made.keys(one)) == list(made.keys(other)) != [], case


@each_method
def test_other_stories_are_not_alike(name):
    made = fitted(name)
    prints = [made.fingerprint(text) for text in TEXTS]
    assert None not in prints
    for one in prints:
        for other in prints:
            assert 0 <= made.score(one, other) <= 1 + 1e-9
            assert made.is_alike(one, other) == (one is other)


@each_method
def test_fingerprints_of_two_kinds_have_nothing_in_common(name):
    kinds = (Digest(b"ferry"), Bits((1,), 64), WeightedSet({b"features": 1.0}))
    made = needed(name)
    assert {made.score(one, other) for one in kinds for other in kinds if one is not other} == {0.0}


# LSH finds by chance, and so does minhash.
@pytest.mark.parametrize("name", [name for name in METHODS.ours if name != "minhash"])
@settings(max_examples=tries(8, 200))
@given(edits=st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["", "Goats 山羊。", "swap"])), max_size=4))
def test_an_edited_text_that_is_alike_shares_a_key(name, edits):
    made = method(name)
    for whole in (story(1), zh_story(1)):
        edited = [*whole]
        for place, edit in edits:
            edited[place] = edited[place - 1] if edit == "swap" else edit or edited[place][:-40] + edited[place][-30:]
        new, old = (made.fingerprint(Text(tuple(text), "Title")) for text in (edited, whole))
        if new is not None and made.is_alike(new, old):
            assert {*made.keys(new)} & {*made.keys(old)}


@each_method
def test_it_decides_by_its_name_with_our_records_and_evidence(name):
    needed(name)
    pages = [(f"http://site/{n}", article(f"Report {n}", story(n, paragraphs=12))) for n in range(5)]
    with Deduplicator(fingerprint=name) as dedup:
        dedup.learn(pages)
        assert not any(checked.is_duplicate for checked in dedup.stream(pages))
        copy = dedup.add("http://mirror/3", blog("Report 3", story(3, paragraphs=12)))
    assert (copy.verdict, copy.original_url) == ("duplicate", "http://site/3")
    assert 0.7 < copy.score <= 1
    assert copy.evidence


# --- what is learned


@each_method
def test_what_is_learned_is_all_that_another_process_needs(name):
    made, another = fitted(name), needed(name)
    assert made.learns == bool(made.learned())
    another.recall(made.learned())
    assert [another.fingerprint(text) for text in TEXTS] == [made.fingerprint(text) for text in TEXTS]
    assert another.learned() == made.learned()


@each_learner
@pytest.mark.parametrize("known", [None, 7, [], [1], [None, {}], [1, []], [1, {"ferry": "many"}], [1, {}, 2, 3]])
def test_other_values_are_unreadable_and_leave_what_was_known(name, known):
    made = fitted(name)
    before = made.learned()
    with pytest.raises(UnreadableError, match="what the method has learned cannot be read"):
        made.recall(zlib.compress(json.dumps(known).encode()))
    assert made.learned() == before


@each_learner
def test_damaged_bytes_are_unreadable(name):
    made = fitted(name)
    learned = made.learned()
    for damaged in (
        b"",
        b"garbage",
        learned[:-3],
        learned[:4],
        *map(zlib.compress, (b"\xff", b"[1e999,{}]", b"[" * 9**6)),
    ):
        with pytest.raises(UnreadableError):
            made.recall(damaged)


# --- options

REFUSED = """
    paragraphs:bits=96 paragraphs:distance=128 paragraphs:distance=-1 paragraphs:least=0 paragraphs:sentences=0
    paragraphs:hash=md5 long-sentences:trim=0.5 long-sentences:least=0 long-sentences:most=0
    long-sentences:threshold=0 shingles:k=0 shingles:unit=letters shingles:threshold=1.1 heintze:smallest=0
    heintze:frequent=2 bharat:k=-1 supershingles:modulus=0 supershingles:span=0 supershingles:shared=0 fetterly:k=0
    fetterly:equal=7 i-match:idf=-0.1 i-match:idf=nan simhash:bits=4 simhash:bits=129 simhash:distance=-1
    simhash:distance=33 e-simhash:distance=33 p-simhash:top=0 p-simhash:top=101 p-simhash:mu=11
    p-simhash:positions=mean top-words:words=0 segments:segments=0 segments:equal=11 keywords:variant=6
    keywords:keywords=0 keywords:difference=1.1 random-projection:bits=4097 random-projection:threshold=0.4
    near-pages:percentage=0 near-pages:sum_interval=1001 idf-top:share=0 punctuation:characters=0
    punctuation:strings=0 punctuation:title=-1 punctuation:needed=4 topic-distances:topic=ferry topic-distances:a=5
    topic-distances:b=0 length-classes:ratio=1 length-classes:threshold=0 two-stage:first=title two-stage:equal=5
    two-stage:keywords=0 vectors:threshold=nan characters:threshold=1.5
    minhash:permutations=1 minhash:k=0 minhash:threshold=2
"""


@pytest.mark.parametrize("choice", REFUSED.split())
def test_an_option_out_of_its_range_is_one_line(choice):
    needed(choice.partition(":")[0])
    option = choice.partition(":")[2].partition("=")[0]
    with pytest.raises(ConfigError, match=f"^{option} = .*") as refused:
        method(choice)
    assert "\n" not in str(refused.value)


@each_method
def test_an_unknown_option_is_one_line(name):
    with pytest.raises(ConfigError, match="has no option 'colour'"):
        method(f"{name}:colour=red")


@pytest.mark.parametrize(("choice", "package"), [
    ("minhash", "datasketch"), ("paragraphs:hash=murmur3", "mmh3"),
])  # fmt: skip
def test_a_missing_package_is_named(choice, package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ConfigError, match=f"needs {package}, which is not installed. Run pip install"):
        method(choice)


# --- documentation


@each_method
def test_it_names_its_source_and_what_is_ours(name):
    made = METHODS.load(name)
    said = f"{inspect.getdoc(inspect.getmodule(made))}\n{inspect.getdoc(made)}"
    parts = [said.find(f"\n{part}: ") for part in ("Source", "Specified", "Left open", "Departures")]
    assert -1 < parts[0] < parts[1] < parts[2] < parts[3]


def test_all_options_are_in_the_docs():
    # The text before the first heading has no measurements.
    listed = METHODS_PAGE.read_text(encoding="utf8").partition("\n### The methods")[2]
    for name in METHODS.ours:
        (row,) = [line for line in listed.splitlines() if line.startswith(f"| `{name}` |")]
        told = dict(re.findall(r"`(\w+)=([^`]*)`", row))
        options = inspect.signature(METHODS.load(name)).parameters.values()
        assert told == {option.name: str(option.default).lower() for option in options}, name
        assert row.endswith("| yes |") == METHODS.load(name).learns, name


def prints():
    made = {name: fitted(name) for name in METHODS.ours if name not in OF_A_PACKAGE}
    return "".join(f"{name} {[packed(m.fingerprint(text)).hex() for text in TEXTS]}\n" for name, m in made.items())


def test_every_process_makes_the_same_fingerprints():
    code = "import sys; sys.path[:0] = sys.argv[1:]; import test_contract; print(test_contract.prints(), end='')"
    command = [sys.executable, "-c", code, str(HERE), str(HERE.parent)]
    # The hashes of this process have another seed.
    env = {**os.environ, "PYTHONHASHSEED": "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"}
    said = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout
    assert said == prints()
    assert len(said.splitlines()) == len(METHODS.ours) - len(OF_A_PACKAGE)
