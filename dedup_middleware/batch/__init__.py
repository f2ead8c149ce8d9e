"""Checks an archive of past crawls: ``scrapy dedup batch``.

`archive` reads files, those of `warc` among them, and fingerprints their pages; `pairs` has the steps from pages to
verdicts, and compares pages as a crawl does; `engine` runs the steps in SQLite or on Spark; `output` writes the
results; `command` reports them.
"""
