"""What an item has in any type, at any depth, in any size and in any characters is compared before it is dropped."""

import time
from collections import OrderedDict
from datetime import date, datetime, timedelta, timezone
from datetime import time as clock
from decimal import Decimal
from email.utils import format_datetime
from enum import Enum, IntEnum
from hashlib import sha256
from uuid import UUID, uuid4
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from library import verdicts
from local_site import Answer
from prose import article, story

from dedup_middleware import Deduplicator
from dedup_middleware.common.values import VALUES
from dedup_middleware.index import item_codec
from dedup_middleware.items.item_values import item_values

STORY = story(1)
PAGE = article("Story", STORY)
TEXT = " ".join(STORY)


class Size(Enum):
    SMALL = "small"
    LARGE = "large"


def item(value):
    return {"text": TEXT, "field": value}


def second(value, other):
    """Return the record of the item of the same text with the *other* value."""
    with Deduplicator("memory:") as dedup:
        dedup.add("http://site.example/a", PAGE, item=item(value))
        return dedup.add("http://site.example/b", PAGE, item=item(other))


@pytest.mark.parametrize(
    ("value", "other"),
    [
        ({"red"}, {"blue"}),
        (frozenset({"red"}), frozenset({"blue"})),
        (Size.SMALL, Size.LARGE),
        ({"wifi": True}, {"pool": True}),
        ({"from": "Paris", "to": "Rome"}, {"from": "Rome", "to": "Paris"}),
        ("\ue001\ue002", "\ue003\ue004"),
        (timedelta(minutes=90), timedelta(minutes=60)),
        (b"\xff\x00one", b"\xff\x00two"),
    ],
)
def test_another_value_keeps_an_item_whatever_its_type(value, other):
    assert second(value, other).reason == "item_field_differs"
    assert second(value, value).is_duplicate


@pytest.mark.parametrize(
    ("value", "other"), [("2026-03-04T10:45", "2026-03-05T10:45"), (9.5, 12.5), ("C++", "C#"), ("€ 3.50", "€ 4.50")]
)
def test_the_record_shows_the_value_as_the_item_has_it(value, other):
    assert second(value, other).difference == [f"field: {other}"]


@pytest.mark.parametrize(
    ("value", "other"),
    [
        ("<b>red</b> wine", "<b>blue</b> wine"),
        ("Mill 7.12, Quay 7.31, Pier 7.40, " * 9, "Mill 8.12, Quay 8.31, Pier 8.40, " * 9),
    ],
    ids=["short markup", "a long text of short clauses"],
)
def test_a_value_that_is_too_little_for_a_text_is_compared_as_it_is(value, other):
    with Deduplicator("memory:") as dedup:
        dedup.add("http://site.example/a", PAGE, item={"field": value})
        assert not dedup.check("http://site.example/b", PAGE, item={"field": other}).is_duplicate
        assert dedup.check("http://site.example/b", PAGE, item={"field": value}).is_duplicate


@pytest.mark.parametrize(("value", "other"), [("👍", "👎"), ("★★", "✗"), ("red", "blue")])
def test_a_value_that_no_page_shows_counts_across_sites(value, other):
    """Not even where it is a part of a word of the URL."""
    urls = "http://blues.example/shared", "http://reds.example/bluebell"
    assert verdicts(*zip(urls, (PAGE, PAGE), map(item, (value, other)), strict=True))[1] != "duplicate"


@pytest.mark.parametrize(("value", "other"), [("red", "blue"), ("A+", "A"), ("A", "A+")])
def test_words_that_two_urls_of_one_page_have_name_no_view(value, other):
    urls = [f"http://site.example/a/red/blue/1{query}" for query in ("", "?v=2")]
    assert verdicts(*zip(urls, (PAGE, PAGE), map(item, (value, other)), strict=True))[1] != "duplicate"


def test_the_bytes_of_a_page_are_its_text():
    with Deduplicator("memory:") as dedup:
        for host in ("one", "two"):
            html = PAGE.replace("<nav>", f"<nav><a href=/{host}>{host}</a>")
            last = dedup.add(f"http://{host}.example/", html, item={"body": html.encode()})
    assert last.is_duplicate


#: Values of each type that is read: each is stored, too.
SAMPLES = {
    type(None): st.none(),
    bool: st.booleans(),
    int: st.integers() | st.integers(2**62, 2**66) | st.integers(-(2**66), -(2**62)),
    float: st.floats(allow_nan=False),
    str: st.text() | st.text(st.characters(codec=None)),
    bytes: st.binary(),
    datetime: st.datetimes(timezones=st.none() | st.just(timezone.utc) | st.just(ZoneInfo("Asia/Shanghai"))),
    date: st.dates(),
    clock: st.times(),
    timedelta: st.timedeltas(),
    Decimal: st.decimals(allow_nan=False),
    UUID: st.uuids(),
}
plain = st.one_of(*SAMPLES.values()).filter(lambda value: not getattr(value, "fold", 0))
keys = st.recursive(plain, lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3), max_leaves=4)
anything = st.recursive(
    plain,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.sets(keys, max_size=3)
        | st.frozensets(keys, max_size=3)
        | st.dictionaries(keys, inner, max_size=3)
    ),
    max_leaves=8,
)


