"""Records are counted in one way: for a crawl's stats and summary, for ``scrapy dedup stats``, and for the report."""

import json
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prose import article, blog, story
from test_commands import run_here

from dedup_middleware import Deduplicator
from dedup_middleware.model import as_time
from dedup_middleware.order.forms import FormLast
from dedup_middleware.reasons import Reason
from dedup_middleware.records import counts as records_counts
from dedup_middleware.records.counts import KINDS, NOT_COUNTED, Counts, counted_as, summary
from dedup_middleware.records.crawl_lines import CrawlLine
from dedup_middleware.records.file import CODES, Record, Records, lines
from dedup_middleware.report.data import gather
from dedup_middleware.report.tallies import BARS, Crawls, Hosts
from dedup_middleware.settings import Config


def record(second, verdict="duplicate", **fields):
    given = {"crawl": "one", "url": "http://b.test/1", "items_dropped": int(verdict == "duplicate")} | fields
    return Record(as_time(second), "daily", given.pop("crawl"), given.pop("url"), verdict, **given)


def line(event, second=0, crawl="one", **fields):
    return CrawlLine(event=event, time=as_time(second), spider="daily", crawl=crawl, **fields)


def counted(*records):
    counts = Counts()
    for each in records:
        counts.add(each)
    return +counts.numbers


UNCHECKED = [*Reason][: [*Reason].index(Reason.NEAR_MATCH)]
RECORDS = st.builds(
    record,
    st.integers(0, 99),
    st.sampled_from([*CODES["verdict"], "other"]),
    outcome=st.sampled_from([*CODES["outcome"], "other"]),
    reason=st.sampled_from([*CODES["reason"], "other"]),
    items_dropped=st.integers(0, 2),
    items_kept=st.integers(0, 2),
    is_item=st.booleans(),
)


def indent(label):
    return len(label) - len(label.lstrip())


def summed(*of_file, crawl=None):
    found = Crawls(crawl)
    for each in of_file:
        found.add(each)
    return found


