"""An invented newspaper, served on loopback, for ``scrapy crawl news`` to crawl.

Three English and four Chinese sites print, reprint, shorten, edit and mirror thirty-odd stories in the ways that news
sites do, and :func:`site_map` has the story of every URL. Places, people, companies and texts are invented.
"""

from __future__ import annotations

from spiders.newspaper.edition import PARTIAL_KINDS, SITES, Page, Site, site_map
from spiders.newspaper.server import Newspaper
from spiders.newspaper.stories import Kind

__all__ = ["PARTIAL_KINDS", "SITES", "Kind", "Newspaper", "Page", "Site", "site_map"]
