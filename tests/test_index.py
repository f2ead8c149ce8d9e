"""Which stored pages hold a clause, and that a store stays consistent in every crawl."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from library import COMMON, Library, fingerprint

from dedup_middleware.checks.detector import Detector
from dedup_middleware.durability import Durability, recover
from dedup_middleware.index.schema import clause_keys, decode_postings
from dedup_middleware.model import Match, Page, Scope, StoredPage, VerdictKind

if TYPE_CHECKING:
    from dedup_middleware.durability import Flush
    from dedup_middleware.index.index import Changed

# Few addresses and few clauses, so that pages meet, change, redirect to one another and repeat one another.
TEXTS = st.builds(lambda first, length: frozenset(range(first, first + length)), st.integers(0, 9), st.integers(4, 9))
VISITS = st.tuples(st.sampled_from("abcd"), st.sampled_from([None, "x", "y"]), TEXTS, st.integers(0, 1))

Visits = list[tuple[str, "str | None", frozenset[int], int]]


def holders(library: Library, page: Page) -> dict[bytes, tuple[int, ...]]:
    """Return each clause of *page* with the stored pages that hold it."""
    contents = library.contents()
    return {h: decode_postings(contents.get(clause_keys([h])[0], b"")) for h in page.fingerprint.weights}


def commit(library: Library, page: Page, *, durable: bool = False, feeds: str = "") -> StoredPage:
    """Commit *page* as an original."""
    stored = library.index.commit(page, durable=durable, feeds=frozenset(feeds))
    assert stored is not None
    return stored


@settings(max_examples=150, deadline=None)
@given(st.lists(VISITS, max_size=12))
def test_nothing_in_the_store_dangles_whatever_comes(visits: Visits) -> None:
    library = Library()
    for name, request, clauses, items in visits:
        library.visit(name, clauses, request=request, items=items)
        library.check_invariants()
    for page in library.index.pages():
        assert [library.index.find([identity]) for identity in page.identities] == [page] * len(page.identities)


def test_the_list_of_a_common_clause_stays_short() -> None:
    library = Library()
    for number in range(10):
        commit(library, library.page(f"p{number}", [0, 100 + number]))
    (numbers,) = holders(library, library.page("new", [0])).values()
    assert COMMON < len(numbers) <= COMMON + 2
    library.check_invariants()


class TestSuperseding:
    def test_a_duplicate_that_says_something_new_becomes_an_original(self) -> None:
        library = Library()
        library.visit("a", range(9))
        duplicate = library.visit("b", range(9))
        assert duplicate.is_duplicate
        assert library.visit("b", range(20, 29)).verdict.kind is VerdictKind.NEW
        assert library.check("c", range(20, 29)).kind is VerdictKind.DUPLICATE
        library.check_invariants()


class TestStaleness:
    """A verdict is made again only where something that concerns its page has changed."""

    def test_only_what_shares_a_clause_or_an_identity_concerns_a_page(self) -> None:
        library = Library()
        index, page = library.index, library.page("a", range(10))
        version = index.version
        commit(library, library.page("other", range(100, 110)))
        assert not index.changed_since(version, page)
        pending = index.claim(library.page("twin", range(5, 15)))
        assert index.changed_since(version, page)
        version = index.version
        index.void_claim(pending.number)
        assert index.changed_since(version, page)
        version = index.version
        commit(library, library.page("a", range(200, 210)))
        assert index.changed_since(version, page), "the page itself, as another crawler saw it"
        assert not index.changed_since(index.version, page)

    @given(st.lists(st.tuples(st.integers(0, 5), st.sets(st.integers(0, 20), min_size=1, max_size=8)), max_size=12))
    def test_a_verdict_that_is_not_stale_is_the_verdict(self, changes: list[tuple[int, set[int]]]) -> None:
        library = Library()
        page = library.page("page", range(12))
        detector = Detector(library.index, fingerprint.hash, 0.8)
        version, verdict = library.index.version, detector.check(page)
        for name, said in changes:
            commit(library, library.page(f"p{name}", sorted(said)))
            if library.index.changed_since(version, page):
                version, verdict = library.index.version, detector.check(page)
            assert detector.check(page) == verdict


class TestDurability:
    """What of a delivery a crash can undo."""

    @staticmethod
    def durability(library: Library, run: str, flush: Flush | None = None) -> Durability:
        durability = Durability(library.index, run, flush=flush, disks=None, fail=library.failures.append)
        durability.interval = 1
        return durability

    def test_a_new_original_is_durable_once_its_own_crawl_has_made_it_so(self) -> None:
        library = Library()
        one, other = self.durability(library, "run"), self.durability(library, "other")
        original = commit(library, library.page("a", range(9)), feeds="f")
        other.confirmed(original.number)
        assert one.relies_on(original, frozenset()) == "run"
        one.confirmed(original.number)
        assert one.relies_on(original, {"f"}) == ""
        assert other.relies_on(original, frozenset()) == ""
        assert one.relies_on(original, {"f", "g"}) is None
        library.check_invariants()

    def test_within_a_crawl_what_an_earlier_one_kept_does_not_count(self) -> None:
        library = Library(scope=Scope.CRAWL)
        original = commit(library, library.page("a", range(9)), durable=True)
        assert self.durability(library, "run").relies_on(original, frozenset()) == ""
        assert self.durability(library, "other").relies_on(original, frozenset()) is None

    @pytest.mark.parametrize("ends", ["crash", "failure"])
    def test_an_original_that_is_kept_again_is_as_durable_as_before(self, ends: str) -> None:
        library = Library()
        first = commit(library, library.page("a", range(9)), durable=True, feeds="f")
        library.begin("second")
        durability = self.durability(library, "second", lambda: ({"slow"}, lambda: None))
        again = commit(library, library.page("a", range(9)), feeds="g")
        assert again.kept.feeds == {"f", "g"}
        assert (durability.relies_on(again, {"f"}), durability.relies_on(again, {"g"})) == ("", "second")
        if ends == "failure":
            durability.confirmed(again.number)
            durability.fail()
            durability.end(store_failed=False)
        else:
            library.crash()
            recover(library.index)
        assert library.index.page(again.number) == first
        assert library.check("copy", range(9)).kind is VerdictKind.DUPLICATE
        assert not any(key[:1] == b"u" for key in library.contents())
        library.check_invariants()

    def test_lost_originals_make_nothing_common_and_keep_no_page_out_of_a_list(self) -> None:
        library = Library()
        for n in range(COMMON + 3):
            commit(library, library.page(f"left {n}", [*range(9), *range(n * 20 + 20, n * 20 + 29)]))
        library.crash()
        recover(library.index)
        library.begin("next")
        library.visit("whole", range(9))
        assert library.check("copy", range(9)).kind is VerdictKind.DUPLICATE
        library.check_invariants()

    def test_of_another_text_nothing_was_durable(self) -> None:
        library = Library()
        commit(library, library.page("a", range(9)), durable=True)
        library.begin("second")
        again = commit(library, library.page("a", range(20, 29)))
        assert self.durability(library, "second").relies_on(again, frozenset()) == "second"
        library.crash()
        recover(library.index)
        assert library.index.page(again.number) is None
        library.check_invariants()

    def test_a_delivery_that_is_not_stored_yet_is_not_durable_by_an_earlier_checkpoint(self) -> None:
        """The first is on disk, the second waits for a feed that is stored at its end."""
        library = Library()
        feeds = iter(["slow", "slower"])
        durability = self.durability(library, "run", lambda: ({next(feeds)}, lambda: None))
        durability.confirmed(commit(library, library.page("a", range(9)), feeds="f").number)
        again = commit(library, library.page("a", range(9)), feeds="g")
        durability.confirmed(again.number)
        durability.wait_for_disk(lambda: None, "slow")
        assert durability.relies_on(again, frozenset()) == "run"
        durability.wait_for_disk(lambda: None, "slower")
        assert durability.relies_on(again, {"f", "g"}) == ""


class TestDroppedItems:
    """What is released when an original is lost."""

    @staticmethod
    def drop(library: Library, name: str, original: StoredPage, relies_on: str) -> int:
        header = {
            "spider": "s",
            "run": "run",
            "crawl": "",
            "for_feed": False,
            "url": name,
            "original_url": "half a character: \ud800",
            "score": 1.0,
            "type": "t:t",
        }

        def items(number: int, _: object) -> Changed:
            return library.index.dropped.pairs(number, original.number, relies_on, header, b"{}", b"same"), ()

        return library.index.remember_duplicate(
            library.page(name, range(9)), Match(original, 1.0, original.hashes), items
        )

    def releases(self, library: Library) -> list[str]:
        keys = [release.key for release in library.index.dropped.releases("s", "next")]
        return [item.url for item in library.index.dropped.get(keys)]

    def test_those_that_rely_on_a_lost_original_are_released(self) -> None:
        library = Library()
        lost = commit(library, library.page("a", range(9)))
        kept = commit(library, library.page("b", range(20, 29)), durable=True)
        self.drop(library, "of lost", lost, "run")
        self.drop(library, "of kept", kept, "")
        library.crash()
        assert self.releases(library) == []
        assert recover(library.index) == 1
        assert self.releases(library) == ["of lost"]
        assert recover(library.index) == 0
        library.check_invariants()

    def test_those_that_were_dropped_for_an_earlier_delivery_stay_dropped(self) -> None:
        library = Library()
        original = commit(library, library.page("a", range(9)), durable=True, feeds="f")
        self.drop(library, "first", original, "")
        library.begin("second")
        again = commit(library, library.page("a", range(9)), feeds="g")
        self.drop(library, "second", again, "second")
        library.crash()
        recover(library.index)
        assert self.releases(library) == ["second"]

    def test_the_oldest_are_removed_but_never_one_that_may_be_released(self) -> None:
        library = Library()
        doubtful = commit(library, library.page("a", range(9)))
        durable = commit(library, library.page("b", range(20, 29)), durable=True)
        for name, original, relies_on in (("1", doubtful, "run"), ("2", durable, ""), ("3", durable, "")):
            self.drop(library, name, original, relies_on)
        dropped = library.index.dropped
        size = dropped.size
        dropped.make_room(0, size=size - 1, age=None)
        assert [item.url for item in dropped] == ["1", "3"]
        dropped.make_room(0, size=0, age=None)
        assert [item.url for item in dropped] == ["1"]
        library.check_invariants()
