"""Defines the checks and the order in which they are made. Each is a pure function over a pair of pages."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

from dedup_middleware.budget import budget_of
from dedup_middleware.checks import naming
from dedup_middleware.checks.address import names_other
from dedup_middleware.checks.alignment import is_dated, is_label
from dedup_middleware.checks.pair import Pair
from dedup_middleware.extraction.features import all_facts, text_hash
from dedup_middleware.fingerprints import fast_hash
from dedup_middleware.model import STORED_TEXT_BYTES, PageFeatures, Rejection
from dedup_middleware.reasons import Reason
from dedup_middleware.text import titles
from dedup_middleware.text.clauses import MIN_CLAUSE_WEIGHT, clauses, portions, reduced_once, sentences, weight
from dedup_middleware.text.titles import row_of_all
from dedup_middleware.text.words import SIGNS, without_credits, without_links

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from collections.abc import Set as AbstractSet

    from dedup_middleware.model import Fingerprint, StoredPage

Check: TypeAlias = Callable[[Pair], Rejection | None]

#: A page whose main text may be another one is a copy from this containment on.
DOUBTFUL_THRESHOLD = 0.95
#: A text lighter than this, in letters (200 Han characters), may be a notice or a wall that many URLs show.
LITTLE_TEXT_WEIGHT = 600
#: Share of the words of a page's title that the original must have in its names or its text.
SHARED_TITLE = 0.5
#: A passage of this weight, in letters (80 Han characters), that the original lacks is a part of another story.
MAX_OWN_PASSAGE = 250
# Characters of a line that a template adds to a text: "Ingredients", "Back to the newsroom".
_MAX_LABEL = 30
_has_digit = re.compile(r"\d").search
# Four digits that are not a year: a text that has these somewhere has the same number.
_LONG_NUMBER = re.compile(r"(?<!\d)(?!(?:19|20)\d\d(?!\d))\d{4,}")


# --- what one text contains and another one does not


# Symbols that clauses lose and that carry meaning: signs, currencies, check marks, arrows, suits, emoji, "&&", "C++".
# Bullets, quotes, dashes and other punctuation are typography.
# The first class of each pattern has all that a symbol can begin with: `re` is six times as fast then.
_SIGNS = SIGNS
_IS_SYMBOL = rf"(?<=[{_SIGNS}])|(?<=[-\u2013])(?<!\w.)(?=\d)|(?<=[:(]\s-)(?=\s)|(?<=[A-Za-z]-)(?!\w)"
# Only the first of several digits can be where a number begins: at each of them, it would be quadratic.
_IS_NUMBER = r"(?<=\d)(?<!\d\d)\d*(?:(?:[.:]\d+)+|,\d\d?(?!\d))"
_SYMBOL = re.compile(rf"[{_SIGNS}\-\u2013\d](?:{_IS_SYMBOL}|{_IS_NUMBER})")
symbols_of = re.compile(rf"[{_SIGNS}\-\u2013](?:{_IS_SYMBOL})").findall

_MINUS = "-\u2212\u2013"
_HAS_WORDS = re.compile(r"[^\W_]").search

#: Clauses that are found before a text counts as another one: more than a record shows.
MAX_FOUND = 8


def own_clauses(
    texts: Sequence[str], original: Iterable[str], has: Callable[[str], bool] = lambda _: False
) -> list[str]:
    """Return the first clauses of *texts*, however light, that *original* lacks, reduced. O(characters).

    *has* returns whether the original has a clause by other evidence than its text.
    """
    original = [*original]
    known = frozenset(_clauses(original))
    own = [clause for clause in dict.fromkeys(_clauses(texts)) if clause not in known and not has(clause)]
    return not_contained(own, texts, original)


def not_contained(some: Iterable[str], texts: Sequence[str], original: Iterable[str]) -> list[str]:
    """Return the first of *some* clauses of *texts* whose sentence *original* does not contain, word by word.

    Another template may break lines elsewhere, and so clauses too.
    """
    left = dict.fromkeys(some)
    row = row_of_all(original) if left else ""
    found: list[str] = []
    for sentence in (sentence for text in (texts if left else ()) for sentence in sentences(text)):
        here = [clause for clause in reduced_once(sentence).split("\n") if clause in left]
        if here and row_of_all([sentence]) not in row:
            found += here
        for clause in here:
            left.pop(clause, None)
        if not left or len(found) >= MAX_FOUND:
            break
    return [*dict.fromkeys(found or left)]


def moved_clauses(texts: Sequence[str], original: Sequence[str]) -> list[str]:
    """Return the light clauses of *texts* that follow another one than in *original*, which has the same clauses.

    "Guilty" is said of the name before it. O(characters).
    """
    here, there = [*_clauses(texts)], [*_clauses(original)]
    if here == there or len(here) != len(there) or sorted(here) != sorted(there):
        return []
    pairs = set(pairwise(there))
    light = [" ".join(two) for two in pairwise(here) if weight(two[1]) < MIN_CLAUSE_WEIGHT and two not in pairs]
    return light if len(light) > 1 else []


def own_symbols(texts: Sequence[str], original: Sequence[str], *, replaced: bool = False) -> list[str]:
    """Return the symbols and signed numbers of *texts* that *original* lacks beside the same words. O(characters).

    *replaced*: only those in whose place the original has others. A number without the sign that it has there is
    another one, and so is a grade.
    """
    own = _own_symbols(texts, original, replaced=replaced)
    return own or [symbol for symbol in _own_symbols(original, texts, replaced=False) if symbol in _MINUS]


def _own_symbols(texts: Sequence[str], original: Sequence[str], *, replaced: bool) -> list[str]:
    ours = _symbols_by_sentence(texts, frozenset(original))
    theirs = _symbols_by_sentence(original) if ours else {}
    new = [pair for pair in ours if pair not in theirs]
    if not new:
        return []
    known: dict[str, list[str]] = {}
    for sentence, symbols in theirs:
        known.setdefault(letters_of([sentence]), []).extend(symbols)
    own: list[str] = []
    letters = letters_of(original)
    budget = budget_of(original)
    for sentence, symbols in new:
        budget.check_time()
        # Another sentence is other words, see `own_clauses`.
        same = letters_of([sentence])
        left = Counter(known.get(same, () if same in letters else symbols))
        missing = Counter(symbols) - left
        own += missing.elements() if left - Counter(symbols) or not replaced else []
    return own


def _symbols_by_sentence(
    texts: Iterable[str], known: AbstractSet[str] = frozenset()
) -> dict[tuple[str, tuple[str, ...]], None]:
    """Return the sentences of *texts* that have symbols, with these; those of *known* texts are left out.

    A symbol by itself belongs to the sentence or the text before it.
    """
    found: dict[tuple[str, tuple[str, ...]], None] = {}
    before = ""
    for text in texts:
        if not _HAS_WORDS(text):
            found["".join(sentences(before)[-1:]), tuple(text)] = None
            continue
        if text not in known and _SYMBOL.search(text):
            label = before
            for sentence in sentences(text):
                symbols = [*sentence]
                if _HAS_WORDS(sentence):
                    label, symbols = sentence, _SYMBOL.findall(unicodedata.normalize("NFKC", sentence))
                    symbols = ["-" if symbol in _MINUS else symbol for symbol in symbols]
                if symbols:
                    found[label, tuple(symbols)] = None
        before = text
    return found


def letters_of(texts: Iterable[str]) -> str:
    """Return the letters and digits of *texts* in one run, folded. O(characters)."""
    return "".join([reduced_once(portion).replace("\n", "") for portion in portions(texts)])


def _clauses(texts: Iterable[str]) -> Iterator[str]:
    for portion in portions(texts):
        yield from filter(None, reduced_once(portion).split("\n"))


# --- any two pages


def doubtful(pair: Pair) -> Rejection | None:
    """Reject a page whose extracted text may not be its main text, unless the original contains nearly all of it."""
    is_doubtful = pair.page.is_doubtful and pair.score < DOUBTFUL_THRESHOLD
    return Rejection(Reason.UNCERTAIN_EXTRACTION) if is_doubtful else None


def other_numbers(pair: Pair) -> Rejection | None:
    """Reject a page with a clause that the original has with other digits."""
    others = renumbered(pair.page.fingerprint, pair.original)
    if not others:
        return None
    lines = [line for line in pair.page.paragraphs if not pair.is_around_original(line)]
    own = not_in_text(others, budget_of(pair.page.paragraphs).watched(lines), pair.text, pair.hash_clause)
    return Rejection(Reason.OTHER_NUMBERS, own) if own else None


def renumbered(
    fingerprint: Fingerprint, original: StoredPage, known: AbstractSet[bytes] = frozenset()
) -> AbstractSet[bytes]:
    """Return the hashes of clauses that *original* has with other digits only, but for those *known*."""
    return {
        clause_hash
        for clause_hash, masked in fingerprint.masked_hashes.items()
        if masked in original.masked_hashes and clause_hash not in original.hashes and clause_hash not in known
    }


def not_in_text(
    hashes: AbstractSet[bytes], paragraphs: Sequence[str], text: Sequence[str], hash_clause: Callable[[str], bytes]
) -> tuple[str, ...]:
    """Return the clauses of *paragraphs* with these *hashes* whose numbers *text* has nowhere. O(characters)."""
    numbers = set(_LONG_NUMBER.findall(reduced_once("\n".join(text))))
    found = [clause for each in portions(paragraphs) for clause, _ in clauses(each) if hash_clause(clause) in hashes]
    others = [clause for clause in found if numbers.isdisjoint(_LONG_NUMBER.findall(clause))]
    return tuple(not_contained(others, paragraphs, text))


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
    if here >= there:
        own = [part for part in own if not pair.sites.has(pair.host, titles.site_row(part))]
    return own


def new_facts(pair: Pair) -> Rejection | None:
    """Reject a page around whose text stand facts that the original has nowhere: a price, an amount, a number."""
    own = pair.sites.own_texts(pair.host, pair.here.facts - pair.there.facts)
    if own:
        own -= set(map(fast_hash, all_facts(pair.text)))
    return Rejection(Reason.DIFFERENT_CONTEXT) if own else None


def new_context(pair: Pair) -> Rejection | None:
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
    return Rejection(Reason.DIFFERENT_CONTEXT) if is_own else None


def _hashes_of_names(features: PageFeatures) -> frozenset[bytes]:
    return frozenset(map(text_hash, [features.title, features.heading, *titles.parts(features.title)]))


def new_address(pair: Pair) -> Rejection | None:
    """Reject a page with little text at another address: it may be a wall or a notice that many URLs show."""
    is_other = _has_little_text(pair) and not pair.is_same_address
    return Rejection(Reason.DIFFERENT_URL_SHORT_TEXT) if is_other else None


def _has_little_text(pair: Pair) -> bool:
    return pair.page.fingerprint.weight < LITTLE_TEXT_WEIGHT


def new_text(pair: Pair) -> Rejection | None:
    """Reject a page whose main text has words or symbols that the original has nowhere."""
    if own := own_symbols(pair.page.paragraphs, pair.text, replaced=pair.has_other_template):
        return Rejection(Reason.EXTRA_TEXT, tuple(own))
    if pair.has_same_letters:
        return _other_signs(pair)
    lines: Sequence[str] = [
        line for line in without_credits(pair.page.paragraphs) if titles.without_view(line) and not is_dated(line)
    ]
    known = [*pair.text, *without_credits(pair.text), *titles.parts(pair.there.title), pair.there.heading]
    known += filter(pair.is_around_original, pair.page.paragraphs)
    if pair.has_other_template:
        # A template has its own labels and its own way to show links.
        lines = [*without_links(line for line in lines if len(line) >= _MAX_LABEL or not reduced_once(line).isalpha())]
        known += [*without_links(known)]
    lines = budget_of(pair.page.paragraphs).watched(lines)
    weights, common = pair.page.fingerprint.weights, pair.original.hashes

    def has(clause: str) -> bool:
        clause_hash = pair.hash_clause(clause)
        return clause_hash in common or (clause_hash in weights and clause_hash not in pair.distinctive)

    own = own_clauses(lines, known, has)
    own = own or moved_clauses(lines, pair.text)
    return Rejection(Reason.EXTRA_TEXT, tuple(own)) if own else None


# --- pages of two sites


def other_boilerplate(pair: Pair) -> Rejection | None:
    """Reject a page whose extracted text is boilerplate, such as a notice of its software, with other text around."""
    own = pair.sites.own_texts(pair.host, pair.own_context) if pair.page.is_boilerplate else set()
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
    if letters_of([name]) in letters_of(pair.page.paragraphs):
        return None
    shared = titles.shared_terms([name], pair.there, list if pair.is_nearly else lambda: pair.text)
    return None if shared >= SHARED_TITLE else Rejection(Reason.OTHER_TITLE, (name,))


def replaced_words(pair: Pair) -> Rejection | None:
    """Reject a page with other numbers, names or negations in sentences that are nearly the original's."""
    if (found := pair.comparison) is None:
        return None
    # Where clauses match, a number must stand alone in the place of another one.
    numbers = [two for two in found.other_numbers if pair.is_nearly or _is_pair(two)]
    if numbers:
        return Rejection(Reason.OTHER_NUMBERS, _shown(numbers))
    if found.other_names:
        return Rejection(Reason.OTHER_NAMES, _shown(found.other_names))
    if found.other_units:
        return Rejection(Reason.OTHER_NUMBERS, _shown(found.other_units))
    return Rejection(Reason.EXTRA_TEXT, found.negated) if found.negated else None


