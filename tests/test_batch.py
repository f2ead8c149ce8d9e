"""An archive of past crawls: the verdicts of many processes are those of one, and a new crawl knows it all."""

from __future__ import annotations

import gzip
import json
import lzma
import random
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from crawling import environment
from made_archive import archive
from prose import article, blog, story, zh_story
from test_templates_in_crawls import TOWNS, branch

from dedup_middleware import Deduplicator
from dedup_middleware.batch.archive import Refused, entries, parts_of
from dedup_middleware.batch.command import batch
from dedup_middleware.batch.engine import OneProcess
from dedup_middleware.batch.judging import Job
from dedup_middleware.batch.output import files_in, write_judged
from dedup_middleware.batch.rounds import judge_all
from dedup_middleware.errors import ConfigError
from dedup_middleware.index.exporting import Exporter
from dedup_middleware.index.importing import fill
from dedup_middleware.index.opening import index_for_command
from dedup_middleware.index.spool import Spool
from dedup_middleware.settings.config import Config
from dedup_middleware.stores.layout import Header

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

A, B, C = "http://a.example/1", "http://b.example/2", "http://c.example/3"
COMPARED = ("url", "verdict", "owner_url", "score", "reason", "witness", "difference", "evidence")


def written(folder: Path, pages: Iterable[dict[str, object]], name: str = "archive.jsonl") -> Path:
    """Return where *pages* are, as JSON Lines."""
    path = folder / name
    path.write_text("".join(json.dumps(page) + "\n" for page in pages), encoding="ascii")
    return path


def config(**settings: object) -> Config:
    given = {f"DEDUP_{name.upper()}": value for name, value in settings.items()}
    return Config.from_settings({"DEDUP_STORE": "memory:", "DEDUP_LOG": "", **given}, None)


def one_by_one(pages: Iterable[dict[str, str]]) -> tuple[list[list[object]], set[str]]:
    """Return what a crawl would say of *pages*, and what it would release."""
    with Deduplicator() as dedup:
        verdicts = [[getattr(verdict, name) for name in COMPARED] for verdict in dedup.stream(pages)]
        return verdicts, set(dedup.released)


def side_by_side(folder: Path, path: Path, *, world_pages: int, buckets: int = 5) -> Path:
    """Judge the archive at *path* as Spark would, in this process; return where the results are."""
    job = Job(config(), Header.new("clauses-2"), "run", buckets=buckets)
    engine, target = OneProcess(), folder / f"by-{world_pages}"
    with files_in(target) as files:
        judged = judge_all(engine, job, parts_of([path], split=50_000), world_pages=world_pages, tell=lambda _: None)
        write_judged(engine, job, judged, files)
    return target


def verdicts_in(folder: Path) -> tuple[list[list[object]], set[str]]:
    """Return the verdicts in a batch's *folder*, as :func:`one_by_one` does."""
    said = [json.loads(line) for line in (folder / "verdicts.jsonl").read_text().splitlines()]
    return [[line[name] for name in COMPARED] for line in said], {s["url"] for s in said if "released" in s}


def run(folder: Path, *args: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "scrapy", "dedup", *map(str, args)]
    return subprocess.run(
        command, cwd=folder, env=environment(), capture_output=True, text=True, check=False, timeout=600
    )


