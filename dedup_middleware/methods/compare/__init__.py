"""Methods side by side, on pages of which somebody knows which tell the same story: ``scrapy dedup compare``.

`corpus` reads the pages, `trial` lets one method decide them, `worker` does so in a process of its own, whose time and
memory are nobody else's, `processes` runs these; `scoring` and `agreement` tell what came of it, `tables` and `plots`
show that, and `command` is what a user calls.

Law of this floor: it measures methods as they are, decides nothing about any crawl, and leaves no trace but the files
that it is asked for.
"""
