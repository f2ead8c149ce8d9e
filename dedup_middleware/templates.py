"""Which texts are templates: one text and title that several pages of a host fill in, each with things of its own.

Two pages that differ around one story may be two fetches of it, with other comments and teasers. Three pages with
addresses of their own that each say what neither of the others does are three pages: branches, dates, variants.

Law of this file: it remembers in memory only, and of very many texts forgets those that were not met for longest. What
a store has of such pages is learned anew from there.
"""

from __future__ import annotations

from collections import OrderedDict
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from dedup_middleware.addresses import host_of
from dedup_middleware.extraction.facts import text_hash
from dedup_middleware.lookup import equals_key
from dedup_middleware.sayings import STORED_TEXT_BYTES
from dedup_middleware.witness import has_other_parameter, own_address

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from dedup_middleware.model import Page, StoredPage
    from dedup_middleware.sites import Sites

    TextKey = tuple[str, bytes | None]
    """What tells a text and its title on one host from others."""

#: Pages of one text that are looked at; where so many are no template, more will not make it one.
_MOST_PAGES = 16
# Texts; about 10 kB each.
_MOST = 5_000


class _Filled(NamedTuple):
    """A page of a text, and what it says."""

    url: str
    says: frozenset[bytes]
    """Its clauses, and what stands around them and is not known to be the site's."""
    knows: frozenset[bytes]
    """All this, and its paragraphs: what is said in one page's text may stand around that of another."""

    def is_apart_from(self, other: _Filled) -> bool:
        """Tell whether either says what the other does not, at an address that the other does not name."""
        return self._has_its_own(other) and other._has_its_own(self)

    def _has_its_own(self, other: _Filled) -> bool:
        return has_own_address(self.url, other.url) and not self.says <= other.knows


class _Text:
    """One text and title of a host, and pages that have it."""

    def __init__(self) -> None:
        self.pages: dict[bytes, _Filled] = {}

    def add(self, identity: bytes, page: _Filled) -> bool:
        """Add a *page*; tell whether it is the third that has its own."""
        if identity in self.pages or len(self.pages) == _MOST_PAGES:
            return False
        apart = [other for other in self.pages.values() if page.is_apart_from(other)]
        self.pages[identity] = page
        return any(one.is_apart_from(other) for one, other in combinations(apart, 2))


class Templates:
    """The texts of one crawl that pages on the host of their owner would be dropped for."""

    def __init__(self) -> None:
        self.recognised: set[TextKey] = set()
        """Those of the texts that are known to be templates."""
        self._texts: OrderedDict[TextKey, _Text] = OrderedDict()

    @staticmethod
    def key(owner: StoredPage) -> TextKey:
        """Return what tells the text of *owner*, under its title, from others."""
        return host_of(owner.url), equals_key(owner.letters, owner.around)

    def has(self, owner: StoredPage) -> bool:
        """Tell whether the text of *owner*, under its title, is known to be a template."""
        return bool(self.recognised) and self.key(owner) in self.recognised

    def learn(
        self,
        page: Page,
        owner: StoredPage,
        text: Callable[[], Sequence[str]],
        others: Callable[[], Iterable[StoredPage]],
        sites: Sites,
    ) -> bool:
        """Note that *page* would be dropped for *owner*, of its host; tell whether that shows a template.

        *text* returns what is kept of the owner's text, *others* the stored pages with the very text of *page*; they
        are asked for only where they are needed. 10 µs, and 100 where something around the page is its own.
        """
        if page.around is None or owner.around is None or not owner.letters:
            return False
        if host_of(page.url) != host_of(owner.url) or not has_own_address(page.url, owner.url):
            return False
        around = sites.own_texts(host_of(page.url), page.around.texts)
        here = _filled(page.url, around, page.fingerprint.weights, page.paragraphs)
        there = _stored(owner, text())
        if here.says <= there.knows:
            return False
        key = self.key(owner)
        pages = [(page.identities[0], here)]
        if key not in self._texts:
            self._texts[key] = _Text()
            on_host = [other for other in others() if host_of(other.url) == key[0]]
            pages += [(owner.identities[0], there), *((o.identities[0], _stored(o, page.paragraphs)) for o in on_host)]
        for identity, filled in pages:
            if self._texts[key].add(identity, filled):
                self.recognised.add(key)
        self._texts.move_to_end(key)
        while len(self._texts) > _MOST:
            self._texts.popitem(last=False)
        return key in self.recognised

    def is_filled_in(self, page: Page, owner: StoredPage) -> bool:
        """Tell whether *page* is known to say things of its own around the text of *owner*."""
        text = self._texts.get(self.key(owner))
        return text is not None and page.identities[0] in text.pages


def has_own_address(url: str, other: str) -> bool:
    """Tell whether *url* names something that the *other* does not, in its path or by a parameter of its query."""
    return has_other_parameter(url, other) or bool(own_address(url, other))


def _stored(page: StoredPage, text: Sequence[str]) -> _Filled:
    return _filled(page.url, page.around.texts if page.around else (), page.hashes, text)


def _filled(url: str, around: Iterable[bytes], clauses: Iterable[bytes], text: Sequence[str]) -> _Filled:
    says = frozenset(h[:STORED_TEXT_BYTES] for h in around).union(clauses)
    return _Filled(url, says, says.union(text_hash(paragraph)[:STORED_TEXT_BYTES] for paragraph in text))
