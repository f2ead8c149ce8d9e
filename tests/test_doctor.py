"""``scrapy dedup doctor``: what is well, what is wrong, and what to do about it."""

import shlex
import subprocess
from contextlib import closing

import pytest
from crawling import run_job, run_scrapy, store_uri, write_job
from library import contents_of
from local_site import Site
from prose import article, blog, story
from test_commands import ENVIRONMENT, command, run, run_here
from test_sharing import Worker

from dedup_middleware.fingerprints import ClauseFingerprinter
from dedup_middleware.index import schema
from dedup_middleware.index.dropped_items import Release
from dedup_middleware.stores import open_store

PROBLEMS = 1


@pytest.fixture(scope="module")
def crawled(tmp_path_factory):
    """Return the folder of a crawl of a story."""
    folder = tmp_path_factory.mktemp("doctor")
    with closing(Site(hosts=1)) as site:
        url = site.add("/first", article("First", story(1)))
        run_job(folder, write_job(folder, "sample_spiders.OneByOne", urls=url))
    (folder / "copy.html").write_text(blog("First", story(1)))
    (folder / "other.html").write_text(article("Other", story(2)))
    (folder / "url").write_text(url)
    return folder


def doctor(folder, *arguments):
    named = ("-s", f"DEDUP_STORE={store_uri(folder)}", "-s", f"DEDUP_LOG={folder / 'records.jsonl'}")
    said = run_here("doctor", "--json", *arguments, *named, folder=folder)
    assert said.err == ""
    return said.exit_status, said.json


def problems(findings):
    return [finding["text"] for finding in findings if finding["level"] == "problem"]


def test_a_healthy_store_has_no_problem(crawled):
    status, findings = doctor(crawled)
    assert (status, problems(findings)) == (0, [])
    texts = "\n".join(finding["text"] for finding in findings)
    for default in ("DEDUP_THRESHOLD = 0.8", "DEDUP_KEY = []", "DEDUP_DROPPED_AGE = 90"):
        assert f"{default} (default)" in texts
    assert f"DEDUP_STORE = {store_uri(crawled)!r} (cmdline)" in texts
    assert "lxml" in texts


def test_a_project_is_told_what_is_amiss_and_where_settings_come_from(crawled):
    (crawled / "extra.py").write_text("class Formatter:\n    pass\n")
    settings = {
        "DEDUP_TRESHOLD": 0.9,
        "DEDUP_MAX_BYTES": 3_000_000,
        "ITEM_PIPELINES": {"dedup_middleware.plugin.spider_middleware.DedupItemPipeline": None},
        "SPIDER_MIDDLEWARES": {"dedup_middleware.plugin.spider_middleware.DedupSpiderMiddleware": 7},
        "LOG_FORMATTER": "extra.Formatter",
        "DEDUP_STORE": store_uri(crawled),
    }
    write_job(crawled, "sample_spiders.OneByOne", settings=settings)
    said = run_scrapy(crawled, "dedup", "doctor", "-v")
    assert said.returncode == PROBLEMS
    wrong = [line for line in said.stdout.splitlines() if line.startswith("problem")]
    assert len(wrong) == 2
    for words in (
        "DEDUP_TRESHOLD is not a setting",
        "DedupItemPipeline is disabled in ITEM_PIPELINES",
    ):
        assert any(words in line for line in wrong), said.stdout
    assert "DEDUP_MAX_BYTES = 3000000 (project)" in said.stdout
    assert "DedupSpiderMiddleware was moved from 5 to 7 in SPIDER_MIDDLEWARES" in said.stdout
    assert "LOG_FORMATTER is the project's own, Formatter" in said.stdout


def test_a_store_of_other_fingerprints_comes_with_a_remedy_that_works(tmp_path):
    open_store(store_uri(tmp_path), fingerprint_scheme="another").close()
    status, findings = doctor(tmp_path)
    assert status == PROBLEMS
    (refused,) = [finding for finding in findings if finding["level"] == "problem"]
    assert "scheme 'another'" in refused["text"]
    words = shlex.split(refused["remedy"].split("`")[1])
    (done,) = run(*words[2:], "--json", "--yes", folder=tmp_path).json
    assert done["removed"]


@pytest.mark.parametrize(
    ("setting", "wrong"),
    [
        ("DEDUP_FINGERPRINT=simhash:colour=7", "the method 'simhash' has no option 'colour'"),
        ("DEDUP_FINGERPRINT=simhash:bits=7", "bits = 7 is not valid"),
    ],
)
def test_an_option_that_would_end_a_crawl_is_a_problem(tmp_path, setting, wrong):
    status, findings = doctor(tmp_path, "-s", setting)
    assert status == PROBLEMS
    (found,) = problems(findings)
    assert found.startswith(wrong)


def test_what_a_crash_left_is_told_and_left(tmp_path):
    with closing(open_store(store_uri(tmp_path), fingerprint_scheme=ClauseFingerprinter.scheme)) as store:
        store.write([(b"r" + b"k" * 12, schema.encode(Release("spider", "", by_person=False)))])
    before = contents_of(store_uri(tmp_path))
    status, findings = doctor(tmp_path)
    assert status == 0
    assert any("1 item to release" in finding["text"] for finding in findings)
    assert contents_of(store_uri(tmp_path)) == before


