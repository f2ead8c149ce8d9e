"""``scrapy dedup store export``: writes the pages of the store as JSON Lines."""

from __future__ import annotations

import gzip
import io
import lzma
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from dedup_middleware.cli.call import add_common_options, existing_store, host_named, tell, whole_file
from dedup_middleware.index.opening import index_for_command
from dedup_middleware.index.transfer import Exporter, is_export
from dedup_middleware.terminal import counted

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from dedup_middleware.cli.call import Call

_IS_PRIVATE = "; with the key of the store, so keep it to yourself"
# That of `gzip`: 9, which is Python's default, takes twice the time for hardly fewer bytes.
_GZIP_LEVEL = 6

EXAMPLES = ("store export -o pages.jsonl.xz", "store export --host example.org -o pages.jsonl")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Let *parser* read the options of the command."""
    add_common_options(parser)
    parser.add_argument(
        "-o", "--output", metavar="FILE", default="-", help="FILE, FILE.gz or FILE.xz (default: standard output)"
    )
    parser.add_argument("--host", metavar="H", help="only pages of this host and its subdomains")


def run(call: Call) -> None:
    """Write the pages; to standard error how many, if they do not go to standard output."""
    config, opts = call.config, call.opts
    host = host_named(opts.host)
    with (
        index_for_command(existing_store(config), "store export", fingerprint=config.fingerprint) as (_, index),
        _opened(opts.output) as file,
    ):
        exporter = Exporter(index, host)
        for line in counted(exporter.lines(), "lines written"):
            file.write(line + "\n")
    if opts.output != "-":
        tell(f"wrote {exporter.pages} pages to {opts.output}" + _IS_PRIVATE)
    if exporter.in_doubt:
        tell(f"{exporter.in_doubt} pages are in doubt after a crash and were left out; crawl again, then export")


@contextmanager
def _opened(output: str) -> Iterator[IO[str]]:
    """Open what *output* names."""
    if output == "-":
        yield sys.stdout
        return
    path = Path(output)
    with whole_file(path, is_export) as raw, _packing(raw, path.suffix) as file:
        yield file


@contextmanager
def _packing(raw: IO[bytes], suffix: str) -> Iterator[IO[str]]:
    with ExitStack() as stack:
        packed: Any = raw
        if suffix == ".gz":
            # Without a name and a time: the same pages make the same file.
            packed = stack.enter_context(gzip.GzipFile("", "wb", _GZIP_LEVEL, raw, mtime=0))
        elif suffix == ".xz":
            packed = stack.enter_context(lzma.open(raw, "wb"))
        yield stack.enter_context(io.TextIOWrapper(packed, encoding="utf8", newline="\n"))
