"""Stores on Redis servers: their URIs, what a server must promise, transactions, leases, and servers that are away."""

import re
import signal
import socket
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from beside import beside, die, shared_uri
from local_site import wait_until
from redis_server import RedisServer

from dedup_middleware.errors import ConfigError, StoreAwayError, StoreCorruptError, StoreError
from dedup_middleware.stores import destroy_store, open_store, parse_uri, store_exists

redis = pytest.importorskip("redis")

from dedup_middleware.stores import redis as engine  # noqa: E402 - it imports redis

SCHEME = "test-scheme"
DOCUMENTED = Path(__file__).parents[2] / "docs" / "deployment" / "deploy.md"


@pytest.fixture
def uri(request, tmp_path):
    return shared_uri("redis", tmp_path, request)


@pytest.fixture
def trips(monkeypatch):
    """Return the scripts that are sent, as they are."""
    sent = []
    send = engine.RedisStore._run

    def note(store, text, *arguments):
        sent.append({engine.READ: "read", engine.SCAN: "scan", engine.WRITE: "write"}[text])
        return send(store, text, *arguments)

    monkeypatch.setattr(engine.RedisStore, "_run", note)
    return sent


def opened(uri):
    return open_store(uri, fingerprint_scheme=SCHEME)


def raw(uri):
    """Return a client of the server of *uri*, and the beginning of the names of the store's keys."""
    address, _, name = uri.partition("?store=")
    return redis.Redis.from_url(address), f"{{dedup:{name}}}:"


# --- URIs


@pytest.mark.parametrize(
    ("uri", "why"),
    [
        ("redis://", "is not a valid URL"),
        ("redis:/user:geheim@host", "is not a valid URL"),
        ("redis://user:geheim@host:port", "is not a valid URL"),
        ("redis://user:ge/heim@host:1", "is not a valid URL"),
        ("redis://user:ge#heim@host:1", "is not a valid URL"),
        ("redis://u:geheim@host/news", "is not a valid URL"),
        ("redis://u:geheim@host\n", "is not a valid URL"),
        ("redis://u:geheim@host?store=a b", "has an option that is not valid"),
        ("redis://host?store=geheim!", "has an option that is not valid"),
        ("redis://u:geheim@host?stroe=a", "has an option that is not valid"),
        ("redis://u:geheim@host?timeout=0", "has an option that is not valid"),
        ("redis://u:geheim@host?ssl_ca_certs=x", "has an option that is not valid"),
        ("redis://host?password=geheim", "has an option that is not valid"),
        ("rediss://u:geheim@host?ssl_ca_certs=/nope", r"names a file that does not exist \(ssl_ca_certs\)"),
    ],
)
def test_invalid_uris(uri, why):
    with pytest.raises(ConfigError, match=why) as caught:
        parse_uri(uri)
    assert "heim" not in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_without_redis_py(monkeypatch):
    monkeypatch.delitem(sys.modules, "dedup_middleware.stores.redis")
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(ConfigError, match=r'`pip install "dedup-middleware\[redis\]"`'):
        parse_uri("redis://127.0.0.1:1")


# --- what a server must promise, and who may use it


@pytest.mark.parametrize(
    ("options", "trouble"),
    [
        ({"appendonly": "no"}, r"appendonly no\)\. Set appendonly yes, or add aof=no to the URI"),
        ({"maxmemory": "100mb", "maxmemory-policy": "allkeys-lru"}, r"allkeys-lru\)\. Set maxmemory-policy noeviction"),
    ],
)
def test_a_server_that_would_lose_data_is_refused(tmp_path, options, trouble):
    with RedisServer(tmp_path / "redis", **options) as server:
        for use in (opened, store_exists):
            with pytest.raises(StoreError, match=trouble):
                use(server.url)
        assert redis.Redis(port=server.port).keys() == []


def test_a_full_server_refuses_a_batch_as_a_whole(tmp_path):
    with RedisServer(tmp_path / "redis") as server:
        store, admin = opened(server.url), redis.Redis(port=server.port)
        store.write([(b"k", b"1")])
        admin.config_set("maxmemory", "1")
        with pytest.raises(StoreAwayError, match="used memory"):
            store.write([(b"k", b"2"), (b"large", b"x")])
        store.close()
        admin.config_set("maxmemory", "0")
        store = opened(server.url)
        assert list(store.scan(b"a", b"z")) == [(b"k", b"1")]
        store.close()


