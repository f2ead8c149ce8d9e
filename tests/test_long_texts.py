"""Beyond the stored text a digest shows whether two pages of one site are equal."""

import pytest
from prose import story

from dedup_middleware import Deduplicator
from dedup_middleware.model import TEXT_LIMIT

LEAFLET = "http://one.example/leaflet"
COPIES = (f"{LEAFLET}?utm_source=mail", "http://one.example/print/leaflet")


def text_of(characters):
    """Return the paragraphs of a text of that many characters or a few more, each with sentences of its own."""
    found = []
    number = 0
    while sum(map(len, found)) < characters:
        number += 1
        found += story(number, 5)
    return found


def page(paragraphs):
    lines = "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs)
    return f"<!DOCTYPE html><html><head><title>A leaflet</title></head><body><h1>A leaflet</h1>{lines}</body></html>"


def verdict(url, first, second):
    with Deduplicator(max_milliseconds=60_000) as dedup:
        dedup.add(LEAFLET, page(first))
        return dedup.add(url, page(second)).verdict


@pytest.mark.parametrize("characters", [TEXT_LIMIT // 4, TEXT_LIMIT + 20_000])
@pytest.mark.parametrize("url", COPIES)
def test_an_equal_text_is_a_copy_at_the_same_address(url, characters):
    text = text_of(characters)
    assert verdict(url, text, text) == "duplicate"


LAST = {
    "a sign": ("5 degrees were measured.", "-5 degrees were measured."),
    "a check mark": ("The boiler was tested ✓", "The boiler was tested ✗"),
    "a short word": ("Keep it cool.", "Keep it warm."),
}


@pytest.mark.parametrize("characters", [TEXT_LIMIT // 4, TEXT_LIMIT + 20_000])
@pytest.mark.parametrize(("one", "other"), LAST.values(), ids=LAST)
def test_what_differs_at_the_end_of_a_long_text_keeps_it(one, other, characters):
    text = text_of(characters)
    for url in (*COPIES, "http://one.example/other"):
        assert verdict(url, [*text, one], [*text, other]) == "related"


def test_a_short_text_that_is_at_the_end_of_a_long_one_is_not_compared_with_what_is_not_stored():
    text = text_of(TEXT_LIMIT + 20_000)
    assert (
        verdict(COPIES[0], [*text, "5 degrees were measured."], [*text[-9:], "-5 degrees were measured."])
        != "duplicate"
    )
