"""An item is dropped only if one item of the original has all that it has: its class, its values, its texts."""

import json
from fractions import Fraction

import pytest
from prose import article, story

from dedup_middleware import Deduplicator

STORY = story(1)
TEXT = "\n".join(STORY)
PAGE = article("Ferries", STORY)
#: At one address, at another one of the site, and on another site.
OTHERS = ("http://site.example/a?sid=1", "http://site.example/b", "http://other.example/a")


def dropped(item, other, page=PAGE, other_page=PAGE):
    """Return the addresses at which *other* is dropped, if a page with the same text has given *item*, or several."""
    found = []
    for url in OTHERS:
        with Deduplicator("memory:") as dedup:
            dedup.add("http://site.example/a", page, item)
            if dedup.add(url, other_page, other).is_duplicate:
                found.append(url)
    return tuple(found)


def with_value(value):
    return {"title": "Ferries turn back", "text": TEXT, "field": value}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("5 °C", "–5 °C"),
        ("1/2 tablet", "1-2 tablet"),
        ("1:30", "1.30"),
        ("6'", '6"'),
        ("(5)", "5"),
        ("London - Paris", "Paris - London"),
        ("LHR–JFK", "JFK–LHR"),
        ("a/b", "a-b"),
        ("A-", "A"),
        ("List<String>", "List<Integer>"),
        ("git add <file>", "git add <dir>"),
        ('<img src="/a.png">', '<img src="/b.png">'),
    ],
)
def test_short_values_are_equal_as_they_are_written(one, other):
    assert dropped(with_value(one), with_value(other)) == ()
    assert dropped(with_value(one), with_value(one)) == OTHERS


@pytest.mark.parametrize(
    ("one", "other"), [("LHR – JFK", "lhr - jfk"), ("the “Gull”", 'The "Gull"'), ("Ｎｏ 5", "No  5")]
)
def test_of_short_values_case_spaces_quotes_and_dashes_do_not_count(one, other):
    assert dropped(with_value(one), with_value(other)) == OTHERS


@pytest.mark.parametrize(
    ("field", "one", "other"), [("city", "York", "Leeds"), ("price", "£5", "£9"), ("state", "Open", "Closed")]
)
@pytest.mark.parametrize("has_text", [True, False])
def test_a_value_that_stands_in_the_title_of_its_page_is_a_value(field, one, other, has_text):
    pages = [article("Ferries", STORY).replace("<title>", f"<title>{value} | ") for value in (one, other)]
    items = [{field: value, **({"text": TEXT} if has_text else {})} for value in (one, other)]
    assert dropped(*items, *pages) == ()


def test_a_word_that_its_site_has_shown_is_no_section_where_the_original_has_another():
    with Deduplicator("memory:") as dedup:
        for n in range(5):
            told = article("Jobs", story(n + 20)).replace("</ul>", "<li>Part time</li></ul>")
            dedup.add(f"http://other.example/{n}", told, {"text": "\n".join(story(n + 20))})
        dedup.add("http://site.example/a", PAGE, {"text": TEXT, "type": "Full time"})
        found = dedup.add("http://other.example/a", PAGE, {"text": TEXT, "type": "Part time"})
    assert (found.verdict, found.reason) == ("related", "item_field_differs")


def test_a_file_at_the_address_of_its_page_is_a_value_and_has_any_length():
    one, other = (f"http://site.example/report.pdf?id={digit * 2000}" for digit in "12")
    assert dropped(with_value(one), with_value(other)) == OTHERS[2:]  # links are others on another site


ARTICLE, SUMMARY = (
    ("dataclass", {"title": "Ferries turn back"}),
    ("attrs", {"title": "Ferries turn back", "text": TEXT}),
)
RED, BLUE = ("dict", {"colour": "red", "price": "5"}), ("dict", {"colour": "blue", "price": "6"})
LONG = [(kind, {**fields, "text": TEXT}) for kind, fields in (RED, BLUE)]
MIXED = ("dict", {"colour": "red", "price": "6"})


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        (LONG, ("dict", {**MIXED[1], "text": TEXT})),
        ([("dict", {"text": TEXT}), RED, BLUE], MIXED),
        ([SUMMARY], ("dataclass", SUMMARY[1])),
        ([ARTICLE, SUMMARY], ("dataclass", SUMMARY[1])),
    ],
    ids=["rows with text", "rows beside a text", "another class", "a text in another class"],
)
def test_what_two_items_have_is_not_what_one_has(site, crawl, given, asked):
    def page(name, items):
        return article(name, STORY).replace("</title>", f"</title><script>{json.dumps(items)}</script>")

    first = site.add("/a", page("Ferries", given))
    again = [site.add(f"/{n}", page("Ferries", [each]), host=1) for n, each in enumerate([asked, *given])]
    steps = [{"url": url, "callback": "parse_script"} for url in (first, *again)]
    outcome = crawl("sample_spiders.Steps", steps=steps)

    assert [record["outcome"] for record in outcome.records[-len(again) :]] == ["kept", *["dropped"] * len(given)]


def test_a_text_in_another_field_is_another_item():
    one, two = ("\n".join(STORY[:3]), "\n".join(STORY[3:]))
    assert dropped({"before": one, "after": two}, {"before": two, "after": one}) == ()
    assert dropped({"before": one, "after": two}, {"before": one, "after": two}) == OTHERS


class Money:
    def __init__(self, amount):
        self.amount = amount


@pytest.mark.parametrize("value", [Money, Fraction, complex])
@pytest.mark.parametrize("settings", [{}, {"key": ["sku"]}])
def test_a_value_of_an_unknown_type_lets_nothing_be_dropped(value, settings):
    with Deduplicator("memory:", **settings) as dedup:
        dedup.add("http://site.example/a", PAGE, {"sku": "1", "text": TEXT, "price": value(5)})
        assert not dedup.add("http://other.example/a", PAGE, {"sku": "1", "text": TEXT, "price": value(6)}).is_duplicate