class TestCounts:
    @pytest.mark.parametrize(
        ("fields", "expected"),
        [
            ({"verdict": "new", "items_kept": 2}, {"pages": 1, "verdict/new": 1, "items/kept": 2, "kept/new": 1}),
            ({"verdict": "new"}, {"pages": 1, "verdict/new": 1, "without_items": 1}),
            ({"items_dropped": 2}, {"pages": 1, "verdict/duplicate": 1, "items/dropped": 2}),
            (
                {"verdict": "unchecked", "reason": "too_little_text"},
                {"pages": 1, "verdict/unchecked": 1, "unchecked/too_little_text": 1, "lists": 1},
            ),
            (
                {"verdict": "unchecked", "reason": "items_checked", "items_kept": 3},
                {"pages": 1, "verdict/unchecked": 1, "unchecked/items_checked": 1},
            ),
            (
                {"verdict": "related", "reason": "other_numbers", "items_kept": 1},
                {"pages": 1, "verdict/related": 1, "items/kept": 1, "kept/other_numbers": 1},
            ),
            (
                {"verdict": "related", "reason": "other_numbers"},
                {"pages": 1, "verdict/related": 1, "without_items": 1},
            ),
            ({"verdict": "related", "outcome": "released", "items_kept": 2}, {"items/released": 2}),
            (
                {"verdict": "new", "items_kept": 1, "is_item": True},
                {"items/checked": 1, "items/checked/verdict/new": 1, "items/kept": 1, "items/checked/kept/new": 1},
            ),
            (
                {"verdict": "unchecked", "reason": "too_large", "items_kept": 1, "is_item": True},
                {
                    "items/checked": 1,
                    "items/checked/verdict/unchecked": 1,
                    "items/checked/unchecked/too_large": 1,
                    "items/unchecked/too_large": 1,
                    "items/kept": 1,
                },
            ),
        ],
    )
    def test_a_record_has_its_numbers(self, fields, expected):
        assert counted(record(1, original_crawl="one", **fields)) == expected

    def test_drops_for_earlier_crawls_end_when_this_one_keeps_the_original(self):
        original = {"original_url": "http://a.test/", "original_crawl": "zero", "original_is_earlier": True}
        drops = [record(n, url=f"http://b.test/{n}", **original) for n in range(3)]
        assert counted(*drops)["items/dropped_for_earlier_crawls"] == 3
        again = record(4, "unchanged", url="http://a.test/", items_kept=1)
        assert "items/dropped_for_earlier_crawls" not in counted(*drops, again)

    def test_items_are_no_pages_of_a_host(self):
        counts = Counts()
        for is_item in (False, True):
            counts.add(record(1, original_url="http://a.test/", is_item=is_item))
        assert counts.pairs == {("b.test", "a.test"): 1}

    def test_an_item_is_no_sign_that_its_page_was_kept(self):
        original = {"original_url": "http://a.test/api", "original_is_earlier": True, "is_item": True}
        drops = [record(n, url="http://a.test/api", **original) for n in range(3)]
        kept = record(4, "new", url="http://a.test/api", items_kept=1, is_item=True)
        page = record(5, "unchecked", url="http://a.test/api", items_kept=1, reason="items_checked")
        assert counted(*drops, kept, page)["items/dropped_for_earlier_crawls"] == 3

    @given(st.lists(RECORDS))
    def test_each_page_and_item_is_in_one_line_whatever_became_of_it(self, records):
        numbers = counted(*records)
        lines = summary(numbers)
        for place, (label, number) in enumerate(lines):
            depth = indent(label)
            below = lines[place + 1 :]
            end = next((n for n, (other, _) in enumerate(below) if indent(other) <= depth), len(below))
            parts = [n for other, n in below[:end] if indent(other) == depth + 2]
            if parts or label.strip() in {"kept", "unchecked"}:
                assert sum(parts) == number, (label, lines)
        of_pages = [each for each in records if counted_as(each)[0] is not None and not each.is_item]
        of_items = [each for each in records if counted_as(each)[0] is not None and each.is_item]
        found = dict(lines)
        assert (found["pages"], found.get("items checked", 0)) == (len(of_pages), len(of_items))
        report = summed(*records).summary()["sum"]
        assert (sum(report["pages"].values()), sum(report["items"].values())) == (len(of_pages), len(of_items))
        both = [(name.strip(), n) for name, n in lines if name.startswith("    ")]
        assert sum(row["pages"] + row["items"] for row in report["reasons"]) == sum(n for _, n in both)
        assert {row["reason"] for row in report["reasons"]} == {name for name, _ in both}

    @pytest.mark.parametrize("reason", [each for each in Reason if each not in NOT_COUNTED])
    def test_each_reason_has_a_line(self, reason):
        verdict = "unchecked" if reason in UNCHECKED else "related"
        lines = summary(counted(record(1, verdict, reason=reason.value, items_kept=1)))
        assert (f"    {reason}", 1) in lines


class TestCrawl:
    def test_its_stats_its_summary_the_command_and_the_report_have_the_same_numbers(self, site, crawl, tmp_path):
        pages = [article("A", story(1)), article("A", story(1)), article("B", story(2)), "<p>little"]
        pages.append(blog("C", [*story(2)[:3], *story(5)[:4]]))
        urls = [site.add(f"/{n}", page, host=n % 3) for n, page in enumerate(pages)]
        settings = {"DEDUP_THRESHOLD": 0.75, "BOT_NAME": "newsroom"}
        outcomes = [
            crawl("sample_spiders.OneByOne", folder="here", urls=",".join(urls), settings=settings) for _ in "12"
        ]
        log = tmp_path / "here" / "records.jsonl"
        begin, *_, end = [each for each in lines(log) if isinstance(each, CrawlLine)]
        assert (begin.event, begin.project, end.event) == ("begin", "newsroom", "end")
        assert begin.settings["DEDUP_THRESHOLD"] == "0.75"
        assert "DEDUP_ACTION" not in begin.settings
        self.check(outcomes[-1], log)

    def check(self, outcome, log):
        (found,) = run_here("stats", "--crawl", "last", "--json", *outcome.here, folder=outcome.folder).json
        names = ("pages", "verdict/", "unchecked/", "kept/", "lists", "without_items", "items/")
        of_crawl = {n: v for n, v in outcome.stats.items() if n.startswith(tuple(f"dedup/{n}" for n in names))}
        assert found["stats"] == of_crawl
        report = gather(Config.from_settings({"DEDUP_STORE": "memory:", "DEDUP_LOG": str(log)}, None), "last")
        assert sum(report.summary["crawls"]["sum"]["pages"].values()) == of_crawl["dedup/pages"] == 5
        assert report.summary["duplicates"] == of_crawl["dedup/verdict/duplicate"] == 1

    def test_new_pages_can_be_left_out(self, tmp_path):
        log = tmp_path / "log.jsonl"
        with closing(Deduplicator(log=f"{log}?new=0")) as dedup:
            for n in range(3):
                dedup.add(f"http://{n}.test/", paragraphs=story(1))
        assert [each.verdict for each in Records(log)] == ["duplicate"] * 2
        assert summed(*lines(log)).summary()["without_new"] == 1

    def test_a_short_record_has_what_is_counted(self, tmp_path):
        log = tmp_path / "log.jsonl"
        with closing(Deduplicator(log=log)) as dedup:
            dedup.add("http://news.example/2026/11/story-of-the-day", article("A", story(1)))
        found = [json.loads(each) for each in log.read_text().splitlines()][1]
        assert found.keys() == {"time", "spider", "crawl", "url", "verdict", "items_kept"}


