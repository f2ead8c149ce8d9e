"""Stores on Redis servers: who may use them, what they must promise, and what becomes of lost answers and leases."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from beside import beside, die, shared_uri
from local_site import wait_until
from redis_server import RedisServer

from dedup_middleware.errors import ConfigError, StoreAwayError, StoreCorruptError, StoreError, StoreLockedError
from dedup_middleware.stores import destroy_store, open_store, parse_uri, redis_lease, redis_memory, store_exists
from dedup_middleware.stores.layout import HEADER_KEY
from dedup_middleware.stores.protocol import Question
from dedup_middleware.stores.redis_run import Run
from dedup_middleware.stores.redis_store import RedisStore

redis = pytest.importorskip("redis")
msgpack = pytest.importorskip("msgpack")

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from dedup_middleware.stores import OpenStore

SCHEME = "test-scheme"
DOCUMENTED = Path(__file__).parents[2] / "docs" / "running.md"


@pytest.fixture
def uri(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return shared_uri("redis", tmp_path, request)


def opened(uri: str) -> OpenStore:
    return open_store(uri, fingerprint_scheme=SCHEME)


def raw(uri: str) -> tuple[redis.Redis, str]:
    """Return a client of the server of *uri*, and what the names of the store's keys begin with."""
    address, _, name = uri.partition("?store=")
    return redis.Redis.from_url(address), f"{{dedup:{name}}}:"


# --- what a server must promise


@pytest.mark.parametrize(
    ("options", "trouble"),
    [
        ({"appendonly": "no"}, r"appendonly no\): set appendonly yes, or accept that with aof=no in DEDUP_STORE"),
        ({"appendfsync": "no"}, r"appendfsync no\): set appendfsync everysec, or always"),
        (
            {"maxmemory": "100mb", "maxmemory-policy": "allkeys-lru"},
            r"maxmemory-policy allkeys-lru\): set maxmemory-policy noeviction",
        ),
    ],
)
def test_a_server_that_would_lose_something_is_refused(tmp_path: Path, options: dict[str, str], trouble: str) -> None:
    with RedisServer(tmp_path / "redis", **options) as server:
        for use in (opened, store_exists):
            with pytest.raises(StoreError, match=trouble):
                use(server.url)
        assert redis.Redis(port=server.port).keys() == []


def test_what_needs_no_promise_may_say_so(tmp_path: Path) -> None:
    with RedisServer(tmp_path / "redis", appendonly="no") as server:
        store = opened(f"{server.url}?aof=no")
        store.write([(b"k", b"1")], sync=True)
        assert store.get_many([b"k"]) == [b"1"]
        store.close()


def test_a_full_server_refuses_a_batch_as_a_whole(tmp_path: Path) -> None:
    with RedisServer(tmp_path / "redis") as server:
        store = opened(server.url)
        store.write([(b"k", b"1")])
        redis.Redis(port=server.port).config_set("maxmemory", "1")
        with pytest.raises(StoreError, match="used memory"):
            store.write([(b"k", b"2"), (b"large", b"x")])
        assert store.get_many([b"k"]) == [b"1"]
        store.close()


# --- who may use it


def test_a_password_comes_from_the_uri_or_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with RedisServer(tmp_path / "redis", requirepass="geheim") as server:
        bare = server.url
        for attempt in (bare, bare.replace("//", "//:falsch@")):
            with pytest.raises(StoreError, match="refuses us") as caught:
                opened(attempt)
            assert "falsch" not in str(caught.value)
        store = opened(bare.replace("//", "//:geheim@"))
        assert store.uri == bare
        store.close()
        for name in ("REDISCLI_AUTH", "DEDUP_REDIS_PASSWORD"):
            with monkeypatch.context() as patch:
                patch.setenv(name, "geheim")
                opened(bare).close()


