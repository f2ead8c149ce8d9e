"""Keeps a store on Redis, Valkey or Kvrocks, by redis-py, for any number of processes on any number of machines.

``redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE][?OPTION=VALUE&…]``, or ``rediss://`` with TLS. Options: ``store``,
the store's name on the server (``dedup``); ``timeout``, the seconds after which a server that does not answer is away
(5); ``aof=no`` accepts a server without an append-only file; with ``rediss://``, redis-py's ``ssl_ca_certs``,
``ssl_certfile`` and ``ssl_keyfile``. A password may be in the environment instead.

Transactions are optimistic: the script that writes first compares everything that the transaction has read with what
is there now. If that is outdated, the transaction runs again.
"""

from __future__ import annotations

import os
import re
import secrets
import threading
import time
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit

from redis import Redis, RedisCluster
from redis import exceptions as kinds
from redis.backoff import NoBackoff
from redis.connection import DefaultParser
from redis.retry import Retry

from dedup_middleware.common.urls import is_on_this_machine, without_secrets
from dedup_middleware.errors import ConfigError, StoreAwayError, StoreError
from dedup_middleware.stores import refusals
from dedup_middleware.stores.base import HEADER_KEY, Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: The environment variable with the password of a URI without one.
PASSWORD = "DEDUP_REDIS_PASSWORD"  # noqa: S105 - a name
_OPTIONS = {"store": r"[A-Za-z0-9._-]{1,64}", "timeout": r"(?=.*[1-9])[0-9]{1,4}(\.[0-9]{1,3})?", "aof": "yes|no"}
_TLS_FILES = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
_NO_URL = "is not a valid URL (in a password write %2F %40 %23 %3F %25 for / @ # ? %)"


class ServerAddress(NamedTuple):
    """A store on a server: its URI without a password, the URL for redis-py, and the options of the URI."""

    uri: str
    url: str
    options: dict[str, str]

    @property
    def caution(self) -> str:
        """The warning that others on the network may reach the store; empty if they may not."""
        parts, missing = urlsplit(self.url), {}
        if not (parts.password or os.environ.get(PASSWORD) or "ssl_certfile=" in parts.query):
            missing["a password"] = f"set {PASSWORD}"
        if parts.scheme == "redis":
            missing["TLS"] = "use rediss://"
        if not missing or is_on_this_machine(self.url):
            return ""
        return (
            f"the store {self.uri} is on another machine and is used without {' and without '.join(missing)}, so "
            f"everyone who can reach the server may change what is dropped: {' and '.join(missing.values())}"
        )


def address(uri: str) -> ServerAddress:
    """Return the address in *uri*; :class:`ConfigError` if *uri* is not valid.

    The error shows no part of *uri* but its scheme: a password may stand in any other part of it.
    """
    scheme, why = uri.partition(":")[0], ""
    try:
        parts = urlsplit(uri)
        options = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
        files = {name: options.pop(name) for name in _TLS_FILES if name in options and scheme == "rediss"}
        why = _why_not_valid(uri, parts, options, files)
    except ValueError:
        why = _NO_URL
    if why:
        raise ConfigError(f"DEDUP_STORE={scheme}:… {why}", f"write {scheme}://USER:PASSWORD@HOST:6379/0?store=NAME")
    return ServerAddress(without_secrets(uri, redact=False), parts._replace(query=urlencode(files)).geturl(), options)


def _why_not_valid(uri: str, parts: SplitResult, options: dict[str, str], files: dict[str, str]) -> str:
    """Return what is wrong with *uri*, which consists of the others; empty if it is valid. Or ``ValueError``."""
    is_database = re.fullmatch(r"/?[0-9]{0,4}/?", parts.path, re.ASCII)
    if not (uri.isprintable() and parts.hostname and parts.port != 0 and is_database and not parts.fragment):
        return _NO_URL
    if not all(re.fullmatch(_OPTIONS.get(name, "(?!)"), value, re.ASCII) for name, value in options.items()):
        return f"has an option that is not valid (use store=NAME, timeout=SECONDS, aof=no, {'=, '.join(_TLS_FILES)}=)"
    return (
        ""
        if all(Path(f).is_file() for f in files.values())
        else f"names a file that does not exist ({' or '.join(files)})"
    )


