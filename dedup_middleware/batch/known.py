"""What was known of each page's site when the page came: by the rules of `Sites`, for all hosts side by side.

What it knows depends on the pages of one host and their order, and on no verdict. A crawl forgets what it has not met
for very long; here each of some parts of all hosts has the room that a crawl has for all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from dedup_middleware.checks.site import Sites
from dedup_middleware.text import titles

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from collections.abc import Set as AbstractSet

    from dedup_middleware.features import PageFeatures


class Known(NamedTuple):
    """What of one page is its site's."""

    parts: frozenset[str] = frozenset()
    """Of what it is called, by their words."""
    texts: frozenset[bytes] = frozenset()
    """Of what stands around it, by their hashes."""


NOTHING = Known()


def known(packed: Iterable[Any], offsets: Sequence[int]) -> Iterator[tuple[int, Known]]:
    """Yield what is known of pages, by position, unless that is nothing; *packed* has all pages of some hosts."""
    pages: list[tuple[int, str, PageFeatures]] = []
    for value in packed:
        part, found = value
        pages += ((offsets[part] + index, host, features) for index, host, features in found)
    sites = Sites()
    for position, host, features in sorted(pages, key=lambda page: page[0]):
        sites.note(host, features)
        called = (titles.site_row(p) for p in (*titles.parts(features.title), *titles.parts(features.heading)))
        parts = frozenset(words for words in called if sites.has_part(host, words))
        around = features.texts | features.facts
        texts = around - sites.own_texts(host, around)
        if parts or texts:
            yield position, Known(parts, texts)


class KnownSites(Sites):
    """What was known of the site of one page after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.known = NOTHING
        """Of the page that is judged now."""

    def note(self, host: str, features: PageFeatures, titles_beside: Iterable[str] = ()) -> None:
        """Do nothing: it has been noted."""

    def has_part(self, host: str, words: str) -> bool:  # noqa: ARG002 - of the page that is judged
        """See Sites."""
        return words in self.known.parts

    def own_texts(self, host: str, texts: AbstractSet[bytes]) -> set[bytes]:  # noqa: ARG002 - the same
        """See Sites."""
        return set(texts - self.known.texts)
