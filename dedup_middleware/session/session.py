"""The pages of a crawl or a program, from verdict to record.

Whatever fails here, pages are delivered, and nothing is dropped any more: of a store that is away, until it is back.
"""

from __future__ import annotations

import dataclasses
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from dedup_middleware.budget import UNLIMITED, Budget
from dedup_middleware.canonical import addressed
from dedup_middleware.checks.items import ItemCheck
from dedup_middleware.delivery.claims import Claims, ClaimState
from dedup_middleware.delivery.item_judge import ItemJudge, ItemVerdict
from dedup_middleware.delivery.page_state import PageState
from dedup_middleware.delivery.safety import Safety
from dedup_middleware.delivery.sealing import Sealing
from dedup_middleware.delivery.taking_back import TakingBack
from dedup_middleware.delivery.withholding import Withholding
from dedup_middleware.errors import DedupError, StoreAwayError, StoreError
from dedup_middleware.extraction.extractor import weighted_dom
from dedup_middleware.inspection.recorder import Recorder
from dedup_middleware.model import Action, Page, Rejection, Scope, Verdict, VerdictKind
from dedup_middleware.reasons import Reason
from dedup_middleware.session.claiming import Claiming
from dedup_middleware.session.guard import Guard
from dedup_middleware.session.judging import Judging, is_read
from dedup_middleware.session.published import Published
from dedup_middleware.session.tagging import Tagger

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from lxml.etree import _Element

    from dedup_middleware.checks.detector import Detector
    from dedup_middleware.delivery.claims import Claim, Soon
    from dedup_middleware.delivery.disk_waits import DiskWaits, Flush
    from dedup_middleware.delivery.listener import Listener
    from dedup_middleware.delivery.quarantine import Quarantine
    from dedup_middleware.extraction.extractor import Extractor
    from dedup_middleware.features import PageFeatures
    from dedup_middleware.fingerprints import Fingerprinter
    from dedup_middleware.fingerprints.published import Learner
    from dedup_middleware.inspection.records import RecordLog
    from dedup_middleware.model import Fetched, Witness


# How often a duplicate is looked at whose owner other processes change meanwhile, before it is delivered.
_LOOKS = 3


