"""The files of a store and a log are private to their user, and no request, with its credentials, is in them."""

import os
import stat
from pathlib import Path

import pytest
from crawling import run_job, run_scrapy, store_uri, write_job
from local_site import Answer
from prose import article, blog, story
from test_commands import run_here
from test_crashes import GZIP, again, fed, killed

from dedup_middleware.index.shared import index_for_command
from dedup_middleware.stores import default_backend

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


def modes(*paths):
    return {path.name: oct(stat.S_IMODE(path.stat().st_mode)) for path in paths}


def within(folder):
    return [folder, *folder.rglob("*")]


@pytest.mark.parametrize(
    ("backend", "end", "umask"),
    [(default_backend(), "clean", 0o022), (default_backend(), "killed", 0o022), ("sqlite", "clean", 0)],
)
def test_store_and_log_are_the_users_alone(site, tmp_path, backend, end, umask):
    kept = tmp_path / "kept" / "here"
    settings = {"DEDUP_STORE": f"{backend}:{kept / 'store'}", "DEDUP_LOG": str(kept / "log.jsonl")}
    urls = [site.add(f"/{n}", article("A", story(1)), host=n) for n in range(2)]
    before = os.umask(umask)
    try:
        if end == "killed":
            killed(tmp_path / "crawl", site, [{"url": url} for url in urls], **settings)
        else:
            again(tmp_path / "crawl", [{"url": url} for url in urls], JOBDIR=str(tmp_path / "job"), **settings)
            named = [argument for name, value in settings.items() for argument in ("-s", f"{name}={value}")]
            for command in (
                ["report", "-o", str(kept / "report.html")],
                ["store", "export", "-o", str(kept / "store.jsonl.gz")],
                ["dropped", "-o", str(kept / "items" / "dropped.jsonl")],
            ):
                # A second time over what the first has written.
                for _ in range(2):
                    done = run_here(*command, *named, folder=tmp_path / "crawl")
                    assert done.exit_status == 0, done.err
    finally:
        os.umask(before)
    paths = [kept.parent, *within(kept)]
    assert len(paths) > 4
    if end == "clean":
        # The folder, and what else is in it, is Scrapy's own.
        paths.append(tmp_path / "job" / "dedup.run")
    folders = [path for path in paths if path.is_dir()]
    assert set(modes(*folders).values()) == {"0o700"}
    files = [path for path in paths if path.is_file()]
    if end == "killed":
        # LevelDB makes its files for everybody, in a folder that no other user can enter; a clean end mends that.
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


def stored(folder):
    """Return all that the store in *folder* contains, dropped items unpacked, as text."""
    with index_for_command(store_uri(folder), "test") as (store, index):
        return repr([*store.scan(b"\x01", b"\xff"), *index.dropped])


@pytest.mark.parametrize("end", ["durable", "released"])
def test_nothing_of_a_request_is_stored(site, tmp_path, end):
    a = site.add("/a", article("A", story(1)))
    b = site.add("/b", blog("B", story(1)))
    proxy = {"meta": {"proxy": f"http://me:{SECRET}@127.0.0.1:{site.port}"}}
    steps = [{"url": a}, {"url": b, **CREDENTIALS, **proxy}]
    crashed = again(tmp_path, steps, **QUIET) if end == "durable" else killed(tmp_path, site, steps, **QUIET | GZIP)
    assert [i["url"] for i in crashed.dropped] == [b]
    if end == "released":
        assert fed(again(tmp_path, [], **QUIET)) == [a]
    found = stored(tmp_path)
    assert b in found
    assert SECRET not in found
    assert "X-Own" not in found


def test_a_query_that_is_redacted_is_in_the_item_alone(site, tmp_path):
    a = site.add("/a", article("A", story(1)))
    b = site.add(f"/b?token={SECRET}", blog("B", story(1)), host=1)
    redact = {"DEDUP_REDACT_QUERY": True}
    assert [i["url"] for i in again(tmp_path, [{"url": a}, {"url": b}], **redact).dropped] == [b]
    assert stored(tmp_path).count(SECRET) == 1
    listed = run_scrapy(tmp_path, "dedup", "dropped", "--json").stdout
    assert b.replace(SECRET, "*") in listed
    assert SECRET not in listed
    assert run_scrapy(tmp_path, "dedup", "allow", b).returncode == 0
    assert fed(again(tmp_path, [], **redact))[-1] == b


def test_no_url_is_written_with_its_secrets(site, tmp_path):
    """Not into records, the store, an export or a report, and not by any command."""
    linked = f"http://me:{SECRET}@127.0.0.1:{site.port}/linked?token={SECRET}#{SECRET}"
    links = f"<link rel=canonical href='{linked}'><link rel=amphtml href='{linked}'>"
    pages = {
        "/a": article("A", story(1)).replace("<head>", f"<head>{links}"),
        "/b": blog("B", story(1)).replace("<head>", f"<head>{links}"),
    }
    a, b = (
        site.add(path, html, host=host) + f"?token={SECRET}#{SECRET}" for host, (path, html) in enumerate(pages.items())
    )
    moved = site.add("/moved", Answer(status=302, headers={"Location": b}), host=2)
    again(
        tmp_path,
        [{"url": url, "callback": "parse_nothing_but_number"} for url in (a, moved)],
        DEDUP_REDACT_QUERY=True,
        FEEDS={f"file://{tmp_path}/feed.jsonl?{SECRET}": {"format": "jsonlines"}},
    )
    redacted = f"http://127.0.0.2:{site.port}/b?token=*"
    commands = [
        ["log", "--json"], ["stats"], ["explain", b], ["report"],
        ["doctor"], ["dropped"], ["store", "info"], ["store", "export", "-o", "export.jsonl"], ["allow", b],
    ]  # fmt: skip
    for command in commands:
        done = run_scrapy(tmp_path, "dedup", *command)
        assert SECRET not in done.stdout + done.stderr, command
        (tmp_path / f"{'-'.join(command[:2]).replace('/', '')}.out").write_text(done.stdout, encoding="utf8")
    ours = {path for path in tmp_path.rglob("*") if path.is_file() and not path.name.startswith(("job.", "project."))}
    with_secrets = {path.name for path in ours if SECRET.encode() in path.read_bytes()}
    assert with_secrets == {"log.txt"}  # what Scrapy writes there of its requests
    log = (tmp_path / "log.txt").read_text(encoding="utf8").splitlines()
    assert [line for line in log if SECRET in line and ("[dedup" in line or "Dropped" in line)] == []
    assert SECRET not in stored(tmp_path)
    assert redacted in stored(tmp_path)


def test_a_log_in_a_folder_of_others_is_private_all_the_same(site, tmp_path):
    url = site.add("/a", article("A", story(1)))
    folder = tmp_path / "shared"
    folder.mkdir(mode=0o755)
    command = write_job(
        tmp_path / "c", "sample_spiders.Articles", urls=url, settings={"DEDUP_LOG": str(folder / "log.jsonl")}
    )
    assert run_job(tmp_path / "c", command).exit_status == 0
    assert modes(folder, folder / "log.jsonl") == {"shared": "0o755", "log.jsonl": "0o600"}
