"""The second witness: what a page says for itself that its owner does not.

Law of this file: it is asked about pages whose text is their owner's, by clauses or word by word, and only objects.

One thought carries it. Between hosts a page is its story: reposts have other titles and other things around them. On
one host true copies (session ids, print views, other paths) say the same, letter by letter, and what differs is another
page: the flat on another floor, the branch in another street, the notice to another person.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote, urlsplit

from dedup_middleware import titles
from dedup_middleware.addresses import host_of
from dedup_middleware.editions import is_edition
from dedup_middleware.extraction.facts import text_hash
from dedup_middleware.model import Objection
from dedup_middleware.sayings import STORED_TEXT_BYTES as _STORED
from dedup_middleware.sayings import Surroundings
from dedup_middleware.text import MIN_CLAUSE_WEIGHT, reduced, sentences, weight
from dedup_middleware.words import split_words

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from collections.abc import Set as AbstractSet

    from dedup_middleware.model import Page, StoredPage
    from dedup_middleware.sites import Sites

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
# Of a part of a path: ";jsessionid=1", "(S(abc))".
_PARAMETERS = re.compile(r";[^/]*|\([^/]*\)")
_EXTENSION = re.compile(r"\.[a-z]{2,5}$", re.IGNORECASE)

ANOTHER_TITLE = "another title"
OWN_WORDS = "words of its own in the same text"
OWN_FACTS = "other facts around the same text"
ANOTHER_ADDRESS = "another address, and too little to tell both from"
EARLIER_VERSION = "an earlier version stored the owner without its title"


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
    if page.around is None or owner.source:
        return None
    same = page.fingerprint.letters != b"" and page.fingerprint.letters == owner.letters
    is_on_host = host_of(page.url) == host_of(owner.url)
    if owner.around is None:
        return Objection(EARLIER_VERSION) if is_on_host else None
    if not is_on_host:
        objected = _between_hosts(page, page.around, owner.around, text, sites, same=same, nearly=nearly)
        if objected is None and is_template:
            objected = _filled_in(page, page.around, owner.around, text, sites, same=same)
        return objected
    tells = is_story(page) and not is_template
    objected = _on_one_host(page, page.around, owner.around, text, sites, same=same, tells=tells)
    if objected is not None or tells:
        return objected
    if _own_facts(page, owner, text, sites):
        return Objection(OWN_FACTS)
    address = own_address(page.url, owner.url)
    return Objection(ANOTHER_ADDRESS, tuple(address)) if address else None


def _between_hosts(  # noqa: PLR0913 - the same
    page: Page,
    here: Surroundings,
    there: Surroundings,
    text: Callable[[], Sequence[str]],
    sites: Sites,
    *,
    same: bool,
    nearly: bool,
) -> Objection | None:
    if same and has_much_text(page) and not titles.is_telling(here):
        return None  # a whole text of some length needs no title that tells more than "Copy"
    called = sites.own_parts(host_of(page.url), here)
    # Unless the site's part is known, the longer one is taken for the page's.
    own = [titles.longest(called)] if called else []
    shared = titles.shared_terms(own, there, text)
    if nearly and shared < 1:
        # Two reports of one event are called by words that stand in both.
        shared = min(shared, titles.shared_terms(own, there, list))
    if shared < (SHARED_TITLE_NEARLY if nearly else SHARED_TITLE):
        return Objection(ANOTHER_TITLE, tuple(own))
    return None


def _filled_in(  # noqa: PLR0913 - the same
    page: Page, here: Surroundings, there: Surroundings, text: Callable[[], Sequence[str]], sites: Sites, *, same: bool
) -> Objection | None:
    """Return what *page* says and the owner of a template, on another host, does not."""
    called = sites.own_parts(host_of(page.url), here)
    said = titles.in_a_row([there.title, there.heading, *text()])
    own = [part for part in called if not titles.says(said, part)]
    if own:
        return Objection(ANOTHER_TITLE, tuple(own))
    own = own_marks(page.paragraphs, text()) or ([] if same else own_clauses(page.paragraphs, text(), there))
    if own:
        return Objection(OWN_WORDS, tuple(own))
    # Much of it is its site's, until that is known: then a copy is delivered.
    facts = sites.own_texts(host_of(page.url), _not_in(here.texts, there.texts)).difference(map(text_hash, text()))
    return Objection(OWN_FACTS) if facts else None


def _on_one_host(  # noqa: PLR0913 - the same
    page: Page,
    here: Surroundings,
    there: Surroundings,
    text: Callable[[], Sequence[str]],
    sites: Sites,
    *,
    same: bool,
    tells: bool,
) -> Objection | None:
    own = titles.own_parts(here, there, text)
    if own:
        # The very story under its title and the site's, where the owner's had its own only.
        called = sites.own_parts(host_of(page.url), here)
        if not (same and tells and titles.in_a_row(called) == titles.in_a_row([there.title])):
            return Objection(ANOTHER_TITLE, tuple(own))
    marks = own_marks(page.paragraphs, text())
    if marks:
        return Objection(OWN_WORDS, tuple(marks))
    own = [] if same else own_clauses(page.paragraphs, text(), there)
    if own and not (tells and titles.is_called_alike(here, there) and is_edition(page.paragraphs, text())):
        return Objection(OWN_WORDS, tuple(own))
    return None


def has_much_text(page: Page) -> bool:
    """Tell whether the text of *page* is more than a notice."""
    return page.fingerprint.weight >= LITTLE_TEXT_WEIGHT


def is_story(page: Page) -> bool:
    """Tell whether *page* has text and title enough to be known by them, whatever stands around: a clock, comments."""
    return has_much_text(page) and page.around is not None and titles.is_telling(page.around)


def own_clauses(texts: Sequence[str], said: Sequence[str], owner: Surroundings | None) -> list[str]:
    """Return the clauses of *texts*, however light, that their owner neither *said* nor has around. O(characters)."""
    around = frozenset[bytes]() if owner is None else owner.texts
    names = [] if owner is None else [*titles.parts(owner.title), owner.heading]
    known = {*_clauses([*said, *names]), *_clauses([text for text in texts if text_hash(text)[:_STORED] in around])}
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


def _own_facts(page: Page, owner: StoredPage, text: Callable[[], Sequence[str]], sites: Sites) -> AbstractSet[bytes]:
    """Return the hashes of what stands around *page* and is neither the site's nor on its owner's page.

    Numbers count unless the address is the owner's with something added: there it is a counter or a clock.
    """
    here, there = page.around or Surroundings(), owner.around or Surroundings()
    own = _not_in(here.texts, there.texts)
    if not is_same_address(page.url, owner.url):
        own |= _not_in(here.numbered, there.numbered)
    own = sites.own_texts(host_of(page.url), own)
    return own.difference(map(text_hash, text())) if own else own


def _not_in(here: AbstractSet[bytes], there: AbstractSet[bytes]) -> set[bytes]:
    return {text for text in here if text[:_STORED] not in there}


def is_same_address(url: str, owner: str) -> bool:
    """Tell whether one of the two is the other with something added to its query: a session, a mark of a campaign."""
    here, there = urlsplit(url), urlsplit(owner)
    first, second = (Counter(parse_qsl(parts.query, keep_blank_values=True)) for parts in (here, there))
    return here.path == there.path and (first <= second or second <= first)


def has_other_parameter(url: str, owner: str) -> bool:
    """Tell whether both give one parameter of their queries other values: ``?id=1`` and ``?id=2``."""
    here, there = (dict(parse_qsl(urlsplit(each).query, keep_blank_values=True)) for each in (url, owner))
    return any(there.get(name, value) != value for name, value in here.items())


def own_address(url: str, owner: str) -> list[str]:
    """Return what the path of *url* names that *owner* nowhere does: its numbers, and the words of its last part.

    A print view is named as its story is, somewhere else; another notice has another number or name.
    """
    path, there = _path_words(url), _path_words(owner)
    last = path[-1] if path else []
    named = [*last, *(word for part in path for word in part if word.isdigit())]
    return [word for word in dict.fromkeys(named) if not any(word in part for part in there)]


def _path_words(url: str) -> list[list[str]]:
    path = _EXTENSION.sub("", _PARAMETERS.sub("", unquote(urlsplit(url).path)))
    words = [found for part in path.split("/") if (found := split_words(part))]
    return words[:-1] if words and words[-1] in (["index"], ["default"]) else words


def _clauses(text: Sequence[str]) -> list[str]:
    return [*filter(None, reduced("\n".join(text)).split("\n"))]
