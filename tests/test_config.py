"""Every bad setting is one line that says what, where and how to mend it."""

import re
from datetime import timedelta
from pathlib import Path

import pytest
from engines import need
from scrapy.settings import Settings

from dedup_middleware.common.urls import HostPattern
from dedup_middleware.errors import ConfigError
from dedup_middleware.model import Action, Scope
from dedup_middleware.plugin.feeds import read_config
from dedup_middleware.settings import SETTINGS, Config, PageOptions, unknown_settings
from dedup_middleware.stores import open_store, resolved_uri
from dedup_middleware.visits.page_reader import BodyDigests


def config(**values):
    return read_config(Settings(values), "spider")


class TestDefaults:
    def test_without_a_setting_a_crawl_drops_with_a_store_and_a_log_of_its_spider(self):
        made = config()
        assert (made.enabled, made.action, made.threshold, made.scope) == (True, Action.DROP, 0.8, Scope.STORE)
        assert made.store_is_default
        folder = made.place.folder("spider")
        assert made.store.partition(":")[2].startswith(f"{folder / 'store'}")
        assert made.log == folder / "log.jsonl"
        assert made.jobdir is None

    @pytest.mark.parametrize("scheme", ["rocksdb", "sqlite"])
    def test_a_store_of_another_kind_in_the_default_place_is_used(self, scheme, monkeypatch, tmp_path):
        need(scheme)
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
        monkeypatch.chdir(tmp_path)
        folder = config().place.folder("spider")
        assert folder.is_relative_to(tmp_path)
        open_store(f"{scheme}:{folder / 'store'}", fingerprint_scheme="x").close()
        assert config().store == f"{scheme}:{folder / 'store'}"

    def test_none_is_no_value(self):
        assert config(**dict.fromkeys(SETTINGS)) == config()

    def test_every_setting_has_a_field(self):
        assert {name.removeprefix("DEDUP_").lower() for name in SETTINGS} <= set(Config.__slots__)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DEDUP_THRESHOLD", 0.9),
        ("DEDUP_REWORDED", "drop"),
        ("DEDUP_ITEM_FIELDS", ["text"]),
        ("DEDUP_FINGERPRINT", "minhash"),
        ("DEDUP_EXTRACTOR", "trafilatura"),
    ],
)
def test_a_setting_that_decides_verdicts_lets_unchanged_pages_be_read_again(name, value):
    page, key = b"<p>The ferry is late.</p>", bytes(16)
    digest = BodyDigests(key, config())(page)
    assert BodyDigests(key, config(DEDUP_ACTION="tag"))(page) == digest
    assert BodyDigests(key, config(**{name: value}))(page) != digest


ADDRESSES = tuple(map(HostPattern, ("a.example", "127.0.0.1", "::1")))


class TestGoodValues:
    def test_a_value_is_taken_as_text_too(self):
        cases = [
            ("DEDUP_ENABLED", "0", "enabled", False),
            ("DEDUP_ENABLED", "false", "enabled", False),
            ("DEDUP_ENABLED", "True", "enabled", True),
            ("DEDUP_STORE", "sqlite:a b.db", "store", f"sqlite:{Path.cwd()}/a b.db"),
            ("DEDUP_LOG", "x/log", "log", Path("x/log")),
            ("DEDUP_LOG", Path("x/log"), "log", Path("x/log")),
            ("DEDUP_LOG", "", "log", None),
            ("DEDUP_ACTION", "dry-run", "action", Action.DRY_RUN),
            ("DEDUP_ACTION", Action.TAG, "action", Action.TAG),
            ("DEDUP_THRESHOLD", "0.9", "threshold", 0.9),
            ("DEDUP_THRESHOLD", 1, "threshold", 1.0),
            ("DEDUP_PRIORITY_ADJUST", "-5", "priority_adjust", -5),
            ("DEDUP_SCOPE", "crawl", "scope", Scope.CRAWL),
            ("DEDUP_SCOPE", "store", "scope", Scope.STORE),
            ("DEDUP_SCOPE", "auto", "scope", Scope.STORE),
            ("DEDUP_KEY", ["sku"], "key", {"": ("sku",)}),
            ("DEDUP_KEY", "sku, seller", "key", {"": ("sku", "seller")}),
            ("DEDUP_KEY", '{"shop.Offer": ["sku"]}', "key", {"shop.Offer": ("sku",)}),
            ("DEDUP_KEY", {"Offer": ["sku"], "dict": "id"}, "key", {"Offer": ("sku",), "dict": ("id",)}),
            ("DEDUP_KEY", [], "key", {}),
            ("DEDUP_ITEM_FIELDS", "title, text,", "item_fields", ("title", "text")),
            ("DEDUP_ITEM_FIELDS", ["title"], "item_fields", ("title",)),
            ("DEDUP_ITEM_FIELDS", '["title", "text"]', "item_fields", ("title", "text")),
            ("DEDUP_FINGERPRINT", "shingles:size=4", "fingerprint", "shingles:size=4"),
            ("DEDUP_EXTRACTOR", "weighted-dom", "extractor", "weighted-dom"),
            ("DEDUP_MAX_BYTES", 1e6, "max_bytes", 1_000_000),
            ("DEDUP_EXPIRE_AFTER", "1.5", "expire_after", timedelta(days=1.5)),
            ("DEDUP_EXPIRE_AFTER", "None", "expire_after", None),
            ("DEDUP_DROPPED_SIZE", "1.5gb", "dropped_size", 1_500_000_000),
            ("DEDUP_DROPPED_SIZE", "100 KB", "dropped_size", 100_000),
            ("DEDUP_DROPPED_SIZE", "0", "dropped_size", 0),
            ("DEDUP_DROPPED_AGE", "7", "dropped_age", timedelta(days=7)),
            ("DEDUP_PREFERRED", "News.example, b", "preferred", (HostPattern("news.example"), HostPattern("b"))),
            ("DEDUP_PREFERRED", "bücher.example", "preferred", (HostPattern("xn--bcher-kva.example"),)),
            ("DEDUP_PREFERRED", ["a.example.", "127.0.0.1", "[::1]"], "preferred", ADDRESSES),
            ("DEDUP_PREFERRED", "a.example:8080", "preferred", (HostPattern("a.example", 8080),)),
            ("DEDUP_PREFERRED", "", "preferred", ()),
            ("DEDUP_PREFERRED", "/(a|b){1,2}/", "preferred", (re.compile("/(a|b){1,2}/"),)),
            ("DEDUP_PREFERRED", "[ab]/story", "preferred", (re.compile("[ab]/story"),)),
            (
                "DEDUP_PREFERRED",
                '["/story/", "a.example"]',
                "preferred",
                (re.compile("/story/"), HostPattern("a.example")),
            ),
            ("DEDUP_PREFERRED", "https://a.example/", "preferred", (re.compile("https://a.example/"),)),
            ("DEDUP_REDACT_QUERY", "true", "redact_query", True),
            ("JOBDIR", "job", "jobdir", Path("job")),
        ]
        for name, value, field, expected in cases:
            assert getattr(config(**{name: value}), field) == expected, (name, value)


