"""The quarantine: what is dropped is kept, as it was, within its bound, whatever happens."""

from __future__ import annotations

import math
import sqlite3
import stat
from collections import namedtuple
from contextlib import suppress
from dataclasses import asdict, make_dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from http import HTTPStatus
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_spiders_quarantine import KINDS, AttrsStory, DataStory, Genre, ModelStory, ScrapyStory

from dedup_middleware.delivery.item_codec import UnkeepableError, decode, encode
from dedup_middleware.delivery.quarantine import Quarantine
from dedup_middleware.errors import QuarantineError

DESCRIBED = {
    "spider": "s",
    "run": "r1",
    "url": "http://a/1",
    "host": "a",
    "owner_url": "http://b/1",
    "score": 0.9,
    "identity": b"i" * 16,
}

# --- the codec

texts = st.text(st.characters(codec=None), max_size=20)
zones = st.sampled_from(
    [None, timezone.utc, timezone(timedelta(hours=5, minutes=45), "NPT"), ZoneInfo("Asia/Shanghai")]
)
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(2**200), 2**200)
    | st.floats()
    | texts
    | st.binary(max_size=20)
    | st.datetimes(timezones=zones, allow_imaginary=False)
    | st.dates()
    | st.times()
    | st.timedeltas()
    | st.decimals().filter(lambda d: not d.is_snan())
    | st.uuids()
    | st.sampled_from([*Genre, HTTPStatus.GONE])
    | st.from_regex(r"[a-z/.]{0,9}", fullmatch=True).map(Path)
)
hashables = scalars | st.tuples(scalars, scalars) | st.frozensets(scalars, max_size=3)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.sets(hashables, max_size=3)
        | st.frozensets(hashables, max_size=3)
        | st.dictionaries(texts, inner, max_size=3)
        | st.dictionaries(hashables, inner, max_size=3)
        | inner.map(lambda value: DataStory("u", "t", value))
        | inner.map(lambda value: ModelStory(url="u", title="t", extra=value))
    ),
    max_leaves=8,
)


def told(value):  # noqa: PLR0911 - a kind of values each
    """Return what makes *value* what it is, not-a-numbers and time zones included."""
    kind = type(value)
    if kind in (list, tuple):
        return kind, [told(each) for each in value]
    if kind in (set, frozenset):
        return kind, sorted(repr(told(each)) for each in value)
    if kind is dict:
        return kind, [(told(key), told(each)) for key, each in value.items()]
    if kind in (datetime, time):
        return kind, repr(value), value.fold
    if kind is Decimal or (kind is float and (math.isnan(value) or value == 0)):
        return kind, str(value)
    if kind is ModelStory:
        return kind, told(value.__getstate__())
    if kind in (DataStory, AttrsStory):
        return kind, told({name: getattr(value, name) for name in ("url", "title", "extra")})
    return kind, told(dict(value)) if kind is ScrapyStory else value


@given(values)
def test_what_is_decoded_is_what_was_encoded(value):
    assert told(decode(encode(value).data)) == told(value)


@given(st.sampled_from(KINDS), values)
def test_an_item_comes_back_as_one_of_its_class(kind, value):
    item = kind(url="http://a/", title="T", extra=value)
    assert told(decode(encode(item).data)) == told(item)


class Text(str):
    __slots__ = ()


def test_a_text_that_knows_where_it_is_from_is_a_text():
    assert type(decode(encode({"title": Text("T")}).data)["title"]) is str


def nested(levels):
    value = []
    for _ in range(levels):
        value = [value]
    return value


class Unreadable(DataStory):
    def __getattribute__(self, name):
        if name == "url":
            raise RuntimeError
        return super().__getattribute__(name)


@pytest.mark.parametrize(
    ("item", "field", "stored"),
    [
        ({"when": date, "title": ""}, "when", {"title": ""}),
        ({"a": {"b": object()}, "c": 1}, "a", {"c": 1}),
        ({"deep": nested(100_000), "c": 1}, "deep", {"c": 1}),
        (ScrapyStory(url="u", extra=complex(1, 2)), "extra", ScrapyStory(url="u")),
        (DataStory("u", "t", namedtuple("Point", "x")(1)), "extra", DataStory("u", "t")),  # noqa: PYI024 - no tuple
        (DataStory("u", object()), "title", DataStory("u", None)),
        (AttrsStory(object(), "t"), "url", AttrsStory(None, "t")),
    ],
)
def test_a_field_that_would_not_come_back_is_left_out(item, field, stored):
    data, left_out = encode(item)
    assert list(left_out) == [field]
    assert decode(data) == stored


def test_a_field_of_a_model_that_would_not_come_back_is_left_out():
    data, left_out = encode(ModelStory(url="u", title="t", extra=complex(1, 2)))
    assert left_out == {"extra": complex}
    assert "url='u'" in repr(decode(data))


def test_an_item_of_a_class_that_would_not_come_back_is_refused():
    with pytest.raises(UnkeepableError):
        encode(Unreadable("u", "t"))


