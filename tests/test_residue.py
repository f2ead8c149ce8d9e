"""What many pages of a host share is no story: they are kept, and the record says why."""

from __future__ import annotations

import pytest
from parsel import Selector
from prose import article, story, zh_story

from dedup_middleware.extraction import texts_of
from dedup_middleware.extraction.blocks import PageText
from dedup_middleware.extraction.features import features_of

NOTICE = story(7, 1)[0]


def visit(crawl, *urls, **kwargs):
    return crawl("sample_spiders.OneByOne", urls=",".join(urls), **kwargs)


@pytest.mark.parametrize("notice", [NOTICE, zh_story(7, 1)[0]])
def test_directory_entries_under_one_notice_are_kept(site, crawl, notice):
    urls = []
    for number, name in enumerate(["Ada Byron", "Bao Zheng", "Cy Twombly", "Dora Maar", "Émile Zola", "Fu Baoshi"]):
        page = (
            f"<html><title>{name}</title><h1>{name}</h1><p>{notice}</p><dl><dt>Room</dt><dd>{number}</dd></dl></html>"
        )
        urls.append(site.add(f"/staff/{number}", page))
    outcome = visit(crawl, *urls)
    assert [i["url"] for i in outcome.items] == urls
    record = outcome.record(urls[1])
    assert (record["verdict"], record["original_url"]) == ("related", urls[0])
    assert record["reason"] == "other_title"
    assert record["evidence"]
    assert outcome.problems == []


def test_daily_tables_at_one_address_are_kept(site, crawl):
    table = "<html><title>Prices</title><p>{}</p><table><tr><td>Wheat</td><td>{}.5</td></tr></table></html>"
    urls = [site.add(f"/prices?day={day}", table.format(NOTICE, 17 * day)) for day in range(1, 7)]
    assert [i["url"] for i in visit(crawl, *urls).items] == urls


def test_a_wall_on_many_addresses_is_kept(site, crawl):
    wall = f"<html><title>Please sign in</title><p>{NOTICE}</p></html>"
    urls = [site.add(f"/story/{number}", wall) for number in range(6)]
    assert [i["url"] for i in visit(crawl, *urls).items] == urls


def test_a_short_story_with_a_session_id_or_on_another_host_is_dropped(site, crawl):
    page = article("A short story", [NOTICE])
    first = site.add("/story", page)
    session, mirror = f"{first}?sid=abc", site.add("/other", page, host=1)
    outcome = visit(crawl, first, session, mirror)
    assert [i["url"] for i in outcome.items] == [first]
    assert {r["url"]: r["original_url"] for r in outcome.records} == {session: first, mirror: first}


def test_a_long_story_is_dropped_at_another_address_with_other_things_around_it(site, crawl):
    first = site.add("/story", article("A story", story(1)))
    printed = site.add(
        "/print/story",
        article("A story - Print", story(1)).replace("<main>", "<main><p>Page 1 of 2</p><p>Printed on demand</p>"),
    )
    outcome = visit(crawl, first, printed)
    assert [i["url"] for i in outcome.items] == [first]


class TestFacts:
    """What stands around the main text, and what a page shows."""

    def test_text_that_a_page_shows(self):
        page = """<html><head><title>5 T</title><style>1</style></head><body>7 <a href=x>8<b>81</b></a> 9<!-- 10 --> 11
        <script>12</script>13<p>14.5 <i>15:30</i>1,600</p><textarea>17</textarea></body></html>"""
        text = PageText(Selector(text=page).root)
        shown = ["5 t", "7 8 81 9", "11", "12", "13", "14 5 15 30", "1600", "1 600", "17"]
        assert [words for words in [*shown, "10", "81 7", "60"] if text.shows(words)] == shown

    @pytest.mark.parametrize(
        ("page", "title", "heading"),
        [
            ("<title> A </title><h1>B</h1>", "A", "B"),
            ("<title>B - site</title><h1>b</h1>", "B - site", ""),
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
