"""Compares a text with its original and returns typed edits: what differs, where, and of what kind.

Sentences that both texts have are one word each of an alignment, all others are aligned word by word. So a fact shows
wherever it stands: in a sentence, in a line by itself, in text that was moved or reworded all around it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise, starmap
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from rapidfuzz.distance import OSA, Indel

from dedup_middleware.checks.lists import VALUE, is_free_line, is_value, moved_lines, replaced_values
from dedup_middleware.checks.table import Edit, Kind
from dedup_middleware.extraction.features import MAX_UNIT
from dedup_middleware.items.item_values import is_to_come
from dedup_middleware.text.clauses import SHORT, folded, is_label, plain, portions, sentences, weight
from dedup_middleware.text.words import (
    OPERATORS,
    are_letters,
    is_negation,
    is_symbol,
    is_unspaced,
    is_variant,
    numbers_in,
    tokens,
    weight_of,
    without_numbering,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from collections.abc import Set as AbstractSet

#: Words of each text that are aligned: the time is their product, 20 ms for these.
MAX_WORDS = 8_000
#: A sentence of which this share is aligned with the original is the same sentence, edited.
SAME = 0.5
#: So many places that differ make a reworded sentence.
SEVERAL = 3
#: Letters of own sentences in a row that are a passage: within the text, and at its end, where a story goes on.
OWN_PASSAGE, OWN_END = 250, 150
#: From this share of capitalised words inside sentences on, capitals mark nouns, as in German, and no names.
NOUNS = 0.17
# Words of a misspelling with a space in it.
_FEW = 3
# Letters of an abbreviation in capitals; longer words in capitals are headings, or shouted.
_ACRONYM = 5
# Marks a sentence that both texts have, which is aligned as one word.
_WHOLE = "\0"
_LETTER = re.compile(r"[A-Z]|[IVX]{1,4}")
_NO_LETTER = re.compile(r"[\W_]+")
_TOKEN = re.compile(r"[^\W\d_]+|\d+|[^\w\s]")
# After one of these a quotation, a part or a clause begins, with a capital.
_BEGINS = frozenset('"“”„«»:：(（[—–')


class Comparison(NamedTuple):
    """How a text compares with its original."""

    edits: tuple[Edit, ...]
    score: float
    """Share of the text, by weight, that the original has in the same or nearly the same words, 0 to 1."""

    @property
    def near(self) -> frozenset[str]:
        """The sentences that the original has in nearly the same words, as written."""
        own = {edit.line for edit in self.edits if edit.here == edit.line}
        return frozenset(edit.line for edit in self.edits) - own


@dataclass(frozen=True, slots=True)
class Context:
    """What is known beside two texts."""

    known: Callable[[], Callable[[str], bool] | None] = lambda: None
    """Returns a function that returns whether a word, as written, stands in another text; ``None`` with few texts."""
    counts: Callable[[str], bool] | None = None
    """Returns whether a sentence of the text counts; boilerplate does not."""
    is_sites: Callable[[str], bool] = lambda _: False
    """Returns whether a short line of the text is its site's; the next one, of the original."""
    is_originals: Callable[[str], bool] = lambda _: False
    has_frame: bool = False
    """Whether what stands at the edges of the text may be no part of it."""
    is_view: bool = False
    """Whether a word at the edge of the text may be a label of a view: "News" above a page to print."""
    allowed: AbstractSet[Kind] | None = None
    """Where a few other edits decide, the comparison ends with these; ``None``: it never ends early."""
    read: dict[tuple[str, bool], _Sentence] = field(default_factory=dict)
    """The sentences of the text that were read, for the next original."""
    now: float = inf
    """When the text was fetched, in seconds since 1970: a date by itself that is later is an event's."""
    least: float = 0.0
    """Of a text with a lower score no edit is named, and its score is a bound."""


class Original:
    """A text that others are compared with."""

    def __init__(self, lines: Sequence[str], names: Iterable[str] = ()) -> None:
        """Read the *lines* of the text; its *names* are a part of what it tells."""
        self.sentences = _read(lines)
        self.lines, self._names = lines, names

    @cached_property
    def words(self) -> frozenset[str]:
        """Its words, numbers and symbols, folded, those of its names included."""
        return frozenset(tokens(folded("\n".join((*self.lines, *self._names)))))

    @cached_property
    def has_names(self) -> bool:
        """Whether capitals inside its sentences mark names."""
        told = [text for text, is_line in self.sentences if not (is_line and is_label(text))]
        return sum(len(names_of(text)) for text in told) < NOUNS * sum(text.count(" ") + 1 for text in told)


