"""Counts what crawls have left in a store to be done, and which of those that share one are still at work on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dedup_middleware.index import schema
from dedup_middleware.index.in_doubt import InDoubt

if TYPE_CHECKING:
    from collections.abc import Collection

    from dedup_middleware.stores import OpenStore


def crawls_at_work(store: OpenStore) -> list[bytes]:
    """Return the workers that crawl with a shared *store*. A scan, and a look at each."""
    shared = store.shared
    if shared is None:
        return []
    return [key[1:] for key, _ in store.scan(*schema.WORKERS) if shared.is_at_work(key[1:])]


def shared_by(at_work: Collection[bytes]) -> str:
    """Return the state of a store that is shared by these."""
    return f"shared by {len(at_work)} crawl{'s' * (len(at_work) != 1)} now"


def to_release(store: OpenStore) -> int:
    """Return how many dropped items are to be released. A scan."""
    return sum(1 for _ in store.scan(*schema.RELEASES))


def in_doubt(store: OpenStore, at_work: Collection[bytes]) -> int:
    """Return how many originals are in doubt, but for those of the workers *at_work*. A scan."""
    return sum(doubt.worker not in at_work for _, doubt in InDoubt(store).left_behind())