BAD = {
    "DEDUP_ENABLED": ["maybe", "", [1], float("inf")],
    "DEDUP_STORE": [
        "tarantool://:secret@db/0",
        "leveldb:",
        "sqlite://x",
        "memory:x",
        "a\nb:c",
        5,
        "a\0b",
        "sqlite:a\0b",
        "leveldb:\ud800",
    ],
    "DEDUP_LOG": [5, True, ["a"], b"log", "a\0b", "\ud800"],
    "DEDUP_ACTION": ["delete", "", 1, ["drop"]],
    "DEDUP_THRESHOLD": ["0.5", 0.3, 1.1, -1, "high", "nan", "inf", True, [0.8], 10**400],
    "DEDUP_REWORDED": ["yes", "", True],
    "DEDUP_PRIORITY_ADJUST": [1.5, "much", True, "inf", 10**400],
    "DEDUP_SCOPE": ["all", ""],
    "DEDUP_UNCHANGED": ["forget", "", True],
    "DEDUP_KEY": [5, {"Offer": []}, {1: ["sku"]}, ["sku", 5], True, '{"Offer": 5}', {"": ["a"], "x": None}],
    "DEDUP_ITEM_FIELDS": [5, {"title": 1}, ["title", 5], True, '["title"', '["title", 5]'],
    "DEDUP_FINGERPRINT": ["sim-hash", "", 1],
    "DEDUP_EXTRACTOR": ["readability", "", 1, ["weighted-dom"]],
    "DEDUP_MAX_BYTES": [0, "10 MB", -5],
    "DEDUP_DROPPED_SIZE": ["1KB", -1, "200", "much", "1..5MB", "999999999GB", True, []],
    "DEDUP_DROPPED_AGE": [0, -1, "long"],
    "DEDUP_EXPIRE_AFTER": [0, -1, "long", "inf", 10**12],
    "DEDUP_PREFERRED": [
        5,
        {"a": 1},
        ["a", 5],
        [re.compile("a")],
        ["a..b"],
        "a..b",
        ".example.org",
        ["-.", "a.", "."],
        "*.example.org",
        ["/story/", "["],
        "(",
        '["("]',
        "[1, 2",
        "a{99999999999}",
    ],
    "DEDUP_REDACT_QUERY": ["maybe", ""],
}


