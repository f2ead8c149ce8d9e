"""The engines of stores in folders; a test is skipped where one cannot be had."""

from __future__ import annotations

import pytest

#: What each is imported from.
ENGINES = {"leveldb": "plyvel", "rocksdb": "rocksdict"}


def need(scheme: str) -> None:
    """Skip the test where stores of this *scheme* cannot be opened."""
    if scheme in ENGINES:
        pytest.importorskip(ENGINES[scheme])
