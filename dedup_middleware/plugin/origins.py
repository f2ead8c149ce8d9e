"""Where pages were first looked for, behind redirects and retries.

A redirect and a retry are requests of their own, and meta is all that they have of the first one. So the note lies
there on the way through the downloader, and is taken out before a spider sees the answer: spiders copy meta, into
requests and into items. Keeping count of what is under way instead would confuse what goes through one hop, or is
requested twice, at the same time, and a JOBDIR would not remember it.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, NamedTuple

from dedup_middleware.index.packing import ORIGIN

if TYPE_CHECKING:
    from scrapy import Request

#: What Scrapy writes into the meta of a request that was redirected.
_OF_REDIRECTS = frozenset({"redirect_times", "redirect_ttl", "redirect_urls", "redirect_reasons"})
#: And what it takes out of its headers; cookies always.
_TAKEN = (b"Authorization", b"Cookie")
#: Pages whose origin is known after they have left the downloader: a callback's own retry comes soon after.
_REMEMBERED = 1000


class Origin(NamedTuple):
    """The first request of a chain of redirects, and what these take from it."""

    url: str
    cookies: Any
    headers: dict[bytes, list[bytes]]


class Origins:
    """The origins of one crawl's requests."""

    def __init__(self) -> None:
        self._of: OrderedDict[tuple[str, ...], Origin] = OrderedDict()

    def note(self, request: Request) -> None:
        """Note in its meta the origin of *request*, which goes to the downloader; without a URL for what is no GET.

        The note names the request that it is of: a retry is at the same URL behind the same redirects, and a redirect
        has that request as the last of those that it is behind.
        """
        trail = _trail(request)
        noted, origin = _read(request.meta.get(ORIGIN))
        if request.method != "GET":
            origin = _NOWHERE
        elif not origin.url or noted not in (trail, trail[:-1]):
            origin = self._of.get(tuple(trail)) or _origin(request)
        request.meta[ORIGIN] = (trail, *origin)

    def take(self, request: Request) -> str:
        """Take the note out of the meta of *request*, which leaves the downloader; return its original URL."""
        _, origin = _read(request.meta.pop(ORIGIN, None))
        if origin.url and origin.url != request.url:
            trail = tuple(_trail(request))
            self._of[trail] = origin
            self._of.move_to_end(trail)
            if len(self._of) > _REMEMBERED:
                self._of.popitem(last=False)
        return origin.url or request.url

    def first(self, request: Request) -> Request:
        """Return *request* as it was before its redirects, if that is known: where they ended may lead nowhere soon."""
        origin = self._of.get(tuple(_trail(request)))
        if origin is None:
            return request
        meta = {key: value for key, value in request.meta.items() if key not in _OF_REDIRECTS}
        headers = {**request.headers, **origin.headers}
        return request.replace(url=origin.url, meta=meta, cookies=origin.cookies, headers=headers)


_NOWHERE = Origin("", None, {})


def _origin(request: Request) -> Origin:
    headers = {name: request.headers.getlist(name) for name in _TAKEN if name in request.headers}
    return Origin(request.url, request.cookies, headers)


def _trail(request: Request) -> list[str]:
    behind = request.meta.get("redirect_urls")
    # Whatever a project puts there.
    return (
        [*(url for url in behind if isinstance(url, str)), request.url] if isinstance(behind, list) else [request.url]
    )


def _read(note: object) -> tuple[list[str], Origin]:
    """Return what a note says; nothing where it is not one of ours. A JOBDIR may make lists of tuples."""
    match note:
        case [list(trail), str(url), cookies, dict(headers)]:
            return trail, Origin(url, cookies, headers)
        case [list(trail), str(url)]:  # in the journals and JOBDIRs of schema 2
            return trail, Origin(url, None, {})
        case _:
            return [], _NOWHERE
