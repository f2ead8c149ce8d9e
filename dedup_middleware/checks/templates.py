"""Which texts are templates: those that several pages of one host fill in, each with things of its own.

A page that differs from its owner in what stands around a story may be another fetch of it, with other comments and
teasers; one on another host may be a repost with an introduction. But of three pages of one host with addresses of
their own that would all be dropped for one owner, and of any two of which each says what the other does not, two at
least are no copies: they are branches, dates, variants, and the owner is one of them, or a copy of one.

It remembers in memory only, and of very many texts forgets those that were not met for longest. What
a store has of such pages is learned anew from there.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from itertools import chain, combinations
from typing import TYPE_CHECKING, NamedTuple

from dedup_middleware.checks.addresses import has_own_address
from dedup_middleware.extraction.features import text_hash
from dedup_middleware.features import STORED_TEXT_BYTES, PageFeatures
from dedup_middleware.fingerprints import fast_hash
from dedup_middleware.index import codec
from dedup_middleware.index.whole_texts import own_template_id
from dedup_middleware.text import titles
from dedup_middleware.text.clauses import sentences
from dedup_middleware.urls import host_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from dedup_middleware.model import Page, StoredPage

# At most so many pages are compared for one text, 20 kB each; if these show no template, further ones are not tried.
_MAX_PAGES = 16
# Texts, of which most have one page: 10 kB each.
_MAX_KEPT = 1_000
_MARKS = re.compile(r"[^\w\n]+|_+")


class _Filled(NamedTuple):
    """A page of a text, and what it says."""

    url: str
    says: frozenset[bytes]
    """Hashes of its sentences, of the parts of its title, and of what stands around them."""
    knows: frozenset[bytes]
    """All this, and its paragraphs: what is said in one page's text may stand around that of another."""

    def is_apart_from(self, other: _Filled) -> bool:
        """Tell whether either says what the other does not, at an address that the other does not name."""
        return self._has_its_own(other) and other._has_its_own(self)

    def _has_its_own(self, other: _Filled) -> bool:
        return not self.says <= other.knows and has_own_address(self.url, other.url)


class _Text:
    """A text that pages of one host would be dropped for, and these."""

    def __init__(self) -> None:
        self.first: Page | None = None
        self.pages: dict[bytes, _Filled] = {}
        """By identity; empty as long as there is none but the first, for most texts have no other."""
        self.met: set[bytes] = set()
        self.doubtful: set[bytes] = set()

    def add(self, identity: bytes, page: _Filled) -> bool:
        """Add a *page*, unless another one says all that it does; tell whether it is the third that has its own."""
        is_known = identity in self.pages or any(page.says <= other.says for other in self.pages.values())
        if is_known or len(self.pages) == _MAX_PAGES:
            return False
        apart = [other for other in self.pages.values() if page.is_apart_from(other)]
        self.pages[identity] = page
        return any(one.is_apart_from(other) for one, other in combinations(apart, 2))


