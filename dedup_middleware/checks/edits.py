"""Compares a text with its original and returns typed edits: what differs, where, and of what kind.

Sentences that both texts have are one word each of an alignment, all others are aligned word by word. So a fact shows
wherever it stands: in a sentence, in a line by itself, in text that was moved or reworded all around it.
"""

from __future__ import annotations

import re
from functools import cache, cached_property
from itertools import islice, pairwise
from typing import TYPE_CHECKING, NamedTuple

from rapidfuzz.distance import OSA, Indel

from dedup_middleware.checks.table import Edit, Kind
from dedup_middleware.text.clauses import MONTHS, SHORT, folded, is_label, plain, portions, sentences, weight
from dedup_middleware.text.words import (
    MINUS,
    VARIANTS,
    are_letters,
    is_symbol,
    is_unspaced,
    numbers_in,
    tokens,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

#: Words of each text that are aligned: the time is their product, 20 ms for these.
MAX_WORDS = 8_000
#: A sentence of which this share is aligned with the original is the same sentence, edited.
SAME = 0.5
#: Letters of a value in a sentence, "part time"; longer runs of words are reworded.
VALUE = 20
#: So many places that differ make a reworded sentence.
SEVERAL = 3
#: Words of a negation: "does not have".
_MAX_NEGATION = 3
# Marks a sentence that both texts have, which is aligned as one word.
_WHOLE = "\0"
_NEGATIONS = """not no never cannot isn wasn aren weren don doesn didn wouldn couldn shouldn hasn haven hadn t without
    nicht kein keine keinen nie ohne ne pas jamais sans non nunca sin не нет без 不 没 沒 未 无 無 勿 非"""
NEGATIONS = frozenset(_NEGATIONS.split())
_LETTER = re.compile(r"[A-Z]|[IVX]{1,4}")
_DATE = re.compile(
    rf"(?:(?:19|20)\d\d|\d\d?)(?: ?[-/.年月日] ?\d{{0,4}}){{1,3}}|{MONTHS}|(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?"
)


_DATED = re.compile(rf"(?:19|20)\d\d ?[-/.年] ?\d|\d ?[月日]|{MONTHS}")


class Comparison(NamedTuple):
    """How a text compares with its original."""

    edits: tuple[Edit, ...]
    score: float
    """Share of the text, by weight, that the original has in the same or nearly the same words, 0 to 1."""


class _Sentence:
    """A sentence of either text."""

    __slots__ = ("folded", "is_line", "key", "text", "words")

    def __init__(self, text: str, *, is_line: bool) -> None:
        self.text = text
        self.is_line = is_line
        self.words = tokens(plain(text))
        self.folded = [word.casefold() for word in self.words]
        self.key = " ".join(self.folded)

    @property
    def weight(self) -> int:
        return sum(map(_weight, self.folded))


def _weight(word: str) -> int:
    return 0 if is_symbol(word) else weight(word)


def _read(lines: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Yield the sentences of *lines*, each with whether it is a line by itself."""
    for line in lines:
        found = [s for portion in portions([line]) for s in sentences(portion)]
        for sentence in found:
            yield sentence, len(found) == 1


def is_dated(line: str) -> bool:
    """Return whether *line* stands by itself and has a date."""
    return is_label(line) and _DATED.search(folded(line)) is not None


class Original:
    """A text that others are compared with, and what is known of words."""

    def __init__(self, lines: Sequence[str], names: Iterable[str] = ()) -> None:
        self.sentences = [*islice(_read(lines), MAX_WORDS + 1)]
        self._lines, self._names = lines, names
        self._words: frozenset[str] | None = None

    @property
    def words(self) -> frozenset[str]:
        """Its words, numbers and symbols, folded, those of its title included."""
        if self._words is None:
            text = "\n".join((*self._lines, *self._names))
            self._words = frozenset(tokens(folded(text)))
        return self._words


    @cached_property
    def has_names(self) -> bool:
        """Whether capitals inside its sentences mark names: in German they mark nouns."""
        text = [s for s, is_line in self.sentences if not (is_line and is_label(s))][:40]
        names = sum(len(names_of(s)) for s in text)
        words = sum(s.count(" ") + 1 for s in text)
        return names < NOUNS * words


#: From this share of capitalised words inside sentences on, capitals mark nouns.
NOUNS = 0.17


def compare(
    lines: Sequence[str],
    original: Original,
    *,
    known: Callable[[], Callable[[str], bool] | None] = lambda: None,
    counts: Callable[[str], bool] | None = None,
    has_frame: bool = False,
    is_free: tuple[Callable[[str], bool], Callable[[str], bool]] = (lambda _: False, lambda _: False),
) -> Comparison:
    """Compare the text *lines* with its *original*.

    *known* returns a function that returns whether a word, as written, stands in another text of the store; ``None``
    where too few texts are known. It is called where that matters.
    *counts* returns whether a sentence counts; boilerplate does not. O(text * original) in words that differ.
    """
    here = [*islice(_read(lines), MAX_WORDS + 1)]
    if counts is not None:
        here = [each for each in here if counts(each[0])]
    there_texts = {text for text, _ in original.sentences}
    if all(text in there_texts for text, _ in here):
        return Comparison((), 1.0)
    return _Aligned(here, original, known, is_free, has_frame).comparison()


class _Aligned:
    """The alignment of a text with its original."""

    def __init__(self, here: list[tuple[str, bool]], original: Original, known: Callable[[], Callable[[str], bool] | None], is_free, has_frame) -> None:
        self.has_frame = has_frame
        self.original, self.known = original, cache(known)
        self.is_sites, self.is_originals = is_free
        ours = [_Sentence(text, is_line=is_line) for text, is_line in here]
        theirs = [_Sentence(text, is_line=is_line) for text, is_line in original.sentences]
        there_keys = {s.key for s in theirs}
        here_keys = {s.key for s in ours}
        self.ours, self.theirs = ours, theirs
        self.is_shared = [s.key in there_keys for s in ours]
        # Of each word of a stream: its sentence, and what it is compared by.
        self.here_of: list[int] = []
        self.here: list[str] = []
        for n, s in enumerate(ours):
            words = [_WHOLE + s.key] if self.is_shared[n] else s.folded
            self.here += words
            self.here_of += [n] * len(words)
        self.there_of: list[int] = []
        self.there: list[str] = []
        self.there_words: list[str] = []
        for n, s in enumerate(theirs):
            is_shared = s.key in here_keys
            words = [_WHOLE + s.key] if is_shared else s.folded
            self.there += words
            self.there_words += [""] if is_shared else s.words
            self.there_of += [n] * len(words)
        self.is_cut = len(self.here) > MAX_WORDS
        del self.here[MAX_WORDS:], self.here_of[MAX_WORDS:]
        del self.there[MAX_WORDS:], self.there_of[MAX_WORDS:], self.there_words[MAX_WORDS:]
        self.match = self._matched()
        self.edits: list[Edit] = []

    def _matched(self) -> list[int]:
        """Return for each word of the text the place of the word of the original that it is aligned with, or -1."""
        match = [-1] * len(self.here)
        for block in Indel.editops(self.here, self.there).as_matching_blocks():
            if block.size == 1 and len(word := self.there[block.b]) == 1 and is_unspaced(word):
                # Any two Chinese sentences have some characters in the same order.
                continue
            for n in range(block.size):
                match[block.a + n] = block.b + n
        return match

    def comparison(self) -> Comparison:
        taken = frozenset(self.match)
        total = own = 0
        run: list[str] = []
        run_weight = 0
        here_at = 0
        for n, s in enumerate(self.ours):
            if self.is_shared[n]:
                total += s.weight
                here_at += 1
                run_weight, run = self._end_run(run_weight, run)
                continue
            places = range(here_at, min(here_at + len(s.folded), len(self.here)))
            here_at += len(s.folded)
            if len(places) < len(s.folded):
                continue
            kinds, own_weight = self._classify(n, s, places, taken)
            if kinds and all(edit.kind is Kind.LABEL for edit in kinds):
                self.edits += kinds
                continue
            total += s.weight
            own += own_weight
            self.edits += kinds
            if s.is_line and is_label(s.text):
                continue
            if kinds and kinds[0].kind is Kind.ADDED and kinds[0].here == s.text:
                run_weight += s.weight
                run.append(s.text)
            else:
                run_weight, run = self._end_run(run_weight, run)
        self._end_run(run_weight, run, is_end=True)
        if self.is_cut:
            self.edits.append(Edit(Kind.TOO_LONG, "", "", ""))
        return Comparison(tuple(self.edits), 1 - own / total if total else 1.0)

    def _end_run(self, run_weight: int, run: list[str], *, is_end: bool = False) -> tuple[int, list[str]]:
        if run_weight >= (MAX_OWN_END if is_end else MAX_OWN_PASSAGE):
            self.edits.append(Edit(Kind.PASSAGE, " ".join(run), "", run[0]))
        return 0, []

    def _classify(self, n: int, s: _Sentence, places: range, taken: frozenset[int]) -> tuple[list[Edit], int]:
        """Return the edits of a sentence that the original has not, and the weight of what is its own."""
        if self._is_free(s, self.is_sites):
            return [Edit(Kind.LABEL, s.text, "", s.text)], 0
        own_weight = sum(_weight(self.here[p]) for p in places if self.match[p] < 0)
        w = s.weight
        if own_weight > (1 - SAME) * w or not w:
            return self._of_own(s, places, taken, w), w
        return self._of_same(s, places, own_weight)

    # --- a sentence of its own

    def _of_own(self, s: _Sentence, places: range, taken: frozenset[int], w: int) -> list[Edit]:
        instead = self._in_place(places, taken)
        if s.is_line and is_label(s.text):
            if not instead:
                return [Edit(Kind.LINE_ADDED, s.text, "", s.text)]
            is_slip = self._is_slip(s.folded, _Sentence(instead, is_line=True).folded)
            return [Edit(Kind.SLIP if is_slip else Kind.LINE, s.text, instead, s.text)]
        if (fact := self._own_fact(s)) is not None and not (self.has_frame and self._is_at_edge(places)):
            return [Edit(Kind.ADDED_FACT, fact, instead, s.text)]
        if instead and w <= SHORT:
            return [Edit(Kind.LINE, s.text, instead, s.text)]
        return [Edit(Kind.ADDED, s.text, instead, s.text)]

    def _in_place(self, places: range, taken: frozenset[int]) -> str:
        """Return the sentence of the original that stands in the place of an own one, as written; empty if none does.

        Where the original has more sentences in that place than the text, these are left out.
        """
        before = next((p for p in range(places.start - 1, -1, -1) if self.match[p] >= 0), -1)
        after = next((p for p in range(places.stop, len(self.here)) if self.match[p] >= 0), len(self.here))
        first = self.match[before] if before >= 0 else -1
        last = self.match[after] if after < len(self.here) else len(self.there)
        counts: dict[int, int] = {}
        for t in range(first + 1, last):
            if self.there[t][0] != _WHOLE and t not in taken:
                counts[self.there_of[t]] = counts.get(self.there_of[t], 0) + _weight(self.there[t])
        gone = [self.theirs[t] for t, w in counts.items() if w > (1 - SAME) * self.theirs[t].weight]
        gone = [s for s in gone if not self._is_free(s, self.is_originals)]
        own = len({self.here_of[p] for p in range(before + 1, after)})
        return gone[0].text if 0 < len(gone) <= own else ""

    def _is_at_edge(self, places: range) -> bool:
        return all(m < 0 for m in self.match[: places.start]) or all(m < 0 for m in self.match[places.stop :])

    @staticmethod
    def _is_free(s: _Sentence, is_sites: Callable[[str], bool]) -> bool:
        return s.is_line and (is_free_line(s.text) or (len(s.text) <= SHORT and is_sites(s.text)))

    def _own_fact(self, s: _Sentence) -> str | None:
        """Return a number or a name of *s* that the original has nowhere."""
        known = self.original.words
        for word, fold in zip(s.words, s.folded, strict=True):
            if word[:1].isdecimal() and fold not in known:
                return word
        return next((name for name in self._names(s.text) if name.casefold() not in known), None)

    def _names(self, text: str) -> list[str]:
        found = names_of(text) if self.original.has_names else []
        if not found or (known := self.known()) is None:
            return found
        # Elsewhere it is a word with a small letter: it begins a clause here.
        return [name for name in found if not known(name.casefold())]

    # --- a sentence of the original, edited

    def _of_same(self, s: _Sentence, places: range, own_weight: int) -> tuple[list[Edit], int]:
        edits: list[Edit] = []
        words: list[Edit] = []
        more = 0
        names = frozenset(self._names(s.text))
        for here, there in self._gaps(s, places):
            kind = self._kind_of(here, there, names)
            if kind is None:
                continue
            edit = Edit(kind, " ".join(here), " ".join(there), s.text)
            if kind is Kind.WORD:
                words.append(edit)
            elif kind in {Kind.REWORDED, Kind.LEFT_OUT, Kind.ADDED}:
                more += 1
                edits.append(edit)
            else:
                edits.append(edit)
            if kind is Kind.SLIP:
                own_weight -= sum(map(_weight, here))
        if words and s.weight <= SHORT:
            edits += [edit._replace(kind=Kind.LINE) for edit in words]
        elif len(words) + more >= SEVERAL:
            edits += [edit._replace(kind=Kind.REWORDED) for edit in words]
        else:
            edits += words
        return edits, own_weight

    def _gaps(self, s: _Sentence, places: range) -> Iterator[tuple[list[str], list[str]]]:
        """Yield what *s* has, and what the original has in its place, wherever they differ."""
        match = [self.match[p] for p in places]
        matched = [n for n, m in enumerate(match) if m >= 0]
        first, last = matched[0], matched[-1]
        begin = match[first]
        while begin > 0 and self._continues(begin - 1, begin):
            begin -= 1
        yield from self._gap(s.words[:first], self.there_words[begin : match[first]], is_inside=False)
        for a, b in pairwise(matched):
            p, q = match[a], match[b]
            if b == a + 1 and q == p + 1:
                continue
            between = [t for t in range(p + 1, q) if self.there[t][0] != _WHOLE]
            if self.there_of[p] != self.there_of[q]:
                between = [t for t in between if self.there_of[t] in (self.there_of[p], self.there_of[q])]
            yield from self._gap(s.words[a + 1 : b], [self.there_words[t] for t in between])
        end = match[last] + 1
        while end < len(self.there) and self._continues(end, end - 1):
            end += 1
        yield from self._gap(s.words[last + 1 :], self.there_words[match[last] + 1 : end], is_inside=False)

    def _continues(self, place: int, beside: int) -> bool:
        return self.there_of[place] == self.there_of[beside] and place not in self._taken

    @property
    def _taken(self) -> frozenset[int]:
        if not hasattr(self, "_taken_set"):
            self._taken_set = frozenset(self.match)
        return self._taken_set

    @staticmethod
    def _gap(here: list[str], there: list[str], *, is_inside: bool = True) -> Iterator[tuple[list[str], list[str]]]:
        # What a sentence lacks at its ends is left out: "For children." is no part of "Not for children."
        if here or (there and (is_inside or not NEGATIONS.isdisjoint(map(str.casefold, there)))):
            yield here, there

    def _kind_of(self, here: list[str], there: list[str], names: frozenset[str]) -> Kind | None:
        ours, theirs = ([w.casefold() for w in words] for words in (here, there))
        if "".join(ours) == "".join(theirs) and numbers_in(ours) == numbers_in(theirs):
            return None
        if len(ours) == len(theirs) == 1 and any(v.issuperset(ours + theirs) for v in VARIANTS):
            return None
        is_negated = NEGATIONS.isdisjoint(ours) != NEGATIONS.isdisjoint(theirs)
        if is_negated and max(len(ours), len(theirs)) <= _MAX_NEGATION:
            return Kind.NEGATION
        symbols = [[w for w in words if is_symbol(w)] for words in (ours, theirs)]
        if not there:
            if any(w[:1].isdecimal() and w not in self.original.words for w in ours):
                return Kind.ADDED_FACT
            if any(w in names and w.casefold() not in self.original.words for w in here):
                return Kind.ADDED_FACT
            return Kind.SYMBOL if MINUS in symbols[0] else Kind.ADDED
        if not here:
            return Kind.SYMBOL if MINUS in symbols[1] else Kind.LEFT_OUT
        if symbols[0] != symbols[1] and ((symbols[0] and symbols[1]) or MINUS in symbols[0] + symbols[1]):
            return Kind.SYMBOL
        numbers = numbers_in(ours), numbers_in(theirs)
        if numbers[0] != numbers[1] and numbers[0] and (numbers[1] or any(w not in self.original.words for w in numbers[0])):
            return Kind.NUMBER
        if len(here) == len(there) == 1 and all(map(_LETTER.fullmatch, (here[0], there[0]))):
            return Kind.NUMBER
        if any(w in names for w in here) and any(w[:1].isupper() and w[1:] for w in there):
            return Kind.NAME
        if self._is_slip(ours, theirs):
            return Kind.SLIP
        if any(w in names and w.casefold() not in self.original.words for w in here):
            return Kind.ADDED_FACT
        if max(sum(map(_weight, words)) for words in (ours, theirs)) <= VALUE:
            return Kind.WORD
        return Kind.REWORDED

    def _is_slip(self, here: list[str], there: list[str]) -> bool:
        """Return whether one word is a misspelling of the other, perhaps with a space in it.

        They differ by a letter, and one of them is in no other text. Where neither is, a letter more or less is a slip,
        and another letter may be another thing: "nitrate", "nitrite".
        """
        one, other = "".join(here), "".join(there)
        # A letter more at the beginning makes another word, too: "moral", "amoral".
        has_prefix = len(one) != len(other) and one[0] != other[0]
        if max(len(here), len(there)) > 2 or max(len(one), len(other)) < 3 or has_prefix:  # noqa: PLR2004
            return False
        if is_unspaced(one) or not (are_letters(one) and are_letters(other)) or OSA.distance(one, other) > 1:
            return False
        known = self.known()
        if known is None:
            return False
        are_known = [all(known(word) or known(word.title()) for word in words) for words in (here, there)]
        return not all(are_known) and (any(are_known) or len(one) != len(other))


MAX_OWN_PASSAGE, MAX_OWN_END = 250, 150


def is_free_line(text: str) -> bool:
    """Return whether a line by itself is of its publication: a credit, a dateline, a date and nothing else."""
    from dedup_middleware.text.words import without_credits

    if not [*without_credits([plain(text)])]:
        return True
    return is_label(text) and not any(map(str.isalnum, _DATE.sub("", folded(text))))


#: Letters of an abbreviation in capitals; longer words in capitals are headings, or shouted.
ACRONYM = 5


def names_of(sentence: str) -> list[str]:
    """Return the words with a capital inside *sentence*, as written: not what begins it, or a quotation in it."""
    words = []
    is_first = True
    for token in re.findall(r"[^\W\d_]+|\d+|[^\w\s]", plain(sentence)):
        if token[0].isalpha():
            if not is_first and token[0].isupper() and token[1:] and not (token.isupper() and len(token) > ACRONYM):
                words.append(token)
            is_first = False
        elif token in '"“”„«»:：(（[—–':
            is_first = True
    return words