def compare(lines: Sequence[str], original: Original, context: Context | None = None) -> Comparison:
    """Compare the text *lines* with its *original*. O(text * original) in words that differ.

    >>> story = Original(["Trams turn at the market square, every quarter of an hour. It costs 20 euros."])
    >>> compare(["Trams turn at the market square, every quarter of an hour. It costs 25 euros."], story).edits[0][:3]
    (<Kind.NUMBER: 'another number, or letter by itself'>, '25', '20')
    """
    context = context or Context()
    here = _read(lines)
    # What follows the most that is read may be anything.
    beside = [Edit(Kind.TOO_LONG, "")] if len(here) > MAX_WORDS else []
    if context.counts is not None:
        here = [each for each in here if context.counts(each[0])]
    beside += [*moved_lines(here, original.sentences, context.is_sites), *replaced_values(lines, original.lines)]
    if {text for text, _ in here} <= {text for text, _ in original.sentences}:
        return Comparison((*beside,), 1.0)
    found = _Alignment(here, original, context).comparison()
    return found._replace(edits=(*found.edits, *beside))


class _Sentence:
    """A sentence of either text."""

    def __init__(self, text: str, is_line: bool) -> None:  # noqa: FBT001 - as `_read` returns them
        self.text = text
        self.is_line = is_line
        """Whether it is a line by itself; a label is one that is no sentence."""

    @cached_property
    def is_label(self) -> bool:
        return self.is_line and is_label(self.text)

    @cached_property
    def words(self) -> list[str]:
        return tokens(plain(self.text))

    @cached_property
    def folded(self) -> list[str]:
        """Its words without letter case, but for units that have both: "5 mW" is not "5 MW"."""
        found = [word.casefold() for word in self.words]
        for place, (before, word) in enumerate(pairwise(self.words), 1):
            is_unit = before[0].isdecimal() and len(word) <= MAX_UNIT
            if is_unit and word not in {word.lower(), word.upper(), word.title()}:
                found[place] = word
        return found

    @cached_property
    def key(self) -> str:
        """Its words: what two sentences are equal by."""
        return " ".join(self.folded)

    @cached_property
    def weight(self) -> int:
        return weight_of(self.folded)


class _Stream:
    """The words of a text that are aligned, each with its sentence: of one that both texts have, its number."""

    def __init__(self, sentences: Iterable[_Sentence]) -> None:
        self.sentences = [*sentences]
        self.whole: list[str] = []
        """Of each sentence what it is aligned by if both texts have it, else nothing."""
        self.words: list[str] = []
        """Folded."""
        self.written: list[str] = []
        self.sentence_of: list[int] = []
        self.places: list[range] = []
        """Of the words of each sentence."""

    def fill(self) -> None:
        for number, (sentence, whole) in enumerate(zip(self.sentences, self.whole, strict=True)):
            start = len(self.words)
            self.words += [whole] if whole else sentence.folded
            self.written += [""] if whole else sentence.words
            self.sentence_of += [number] * (len(self.words) - start)
            self.places.append(range(start, len(self.words)))


# In the place of a weight of words without a match: of a sentence that both texts have, of one beyond those that are
# aligned, and of one that is no part of the text.
_SHARED, _UNREAD, _FREE = -1, -2, -3
_Measured = tuple[_Sentence, range, int, int]


def _is_edited(counted: int, unmatched: int) -> bool:
    """Return whether the original has most of a sentence of this weight."""
    return counted > 0 and unmatched <= (1 - SAME) * counted


def _most(measured: Iterable[_Measured]) -> float:
    """Return a bound of the score: as if the original had all of each sentence of which it has most."""
    total = own = 0
    for _, _, counted, unmatched in measured:
        total += counted
        own += counted if unmatched >= 0 and not _is_edited(counted, unmatched) else 0
    return 1 - own / total if total else 1.0