class TestBadValues:
    def test_the_names_of_fingerprints_are_in_the_error(self):
        with pytest.raises(ConfigError, match=r"clauses, .*simhash, .*minhash"):
            config(DEDUP_FINGERPRINT="simhsh")

    def test_every_setting_has_some(self):
        assert set(BAD) == set(SETTINGS)

    @pytest.mark.parametrize("name", BAD)
    def test_a_bad_value_is_one_line_with_setting_value_and_remedy(self, name):
        for value in BAD[name]:
            said = "tarantool:…" if "secret" in str(value) else repr(value)
            line = ""
            try:
                config(**{name: value})
            except ConfigError as error:
                line = str(error)
            assert line.startswith(name), (value, line)
            assert said in line
            assert len(line.splitlines()) == 1
            assert line.isprintable()
            assert any(remedy in line for remedy in (". Use ", ". Write ")), line
            assert "secret" not in line

    def test_a_store_in_memory_cannot_be_resumed(self):
        with pytest.raises(
            ConfigError, match=r"DEDUP_STORE = 'memory:' cannot be used with JOBDIR = 'job': .*\. Use a store on disk"
        ):
            config(DEDUP_STORE="memory:", JOBDIR="job")

    @pytest.mark.parametrize(
        ("store", "log"),
        [
            ("leveldb:one", "one"),
            ("leveldb:one", "one/log.jsonl"),
            ("leveldb:one/", "two/../one/db/log"),
            ("sqlite:one", Path("one")),
            ("sqlite:one", "one-wal"),
            ("sqlite:one", "two/../one.lock"),
        ],
    )
    def test_a_log_inside_the_store_is_refused(self, store, log):
        with pytest.raises(ConfigError) as raised:
            config(DEDUP_STORE=store, DEDUP_LOG=log)
        line = str(raised.value)
        assert line.startswith(
            f"DEDUP_LOG = {str(log)!r} is inside DEDUP_STORE = {resolved_uri(store)!r}. Use a path outside"
        )
        assert line.isprintable()

    @pytest.mark.parametrize(
        ("store", "log"),
        [
            ("leveldb:one", "one.log"),
            ("leveldb:one/store", "one/log"),
            ("sqlite:one", "one.jsonl"),
            ("memory:", "log"),
            ("sqlite:one", ""),
        ],
    )
    def test_a_log_beside_the_store_is_not(self, store, log):
        assert config(DEDUP_STORE=store, DEDUP_LOG=log).store == resolved_uri(store)

    def test_a_log_that_is_a_feed_is_refused(self, tmp_path):
        path = tmp_path / "out.jsonl"
        for uri in (str(path), path, f"file://{path}"):
            with pytest.raises(ConfigError, match=r"is also a feed\. Use a path of its own"):
                config(DEDUP_LOG=str(path), FEEDS={uri: {"format": "jsonlines"}})

    def test_a_misspelt_setting_is_told_with_the_nearest_one(self):
        lines = unknown_settings(Settings({"DEDUP_TRESHOLD": 1, "DEDUP_STORE": "memory:", "OTHER": 1}))
        assert lines == ["DEDUP_TRESHOLD is not a setting of dedup-middleware; did you mean DEDUP_THRESHOLD?"]

    @pytest.mark.parametrize("name", ["DEDUP_WAIT", "DEDUP_TIMEOUT", "DEDUP_FOO"])
    def test_no_other_setting_is_suggested_because_both_begin_alike(self, name):
        assert unknown_settings(Settings({name: 1})) == [f"{name} is not a setting of dedup-middleware"]


class Unspeakable:
    """What says nothing of itself but an error."""

    def __repr__(self):
        raise RuntimeError


class TestMeta:
    @pytest.mark.parametrize("value", [None, True, {}, {"action": None}, {"keep": None}])
    def test_nothing_means_the_settings_of_the_crawl(self, value):
        options = PageOptions.from_meta(value, config(DEDUP_ACTION="tag"))
        assert options == PageOptions(Action.TAG)

    def test_a_dict_changes_what_it_names(self):
        assert PageOptions.from_meta({"action": "dry-run"}, config()) == PageOptions(Action.DRY_RUN)
        assert PageOptions.from_meta({"keep": "1"}, config()) == PageOptions(Action.DROP, keep=True)

    @pytest.mark.parametrize(
        "huge",
        [
            "x" * 10**6,
            ["x" * 10**6] * 100,
            {"action": "x" * 10**6},
            {"keep": [{"x" * 1000: "y" * 1000}] * 1000},
            {"theme": {"text": "\n" * 10**6}},
            10**5000,
            Unspeakable(),
        ],
        ids=["text", "list", "action", "keep", "dict", "number", "object"],
    )
    def test_a_long_value_is_cut(self, huge):
        with pytest.raises(ConfigError) as raised:
            PageOptions.from_meta(huge, config())
        assert len(str(raised.value)) < 700

    @pytest.mark.parametrize(
        "value",
        [
            1,
            "drop",
            [],
            {"actoin": "drop"},
            {1: 2},
            {"action": "x"},
            {"action": []},
            {"threshold": 0.9},
            {"keep": "x"},
        ],
    )
    def test_what_is_not_understood_is_one_line(self, value):
        with pytest.raises(ConfigError, match=r'^meta\["dedup"\].*\. Use ') as raised:
            PageOptions.from_meta(value, config())
        assert len(str(raised.value).splitlines()) == 1
