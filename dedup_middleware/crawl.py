"""One crawl's pages, from verdict to record.

Law of this file: it knows what happens to a page and in which order, but neither Scrapy nor the clock. Whatever fails
here, pages are delivered: after a failure of the store or the log nothing is dropped any more.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from contextlib import contextmanager, suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

from dedup_middleware.case import Case
from dedup_middleware.claims import Claims, ClaimState
from dedup_middleware.detector import is_repeated, is_something_else
from dedup_middleware.errors import DedupError, StoreError
from dedup_middleware.evidence import repeated_sentences
from dedup_middleware.items import item_texts, tag_item
from dedup_middleware.limits import UNLIMITED, UnjudgeableError
from dedup_middleware.model import Action, Page, Verdict, VerdictKind
from dedup_middleware.records import EVIDENCE_SENTENCES
from dedup_middleware.safety import Safety

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from dedup_middleware.claims import Claim
    from dedup_middleware.detector import Detector
    from dedup_middleware.fingerprints import ClauseFingerprinter
    from dedup_middleware.limits import Budget
    from dedup_middleware.records import RecordLog

STORE_FAILED = "the store failed"
OWNER_PENDING = "the owner's claim was still open"


class Crawl:
    """The state that all pages of one crawl share."""

    def __init__(  # noqa: PLR0913 - what a crawl is made of, by name
        self,
        *,
        spider: str,
        run: str,
        detector: Detector,
        fingerprint: ClauseFingerprinter,
        log: RecordLog | None,
        count: Callable[[str, int], None],
        on_failure: Callable[[DedupError], None],
        flush: Callable[[], set[Hashable]] | None = None,
        seal_interval: int = 1,
    ) -> None:
        """Judge with *detector*; *count* takes a stat's name and an amount; *on_failure* hears of the first failure.

        *flush* and *seal_interval* are for :class:`Safety`.
        """
        self.run = run
        self.log = log
        self.fingerprint = fingerprint
        self._spider = spider
        self._detector = detector
        self._claims = Claims(detector.index, self._claim_settled, self.fail, sealed=flush is None)
        self._store_failed = False
        self.safety = Safety(detector.index, spider, flush=flush, interval=seal_interval, guard=self._guarded)
        self._count = count
        self._on_failure = on_failure
        # Drops by the number of their owner, where the owner is another crawl's so far.
        self._drops_for_earlier: Counter[int] = Counter()

    @property
    def failed(self) -> bool:
        """Whether something has failed: from then on nothing is dropped."""
        return self.safety.failed

    # --- verdicts

    def page(
        self,
        url: str,
        identities: tuple[bytes, ...],
        paragraphs: list[str],
        source: bytes = b"",
        budget: Budget = UNLIMITED,
    ) -> Page:
        """Return the page, or the item of the request *source*, that has this text.

        :class:`UnjudgeableError` once more than the *budget* is spent.
        """
        return Page(url, identities, self.fingerprint(paragraphs, budget), tuple(paragraphs), self.run, source)

    def examine(self, page: Page, action: Action, threshold: float) -> Case:
        """Return the case of *page* with its provisional verdict. Claims nothing yet."""
        case = Case(page.url, page, Verdict(VerdictKind.NEW), action, threshold)
        self._judge(case)
        return case

    @staticmethod
    def unjudged(url: str, reason: str, action: Action, threshold: float) -> Case:
        """Return the case of a page that cannot be judged, for *reason*."""
        return Case(url, None, Verdict(VerdictKind.UNJUDGED, reason=reason), action, threshold)

    def enter(self, case: Case) -> None:
        """Make the verdict binding, for the callback gets the page: unless it is a duplicate, it claims its text."""
        case.entered = True
        self._judge_if_stale(case)
        self._claim(case)

    def reconsider(self, case: Case) -> None:
        """Judge a duplicate anew if anything has changed; if it is none any more, it claims its text."""
        if case.is_duplicate:
            self._judge_if_stale(case)
            self._claim(case)

    def deliver_undecided(self, case: Case) -> None:
        """Give up on a duplicate whose owner is still pending: it is delivered and owns nothing."""
        case.verdict = dataclasses.replace(case.verdict, kind=VerdictKind.RELATED, reason=OWNER_PENDING)

    def owner_claim(self, case: Case) -> Claim | None:
        """Return the open claim that this duplicate depends on, if any."""
        match = case.verdict.match
        return self._claims.of(match.owner) if case.is_duplicate and match and match.owner.pending else None

    def owner_is_pending(self, case: Case) -> bool:
        """Tell whether the owner of this duplicate may still fail."""
        match = case.verdict.match
        return bool(case.is_duplicate and match and match.owner.pending)

    def item_is_duplicate(self, case: Case, item: Any) -> bool:
        """Tell whether one *item* of a duplicate page, by its own text, repeats the owner too."""
        match = case.verdict.match
        try:
            texts = item_texts(item)
        except UnjudgeableError:
            return False
        return match is not None and is_repeated(self.fingerprint(texts), match.owner, case.threshold)

    def item_says_something_else(self, case: Case, item: Any) -> bool:
        """Tell whether the one *item* of a duplicate page is mainly about what the owner does not say.

        Such an item was gathered on other pages too, and handed on in the request.
        """
        match = case.verdict.match
        try:
            # Markup is no text: its clauses begin with tags.
            texts = [text for text in item_texts(item) if not text.lstrip().startswith("<")]
        except UnjudgeableError:
            return True
        return match is not None and is_something_else(self.fingerprint(texts), match)

    def narrow(self, case: Case, items: list[Any]) -> None:
        """Let a page of several *items* own only what these say: a list of teasers delivers no story."""
        texts: list[str] = []
        for item in items:
            with suppress(UnjudgeableError):
                texts += item_texts(item)
        if case.claim is not None:
            case.claim.page = case.claim.page.saying(self.fingerprint(texts).weights.keys(), texts)

    def evidence(self, case: Case) -> list[str]:
        """Return the first repeated sentences of a case, as many as a record shows, in reading order."""
        if case.verdict.match is None or case.page is None:
            return []
        if case.repeated is None:
            shared = case.verdict.match.shared
            repeated = repeated_sentences(case.page.paragraphs, shared, self.fingerprint.hash)
            case.repeated = list(islice(repeated, EVIDENCE_SENTENCES))
        return case.repeated

    # --- ends

    def deliver(self, case: Case, item: Any) -> None:
        """Count *item* as delivered, and tag it where that is the action."""
        case.items_delivered += 1
        if case.claim is not None:
            case.claim.item_yielded()
        if case.action is Action.TAG:
            if not tag_item(item, case.verdict):
                self._count("items/tag_refused", 1)
            elif case.is_duplicate:
                self._count("items/tagged", 1)

    def count_would_drop(self, items: int) -> None:
        """Count *items* that a dry run delivers and `drop` would not."""
        if items:
            self._count("items/would_drop", items)

    def count_drop(self, case: Case) -> None:
        """Count an item of *case* that is dropped now."""
        case.items_dropped += 1
        self._count("items/dropped", 1)
        match = case.verdict.match
        if match is not None and match.owner.run != self.run:
            self._drops_for_earlier[match.owner.number] += 1

    def finish(self, case: Case) -> None:
        """Count and record a case whose output has been seen to its end; store what was dropped, or would be."""
        if case.finished:
            return
        case.finished = True
        kind = case.verdict.kind
        self._count("pages", 1)
        self._count(f"verdict/{kind.value}", 1)
        if kind is VerdictKind.UNJUDGED:
            self._count(f"unjudged/{case.verdict.reason.replace(' ', '_')}", 1)
        self.safety.finished(case)
        if kind is not VerdictKind.NEW and self.log is not None:
            with self._guarded():
                self.log.append(case.record(spider=self._spider, run=self.run, evidence=self.evidence(case)))

    def close(self) -> None:
        """Seal what has been delivered, or void it after a failure; count drops for earlier crawls; close the log."""
        with self._guarded():
            self._claims.void_all()
            self.safety.end(store_failed=self._store_failed)
            for number, drops in self._drops_for_earlier.items():
                owner = self._detector.index.page(number)
                # An owner that this crawl has delivered too, after the drop, bears this crawl's name by now.
                if owner is None or owner.run != self.run:
                    self._count("items/dropped_for_earlier_crawls", drops)
        if self.log is not None:
            with self._guarded():
                self.log.close()

    # --- inside

    def _judge_if_stale(self, case: Case) -> None:
        if case.page is not None and (
            self._store_failed or self._detector.index.changed_since(case.version, case.page)
        ):
            self._judge(case)

    def _judge(self, case: Case) -> None:
        if case.page is None:
            return
        if not self._store_failed:
            with self._guarded():
                case.version = self._detector.index.version
                case.repeated = None
                case.verdict = self._detector.judge(case.page, threshold=case.threshold)
                return
        case.verdict = Verdict(VerdictKind.UNJUDGED, reason=STORE_FAILED)

    def _claim(self, case: Case) -> None:
        if case.page is None or case.is_duplicate or case.verdict.kind is VerdictKind.UNJUDGED:
            return
        with self._guarded():
            own = self._detector.index.find(case.page.identities) if case.verdict.kind is VerdictKind.SAME else None
            case.claim = self._claims.open(case.page, own)

    def _claim_settled(self, claim: Claim) -> None:
        self._count(f"claims/{claim.state.value}", 1)
        if claim.state is ClaimState.CONFIRMED and claim.kept is not None:
            self.safety.confirmed(claim.kept.number)

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Turn a failure of the store or the log into a crawl without drops."""
        try:
            yield
        except DedupError as error:
            self.fail(error)

    def fail(self, error: DedupError) -> None:
        """Stop dropping: from now on every page is delivered."""
        self._store_failed = self._store_failed or isinstance(error, StoreError)
        if self.failed:
            return
        self.safety.failed = True
        self._count("failures", 1)
        self._on_failure(error)
        with self._guarded():
            self._claims.void_all()
