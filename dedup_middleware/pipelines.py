"""Item-level dedup for spiders whose pages are no HTML. ★ Scrapy glue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy.exceptions import DropItem

from dedup_middleware.case import Case
from dedup_middleware.extension import extension_of
from dedup_middleware.identity import item_identity
from dedup_middleware.items import item_texts
from dedup_middleware.itemsignals import item_claim, item_type
from dedup_middleware.limits import TOO_LARGE, UnjudgeableError
from dedup_middleware.logformatter import duplicate_item
from dedup_middleware.model import Action
from dedup_middleware.waiting import OwnerWait

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from typing_extensions import Self

    from dedup_middleware.crawl import Crawl
    from dedup_middleware.extension import DedupExtension
    from dedup_middleware.model import Page


class DedupItemPipeline:
    """Judge the text of the item fields named in ``DEDUP_ITEM_FIELDS``, as if the item were a page.

    Only items of responses that cannot be judged are judged here: JSON, XML, feeds, pages with too little text. Items
    of one request are never compared with one another, and an item that comes again from its own request, unchanged, is
    the same one.
    """

    def __init__(self, extension: DedupExtension) -> None:
        self._extension = extension
        self._wait = OwnerWait(extension)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(extension_of(crawler))

    async def process_item(self, item: Any) -> Any:
        # Here come all items: those of errbacks and of start() too.
        item_claim.set(None)
        item_type.set(type(item))
        crawl = self._extension.crawl
        entry = self._extension.item_sources.pop(id(item), None)
        if crawl is None or entry is None:
            return item
        _, page_case, source = entry
        case = None
        try:
            case = self._examine(crawl, item, page_case, source)
            await self._judge(crawl, item, case)
        except DropItem:
            raise
        except Exception as error:  # noqa: BLE001 - a defect of ours must not take the item
            self._extension.defect(error, page_case.url, case)
        return item

    async def _judge(self, crawl: Crawl, item: Any, case: Case) -> None:
        """Deliver the item, or raise DropItem."""
        crawl.enter(case)
        await self._wait.settle(case)
        crawl.deliver_if_feed_lacks_it(case, item)
        if case.is_duplicate and case.action is Action.DROP and crawl.may_drop(case, item):
            self._drop(crawl, case)
        self._deliver(crawl, case, item)

    def _examine(self, crawl: Crawl, item: Any, page_case: Case, source: bytes) -> Case:
        leftover: frozenset[bytes] = frozenset()
        try:
            texts = item_texts(item, self._extension.config.item_fields)
            identity = item_identity(source, texts)
            leftover = crawl.safety.leftover([identity], page_case.request and page_case.request.purpose)
            page = self._page(crawl, page_case.url, identity, texts, source)
        except UnjudgeableError as error:
            case = Case.unjudged(page_case.url, error.reason, page_case.action, page_case.threshold)
        else:
            case = crawl.examine(page, page_case.action, page_case.threshold)
        case.request = page_case.request
        case.leftover = leftover
        # Without a claim of the item's own, its fate is known of the page alone.
        page_case.leftover |= leftover
        return case

    def _page(self, crawl: Crawl, url: str, identity: bytes, texts: list[str], source: bytes) -> Page:
        """Return the item as a page; `UnjudgeableError` if it costs more than it may."""
        config = self._extension.config
        if sum(map(len, texts)) > config.max_bytes:
            raise UnjudgeableError(TOO_LARGE)
        return crawl.page(url, (identity,), texts, source=source, budget=config.budget())

    def _drop(self, crawl: Crawl, case: Case) -> None:
        crawl.count_drop(case)
        exception = duplicate_item(crawl, case, self._extension.config.log_level)
        crawl.finish(case)
        raise exception

    @staticmethod
    def _deliver(crawl: Crawl, case: Case, item: Any) -> None:
        crawl.deliver(case, item, repeats=case.is_duplicate)
        if case.claim is not None:
            case.claim.callback_finished()
            item_claim.set(case.claim)
        if case.is_duplicate and case.action is Action.DRY_RUN:
            case.items_would_drop = 1
        crawl.finish(case)
