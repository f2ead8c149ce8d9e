"""An archive of past crawls: verdicts as good as a crawl's, on Spark and without, and a store for the next crawl."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import random
import shutil
import time
import zipfile
import zlib
from argparse import Namespace
from collections import Counter
from contextlib import closing
from functools import partial, partialmethod
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from crawling import environment, scrapy
from made_archive import archive
from prose import article, blog, page, story, zh_story
from warcs import HTML, archives, http, record

from dedup_middleware import Deduplicator
from dedup_middleware.batch import pairs
from dedup_middleware.batch.archive import Job, NotAPageError, entry, files_of, records
from dedup_middleware.batch.engine import Local, Processes, engine
from dedup_middleware.batch.pairs import Edge
from dedup_middleware.checks.detector import Detector
from dedup_middleware.cli.batch import batch
from dedup_middleware.common import bounded
from dedup_middleware.errors import ConfigError, DedupError
from dedup_middleware.index import shown
from dedup_middleware.index.index import MAX_HOLDERS
from dedup_middleware.index.shared import index_for_command
from dedup_middleware.index.transfer import import_copy
from dedup_middleware.settings import Config
from dedup_middleware.stores.base import Header

if TYPE_CHECKING:
    from collections.abc import Iterable

A, B, C = "http://a.example/1", "http://b.example/2", "http://c.example/3"


def written(folder: Path, pages: Iterable[dict[str, Any]], name: str = "archive.jsonl") -> Path:
    """Return the path of a file with *pages*, as JSON Lines."""
    path = folder / name
    path.write_text("".join(json.dumps(page) + "\n" for page in pages), encoding="ascii")
    return path


def config(**settings: object) -> Config:
    given = {f"DEDUP_{name.upper()}": value for name, value in settings.items()}
    return Config.from_settings({"DEDUP_STORE": "memory:", "DEDUP_LOG": "", **given}, None)


def run_batch(folder: Path, *paths: Path, parquet: bool = False, **settings: object) -> dict[str, Any]:
    """Check the archives at *paths*, leave the results in the folder ``out``, and return the report."""
    opts = Namespace(inputs=[*paths], output=folder / "out", spark=None, parquet=parquet, json=True, key=None)
    return batch(opts, config(**settings))


def lines_of(folder: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "out" / name).read_text(encoding="ascii").splitlines()]


def checked(folder: Path, pages: Iterable[dict[str, Any]], **settings: object) -> list[tuple[str, str | None]]:
    """Return the verdict on each of *pages* and its original."""
    run_batch(folder, written(folder, pages), **settings)
    return [(line["verdict"], line["original_url"]) for line in lines_of(folder, "verdicts.jsonl")]


TOWNS = ["Norwich", "Leeds", "Cardiff", "Bristol", "Glasgow", "York"]


def branch(town: str) -> str:
    """Return a page of a bank with its own facts around the text that all its branches have."""
    return page("Our branches", " ".join(story(7, 2)), below=f"<ul><li>{len(town)} High Street, {town}</ul>")


def odd_pages() -> list[dict[str, str]]:
    """Return what `made_archive` has not: views with their stories, branches of a bank, many fetches of a page."""
    chance, pages = random.Random(5), []
    for number in range(6):
        tell = (story, zh_story)[number % 2]
        name = f"http://paper.example/{number}-of-the-stories"
        pages += [{"url": url, "html": article("Own", tell(number))} for url in (f"{name}/print", name)]
        pages += [{"url": f"http://c{copy}.example/{number}", "html": blog("Copy", tell(number))} for copy in range(5)]
        pages += [{"url": name, "html": article("Own", tell(number + 100 * chance.randrange(2)))} for _ in range(2)]
    pages += [{"url": f"http://bank.example/{town}", "html": branch(town)} for town in TOWNS]
    common = story(99)[0].split(". ")
    for number in range(20):
        text = [*story(200 + number), ". ".join(chance.sample(common, 1))]
        pages.append({"url": f"http://h{number % 7}.example/{number}", "html": article("Common", text)})
    chance.shuffle(pages)
    own = {"url": "http://paper.example/story-400", "html": article("Own", story(400))}
    return [*pages, {**own, "url": f"{own['url']}/print"}, own, own]


class TestVerdicts:
    @pytest.mark.parametrize("pages", [[*archive(150)], odd_pages()], ids=["sites", "odd"])
    def test_are_as_good_as_those_of_a_crawl(self, tmp_path, pages, caplog) -> None:
        found = checked(tmp_path, pages)
        assert not caplog.records, "a pair could not be compared"
        with Deduplicator() as dedup:
            verdicts = [*dedup.stream(pages)]
            crawled = [verdict.is_duplicate for verdict in verdicts]
        others = [page["url"] for page, (verdict, _), was in zip(pages, found, crawled, strict=True)
                  if (verdict == "duplicate") != was]  # fmt: skip
        assert len(others) <= len(pages) / 50, others
        assert {"new", "duplicate", "related"} <= {verdict for verdict, _ in found}
        kept = {page["url"] for page, (verdict, _) in zip(pages, found, strict=True) if verdict != "duplicate"}
        assert {original for verdict, original in found if verdict == "duplicate"} <= kept

    def test_a_view_of_a_site_that_has_less_of_a_text_is_compared(self, tmp_path, caplog) -> None:
        own, view = article("Own", story(1)), article("Own", story(1)[:-1])
        pages = [{"url": f"{A}-story", "html": own}, {"url": f"{A}-story?print=1", "html": view}]
        assert checked(tmp_path, pages)[1] == ("duplicate", f"{A}-story")
        assert not caplog.records

    def test_the_name_of_a_site_is_not_a_title_of_its_pages(self, tmp_path) -> None:
        pages = [
            {"url": f"http://docs.example/{version}/{n}", "html": page(f"Part {n} — Lib {version} manual", *story(n))}
            for version in ("1.0", "1.2")
            for n in range(4)
        ]
        assert checked(tmp_path, pages)[-1] == ("duplicate", "http://docs.example/1.0/3")

    def test_what_all_pages_of_a_site_have_may_be_most_of_their_text(self, tmp_path) -> None:
        frame, texts = story(99), [story(n, 3) for n in range(5)]
        pages = [{"url": f"{A}{n}", "html": article("", [*text, *frame])} for n, text in enumerate(texts)]
        pages[4:4] = [{"url": B, "html": article("", texts[4])}]
        assert checked(tmp_path, pages)[-1] == ("duplicate", B)

    def test_equal_texts_make_no_pairs_beyond_a_few(self, tmp_path) -> None:
        pages = [{"url": f"http://c{n}.example/", "text": "\n".join(story(1))} for n in range(200)]
        files, job = [written(tmp_path, pages)], Job(config(), Header.new("clauses-2"), "run")
        with engine(None, files, tmp_path) as tables:
            pairs.check(tables, job, files, print)
            ((count,),) = tables.rows("SELECT COUNT(*) FROM candidates")
        assert count < 2 * len(pages)

    def test_what_all_pages_have_is_compared_with_a_few_of_them(self, tmp_path) -> None:
        """As in a crawl, whose posting lists are as short."""
        pages = [
            {"url": f"http://h{n % 9}.example/{n}", "text": "\n".join([*story(n, 2), *story(99, 1)])} for n in range(60)
        ]
        files, job = [written(tmp_path, pages)], Job(config(), Header.new("clauses-2"), "run")
        with engine(None, files, tmp_path) as tables:
            pairs.check(tables, job, files, print)
            for table, most in (("earliest", pairs._FIRST), ("holders", MAX_HOLDERS)):
                rows = tables.rows(f"SELECT COUNT(*) FROM {table} GROUP BY clause")
                assert max(count for (count,) in rows) == most
            ((meetings, postings),) = tables.rows("SELECT (SELECT COUNT(*) FROM meetings), COUNT(*) FROM shared")
        assert meetings <= MAX_HOLDERS * postings

    def test_tables_are_joined_by_their_indexes(self, tmp_path, monkeypatch) -> None:
        """A scan within a scan makes the time grow with the square of the pages."""
        scans = Counter[tuple[str, int]]()

        def explained(step, self, name, *args, **kwargs) -> None:
            sql = next(text for text in args if "SELECT" in str(text))
            plan = self.rows(f"EXPLAIN QUERY PLAN {sql}")
            scans.update((name, parent) for _, parent, _, detail in plan if detail.startswith("SCAN"))
            step(self, name, *args, **kwargs)

        for method in ("table", "map"):
            monkeypatch.setattr(Local, method, partialmethod(partial(explained, getattr(Local, method))))
        run_batch(tmp_path, written(tmp_path, archive(20)))
        assert len(scans) > 10
        assert set(scans.values()) == {1}

    def test_a_page_that_came_again_is_kept(self, tmp_path) -> None:
        first, changed = ({"url": A, "html": article("Own", story(n))} for n in (1, 2))
        copies = [{"url": B, "html": blog("Copy", story(1))}, {"url": C, "html": blog("Copy", story(2))}]
        assert checked(tmp_path, [first, first, changed, *copies, copies[0]]) == [
            ("new", None), ("unchanged", None), ("new", None), ("duplicate", A), ("duplicate", A), ("duplicate", A),
        ]  # fmt: skip

    def test_a_preferred_page_is_the_original_wherever_it_stands(self, tmp_path) -> None:
        pages = [{"url": url, "html": blog("A blog", story(1))} for url in (A, B, C)]
        found = checked(tmp_path, pages, preferred=["c.example"])
        assert found == [("duplicate", C), ("duplicate", C), ("new", None)]
        assert lines_of(tmp_path, "clusters.jsonl") == [{"original": C, "size": 3, "urls": [C, A, B]}]

    def test_pages_that_differ_around_one_text_are_kept(self, tmp_path) -> None:
        pages = [{"url": f"http://bank.example/{town}", "html": branch(town)} for town in TOWNS]
        assert {verdict for verdict, _ in checked(tmp_path, pages)} == {"new", "related"}

    @pytest.mark.parametrize(("rounds", "duplicates"), [(2, [1, 9]), (4, [1, 3, 9]), (40, [1, 3, 5, 7, 9])])
    def test_of_a_chain_of_copies_every_other_one_is_an_original(
        self, tmp_path, rounds, duplicates, monkeypatch
    ) -> None:
        """A page that is undecided when the rounds are over is one, too."""
        monkeypatch.setattr(pairs, "_MAX_ROUNDS", rounds)
        edges = [Edge(page, page - 1, 0, 1, 1.0, b"") for page in range(1, 9)] + [Edge(9, 0, 0, 1, 1.0, b"")]
        with engine(None, [], tmp_path) as tables:
            tables.map("edges", pairs.EDGES, lambda _: edges, "SELECT 1 AS one", "one")
            table, _ = pairs.find_duplicates(tables)
            assert [*map(tuple, tables.rows(f"SELECT page FROM {table} ORDER BY page"))] == [(n,) for n in duplicates]

    def test_a_bug_keeps_the_page(self, tmp_path, monkeypatch, caplog) -> None:
        monkeypatch.setattr(Detector, "check_pair", lambda *_: 1 / 0)
        pages = [{"url": A, "html": article("Own", story(1))}, {"url": B, "html": blog("Copy", story(1))}]
        assert checked(tmp_path, pages) == [("new", None)] * 2
        assert f"{B} could not be compared with {A}" in caplog.text

    def test_a_page_that_cannot_be_read_is_unchecked(self, tmp_path) -> None:
        pages = [{"url": A, "text": "x" * 100}, {"url": B, "html": blog("\ud800", story(1))}]
        assert checked(tmp_path, pages, max_bytes=50) == [("unchecked", None), ("unchecked", None)]
        assert {line["reason"] for line in lines_of(tmp_path, "verdicts.jsonl")} == {"too_large"}


def imported(folder: Path) -> str:
    """Return the store that the results of a batch make."""
    store = f"sqlite:{folder / 'imported.sqlite'}"
    import_copy(folder / "out" / "store.jsonl.gz", store)
    return store


class TestCommand:
    @pytest.mark.parametrize(("lines", "why"), [("", "no records"), ("{\n", "1 × not JSON; ")])
    def test_an_archive_without_pages_is_an_error(self, tmp_path, lines, why) -> None:
        (tmp_path / "archive.jsonl").write_text(lines)
        done = scrapy("dedup", "batch", "archive.jsonl", "-o", "out", folder=tmp_path, env=environment())
        assert done.returncode == 1
        assert f"no pages found in 1 file ({why}" in done.stderr

    def test_paths_are_absolute(self, tmp_path, monkeypatch) -> None:
        """A worker of a cluster has another working directory."""
        written(tmp_path, [])
        monkeypatch.chdir(tmp_path)
        assert files_of([Path("archive.jsonl")]) == files_of([Path()]) == [tmp_path / "archive.jsonl"]

    @pytest.mark.parametrize("url", ["s3://bucket/a.warc.gz", "hdfs://host:8020/a", "https://a.example/a.jsonl"])
    def test_urls_are_refused(self, url) -> None:
        with pytest.raises(ConfigError, match="is not a path of a file system"):
            files_of([Path(url)])

    def test_a_file_that_a_worker_lacks_ends_the_batch(self, tmp_path) -> None:
        with pytest.raises(ConfigError, match="Mount it at this path on every machine"):
            next(records(tmp_path / "gone.jsonl"))

    def test_a_new_crawl_knows_the_archive(self, tmp_path) -> None:
        pages = [{"url": A, "html": article("First", story(1)), "time": "2019-05-01T08:00:00Z"}]
        pages += [{"url": C, "html": blog("Copy", story(1))}, {"url": A, "html": article("First", story(3))}]
        run_batch(tmp_path, written(tmp_path, pages))
        store = imported(tmp_path)
        with index_for_command(store, "test") as (_, index):
            first, copy = index.pages()
            assert (first.url, first.original, copy.url, copy.original) == (A, None, C, first.number)
        with Deduplicator(store) as dedup:
            verdicts = [dedup.add(B, blog("Repost", story(3))), dedup.add(A, article("First", story(3)))]
        assert [(verdict.verdict, verdict.original_url) for verdict in verdicts] == [
            ("duplicate", A),
            ("unchanged", None),
        ]

    def test_a_crawl_that_writes_a_feed_knows_the_archive_too(self, tmp_path, site, crawl) -> None:
        run_batch(tmp_path, written(tmp_path, [{"url": A, "html": article("First", story(1))}]))
        urls = [site.add("/repost", blog("Repost", story(1))), site.add("/news", article("News", story(2)))]
        settings = {"DEDUP_STORE": imported(tmp_path), "FEEDS": {"feed.jsonl": {"format": "jsonlines"}}}
        outcome = crawl("sample_spiders.OneByOne", urls=",".join(urls), settings=settings)
        assert [item["url"] for item in outcome.lines("feed.jsonl")] == urls[1:]

    def test_the_new_store_is_written_in_parts(self, tmp_path, monkeypatch) -> None:
        """A process has one of them in memory."""
        monkeypatch.setattr("dedup_middleware.batch.output._PART_BITS", 2)
        run_batch(tmp_path, written(tmp_path, archive(60)))
        packed = (tmp_path / "out" / "store.jsonl.gz").read_bytes()
        members, longest = 0, 0
        while packed:
            member = zlib.decompressobj(16 + zlib.MAX_WBITS)
            longest, members = max(longest, member.decompress(packed).count(b"\n")), members + 1
            packed = member.unused_data
        assert members > 40
        assert longest < 500
        with Deduplicator(imported(tmp_path)) as dedup:
            assert dedup.check(**next(archive(1))).verdict == "unchanged"

    def test_look_alikes_lead_to_copies_of_each_in_the_new_store(self, tmp_path) -> None:
        pages = [{"url": f"http://a.example/{n}", "html": article(f"Bid {n}", [*story(1), f"The bid is {n}."])}
                 for n in range(8)]  # fmt: skip
        assert "duplicate" not in {verdict for verdict, _ in checked(tmp_path, pages)}
        with Deduplicator(imported(tmp_path)) as dedup:
            verdict = dedup.add(B, blog("Repost", [*story(1), "The bid is 0."]))
        assert verdict.original_url == "http://a.example/0"

    def test_time_and_bad_records_are_told(self, tmp_path) -> None:
        path = tmp_path / "archive.jsonl"
        path.write_text(f'{{\n{{"url": "{A}", "text": "x", "time": 0}}\n', encoding="ascii")
        report = run_batch(tmp_path, path)
        assert (report["pages"], report["left_out"]) == (1, {"not JSON": 1})
        assert lines_of(tmp_path, "verdicts.jsonl")[0]["time"] == "1970-01-01T00:00:00+00:00"

    def test_verdicts_and_clusters_as_parquet(self, tmp_path) -> None:
        parquet = pytest.importorskip("pyarrow.parquet")
        pages = [{"url": A, "html": article("\ud800", story(1))}, {"url": B, "html": blog("Copy", story(1))}]
        run_batch(tmp_path, written(tmp_path, pages), parquet=True)
        verdicts, clusters = (
            parquet.read_table(tmp_path / "out" / f"{name}.parquet").to_pylist() for name in ("verdicts", "clusters")
        )
        assert [(row["url"], row["verdict"]) for row in verdicts] == [(A, "new"), (B, "duplicate")]
        assert clusters == [{"original": A, "size": 2, "urls": [A, B]}]

    def test_a_folder_that_has_files_stays_as_it_is(self, tmp_path) -> None:
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "verdicts.jsonl").write_text("mine")
        with pytest.raises(ConfigError, match="not empty"):
            run_batch(tmp_path, written(tmp_path, []))
        assert [path.read_text() for path in (tmp_path / "out").iterdir()] == ["mine"]

    def test_a_batch_that_fails_leaves_no_file(self, tmp_path, monkeypatch) -> None:
        monkeypatch.setattr(pairs, "MAX_FILES", 0)
        with pytest.raises(ConfigError, match="several batches"):
            run_batch(tmp_path, written(tmp_path, []))
        assert [*(tmp_path / "out").iterdir()] == []

    def test_results_are_their_originals_alone(self, tmp_path) -> None:
        run_batch(tmp_path, written(tmp_path, [{"url": A, "text": "x"}]))
        assert {path.stat().st_mode & 0o777 for path in (tmp_path / "out").iterdir()} == {0o600}

    def test_a_fingerprint_without_clauses_is_refused(self, tmp_path) -> None:
        with pytest.raises(ConfigError, match="cannot be used in a batch"):
            run_batch(tmp_path, written(tmp_path, []), fingerprint="shingles")


def killed_in_part(part: tuple[int, int], _: object) -> None:
    if part[0]:
        os._exit(9)
    time.sleep(60)


def first_waits(folder: Path, part: tuple[int, int], values: Iterable[int]) -> None:
    """Take values, the first process not until the others have none left, and leave a file with what was taken."""
    taken = []
    for value in values:
        taken.append(value)
        while part[0] == 0 and not (folder / "1").exists():
            time.sleep(0.01)
    (folder / "taken").write_text(json.dumps(taken))
    (folder / "taken").rename(folder / str(part[0]))


def leave_id(folder: Path, part: tuple[int, int], _: object) -> None:
    (folder / f"{part[0]} {os.getpid()}").touch()


class TestProcesses:
    def test_that_have_nothing_left_get_the_next(self, tmp_path) -> None:
        """Some pages take a hundred times as long as others."""
        with closing(Processes(2)) as processes:
            processes.run(partial(first_waits, tmp_path), range(200))
        taken = [json.loads((tmp_path / str(part)).read_text()) for part in range(2)]
        assert sorted(taken[0] + taken[1]) == [*range(200)]
        assert len(taken[1]) > 150

    def test_start_once(self, tmp_path) -> None:
        with closing(Processes(2)) as processes:
            for _ in range(3):
                processes.run(partial(leave_id, tmp_path))
        assert len([*tmp_path.iterdir()]) == 2

    def test_find_what_one_process_finds(self, tmp_path, monkeypatch) -> None:
        header, pages = Header.new("clauses-2"), [{**page, "time": "2026-11-01T00:00:00Z"} for page in archive(40)]
        monkeypatch.setattr(Header, "new", lambda _: header)
        monkeypatch.setattr("dedup_middleware.cli.batch.new_crawl", lambda: "run")
        run_batch(tmp_path, written(tmp_path, pages))
        found = [lines_of(tmp_path, name) for name in ("verdicts.jsonl", "clusters.jsonl")]
        shutil.move(tmp_path / "out", tmp_path / "alone")
        monkeypatch.setattr("dedup_middleware.batch.engine._PROCESS_BYTES", 1)
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2}, raising=False)
        run_batch(tmp_path, tmp_path / "archive.jsonl")
        assert [lines_of(tmp_path, name) for name in ("verdicts.jsonl", "clusters.jsonl")] == found
        stores = (gzip.decompress((tmp_path / name / "store.jsonl.gz").read_bytes()) for name in ("alone", "out"))
        assert next(stores) == next(stores)
        with Deduplicator(imported(tmp_path)) as dedup:
            last = {page["url"]: (page["html"], line["verdict"]) for page, line in zip(pages, found[0], strict=True)}
            again = {dedup.check(url, html).verdict for url, (html, verdict) in last.items() if verdict == "new"}
        assert again == {"unchanged"}

    @pytest.mark.parametrize("name", ["archive.jsonl.gz", "archive.jsonl"])
    def test_a_file_is_read_once(self, tmp_path, name, monkeypatch) -> None:
        """However many processes there are."""
        text = "".join(json.dumps(page) + "\n" for page in archive(20)).encode()
        (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
        was, unpacked = bounded.lines, []

        def counted(file, longest):
            for line in was(file, longest):
                unpacked.append(len(line) + 1)
                yield line

        monkeypatch.setattr(bounded, "lines", counted)
        monkeypatch.setattr("dedup_middleware.batch.engine._PROCESS_BYTES", 1)
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
        assert run_batch(tmp_path, tmp_path / name)["pages"] == 20
        assert sum(unpacked) == len(text)

    @pytest.mark.parametrize("processes", [1, 3])
    def test_a_site_is_divided_evenly(self, tmp_path, processes) -> None:
        """By pages: an archive of a single site is the most common one."""
        pages = [{"url": f"http://a.example/{n}", "html": article("Own", story(n % 60))} for n in range(130)]
        files, job = [written(tmp_path, pages)], Job(config(), Header.new("clauses-2"), "run")
        with engine(None, files, tmp_path) as tables:
            pairs.check(tables, job, files, print)
            sql = pairs._CANDIDATE_ROWS.format(most=shown.COUNTED_PAGES + 1)
            rows = [dict(row) for row in tables.rows(f"{sql} ORDER BY p.page")]
            whole = {edge.page: edge.record for edge in pairs.checked(job, rows)}
            random.Random(1).shuffle(rows)
            rows.sort(key=lambda row: row["page"])
            of = [[row for row in rows if row["page"] % processes == part] for part in range(processes)]
            parts = [{edge.page: edge.record for edge in pairs.checked(job, some)} for some in of]
        assert {page: record for part in parts for page, record in part.items()} == whole
        assert max(map(len, parts)) - min(map(len, parts)) <= 1

    @pytest.mark.parametrize("task", [killed_in_part, str.upper])
    def test_one_that_fails_ends_the_batch(self, task) -> None:
        failed = pytest.raises(DedupError, match="has failed, with the error above, or was killed")
        with closing(Processes(2)) as processes, failed:
            processes.run(task)


def entries(path: Path) -> list[tuple[int, Any]]:
    """Return the pages of an archive with their times, or why records are not pages, by the number of the record."""
    found = ((number, entry(path, number, record)) for number, record in records(path))
    return [(number, each) for number, each in found if each is not None]


def read(path: Path) -> tuple[list[tuple[str, object]], list[str]]:
    """Return URL and text of the pages at *path*, and why other records are not pages."""
    found = [entry for file in files_of([path]) for _, entry in entries(file)]
    refused = [entry.reason for entry in found if isinstance(entry, NotAPageError)]
    pages = [entry[0] for entry in found if not isinstance(entry, NotAPageError)]
    return [(page.url, page.html or page.text) for page in pages], refused


def imported_or_none(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        return None


class TestArchives:
    @pytest.mark.parametrize("packer", [gzip, lzma])
    def test_json_lines_may_be_packed(self, tmp_path, packer) -> None:
        pages = [{"url": A, "html": "<p>one"}, {"url": B, "body": "<p>two"}, {"url": C, "text": "three"}]
        plain = written(tmp_path, pages)
        path = tmp_path / f"archive.jsonl.{'gz' if packer is gzip else 'xz'}"
        with packer.open(path, "wb") as file:
            file.write(plain.read_bytes())
        expected = [(A, "<p>one"), (B, "<p>two"), (C, "three")]
        assert (read(path)[0], read(plain)[0]) == (expected, expected)

    @pytest.mark.parametrize("length", [-1, 0, 2, 50])
    def test_a_line_that_is_too_long_is_refused_and_the_next_is_read(self, tmp_path, length, monkeypatch) -> None:
        line = json.dumps({"url": A, "text": "x" * 100}) + "\n"
        monkeypatch.setattr("dedup_middleware.batch.archive.MAX_BYTES", len(line) - length)
        path = written(tmp_path, [{"url": A, "text": "x" * 100}, {"url": B, "text": "two"}])
        found, refused = read(path)
        assert found == [(A, "x" * 100), (B, "two")][length > 0 :]
        assert refused == ["too long"] * (length > 0)

    def test_bad_records_are_counted_and_named(self, tmp_path) -> None:
        path = tmp_path / "archive.jsonl"
        lines = [b"{", b"[]", b'{"url": 5, "html": ""}', b'{"url": "http://a"}', b'{"html": "x"}', b"\xff\xfe", b""]
        lines += [b'{"url": "http://a", "html": "x", "status": 404}', b"[" * 100_000, b'{"url": "u", "html": "x"}']
        path.write_bytes(b"\n".join(lines))
        found, refused = read(path)
        assert found == [("u", "x")]
        assert Counter(refused) == {
            "not JSON": 3,
            "not a JSON object": 1,
            "invalid field": 2,
            "no html, body or text": 1,
            "status is not 2xx": 1,
        }
        number, first = entries(path)[0]
        assert (number, str(first)[:10]) == (1, "not JSON (")

    def test_a_packed_file_that_is_cut_off_is_read_as_far_as_it_goes(self, tmp_path) -> None:
        lines = json.dumps({"url": A, "text": "one"}).encode() + b"\n" + random.Random(1).randbytes(9_000)
        path = tmp_path / "archive.jsonl.gz"
        path.write_bytes(gzip.compress(lines)[:-4_000])
        found, refused = read(path)
        assert found == [(A, "one")]
        assert "broken from here on" in refused

    def test_warc(self, tmp_path) -> None:
        path = tmp_path / "archive.warc.gz"
        kinds = [("text/html; charset=latin-1", 200), ("image/png", 200), ("text/html", 404)]
        body = "<p>café".encode("latin-1")
        records = [
            record("response", f"http://a.example/{number}", http(body, kind=kind.encode(), status=b"%d Told" % status))
            for number, (kind, status) in enumerate(kinds)
        ]
        path.write_bytes(b"".join(map(gzip.compress, records)) + b"rubbish")
        (_, (content, time)), *others = entries(path)
        assert (content.html, content.encoding) == ("<p>café".encode("latin-1"), "latin-1")
        assert time == "2020-01-02T03:04:05+00:00"
        assert [other.reason for _, other in others] == [
            "neither HTML nor plain text",
            "status is not 2xx",
            "broken from here on",
        ]

    def test_warc_of_a_tool(self, tmp_path) -> None:
        """With records of other kinds, chunks and packed bodies, some of which the tool has unpacked."""
        writing = pytest.importorskip("warcio.warcwriter")
        headers = pytest.importorskip("warcio.statusandheaders").StatusAndHeaders
        path, html = tmp_path / "archive.warc.gz", "<p>café".encode()
        packed, chunk = gzip.compress(html), b"%x;name=value\r\n%s\r\n"
        chunked = b"".join(chunk % (len(part), part) for part in (packed[:9], packed[9:])) + b"0\r\n\r\n"
        bodies = [
            (html, {}),
            (packed, {"Content-Encoding": "gzip"}),
            (chunked, {"Content-Encoding": "gzip", "Transfer-Encoding": "chunked"}),
            (html, {"Content-Encoding": "gzip", "Transfer-Encoding": "chunked"}),
            (html, {"Content-Encoding": "br"}),
            (b"\x8b\x03\x80", {"Content-Encoding": "br"}),
        ]
        with path.open("wb") as file:
            writer = writing.WARCWriter(file, gzip=True)
            writer.write_record(writer.create_warcinfo_record("a.warc.gz", {"software": "one"}))
            for number, (body, more) in enumerate(bodies):
                http = headers("200 OK", [("Content-Type", "text/html"), *more.items()], protocol="HTTP/1.1")
                url = f"http://a.example/é/{number}"
                request = headers("GET / HTTP/1.1", [("Host", "a.example")], is_http_request=True)
                response = writer.create_warc_record(url, "response", BytesIO(body), len(body), http_headers=http)
                writer.write_request_response_pair(
                    writer.create_warc_record(url, "request", http_headers=request), response
                )
        found, refused = read(path)
        assert found == [(f"http://a.example/é/{number}", html) for number in range(5)]
        assert len(refused) == 1

    @pytest.mark.parametrize("made", archives(), ids=lambda made: made.name)
    def test_no_record_of_a_warc_is_lost_silently(self, tmp_path, made) -> None:
        path = tmp_path / "archive.warc"
        path.write_bytes(made.data)
        found, refused = read(path)
        pages = {url: body if isinstance(body, bytes) else body.encode() for url, body in found}
        assert (pages, len(refused)) == (made.pages, made.refused), refused

    def test_what_warcio_reads_is_read_or_counted(self, tmp_path) -> None:
        iterator = pytest.importorskip("warcio.archiveiterator").ArchiveIterator
        for made in archives():
            path = tmp_path / "archive.warc"
            path.write_bytes(made.data)
            try:
                theirs = [each.rec_type for each in iterator(BytesIO(made.data))]
            except Exception:  # noqa: BLE001 - it ends at a wrong length
                continue
            of_pages = [of for of in theirs if of not in ("warcinfo", "request", "metadata")]
            found, refused = read(path)
            assert len(found) + len(refused) >= len(of_pages), made.name

    @pytest.mark.parametrize("encoding", ["br", "zstd"])
    def test_other_encodings_are_unpacked_where_their_library_is(self, tmp_path, encoding) -> None:
        names = {"br": ("brotli",), "zstd": ("compression.zstd", "zstandard")}[encoding]
        library = next((library for name in names if (library := imported_or_none(name))), None)
        packed = b"\x8b\x03\x80\0\0" if library is None else library.compress(HTML)
        path = tmp_path / "archive.warc"
        path.write_bytes(record("response", A, http(packed, f"Content-Encoding: {encoding}\r\n".encode())))
        expected = ([], ["packed in a way that cannot be unpacked here"]) if library is None else ([(A, HTML)], [])
        assert read(path) == expected

    @pytest.mark.parametrize("is_packed", [True, False])
    def test_wacz(self, tmp_path, is_packed) -> None:
        path = tmp_path / "crawl.wacz"
        with zipfile.ZipFile(path, "w") as collection:
            for number in (1, 2):
                warc = record("response", f"{A}{number}", http())
                name = f"archive/{number}.warc" + ".gz" * is_packed
                collection.writestr(name, gzip.compress(warc) if is_packed else warc)
            collection.writestr("archive/3.warc.gz", gzip.compress(warc)[:-20])
            collection.writestr("pages/pages.jsonl", "{}")
        found, refused = read(path)
        assert (found, refused) == ([(f"{A}1", HTML), (f"{A}2", HTML)], ["broken from here on"])

    def test_the_feeds_of_a_crawl(self, tmp_path) -> None:
        """In lines and as an array; what an item has beside a page is left out."""
        lines = [json.dumps({"url": url, "title": "One", "text": "one", "price": 1}) for url in (A, B)]
        (tmp_path / "feed.jsonl").write_text("\n".join(lines))
        (tmp_path / "feed.json").write_text("[\n" + ",\n".join(lines) + "\n]")
        assert [read(tmp_path / name) for name in ("feed.json", "feed.jsonl")] == [([(A, "one"), (B, "one")], [])] * 2

    def test_parquet(self, tmp_path) -> None:
        pyarrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        rows = [{"url": f"http://a.example/{n}", "html": f"<p>{n}".encode(), "other": n} for n in range(7)]
        path = tmp_path / "archive.parquet"
        parquet.write_table(pyarrow.Table.from_pylist(rows), path, row_group_size=3)
        assert read(path)[0] == [(row["url"], row["html"]) for row in rows]

    @pytest.mark.parametrize("name", ["none.jsonl", "archive.csv", "folder", "nul\0.jsonl"])
    def test_what_is_no_archive_is_one_line(self, tmp_path, name) -> None:
        (tmp_path / "archive.csv").write_text("url,html\n")
        (tmp_path / "folder").mkdir()
        with pytest.raises(ConfigError, match=r"archive|cannot be read") as caught:
            files_of([tmp_path / name])
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize("name", ["a.parquet", "a.warc", "a.warc.gz", "a.jsonl.xz", "a.jsonl.gz"])
    def test_a_broken_file_is_refused(self, tmp_path, name) -> None:
        pytest.importorskip("pyarrow")
        (tmp_path / name).write_bytes(b"no")
        found, refused = read(tmp_path / name)
        # A file that is not packed is read as it is, under any name.
        reason = "not JSON" if ".jsonl" in name else "broken from here on"
        assert (found, refused) == ([], [reason])


@pytest.mark.research
@pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java: apt-get install default-jre-headless")
def test_the_results_are_the_same_on_spark(tmp_path) -> None:
    pytest.importorskip("pyspark")
    # The first file is larger than its share: all cores extract its pages.
    paths = [written(tmp_path, archive(count, seed=count), f"{count}.jsonl") for count in (40, 10)]
    run_batch(tmp_path, *paths)
    # For 50 pages, compiling costs more than it saves.
    conf = {
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": tmp_path.as_uri(),
    }
    (tmp_path / "spark-defaults.conf").write_text("".join(f"{name} {value}\n" for name, value in conf.items()))
    env = environment() | {"SPARK_CONF_DIR": str(tmp_path)}
    command = ["dedup", "batch", *(path.name for path in paths), "-o", "on-spark", "--json", "--spark", "local[2]"]
    done = scrapy(*command, folder=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["pages"] == 50
    for name in ("verdicts.jsonl", "clusters.jsonl"):
        assert (tmp_path / "on-spark" / name).read_bytes() == (tmp_path / "out" / name).read_bytes()
    # The first job extracts all pages, in two tasks at least, after one for each file.
    (log,) = tmp_path.rglob("events_*")
    events = [json.loads(line) for line in log.read_text(encoding="utf8").splitlines()]
    first = next(event for event in events if event["Event"] == "SparkListenerJobStart")
    ended = [event["Stage ID"] for event in events if event["Event"] == "SparkListenerTaskEnd"]
    assert sum(map(ended.count, first["Stage IDs"])) >= 4
