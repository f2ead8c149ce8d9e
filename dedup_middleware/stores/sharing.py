"""Who of this process has which store open: those that name the same one share it.

It counts openers, and knows neither paths nor what is in a store.
"""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dedup_middleware.stores.opened import OpenStore
from dedup_middleware.stores.protocol import RemoteStore
from dedup_middleware.stores.schema import check_scheme

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from dedup_middleware.stores.medium import Medium

_media: dict[Hashable, Medium] = {}
# One guard for opening and the last close: neither may overtake the other.
_guard = threading.Lock()


def _after_fork() -> None:
    """Begin anew in a forked child: nothing is open, and the guard is free, whoever held it in the parent."""
    global _guard  # noqa: PLW0603 - a lock that another thread held at the fork can only be replaced
    for medium in _media.values():
        medium.leave_to_parent()
    _media.clear()
    _guard = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@contextmanager
def guarded() -> Iterator[None]:
    """Let nobody of this process open a store, nor close one for good, while the block runs."""
    with _guard:
        yield


def is_open(name: Hashable) -> bool:
    """Tell whether this process has the store *name* open; for those who are :func:`guarded`."""
    return name in _media


def join(name: Hashable, fingerprint_scheme: str | None, open_medium: Callable[[], tuple[Medium, bool]]) -> OpenStore:
    """Return a share of the store *name*, which *open_medium* opens if nobody has it; for those who are guarded.

    One that is away is nobody's to share: those who have it open close it, each when they find out.
    """
    medium, created = _media.get(name), False
    if medium is None or (isinstance(medium.store, RemoteStore) and medium.store.is_away):
        medium, created = open_medium()
        _media[name] = medium
    else:
        check_scheme(medium.header, fingerprint_scheme, medium.store.uri)
    medium.openers += 1
    return OpenStore(medium, created=created, leave=lambda: _leave(name, medium))


def _leave(name: Hashable, medium: Medium) -> None:
    with _guard:
        medium.openers -= 1
        if medium.openers == 0:
            if _media.get(name) is medium:
                del _media[name]
            medium.close()
