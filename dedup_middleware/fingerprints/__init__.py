"""Paragraphs -> fingerprint: what is kept of a text.

Law of this floor: pure functions under a store's key; it knows no store and no other page.
"""

from dedup_middleware.fingerprints.clauses import ClauseFingerprinter, fast_hash
from dedup_middleware.fingerprints.protocol import FINGERPRINTERS, Fingerprinter

__all__ = ["FINGERPRINTERS", "ClauseFingerprinter", "Fingerprinter", "fast_hash"]
