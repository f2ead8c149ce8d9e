"""There is always a place for the store and the log, and the commands find the same one."""

import os
import re
import shlex
from pathlib import Path

import pytest
from crawling import environment, run_job, scrapy, write_job
from hypothesis import given
from hypothesis import strategies as st
from prose import article, blog, story
from scrapy.settings import Settings

from dedup_middleware.plugin.feeds import place_of, read_config
from dedup_middleware.records.file import open_records
from dedup_middleware.settings import as_file_name
from dedup_middleware.stores import store_exists

#: A file is in the way of each folder that is to be made there, for root too.
NOWHERE = "/dev/null/nowhere"
DEFAULT = {"DEDUP_STORE": None, "DEDUP_LOG": None}


@pytest.fixture
def working(tmp_path, monkeypatch):
    """Return a working folder outside of any project; the user's data is in ``data`` beside it."""
    folder = tmp_path / "working"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("SCRAPY_SETTINGS_MODULE", raising=False)
    return folder


def root(**settings):
    """Return the folder in which spiders have theirs."""
    folder = place_of(Settings(settings)).folder("spider")
    return folder and folder.parent


class TestChoice:
    def test_a_project_has_it_in_its_data_folder(self, working):
        (working / "scrapy.cfg").write_text("[settings]\ndefault = none\n")
        below = working / "deep" / "down"
        below.mkdir(parents=True)
        os.chdir(below)
        assert root() == root(BOT_NAME="shop") == root(JOBDIR="job") == working / ".scrapy" / "dedup"
        assert place_of(Settings()).project == working / ".scrapy" / "dedup"

    def test_elsewhere_it_is_in_the_users_data_by_the_bots_name(self, working):
        assert root(BOT_NAME="my shop/2") == working.parent / "data" / "dedup-middleware" / "my%20shop%2F2"

    def test_with_scrapys_own_name_by_that_of_the_working_folder(self, working):
        own = root()
        assert own.parent == working.parent / "data" / "dedup-middleware"
        assert own.name.startswith("working-")
        namesake = working / "working"
        namesake.mkdir()
        os.chdir(namesake)
        other = root()
        assert other.name.startswith("working-")
        assert other != own

    def test_what_cannot_be_written_to_is_passed_over(self, working, monkeypatch):
        (working / "scrapy.cfg").write_text("[settings]\ndefault = none\n")
        (working / ".scrapy").touch()
        assert root(JOBDIR="job") == working / "job" / "dedup"
        assert root(BOT_NAME="shop") == working.parent / "data" / "dedup-middleware" / "shop"
        monkeypatch.setenv("XDG_DATA_HOME", NOWHERE)
        place = place_of(Settings())
        assert place.folder("spider") is None
        assert [str(folder).startswith(NOWHERE) for folder in place.roots] == [False, True]

    def test_what_is_there_is_found_though_it_cannot_be_written_to(self, working, monkeypatch):
        """A crawl then says that it cannot, instead of starting elsewhere; a user who may read the store can."""
        monkeypatch.setattr("dedup_middleware.settings.os.access", lambda *_: False)
        (working / "scrapy.cfg").write_text("[settings]\ndefault = none\n")
        folder = working / ".scrapy" / "dedup" / "spider"
        (folder / "store").mkdir(parents=True)
        assert place_of(Settings({"BOT_NAME": "shop"})).folder("spider") == folder

    def test_where_nobody_knows_the_users_home_no_folder_is_made_for_it(self, working, monkeypatch):
        monkeypatch.delenv("XDG_DATA_HOME")
        monkeypatch.setattr("os.path.expanduser", lambda path: path)
        assert root() is None
        monkeypatch.setattr("platformdirs.user_data_path", lambda *_, **__: Path("~/.local/share"))
        assert root() is None
        assert list(working.iterdir()) == []

    def test_a_working_folder_that_is_gone_is_no_trouble(self, working):
        working.rmdir()
        assert root() is None
        assert root(BOT_NAME="shop") == working.parent / "data" / "dedup-middleware" / "shop"

    def test_nothing_is_made_by_asking(self, working):
        root(BOT_NAME="shop", JOBDIR="job")
        assert list(working.parent.iterdir()) == [working]