def test_a_busy_store_is_no_problem(crawled, tmp_path):
    with closing(open_store(store_uri(crawled), fingerprint_scheme=None)):
        said = run("doctor", "-s", f"DEDUP_STORE={store_uri(crawled)}", folder=tmp_path)
    assert "in use by another crawl" in said.out


def test_a_store_that_crawls_share_is_looked_at_beside_them(tmp_path):
    named = ("-s", f"DEDUP_STORE=sqlite:{tmp_path / 'store'}?shared=1", "-s", "DEDUP_LOG=")

    def told():
        said = run_here("doctor", "--json", *named, folder=tmp_path)
        findings = said.json
        assert problems(findings) == []
        return [finding["text"] for finding in findings if finding["about"] == "store"]

    def state():
        (info,) = run_here("store", "info", "--json", *named, folder=tmp_path).json
        return info["crawls"], info["to_release"]

    worker = Worker(f"sqlite:{tmp_path / 'store'}?shared=1", "run")
    worker.visit("a", range(9))
    worker.enter(worker.page("b", range(20, 29)))
    beside = told()
    assert "shared by 1 crawl now" in beside
    assert "no item is to be released" in beside
    assert state() == (1, 0)
    worker.die()
    after = told()
    assert state() == (0, 1)
    assert "pending: 1 item to release" in after
    worker.store.close()


def test_a_bad_setting_is_a_problem_and_a_place_without_a_crawl_is_none(tmp_path):
    said = run_here("doctor", "-s", "DEDUP_STORE=sqlite:x", "-s", "DEDUP_THRESHOLD=80", folder=tmp_path)
    assert said.exit_status == PROBLEMS
    assert "above 0.5" in said.out
    assert said.out.endswith("1 problem, 1 note in 3 checks; -v shows them all\n")
    said = run_here("doctor", folder=tmp_path)
    assert said.exit_status == 0
    assert "Run a crawl first" in said.out
    assert "set DEDUP_STORE and DEDUP_LOG" in said.out
    assert said.out.endswith("No problems, 2 notes in 3 checks; -v shows them all\n")


def test_a_log_that_cannot_be_read_is_a_problem_and_the_rest_is_checked(tmp_path):
    said = run_here("doctor", "-s", "DEDUP_STORE=sqlite:x", "-s", f"DEDUP_LOG={tmp_path}", folder=tmp_path)
    assert said.exit_status == PROBLEMS
    assert "cannot be read (Is a directory)" in said.out
    assert said.out.endswith("; -v shows them all\n")
    assert said.err == ""


def test_before_the_first_crawl_the_place_of_store_and_log_is_named(tmp_path):
    (tmp_path / "scrapy.cfg").write_text("[settings]\n")
    said = run_here("doctor", folder=tmp_path)
    assert f"the first one writes its store and its records to {tmp_path / '.scrapy' / 'dedup' / 'SPIDER'}" in said.out


def test_a_store_that_cannot_be_reached_is_a_problem_and_its_password_not_shown(tmp_path):
    said = run_here("doctor", "--json", "-s", "DEDUP_STORE=redis://:secret@127.0.0.1:1", folder=tmp_path)
    assert [finding["about"] for finding in said.json if finding["level"] == "problem"] == ["store"]
    assert "secret" not in said.out + said.err


class TestExplainWithHtml:
    """How a page would be checked now, by ``scrapy dedup explain URL --html FILE``."""

    def explained(self, folder, name):
        before = contents_of(store_uri(folder))
        said = run_here(
            *("explain", f"http://elsewhere/{name}", "--html", f"{name}.html", "--json"),
            *("-s", f"DEDUP_STORE={store_uri(folder)}"),
            folder=folder,
        )
        assert (said.exit_status, said.err) == (0, "")
        assert contents_of(store_uri(folder)) == before
        (record,) = said.json
        return record

    def test_a_copy_is_a_duplicate_with_its_evidence(self, crawled):
        record = self.explained(crawled, "copy")
        assert (record["verdict"], record["original_url"]) == ("duplicate", (crawled / "url").read_text())
        assert (record["score"], record["reason"]) == (1, "cross_host")
        assert record["evidence"]
        assert self.explained(crawled, "other")["verdict"] == "new"

    def test_html_comes_from_standard_input_too(self, crawled, tmp_path):
        named = ("-s", f"DEDUP_STORE={store_uri(crawled)}")
        with (crawled / "copy.html").open() as file:
            said = subprocess.run(
                command("explain", "http://elsewhere/copy", "--html", "-", *named),
                cwd=tmp_path, env=ENVIRONMENT, stdin=file, capture_output=True, text=True, check=True,
            )  # fmt: skip
        assert said.stdout.startswith("duplicate  1.00  http://elsewhere/copy\n    original  ")


def test_a_project_without_a_place_for_dropped_items_has_a_problem(tmp_path, monkeypatch):
    """Its crawls drop nothing: a file is where the folders would be."""
    monkeypatch.setenv("XDG_DATA_HOME", "/dev/null/nowhere")
    settings = {"DEDUP_STORE": None, "DEDUP_LOG": None, "SPIDER_MODULES": ["sample_spiders"]}
    write_job(tmp_path, "sample_spiders.OneByOne", settings=settings)
    (tmp_path / ".scrapy").touch()
    said = run_scrapy(tmp_path, "dedup", "doctor", "--spider", "one-by-one")
    assert said.returncode == PROBLEMS
    assert f"cannot write to {tmp_path}/.scrapy/dedup" in said.stdout
    assert ": a crawl drops nothing\n" in said.stdout
