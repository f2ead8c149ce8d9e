"""Defines a pair, the input of every check: two pages, their URLs, and what the pages of their hosts share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from dedup_middleware.checks.address import is_same_address, site_of
from dedup_middleware.common.urls import host_of
from dedup_middleware.extraction.features import facts_of, text_hash
from dedup_middleware.fingerprints import fast_hash
from dedup_middleware.model import STORED_TEXT_BYTES, PageFeatures
from dedup_middleware.text import titles
from dedup_middleware.text.words import token_row

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from collections.abc import Set as AbstractSet

    from dedup_middleware.checks.alignment import Comparison
    from dedup_middleware.model import Page, StoredPage


@dataclass(frozen=True)
class Pair:
    """A page, a stored page, how their texts compare, and what is known of the page's site."""

    page: Page
    original: StoredPage
    names: SiteNames
    load_text: Callable[[], Sequence[str]]
    hash_clause: Callable[[str], bytes]
    distinctive: AbstractSet[bytes] = frozenset()
    """Hashes of the page's clauses that are not boilerplate."""
    shared: frozenset[bytes] = frozenset()
    """Hashes of the page's clauses that the original has, in the same or nearly the same words."""
    comparison: Comparison | None = None
    """The word-by-word comparison of both texts, where one was made."""
    is_nearly: bool = False
    """Whether the texts match word by word only, and not by clauses."""
    score: float = 1.0
    """Share of the page's text that the original contains, 0 to 1."""
    find_canonical: Callable[[], bool] = lambda: False
    """Returns whether one page names the other as its canonical URL."""

    @cached_property
    def text(self) -> Sequence[str]:
        """The stored paragraphs of the original; empty where none are kept."""
        return self.load_text()

    @cached_property
    def row_of_original(self) -> str:
        """The words, numbers and symbols of the original's text, folded, between spaces."""
        return token_row(self.text)

    @cached_property
    def names_of_original(self) -> str:
        """The words of its title and heading, in the same way."""
        return titles.row_of_all([self.there.title, self.there.heading])

    @cached_property
    def here(self) -> PageFeatures:
        """The page's context."""
        return self.page.features or PageFeatures()

    @cached_property
    def there(self) -> PageFeatures:
        """The original's context."""
        return self.original.features or PageFeatures()

    @cached_property
    def host(self) -> str:
        """The page's host."""
        return host_of(self.page.url)

    @cached_property
    def is_one_site(self) -> bool:
        """Whether both pages are of one registrable domain."""
        return site_of(self.host) == site_of(host_of(self.original.url))

    @cached_property
    def is_same_address(self) -> bool:
        """Whether both URLs name one thing."""
        return is_same_address(self.page.url, self.original.url) or self.find_canonical()

    @property
    def are_items(self) -> bool:
        """Whether one of the two is an item that stands for a page: it has no context."""
        return self.page.features is None or self.original.source != b""

    @cached_property
    def has_same_letters(self) -> bool:
        """Whether both texts have the same letters and digits in the same order."""
        digest = self.page.fingerprint.exact_digest
        return digest != b"" and digest == self.original.exact_digest

    @cached_property
    def has_same_text(self) -> bool:
        """Whether both texts are equal, line by line."""
        return [*self.page.paragraphs] == [*self.text]

    @cached_property
    def has_other_template(self) -> bool:
        """Whether the elements around the two texts are others: one is a view, or of another part of the site."""
        here, there = self.here.template, self.there.template
        both = sorted(here | there)[: max(len(here), len(there))]
        return sum(each in here and each in there for each in both) < SAME_TEMPLATE * len(both)

    def is_around_original(self, line: str) -> bool:
        """Return whether *line*, with its facts, stands around the original's main text."""
        is_there = any(map(str.isalpha, line)) and text_hash(line)[:STORED_TEXT_BYTES] in self.there.texts
        return is_there and self.there.facts.issuperset(map(fast_hash, facts_of(line)))

    @cached_property
    def own_context(self) -> set[bytes]:
        """Hashes of the texts around the page that are not around the original."""
        return {text for text in self.here.texts if text[:STORED_TEXT_BYTES] not in self.there.texts}


def titled_as(page: Page, view: StoredPage) -> Page:
    """Return *page* with the title of its *view*, if it has all parts of that: a view often has no site's name.

    So a page that comes after its print view is compared as the print view is that comes after its page.
    """
    here, there = page.features, view.features
    if here is None or there is None:
        return page
    named = {titles.row_of(part) for part in map(titles.without_view, titles.parts(there.title)) if part}
    is_in_title = named and named <= set(map(titles.row_of, titles.parts(here.title)))
    return replace(page, features=replace(here, title=there.title)) if is_in_title else page


#: Pages of one template share at least this part of the formats of their elements.
SAME_TEMPLATE = 0.3


#: A part of titles is the site's once it has stood beside so many others.
OTHER_TITLES = 3
# Parts of titles that are remembered, of all hosts: 200 bytes each.
_MAX_PARTS = 100_000


class SiteNames:
    """The parts of titles that are not a page's but its site's: "Harbour News" beside many others."""

    def __init__(self) -> None:
        # By host and part, what stood beside it; the latest last.
        self._beside: dict[tuple[str, str], frozenset[int]] = {}

    def note(self, host: str, title: str) -> None:
        """Note the *title* of a page of *host*. O(parts)."""
        parts = titles.parts(title)
        for part in parts if len(parts) > 1 else ():
            key = (host, titles.site_row(part))
            beside = self._beside.pop(key, frozenset())
            if len(beside) < OTHER_TITLES:
                beside |= {hash(tuple([other for other in parts if other != part]))}
            self._beside[key] = beside
        while len(self._beside) > _MAX_PARTS:
            del self._beside[next(iter(self._beside))]

    def has(self, host: str, part: str) -> bool:
        """Return whether the *part* of a title of *host* is the site's."""
        return len(self._beside.get((host, titles.site_row(part)), ())) >= OTHER_TITLES
