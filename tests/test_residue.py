"""What many pages of a host share is no story: they are delivered, and the record says why."""

from __future__ import annotations

import pytest
from parsel import Selector
from prose import article, story, zh_story

from dedup_middleware.extraction.facts import MOST_NUMBERS, numbers_of, title_of

NOTICE = story(7, 1)[0]


def visit(crawl, *urls, **kwargs):
    return crawl("strangers.OneByOne", urls=",".join(urls), **kwargs)


@pytest.mark.parametrize("notice", [NOTICE, zh_story(7, 1)[0]])
def test_directory_entries_under_one_notice_are_delivered(site, crawl, notice):
    urls = []
    for number, name in enumerate(["Ada Byron", "Bao Zheng", "Cy Twombly", "Dora Maar", "Émile Zola", "Fu Baoshi"]):
        page = (
            f"<html><title>{name}</title><h1>{name}</h1><p>{notice}</p><dl><dt>Room</dt><dd>{number}</dd></dl></html>"
        )
        urls.append(site.add(f"/staff/{number}", page))
    outcome = visit(crawl, *urls)
    assert [i["url"] for i in outcome.items] == urls
    record = outcome.record(urls[1])
    assert (record["verdict"], record["owner_url"]) == ("related", urls[0])
    assert record["reason"].startswith("little text, at another address")
    assert record["evidence"]
    assert outcome.problems == []


def test_daily_tables_at_one_address_are_delivered(site, crawl):
    table = "<html><title>Prices</title><p>{}</p><table><tr><td>Wheat</td><td>{}.5</td></tr></table></html>"
    urls = [site.add(f"/prices?day={day}", table.format(NOTICE, 17 * day)) for day in range(1, 7)]
    assert [i["url"] for i in visit(crawl, *urls).items] == urls


def test_a_wall_on_many_addresses_is_delivered(site, crawl):
    wall = f"<html><title>Please sign in</title><p>{NOTICE}</p></html>"
    urls = [site.add(f"/story/{number}", wall) for number in range(6)]
    assert [i["url"] for i in visit(crawl, *urls).items] == urls


def test_a_short_story_with_a_session_id_or_on_another_host_is_dropped(site, crawl):
    page = article("A short story", [NOTICE])
    first = site.add("/story", page)
    session, mirror = f"{first}?sid=abc", site.add("/other", page, host=1)
    outcome = visit(crawl, first, session, mirror)
    assert [i["url"] for i in outcome.items] == [first]
    assert {r["url"]: r["owner_url"] for r in outcome.records} == {session: first, mirror: first}


def test_a_long_story_is_dropped_at_another_address_under_another_title(site, crawl):
    first = site.add("/story", article("A story", story(1)))
    printed = site.add("/print/story", article("For the printer, page 1 of 2", story(1)))
    outcome = visit(crawl, first, printed)
    assert [i["url"] for i in outcome.items] == [first]


class TestFacts:
    """The title, and the numbers that a reader sees."""

    def test_numbers_of_the_visible_text(self):
        page = """<html><head><title>5 T</title><style>1</style></head><body>7 <a href=x>8<b>81</b></a> 9<!-- 10 --> 11
        <script>12</script>13<p>14.5 <i>15:30</i>1,600</p><select><option>17</select></body></html>"""
        assert numbers_of(Selector(text=page).root) == {"7", "9", "11", "13", "14.5", "15:30", "1,600"}

    def test_no_more_numbers_than_tell_something(self):
        page = "<p>" + " ".join(map(str, range(10_000)))
        assert len(numbers_of(Selector(text=page).root)) == MOST_NUMBERS

    @pytest.mark.parametrize(
        ("page", "title"),
        [
            ("<title> A </title><h1>B</h1>", "A"),
            ("<h1>B<i>!</i></h1><p>x", "B!"),
            ("<body><svg><title>icon</title></svg><h1>B</h1>", "B"),
            ("<p>x", ""),
        ],
    )
    def test_title(self, page, title):
        assert title_of(Selector(text=page).root) == title
