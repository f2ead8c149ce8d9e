"""The URI of a store on a server -> where that is, whom it is told we are, and under which name the store is there.

Pure functions of the URI and the environment; what they raise never has a password in it.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote, urlsplit

from dedup_middleware.errors import ConfigError
from dedup_middleware.urls import without_secrets

if TYPE_CHECKING:
    from urllib.parse import SplitResult

#: Environment variables with the password of a URI that has none; the second one is what redis-cli reads.
PASSWORDS = ("DEDUP_REDIS_PASSWORD", "REDISCLI_AUTH")
DEFAULT_NAME = "dedup"
_PORT = 6379
# Seconds until a server that does not answer counts as away.
_TIMEOUT = 5.0
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
_NO_URL = "it is no URL, with the user and password that are not shown here (/ @ # ? % are %2F %40 %23 %3F %25 in them)"
# Under the names that redis-py has for them.
_TLS_FILES = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
_ALLOWED = "store, timeout, aof=no, ssl_ca_certs, ssl_certfile and ssl_keyfile"


@dataclass(frozen=True)
class Address:
    """Where a store is."""

    uri: str
    """What names it in messages: its URI without user and password."""
    host: str
    port: int
    database: int
    name: str
    """Of the store, among those of the server."""
    timeout: float
    """Seconds."""
    needs_log: bool
    """Whether the server must keep what it holds, in an append-only file."""
    tls: dict[str, Any] | None
    """The files that TLS is told, as the URI names them; ``None`` without TLS."""
    user: str | None
    password: str | None = field(repr=False)

    @property
    def base(self) -> bytes:
        """What the names of all its keys begin with: the part in braces puts them into one slot of a cluster."""
        return b"{dedup:%b}:" % self.name.encode("ascii")


def address(scheme: str, path: str) -> Address:
    """Return what ``scheme:path`` means; :class:`ConfigError` if that cannot be a store's."""
    uri = f"{scheme}:{path}"
    shown = without_secrets(uri, redact=False)
    if not shown.isprintable():
        raise _bad(scheme, shown, "it has control characters")
    try:
        parts = urlsplit(uri)
        port = parts.port or _PORT
        options = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
    except ValueError as error:
        # What it says may quote the password.
        raise _bad(scheme, re.sub(r"//.*@", "//", shown), _NO_URL) from error
    if not parts.hostname or parts.fragment:
        raise _bad(scheme, shown, "it names no host" if not parts.hostname else "# must be written %23")
    database, name = _database(parts, shown), options.pop("store", DEFAULT_NAME)
    if not _NAME.fullmatch(name):
        raise _bad(scheme, shown, f"the store's name {name!r} may have letters, digits, '.', '_' and '-', at most 64")
    needs_log = options.pop("aof", "yes")
    if needs_log not in {"yes", "no"}:
        raise _bad(scheme, shown, f"aof={needs_log!r} must be yes or no")
    timeout = _timeout(scheme, options.pop("timeout", str(_TIMEOUT)), shown)
    password = unquote(parts.password) if parts.password else _from_environment()
    if parts.username and password is None:
        # Left out, it would not be said who we are, and the server would take us for its default user.
        raise _bad(scheme, shown, f"it names a user and no password: write USER:PASSWORD@HOST, or set {PASSWORDS[0]}")
    tls = {key: options.pop(key) for key in _TLS_FILES if key in options}
    if options or (tls and scheme != "rediss"):
        raise _bad(scheme, shown, f"{next(iter(options or tls))!r} is no option of {scheme}:// (there are {_ALLOWED})")
    return Address(
        shown,
        parts.hostname,
        port,
        database,
        name,
        timeout,
        needs_log == "yes",
        tls if scheme == "rediss" else None,
        unquote(parts.username) if parts.username else None,
        password,
    )


def _from_environment() -> str | None:
    return next((value for name in PASSWORDS if (value := os.environ.get(name))), None)


def _database(parts: SplitResult, shown: str) -> int:
    written = parts.path.strip("/")
    if not re.fullmatch(r"[0-9]{0,4}", written, re.ASCII):
        raise _bad(parts.scheme, shown, f"{written!r} is no number of a database")
    return int(written or 0)


def _timeout(scheme: str, written: str, shown: str) -> float:
    if not re.fullmatch(r"[0-9]{1,4}(\.[0-9]{1,3})?", written, re.ASCII) or not float(written):
        raise _bad(scheme, shown, f"timeout={written!r} is no number of seconds above 0")
    return float(written)


def _bad(scheme: str, shown: str, why: str) -> ConfigError:
    return ConfigError(f"DEDUP_STORE={shown!r}: {why}; write {scheme}://HOST:{_PORT}/0?store=NAME")
