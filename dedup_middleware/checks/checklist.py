"""Defines the checks and the order in which they are made. Each is a pure function over a pair of pages."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from dedup_middleware.checks import naming
from dedup_middleware.checks.address import names_other
from dedup_middleware.checks.alignment import MIN_MOVED, Edit, differences, is_dated, is_label
from dedup_middleware.checks.pair import Pair
from dedup_middleware.extraction.features import MAX_TITLE, all_facts, text_hash
from dedup_middleware.fingerprints import fast_hash
from dedup_middleware.model import TEXT_LIMIT, Rejection
from dedup_middleware.reasons import Reason
from dedup_middleware.text import titles
from dedup_middleware.text.clauses import clauses, cut_to, portions, reduced_once, sentences, weight
from dedup_middleware.text.words import are_letters, differ_in_numbers, token_row, without_credits, without_links

if TYPE_CHECKING:
    from collections.abc import Iterable


Check: TypeAlias = Callable[[Pair], Rejection | None]

#: A page whose main text may be another one is a copy from this containment on.
DOUBTFUL_THRESHOLD = 0.95
#: A text lighter than this, in letters (200 Han characters), may be a notice or a wall that many URLs show.
LITTLE_TEXT_WEIGHT = 600
#: Share of the words of a page's title that the original must have in its names or its text.
SHARED_TITLE = 0.5
#: A passage of this weight, in letters (80 Han characters), that the original lacks is a part of another story.
MAX_OWN_PASSAGE = 250
#: The same at the end of the text, where a copy that was cut has nothing.
MAX_OWN_END = 150
# Words of a number with what belongs to it: "3.6 +", "about 12 km".
MAX_NUMBER = 3
# Characters of a line that a template adds to a text: "Ingredients", "Back to the newsroom".
_MAX_LABEL = 30
_has_digit = re.compile(r"\d").search


# --- any two pages


def doubtful(pair: Pair) -> Rejection | None:
    """Reject a page whose extracted text may not be its main text, unless the original contains nearly all of it."""
    is_doubtful = pair.page.is_doubtful and pair.score < DOUBTFUL_THRESHOLD
    return Rejection(Reason.UNCERTAIN_EXTRACTION) if is_doubtful else None


# --- pages of one site


def new_title(pair: Pair) -> Rejection | None:
    """Reject a page whose title or heading has words that the original has nowhere."""
    own = own_title(pair)
    return Rejection(Reason.OTHER_TITLE, tuple(own)) if own else None


def own_title(pair: Pair) -> list[str]:
    """Return the parts of the page's title and heading that neither the original has nor the site adds."""
    own = titles.own_parts(pair.here, pair.there, lambda: pair.text)
    own = [part for part in own if not pair.is_around_original(part)]
    # A title with all parts of the original's, version numbers apart, may add the site's.
    here, there = ({*map(titles.site_row, titles.parts(names.title))} for names in (pair.here, pair.there))
    return [part for part in own if not (here >= there and pair.names.has(pair.host, part))]


def new_facts(pair: Pair) -> Rejection | None:
    """Reject a page around whose text stand facts that the original has nowhere: a price, an amount, a number."""
    own = pair.here.facts - pair.there.facts
    is_own = own and not own <= set(map(fast_hash, all_facts(pair.text)))
    return Rejection(Reason.DIFFERENT_CONTEXT) if is_own else None


def new_address(pair: Pair) -> Rejection | None:
    """Reject a page with little text at another address: it may be a wall or a notice that many URLs show."""
    is_other = _has_little_text(pair) and not pair.is_same_address
    return Rejection(Reason.DIFFERENT_URL_SHORT_TEXT) if is_other else None


def _has_little_text(pair: Pair) -> bool:
    return pair.page.fingerprint.weight < LITTLE_TEXT_WEIGHT


def new_text(pair: Pair) -> Rejection | None:
    """Reject a page whose main text has words or symbols that the original has not at their place."""
    # Of equal letters, the digest has what is beyond the stored text.
    paragraphs = cut_to(pair.page.paragraphs, TEXT_LIMIT) if pair.has_same_letters else pair.page.paragraphs
    lines = (line for line in paragraphs if not (is_dated(line) or _is_boilerplate(line, pair)))
    edits = own_edits(lines, pair)
    if not edits:
        return None
    are_numbers = all(differ_in_numbers((edit.there, edit.here)) for edit in edits)
    reason = Reason.OTHER_NUMBERS if are_numbers else Reason.EXTRA_TEXT
    return Rejection(reason, tuple(dict.fromkeys(edit.sentence for edit in edits)))


