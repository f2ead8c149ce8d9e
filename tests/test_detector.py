"""The laws of the verdict, on a store in memory: what is dropped, and above all what is not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from library import Library
from prose import story

from dedup_middleware.errors import StoreError
from dedup_middleware.model import Scope, VerdictKind

NEW, UNCHANGED, CHANGED, DUPLICATE, RELATED, UNCHECKED, _ = VerdictKind

# Texts that overlap in all degrees: windows on a row of clauses, and now and then clauses from anywhere.
WINDOWS = st.builds(
    lambda first, length: frozenset(range(first, first + length)), st.integers(0, 12), st.integers(4, 10)
)
TEXTS = WINDOWS | st.builds(frozenset.union, WINDOWS, st.frozensets(st.integers(0, 20), max_size=3))
TEXT_LISTS = st.lists(TEXTS, max_size=14)
THRESHOLDS = st.sampled_from([0.51, 2 / 3, 0.8, 5 / 6, 1.0])


@given(texts=st.lists(st.tuples(st.sampled_from(["one", "two", "three"]), TEXTS), max_size=14), threshold=THRESHOLDS)
def test_a_page_is_a_duplicate_only_of_one_kept_page_that_has_enough_of_its_text(texts, threshold):
    library, kept = Library(threshold=threshold), dict[str, frozenset[int]]()
    for number, (host, text) in enumerate(texts):
        url = f"http://{host}/p{number}"
        verdict = library.visit(url, sorted(text)).verdict
        if verdict.kind is not DUPLICATE:
            kept[url] = text
            continue
        original = kept[verdict.match.original.url]
        assert verdict.match.score >= threshold
        # Most of it as it is written: of made words, none is nearly another one.
        assert 2 * len(text & original) >= len(text)
        assert text <= original or threshold < 1


@given(TEXT_LISTS, TEXTS)
def test_dropped_duplicates_never_change_a_later_verdict(texts, probe):
    """Of other hosts: what a host shows around its texts its duplicates show, too."""
    library, without = Library(), Library()
    for number, text in enumerate(texts):
        visit = library.visit(f"http://site{number}/", sorted(text))
        if visit.verdict.kind is not DUPLICATE:
            without.visit(f"http://site{number}/", sorted(text))
    one, other = library.check("probe", sorted(probe)), without.check("probe", sorted(probe))
    assert (one.kind, one.reason, one.match and (one.match.original.url, one.match.score, one.match.shared)) == (
        other.kind,
        other.reason,
        other.match and (other.match.original.url, other.match.score, other.match.shared),
    )


@pytest.mark.parametrize("text", [range(6), range(40)])
def test_twins_of_a_new_address_in_each_crawl_are_dropped_in_every_one_of_them(text):
    """Originals of earlier crawls drop nothing in this scope, and so make nothing common."""
    library = Library(scope=Scope.CRAWL)
    for number in range(8):
        library.begin(f"crawl {number}")
        visits = [library.visit(f"http://host{n}/{number}", text) for n in range(20)]
        assert [visit.items.kept for visit in visits] == [1] + 19 * [0]
        library.check_invariants()


def kept(library, run, visits):
    library.begin(run)
    cases = [library.visit(name, text, items=items) for name, text, items in visits]
    return {visit.url for visit in cases if visit.items.kept}


@given(
    st.lists(st.tuples(TEXTS, st.sampled_from([1, 1, 1, 0])), max_size=10),
    st.lists(st.integers(0, 9), max_size=14),
    st.randoms(use_true_random=False),
    THRESHOLDS,
)
def test_a_recrawl_of_unchanged_pages_keeps_the_same_pages_in_any_order(pages, order, shuffle, threshold):
    library = Library(threshold=threshold)
    visits = [(f"p{number}", *pages[number]) for number in order if number < len(pages)]
    first = kept(library, "first", visits)
    assert kept(library, "second", visits) == first
    shuffle.shuffle(visits)
    assert kept(library, "third", visits) == first
    library.check_invariants()


@given(
    st.lists(
        st.lists(
            st.tuples(st.sampled_from("abcdef"), st.sampled_from([None, "x"]), TEXTS, st.integers(0, 1)), max_size=8
        ),
        max_size=3,
    ),
    st.sampled_from(Scope),
)
def test_whatever_is_dropped_its_original_was_kept_in_scope(runs, scope):
    library = Library(threshold=0.7, scope=scope)
    safe = set()
    for number, visits in enumerate(runs):
        library.begin(f"run{number}")
        if scope is Scope.CRAWL:
            safe.clear()
        for name, request, text, items in visits:
            visit = library.visit(name, text, request=request, items=items)
            if visit.items.dropped:
                original = visit.verdict.match.original
                assert (original.url, original.digest) in safe
                assert original.url != visit.url
            elif items:
                safe.add((visit.url, visit.page.fingerprint.digest))


class TestItself:
    @pytest.mark.parametrize("text", [range(10), range(1, 11), range(9), range(3, 6), []])
    def test_a_page_is_never_its_own_duplicate(self, text):
        library = Library()
        library.visit("a", range(10))
        assert library.check("a", text).kind in (UNCHANGED, CHANGED, NEW, UNCHECKED)

    def test_neither_by_its_request_nor_by_its_final_url(self):
        library = Library()
        library.visit("start/today", range(10), request="start")
        library.visit("story", range(20, 30))
        assert library.visit("start/tomorrow", range(10), request="start").verdict.kind is UNCHANGED
        assert library.visit("story", range(20, 30), request="short-link").verdict.kind is UNCHANGED


class TestPages:
    def test_a_store_in_memory_that_is_full_forgets_and_nothing_is_dropped_any_more(self):
        library = Library(room=20_000)
        number = 0
        while not library.failures:
            assert library.visit(f"p{number}", range(20 * number, 20 * number + 20)).items.kept == 1
            number += 1
        assert 3 < number < 20
        assert "DEDUP_STORE" in str(library.failures[0])
        assert library.visit("copy", range(20)).items.kept == 1
        with pytest.raises(StoreError):
            library.contents()

    def test_an_original_that_gives_less_than_before_drops_no_known_copy(self):
        """Its text is what it was; its items do not say it any more."""
        library = Library()
        text = [*story(1), *story(2)]
        library.visit("a", text)
        assert library.visit("copy", text).is_duplicate
        again = library.enter(library.page("a", text))
        library.leave(again, items=[{"title": story(2)[0]}, {"title": story(2)[1]}])
        assert library.check("copy", text).kind is NEW
        library.check_invariants()

    def test_a_page_of_several_items_owns_only_what_these_say(self):
        library = Library()
        front = library.enter(library.page("front", [*story(1), *story(2), *story(3)]))
        library.leave(front, items=[{"text": story(2)}, {"title": "a headline and no more"}])
        assert library.check("one", story(1)).kind is NEW
        assert library.check("two", story(2)).kind is DUPLICATE
        # What it does not own does not make it another page when it comes again.
        assert library.check("front", [*story(1), *story(2), *story(3)]).kind is UNCHANGED
        library.check_invariants()
