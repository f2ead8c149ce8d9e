"""Opening and removing stores on disk: foreign, damaged and locked ones are refused in one line and left untouched."""

import itertools
import json
import os
import random
import re
import sqlite3
import subprocess
import sys
from importlib import import_module

import pytest
from beside import shared_uri
from crawling import environment
from engines import ENGINES, need
from local_site import PATIENCE
from msgspec import structs

from dedup_middleware.errors import StoreCorruptError, StoreError, StoreLockedError, StoreVersionError
from dedup_middleware.stores import destroy_store, open_store, size_of_store, store_exists
from dedup_middleware.stores.base import HEADER_KEY, SCHEMA_VERSION, Header

SCHEME = "test-scheme"


def refusal(uri, kind, path):
    """Return the text with which opening *uri* is refused, after checking its form."""
    with pytest.raises(StoreError) as caught:
        open_store(uri, fingerprint_scheme=SCHEME)
    text = str(caught.value)
    assert type(caught.value) is kind, text
    assert str(path) in text
    assert len(text.splitlines()) == 1
    assert "DEDUP_STORE" in text
    return text


def fill(uri):
    store = open_store(uri, fingerprint_scheme=SCHEME)
    store.write((b"%04d" % number, os.urandom(100)) for number in range(2000))
    store.close()


@pytest.fixture
def foldered(engine, path):
    """Return the URI of a filled store in a folder, of each engine."""
    fill(f"{engine}:{path}")
    return f"{engine}:{path}"


def manifest(path):
    return path / "db" / (path / "db" / "CURRENT").read_text().strip()


def test_an_empty_place_is_used_under_any_name(backend, tmp_path, monkeypatch):
    path = tmp_path / "a" / "b" / "store"
    uri = f"{backend}:{path}"
    assert not store_exists(uri)
    fill(uri)
    assert store_exists(uri)
    monkeypatch.chdir(tmp_path / "a")
    store = open_store(f"{backend}:b/store", fingerprint_scheme=SCHEME)
    assert (store.created, store.uri) == (False, uri)
    store.close()
    empty = tmp_path / "empty"
    if backend in ENGINES:
        empty.mkdir()
    else:
        empty.touch()
    store = open_store(f"{backend}:{empty}", fingerprint_scheme=SCHEME)
    assert store.created
    store.close()


def test_second_process_is_refused(uri, path, hold, contents):
    with hold(uri):
        before = contents(path)
        refusal(uri, StoreLockedError, path)
        assert contents(path) == before
    fill(uri)


def test_a_store_that_a_foreign_program_has_open_is_refused(backend, uri, path):
    fill(uri)
    if backend == "sqlite":
        stranger = sqlite3.connect(path, isolation_level=None)
        stranger.execute("PRAGMA locking_mode = EXCLUSIVE")
        stranger.execute("BEGIN IMMEDIATE")
    else:
        library = import_module(ENGINES[backend])
        stranger = (library.DB if backend == "leveldb" else library.Rdict)(str(path / "db"))
    refusal(uri, StoreLockedError, path)
    stranger.close()


@pytest.mark.parametrize("other", [*ENGINES, "sqlite"])
def test_a_store_of_another_kind_is_named(uri, path, other):
    need(other)
    kind = uri.partition(":")[0]
    if kind == other:
        return
    fill(uri)
    text = refusal(f"{other}:{path}", StoreCorruptError, path)
    assert f"is not a {other} store but a {kind} store" in text
    assert f"Set DEDUP_STORE to {kind}:{path}" in text
    with pytest.raises(StoreCorruptError, match="left untouched"):
        destroy_store(f"{other}:{path}")


DAMAGE = {
    "manifest-empty": lambda path: manifest(path).write_bytes(b""),
    "manifest-cut": lambda path: os.truncate(manifest(path), 20),
    "manifest-gone": lambda path: manifest(path).unlink(),
    "manifest-noise": lambda path: manifest(path).write_bytes(random.Random(7).randbytes(200)),
    "current-gone": lambda path: (path / "db" / "CURRENT").unlink(),
    "current-noise": lambda path: (path / "db" / "CURRENT").write_bytes(b"nonsense"),
    "log-noise": lambda path: next((path / "db").glob("*.log")).write_bytes(random.Random(7).randbytes(50_000)),
}


