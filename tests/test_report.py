"""The report: what is gathered for it, the page that shows it in a real browser, and the rows."""

import base64
import hashlib
import json
import re
import stat
import zlib
from contextlib import closing
from html.parser import HTMLParser

import pytest
from crawling import store_uri
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from nightly import tries
from report_demo import CLUB, COPIER, JOINED, SCRIPT, demo
from test_commands import run, run_here, write_log

from dedup_middleware.fingerprints import ClauseFingerprinter
from dedup_middleware.reasons import Outcome, Reason
from dedup_middleware.records.counts import NOT_COUNTED
from dedup_middleware.records.file import Record
from dedup_middleware.report.data import gather
from dedup_middleware.report.page import html, words
from dedup_middleware.report.tallies import NearMisses, Tallies
from dedup_middleware.settings import Config
from dedup_middleware.stores import open_store

BOTH = ("copying", "copied")


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    return demo(tmp_path_factory.mktemp("demo"))


def record(url="http://a.test/1", **fields):
    base = Record("2026-11-20T10:00:00.000+00:00", "news", "one", url, "duplicate", "dropped", "http://b.test/1")
    return replace(base, **{"score": 0.95, "items_dropped": 2, "bytes": 1000} | fields)


def tallied(*records):
    tallies = Tallies(10)
    for each in records:
        tallies.add(each)
    return tallies


def logged(folder, *records):
    """Return the configuration of a log of *records*, without a store."""
    log = write_log(folder / "log.jsonl", *records)
    return Config.from_settings({"DEDUP_STORE": "memory:", "DEDUP_LOG": str(log)}, None)


class TestTallies:
    def test_a_page_that_is_dropped_by_each_crawl_is_one_page_of_its_host(self):
        tallies = tallied(record(), record(crawl="two"))
        assert tallies.pairs_of_hosts() == {("a.test", "b.test"): 1}
        assert tallies.bytes == 2000

    def test_a_page_that_was_released_repeats_no_host(self):
        again = record(verdict="related", outcome="released", items_dropped=0)
        assert not tallied(record(), again).pairs_of_hosts()


class TestNearMisses:
    def test_the_most_doubtful_come_first(self):
        near = NearMisses(3)
        for number, (reason, score) in enumerate(
            [
                (Reason.BELOW_THRESHOLD, 0.6),
                (Reason.KEPT_ON_REQUEST, 1.0),
                (Reason.OTHER_NUMBERS, 0.95),
                (Reason.BELOW_THRESHOLD, 0.79),
                (Reason.OTHER_TITLE, None),
            ]
        ):
            near.add(record(f"http://a.test/{number}", verdict="related", outcome="kept", reason=reason, score=score))
        assert [each.score for each in near.queue()] == [0.95, 0.79, 0.6]
        assert len(near.urls) == 5

    def test_a_page_counts_once_as_its_last_record_has_it(self):
        near = NearMisses(3)
        kept = {"verdict": "related", "outcome": "kept", "reason": Reason.OTHER_TITLE}
        near.add(record(**kept))
        near.add(record(**kept, score=0.9, crawl="two"))
        assert [(each.crawl, each.score) for each in near.queue()] == [("two", 0.9)]
        near.add(record(verdict="related", outcome="released", reason=Reason.RELEASED))
        assert not near.urls
        assert not near.queue()

    def test_memory_is_bounded(self):
        near = NearMisses(2)
        for number in range(50):
            near.add(record(f"http://a.test/{number}", verdict="related", outcome="kept", score=number / 100))
        assert [each.score for each in near.queue()] == [0.49, 0.48]
        assert len(near.urls) == 50


