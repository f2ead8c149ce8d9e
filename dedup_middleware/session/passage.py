"""A page with one item, through a session in one go: for those who have no pipelines and no feeds.

A crawl takes the same steps, with time between them: the callback, other items, pipelines that may fail.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dedup_middleware.model import Witness

if TYPE_CHECKING:
    from collections.abc import Callable

    from dedup_middleware.delivery.page_state import PageState
    from dedup_middleware.session.session import Session


def pass_through(
    session: Session, state: PageState, kept: Any, item: Any = None, shows: Callable[[str], bool] = bool
) -> None:
    """See the page of *state*, just examined, to its end: drop it, or deliver it and let it own its text.

    *kept* is what its owner is known to have delivered if it is one. *item*, where there is one, is compared before it
    is dropped, and *shows* returns whether its page contains words.
    """
    session.enter(state)
    if state.is_duplicate and item is not None:
        session.judge_item(state, item, shows)
        if state.is_duplicate and state.objection is not None:
            session.keep(state, state.objection, Witness.ITEM)
    finish(session, state, kept)


def finish(session: Session, state: PageState, kept: Any) -> None:
    """See a page that has entered *session* to its end, with the item *kept*."""
    if state.is_duplicate and session.may_drop(state, kept):
        session.count_drop(state)
    else:
        session.deliver(state, kept)
        if state.claim is not None:
            # Whoever asked for it has got it: no feed of a later crawl still has to.
            state.claim.item_scraped(feeds=None)
            session.settle_items(state, several=False)
            state.claim.callback_finished()
    session.finish(state)
