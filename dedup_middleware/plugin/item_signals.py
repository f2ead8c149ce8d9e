"""What becomes of items in the pipelines and the feeds -> the claims of their pages."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.http import Response

if TYPE_CHECKING:
    from dedup_middleware.delivery.claims import Claim
    from dedup_middleware.plugin.extension import DedupExtension, Visit

#: The claim of the item that is in the pipelines. Scrapy runs the pipelines on an item and sends the signal of their
#: outcome in one context; the signal alone does not tell, for a pipeline may return another object.
item_claim: ContextVar[Claim | None] = ContextVar("item_claim", default=None)
#: The type with which it came to the first pipeline, likewise.
item_type: ContextVar[type | None] = ContextVar("item_type", default=None)


class ItemSignals:
    """Hears of every item that leaves the pipelines, one way or the other."""

    def __init__(self, extension: DedupExtension) -> None:
        self._extension = extension
        connect = extension.crawler.signals.connect
        connect(self.scraped, signals.item_scraped)
        connect(self.dropped, signals.item_dropped)
        connect(self.failed, signals.item_error)

    def scraped(self, item: Any, response: Response | None) -> None:
        if self._extension.session is None:
            return
        self._extension.count("items/delivered")
        taken = self._extension.feeds.took(item, item_type.get())
        item_type.set(None)
        if taken is None:
            self.failed(response)
        elif (claim := self._claim(response)) is not None:
            claim.item_scraped(taken)

    def dropped(self, response: Response | None) -> None:
        if (claim := self._claim(response)) is not None:
            claim.item_dropped()

    def failed(self, response: Response | None) -> None:
        if (visit := self._visit(response)) is not None:
            visit.session.safety.item_failed(visit.state)
        if (claim := self._claim(response)) is not None:
            claim.item_failed()

    def _claim(self, response: object) -> Claim | None:
        """Return the claim that the item of a signal belongs to: its own, or that of its page."""
        claim = item_claim.get()
        if claim is not None:
            item_claim.set(None)
            return claim
        visit = self._visit(response)
        return None if visit is None else visit.state.claim

    def _visit(self, response: object) -> Visit | None:
        # The response of an item from an errback is a Failure, and of one from start() None: neither is a visit.
        return self._extension.visits.get(response) if isinstance(response, Response) else None
