"""Item-level dedup for spiders whose pages are no HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy.exceptions import DropItem

from dedup_middleware.budget import Budget, UnjudgeableError
from dedup_middleware.checks.item_values import item_texts
from dedup_middleware.delivery.page_state import PageState
from dedup_middleware.identity import item_identity
from dedup_middleware.model import Action, Witness
from dedup_middleware.plugin.extension import extension_of
from dedup_middleware.plugin.item_signals import item_claim, item_type
from dedup_middleware.plugin.logformatter import duplicate_item
from dedup_middleware.plugin.waiting import OwnerWait
from dedup_middleware.reasons import Reason

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from typing_extensions import Self

    from dedup_middleware.model import Page
    from dedup_middleware.plugin.extension import DedupExtension
    from dedup_middleware.session.session import Session


class DedupItemPipeline:
    """Judge the text and short values of the item fields named in ``DEDUP_ITEM_FIELDS``, as if the item were a page.

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
        session = self._extension.session
        entry = self._extension.item_sources.pop(id(item), None)
        if session is None or entry is None:
            return item
        _, page_state, source = entry
        state = None
        try:
            state = self._examine(session, item, page_state, source)
            await self._judge(session, item, state)
        except DropItem:
            raise
        except Exception as error:  # noqa: BLE001 - a defect of ours must not take the item
            self._extension.defect(error, page_state.url, state)
        return item

    async def _judge(self, session: Session, item: Any, state: PageState) -> None:
        """Deliver the item, or raise DropItem."""
        session.enter(state)
        await self._wait.settle(session, state)
        session.deliver_if_feed_lacks_it(state, item)
        if state.is_duplicate:
            # The response shows nothing that is not in its items, and their fields are named: each value counts.
            session.judge_item(state, item, bool)
            if state.objection is not None:
                session.keep(state, state.objection, Witness.ITEM)
        if state.is_duplicate and state.action is Action.DROP and session.may_drop(state, item):
            self._drop(session, state)
        self._deliver(session, state, item)

    def _examine(self, session: Session, item: Any, page_state: PageState, source: bytes) -> PageState:
        recovered: frozenset[bytes] = frozenset()
        try:
            texts = item_texts(item, self._extension.config.item_fields)
            identity = item_identity(source, texts)
            recovered = session.safety.recovered([identity], page_state.request and page_state.request.purpose)
            page = self._page(session, page_state.url, identity, texts, source)
        except UnjudgeableError as error:
            state = PageState.unjudged(page_state.url, error.reason, page_state.action, page_state.threshold)
        else:
            state = session.examine(page, page_state.action, page_state.threshold, Budget(), keep=page_state.keep)
        state.request = page_state.request
        state.recovered = recovered
        # Without a claim of the item's own, its fate is known of the page alone.
        page_state.recovered |= recovered
        return state

    def _page(self, session: Session, url: str, identity: bytes, texts: list[str], source: bytes) -> Page:
        """Return the item as a page; `UnjudgeableError` if it costs more than it may."""
        config = self._extension.config
        if sum(map(len, texts)) > config.max_bytes:
            raise UnjudgeableError(Reason.TOO_LARGE)
        return session.page(url, (identity,), texts, source=source, budget=config.budget())

    def _drop(self, session: Session, state: PageState) -> None:
        session.count_drop(state)
        exception = duplicate_item(session, state, self._extension.config.log_level)
        session.finish(state)
        raise exception

    @staticmethod
    def _deliver(session: Session, state: PageState, item: Any) -> None:
        session.deliver(state, item, repeats=state.is_duplicate)
        if state.claim is not None:
            session.settle_items(state, several=False)
            state.claim.callback_finished()
            item_claim.set(state.claim)
        if state.is_duplicate and state.action is Action.DRY_RUN:
            state.items_would_drop = 1
        session.finish(state)
