"""Item-level dedup for spiders whose pages are no HTML. ★ Scrapy glue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy.exceptions import NotConfigured

from dedup_middleware.extension import extension_of
from dedup_middleware.identity import item_identity
from dedup_middleware.items import item_texts, tag_item
from dedup_middleware.logformatter import DuplicateItem
from dedup_middleware.model import Action
from dedup_middleware.waiting import OwnerWait

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from typing_extensions import Self

    from dedup_middleware.crawl import Case, Crawl
    from dedup_middleware.extension import DedupExtension


class DedupItemPipeline:
    """Judge the text of the item fields named in ``DEDUP_ITEM_FIELDS``, as if the item were a page.

    Only items of responses that had no text to judge are judged here: JSON, XML, feeds. Items of one request are never
    compared with one another, and an item that comes again from its own request, unchanged, is the same one.
    """

    def __init__(self, extension: DedupExtension) -> None:
        self._extension = extension
        self._wait = OwnerWait(extension)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        extension = extension_of(crawler)
        if extension is None:
            raise NotConfigured
        return cls(extension)

    async def process_item(self, item: Any) -> Any:
        crawl = self._extension.crawl
        source = self._extension.item_sources.pop(id(item), None)
        if crawl is None or source is None:
            return item
        case = self._examine(crawl, item, *source[1:])
        crawl.enter(case)
        await self._wait.settle(case)
        if case.is_duplicate and case.action is Action.DROP and not crawl.failed:
            self._drop(crawl, case)
        return self._deliver(crawl, case, item)

    def _examine(self, crawl: Crawl, item: Any, url: str, source: bytes) -> Case:
        config = self._extension.config
        texts = item_texts(item, config.item_fields)
        page = crawl.page(url, (item_identity(source, texts),), texts, source)
        return crawl.examine(page, config.action, config.threshold)

    def _drop(self, crawl: Crawl, case: Case) -> None:
        match = case.verdict.match
        assert match is not None
        crawl.count_drop(case)
        exception = DuplicateItem(case.url, match, crawl.evidence(case), self._extension.config.log_level)
        crawl.finish(case)
        raise exception

    def _deliver(self, crawl: Crawl, case: Case, item: Any) -> Any:
        case.items_delivered = 1
        if case.claim is not None:
            case.claim.item_yielded()
            case.claim.callback_finished()
            self._extension.item_claims[id(item)] = (item, case.claim)
        if case.action is Action.TAG:
            tag_item(item, case.verdict)
        crawl.finish(case)
        return item
