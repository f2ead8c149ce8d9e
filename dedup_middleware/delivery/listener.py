"""Who hears what happens in a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dedup_middleware.delivery.taking_back import TakenBack
    from dedup_middleware.errors import DedupError


class Listener(Protocol):
    """Who hears what happens in a crawl, tells a person, and does what only its door can."""

    def count(self, name: str, amount: int = 1) -> None:
        """Add to the stat ``dedup/NAME``."""

    def failed(self, error: DedupError) -> None:
        """Note that the store, the log or a feed has failed: from now on nothing is dropped. Once a session.

        After a ``StoreAwayError`` another session may go on; what else fails meanwhile is told, too.
        """

    def one_owner(self, host: str, owner: str, repeats: int, pages: int) -> None:
        """Note that *repeats* of the *pages* of *host*, most of them, repeat the page *owner*. Once a host."""

    def field_that_keeps(self, field: str, kept: int, pages: int) -> None:
        """Note that *field* of items alone kept nearly all of the *pages* whose text is in the store. Once a field."""

    def taken_back(self, taken: Sequence[TakenBack]) -> None:
        """Request once more what was dropped for a template. Once a template, and again for pages dropped meanwhile."""

    def not_keepable(self, kind: type, left_out: Mapping[str, type]) -> None:
        """Note that dropped items of *kind* are stored without some fields; if none, they are kept. Once a class."""

    def tag_refused(self, kind: type) -> None:
        """Note that items of this class take no tag. Once a class."""