class _Alignment:
    """The alignment of a text with its original."""

    def __init__(self, here: Iterable[tuple[str, bool]], original: Original, context: Context) -> None:
        self.original, self.context = original, context
        read = context.read
        self.here = _Stream([read.get(each) or read.setdefault(each, _Sentence(*each)) for each in here])
        self.there = _Stream(starmap(_Sentence, original.sentences))
        self._find_shared()
        self.here.fill()
        self.there.fill()
        # For each word of the text the place of the word of the original that it is aligned with, or -1.
        self.match = [-1] * len(self.here.words)
        ours, theirs = self.here.words[:MAX_WORDS], self.there.words[:MAX_WORDS]
        for block in Indel.editops(ours, theirs).as_matching_blocks():
            if block.size == 1 and len(word := theirs[block.b]) == 1 and is_unspaced(word):
                # Any two Chinese sentences have some characters in the same order.
                continue
            self.match[block.a : block.a + block.size] = range(block.b, block.b + block.size)
        self.taken = frozenset(self.match)
        self._last_gap, self._gone_last = (-1, -1), list[_Sentence]()

    def _find_shared(self) -> None:
        """Mark the sentences that both texts have, as they are written or by their words."""
        streams = self.here, self.there
        written, other = ({s.text for s in stream.sentences} for stream in streams)
        shared = written & other
        keys, other = ({s.key for s in stream.sentences if s.text not in shared} for stream in streams)
        both = keys & other
        for stream in streams:
            stream.whole = [
                _WHOLE + s.text if s.text in shared else _WHOLE + s.key if s.key in both else ""
                for s in stream.sentences
            ]

    @cached_property
    def known(self) -> Callable[[str], bool] | None:
        return self.context.known()

    @cached_property
    def vocabulary(self) -> Callable[[str], bool] | None:
        """Whether a folded word is in another text; ``None`` if most of the original's are not: of another language."""
        if (known := self.known) is None:
            return None
        words = [word for word in self.original.words if are_letters(word)]
        is_known = [known(word) or known(word.title()) for word in words]
        return (lambda word: known(word) or known(word.title())) if 2 * sum(is_known) >= len(words) else None

    def comparison(self) -> Comparison:
        """Return the edits, in the order of the text; none of a text of which the original has little."""
        measured: Iterable[_Measured] = self._measured()
        if self.context.least:
            measured = [*measured]
            if (most := _most(measured)) < self.context.least:
                return Comparison((), most)
        return self._named(measured)

    def _named(self, measured: Iterable[_Measured]) -> Comparison:
        edits: list[Edit] = []
        total = own = 0
        run: list[_Sentence] = []
        for sentence, places, counted, unmatched in measured:
            total += counted
            if unmatched == _SHARED:
                edits += _passage(run, OWN_PASSAGE)
                continue
            if unmatched == _UNREAD:
                edits.append(Edit(Kind.TOO_LONG, ""))
                break
            if unmatched == _FREE:
                edits.append(Edit(Kind.LABEL, sentence.text, "", sentence.text))
                continue
            if _is_edited(counted, unmatched):
                found = [*self._edited(sentence, places)]
                own += unmatched - sum(weight_of(tokens(folded(e.here))) for e in found if e.kind is Kind.SLIP)
                edits += found
            else:
                edits.append(self._own(sentence, places))
                own += counted
                if edits[-1].kind is Kind.ADDED:
                    run.append(sentence)
                    continue
            if not sentence.is_label:
                edits += _passage(run, OWN_PASSAGE)
            if self.context.allowed is not None and _count(edits, self.context.allowed) >= _FEW:
                break
        edits += _passage(run, OWN_END)
        return Comparison(tuple(edits), 1 - own / total if total else 1.0)

    def _measured(self) -> Iterator[_Measured]:
        """Yield the sentences of the text, each with its places, its weight, and that of its words without a match."""
        for sentence, whole, places in zip(self.here.sentences, self.here.whole, self.here.places, strict=True):
            if whole:
                yield sentence, places, weight(_NO_LETTER.sub("", sentence.text)), _SHARED
            elif places.stop > MAX_WORDS:
                yield sentence, places, 0, _UNREAD
                return
            elif self._is_label_of_view(sentence, places) or (
                self._is_free(sentence, self.context.is_sites) and not self._is_instead(sentence, places)
            ):
                yield sentence, places, 0, _FREE
            else:
                unmatched = weight_of(self.here.words[p] for p in places if self.match[p] < 0)
                yield sentence, places, sentence.weight, unmatched

    # --- a sentence that the original has not

    def _own(self, sentence: _Sentence, places: range) -> Edit:
        instead, kind = self._in_place(sentence, places), Kind.ADDED
        if sentence.is_label:
            is_slip = bool(instead) and self._is_slip(sentence.folded, _Sentence(instead, is_line=True).folded)
            is_fact = self._has_own_number(sentence) and is_value(sentence.text, self.context.now)
            kind = Kind.SLIP if is_slip else Kind.LINE if instead else Kind.ADDED_FACT if is_fact else Kind.LINE_ADDED
        elif self._has_own_fact(sentence) and not (self.context.has_frame and self._is_at_edge(places)):
            kind = Kind.ADDED_FACT
        elif instead and sentence.weight <= SHORT:
            kind = Kind.LINE
        return Edit(kind, sentence.text, instead, sentence.text)

    def _in_place(self, sentence: _Sentence, places: range) -> str:
        """Return the sentence of the original that an own one replaces, as written; empty if none.

        Where the original has more sentences in that place than the text, these are left out.
        """
        match = self.match
        first, last = bisect_left(self._matched, places.start), bisect_left(self._matched, places.stop)
        before = self._matched[first - 1] if first else -1
        end = self._matched[last] if last < len(self._matched) else len(match)
        start = match[before] + 1 if before >= 0 else 0
        lines = self._gone(start, match[end] if end < len(match) else len(self.there.words))
        # A line of symbols, "★★☆", replaces one of symbols; as a rule between two lines it is no text.
        lines = [line for line in lines if bool(line.weight) == bool(sentence.weight)]
        between = self.here.sentence_of[before + 1 : end]
        own = between[-1] - between[0] + 1 if between else 1
        return lines[0].text if 0 < len(lines) <= own else ""

    @cached_property
    def _matched(self) -> list[int]:
        """The places of the words of the text that are aligned."""
        return [place for place, there in enumerate(self.match) if there >= 0]

    def _gone(self, start: int, stop: int) -> list[_Sentence]:
        """Return the sentences of the original between two places that the text has not. O(words), once for a gap."""
        if self._last_gap != (start, stop):
            there, gone = self.there, dict[int, int]()
            for place in range(start, stop):
                if there.words[place][0] != _WHOLE and place not in self.taken:
                    number = there.sentence_of[place]
                    gone[number] = gone.get(number, 0) + weight_of([there.words[place]])
            lines = [s for n, w in gone.items() if w > (1 - SAME) * (s := there.sentences[n]).weight or not s.weight]
            self._gone_last = [line for line in lines if not self._is_free(line, self.context.is_originals)]
            self._last_gap = start, stop
        return self._gone_last

    def _is_at_edge(self, places: range) -> bool:
        return all(m < 0 for m in self.match[: places.start]) or all(m < 0 for m in self.match[places.stop :])

    def _is_free(self, sentence: _Sentence, is_sites: Callable[[str], bool]) -> bool:
        """Return whether a line by itself tells nothing of its text: it is a credit, a dateline, a date, the site's.

        A date that is to come is no date of a publication.
        """
        if not sentence.is_line or is_to_come(sentence.text, self.context.now):
            return False
        return is_free_line(sentence.text) or (len(sentence.text) <= SHORT and is_sites(sentence.text))

    def _is_label_of_view(self, sentence: _Sentence, places: range) -> bool:
        is_word = self.context.is_view and sentence.is_label and are_letters("".join(sentence.text.split()))
        return is_word and self._is_at_edge(places)

    def _is_instead(self, sentence: _Sentence, places: range) -> bool:
        """Return whether a label of the site is the value that the original's text has as another one in its place."""
        is_frame = self.context.has_frame and self._is_at_edge(places)
        return not is_frame and not is_free_line(sentence.text) and bool(self._in_place(sentence, places))

    def _has_own_fact(self, sentence: _Sentence) -> bool:
        """Return whether *sentence* has a number or a name that the original has nowhere."""
        known = self.original.words
        return self._has_own_number(sentence) or any(n.casefold() not in known for n in self._names(sentence.text))

    def _has_own_number(self, sentence: _Sentence) -> bool:
        return any(word[:1].isdecimal() and word not in self.original.words for word in sentence.folded)

    def _names(self, text: str) -> frozenset[str]:
        found = names_of(text) if self.original.has_names else []
        if found and (known := self.known) is not None:
            # Elsewhere it is a word with a small letter: it begins a clause here.
            found = [name for name in found if not known(name.casefold())]
        return frozenset(found)

    # --- a sentence of the original, edited

    def _edited(self, sentence: _Sentence, places: range) -> Iterator[Edit]:
        gaps = [*self._gaps(sentence, places)]
        names = self._names(sentence.text) if any(w[:1].isupper() for here, _ in gaps for w in here) else frozenset()
        found = [
            Edit(kind, joined(here), joined(there), sentence.text)
            for here, there in gaps
            if (kind := self._kind_of(here, there, names)) is not None
        ]
        # What is replaced by a whole clause is rewritten in as many places as it has values.
        count = sum(
            1 + max(weight_of(tokens(folded(text))) for text in (edit.here, edit.there)) // VALUE
            for edit in found
            if edit.kind in {Kind.WORD, Kind.LEFT_OUT, Kind.ADDED}
        )
        # An editor's places differ in length. Where as many words replace as many everywhere, a form was filled in.
        is_rewritten = count >= SEVERAL and any(len(here) != len(there) for here, there in gaps)
        words = Kind.LINE if sentence.weight <= SHORT else Kind.REWORDED if is_rewritten else Kind.WORD
        yield from (edit._replace(kind=words) if edit.kind is Kind.WORD else edit for edit in found)
        yield from self._moved(sentence, places, [here for here, _ in gaps])
        yield from self._cut(sentence, places.stop - 1)

    def _cut(self, sentence: _Sentence, last: int) -> Iterator[Edit]:
        """Yield whether *sentence* ends with a number that goes on in the original: "20", "20 million euros"."""
        number, after = sentence.words[-1], self.match[last] + 1
        if number[0].isdecimal() and 0 < after < len(self.there.words) and self._continues(after, after - 1):
            rest = self.there.written[after]
            if not rest[:1].isdecimal():
                yield Edit(Kind.NUMBER, number, joined([number, rest]), sentence.text)

    def _moved(self, sentence: _Sentence, places: range, own: list[list[str]]) -> Iterator[Edit]:
        """Yield whether *own* words stand at another place in the original's sentence, where that carries meaning.

        "United beat Rovers", "Wi-Fi ✗, pool ✓", "2-1". Where no name is in the sentence, an editor has moved a phrase.
        """
        there = self.there
        sides = {there.sentence_of[m] for m in self.match[places.start : places.stop] if m >= 0}
        gone = {there.words[place] for side in sides for place in there.places[side] if place not in self.taken}
        moved = [word for words in own for word in words if word.casefold() in gone]
        symbols = [word for word in moved if is_symbol(word)]
        numbers = [words[0] for words in own if len(words) == 1 and words[0][:1].isdecimal() and words[0] in gone]
        if symbols or numbers:
            word = [*symbols, *numbers][0]
            yield Edit(Kind.SYMBOL if symbols else Kind.NUMBER, word, word, sentence.text)
        elif moved and self._names(sentence.text):
            yield Edit(Kind.NAME, joined(moved), joined(moved), sentence.text)

    def _gaps(self, sentence: _Sentence, places: range) -> Iterator[tuple[list[str], list[str]]]:
        """Yield the words of *sentence* and those of the original between words that both have, where they differ."""
        match, there = [self.match[p] for p in places], self.there
        matched = [n for n, m in enumerate(match) if m >= 0]
        first, last = matched[0], matched[-1]
        begin, end = match[first], match[last] + 1
        while begin > 0 and self._continues(begin - 1, begin):
            begin -= 1
        while end < len(there.words) and self._continues(end, end - 1):
            end += 1
        yield from _gap(sentence.words[:first], there.written[begin : match[first]], is_inside=False)
        for a, b in pairwise(matched):
            p, q = match[a], match[b]
            if (b, q) == (a + 1, p + 1):
                continue
            sides = there.sentence_of[p], there.sentence_of[q]
            between = [t for t in range(p + 1, q) if there.words[t][0] != _WHOLE and there.sentence_of[t] in sides]
            yield from _gap(sentence.words[a + 1 : b], [there.written[t] for t in between])
        yield from _gap(sentence.words[last + 1 :], there.written[match[last] + 1 : end], is_inside=False)

    def _continues(self, place: int, beside: int) -> bool:
        return self.there.sentence_of[place] == self.there.sentence_of[beside] and place not in self.taken

    def _kind_of(  # noqa: C901, PLR0911 - a line a kind, the first that applies
        self, here: list[str], there: list[str], names: AbstractSet[str]
    ) -> Kind | None:
        """Return the kind of edit that has *here* in the place of *there*; ``None`` if they are written otherwise."""
        ours, theirs = ([w.casefold() for w in words] for words in (here, there))
        numbers = numbers_in(ours), numbers_in(theirs)
        is_negated = any(map(is_negation, ours)) != any(map(is_negation, theirs))
        if "".join(ours) == "".join(theirs) and numbers[0] == numbers[1] and not is_negated:
            return Kind.SYMBOL if ours == theirs else None
        if len(ours) == len(theirs) == 1 and is_variant(ours[0], theirs[0]):
            return None
        if is_negated:
            return Kind.NEGATION
        symbols = [[w for w in words if is_symbol(w)] for words in (ours, theirs)]
        if symbols[0] != symbols[1] and (all(symbols) or not OPERATORS.isdisjoint(symbols[0] + symbols[1])):
            return Kind.SYMBOL
        if not here:
            return Kind.LEFT_OUT
        known = self.original.words
        new_names = [w for w in here if w in names and w.casefold() not in known]
        if not there:
            is_fact = new_names or any(w[:1].isdecimal() and w not in known for w in ours)
            return Kind.ADDED_FACT if is_fact else Kind.ADDED
        if numbers[0] and numbers[0] != numbers[1] and (numbers[1] or not known.issuperset(numbers[0])):
            return Kind.NUMBER
        if len(here) == len(there) == 1 and all(map(_LETTER.fullmatch, here + there)):
            return Kind.NUMBER
        if not names.isdisjoint(here) and any(w[:1].isupper() and w[1:] for w in there):
            return Kind.NAME
        if self._is_slip(ours, theirs):
            return Kind.SLIP
        if new_names:
            return Kind.ADDED_FACT
        return Kind.WORD

    def _is_slip(self, here: list[str], there: list[str]) -> bool:
        """Return whether one word is a misspelling of the other, perhaps with a space in it.

        They differ by a letter, and one of them is in no other text. Where neither is, a letter more or less is a slip,
        and another letter may be another thing: "nitrate", "nitrite".
        """
        one, other = "".join(here), "".join(there)
        # A letter more at the beginning makes another word, too: "moral", "amoral".
        has_prefix = len(one) != len(other) and one[:1] != other[:1]
        if max(len(here), len(there)) >= _FEW or max(len(one), len(other)) < _FEW or has_prefix:
            return False
        if is_unspaced(one) or not (are_letters(one) and are_letters(other)) or OSA.distance(one, other) > 1:
            return False
        if (known := self.vocabulary) is None:
            return False
        are_known = [all(map(known, words)) for words in (here, there)]
        return not all(are_known) and (any(are_known) or len(one) != len(other))


