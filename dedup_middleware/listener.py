"""Defines the interface through which the core reports what happens in a crawl."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dedup_middleware.errors import DedupError
    from dedup_middleware.model import StoredPage


class Listener(Protocol):
    """Reports what happens in a crawl, and does what only its door can."""

    def count(self, name: str, amount: int = 1) -> None:
        """Add to the stat ``dedup/NAME``."""

    def failed(self, error: DedupError) -> None:
        """Report that the store, the log or a feed has failed: from now on nothing is dropped. Once.

        After a ``StoreAwayError`` another `Deduplication` may go on; what else fails meanwhile is reported, too.
        """

    def one_owner(self, host: str, owner: str, repeats: int, pages: int) -> None:
        """Report that *repeats* of the *pages* of *host*, most of them, repeat the page *owner*. Once a host."""

    def field_that_keeps(self, field: str, kept: int, pages: int) -> None:
        """Report that *field* alone kept nearly all of the *pages* whose text is in the store. Once a field."""

    def released(self, pages: Sequence[StoredPage]) -> None:
        """Release the items of *pages*, dropped for a text that has proved to be a template."""

    def not_keepable(self, kind: type, left_out: Mapping[str, type]) -> None:
        """Report that dropped items of *kind* are stored without some fields; if none, they are kept. Once a class."""

    def tag_refused(self, kind: type) -> None:
        """Report that items of this class take no tag. Once a class."""
