"""A context manager that keeps failures of the store, the log or a feed from breaking the crawl."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dedup_middleware.errors import DedupError

if TYPE_CHECKING:
    from collections.abc import Callable


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
        if not isinstance(error, DedupError):
            return False
        self._fail(error)
        return True
