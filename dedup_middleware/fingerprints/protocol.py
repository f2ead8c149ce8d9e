"""What a fingerprint method is, and which there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Protocol

from dedup_middleware.budget import UNLIMITED
from dedup_middleware.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dedup_middleware.budget import Budget
    from dedup_middleware.model import Fingerprint

#: The values of ``DEDUP_FINGERPRINT``.
FINGERPRINTERS = Registry(
    "dedup_middleware.fingerprints",
    {
        "clauses": "dedup_middleware.fingerprints.clauses:ClauseFingerprinter",
        "clauses+simhash": "dedup_middleware.fingerprints.simhash:SimHashFingerprinter",
    },
)


class Fingerprinter(Protocol):
    """A method of fingerprinting: a class of which each store has an instance.

    What it keeps of a text is of three kinds, and the index knows kinds, not methods:

    - a *weighted set*: hashes of 8 bytes with weights in letters, in :attr:`Fingerprint.weights`; a page is a duplicate
      by the share of its weight that an owner has;
    - a *digest*, equal or not: a weighted set of one;
    - *bits*, 128 for each paragraph, in :attr:`Fingerprint.simhashes`: they tell where to look beside the set.
    """

    scheme: ClassVar[str]
    """Recorded in every store, which refuses another; a method that hashes otherwise than before needs another one."""
    has_bits: ClassVar[bool]
    """Whether its fingerprints have bits."""

    is_by_line: ClassVar[bool]
    """Whether the set of a text is the union of its lines': then what a page and its item share is hashed once."""

    def __init__(self, key: bytes) -> None:
        """Use *key*, 16 to 64 random bytes of the store's own. ``ConfigError`` if the method cannot work here."""

    def __call__(self, paragraphs: Iterable[str], budget: Budget = UNLIMITED) -> Fingerprint:
        """Return the fingerprint of a text; :class:`UnjudgeableError` once more than the *budget* is spent."""

    def hash(self, clause: str) -> bytes:
        """Return the 8-byte hash of a reduced clause, for evidence and the second opinion.

        Where a set's members are clauses it is theirs; else sentences are not marked as repeated.
        """