def test_a_user_needs_no_more_than_the_keys_of_its_store(tmp_path: Path) -> None:
    with RedisServer(tmp_path / "redis") as server:
        admin = redis.Redis(port=server.port)
        (documented,) = re.findall(r"ACL SETUSER crawler on >PASSWORD (~.*)$", DOCUMENTED.read_text(), re.MULTILINE)
        admin.execute_command("ACL", "SETUSER", "crawler", "on", ">geheim", *documented.split())
        uri = f"redis://crawler:geheim@127.0.0.1:{server.port}?store=news"
        store = opened(uri)
        assert store.caution == ""
        store.write([(b"k", b"1")], sync=True)
        assert store.get_many([b"k"]) == [b"1"]
        assert [*store.scan(b"k", b"l")] == [(b"k", b"1")]
        store.close()
        with pytest.raises(StoreError, match=r"refuses us.*~\{dedup:other\}:\* \+@read"):
            opened(uri.replace("news", "other"))
        assert destroy_store(uri)


def test_what_a_server_does_not_show_is_said(tmp_path: Path) -> None:
    with RedisServer(tmp_path / "redis", appendfsync="no") as server:
        admin = redis.Redis(port=server.port)
        rules = ["on", ">geheim", "~{dedup:dedup}:*", "+@read", "+@write", "+@scripting", "+@connection", "+info"]
        admin.execute_command("ACL", "SETUSER", "crawler", *rules)
        store = opened(f"redis://crawler:geheim@127.0.0.1:{server.port}")
        assert store.caution.endswith(
            "does not tell us its setting appendfsync (its user may not run CONFIG GET): "
            "see to it that it is everysec or always"
        )
        store.close()


def test_a_database_that_is_not_there(tmp_path: Path) -> None:
    with RedisServer(tmp_path / "redis") as server, pytest.raises(StoreError, match="no database of that number") as no:
        opened(f"{server.url}/99")
    assert no.value.misnamed


def test_what_is_no_redis_is_said_to_be_none() -> None:
    def answer() -> None:
        connection, _ = other.accept()
        with connection:
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as other:
        answering = threading.Thread(target=answer)
        answering.start()
        with pytest.raises(StoreAwayError, match="does not speak the Redis protocol"):
            opened(f"redis://127.0.0.1:{other.getsockname()[1]}")
        answering.join()


def test_a_file_for_tls_that_is_not_there() -> None:
    with pytest.raises(ConfigError, match=r"ssl_ca_certs=/nope.* cannot be read.*No such file") as caught:
        opened("rediss://127.0.0.1:1?ssl_ca_certs=/nope")
    assert len(str(caught.value).splitlines()) == 1


