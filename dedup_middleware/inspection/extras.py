"""Packages that make what a command shows nicer to look at, and that nothing else needs: the extra ``compare``."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from dedup_middleware.errors import ConfigError

EXTRA = 'pip install "dedup-middleware[compare]"'


def if_installed(module: str) -> Any:
    """Return the *module*; ``None`` where its package is not installed."""
    try:
        return import_module(module)
    except ImportError:
        return None


def required(module: str, why: str) -> Any:
    """Return the *module*; `ConfigError` where its package is not installed, which says *why* it must be."""
    found = if_installed(module)
    if found is None:
        raise ConfigError(f"{why} needs {module.partition('.')[0]}, which is not installed: {EXTRA}")
    return found
