"""A crawl that a published method decides, by its name in the settings, with the same records and checks."""

import subprocess
import sys

import pytest
from prose import article, blog, story

from dedup_middleware import Deduplicator
from dedup_middleware.reasons import DIFFERENCES

METHODS = '''
"""Two methods: the first letters of a text, and the words of it that other texts lack."""

import json

from dedup_middleware.methods.method import Digest, Method, WeightedSet, feature


class FirstLetters(Method):
    threshold = 1.0

    def __init__(self, *, letters: int = 40):
        self._letters = letters

    def fingerprint(self, text):
        return Digest("".join(text.paragraphs)[: self._letters].encode()) if text.paragraphs else None


class RareWords(Method):
    learns = True

    def __init__(self, *, threshold: float = 0.5):
        self.threshold = threshold
        self._common = set()

    def fit(self, texts):
        texts = [set(" ".join(text.paragraphs).split()) for text in texts]
        self._common = set.intersection(*texts) if texts else set()

    def learned(self):
        return json.dumps(sorted(self._common)).encode()

    def recall(self, learned):
        self._common = set(json.loads(learned))

    def fingerprint(self, text):
        words = set(" ".join(text.paragraphs).split()) - self._common
        return WeightedSet({feature(word): 1.0 for word in words}) if words else None
'''


@pytest.fixture
def methods(install):
    """Install the two methods, here and for crawls; return what their environment needs for that."""
    return install("methods", METHODS, first_letters="FirstLetters", rare_words="RareWords")


def page(title, *stories):
    return article(title, [line for number in stories for line in story(number)])


def test_it_decides_a_crawl(site, crawl, methods):
    a, b = site.add("/a", page("One", 1)), site.add("/b", page("Two", 2))
    copy = site.add("/c", blog("One", story(1)), host=1)
    # This method looks at the beginning alone; a page with passages of its own is kept all the same.
    longer = site.add("/d", page("One", 1, 8, 9), host=2)
    chosen = {"DEDUP_FINGERPRINT": "first-letters"}
    outcome = crawl("sample_spiders.OneByOne", urls=f"{a},{b},{copy},{longer}", settings=chosen, env=methods)
    assert (outcome.kept, outcome.exit_status, outcome.problems) == ([a, b, longer], 0, [])
    record = outcome.record(copy)
    assert (record["verdict"], record["original_url"], record["score"]) == ("duplicate", a, 1.0)
    assert record["evidence"]
    assert outcome.record(longer)["original_url"] == a


def test_a_later_crawl_and_the_commands_know_its_store(site, crawl, methods):
    a, copy = site.add("/a", page("One", 1)), site.add("/c", blog("One", story(1)), host=1)
    chosen = {"DEDUP_FINGERPRINT": "first-letters:letters=60"}
    assert crawl("sample_spiders.OneByOne", urls=a, settings=chosen, env=methods).kept == [a]
    again = crawl("sample_spiders.OneByOne", urls=f"{a},{copy}", settings=chosen, env=methods, folder="crawl1")
    assert (again.kept, again.problems) == ([a, a], [])  # in both crawls, and its copy in none
    assert again.record(copy)["original_url"] == a
    other = {"DEDUP_FINGERPRINT": "first-letters"}
    refused = crawl("sample_spiders.OneByOne", urls=a, settings=other, env=methods, folder="crawl1")
    assert refused.exit_status == 1
    assert "first-letters:letters=60" in refused.log


@pytest.mark.usefixtures("methods")
def test_it_learns_from_the_first_pages_and_keeps_what_it_has_learned(tmp_path, monkeypatch):
    monkeypatch.setattr("dedup_middleware.methods.method_detector.LEARNED_FROM", 3)
    pages = [(f"http://site/{n}", page(f"Number {n}", n)) for n in range(6)]
    again = [(url.replace("site", "mirror"), html) for url, html in pages]
    uri = f"sqlite:{tmp_path / 'store'}"
    with Deduplicator(uri, fingerprint="rare-words") as dedup:
        first = [*dedup.stream(pages)]
        assert [j.reason for j in first[:2]] == ["still_learning"] * 2
        assert [j.verdict for j in first[2:]] == ["new"] * 4
    with Deduplicator(uri, fingerprint="rare-words") as dedup:
        later = [*dedup.stream(again)]
    assert [j.is_duplicate for j in later] == [False] * 2 + [True] * 4
    assert [j.original_url for j in later[2:]] == [url for url, _ in pages[2:]]


def test_pages_that_came_while_it_learned_are_compared_after_the_next_crawl(site, crawl, methods):
    learned_from = {"dedup_middleware.methods.method_detector:LEARNED_FROM": 3}
    chosen = {"DEDUP_FINGERPRINT": "rare-words", "CONSTANTS": learned_from}
    job = {"spider": "sample_spiders.OneByOne", "settings": chosen, "env": methods, "folder": "crawl", "afresh": True}
    urls = [site.add(f"/{n}", page(f"Number {n}", n)) for n in range(4)]
    for unchecked in (2, 0):
        outcome = crawl(**job, urls=",".join(urls))
        assert (outcome.kept, outcome.stats.get("dedup/verdict/unchecked", 0)) == (urls, unchecked)
    copy = site.add("/copy", page("Number 0", 0), host=1)
    assert crawl(**job, urls=copy).record(copy)["original_url"] == urls[0]


@pytest.mark.usefixtures("methods")
def test_a_program_may_teach_it_before():
    pages = [(f"http://site/{n}", page(f"Number {n}", n)) for n in range(4)]
    with Deduplicator(fingerprint="rare-words") as dedup:
        dedup.learn(pages)
        assert [j.verdict for j in dedup.stream(pages)] == ["new"] * 4
        assert dedup.add("http://mirror/1", pages[1][1]).is_duplicate


@pytest.mark.usefixtures("methods")
def test_a_check_keeps_what_it_calls_alike():
    other = [line.replace("the", "that") for line in story(1)[1:]]
    with Deduplicator(fingerprint="first-letters:letters=20") as dedup:
        dedup.add("http://site/1", page("Rain over the harbour", 1))
        checked = dedup.check("http://site/2", article("Council votes on bridge", [story(1)[0], *story(5), *other]))
    assert (checked.verdict, checked.score) == ("related", 1.0)
    assert checked.reason in DIFFERENCES


@pytest.mark.usefixtures("methods")
def test_a_page_of_which_it_makes_nothing_is_kept_and_said_so():
    same = page("Number 1", 1)
    with Deduplicator(fingerprint="rare-words") as dedup:
        dedup.learn([("http://site/1", same)])
        checked = dedup.add("http://site/1", same)
    assert (checked.verdict, checked.reason) == ("unchecked", "no_features")


@pytest.mark.usefixtures("methods")
def test_an_original_that_has_changed_is_found_by_what_it_says_now():
    with Deduplicator(fingerprint="first-letters") as dedup:
        dedup.add("http://site/1", page("One", 1))
        dedup.add("http://site/1", page("One", 2))
        assert dedup.check("http://mirror/1", page("One", 1)).verdict == "new"
        assert dedup.check("http://mirror/2", page("One", 2)).original_url == "http://site/1"


def test_nothing_of_it_is_imported_where_it_is_not_chosen():
    code = (
        "import sys; from dedup_middleware import Deduplicator; Deduplicator().add('http://a/', '<p>a');"
        "sys.exit(any('.methods' in name for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
