"""An archive of past crawls, judged as a crawl would have judged it: ``scrapy dedup batch``.

`archive` reads the pages; `inline` judges them one after the other, in this process. On Spark they are judged side by
side: `reading` makes fingerprints, `postings` tells which clauses several pages have, `components` which pages are to
be judged together, `known` what is a site's own business, and `world` judges a few pages with all that they need to
know of others, in a session of its own (`judging`). `rounds` repeats that until no page would hear anything else, which
is when all verdicts are those of `inline`; `engine` and `spark` run the `steps`. `outcome` is what came of a page,
`output` writes it down, and `command` is what a user calls.

Law of this floor: a verdict is made by the code that judges a crawl's pages, and is the one that a crawl would have
made; how many processes there are, and which of them judges what, decides how long it takes and nothing else.
"""
