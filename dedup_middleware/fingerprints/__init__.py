"""Paragraphs -> fingerprint: what is kept of a text.

Law of this floor: the same text under the same key has the same fingerprint; it knows no store and no other page.
"""

from dedup_middleware.fingerprints.clauses import ClauseFingerprinter, fast_hash
from dedup_middleware.fingerprints.protocol import (
    FINGERPRINTERS,
    Fingerprinter,
    fingerprinter,
    instance_of,
    is_published,
    published_method,
)

__all__ = [
    "FINGERPRINTERS",
    "ClauseFingerprinter",
    "Fingerprinter",
    "fast_hash",
    "fingerprinter",
    "instance_of",
    "is_published",
    "published_method",
]
