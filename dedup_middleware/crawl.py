"""One crawl's pages, from verdict to record.

Law of this file: it knows what happens to a page and in which order, but neither Scrapy nor the clock. Whatever fails
here, pages are delivered: after a failure of the store or the log nothing is dropped any more.
"""

from __future__ import annotations

import dataclasses
import sys
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any

from dedup_middleware.accounts import Accounts
from dedup_middleware.case import Case
from dedup_middleware.claims import Claims, ClaimState
from dedup_middleware.detector import is_worth_owning
from dedup_middleware.errors import DedupError, StoreError
from dedup_middleware.evidence import repeated_sentences
from dedup_middleware.hearing import Hearing, Stance
from dedup_middleware.items import Tagger
from dedup_middleware.itemwitness import ItemWitness
from dedup_middleware.limits import UNLIMITED, Budget
from dedup_middleware.model import Action, Objection, Page, Scope, Verdict, VerdictKind
from dedup_middleware.records import EVIDENCE_SENTENCES
from dedup_middleware.safety import Safety
from dedup_middleware.sealing import Sealing
from dedup_middleware.takingback import TakingBack

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterator

    from dedup_middleware.claims import Claim
    from dedup_middleware.detector import Detector
    from dedup_middleware.fingerprints import ClauseFingerprinter
    from dedup_middleware.model import Witness
    from dedup_middleware.protocols import Listener
    from dedup_middleware.records import RecordLog
    from dedup_middleware.sayings import Surroundings