def test_an_item_of_a_class_that_is_gone_is_a_dict():
    Gone = make_dataclass("Gone", ["url", "mood"])  # noqa: N806 - a class
    Mood = Enum("Mood", ["FINE"], module=__name__)  # noqa: N806 - a class
    assert decode(encode(Gone("http://a/", Mood.FINE)).data) == {"url": "http://a/", "mood": 1}


def test_a_name_is_imported_only_as_a_class_of_items():
    for name in ("os:system", "subprocess:Popen", "nowhere:Class", ":", "pathlib:Path"):
        for family in ("scrapy", "dataclass", "attrs"):
            assert decode(f'{{"{family}":["{name}",{{"args":1}}]}}'.encode()) == {"args": 1}
        assert decode(f'{{"enum":["{name}",1]}}'.encode()) == 1


@given(st.binary(max_size=60) | st.from_regex(rb'\{"(dict|pairs|enum|scrapy|pydantic|tuple|int|datetime)":.{0,20}\}'))
def test_what_was_never_encoded_is_a_value_error_or_a_value(data):
    with suppress(ValueError):
        decode(data)


# --- the file


@pytest.fixture
def path(tmp_path):
    return tmp_path / "log.quarantine"


def test_items_come_back_in_the_order_in_which_they_were_dropped(path):
    with Quarantine(path, bound=10**6) as quarantine:
        for number in range(250):
            quarantine.keep(**DESCRIBED, item={"n": number})
    with Quarantine.existing(path) as quarantine:
        assert [kept.item["n"] for kept in quarantine] == [*range(250)]
        first = next(iter(quarantine))
        assert len(quarantine) == 250
    assert asdict(first) == {**DESCRIBED, "number": 1, "time": first.time, "type": "builtins:dict", "item": {"n": 0}}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@settings(deadline=None, max_examples=40)
@given(
    bound=st.integers(20_000, 200_000),
    lengths=st.lists(st.integers(0, 60_000) | st.integers(0, 300), min_size=1, max_size=60),
)
def test_the_file_exceeds_its_bound_by_no_more_than_an_item(bound, lengths):
    with TemporaryDirectory() as folder, Quarantine(Path(folder, "q"), bound=bound) as quarantine:
        for number, length in enumerate(lengths):
            item = {"n": number, "text": Random(number).randbytes(length)}
            quarantine.keep(**DESCRIBED, item=item)
            assert quarantine.path.stat().st_size <= bound + 4 / 3 * max(lengths[: number + 1]) + 4 * 4096
        kept = [each.item["n"] for each in quarantine]
        assert kept == [*range(kept[0], len(lengths))]  # the newest


def test_a_smaller_bound_gives_its_room_back(path):
    with Quarantine(path, bound=10**7) as quarantine:
        for number in range(100):
            quarantine.keep(**DESCRIBED, item={"n": number, "text": Random(number).randbytes(9000)})
        assert quarantine.size > 500_000
    with Quarantine(path, bound=200_000) as quarantine:
        assert path.stat().st_size <= 200_000
        assert [each.item["n"] for each in quarantine][-1] == 99


def test_what_is_too_old_goes(path):
    with Quarantine(path, bound=10**6) as quarantine:
        quarantine.keep(**DESCRIBED, item={"n": 0})
        quarantine.keep(**DESCRIBED, item={"n": 1})
    database = sqlite3.connect(path)
    database.execute("UPDATE items SET time = '2020-01-01T00:00:00.000+00:00' WHERE number = 1")
    database.commit()
    database.close()
    with Quarantine(path, bound=10**6, age=timedelta(days=90)) as quarantine:
        assert [each.item["n"] for each in quarantine] == [1]
    with Quarantine(path, bound=10**6, age=timedelta(microseconds=1)) as quarantine:
        assert len(quarantine) == 0


def test_two_processes_may_share_a_file(path):
    with Quarantine(path, bound=10**6) as one, Quarantine(path, bound=10**6) as other:
        for number in range(20):
            (one, other)[number % 2].keep(**DESCRIBED, item={"n": number})
        reading = iter(one)  # a reader that is slow
        next(reading)
        other.keep(**DESCRIBED, item={"n": 20})
        assert len(one) == len(other) == 21


@pytest.mark.parametrize("content", [b"garbage" * 1000, b"SQLite format 3\0" + b"x" * 5000])
def test_what_is_no_quarantine_is_left_alone(path, content):
    path.write_bytes(content)
    with pytest.raises(QuarantineError, match="damaged, or is something else"):
        Quarantine(path, bound=10**6)
    assert path.read_bytes() == content


def test_the_database_of_another_program_is_left_alone(path):
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE theirs (x)")
    database.close()
    with pytest.raises(QuarantineError, match="belongs to another program"):
        Quarantine(path, bound=10**6)


def test_a_damaged_item_is_named(path):
    with Quarantine(path, bound=10**6) as quarantine:
        quarantine.keep(**DESCRIBED, item={})
        quarantine._database.execute("UPDATE items SET value = x'00'")
        with pytest.raises(QuarantineError, match=r"item 1 of the quarantine .* is damaged"):
            list(quarantine)
