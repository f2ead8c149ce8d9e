"""One memory for several programs: POST a page as JSON, get what it is.

Usage: python examples/service.py [--port N] [--store URI]
``curl -d '{"url": "http://a.example/1", "html": "<p>..."}' http://127.0.0.1:8000/`` answers with the verdict. A page is
kept unless it is a duplicate. Requests are answered one after the other: a Deduplicator serves one thread.
"""

import argparse
import json
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer

from dedup_middleware import Deduplicator
from dedup_middleware.errors import DedupError


def handler_of(dedup: Deduplicator) -> type[BaseHTTPRequestHandler]:
    """Return what answers a request."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            try:
                page = json.loads(self.rfile.read(int(self.headers["Content-Length"] or 0)))
                (verdict,) = dedup.stream([page])
            except (DedupError, ValueError) as error:
                self._answer(HTTPStatus.BAD_REQUEST, {"error": f"POST a page as a JSON object: {error}"})
            else:
                self._answer(HTTPStatus.OK, verdict.as_dict())

        def _answer(self, status: HTTPStatus, answer: dict) -> None:
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--store", default="memory:")
    options = parser.parse_args()
    with Deduplicator(options.store) as dedup, HTTPServer(("127.0.0.1", options.port), handler_of(dedup)) as server:
        print(f"listening on http://127.0.0.1:{server.server_port}/", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