def same(one, other):
    """Return whether both are equal, and of the same types throughout."""
    if type(one) is not type(other) or one != other:
        return False
    if isinstance(one, dict):
        return same([*one.items()], [*other.items()])
    if isinstance(one, (list, tuple)):
        return all(map(same, one, other))
    if isinstance(one, (set, frozenset)):
        return all(any(same(each, another) for another in other) for each in one)
    return str(one) == str(other)


@given(anything)
def test_what_is_read_of_an_item_is_stored_and_comes_back_as_it_was(value):
    assert same(item_codec.decode(item_codec.encode({"field": value})), {"field": value})


@given(plain.filter(lambda value: value is not None))
def test_what_is_stored_of_an_item_is_read(value):
    assert {*SAMPLES, list, tuple, set, frozenset, dict} == VALUES.keys()
    for held in (value, [value], (value,), {value}, frozenset({value}), {"of": value}):
        ((_, text),) = item_values({"field": held})
        assert text == value or isinstance(value, bytes) or text == str(value)


class Text(str):
    """As the texts that lxml finds."""

    __slots__ = ()


class Number(int):
    pass


class Moment(datetime):
    pass


class Level(IntEnum):
    HIGH = 3


class Colour(str, Enum):
    RED = "red"


@pytest.mark.parametrize(
    ("value", "text", "stored"),
    [
        (Text("red"), "red", "red"),
        (Number(3), 3, None),
        (Moment(2025, 5, 5), "2025-05-05 00:00:00", None),
        (OrderedDict(a="red"), "red", None),
        (Size.SMALL, "small", Size.SMALL),
        (Level.HIGH, 3, Level.HIGH),
        (Colour.RED, "red", Colour.RED),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_of_a_subclass_is_read_alike_and_kept_if_it_would_come_back_as_another(value, text, stored):
    item_codec.PROJECT.give([Size])
    assert [*dict(item_values({"field": value})).values()] == [text]
    if stored is None:
        with pytest.raises(item_codec.NotStorableError):
            item_codec.encode(value)
    else:
        assert same(item_codec.decode(item_codec.encode(value)), stored)


def test_one_object_at_two_places_of_a_value_is_read_at_both():
    """A spider may name one list of sizes twice; another item, with another list in its second place, is another."""
    sizes = ["S", "M"]
    assert second({"sizes": sizes, "sold": ["S"]}, {"sizes": sizes, "sold": sizes}).reason == "item_field_differs"


def test_an_item_that_contains_itself_is_kept():
    endless = ["red"]
    endless += [endless, endless]
    assert second(["red"], endless).reason == "unreadable_item"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (Decimal("1E+99999999"), "item_field_differs"),
        (10**5000, "unreadable_item"),
        ({10**5000: 1}, "unreadable_item"),
        (list(range(50_000)), "too_many_clauses"),
        ([f"n{n}" for n in range(19_000)], "item_field_differs"),
        (["9" * 48] * 19_000, "item_field_differs"),
    ],
    ids=["a long number", "too long a number", "too long a name", "many numbers", "many values", "many long numbers"],
)
def test_no_value_takes_long(value, reason):
    start = time.process_time()
    assert second(1, value).reason == reason
    assert time.process_time() - start < 2


def content(field, values, *, paths=("/a", "/b", "/c", "/d")):
    """Return those of the *values* that keep the item of a page with one text, each under *field*."""
    kept = []
    with Deduplicator("memory:") as dedup:
        for path, value in zip(paths, values, strict=False):
            item = {"text": TEXT, field: value}
            if not dedup.add(f"http://site.example{path}", PAGE, item=item).is_duplicate:
                kept.append(value)
    return kept


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("price", ["1299.00", "1450.00"]),
        ("price", [1299, 1450.5, Decimal("1299.95")]),
        ("rating", [3, 5]),
        ("stars", [60 / 20, 90 / 20]),
        ("when", [date(2025, 5, 5), date(2025, 6, 12)]),
        ("when", ["2025-05-05", "2025-06-12"]),
        ("when", [datetime(2025, 5, 5, 18, 0, 1), datetime(2025, 6, 12, 18, 0, 1)]),  # noqa: DTZ001
        ("opens", [clock(9, 30), clock(10, 0)]),
        ("geo", [{"lat": 52.51, "lng": 13.4}, {"lat": 48.13, "lng": 11.57}]),
        ("phone", ["tel:+4930055512", "tel:+4930155512"]),
        ("year", ["2023", "2024"]),
        ("address", ["Mill Road 12, Rome", "Quay Street 7, Oslo"]),
        ("room", ["１２", "１３"]),
        ("width", ["3½", "4½"]),
        ("position", ["Grade 7 welder", "Grade 8 welder"]),
        ("rank", ["2nd lieutenant", "1st lieutenant"]),
        ("iban", ["DE89370400440532013000", "DE02120300000000202051"]),
        ("isbn", ["9780306406157", "9783161484100"]),
        ("download_size", ["12 MB", "15 MB"]),
        ("digits", ["31415926535897932384626433832795", "27182818284590452353602874713526"]),
        ("city_id", [17, 18]),
        # Unless its name shows that a field is a key, doubt keeps.
        ("reference", ["row-1x", "row-2x"]),
        ("salary", [31000, "30,500", "29900 €"]),
        ("props", [{"mileage": 120_000}, {"mileage": 15_750}]),
    ],
)
def test_a_value_that_differs_keeps_an_item_wherever_the_spider_has_it_from(field, values):
    """No page shows one of them."""
    assert content(field, [*values, values[-1]], paths=["/report/2023", "/report/2024", "/x", "/y"]) == values