def own_edits(lines: Iterable[str], pair: Pair) -> list[Edit]:
    """Return where *lines* have what the original has not at that place.

    Credits, words for a view and what stands around the original do not count.
    """
    lines = [line for line in without_credits(lines) if not _is_known(line, pair)]
    text = pair.text
    if pair.has_other_template:
        # A template has its own labels and its own way to show links.
        lines = [line for line in lines if len(line) >= _MAX_LABEL or not are_letters(reduced_once(line))]
        lines, text = ([*without_links(each)] for each in (lines, text))
    edits = differences(lines, text)
    # A sentence may have many.
    moved = {sentence for sentence in {edit.sentence for edit in edits} if _is_moved(sentence, pair)}
    return [edit for edit in edits if edit.sentence not in moved]


def _is_known(line: str, pair: Pair) -> bool:
    """Return whether a *line* of the page is no text of it: words for a view, a title, what is around the original."""
    if not titles.without_view(line) or pair.is_around_original(line):
        return True
    row = titles.row_of(line) if len(line) <= MAX_TITLE else ""
    return bool(row) and f" {row} " in pair.names_of_original


def _is_boilerplate(line: str, pair: Pair) -> bool:
    found = [pair.hash_clause(clause) for clause, weight in clauses(line) if weight]
    return bool(found) and pair.distinctive.isdisjoint(found)


def _is_moved(sentence: str, pair: Pair) -> bool:
    """Return whether the original has a *sentence* at another place: rows of a table are shorter."""
    return weight(sentence) >= MIN_MOVED and token_row([sentence]) in pair.row_of_original


# --- pages of two sites


def other_boilerplate(pair: Pair) -> Rejection | None:
    """Reject a page whose extracted text is boilerplate, such as a notice of its software, with other text around."""
    own = pair.own_context if pair.page.is_boilerplate else set()
    return Rejection(Reason.DIFFERENT_CONTEXT) if own and own.difference(map(text_hash, pair.text)) else None


def other_title(pair: Pair) -> Rejection | None:
    """Reject a page that has the original's title with other words in it, or another title over another text."""
    is_same, own = naming.other_words(pair.here, pair.there, lambda: pair.text, pair.is_around_original)
    if own:
        return Rejection(Reason.OTHER_TITLE, tuple(own))
    if is_same:
        return None
    names = naming.names_of(pair.here)
    name = titles.longest(names) if names else ""
    if _letters([name]) in _letters(pair.page.paragraphs):
        return None
    shared = titles.shared_terms([name], pair.there, list if pair.is_nearly else lambda: pair.text)
    return None if shared >= SHARED_TITLE else Rejection(Reason.OTHER_TITLE, (name,))


def _letters(texts: Iterable[str]) -> str:
    return "".join([reduced_once(portion).replace("\n", "") for portion in portions(texts)])


def replaced_words(pair: Pair) -> Rejection | None:
    """Reject a page with other numbers, names, values or negations in sentences that are nearly the original's."""
    if (found := pair.comparison) is None:
        return None if pair.has_same_text or _has_same_symbols(pair) else Rejection(Reason.NOT_COMPARED)
    # Where clauses match, a number must stand alone in the place of another one.
    numbers = [two for two in found.other_numbers if pair.is_nearly or _is_pair(two)]
    if numbers:
        return Rejection(Reason.OTHER_NUMBERS, _shown(numbers))
    if found.other_names:
        return Rejection(Reason.OTHER_NAMES, _shown(found.other_names))
    if others := (*found.other_units, *found.other_symbols):
        return Rejection(Reason.OTHER_NUMBERS, _shown(others))
    if found.other_slots:
        return Rejection(Reason.EXTRA_TEXT, _shown(found.other_slots))
    otherwise = found.negated or found.reordered
    return Rejection(Reason.EXTRA_TEXT, otherwise) if otherwise else None


def _has_same_symbols(pair: Pair) -> bool:
    """Return whether two texts have the same letters, and what is stored the same symbols. O(characters)."""
    if not pair.has_same_letters:
        return False
    # The digest of the letters has all characters beyond the stored text, which may be cut a word earlier.
    here, there = token_row(cut_to(pair.page.paragraphs, TEXT_LIMIT)).rstrip(), pair.row_of_original.rstrip()
    return here.startswith(there) or there.startswith(here)


