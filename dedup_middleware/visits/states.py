"""Defines the states of a page on its way, and all transitions between them. A call in a wrong state raises.

A page has two states. `Output` is what the spider has given for it; `Claim` is who owns its text. One table has both,
and nothing else changes these states; `deduplicator` has what happens with each transition.

A page is *checked* before its callback has it, *pending* while its claim is open, then *durable* or *void*. A page that
claims nothing, a duplicate, is *dropped* with its items.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Any, TypeVar

_State = TypeVar("_State", bound=Enum)


class StateError(RuntimeError):
    """A method of `Deduplication` was called in a state in which it must not be: a bug of the caller."""


class _Member(Enum):
    """A state or an event."""

    # That of `Enum` is in Python: it would take most of the time of `after`.
    __hash__ = object.__hash__


class Output(_Member):
    """What the spider has given for a page."""

    AWAITED = auto()
    """The callback does not have the page yet, and may never get it."""
    FLOWS = auto()
    FAILED = auto()
    """The callback has raised: what still comes is not the page's."""
    ENDED = auto()


class Claim(_Member):
    """The claim of a page on its text."""

    NONE = auto()
    PENDING = auto()
    """Some of its items may still come, or are in the pipelines."""
    DELIVERED = auto()
    """All its items have left the pipelines; it waits for the disks of the feeds."""
    DURABLE = auto()
    """Its items are on disk, and the store has the page as an original."""
    VOID = auto()


class Event(_Member):
    """What happens to a page."""

    ENTER = auto()
    PROCESS = auto()
    FAIL = auto()
    END = auto()
    CLAIM = auto()
    DELIVER = auto()
    WRITE = auto()
    VOID = auto()


_TRANSITIONS: dict[Any, dict[Event, Any]] = {
    Output.AWAITED: {Event.ENTER: Output.FLOWS},
    Output.FLOWS: {Event.PROCESS: Output.FLOWS, Event.FAIL: Output.FAILED, Event.END: Output.ENDED},
    Output.FAILED: {Event.PROCESS: Output.FAILED, Event.FAIL: Output.FAILED, Event.END: Output.ENDED},
    Output.ENDED: {},
    Claim.NONE: {Event.CLAIM: Claim.PENDING},
    Claim.PENDING: {Event.DELIVER: Claim.DELIVERED, Event.VOID: Claim.VOID},
    Claim.DELIVERED: {Event.WRITE: Claim.DURABLE, Event.VOID: Claim.VOID},
    Claim.DURABLE: {},
    Claim.VOID: {},
}


def after(state: _State, event: Event) -> _State:
    """Return the state that *event* leads to from *state*; :class:`StateError` if it must not happen there."""
    try:
        found: _State = _TRANSITIONS[state][event]
    except KeyError:
        kind, now = type(state).__name__.lower(), state.name
        raise StateError(f"a page cannot {event.name.lower()} when its {kind} is {now}") from None
    return found
