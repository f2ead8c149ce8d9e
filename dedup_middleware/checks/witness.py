"""The second witness: what a page says for itself that its owner does not.

It is asked about pages whose text is their owner's, by clauses or word by word, and only objects.

One thought carries it. Between hosts a page is its story: reposts have other titles and other things around them. On
one host true copies (session ids, print views, other paths) say the same, letter by letter, and what differs is another
page: the flat on another floor, the branch in another street, the notice to another person.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from dedup_middleware.checks.addresses import is_same_address, own_address
from dedup_middleware.checks.editions import is_edition
from dedup_middleware.extraction.features import text_hash
from dedup_middleware.features import STORED_TEXT_BYTES as _STORED
from dedup_middleware.model import Objection
from dedup_middleware.reasons import Reason
from dedup_middleware.text import titles
from dedup_middleware.text.clauses import MIN_CLAUSE_WEIGHT, reduced, reduced_once, sentences, weight
from dedup_middleware.urls import host_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from collections.abc import Set as AbstractSet

    from dedup_middleware.checks.site import Sites
    from dedup_middleware.features import PageFeatures
    from dedup_middleware.model import Page, StoredPage

#: A text of less than this, in letters (200 Han characters), may be a notice, a wall or an introduction that many pages
#: of a host share. On pages of news sites, one repost in twenty is as short, and few of these are on the host of their
#: owner.
LITTLE_TEXT_WEIGHT = 600
#: Between hosts, of what a page is called its owner must have as much, in its names or its text.
SHARED_TITLE = 0.5
#: Likewise of one whose text is not the same but nearly: two reports of one event have titles of their own.
SHARED_TITLE_NEARLY = 0.8

# A number with its sign, its separators and its unit; letters with a plus, a sharp; other symbols by themselves.
_SYMBOL = r"[+\-\u2212<>=$\u20ac\xa3\xa5%\u2030#\u266f\u266d\xb0\xb2\xb3]"
_MARKED = re.compile(
    rf"{_SYMBOL}?\d+(?:[.,:\-\u2013]\d+)*{_SYMBOL}?|[A-Za-z](?:\+\+?|[\-#\u266f\u266d\xb2\xb3])(?!\w)|[<>=]|[\U0001f300-\U0001faff]"
)


class _Pair(NamedTuple):
    """A page, and a page that it may be a copy of."""

    page: Page
    here: PageFeatures
    there: PageFeatures
    text: Callable[[], Sequence[str]]
    """What is kept of the owner's text; asked for only where it is needed."""
    sites: Sites
    same: bool
    """Whether both have the very same letters."""

    @property
    def host(self) -> str:
        return host_of(self.page.url)


def objection(  # noqa: PLR0913 - two pages, and what is known of them
    page: Page,
    owner: StoredPage,
    text: Callable[[], Sequence[str]],
    sites: Sites,
    *,
    nearly: bool,
    is_template: bool = False,
) -> Objection | None:
    """Return what *page* says against being a copy of *owner*, if anything.

    *text* returns what is kept of the owner's text, and is asked for only where it is needed; *sites* knows what is the
    host's; *nearly*: the texts are the same word by word only; *is_template*: the owner's text and title tell as little
    as a notice's. Items, which have nothing around them, say nothing here. 0.2 ms where letters differ, else 20 µs.
    """
    if page.features is None or owner.source:
        return None
    is_on_host = host_of(page.url) == host_of(owner.url)
    if owner.features is None:
        return Objection(Reason.EARLIER_VERSION) if is_on_host else None
    same = page.fingerprint.exact_digest != b"" and page.fingerprint.exact_digest == owner.exact_digest
    pair = _Pair(page, page.features, owner.features, text, sites, same)
    if not is_on_host:
        return _between_hosts(pair, nearly=nearly) or (_between_hosts_of_template(pair) if is_template else None)
    tells = is_story(page) and not is_template
    objected = _on_one_host(pair, tells=tells)
    if objected is not None or tells:
        return objected
    # Where the address is the owner's with something added, numbers are counters and clocks.
    if _own_facts(pair, numbered=not is_same_address(page.url, owner.url)):
        return Objection(Reason.OWN_FACTS)
    address = own_address(page.url, owner.url)
    return Objection(Reason.ANOTHER_ADDRESS, tuple(address)) if address else None


def _between_hosts(pair: _Pair, *, nearly: bool) -> Objection | None:
    if pair.same and has_much_text(pair.page) and not titles.is_telling(pair.here):
        return None  # a whole text of some length needs no title that tells more than "Copy"
    called = pair.sites.own_parts(pair.host, pair.here)
    # Unless the site's part is known, the longer one is taken for the page's.
    own = [titles.longest(called)] if called else []
    shared = titles.shared_terms(own, pair.there, pair.text)
    if nearly and shared < 1:
        # Two reports of one event are called by words that stand in both.
        shared = min(shared, titles.shared_terms(own, pair.there, list))
    if shared < (SHARED_TITLE_NEARLY if nearly else SHARED_TITLE):
        return Objection(Reason.ANOTHER_TITLE, tuple(own))
    return None


