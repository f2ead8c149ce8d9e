"""Registers the components of the plugin, with their priorities."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.exceptions import NotConfigured
from scrapy.settings import SETTINGS_PRIORITIES

from dedup_middleware.plugin.downloader_middleware import DedupDownloaderMiddleware
from dedup_middleware.plugin.extension import ADDONS, DedupExtension
from dedup_middleware.plugin.spider_middleware import (
    DedupCallbackMiddleware,
    DedupItemPipeline,
    DedupSpiderMiddleware,
    DropLogFormatter,
)

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings
    from typing_extensions import Self

#: Engine side of OffsiteMiddleware (50), the engine-most of Scrapy's own: it sees a response last.
DOWNLOADER_MIDDLEWARE_PRIORITY = 25
#: Engine side of StartSpiderMiddleware (25), the engine-most of Scrapy's own: nothing changes an item after it.
SPIDER_MIDDLEWARE_PRIORITY = 5
#: Spider side of all others, also those of the project: next to the callback.
CALLBACK_MIDDLEWARE_PRIORITY = 1_000_000
#: Before the pipelines of any project, which count from 0 on.
PIPELINE_PRIORITY = -1000
#: After Scrapy's own, so that a feed has taken an item, or has not, when we look.
EXTENSION_PRIORITY = 1000
#: The setting of each component, the component, and its priority.
COMPONENTS: tuple[tuple[str, type, int], ...] = (
    ("EXTENSIONS", DedupExtension, EXTENSION_PRIORITY),
    ("DOWNLOADER_MIDDLEWARES", DedupDownloaderMiddleware, DOWNLOADER_MIDDLEWARE_PRIORITY),
    ("SPIDER_MIDDLEWARES", DedupSpiderMiddleware, SPIDER_MIDDLEWARE_PRIORITY),
    ("SPIDER_MIDDLEWARES", DedupCallbackMiddleware, CALLBACK_MIDDLEWARE_PRIORITY),
    ("ITEM_PIPELINES", DedupItemPipeline, PIPELINE_PRIORITY),
)


class Addon:
    """``ADDONS = {"dedup_middleware.Addon": 500}`` switches the plugin on."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Return the add-on; where a setting names it as a middleware or the like, the crawl logs what to do."""
        if crawler.settings.frozen:
            raise NotConfigured(f"it is an add-on, and no middleware, pipeline or extension: set {ADDONS}")
        return cls()

    def update_settings(self, settings: BaseSettings) -> None:
        """Register the components, unless the project has placed them itself, and the quiet ``Dropped:`` line."""
        for name, component, priority in COMPONENTS:
            settings.setdefault_in_component_priority_dict(name, component, priority)
        if settings.getpriority("LOG_FORMATTER") == SETTINGS_PRIORITIES["default"]:
            settings.set("LOG_FORMATTER", DropLogFormatter, priority="addon")
