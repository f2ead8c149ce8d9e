"""The counts of crawls beside a log: what is written, what is read, and what the report makes of it."""

from __future__ import annotations

import json
import os
import stat
from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prose import article, story
from test_commands import run_here

from dedup_middleware import Deduplicator
from dedup_middleware.errors import RecordsError
from dedup_middleware.model import as_time
from dedup_middleware.records import crawls
from dedup_middleware.records.crawls import (
    KINDS,
    MAX_HOSTS,
    Begin,
    Counts,
    CrawlCounts,
    counts_beside,
    crawl_named,
    read_counts,
    remove_counts,
)
from dedup_middleware.records.log import MAX_LINE, Record, RecordLog
from dedup_middleware.report.crawls import BARS, Crawls, Hosts

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log.jsonl"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return a list whose first value is the time."""
    now = [1_000.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    monkeypatch.setattr("time.time", lambda: now[0])
    return now


def pages_counted(log: Path, run: str | None = None) -> Counter[str]:
    return +Crawls(read_counts(log), run).sum.pages


def counts_of(log: Path, run: str = "one", **fields: Any) -> CrawlCounts:
    return CrawlCounts(counts_beside(log), Begin(run, "2026-11-26T10:00:00+00:00", "daily", **fields))


def written(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in counts_beside(log).read_text(encoding="ascii").splitlines()]


class TestWriting:
    def test_a_line_is_written_at_once_and_then_once_a_minute_at_most(self, log: Path, clock: list[float]) -> None:
        counts = counts_of(log)
        for _ in range(20_000):
            counts.add("a.test", "new", 0)
            clock[0] += 0.5
        counts.close()
        begin, *lines = written(log)
        assert begin["event"] == "begin"
        assert 200 < len(lines) < 300
        assert sum(line["hosts"]["a.test"]["new"] for line in lines) == 20_000
        assert max(line["hosts"]["a.test"]["new"] for line in lines) == 120
        assert [line["is_last"] for line in lines] == [False] * (len(lines) - 1) + [True]

    def test_a_crawl_without_pages_is_there_too(self, log: Path) -> None:
        counts_of(log).close()
        assert [line["event"] for line in written(log)] == ["begin", "counts"]

    def test_hosts_are_bounded(self, log: Path) -> None:
        counts = counts_of(log)
        for number in range(3 * MAX_HOSTS):
            counts.add(f"{number}.test", "new", 0)
        counts.add("x" * 300, "new", 0)
        counts.close()
        assert pages_counted(log) == {"new": 3 * MAX_HOSTS + 1}
        assert max(len(line["hosts"]) for line in written(log)[1:]) == MAX_HOSTS + 1
        assert max(map(len, counts_beside(log).read_bytes().splitlines())) < MAX_LINE

    @pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
    def test_the_file_is_private(self, log: Path) -> None:
        counts_of(log).close()
        assert stat.S_IMODE(counts_beside(log).stat().st_mode) == 0o600

    def test_after_a_torn_line_the_next_begins_on_its_own(self, log: Path) -> None:
        counts_of(log).close()
        with counts_beside(log).open("a") as file:
            file.write('{"event": "cou')
        counts = counts_of(log, "two")
        counts.add("a.test", "duplicate", 1)
        counts.close()
        assert pages_counted(log, "two") == {"duplicate": 1}
        assert [line.run for line in read_counts(log) if isinstance(line, Begin)] == ["one", "two"]

    def test_what_a_full_disk_refused_is_written_later(self, log: Path, clock: list[float]) -> None:
        resource = pytest.importorskip("resource")
        counts = counts_of(log)
        counts.add("a.test", "new", 0)
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        clock[0] += 60
        resource.setrlimit(resource.RLIMIT_FSIZE, (counts_beside(log).stat().st_size + 20, before[1]))
        try:
            with pytest.raises(RecordsError, match="Make room"):
                counts.add("a.test", "new", 0)
            counts.add("a.test", "new", 0)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        counts.close()
        assert pages_counted(log) == {"new": 3}

    def test_another_file_is_neither_written_to_nor_removed(self, log: Path) -> None:
        path = counts_beside(log)
        path.write_text("a diary\n")
        with pytest.raises(RecordsError, match="it contains something else"):
            counts_of(log).close()
        remove_counts(log)
        assert path.read_text() == "a diary\n"

    def test_a_crawl_whose_counts_cannot_be_written_warns_once_and_drops(self, site, crawl, tmp_path: Path) -> None:
        counts_beside(tmp_path / "here" / "records.jsonl").mkdir(parents=True)
        urls = [site.add(f"/{n}", article("A", story(1)), host=n) for n in range(3)]
        outcome = crawl("sample_spiders.OneByOne", folder="here", urls=",".join(urls))
        assert len(outcome.dropped) == 2
        (warning,) = outcome.problems
        assert "the report lacks the number of pages" in warning

    def test_a_crawl_counts_what_its_summary_has(self, site, crawl, tmp_path: Path) -> None:
        pages = [article("A", story(1)), article("A", story(1)), article("B", story(2)), "<p>little"]
        urls = [site.add(f"/{n}", page, host=n % 2) for n, page in enumerate(pages)]
        own = {"DEDUP_THRESHOLD": 0.75, "BOT_NAME": "newsroom"}
        outcome = crawl("sample_spiders.OneByOne", folder="here", urls=",".join(urls), settings=own)
        log = tmp_path / "here" / "records.jsonl"
        pages_of = {name.rpartition("/")[2]: n for name, n in outcome.stats.items() if "dedup/verdict/" in name}
        assert pages_counted(log)["duplicate"] == pages_of["duplicate"] == 1
        assert pages_counted(log)["new"] == pages_of["new"]
        assert pages_counted(log).total() == outcome.stats["dedup/pages"] == 4
        begin = written(log)[0]
        assert begin["settings"]["DEDUP_THRESHOLD"] == "0.75"
        assert "DEDUP_ACTION" not in begin["settings"]
        assert begin["project"] == "newsroom"
        assert begin["run"] == crawl_named(log, "last")


class TestReading:
    @settings(max_examples=50)
    @given(
        st.lists(st.sampled_from(["", "{", "[]", '{"event": "counts"}', '{"event": "x"}', '{"run": 5}', "[" * 5_000]))
    )
    def test_foreign_lines_are_left_out(self, tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
        log = tmp_path_factory.mktemp("log") / "log.jsonl"
        ours = json.dumps(msgspec.to_builtins(Counts("one", hosts={"a.test": {"new": 2, "other": 7}})))
        counts_beside(log).write_text("\n".join([*lines, ours]))
        assert pages_counted(log) == {"new": 2}

    @pytest.mark.parametrize("count", [-1, 2**60, 10**400, 1.5, "many", None])
    def test_what_is_no_count_is_left_out(self, log: Path, count: object) -> None:
        counts_beside(log).write_text(
            json.dumps({"event": "counts", "run": "one", "hosts": {"a.test": {"new": count}}})
        )
        assert not pages_counted(log)

    def test_without_a_file_there_are_none(self, log: Path) -> None:
        assert not [*read_counts(log)]


def line(since: int, until: int, run: str = "one", **kinds: int) -> Counts:
    times = [f"2026-11-26T10:{second // 60:02}:{second % 60:02}.000+00:00" for second in (since, until)]
    return Counts(run, *times, hosts={"a.test": kinds})


def record(second: int, verdict: str = "duplicate", **fields: Any) -> Record:
    time = f"2026-11-26T10:{second // 60:02}:{second % 60:02}.500+00:00"
    return Record(time, "daily", "one", "http://b.test/1", verdict, "dropped", items_dropped=1, **fields)


class TestSums:
    def test_a_record_counts_if_no_line_has_counted_it(self) -> None:
        summed = Crawls([line(0, 10, new=4, duplicate=2)])
        for second in (3, 9, 10, 11):
            summed.add_record(record(second))
        found = summed.summary()
        assert found["sum"]["pages"] == dict.fromkeys(KINDS, 0) | {"new": 4, "duplicate": 4}
        assert found["uncounted"] == 0
        assert {host: sum(pages) for host, *pages in found["hosts"]} == {"a.test": 6, "b.test": 2}

    def test_what_a_killed_process_did_not_count_is_in_its_records(self) -> None:
        lines = [line(0, 10, new=1), Begin("one", "2026-11-26T10:00:30+00:00"), line(31, 40, new=2, duplicate=1)]
        summed = Crawls(lines)
        for second in (9, 12, 35, 41):
            summed.add_record(record(second))
        assert (summed.sum.pages["new"], summed.sum.pages["duplicate"]) == (3, 3)

    def test_a_crawl_without_lines_lacks_its_new_pages(self) -> None:
        summed = Crawls([])
        summed.add_record(record(1))
        summed.add_record(record(2, "unchecked", reason="too_little_text"))
        found = summed.summary()
        assert found["uncounted"] == 1
        assert +Counter(found["sum"]["pages"]) == {"duplicate": 1, "unchecked": 1}

    def test_released_items_are_counted_by_themselves(self) -> None:
        summed = Crawls([])
        summed.add_record(record(1))
        summed.add_record(Record("2026-11-27", "s", "two", "http://b.test/1", "related", "released", items_kept=1))
        found = summed.summary()["sum"]
        assert (found["pages"]["duplicate"], found["items_dropped"], found["items_released"]) == (1, 1, 1)
        assert sum(found["pages"].values()) == 1

    def test_the_crawl_before_is_there_for_a_comparison(self) -> None:
        summed = Crawls([line(0, 1, "one", new=5), line(2, 3, "two", new=3)], "two").summary()
        assert summed["sum"]["pages"]["new"] == 3
        assert [(crawl["run"], crawl["pages"]["new"]) for crawl in summed["list"]] == [("two", 3), ("one", 5)]

    def test_crawls_and_their_hosts_are_bounded(self) -> None:
        summed = Crawls(Counts(str(n), hosts={f"{n}.{m}.test": {"new": 1} for m in range(3)}) for n in range(1_500))
        found = summed.summary()
        assert found["sum"]["pages"]["new"] == 4_500
        assert len(found["list"]) == 1_000
        assert [len(crawl["hosts"]) for crawl in found["list"][28:32]] == [3, 3, 0, 0]
        assert len(found["hosts"]) == 2_001

    @given(st.lists(st.tuples(st.integers(0, 200), st.integers(1, 5)), min_size=1))
    def test_the_largest_hosts_stay(self, added: list[tuple[int, int]]) -> None:
        hosts = Hosts(20)
        for host, n in added:
            hosts.add(str(host), {"new": n})
        rows = hosts.rows(10)
        assert sum(row[1] for row in rows) == sum(n for _, n in added)
        assert len(rows) <= 11

    @given(st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 10**6), st.integers(0, 50)), max_size=20))
    def test_no_page_is_lost_over_time(self, added: list[tuple[int, int, int]]) -> None:
        bars = Crawls(
            Counts("one", as_time(first), as_time(first + duration), hosts={"a.test": {"new": n}})
            for first, duration, n in added
        ).over_time()["pages"]["new"]
        assert sum(bars) == sum(n for *_, n in added)
        assert len(bars) <= BARS + 1