def _between_hosts_of_template(pair: _Pair) -> Objection | None:
    """Return what the page says, in its title, its text or around it, and the other one does not."""
    said = titles.in_a_row([pair.there.title, pair.there.heading, *pair.text()])
    own = [part for part in pair.sites.own_parts(pair.host, pair.here) if not titles.says(said, part)]
    if own:
        return Objection(Reason.ANOTHER_TITLE, tuple(own))
    if own := own_marks(pair.page.paragraphs, pair.text()) or _own_clauses(pair):
        return Objection(Reason.OWN_WORDS, tuple(own))
    # Much of it is its site's, until that is known: then a copy is delivered.
    return Objection(Reason.OWN_FACTS) if _own_facts(pair, numbered=False) else None


def _on_one_host(pair: _Pair, *, tells: bool) -> Objection | None:
    own = titles.own_parts(pair.here, pair.there, pair.text)
    if own:
        # The very story under its title and the site's, where the owner's had its own only.
        called = pair.sites.own_parts(pair.host, pair.here)
        if not (pair.same and tells and titles.in_a_row(called) == titles.in_a_row([pair.there.title])):
            return Objection(Reason.ANOTHER_TITLE, tuple(own))
    if marks := own_marks(pair.page.paragraphs, pair.text()):
        return Objection(Reason.OWN_WORDS, tuple(marks))
    own = _own_clauses(pair)
    is_alike = tells and titles.is_called_alike(pair.here, pair.there)
    if own and not (is_alike and is_edition(pair.page.paragraphs, pair.text())):
        return Objection(Reason.OWN_WORDS, tuple(own))
    return None


def _own_clauses(pair: _Pair) -> list[str]:
    return [] if pair.same else own_clauses(pair.page.paragraphs, pair.text(), pair.there)


def _own_facts(pair: _Pair, *, numbered: bool) -> AbstractSet[bytes]:
    """Return the hashes of what stands around the page and is neither its site's nor on the other one.

    If *numbered*, what differs in its numbers alone counts too.
    """
    own = _not_in(pair.here.texts, pair.there.texts)
    if numbered:
        own |= _not_in(pair.here.numbered, pair.there.numbered)
    own = pair.sites.own_texts(pair.host, own)
    return own.difference(map(text_hash, pair.text())) if own else own


def has_much_text(page: Page) -> bool:
    """Tell whether the text of *page* is more than a notice."""
    return page.fingerprint.weight >= LITTLE_TEXT_WEIGHT


def is_story(page: Page) -> bool:
    """Tell whether *page* has text and title enough to be known by them, whatever stands around: a clock, comments."""
    return has_much_text(page) and page.features is not None and titles.is_telling(page.features)


def own_clauses(texts: Sequence[str], said: Sequence[str], owner: PageFeatures | None) -> list[str]:
    """Return the clauses of *texts*, however light, that their owner neither *said* nor has around. O(characters)."""
    others = frozenset[bytes]() if owner is None else owner.texts
    names = [] if owner is None else [*titles.parts(owner.title), owner.heading]
    known = {*_clauses([*said, *names]), *_clauses([text for text in texts if text_hash(text)[:_STORED] in others])}
    return [clause for clause in dict.fromkeys(_clauses(texts)) if clause not in known]


def own_marks(texts: Sequence[str], said: Sequence[str]) -> list[str]:
    """Return what *texts* say by other marks or in another order than what was *said*. O(characters).

    Marks that clauses lose: "-5", "$40", "C++". And where all clauses are the same, light ones after others than there:
    "guilty" is said of somebody.
    """
    if "\n".join(texts) == "\n".join(said):
        return []
    ours, theirs = _marked(texts), _marked(said)
    marks: dict[str, set[str]] = {}
    new = [sentence for sentence in ours if sentence not in theirs]
    for sentence in theirs if new else ():
        marks.setdefault(_letters(sentence), set()).update(_MARKED.findall(sentence))
    own: list[str] = []
    for sentence in new if marks else ():
        known = marks.get(_letters(sentence))
        own += () if known is None else (mark for mark in _MARKED.findall(sentence) if mark not in known)
    here, there = _clauses(texts), _clauses(said)
    if here != there and sorted(here) == sorted(there):
        pairs = set(pairwise(there))
        light = [" ".join(p) for p in pairwise(here) if weight(p[1]) < MIN_CLAUSE_WEIGHT and p not in pairs]
        own += light if len(light) > 1 else []
    return own


def _marked(texts: Sequence[str]) -> dict[str, None]:
    return {s: None for text in texts if _MARKED.search(text) for s in sentences(text) if _MARKED.search(s)}


def _letters(sentence: str) -> str:
    return reduced(sentence).replace("\n", "")


def _not_in(here: AbstractSet[bytes], there: AbstractSet[bytes]) -> set[bytes]:
    return {text for text in here if text[:_STORED] not in there}


def _clauses(text: Sequence[str]) -> list[str]:
    return [*filter(None, reduced_once("\n".join(text)).split("\n"))]
