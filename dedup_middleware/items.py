"""Items of any type, as texts and with a tag.

Law of this file: itemadapter is the only way to an item.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from itemadapter import ItemAdapter

from dedup_middleware.limits import UnjudgeableError
from dedup_middleware.model import VerdictKind

if TYPE_CHECKING:
    from dedup_middleware.model import Verdict
    from dedup_middleware.protocols import Listener

TAG_FIELD = "dedup"
UNREADABLE = "unreadable item"


def item_texts(item: Any, fields: Iterable[str] | None = None) -> list[str]:
    """Return the texts in *item*, nested ones too; of *fields* only, where they are named. Addresses are no text.

    `UnjudgeableError` if it cannot be read: an item's class is the project's, and what it looks up may be gone.
    """
    try:
        if not ItemAdapter.is_item(item):
            return []
        adapter = ItemAdapter(item)
        names = adapter.keys() if fields is None else (f for f in fields if f in adapter)
        texts = [*_texts(item, [adapter[name] for name in names])]
    except Exception as error:
        raise UnjudgeableError(UNREADABLE) from error
    return [text for text in texts if not text.startswith(("http://", "https://"))]


def _texts(item: Any, values: list[Any]) -> Iterator[str]:
    """Yield the texts in *values* of *item*, each thing's once, for things may refer to one another.

    Without recursion, for they may nest deeper than the stack.
    """
    # The things themselves are kept too: a new one may have the id of one that is gone.
    seen = {id(item): item}
    waiting = values[::-1]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
            continue
        if id(value) in seen:
            continue
        seen[id(value)] = value
        if ItemAdapter.is_item(value):
            waiting.extend(reversed([*ItemAdapter(value).values()]))
        elif isinstance(value, Mapping):
            waiting.extend(reversed([*value.values()]))
        elif isinstance(value, (list, tuple)):
            waiting.extend(reversed(value))


class Tagger:
    """Puts verdicts on items, and tells a *listener* once of each class that takes none."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._untaggable: set[type] = set()

    def tag(self, item: Any, verdict: Verdict) -> bool:
        """Put ``{owner_url, score, verdict}`` on *item* under ``dedup``; tell whether its type allows that."""
        match = verdict.match
        tag = {
            "owner_url": match.owner.url if match else None,
            "score": round(match.score, 4) if match else None,
            "verdict": verdict.kind.value,
        }
        try:
            ItemAdapter(item)[TAG_FIELD] = tag
        except Exception:  # noqa: BLE001 - whatever a class of the project's own raises
            self._listener.count("items/tag_refused", 1)
            if type(item) not in self._untaggable:
                self._listener.tag_refused(type(item))
            self._untaggable.add(type(item))
            return False
        if verdict.kind is VerdictKind.DUPLICATE:
            self._listener.count("items/tagged", 1)
        return True
