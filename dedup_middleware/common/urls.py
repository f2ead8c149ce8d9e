"""Normalises URLs, redacts secrets in them, and derives a page's identity and its canonical URL."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urljoin, urlsplit

from w3lib.url import safe_url_string

from dedup_middleware.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable


_USERINFO = re.compile(r"\A([a-zA-Z][a-zA-Z0-9+.-]*://)[^/?#]*@")
# Most URLs; ten times as fast as splitting them.
_PLAIN = re.compile(r"https?://([a-z0-9.-]+)(?:/|\Z)")
_HOST = re.compile(r"[\w-]+(?:\.[\w-]+)*\.?")
_QUERY_VALUE = re.compile(r"=[^&;#]*")
REDACTED = "*"
_DEFAULT_PORTS = {"http": 80, "https": 443}


def without_secrets(url: str, *, redact: bool) -> str:
    """Return *url* without user and password; with *redact*, without the values in its query, and its fragment."""
    url = _USERINFO.sub(r"\1", url)
    if redact:
        path, mark, query = url.partition("#")[0].partition("?")
        url = path + mark + _QUERY_VALUE.sub("=" + REDACTED, query)
    return url


# Called about ten times a page.
@lru_cache(maxsize=256)
def host_of(url: str) -> str:
    """Return the host of *url*, lower case, without port and the final dot of a full name; empty if it has none."""
    if (plain := _PLAIN.match(url)) is not None:
        return plain[1].removesuffix(".")
    try:
        return (split(url).hostname or "").removesuffix(".")
    except ValueError:
        return ""


def is_on_this_machine(url: str) -> bool:
    """Return whether the host of *url* is the loopback interface, by its name or address."""
    host = host_of(url)
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return is_under(host, ("localhost",))


def split(url: str) -> SplitResult:
    """Return the parts of *url*; all of it is the path if it is not a valid URL."""
    try:
        return urlsplit(url)
    except ValueError:
        return SplitResult("", "", url, "", "")


def as_requested(url: str) -> str:
    """Return *url*, typed or copied by a person, as a request has it; :class:`ConfigError` if it is not valid."""
    try:
        return safe_url_string(url)
    except ValueError as error:
        raise ConfigError(f"{url!r} is not a URL ({error})") from error


def absolute(href: str, url: str) -> str:
    """Return *href*, from the page at *url*, as an absolute URL without fragment; empty unless it is http or https."""
    try:
        found = safe_url_string(urljoin(url, href)).partition("#")[0]
    except ValueError:
        return ""
    return found if found.startswith(("http://", "https://")) else ""


def as_in_urls(host: str) -> str:
    """Return *host* as `host_of` returns it: lower case, in ASCII; empty if it is not valid."""
    try:
        return str(IPv6Address(host.strip("[]")))
    except ValueError:
        return host_of(safe_url_string(f"http://{host}/")) if _HOST.fullmatch(host) else ""


@dataclass(frozen=True, slots=True)
class HostPattern:
    """Matches the URLs of a host and its subdomains, as a regular expression matches others."""

    host: str
    """As `as_in_urls` returns it."""
    port: int | None = None
    """``None`` for any port."""

    def search(self, url: str) -> bool:
        """Return whether *url* is on the host, and on the port if there is one."""
        return is_under(host_of(url), (self.host,)) and self.port in (None, _port_of(url))


def _port_of(url: str) -> int | None:
    parts = split(url)
    try:
        return parts.port or _DEFAULT_PORTS.get(parts.scheme)
    except ValueError:
        return None


def is_under(host: str, domains: Collection[str]) -> bool:
    """Return whether *host* is one of *domains* or a subdomain of one."""
    return any(host == domain or host.endswith("." + domain) for domain in domains)


def _identity(kind: bytes, *parts: bytes) -> bytes:
    return blake2b(b"\n".join(parts), digest_size=16, person=kind).digest()


def request_identity(request_fingerprint: bytes) -> bytes:
    """Return the identity of the page that a request fetches."""
    return _identity(b"request", request_fingerprint)


def url_identity(url: str) -> bytes:
    """Return the identity of the page at which a GET ends at *url*; the fragment does not matter."""
    return _identity(b"url", url.partition("#")[0].encode("utf8", "surrogatepass"))


def bare(url: str) -> str:
    """Return host and path of *url* without ``www.`` and final slash: what URLs that are nearly the same share.

    >>> bare("https://www.example.org/a/?page=2#top")
    'example.org/a'
    """
    before = url.partition("#")[0].partition("?")[0]
    scheme, mark, rest = before.partition("://")
    return (rest if mark and "/" not in scheme else before).removeprefix("www.").rstrip("/")


def identities_near(url: str) -> tuple[bytes, ...]:
    """Return the identities of pages at URLs nearly the same as *url*: with another scheme, or without its query."""
    queries = dict.fromkeys((url.partition("#")[0].partition("?")[2], ""))
    return tuple(
        url_identity(f"{scheme}://{www}{bare(url)}{slash}{query and '?'}{query}")
        for query in queries
        for scheme in ("https", "http")
        for www in ("", "www.")
        for slash in ("", "/")
    )


def item_identity(source: bytes, texts: Iterable[str]) -> bytes:
    """Return the identity of an item of the request *source* with these *texts*."""
    return _identity(b"item", source, "\n".join(texts).encode("utf8", "surrogatepass"))


def canonical_url(written: str, url: str, identities: Collection[bytes]) -> str:
    """Return the absolute URL that the page at *url* has *written* as its canonical one; empty if it is its own."""
    canonical = absolute(written, url) if written else ""
    if not canonical or canonical == url:
        return ""
    rest = canonical.partition("://")[2]
    is_its_own = any(url_identity(f"{scheme}://{rest}") in identities for scheme in ("http", "https"))
    return "" if is_its_own else canonical
