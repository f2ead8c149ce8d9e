"""``scrapy dedup explain``: all that is known of one page."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from dedup_middleware.cli.call import add_common_options
from dedup_middleware.records import explain

if TYPE_CHECKING:
    import argparse

    from dedup_middleware.cli.call import Call

EXAMPLES = ("explain https://example.org/story",)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Let *parser* read the options of the command."""
    add_common_options(parser)
    parser.add_argument("url", metavar="URL", help="page URL, exactly as it was crawled")


def run(call: Call) -> None:
    """Print what is known of the page."""
    explanation = explain.explain(call.config, call.opts.url)
    print(json.dumps(explanation) if call.opts.json else explain.explanation_text(explanation))
