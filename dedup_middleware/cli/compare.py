"""``scrapy dedup compare``: published methods on pages of your own. It has nothing to do with a store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dedup_middleware.cli.call import share, tell
from dedup_middleware.methods.compare import options

if TYPE_CHECKING:
    import argparse

    from dedup_middleware.cli.call import Call

EXAMPLES = ("compare pages.jsonl", "compare pages.jsonl --method simhash --method minhash")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Let *parser* read the options of the command."""
    parser.set_defaults(spider=None, set_here=[])
    options.add_options(parser, share)


def run(call: Call) -> None:
    """Print what is found, as it is found."""
    # 25 ms that no other command needs.
    from dedup_middleware.cli.recorded_crawl import recorded_pages  # noqa: PLC0415
    from dedup_middleware.methods.compare.command import compare  # noqa: PLC0415
    from dedup_middleware.methods.compare.corpus import read_pages  # noqa: PLC0415

    corpus = call.opts.corpus
    pages = recorded_pages(corpus, call.settings, tell) if corpus.is_dir() else read_pages(corpus)
    for text in compare(call.opts, pages, tell):
        print(text, flush=True)
