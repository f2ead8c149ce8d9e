"""A page and a stored page that it may repeat: the input of every check."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from dedup_middleware.extraction.features import fact_hash, text_hash
from dedup_middleware.features import STORED_TEXT_BYTES, PageFeatures
from dedup_middleware.text.facts import facts_of
from dedup_middleware.urls import host_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from collections.abc import Set as AbstractSet

    from dedup_middleware.checks.alignment import Comparison
    from dedup_middleware.checks.site import Sites
    from dedup_middleware.model import Page, StoredPage


@dataclass(frozen=True)
class Pair:
    """A page, a stored page, how their texts compare, and what is known of the page's site."""

    page: Page
    original: StoredPage
    sites: Sites
    load_text: Callable[[], Sequence[str]]
    hash_clause: Callable[[str], bytes]
    live: AbstractSet[bytes] = frozenset()
    """Hashes of the page's clauses that are not boilerplate."""
    shared: frozenset[bytes] = frozenset()
    """Hashes of the page's clauses that the original has, in the same or nearly the same words."""
    comparison: Comparison | None = None
    """The word-by-word comparison of both texts, where one was made."""
    is_nearly: bool = False
    """Whether the texts match word by word only, and not by clauses."""
    score: float = 1.0
    """Share of the page's text that the original contains, 0 to 1."""

    @cached_property
    def text(self) -> Sequence[str]:
        """The stored paragraphs of the original; empty where none are kept."""
        return self.load_text()

    @cached_property
    def here(self) -> PageFeatures:
        """What the page has beside its main text."""
        return self.page.features or PageFeatures()

    @cached_property
    def there(self) -> PageFeatures:
        """What the original has beside its main text."""
        return self.original.features or PageFeatures()

    @cached_property
    def host(self) -> str:
        """The page's host."""
        return host_of(self.page.url)

    @cached_property
    def is_one_site(self) -> bool:
        """Whether both pages are of one host, or of two hosts of one domain that share title and template.

        The domain is taken for the last two labels. Where that is a public suffix (``co.uk``), two sites with one title
        and one template are compared as one site, which only keeps more.
        """
        other = host_of(self.original.url)
        if self.host == other:
            return True
        domain = self.host.split(".")[-2:]
        is_one_domain = len(domain) > 1 and not domain[-1].isdigit() and domain == other.split(".")[-2:]
        return is_one_domain and self.here.title == self.there.title and not self.has_other_template

    @property
    def are_items(self) -> bool:
        """Whether one of the two is an item that stands for a page: it has nothing around its text."""
        return self.page.features is None or self.original.source != b""

    @cached_property
    def has_same_letters(self) -> bool:
        """Whether both texts have the same letters and digits in the same order."""
        digest = self.page.fingerprint.exact_digest
        return digest != b"" and digest == self.original.exact_digest

    @cached_property
    def has_other_template(self) -> bool:
        """Whether one of the pages has more of its own around its text than the other has in all: one is a view."""
        here, there = self.here.stored().texts, self.there.texts
        return len(there - here) > len(here) or len(here - there) > len(there)

    @cached_property
    def is_part(self) -> bool:
        """Whether the original's text has more than twice the clauses of the page's."""
        return len(self.original.hashes) > 2 * len(self.page.fingerprint.weights)

    def is_around_original(self, line: str) -> bool:
        """Return whether *line*, with its facts, stands around the original's main text."""
        is_there = any(map(str.isalpha, line)) and text_hash(line)[:STORED_TEXT_BYTES] in self.there.texts
        return is_there and self.there.facts.issuperset(map(fact_hash, facts_of(line)))

    @cached_property
    def own_context(self) -> set[bytes]:
        """Hashes of the texts around the page that are not around the original."""
        return {text for text in self.here.texts if text[:STORED_TEXT_BYTES] not in self.there.texts}
