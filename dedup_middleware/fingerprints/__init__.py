"""Paragraphs -> fingerprint: what is kept of a text.

Law of this floor: pure functions under a store's key; it knows no store and no other page.
"""

from dedup_middleware.fingerprints.clauses import ClauseFingerprinter, fast_hash
from dedup_middleware.fingerprints.simhash import SimHashFingerprinter
from dedup_middleware.model import FingerprintKind

FINGERPRINTERS = {
    FingerprintKind.CLAUSES: ClauseFingerprinter,
    FingerprintKind.CLAUSES_AND_SIMHASH: SimHashFingerprinter,
}

__all__ = ["FINGERPRINTERS", "ClauseFingerprinter", "SimHashFingerprinter", "fast_hash"]
