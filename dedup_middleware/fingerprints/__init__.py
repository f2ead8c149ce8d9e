"""Makes fingerprints of texts, the weighted sets of clause hashes, and loads those of other packages."""

from __future__ import annotations

from hashlib import blake2b
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from xxhash import xxh32_digest

from dedup_middleware.common.budget import UNLIMITED
from dedup_middleware.common.registry import Registry
from dedup_middleware.model import TEXT_LIMIT, Fingerprint
from dedup_middleware.text.clauses import portions, reduced_once, significant_clauses

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dedup_middleware.common.budget import Budget

#: A posting list only proposes pages and shows what is boilerplate; what a page repeats is decided by the hashes in its
#: original's own record. With six bytes a clause is taken for one of an original's forty once in 7 million million
#: times, and a drop takes dozens. Among a thousand million stored clauses, one page in 7 000 has one that leads to a
#: strange page, which is then compared and rejected, and one in 700 000 one that counts as boilerplate.
HASH_BYTES = 6
#: For what can only keep a page: titles, numbers, short values.
FAST_HASH_BYTES = 4


def fast_hash(text: str) -> bytes:
    """Return `FAST_HASH_BYTES` bytes of *text*; collisions are rare, and easily made."""
    return xxh32_digest(text.encode("utf8", "surrogatepass"))


class ClauseFingerprinter:
    """A `Fingerprinter`: a page's clauses."""

    scheme: ClassVar[str] = "clauses-2"
    is_by_line: ClassVar[bool] = True

    def __init__(self, key: bytes) -> None:
        """Use *key*, 16 to 64 random bytes."""
        self._key = key
        # Copying a keyed hasher takes two thirds of the time of making one.
        self._hasher = blake2b(digest_size=HASH_BYTES, key=key)

    def hash(self, clause: str) -> bytes:
        """Return the hash of a reduced clause. 1 µs."""
        hasher = self._hasher.copy()
        hasher.update(clause.encode("utf8", "surrogatepass"))
        return hasher.digest()

    def __call__(self, paragraphs: Iterable[str], budget: Budget = UNLIMITED) -> Fingerprint:
        """Return the fingerprint of a text; a repeated clause counts once. About 0.1 ms for a news page.

        :class:`UncheckableError` when the *budget* is exceeded.
        """
        weights: dict[bytes, int] = {}
        starts: list[int] = []
        length = 0
        new_hasher = self._hasher.copy
        exact = new_hasher()
        for portion in portions(paragraphs):
            starts.append(len(weights))
            text = reduced_once(portion)
            exact.update(text.replace("\n", "").encode("utf8", "surrogatepass"))
            length += len(portion)
            if length > TEXT_LIMIT:
                # What is not stored is not compared: symbols and punctuation, too, have to be equal there.
                exact.update("".join(portion.split()).encode("utf8", "surrogatepass"))
            for clause, weight in significant_clauses(text):
                # As `hash` does: a call for each clause would add a third.
                hasher = new_hasher()
                hasher.update(clause.encode("utf8", "surrogatepass"))
                h = hasher.digest()
                weights.setdefault(h, weight)
            budget.check_clauses(len(weights))
            budget.check_time()
        # Sorted, so that reordered paragraphs are the same page; keyed, for it decides what is "unchanged".
        digest = blake2b(b"".join(sorted(weights)), digest_size=16, key=self._key).digest()
        return Fingerprint(weights, digest, exact.digest(), portions=tuple(starts))


# What brings detectors of its own, by names that are none of ours.
_ANNEX = "dedup_middleware.methods"

#: The values of ``DEDUP_FINGERPRINT``.
FINGERPRINTERS = Registry(
    "dedup_middleware.fingerprints",
    {"clauses": "dedup_middleware.fingerprints:ClauseFingerprinter"},
)


class Fingerprinter(Protocol):
    """A class of fingerprints, of which each store has an instance.

    A fingerprint is a weighted set: hashes of `HASH_BYTES` with weights in letters, in :attr:`Fingerprint.weights`. A
    page is a duplicate by the share of its weight that an original has.
    """

    scheme: ClassVar[str]
    """Recorded in every store, which refuses another; change it whenever hashes change."""
    is_by_line: ClassVar[bool]
    """Whether the set of a text is the union of its lines': then what a page and its item share is hashed once."""

    def __init__(self, key: bytes) -> None:
        """Use *key*, 16 to 64 random bytes of the store's own. ``ConfigError`` if the method cannot work here."""

    def __call__(self, paragraphs: Iterable[str], budget: Budget = UNLIMITED) -> Fingerprint:
        """Return the fingerprint of a text; :class:`UncheckableError` when the *budget* is exceeded."""

    def hash(self, clause: str) -> bytes:
        """Return the hash of a reduced clause, for checks and evidence; without clauses there is no evidence."""


def another(choice: str) -> Any | None:
    """Return the room that brings the detector *choice*, which has more than a fingerprint; ``None`` for those of ours.

    See `index.beside.Beside`.
    """
    room = None if choice in FINGERPRINTERS.ours else import_module(_ANNEX)
    return room if room is not None and room.chosen(choice) else None


def names() -> list[str]:
    """Return all values of ``DEDUP_FINGERPRINT``, without options of methods."""
    return [*FINGERPRINTERS.names(), *import_module(_ANNEX).METHODS.names()]


def fingerprinter(name: str) -> type[Fingerprinter]:
    """Return the class of fingerprints called *name*; :class:`ConfigError` if it is unknown or incomplete.

    For another detector these are clauses, which pages have beside what it notes of them; the scheme names it, too.
    """
    if another(name) is not None:
        return type("ClausesBeside", (ClauseFingerprinter,), {"scheme": f"{ClauseFingerprinter.scheme}+{name}"})
    found: type[Fingerprinter] = FINGERPRINTERS.load(name)
    with FINGERPRINTERS.usable(name):
        for attribute, kind in {"scheme": str, "is_by_line": bool}.items():
            value = getattr(found, attribute, None)
            if not isinstance(value, kind) or value == "":
                raise TypeError(f"its {attribute} is {value!r}, and must be a {kind.__name__}")
        if not callable(getattr(found, "hash", None)):
            raise TypeError("it has no method hash")
    return found


def instance_of(name: str, key: bytes) -> Fingerprinter:
    """Return the fingerprints called *name* for the store with this *key*.

    A class of another package is tried on a text: what it got wrong would be written into the store.
    """
    with FINGERPRINTERS.usable(name):
        instance = fingerprinter(name)(key)
        if name not in FINGERPRINTERS.ours and another(name) is None:
            _try_out(instance)
    return instance


def _try_out(fingerprint: Fingerprinter) -> None:
    found = fingerprint(["The ferry was late, and no reason was given.", "渡轮晚点了，没有人知道为什么。"])
    hashes = [fingerprint.hash("clause"), *found.weights] if isinstance(found, Fingerprint) else []
    if not hashes or not all(isinstance(h, bytes) and len(h) == HASH_BYTES for h in hashes):
        raise TypeError(f"it must return a Fingerprint of hashes of {HASH_BYTES} bytes, as its method hash does")
    if not all(isinstance(weight, int) for weight in found.weights.values()) or not isinstance(found.digest, bytes):
        raise TypeError("its weights must be whole numbers, and its digest bytes")
