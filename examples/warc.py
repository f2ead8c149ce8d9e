"""Check the pages of WARC files, and write what is new as JSON Lines.

Usage: python examples/warc.py FILE.warc.gz... [--store URI] [--log PATH]     (needs `pip install warcio`)
With a store on disk, the next archive is checked against this one. ``scrapy dedup log -s DEDUP_LOG=PATH`` shows why a
page was left out.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

from warcio.archiveiterator import ArchiveIterator

from dedup_middleware import Deduplicator
from dedup_middleware.api import Document


def pages(path: Path) -> Iterator[Document]:
    """Yield every HTML response in the WARC file *path*."""
    with path.open("rb") as file:
        for record in ArchiveIterator(file):
            http = record.http_headers
            if record.rec_type != "response" or http is None or http.get_statuscode() != "200":
                continue
            kind, _, charset = http.get_header("Content-Type", "").lower().partition("charset=")
            if "html" in kind:
                yield {
                    "url": record.rec_headers.get_header("WARC-Target-URI"),
                    "html": record.content_stream().read(),
                    "encoding": charset.strip(' "') or None,
                }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--store", default="memory:")
    parser.add_argument("--log")
    options = parser.parse_args()
    with Deduplicator(options.store, log=options.log) as dedup:
        for path in options.files:
            for verdict in dedup.stream(pages(path)):
                if not verdict.is_duplicate:
                    print(json.dumps({"url": verdict.url, "verdict": verdict.verdict}))


if __name__ == "__main__":
    main()
