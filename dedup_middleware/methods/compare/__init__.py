"""Measures methods side by side on a corpus of pages, for ``scrapy dedup compare``.

It decides nothing about any crawl, and writes no files but those that the user names.
"""