def _is_pair(two: tuple[str, str]) -> bool:
    """Return whether both are numbers, or a letter each after the same word."""
    words = [each.split() for each in two]
    return "".join(two).replace(" ", "").isdigit() or (len(words[0]) == len(words[1]) and not any(map(_has_digit, two)))


def _shown(pairs: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    return tuple(f"{here} (not {there})" for there, here in pairs)


def new_symbols(pair: Pair) -> Rejection | None:
    """Reject a page that has other symbols in the sentences of the original."""
    own = own_symbols(pair.page.paragraphs, pair.text, replaced=True)
    return Rejection(Reason.EXTRA_TEXT, tuple(own)) if own else None


def new_passage(pair: Pair) -> Rejection | None:
    """Reject a page with a passage in one piece that neither the original has nor other sites."""
    weights = pair.page.fingerprint.weights
    if sum(map(weights.__getitem__, pair.distinctive - pair.shared)) < MAX_OWN_PASSAGE:
        return None
    near, reworded = map(frozenset, (pair.comparison.near, pair.comparison.reworded) if pair.comparison else ((), ()))
    passage: list[str] = []
    run = last = 0
    for line in without_links(without_credits(pair.page.paragraphs)):
        if is_label(line):
            continue
        last = 0
        for sentence in sentences(line):
            for clause, clause_weight in clauses(sentence):
                clause_hash = pair.hash_clause(clause)
                if clause_hash in pair.shared or clause in near or sentence in reworded:
                    if run >= MAX_OWN_PASSAGE:
                        return Rejection(Reason.EXTRA_TEXT, tuple(passage))
                    run = last = 0
                    passage.clear()
                elif clause_hash in pair.distinctive:
                    run, last = run + clause_weight, last + clause_weight
                    passage.append(clause)
        # What follows the whole text, in short paragraphs, may be comments.
        if last >= MAX_OWN_PASSAGE:
            return Rejection(Reason.EXTRA_TEXT, tuple(passage))
    return None


def other_content(pair: Pair) -> Rejection | None:
    """Reject a page of another address unless everything in its content is equal, and nothing names the difference."""
    here, there = pair.here, pair.there
    if names_other(here.named, pair.original.url) or names_other(there.named, pair.page.url):
        return Rejection(Reason.DIFFERENT_CONTEXT)
    if not pair.has_same_letters:
        return other_numbers(pair) or new_title(pair) or new_text(pair) or Rejection(Reason.DIFFERENT_CONTEXT)
    if not here.content or here.content != there.content or here.facts != there.facts:
        return new_title(pair) or Rejection(Reason.DIFFERENT_CONTEXT)
    if _has_little_text(pair):
        return Rejection(Reason.DIFFERENT_URL_SHORT_TEXT)
    return None if [*pair.page.paragraphs] == [*pair.text] else _other_signs(pair)


def _other_signs(pair: Pair) -> Rejection | None:
    """Reject a page with the letters and digits of the original, and other symbols or units."""
    own = own_symbols(pair.page.paragraphs, pair.text) or own_units(pair.page.paragraphs, pair.text)
    return Rejection(Reason.EXTRA_TEXT, tuple(own)) if own else None


# What stands right after a number, where a capital carries meaning: "5 mW", "5 MW".
_UNIT = re.compile(r"(?<=\d)[ \u00a0\u202f]?([A-Za-zµμ]{2,3})(?![A-Za-z])")


def own_units(texts: Iterable[str], original: Iterable[str]) -> list[str]:
    """Return the units in *texts* that *original* has with other capitals only. O(characters)."""
    here, there = (set(_UNIT.findall("\n".join(lines))) for lines in (texts, original))
    folded_there = {unit.lower() for unit in there}
    is_mixed = any(not (unit.isupper() or unit.islower()) for unit in here ^ there)
    return sorted(unit for unit in here - there if is_mixed and unit.lower() in folded_there)


# Quick checks first.
ONE_SITE: tuple[Check, ...] = (
    doubtful,
    other_numbers,
    new_title,
    new_facts,
    new_context,
    new_address,
    new_text,
)
OTHER_ADDRESS: tuple[Check, ...] = (other_content,)
BETWEEN_SITES: tuple[Check, ...] = (
    doubtful,
    other_boilerplate,
    other_numbers,
    other_title,
    replaced_words,
    new_symbols,
    new_passage,
)
#: For items that stand for a page each: they have no context.
ITEMS: tuple[Check, ...] = (other_numbers, replaced_words, new_symbols)


def first_rejection(pair: Pair, *, is_template: bool) -> Rejection | None:
    """Return the first rejection of *pair* by the checks that apply to it, or ``None`` for a copy.

    *is_template*: pages that fill in one template are compared as pages of one site are, on different sites too.
    """
    if pair.are_items:
        checks = ITEMS
    elif not pair.is_one_site:
        checks = ONE_SITE if is_template else BETWEEN_SITES
    else:
        checks = ONE_SITE if pair.is_same_address or pair.has_other_template else OTHER_ADDRESS
    for check in checks:
        if (found := check(pair)) is not None:
            return found
    return None
