"""What the filter has seen, how often it is wrong, and that its errors are no matter of two fingerprints."""

from __future__ import annotations

import subprocess
import sys

import pytest

from dedup_middleware.errors import ConfigError
from dedup_middleware.fingerprints.method import Digest, Text
from dedup_middleware.methods.bloom import BloomFilter

pytest.importorskip("rbloom")


def made(said: str) -> Digest:
    found = BloomFilter().fingerprint(Text((said,)))
    assert found is not None
    return found


def wrongly_seen(method: BloomFilter, known: int, strangers: int) -> list[int]:
    for n in range(known):
        method.seen(made(f"page {n}"))
    # Not by `seen`, which would know them all from then on.
    return [n for n in range(strangers) if made(f"stranger {n}").value in method._filter]


def test_what_was_seen_is_never_denied_even_beyond_the_capacity() -> None:
    method = BloomFilter(capacity=50)
    prints = [made(f"page {n}") for n in range(200)]
    for one in prints:
        method.seen(one)
    assert all(method.seen(one) for one in prints)


def test_the_first_time_is_new_and_the_second_is_not() -> None:
    method = BloomFilter()
    assert method.seen(made("ferry")) is False
    assert method.seen(made("goat")) is False
    assert method.seen(made("ferry")) is True


@pytest.mark.parametrize("rate", [0.3, 0.02])
def test_a_full_filter_takes_about_so_many_strangers_for_seen(rate: float) -> None:
    wrong = wrongly_seen(BloomFilter(capacity=2000, rate=rate), 2000, 3000)
    assert 0.6 * rate <= len(wrong) / 3000 <= 1.4 * rate


def test_two_texts_are_alike_only_if_their_contents_are_equal_whatever_the_rate() -> None:
    method = BloomFilter(capacity=1, rate=0.5)
    prints = [made(f"page {n}") for n in range(30)]
    assert all(method.is_alike(a, b) is (a is b) for a in prints for b in prints)
    assert made("The  FERRY stops") == made("the ferry stops")


def test_a_page_without_content_has_no_fingerprint() -> None:
    assert BloomFilter().fingerprint(Text((" ",), "Title")) is None


WRONG = """
import sys
sys.path.insert(0, sys.argv[1])
from test_bloom import BloomFilter, wrongly_seen
print(wrongly_seen(BloomFilter(capacity=300, rate=0.1), 300, 300))
"""


def test_the_filter_is_wrong_about_the_same_pages_in_every_process() -> None:
    folder = str(__file__).rpartition("/")[0]
    said = subprocess.run([sys.executable, "-c", WRONG, folder], capture_output=True, text=True, check=True).stdout
    here = wrongly_seen(BloomFilter(capacity=300, rate=0.1), 300, 300)
    assert said.strip() == str(here)
    assert here


def test_without_rbloom_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rbloom", None)
    with pytest.raises(ConfigError, match="`pip install rbloom`"):
        BloomFilter()


@pytest.mark.parametrize("options", [{"capacity": 0}, {"capacity": 10**9}, {"rate": 0.0}, {"rate": 0.6}])
def test_options_that_cannot_work_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="is not between"):
        BloomFilter(**options)  # type: ignore[arg-type]