class Session:
    """What all pages of one crawl, or of one program, share."""

    awaits_store = False
    """Whether nothing is dropped for no other reason than that the store is away."""

    def __init__(  # noqa: PLR0913 - what a crawl is made of, by name
        self,
        *,
        spider: str,
        run: str,
        detector: Detector,
        fingerprint: Fingerprinter,
        extract: Extractor = weighted_dom,
        learner: Learner | None = None,
        log: RecordLog | None,
        quarantine: Quarantine | None = None,
        listener: Listener,
        flush: Flush | None = None,
        disks: DiskWaits | None = None,
        soon: Soon | None = None,
        seal_interval: int = 1,
        feeds_wanting: Callable[[Any], frozenset[str]] = lambda _: frozenset(),
        max_characters: int = sys.maxsize,
        item_fields: Collection[str] = (),
        observes: bool = False,
        continues: bool = False,
        takes_back: bool = True,
    ) -> None:
        """Judge with *detector* and tell *listener*.

        *soon* is for `Claims`, *flush*, *disks* and *seal_interval* for `Safety`, *max_characters* and *item_fields*
        for `ItemCheck`; *feeds_wanting* returns the kinds of the feeds that want an item. One that *observes* drops
        nothing; later processes take up one that *continues*; one that *takes_back* requests what a template has cost.
        """
        self.run = run
        self.fingerprint = fingerprint
        self.extract = extract
        index, prints, guard = detector.index, detector.index.prints, Guard(self.fail)
        self._guarded = guard
        self.published = Published(learner, prints, guard) if learner and prints else None
        self._item_judge = ItemJudge(ItemCheck(fingerprint, max_characters, item_fields), detector)
        self._detector = detector
        self._listener = listener
        claims = self._claims = Claims(index, self._claim_settled, self.fail, sealed=flush is None, soon=soon)
        sealing = Sealing(index, run, index.reach.scope, seal_interval)
        for_crawl = run if continues and index.reach.scope is Scope.CRAWL else ""
        self.safety = Safety(sealing, spider, claims, crawl=for_crawl, flush=flush, disks=disks, guard=guard)
        self._withholding = Withholding(quarantine, self.safety, listener, guard, spider=spider, run=run)
        self.judging = Judging(detector, self.safety, run, guard)
        self.claiming = Claiming(claims, self.judging, detector, guard)
        self._taking_back = TakingBack(detector, self.safety, run, enabled=takes_back)
        self._feeds_wanting = feeds_wanting
        self._observes = observes
        self.recorder = Recorder(spider, run, log, listener, guard, hash_clause=fingerprint.hash)
        self._tagger = Tagger(listener)

    # --- verdicts

    def read(self, fetched: Fetched, root: _Element, budget: Budget) -> Page:
        """Return the page whose tree has *root*; `UnjudgeableError` if it is not all there, or costs too much."""
        extracted, (url, identities, body_digest) = self.extract(root, budget), fetched
        features = addressed(extracted.features, url, identities)
        page = self.page(url, identities, extracted.paragraphs, features=features, root=root, budget=budget)
        doubtful, furniture = extracted.is_doubtful, extracted.is_furniture
        return dataclasses.replace(page, body_digest=body_digest, is_doubtful=doubtful, is_furniture=furniture)

    def page(  # noqa: PLR0913 - what a page is made of
        self,
        url: str,
        identities: tuple[bytes, ...],
        paragraphs: Iterable[str],
        *,
        source: bytes = b"",
        features: PageFeatures | None = None,
        root: _Element | None = None,
        budget: Budget = UNLIMITED,
    ) -> Page:
        """Return the page, or the item of the request *source*, that has this text; within *budget*, or it raises."""
        texts = tuple(paragraphs)
        fingerprint = self.fingerprint(texts, budget)
        if self.published is not None and not source:
            fingerprint = dataclasses.replace(fingerprint, made=self.published.made(texts, url, features, root))
        return Page(url, identities, fingerprint, texts, self.run, source, features)

    def examine(self, page: Page, action: Action, threshold: float, budget: Budget, *, keep: bool = False) -> PageState:
        """Return the state of *page* with its provisional verdict; its items have what is left of its *budget*."""
        state = PageState(page.url, page, Verdict(VerdictKind.NEW), self._allowed(action), threshold, budget, keep=keep)
        self.judging.judge(state)
        state.budget.pause()
        return state

    def examine_unread(
        self, fetched: Fetched, action: Action, threshold: float, budget: Budget, read: Callable[[], Page]
    ) -> PageState | None:
        """Return the state of a page that was *fetched* again, byte for byte, as :meth:`examine` would, but unread.

        *read* reads it, should that be needed later. ``None`` where it is needed now.
        """
        with self._guarded():
            version = self._detector.index.version
            if (found := self.judging.find_unread(fetched, threshold)) is not None:
                state = PageState(fetched.url, *found, self._allowed(action), threshold, budget, read, version)
                state.suspected_template = self._detector.suspected_template(*found)
                state.budget.pause()
                self._listener.count("unread", 1)
                return state
        return None

    def _allowed(self, action: Action) -> Action:
        return Action.DRY_RUN if self._observes and action is Action.DROP else action

    def enter(self, state: PageState) -> None:
        """Make the verdict binding, for the callback gets the page: unless it is a duplicate, it claims its text."""
        state.entered = True
        self.claiming.judge_and_claim(state)

    def reconsider(self, state: PageState) -> None:
        """Judge a duplicate anew if anything has changed; if it is none any more, it claims its text."""
        if state.is_duplicate:
            self.claiming.judge_and_claim(state)

    def deliver_if_feed_lacks_it(self, state: PageState, item: Any) -> frozenset[str]:
        """Let the page of *item* own its text too if a feed wants the item that has taken none of its owner's.

        Return the kinds of the feeds that want it.
        """
        match = state.verdict.match
        feeds = self._feeds_wanting(item) if state.is_duplicate else frozenset()
        if state.is_duplicate and match and not match.owner.delivery.has_reached(feeds):
            self.keep(state, Rejection(Reason.NOT_REACHED))
        return feeds

    def may_drop(self, state: PageState, item: Any) -> bool:
        """Tell whether *item* of a duplicate may be dropped; before it is, keep it, and write down that it is."""
        for _ in range(_LOOKS):
            self.reconsider(state)
            feeds = self.deliver_if_feed_lacks_it(state, item)
            state.deliver_undecided()
            if not state.is_duplicate:
                return False
            dropped = self._withholding.may_drop(state, item, feeds, partial(self.judging.stands, state))
            if dropped is not None:
                return dropped
            self.claiming.claim(state)
        self.keep(state, Rejection(Reason.OWNER_PENDING))
        return False

    def judge_item(self, state: PageState, item: Any, shows: Callable[[str], bool]) -> ItemVerdict:
        """Return what an *item* of a duplicate is; see `ItemJudge`. Where the store fails, it is kept."""
        with self._guarded():
            return self._item_judge.judge(state, item, shows)
        return ItemVerdict.OBJECTS

    def keep(self, state: PageState, objection: Rejection, witness: Witness | None = None) -> None:
        """Let a duplicate be delivered, for the *objection* of a *witness* or of our own, and own what it says."""
        if state.is_duplicate:
            state.overrule(objection, witness)
            self.claiming.claim(state)

    def settle_items(self, state: PageState, *, several: bool) -> None:
        """Let a page own what its items said, and if it has *several*, nothing else."""
        if state.claim is None:
            return
        if state.read is not None and not self._item_judge.says_the_same(state.claim, several=several):
            if not is_read(state) or state.page is None:
                state.claim.callback_failed()
                return
            state.claim.page = state.page
        state.claim.page = self._item_judge.settled(state.claim, several=several)

    # --- ends

    def deliver(self, state: PageState, item: Any, *, repeats: bool = False) -> None:
        """Count *item* as delivered, and tag it where that is the action: it *repeats* the page's owner, or not."""
        state.items_delivered += 1
        if state.claim is not None:
            state.claim.item_yielded()
            self._item_judge.note(state.claim, state, item)
        if state.action is Action.TAG and self._tagger.tag(item, state.verdict, repeats=repeats):
            state.items_tagged += state.is_duplicate and repeats

    def count_drop(self, state: PageState) -> None:
        """Count an item of *state* that is dropped now."""
        state.items_dropped += 1
        self.recorder.dropped(state)

    def finish(self, state: PageState) -> None:
        """Count and record a page whose output has been seen to its end; store what was dropped, or would be."""
        if state.finished:
            return
        state.finished = True
        self.safety.finished(state)
        self._withholding.finished(state)
        self.recorder.finished(state)
        with self._guarded():
            for taken in self._taking_back.finished(state):
                self.recorder.taken_back(taken)
                self._listener.taken_back(taken)

    def go_on_from(self, before: Session) -> None:
        """Go on with what *before* has delivered and counted, in the same crawl, until its store was away."""
        self.safety.go_on_from(before.safety)
        self.recorder.go_on_from(before.recorder)

    def close(self) -> None:
        """Seal what has been delivered, or void it after a failure; count drops for earlier crawls; close the log."""
        with self._guarded():
            self._claims.confirm_complete()
            self._claims.revoke_all()
        with self._guarded():
            self.safety.end(store_failed=self.judging.failure is not None)
        self.recorder.close(self._detector.index)

    # --- inside

    def _claim_settled(self, claim: Claim) -> None:
        self._listener.count(f"claims/{claim.state.value}", 1)
        if claim.state is ClaimState.CONFIRMED and claim.kept is not None:
            self.safety.confirmed(claim.kept.number)
            if claim.page.instead_of is not None:
                self._listener.count("upgrades", 1)

    def fail(self, error: DedupError) -> None:
        """Stop dropping: from now on every page is delivered."""
        self.judging.failed(error)
        # What else fails while the store is away, its return does not mend.
        if self.safety.failed and (isinstance(error, StoreError) or not self.awaits_store):
            return
        self.awaits_store = isinstance(error, StoreAwayError)
        self.safety.failed = True
        self._listener.count("away" if self.awaits_store else "failures", 1)
        self._listener.failed(error)
        with self._guarded():
            self._claims.revoke_all()
