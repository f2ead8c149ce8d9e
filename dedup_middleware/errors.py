"""Errors that a user can mend.

The text of a ``DedupError`` is one line that says what is wrong, where, and what to do.
Whoever shows it prints that line and no traceback.
"""

from __future__ import annotations

import errno
import reprlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Protocol

    class LockHolder(Protocol):
        """A process that has a store open; its text names it."""

        @property
        def brief(self) -> bool:
            """Whether it will be done in a moment: a command, not a crawl."""


#: Of ``OSError``: a file where a folder must be, or the reverse; a name too long; links in a circle. Whatever becomes
#: of the disk, the path cannot be used.
PATH_ERRORS = frozenset({errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENAMETOOLONG, errno.ELOOP})


class DedupError(Exception):
    """A mistake in the setup: one line with what, where and the remedy."""

    misnamed = False
    """Whether the setting names a path that can never be used."""

    def __init__(self, text: str = "") -> None:
        """Make an error of *text*, whose line ends, as of an error of others that it quotes, become spaces."""
        super().__init__(" ".join(text.splitlines()))


class ConfigError(DedupError):
    """A setting has a value that cannot work."""


class CallError(DedupError):
    """A command was called in a way that cannot be meant."""


class NothingFoundError(DedupError):
    """There is nothing of what a command was asked for."""


class StoreError(DedupError):
    """The store cannot be opened, read or written."""


class StoreLockedError(StoreError):
    """Another process has the store open."""

    def __init__(self, text: str, holder: LockHolder | None = None) -> None:
        """Say *text*; *holder* is that process, if it is known."""
        super().__init__(text)
        self.holder = holder


class StoreAwayError(StoreError):
    """The server of the store does not answer, or cannot serve it now; once it can, the store may be opened again."""


class StoreCorruptError(StoreError):
    """The store's files are damaged, or are not a store of ours."""


class StoreVersionError(StoreError):
    """The store was written by another schema, newer or too old, or with another fingerprint scheme."""


class UnreadableError(ValueError):
    """A value in a store cannot be read; whoever knows which store makes a :class:`StoreCorruptError` of it."""


#: What reading or writing a store or a log can raise.
TROUBLE = (DedupError, UnreadableError)


class FeedError(DedupError):
    """What the pipelines let through has not reached its medium."""


class RecordsError(DedupError):
    """The log of records cannot be read or written."""


# A request's meta may have a value of any type and any size.
_SHOWN = reprlib.Repr()
_SHOWN.maxstring = _SHOWN.maxother = _SHOWN.maxlong = 500
_SHOWN.maxlist = _SHOWN.maxtuple = _SHOWN.maxset = _SHOWN.maxfrozenset = _SHOWN.maxdict = 20
_MAX_SHOWN = 500


def shown(value: object) -> str:
    """Return the ``repr`` of *value*, on one line and cut."""
    try:
        text = _SHOWN.repr(value)
    except ValueError:  # an integer of more digits than Python writes
        text = f"<{type(value).__name__}>"
    text = text if text.isprintable() else ascii(text)
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 1]}…"