def test_tls_with_a_certificate_of_ones_own(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(["openssl", "req", "-x509", *kind, *files, *subject], check=True, capture_output=True)
    tls = {"port": "0", "tls-cert-file": str(certificate), "tls-key-file": str(key), "tls-auth-clients": "no"}
    with RedisServer(tmp_path / "redis", **tls) as server:
        secured = f"rediss://127.0.0.1:{server.port}"
        with pytest.raises(StoreAwayError, match="CERTIFICATE_VERIFY_FAILED"):
            opened(secured)
        store = opened(f"{secured}?ssl_ca_certs={certificate}")
        store.write([(b"k", b"1")])
        assert store.get_many([b"k"]) == [b"1"]
        store.close()


@pytest.mark.parametrize(
    ("uri", "why"),
    [
        ("redis://", "names no host"),
        ("redis:host", "names no host"),
        ("redis://user:geheim@host:port", "is no URL"),
        ("redis://user:ge/heim@host:1", "geheim|is no URL"),
        ("redis://u:geheim@host/news", "'news' is no number of a database"),
        ("redis://u:geheim@host?store=a b", "the store's name 'a b'"),
        ("redis://u:geheim@host?stroe=a", "'stroe' is no option"),
        ("redis://u:geheim@host?timeout=0", "timeout='0' is no number of seconds"),
        ("redis://crawler@host", "names a user and no password"),
        ("redis://u:geheim@host?aof=maybe", "aof='maybe' must be yes or no"),
        ("redis://u:geheim@host?ssl_ca_certs=x", "'ssl_ca_certs' is no option of redis://"),
        ("redis://u:geheim@host\n", "control characters"),
    ],
)
def test_a_uri_that_cannot_be_one(uri: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why) as caught:
        parse_uri(uri)
    assert "geheim" not in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_without_hiredis(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("redis", "redis_wire", "redis_link", "redis_ahead", "redis_store", "redis_lease"):
        monkeypatch.delitem(sys.modules, f"dedup_middleware.stores.{name}", raising=False)
    monkeypatch.setitem(sys.modules, "hiredis", None)
    with pytest.raises(ConfigError, match=r'`pip install "dedup-middleware\[redis\]"`'):
        opened("redis://127.0.0.1:1")


def _cluster_node(folder: Path, **options: str) -> RedisServer:
    with socket.create_server(("127.0.0.1", 0)) as free:
        bus = str(free.getsockname()[1])
    return RedisServer(folder, **{"cluster-enabled": "yes", "cluster-port": bus, **options})


def _make_cluster(nodes: list[RedisServer]) -> list[redis.Redis]:
    """Give each of *nodes* an equal part of the slots; return clients that speak to one node each."""
    clients = [redis.Redis(port=node.port) for node in nodes]
    share = 16_384 // len(nodes)
    for number, (node, client) in enumerate(zip(nodes, clients, strict=True)):
        last = 16_383 if node is nodes[-1] else (number + 1) * share - 1
        client.execute_command("CLUSTER", "ADDSLOTSRANGE", number * share, last)
        bus = client.config_get("cluster-port")["cluster-port"]
        for other in clients:
            other.execute_command("CLUSTER", "MEET", "127.0.0.1", node.port, bus)
    for client in clients:
        wait_until(lambda client=client: _is_whole(client, len(nodes)))
    return clients


def _is_whole(client: redis.Redis, nodes: int) -> bool:
    info = client.execute_command("CLUSTER INFO")
    return info["cluster_state"] == "ok" and info["cluster_size"] == str(nodes)


@pytest.mark.parametrize("count", [1, 3])
def test_a_cluster(tmp_path: Path, count: int) -> None:
    with ExitStack() as running:
        nodes = [running.enter_context(_cluster_node(tmp_path / str(n))) for n in range(count)]
        clients = _make_cluster(nodes)
        pairs = [(b"%d" % number, b"v") for number in range(20)] + [(b"c" + bytes((n,)) * 6, b"v") for n in range(9)]
        for name in ("a", "b", "c"):
            # Any of the nodes may be named, whichever has the store.
            store, other = (opened(f"{nodes[at].url}?store={name}") for at in (0, -1))
            store.write(pairs)
            assert [*other.scan(b"\x01", b"\xff")] == sorted(pairs)
            other.atomically(lambda s=other: s.write([], [key for key, _ in pairs if s.get_many([key]) == [b"v"]]))
            assert [*store.scan(b"\x01", b"\xff")] == []
            store.close()
            other.close()
        assert sum(bool(client.dbsize()) for client in clients) >= min(count, 2)
        for name in ("a", "b", "c"):
            assert destroy_store(f"{nodes[0].url}?store={name}")
        assert not any(client.dbsize() for client in clients)


def test_of_a_cluster_the_node_is_looked_at_that_has_the_store(tmp_path: Path) -> None:
    with ExitStack() as running:
        nodes = [running.enter_context(_cluster_node(tmp_path / str(n), appendonly="yes")) for n in range(2)]
        clients = _make_cluster(nodes)
        name = next(
            n for n in map(str, range(99)) if clients[0].execute_command("CLUSTER KEYSLOT", f"{{dedup:{n}}}:") > 8191
        )
        clients[1].config_set("appendonly", "no")
        with pytest.raises(StoreError, match="appendonly no"):
            opened(f"{nodes[0].url}?store={name}")


# --- what is in it


def test_a_name_that_has_something_else_is_left_alone(uri: str) -> None:
    client, base = raw(uri)
    client.hset(base + "bx", "y", "z")
    client.zadd(base + "buckets", {"x": 0})
    with pytest.raises(StoreCorruptError, match="is not a store of dedup-middleware"):
        opened(uri)
    assert client.hget(base + "bx", "y") == b"z"


@pytest.mark.parametrize("spoil", ["version", "bucket", "type", "header"])
def test_values_that_are_not_ours_are_refused_in_one_line(uri: str, spoil: str) -> None:
    opened(uri).close()
    client, base = raw(uri)
    if spoil == "version":
        client.set(base + "version", "many")
    elif spoil == "bucket":
        client.set(base + "by", "text")
        client.zadd(base + "buckets", {"y": 0})
    elif spoil == "type":
        client.set(base + "b\0he", "text")
    else:
        client.hset(base + "b\0he", "ader", "{}")

    def use() -> None:
        store = opened(uri)
        try:
            list(store.scan(b"a", b"z"))
        finally:
            store.close()

    with pytest.raises(StoreCorruptError) as caught:
        use()
    assert len(str(caught.value).splitlines()) == 1


def test_it_is_removed_once_nobody_has_it(uri: str) -> None:
    client, base = raw(uri)
    store = beside(uri, SCHEME)
    store.write([(b"k", b"1"), (b"c1234567", b"2")])
    assert store_exists(uri)
    with pytest.raises(StoreLockedError, match="in use"):
        destroy_store(uri)
    store.close()
    assert destroy_store(uri)
    assert not store_exists(uri)
    assert [*client.scan_iter(base + "*")] == []


def test_its_header_is_there_for_the_next(uri: str) -> None:
    first = opened(uri)
    header = first.header
    first.close()
    second = opened(uri)
    assert (second.created, second.header) == (False, header)
    assert second.get_many([HEADER_KEY]) == [header.encode()]
    second.close()


# --- leases


def test_a_lease_is_renewed_while_its_process_computes(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_lease, "LEASE", 0.3)
    one, other = beside(uri, SCHEME), beside(uri, SCHEME)
    assert one.shared is not None
    assert other.shared is not None
    time.sleep(0.7)
    assert one.shared.is_at_work(other.shared.worker)
    one.write([(b"k", b"1")])
    one.close()
    assert not other.shared.is_at_work(one.shared.worker)
    other.close()


def test_a_process_of_this_machine_that_is_killed_is_not_at_work_any_more(
    uri: str, hold: Callable[[str], AbstractContextManager[subprocess.Popen[str]]]
) -> None:
    store = opened(uri)
    client, base = raw(uri)
    assert store.shared is not None
    with hold(uri) as process:
        names = client.smembers(base + "workers")
        (other,) = {bytes.fromhex(name.decode()) for name in names} - {store.shared.worker}
        assert store.shared.is_at_work(other)
        process.kill()
        process.wait()
        assert not store.shared.is_at_work(other)
    store.close()


def test_a_worker_without_its_lease_writes_nothing_any_more(uri: str) -> None:
    one, other = beside(uri, SCHEME), beside(uri, SCHEME)
    die(one)
    assert other.shared is not None
    assert one.shared is not None
    assert not other.shared.is_at_work(one.shared.worker)
    for _ in range(2):
        with pytest.raises(StoreError, match="has lost its lease"):
            one.write([(b"k", b"1")])
    with pytest.raises(StoreError, match="has lost its lease"):
        one.get_many([b"k"])
    assert other.get_many([b"k"]) == [None]
    one.close()
    other.close()


# --- at once


def test_who_is_overtaken_again_and_again_gets_there(uri: str) -> None:
    one, other = beside(uri, SCHEME), beside(uri, SCHEME)
    tries = []

    def work() -> None:
        (value,) = one.get_many([b"k"])
        tries.append(value)
        if len(tries) <= 3:
            other.write([(b"k", b"%d" % len(tries))])
        one.write([(b"mine", value or b"")])

    one.atomically(work)
    assert tries == [None, b"1", b"2", b"3"]
    assert other.get_many([b"mine"]) == [b"3"]
    one.close()
    other.close()


def test_what_rests_on_nothing_having_changed_is_done_again(uri: str) -> None:
    one, other = beside(uri, SCHEME), beside(uri, SCHEME)
    for _ in range(2):
        # One who meets others at every turn would look again by itself.
        one.write([(b"mine", b"1")])
    told = [one.changes_of_others()]
    other.write([(b"elsewhere", b"1")])

    def work() -> None:
        told.append(one.changes_of_others())
        one.write([(b"k", b"%d" % len(told))])

    one.atomically(work)
    assert told[0] == told[1] != told[2]
    assert other.get_many([b"k"]) == [b"3"]
    one.close()
    other.close()


def told(run: Run) -> tuple[int, int]:
    """Return how many keys the server is told as seen, and as put."""
    seen, _, puts, *_ = msgpack.unpackb(run.told(), raw=True)
    return len(seen) // 2, len(puts) // 2


def test_what_was_seen_is_told_unless_the_version_vouches_for_all_of_it() -> None:
    memory = redis_memory.Memory(5)
    memory.learn(5, {b"a": b"1", b"b": None})

    def begun(*keys: bytes) -> Run:
        run = Run(memory.version)
        assert run.unknown(keys, memory) == []
        run.write([(b"c", b"2")], [], sync=False)
        return run

    run = begun(b"a", b"b")
    assert told(run) == (2, 1), "nobody has said which version must still be"
    run.expected = 5
    assert told(run) == (0, 1)
    assert told(run.as_seen()) == (0, 0)
    run.note({b"d": b"1"}, 6)
    assert told(run) == (3, 1), "others have written since"

    run = begun(b"a")
    run.expected = 6
    assert told(run) == (1, 1), "that is not the version at which it was seen"

    run = begun(b"a")
    run.expected = 5
    assert run.rests_on({b"b": None}, memory)
    assert told(run) == (2, 1), "what was noted before may be of any version"

    memory.hear(6)
    run = begun(b"a")
    run.expected = 6
    assert told(run) == (1, 1), "it is a guess"


def test_what_was_read_before_something_was_added_to_it_is_not_known_after() -> None:
    memory = redis_memory.Memory(5)
    memory.note(6, {b"k": b"2"}, [b"n"])
    memory.learn(5, {b"k": b"1", b"n": b"1", b"m": b"1"})
    assert memory.known() == {b"k": b"2", b"m": b"1"}


def test_who_told_the_version_only_asks_once_for_what_has_changed(uri: str) -> None:
    one, other = beside(uri, SCHEME), beside(uri, SCHEME)
    for _ in range(2):
        one.write([(b"k", b"1")])
    one.get_many([b"k"])
    seen = []

    def work() -> None:
        if not seen:
            other.write([(b"k", b"2")])
        one.changes_of_others()
        seen.append(one.get_many([b"k"])[0])
        one.write([(b"mine", seen[-1])])

    one.changes_of_others()
    store = one.shared
    assert isinstance(store, RedisStore)
    trips = store.trips
    one.atomically(work)
    assert seen == [b"1", b"2"]
    assert store.trips == trips + 3, "told the version, asked, and told what was seen"
    assert other.get_many([b"mine"]) == [b"2"]
    one.close()
    other.close()


def test_of_workers_who_add_none_is_in_anothers_way(uri: str) -> None:
    one, other = beside(uri, SCHEME), beside(uri, SCHEME)
    one.write([(b"sum", b"\x01\0\x05\xff"), (b"short", b"\x07")])
    tries = []

    def add(store: OpenStore, amount: int) -> None:
        assert isinstance(store.shared, RedisStore)
        store.shared.add(b"sum", [(1, 2, amount), (3, 1, -amount)])
        store.shared.add(b"short", [(0, 1, 1), (1, 2, amount)])
        store.shared.add(b"none", [(0, 1, 1)])

    def work() -> None:
        tries.append(1)
        one.write([(b"k", b"1")])
        add(one, 300)
        other.atomically(lambda: add(other, 7))

    one.atomically(work)
    assert len(tries) == 1
    for store in (one, other):
        # 5 + 300 + 7; 255 - 300 is none, and 0 - 7 is none either.
        assert store.get_many([b"sum", b"short", b"none"]) == [b"\x01\x01\x38\0", b"\x09", None]
        store.close()


def test_what_is_written_after_something_was_added_counts(uri: str) -> None:
    store = beside(uri, SCHEME)
    assert isinstance(store.shared, RedisStore)
    shared = store.shared
    store.write([(b"sum", b"\x05")])

    def work() -> None:
        shared.add(b"sum", [(0, 1, 1)])
        (value,) = store.get_many([b"sum"])
        assert value == b"\x06"
        store.write([(b"sum", b"\x10")])
        shared.add(b"sum", [(0, 1, 2)])

    store.atomically(work)
    assert store.get_many([b"sum"]) == [b"\x12"]
    store.close()


def test_what_others_write_makes_nobody_ask_for_everything_again(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_memory, "FRESH", 60)
    one, other = beside(uri, SCHEME), beside(uri, SCHEME)
    assert isinstance(one.shared, RedisStore)
    keys = [b"k%d" % number for number in range(9)]
    one.get_many(keys)
    for number in range(20):
        other.write([(b"elsewhere", b"%d" % number)])
        one.shared.fetch(Question([], [b"other%d" % number], [], b"", 0))
    asked, told = one.shared.trips, one.changes_of_others()
    assert one.get_many(keys) == [None] * 9
    assert one.shared.trips == asked
    assert one.changes_of_others() != told, "whoever is about to write by it looks again"
    other.write([(keys[0], b"1")])
    one.atomically(lambda: one.write([(b"mine", one.get_many(keys)[0] or b"")]))
    assert other.get_many([b"mine"]) == [b"1"]
    one.close()
    other.close()


def test_what_was_read_long_ago_is_asked_for_again(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_memory, "FRESH", 0.01)
    one, other = beside(uri, SCHEME), beside(uri, SCHEME)
    assert one.get_many([b"k"]) == [None]
    other.write([(b"k", b"1")])
    wait_until(lambda: one.get_many([b"k"]) == [b"1"])
    one.close()
    other.close()


def test_what_a_worker_does_before_it_ends_is_seen_by_whoever_finds_it_gone(uri: str) -> None:
    """Its last checkpoint, then its lease: a read before the one and a look after the other are not of one time."""
    here, there = beside(uri, SCHEME), beside(uri, SCHEME)
    there.write([(b"u1", b"in doubt")])
    assert there.shared is not None
    worker = there.shared.worker

    def find() -> tuple[list[bytes | None], bool]:
        found = here.get_many([b"u1"])
        if found != [None]:
            there.write([], [b"u1"])
            there.close()
        assert here.shared is not None
        return found, here.shared.is_at_work(worker)

    assert here.atomically(find) == ([None], False)
    here.close()


def test_a_scan_within_sees_what_is_written_there(uri: str) -> None:
    store = opened(uri)
    store.write([(b"k1", b"1"), (b"k3", b"3"), (b"k5", b"5")])

    def work() -> list[tuple[bytes, bytes]]:
        store.write([(b"k2", b"2"), (b"k3", b"three"), (b"k9", b"9")], [b"k5"])
        return [*store.scan(b"k", b"l")]

    assert store.atomically(work) == [(b"k1", b"1"), (b"k2", b"2"), (b"k3", b"three"), (b"k9", b"9")]
    store.close()


# --- lost connections


class Cutting:
    """A proxy to *port* that cuts connections: after the request that :attr:`when` matches, and before its answer."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.when = b""
        self.cuts = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, socket.create_connection(("127.0.0.1", self._target)) as server:
            while request := connection.recv(1 << 20):
                server.sendall(request)
                answer = server.recv(1 << 20)
                if self.when and self.when in request:
                    self.when = b""
                    self.cuts += 1
                    return
                connection.sendall(answer)

    def close(self) -> None:
        # Whoever waits in accept() does not notice a close().
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()


@contextmanager
def cutting(uri: str) -> Iterator[tuple[Cutting, str]]:
    address, _, options = uri.partition("?")
    proxy = Cutting(int(address.rpartition(":")[2]))
    try:
        yield proxy, f"redis://127.0.0.1:{proxy.port}?{options}"
    finally:
        proxy.close()


def test_a_write_whose_answer_is_lost_is_made_once(uri: str) -> None:
    with cutting(uri) as (proxy, through):
        store = opened(through)

        def add() -> None:
            (value,) = store.get_many([b"count"])
            store.write([(b"count", b"%d" % (int(value or 0) + 1)), (b"marked", b"MARK")])

        store.atomically(add)
        proxy.when = b"MARK"
        store.atomically(add)
        assert proxy.cuts == 1
        assert store.get_many([b"count"]) == [b"2"]
        store.atomically(add)
        assert store.changes_of_others() == store.changes_of_others()
        store.close()
    again = opened(uri)
    assert again.get_many([b"count"]) == [b"3"]
    again.close()


def test_an_idle_connection_that_was_cut_is_made_anew(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_memory, "FRESH", 0)
    store = opened(uri)
    raw(uri)[0].client_kill_filter(_type="normal")
    assert store.get_many([b"k"]) == [None]
    store.close()


def _calls(store: OpenStore) -> list[Callable[[], object]]:
    return [
        lambda: store.get_many([b"k"]),
        lambda: list(store.scan(b"a", b"z")),
        lambda: store.write([(b"k", b"2")]),
        lambda: store.atomically(lambda: store.write([(b"k", b"2")])),
    ]


def test_a_server_that_is_away_is_said_to_be_at_once_and_until_the_store_is_opened_again(tmp_path: Path) -> None:
    with RedisServer(tmp_path / "redis", appendfsync="always") as server:
        store = opened(server.url)
        store.write([(b"k", b"1")], sync=True)
        server.kill()
        with pytest.raises(StoreAwayError, match=rf"{server.url} is away .*: see to its server"):
            store.write([(b"k", b"2")])
        server.begin()
        for call in _calls(store):
            with pytest.raises(StoreAwayError):
                call()
        store.close()
        again = opened(server.url)
        assert again.get_many([b"k"]) == [b"1"]
        again.close()


def test_a_server_that_does_not_answer_is_away_after_its_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        began = time.monotonic()
        with pytest.raises(StoreAwayError, match="timed out"):
            opened(f"redis://127.0.0.1:{silent.getsockname()[1]}?timeout=0.2")
        assert time.monotonic() - began < 2


def test_a_server_that_has_lost_what_was_written_is_as_good_as_away(uri: str) -> None:
    store = opened(uri)
    store.write([(b"k", b"1")])
    client, base = raw(uri)
    client.set(base + "version", "0")
    with pytest.raises(StoreAwayError, match="has lost what was written last"):
        store.write([(b"k", b"2")])
    store.close()


def test_its_round_trips_are_counted(uri: str) -> None:
    store = opened(uri)
    assert isinstance(store.shared, RedisStore)
    before = store.shared.trips
    store.get_many([b"a", b"b"])
    store.get_many([b"a"])
    store.write([(b"a", b"1")])
    assert store.get_many([b"a", b"b"]) == [b"1", None]
    assert store.shared.trips == before + 2
    store.close()


def test_an_answer_that_is_none_of_ours_is_refused_whoever_has_waited_for_it(uri: str) -> None:
    store = opened(uri)
    far = store.medium.store
    assert isinstance(far, RedisStore)
    question = Question((), (b"c123456",), (), b"", 0)
    far.fetch(question)
    client, base = raw(uri)
    client.set(f"{base}version", "not a number")
    arriving = far.begin_fetch(question)
    assert arriving is not None
    while not arriving.is_over:
        arriving.receive()
    assert not arriving.end()
    with pytest.raises(StoreCorruptError, match="is not a store of dedup-middleware"):
        far.fetch(question)
    with pytest.raises(StoreCorruptError, match="is not a store of dedup-middleware"):
        store.get_many([b"c654321"])
    store.close()
