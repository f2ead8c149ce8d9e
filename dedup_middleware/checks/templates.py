"""Recognises templates: texts that several pages of one host fill in, each with content of its own.

A page that adds a sentence to a story of another site may be a repost with an introduction. But of three pages of one
host that would all be dropped for one original, and of which each adds what the other two lack, at least two are not
reposts: they are branches, dates or variants, and the original is one of them, or a copy of one. From then on, these
pages are compared as pages of one site are.

Templates are remembered in memory; of very many texts, those met least recently are forgotten. The pages of earlier
crawls are read from the store.
"""

from __future__ import annotations

from collections import OrderedDict
from itertools import combinations
from typing import TYPE_CHECKING

from dedup_middleware.checks.own_content import own_clauses
from dedup_middleware.index import schema
from dedup_middleware.index.lookup import own_template_id
from dedup_middleware.model import PageFeatures
from dedup_middleware.text import titles
from dedup_middleware.urls import host_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from dedup_middleware.checks.pair import Pair
    from dedup_middleware.model import Page, StoredPage

# Pages that are compared for one text; if these do not show a template, more are not tried.
_MAX_PAGES = 16
# Texts, of which most have one page: 1 kB each.
_MAX_KEPT = 1_000


class Templates:
    """The texts of one crawl for which pages with content of their own would be dropped, by :func:`template_id`."""

    def __init__(self) -> None:
        self.recognised: set[bytes] = set()
        """The keys of texts that are templates."""
        # Of each key: what each page adds, by the identity of the page.
        self._texts: OrderedDict[bytes, dict[bytes, frozenset[str]]] = OrderedDict()

    def has(self, page: Page, original: StoredPage) -> bool:
        """Return whether the text of *original*, or that of *page*, is a template on the host of *page*."""
        keys = self.recognised and {template_id(page, original), own_template_id(page)}
        return not self.recognised.isdisjoint(keys)

    def learn(self, pair: Pair, earlier: Callable[[bytes], Iterable[tuple[StoredPage, Sequence[str]]] | None]) -> bool:
        """Note that the page of *pair* would be dropped; return whether its original is a template by now.

        *earlier* returns the pages of earlier crawls that were dropped for the text with a key, each with its text, or
        ``None`` for a text that is a template; it is called once a text.
        """
        page, original = pair.page, pair.original
        own = _own(page, page.paragraphs, pair)
        if not own:
            return False
        key = template_id(page, original)
        if key not in self._texts:
            stored = earlier(key)
            if stored is None:
                self.recognised.add(key)
            self._texts[key] = {other.identities[0]: _own(other, text, pair) for other, text in stored or ()}
        fillings = self._texts[key]
        self._texts.move_to_end(key)
        while len(self._texts) > _MAX_KEPT:
            self._texts.popitem(last=False)
        is_new = page.identities[0] not in fillings and not any(own <= other for other in fillings.values())
        if is_new and len(fillings) < _MAX_PAGES:
            apart = [other for other in fillings.values() if _are_apart(own, other)]
            fillings[page.identities[0]] = own
            if any(_are_apart(one, other) for one, other in combinations(apart, 2)):
                self.recognised.add(key)
        return key in self.recognised

    def suspected_template(self, page: Page, original: StoredPage) -> bytes:
        """Return the key of the text that *page* would be dropped for and that may be a template.

        Empty where the text is a known template, and where the page adds nothing to *original*.
        """
        key = template_id(page, original)
        is_filling = page.identities[0] in self._texts.get(key, {})
        return key if is_filling and key not in self.recognised else b""


def template_id(page: Page, original: StoredPage) -> bytes:
    """Return 8 bytes that identify the text and title of *original* among those of the host of *page*."""
    title = "" if original.features is None else titles.main_part(original.features)
    return schema.template_hash(host_of(page.url), original.digest, title)


def _are_apart(one: frozenset[str], other: frozenset[str]) -> bool:
    """Return whether each of two pages adds what the other one lacks."""
    return not one <= other and not other <= one


def _own(page: Page | StoredPage, paragraphs: Sequence[str], pair: Pair) -> frozenset[str]:
    """Return what *page*, with this text, adds to the original of *pair*: clauses, parts of its title, and facts."""
    features = page.features or PageFeatures()
    called = titles.own_parts(features, pair.there, lambda: pair.text)
    facts = pair.sites.own_texts(pair.host, features.facts - pair.there.facts)
    return frozenset([*own_clauses(paragraphs, pair.text), *map(titles.row_of, called), *map(bytes.hex, facts)])
