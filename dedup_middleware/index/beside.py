"""Defines what another detector than ours keeps of the pages of a store, beside what we keep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from lxml.etree import _Element

    from dedup_middleware.errors import DedupError, UnreadableError
    from dedup_middleware.model import PageFeatures


class More(NamedTuple):
    """What is written beside a page, in its batch."""

    held: frozenset[bytes] = frozenset()
    """The keys of posting lists that led to the pages that are replaced."""
    now: frozenset[bytes] = frozenset()
    """Those that lead to the new page."""
    puts: Sequence[tuple[bytes, bytes]] = ()
    deletes: Sequence[bytes] = ()


class Beside(Protocol):
    """Another detector, for one store: what it notes of pages as they are read, keeps of them, and decides by that.

    The room that brings it has ``chosen(name)``, which returns whether *name*, the value of DEDUP_FINGERPRINT, is one
    of its own, and ``beside(name, store, claims)``, which returns an object as this. A note is an object of its own, a
    page's for as long as it is on its way; ``None`` for a page that it cannot check. In the store it has the keys that
    begin with k, for posting lists of at most 64 pages, l and m.
    """

    @property
    def threshold(self) -> float:
        """The score from which a page is a copy, 0 to 1."""

    def note(
        self,
        paragraphs: tuple[str, ...],
        url: str,
        features: PageFeatures | None,
        root: _Element | None,
        fail: Callable[[DedupError | UnreadableError], None],
    ) -> object:
        """Return what it notes of a page; *fail* gets trouble of the store."""

    def learning(self, fail: Callable[[DedupError | UnreadableError], None]) -> AbstractContextManager[None]:
        """Let it learn from what it is given meanwhile, if it learns and has not yet."""

    def detector(self, ours: Any) -> Any:
        """Return the `checks.detector.Detector` that decides instead of *ours*."""

    def claimed(self, number: int, note: object) -> None:
        """Note that a claim is open in memory, under a negative *number*, of a page with this *note*."""

    def ended(self, number: int) -> None:
        """Note that the claim *number* has ended."""

    def replaced(self, numbers: frozenset[int], number: int, note: object) -> More:
        """Return what is written when a page with this *note*, as *number*, takes the place of the pages *numbers*.

        *number* is among them. *note* is ``None`` if no page takes their place, too.
        """
