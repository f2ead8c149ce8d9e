"""One quiet line for each duplicate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy.exceptions import DropItem
from scrapy.logformatter import LogFormatter

from dedup_middleware.text.clauses import one_line

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.http import Response
    from scrapy.logformatter import LogFormatterResult
    from twisted.python.failure import Failure

    from dedup_middleware.deduplicator import Deduplication
    from dedup_middleware.visit import Visit

#: A sentence in a drop line is cut here: the line is to fit a wide terminal.
_SENTENCE_CHARACTERS = 60


class DuplicateItem(DropItem):
    """An item was dropped because a stored page already says what it says."""

    def __init__(self, deduplication: Deduplication, visit: Visit, log_level: str) -> None:
        """Name the page of the duplicate *visit*, its original, and one of the repeated sentences."""
        match = visit.verdict.match
        assert match is not None
        message = f"{visit.url} repeats {match.owner.url}: {match.score:.0%} of its text"
        if evidence := deduplication.recorder.evidence(visit):
            message += f', such as "{one_line(max(evidence, key=len), _SENTENCE_CHARACTERS)}"'
        super().__init__(one_line(message), log_level=log_level)


class DropLogFormatter(LogFormatter):
    """Scrapy's log lines; a duplicate's ``Dropped:`` line has no dump of the item behind it."""

    def dropped(
        self, item: Any, exception: BaseException, response: Response | Failure | None, spider: Spider
    ) -> LogFormatterResult:
        """Return Scrapy's result, for a duplicate without the item."""
        result = super().dropped(item, exception, response, spider)
        if isinstance(exception, DuplicateItem):
            result["msg"] = "Dropped: %(exception)s"
        return result