@pytest.mark.parametrize(
    ("kind", "spoil"),
    [("sqlite", lambda path: os.truncate(path, 4096)), *itertools.product(ENGINES, DAMAGE.values())],
    ids=["sqlite", *map("-".join, itertools.product(ENGINES, DAMAGE))],
)
def test_damaged_database(kind, path, spoil, contents):
    need(kind)
    uri = f"{kind}:{path}"
    fill(uri)
    spoil(path)
    before = contents(path)
    assert "scrapy dedup store reset" in refusal(uri, StoreCorruptError, path)
    after = contents(path)
    assert {name: after[name] for name in before} == before
    assert store_exists(uri)


def test_rotten_table(foldered, path):
    """The engine's own checksums notice it when it is read."""
    open_store(foldered, fingerprint_scheme=SCHEME).close()
    table = next(file for file in (path / "db").iterdir() if file.suffix in (".ldb", ".sst"))
    data = bytearray(table.read_bytes())
    data[5000] ^= 1
    table.write_bytes(data)
    store = open_store(foldered, fingerprint_scheme=SCHEME)
    with pytest.raises(StoreCorruptError, match=str(path)):
        store.get_many([b"%04d" % number for number in range(2000)])
    with pytest.raises(StoreCorruptError, match=str(path)):
        list(store.scan(b"0", b"9"))
    store.close()


@pytest.mark.parametrize("content", [b"", b"x"])
def test_sqlite_file_lost_beside_its_wal(path, content):
    """SQLite would delete the WAL, and with it batches that are nowhere else."""
    wal = path.with_name("store-wal")
    wal.write_bytes(b"frames")
    if content:
        path.write_bytes(content)
    refusal(f"sqlite:{path}", StoreCorruptError, path)
    assert wal.read_bytes() == b"frames"


def stranger_folder(path):
    path.mkdir()
    (path / "thesis.txt").write_text("ten years of work")


def stranger_marker(path):
    path.mkdir()
    (path / "DEDUP").write_text('{"kind": "something else", "layout": 1}')


def stranger_marker_folder(path):
    (path / "DEDUP").mkdir(parents=True)


def stranger_database(path):
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE pairs (key, value)")
    db.close()


def stranger_file(path):
    path.write_bytes(b"SQLite format 3\x00 not really")


@pytest.mark.parametrize(
    "place", [stranger_folder, stranger_marker, stranger_marker_folder, stranger_database, stranger_file]
)
def test_what_is_not_ours_stays_untouched(uri, path, place, contents):
    place(path)
    before = contents(path)
    assert "untouched" in refusal(uri, StoreCorruptError, path)
    assert contents(path) == before
    for use in (store_exists, destroy_store):
        with pytest.raises(StoreCorruptError, match="untouched"):
            use(uri)
    assert contents(path) == before
    assert not list(path.parent.rglob("*lock*"))


def _header(**changes):
    return structs.replace(Header.new(SCHEME), **changes).encode()


@pytest.mark.parametrize(
    ("header", "kind", "words"),
    [
        *(
            (value, StoreCorruptError, "header")
            for value in (None, b"", b"\xff\xfe", b"[]", b'{"schema": %d}' % SCHEMA_VERSION)
        ),
        (
            _header(schema=SCHEMA_VERSION + 1),
            StoreVersionError,
            f"newer than schema {SCHEMA_VERSION} of this version. Upgrade",
        ),
        (
            _header(schema=1),
            StoreVersionError,
            f"older than schema {SCHEMA_VERSION} of this version. Remove it by `scrapy",
        ),
        (_header(scheme="other"), StoreVersionError, f"'other', this crawl makes '{SCHEME}'"),
        (_header(is_partial=True), StoreError, "was cut off. Remove it by `scrapy dedup store reset"),
    ],
)
def test_a_header_that_does_not_fit_is_refused(uri, path, header, kind, words):
    store = open_store(uri, fingerprint_scheme=SCHEME)
    store.write([(b"k", b"1")], [HEADER_KEY])
    if header is not None:
        store.write([(HEADER_KEY, header)])
    store.close()
    for _ in range(2):
        with pytest.raises(StoreError, match=re.escape(words)) as caught:
            open_store(uri, fingerprint_scheme=SCHEME)
        assert type(caught.value) is kind
        assert str(path) in str(caught.value)


def test_where_no_store_can_be_it_is_refused(backend, path):
    """Below a file, and at a link that leads to itself."""
    path.symlink_to(path)
    (file := path.with_name("file")).touch()
    for place in (path, file / "store"):
        refusal(f"{backend}:{place}", StoreError, place)


