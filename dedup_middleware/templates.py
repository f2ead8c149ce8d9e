"""Which texts are templates: those that several pages of one host fill in, each with things of its own.

A page that differs from its owner in what stands around a story may be another fetch of it, with other comments and
teasers; one on another host may be a repost with an introduction. But of three pages of one host with addresses of
their own that would all be dropped for one owner and each say what neither of the others does, two at least are no
copies: they are branches, dates, variants, and the owner is one of them, or a copy of one.

Law of this file: it remembers in memory only, and of very many texts forgets those that were not met for longest. What
a store has of such pages is learned anew from there.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from itertools import chain, combinations
from typing import TYPE_CHECKING, NamedTuple

from dedup_middleware import titles
from dedup_middleware.addresses import host_of
from dedup_middleware.extraction.facts import text_hash
from dedup_middleware.fingerprints import fast_hash
from dedup_middleware.lookup import equals_key
from dedup_middleware.sayings import STORED_TEXT_BYTES, Surroundings
from dedup_middleware.text import sentences
from dedup_middleware.witness import has_other_parameter, own_address

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from dedup_middleware.model import Page, StoredPage
    from dedup_middleware.sites import Sites

    TextKey = tuple[str, str, bytes | None]
    """A host, and what tells an owner's text and title on its own host from others."""

#: Pages of one text that are looked at; where so many are no template, more will not make it one.
_MOST_PAGES = 16
# Texts; about 6 kB each.
_MOST = 2_000
_MARKS = re.compile(r"[^\w\n]+|_+")


class _Filled(NamedTuple):
    """A page of a text, and what it says."""

    url: str
    says: frozenset[bytes]
    """Hashes of its sentences, of the parts of its title, and of what stands around it that may not be its site's."""
    knows: frozenset[bytes]
    """All this, and its paragraphs: what is said in one page's text may stand around that of another."""

    def is_apart_from(self, other: _Filled) -> bool:
        """Tell whether either says what the other does not, at an address that the other does not name."""
        return self._has_its_own(other) and other._has_its_own(self)

    def _has_its_own(self, other: _Filled) -> bool:
        return has_own_address(self.url, other.url) and not self.says <= other.knows


class _Text:
    """A text that pages of one host would be dropped for, and these."""

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
    """The texts of one crawl that pages would be dropped for."""

    def __init__(self) -> None:
        self.recognised: set[TextKey] = set()
        """Those of the texts that are known to be templates."""
        self._texts: OrderedDict[TextKey, _Text] = OrderedDict()

    @staticmethod
    def key(page: Page, owner: StoredPage) -> TextKey:
        """Return what tells the text of *owner*, under its title, from others that the host of *page* has."""
        return host_of(page.url), host_of(owner.url), equals_key(owner.letters, owner.around)

    def has(self, page: Page, owner: StoredPage) -> bool:
        """Tell whether the host of *page* is known to fill in the text of *owner*."""
        return bool(self.recognised) and self.key(page, owner) in self.recognised

    def learn(
        self,
        page: Page,
        owner: StoredPage,
        text: Callable[[], Sequence[str]],
        others: Callable[[], Iterable[StoredPage]],
        sites: Sites,
    ) -> bool:
        """Note that *page* would be dropped for *owner*; tell whether that shows a template.

        *text* returns what is kept of the owner's text, *others* the stored pages with the very text of *page*; they
        are asked for only where they are needed. 10 µs for another address of the owner, else some 60.
        """
        if page.around is None or owner.around is None or not owner.letters:
            return False
        key = self.key(page, owner)
        is_on_host = key[0] == key[1]
        if is_on_host and not has_own_address(page.url, owner.url):
            return False
        here = _filled(page.url, page.around, sites.own_texts(key[0], page.around.texts), page.paragraphs)
        pages = [(page.identities[0], here)]
        if is_on_host:
            there = _stored(owner, text())
            if here.says <= there.knows:
                return False
            if key not in self._texts:
                on_host = [other for other in others() if host_of(other.url) == key[0]]
                pages += [(owner.identities[0], there)]
                pages += [(other.identities[0], _stored(other, page.paragraphs)) for other in on_host]
        known = self._texts.setdefault(key, _Text())
        if any([known.add(*each) for each in pages]):  # noqa: C419 - all are to be added
            self.recognised.add(key)
        self._texts.move_to_end(key)
        while len(self._texts) > _MOST:
            self._texts.popitem(last=False)
        return key in self.recognised

    def leave_out(self, page: Page, owner: StoredPage) -> None:
        """Note that *page* is a copy of *owner* although that is a template."""
        self._texts[self.key(page, owner)].pages.pop(page.identities[0], None)

    def is_filled_in(self, page: Page, owner: StoredPage) -> bool:
        """Tell whether *page* is one of those that may fill in the text of *owner*."""
        text = self._texts.get(self.key(page, owner))
        return text is not None and page.identities[0] in text.pages


def has_own_address(url: str, other: str) -> bool:
    """Tell whether *url* names something that the *other* does not, in its path or by a parameter of its query."""
    return has_other_parameter(url, other) or bool(own_address(url, other))


def _stored(page: StoredPage, text: Sequence[str]) -> _Filled:
    around = page.around or Surroundings()
    return _filled(page.url, around, around.texts, text)


def _filled(url: str, around: Surroundings, own: Iterable[bytes], text: Sequence[str]) -> _Filled:
    """Return what a page with *own* texts around says; sentences by their letters and digits alone."""
    called = (titles.in_a_row([part]) for part in (*titles.parts(around.title), around.heading))
    said = _MARKS.sub("", "\n".join(s for paragraph in text for s in sentences(paragraph))).casefold().split("\n")
    says = frozenset(h[:STORED_TEXT_BYTES] for h in own).union(map(fast_hash, chain(called, said)))
    return _Filled(url, says, says.union(text_hash(paragraph)[:STORED_TEXT_BYTES] for paragraph in text))
