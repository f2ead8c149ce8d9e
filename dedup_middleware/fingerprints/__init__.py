"""Makes fingerprints of texts: the weighted set of clause hashes of a page, or what a published method keeps of it."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, ClassVar, Protocol

import xxhash

from dedup_middleware.budget import UNLIMITED
from dedup_middleware.errors import ConfigError, DedupError
from dedup_middleware.model import Fingerprint
from dedup_middleware.registry import Registry
from dedup_middleware.text.clauses import portions, reduced_once, significant_clauses, without_digits

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dedup_middleware.budget import Budget
    from dedup_middleware.fingerprints.method import Method, Print, Text

#: A posting list only proposes pages, and shows what is boilerplate; what a page repeats is decided by the hashes in
#: its original's own record. With six bytes a clause is taken for one of an original's forty once in 7 million million
#: times, and a drop takes dozens. Among a thousand million stored clauses, one page in 7 000 has one that leads to a
#: strange page too, which is then compared and found to be another, and one in 700 000 one that counts as boilerplate.
HASH_BYTES = 6
#: For what can only keep a page: masked_hashes, titles, numbers.
FAST_HASH_BYTES = 4
# Clauses whose hashes are at hand: those of some fifty news pages, 1 MB.
_MAX_REMEMBERED = 2_048
# A hostile page can have clauses of any length.
_MAX_REMEMBERED_LENGTH = 200


def fast_hash(text: str) -> bytes:
    """Return 4 bytes of *text*; collisions are rare, and easily made."""
    return xxhash.xxh32_digest(text.encode("utf8", "surrogatepass"))


class ClauseFingerprinter:
    """A `Fingerprinter`: a page's clauses."""

    scheme: ClassVar[str] = "clauses-2"
    is_by_line: ClassVar[bool] = True

    def __init__(self, key: bytes) -> None:
        """Use *key*, 16 to 64 random bytes."""
        self._key = key
        # Copying a hasher that has taken the key in takes two thirds of the time of making one.
        self._hasher = blake2b(digest_size=HASH_BYTES, key=key)
        # What a page says its items say again, and so does its original.
        self._remembered = lru_cache(_MAX_REMEMBERED)(self._hashes_of)

    def hash(self, clause: str) -> bytes:
        """Return the hash of a reduced clause. 1 µs, and 0.2 for one that was asked for lately."""
        return self._remembered(clause)[0] if len(clause) <= _MAX_REMEMBERED_LENGTH else self._digest(clause)

    def _hashes_of(self, clause: str) -> tuple[bytes, bytes | None]:
        """Return the hash of *clause*, and that of its masked_hash if it has one."""
        masked_hash = without_digits(clause)
        return self._digest(clause), None if masked_hash is None else fast_hash(masked_hash)

    def _digest(self, clause: str) -> bytes:
        hasher = self._hasher.copy()
        hasher.update(clause.encode("utf8", "surrogatepass"))
        return hasher.digest()

    def __call__(self, paragraphs: Iterable[str], budget: Budget = UNLIMITED) -> Fingerprint:
        """Return the fingerprint of a text; a clause said twice counts once. About 0.1 ms for a news page.

        :class:`UncheckableError` once more than the *budget* is spent.
        """
        weights: dict[bytes, int] = {}
        masked_hashes: dict[bytes, bytes] = {}
        starts: list[int] = []
        hashes_of, remembered = self._hashes_of, self._remembered
        exact = self._hasher.copy()
        for portion in portions(paragraphs):
            starts.append(len(weights))
            text = reduced_once(portion)
            exact.update(text.replace("\n", "").encode("utf8", "surrogatepass"))
            for clause, weight in significant_clauses(text):
                h, masked_hash = remembered(clause) if len(clause) <= _MAX_REMEMBERED_LENGTH else hashes_of(clause)
                if h in weights:
                    continue
                weights[h] = weight
                if masked_hash is not None:
                    masked_hashes[h] = masked_hash
            budget.check_clauses(len(weights))
            budget.check_time()
        # Sorted, so that reordered paragraphs are the same page; keyed, for it decides what is "unchanged".
        digest = blake2b(b"".join(sorted(weights)), digest_size=16, key=self._key).digest()
        return Fingerprint(weights, masked_hashes, digest, exact.digest(), portions=tuple(starts))


