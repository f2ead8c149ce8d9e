"""The items of a page, heard before they are withheld.

It decides on single items and acts on none. An item that cannot be read is not withheld.
"""

from __future__ import annotations

import dataclasses
from contextlib import suppress
from enum import Enum
from typing import TYPE_CHECKING, Any

from dedup_middleware.budget import UnjudgeableError
from dedup_middleware.model import Objection, VerdictKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from dedup_middleware.checks.detector import Detector
    from dedup_middleware.checks.items import ItemWitness
    from dedup_middleware.delivery.claims import Claim
    from dedup_middleware.delivery.page_state import PageState
    from dedup_middleware.model import Page, StoredPage


class ItemVerdict(Enum):
    """What an item says of its page's verdict."""

    REPEATS = "repeats"
    """Nothing but what the owner's items have said: it may be withheld."""
    SILENT = "silent"
    """Too little to tell: the page decides."""
    OBJECTS = "objects"


class ItemJudge:
    """Hears the items of one crawl."""

    def __init__(self, witness: ItemWitness, detector: Detector) -> None:
        self._witness = witness
        self._detector = detector

    def judge(self, state: PageState, item: Any, shown: Callable[[], str]) -> ItemVerdict:
        """Return what an *item* of a duplicate says; if that stands against its owner, there may be another one.

        *shown* returns all that the page shows, folded. What was said last is kept as the state's objection.
        """
        assert state.page is not None
        page: Page = state.page
        try:
            statement = self._witness.read(page, item, state.budget)
        except UnjudgeableError as error:
            state.objection = Objection(error.reason)
            return ItemVerdict.OBJECTS

        def objects(owner: StoredPage) -> Objection | None:
            return self._witness.objection(page, statement, owner, self._detector, shown, threshold=state.threshold)

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
        state.agreed |= statement.has_text
        return ItemVerdict.REPEATS if statement.has_text else ItemVerdict.SILENT

    def note(self, claim: Claim, state: PageState, item: Any) -> None:
        """Note what an *item* of *state* says that is delivered under *claim*."""
        with suppress(UnjudgeableError):
            claim.statements.append(self._witness.read(claim.page, item, state.budget))

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
        said = self._witness.content_of(claim.statements)
        as_kept = "\n".join(self._detector.index.item_text(known))
        is_same = known.item_content == said and as_kept == "\n".join(said.texts)
        return is_same and several and known.hashes <= said.hashes

    def settled(self, claim: Claim, *, several: bool) -> Page:
        """Return the page of *claim* as it is owned, with what its items said; of *several* it owns nothing else.

        A list of teasers delivers no story.
        """
        said = self._witness.content_of(claim.statements)
        page = claim.page.restricted_to(said.hashes, said.texts) if several else claim.page
        return dataclasses.replace(page, item_content=said)
