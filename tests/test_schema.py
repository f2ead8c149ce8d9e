"""What is written into a store is what is read from it; what was never written is refused."""

import dataclasses
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prose import story

from dedup_middleware.errors import UnreadableError
from dedup_middleware.index import schema
from dedup_middleware.model import ItemContent, Kept, PageFeatures, Standing, StoredPage

NUMBERS = st.integers(1, 2**56 - 1)
HASHES = st.frozensets(st.binary(min_size=6, max_size=6), max_size=9)
ITEMS = st.frozensets(st.frozensets(st.binary(min_size=4, max_size=4).filter(any), min_size=1, max_size=9), max_size=3)
SHORT_HASHES = st.frozensets(st.binary(min_size=4, max_size=4), max_size=9)
TEXT_HASHES = st.frozensets(st.binary(min_size=2, max_size=2), max_size=9)
KEEPIES = st.builds(Kept, st.text(), st.text(), st.none() | st.frozensets(st.text(), max_size=3))
PAGES = st.builds(
    StoredPage,
    number=NUMBERS,
    url=st.text(),
    identities=st.lists(st.binary(min_size=16, max_size=16), max_size=2).map(tuple),
    digest=st.binary(min_size=16, max_size=16),
    hashes=HASHES,
    kept=KEEPIES,
    exact_digest=st.just(b"") | st.binary(min_size=8, max_size=8).filter(any),
    source=st.just(b"") | st.binary(min_size=16, max_size=16),
    features=st.none() | st.builds(PageFeatures, st.text(), st.text(), TEXT_HASHES, SHORT_HASHES),
    item_content=st.none() | st.builds(ItemContent, HASHES, ITEMS, st.booleans()),
    standing=st.none()
    | st.builds(
        Standing,
        original=st.binary(max_size=16),
        original_text=st.text(),
        score=st.none() | st.floats(0, 1),
        reason=st.text(),
    ),
)
DUPLICATES = st.builds(
    lambda page, original, digest, score: dataclasses.replace(
        page, original=original, original_digest=digest, score=score
    ),
    PAGES,
    NUMBERS,
    st.binary(min_size=16, max_size=16),
    st.floats(0, 1),
)


@given(PAGES | DUPLICATES)
def test_a_page_comes_back_as_it_was(page):
    assert schema.decode_page(page.number, schema.encode_page(page)) == page


def test_what_pages_of_a_crawl_share_is_together():
    kept = Kept("a crawl", "2026-11-28T12:00:00+00:00", frozenset({"feed"}))
    pages = [
        StoredPage(number, f"http://a.example/{number}", (bytes([number]) * 16,), b"digest", frozenset(), kept)
        for number in (1, 2)
    ]
    one, other = map(schema.encode_page, pages)
    shared = one[: next(place for place, pair in enumerate(zip(one, other, strict=True)) if pair[0] != pair[1])]
    assert all(part in shared for part in (b"a crawl", b"12:00:00", b"feed", b"http://a.example/"))


def test_a_text_is_packed_smaller_than_fast():
    text = story(1)
    assert len(schema.encode_text(text)) < len(zlib.compress("\n".join(text).encode(), 1))


@given(NUMBERS, NUMBERS)
def test_numbers_sort_as_bytes(one, other):
    assert (schema.page_key(one) < schema.page_key(other)) == (one < other)
    assert schema.decode_number(schema.encode_number(one) + b"more") == one


@given(st.lists(st.text().map(lambda text: text.replace("\n", " ")), min_size=1), st.integers(1, 10_000))
def test_a_text_comes_back_as_far_as_the_limit_goes(paragraphs, limit):
    paragraphs = [paragraph + "\ud800" for paragraph in paragraphs]
    kept = schema.decode_text(schema.encode_text(tuple(paragraphs), limit))
    assert "\n".join(kept) == "\n".join(paragraphs)[:limit]


@given(NUMBERS, st.binary(min_size=8, max_size=8), st.binary(min_size=16, max_size=16))
def test_keys_of_different_kinds_never_meet(number, clause_hash, identity):
    keys = {
        *schema.clause_keys([clause_hash]),
        schema.identity_key(identity),
        schema.page_key(number),
        schema.text_key(number),
        schema.item_text_key(number),
        schema.repeat_key(number, number),
        schema.OVERRIDES[0] + identity + identity,
        schema.shown_key("http://a.example/", clause_hash),
        schema.whole_text_key(clause_hash, PageFeatures("title")) or b"",
        schema.NEXT_PLACE_KEY,
        # Dropped items, and what workers of a shared store and another detector add.
        *(kind[0] for kind in (schema.DROPPED, schema.DROPPED_OF_PAGES, schema.RELEASES)),
        *(kind[0] for kind in (schema.WORKERS, schema.CLAIMED)),
        schema.claims_key(identity),
        *(schema.numbered(kind, number) for kind in (b"k", b"l", b"m")),
    }
    assert len(keys) == len({key[:1] for key in keys}) == 19
    assert [key for key in keys if schema.PAGES[0] <= key < schema.PAGES[1]] == [schema.page_key(number)]


@given(PAGES.filter(lambda page: page.hashes), st.data())
def test_a_page_that_was_cut_is_no_page(page, data):
    whole = schema.encode_page(page)
    cut = data.draw(st.integers(1, len(whole)))
    with pytest.raises(UnreadableError):
        schema.decode_page(page.number, whole[:-cut])