class TestSums:
    def test_released_items_are_counted_by_themselves(self):
        released = record(2, "related", crawl="two", outcome="released", items_kept=1)
        found = summed(record(1), released).summary()["sum"]
        assert (found["pages"]["duplicate"], found["items_dropped"], found["items_released"]) == (1, 1, 1)
        assert sum(found["pages"].values()) == 1

    def test_the_crawl_before_is_there_for_a_comparison(self):
        news = [record(n, "new", crawl=crawl, items_kept=1) for n, crawl in enumerate(["one"] * 5 + ["two"] * 3)]
        found = summed(*news, crawl="two").summary()
        assert found["sum"]["pages"]["new"] == 3
        assert [(each["crawl"], each["pages"]["new"]) for each in found["list"]] == [("two", 3), ("one", 5)]

    def test_a_crawl_that_was_killed_is_not_closed(self):
        rotated = record(3, crawl="two")
        found = summed(line("begin"), record(1), line("begin", 2), record(5), rotated).summary()["list"]
        assert [(each["crawl"], each["is_closed"], each["end"] - each["begin"]) for each in found] == [
            ("two", True, 0),
            ("one", False, 5),
        ]
        assert summed(line("begin"), line("end", 4)).summary()["list"][0]["is_closed"]

    def test_forms_that_were_fetched_last_are_summed_up(self):
        ends = [
            line("end", crawl=crawl, requests_last=5, last=[FormLast(form, 5, 2, 1) for form in forms])
            for crawl, forms in (("one", "ab"), ("two", "a"))
        ]
        found = summed(*ends).summary()
        assert (found["requests_last"], found["last"][0]) == (
            10,
            {"form": "a", "requests": 10, "pages": 4, "nothing": 2},
        )
        assert len(found["last"]) == 2

    def test_crawls_and_their_hosts_are_bounded(self):
        news = (
            record(n, "new", crawl=str(n), url=f"http://{n}.{m}.test/", items_kept=1)
            for n in range(1_500)
            for m in range(3)
        )
        found = summed(*news).summary()
        assert found["sum"]["pages"]["new"] == 4_500
        assert len(found["list"]) == 1_000
        assert [len(each["hosts"]) for each in found["list"][28:32]] == [3, 3, 0, 0]
        assert len(found["hosts"]) == 2_001

    @given(st.lists(st.tuples(st.integers(0, 200), st.integers(1, 5)), min_size=1))
    def test_the_largest_hosts_stay(self, added):
        hosts = Hosts(20)
        for host, n in added:
            hosts.add(str(host), "new", n)
        rows = hosts.rows(10)
        assert sum(row[1] for row in rows) == sum(n for _, n in added)
        assert len(rows) <= 11

    @given(st.lists(st.integers(0, 10**9), max_size=20))
    def test_no_page_is_lost_over_time(self, seconds):
        bars = summed(*(record(second, "new", items_kept=1) for second in seconds)).over_time()["pages"]["new"]
        assert sum(bars) == len(seconds)
        assert len(bars) <= BARS


def test_the_kinds_are_those_of_the_report():
    """A kind that belongs to no group would be missing in the chart."""
    script = records_counts.__file__.replace("records/counts.py", "report/script/crawls.js")
    with open(script, encoding="utf8") as file:  # noqa: PTH123 - a name
        groups = file.read().partition("const GROUPS = {")[2].partition("};")[0]
    assert all(f'"{kind}"' in groups for kind in KINDS)
