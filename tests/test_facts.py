"""Facts around a text: numbers with their unit, currency or label; dates, times and counters are not facts."""

import datetime as dt
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_middleware.extraction.features import MAX_FACTS_LENGTH, all_facts, facts_of, facts_of_data


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("Price: 19.90 EUR", ["19.90 eur"]),
        ("$1,299.00", ["$1299.00 "]),
        ("$-5", ["$-5 "]),
        ("Temperature -4 °C", ["-4 °"]),
        ("250 g flour, 2 eggs", ["250 g flour", "2 eggs"]),
        ("½ cup", ["1⁄2 cup"]),
        ("Serial number: 4410087", ["number 4410087"]),
        ("4410087", ["4410087"]),
        ("12", []),
        ("价格：128元", ["128 元"]),
        ("Ｒｏｏｍ ４０１", ["room 401"]),
        ("no number at all", []),
        ("", []),
    ],
)
def test_facts_of_a_text(text, facts):
    assert [*facts_of(text)] == facts


NO_FACTS = """
17 comments|21 views|3 hours ago|Comments: 12|阅读 1200|12条评论|5分钟前|120 Kommentare|5 May 2024|May 5, 2024|
Monday, 5 May|2024-05-01|2024-05-01T10:15|5/6/2024|01.02.2024|2024年5月1日|10:15|10:15:30|10:15 pm|4月1日|2024
"""


@pytest.mark.parametrize("text", NO_FACTS.replace("\n", "").split("|"))
def test_counters_dates_and_times_are_not_facts(text):
    assert [*facts_of(text)] == []


DATES = st.datetimes(dt.datetime(1950, 1, 1), dt.datetime(2049, 12, 31))  # noqa: DTZ001 - a page shows it
FORMATS = "%Y-%m-%d|%Y/%m/%d|%d.%m.%Y|%d %B %Y|%d %b %Y|%B %d, %Y|%A, %d %B|%Y年%m月%d日|%H:%M:%S"


@given(DATES, st.sampled_from(FORMATS.split("|")), st.sampled_from(["", "Published ", "Updated on ", "更新时间："]))
def test_dates_are_not_facts(date, form, before):
    assert [*facts_of(f"{before}{date.strftime(form)}")] == []


@given(
    st.integers(1, 9_999),
    st.integers(1, 9_999),
    st.sampled_from(["{} kg", "{} decibels", "{} marks", "{} marathons", "{} novels", "{} junipers", "€{}", "No {}"]),
)
def test_another_number_is_another_fact(one, other, form):
    years = range(1900, 2100)
    if one in years or other in years:
        return
    facts, others = (all_facts([form.format(number)]) for number in (one, other))
    assert facts
    assert (facts == others) == (one == other)


def test_what_exceeds_the_limit_counts_as_one_fact():
    lines = [f"Part {number}: {number} kg" for number in range(10, MAX_FACTS_LENGTH)]
    facts = all_facts(lines)
    assert len(facts) < MAX_FACTS_LENGTH
    assert facts == all_facts(lines)
    assert facts != all_facts([*lines, "5 kg more"])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=9), inner, max_size=5),
    max_leaves=20,
)


@given(JSON)
def test_any_data_has_facts(data):
    assert all(fact.startswith("data ") for fact in facts_of_data(data, 256))


def test_data_is_read_with_its_keys_and_without_identifiers():
    data = {
        "offers": [{"price": 19.0, "currency": "EUR"}, {"price": "24.90"}],
        "url": "http://one.example/1",
        "path": "a/b1.js",
        "date": "2024-05-01T10:00",
        "token": "826d9947ab",
        "at": 1714550400000,
        "isNew": True,
    }
    assert [*facts_of_data(json.loads(json.dumps(data)), 256)] == ["data price 19", "data price 24.90"]
    assert [*facts_of_data(data, 1)] == ["data price 19"]


def test_data_may_be_nested_deeply():
    nested = {"price": 5}
    for _ in range(100_000):
        nested = [nested]
    assert [*facts_of_data(nested, 256)] == ["data price 5"]
