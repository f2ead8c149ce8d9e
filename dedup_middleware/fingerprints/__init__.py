"""Text -> fingerprint."""

from dedup_middleware.fingerprints.clauses import SCHEME, ClauseFingerprinter, fast_hash

__all__ = ["SCHEME", "ClauseFingerprinter", "fast_hash"]
