"""MinHash with LSH."""

from __future__ import annotations

import subprocess
import sys

import pytest

from dedup_middleware.errors import ConfigError
from dedup_middleware.fingerprints.method import Text, WeightedSet, method
from dedup_middleware.methods.shingling import shingles

pytest.importorskip("datasketch")

from dedup_middleware.methods.minhash import MinHashLSH

WORDS = [f"word{n}" for n in range(400)]


def print_of(made: MinHashLSH, words: list[str]) -> WeightedSet:
    found = made.fingerprint(Text((" ".join(words),)))
    assert found is not None
    return found


def signature(values: list[int]) -> WeightedSet:
    return WeightedSet({place.to_bytes(4, "big") + value.to_bytes(4, "big"): 1.0 for place, value in enumerate(values)})


@pytest.mark.parametrize("replaced", [0, 20, 100, 200, 400])
def test_the_score_estimates_the_resemblance(replaced: int) -> None:
    made = MinHashLSH(permutations=1024)
    old, new = WORDS, [f"new{n}" for n in range(replaced)] + WORDS[replaced:]
    ours, theirs = (set(shingles(Text((" ".join(words),)), 5, "words")) for words in (new, old))
    resemblance = len(ours & theirs) / len(ours | theirs)
    # Four standard deviations.
    assert made.score(print_of(made, new), print_of(made, old)) == pytest.approx(resemblance, abs=4 * 0.5 / 32)


def test_the_score_is_the_share_of_equal_numbers() -> None:
    made = MinHashLSH()
    new, old = signature([1] * 128), signature([1] * 90 + [2] * 38)
    assert made.score(new, old) == 90 / 128
    assert made.is_alike(new, old)
    assert not MinHashLSH(threshold=0.71).is_alike(new, old)


def test_bands_are_those_that_datasketch_chooses() -> None:
    assert len(list(MinHashLSH().keys(signature([1] * 128)))) == 14
    assert len(list(MinHashLSH(threshold=0.5).keys(signature([1] * 128)))) == 25


def test_one_equal_band_is_a_key_and_equal_bands_at_two_places_are_none() -> None:
    made = MinHashLSH()
    old = list(range(128))
    for band in range(14):
        new = [*range(1000, 1128)]
        new[9 * band : 9 * band + 9] = old[9 * band : 9 * band + 9]
        assert len(set(made.keys(signature(new))) & set(made.keys(signature(old)))) == 1
    assert len(set(made.keys(signature([1] * 128)))) == 14


def test_an_edited_page_is_found_and_alike() -> None:
    made = MinHashLSH()
    page, edited = print_of(made, WORDS), print_of(made, [*WORDS[:200], "other", *WORDS[201:]])
    assert made.is_alike(edited, page)
    assert set(made.keys(edited)) & set(made.keys(page))


def test_every_permutation_has_its_place() -> None:
    made = print_of(MinHashLSH(permutations=64), WORDS)
    assert [int.from_bytes(name[:4], "big") for name in sorted(made.weights)] == list(range(64))


def test_shingles_may_be_of_characters() -> None:
    text = Text(("城里的老市场下个月关门",))
    other = Text(("城里的", "老市场下个月关门。"))
    made = MinHashLSH(unit="characters", k=3)
    assert made.fingerprint(text) == made.fingerprint(other) != MinHashLSH(unit="characters", k=4).fingerprint(text)


def test_without_datasketch_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasketch", None)
    with pytest.raises(ConfigError, match="pip install datasketch"):
        method("minhash")


def test_datasketch_is_not_imported_before_the_method_is_chosen() -> None:
    code = f"import sys, {MinHashLSH.__module__}; sys.exit('datasketch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("choice", ["permutations=1", "permutations=5000", "k=0", "unit=letters", "threshold=2"])
def test_an_option_out_of_its_range_is_one_line(choice: str) -> None:
    with pytest.raises(ConfigError, match=f"^{choice.partition('=')[0]} = "):
        method(f"minhash:{choice}")


def test_a_threshold_without_bands_is_one_line() -> None:
    with pytest.raises(ConfigError, match=r"no bands for threshold = 1\.0"):
        method("minhash:threshold=1")