STORE_FAILED = "the store failed"
#: CPU time for the evidence of one page, beside its budget: ordinary pages take 1.
EVIDENCE_MILLISECONDS = 100
OWNER_PENDING = "the owner's claim was still open"
NOT_REACHED = "a feed that takes such items has taken none of the owner's"


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
        listener: Listener,
        flush: Callable[[], set[Hashable]] | None = None,
        seal_interval: int = 1,
        feeds_wanting: Callable[[Any], frozenset[str]] = lambda _: frozenset(),
        most_characters: int = sys.maxsize,
        item_fields: Collection[str] = (),
        observes: bool = False,
        continues: bool = False,
        takes_back: bool = True,
    ) -> None:
        """Judge with *detector* and tell *listener*.

        *flush* and *seal_interval* are for :class:`Safety`; *feeds_wanting* returns the kinds of the feeds that would
        take an item; *most_characters* and *item_fields* are for :class:`ItemWitness`. A crawl that *observes* drops
        nothing; one that *continues* is taken up by later processes, under the same name; one that *takes_back* lets
        the listener request pages again that were dropped for a template.
        """
        self.run = run
        self.fingerprint = fingerprint
        self._hearing = Hearing(ItemWitness(fingerprint, most_characters, item_fields), detector)
        self._detector = detector
        self._listener = listener
        self._count = listener.count
        self._claims = Claims(detector.index, self._claim_settled, self.fail, sealed=flush is None)
        self._store_failed = False
        sealing = Sealing(detector.index, run, detector.index.reach.scope, seal_interval)
        for_crawl = run if continues and detector.index.reach.scope is Scope.CRAWL else ""
        self.safety = Safety(sealing, spider, crawl=for_crawl, flush=flush, guard=self._guarded)
        self._taking_back = TakingBack(detector, self.safety, run, enabled=takes_back)
        self._feeds_wanting = feeds_wanting
        self._observes = observes
        self._accounts = Accounts(spider, run, log, listener, self._guarded)
        self._tagger = Tagger(listener)

    # --- verdicts

    def page(  # noqa: PLR0913 - what a page is made of
        self,
        url: str,
        identities: tuple[bytes, ...],
        paragraphs: list[str],
        *,
        source: bytes = b"",
        around: Surroundings | None = None,
        budget: Budget = UNLIMITED,
    ) -> Page:
        """Return the page, or the item of the request *source*, that has this text; within *budget*, or it raises."""
        return Page(url, identities, self.fingerprint(paragraphs, budget), tuple(paragraphs), self.run, source, around)

    def examine(self, page: Page, action: Action, threshold: float, budget: Budget | None = None) -> Case:
        """Return the case of *page* with its provisional verdict; its items have what is left of its *budget*."""
        if self._observes and action is Action.DROP:
            action = Action.DRY_RUN
        case = Case(page.url, page, Verdict(VerdictKind.NEW), action, threshold, budget or Budget())
        self._judge(case)
        case.budget.pause()
        return case

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

    def deliver_if_feed_lacks_it(self, case: Case, item: Any) -> frozenset[str]:
        """Let the page of *item* own its text too if a feed wants the item that has taken none of its owner's.

        Return the kinds of the feeds that want it.
        """
        match = case.verdict.match
        feeds = self._feeds_wanting(item) if case.is_duplicate else frozenset()
        if case.is_duplicate and match and not match.owner.delivery.has_reached(feeds):
            self.keep(case, Objection(NOT_REACHED))
        return feeds

    def may_drop(self, case: Case, item: Any) -> bool:
        """Tell whether *item* of a duplicate may be dropped, and write down before it is that it is."""
        self.reconsider(case)
        feeds = self.deliver_if_feed_lacks_it(case, item)
        if self.owner_is_pending(case):
            self.deliver_undecided(case)
        self._look_for_doubt(case)
        return case.is_duplicate and self.safety.may_drop(case, feeds)

    def hear(self, case: Case, item: Any, shown: Callable[[], str]) -> Stance:
        """Return what an *item* of a duplicate says; see `Hearing`. A store that fails is no reason to withhold it."""
        with self._guarded():
            return self._hearing.hear(case, item, shown)
        return Stance.OBJECTS

    def keep(self, case: Case, objection: Objection, witness: Witness | None = None) -> None:
        """Let a duplicate be delivered, for the *objection* of a *witness* or of our own, and own what it says."""
        if case.is_duplicate:
            case.verdict = Verdict(VerdictKind.RELATED, case.verdict.match, objection.reason, witness, objection.own)
            self._claim(case)

    def settle_items(self, case: Case, *, several: bool) -> None:
        """Let a page own what its items said, and if it has *several*, nothing else."""
        if case.claim is not None:
            case.claim.page = self._hearing.settled(case.claim, several=several)

    def evidence(self, case: Case) -> list[str]:
        """Return the first repeated sentences of a case, as many as a record shows, in reading order."""
        if case.verdict.match is None or case.page is None:
            return []
        if case.repeated is None:
            budget = Budget(milliseconds=EVIDENCE_MILLISECONDS)
            repeated = repeated_sentences(case.page, case.verdict.match.shared, self.fingerprint.hash, budget)
            case.repeated = list(islice(repeated, EVIDENCE_SENTENCES))
        return case.repeated

    # --- ends

    def deliver(self, case: Case, item: Any, *, repeats: bool = False) -> None:
        """Count *item* as delivered, and tag it where that is the action: it *repeats* the page's owner, or not."""
        case.items_delivered += 1
        if case.claim is not None:
            case.claim.item_yielded()
            self._hearing.note(case.claim, case, item)
        if case.action is Action.TAG:
            case.items_tagged += self._tagger.tag(item, case.verdict, repeats=repeats) and case.is_duplicate and repeats

    def count_drop(self, case: Case) -> None:
        """Count an item of *case* that is dropped now."""
        case.items_dropped += 1
        self._accounts.dropped(case)

    def finish(self, case: Case) -> None:
        """Count and record a case whose output has been seen to its end; store what was dropped, or would be."""
        if case.finished:
            return
        case.finished = True
        self._look_for_doubt(case)
        self.safety.finished(case)
        self._accounts.finished(case, self.evidence)
        with self._guarded():
            for taken in self._taking_back.finished(case):
                self._accounts.taken_back(taken)
                self._listener.taken_back(taken)

    def close(self) -> None:
        """Seal what has been delivered, or void it after a failure; count drops for earlier crawls; close the log."""
        with self._guarded():
            self._claims.void_all()
            self.safety.end(store_failed=self._store_failed)
        self._accounts.close(self._detector.index)

    # --- inside

    def _judge_if_stale(self, case: Case) -> None:
        if case.page is not None and (
            self._store_failed or self._detector.index.changed_since(case.version, case.page)
        ):
            self._judge(case)

    def _look_for_doubt(self, case: Case) -> None:
        templates = self._detector.templates
        if case.doubt and case.page is not None:
            case.is_doubtful = templates.is_doubtful(case.doubt, case.page.identities[0])
        while templates.late:
            self.safety.note_doubt(*templates.late.pop())

    def _judge(self, case: Case) -> None:
        if case.page is None:
            return
        if not self._store_failed:
            with self._guarded():
                case.version = self._detector.index.version
                case.repeated = None
                case.verdict = self._detector.judge(case.page, threshold=case.threshold)
                case.doubt = self._detector.doubt(case.page, case.verdict)
                return
        case.verdict = Verdict(VerdictKind.UNJUDGED, reason=STORE_FAILED)

    def _claim(self, case: Case) -> None:
        if case.page is None or case.is_duplicate or not is_worth_owning(case.page, case.verdict):
            return
        if case.items_delivered:
            return  # what becomes of these would be taken for what becomes of the claim's own
        with self._guarded():
            own = self._detector.index.find(case.page.identities) if case.verdict.kind is VerdictKind.SAME else None
            case.claim = self._claims.open(self._detector.as_kept(case.page, case.verdict.match, case.threshold), own)

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
        if self.safety.failed:
            return
        self.safety.failed = True
        self._count("failures", 1)
        self._listener.failed(error)
        with self._guarded():
            self._claims.void_all()
