"""``scrapy dedup``: what a user reads after a crawl, while one runs, and when something is wrong."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from urllib.parse import unquote

import pytest
from crawling import Outcome, run_job, scrapy, store_uri, write_job
from local_site import PATIENCE, Site
from msgspec.structs import replace
from prose import article, blog, story
from scrapy.cmdline import execute
from scrapy.settings import Settings

from dedup_middleware.checks.table import Kind, Relation
from dedup_middleware.cli.commands import COMMANDS, overview, subcommand
from dedup_middleware.fingerprints import ClauseFingerprinter
from dedup_middleware.index.shared import index_of
from dedup_middleware.records.file import Record, RecordLog
from dedup_middleware.stores import default_backend, open_store, store_exists
from dedup_middleware.stores.base import SCHEMA_VERSION

ENVIRONMENT = {k: v for k, v in os.environ.items() if not k.startswith("SCRAPY_")} | {
    "PYTHONIOENCODING": "utf8",
    "XDG_DATA_HOME": "/dev/null/data",
}


def command(*arguments):
    return [sys.executable, "-m", "scrapy", "dedup", *arguments]


@dataclass
class Output:
    """What a command printed."""

    exit_status: int
    out: str
    err: str

    @property
    def json(self):
        return [json.loads(line) for line in self.out.splitlines()]

    def refused(self, *words, status=1):
        """Assert that the command refused with one line that has all *words*, and this exit *status*."""
        assert self.exit_status == status
        assert self.out == ""
        (line,) = self.err.splitlines()
        assert line.startswith("dedup: ")
        assert all(word in line for word in words), line


def run(*arguments, folder):
    """Run the command as its user does, in a process of its own."""
    done = scrapy("dedup", *arguments, folder=folder, env=ENVIRONMENT)
    assert "Traceback" not in done.stderr
    return Output(done.returncode, done.stdout, done.stderr)


#: Lets a command find the spiders of a folder outside of a project.
JOB = ("-s", "JOBDIR=.scrapy")


def run_here(*arguments, folder):
    """Run the command in this process, outside any project, which takes a hundredth of the time."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf8", write_through=True) for _ in range(2))
    before = Path.cwd()
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as ended:
            execute(["scrapy", "dedup", *arguments], Settings())
    finally:
        os.chdir(before)
    said = (stream.buffer.getvalue().decode() for stream in (out, err))
    return Output(int(ended.value.code or 0), *said)


@dataclass
class Crawled:
    """A crawl of a story, its repost, another story that quotes it, and a list."""

    outcome: Outcome
    first: str
    other: str
    repost: str
    index: str

    @property
    def here(self):
        return self.outcome.here

    def run(self, *arguments):
        return run(*arguments, *self.here, folder=self.outcome.folder)

    def run_here(self, *arguments):
        return run_here(*arguments, *self.here, folder=self.outcome.folder)


@pytest.fixture(scope="module")
def crawled(tmp_path_factory):
    site = Site()
    # Sentences that a copy may add: without a name.
    own = [story(number)[0].partition(".")[0].lower() + "." for number in (3, 4)]
    with contextlib.closing(site):
        pages = {
            "first": site.add("/first", article("First", story(1))),
            "other": site.add("/%E5%85%B6%E4%BB%96", article("Other", story(2))),
            "repost": site.add(
                "/repost",
                blog("Repost", [story(1)[0], own[0], *story(1)[1:3], own[1], *story(1)[3:5]]),
                host=1,
            ),
            "index": site.add("/list", "<a href=/x>x</a>"),
        }
        folder = tmp_path_factory.mktemp("crawled")
        urls = ",".join(pages.values())
        outcome = run_job(folder, write_job(folder, "sample_spiders.OneByOne", urls=urls))
    assert [r["verdict"] for r in outcome.records] == ["duplicate", "unchecked"]
    return Crawled(outcome, **pages)


@pytest.fixture
def own(crawled, tmp_path):
    """Return a copy of the crawl that a test may spoil."""
    folder = tmp_path / "copy"
    shutil.copytree(crawled.outcome.folder, folder)
    return Crawled(
        Outcome(folder, 0, ""),
        **{name: getattr(crawled, name) for name in ("first", "other", "repost", "index")},
    )


@contextlib.contextmanager
def running_crawl(crawled):
    """Hold the store as a running crawl does."""
    with contextlib.closing(
        open_store(store_uri(crawled.outcome.folder), fingerprint_scheme=ClauseFingerprinter.scheme)
    ):
        yield


def record(url, *, verdict="duplicate", score=0.9, **fields):
    return Record("2024-11-20T12:00:00+00:00", "s", "r", url, verdict, "dropped", score=score, **fields)


def write_log(path, *records):
    """Write *records* to the log at *path*, and return it."""
    log = RecordLog(path)
    for one in records:
        log.append(one)
    log.close()
    return path


