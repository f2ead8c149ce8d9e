"""What the first pages of each host are called, told among the workers of one store.

Each of them learns by itself what is a site's own in the titles of its pages, see `verdict.sites`; and each meets only
some of them. So they keep the first titles of a host that have several parts where all can see them.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from dedup_middleware.index import shared_codec
from dedup_middleware.text import titles
from dedup_middleware.urls import host_of

if TYPE_CHECKING:
    from dedup_middleware.model import Page
    from dedup_middleware.stores.protocol import Store

# The parts of a site, and of its sections, stand in some of them; of what comes later, each worker has met enough.
_FIRST = 12
# A title is what its maker likes. Of so many letters, it is not one that others learn from.
_LONGEST = 200
# Hosts whose titles this worker has been told, 150 bytes each; of others it is told again.
_HOSTS = 20_000


class SharedTitles:
    """What one worker is told of hosts, and tells of them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        # By host: how many of its titles were told.
        self._told: OrderedDict[str, int] = OrderedDict()

    def key(self, page: Page) -> bytes | None:
        """Return what :meth:`told` asks for; ``None`` where there will be nothing new."""
        host = host_of(page.url)
        return shared_codec.titles_key(host) if self._told.get(host, 0) < _FIRST else None

    def told(self, page: Page) -> list[str]:
        """Return what pages of the host of *page* are called, unless that was returned before. One get, or none."""
        key, host = self.key(page), host_of(page.url)
        if key is None:
            return []
        found, before = self._at(key), self._told.get(host, 0)
        self._told[host] = len(found)
        self._told.move_to_end(host)
        if len(self._told) > _HOSTS:
            self._told.popitem(last=False)
        return found[before:]

    def changes(self, page: Page) -> list[tuple[bytes, bytes]]:
        """Return what tells the others what *page* is called; nothing if they know enough. One get, or none."""
        key, title = self.key(page), "" if page.features is None else page.features.title
        if key is None or len(title) > _LONGEST or len(titles.parts(title)) <= 1:
            return []
        found = self._at(key)
        is_new = title not in found and len(found) < _FIRST
        return [(key, shared_codec.encode_titles([*found, title]))] if is_new else []

    def _at(self, key: bytes) -> list[str]:
        (value,) = self._store.get_many([key])
        return [] if value is None else shared_codec.decode_titles(value)
