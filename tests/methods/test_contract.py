"""What every published method promises, whatever it measures."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from prose import article, blog, story

from dedup_middleware import Deduplicator
from dedup_middleware.errors import ConfigError
from dedup_middleware.fingerprints.method import METHODS, Bits, Digest, Text, WeightedSet, method, packed, unpacked

if TYPE_CHECKING:
    from dedup_middleware.fingerprints.method import Method

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
    "Nobody had climbed the northern glacier in winter before the three sisters set out with two sledges and a goat.",
    "They came back after eleven days, hungry, with frozen boots, and with photographs that the museum now shows.",
)
TEXTS = (Text(TIDES, "The ferry stops"), Text(MARKET, "老市场下月关门"), Text(GLACIER, "Three sisters and a goat"))
ODD = {
    "empty": Text(()),
    "one word": Text(("ferry",), "ferry"),
    "emoji": Text(("😀😃😄 🎉", "👩‍👩‍👧‍👦!")),
    "marks alone": Text(("…!?。，", "—")),
    "half a character": Text(("\ud800 is half of one.",), "\udfff"),
    "a long report": Text(
        ("".join(f"Line {n} of a long report says {n * 7919 % 9973}. " for n in range(4_000)),), "Report"
    ),
}

HERE = Path(__file__).parent
METHODS_PAGE = HERE.parents[1] / "docs" / "methods.md"

each_method = pytest.mark.parametrize("name", [*METHODS.ours])


def fitted(name: str) -> Method:
    made = method(name)
    made.fit(TEXTS)
    return made


@each_method
def test_a_text_is_alike_to_itself_and_comes_back_from_a_store(name: str) -> None:
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
def test_other_stories_are_not_alike_and_what_it_has_learned_is_all_that_another_one_needs(name: str) -> None:
    made = fitted(name)
    prints = [made.fingerprint(text) for text in TEXTS]
    assert None not in prints
    for one in prints:
        for other in prints:
            assert 0 <= made.score(one, other) <= 1 + 1e-9
            assert made.is_alike(one, other) == (one is other)
    another = method(name)
    assert made.learns == bool(made.learned())
    if made.learns:
        another.recall(made.learned())
    assert [another.fingerprint(text) for text in TEXTS] == prints


@each_method
def test_it_decides_by_its_name_with_our_records_and_evidence(name: str) -> None:
    pages = [(f"http://site/{n}", article(f"Report {n}", story(n, paragraphs=12))) for n in range(5)]
    with Deduplicator(fingerprint=name) as dedup:
        dedup.learn(pages)
        assert not any(checked.is_duplicate for checked in dedup.stream(pages))
        copy = dedup.add("http://mirror/3", blog("Report 3", story(3, paragraphs=12)))
    assert (copy.verdict, copy.original_url) == ("duplicate", "http://site/3")
    assert copy.score is not None
    assert 0.7 < copy.score <= 1
    assert copy.evidence


def test_an_option_that_there_is_not_is_one_line() -> None:
    for name in METHODS.ours:
        with pytest.raises(ConfigError, match="has no option 'colour'"):
            method(f"{name}:colour=red")


def test_each_module_names_its_source_and_what_is_ours() -> None:
    parts = ("Source: ", "Specified: ", "Left open: ", "Departures: ")
    docs = {name: inspect.getmodule(METHODS.load(name)).__doc__ for name in METHODS.ours}
    assert [(name, part) for name, said in docs.items() for part in parts if part not in said] == []


def test_all_options_are_in_the_docs() -> None:
    # What stands behind the first heading are measurements.
    listed = METHODS_PAGE.read_text(encoding="utf8").partition("\n## ")[0]
    for name in METHODS.ours:
        (row,) = [line for line in listed.splitlines() if line.startswith(f"| `{name}` |")]
        told = dict(re.findall(r"`(\w+)=([^`]*)`", row))
        options = inspect.signature(METHODS.load(name)).parameters.values()
        assert told == {option.name: str(option.default).lower() for option in options}, name
        assert ("learns" in row) == METHODS.load(name).learns, name


def prints() -> str:
    made = {name: fitted(name) for name in METHODS.ours}
    return "".join(f"{name} {[packed(m.fingerprint(text)).hex() for text in TEXTS]}\n" for name, m in made.items())


def test_every_process_makes_the_same_fingerprints() -> None:
    code = "import sys; sys.path[:0] = sys.argv[1:]; import test_contract; print(test_contract.prints(), end='')"
    command = [sys.executable, "-c", code, str(HERE), str(HERE.parent)]
    # The hashes of this process have another seed.
    env = {**os.environ, "PYTHONHASHSEED": "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"}
    said = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout
    assert said == prints()
    assert len(said.splitlines()) == len(METHODS.ours)
