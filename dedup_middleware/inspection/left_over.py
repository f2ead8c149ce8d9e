"""What crawls have left in a store to be done, and which of those that share one are still at work on theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dedup_middleware.index import codec, journal_codec, shared_codec

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from dedup_middleware.stores import OpenStore


def crawls_at_work(store: OpenStore) -> list[bytes]:
    """Return the workers who crawl with the *store*; none where they do not share it. A scan, and a look at each."""
    shared = store.shared
    if shared is None:
        return []
    return [key[1:] for key, _ in store.scan(*shared_codec.WORKERS) if shared.is_at_work(key[1:])]


def shared_by(at_work: Collection[bytes]) -> str:
    """Say that a store is shared by these."""
    return f"shared by {len(at_work)} crawl{'s' * (len(at_work) != 1)} now"


def journalled(store: OpenStore, at_work: Collection[bytes]) -> int:
    """Count the dropped pages that are to be requested again, but for what those *at_work* may still do. Two scans.

    They see to what they have dropped themselves, and to what others have for stories that they deliver.
    """
    delivered = {number for number, worker in _unsealed(store) if worker in at_work}
    rests = (journal_codec.rest_of_entry(value) for _, value in store.scan(*codec.JOURNAL))
    return sum(rest is None or not (rest.worker in at_work or rest.owner in delivered) for rest in rests)


def unsealed(store: OpenStore, at_work: Collection[bytes]) -> int:
    """Count the owners that are to be delivered again, but for those whom those *at_work* deliver. A scan."""
    return sum(worker not in at_work for _, worker in _unsealed(store))


def _unsealed(store: OpenStore) -> Iterator[tuple[int, bytes]]:
    """Yield the numbers of the owners that are not sealed, and who delivers each."""
    for key, value in store.scan(*codec.UNSEALED):
        yield codec.decode_number(key[1:]), journal_codec.decode_unsealed(value)[0]
