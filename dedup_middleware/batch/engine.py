"""What runs the steps of a batch: elements in, elements out, side by side.

A step knows nothing of processes, and gets all it needs by value. Whatever runs it may run parts of it twice.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from dedup_middleware.batch.archive import Part

    Values = dict[str, list[Any]]
    """The values of some elements, by kind."""
    Gathers = Callable[[int, Values], Iterable["Element"]]
    Maps = Callable[["Element"], Iterable["Element"]]
    Reads = Callable[[int, Part], Iterable["Element"]]


class Element(NamedTuple):
    """A piece of what goes from step to step."""

    kind: str
    key: int
    """Elements of one key are gathered in one place."""
    value: Any
    """Best of some 100 kB: each goes through other processes by itself, and must not be changed."""


class Engine(Protocol):
    """Whatever runs steps. What its methods return is its own business, but for :meth:`collect`."""

    def read(self, parts: Sequence[Part], work: Reads) -> Any:
        """Return what *work* makes of each of *parts*, which gets its number too."""

    def each(self, data: Any, kind: str, work: Maps) -> Any:
        """Return what *work* makes of each element of this *kind*, where it is."""

    def gathered(self, data: Sequence[Any], kinds: Sequence[str], work: Gathers) -> Any:
        """Return what *work* makes of all elements of these *kinds* that have one key, for each key."""

    def collect(self, data: Any, kind: str) -> Iterable[Any]:
        """Return the values of this *kind*, which are few, in any order."""

    def stream(self, data: Any, kind: str) -> Iterable[Any]:
        """Yield the values of this *kind*, in the order of their keys: 0 and up, fewer than there are buckets."""


class OneProcess:
    """An `Engine` that runs one step after the other in this process, and keeps everything in memory."""

    def read(self, parts: Sequence[Part], work: Reads) -> list[Element]:
        """See Engine."""
        return [element for number, part in enumerate(parts) for element in work(number, part)]

    def each(self, data: list[Element], kind: str, work: Maps) -> list[Element]:
        """See Engine."""
        return [made for element in data if element.kind == kind for made in work(element)]

    def gathered(self, data: Sequence[list[Element]], kinds: Sequence[str], work: Gathers) -> list[Element]:
        """See Engine."""
        by_key: defaultdict[int, Values] = defaultdict(lambda: {kind: [] for kind in kinds})
        for kind, key, value in (element for elements in data for element in elements):
            if kind in kinds:
                by_key[key][kind].append(value)
        return [made for key, values in by_key.items() for made in work(key, values)]

    def collect(self, data: list[Element], kind: str) -> Iterable[Any]:
        """See Engine."""
        return self.stream(data, kind)

    def stream(self, data: list[Element], kind: str) -> Iterable[Any]:
        """See Engine."""
        chosen = sorted((element for element in data if element.kind == kind), key=lambda element: element.key)
        return [element.value for element in chosen]
