"""Lets a method decide a crawl: its fingerprints of pages, what it learns and keeps in the store, and its verdicts.

Candidates, scores and the threshold are the method's; the checks that keep a page are the same.
"""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

import xxhash

from dedup_middleware.checks.detector import Detector
from dedup_middleware.checks.proof import Prover
from dedup_middleware.errors import TROUBLE
from dedup_middleware.extraction.blocks import elements_of
from dedup_middleware.extraction.features import description_of
from dedup_middleware.index import schema
from dedup_middleware.index.beside import More
from dedup_middleware.index.lookup import Distinctive
from dedup_middleware.methods.method import MAX_PACKED, ROUNDING, Text, packed, unpacked
from dedup_middleware.model import Match, Verdict, VerdictKind
from dedup_middleware.reasons import Reason
from dedup_middleware.text.clauses import MIN_TEXT_WEIGHT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lxml.etree import _Element

    from dedup_middleware.checks.proof import Proof
    from dedup_middleware.checks.subject import Subject
    from dedup_middleware.errors import DedupError, UnreadableError
    from dedup_middleware.index.claims import OpenClaims
    from dedup_middleware.index.lookup import Found
    from dedup_middleware.methods.method import Method, Signature
    from dedup_middleware.model import Page, PageFeatures
    from dedup_middleware.stores import OpenStore

# Pages that share a key with a new one and are scored.
_MAX_SCORED = 64
_LEARNED_KEY = b"l"
#: Pages that a method which learns is given before it makes its first fingerprint.
LEARNED_FROM = 200


class Note(NamedTuple):
    """The fingerprint of a page, as it is stored."""

    value: bytes
    """The fingerprint, packed."""
    keys: frozenset[bytes]
    """The keys by which it is looked up, 8 bytes each."""


class _Open:
    """The notes of the pages whose claims are open in memory."""

    def __init__(self) -> None:
        self.notes: dict[int, Note] = {}
        self.holders: dict[bytes, tuple[int, ...]] = {}


# Crawlers of one process that share a store share these too.
_open: WeakKeyDictionary[OpenClaims, _Open] = WeakKeyDictionary()


class MethodBeside:
    """A `Beside`: the method of one crawl, with what it has in the store.

    k<xxh3_64 of the method's key, 8>  -> posting list
    m<page number, 7>                  -> its fingerprint, see `method.packed`
    l                                  -> what the method has learned, once it has
    """

    def __init__(self, method: Method, store: OpenStore, claims: OpenClaims) -> None:
        """Use *method*, and what it has learned for *store*, or learn from the first pages. One read."""
        self.method = method
        self._store = store
        self._open = _open.setdefault(claims, _Open())
        learned = self._learned()
        self.is_ready = not method.learns or bool(learned)
        self._learned_from = LEARNED_FROM
        self._texts: list[Text] = []
        if learned:
            method.recall(learned)

    @property
    def threshold(self) -> float:
        """See Beside."""
        return self.method.threshold

    def note(
        self,
        paragraphs: tuple[str, ...],
        url: str,
        features: PageFeatures | None,
        root: _Element | None,
        fail: Callable[[DedupError | UnreadableError], None],
    ) -> Note | None:
        """See Beside; ``None`` also while the method learns, and then it learns from this page too."""
        title = "" if features is None else features.title
        text = Text(paragraphs, title, url)
        if root is not None:
            elements = elements_of(root, paragraphs) if self.method.sees_elements else ()
            text = text._replace(description=description_of(root), elements=elements)
        if not self.is_ready and paragraphs:
            self._texts.append(text)
            if len(self._texts) >= self._learned_from:
                self._learn(fail)
        return self._noted(self.method.fingerprint(text) if self.is_ready else None)

    @contextmanager
    def learning(self, fail: Callable[[DedupError | UnreadableError], None]) -> Iterator[None]:
        """See Beside: instead of from the first pages."""
        self._learned_from = sys.maxsize
        yield
        if not self.is_ready:
            self._learn(fail)

    def detector(self, ours: Detector) -> Detector:
        """See Beside."""
        return MethodDetector(**{each.name: getattr(ours, each.name) for each in fields(ours)}, beside=self)

    def claimed(self, number: int, note: object) -> None:
        """See Beside."""
        if isinstance(note, Note):
            self._open.notes[number] = note
            for key in note.keys:
                self._open.holders[key] = (*self._open.holders.get(key, ()), number)

    def ended(self, number: int) -> None:
        """See Beside."""
        note = self._open.notes.pop(number, None)
        for key in () if note is None else note.keys:
            left = tuple([other for other in self._open.holders.pop(key) if other != number])
            if left:
                self._open.holders[key] = left

    def replaced(self, numbers: frozenset[int], number: int, note: object) -> More:
        """See Beside. One read a page."""
        before = [self._noted(self.of(each)) for each in numbers if each > 0]
        held = frozenset(key for each in before if each is not None for key in _listed(each))
        deletes = [_value_key(each) for each in numbers if each > 0]
        if not isinstance(note, Note):
            return More(held, deletes=deletes)
        return More(held, frozenset(_listed(note)), [(_value_key(number), note.value)], deletes)

    def of(self, number: int) -> Signature | None:
        """Return the fingerprint of the page or the open claim *number*, if it has one. One read."""
        if number < 0:
            value = note.value if (note := self._open.notes.get(number)) is not None else b""
        else:
            value = self._store.get_many([_value_key(number)])[0] or b""
        return unpacked(value) if value else None

    def like(self, note: Note) -> list[int]:
        """Return the numbers of the pages that share a key with *note*, those with most of them first.

        Of equals, a stored page comes before a claimed one and an older before a younger. One read.
        """
        counts: Counter[int] = Counter()
        keys = _listed(note)
        for key, value in zip(keys, self._store.get_many(keys), strict=True):
            counts.update(schema.decode_postings(value or b""))
            counts.update(self._open.holders.get(key[1:], ()))
        return sorted(counts, key=lambda number: (-counts[number], number < 0, abs(number)))

    def _noted(self, found: Signature | None) -> Note | None:
        """Return the fingerprint *found* as it is stored, with its keys; ``None`` also if it is too large for that."""
        value = b"" if found is None else packed(found)
        if found is None or not 0 < len(value) <= MAX_PACKED:
            return None
        return Note(value, frozenset(map(xxhash.xxh3_64_digest, self.method.keys(found))))

    def _learned(self) -> bytes:
        return self._store.get_many([_LEARNED_KEY])[0] or b""

    def _learn(self, fail: Callable[[DedupError | UnreadableError], None]) -> None:
        """Learn from the texts so far, and keep it for good; or take what another process that shares the store has."""
        self.method.fit(self._texts)
        self.is_ready, self._texts = True, []
        try:
            learned = self.method.learned()
            kept = self._learned() or learned
            self._store.write([(_LEARNED_KEY, kept)])
            if kept != learned:
                self.method.recall(kept)
        except TROUBLE as error:
            fail(error)


