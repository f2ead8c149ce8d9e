"""The engines of stores in folders; a test is skipped where one cannot be had."""

from __future__ import annotations

import pytest

from dedup_middleware.stores import engines

#: The library of each.
ENGINES = {scheme: engine.library for scheme, engine in engines.ENGINES.items() if engine.is_folder}


def need(kind: str) -> None:
    """Skip the test where stores of this *kind* cannot be opened."""
    library = {**ENGINES, "redis": "redis"}.get(kind)
    if library:
        pytest.importorskip(library)
