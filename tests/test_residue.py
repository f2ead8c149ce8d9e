"""What many pages of a host share is no story: they are kept, and the record says why."""

import pytest
from parsel import Selector
from prose import story, zh_story

from dedup_middleware.extraction import texts_of
from dedup_middleware.extraction.features import features_of

NOTICE = story(7, 1)[0]


NAMES = ["Ada Byron", "Bao Zheng", "Cy Twombly", "Dora Maar", "Émile Zola", "Fu Baoshi"]
TABLE = "<html><title>Prices</title><p>{}</p><table><tr><td>Wheat</td><td>{}.5</td></tr></table></html>"
ENTRY = "<html><title>{0}</title><h1>{0}</h1><p>{1}</p><dl><dt>Room</dt><dd>{2}</dd></dl></html>"
#: Pages of one host: their URL and what they are.
SHARED = {
    "entries": ("/staff/{}", lambda n: ENTRY.format(NAMES[n], NOTICE, n)),
    "entries in Chinese": ("/staff/{}", lambda n: ENTRY.format(NAMES[n], zh_story(7, 1)[0], n)),
    "daily tables": ("/prices?day={}", lambda n: TABLE.format(NOTICE, 17 * n)),
    "a wall on many addresses": ("/story/{}", lambda _: f"<html><title>Please sign in</title><p>{NOTICE}</p></html>"),
}


@pytest.mark.parametrize("name", SHARED)
def test_what_many_pages_of_a_host_share_is_no_story(pages, name):
    address, made = SHARED[name]
    urls = [pages.add(address.format(n), made(n)) for n in range(6)]
    assert pages.kept(urls) == urls
    if name.startswith("entries"):
        second = pages.checked(urls)[urls[1]]
        assert (second.verdict, second.original_url, second.reason) == ("related", urls[0], "extra_text")
        assert second.evidence


class TestFacts:
    """What stands around the main text."""

    @pytest.mark.parametrize(
        ("page", "title", "heading"),
        [
            ("<title> A </title><h1>B</h1>", "A", "B"),
            ("<title>B - site</title><h1>b</h1>", "B - site", "b"),
            ("<h1>B<i>!</i></h1><p>x", "", "B!"),
            ("<body><svg><title>icon</title></svg><h1>B</h1>", "", "B"),
            ("<p>x", "", ""),
            ("<title>A</title><h1><a href=/>The site</a></h1><h1>B</h1>", "A", "B"),
            ("<h1><a href=/a>A</a></h1>", "", "A"),
        ],
    )
    def test_title_and_first_heading(self, page, title, heading):
        root = Selector(text=page).root
        features = features_of(root, texts_of(root))
        assert (features.title, features.heading) == (title, heading)
