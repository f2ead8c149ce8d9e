"""Splits text into clauses, sentences, words and titles; imports nothing but values of the ground floor."""

from __future__ import annotations

import xxhash


def fast_hash(text: str) -> bytes:
    """Return 4 bytes of *text*; collisions are rare, and easily made."""
    return xxhash.xxh32_digest(text.encode("utf8", "surrogatepass"))
