"""``scrapy dedup batch`` for ``spark-submit``, which takes files of Python: settings by ``-s``, and no project."""

from __future__ import annotations

import argparse
import sys

from dedup_middleware.batch.command import add_options, batch
from dedup_middleware.errors import DedupError
from dedup_middleware.settings.config import Config


def main() -> int:
    """Judge the archives that the command line names; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, prog="spark-submit … __main__.py")
    add_options(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("-s", metavar="NAME=VALUE", action="append", default=[], help="a setting (may be repeated)")
    parser.set_defaults(spark="")
    opts = parser.parse_args()
    given = dict(pair.partition("=")[::2] for pair in opts.s)
    try:
        config = Config.from_settings({**given, "DEDUP_STORE": "memory:", "DEDUP_LOG": ""}, None)
        said = batch(opts, config, _tell)
    except DedupError as error:
        _tell(str(error))
        return 1
    sys.stdout.write(f"{said}\n")
    return 0


def _tell(line: str) -> None:
    sys.stderr.write(f"dedup: {line}\n")


if __name__ == "__main__":
    sys.exit(main())
