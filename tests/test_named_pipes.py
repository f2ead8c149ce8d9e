"""Where a named pipe is in the place of a file, nothing waits for its other end; what a person pipes is read."""

import contextlib
import os
import socket
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from crawling import Running, write_job
from local_site import wait_until
from prose import article, story
from test_commands import record, run_here, write_log

from dedup_middleware.common.plain_files import STREAMS, NotAFileError, open_file
from dedup_middleware.errors import StoreCorruptError
from dedup_middleware.fingerprints import fingerprinter
from dedup_middleware.records.file import opened
from dedup_middleware.stores import open_store
from dedup_middleware.stores.files import HOLDER_SUFFIX

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")

URL = "http://news.example/b"
SLOT = "job/requests.queue/127.0.0.1-f528764d624db129b32c21fbca0cb8d6"
FIFO_QUEUE = {"JOBDIR": "job", "SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleFifoDiskQueue"}


def pipe_at(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(path)
    return path


# --- crawls


KEPT_NO_RECORDS = "(it is a named pipe, not a file). Set another path. This crawl keeps no records"
NO_STORE = "is not a store of dedup-middleware and was left untouched"
#: A pipe in the folder of a crawl, its settings, and what its one warning contains; none if it needs no warning.
IN_PLACE_OF = {
    "job/dedup.run": ({"JOBDIR": "job"}, ""),
    f"store/lock{HOLDER_SUFFIX}": ({"DEDUP_STORE": "leveldb:store"}, ""),
    f"s.lock{HOLDER_SUFFIX}": ({"DEDUP_STORE": "sqlite:s"}, ""),
    "job/dedup/one-by-one/log.jsonl": ({"JOBDIR": "job", "DEDUP_LOG": None, "DEDUP_STORE": None}, KEPT_NO_RECORDS),
    "store": ({}, NO_STORE),
    "store/DEDUP": ({"DEDUP_STORE": "leveldb:store"}, NO_STORE),
    f"{SLOT}/0": ({"JOBDIR": "job"}, "/0 cannot be read (it is a named pipe, not a file)"),
    f"{SLOT}/0/info.json": (FIFO_QUEUE, "/0 cannot be read (it is a named pipe, not a file)"),
    f"{SLOT}/0s/q00000": ({"JOBDIR": "job"}, "/0s cannot be read (it is a named pipe, not a file)"),
}


@pytest.mark.parametrize("place", IN_PLACE_OF)
def test_a_crawl_waits_for_none_and_keeps_every_item(site, crawl, tmp_path, place):
    settings, warning = IN_PLACE_OF[place]
    pipe_at(tmp_path / "crawl" / place)
    url = site.add("/a", article("A", story(1)))
    outcome = crawl("sample_spiders.OneByOne", urls=url, settings=settings, folder="crawl")
    assert outcome.kept == [url]
    assert [warning in line for line in outcome.problems] == [True] * bool(warning)


@pytest.mark.parametrize("has_reader", [False, True])
def test_one_that_a_person_names_as_the_log_is_a_bad_setting(site, crawl, tmp_path, has_reader):
    pipe = pipe_at(tmp_path / "pipe")
    with contextlib.ExitStack() as stack:
        if has_reader:
            stack.callback(os.close, os.open(pipe, os.O_RDONLY | os.O_NONBLOCK))
        outcome = crawl(
            "sample_spiders.OneByOne", urls=site.add("/a", article("A", story(1))), settings={"DEDUP_LOG": str(pipe)}
        )
    assert outcome.exit_status == 1
    assert site.requests == []
    (line,) = outcome.problems
    assert f"DEDUP_LOG = '{pipe}' cannot be written (it is a named pipe, not a file). Set another path." in line


def test_a_feed_in_one_is_named_before_the_crawl_stands_still(site, tmp_path):
    """That is Scrapy's way with a feed; a program that reads the pipe later gets all items."""
    pipe, log = pipe_at(tmp_path / "pipe"), tmp_path / "log.txt"
    url = site.add("/a", article("A", story(1)))
    settings = {"FEEDS": {str(pipe): {"format": "jsonlines"}}}
    with Running(tmp_path, write_job(tmp_path, "sample_spiders.OneByOne", urls=url, settings=settings)) as running:
        wait_until(lambda: log.exists() and f"the feed {pipe} is a named pipe. The crawl stands" in log.read_text())
        assert url in pipe.read_text()
        assert running.wait().problems == []


# --- stores


@pytest.mark.parametrize("scheme", ["leveldb", "rocksdb"])
@pytest.mark.parametrize("name", ["LOCK", "CURRENT", "MANIFEST-*", "*.log", "IDENTITY"])
def test_an_engine_opens_none(tmp_path, scheme, name):
    pytest.importorskip({"leveldb": "plyvel", "rocksdb": "rocksdict"}[scheme])
    uri, prints = f"{scheme}:{tmp_path / 'store'}", fingerprinter("clauses").scheme
    open_store(uri, fingerprint_scheme=prints).close()
    database = tmp_path / "store" / "db"
    found = max(database.glob(name), default=database / name)
    found.unlink(missing_ok=True)
    pipe_at(found)
    with pytest.raises(StoreCorruptError, match=rf"db/{found.name} is not a file.* Restore a backup"):
        open_store(uri, fingerprint_scheme=prints)
    assert found.is_fifo()


# --- commands


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return a folder with a store, records and a page."""
    folder = tmp_path_factory.mktemp("made")
    open_store(f"sqlite:{folder / 'store'}", fingerprint_scheme=fingerprinter("clauses").scheme).close()
    write_log(folder / "log.jsonl", record(URL, original_url="http://news.example/a"))
    (folder / "page.html").write_text(article("A", story(1)))
    return folder


def run(*words, made, log=None):
    here = ("-s", f"DEDUP_STORE=sqlite:{made / 'store'}", "-s", f"DEDUP_LOG={log or made / 'log.jsonl'}")
    return run_here(*words, *here, folder=made)


@pytest.mark.parametrize(
    "command",
    ["store import {}", "batch {} -o out", "compare {} --pure --method heintze", "dropped -o {}"],
)
def test_a_command_that_needs_a_file_refuses_one(made, tmp_path, command):
    pipe = pipe_at(tmp_path / "pipe.jsonl")
    done = run(*(word.format(pipe) for word in command.split()), made=made)
    done.refused(str(pipe), "it is a named pipe, not a file", "Name ")


def read_to(end, file):
    read = b""
    while not read.endswith(end):
        read += file.read(2**16)
    return read


@pytest.mark.parametrize("command", ["store export -o {}", "report -o {}", "rules --export {}"])
def test_a_command_writes_to_one_that_a_program_reads_and_to_no_other(made, tmp_path, command):
    words = [word.format(pipe := tmp_path / "pipe") for word in command.split()]
    pipe_at(pipe)
    run(*words, made=made).refused(f"{pipe} cannot be written (no program reads it). Name another file.")
    with open(pipe, "r+b", buffering=0) as both_ends, ThreadPoolExecutor() as others:  # noqa: PTH123
        reading = others.submit(read_to, b"the end", both_ends)
        assert run(*words, made=made).exit_status == 0
        both_ends.write(b"the end")
    assert len(reading.result()) > len(b"the end")
    assert pipe.is_fifo()


def test_doctor_names_one_in_the_place_of_the_records(made, tmp_path):
    done = run("doctor", made=made, log=pipe_at(tmp_path / "log.jsonl"))
    assert f"{tmp_path / 'log.jsonl'} is a named pipe, not a file" in done.out


@contextlib.contextmanager
def piped(content):
    """Yield the path of a pipe as a shell hands it over, with *content* to read."""
    end, beginning = os.pipe()
    os.write(beginning, content)
    os.close(beginning)
    yield f"/dev/fd/{end}"
    os.close(end)


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="this system has no /dev/fd")
@pytest.mark.parametrize("command", ["log", "stats", f"explain {URL}", "report -o report.html"])
def test_records_may_come_from_a_program(made, command):
    with piped((made / "log.jsonl").read_bytes()) as path:
        done = run(*command.split(), made=made, log=path)
    assert done.exit_status == 0
    assert ("1 duplicate" if "report" in command else "news.example") in done.out


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="this system has no /dev/fd")
def test_what_is_read_from_its_end_may_not(made):
    with piped((made / "log.jsonl").read_bytes()) as path:
        run("log", "--crawl", "last", made=made, log=path).refused(path, "it is a named pipe, not a file")


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="this system has no /dev/fd")
def test_a_page_may_come_from_a_program_and_an_export_may_go_to_one(made):
    with piped((made / "page.html").read_bytes()) as path:
        assert URL in run("explain", URL, "--html", path, made=made).out
    end, beginning = os.pipe()
    assert run("store", "export", "-o", f"/dev/fd/{beginning}", made=made).exit_status == 0
    os.close(beginning)
    assert os.read(end, 10).startswith(b'{"')
    os.close(end)


# --- files


def test_only_a_file_is_opened_and_a_device_or_a_pipe_where_a_person_may_name_it(tmp_path, monkeypatch):
    file, pipe = tmp_path / "file", pipe_at(tmp_path / "pipe")
    with open_file(file, "wb") as made:
        made.write(b"ours")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with open_file(file) as read:
        assert os.get_blocking(read.fileno())
        assert read.read() == b"ours"
    monkeypatch.chdir(tmp_path)  # the path of a socket has at most a hundred characters
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
        for path, what in ((pipe, "named pipe"), ("/dev/null", "device"), ("socket", "socket")):
            with pytest.raises(NotAFileError, match=f"it is a {what}, not a file") as refused:
                open_file(path)
            assert refused.value.filename == str(path)
            with pytest.raises(NotAFileError):
                open_file(path, "ab")
    with pytest.raises(IsADirectoryError):
        open_file(tmp_path)
    with open_file("/dev/null", "wb", STREAMS) as device:
        device.write(b"x")
    with pytest.raises(NotAFileError, match="no program reads it"):
        open_file(pipe, "wb", STREAMS)
    with open(pipe, "r+b", buffering=0) as both_ends:  # noqa: PTH123 - as a program at the other end
        both_ends.write(b"through")
        with opened(pipe) as read:
            assert os.get_blocking(read.fileno())
            assert read.read(7) == b"through"