NOW = datetime.now(timezone.utc).replace(second=17)


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("id", ["row-1x", "row-2x"]),
        ("_id", [10**14, 10**14 + 1]),
        ("uid", [uuid4(), uuid4()]),
        ("record", [str(uuid4()), str(uuid4())]),
        ("digest", [sha256(b"1").hexdigest(), sha256(b"2").hexdigest()]),
        ("rank", [1, 2]),
        ("chars", [15_112, 15_370]),
        ("position", ["1", "2"]),
        ("path", ["/a", "/b"]),
        ("scraped_at", ["2025-05-05", "2025-06-12"]),
        ("download_latency", [0.173, 0.221]),
        *(
            ("at", [written(NOW - timedelta(hours=hours)) for hours in (9, 2)])
            for written in (
                lambda moment: moment,
                datetime.isoformat,
                lambda moment: moment.replace(tzinfo=None),
                lambda moment: f"{moment:%Y-%m-%d %H:%M:%S}",
                lambda moment: f"{moment:%Y-%m-%dT%H:%M:%S.%fZ}",
                lambda moment: f"{moment:%Y-%m-%d %H:%M:%S.%f}+00",
                lambda moment: f"{moment:%Y%m%d%H%M%S}",
                lambda moment: f"{moment:%Y%m%dT%H%M%SZ}",
                lambda moment: f"{moment:%d.%m.%Y %H:%M:%S}",
                lambda moment: f"{moment:%d/%m/%Y, %H:%M:%S}",
                lambda moment: f"{moment:%m/%d/%Y %I:%M:%S %p}",
                format_datetime,
                datetime.ctime,
                datetime.timestamp,
                lambda moment: int(moment.timestamp()),
                lambda moment: int(moment.timestamp() * 1000),
            )
        ),
    ],
)
def test_a_value_that_comes_from_the_fetch_keeps_no_item(field, values):
    assert content(field, values) == values[:1]


def test_a_moment_that_may_have_been_planned_keeps_an_item():
    evening = NOW.replace(hour=18, minute=0, second=0, microsecond=0)
    values = [evening - timedelta(days=1), evening, evening + timedelta(days=1), NOW + timedelta(days=2)]
    assert content("begins", values) == values
    assert content("published", [f"{day:%Y-%m-%d}" for day in values[:2]]) == [f"{day:%Y-%m-%d}" for day in values[:2]]


LINES = [
    ("It had -5 degrees in the valley all day long.", "It had 5 degrees in the valley all day long."),
    ("It had \u20135 degrees in the valley all day long.", "It had 5 degrees in the valley all day long."),
    ("He said \ue001\ue002 and left for the hills again.", "He said \ue003\ue004 and left for the hills again."),
    ("He said \ufffd\ufffd and left for the hills again.", "He said \ufffd and left for the hills again."),
]


@pytest.mark.parametrize("lines", [*LINES, *(line[::-1] for line in LINES)])
def test_a_sign_and_a_character_of_a_font_of_its_own_keep_a_page(lines):
    here, there = (article("Story", [*STORY[:3], line, *STORY[3:]]) for line in lines)
    assert verdicts(("http://site.example/a", here), ("http://site.example/b", there)) == ["new", "related"]


def test_stories_in_another_charset_than_their_sites_say_are_kept(site, crawl):
    """Only what is in English can be read of them, and that they share."""
    russian = ["Городской совет решил восстановить старый склад.", "Учителя написали о закрытии школьной библиотеки."]
    urls = []
    for number, told in enumerate(russian):
        page = article("News", [told * 6, *STORY[:2]]).replace("<meta charset='utf-8'>", "")
        urls.append(site.add(f"/{number}", Answer(page.encode("cp1251")), host=number))
    outcome = crawl("sample_spiders.Steps", steps=[{"url": url} for url in urls])
    assert sorted(outcome.kept) == urls
    assert {record["reason"] for record in outcome.records} == {"no_charset"}
