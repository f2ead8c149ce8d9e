"""What holds for a page and then its view holds for the view and then its page."""

from itertools import permutations

import pytest
from library import verdicts
from prose import story, zh_story

STORY = "http://one.example/story/5"
PRINTED = "http://one.example/print/story/5"
SITE = "<meta property=og:site_name content='The Harbour Post'>"
FRAME = "<aside><p>Ferries sold by members.</p></aside>"
PRICE = "<aside><p>From 4.50 € a day, for members only.</p></aside>"


def page(tell=story, *, frame=FRAME, last=""):
    title = "The ferry is back - The Harbour Post"
    lines = "".join(f"<p>{line}</p>" for line in tell(1))
    menu = (
        "<nav class=menu><ul><li><a href=/>Home</a><li><a href=/news>News</a></ul></nav><header><h2>News</h2></header>"
    )
    body = f"<h1>The ferry is back</h1><main><div class=body>{lines}{last}</div></main>{frame}"
    return f"<!DOCTYPE html><html><head><title>{title}</title>{SITE}</head><body>{menu}{body}</body></html>"


def view(tell=story, *, title="The ferry is back", first=""):
    lines = first + "".join(f"<p>{line}</p>" for line in tell(1))
    return f"<html><head><title>{title}</title></head><body><h1>The ferry is back</h1>{lines}</body></html>"


@pytest.mark.parametrize("tell", [story, zh_story])
@pytest.mark.parametrize(
    ("url", "title"),
    [
        (PRINTED, "{}"),
        (PRINTED, "{} - Print"),
        (f"{STORY}?print=1", "Print: {}"),
        (f"{STORY}/print", "{} (print version)"),
        ("http://one.example/amp/story/5", "{} - AMP"),
        ("http://one.example/m/story/5", "{} | Mobile version"),
    ],
)
def test_a_page_and_its_view_are_one_in_both_orders(tell, url, title):
    for pages in permutations([(STORY, page(tell)), (url, view(tell, title=title.format("The ferry is back")))]):
        assert verdicts(*pages)[1] == "duplicate"


@pytest.mark.parametrize("tell", [story, zh_story])
@pytest.mark.parametrize(("word", "title"), [("druck", "{} | Druckversion"), ("dayin", "{}_打印版")])
def test_a_view_in_another_language_is_one_of_the_page_before(tell, word, title):
    printed = view(tell, title=title.format("The ferry is back"))
    assert verdicts((STORY, page(tell)), (f"{STORY}/{word}", printed))[1] == "duplicate"


@pytest.mark.parametrize("first", ["<p>Cancelled</p>", "<p>Status</p><p>Rejected</p>"])
def test_a_word_that_only_the_view_has_is_no_label_of_views(first):
    def printed(html):
        return html.replace("<p>", "<p class=printed>").replace("<h1>", "<h1 class=top>")

    assert (
        verdicts((STORY, page()), (PRINTED, printed(view().replace("</p><p>", f"</p>{first}<p>", 1))))[1] == "related"
    )
    # At the edge of a page it may be the frame's, but not in the text of an item.
    assert verdicts((STORY, page()), (PRINTED, printed(view(first=first))))[1] == "duplicate"
    texts = ["\n".join(story(1)), "\n".join([*first[3:-4].split("</p><p>"), *story(1)])]
    items = [{"title": "The ferry is back", "text": text} for text in texts]
    assert verdicts((STORY, page(), items[0]), (PRINTED, printed(view(first=first)), items[1]))[1] == "related"


@pytest.mark.parametrize(
    "pages",
    [
        ((PRINTED, view()), (STORY, page(last="<p>It was called off on Monday.</p>"))),
        ((PRINTED, view()), (STORY, page(frame=PRICE))),
        ((STORY, page()), (PRINTED, view(title="The ferry is late"))),
    ],
    ids=["more text", "a price beside it", "another title"],
)
def test_what_a_page_has_and_its_view_has_not_keeps_the_second(pages):
    assert verdicts(*pages)[1] == "related"
