"""Checks two pages of one site: a copy adds nothing.

Session ids, print views and other paths to a page show what the page shows. What a page adds in its title, its text or
the facts around it makes it another page: the flat on another floor, the shirt in another colour, the thread with one
more answer. What it leaves out does not matter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dedup_middleware.checks.addresses import is_same_address, own_address
from dedup_middleware.checks.own_content import moved_clauses, own_clauses, own_symbols
from dedup_middleware.extraction.features import fact_hash, text_hash
from dedup_middleware.features import STORED_TEXT_BYTES, PageFeatures
from dedup_middleware.model import Rejection
from dedup_middleware.reasons import Reason
from dedup_middleware.text import titles
from dedup_middleware.text.clauses import reduced_once
from dedup_middleware.text.credits import without_credits, without_links
from dedup_middleware.text.facts import all_facts

if TYPE_CHECKING:
    from dedup_middleware.checks.pair import Pair

#: A text lighter than this, in letters (200 Han characters), may be a notice or a wall that many URLs show.
LITTLE_TEXT_WEIGHT = 600
# Characters of a line that a template adds to a text: "Ingredients", "Back to the newsroom".
_MAX_LABEL = 30


def title(pair: Pair) -> Rejection | None:
    """Reject a page whose title or heading has words that the original has nowhere."""
    own = own_title(pair)
    return Rejection(Reason.ANOTHER_TITLE, tuple(own)) if own else None


def own_title(pair: Pair) -> list[str]:
    """Return the parts of the page's title and heading that neither the original has nor the site adds."""
    own = titles.own_parts(pair.here, pair.there, lambda: pair.text)
    own = [part for part in own if not pair.is_around_original(part)]
    if own and _names_all(pair):
        own = [part for part in own if not pair.sites.has_part(pair.host, titles.site_row(part))]
    return own


def _names_all(pair: Pair) -> bool:
    """Return whether the title has all parts of the original's, version numbers apart: it may add the site's."""
    here = set(map(titles.site_row, titles.parts(pair.here.title)))
    return here.issuperset(map(titles.site_row, titles.parts(pair.there.title)))


def facts(pair: Pair) -> Rejection | None:
    """Reject a page around whose text stand facts that the original has nowhere: a price, an amount, a number."""
    own = pair.sites.own_texts(pair.host, pair.here.facts - pair.there.facts)
    if own:
        own -= set(map(fact_hash, all_facts(pair.text)))
    return Rejection(Reason.OWN_FACTS) if own else None


def context(pair: Pair) -> Rejection | None:
    """Reject a page with other words around its text than the original, in the same template.

    One line in the place of another is what a template was filled in with: a town, a colour. More are comments, teasers
    and clocks, which differ from one fetch to the next, and count only around a text with little of its own.
    """
    if pair.has_other_template:
        return None
    own = pair.own_context - _hashes_of_names(pair.here)
    if own:
        own -= set(map(text_hash, pair.text))
    if not own:
        return None
    missing = pair.there.texts - pair.here.stored().texts
    missing -= {name[:STORED_TEXT_BYTES] for name in _hashes_of_names(pair.there)}
    is_filled_in = len(own) == len(missing) == 1
    is_own = is_filled_in or (_has_little_text(pair) and pair.sites.own_texts(pair.host, own))
    return Rejection(Reason.OWN_FACTS) if is_own else None


def _hashes_of_names(features: PageFeatures) -> frozenset[bytes]:
    return frozenset(map(text_hash, [features.title, features.heading, *titles.parts(features.title)]))


def address(pair: Pair) -> Rejection | None:
    """Reject a page with little text whose URL has a number or a name that the URL of the original lacks.

    A part of the original's text is not a wall that both pages show.
    """
    if not _has_little_text(pair) or pair.is_part or is_same_address(pair.page.url, pair.original.url):
        return None
    own = own_address(pair.page.url, pair.original.url)
    return Rejection(Reason.ANOTHER_ADDRESS, tuple(own)) if own else None


def text(pair: Pair) -> Rejection | None:
    """Reject a page whose main text has words or symbols that the original has nowhere."""
    if own := own_symbols(pair.page.paragraphs, pair.text, replaced=pair.has_other_template):
        return Rejection(Reason.OWN_WORDS, tuple(own))
    if pair.has_same_letters:
        return None
    lines = [line for line in without_credits(pair.page.paragraphs) if titles.without_view(line)]
    known = [*pair.text, *without_credits(pair.text), *titles.parts(pair.there.title), pair.there.heading]
    known += filter(pair.is_around_original, pair.page.paragraphs)
    if pair.has_other_template:
        # A template has its own labels and its own way to show links.
        lines = [*without_links(line for line in lines if len(line) >= _MAX_LABEL or not reduced_once(line).isalpha())]
        known += [*without_links(known)]
    own = own_clauses(lines, known, lambda clause: pair.hash_clause(clause) in pair.original.hashes)
    own = own or moved_clauses(lines, pair.text)
    return Rejection(Reason.OWN_WORDS, tuple(own)) if own else None


def _has_little_text(pair: Pair) -> bool:
    return pair.page.fingerprint.weight < LITTLE_TEXT_WEIGHT
