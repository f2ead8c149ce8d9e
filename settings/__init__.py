"""Settings of the demo project; the plugin never imports them.

Real sites are crawled slowly, the embedded newspaper as fast as it answers.
"""

from __future__ import annotations

import logging

from spiders import newspaper

BOT_NAME = "news"
SPIDER_MODULES = ["spiders"]

ADDONS = {"dedup_middleware.Addon": 500}

# Manners on real sites. AutoThrottle is left out: it would slow the demo's hosts as well.
ROBOTSTXT_OBEY = True
DOWNLOAD_DELAY = 1
CONCURRENT_REQUESTS_PER_DOMAIN = 2
DOWNLOAD_SLOTS = {site.host: {"delay": 0, "concurrency": 8} for site in newspaper.SITES}

DOWNLOADER_MIDDLEWARES = {"spiders.newspaper.middleware.NewspaperMiddleware": 740}

# In the order of discovery, as an editor laid the lists out; Scrapy's own order begins with the last link of a page.
SCHEDULER_DISK_QUEUE = "scrapy.squeues.PickleFifoDiskQueue"
SCHEDULER_MEMORY_QUEUE = "scrapy.squeues.FifoMemoryQueue"

# A page that fails at first is fetched again, also with HTTPCACHE_ENABLED.
HTTPCACHE_IGNORE_HTTP_CODES = [503]

# What was kept, one JSON object a line.
FEEDS = {".scrapy/news.jsonl": {"format": "jsonlines", "encoding": "utf8", "overwrite": True}}

# A short log: the drops, warnings, and the plugin's summary instead of all stats.
LOG_LEVEL = "INFO"
LOG_DATEFORMAT = "%H:%M:%S"
LOG_SHORT_NAMES = True
STATS_DUMP = False
TELNETCONSOLE_ENABLED = False
REMOTE_CONTROL_ENABLED = False


def _is_useful(record: logging.LogRecord) -> bool:
    return not str(record.msg).startswith(("Versions", "Enabled ", "Overridden settings"))


# No Scrapy setting silences a single logger, and Scrapy's own set-up resets their levels, but not their filters.
for _name in ("scrapy.utils.log", "scrapy.addons", "scrapy.middleware", "scrapy.crawler"):
    logging.getLogger(_name).addFilter(_is_useful)
