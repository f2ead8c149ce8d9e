"""Defines how the core reports what happens in a crawl, and what of its own fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from dedup_middleware.errors import DedupError, StoreCorruptError, UnreadableError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

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

    def one_other_host(self, host: str, other: str, repeats: int, pages: int) -> None:
        """Report that *repeats* of the *pages* of *host*, most of them, repeat pages of the host *other*. Once a host.

        Not where the project prefers those.
        """

    def field_that_keeps(self, field: str, kept: int, pages: int) -> None:
        """Report that *field* alone kept nearly all of the *pages* whose text is in the store. Once a field."""

    def released(self, pages: Sequence[StoredPage]) -> None:
        """Release the items of *pages*, dropped for a text that has proved to be a template."""

    def not_keepable(self, kind: type, left_out: Mapping[str, type]) -> None:
        """Report that dropped items of *kind* are stored without some fields; if none, they are kept. Once a class."""

    def tag_refused(self, kind: type) -> None:
        """Report that items of this class take no tag. Once a class."""


class Guard:
    """Swallows a failure of the store or the log, and reports it.

    A class, for a page passes five of them: a generator takes 1.2 µs, this 0.3.
    """

    __slots__ = ("_fail",)

    def __init__(self, fail: Callable[[DedupError], None]) -> None:
        """Call *fail* with what fails within."""
        self._fail = fail

    def __call__(self) -> Guard:
        """Return the context manager."""
        return self

    def __enter__(self) -> None:
        """Begin the block."""

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        """End it, and with it a failure of ours."""
        if isinstance(error, UnreadableError):
            error = StoreCorruptError(
                f"the store is damaged ({error}): put back a copy, or begin a new one with `scrapy dedup store reset`"
            )
        if not isinstance(error, DedupError):
            return False
        self._fail(error)
        return True
