"""Aligns two texts word by word.

Small edits break many clauses (a word changed in each sentence, characters misread, other punctuation), so that two
copies share few of them; and reports made from one template share nearly all clauses and have other names. Both show
once the words are aligned.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from itertools import filterfalse, groupby, islice
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from rapidfuzz.distance import Indel

from dedup_middleware.text.clauses import (
    MONTHS,
    clauses,
    folded,
    plain,
    portions,
    reduced_once,
    sentences,
    significant_clauses,
    weight,
)
from dedup_middleware.text.words import (
    LONG_WORD,
    MINUS,
    SAME_WORD,
    are_letters,
    differ_in_numbers,
    is_symbol,
    is_unspaced,
    likeness,
    may_be_slip,
    numbers_in,
    split_words,
    tokens,
    words_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from typing import TypeAlias

    from rapidfuzz.distance import MatchingBlock

    from dedup_middleware.text.words import Replacement

    _Word: TypeAlias = "tuple[_Sentence, str]"

#: A sentence of which at least this share is aligned with the other text is nearly contained in it.
NEAR = 0.85
#: From this share on it is the same sentence, and a name or a number that differs is another one.
ALIKE = 0.7
#: From this share on, the letters that different words have in common count as aligned.
SOME_LETTERS = 0.5
#: A prefilter. With less of a text than this in clauses of which the other one has a third, it is another story: copies
#: edited or misread all over have two thirds and more.
MIN_IN_PIECES = 0.5
#: Where this many times as many ordinary words are misspelt as names, the names are misspelt too.
NOISE = 2
#: Longer texts should not be compared: what a store keeps of the other one by default is a fifth of it.
MAX_CHARACTERS = 100_000
# Marks a sentence that both texts have, which is aligned as one word.
_WHOLE = "\0"
#: Letters of a line by itself: a price, a name, a label.
MAX_LINE = 60
#: A sentence of this weight shows its place in the original, wherever it stands. Rows of a table are lighter.
MIN_MOVED = 60
#: Words of a name: "Acme", "Maria van der Berg".
MAX_NAME = 4
#: Letters of a unit: "kWh".
MAX_UNIT = 3
#: Letters of a value in a slot, "part time", and slots; a text in which more is replaced has been edited.
MAX_SLOT, MAX_SLOTS = 20, 2
#: Words of a negation: "does not have".
MAX_NEGATION = 3
#: Words of each text that are aligned: the time is their product, 20 ms for these.
MAX_WORDS = 8_000
_NEGATIONS = """not no never cannot isn wasn aren weren don doesn didn wouldn couldn shouldn hasn haven hadn t
    nicht kein keine keinen nie ne pas jamais non nunca не нет 不 没 沒 未 无 無 勿"""
#: English (with what is left of "isn't"), German, French, Spanish, Italian, Russian and Chinese.
NEGATIONS = frozenset(_NEGATIONS.split())
_AUXILIARIES = "do does did has have had is are was were be will would longer"
_NEGATED = NEGATIONS.union(_AUXILIARIES.split())
# Words in a row that show where in the original a sentence belongs.
_ANCHOR = 3
_HIRAGANA = re.compile("[\u3040-\u309f]+")
_LETTER = re.compile(r"[A-Z]|[IVX]{1,4}")
_DATED = re.compile(rf"(?:19|20)\d\d ?[-/.年] ?\d|\d ?[月日]|{MONTHS}")
# A sentence with a larger share of capitalised words is a headline, or shouted: capitals do not mark names there.
_HEADLINE = 0.6


class Edit(NamedTuple):
    """A place where the page has other words, or more, than the original."""

    here: tuple[str, ...]
    """The page's words and symbols, as written; empty where a sentence of the page has less than the original's."""
    there: tuple[str, ...]
    """Those of the original in their place."""
    sentence: str
    """The sentence of the page, as written."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of comparing a page with another text, its original."""

    containment: float
    """Share of the page's weight that the original contains, in the same or nearly the same words, 0-1."""
    near: tuple[str, ...] = ()
    """The page's clauses that the original contains nearly but not exactly, reduced."""
    other_numbers: tuple[tuple[str, str], ...] = ()
    """Pairs of words of the original and of the page, in nearly the same sentences, whose numbers differ."""
    other_names: tuple[tuple[str, str], ...] = ()
    """Pairs of other names, as above. With either, the page is not a duplicate at any containment."""
    negated: tuple[str, ...] = ()
    """The page's sentences, nearly the original's, of which one is negated and the other is not."""
    reworded: tuple[str, ...] = ()
    """The page's sentences that are aligned with the original for the most part."""
    other_units: tuple[tuple[str, str], ...] = ()
    """Pairs of units, after a number, that differ in some capitals only."""
    other_symbols: tuple[tuple[str, str], ...] = ()
    """Symbols, in nearly the same sentences, in whose place the original has others; the sign of a number."""
    other_slots: tuple[tuple[str, str], ...] = ()
    """Pairs of other words, where no more than these are replaced: values in two texts that are equal otherwise."""
    reordered: tuple[str, ...] = ()
    """The page's sentences that have the original's words in another order: "Dog bites man"."""
    edits: tuple[Edit, ...] = field(default=(), compare=False, repr=False)
    """Where the page has what the original has not at that place, in reading order."""


