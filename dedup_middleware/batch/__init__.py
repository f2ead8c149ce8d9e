"""Checks an archive of past crawls: ``scrapy dedup batch``.

`archive` reads the files, `pages` extracts and fingerprints their pages, `pairs` has the steps from pages to verdicts,
`engines` runs the steps in SQLite or on Spark, `checking` compares the two pages of a pair as a crawl does, and
`output` writes the results. `command` is the command line.
"""
