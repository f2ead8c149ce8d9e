"""An item on its way out of the crawl: into the quarantine first, then, once the store knows of it, withheld."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from dedup_middleware.delivery.item_codec import UnkeepableError
from dedup_middleware.index.codec import identity_of
from dedup_middleware.model import VerdictKind
from dedup_middleware.reasons import Reason
from dedup_middleware.urls import host_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Set as AbstractSet
    from contextlib import AbstractContextManager

    from dedup_middleware.delivery.listener import Listener
    from dedup_middleware.delivery.page_state import PageState
    from dedup_middleware.delivery.quarantine import Quarantine
    from dedup_middleware.delivery.safety import Safety


class Withholding:
    """What the drops of one crawl, *run*, of *spider* leave in its *quarantine*, where it has one.

    *guard* notes what fails inside it. After a kill, each item that was dropped is in the quarantine, or its page in
    the journal: then it is requested again.
    """

    def __init__(  # noqa: PLR0913 - what stands behind a drop
        self,
        quarantine: Quarantine | None,
        safety: Safety,
        listener: Listener,
        guard: Callable[[], AbstractContextManager[None]],
        *,
        spider: str,
        run: str,
    ) -> None:
        self._quarantine = quarantine
        self._safety = safety
        self._listener = listener
        self._guard = guard
        self._named = {"spider": spider, "run": run}
        self._warned: set[type] = set()

    def may_drop(self, state: PageState, item: Any, feeds: AbstractSet[str], stands: Callable[[], bool]) -> bool | None:
        """Keep *item* of a duplicate, which *feeds* would take, and write down that it is dropped; tell if it may be.

        What cannot be kept is delivered. ``None`` where the verdict does not *stand* any more: it is to be looked at
        anew.
        """
        if not self._keeps(state, item):
            return False
        dropped = self._safety.may_drop(state, feeds, stands)
        if not dropped:
            self._take_out_last(state)
        return dropped

    def finished(self, state: PageState) -> None:
        """Forget what an unclean shutdown left of a page, or of an item, that has been seen again to its end."""
        if self._quarantine is not None and state.recovered and state.has_items:
            with self._guard():
                for identity in {identity_of(key) for key in state.recovered}:
                    self._quarantine.supersede(identity, but=state.quarantined)

    def _keeps(self, state: PageState, item: Any) -> bool:
        match, page = state.verdict.match, state.page
        if self._quarantine is None or match is None or page is None:
            return True
        try:
            with self._guard():
                number, left_out = self._quarantine.keep(
                    **self._named,
                    url=state.url,
                    host=host_of(state.url),
                    owner_url=match.owner.url,
                    score=round(match.score, 4),
                    identity=page.identities[0],
                    item=item,
                )
                state.quarantined.append(number)
                if left_out:
                    self._listener.count("items/stored_in_part", 1)
                    self._warn(item, left_out)
                return True
        except UnkeepableError:
            if not state.items_dropped:
                state.verdict = dataclasses.replace(state.verdict, kind=VerdictKind.RELATED, reason=Reason.NOT_KEEPABLE)
            self._listener.count("items/not_keepable", 1)
            self._warn(item, {})
        return False

    def _warn(self, item: Any, left_out: dict[str, type]) -> None:
        """Warn once of each class of items that are stored without the fields *left_out*, or not at all."""
        if type(item) not in self._warned:
            self._warned.add(type(item))
            self._listener.not_keepable(type(item), left_out)

    def _take_out_last(self, state: PageState) -> None:
        if self._quarantine is not None and state.quarantined:
            with self._guard():
                self._quarantine.take_out([state.quarantined.pop()])