_value_key = partial(schema.numbered, b"m")


def _listed(note: Note) -> list[bytes]:
    """Return the keys of the posting lists that lead to a page with this *note*."""
    return [b"k" + key for key in sorted(note.keys)]


@dataclass(frozen=True, slots=True)
class MethodDetector(Detector):
    """Check pages by the method that stands *beside*."""

    beside: MethodBeside = field(kw_only=True)

    @property
    def least_score(self) -> float:
        """The method's threshold; the setting is that of containment."""
        return self.beside.threshold - ROUNDING

    def check_unread(self, page: Page) -> Verdict | None:
        """See Detector; a page without a fingerprint is read: the method was learning. One more read."""
        has_fingerprint = page.known is not None and self.beside.of(page.known.number) is not None
        return Detector.check_unread(self, page) if has_fingerprint else None

    @property
    def prover(self) -> Prover:
        """See Detector; the score is the method's."""
        return Prover(self.index, self.hash_clause, replace(self.rules, threshold=0.0))

    def _check_text(self, page: Page, found: Found) -> Verdict:
        if page.fingerprint.weight < MIN_TEXT_WEIGHT:
            return Verdict(VerdictKind.UNCHECKED, reason=Reason.TOO_LITTLE_TEXT)
        if not isinstance(page.note, Note):
            reason = Reason.NO_FEATURES if self.beside.is_ready else Reason.STILL_LEARNING
            return Verdict(VerdictKind.UNCHECKED, reason=reason)
        everything = Distinctive(dict.fromkeys(page.fingerprint.weights, ()))
        return self._provisional(page, self._alike(page, found, page.note), everything)

    def _may_contain(self, page: Page, match: Match, distinctive: Distinctive) -> bool:  # noqa: ARG002 - see Detector
        return match.score >= self.least_score

    def _proof_of(self, prover: Prover, subject: Subject, match: Match) -> Proof:
        return super(MethodDetector, self)._proof_of(prover, subject, match)._replace(score=match.score)

    def _how(self, page: Page, match: Match) -> str:
        return super(MethodDetector, self)._how(page, replace(match, score=1.0))

    def _alike(self, page: Page, found: Found, note: Note) -> Iterator[Match]:
        """Yield the pages that share a key with *page*, the most alike first. Two gets a page."""
        beside, mine, new = self.beside, found.mine, unpacked(note.value)
        like = islice((number for number in beside.like(note) if number not in mine), _MAX_SCORED)
        signed = ((number, old) for number in like if (old := beside.of(number)) is not None)
        scored = [(min(beside.method.score(new, old), 1.0), number) for number, old in signed]
        for score, number in sorted(scored, key=lambda pair: -pair[0]):
            if score > 0 and (original := self.index.page(number)) is not None:
                yield Match(original, score, original.hashes & page.fingerprint.weights.keys())
