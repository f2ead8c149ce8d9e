"""Scrapy plugin that drops pages whose text is already in the store, follows their links last, and shows why.

``Addon`` is for a project's settings, ``Deduplicator`` for programs without Scrapy. A name is imported
when it is first used, so that programs do not load Scrapy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dedup_middleware.version import __version__ as __version__

if TYPE_CHECKING:
    from dedup_middleware.api import Deduplicator
    from dedup_middleware.extraction import extract_paragraphs, extract_text
    from dedup_middleware.plugin.addon import Addon
    from dedup_middleware.records.file import Record, Records, open_records

__all__ = [
    "Addon",
    "Deduplicator",
    "Record",
    "Records",
    "extract_paragraphs",
    "extract_text",
    "open_records",
]

_HOMES = {
    "Addon": "dedup_middleware.plugin.addon",
    "Deduplicator": "dedup_middleware.api",
    "Record": "dedup_middleware.records.file",
    "Records": "dedup_middleware.records.file",
    "extract_paragraphs": "dedup_middleware.extraction",
    "extract_text": "dedup_middleware.extraction",
    "open_records": "dedup_middleware.records.file",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
