"""Stores on real files, and a second process that holds one open."""

import subprocess
import sys
from contextlib import contextmanager

import pytest
from beside import beside
from crawling import environment
from engines import ENGINES, need

SCHEME = "test-scheme"

_HOLDER = """
import os, sys
from dedup_middleware.stores import open_store
if "LEASE" in os.environ and sys.argv[1].startswith("redis"):
    from dedup_middleware.stores import redis
    redis._LEASE = float(os.environ["LEASE"])
store = open_store(sys.argv[1], fingerprint_scheme=sys.argv[2])
store.write([(b"held", store.worker or b"1")])
print("open", flush=True)
sys.stdin.read()
"""


@pytest.fixture(params=[*ENGINES, "sqlite"])
def backend(request):
    """Return the scheme of each kind of store on disk."""
    need(request.param)
    return str(request.param)


@pytest.fixture(params=ENGINES)
def engine(request):
    """Return the scheme of each kind of store in a folder."""
    need(request.param)
    return str(request.param)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store"


@pytest.fixture
def uri(backend, path):
    return f"{backend}:{path}"


@pytest.fixture
def pair(uri):
    """Return two workers on one store."""
    one, other = beside(uri, SCHEME), beside(uri, SCHEME)
    yield one, other
    one.close()
    other.close()


@pytest.fixture
def hold():
    """Return a context manager: a second process has the store open and a batch written while the block runs."""

    @contextmanager
    def hold(uri):
        command = [sys.executable, "-c", _HOLDER, uri, SCHEME]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(), text=True
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "open\n"
            yield process
            process.kill()

    return hold


@pytest.fixture
def contents():
    """Return a function: the files under (or, of one file, beside) a path and their bytes.

    Without the engine's LOCK and its diary LOG, which it rewrites before it reads the data.
    """

    def contents(path):
        files = path.rglob("*") if path.is_dir() else path.parent.glob(path.name + "*")
        return {str(file): file.read_bytes() for file in files if file.is_file() and "LO" not in file.name}

    return contents
