"""Which stored pages hold a clause, and that a store stays consistent in every crawl."""

from hypothesis import given
from hypothesis import strategies as st
from library import COMMON, Library, fingerprint

from dedup_middleware.checks.detector import Detector
from dedup_middleware.checks.table import CopyRules
from dedup_middleware.index.dropped_items import DroppedItem
from dedup_middleware.index.schema import clause_keys, decode_postings
from dedup_middleware.model import Match, Scope, VerdictKind

# Few addresses and few clauses, so that pages meet, change, redirect to one another and repeat one another.
TEXTS = st.builds(lambda first, length: frozenset(range(first, first + length)), st.integers(0, 9), st.integers(4, 9))
VISITS = st.tuples(st.sampled_from("abcd"), st.sampled_from([None, "x", "y"]), TEXTS, st.integers(0, 1))


def holders(library, page):
    """Return each clause of *page* with the stored pages that hold it."""
    contents = library.contents()
    return {h: decode_postings(contents.get(clause_keys([h])[0], b"")) for h in page.fingerprint.weights}


def commit(library, page, *, feeds=""):
    """Commit *page* as an original."""
    stored = library.index.commit(page, feeds=frozenset(feeds))
    assert stored is not None
    return stored


@given(st.lists(VISITS, max_size=12))
def test_nothing_in_the_store_dangles_whatever_comes(visits):
    library = Library()
    for name, request, clauses, items in visits:
        library.visit(name, clauses, request=request, items=items)
        library.check_invariants()
    for page in library.index.pages():
        assert [library.index.find([identity]) for identity in page.identities] == [page] * len(page.identities)


def test_the_list_of_a_common_clause_stays_short():
    library = Library()
    for number in range(10):
        commit(library, library.page(f"p{number}", [0, 100 + number]))
    (numbers,) = holders(library, library.page("new", [0])).values()
    assert COMMON < len(numbers) <= COMMON + 2
    library.check_invariants()


class TestStaleness:
    """A verdict is made again only where something that concerns its page has changed."""

    def test_only_what_shares_a_clause_or_an_identity_concerns_a_page(self):
        library = Library()
        index, page = library.index, library.page("a", range(10))
        version = index.read_version()
        commit(library, library.page("other", range(100, 110)))
        assert not index.changed_since(version, page)
        pending = index.claim(library.page("twin", range(5, 15)))
        assert index.changed_since(version, page)
        version = index.read_version()
        index.void_claim(pending.number)
        assert index.changed_since(version, page)
        version = index.read_version()
        commit(library, library.page("a", range(200, 210)))
        assert index.changed_since(version, page), "the page itself, as another crawler saw it"
        assert not index.changed_since(index.read_version(), page)

    @given(st.lists(st.tuples(st.integers(0, 5), st.sets(st.integers(0, 20), min_size=1, max_size=8)), max_size=12))
    def test_a_verdict_that_is_not_stale_is_the_verdict(self, changes):
        library = Library()
        page = library.page("page", range(12))
        detector = Detector(library.index, fingerprint.hash, CopyRules(0.8))
        version, verdict = library.index.read_version(), detector.check(page)
        for name, said in changes:
            commit(library, library.page(f"p{name}", sorted(said)))
            if library.index.changed_since(version, page):
                version, verdict = library.index.read_version(), detector.check(page)
            assert detector.check(page) == verdict


class TestKeptAgain:
    """What an original has, when a later crawl keeps it again."""

    def test_it_has_reached_the_feeds_of_both_crawls(self):
        library = Library()
        commit(library, library.page("a", range(9)), feeds="f")
        library.begin("second")
        assert commit(library, library.page("a", range(9)), feeds="g").kept.feeds == {"f", "g"}
        library.check_invariants()

    def test_it_is_not_known_without_end_which_feeds_it_has_reached(self):
        library, reached = Library(), []
        for n in range(100):
            library.begin(f"crawl {n}")
            reached.append(commit(library, library.page("a", range(9)), feeds=chr(0x4E00 + n)).kept.feeds)
            assert chr(0x4E00 + n) in reached[-1]
        assert 50 < max(map(len, reached)) < 100
        library.check_invariants()

    def test_within_a_crawl_what_an_earlier_one_kept_does_not_count(self):
        library = Library(scope=Scope.CRAWL)
        commit(library, library.page("a", range(9)), feeds="f")
        library.begin("second")
        assert library.check("copy", range(9)).kind is VerdictKind.NEW
        assert commit(library, library.page("a", range(9)), feeds="g").kept.feeds == {"g"}

    def test_of_another_text_it_has_reached_no_feed_before(self):
        library = Library()
        commit(library, library.page("a", range(9)), feeds="f")
        assert commit(library, library.page("a", range(20, 29)), feeds="g").kept.feeds == {"g"}
        library.check_invariants()


class TestDroppedItems:
    @staticmethod
    def drop(library, name, original):
        urls = {"url": name, "original_url": "half a character: \ud800"}

        def items(number, _):
            known = (number, original.number, "s", "run", "", False, "")
            item = DroppedItem(*known, **urls, score=1.0, type="t:t", data=b"{}")
            return library.index.dropped.pairs(item, b"same"), ()

        library.index.remember_duplicate(library.page(name, range(9)), Match(original, 1.0, original.hashes), items)

    def test_the_oldest_are_removed_but_never_one_that_is_to_be_released(self):
        library = Library()
        original = commit(library, library.page("a", range(9)))
        for name in "123":
            self.drop(library, name, original)
        dropped = library.index.dropped
        library.store.write(dropped.to_release([next(iter(dropped))]))
        dropped.make_room(0, size=dropped.size - 1, age=None)
        assert [item.url for item in dropped] == ["1", "3"]
        dropped.make_room(0, size=0, age=None)
        assert [item.url for item in dropped] == ["1"]
        library.check_invariants()