class TestNames:
    @pytest.mark.parametrize(
        "name",
        ["../x", "..", ".", "...", "a/b", "/etc", "a\\b", "", "~", "C:\\x", "a\nb", "新闻" * 99, "%2E", "\ud800"],
    )
    def test_no_spiders_name_leads_out_of_the_place_or_into_anothers(self, working, name):
        config = read_config(Settings({"BOT_NAME": "shop"}), name)
        place = working.parent / "data" / "dedup-middleware" / "shop"
        folder = config.place.folder(name)
        assert folder.parent == place
        assert folder.resolve().parent == place.resolve()
        folder.mkdir(parents=True)
        assert config.log == folder / "log.jsonl"
        assert Path(config.store.partition(":")[2]).parent == folder

    @given(st.text() | st.text(min_size=100), st.text())
    def test_different_names_have_different_folders(self, one, other):
        assert (as_file_name(one) == as_file_name(other)) == (one == other)
        assert len(as_file_name(one)) < 200

    @pytest.mark.usefixtures("working")
    def test_spiders_are_known_by_their_folders(self):
        place = place_of(Settings({"BOT_NAME": "shop"}))
        assert place.known_spiders() == set()
        for name in ("b/c", "..", "新闻", "新闻" * 20):
            folder = place.folder(name)
            folder.mkdir(parents=True)
        (folder.parent / "a file").touch()
        assert place.known_spiders() == {"..", "b/c", "新闻"}


# --- crawls, where crawls really run


def crawled(folder, site, *, env=None, is_in_pass_through=False, **settings):
    """Crawl a story and its copy in *folder*, with no store and no log named; in pass-through, nothing is dropped."""
    a = site.add("/a", article("a", story(1)))
    b = site.add("/b", blog("b", story(1)), host=1)
    command = write_job(
        folder,
        "sample_spiders.Steps",
        steps=[{"url": a}, {"url": b}],
        settings={**DEFAULT, **settings},
        env=env,
        afresh=True,
    )
    outcome = run_job(folder, command)
    assert outcome.exit_status == 0
    assert outcome.kept == ([a, b] if is_in_pass_through else [a])
    assert [item["url"] for item in outcome.dropped] == ([] if is_in_pass_through else [b])
    return outcome


def dedup(folder, *arguments, env):
    """Run ``scrapy dedup`` in *folder*."""
    return scrapy("dedup", *arguments, folder=folder, env=environment() | env)


def place_said(outcome):
    (line,) = [line for line in outcome.log.splitlines() if "dedup: action drop, " in line]
    return line


def test_a_crawl_with_a_settings_module_and_no_scrapy_cfg_has_its_place(site, tmp_path):
    """As in scrapyd's jobs and in containers: Scrapy calls that a project, and gives it no data folder."""
    data = tmp_path / "data"
    (tmp_path / "crawl").mkdir()
    (tmp_path / "crawl" / "shop_settings.py").write_text("BOT_NAME = 'shop'\n")
    env = {"XDG_DATA_HOME": str(data), "SCRAPY_SETTINGS_MODULE": "shop_settings", "PYTHONPATH": f"{tmp_path / 'crawl'}"}
    outcome = crawled(tmp_path / "crawl", site, env=env, BOT_NAME="shop")
    assert outcome.problems == []
    folder = data / "dedup-middleware" / "shop" / "steps"
    assert f"{folder / 'store'}" in place_said(outcome)
    assert f"records {folder / 'log.jsonl'}" in place_said(outcome)
    said = dedup(tmp_path / "crawl", "store", "info", env=env)
    assert (said.returncode, said.stderr) == (0, "")
    assert re.search("originals +1\nduplicates +1\n", said.stdout)
    again = crawled(tmp_path / "crawl", site, env=env, BOT_NAME="shop")
    assert "kept from earlier crawls" in place_said(again)


def test_a_crawl_outside_of_any_project_names_the_command_that_reads_its_log(site, tmp_path):
    env = {"XDG_DATA_HOME": str(tmp_path / "data")}
    outcome = crawled(tmp_path / "crawl", site, env=env)
    assert outcome.problems == []
    assert not (tmp_path / "crawl" / ".scrapy").exists()
    (line,) = [line for line in outcome.log.splitlines() if "  list the duplicates  " in line]
    said = dedup(tmp_path, *line.split()[5:], env=env)
    assert "/b" in said.stdout, said
    assert "DEDUP_KEY" not in line


def test_the_command_that_reads_a_log_has_the_key_of_its_items(site, tmp_path):
    env = {"XDG_DATA_HOME": str(tmp_path / "data")}
    outcome = crawled(tmp_path / "crawl", site, env=env, DEDUP_KEY={"Offer": ["sku"]})
    (line,) = [line for line in outcome.log.splitlines() if "  list the duplicates  " in line]
    words = shlex.split(line)
    assert words[-2:] == ["-s", 'DEDUP_KEY={"Offer": ["sku"]}']
    said = dedup(tmp_path, *words[words.index("log") :], env=env)
    assert said.returncode == 0, said


