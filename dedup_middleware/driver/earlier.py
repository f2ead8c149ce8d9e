"""Tells originals that earlier crawls have kept from those of this crawl, and of crawls that run at the same time."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from dedup_middleware.errors import TROUBLE
from dedup_middleware.model import now_exactly

if TYPE_CHECKING:
    from collections.abc import Container

    from dedup_middleware.index.index import Index
    from dedup_middleware.model import StoredPage


class EarlierCrawls:
    """The crawls that were over when the crawl *run* began."""

    def __init__(self, run: str, index: Index, is_kept_now: Container[int]) -> None:
        """Begin *run*; *is_kept_now* has the numbers of the pages that it is keeping, or keeping again."""
        self._run = run
        self._index = index
        self._is_kept_now = is_kept_now
        self._begun = now_exactly()
        self._beside: frozenset[str] = frozenset()
        with suppress(*TROUBLE):  # the crawl will notice by itself
            self._beside = index.begin(run)

    def have_kept(self, original: StoredPage) -> bool:
        """Return whether an earlier crawl has kept *original*, and neither this one nor one beside it has since."""
        if original.number in self._is_kept_now or original.number in self._index.met_again:
            return False
        return original.run not in {self._run, *self._beside} and original.time <= self._begun

    def resume_from(self, before: EarlierCrawls) -> None:
        """Go on with the same crawl, which *before* has begun."""
        self._begun, self._beside = before._begun, self._beside | before._beside

    def end(self) -> None:
        """Note that the crawl is over."""
        with suppress(*TROUBLE):
            self._index.end(self._run)
