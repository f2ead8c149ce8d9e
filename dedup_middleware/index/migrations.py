"""Stores of earlier schemas -> today's.

What it does to a store can be done again, for an interruption leaves the older schema's number.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from dedup_middleware.errors import UnreadableError
from dedup_middleware.index import codec, journal_codec
from dedup_middleware.index.packing import without_credentials

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from dedup_middleware.stores.protocol import Store

_BATCH = 500


def _from_2(store: Store) -> None:
    """Take credentials out of kept requests; those that cannot be read here, and may have some, are not kept.

    Pages are read as they are: of no feed is known whether it took them.
    """
    bare = _bare_requests(store)
    while batch := list(islice(bare, _BATCH)):
        puts = [(key, value) for key, value in batch if value is not None]
        # Synced: the header that says that it is done must not outlast it.
        store.write(puts, [key for key, value in batch if value is None], sync=True)


def _bare_requests(store: Store) -> Iterator[tuple[bytes, bytes | None]]:
    for key, value in store.scan(*codec.REQUESTS):
        try:
            identity, spider, request, _ = journal_codec.decode_entry(value)
        except UnreadableError:
            yield key, None
            continue
        bare = without_credentials(request)
        if bare != request:
            yield key, None if bare is None else journal_codec.encode_entry(identity, spider, bare)


def _from_3(store: Store) -> None:
    """Change nothing: its pages are read as they are.

    Their titles are not known, nor what their items said: on their own host they drop nothing, and nothing with text
    anywhere, until they are delivered again.
    """


def _from_4(store: Store) -> None:
    """Change nothing.

    Its pages are read as they are, and its hashes stay as long as they are. Nobody knows the bytes that its pages were
    read from: each is read once more.
    """


#: By schema: what migrates a store to the next one.
MIGRATIONS: Mapping[int, Callable[[Store], None] | None] = {2: _from_2, 3: _from_3, 4: _from_4}
#: For those who read: `page_codec` reads these schemas as they are.
READABLE: Mapping[int, Callable[[Store], None] | None] = {2: None, 3: None, 4: None}
