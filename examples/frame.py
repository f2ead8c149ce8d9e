"""Mark the rows of a table that repeat another row's text.

Usage: python examples/frame.py PAGES.parquet MARKED.parquet     (needs `pip install polars`)
The table has the columns ``url`` and ``html``; it gets ``verdict``, ``repeats`` and ``score``. With pandas, read it by
``pandas.read_parquet(...)`` and give it the three columns by ``pages.assign(...)``.
"""

import sys

import polars as pl

from dedup_middleware import Deduplicator


def marked(pages: pl.DataFrame) -> pl.DataFrame:
    """Return *pages* with what each of them is."""
    with Deduplicator() as dedup:
        verdicts = list(dedup.stream(zip(pages["url"].to_list(), pages["html"].to_list(), strict=True)))
    return pages.with_columns(
        verdict=pl.Series([v.verdict for v in verdicts], dtype=pl.String),
        repeats=pl.Series([v.original_url for v in verdicts], dtype=pl.String),
        score=pl.Series([v.score for v in verdicts], dtype=pl.Float64),
    )


if __name__ == "__main__":
    if len(sys.argv) != 1 + len(("pages", "marked")):
        sys.exit(__doc__)
    marked(pl.read_parquet(sys.argv[1])).write_parquet(sys.argv[2])
