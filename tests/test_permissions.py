"""What is kept of pages is its owner's alone, and holds no credentials for longer than it must."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from crawling import run_job, store_uri, write_job
from prose import article, blog, story
from test_crashes import FEED, again, fed, killed

from dedup_middleware.index import codec, journal_codec
from dedup_middleware.index.packing import unpacked
from dedup_middleware.stores import default_backend, open_store

SECRET = "s3cret"
CREDENTIALS = {
    "headers": {
        "Authorization": f"Basic {SECRET}",
        "Proxy-Authorization": f"Basic {SECRET}",
        "Cookie": f"session={SECRET}",
        "Referer": f"http://me:{SECRET}@site/",
        "X-Own": "kept",
    },
    "cookies": {"session": SECRET},
}
#: Else Scrapy asks the network for the list of public suffixes.
QUIET = {"COOKIES_ENABLED": False}

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")


def modes(*paths: Path) -> dict[str, str]:
    return {path.name: oct(stat.S_IMODE(path.stat().st_mode)) for path in paths}


def within(folder: Path) -> list[Path]:
    return [folder, *folder.rglob("*")]


@pytest.mark.parametrize("backend", sorted({default_backend(), "sqlite"}))
@pytest.mark.parametrize("end", ["clean", "killed"])
def test_store_and_log_are_the_users_alone(site, tmp_path, backend, end):
    kept = tmp_path / "kept" / "here"
    settings = {"DEDUP_STORE": f"{backend}:{kept / 'store'}", "DEDUP_LOG": str(kept / "log.jsonl")}
    urls = [site.add(f"/{n}", article("A", story(1)), host=n) for n in range(2)]
    before = os.umask(0o022)
    try:
        if end == "killed":
            killed(tmp_path / "crawl", site, [{"url": url} for url in urls], **settings)
        else:
            again(tmp_path / "crawl", [{"url": url} for url in urls], **settings)
    finally:
        os.umask(before)
    paths = [kept.parent, *within(kept)]
    assert len(paths) > 4
    folders = [path for path in paths if path.is_dir()]
    assert set(modes(*folders).values()) == {"0o700"}
    files = [path for path in paths if path.is_file()]
    if end == "killed":
        # LevelDB makes its files for everybody, in a folder that nobody else can enter; a clean end mends that.
        files = [path for path in files if path.parent.name != "db"]
    assert set(modes(*files).values()) == {"0o600"}


def test_who_lets_others_in_is_not_overruled(site, tmp_path):
    url = site.add("/a", article("A", story(1)))
    uri = store_uri(tmp_path)
    again(tmp_path, [{"url": url}], DEDUP_STORE=uri)
    path = Path(uri.partition(":")[2])
    for entry in within(path) if path.is_dir() else [path]:
        entry.chmod(0o770 if entry.is_dir() else 0o660)
    (tmp_path / "records.jsonl").chmod(0o640)
    before = modes(tmp_path / "records.jsonl", path, *path.glob("db"))
    again(tmp_path, [{"url": url}], DEDUP_STORE=uri)
    assert modes(tmp_path / "records.jsonl", path, *path.glob("db")) == before


def packed(uri: str, kind: tuple[bytes, bytes]) -> list[dict]:
    store = open_store(uri, fingerprint_scheme=None)
    try:
        return [unpacked(journal_codec.decode_entry(value)[2]) for _, value in store.scan(*kind)]
    finally:
        store.close()


@pytest.mark.parametrize("sealed", [False, True], ids=["not sealed", "sealed"])
def test_what_is_kept_of_a_request_has_no_credentials(site, tmp_path, sealed):
    """Until the owner is sealed all of it is in the journal: to be made again after a crash, as it was."""
    a = site.add("/a", article("A", story(1)))
    b = site.add("/b", blog("B", story(1)))
    proxy = {"meta": {"proxy": f"http://me:{SECRET}@127.0.0.1:{site.port}"}}
    steps = [{"url": a}, {"url": b, **CREDENTIALS, **proxy}]
    if sealed:
        # The second round, of two waits as each, begins when one of the others has been delivered, after b.
        steps += [{"url": site.add(f"/{n}", article(str(n), story(n)))} for n in range(10, 22)]
        fault = {
            "at": ["dedup_middleware.delivery.disk_waits:Waits._over"],
            "nth": 4,
            "moment": "after",
            "kind": "exit",
        }
        extra = {"EXTENSIONS": {"fault_injection.FaultInjection": 0}, "FAULTS": fault, "DEDUP_SEAL_INTERVAL": 1}
        crashed = run_job(
            tmp_path, write_job(tmp_path, "sample_spiders.Steps", steps=steps, settings=FEED | QUIET | extra)
        )
    else:
        crashed = killed(tmp_path, site, steps, **QUIET)
    assert [i["url"] for i in crashed.dropped] == [b]
    (kept,) = packed(store_uri(tmp_path), codec.REQUESTS)
    owed = packed(store_uri(tmp_path), codec.JOURNAL)
    assert SECRET not in repr(kept)
    assert kept["headers"][b"X-Own"] == [b"kept"]
    assert kept["meta"]["proxy"] == f"http://127.0.0.1:{site.port}"
    assert [request["headers"][b"Authorization"] for request in owed] == [[f"Basic {SECRET}".encode()]] * (not sealed)
    outcome = again(tmp_path, [], **QUIET)
    assert fed(outcome)[:1] == ([a] if sealed else [b])
    assert (b in fed(outcome)) == (not sealed)
    assert SECRET not in repr(packed(store_uri(tmp_path), codec.REQUESTS))


def test_an_address_whose_query_is_redacted_is_not_kept_once_it_is_sealed(site, tmp_path):
    a = site.add("/a", article("A", story(1)))
    b, c = (site.add(f"/{n}?token={SECRET}", blog("B", story(1)), host=1) for n in "bc")
    redact = {"DEDUP_REDACT_QUERY": True, "DEDUP_SEAL_INTERVAL": 1}
    outcome = again(tmp_path, [{"url": url} for url in (a, b, c)], **redact)
    assert [i["url"] for i in outcome.dropped] == [b, c]
    assert packed(store_uri(tmp_path), codec.REQUESTS) == packed(store_uri(tmp_path), codec.JOURNAL) == []


def test_an_address_whose_query_is_redacted_is_requested_again_as_it_was(site, tmp_path):
    a = site.add("/a", article("A", story(1)))
    b = site.add(f"/b?token={SECRET}", blog("B", story(1)), host=1)
    killed(tmp_path, site, [{"url": a}, {"url": b}], DEDUP_REDACT_QUERY=True)
    assert fed(again(tmp_path, [], DEDUP_REDACT_QUERY=True)) == [b]


def test_a_value_of_meta_is_cut_in_the_log(site, crawl):
    url = site.add("/a", article("A", story(1)))
    steps = [{"url": url, "meta": {"dedup": {"password": "x" * 100_000}}}]
    outcome = crawl("sample_spiders.Steps", steps=steps, settings=FEED)
    assert outcome.delivered == [url]
    (line,) = outcome.problems
    assert "is not understood" in line
    assert len(line) < 1000


def test_a_log_in_a_folder_of_others_is_private_all_the_same(site, tmp_path):
    url = site.add("/a", article("A", story(1)))
    folder = tmp_path / "shared"
    folder.mkdir(mode=0o755)
    command = write_job(
        tmp_path / "c", "sample_spiders.Articles", urls=url, settings={"DEDUP_LOG": str(folder / "log.jsonl")}
    )
    assert run_job(tmp_path / "c", command).exit_status == 0
    assert modes(folder, folder / "log.jsonl") == {"shared": "0o755", "log.jsonl": "0o600"}