def _gap(here: list[str], there: list[str], *, is_inside: bool = True) -> Iterator[tuple[list[str], list[str]]]:
    # What a sentence lacks at its ends is left out: "For children." is no part of "Not for children."
    if here or (there and (is_inside or any(map(is_negation, map(str.casefold, there))))):
        yield here, there


def joined(words: Iterable[str]) -> str:
    """Return *words* as they are written: with a space between two, but for scripts that have none.

    >>> joined(["关", "键", "5", "trams"])
    '关键 5 trams'
    """
    text = ""
    for word in words:
        text += word if not text or (is_unspaced(text[-1]) and is_unspaced(word)) else f" {word}"
    return text


def _passage(run: list[_Sentence], limit: int) -> Iterator[Edit]:
    """Yield a passage where the own sentences of a *run*, which ends here, are one."""
    if sum(sentence.weight for sentence in run) >= limit:
        yield Edit(Kind.PASSAGE, " ".join(sentence.text for sentence in run), "", run[0].text)
    run.clear()


def _count(edits: Iterable[Edit], allowed: AbstractSet[Kind]) -> int:
    return sum(edit.kind not in allowed for edit in edits)


def _read(lines: Iterable[str]) -> list[tuple[str, bool]]:
    """Return the first sentences of *lines*, each once, and whether it is a line by itself; without their numbering."""
    read = ([s for portion in portions([line]) for s in sentences(portion)] for line in lines)
    found: dict[tuple[str, bool], None] = {}
    for each in read:
        found.update(dict.fromkeys((sentence, len(each) == 1) for sentence in each))
        if len(found) > MAX_WORDS:
            break
    return [*zip(without_numbering([text for text, _ in found]), (is_line for _, is_line in found), strict=True)]


def names_of(sentence: str) -> list[str]:
    """Return the words with a capital inside *sentence*, as written: not what begins it, or a quotation in it."""
    words = []
    is_first = True
    for token in _TOKEN.findall(plain(sentence)):
        if token[0].isalpha():
            is_shouted = token.isupper() and len(token) > _ACRONYM
            if not is_first and token[0].isupper() and token[1:] and not is_shouted:
                words.append(token)
            is_first = False
        elif token in _BEGINS:
            is_first = True
    return words
