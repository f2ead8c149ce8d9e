"""A small web server on loopback whose pages a test writes."""

from __future__ import annotations

import contextlib
import http.server
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from urllib.parse import urlsplit

#: Seconds after which what has not happened never will: a machine at work on something else takes minutes for a second.
PATIENCE = 600


@dataclass
class Answer:
    """What the server says to one request."""

    body: str | bytes = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    hold: threading.Event | threading.Barrier | None = None
    """Answer only once this is set, or as many requests have come."""


def redirect(url: str) -> Answer:
    """Return an answer that leads to *url*."""
    return Answer(status=302, headers={"Location": url})


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512
    """Hundreds of connections may come at once; with fewer places the kernel makes some of them wait a second."""

    def handle_error(self, *_: object) -> None:
        """Say nothing: a crawl that is killed hangs up."""


class Site:
    """Pages by (host number, path), on 127.0.0.1, 127.0.0.2 …, all on one port.

    A page may be a list of answers: the first request gets the first one, and so on; the last one stays.
    """

    def __init__(self, hosts: int = 3) -> None:
        self.pages: dict[tuple[int, str], list[Answer]] = {}
        self.requests: list[tuple[str, str, str]] = []
        """(method, host, path with query), in the order in which they came."""
        self._seen: Counter[tuple[int, str]] = Counter()
        self._servers: list[_Server] = []
        self.port = 0
        while len(self._servers) < hosts:
            number = len(self._servers)
            try:
                server = _Server((f"127.0.0.{number + 1}", self.port), self._handler(number))
            except OSError:
                # What was free at the first address is taken at another one.
                while self._servers:
                    self._servers.pop().server_close()
                self.port = 0
                continue
            self.port = server.server_address[1]
            self._servers.append(server)
        for server in self._servers:
            threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def url(self, path: str, host: int = 0) -> str:
        return f"http://127.0.0.{host + 1}:{self.port}{path}"

    def add(self, path: str, *answers: Answer | str, host: int = 0) -> str:
        """Serve *answers* at *path* and return its URL."""
        self.pages[host, path] = [a if isinstance(a, Answer) else Answer(a) for a in answers]
        return self.url(path, host)

    def paths(self) -> list[str]:
        """Return the paths asked for, in order, without robots.txt."""
        return [path for _, _, path in self.requests if path != "/robots.txt"]

    def close(self) -> None:
        """Stop all servers at once: each stop waits until its thread has polled."""
        stops = [threading.Thread(target=server.shutdown) for server in self._servers]
        for stop in stops:
            stop.start()
        for stop, server in zip(stops, self._servers, strict=True):
            stop.join()
            server.server_close()

    def answer(self, host: int, method: str, target: str) -> Answer:
        self.requests.append((method, f"127.0.0.{host + 1}", target))
        for key in ((host, target), (host, urlsplit(target).path)):
            if key in self.pages:
                answers = self.pages[key]
                position = min(self._seen[key], len(answers) - 1)
                self._seen[key] += 1
                return answers[position]
        return Answer("not here", 404)

    def _handler(self, host: int) -> type[http.server.BaseHTTPRequestHandler]:
        site = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Headers and body in one packet: else the second waits 40 ms for the first one's acknowledgement.
            wbufsize = -1

            def do_GET(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                target = self.path + (f" {self.rfile.read(length).decode()}" if length else "")
                answer = site.answer(host, self.command, target)
                if answer.hold is not None:
                    answer.hold.wait(PATIENCE)
                body = answer.body.encode() if isinstance(answer.body, str) else answer.body
                with contextlib.suppress(ConnectionError):
                    self.send_response(answer.status)
                    for name, value in ({"Content-Type": "text/html; charset=utf-8"} | answer.headers).items():
                        self.send_header(name, value)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)

            do_POST = do_GET  # noqa: N815 - http.server's name

            def log_message(self, *_: object) -> None:
                pass

        return Handler


def wait_until(condition: object, seconds: float = PATIENCE) -> None:
    """Return once ``condition()`` is true; AssertionError after *seconds*."""
    deadline = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        if time.monotonic() > deadline:
            raise AssertionError("it did not happen in time")
        time.sleep(0.01)
