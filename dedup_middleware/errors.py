"""Defines the errors that a user can correct, and shows values and commands in messages.

The text of a `DedupError` is one line: a sentence on what happened, with the value, and one on what to do. It is shown
without a traceback.
"""

from __future__ import annotations

import errno
import reprlib

#: Of ``OSError``: the path can never be used, even after the disk is repaired. A file is where a folder must be, or the
#: reverse; a name is too long; links form a circle; a named pipe is where a file must be.
PATH_ERRORS = frozenset({errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENAMETOOLONG, errno.ELOOP, errno.ENXIO})


class DedupError(Exception):
    """A mistake in the setup, or trouble that a person can end."""

    misnamed = False
    """Whether a setting names a path that can never be used."""

    def __init__(self, what: str, remedy: str = "", *, misnamed: bool = False) -> None:
        """Make an error of *what* happened and its *remedy*, on one line: what they quote may have several.

        >>> str(ConfigError("DEDUP_LOG = 'a.csv' is also a feed", "use a path of its own"))
        "DEDUP_LOG = 'a.csv' is also a feed. Use a path of its own."
        """
        self.misnamed = misnamed or self.misnamed
        sentences = (what, remedy[:1].upper() + remedy[1:])
        text = " ".join(each if each.endswith((".", "?")) else f"{each}." for each in sentences if each)
        super().__init__(" ".join(text.splitlines()))


class ConfigError(DedupError):
    """The value of a setting or an argument is not valid."""


class EngineMissingError(ConfigError):
    """The library that opens a store cannot be imported."""

    misnamed = True


class CallError(DedupError):
    """A command was called in a wrong way."""


class NothingFoundError(DedupError):
    """A command found nothing."""


class StoreError(DedupError):
    """The store cannot be opened, read or written."""


class StoreLockedError(StoreError):
    """Another process has the store open: *holder*, as `stores.files` names it; empty if it is not known."""

    def __init__(self, what: str, remedy: str = "", holder: str = "") -> None:
        super().__init__(what, remedy)
        self.holder = holder


class StoreAwayError(StoreError):
    """The server of the store is unreachable; later the store may be opened again."""


class StoreCorruptError(StoreError):
    """The files of the store are damaged, or are no store."""


class StoreVersionError(StoreError):
    """The store has another schema, or other fingerprints."""


class UnreadableError(ValueError):
    """Bytes cannot be read, or exceed a limit. Where the store is known, it becomes a `StoreCorruptError`."""


#: What reading or writing a store or records can raise.
TROUBLE = (DedupError, UnreadableError)


class FeedError(DedupError):
    """A feed has not stored what the pipelines let through."""


class RecordsError(DedupError):
    """Records cannot be read or written."""


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
