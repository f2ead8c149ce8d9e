"""Decides whether two items of one page are one item, fetched twice: all that is not of the fetch is equal."""

from __future__ import annotations

import json
import time
from datetime import datetime
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from dedup_middleware.index import item_codec
from dedup_middleware.index.dropped_items import MOST_ALIKE
from dedup_middleware.items.item_values import is_incidental, is_url

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dedup_middleware.index.dropped_items import DroppedItem


class FetchedItem(NamedTuple):
    """An item that was fetched just now, encoded."""

    data: bytes
    url: str
    """Of its page."""
    spider: str
    named: tuple[str, ...] = ()
    """The fields that are compared: each value in them is content. Empty for all fields, without what is incidental."""

    @property
    def key(self) -> bytes:
        """16 bytes that are equal for all items of the page that may be the same: a cheap test, before `nearest`."""
        values = [
            (name, None if name and not is_named and _is_incidental(name, value, self.url, None) else value)
            for name, value, is_named in item_codec.values(self.data, self.named)
        ]
        return sha256(json.dumps([self.spider, values]).encode()).digest()[:16]

    def nearest(self, dropped: Iterable[DroppedItem]) -> DroppedItem | None:
        """Return that of the first *dropped* items of the page that is the same item; of several, the most alike.

        Where values differ, each must be of its fetch: a serial number, a random key, or the clock's reading then.
        """
        alike_items = [*islice(dropped, MOST_ALIKE)]
        now = time.time()
        mine = item_codec.values(self.data, self.named) if alike_items else []
        best, most = None, -1
        for item in alike_items:
            then = datetime.fromisoformat(item.time).timestamp()
            theirs = item_codec.values(item.data, self.named)
            if item.spider != self.spider or len(theirs) != len(mine):
                continue
            pairs = list(zip(mine, theirs, strict=True))
            different = [pair for pair in pairs if repr(pair[0]) != repr(pair[1])]
            is_same = all(
                name == other_name
                and not is_named
                and _is_incidental(name, value, self.url, now)
                and _is_incidental(name, other, item.url, then)
                for (name, value, is_named), (other_name, other, _) in different
            )
            alike = len(pairs) - len(different)
            if is_same and alike > most:
                best, most = item, alike
        return best


def _is_incidental(name: str, value: Any, url: str, now: float | None) -> bool:
    text = value if isinstance(value, str) else "" if isinstance(value, bool) or value is None else repr(value)
    # The URL of a picture or a file is content.
    return not is_url(text) and is_incidental(name.casefold(), text, url, now)