def test_with_a_jobdir_the_store_is_inside_of_it(site, tmp_path):
    env = {"XDG_DATA_HOME": NOWHERE}
    crawled(tmp_path / "crawl", site, env=env, JOBDIR="job")
    assert (tmp_path / "crawl" / "job" / "dedup" / "steps" / "log.jsonl").exists()
    said = dedup(tmp_path / "crawl", "store", "info", "-s", "JOBDIR=job", env=env)
    assert re.search("originals +1\nduplicates +1\n", said.stdout), said


@pytest.mark.parametrize("action", ["drop", "tag", "dry-run"])
def test_where_nothing_can_be_written_to_nothing_is_dropped_and_one_line_has_the_reason(site, tmp_path, action):
    env = {"XDG_DATA_HOME": NOWHERE}
    outcome = crawled(tmp_path / "crawl", site, env=env, is_in_pass_through=True, DEDUP_ACTION=action)
    (line,) = outcome.problems
    assert "WARNING" in line
    assert NOWHERE in line
    assert "no dropped item can be stored. Set DEDUP_STORE and DEDUP_LOG" in line
    assert "drops nothing" in line
    assert "no records are kept" in line
    assert "dedup/items/dropped" not in outcome.stats
    # What would have happened is counted.
    assert outcome.stats["dedup/verdict/duplicate"] == 1
    assert outcome.stats.get("dedup/items/would_drop", 0) == (action != "tag")
    assert "Traceback" not in outcome.log + outcome.stderr
    said = dedup(tmp_path / "crawl", "stats", env=env)
    assert said.returncode == 1
    assert said.stdout == ""
    assert said.stderr.startswith("dedup: No spider has a store in /dev/null/nowhere/")
    assert len(said.stderr.splitlines()) == 1


def test_a_log_that_is_named_has_what_would_be_dropped(site, tmp_path):
    env = {"XDG_DATA_HOME": NOWHERE}
    log = tmp_path / "log.jsonl"
    outcome = crawled(tmp_path / "crawl", site, env=env, is_in_pass_through=True, DEDUP_LOG=str(log))
    (line,) = outcome.problems
    assert "Set DEDUP_STORE to another place" in line
    assert f"its records are in {log}" in line
    assert [(record.verdict, record.outcome) for record in open_records(log)] == [
        ("new", "kept"),
        ("duplicate", "would_drop"),
    ]


def test_a_place_that_only_seems_to_be_writable_is_none(site, tmp_path):
    if os.geteuid() or not Path("/proc").is_dir():
        pytest.skip("for root, /proc is a folder to write to, and is not")
    outcome = crawled(tmp_path / "crawl", site, env={"XDG_DATA_HOME": "/proc/nowhere"}, is_in_pass_through=True)
    (line,) = outcome.problems
    assert "drops nothing" in line


@pytest.mark.parametrize("jobdir", [{}, {"JOBDIR": "job"}], ids=["afresh", "jobdir"])
def test_nothing_is_dropped_that_memory_alone_has(site, tmp_path, jobdir):
    """The place leads to a disk that is not there."""
    folder = tmp_path / "crawl"
    place = folder / "job" if jobdir else tmp_path / "data" / "dedup-middleware"
    place.mkdir(parents=True)
    for name in ("dedup", "shop"):
        (place / name).symlink_to(NOWHERE)
    env = {"XDG_DATA_HOME": str(tmp_path / "data")}
    outcome = crawled(folder, site, env=env, is_in_pass_through=True, BOT_NAME="shop", **jobdir)
    (line,) = outcome.problems
    assert "this crawl runs in pass-through" in line


def test_where_a_person_names_memory_items_are_dropped_and_a_warning_has_their_end(site, tmp_path):
    outcome = crawled(tmp_path / "crawl", site, DEDUP_STORE="memory:", DEDUP_LOG="log.jsonl")
    (line,) = outcome.problems
    assert "WARNING" in line
    assert "dropped items are gone at the end of this crawl" in line


def test_a_store_that_is_named_needs_no_place_and_the_missing_log_is_said(site, tmp_path):
    uri = f"sqlite:{tmp_path / 'my.store'}"
    outcome = crawled(tmp_path / "crawl", site, env={"XDG_DATA_HOME": NOWHERE}, DEDUP_STORE=uri)
    assert store_exists(uri)
    (line,) = outcome.problems
    assert "no records are kept. Set DEDUP_LOG" in line
    assert "memory" not in line