class TestGathering:
    def test_new_pages_of_a_host_count(self, tmp_path):
        repeats = [record(f"https://a.test/{n}", original_url="http://b.test/1") for n in range(20)]
        config = logged(tmp_path, *repeats)
        assert gather(config).summary["signs"]["one_original"][0]["pages"] == 20
        for new, expected in ((12, [32]), (8, [])):
            news = (record(f"https://a.test/new/{n}", verdict="new", outcome="kept", items_kept=1) for n in range(new))
            signs = gather(logged(tmp_path, *news)).summary["signs"]
            assert [sign["pages"] for sign in signs["one_original"]] == expected

    def test_what_is_crawled_every_day_is_a_sign_every_day(self, tmp_path):
        repeats = [record(f"https://a.test/{n}", crawl=crawl) for crawl in ("one", "two") for n in range(20)]
        (sign,) = gather(logged(tmp_path, *repeats)).summary["signs"]["one_original"]
        assert (sign["repeats"], sign["pages"]) == (40, 40)

    def test_what_was_released_is_no_sign(self, tmp_path):
        repeats = [record(f"https://a.test/{n}") for n in range(20)]
        released = [replace(each, verdict="related", outcome="released", items_dropped=0) for each in repeats]
        assert gather(logged(tmp_path, *repeats, *released)).summary["signs"]["one_original"] == []

    def test_hosts_are_paired_by_who_copies_whom(self, shown):
        hosts = gather(shown.config).summary["hosts"]
        row, column = hosts["copying"].index(CLUB), hosts["copied"].index(JOINED)
        assert hosts["pages"][row][column] == 30
        assert hosts["copying_total"][row] == 30
        in_both = [[host for host in hosts[one] if host in hosts[other]] for one, other in (BOTH, BOTH[::-1])]
        assert in_both[0] == in_both[1], "rows and columns are in one order"
        assert len(in_both[0]) > 2

    def test_the_sentences_of_both_pages_are_marked(self, shown):
        report = gather(shown.config)
        columns = report.summary["pairs"]["columns"]
        marks = set()
        for url, detail in zip(columns["url"], report.details, strict=True):
            if COPIER in url and detail["texts"]:
                marks |= {(mark, text.startswith("Our readers")) for mark, text in detail["texts"]["page"]}
                assert any(mark == "=" for mark, _ in detail["texts"]["original"])
        assert {("=", False), ("~", False), ("+", True)} <= marks
        assert ("=", True) not in marks

    def test_the_most_doubtful_pairs_come_with_their_texts(self, shown):
        report = gather(shown.config, pairs=6)
        scores = report.summary["pairs"]["columns"]["score"]
        drops = report.summary["duplicates"]
        chosen = [n for n, detail in enumerate(report.details) if detail["texts"]]
        assert sorted(scores[n] for n in chosen if n < drops) == sorted(scores[:drops])[:3]
        assert [n for n in chosen if n >= drops] == [drops, drops + 1, drops + 2]
        assert report.summary["near"]["pages"] == len(scores) - drops == 6

    def test_the_path_of_the_records_is_not_in_it(self, tmp_path):
        for folder in ("one", "two"):
            (tmp_path / folder).mkdir()
        one, two = (gather(logged(tmp_path / folder, record())) for folder in ("one", "two"))
        assert str(tmp_path) not in json.dumps(one.summary)
        assert one.summary["log"] == two.summary["log"] == "log.jsonl"
        assert one.summary["log_id"] != two.summary["log_id"], "each has its own labels in a browser"

    def test_a_drop_that_was_released_has_that_outcome(self, tmp_path):
        again = record(verdict="related", outcome="released", original_url=None, crawl="two")
        pairs = gather(logged(tmp_path, record(), record("http://a.test/2"), again)).summary["pairs"]
        outcomes = [pairs["tables"]["outcome"][number] for number in pairs["columns"]["outcome"]]
        assert dict(zip(pairs["columns"]["url"], outcomes, strict=True)) == {
            "http://a.test/1": "released",
            "http://a.test/2": "dropped",
        }

    def test_of_a_store_in_use_the_records_alone_are_shown(self, shown, tmp_path):
        page = tmp_path / "report.html"
        with closing(open_store(store_uri(shown.folder), fingerprint_scheme=ClauseFingerprinter.scheme)):
            done = run("report", "-o", str(page), *shown.here, folder=tmp_path)
        assert "without the texts of the store" in done.out
        read = PageElements(page.read_text(encoding="utf8"))
        assert "in use" in read.data("summary")["note"]
        assert all(detail["evidence"] and detail["texts"] is None for detail in read.data("pairs-0"))

    def test_one_run_is_shown_by_itself(self, shown):
        last = gather(shown.config, "last").summary
        every = gather(shown.config).summary
        assert last["duplicates"] < every["duplicates"]
        assert last["crawls"]["sum"]["pages"]["duplicate"] == last["duplicates"]
        of_every = [[crawl["crawl"] for crawl in one["crawls"]["list"]] for one in (last, every)]
        assert of_every[0] == of_every[1], "for a comparison"