def test_a_password_comes_from_the_uri_or_the_environment(tmp_path, monkeypatch):
    with RedisServer(tmp_path / "redis", requirepass="geheim") as server:
        bare = server.url
        for attempt in (bare, bare.replace("//", "//:falsch@"), bare.replace("//", "//crawler@")):
            with pytest.raises(StoreError, match="refuses the connection") as caught:
                opened(attempt)
            assert "falsch" not in str(caught.value)
        store = opened(bare.replace("//", "//:geheim@"))
        assert store.uri == bare
        store.close()
        monkeypatch.setenv("DEDUP_REDIS_PASSWORD", "geheim")
        opened(bare).close()


def test_a_user_needs_no_more_than_the_keys_of_its_store(tmp_path):
    with RedisServer(tmp_path / "redis") as server:
        admin = redis.Redis(port=server.port)
        (documented,) = re.findall(r"ACL SETUSER crawler on >PASSWORD (~.*)$", DOCUMENTED.read_text(), re.MULTILINE)
        admin.execute_command("ACL", "SETUSER", "crawler", "on", ">geheim", *documented.split())
        uri = f"redis://crawler:geheim@127.0.0.1:{server.port}?store=news"
        store = opened(uri)
        store.write([(b"k", b"1")], sync=True)
        assert store.get_many([b"k"]) == [b"1"]
        assert [*store.scan(b"k", b"l")] == [(b"k", b"1")]
        store.close()
        with pytest.raises(StoreError, match=r"refuses the connection.*~\{dedup:\* \+@read"):
            opened(uri.replace("news", "other"))
        assert destroy_store(uri)


def _cluster_node(folder, **options):
    with socket.create_server(("127.0.0.1", 0)) as free:
        bus = str(free.getsockname()[1])
    return RedisServer(folder, **{"cluster-enabled": "yes", "cluster-port": bus, **options})


def _make_cluster(nodes):
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


def _is_whole(client, nodes):
    info = client.execute_command("CLUSTER INFO")
    return info["cluster_state"] == "ok" and info["cluster_size"] == str(nodes)


@pytest.mark.parametrize("count", [3])
def test_a_cluster(tmp_path, count):
    with ExitStack() as running:
        nodes = [running.enter_context(_cluster_node(tmp_path / str(n))) for n in range(count)]
        clients = _make_cluster(nodes)
        pairs = [(b"%d" % number, b"v") for number in range(20)] + [(b"c" + bytes((n,)) * 6, b"v") for n in range(9)]
        for name in ("a", "b", "c"):
            # Any of the nodes may be named, whichever has the store.
            store, other = (opened(f"{nodes[at].url}?store={name}") for at in (0, -1))
            store.write(pairs)
            assert [*other.scan(b"\x01", b"\xff")] == sorted(pairs)
            other.transaction(lambda s=other: s.write([], [key for key, _ in pairs if s.get_many([key]) == [b"v"]]))
            assert [*store.scan(b"\x01", b"\xff")] == []
            store.close()
            other.close()
        assert sum(bool(client.dbsize()) for client in clients) >= min(count, 2)
        for name in ("a", "b", "c"):
            assert destroy_store(f"{nodes[0].url}?store={name}")
        assert not any(client.dbsize() for client in clients)


# --- what is in it


@pytest.mark.parametrize("spoil", ["bucket", "type", "header", "foreign"])
def test_values_that_are_not_ours_are_refused_in_one_line(uri, spoil):
    client, base = raw(uri)
    if spoil == "foreign":
        client.hset(base + "bx", "y", "z")
        client.zadd(base + "buckets", {"x": 0})
    else:
        opened(uri).close()
    if spoil == "bucket":
        client.set(base + "by", "text")
        client.zadd(base + "buckets", {"y": 0})
    elif spoil == "type":
        client.set(base + "b\0he", "text")
    elif spoil == "header":
        client.hset(base + "b\0he", "ader", "{}")

    def use():
        store = opened(uri)
        try:
            list(store.scan(b"a", b"z"))
        finally:
            store.close()

    with pytest.raises(StoreCorruptError) as caught:
        use()
    assert len(str(caught.value).splitlines()) == 1
    assert spoil != "foreign" or client.hget(base + "bx", "y") == b"z"


def test_a_scan_while_others_write(pair):
    one, other = pair
    keys = [b"%05d" % number for number in range(5_000)]
    one.write([(key, b"1") for key in keys])
    seen = []
    for number, (key, value) in enumerate(one.scan(b"0", b"9")):
        seen.append((key, value))
        if not number % 500:
            other.write([(b"%05d+" % number, b"new"), (b"%05d+" % (4_999 - number), b"new")])
    assert [pair for pair in seen if pair[1] == b"1"] == [(key, b"1") for key in keys]
    assert [key for key, _ in seen] == sorted({key for key, _ in seen})