def odd_pages() -> list[dict[str, str]]:
    """Return what `made_archive` has not: views with their stories, branches of a bank, many fetches of a page."""
    chance, pages = random.Random(5), []
    for number in range(6):
        tell = (story, zh_story)[number % 2]
        name = f"http://paper.example/{number}-of-the-stories"
        own = article("Own", tell(number)).replace("</head>", f'<link rel="canonical" href="{name}"></head>')
        pages += [{"url": f"{name}/print", "html": own}, {"url": name, "html": article("Own", tell(number))}]
        pages += [{"url": f"http://c{copy}.example/{number}", "html": blog("Copy", tell(number))} for copy in range(5)]
        pages += [{"url": name, "html": article("Own", tell(number + 100 * chance.randrange(2)))} for _ in range(2)]
    pages += [{"url": f"http://bank.example/{town}", "html": branch(town)} for town in TOWNS]
    common = story(99)[0].split(". ")
    for number in range(20):
        text = [*story(200 + number), ". ".join(chance.sample(common, 1))]
        pages.append({"url": f"http://h{number % 7}.example/{number}", "html": article("Common", text)})
    chance.shuffle(pages)
    view = article("Own", story(400)).replace("</head>", '<link rel="canonical" href="/story-400"></head>')
    own = {"url": "http://paper.example/story-400", "html": article("Own", story(400))}
    copied = {"url": "http://copies.example/bank", "html": branch("Copied")}
    return [copied, *pages, {"url": "http://paper.example/story-400/print", "html": view}, own, own]


class TestSideBySide:
    """However the archive is divided, verdicts are those of a crawl."""

    @pytest.mark.parametrize("world_pages", [1, 6])
    def test_verdicts_are_those_of_one_process(self, tmp_path, world_pages) -> None:
        pages = [*archive(130)]
        expected = one_by_one(pages)
        folder = side_by_side(tmp_path, written(tmp_path, pages), world_pages=world_pages)
        assert verdicts_in(folder) == expected
        assert {"new", "duplicate", "related", "unjudged"} <= {verdict[1] for verdict in expected[0]}

    @pytest.mark.parametrize("world_pages", [1, 9])
    def test_so_are_those_on_views_templates_and_pages_that_come_again(self, tmp_path, world_pages) -> None:
        pages = odd_pages()
        expected = one_by_one(pages)
        folder = side_by_side(tmp_path, written(tmp_path, pages), world_pages=world_pages)
        assert verdicts_in(folder) == expected
        assert expected[1], "nothing was released"
        assert {"same", "the story's own page"} <= {
            said for verdict in expected[0] for said in (verdict[1], verdict[4])
        }

    def test_what_is_written_is_what_one_process_writes(self, tmp_path) -> None:
        path = written(tmp_path, archive(80, seed=3))
        folder = side_by_side(tmp_path, path, world_pages=3)
        batch(options(tmp_path, path), config(), print)
        for name in ("verdicts.jsonl", "clusters.jsonl"):
            assert (folder / name).read_bytes() == (tmp_path / "out" / name).read_bytes()
        one, other = (comparable(tmp_path, each) for each in (folder, tmp_path / "out"))
        assert one == other
        assert len(one) > 60


def imported(folder: Path, results: Path) -> str:
    """Return the store that the *results* of a batch make."""
    store = f"sqlite:{folder / results.name}.sqlite"
    with Spool() as spool:
        spool.read(results / "store.jsonl.xz")
        fill(store, spool, common=3, fingerprint="clauses", distance=10)
        assert not spool.refused
    return store


def comparable(folder: Path, results: Path) -> list[str]:
    """Return what the store that *results* make knows."""
    with index_for_command(imported(folder, results), "test", common=3, text_limit=20_000) as (store, index):
        return [*Exporter(store, index).comparable_lines()]


