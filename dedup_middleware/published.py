"""Checks the pages of a crawl by a method of `methods`: its fingerprints, what it learns, and its verdicts.

Candidates, scores and the threshold are the method's; the checks that keep a page are the same. Imported only where
DEDUP_FINGERPRINT names a method.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import islice
from typing import TYPE_CHECKING

from dedup_middleware.checks.alignment import containment
from dedup_middleware.checks.detector import MIN_DISTINCTIVE_WEIGHT, Detector
from dedup_middleware.checks.pair import Pair
from dedup_middleware.errors import TROUBLE
from dedup_middleware.extraction.blocks import elements_of
from dedup_middleware.extraction.features import description_of
from dedup_middleware.fingerprints.method import ROUNDING, Text, unpacked
from dedup_middleware.model import Match, Rejection, Verdict, VerdictKind
from dedup_middleware.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from collections.abc import Set as AbstractSet

    from lxml.etree import _Element

    from dedup_middleware.errors import DedupError, UnreadableError
    from dedup_middleware.fingerprints import Learner
    from dedup_middleware.index.lookup import Found, SignatureIndex
    from dedup_middleware.model import PackedSignature, Page, PageFeatures, StoredPage

# Pages that share a key with a new one and are scored.
_MAX_SCORED = 64


class Published:
    """The method of one crawl."""

    def __init__(
        self, learner: Learner, signatures: SignatureIndex, fail: Callable[[DedupError | UnreadableError], None]
    ) -> None:
        """Use the method of *learner* and store what it learns in *signatures*; *fail* gets the store's trouble."""
        self._learner = learner
        self._signatures = signatures
        self._fail = fail

    def signature(
        self, paragraphs: tuple[str, ...], url: str, features: PageFeatures | None, root: _Element | None
    ) -> PackedSignature | None:
        """Return the signature of a page; ``None`` while the method learns, and then it learns from this page too.

        *root* is that of its tree, where there is one.
        """
        title = "" if features is None else features.title
        text = Text(paragraphs, title, url)
        if root is not None:
            elements = elements_of(root, paragraphs) if self._learner.method.sees_elements else ()
            text = text._replace(description=description_of(root), elements=elements)
        if self._learner.learn_from(text):
            self._remember()
        return self._signatures.with_keys(self._learner.fingerprint(text))

    @contextmanager
    def learning(self) -> Iterator[None]:
        """Let the method learn from what it is given meanwhile, instead of from the first pages; if it has not yet."""
        if self._learner.is_ready:
            yield
            return
        self._learner.pages = sys.maxsize
        yield
        self._learner.learn()
        self._remember()

    def _remember(self) -> None:
        try:
            learned = self._learner.method.learned()
            kept = self._signatures.remember(learned)
            if kept != learned:
                # Another process that shares the store was first.
                self._learner.method.recall(kept)
        except TROUBLE as error:
            self._fail(error)


@dataclass(frozen=True, slots=True)
class PublishedDetector(Detector):
    """Check pages by the method of *learner*."""

    learner: Learner = field(kw_only=True)

    @property
    def least_score(self) -> float:
        """The method's threshold; the setting is that of containment."""
        return self.learner.method.threshold - ROUNDING

    def _check_text(self, page: Page, found: Found, rejects: Callable[[StoredPage], object]) -> Verdict:
        if page.fingerprint.weight < MIN_DISTINCTIVE_WEIGHT:
            return Verdict(VerdictKind.UNCHECKED, reason=Reason.TOO_LITTLE_TEXT)
        if (signature := page.fingerprint.signature) is None:
            reason = Reason.NO_FEATURES if self.learner.is_ready else Reason.STILL_LEARNING
            return Verdict(VerdictKind.UNCHECKED, reason=reason)
        return self._best(page, self._alike(page, found, signature), page.fingerprint.weights.keys(), rejects)

    def _alike(self, page: Page, found: Found, signature: PackedSignature) -> Iterator[Match]:
        """Yield the pages that share a key with *page*, the most alike first. Two gets a page."""
        signatures, mine, new = self.index.signatures, found.mine, unpacked(signature.value)
        assert signatures is not None
        method = self.learner.method
        like = islice((number for number in signatures.like(signature) if number not in mine), _MAX_SCORED)
        signed = ((number, old) for number in like if (old := signatures.of(number)) is not None)
        scored = [(min(method.score(new, old), 1.0), number) for number, old in signed]
        for score, number in sorted(scored, key=lambda pair: -pair[0]):
            if score > 0 and (original := self.index.page(number)) is not None:
                yield Match(original, score, original.hashes & page.fingerprint.weights.keys())

    def _look_closely(
        self, page: Page, exact: Match, distinctive: AbstractSet[bytes]
    ) -> tuple[Match, Rejection | None]:
        if exact.score < self.least_score:
            return exact, Rejection(Reason.BELOW_THRESHOLD)
        text = cache(partial(self.index.text, exact.original.number))
        score = containment(page.fingerprint.weights, exact.original.hashes)
        pair = Pair(page, exact.original, self.names, text, self.hash_clause, distinctive, exact.shared, score=score)
        return exact, self._first_rejection(self._aligned(pair))