class Templates:
    """The texts of one crawl that pages would be dropped for, by :func:`template_id`."""

    def __init__(self) -> None:
        self.recognised: set[bytes] = set()
        """Those that are known to be templates."""
        self.late: list[tuple[bytes, bytes]] = []
        """Key and identity of pages that a later one has made doubtful; whoever writes that down empties it."""
        self._texts: OrderedDict[bytes, _Text] = OrderedDict()

    def has(self, page: Page, owner: StoredPage) -> bool:
        """Tell whether the host of *page* is known to fill in the text of *owner*, or that of the page itself."""
        if not self.recognised:
            return False
        return template_id(page, owner) in self.recognised or own_template_id(page) in self.recognised

    def learn(
        self,
        page: Page,
        owner: StoredPage,
        text: Callable[[], Sequence[str]],
        others: Callable[[bytes], Iterable[tuple[StoredPage, Sequence[str]]] | None],
    ) -> bool:
        """Note that *page* would be dropped for *owner*; tell whether that shows a template.

        *text* returns what is kept of the owner's text; *others*, asked once a text, the stored pages that may fill in
        the text with that key, each with its own text, or ``None`` for one that is stored as a template. 10 µs and a
        scan for the first page of a text, 0.2 ms for the next ones.
        """
        if page.features is None or owner.features is None:
            return False
        is_on_host = host_of(page.url) == host_of(owner.url)
        is_the_same = _is_the_same(page, owner, is_on_host=is_on_host)
        if is_the_same and is_on_host and not has_own_address(page.url, owner.url):
            return False
        key, identity = template_id(page, owner), page.identities[0]
        known = self._known(key)
        known.met.add(identity)
        if not is_the_same or is_on_host:
            known.doubtful.add(identity)
        before: list[tuple[StoredPage, Sequence[str]]] = []
        if known.first is None:
            known.first = page
            stored = others(key)
            if stored is None:
                self.recognised.add(key)
                return True
            before = [(other, said) for other, said in stored if other.identities[0] != owner.identities[0]]
        if not before and not known.pages and known.first.identities[0] == identity:
            return False
        added = [(identity, _filled(page, page.paragraphs))]
        if not known.pages:
            added += [(known.first.identities[0], _filled(known.first, known.first.paragraphs))]
            added += [(owner.identities[0], _filled(owner, text()))] if is_on_host else []
            added += [(other.identities[0], _filled(other, said)) for other, said in before]
        is_template = any([known.add(*each) for each in added])  # noqa: C419 - all are to be added
        if len(known.pages) > 1:
            # A text that two pages of a host say otherwise: the first was taken for one repost of many.
            self.late += [(key, other) for other in known.met - known.doubtful if other != identity]
            known.doubtful |= known.met
        if is_template:
            self.recognised.add(key)
        return key in self.recognised

    def _known(self, key: bytes) -> _Text:
        """Return what is known of the text with this *key*; forget those that were not met for longest."""
        known = self._texts.setdefault(key, _Text())
        self._texts.move_to_end(key)
        while len(self._texts) > _MAX_KEPT:
            self._texts.popitem(last=False)
        return known

    def suspected_template(self, page: Page, owner: StoredPage) -> bytes:
        """Return the key of the text that *page* would be dropped for without knowing that it is a template.

        Empty where that is known, and where the page says nothing but what *owner* does.
        """
        key = template_id(page, owner)
        known = self._texts.get(key)
        is_met = known is not None and page.identities[0] in known.met
        return key if is_met and key not in self.recognised else b""

    def is_suspect(self, key: bytes, identity: bytes) -> bool:
        """Tell whether the drop of a page with this :meth:`suspected_template` may have to be taken back."""
        known = self._texts.get(key)
        return key in self.recognised or (known is not None and identity in known.doubtful)


def template_id(page: Page, owner: StoredPage) -> bytes:
    """Return 8 bytes that tell the text of *owner*, under its title, from all others that the host of *page* has."""
    title = "" if owner.features is None else titles.main_part(owner.features)
    return codec.template_hash(host_of(page.url), owner.digest, title)


def _is_the_same(page: Page, owner: StoredPage, *, is_on_host: bool) -> bool:
    """Tell whether *page* has the letters and names of *owner*, and on its host nothing around them."""
    here, there = page.features or PageFeatures(), owner.features or PageFeatures()
    is_same_text = page.fingerprint.exact_digest != b"" and page.fingerprint.exact_digest == owner.exact_digest
    is_named_so = (here.title, here.heading) == (there.title, there.heading)
    return is_same_text and is_named_so and (not is_on_host or here.stored().texts <= there.texts)


def _filled(page: Page | StoredPage, paragraphs: Sequence[str]) -> _Filled:
    """Return what *page*, with this text, says; sentences by their letters and digits alone."""
    features = page.features or PageFeatures()
    called = (titles.in_a_row([part]) for part in (*titles.parts(features.title), features.heading))
    said = _MARKS.sub("", "\n".join(s for text in paragraphs for s in sentences(text))).casefold().split("\n")
    says = frozenset(h[:STORED_TEXT_BYTES] for h in features.texts).union(map(fast_hash, chain(called, said)))
    return _Filled(page.url, says, says.union(text_hash(paragraph)[:STORED_TEXT_BYTES] for paragraph in paragraphs))