class TestLog:
    @pytest.mark.every_scrapy
    def test_it_shows_what_was_dropped_and_why(self, crawled):
        said = crawled.run("log")
        assert (said.exit_status, said.err) == (0, "")
        head, original, reason, *evidence, time = said.out.splitlines()
        assert reason == "    reason    near_match (the text is nearly the same)"
        assert time.startswith("    time      2")
        assert crawled.repost in head
        assert "dropped" in head
        assert "0.88" in head
        assert original == f"    original  {crawled.first}"
        assert evidence
        assert all(any(line.removeprefix("    repeats   ")[:40] in p for p in story(1)) for line in evidence)

    def test_json_with_all_is_the_log_itself(self, crawled):
        lines = crawled.outcome.lines("records.jsonl")
        assert [line.get("event") for line in lines] == ["begin", None, None, None, None, "end"]
        assert crawled.run_here("log", "--all", "--json").json == lines[1:-1]

    def test_filters_by_original_and_by_host_as_a_browser_shows_them(self, tmp_path):
        write_log(
            tmp_path / "log",
            record("http://xn--bcher-kva.example/1", original_url="http://o/%E5%85%B6"),
            record("http://a.example/2", original_url="http://o/%E5%85%B6"),
            record("http://a.example/3", original_url="http://o/"),
        )
        here = ("--json", "-s", "DEDUP_LOG=log")
        said = run_here("log", "--original", "http://o/其", *here, folder=tmp_path)
        assert [r["url"][-1] for r in said.json] == ["1", "2"]
        said = run_here("log", "--host", "Bücher.EXAMPLE", *here, folder=tmp_path)
        assert [r["url"][-1] for r in said.json] == ["1"]
        run_here("log", "--host", "http://a.example/", *here, folder=tmp_path).refused(
            "http://a.example/", "not a host name"
        )

    def test_a_page_cannot_steer_the_terminal(self, tmp_path):
        hostile = "\x1b[2J\r\n\u202eevil\x9b"
        write_log(
            tmp_path / "log", record("http://a/" + hostile, original_url=hostile, message=hostile, evidence=[hostile])
        )
        said = run_here("log", "-s", "DEDUP_LOG=log", folder=tmp_path)
        assert said.exit_status == 0
        assert len(said.out.splitlines()) == 5
        assert said.out.replace("\n", "").isprintable()

    def test_a_title_that_the_terminal_cannot_show_is_escaped(self, tmp_path):
        write_log(tmp_path / "log", record("http://a/", evidence=["旧粮仓\ud800"]))
        done = subprocess.run(
            command("log", "-s", "DEDUP_LOG=log"),
            cwd=tmp_path,
            env=ENVIRONMENT | {"PYTHONIOENCODING": "ascii"},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert "\\u65e7\\u7cae\\u4ed3\\ud800" in done.stdout

    def test_an_unchanged_page_is_not_shown_as_dropped_for_what_kept_it(self, tmp_path):
        kept = {"verdict": "unchanged", "original_url": "http://a/", "reason": "other_numbers"}
        write_log(tmp_path / "log", record("http://a/2", **kept))
        shown = run_here("log", "-s", "DEDUP_LOG=log", folder=tmp_path).out.splitlines()
        assert [line.split()[:2] for line in shown[:2]] == [["unchanged", "0.90"], ["items", "dropped"]]

    def test_a_duplicate_without_items_has_what_became_of_its_links(self, tmp_path):
        write_log(tmp_path / "log", replace(record("http://a/2"), outcome="links_last"))
        shown = run_here("log", "-s", "DEDUP_LOG=log", folder=tmp_path).out.splitlines()
        assert shown[0].startswith("links_last")
        assert shown[1] == "    items     none, so nothing was dropped; the links of the page are followed last"

    def test_a_reader_that_has_enough_is_no_error(self, tmp_path):
        write_log(tmp_path / "log", *(record(f"http://a/{n}", evidence=["word " * 40] * 5) for n in range(1000)))
        writer = subprocess.Popen(
            command("log", "-s", "DEDUP_LOG=log"),
            cwd=tmp_path,
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        with writer:
            assert b"http://a/0" in writer.stdout.readline()
            writer.stdout.close()
            assert writer.stderr.read() == b""
            assert writer.wait(20) == 0

    def test_what_another_program_wrote_into_the_log_is_passed_over(self, own):
        commands = (["log"], ["log", "--all", "--min-score", "0.5"], ["log", "--json"], ["stats"])
        before = [own.run_here(*arguments).out for arguments in commands]
        like_ours = own.outcome.records[0]
        strange = [5, [], {"url": own.repost}, *({**like_ours, name: {"a": 1}} for name in like_ours)]
        strange += [{**like_ours, "score": "high"}, {**like_ours, "score": ""}, {**like_ours, "evidence": [5]}]
        with (own.outcome.folder / "records.jsonl").open("a", encoding="ascii") as file:
            file.writelines(json.dumps(line) + "\n" for line in strange)
        for arguments, out in zip(commands, before, strict=True):
            said = own.run_here(*arguments)
            assert (said.exit_status, said.err, said.out) == (0, "", out)


class TestStats:
    @pytest.mark.every_scrapy
    def test_it_sums_up_the_log(self, crawled):
        (sums,) = crawled.run_here("stats", "--json").json
        names = ("pages", "verdict/", "unchecked/", "kept/", "items/", "lists", "without_items")
        of_records = {
            n: v for n, v in crawled.outcome.stats.items() if n.startswith(tuple(f"dedup/{n}" for n in names))
        }
        assert sums["stats"] == of_records
        assert sums["stats"]["dedup/items/dropped"] == 1
        assert sums["hosts"] == {"127.0.0.2 repeats 127.0.0.1": 1}
        said = crawled.run_here("stats")
        assert (said.exit_status, said.err) == (0, "")
        summary = crawled.outcome.log.partition("dedup summary\n")[2].partition("  links followed last")[0]
        assert summary in said.out
        assert "127.0.0.2 repeats 127.0.0.1" in said.out

    def test_it_needs_no_store(self, crawled):
        with running_crawl(crawled):
            (sums,) = crawled.run("stats", "--json").json
        assert sums["stats"]["dedup/items/dropped"] == 1


class TestStoreInfo:
    @pytest.mark.every_scrapy
    def test_it_shows_what_is_in_the_store(self, crawled):
        uri = store_uri(crawled.outcome.folder)
        (info,) = crawled.run_here("store", "info", "--json").json
        assert datetime.fromisoformat(info.pop("created")).utcoffset() is not None
        assert info.pop("bytes") > 1000
        assert info.pop("dropped_bytes") > 0
        assert info == {
            "store": uri,
            "fingerprint": ClauseFingerprinter.scheme,
            "schema": SCHEMA_VERSION,
            "originals": 3,
            "duplicates": 1,
            "dropped_items": 1,
            "to_release": 0,
            "crawls": 0,
        }
        said = crawled.run_here("store", "info")
        assert (said.exit_status, said.err) == (0, "")
        assert re.search("originals +3\nduplicates +1\ndropped items +1, ", said.out)
        assert all(len(line) <= 80 or uri in line for line in said.out.splitlines())


class TestHelp:
    @pytest.mark.parametrize("name", ["", *COMMANDS])
    def test_it_fits_a_terminal_of_80_columns(self, name, tmp_path, monkeypatch):
        monkeypatch.setenv("COLUMNS", "80")
        said = run_here(*name.split(), "--help", folder=tmp_path)
        assert said.exit_status == 0
        assert [line for line in said.out.splitlines() if len(line) > 80] == []

    @pytest.mark.parametrize("name", COMMANDS)
    def test_its_examples_can_be_called(self, name, tmp_path):
        examples = subcommand(name).examples
        assert examples
        for example in examples:
            assert example.startswith(name)
            assert run_here(*shlex.split(example), folder=tmp_path).exit_status != 2, example

    def test_the_overview_names_every_command_on_a_line(self, tmp_path):
        said = run_here("--help", folder=tmp_path)
        assert said.exit_status == 0
        lines = said.out.splitlines()
        assert all(any(line.startswith(f"  {name} ") for line in lines) for name in COMMANDS)
        assert said.out.strip() == overview()
        assert run_here("store", "--help", folder=tmp_path).out.strip() == overview("store ")

    def test_the_version(self, tmp_path):
        said = run_here("--version", folder=tmp_path)
        assert (said.exit_status, said.out) == (0, f"dedup-middleware {version('dedup-middleware')}\n")


class TestExplain:
    def test_an_original_is_shown_with_its_text_and_who_repeats_it(self, crawled):
        (explained,) = crawled.run_here("explain", crawled.first, "--json").json
        stored = explained["stored"]
        assert (stored["kind"], stored["repeated_by"]) == ("original", [crawled.repost])
        assert (explained["record"]["verdict"], explained["record"]["items_kept"]) == ("new", 1)
        assert all(any(s["text"] in paragraph for paragraph in ["First", *story(1)]) for s in stored["sentences"])
        said = crawled.run_here("explain", crawled.first)
        assert (said.exit_status, said.err) == (0, "")
        assert re.search(r"as an original of \d+ clauses, repeated by 1 page:$", said.out, re.MULTILINE)
        assert crawled.repost in said.out
        alone = crawled.run_here("explain", crawled.other).out
        assert re.search(r"as an original of \d+ clauses, not repeated by any page\.$", alone, re.MULTILINE)

    @pytest.mark.every_scrapy
    def test_a_duplicate_is_shown_sentence_by_sentence(self, crawled):
        (explained,) = crawled.run_here("explain", crawled.repost, "--json").json
        assert explained["record"] == crawled.outcome.record(crawled.repost)
        stored = explained["stored"]
        assert (stored["kind"], stored["original_url"]) == ("duplicate", crawled.first)
        repeated = " ".join(s["text"] for s in stored["sentences"] if s["share"] == 1)
        assert repeated == " ".join(story(1)[:5])
        said = crawled.run_here("explain", crawled.repost)
        marks = [line[2] for line in said.out.partition("Its text (")[2].splitlines()[1:]]
        assert (marks.count("="), marks.count("+")) == (15, 2)

    def test_a_page_may_be_named_as_a_browser_shows_it(self, crawled):
        shown = unquote(crawled.other)
        assert shown.endswith("/其他")
        (explained,) = crawled.run_here("explain", shown, "--json").json
        assert (explained["url"], explained["stored"]["kind"]) == (crawled.other, "original")

    def test_of_a_page_whose_original_is_gone_nothing_is_marked(self, own):
        uri = store_uri(own.outcome.folder)
        with contextlib.closing(open_store(uri, fingerprint_scheme=None)) as store:
            index = index_of(store)
            for page in [page for page in index.pages() if page.url == own.first]:
                index.remove(page.number)
        (explained,) = own.run_here("explain", own.repost, "--json").json
        assert explained["stored"]["original_url"] is None
        assert {sentence["share"] for sentence in explained["stored"]["sentences"]} == {None}
        said = own.run_here("explain", own.repost)
        assert "a duplicate of a page that is not stored any more" in said.out
        assert not [line for line in said.out.splitlines() if line.startswith(("  = ", "  + "))]

    def test_two_stored_pages_are_compared_edit_by_edit(self, crawled):
        (compared,) = crawled.run_here("explain", crawled.repost, crawled.first, "--json").json
        assert (compared["verdict"], compared["relation"]) == ("duplicate", Relation.ACROSS.value)
        assert {(edit["kind"], edit["copy"]) for edit in compared["edits"]} == {(Kind.ADDED.value, True)}
        (compared,) = crawled.run_here("explain", crawled.other, crawled.first, "--json").json
        assert (compared["verdict"], compared["relation"]) == ("new", Relation.SAME_SITE.value)
        said = crawled.run_here("explain", crawled.repost, crawled.first)
        assert (said.exit_status, said.err) == (0, "")
        assert f"compared with {crawled.first}" in said.out
        assert "across sites: " in said.out

    def test_two_pages_are_compared_in_any_scope(self, crawled):
        """Or each page that was dropped for one of its own crawl would be called new."""
        scope = ("-s", "DEDUP_SCOPE=crawl")
        (compared,) = crawled.run_here("explain", crawled.repost, crawled.first, "--json", *scope).json
        assert compared["verdict"] == "duplicate"

    @pytest.mark.parametrize(
        ("other", "verdict"), [("http://a.test/1?utm_source=x", "duplicate"), ("http://a.test/2", "unchecked")]
    )
    def test_pages_with_little_text_are_compared_as_a_crawl_does(self, tmp_path, other, verdict):
        (tmp_path / "page").write_text("<title>Tickets</title><p>Sold out until May.</p>", encoding="utf8")
        files = ("--html", str(tmp_path / "page"), "--other-html", str(tmp_path / "page"))
        (compared,) = run_here("explain", other, "http://a.test/1", *files, "--json", folder=tmp_path).json
        assert (compared["verdict"], compared["edits"]) == (verdict, [])

    def test_a_page_is_compared_with_what_a_file_has_of_it(self, crawled, tmp_path):
        changed = [*story(1)[:3], f"{story(1)[3]} It was in 1999.", *story(1)[4:]]
        (tmp_path / "changed.html").write_text(article("First", changed), encoding="utf8")
        name = str(tmp_path / "changed.html")
        (compared,) = crawled.run_here("explain", crawled.other, crawled.first, "--html", name, "--json").json
        assert (compared["verdict"], compared["reason"]) == ("related", "extra_text")
        assert changed[3] in {edit["here"] for edit in compared["edits"] if not edit["copy"]}

    def test_two_files_need_no_store(self, tmp_path):
        for name, title in ("one", "First"), ("two", "First"):
            (tmp_path / name).write_text(blog(title, story(1)), encoding="utf8")
        files = ("--html", str(tmp_path / "one"), "--other-html", str(tmp_path / "two"))
        said = run_here("explain", "http://a.test/1", "http://b.test/2", *files, folder=tmp_path)
        assert (said.exit_status, said.err) == (0, "")
        assert "duplicate" in said.out
        assert not [*tmp_path.glob("**/store*")]

    def test_a_page_to_compare_with_that_is_not_stored_is_one_line(self, crawled):
        found = crawled.run_here("explain", crawled.first, "http://nowhere/")
        found.refused("http://nowhere/ was not found in the store", status=3)
        found = crawled.run_here("explain", crawled.first, f"{crawled.repost}/?page=1")
        found.refused("was not found in the store", f"The nearest URL there is {crawled.repost}.", status=3)
        crawled.run_here("explain", crawled.first, "--other-html", "x").refused("--other-html needs")

    def test_an_unknown_page_is_one_line(self, crawled):
        found = crawled.run_here("explain", "http://nowhere/")
        found.refused("http://nowhere/ was not found in the store", "A page without items is not stored.", status=3)
        assert "nearest" not in found.err

    @pytest.mark.parametrize(
        "typed", ["https://{}", "{}", "http://{}/", "http://{}?utm_source=x&page=2", "https://{}#top", "http://www.{}"]
    )
    @pytest.mark.parametrize("without", ["DEDUP_STORE", "DEDUP_LOG"])
    def test_of_a_page_that_was_never_crawled_the_nearest_is_named(self, crawled, typed, without, tmp_path):
        """From the store where there are no records, and the other way round."""
        url = typed.format(crawled.first.removeprefix("http://"))
        found = crawled.run_here("explain", url, "-s", f"{without}={tmp_path / 'nowhere'}")
        found.refused("was not found in the store", f"The nearest URL there is {crawled.first}.", status=3)

    def test_of_several_near_urls_the_nearest_is_named(self, tmp_path):
        log = RecordLog(tmp_path / "log.jsonl")
        urls = [f"http://a.test/p{rest}" for rest in ("?id=1", "?id=1&sid=77", "/", "", "/1", "?id=2")]
        for url in [*urls, "http://a.test/p?" + 9999 * "x", "http://b.test/?from=http://a.test/p"]:
            log.append(Record("2026-11-20T12:00:00+00:00", "s", "c", url, "new"))
        log.close()
        here = ("-s", f"DEDUP_STORE=sqlite:{tmp_path / 'none'}", "-s", f"DEDUP_LOG={tmp_path / 'log.jsonl'}")
        for asked, near in [
            ("http://a.test/p?id=1&sid=78", "http://a.test/p?id=1&sid=77"),
            ("http://a.test/p?id=3", "http://a.test/p?id=1"),
            ("https://a.test/p/", "http://a.test/p/"),
            ("http://a.test/P", "http://a.test/p"),
        ]:
            run_here("explain", asked, *here, folder=tmp_path).refused(f"The nearest URL there is {near}.", status=3)
        assert "nearest" not in run_here("explain", "http://a.test/p/2", *here, folder=tmp_path).err

    def test_while_a_crawl_runs_it_says_what_the_log_knows(self, crawled):
        with running_crawl(crawled):
            said = crawled.run("explain", crawled.repost)
            assert (said.exit_status, said.err) == (0, "")
            assert "in use by another crawl" in said.out
            assert "only the records are shown" in said.out
            assert f"original  {crawled.first}" in said.out
            crawled.run("explain", "http://nowhere/").refused("not found", "in use by another crawl", status=3)


class TestReset:
    def test_it_forgets_every_page_and_with_log_the_records_too(self, own):
        folder = own.outcome.folder
        said = own.run_here("store", "reset", "--yes")
        assert (said.exit_status, said.err) == (0, "")
        assert said.out == f"Deleted the store {store_uri(folder)}\n"
        assert not store_exists(store_uri(folder))
        assert (folder / "records.jsonl").exists()
        (again,) = own.run_here("store", "reset", "--log", "--json", "--yes").json
        assert (again["removed"], again["log_removed"]) == (False, True)
        assert not (folder / "records.jsonl").exists()
        assert (folder / "items.jsonl").exists()

    def test_it_says_what_it_will_remove_and_asks(self, own):
        folder = own.outcome.folder
        what = (f"the store {store_uri(folder)}", f"the records {folder / 'records.jsonl'}")
        own.run("store", "reset", "--log").refused(*what, "Not a terminal", "--yes")
        for answer, removed in (("", False), ("yes", True)):
            here, keys = own.here, f"{answer}\n"
            said = at_a_terminal("store", "reset", "--log", *here, folder=folder, keys=keys, status=int(not removed))
            assert all(word in said for word in (*what, "Continue? [y/N]"))
            assert ("Nothing was deleted" in said) is not removed
            assert store_exists(store_uri(folder)) is not removed
            assert (folder / "records.jsonl").exists() is not removed

    def test_with_the_log_go_those_in_pass_through_and_nothing_else(self, own):
        folder = own.outcome.folder
        write_log(folder / "records.pass-through-123.jsonl", record("http://a/"))
        (folder / "records.2024.jsonl").write_text('{"a": "stranger\'s"}\n')
        (folder / "records.old.jsonl").touch()
        said = own.run_here("store", "reset", "--log", "--yes")
        assert f"Deleted the records {folder / 'records.pass-through-123.jsonl'}" in said.out
        assert sorted(path.name for path in folder.glob("records*")) == ["records.2024.jsonl", "records.old.jsonl"]

    def test_it_leaves_a_store_in_use(self, own):
        with running_crawl(own):
            own.run("store", "reset", "--log", "--yes").refused("in use by another crawl", "Wait")
        assert store_exists(store_uri(own.outcome.folder))
        assert (own.outcome.folder / "records.jsonl").exists()


def at_a_terminal(*arguments, folder, keys, status=0):
    """Return what a person sees of the command at a terminal who types *keys*."""
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command(*arguments), cwd=folder, env=ENVIRONMENT, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    os.write(ours, keys.encode())
    shown = b""
    # Linux reports by an error that the writer has closed.
    with os.fdopen(ours, "rb", buffering=0) as terminal, contextlib.suppress(OSError):
        while chunk := terminal.read(65_536):
            shown += chunk
    assert process.wait(timeout=PATIENCE) == status
    return shown.decode().replace("\r\n", "\n")


def remedy(said, name):
    """Return the arguments of the command ``scrapy dedup NAME`` that a message prints, as a shell reads them."""
    (found,) = [part for part in said.split("`") if part.startswith(f"scrapy dedup {name}")]
    return shlex.split(found)[2:]


class TestRemedies:
    """A command that a message prints can be run as it stands, anywhere, and touches what the message is about."""

    @pytest.fixture
    def named(self, own, project):
        """Return the URI of a store with an awkward name, damaged, and the folder of a project with one of its own."""
        keep(project / ".scrapy" / "dedup" / "plain", "http://plain/")
        folder = project / "it's; a $(store)"
        shutil.copytree(own.outcome.folder, folder)
        uri = store_uri(folder)
        spoil(folder / "store")
        return uri, project

    def test_of_a_damaged_store(self, named):
        uri, project = named
        said = run("store", "info", "-s", f"DEDUP_STORE={uri}", folder=project)
        assert "damaged" in said.err
        done = run(*remedy(said.err, "store reset"), "--yes", folder=project)
        assert done.out == f"Deleted the store {uri}\n"
        assert not store_exists(uri)
        assert [r["url"] for r in run("log", "--json", "--spider", "plain", folder=project).json] == ["http://plain/"]

    def test_of_a_store_with_other_fingerprints(self, own, tmp_path):
        settings = {"DEDUP_FINGERPRINT": "shingles", "DEDUP_STORE": store_uri(own.outcome.folder)}
        outcome = run_job(tmp_path / "c", write_job(tmp_path / "c", "sample_spiders.Articles", settings=settings))
        (line,) = outcome.problems
        assert outcome.exit_status == 1
        done = run(*remedy(line, "store reset"), "--yes", folder=tmp_path)
        assert done.out == f"Deleted the store {settings['DEDUP_STORE']}\n"

    def test_of_a_text_that_is_damaged(self, own):
        uri = store_uri(own.outcome.folder)
        with contextlib.closing(open_store(uri, fingerprint_scheme=None)) as store:
            store.write([(key, b"garbage") for key, _ in store.scan(b"t", b"u")])
        said = own.run_here("explain", own.repost)
        said.refused("a packed text or item cannot be read", uri)
        assert remedy(said.err, "store reset") == ["store", "reset", "-s", f"DEDUP_STORE={uri}"]


def spoil(store):
    """Damage what a store begins with."""
    if store.is_dir():
        (store / "db" / "CURRENT").write_bytes(b"garbage\n")
    else:
        store.write_bytes(store.read_bytes()[:100].ljust(4096, b"x"))


def keep(folder, *urls):
    """Make the folder of a spider in the data folder, with a store and a log that names *urls*."""

    backend = default_backend()
    path = folder / ("store" if backend == "leveldb" else f"store.{backend}")
    open_store(f"{backend}:{path}", fingerprint_scheme=ClauseFingerprinter.scheme).close()
    write_log(folder / "log.jsonl", *map(record, urls))


@pytest.fixture
def project(tmp_path):
    """Return a stranger's project; a test may append to its settings."""
    root = tmp_path / "project"
    (root / "shop").mkdir(parents=True)
    (root / "scrapy.cfg").write_text("[settings]\ndefault = shop.settings\n")
    (root / "shop" / "__init__.py").touch()
    (root / "shop" / "settings.py").write_text("SPIDER_MODULES = ['shop.spiders']\n")
    (root / "shop" / "spiders.py").write_text(
        "import scrapy\n\n\n"
        "class Plain(scrapy.Spider):\n    name = 'plain'\n\n\n"
        "class Picky(scrapy.Spider):\n    name = 'picky'\n    custom_settings = {'DEDUP_LOG': 'picky.log'}\n"
    )
    return root


def say(project, settings):
    with (project / "shop" / "settings.py").open("a") as file:
        file.write(settings + "\n")


class TestAddons:
    """The settings of a new project have an ``ADDONS = {}``: a line above it has no effect."""

    @pytest.mark.parametrize(
        ("lines", "remedy"),
        [
            (["ADDONS = {'dedup_middleware.Addon': 500}", "ADDONS = {}"], "remove ADDONS = {} from settings.py"),
            (["ADDONS = {}"], "set ADDONS = {'dedup_middleware.Addon': 500} in settings.py"),
            (["ADDONS = {}", "ADDONS = {'dedup_middleware.Addon': 500}"], ""),
        ],
        ids=["replaced", "missing", "on"],
    )
    def test_doctor_finds_out_why_the_add_on_is_not_on(self, project, lines, remedy):
        say(project, "\n".join(lines))
        found = [each for each in run("doctor", "--json", folder=project).json if each["about"] == "plugin"]
        assert found[0]["remedy"].startswith(remedy)
        assert (found[0]["level"] == "problem") == bool(remedy)


class TestWhoseStore:
    def test_settings_before_and_after_the_subcommand_count(self, own, tmp_path):
        write_log(tmp_path / "one", record("http://one/"))
        write_log(tmp_path / "two", record("http://two/"))
        before = run_here("-s", "DEDUP_LOG=one", "log", "--json", folder=tmp_path)
        both = run_here("-s", "DEDUP_LOG=one", "log", "--json", "-s", "DEDUP_LOG=two", folder=tmp_path)
        assert [r["url"] for r in before.json + both.json] == ["http://one/", "http://two/"]
        mixed = run_here(*own.here[:2], "explain", own.repost, "--json", *own.here[2:], folder=tmp_path)
        (explained,) = mixed.json
        assert explained["stored"]["original_url"] == explained["record"]["original_url"] == own.first

    def test_the_only_spider_that_has_crawled_need_not_be_named(self, tmp_path):
        run_here("stats", *JOB, folder=tmp_path).refused("No spider has a store", "Run a crawl first")
        keep(tmp_path / ".scrapy" / "dedup" / "only", "http://only/")
        assert [r["url"] for r in run_here("log", "--json", *JOB, folder=tmp_path).json] == ["http://only/"]

    def test_of_several_spiders_one_must_be_named(self, tmp_path):
        for name in ("one", "a%2Fb"):
            keep(tmp_path / ".scrapy" / "dedup" / name, f"http://{name}/")
        run_here("log", *JOB, folder=tmp_path).refused("Several spiders", "a/b, one", "--spider a/b")
        said = run_here("log", "--json", "--spider", "a/b", *JOB, folder=tmp_path)
        assert [r["url"] for r in said.json] == ["http://a%2Fb/"]
        run_here("log", "--spider", "../one", *JOB, folder=tmp_path).refused("No spider")

    def test_in_a_project_its_settings_count(self, project, own):
        say(project, f"DEDUP_STORE = '{store_uri(own.outcome.folder)}'\nDEDUP_LOG = 'all.log'")
        write_log(project / "all.log", record("http://all/"))
        (sums,) = run("stats", "--json", folder=project).json
        assert sums["stats"]["dedup/verdict/duplicate"] == 1
        (info,) = run("store", "info", "--json", folder=project).json
        assert info["originals"] == 3

    def test_where_a_project_names_the_store_only_the_log_is_still_its_spiders(self, project):
        keep(project / ".scrapy" / "dedup" / "plain", "http://plain/")
        say(project, "DEDUP_STORE = 'sqlite:all.db'")
        assert [r["url"] for r in run("log", "--json", folder=project).json] == ["http://plain/"]

    def test_the_settings_of_a_spider_count_though_it_is_not_named(self, project):
        write_log(project / "picky.log", record("http://picky/"))
        assert [r["url"] for r in run("log", "--json", folder=project).json] == ["http://picky/"]
        keep(project / ".scrapy" / "dedup" / "plain", "http://plain/")
        run("log", folder=project).refused("Several spiders", "picky, plain", "--spider picky")

    def test_spiders_that_cannot_be_loaded_are_no_reason_to_show_nothing(self, project):
        keep(project / ".scrapy" / "dedup" / "plain", "http://plain/")
        (project / "shop" / "spiders.py").write_text("1 / 0\n")
        said = run("log", "--json", folder=project)
        assert [r["url"] for r in said.json] == ["http://plain/"]
        (line,) = said.err.splitlines()
        assert line.startswith("dedup: Cannot load the project's spiders (ZeroDivisionError")

    @pytest.mark.every_scrapy
    def test_the_line_that_the_summary_prints_works(self, project):
        """In a project with two spiders, and for one that keeps its log elsewhere."""
        say(project, "ADDONS = {'dedup_middleware.Addon': 500}\nTELNETCONSOLE_ENABLED = False")
        for spider in ("plain", "picky"):
            done = scrapy("crawl", spider, folder=project, env=ENVIRONMENT)
            assert done.returncode == 0, done.stderr
            (line,) = [line for line in done.stderr.splitlines() if "  list the duplicates  " in line]
            words = shlex.split(line)[3:]
            assert words[:3] == ["scrapy", "dedup", "log"]
            said = run(*words[2:], "--all", folder=project)
            assert (said.exit_status, said.err) == (0, "")
            (line,) = [line for line in done.stderr.splitlines() if "  open the report  " in line]
            words = shlex.split(line)[3:]
            assert words[:4] == ["scrapy", "dedup", "report", "--open"]
            said = run("report", *words[4:], folder=project)
            assert (said.exit_status, said.err) == (0, "")
            assert said.out.startswith("Wrote report.html: 0 duplicates in 0 pages")

    def test_what_only_looks_takes_the_fingerprints_from_the_store(self, own):
        other = ("-s", "DEDUP_FINGERPRINT=shingles")
        (info,) = own.run_here("store", "info", "--json", *other).json
        assert (info["originals"], info["duplicates"]) == (3, 1)
        assert own.run_here("explain", own.repost, *other).exit_status == 0


class TestMistakes:
    def test_what_nobody_expected_is_one_line(self, own, monkeypatch):
        monkeypatch.setattr("dedup_middleware.cli.stats.stats_text", lambda *_: 1 / 0)
        own.run_here("stats").refused("ZeroDivisionError", "test_commands.py", "Please report it")

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (
                [],
                "COMMAND [options]",
            ),
            (["remember"], "unknown command 'remember'. See `scrapy dedup --help`"),
            (["lgo"], "Did you mean log?"),
            (["reset"], "Did you mean store reset?"),
            (["log", "--hots", "a"], "Did you mean --host?"),
            (["--json", "log"], "follow its name"),
            (["store"], "store info"),
            (["log", "--min-score", "2"], "'2' is not a number from 0 to 1"),
            (["explain"], "URL"),
            (["allow"], "name the pages by URL or key, --host, --original, --crawl or --below, or give --all."),
            (["log", "extra"], "unexpected argument extra"),
            (["stats", "-s", "DEDUP_LOG"], "-s NAME=VALUE"),
        ],
    )
    def test_a_wrong_call_is_a_usage_error(self, tmp_path, arguments, said):
        done = run_here(*arguments, folder=tmp_path)
        assert done.exit_status == 2
        assert said in done.err + done.out

    @pytest.mark.parametrize("arguments", [["explain"], ["allow"], ["dropped", "--original"], ["log", "--original"]])
    @pytest.mark.parametrize("url", ["http://[bad", "\udcff"])
    def test_what_is_no_url_is_one_line(self, own, arguments, url):
        own.run_here(*arguments, url).refused("is not a URL")

    def test_a_spider_that_is_none_is_one_line(self, project):
        run("stats", "--spider", "nope", folder=project).refused("No spider 'nope'")

    def test_a_bad_setting_hides_no_store(self, project):
        keep(project / ".scrapy" / "dedup" / "plain")
        say(project, "DEDUP_THRESHOLD = 80")
        run("stats", folder=project).refused("DEDUP_THRESHOLD = 80 is not valid")

    def test_what_needs_a_store_says_that_none_is_named(self, tmp_path):
        write_log(tmp_path / "log", record("http://a/"))
        for name in (["allow", "--all"], ["store", "compact"]):
            run_here(*name, "-s", "DEDUP_LOG=log", folder=tmp_path).refused("no store is named", "-s DEDUP_STORE=URI")
            run_here(*name, "-s", "DEDUP_STORE=memory:", folder=tmp_path).refused("or one in memory")

    def test_a_page_that_was_not_dropped_cannot_be_allowed(self, own):
        own.run_here("allow", own.first).refused(own.first, "is not stored", status=3)
        said = own.run_here("allow", "--remove", own.first)
        assert (said.exit_status, said.out) == (0, f"{own.first} was not allowed; nothing to do\n")

    @pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
    @pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may look at everything")
    def test_what_belongs_to_somebody_else_is_one_line(self, own):
        folder = own.outcome.folder
        folder.chmod(0o000)
        try:
            run_here("store", "info", *own.here, folder=folder.parent).refused("Permission denied")
        finally:
            folder.chmod(0o700)
