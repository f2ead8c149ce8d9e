"""Two items of one page are one item if they differ in nothing but what comes from their fetch."""

import os
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from decimal import Decimal

import pytest

from dedup_middleware.index import item_codec
from dedup_middleware.index.dropped_items import DroppedItem
from dedup_middleware.items.same_item import FetchedItem

URL = "http://example.org/story/7?page=2"
NOW = datetime.now(timezone.utc).replace(second=17)
WEEK = timedelta(days=7)


def dropped(item, *, days=7, spider="news"):
    """Return *item* as it was dropped *days* ago."""
    return DroppedItem(
        number=1,
        original=2,
        spider=spider,
        crawl="crawl",
        jobdir="",
        for_feed=False,
        time=(NOW - timedelta(days=days)).isoformat(timespec="milliseconds"),
        url=URL,
        original_url="http://example.org/first",
        score=1.0,
        type="builtins:dict",
        data=item_codec.encode(item),
    )


def same(item, *before, named=()):
    """Return which of the items *before*, dropped a week ago, is the same as *item*, dropped now."""
    fetched = FetchedItem(item_codec.encode(item), URL, "news", named)
    earlier = [each if isinstance(each, DroppedItem) else dropped(each) for each in before]
    found = fetched.nearest(earlier)
    if found is not None:
        # What is stored together is all that is looked at.
        assert FetchedItem(found.data, URL, "news", named).key == fetched.key
    return next((number for number, each in enumerate(earlier) if each is found), None)


@pytest.mark.parametrize(
    ("field", "now", "then"),
    [
        ("scraped_at", NOW.isoformat(), (NOW - WEEK).isoformat()),
        ("scraped", "today", "today"),
        ("crawl_id", 18, 17),
        ("when", NOW, NOW - WEEK),
        ("ts", NOW.timestamp(), (NOW - WEEK).timestamp()),
        ("id", 18, 17),
        ("session", "5f0c6d0a-3c2e-4a5b-9d3e-0123456789ab", "aa0c6d0a-3c2e-4a5b-9d3e-0123456789cd"),
        ("views", "1204", "1187"),
        ("meta", {"deep": [{"fetched_at": "2026-11-02"}]}, {"deep": [{"fetched_at": "2026-10-02"}]}),
    ],
    ids=lambda value: value if isinstance(value, str) and value.isidentifier() else "",
)
def test_what_comes_from_the_fetch_does_not_make_another_item(field, now, then):
    assert same({"title": "Story", field: now}, {"title": "Story", field: then}) == 0


@pytest.mark.parametrize(
    ("field", "now", "then"),
    [
        ("price", 12.5, 12.0),
        ("price", Decimal("12.50"), Decimal("12.5")),
        ("price", 1, True),
        ("price", None, 1),
        ("text", "It rained.", "It snowed."),
        ("when", datetime(2025, 5, 5, 18, 0, 1), datetime(2025, 6, 12, 18, 0, 1)),  # noqa: DTZ001
        ("starts", NOW + WEEK, NOW),
        ("image_url", "http://example.org/1.jpg", "http://example.org/2.jpg"),
        ("url", "http://example.org/story/7?photo=1", "http://example.org/story/7?photo=2"),
        ("file", b"1", b"2"),
        ("tags", ["a", "b"], ["ab"]),
        ("tags", ["a", "b"], ("a", "b")),
        ("tags", {"a": "b"}, {"b": "a"}),
        ("scraped_from", "the archive", "the site"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.isidentifier() else "",
)
def test_what_differs_otherwise_is_another_item(field, now, then):
    assert same({"title": "Story", field: now}, {"title": "Story", field: then}) is None
    assert same({"title": "Story", field: now}, {"title": "Story"}) is None


@pytest.mark.parametrize(
    ("now", "then"), [("18", "17"), ({"id": 18}, {"id": 17}), ([{"ids": [18]}], [{"ids": [17]}]), (None, "17")], ids=str
)
def test_each_value_of_a_named_field_makes_another_item(now, then):
    items = {"title": "Story", "rank": now, "id": 2}, {"title": "Story", "rank": then, "id": 1}
    keys = {FetchedItem(item_codec.encode(item), URL, "news", ("title", "rank")).key for item in items}
    assert len(keys) == 2
    assert same(*items, named=("title", "rank")) is None
    # Others than those count as before.
    assert same(items[0], {**items[1], "rank": now}, named=("title", "rank")) == 0


def test_a_fetch_on_a_full_minute_is_a_fetch_like_any(monkeypatch):
    now = NOW.replace(second=0, microsecond=0)
    monkeypatch.setattr("dedup_middleware.items.same_item.time.time", now.timestamp)
    assert same({"title": "Story", "when": now}, {"title": "Story", "when": NOW - WEEK}) == 0
    assert same({"title": "Story", "ts": now.timestamp()}, {"title": "Story", "ts": (NOW - WEEK).timestamp()}) == 0


def test_a_date_that_stays_may_have_been_new_then():
    """Written within two days, a date looks like a clock's reading; a week later it does not."""
    published = NOW - WEEK
    assert (
        same(
            {"published": published.isoformat(), "ts": NOW.isoformat()},
            {"published": published.isoformat(), "ts": (NOW - WEEK).isoformat()},
        )
        == 0
    )
    # Another date is another item.
    assert (
        same({"published": (published + timedelta(days=1)).isoformat()}, {"published": published.isoformat()}) is None
    )


def test_of_several_the_most_alike_is_the_same():
    rows = [{"id": number, "scraped_at": f"2026-11-0{number}"} for number in (1, 2, 3)]
    for number, row in enumerate(rows):
        assert same({**row, "scraped_at": "2026-11-26"}, *rows) == number
    # None of these is.
    assert same({**rows[0], "name": "x"}, *rows) is None


def test_the_item_of_another_spider_is_another():
    """The next crawl of that spider releases it."""
    item = {"title": "Story"}
    assert same(item, dropped(item, spider="shop"), dropped(item)) == 1
    keys = [FetchedItem(item_codec.encode(item), URL, spider).key for spider in ("news", "shop")]
    assert keys[0] != keys[1]


@pytest.mark.parametrize("value", ["{'a', 'b', 'c', 'd', 'e'}", "{frozenset('abcde'), frozenset('fghij')}"])
def test_a_set_is_the_same_in_each_process(value):
    """Python orders its texts by a hash that is random in each process."""
    line = (
        "from dedup_middleware.index import item_codec; import sys; "
        f"value = {value}; sys.stdout.write(repr(value) + '|' + item_codec.encode(value).decode())"
    )
    orders, stored = set(), set()
    for seed in range(4):
        environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
        run = subprocess.run([sys.executable, "-c", line], env=environment, capture_output=True, check=True, text=True)
        order, _, data = run.stdout.partition("|")
        orders.add(order)
        stored.add(data)
    assert len(orders) > 1
    assert len(stored) == 1