class TestCommand:
    def test_an_archive_of_nothing(self, tmp_path) -> None:
        done = run(tmp_path, "batch", written(tmp_path, []), "-o", "out")
        assert (done.returncode, done.stdout.splitlines()[0]) == (0, "no pages in there")

    def test_a_new_crawl_knows_the_archive(self, tmp_path) -> None:
        pages = [{"url": A, "html": article("First", story(1)), "time": "2019-05-01T08:00:00Z"}]
        batch(options(tmp_path, written(tmp_path, pages)), config(), print)
        store = imported(tmp_path, tmp_path / "out")
        with Deduplicator(store) as dedup:
            verdict = dedup.add(B, blog("Repost", story(1)))
        assert (verdict.verdict, verdict.owner_url) == ("duplicate", A)
        with index_for_command(store, "test", common=3, text_limit=0) as (_, index):
            assert next(index.pages()).time == "2019-05-01T08:00:00+00:00"

    def test_a_crawl_that_writes_a_feed_knows_the_archive_too(self, tmp_path, site, crawl) -> None:
        path = written(tmp_path, [{"url": A, "html": article("First", story(1))}])
        batch(options(tmp_path, path), config(), print)
        side_by_side(tmp_path, path, world_pages=1)
        urls = [site.add("/repost", blog("Repost", story(1))), site.add("/news", article("News", story(2)))]
        feed = {"FEEDS": {"feed.jsonl": {"format": "jsonlines"}}}
        for results in ("out", "by-1"):
            store = imported(tmp_path, tmp_path / results)
            outcome = crawl("sample_spiders.OneByOne", urls=",".join(urls), settings={"DEDUP_STORE": store, **feed})
            assert [item["url"] for item in outcome.lines("feed.jsonl")] == urls[1:]

    @pytest.mark.parametrize(
        ("choice", "settings", "owner"),
        [("earliest", {}, A), ("longest", {}, B), ("preferred", {"preferred": ["c.example"]}, C)],
    )
    def test_a_cluster_has_the_owner_that_is_asked_for(self, tmp_path, choice, settings, owner) -> None:
        texts = {A: story(1), B: [*story(1), story(2)[0][:200]], C: story(1)}
        path = written(tmp_path, [{"url": url, "html": blog("A blog", text)} for url, text in texts.items()])
        (cluster,) = clusters_of(tmp_path, path, choice, **settings)
        assert cluster == {"owner": owner, "size": 3, "urls": [A, B, C]}

    def test_results_are_not_overwritten(self, tmp_path) -> None:
        path = written(tmp_path, [{"url": A, "html": article("First", story(1))}])
        clusters_of(tmp_path, path, "earliest")
        with pytest.raises(ConfigError, match=r"verdicts\.jsonl is there already"):
            clusters_of(tmp_path, path, "earliest")

    def test_what_cannot_be_judged_on_spark_is_said_before_it_starts(self, tmp_path) -> None:
        with pytest.raises(ConfigError, match="cannot be judged on Spark"):
            batch(options(tmp_path, written(tmp_path, []), spark="local"), config(fingerprint="clauses+simhash"), print)


def options(folder: Path, path: Path, owner: str = "earliest", spark: str | None = None):
    from argparse import Namespace  # noqa: PLC0415 - what a command line would be

    return Namespace(inputs=[path], output=folder / "out", owner=owner, spark=spark, json=True)


def clusters_of(folder: Path, path: Path, owner: str, **settings: object) -> list[dict[str, object]]:
    batch(options(folder, path, owner), config(**settings), print)
    return [json.loads(line) for line in (folder / "out" / "clusters.jsonl").read_text().splitlines()]


def read(path: Path, *, split: int = 10_000) -> tuple[list[tuple[str, object]], Refused]:
    """Return URL and text of the pages at *path*, and what is none."""
    refused = Refused()
    found = [entry for part in parts_of([path], split=split) for entry in entries(part, refused)]
    return [(entry.content.url, entry.content.html or entry.content.text) for entry in found], refused


