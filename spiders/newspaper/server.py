"""Serves the newspaper on loopback, from threads of its own.

Every site has an address of 127.0.0.0/8 and all share one port. Where only 127.0.0.1 can be bound (macOS, without
aliases), every site has a port of its own instead.
"""

from __future__ import annotations

import os
import socket
import sys
from contextlib import ExitStack
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any

from spiders.newspaper.edition import SITES, Page, Site, site_map
from spiders.newspaper.rendering import render
from spiders.newspaper.stories import Kind

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

PORT = 8642
"""Tried first, so that a page has the same URL in each run, and a store kept from the last run knows it again."""

ATTEMPTS = 10
"""Further ports tried, picked by the system: one that is free on the first address may be taken on another."""

ROBOTS = b"User-agent: *\nAllow: /\n"


class Newspaper:
    """All sites of the demo, running between :meth:`start` and :meth:`stop`; also a context manager.

    *port* is tried first, 0 for any. *one_address* is found out unless given. A flaky page fails once in the life of
    this object.
    """

    def __init__(self, *, port: int = PORT, one_address: bool | None = None) -> None:
        self._port = port
        self._one_address = not _can_bind(SITES[1].address) if one_address is None else one_address
        self._running = ExitStack()
        self.front_pages: dict[Site, str] = {}
        """The URL of each site's front page, once started."""

    def start(self) -> None:
        """Bind and serve. Raises :class:`OSError` if no port is free."""
        for server in self._bind():
            self._running.callback(server.server_close)
            self._running.callback(server.shutdown)
            self.front_pages[server.site] = server.front_page
            server.front_pages = self.front_pages
            # The loop looks for a shutdown at this interval (s), and stop() waits for every site.
            Thread(target=server.serve_forever, args=(0.02,), name=f"newspaper-{server.site.key}", daemon=True).start()

    def stop(self) -> None:
        """Stop serving and free the ports, within 0.2 s. A second call does nothing."""
        self._running.close()

    def url(self, page: Page) -> str:
        """Return the absolute URL of *page*."""
        return self.front_pages[page.site].removesuffix("/") + page.path

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()

    def _bind(self) -> list[_SiteServer]:
        for port in (self._port, *[0] * ATTEMPTS):
            try:
                return self._bind_from(port)
            except OSError as error:  # noqa: PERF203 - a few ports, once
                failure = error
        raise failure

    def _bind_from(self, first: int) -> list[_SiteServer]:
        """Bind every site, beginning with the port *first*; none stays bound if one of them cannot be."""
        servers: list[_SiteServer] = []
        with ExitStack() as undo:
            for number, site in enumerate(SITES):
                address = SITES[0].address if self._one_address else site.address
                own_port = first and first + number
                shared_port = servers[0].server_port if servers else first
                server = _SiteServer(site, (address, own_port if self._one_address else shared_port))
                undo.callback(server.server_close)
                servers.append(server)
            undo.pop_all()
        return servers


def _can_bind(address: str) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
    return True


class _SiteServer(ThreadingHTTPServer):
    # On Windows the first would let two demos share a port; Python 3.12 and 3.13 ask for the second everywhere.
    allow_reuse_address = os.name == "posix"
    allow_reuse_port = False
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, site: Site, address: tuple[str, int]) -> None:
        super().__init__(address, _Handler)
        self.site = site
        self.front_page = f"http://{address[0]}:{self.server_port}/"
        self.front_pages: dict[Site, str] = {}
        self._pages = {page.path: page for page in site_map() if page.site == site}
        self._failed: set[str] = set()
        self._lock = Lock()

    def server_bind(self) -> None:
        # HTTPServer's own asks the name service for the host's name, which takes seconds on some machines.
        TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[0], self.server_address[1]  # type: ignore[assignment]

    def handle_error(self, request: Any, client_address: Any) -> None:
        # A client that hangs up is no news.
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)

    def answer(self, path: str) -> tuple[HTTPStatus, dict[str, str], bytes]:
        """Return status, headers and body for *path* (with its query)."""
        page = self._pages.get(path)
        if path == "/robots.txt":
            return HTTPStatus.OK, {"Content-Type": "text/plain; charset=utf-8"}, ROBOTS
        if page is None:
            return HTTPStatus.NOT_FOUND, {"Content-Type": "text/plain; charset=utf-8"}, b"Not found\n"
        if page.kind is Kind.REDIRECT:
            return HTTPStatus.MOVED_PERMANENTLY, {"Location": page.target}, b""
        if page.kind is Kind.FLAKY and self._fails(path):
            return HTTPStatus.SERVICE_UNAVAILABLE, {"Content-Type": "text/plain; charset=utf-8"}, b"Try again\n"
        content_type = f"text/html; charset={page.site.encoding}"
        return HTTPStatus.OK, {"Content-Type": content_type}, render(page, self.front_pages)

    def _fails(self, path: str) -> bool:
        """Whether this is the first request for *path*."""
        with self._lock:
            first = path not in self._failed
            self._failed.add(path)
        return first


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body leave in one segment: two writes would meet the client's delayed acknowledgement (40 ms a page).
    wbufsize = -1
    timeout = 30
    server: _SiteServer

    def do_GET(self) -> None:
        status, headers, body = self.server.answer(self.path)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name that http.server gave it
        """Say nothing: the crawl's own log tells the story."""
