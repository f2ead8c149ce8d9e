"""What stands around whatever of ours may fail while pages go their way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dedup_middleware.errors import DedupError

if TYPE_CHECKING:
    from collections.abc import Callable


class Guard:
    """Ends a failure of the store or the log where it happens; who was given to it hears of it.

    A class, for a page passes five of them: a generator takes 1.2 µs, this 0.3.
    """

    __slots__ = ("_fail",)

    def __init__(self, fail: Callable[[DedupError], None]) -> None:
        """Tell *fail* of what fails within."""
        self._fail = fail

    def __call__(self) -> Guard:
        """Return what is to stand around a block."""
        return self

    def __enter__(self) -> None:
        """Begin the block."""

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        """End it, and with it a failure of ours."""
        if not isinstance(error, DedupError):
            return False
        self._fail(error)
        return True