# --- transactions


def test_a_transaction_that_is_outdated_runs_again(pair):
    one, other = pair
    tries = []

    def work():
        (value,) = one.get_many([b"k"])
        tries.append(value)
        if len(tries) <= 5:
            other.write([(b"k", b"%d" % len(tries))])
        one.write([(b"mine", value or b"")])

    one.transaction(work)
    assert tries == [None, b"1", b"2", b"3", b"4", b"5"]
    assert other.get_many([b"mine"]) == [b"5"]


@pytest.mark.parametrize("change", ["added", "changed", "removed"])
def test_what_a_transaction_has_scanned_does_not_change(pair, change):
    one, other = pair
    one.write([(b"k1", b"1"), (b"k2", b"2")])
    counts = []

    def work():
        counts.append(dict(one.scan(b"k", b"l")))
        if len(counts) == 1:
            other.write([] if change == "removed" else [(b"k3" if change == "added" else b"k2", b"3")], [b"k1"])
        one.write([(b"count", b"%d" % len(counts[-1]))])

    one.transaction(work)
    assert len(counts) == 2
    assert counts[1] == dict(other.scan(b"k", b"l"))


def test_reads_of_one_transaction_are_of_one_time(pair):
    one, other = pair
    seen = []

    def work():
        (first,) = one.get_many([b"a"])
        if not seen:
            other.write([(b"a", b"1"), (b"b", b"1")])
        seen.append((first, *one.get_many([b"b"])))

    one.transaction(work)
    assert seen == [(None, b"1"), (b"1", b"1")]


def test_what_relies_on_nothing_having_changed_runs_again(pair):
    one, other = pair
    before = one.changes_of_others()
    other.write([(b"elsewhere", b"1")])
    seen = []

    def work():
        seen.append(one.changes_of_others())
        one.require_unchanged()
        one.write([(b"k", b"%d" % len(seen))])

    one.transaction(work)
    assert before == seen[0] != seen[1]
    assert other.get_many([b"k"]) == [b"2"]
    # Its own writes are no changes of others.
    one.transaction(work)
    assert seen[1:] == [seen[1], seen[1]]


def test_what_a_worker_does_before_it_ends_is_seen_with_its_end(pair):
    """A read before its last write, and a look at its lease after it has ended, are not of one time."""
    here, there = pair
    there.write([(b"u1", b"in doubt")])

    def find():
        found = here.get_many([b"u1"])
        if found != [None]:
            there.write([], [b"u1"])
            there.close()
        return found, here.is_at_work(there.worker)

    assert here.transaction(find) == ([None], False)


def test_round_trips_of_a_page(uri, trips):
    store = opened(uri)
    trips.clear()

    def work():
        store.get_many([b"a", b"b"])
        store.write([(b"a", b"1")])
        assert store.get_many([b"a", b"b"]) == [b"1", None]

    store.transaction(work)
    assert trips == ["read", "write"]
    store.get_many([b"a", b"b"])
    assert trips == ["read", "write", "read"]
    store.close()


# --- leases


def test_a_lease_is_renewed_while_its_process_computes(uri, monkeypatch):
    monkeypatch.setattr(engine, "_LEASE", 0.3)
    one, other = beside(uri, SCHEME), beside(uri, SCHEME)
    ended = time.monotonic() + 0.7
    wait_until(lambda: time.monotonic() > ended)
    assert one.is_at_work(other.worker)
    one.write([(b"k", b"1")])
    one.close()
    assert not other.is_at_work(one.worker)
    other.close()


def test_a_worker_without_its_lease_writes_nothing_any_more(pair):
    one, other = pair
    die(one)
    assert not other.is_at_work(one.worker)
    for _ in range(2):
        with pytest.raises(StoreAwayError, match="the lease of the store"):
            one.write([(b"k", b"1")])
    with pytest.raises(StoreAwayError, match="the lease of the store"):
        one.get_many([b"k"])
    assert other.get_many([b"k"]) == [None]


