"""What the pages of a host have shown: it sets none of them apart."""

from dataclasses import replace

from library import page_of

from dedup_middleware.index import shown
from dedup_middleware.model import PageFeatures


def after(*titles, texts=100):
    found = {}
    for number, title in enumerate(titles):
        page = page_of(str(number), [number % texts])
        found = {**shown.updated(found, replace(page, features=PageFeatures(title)))}
    return found


def test_what_stands_in_most_titles_is_the_sites():
    titles = [f"Story {name} | The Harbour" for name in ("one", "two", "three", "four", "five", "six")]
    assert not shown.has_word(after(*titles[: shown.SEVERAL - 1]), "harbour")
    found = after(*titles)
    assert shown.has_word(found, "harbour")
    assert shown.is_frame_part(found, "The Harbour")
    assert not shown.has_word(found, "two")
    assert not shown.is_frame_part(found, "Story two")


def test_what_stands_over_one_text_is_no_frame():
    assert not shown.is_frame_part(after(*["Lot B | The Harbour"] * 9, texts=1), "Lot B")


def test_several_texts_are_told_apart():
    for first in range(0, 900, shown.SEVERAL):
        found = {}
        for number in range(first, first + shown.SEVERAL):
            page = replace(page_of(str(number), [number]), features=PageFeatures("Story | The Harbour"))
            found = {**shown.updated(found, page)}
        assert shown.is_frame_part(shown.decode(shown.encode(found)), "The Harbour")


def test_it_counts_so_many_pages_and_no_more():
    titles = [f"Story {number} | The Harbour" for number in range(shown.COUNTED_PAGES)]
    found = after(*titles, *["The Quay"] * 9)
    assert found[shown.PAGES][0] == shown.COUNTED_PAGES
    assert shown.has_word(found, "harbour")
    assert not shown.has_word(found, "quay")
    assert len(shown.encode(found)) <= 11 * shown.MAX_SHOWN