# Seconds for which a lease lasts unless it is renewed; every third of it, for one renewal may be lost.
_LEASE = 15.0
# Seconds for which the version that was last seen counts as the present one, and a worker as at work.
_FRESH, _ALIVE = 0.02, 0.05
# Pairs after which a step of a scan ends.
_SCANNED = 1_000
_NOT_ALLOWED = (kinds.AuthenticationError, kinds.AuthorizationError, kinds.NoPermissionError)


class RedisStore(Store):
    """The store at *where*; this process becomes one of its workers by :meth:`join`."""

    def __init__(self, where: ServerAddress) -> None:
        """Connect; :class:`StoreError` if the server would lose what it is given."""
        self.uri, self.caution = where.uri, where.caution
        self._base = b"{dedup:%b}:" % where.options.get("store", "dedup").encode("ascii")
        # A lost connection is made again once, at once: an idle one may have been closed. Time is not spent twice.
        retry = Retry(NoBackoff(), 1, supported_errors=(kinds.ConnectionError,))
        timeout = float(where.options.get("timeout", 5))
        how: Any = {"socket_timeout": timeout, "socket_connect_timeout": timeout, "retry": retry}
        how["password"] = os.environ.get(PASSWORD) or None
        self._client: Any = Redis.from_url(where.url, parser_class=BoundedParser, **how)
        info = self._client.info()
        if info.get("cluster_enabled"):
            self._client.close()
            self._client = RedisCluster.from_url(where.url, **how)
        policy, trouble = info.get("maxmemory_policy", "noeviction"), ("", "")
        if info.get("maxmemory") and policy != "noeviction":
            trouble = f"evicts keys when its memory is full ({policy})", "set maxmemory-policy noeviction"
        elif where.options.get("aof") != "no" and not info.get("aof_enabled") and "kvrocks_version" not in info:
            trouble = "loses its data when it ends (appendonly no)", "set appendonly yes, or add aof=no to the URI"
        if any(trouble):
            raise StoreError(f"the server of the store {self.uri} {trouble[0]}", f"{trouble[1]}, or {refusals.ANOTHER}")
        self._scripts = {text: self._client.register_script(text) for text in (READ, SCAN, WRITE)}
        self._is_answering = True
        self._version = b""
        self._noted = 0.0
        self._others = 0
        self._at_work: dict[bytes, float] = {}
        self._number = 0
        # Of the current transaction: what it has read, the version when it began, and the one that its end requires.
        self._reads: dict[bytes, bytes | None] | None = None
        self._begun = self._required = b""
        self._over = threading.Event()

    def join(self) -> None:
        """Take a lease, and renew it until the store is closed."""
        self.worker = secrets.token_bytes(8)
        lease = self._lease(self.worker)
        self._client.set(lease, 0, px=int(_LEASE * 1000))
        threading.Thread(target=self._renew, args=(lease,), name="dedup-lease", daemon=True).start()

    def _renew(self, lease: bytes) -> None:
        while not self._over.wait(_LEASE / 3):
            # A server that is away may be back before the lease has run out.
            with suppress(Exception):
                self._client.pexpire(lease, int(_LEASE * 1000))

    def _lease(self, worker: bytes) -> bytes:
        return self._base + b"lease:%b" % worker.hex().encode("ascii")

    def _run(self, script: str, *arguments: bytes | str | float) -> Any:
        """Return what *script* returns."""
        self._is_answering = False
        answer = self._scripts[script](keys=[self._base + b"version"], args=[self._base, *arguments])
        self._is_answering = True
        return answer

    def get_many(self, keys: list[bytes]) -> list[bytes | None]:
        """See Store; a round trip. In a transaction none for what it has read already."""
        reads = self._reads
        if reads is None:
            return self._read(keys)
        if missing := [key for key in keys if key not in reads]:
            reads.update(zip(missing, self._read(missing), strict=True))
        return [reads[key] for key in keys]

    def _read(self, keys: list[bytes]) -> list[bytes | None]:
        values: list[bytes | None]
        version, *values = self._run(READ, *(part for key in keys for part in place_of(key)))
        self._note(version)
        return values

    def _note(self, version: bytes) -> None:
        self._others += version != self._version
        self._version, self._noted = version, time.monotonic()

    def scan(self, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
        """See Store; a round trip every 1 000 pairs. A transaction with one commits only if no other has written."""
        low, high = b"[" + place_of(start)[0], b"[" + place_of(stop)[0]
        while True:
            version, *found = self._run(SCAN, low, high, _SCANNED)
            self._note(version)
            # What is not there is read, too: no list of keys can verify that.
            self._required = self._required or version
            if not found:
                return
            for bucket, content in zip(found[::2], found[1::2], strict=True):
                pairs = zip(content[::2], content[1::2], strict=True)
                for key, value in sorted((key_of(bucket, field), value) for field, value in pairs):
                    if start <= key < stop:
                        yield key, value
            low = b"(" + found[-2]

    def write(self, puts: list[tuple[bytes, bytes]], deletes: list[bytes], *, sync: bool = False) -> None:  # noqa: ARG002
        self._apply({}, {**dict.fromkeys(deletes), **dict(puts)}, b"")

    def sync(self) -> None:
        """Do nothing: how often the disk is synced is up to the server."""

    def begin(self) -> None:
        self._reads, self._begun, self._required = {}, self._version, b""

    def commit(self, puts: list[tuple[bytes, bytes]], deletes: list[bytes]) -> bool:
        """See Store; a round trip."""
        reads, self._reads = self._reads or {}, None
        return self._apply(reads, {**dict.fromkeys(deletes), **dict(puts)}, self._required)

    def rollback(self) -> bool:
        reads, self._reads = self._reads or {}, None
        return self._apply(reads, {}, self._required)

    def _apply(self, reads: dict[bytes, bytes | None], writes: dict[bytes, bytes | None], required: bytes) -> bool:
        arguments = _as_arguments(reads, writes)
        # Before it is sent: if it is interrupted, the next write has another number, and is refused unless it arrived.
        self._number += 1
        before, outcome = self._run(WRITE, self.worker.hex(), self._number, required, *arguments)
        if outcome == b"lost":
            raise StoreAwayError(
                f"the lease of the store {self.uri} has ended: this process was suspended for too long, or the server "
                "has lost data",
                "A crawl opens the store again by itself; run a command again",
            )
        if before != self._version:
            self._note(before)
        if outcome == b"outdated":
            self._number -= 1
            return False
        if writes:
            self._version = b"%b:%d" % (self.worker.hex().encode("ascii"), self._number)
        self._noted = time.monotonic()
        return True

    def require_unchanged(self) -> None:
        self._required = self._begun

    def changes_of_others(self) -> int:
        """See Store; as of some moments ago, or of the beginning of the transaction."""
        if self._reads is None and time.monotonic() - self._noted > _FRESH:
            self._read([])
        return self._others

    def is_at_work(self, worker: bytes) -> bool:
        """See Store; a round trip, at most twenty a second. A killed worker counts until its lease runs out."""
        if worker == self.worker or time.monotonic() - self._at_work.get(worker, -_ALIVE) < _ALIVE:
            return True
        if not self._client.exists(self._lease(worker)):
            return False
        self._at_work[worker] = time.monotonic()
        return True

    def remove_all(self) -> None:
        """Remove all keys of the store; ``StoreLockedError`` if a worker has the store open."""
        keys = [*self._client.scan_iter(match=self._base + b"*", count=1_000)]
        if any(key.startswith(self._base + b"lease:") for key in keys):
            raise refusals.locked(self.uri)
        for key in keys:
            self._client.unlink(key)

    def close(self) -> None:
        """See Store. The lease runs out if the server does not answer."""
        self._over.set()
        with suppress(Exception):
            if self.worker and self._is_answering:
                self._client.delete(self._lease(self.worker))
        self._client.close()

    @classmethod
    def refusal(cls, uri: str, action: str, error: Exception) -> StoreError | None:  # noqa: ARG003
        is_engines = isinstance(error, (kinds.RedisError, kinds.RedisClusterException, OSError))
        if not is_engines or isinstance(error, kinds.DataError):
            return None
        detail = str(error) or type(error).__name__
        if _TOO_LONG in detail:
            return refusals.corrupt(uri, "the value of a key is longer than any that we write")
        if isinstance(error, _NOT_ALLOWED) or "NOPERM" in detail:
            return StoreError(
                f"the server of the store {uri} refuses the connection ({detail})",
                "Put user and password, or neither, "
                f"into DEDUP_STORE, or the password into {PASSWORD}. The user needs "
                "~{dedup:* +@read +@write +@scripting +@connection +info",
            )
        # Everything else, a full memory or disk too, ends by itself.
        return refusals.foreign(uri) if "WRONGTYPE" in detail else refusals.away(uri, detail)


def _as_arguments(reads: dict[bytes, bytes | None], writes: dict[bytes, bytes | None]) -> list[bytes | int]:
    """Return what `WRITE` is told of these: how many keys were read, are deleted and are put; then each of them."""
    seen = [part for k, v in reads.items() for part in (*place_of(k), b"-" if v is None else b"+" + v)]
    deletes = [part for key, value in writes.items() if value is None for part in place_of(key)]
    puts = [part for k, v in writes.items() if v is not None for part in (*place_of(k), v)]
    return [len(reads), len(deletes) // 2, len(puts) // 3, *seen, *deletes, *puts]


def open_store(uri: str) -> RedisStore:
    """Become a worker of the store at *uri*, even of an empty one."""
    where = address(uri)
    with refusals.translated(where.uri, "open", RedisStore.refusal), ExitStack() as undo:
        store = undo.enter_context(closing(RedisStore(where)))
        store.join()
        undo.pop_all()
    return store


@contextmanager
def _connected(uri: str) -> Iterator[RedisStore]:
    where = address(uri)
    with refusals.translated(where.uri, "open", RedisStore.refusal), closing(RedisStore(where)) as store:
        yield store


def store_exists(uri: str) -> bool:
    """Return whether there is a store at *uri*; :class:`StoreError` if the server cannot be used."""
    with _connected(uri) as store:
        return store.get_many([HEADER_KEY]) != [None]


def remove_store(uri: str) -> bool:
    """Remove the store at *uri* and all keys of its namespace; ``StoreLockedError`` if a worker has it open."""
    with _connected(uri) as store:
        was_there = store.get_many([HEADER_KEY]) != [None]
        store.remove_all()
    return was_there


# Bytes of a key that name its bucket. Keys that begin with a page's number are together with those of 255 pages beside
# it, dropped items with those of the same second. Of clauses, some forty a page, half of a byte counts too: at a
# million pages, each of a million buckets has about forty, and Redis holds up to 128 densely.
_SIZES = {**dict.fromkeys(b"gopstuv", 5), **dict.fromkeys(b"jr", 9)}
_SIZE, _CLAUSES, _CLAUSE_MASK = 3, ord("c"), 0xF0

# Bytes that an answer may have: far more than those of ours; and how the error begins if it would have more.
_MAX_BYTES, _TOO_LONG = 64 * 2**20, "DEDUPTOOLONG"
_REFUSE = f"return redis.error_reply('{_TOO_LONG} more than {_MAX_BYTES} bytes')"
# Of all scripts, KEYS[1] is the version, and ARGV[1] the beginning of all names.
# ARGV: bucket and field of each key. Returns the version and the values.
READ = f"""
local answer, bytes = {{redis.call('GET', KEYS[1]) or '0'}}, 0
for i = 2, #ARGV, 2 do
    local value = redis.call('HGET', ARGV[1] .. 'b' .. ARGV[i], ARGV[i + 1])
    if value then bytes = bytes + #value end
    if bytes > {_MAX_BYTES} then {_REFUSE} end
    answer[#answer + 1] = value
end
return answer
"""
# ARGV: first and last bucket, number of pairs. Returns the version, and name and content of each bucket.
SCAN = f"""
local answer, pairs, bytes = {{redis.call('GET', KEYS[1]) or '0'}}, 0, 0
for _, name in ipairs(redis.call('ZRANGEBYLEX', ARGV[1] .. 'buckets', ARGV[2], ARGV[3], 'LIMIT', 0, ARGV[4])) do
    local content = redis.call('HGETALL', ARGV[1] .. 'b' .. name)
    for _, part in ipairs(content) do bytes = bytes + #part end
    if bytes > {_MAX_BYTES} then {_REFUSE} end
    answer[#answer + 1], answer[#answer + 2], pairs = name, content, pairs + #content / 2
    if pairs >= tonumber(ARGV[4]) or bytes > {_MAX_BYTES // 2} then break end
end
return answer
"""
# ARGV: worker; number of the write, one more than that of its last; version that the store must have, or ''; how many
# keys must be as they were read, are deleted, and are put; of each of the first bucket, field, and '-' or '+' and the
# value; then bucket and field; then bucket, field and value. Returns the version before it, and the outcome. A write
# that is sent twice, because its answer was lost, is applied once.
WRITE = """
local base, lease, now = ARGV[1], ARGV[1] .. 'lease:' .. ARGV[2], redis.call('GET', KEYS[1]) or '0'
local last = redis.call('GET', lease)
if last == ARGV[3] then return {now, 'written'} end
if not last or last + 1 ~= tonumber(ARGV[3]) then return {now, 'lost'} end
if ARGV[4] ~= '' and ARGV[4] ~= now then return {now, 'outdated'} end
local i = 8
for _ = 1, ARGV[5] do
    local value = redis.call('HGET', base .. 'b' .. ARGV[i], ARGV[i + 1])
    if (value and '+' .. value or '-') ~= ARGV[i + 2] then return {now, 'outdated'} end
    i = i + 3
end
for _ = 1, ARGV[6] do
    local bucket = base .. 'b' .. ARGV[i]
    if redis.call('HDEL', bucket, ARGV[i + 1]) == 1 and redis.call('EXISTS', bucket) == 0 then
        redis.call('ZREM', base .. 'buckets', ARGV[i])
    end
    i = i + 2
end
for _ = 1, ARGV[7] do
    local bucket = base .. 'b' .. ARGV[i]
    if redis.call('HSET', bucket, ARGV[i + 1], ARGV[i + 2]) == 1 and redis.call('HLEN', bucket) == 1 then
        redis.call('ZADD', base .. 'buckets', 0, ARGV[i])
    end
    i = i + 3
end
if ARGV[6] + ARGV[7] > 0 then redis.call('SET', KEYS[1], ARGV[2] .. ':' .. ARGV[3]) end
redis.call('INCR', lease)
return {now, 'written'}
"""


def place_of(key: bytes) -> tuple[bytes, bytes]:
    """Return the bucket and the field of *key*: buckets sort as their keys do."""
    size = _SIZES.get(key[0], _SIZE) if key else 0
    if len(key) > size and key[0] == _CLAUSES:
        return key[:size] + bytes((key[size] & _CLAUSE_MASK,)), key[size:]
    return key[:size], key[size:]


def key_of(bucket: bytes, field: bytes) -> bytes:
    """Return the key of the pair in this *field* of the *bucket*."""
    # Of the last byte in the bucket of a clause, the field has the whole.
    return bucket[: min(len(bucket), _SIZES.get(bucket[0], _SIZE))] + field


#: Bytes of an answer. Those of our scripts have at most half as many.
MAX_ANSWER = 128 * 2**20


class BoundedParser(DefaultParser):  # type: ignore[misc, valid-type] # it is one of two
    """Reads answers of at most `MAX_ANSWER` bytes; ``InvalidResponse`` for a longer one. It bounds hiredis alone."""

    def on_connect(self, connection: Any, **kwargs: Any) -> None:
        """Read from the socket of *connection* from now on."""
        super().on_connect(connection, **kwargs)
        self._sock: Any = _BoundedSocket(self._sock)

    def read_response(self, *args: Any, **kwargs: Any) -> Any:
        """Return the next answer."""
        if self._sock is not None:
            self._sock.left = MAX_ANSWER
        return super().read_response(*args, **kwargs)


class _BoundedSocket:
    """A socket that fails after *left* bytes have been received."""

    def __init__(self, socket: Any) -> None:
        self.left = MAX_ANSWER
        self._socket = socket
        self._receive: Callable[..., int] = socket.recv_into

    def recv_into(self, *args: Any) -> int:
        """Receive, see `socket.recv_into`."""
        count = self._receive(*args)
        self.left -= count
        if self.left < 0:
            raise kinds.InvalidResponse(f"an answer has more than {MAX_ANSWER} bytes")
        return count

    def __getattr__(self, name: str) -> Any:
        return getattr(self._socket, name)
