"""What a fingerprint method is, and which there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Protocol

from dedup_middleware.budget import UNLIMITED
from dedup_middleware.errors import ConfigError, DedupError
from dedup_middleware.fingerprints.published import clauses_beside
from dedup_middleware.model import HASH_BYTES, Fingerprint
from dedup_middleware.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dedup_middleware.budget import Budget
    from dedup_middleware.fingerprints.literature.method import Method

#: The values of ``DEDUP_FINGERPRINT``.
FINGERPRINTERS = Registry(
    "dedup_middleware.fingerprints",
    {"clauses": "dedup_middleware.fingerprints.clauses:ClauseFingerprinter"},
)


class Fingerprinter(Protocol):
    """A method of fingerprinting: a class of which each store has an instance.

    What it keeps of a text is of two kinds, and the index knows kinds, not methods:

    - a *weighted set*: hashes of 8 bytes with weights in letters, in :attr:`Fingerprint.weights`; a page is a duplicate
      by the share of its weight that an owner has;
    - a *digest*, equal or not: a weighted set of one.
    """

    scheme: ClassVar[str]
    """Recorded in every store, which refuses another; a method that hashes otherwise than before needs another one."""
    is_by_line: ClassVar[bool]
    """Whether the set of a text is the union of its lines': then what a page and its item share is hashed once."""

    def __init__(self, key: bytes) -> None:
        """Use *key*, 16 to 64 random bytes of the store's own. ``ConfigError`` if the method cannot work here."""

    def __call__(self, paragraphs: Iterable[str], budget: Budget = UNLIMITED) -> Fingerprint:
        """Return the fingerprint of a text; :class:`UnjudgeableError` once more than the *budget* is spent."""

    def hash(self, clause: str) -> bytes:
        """Return the 8-byte hash of a reduced clause, for evidence and the second opinion.

        Where a set's members are clauses it is theirs; else sentences are not marked as repeated.
        """


def is_published(choice: str) -> bool:
    """Tell whether *choice* is a published method, by its name, with options or without, and no fingerprint of ours."""
    if choice in FINGERPRINTERS.ours:
        return False
    from dedup_middleware.fingerprints.literature.methods import METHODS  # noqa: PLC0415 - only where it may be one

    return choice.partition(":")[0] in METHODS


def published_method(choice: str) -> Method | None:
    """Return the published method of *choice*, ``None`` for a fingerprint; :class:`ConfigError` for bad options."""
    if not is_published(choice):
        return None
    from dedup_middleware.fingerprints.literature.methods import method  # noqa: PLC0415 - the same

    return method(choice)


def fingerprinter(name: str) -> type[Fingerprinter]:
    """Return the method *name*; :class:`ConfigError` where it is none, or lacks what one must have.

    Of a published method, what pages have beside it.
    """
    if is_published(name):
        return clauses_beside(name)
    method: type[Fingerprinter] = FINGERPRINTERS.load(name)
    wanted = {"scheme": str, "is_by_line": bool}
    for attribute, kind in wanted.items():
        value = getattr(method, attribute, None)
        if not isinstance(value, kind) or value == "":
            raise _broken(name, f"its {attribute} is {value!r}, and must be a {kind.__name__}")
    if not callable(getattr(method, "hash", None)):
        raise _broken(name, "it has no method hash")
    return method


def instance_of(name: str, key: bytes) -> Fingerprinter:
    """Return the method *name* for the store with this *key*; one of others is tried out on a text.

    What it got wrong would else be written into the store, or be noticed page after page.
    """
    try:
        method = fingerprinter(name)
        if name in FINGERPRINTERS.ours or is_published(name):
            return method(key)
        instance = method(key)
        _try_out(instance)
    except DedupError:
        raise
    except Exception as error:
        raise _broken(name, repr(error)) from error
    return instance


def _try_out(method: Fingerprinter) -> None:
    made = method(["The ferry was late, and nobody knew why.", "渡轮晚点了，没有人知道为什么。"])
    hashes = [method.hash("clause"), *made.weights] if isinstance(made, Fingerprint) else []
    if not hashes or not all(isinstance(h, bytes) and len(h) == HASH_BYTES for h in hashes):
        raise TypeError(f"it must return a Fingerprint of hashes of {HASH_BYTES} bytes, as its method hash does")
    if not all(isinstance(weight, int) for weight in made.weights.values()) or not isinstance(made.digest, bytes):
        raise TypeError("its weights must be whole numbers, and its digest bytes")


def _broken(name: str, detail: str) -> ConfigError:
    return ConfigError(
        f"the fingerprint method {name!r} cannot be used ({detail}); mend its package, or choose another"
    )
