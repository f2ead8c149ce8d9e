"""Who is compared: published methods by their names, with or without options, and our own fingerprint."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from dedup_middleware.checks.alignment import cover
from dedup_middleware.errors import ConfigError
from dedup_middleware.fingerprints.clauses import ClauseFingerprinter
from dedup_middleware.fingerprints.literature.method import Method, WeightedSet
from dedup_middleware.fingerprints.literature.methods import METHODS, method
from dedup_middleware.inspection.extras import EXTRA

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dedup_middleware.fingerprints.literature.method import Print, Text

#: Our fingerprint, by its name among the values of ``DEDUP_FINGERPRINT``.
CLAUSES = "clauses"
# Any key will do where nobody can choose pages to fit it.
_KEY = b"scrapy dedup compare"


class MissingPackageError(Exception):
    """A method needs a package that is not installed; the message is one line."""


class Clauses(Method):
    """Our fingerprint alone: the share of a page's clauses that another one has, without any witness."""

    threshold = 0.8

    def __init__(self) -> None:
        self._fingerprint = ClauseFingerprinter(_KEY)

    def fingerprint(self, text: Text) -> Print | None:
        """Return its clauses, weighted by their letters; ``None`` if it has none."""
        weights = self._fingerprint(text.paragraphs).weights
        return WeightedSet(weights) if weights else None

    def score(self, new: Print, old: Print) -> float:
        """Return the share of *new* that *old* has."""
        if not (isinstance(new, WeightedSet) and isinstance(old, WeightedSet)):
            return 0.0
        return cover(cast("Mapping[bytes, int]", new.weights), old.weights.keys())


def contestant(choice: str) -> Method:
    """Return the method of a *choice*; `ConfigError` for a wrong one, `MissingPackageError` where it cannot work."""
    try:
        return Clauses() if choice == CLAUSES else method(choice)
    except ImportError as error:
        raise MissingPackageError(missing(error)) from error
    except ConfigError as error:
        if isinstance(error.__cause__, ImportError):
            raise MissingPackageError(str(error)) from error
        name = choice.partition(":")[0]
        if name == CLAUSES:
            raise ConfigError(f"{CLAUSES} has no options here; leave out {choice.removeprefix(CLAUSES)!r}") from error
        if name not in METHODS:
            raise ConfigError(f"{choice!r} is no method; there are {', '.join([CLAUSES, *METHODS.names()])}") from error
        raise


def missing(error: ImportError) -> str:
    """Return in a line what is missing, and the remedy."""
    return f"it needs {error.name or error}, which is not installed: {EXTRA}"


def all_choices() -> list[str]:
    """Return every contestant under its default options, ours first."""
    return [CLAUSES, *METHODS.names()]
