"""URIs of stores: which are valid, and how the others are refused."""

import asyncio
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from engines import ENGINES, need

import dedup_middleware
from dedup_middleware.driver.opening import open_for_crawl
from dedup_middleware.errors import ConfigError, EngineMissingError
from dedup_middleware.settings import Config
from dedup_middleware.stores import (
    default_backend,
    destroy_store,
    open_store,
    parse_uri,
    resolved_uri,
    store_exists,
    uri_at,
)


@pytest.mark.parametrize(
    ("uri", "parts"),
    [
        ("leveldb:/a/b", ("leveldb", "/a/b")),
        ("sqlite:a b/新聞.db", ("sqlite", str(Path("a b/新聞.db").absolute()))),
        ("sqlite:/a?/b.db", ("sqlite", "/a?/b.db")),
        ("sqlite:/a/b.db?shared=1", ("sqlite", "/a/b.db")),
        ("sqlite:/a/b.db?shared=1&memory=1GB", ("sqlite", "/a/b.db")),
        ("rocksdb:/a?memory=64mb", ("rocksdb", "/a")),
        ("memory:", ("memory", "")),
    ],
)
def test_good_uris(uri, parts):
    assert parse_uri(uri) == parts


def test_bad_uris():
    uris = [
        "", ":", "leveldb", "/a/b", "LevelDB:/a", "tarantool://localhost", "C:\\store",
        "leveldb:", "sqlite: ", "memory:x", "sqlite:///a", "leveldb://a", "sqlite:a\nb", "leveldb:a\0b",
        "sqlite:a?shared=yes", "sqlite:a?share=1", "leveldb:/a/b?shared=1", "rocksdb:a?", "memory:?memory=1GB",
        "leveldb:a?memory=", "leveldb:a?memory=1KB", "leveldb:a?memory=-1", "leveldb:a?memory=all",
        "leveldb:a?memory=999999999GB", "sqlite:a?memory=٣MB",
    ]  # fmt: skip
    for uri in uris:
        for use in (parse_uri, store_exists, destroy_store):
            text = refusal(use, uri)
            assert repr(uri) in text or ("//" in uri and f"{uri.partition(':')[0]}:…" in text) or "?" in uri
            assert len(text.splitlines()) == 1, uri


def refusal(use, uri):
    """Return the text with which *use* refuses *uri*; empty where it does not."""
    try:
        use(uri)
    except ConfigError as error:
        return str(error)
    return ""


def test_unknown_scheme_says_what_is_allowed():
    with pytest.raises(ConfigError, match=r"leveldb:PATH, .*, redis://HOST, rediss://HOST or memory:"):
        open_store("shelve:x", fingerprint_scheme="x")


def test_a_path_is_that_of_the_store_that_is_there(backend, uri, path, tmp_path):
    open_store(uri, fingerprint_scheme="x").close()
    assert uri_at(str(path)) == f"{backend}:{path}"
    assert uri_at(f"{path}?memory=8MB") == resolved_uri(f"{backend}:{path}?memory=8MB") == f"{uri}?memory=8MB"
    assert uri_at(f"{tmp_path}/new") == f"{default_backend()}:{tmp_path}/new"
    (tmp_path / "notes").write_text("mine")
    assert uri_at(f"{tmp_path}/notes/x") == f"{default_backend()}:{tmp_path}/notes/x"


def test_without_plyvel(monkeypatch, tmp_path):
    need("rocksdb")
    monkeypatch.setitem(sys.modules, "plyvel", None)
    assert default_backend() == "rocksdb"
    with pytest.raises(ConfigError, match=r"`pip install plyvel`.*DEDUP_STORE=rocksdb:PATH"):
        open_store(f"leveldb:{tmp_path / 'x'}", fingerprint_scheme="x")
    monkeypatch.setitem(sys.modules, "rocksdict", None)
    assert default_backend() == "sqlite"
    for scheme, package in ENGINES.items():
        with pytest.raises(ConfigError, match=rf"`pip install {package}`.*DEDUP_STORE=sqlite:PATH"):
            open_store(f"{scheme}:{tmp_path / 'x'}", fingerprint_scheme="x")
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("scheme", ENGINES)
def test_a_crawl_passes_through_without_the_library_of_its_default_store(scheme, tmp_path, monkeypatch):
    """Another Python, which has a wheel of it, has made the store."""
    need(scheme)
    uri = f"{scheme}:{tmp_path / 'store'}"
    open_store(uri, fingerprint_scheme="x").close()
    monkeypatch.setitem(sys.modules, ENGINES[scheme], None)
    named = replace(Config.from_settings({"DEDUP_STORE": uri, "DEDUP_LOG": ""}, None), spider="news")
    opened = asyncio.run(open_for_crawl(replace(named, store_is_default=True), asyncio.sleep))
    assert f"`pip install {ENGINES[scheme]}`" in opened.trouble
    opened.store.close()
    with pytest.raises(EngineMissingError):
        asyncio.run(open_for_crawl(named, asyncio.sleep))


def test_engines_are_imported_when_they_are_used():
    ours = {*ENGINES.values(), "redis", *(f"dedup_middleware.stores.{name}" for name in (*ENGINES, "sqlite", "redis"))}
    program = f"import sys, dedup_middleware.stores; assert not {ours} & set(sys.modules)"
    root = str(Path(dedup_middleware.__file__).parents[1])
    subprocess.run([sys.executable, "-c", program], check=True, env={"PYTHONPATH": root})


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        (
            "redis://10.0.0.5:6379/0",
            ["without a password and without TLS", "set DEDUP_REDIS_PASSWORD and use rediss://"],
        ),
        ("redis://user:secret@redis.internal", ["redis://redis.internal is", "used without TLS", "use rediss://"]),
        ("rediss://redis.internal", ["used without a password", "set DEDUP_REDIS_PASSWORD"]),
        ("rediss://:secret@redis.internal", []),
        ("redis://127.0.0.1", []),
        ("redis://[::1]:6379", []),
        ("redis://localhost/3", []),
        ("redis://localhost.example.org", ["used without a password and without TLS"]),
    ],
)
def test_a_server_that_others_can_reach_is_warned_of(monkeypatch, uri, expected):
    engine = pytest.importorskip("dedup_middleware.stores.redis")
    monkeypatch.delenv(engine.PASSWORD, raising=False)
    caution = engine.address(uri).caution
    assert bool(caution) == bool(expected)
    assert all(words in caution for words in expected)
    assert "secret" not in caution
    monkeypatch.setenv(engine.PASSWORD, "secret")
    assert "without a password" not in engine.address(uri).caution
