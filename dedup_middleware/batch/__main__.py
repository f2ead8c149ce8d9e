"""Runs ``scrapy dedup batch`` for ``spark-submit``, which takes a file of Python."""

import sys

from dedup_middleware.batch.command import main

if __name__ == "__main__":
    sys.exit(main())