def test_a_server_that_has_lost_writes_is_as_good_as_away(uri):
    store = opened(uri)
    client, base = raw(uri)
    lease = f"{base}lease:{store.worker.hex()}"
    number = client.get(lease)
    store.write([(b"k", b"1")])
    client.set(lease, number)
    with pytest.raises(StoreAwayError, match="the server has lost data"):
        store.write([(b"k", b"2")])
    store.close()
    store = opened(uri)
    store.write([(b"k", b"3")])
    store.close()


# --- lost connections


class Cutting:
    """A proxy to *port* that cuts connections: after the request that :attr:`when` matches, and before its answer."""

    def __init__(self, port):
        self._target = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.when = b""
        self.cuts = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        with connection, socket.create_connection(("127.0.0.1", self._target)) as server:
            while request := connection.recv(1 << 20):
                server.sendall(request)
                answer = server.recv(1 << 20)
                if self.when and self.when in request:
                    self.when = b""
                    self.cuts += 1
                    return
                connection.sendall(answer)

    def close(self):
        # A thread that waits in accept() does not notice a close().
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()


@contextmanager
def cutting(uri):
    address, _, options = uri.partition("?")
    proxy = Cutting(int(address.rpartition(":")[2]))
    try:
        yield proxy, f"redis://127.0.0.1:{proxy.port}?{options}"
    finally:
        proxy.close()


def test_a_write_whose_answer_is_lost_is_applied_once(uri):
    with cutting(uri) as (proxy, through):
        store = opened(through)

        def add():
            (value,) = store.get_many([b"count"])
            store.write([(b"count", b"%d" % (int(value or 0) + 1)), (b"marked", b"MARK")])

        store.transaction(add)
        proxy.when = b"MARK"
        store.transaction(add)
        assert proxy.cuts == 1
        assert store.get_many([b"count"]) == [b"2"]
        store.transaction(add)
        store.close()
    again = opened(uri)
    assert again.get_many([b"count"]) == [b"3"]
    again.close()


def test_a_write_that_is_interrupted_is_not_taken_for_the_next(uri, monkeypatch):
    store = opened(uri)
    send = engine.RedisStore._run

    def interrupt(*arguments):
        send(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(engine.RedisStore, "_run", interrupt)
    with pytest.raises(KeyboardInterrupt):
        store.write([(b"k", b"1")])
    monkeypatch.undo()
    store.write([(b"k", b"2")])
    assert store.get_many([b"k"]) == [b"2"]
    store.close()


def test_an_idle_connection_that_was_cut_is_made_again(uri):
    store = opened(uri)
    raw(uri)[0].client_kill_filter(_type="normal")
    assert store.get_many([b"k"]) == [None]
    store.close()


def _calls(store):
    return [
        lambda: store.get_many([b"k"]),
        lambda: list(store.scan(b"a", b"z")),
        lambda: store.write([(b"k", b"2")]),
        lambda: store.transaction(lambda: store.write([(b"k", b"2")])),
    ]


def test_a_server_that_was_killed_is_away_until_the_store_is_opened_again(tmp_path):
    # By default, a server may keep a write in its memory while its disk is busy.
    with RedisServer(tmp_path / "redis", appendfsync="always") as server:
        store = opened(server.url)
        store.write([(b"k", b"1")], sync=True)
        server.kill()
        with pytest.raises(StoreAwayError, match=rf"cannot reach the store {server.url} .*\. Check its server"):
            store.write([(b"k", b"2")])
        with pytest.raises(StoreAwayError):
            opened(server.url)
        server.begin()
        for call in _calls(store):
            with pytest.raises(StoreAwayError):
                call()
        again = opened(server.url)
        assert again.get_many([b"k"]) == [b"1"]
        store.close()
        again.close()


@pytest.mark.parametrize("call", range(4))
def test_a_server_that_is_frozen_is_away_after_its_time_out(tmp_path, call):
    with RedisServer(tmp_path / "redis") as server:
        store = opened(f"{server.url}?timeout=0.5")
        server.freeze()
        began = time.monotonic()
        with pytest.raises(StoreAwayError, match=r"[Tt]imeout|timed out"):
            _calls(store)[call]()
        store.close()
        # Without a time-out it would be a minute or more; a busy machine adds seconds.
        assert time.monotonic() - began < 30
        with pytest.raises(StoreAwayError, match=r"[Tt]imeout|timed out"):
            opened(f"{server.url}?timeout=0.5")
        assert time.monotonic() - began < 60
        server._process.send_signal(signal.SIGCONT)
        store = opened(server.url)
        # A write that the server has received is applied once it goes on, as that of another worker would be.
        assert store.get_many([b"k"]) in ([None], [b"2"])
        store.close()