#: The values of ``DEDUP_FINGERPRINT``.
FINGERPRINTERS = Registry(
    "dedup_middleware.fingerprints",
    {"clauses": "dedup_middleware.fingerprints:ClauseFingerprinter"},
)


class Fingerprinter(Protocol):
    """A method of fingerprinting: a class of which each store has an instance.

    What it keeps of a text is of two kinds, and the index knows kinds, not methods:

    - a *weighted set*: hashes of 8 bytes with weights in letters, in :attr:`Fingerprint.weights`; a page is a duplicate
      by the share of its weight that an original has;
    - a *digest*, equal or not: a weighted set of one.
    """

    scheme: ClassVar[str]
    """Recorded in every store, which refuses another; a method that hashes otherwise than before needs another one."""
    is_by_line: ClassVar[bool]
    """Whether the set of a text is the union of its lines': then what a page and its item share is hashed once."""

    def __init__(self, key: bytes) -> None:
        """Use *key*, 16 to 64 random bytes of the store's own. ``ConfigError`` if the method cannot work here."""

    def __call__(self, paragraphs: Iterable[str], budget: Budget = UNLIMITED) -> Fingerprint:
        """Return the fingerprint of a text; :class:`UncheckableError` once more than the *budget* is spent."""

    def hash(self, clause: str) -> bytes:
        """Return the 8-byte hash of a reduced clause, for evidence and the second opinion.

        Where a set's members are clauses it is theirs; else sentences are not marked as repeated.
        """


def is_published(choice: str) -> bool:
    """Tell whether *choice* is a published method, by its name, with options or without, and no fingerprint of ours."""
    if choice in FINGERPRINTERS.ours:
        return False
    from dedup_middleware.fingerprints.method import METHODS  # noqa: PLC0415 - only where it may be one

    return choice.partition(":")[0] in METHODS


def published_method(choice: str) -> Method | None:
    """Return the published method of *choice*, ``None`` for a fingerprint; :class:`ConfigError` for bad options."""
    if not is_published(choice):
        return None
    from dedup_middleware.fingerprints.method import method  # noqa: PLC0415 - the same

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


#: Pages that a method which learns looks at before it makes its first fingerprint.
LEARNED_FROM = 200


def clauses_beside(choice: str) -> type[ClauseFingerprinter]:
    """Return the fingerprint of pages beside what the method of *choice* makes of them; its scheme names that too."""
    return type("ClausesBeside", (ClauseFingerprinter,), {"scheme": f"{ClauseFingerprinter.scheme}+{choice}"})


class Learner:
    """A *method* that has learned, or learns from the first pages that it is given."""

    def __init__(self, method: Method, learned: bytes = b"") -> None:
        """Take up what it has *learned* before, if anything; `UnreadableError` as `recall`."""
        self.method = method
        self.is_ready = not method.learns or bool(learned)
        self.pages = LEARNED_FROM
        """From how many it learns."""
        self._texts: list[Text] = []
        if learned:
            method.recall(learned)

    def fingerprint(self, text: Text) -> Print | None:
        """Return what the method makes of *text*; ``None`` as long as it learns, too."""
        return self.method.fingerprint(text) if self.is_ready else None

    def hear(self, text: Text) -> bool:
        """Let it learn from *text* if it still does; tell whether it has learned now, so that this can be kept."""
        if self.is_ready or not text.paragraphs:
            return False
        self._texts.append(text)
        if len(self._texts) >= self.pages:
            self.learn()
        return self.is_ready

    def learn(self) -> None:
        """Learn from what it has heard so far, and from nothing later."""
        self.method.fit(self._texts)
        self.is_ready = True
        self._texts = []
