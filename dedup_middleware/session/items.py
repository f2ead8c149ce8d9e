"""Handles items of any class: stores those that are dropped, and puts the verdict on those that are tagged."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from dedup_middleware.checks.item_values import TAG_FIELD
from dedup_middleware.index import item_codec
from dedup_middleware.model import VerdictKind

if TYPE_CHECKING:
    from dedup_middleware.listener import Listener
    from dedup_middleware.model import Verdict


class ItemHandler:
    """Encodes the dropped items of one crawl, tags others, and reports once each class with which that fails."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._reported: set[type] = set()
        self._untaggable: set[type] = set()

    def encode(self, item: Any) -> bytes | None:
        """Return *item* as it is stored; ``None`` if it must be kept because its class cannot be stored."""
        data: bytes | None = None
        left_out: dict[str, type] = {}
        with suppress(item_codec.UnkeepableError):
            data, left_out = item_codec.encode(item)
        if data is None or left_out:
            self._listener.count("items/not_keepable" if data is None else "items/stored_in_part", 1)
            if type(item) not in self._reported:
                self._reported.add(type(item))
                self._listener.not_keepable(type(item), left_out)
        return data

    def tag(self, item: Any, verdict: Verdict, *, repeats: bool) -> bool:
        """Put ``{owner_url, score, verdict}`` on *item* under ``dedup``; return whether its type allows that.

        An item of a duplicate that does not itself repeat the owner is related.
        """
        match, kind = verdict.match, verdict.kind
        if kind is VerdictKind.DUPLICATE and not repeats:
            kind = VerdictKind.RELATED
        tag = {
            "owner_url": match.owner.url if match else None,
            "score": round(match.score, 4) if match else None,
            "verdict": kind.value,
        }
        from itemadapter import ItemAdapter  # noqa: PLC0415 - as in `items`

        try:
            ItemAdapter(item)[TAG_FIELD] = tag
        except Exception:  # noqa: BLE001 - whatever a class of the project's own raises
            self._listener.count("items/tag_refused", 1)
            if type(item) not in self._untaggable:
                self._listener.tag_refused(type(item))
            self._untaggable.add(type(item))
            return False
        if kind is VerdictKind.DUPLICATE:
            self._listener.count("items/tagged", 1)
        return True
