"""Defines what is judged, and what it is judged against: the item of a page if it has text, else the page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dedup_middleware.checks.table import Relation
from dedup_middleware.common.sites import are_one_site
from dedup_middleware.model import PageFeatures
from dedup_middleware.text.addresses import is_same_address

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dedup_middleware.items.item_values import Value
    from dedup_middleware.items.reading import ItemText
    from dedup_middleware.model import Page, StoredPage

#: Pages of one template share at least this part of the formats of their elements.
SAME_TEMPLATE = 0.3


@dataclass(frozen=True, slots=True)
class Subject:
    """What is judged: an item with text, or a page, with the short values of its item."""

    page: Page
    lines: Sequence[str]
    """Its text."""
    weights: Mapping[bytes, int]
    """The clauses of its text, by hash."""
    names: Sequence[str]
    """What it is called: of an item, the short texts by which its page is called; of a page, title and heading."""
    item: ItemText | None = None
    """The item, if there is one."""
    is_item: bool = False
    """Whether it is an item with text."""

    @property
    def values(self) -> Sequence[Value]:
        """The short values of its item."""
        return () if self.item is None else self.item.values

    @classmethod
    def of(cls, page: Page, item: ItemText | None = None) -> Subject:
        """Return what is judged of *page* and of its *item*, if there is one."""
        if item is not None and item.has_text:
            return cls(page, item.texts, item.fingerprint.weights, item.names, item, is_item=True)
        features = page.features or PageFeatures()
        names = tuple(filter(None, dict.fromkeys((features.title, features.heading))))
        return cls(page, page.paragraphs, page.fingerprint.weights, names, item)


def relation_of(page: Page, original: StoredPage) -> Relation:
    """Return how *page* and *original* are related. Items that stand for pages have no address of their own."""
    if page.features is None or original.source or not are_one_site((page.url, original.url)):
        return Relation.ACROSS
    if is_same_address(page.url, original.url) or has_other_template(page, original):
        return Relation.SAME_ADDRESS
    return Relation.SAME_SITE


def has_other_template(page: Page, original: StoredPage) -> bool:
    """Return whether the elements around the two texts are others: one is a view, or of another part of the site."""
    here, there = (page.features or PageFeatures()).template, (original.features or PageFeatures()).template
    both = sorted(here | there)[: max(len(here), len(there))]
    return sum(each in here and each in there for each in both) < SAME_TEMPLATE * len(both)


def is_same_page(page: Page, original: StoredPage) -> bool:
    """Return whether *page* is at the address of *original*, and shows the same around its text."""
    is_shown = original.features == (page.features and page.features.stored())
    return is_shown and is_same_address(page.url, original.url)