@pytest.mark.parametrize(
    "change",
    [
        {"schema": 0}, {"schema": True}, {"schema": "1"}, {"schema": None}, {"scheme": ""}, {"scheme": 1},
        {"key": "00"}, {"key": "zz" * 16}, {"key": 5}, {"is_partial": 0}, {"more": 1},
        {"created": "yesterday"}, {"created": "2025-01-01T00:00:00"}, {"created": None},
    ],
)  # fmt: skip
def test_each_wrong_field_is_a_value_error(change):
    fields = json.loads(Header.new("x").encode()) | change
    with pytest.raises(ValueError):  # noqa: PT011
        Header.decode(json.dumps(fields).encode())


_FEW_DESCRIPTORS = """
import os, resource, sys
from dedup_middleware.errors import StoreError
from dedup_middleware.stores import open_store
resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/dev/fd")) + int(sys.argv[2]),) * 2)
try:
    open_store(sys.argv[1], fingerprint_scheme="test-scheme").close()
    print("opened")
except StoreError as error:
    print(type(error).__name__)
"""


def test_a_store_is_not_called_damaged_where_the_system_refuses(foldered):
    for more in (12, 6, 4):
        command = [sys.executable, "-c", _FEW_DESCRIPTORS, foldered, str(more)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment(), check=True)
        assert done.stdout in ("opened\n", "StoreError\n")
    assert done.stdout == "StoreError\n"


@pytest.mark.parametrize("mode", [0o000, 0o444])
def test_store_without_permission(backend, uri, path, mode):
    fill(uri)
    files = [path] if backend == "sqlite" else [*(path / "db").iterdir(), path / "lock"]
    for file in files:
        file.chmod(mode)
    if os.access(files[0], os.W_OK):
        pytest.skip("root may read and write everything")
    assert "permissions" in refusal(uri, StoreError, path)
    for file in files:
        file.chmod(0o644)
    fill(uri)


@pytest.mark.parametrize("left", [[], ["DEDUP"], ["DEDUP", "db/"]])
def test_creation_that_was_killed_is_taken_up(engine, path, left):
    path.mkdir()
    (path / "lock").touch()
    if "DEDUP" in left:
        (path / "DEDUP").write_text(json.dumps({"kind": f"dedup-middleware {engine} store"}))
    if "db/" in left:
        (path / "db").mkdir()
    uri = f"{engine}:{path}"
    if left:
        with pytest.raises(StoreError, match="no store found"):
            open_store(uri, fingerprint_scheme=None)
    store = open_store(uri, fingerprint_scheme=SCHEME)
    assert store.created
    store.close()
    store = open_store(uri, fingerprint_scheme=SCHEME)
    assert not store.created
    store.close()


_FULL_DISK = """
import resource, sys
from dedup_middleware.errors import StoreError
from dedup_middleware.stores import open_store
store = open_store(sys.argv[1], fingerprint_scheme="test-scheme")
store.write([(b"before", b"1")])
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))
try:
    for number in range(100):
        store.write([(b"%d" % number, bytes(100_000))])
except StoreError as error:
    print(number, error)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
try:
    store.write([(b"after", b"1")])
    print("acknowledged")
except StoreError as error:
    print("refused:", error)
store.close()
"""


def test_write_that_the_medium_refuses(uri, path):
    """A limit on the size of files stands for the full disk; all that was acknowledged is there afterwards."""
    done = subprocess.run(
        [sys.executable, "-c", _FULL_DISK, uri], capture_output=True, text=True, env=environment(), check=True
    )
    failed, then = done.stdout.splitlines()
    assert str(path) in failed
    store = open_store(uri, fingerprint_scheme=SCHEME)
    held = [b"before", *(b"%d" % number for number in range(int(failed.split()[0])))]
    assert None not in store.get_many(held)
    assert store.get_many([b"after"]) == [b"1" if then == "acknowledged" else None]
    store.close()


# --- other processes


def test_batches_survive_the_death_of_the_process(uri, hold):
    with hold(uri) as process:
        process.kill()
        process.wait()
        store = open_store(uri, fingerprint_scheme=SCHEME)
        assert store.get_many([b"held"]) == [b"1"]
        store.close()