def warc_record(url: str, kind: str, status: int) -> bytes:
    http = f"HTTP/1.0 {status} Told\r\nContent-Type: {kind}\r\n\r\n<p>café".encode("latin-1")
    said = f"WARC-Type: response\r\nWARC-Target-URI: {url}\r\nWARC-Date: 2020-01-02T03:04:05Z\r\n"
    said += f"Content-Type: application/http; msgtype=response\r\nContent-Length: {len(http)}"
    return f"WARC/1.0\r\n{said}\r\n\r\n".encode() + http + b"\r\n\r\n"


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

    @pytest.mark.parametrize("split", [1, 7, 100, 1_000])
    def test_a_file_in_parts_has_every_line_once(self, tmp_path, split) -> None:
        pages = [{"url": f"http://a.example/{n}", "text": "x" * (n % 13)} for n in range(60)]
        found, refused = read(written(tmp_path, pages), split=split)
        assert [url for url, _ in found] == [page["url"] for page in pages]
        assert not refused.counts

    def test_bad_records_are_counted_and_named(self, tmp_path) -> None:
        path = tmp_path / "archive.jsonl"
        lines = [b"{", b"[]", b'{"url": 5, "html": ""}', b'{"url": "http://a"}', b'{"html": "x"}', b"\xff\xfe", b""]
        lines += [b'{"url": "http://a", "html": "x", "status": 404}', b"[" * 100_000, b'{"url": "u", "html": "x"}']
        path.write_bytes(b"\n".join(lines))
        found, refused = read(path, split=10**6)
        assert found == [("u", "x")]
        assert refused.counts == {
            "no JSON": 3,
            "no JSON object": 1,
            "a field that is no page's": 2,
            "neither html nor body nor text": 1,
            "a status other than 2xx": 1,
        }
        assert refused.first[0].startswith(f"{path}, line 1: no JSON (")

    def test_a_packed_file_that_is_cut_off_is_read_as_far_as_it_goes(self, tmp_path) -> None:
        lines = json.dumps({"url": A, "text": "one"}).encode() + b"\n" + random.Random(1).randbytes(9_000)
        path = tmp_path / "archive.jsonl.gz"
        path.write_bytes(gzip.compress(lines)[:-4_000])
        found, refused = read(path)
        assert found == [(A, "one")]
        assert "what follows cannot be unpacked" in refused.counts

    def test_warc(self, tmp_path) -> None:
        pytest.importorskip("warcio")
        path = tmp_path / "archive.warc.gz"
        kinds = [("text/html; charset=latin-1", 200), ("image/png", 200), ("text/html", 404)]
        records = [warc_record(f"http://a.example/{number}", *kind) for number, kind in enumerate(kinds)]
        path.write_bytes(b"".join(map(gzip.compress, records)) + b"rubbish")
        refused = Refused()
        (entry,) = [entry for part in parts_of([path]) for entry in entries(part, refused)]
        assert (entry.content.html, entry.content.encoding) == ("<p>café".encode("latin-1"), "latin-1")
        assert entry.time == "2020-01-02T03:04:05+00:00"
        assert refused.counts["no page of HTML"] == refused.counts["a status other than 2xx"] == 1

    def test_parquet(self, tmp_path) -> None:
        pyarrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        rows = [{"url": f"http://a.example/{n}", "html": f"<p>{n}".encode(), "other": n} for n in range(7)]
        path = tmp_path / "archive.parquet"
        parquet.write_table(pyarrow.Table.from_pylist(rows), path, row_group_size=3)
        assert len(parts_of([path])) == 3
        assert read(path)[0] == [(row["url"], row["html"]) for row in rows]

    @pytest.mark.parametrize("name", ["none.jsonl", "archive.csv", "folder", "broken.parquet"])
    def test_what_is_no_archive_is_one_line(self, tmp_path, name) -> None:
        (tmp_path / "archive.csv").write_text("url,html\n")
        (tmp_path / "broken.parquet").write_text("no")
        (tmp_path / "folder").mkdir()
        with pytest.raises(ConfigError, match=name) as caught:
            parts_of([tmp_path / name])
        assert "\n" not in str(caught.value)


@pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java: apt-get install default-jre-headless")
def test_on_spark_too(tmp_path) -> None:
    pytest.importorskip("pyspark")
    pages = [*archive(25, seed=1)]
    done = run(tmp_path, "batch", written(tmp_path, pages), "-o", "out", "--spark", "local[1]", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["pages"] == 25
    assert verdicts_in(tmp_path / "out") == one_by_one(pages)
