"""URLs as they are written down: whose host, and without secrets.

Law of this file: pure functions of texts; a URL that is none passes through.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Collection

_USERINFO = re.compile(r"\A([a-zA-Z][a-zA-Z0-9+.-]*://)[^/?#]*@")
_QUERY_VALUE = re.compile(r"=[^&;#]*")
REDACTED = "*"


def without_secrets(url: str, *, redact: bool) -> str:
    """Return *url* without user and password; with *redact*, without the values in its query, and its fragment."""
    url = _USERINFO.sub(r"\1", url)
    if redact:
        address, mark, query = url.partition("#")[0].partition("?")
        url = address + mark + _QUERY_VALUE.sub("=" + REDACTED, query)
    return url


def host_of(url: str) -> str:
    """Return the host of *url*, lower case, without port and the final dot of a full name; empty if it has none."""
    try:
        return (urlsplit(url).hostname or "").removesuffix(".")
    except ValueError:
        return ""


def is_under(host: str, domains: Collection[str]) -> bool:
    """Tell whether *host* is one of *domains* or a subdomain of one."""
    return any(host == domain or host.endswith("." + domain) for domain in domains)
