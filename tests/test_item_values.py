"""What an item has in any type, at any depth, in any size and in any characters is compared before it is dropped."""

from __future__ import annotations

import time
from decimal import Decimal
from enum import Enum
from typing import Any

import pytest
from local_site import Answer
from prose import article, story

from dedup_middleware import Deduplicator
from dedup_middleware.checks.items import item_values

STORY = story(1)
PAGE = article("Story", STORY)
TEXT = " ".join(STORY)


class Size(Enum):
    SMALL = "small"
    LARGE = "large"


def second(value: Any, other: Any) -> str:
    """Return the reason for which the item of the same text with the *other* value is kept; empty if it is dropped."""
    with Deduplicator("memory:") as dedup:
        dedup.add("http://site.example/a", PAGE, item={"text": TEXT, "field": value})
        checked = dedup.add("http://site.example/b", PAGE, item={"text": TEXT, "field": other})
    return "" if checked.is_duplicate else checked.reason


@pytest.mark.parametrize(
    ("value", "other"),
    [
        ({"red"}, {"blue"}),
        (frozenset({"red"}), frozenset({"blue"})),
        (Size.SMALL, Size.LARGE),
        ({"wifi": True}, {"pool": True}),
        ({"from": "Paris", "to": "Rome"}, {"from": "Rome", "to": "Paris"}),
        ("\ue001\ue002", "\ue003\ue004"),
    ],
)
def test_another_value_keeps_an_item_whatever_its_type(value, other) -> None:
    assert second(value, other) == "item_field_differs"
    assert second(value, value) == ""


def test_sets_have_one_order() -> None:
    names = [f"name {number}" for number in range(9)]
    assert item_values({"names": {*names}}) == [("names", name) for name in names]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (Decimal("1E+99999999"), "item_field_differs"),
        (10**5000, "unreadable_item"),
        ({10**5000: 1}, "unreadable_item"),
        (list(range(50_000)), "too_many_clauses"),
    ],
    ids=["a long number", "too long a number", "too long a name", "many numbers"],
)
def test_no_value_takes_long(value, reason) -> None:
    start = time.process_time()
    assert second(1, value) == reason
    assert time.process_time() - start < 2


def test_what_a_page_shows_of_many_values_is_looked_up_in_its_time() -> None:
    page = article("Story", [*STORY, "end " * 100_000])
    with Deduplicator("memory:") as dedup:
        dedup.add("http://site.example/a", page, item={"text": TEXT})
        checked = dedup.add("http://site.example/b", page, item={"text": TEXT, "n": [f"n{n}" for n in range(19_000)]})
    assert checked.reason == "too_slow"


LINES = [
    ("It had -5 degrees in the valley all day long.", "It had 5 degrees in the valley all day long."),
    ("It had \u20135 degrees in the valley all day long.", "It had 5 degrees in the valley all day long."),
    ("He said \ue001\ue002 and left for the hills again.", "He said \ue003\ue004 and left for the hills again."),
    ("He said \ufffd\ufffd and left for the hills again.", "He said \ufffd and left for the hills again."),
]


@pytest.mark.parametrize("lines", [*LINES, *(line[::-1] for line in LINES)])
def test_a_sign_and_a_character_of_a_font_of_its_own_keep_a_page(lines) -> None:
    here, there = (article("Story", [*STORY[:3], line, *STORY[3:]]) for line in lines)
    with Deduplicator("memory:") as dedup:
        assert dedup.add("http://site.example/a", here).verdict == "new"
        assert dedup.add("http://site.example/b", there).verdict == "related"


def test_stories_in_another_charset_than_their_sites_say_are_kept(site, crawl) -> None:
    """Only what is in English can be read of them, and that they share."""
    russian = ["Городской совет решил восстановить старый склад.", "Учителя написали о закрытии школьной библиотеки."]
    urls = []
    for number, told in enumerate(russian):
        page = article("News", [told * 6, *STORY[:2]]).replace("<meta charset='utf-8'>", "")
        urls.append(site.add(f"/{number}", Answer(page.encode("cp1251")), host=number))
    outcome = crawl("sample_spiders.Steps", steps=[{"url": url} for url in urls])
    assert sorted(outcome.kept) == urls
    assert {record["reason"] for record in outcome.records} == {"no_charset"}