@dataclass(slots=True, eq=False)
class _Sentence:
    """A sentence of the page."""

    text: str
    words: list[str]
    """Its words and symbols, as written; of a sentence that both have the text alone."""
    is_shared: bool = False
    missing: dict[str, int] = field(default_factory=dict)
    """Its clauses that the original lacks in the same words, with their weights."""
    aligned: float = 0.0
    """The weight of the words that are aligned with the original."""
    replaced: list[Replacement] = field(default_factory=list)
    numbers: list[Replacement] = field(default_factory=list)
    """The replacements that are other numbers."""
    is_negated: bool = False
    """Whether it has a negation that the original lacks, or the reverse."""

    def is_aligned(self, share: float) -> bool:
        return self.aligned >= share * weight("".join(filterfalse(is_symbol, self.words)).casefold())


def is_label(line: str) -> bool:
    """Return whether *line* stands by itself, such as a price, a name or a date, and is no sentence of a text."""
    return len(line) <= MAX_LINE and line[-1:] not in '.!?。！？…"”'


def is_dated(line: str) -> bool:
    """Return whether *line* stands by itself and has a date: reposts are published on another day."""
    return is_label(line) and _DATED.search(folded(line)) is not None


def compare(
    page: Sequence[str],
    original: Sequence[str],
    *,
    votes: Callable[[str], bool] = lambda _: True,
    has: Callable[[str], bool] | None = None,
    is_filtered: bool = False,
) -> Comparison:
    """Compare the paragraphs of *page* with those of *original*, whose additions do not matter.

    *votes* returns whether a clause of the page counts (boilerplate does not); *has* whether the original contains a
    clause, where more is known than its text. With *is_filtered*, texts that share too little for two copies are
    compared by equal clauses only, in 0.2 ms. O(page * original) in words, up to `MAX_WORDS` of each: 0.5 ms for a news
    page with a few edits, 3 ms with edits everywhere, 80 ms for the worst of 20 000 characters.

    >>> found = compare(["Tom Hill said it had cost 12 million."], ["On Monday Tom Hill said it had cost 14 million."])
    >>> found.other_numbers
    (('14', '12'),)
    """
    if has is None:
        has = {clause for clause, _ in clauses("\n".join(original))}.__contains__
    counted = {clause: w for clause, w in significant_clauses(reduced_once("\n".join(page))) if w and votes(clause)}
    total = sum(counted.values())
    if not total:
        return Comparison(0.0)
    missing = {clause: w for clause, w in counted.items() if not has(clause)}
    exact = total - sum(missing.values())
    if is_filtered and exact + _in_pieces(missing, original) < MIN_IN_PIECES * total:
        return Comparison(exact / total)
    ours, theirs = _streams(page, original)
    _share_out(missing, ours)
    alike, edits = _aligned(ours, theirs)
    doubtful = _other_names(alike, edits, page, original)
    near = _nearly_contained(alike, doubtful)
    return Comparison(
        (exact + sum(near.values())) / total,
        tuple(near),
        _as_text(_other_numbers(ours)),
        _as_text(_beyond_slips(doubtful, alike)),
        tuple(s.text for s in alike if s.is_negated and s.is_aligned(NEAR)),
        tuple(s.text for s in alike),
        _as_text((edit.there, edit.here) for edit in edits if _differs_in_capitals(edit)),
        _as_text((edit.there, edit.here) for edit in edits if _has_other_symbols(edit)),
        _as_text(_slots(alike, edits)),
        tuple(_reordered(ours, original)),
        tuple(edits),
    )


