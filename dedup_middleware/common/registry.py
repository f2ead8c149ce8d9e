"""Finds what a setting chooses by name: ours, and what other packages add.

Another package adds one through an entry point, and need not be named anywhere else::

    [project.entry-points."dedup_middleware.fingerprints"]
    sentences = "my_package.sentences:SentenceFingerprinter"

Nothing is imported before it is chosen. No package can replace one of ours. `required` imports what an extra installs.
"""

from __future__ import annotations

from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from dedup_middleware.errors import ConfigError, DedupError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from importlib.metadata import EntryPoint


class Registry:
    """The choices of one setting."""

    def __init__(self, group: str, ours: Mapping[str, str]) -> None:
        """Use *ours*, name -> ``module:attribute`` or ``module``, and the entry points of *group*."""
        self.group = group
        self.ours = dict(ours)

    def names(self) -> list[str]:
        """Return all names, ours first. Reads the metadata of all installed distributions."""
        return [*self.ours, *sorted({entry.name for entry in self._theirs()} - self.ours.keys())]

    def __contains__(self, name: str) -> bool:
        """Return whether *name* is a choice."""
        return name in self.ours or name in self.names()

    def load(self, name: str) -> Any:
        """Return the choice *name*; :class:`ConfigError` if it does not exist or cannot be imported."""
        if name in self.ours:
            module, _, attribute = self.ours[name].partition(":")
            found = import_module(module)
            return getattr(found, attribute) if attribute else found
        theirs = [entry for entry in self._theirs() if entry.name == name]
        if not theirs:
            raise ConfigError(f"{name!r} is not one of {self.group}", f"use {', '.join(map(repr, self.names()))}")
        try:
            return theirs[0].load()
        except Exception as error:
            raise ConfigError(
                f"{name!r} of {self.group} cannot be imported from {theirs[0].value} ({error!r})",
                "fix or remove its package",
            ) from error

    @contextmanager
    def usable(self, name: str) -> Iterator[None]:
        """Raise :class:`ConfigError` for any error of the package that *name* comes from meanwhile."""
        try:
            yield
        except DedupError:
            raise
        except Exception as error:
            raise ConfigError(
                f"{name!r} of {self.group} cannot be used ({error!r})", "fix its package, or choose another"
            ) from error

    def version(self, name: str) -> str:
        """Return the distribution of *name* and its version; empty for ours."""
        if name in self.ours:
            return ""
        found = [entry.dist for entry in self._theirs() if entry.name == name]
        return " ".join(f"{dist.name} {dist.version}" for dist in found[:1] if dist is not None)

    def _theirs(self) -> Iterable[EntryPoint]:
        from importlib.metadata import entry_points  # noqa: PLC0415 - 20 ms, and few have any

        return entry_points(group=self.group)


def required(module: str, why: object, *, extra: str) -> Any:
    """Return an optional *module*; :class:`ConfigError` if it is not installed, with *why* it is needed.

    *extra* is the extra of this package that installs it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ConfigError(
            f"{why} needs {package}, which is not installed", f'Run pip install "dedup-middleware[{extra}]".'
        ) from error
