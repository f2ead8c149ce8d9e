"""Decides whether an item of a duplicate page may be dropped; it drops none itself.

An item that cannot be read is kept.
"""

from __future__ import annotations

import dataclasses
from contextlib import suppress
from enum import Enum
from typing import TYPE_CHECKING, Any

from dedup_middleware.budget import UnjudgeableError
from dedup_middleware.checks.items import content_of
from dedup_middleware.model import Rejection, VerdictKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from dedup_middleware.checks.detector import Detector
    from dedup_middleware.checks.items import ItemCheck
    from dedup_middleware.delivery.claims import Claim
    from dedup_middleware.delivery.page_state import PageState
    from dedup_middleware.model import Page, StoredPage


class ItemVerdict(Enum):
    """What an item is beside the items of its page's original."""

    REPEATS = "repeats"
    """Its text is theirs: it may be dropped."""
    SILENT = "silent"
    """It has too little text to be compared: it goes with its page."""
    OBJECTS = "objects"
    """It contains what they do not: it is kept."""


class ItemJudge:
    """Judges the items of one crawl."""

    def __init__(self, check: ItemCheck, detector: Detector) -> None:
        self._check = check
        self._detector = detector

    def judge(self, state: PageState, item: Any, shows: Callable[[str], bool]) -> ItemVerdict:
        """Return what an *item* of a duplicate is; where it is not its original's, there may be another original.

        *shows* returns whether the page contains words. The state keeps the last item's objection.
        """
        assert state.page is not None
        page: Page = state.page
        try:
            read = self._check.read(page, item, state.budget)
        except UnjudgeableError as error:
            state.objection = Rejection(error.reason)
            return ItemVerdict.OBJECTS

        def objects(owner: StoredPage) -> Rejection | None:
            return self._check.objection(
                page, read, owner, self._detector, shows=shows, carried=state.carried, threshold=state.threshold
            )

        match = state.verdict.match
        state.objection = None if match is None else objects(match.owner)
        if state.objection and not state.has_items:
            try:
                state.read_in_full()
            except UnjudgeableError:
                return ItemVerdict.OBJECTS
            page = state.page or page
            another = self._detector.judge(page, threshold=state.threshold, objects=objects)
            if another.kind is VerdictKind.DUPLICATE:
                state.verdict, state.repeated, state.objection = another, None, None
                state.suspected_template = self._detector.suspected_template(page, another)
        if state.objection is not None:
            return ItemVerdict.OBJECTS
        state.agreed |= read.has_text
        return ItemVerdict.REPEATS if read.has_text else ItemVerdict.SILENT

    def note(self, claim: Claim, state: PageState, item: Any) -> None:
        """Note what an *item* of *state* contains that is kept under *claim*."""
        with suppress(UnjudgeableError):
            read = self._check.read(claim.page, item, state.budget)
            claim.items.append(read)
            self._check.keys.note(read.values)

    def says_the_same(self, claim: Claim, *, several: bool) -> bool:
        """Tell whether the items of *claim*, whose page stands unread, leave it owning what it owns.

        The text of a page with one item is its own, whatever the item says. Of one with *several*, or with several the
        last time, they must say what they said then.
        """
        known = claim.page.known
        assert known is not None
        owns_text = bool(known.exact_digest)
        if owns_text and not several:
            return True
        said = content_of(claim.items)
        as_kept = "\n".join(self._detector.index.item_text(known))
        is_same = known.item_content == said and as_kept == "\n".join(said.texts)
        return is_same and several and known.hashes <= said.hashes

    def settled(self, claim: Claim, *, several: bool) -> Page:
        """Return the page of *claim* as it is owned, with what its items said; of *several* it owns nothing else.

        A list of teasers delivers no story.
        """
        said = content_of(claim.items)
        page = claim.page.restricted_to(said.hashes, said.texts) if several else claim.page
        return dataclasses.replace(page, item_content=said)
