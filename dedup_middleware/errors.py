"""Errors that a user can mend.

Law of this file: the text of a ``DedupError`` is one line that says what is wrong, where, and what to do.
Whoever shows it prints that line and no traceback.
"""

from __future__ import annotations


class DedupError(Exception):
    """A mistake in the setup: one line with what, where and the remedy."""


class ConfigError(DedupError):
    """A setting has a value that cannot work."""


class StoreError(DedupError):
    """The store cannot be opened, read or written."""


class StoreLockedError(StoreError):
    """Another process has the store open."""


class StoreCorruptError(StoreError):
    """The store's files are damaged, or are not a store of ours."""


class StoreVersionError(StoreError):
    """The store was written by a newer schema or with another fingerprint scheme."""


class FeedError(DedupError):
    """What the pipelines let through has not reached its medium."""


class RecordsError(DedupError):
    """The log of records cannot be read or written."""