_FORK = """
import os, subprocess, sys, warnings
from dedup_middleware.errors import StoreError, StoreLockedError
from dedup_middleware.stores import open_store

warnings.simplefilter("ignore", DeprecationWarning)
uri = sys.argv[1]
is_private = not uri.startswith("redis") and "shared" not in uri
store = open_store(uri, fingerprint_scheme="test-scheme")
store.write([(b"%d" % n, bytes(1000)) for n in range(3000)], sync=True)
under_way = store.scan(b"0", b":")
next(under_way)
guard = store.in_process.guard
if sys.argv[2] == "held":
    guard.acquire()
child = os.fork()
if child == 0:
    for call in (
        lambda: store.get_many([b"1"]),
        lambda: store.scan(b"0", b":"),
        lambda: list(under_way),
        lambda: store.write([(b"child", b"1")]),
        store.sync,
    ):
        try:
            call()
        except StoreError as error:
            assert "parent of this process" in str(error), error
        else:
            print("the child was let through")
    store.close()
    try:
        other = open_store(uri, fingerprint_scheme="test-scheme")
        other.write([(b"k", b"child")])
        assert other.worker != store.worker
        other.close()
    except StoreLockedError:
        print("refused")
    sys.exit(0)
if sys.argv[2] == "held":
    guard.release()
assert os.waitpid(child, 0)[1] == 0
if is_private:
    other = "import sys, dedup_middleware.stores as s; s.open_store(sys.argv[1], fingerprint_scheme='x')"
    late = subprocess.run([sys.executable, "-c", other, uri], stderr=subprocess.PIPE, text=True)
    assert "StoreLockedError" in late.stderr, late.stderr
store.write([(b"parent", b"1")], sync=True)
assert store.get_many([b"parent", b"child", b"2999"]) == [b"1", None, bytes(1000)]
if not uri.startswith("redis"):
    assert sum(1 for _ in under_way) == 2999
store.close()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize(
    ("kind", "guard"),
    [*((kind, "held") for kind in (*ENGINES, "sqlite", "sqlite?shared=1", "redis")), ("sqlite", "free")],
)
def test_forked_child_is_refused_and_harms_nobody(kind, guard, path, request):
    """Also when it ends, and when another thread of the parent was at work in the store during the fork."""
    need(kind)
    scheme, _, option = kind.partition("?")
    uri = shared_uri(kind, path.parent, request) if kind == "redis" else f"{scheme}:{path}{option and f'?{option}'}"
    command = [sys.executable, "-c", _FORK, uri, guard]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=PATIENCE, check=False)
    is_private = kind in (*ENGINES, "sqlite")
    assert (done.returncode, done.stdout, done.stderr) == (0, "refused\n" if is_private else "", "")
    store = open_store(uri, fingerprint_scheme=SCHEME)
    assert store.get_many([b"parent", b"child", b"k"]) == [b"1", None, None if is_private else b"child"]
    store.close()


# --- removing


def test_store_is_removed_and_can_be_created_again(uri, path):
    for nothing in (uri, "memory:"):
        assert not store_exists(nothing)
        assert destroy_store(nothing) is False
    fill(uri)
    assert size_of_store(uri) > 200_000
    assert destroy_store(uri) is True
    assert not store_exists(uri)
    assert destroy_store(uri) is False
    left = [file for file in path.parent.rglob("*") if file.is_file()]
    assert [(file.name.rpartition(".")[2], file.stat().st_size) for file in left] == [("lock", 0)]
    store = open_store(uri, fingerprint_scheme="another-scheme")
    assert store.created
    assert store.get_many([b"0001"]) == [None]
    store.close()


def test_an_open_store_is_not_removed(uri, path, hold):
    with hold(uri):
        with pytest.raises(StoreLockedError, match=str(path)):
            destroy_store(uri)
        assert store_exists(uri)
    store = open_store(uri, fingerprint_scheme=SCHEME)
    with pytest.raises(StoreLockedError):
        destroy_store(uri)
    assert store.get_many([b"held"]) == [b"1"]
    store.close()


def test_a_damaged_store_is_removed_and_nothing_else(backend, uri, path):
    fill(uri)
    notes = (path if backend in ENGINES else path.parent) / "notes.txt"
    notes.write_text("mine")
    if backend in ENGINES:
        (path / "db" / "CURRENT").unlink()
    else:
        path.write_bytes(path.read_bytes()[:100] + b"\xff" * 5000)
        for suffix in ("-wal", "-shm", "-journal"):
            path.with_name(path.name + suffix).write_bytes(b"noise")
    assert destroy_store(uri) is True
    left = {file.name for file in notes.parent.iterdir() if file.is_file()}
    assert left == {"notes.txt", "lock" if backend in ENGINES else "store.lock"}
