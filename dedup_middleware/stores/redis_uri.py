"""Reads the URI of a store on a Redis server: ``redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE][?OPTION=VALUE&…]``.

Options: ``store``, the store's name on the server (``dedup``); ``timeout``, the seconds until a server that does not
answer counts as away (5); ``aof=no`` accepts a server without an append-only file; with ``rediss://``, redis-py's
``ssl_ca_certs``, ``ssl_certfile`` and ``ssl_keyfile``.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

from dedup_middleware.errors import ConfigError
from dedup_middleware.urls import without_secrets

#: Environment variables with the password of a URI without one; the second is that of redis-cli.
PASSWORDS = ("DEDUP_REDIS_PASSWORD", "REDISCLI_AUTH")
_TLS_FILES = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
_DEFAULTS = {"store": "dedup", "timeout": "5", "aof": "yes"}
_VALID = {
    "store": (r"[A-Za-z0-9._-]{1,64}", "must be 1 to 64 of A-Z a-z 0-9 . _ -"),
    "timeout": (r"(?=.*[1-9])[0-9]{1,4}(\.[0-9]{1,3})?", "must be a number of seconds above 0"),
    "aof": (r"yes|no", "must be yes or no"),
}


class Address(NamedTuple):
    """Where a store is."""

    uri: str
    """Its URI without a password."""
    url: str
    """The URL for redis-py, with the password if the URI has one."""
    password: str | None
    """The password from the environment, for a URL without one."""
    name: str
    """The store's name on the server."""
    timeout: float
    needs_log: bool
    """Whether the server must keep its data in an append-only file."""

    @property
    def base(self) -> bytes:
        """The beginning of the names of all its keys."""
        return b"{dedup:%b}:" % self.name.encode("ascii")


def address(uri: str) -> Address:
    """Return the address in *uri*; :class:`ConfigError` if *uri* is not valid.

    The error shows no part of *uri* but its scheme: a password may stand in any other part of it.
    """
    scheme = uri.partition(":")[0]

    def invalid(why: str) -> ConfigError:
        return ConfigError(f"DEDUP_STORE={scheme}:…: {why}; write {scheme}://HOST:6379/0?store=NAME")

    if not uri.isprintable():
        raise invalid("it has control characters")
    try:
        parts = urlsplit(uri)
        _ = parts.port
        given = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
    except ValueError as error:
        raise invalid("it is not a valid URL (in a password write %2F %40 %23 %3F %25 for / @ # ? %)") from error
    if not parts.hostname or parts.fragment:
        raise invalid("# must be written %23" if parts.hostname else "it has no host")
    if not re.fullmatch(r"/?[0-9]{0,4}/?", parts.path, re.ASCII):
        raise invalid("its path is not the number of a database")
    files = {option: file for option, file in given.items() if scheme == "rediss" and option in _TLS_FILES}
    for option, value in given.items():
        if option not in _DEFAULTS and option not in files:
            allowed = (*_DEFAULTS, *(_TLS_FILES if scheme == "rediss" else ()))
            raise invalid(f"an option is not one of {', '.join(allowed)}")
        if option in files and not Path(value).is_file():
            raise invalid(f"the file that {option} names does not exist")
        if option in _VALID and not re.fullmatch(_VALID[option][0], value, re.ASCII):
            raise invalid(f"{option} {_VALID[option][1]}")
    options = _DEFAULTS | given
    password = next((found for name in PASSWORDS if (found := os.environ.get(name))), None)
    url = parts._replace(query=urlencode(files)).geturl()
    shown = without_secrets(uri, redact=False)
    return Address(shown, url, password, options["store"], float(options["timeout"]), options["aof"] == "yes")
