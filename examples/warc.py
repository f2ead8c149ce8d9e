"""Judge the pages of WARC files, and write what is new as JSON Lines.

Usage: python examples/warc.py FILE.warc.gz... [--store URI] [--log PATH]     (needs `pip install warcio`)
With a store on disk, the next archive is judged against this one. ``scrapy dedup log -s DEDUP_LOG=PATH`` shows why a
page was left out.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

from warcio.archiveiterator import ArchiveIterator

from dedup_middleware import Deduplicator


def pages(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the URL and the body of every HTML response in the WARC file *path*."""
    with path.open("rb") as file:
        for record in ArchiveIterator(file):
            http = record.http_headers
            if record.rec_type != "response" or http is None or http.get_statuscode() != "200":
                continue
            if "html" in http.get_header("Content-Type", ""):
                yield record.rec_headers.get_header("WARC-Target-URI"), record.content_stream().read()


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
        for url in dedup.taken_back:
            print(json.dumps({"url": url, "verdict": "related"}))


if __name__ == "__main__":
    main()
