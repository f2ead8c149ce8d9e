"""Contains the published methods of finding near-duplicates, and `compare`, which measures them on a corpus.

A method is imported only when it is chosen: `methods.method.METHODS` has their names. A crawl that one decides has the
detector of `methods.method_detector`, which stands beside the core as `index.beside.Beside` has it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dedup_middleware.methods.method import METHODS, method

if TYPE_CHECKING:
    from dedup_middleware.index.beside import Beside
    from dedup_middleware.index.claims import OpenClaims
    from dedup_middleware.stores import OpenStore

__all__ = ["beside", "chosen", "method"]


def chosen(name: str) -> bool:
    """Return whether *name* is that of a method, with or without options."""
    return name.partition(":")[0] in METHODS


def beside(name: str, store: OpenStore, claims: OpenClaims) -> Beside:
    """Return the method *name* as the detector for *store*; `ConfigError` for bad options."""
    from dedup_middleware.methods.method_detector import MethodBeside  # noqa: PLC0415 - few crawls have one

    return MethodBeside(method(name), store, claims)
