"""Text -> fingerprint."""

from dedup_middleware.fingerprints.clauses import SCHEME, ClauseFingerprinter

__all__ = ["SCHEME", "ClauseFingerprinter"]