def _is_pair(two: tuple[str, str]) -> bool:
    """Return whether one stands where the other does: both are short, or they differ in numbers only."""
    here, there = (each.split() for each in two)
    if len(here) == len(there):
        # Two dates: "2025 年 6 月 3", "2026 年 9 月 8".
        both = zip(here, there, strict=True)
        return len(here) <= MAX_NUMBER or all(a == b or all(map(_has_digit, (a, b))) for a, b in both)
    return max(len(here), len(there)) <= MAX_NUMBER and all(map(_has_digit, two))


def _shown(pairs: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    return tuple(f"{here} (not {there})" for there, here in pairs)


def new_passage(pair: Pair) -> Rejection | None:
    """Reject a page with a passage in one piece that neither the original has nor other sites."""
    weights = pair.page.fingerprint.weights
    if sum(map(weights.__getitem__, pair.distinctive - pair.shared)) < MAX_OWN_END:
        return None
    near, reworded = map(frozenset, (pair.comparison.near, pair.comparison.reworded) if pair.comparison else ((), ()))
    passage: list[str] = []
    run = 0
    for line in without_links(without_credits(pair.page.paragraphs)):
        if is_label(line):
            continue
        for sentence in sentences(line):
            for clause, clause_weight in clauses(sentence):
                clause_hash = pair.hash_clause(clause)
                if clause_hash in pair.shared or clause in near or sentence in reworded:
                    if run >= MAX_OWN_PASSAGE:
                        return Rejection(Reason.EXTRA_TEXT, tuple(passage))
                    run = 0
                    passage.clear()
                elif clause_hash in pair.distinctive:
                    run += clause_weight
                    passage.append(clause)
    return Rejection(Reason.EXTRA_TEXT, tuple(passage)) if run >= MAX_OWN_END else None


def other_content(pair: Pair) -> Rejection | None:
    """Reject a page of another address unless everything in its content is equal, and nothing names the difference."""
    here, there = pair.here, pair.there
    if names_other(here.named, pair.original.url) or names_other(there.named, pair.page.url):
        return Rejection(Reason.DIFFERENT_CONTEXT)
    # As written: "re-sign" is no "resign", and "1-10" no "11-0". The digest has the letters beyond the stored text.
    is_equal = pair.has_same_letters and [*cut_to(pair.page.paragraphs, TEXT_LIMIT)] == [*pair.text]
    if is_equal and here.content == there.content != b"" and here.facts == there.facts:
        return Rejection(Reason.DIFFERENT_URL_SHORT_TEXT) if _has_little_text(pair) else None
    return new_title(pair) or new_text(_without_equal_lines(pair)) or Rejection(Reason.DIFFERENT_CONTEXT)


def _without_equal_lines(pair: Pair) -> Pair:
    """Return *pair* with the lines that only one of both has: what differs is found there in a fifth of the time."""
    here, there = [*pair.page.paragraphs], [*pair.text]
    both = set(here).intersection(there)
    own, others = ([line for line in lines if line not in both] for lines in (here, there))
    return replace(pair, page=replace(pair.page, paragraphs=own), load_text=lambda: others)


# Quick checks first.
ONE_SITE: tuple[Check, ...] = (
    doubtful,
    new_title,
    new_facts,
    new_address,
    new_text,
)
OTHER_ADDRESS: tuple[Check, ...] = (other_content,)
BETWEEN_SITES: tuple[Check, ...] = (
    doubtful,
    other_boilerplate,
    other_title,
    replaced_words,
    new_passage,
)
#: For items that stand for a page each: they have no context.
ITEMS: tuple[Check, ...] = (replaced_words,)


def checks_for(pair: Pair, *, is_template: bool) -> tuple[Check, ...]:
    """Return the checks that apply to *pair*, in their order.

    *is_template*: pages that fill in one template are compared as pages of one site are, on different sites too.
    """
    if pair.are_items:
        return ITEMS
    if not pair.is_one_site:
        return ONE_SITE if is_template else BETWEEN_SITES
    return ONE_SITE if pair.is_same_address or pair.has_other_template else OTHER_ADDRESS


def first_rejection(pair: Pair, *, is_template: bool) -> Rejection | None:
    """Return the first rejection of *pair* by the `checks_for` it, or ``None`` for a copy."""
    for check in checks_for(pair, is_template=is_template):
        if (found := check(pair)) is not None:
            return found
    return None
