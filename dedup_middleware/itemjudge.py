"""What single items of a page say, compared with what its owner says.

Law of this file: an item that cannot be read, or costs more than its page may, is not withheld.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from dedup_middleware.detector import is_repeated, is_something_else
from dedup_middleware.items import item_texts
from dedup_middleware.limits import TOO_LARGE, UnjudgeableError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dedup_middleware.case import Case
    from dedup_middleware.fingerprints import ClauseFingerprinter
    from dedup_middleware.model import Fingerprint, Page


class ItemJudge:
    """Judge items whose texts have *most_characters* in all at most; no longer than the budgets of their pages last."""

    def __init__(self, fingerprint: ClauseFingerprinter, most_characters: int) -> None:
        self._fingerprint = fingerprint
        self._most_characters = most_characters

    def is_duplicate(self, case: Case, item: Any) -> bool:
        """Tell whether one *item* of a duplicate page, by its own text, repeats the owner too."""
        match = case.verdict.match
        try:
            said = self._read(case, item_texts(item))
        except UnjudgeableError:
            return False
        return match is not None and is_repeated(said, match.owner, case.threshold)

    def says_something_else(self, case: Case, item: Any) -> bool:
        """Tell whether the one *item* of a duplicate page is mainly about what the owner does not say.

        Such an item was gathered on other pages too, and handed on in the request.
        """
        match = case.verdict.match
        try:
            # Markup is no text: its clauses begin with tags.
            said = self._read(case, [text for text in item_texts(item) if not text.lstrip().startswith("<")])
        except UnjudgeableError:
            return True
        return match is not None and is_something_else(said, match)

    def narrowed(self, case: Case, page: Page, items: Iterable[Any]) -> Page:
        """Return *page* as saying only what these *items* of it say: a list of teasers delivers no story."""
        texts: list[str] = []
        hashes: set[bytes] = set()
        for item in items:
            with suppress(UnjudgeableError):
                told = item_texts(item)
                hashes |= self._read(case, told).weights.keys()
                texts += told
        return page.saying(hashes, texts)

    def _read(self, case: Case, texts: list[str]) -> Fingerprint:
        """Return the fingerprint of *texts*, at the cost of the page of *case*."""
        if sum(map(len, texts)) > self._most_characters:
            raise UnjudgeableError(TOO_LARGE)
        case.budget.resume()
        try:
            case.budget.check_time()
            return self._fingerprint(texts, case.budget)
        finally:
            case.budget.pause()
