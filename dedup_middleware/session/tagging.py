"""The verdict on an item, as a field of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dedup_middleware.checks.item_values import TAG_FIELD
from dedup_middleware.model import VerdictKind

if TYPE_CHECKING:
    from dedup_middleware.delivery.listener import Listener
    from dedup_middleware.model import Verdict


class Tagger:
    """Puts verdicts on items, and tells a *listener* once of each class that takes none."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._untaggable: set[type] = set()

    def tag(self, item: Any, verdict: Verdict, *, repeats: bool) -> bool:
        """Put ``{owner_url, score, verdict}`` on *item* under ``dedup``; tell whether its type allows that.

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