class TestCommands:
    def test_stats_have_the_pages(self, tmp_path: Path) -> None:
        log = tmp_path / "log.jsonl"
        with closing(Deduplicator(log=log)) as dedup:
            for n in range(3):
                dedup.add(f"http://{n}.test/", paragraphs=story(1))
            dedup.add("http://4.test/", paragraphs=story(2))
        found = run_here("stats", "--json", "-s", f"DEDUP_LOG={log}", folder=tmp_path).json[0]
        assert found["pages"] == {"new": 2, "duplicate": 2}
        assert "4 pages crawled, " in run_here("stats", "-s", f"DEDUP_LOG={log}", folder=tmp_path).out

    def test_a_crawl_whose_pages_are_all_new_can_be_reported(self, tmp_path: Path) -> None:
        log = tmp_path / "log.jsonl"
        RecordLog(log).close()
        counts = counts_of(log)
        counts.add("a.test", "new", 0)
        counts.close()
        for run in ([], ["--run", "last"], ["--run", "one"]):
            done = run_here("report", *run, "-o", "r.html", "-s", f"DEDUP_LOG={log}", folder=tmp_path)
            assert "0 duplicates in 1 page" in done.out

    def test_reset_removes_them(self, tmp_path: Path) -> None:
        log = tmp_path / "log.jsonl"
        with closing(Deduplicator(f"sqlite:{tmp_path}/pages", log=log)) as dedup:
            dedup.add("http://a.test/", paragraphs=story(1))
        assert counts_beside(log).exists()
        here = ("-s", f"DEDUP_LOG={log}", "-s", f"DEDUP_STORE=sqlite:{tmp_path}/pages")
        run_here("store", "reset", "--log", "--yes", *here, folder=tmp_path)
        assert not counts_beside(log).exists()


def test_the_kinds_are_those_of_the_report() -> None:
    """A kind that belongs to no group would be missing in the chart."""
    script = (crawls.__file__).replace("records/crawls.py", "report/script/crawls.js")
    with open(script, encoding="utf8") as file:  # noqa: PTH123 - a name
        groups = file.read().partition("const GROUPS = {")[2].partition("};")[0]
    assert all(f'"{kind}"' in groups for kind in KINDS)