def _share_out(missing: Mapping[str, int], ours: Iterable[_Sentence]) -> None:
    """Give each of the *missing* clauses to the first sentence that has it."""
    left = dict(missing)
    for sentence in ours:
        if left and not sentence.is_shared:
            sentence.missing = {c: left.pop(c) for c, _ in clauses(sentence.text) if c in left}


def _other_numbers(ours: Iterable[_Sentence]) -> set[Replacement]:
    """Return the other numbers in lines by themselves, but for dates, and in sentences that are the original's."""
    same = (s for s in ours if not is_dated(s.text) and (is_label(s.text) or s.is_aligned(ALIKE)))
    return {pair for sentence in same for pair in sentence.numbers}


def _beyond_slips(doubtful: Iterable[Replacement], alike: Iterable[_Sentence]) -> set[Replacement]:
    """Return those of the *doubtful* names that are replaced twice, or are no slip of the pen."""
    times = Counter(pair for sentence in alike for pair in sentence.replaced)
    return {pair for pair in doubtful if times[pair] > 1 or not may_be_slip(pair)}


def _nearly_contained(alike: Iterable[_Sentence], doubtful: AbstractSet[Replacement]) -> dict[str, int]:
    """Return the clauses of the sentences that are nearly the original's, and neither negated nor of another thing."""
    near: dict[str, int] = {}
    for sentence in alike:
        is_other = sentence.numbers or sentence.is_negated or not doubtful.isdisjoint(sentence.replaced)
        if sentence.is_aligned(NEAR) and not is_other:
            near |= sentence.missing
    return near


def differences(page: Iterable[str], original: Iterable[str]) -> list[Edit]:
    """Return where the lines of *page* have what those of *original* have not at that place, in reading order."""
    return _aligned(*_streams(page, original))[1]


def _differs_in_capitals(edit: Edit) -> bool:
    """Return whether the same words have other capitals: units, for all others are equal."""
    return bool(edit.here) and [w.casefold() for w in edit.here] == [w.casefold() for w in edit.there]


def _has_other_symbols(edit: Edit) -> bool:
    """Return whether the same words have symbols instead of others, or only one of them has a minus there."""
    (symbols_here, here), (symbols_there, there) = map(_split, edit[:2])
    if here != there or symbols_here == symbols_there:
        return False
    return bool(symbols_here and symbols_there) or MINUS in symbols_here ^ symbols_there


def _slots(alike: Iterable[_Sentence], edits: Iterable[Edit]) -> list[Replacement]:
    """Return what is replaced in sentences that are nearly the original's, if that is little, and by other words.

    They are values in a text that is equal otherwise: "open" and "closed". An editor replaces more, a slip less.
    """
    nearly = {sentence.text for sentence in alike if not is_dated(sentence.text)}
    found = []
    for edit in edits:
        there, here = (tuple(w.casefold() for w in words if w[0] != _WHOLE) for words in (edit.there, edit.here))
        if there and here and edit.sentence in nearly:
            found.append((there, here))
    return found if len(found) <= MAX_SLOTS and all(map(_is_slot, found)) else []


def _is_slot(pair: Replacement) -> bool:
    """Return whether two runs of words are short, and other words. Numbers and symbols may be written in words."""
    are_words = not any(is_symbol(word) or numbers_in([word]) for words in pair for word in words)
    return are_words and max(weight("".join(words)) for words in pair) <= MAX_SLOT and likeness(pair) < SAME_WORD


def _reordered(page: Iterable[_Sentence], original: Iterable[str]) -> Iterator[str]:
    """Yield the sentences of *page* that have all words of one of *original*'s, in another order."""
    own = {sentence.text: words for sentence in page if not sentence.is_shared and (words := _folded(sentence.words))}
    known = {tuple(sorted(words)): words for words in map(_folded, map(_written, _sentences(original)))} if own else {}
    return (text for text, words in own.items() if known.get(tuple(sorted(words)), words) != words)


def _split(words: Iterable[str]) -> tuple[frozenset[str], list[str]]:
    """Return the symbols among *words*, and the others, folded."""
    folded_words = [word.casefold() for word in words]
    symbols = frozenset(filter(is_symbol, folded_words))
    return symbols, [word for word in folded_words if word not in symbols]