TEXTS = st.sampled_from(["", SCRIPT, "\ud800", "\x1b[31m", "\u202e", "http://[", "javascript:alert(1)", "</script>"])
HOSTILE_RECORDS = st.builds(
    Record,
    **dict.fromkeys(("time", "spider", "crawl", "url", "reason", "title"), TEXTS),
    verdict=st.sampled_from(["duplicate", "related", "unchanged", "nonsense"]),
    outcome=st.sampled_from(["dropped", "released", "nonsense"]),
    original_url=st.none() | TEXTS,
    score=st.none() | st.floats() | st.integers(),
    message=TEXTS,
    evidence=st.lists(TEXTS, max_size=9),
    items_dropped=st.integers(),
)


class PageElements(HTMLParser):
    """The scripts, styles and policy of a page."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self._open = False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs), ""))
        self._open = tag in {"script", "style"}

    def handle_endtag(self, _):
        self._open = False

    def handle_data(self, data):
        if self._open:
            tag, attributes, text = self.found[-1]
            self.found[-1] = (tag, attributes, text + data)

    def data(self, name):
        (packed,) = [text for _, attributes, text in self.found if attributes.get("id") == name and text]
        return json.loads(zlib.decompress(base64.b64decode(packed)))


class TestPage:
    def test_it_allows_what_stands_in_it_and_no_more(self, shown):
        elements = PageElements(html(gather(shown.config))).found
        (policy,) = [a["content"] for _, a, _ in elements if a.get("http-equiv") == "Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; ")
        assert "unsafe" not in policy
        for tag, attributes, text in elements:
            assert not {name for name in attributes if name == "style" or name.startswith("on")}
            if tag in {"script", "style"} and "type" not in attributes:
                assert base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() in policy

    @settings(max_examples=tries(20, 1000))
    @given(st.lists(HOSTILE_RECORDS, min_size=1, max_size=5))
    def test_whatever_a_log_holds_is_data(self, records):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("dedup_middleware.report.data.lines", lambda *_: iter(records))
            config = Config.from_settings({"DEDUP_STORE": "memory:", "DEDUP_LOG": "log.jsonl"}, None)
            report = gather(config)
        read = PageElements(html(report))
        assert read.data("summary")["records"] == len(records)
        assert sum(tag == "script" for tag, _, _ in read.found) == 4 + (len(report.details) > 0)

    def test_both_languages_say_the_same(self):
        said = words()
        english, chinese = said["en"], said["zh"]
        assert english.keys() == chinese.keys()
        for key, text in english.items():
            if isinstance(text, str):
                assert names_in(text) == names_in(chinese[key]), key
            elif "other" in text:
                assert {*map(names_in, text.values())} == {names_in(chinese[key]["other"])}, key
        assert {outcome.value for outcome in Outcome} <= chinese["outcomes"].keys()

    def test_every_reason_that_is_shown_is_translated(self):
        assert {*Reason} - {*NOT_COUNTED} <= words()["zh"]["reasons"].keys()


def names_in(text):
    return frozenset(re.findall(r"\{(\w+)\}", text))


class TestCommand:
    def test_it_says_what_it_wrote(self, shown, tmp_path):
        page = tmp_path / "report.html"
        done = run_here("report", "-o", str(page), "--json", *shown.here, folder=tmp_path)
        (said,) = done.json
        assert said["output"] == str(page)
        assert said["duplicates"] == said["pages"]["duplicate"] == 192
        assert said["pages"]["new"] > 0
        assert PageElements(page.read_text(encoding="utf8")).data("summary")["duplicates"] == 192
        assert stat.S_IMODE(page.stat().st_mode) == 0o600
        assert [path.name for path in tmp_path.iterdir()] == ["report.html"]

    def test_it_opens_the_page(self, shown, tmp_path, monkeypatch):
        opened = []
        monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url) or False)
        done = run_here("report", "-o", "a b.html", "--open", *shown.here, folder=tmp_path)
        assert opened == [(tmp_path / "a b.html").as_uri()]
        assert "Open a b.html yourself" in done.err

    @pytest.mark.parametrize(
        ("arguments", "expected"),
        [
            (["-o", "missing/report.html"], "missing/report.html cannot be written (No such file or directory)"),
            (["-o", "."], "Name another file"),
            (["-o", "/"], "Name another file"),
            (["-o", "a\0b"], "Name another file"),
            (["-o", "x" * 300], "Name another file"),
        ],
    )
    def test_a_mistake_is_one_line(self, shown, tmp_path, arguments, expected):
        run_here("report", *arguments, *shown.here, folder=tmp_path).refused(expected, status=1)
        assert not [*tmp_path.iterdir()]
