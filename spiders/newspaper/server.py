"""Serves the newspaper on loopback, from a thread of its own.

The server is an HTTP proxy that has all pages of its hosts: a client that uses it needs no name service for them, and
every URL is the same in each run, on whichever port the server is.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from spiders.newspaper.edition import site_map
from spiders.newspaper.rendering import render
from spiders.newspaper.stories import Kind

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

ROBOTS = b"User-agent: *\nAllow: /\n"
PLAIN = {"Content-Type": "text/plain; charset=utf-8"}


class Newspaper:
    """All sites of the demo, running between :meth:`start` and :meth:`stop`; also a context manager.

    A flaky page fails once in the life of this object.
    """

    def __init__(self) -> None:
        self._running = ExitStack()
        self.proxy = ""
        """The URL of the proxy that has the sites, once started."""

    def start(self) -> None:
        """Bind to a free port of 127.0.0.1, and serve."""
        server = _Server(("127.0.0.1", 0), _Handler)
        self._running.callback(server.server_close)
        self._running.callback(server.shutdown)
        self.proxy = f"http://127.0.0.1:{server.server_port}"
        # The loop looks for a shutdown at this interval (s), and stop() waits for it.
        Thread(target=server.serve_forever, args=(0.02,), name="newspaper", daemon=True).start()

    def stop(self) -> None:
        """Stop serving and free the port, within 0.1 s. A second call does nothing."""
        self._running.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._pages = {(page.site.host, page.path): page for page in site_map()}
        self._hosts = {host for host, _ in self._pages}
        self._failed: set[str] = set()
        self._lock = Lock()

    def server_bind(self) -> None:
        # HTTPServer's own looks up the name of this machine, which takes seconds on some machines.
        TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[0], self.server_address[1]  # type: ignore[assignment]

    def handle_error(self, request: Any, client_address: Any) -> None:
        # A client that hangs up is no news.
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)

    def answer(self, host: str, path: str) -> tuple[HTTPStatus, dict[str, str], bytes]:
        """Return status, headers and body for *path*, with its query, on *host*."""
        if host in self._hosts and path == "/robots.txt":
            return HTTPStatus.OK, PLAIN, ROBOTS
        page = self._pages.get((host, path))
        if page is None:
            return HTTPStatus.NOT_FOUND, PLAIN, b"Not found\n"
        if page.kind is Kind.REDIRECT:
            return HTTPStatus.MOVED_PERMANENTLY, {"Location": page.target}, b""
        if page.kind is Kind.FLAKY and self._fails(page.url):
            return HTTPStatus.SERVICE_UNAVAILABLE, PLAIN, b"Try again\n"
        return HTTPStatus.OK, {"Content-Type": f"text/html; charset={page.site.encoding}"}, render(page)

    def _fails(self, url: str) -> bool:
        """Count a request for *url*, and return whether it is the first."""
        with self._lock:
            first = url not in self._failed
            self._failed.add(url)
        return first


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body leave in one segment: two writes would meet the client's delayed acknowledgement (40 ms a page).
    wbufsize = -1
    timeout = 30
    server: _Server

    def do_GET(self) -> None:
        # A proxy gets absolute URLs; other clients name the host in a header.
        target = urlsplit(self.path)
        host = target.hostname or self.headers.get("Host", "").partition(":")[0]
        status, headers, body = self.server.answer(host, target._replace(scheme="", netloc="").geturl())
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name that http.server gave it
        """Log nothing: the crawl has a log of its own."""