def _in_pieces(missing: Mapping[str, int], original: Sequence[str]) -> int:
    """Return the weight of the *missing* clauses of which *original* contains a third, character by character."""
    there = reduced_once("\n".join(original)).replace("\n", "")
    return sum(
        w
        for clause, w in missing.items()
        if any(clause[len(clause) * n // 3 : len(clause) * (n + 1) // 3] in there for n in range(3))
    )


def _streams(page: Iterable[str], original: Iterable[str]) -> tuple[list[_Sentence], list[str]]:
    """Return the sentences of *page*, and the words of *original*; a sentence of both is one word of each."""
    # A sentence ends where its line ends. Each has a word at least, and one too many is an edit.
    here, there = ([*islice(_sentences(texts), MAX_WORDS + 1)] for texts in (page, original))
    shared = frozenset(here).intersection(there)
    ours = [_Sentence(s, [_WHOLE + s] if s in shared else _written(s), is_shared=s in shared) for s in here]
    return ours, [word for s in there for word in ([_WHOLE + s] if s in shared else _written(s))]


def _sentences(texts: Iterable[str]) -> Iterator[str]:
    return (sentence for portion in portions(texts) for sentence in sentences(portion))


def _folded(words: Iterable[str]) -> list[str]:
    return [word.casefold() for word in words]


def _written(text: str) -> list[str]:
    """Return the words and the symbols of *text*, as written."""
    return tokens(plain(text))


# --- alignment


def _aligned(page: list[_Sentence], original: list[str]) -> tuple[list[_Sentence], list[Edit]]:
    """Return the sentences of *page* that are mostly aligned with *original*, with the words that are replaced."""
    there = [word if word[0] == _WHOLE else word.casefold() for word in original[:MAX_WORDS]]
    ordered = _in_order_of(there, page)
    words = [(sentence, word) for sentence in ordered for word in sentence.words]
    words, rest = words[:MAX_WORDS], words[MAX_WORDS:]
    here = [word if sentence.is_shared else word.casefold() for sentence, word in words]
    edits: list[Edit] = []
    start = begin = 0
    for block in Indel.editops(here, there).as_matching_blocks():
        if block.size == 1 and is_unspaced(there[block.b]) and len(there[block.b]) == 1:
            # Any two Chinese sentences have some characters in the same order.
            continue
        edits += _note_gap(words, original, (start, begin), block)
        edits += _note_block(words, original, block)
        start, begin = block.a + block.size, block.b + block.size
    # What is not aligned is not known to be in the original.
    edits += _edits(rest[:1], [])
    return [sentence for sentence in page if not sentence.is_shared and sentence.is_aligned(ALIKE)], edits


def _note_gap(words: list[_Word], original: list[str], begin: tuple[int, int], block: MatchingBlock) -> Iterator[Edit]:
    """Note what the page has instead of what *original* has from the places *begin* up to *block*; yield the edits."""
    start, there = begin
    gap, instead = words[start : block.a], original[there : block.b]
    before, after = original[max(there - 1, 0) : there], original[block.b : block.b + 1]
    yield from _edits(gap, instead)
    if not gap and instead and block.size:
        is_inside = start and words[start - 1][0] is words[start][0]
        # "For children." is no part of "Not for children."
        if is_inside or NEGATIONS.issuperset([instead[-1].casefold()]):
            yield Edit((), tuple(instead), words[start][0].text)
    _replace(gap, instead, before, after)
    if block.size:
        sentence = words[block.a][0]
        own = [word.casefold() for other, word in gap if other is sentence]
        sentence.is_negated |= _is_negated(own, [word.casefold() for word in instead])


def _note_block(words: list[_Word], original: list[str], block: MatchingBlock) -> Iterator[Edit]:
    """Note the words that are equal in *block*; yield the units among them that are written otherwise."""
    for place in range(block.size):
        sentence, word = words[block.a + place]
        if not sentence.is_shared:
            sentence.aligned += 0 if is_symbol(word) else weight(word.casefold())
            other = original[block.b + place]
            if place and _is_other_unit(word, other, words[block.a + place - 1][1]):
                yield Edit((word,), (other,), sentence.text)


def _is_other_unit(word: str, other: str, before: str) -> bool:
    """Return whether units after a number differ in some capitals: "mW" and "MW", but not "KM" and "km"."""
    is_mixed = not (word.islower() or word.isupper()) or not (other.islower() or other.isupper())
    return word != other and before[-1:].isdecimal() and is_mixed and len(word) <= MAX_UNIT


def _edits(gap: Sequence[tuple[_Sentence, str]], instead: list[str]) -> Iterator[Edit]:
    """Yield the edits of a *gap* in the alignment, one for each sentence; *instead* belongs to the first."""
    own = [word for _, word in gap]
    if "".join(own).casefold() == "".join(instead).casefold() and numbers_in(own) == numbers_in(instead):
        return
    for sentence, group in groupby(gap, key=itemgetter(0)):
        yield Edit(tuple(word for _, word in group), tuple(instead), sentence.text)
        instead = []


def _is_negated(here: list[str], there: list[str]) -> bool:
    """Return whether one of two gaps in an alignment has a negation: "not" and nothing, "no" and "a"."""
    positive, negative = sorted((here, there), key=NEGATIONS.isdisjoint, reverse=True)
    if NEGATIONS.isdisjoint(negative) or not NEGATIONS.isdisjoint(positive):
        return False
    return max(len(positive), len(negative)) <= MAX_NEGATION if positive else _NEGATED.issuperset(negative)


def _in_order_of(original: list[str], page: list[_Sentence]) -> list[_Sentence]:
    """Return the sentences of *page* in the order of *original*.

    A light one, or one that is not found, follows the one before: rows of a table have an order.
    """
    positions: dict[tuple[str, ...], int] = {}
    for position, run in enumerate(_runs(original)):
        # A run that occurs twice shows no place.
        positions[run] = -1 if run in positions else position
    shared: dict[str, int] = {}
    for position, word in enumerate(original):
        if word[0] == _WHOLE:
            shared[word] = -1 if word in shared else position
    places, place = [], 0
    for sentence in page:
        # No text weighs less than its length.
        if len(sentence.text) >= MIN_MOVED or weight(sentence.text) >= MIN_MOVED:
            if sentence.is_shared:
                place = found if (found := shared.get(sentence.words[0], -1)) >= 0 else place
            else:
                runs = _runs([word.casefold() for word in sentence.words])
                anchors = sorted(p for run in runs if (p := positions.get(run, -1)) >= 0)
                place = anchors[len(anchors) // 2] if anchors else place
        places.append(place)
    return [page[n] for n in sorted(range(len(page)), key=places.__getitem__)]


def _runs(words: list[str]) -> Iterable[tuple[str, ...]]:
    return zip(*(words[n:] for n in range(_ANCHOR)), strict=False)


def _replace(page: Sequence[tuple[_Sentence, str]], original: list[str], before: list[str], after: list[str]) -> None:
    """Note that the words of *page* stand where *original* has others, between what both have *before* and *after*."""
    if not page or not original or page[0][0].is_shared:
        return
    sentence = page[0][0]
    as_written = [word for other, word in page if other is sentence]
    if len(as_written) == len(original) == 1 and before and _are_letters(before[0], as_written[0], original[0]):
        # "Hepatitis B" and "hepatitis C", "part II" and "part III", "5 mg" and "5 g".
        sentence.numbers.append(((*before, *original), (*before, *as_written)))
    original, before, after = ([w.casefold() for w in words if w[0] != _WHOLE] for words in (original, before, after))
    if not original:
        return
    pair = _likest_pair(original, tuple(word.casefold() for word in as_written))
    alike = likeness(pair)
    if alike >= SOME_LETTERS:
        sentence.aligned += alike * weight("".join(pair[1]))
    if differ_in_numbers(pair):
        sentence.numbers.append(pair)
    sentence.replaced += _words_in(pair, before, after)


def _are_letters(before: str, *two: str) -> bool:
    """Return whether *two* words are letters by themselves, or units that stand after a number."""
    if all(map(_LETTER.fullmatch, two)):
        return True
    is_number = before[0] != _WHOLE and before[-1].isdecimal()
    return is_number and all(len(word) <= MAX_UNIT and are_letters(word) and not is_unspaced(word) for word in two)


def _words_in(pair: Replacement, before: list[str], after: list[str]) -> list[Replacement]:
    """Return *pair*; of single characters, which are no words, those that they may be with a neighbour."""
    there, here = pair
    if len(there) != 1 or len(here) != 1 or not _are_characters(pair):
        return [pair]
    near = [((*before, *there), (*before, *here)), ((*there, *after), (*here, *after))]
    return [near_pair for near_pair in near if likeness(pair) < 1 and _are_characters(near_pair)]


def _likest_pair(original: list[str], here: tuple[str, ...]) -> Replacement:
    """Return the words of *original* that are most like *here*, and these: it may have more before or after them."""
    places = (original, original[: len(here)], original[-len(here) :]) if len(original) > len(here) else (original,)
    return max(((tuple(place), here) for place in places), key=likeness)


def _are_characters(pair: Replacement) -> bool:
    return all(is_unspaced(word) for words in pair for word in words)


# --- names


def _other_names(
    alike: list[_Sentence], edits: list[Edit], page: Iterable[str], original: Iterable[str]
) -> frozenset[Replacement]:
    """Return the replacements of names of *original* by other names in *page*.

    The replaced name is gone from the page, and the original has the new one nowhere. One occurrence is enough if both
    have capitals. In a script without capitals two are needed, of two characters where characters are words. A single
    name that is nearly the original's is left out where ordinary words are misspelt too.
    """
    labels = _names_by_themselves(edits)
    times = Counter(pair for sentence in alike for pair in sentence.replaced)
    times.update(labels)
    names = labels | _capitalised_pairs(times, alike, original)
    twice = {pair for pair in times.keys() - names if times[pair] > 1 and _are_other_words(pair)}
    if not names and not twice:
        return frozenset()
    here, there = (f" {' '.join(words_of(chr(10).join(text)))} " for text in (page, original))

    def is_gone(pair: Replacement) -> bool:
        return f" {' '.join(pair[0])} " not in here and f" {' '.join(pair[1])} " not in there

    others = set(filter(is_gone, names))
    near = {pair for pair in others if times[pair] == 1 and likeness(pair) >= SOME_LETTERS}
    if near and sum(likeness(pair) >= SAME_WORD for pair in times.keys() - others) >= NOISE * len(near):
        others -= near
    return frozenset(others.union(filter(is_gone, twice)))


def _names_by_themselves(edits: Iterable[Edit]) -> set[Replacement]:
    """Return the names that stand in lines by themselves.

    Such a line begins with a capital, whether it is a name or not; two lines of the same length are names.
    """
    labels = (edit for edit in edits if is_label(edit.sentence) and _is_name(edit.here) and _is_name(edit.there))
    return {(tuple(w.casefold() for w in edit.there), tuple(w.casefold() for w in edit.here)) for edit in labels}


def _capitalised_pairs(
    pairs: Iterable[Replacement], alike: Iterable[_Sentence], original: Iterable[str]
) -> set[Replacement]:
    """Return those *pairs* of which both have a word with a capital inside a sentence."""
    here = _capitalised(sentence.text for sentence in alike if sentence.replaced)
    there = _capitalised(original) if here else here
    return {pair for pair in pairs if not (there.isdisjoint(pair[0]) or here.isdisjoint(pair[1]))}


def _is_name(words: Sequence[str]) -> bool:
    return 0 < len(words) <= MAX_NAME and all(word[0].isupper() and word[1:] for word in words)


def _are_other_words(pair: Replacement) -> bool:
    """Return whether the two are different words, not two spellings of one word."""
    if any(map(_HIRAGANA.fullmatch, map("".join, pair))):
        # Endings and particles.
        return False
    shorter = min(len("".join(words)) for words in pair)
    has_case = any(word != word.upper() for words in pair for word in words)
    # Where there are capitals, names have them.
    return shorter > 1 and not has_case and (likeness(pair) < SAME_WORD or shorter < LONG_WORD)


def _capitalised(texts: Iterable[str]) -> frozenset[str]:
    """Return the words, folded, that have a capital inside a sentence of *texts* that is not a headline."""
    found: set[str] = set()
    for sentence in (sentence for text in texts for sentence in sentences(text)):
        words = split_words(sentence)
        capitals = [word for word in words if word[0].isupper() and word[1:]]
        if capitals and len(capitals) < _HEADLINE * len(words):
            found.update(map(folded, capitals[words[0][0].isupper() :]))
    return frozenset(found)


def _as_text(pairs: Iterable[Replacement]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((" ".join(there), " ".join(here)) for there, here in pairs))


def containment(weights: Mapping[bytes, int], hashes: AbstractSet[bytes]) -> float:
    """Return the containment of a text in the clauses with these *hashes*, 0-1 by weight; 0 for an empty text."""
    total = sum(weights.values())
    return sum(map(weights.__getitem__, weights.keys() & hashes)) / total if total else 0.0
