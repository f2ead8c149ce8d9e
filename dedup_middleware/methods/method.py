"""Defines methods: a method makes a fingerprint of a text, and scores how alike two fingerprints are.

A fingerprint is of one of three kinds. Stores and comparisons depend on the kinds, not on the methods.
"""

from __future__ import annotations

import inspect
import json
import math
import struct
import zlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import pairwise
from types import GenericAlias
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias, TypeVar

import msgspec
import xxhash

from dedup_middleware.common import bounded
from dedup_middleware.common.registry import Registry
from dedup_middleware.errors import ConfigError, UnreadableError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# Of what is learned, unpacked, and of the values in it: two hundred pages have ten thousand words.
_MAX_LEARNED, _MAX_VALUES = 32 * 2**20, 1_000_000
#: Of a feature in a set.
FEATURE_BYTES = 8
# Of sums and quotients of weights.
ROUNDING = 1e-9


class Text(NamedTuple):
    """A page as a method gets it."""

    paragraphs: tuple[str, ...]
    """The main text, in document order, without empty paragraphs."""
    title: str = ""
    url: str = ""
    description: str = ""
    """The content of ``<meta name=description>``."""
    elements: tuple[str, ...] = ()
    """The block-level elements around each paragraph, outermost first: ``article/ul/li``. Only for a method that
    `sees_elements`."""

    @property
    def body(self) -> str:
        """The paragraphs as one string, each on a line."""
        return "\n".join(self.paragraphs)


@dataclass(frozen=True, slots=True)
class Digest:
    """A fingerprint that equals another one, or does not."""

    value: bytes


@dataclass(frozen=True, slots=True)
class Bits:
    """A fingerprint that is compared by its Hamming distance."""

    values: tuple[int, ...]
    """One number for the text, or one for each of its paragraphs, in order."""
    size: int
    """The number of bits of each value."""


@dataclass(frozen=True, slots=True)
class WeightedSet:
    """A fingerprint that is compared by its overlap."""

    weights: Mapping[bytes, float]
    """Feature (`FEATURE_BYTES`) -> its weight, above 0."""


Signature: TypeAlias = "Digest | Bits | WeightedSet"


class Method(ABC):
    """A method of finding near-duplicates.

    The parameters of its constructor are its options: keyword-only, each with a default that is a number, a string or a
    bool. It raises `ConfigError` for a value that cannot be used. Under the same options and after the same `fit`, a
    text has the same fingerprint in every process.
    """

    learns: ClassVar[bool] = False
    """Whether `fit` must come before the first fingerprint, to count the words of a corpus for example."""
    memory: ClassVar[Mapping[str, Any]] = {}
    """The attributes that `fit` sets, with their types: what a store keeps of it."""
    sees_elements: ClassVar[bool] = False
    """Whether the method uses `Text.elements`, which cost as much time as parsing the page."""
    threshold: float
    """The score from which two texts are alike, 0 to 1."""

    def fit(self, texts: Iterable[Text]) -> None:  # noqa: B027 - most methods learn nothing
        """Learn from *texts*. Call it once: a second time would change the fingerprints of texts already seen."""

    def learned(self) -> bytes:
        """Return what `fit` has learned, for `recall`; empty for a method that does not learn."""
        if not self.memory:
            return b""
        known = msgspec.to_builtins([getattr(self, name) for name in self.memory], str_keys=True, order="sorted")
        written = json.dumps(known, ensure_ascii=False).encode("utf8", "surrogatepass")
        if len(written) > _MAX_LEARNED or bounded.has_more(written, _MAX_VALUES):
            raise ConfigError("the pages have more words than can be stored", "learn from fewer pages")
        return zlib.compress(written)

    def recall(self, learned: bytes) -> None:
        """Restore what a method of the same options has `learned`. `UnreadableError` if the bytes are damaged."""
        if not self.memory:
            return
        try:
            written = bounded.loads(bounded.unpacked(learned, _MAX_LEARNED), values=_MAX_VALUES)
            kinds = GenericAlias(tuple, tuple(self.memory.values()))
            found: Any = msgspec.convert(written, kinds, str_keys=True)
        except (msgspec.MsgspecError, ValueError) as error:
            raise UnreadableError(f"what the method has learned cannot be read: {error}") from error
        for name, value in zip(self.memory, found, strict=True):
            setattr(self, name, value)

    @abstractmethod
    def fingerprint(self, text: Text) -> Signature | None:
        """Return the fingerprint of *text*; ``None`` if the text has no features that this method uses."""

    def score(self, new: Signature, old: Signature) -> float:
        """Return how alike a *new* text is to an *old* one, 0 to 1; 0 for fingerprints of two kinds."""
        return self.similarity(new, old) if type(new) is type(old) else 0.0

    def similarity(self, new: Any, old: Any) -> float:
        """Return the `score` of two fingerprints of one kind, of the kind that this method makes.

        By default 1 for equal digests, the share of equal bits, or the Jaccard index of sets.
        """
        if isinstance(new, Digest):
            return float(new == old)
        return bits_alike(new, old) if isinstance(new, Bits) else jaccard(new, old)

    def is_alike(self, new: Signature, old: Signature) -> bool:
        """Return whether the text of *new* repeats that of *old*."""
        return self.score(new, old) >= self.threshold - ROUNDING

    def keys(self, signature: Any) -> Iterable[bytes]:
        """Yield the keys by which *signature* is looked up: texts that are alike share at least one.

        A method that looks up by chance, like LSH, may miss some. By default the keys are the digest, each feature of a
        set, or of bits as many blocks as the threshold needs for one of them to be equal.
        """
        if isinstance(signature, Digest):
            yield signature.value
        elif isinstance(signature, WeightedSet):
            yield from signature.weights
        else:
            yield from blocks(signature, distance_of(self.threshold, signature.size))


# --- by kind


def bits_alike(new: Bits, old: Bits) -> float:
    """Return 1 - distance / bits, of the pair of paragraphs that differ most; 0 where their numbers differ."""
    if len(new.values) != len(old.values) or new.size != old.size or not new.values:
        return 0.0
    farthest = max((a ^ b).bit_count() for a, b in zip(new.values, old.values, strict=True))
    return 1 - farthest / new.size


def jaccard(new: WeightedSet, old: WeightedSet) -> float:
    """Return sum of the smaller / sum of the larger weights: |A & B| / |A | B| where all weigh the same."""
    ours, theirs = new.weights, old.weights
    shared = sum(min(weight, theirs[feature]) for feature, weight in ours.items() if feature in theirs)
    total = sum(ours.values()) + sum(theirs.values()) - shared
    return shared / total if total else 0.0


def distance_of(threshold: float, size: int) -> int:
    """Return how many of *size* bits may differ at a score of *threshold*."""
    return int((1 - threshold) * size + ROUNDING)


def least_score(distance: int, size: int) -> float:
    """Return the score of two fingerprints of *size* bits of which *distance* differ."""
    return 1 - distance / size


def blocks(bits: Bits, distance: int) -> Iterable[bytes]:
    """Yield the values of *distance* + 1 blocks: one of them is unchanged in all bits within the distance.

    The pigeonhole principle, as G. Manku, A. Jain and A. Das Sarma (WWW 2007) use it.
    """
    count = min(distance + 1, bits.size)
    edges = [bits.size * n // count for n in range(count + 1)]
    for place, value in enumerate(bits.values):
        for n, (start, end) in enumerate(pairwise(edges)):
            block = value >> start & (1 << end - start) - 1
            yield struct.pack(">HH", place & 0xFFFF, n) + block.to_bytes(-(-bits.size // 8), "big")


def feature(text: str) -> bytes:
    """Return *text* as a feature of a set."""
    return xxhash.xxh3_64_digest(text.encode("utf8", "surrogatepass"))


def one_of(name: str, value: str, values: Iterable[str]) -> str:
    """Return the option *value* if it is one of *values*; else `ConfigError`."""
    if value not in (known := [*values]):
        raise ConfigError(f"{name} = {value!r} is not valid", f"choose {' or '.join(map(repr, known))}")
    return value


_Number = TypeVar("_Number", int, float)


def within(name: str, value: _Number, least: float, most: float) -> _Number:
    """Return the option *value* if it is between *least* and *most*; else `ConfigError`."""
    if not least <= value <= most:
        raise ConfigError(f"{name} = {value!r} is not valid", f"choose a value from {least} to {most}")
    return value


# --- in stores

_DIGEST, _BITS, _SET = b"d", b"b", b"s"
#: Bytes of a fingerprint: a set of all the shingles that are read of a text takes 1 MB.
MAX_PACKED = 8 * 2**20


def packed(signature: Signature) -> bytes:
    """Return *signature* as a store keeps it; weights are rounded to 32 bits."""
    if isinstance(signature, Digest):
        return _DIGEST + signature.value
    if isinstance(signature, Bits):
        width = -(-signature.size // 8)
        return (
            _BITS
            + struct.pack(">H", signature.size)
            + b"".join(value.to_bytes(width, "big") for value in signature.values)
        )
    return _SET + b"".join(name + struct.pack(">f", weight) for name, weight in sorted(signature.weights.items()))


def unpacked(value: bytes) -> Signature:
    """Return the fingerprint that was `packed` as *value*; `UnreadableError` if the bytes are damaged."""
    kind, rest = value[:1], value[1:]
    if len(value) > MAX_PACKED:
        raise UnreadableError(f"a fingerprint cannot be read: it has {len(value)} bytes")
    try:
        if kind == _DIGEST:
            return Digest(rest)
        if kind == _BITS:
            return _bits(rest)
        if kind == _SET:
            return _weighted_set(rest)
    except (struct.error, ValueError) as error:
        raise UnreadableError(f"a fingerprint cannot be read: {error}") from error
    raise UnreadableError(f"a fingerprint cannot be read: unknown kind {kind!r}")


def _bits(packed: bytes) -> Bits:
    (size,) = struct.unpack_from(">H", packed)
    width = -(-size // 8)
    values = tuple(int.from_bytes(packed[at : at + width], "big") for at in range(2, len(packed), width))
    if (len(packed) - 2) % width or any(value >> size for value in values):
        raise ValueError("wrong number of bits")
    return Bits(values, size)


def _weighted_set(packed: bytes) -> WeightedSet:
    weights = dict(struct.iter_unpack(f">{FEATURE_BYTES}sf", packed))
    if not all(0 < weight < math.inf for weight in weights.values()):
        raise ValueError("invalid weight")
    return WeightedSet(weights)


_ROOM = "dedup_middleware.methods"

#: By name, in the order of docs/benchmarks/methods.md.
METHODS = Registry(
    _ROOM,
    {
        "paragraphs": f"{_ROOM}.paragraph_simhash:ParagraphSimHash",
        "long-sentences": f"{_ROOM}.parts:LongSentences",
        "shingles": f"{_ROOM}.shingling:Shingles",
        "heintze": f"{_ROOM}.shingling:Heintze",
        "bharat": f"{_ROOM}.shingling:Bharat",
        "supershingles": f"{_ROOM}.shingling:SuperShingles",
        "fetterly": f"{_ROOM}.shingling:Fetterly",
        "i-match": f"{_ROOM}.digests:IMatch",
        "simhash": f"{_ROOM}.simhash:SimHash",
        "e-simhash": f"{_ROOM}.simhash:ESimHash",
        "p-simhash": f"{_ROOM}.simhash:PSimHash",
        "top-words": f"{_ROOM}.digests:TopWords",
        "segments": f"{_ROOM}.parts:Segments",
        "keywords": f"{_ROOM}.digests:KeywordDigests",
        "random-projection": f"{_ROOM}.simhash:RandomProjection",
        "near-pages": f"{_ROOM}.digests:NearPages",
        "idf-top": f"{_ROOM}.digests:IdfTop",
        "punctuation": f"{_ROOM}.parts:PunctuationNeighbours",
        "topic-distances": f"{_ROOM}.topic_distances:TopicDistances",
        "length-classes": f"{_ROOM}.parts:LengthClasses",
        "two-stage": f"{_ROOM}.digests:TwoStage",
        "bloom": f"{_ROOM}.digests:BloomFilter",
        "vectors": f"{_ROOM}.vector_space:WordVectors",
        "characters": f"{_ROOM}.vector_space:CharacterVectors",
        "minhash": f"{_ROOM}.shingling:MinHashLSH",
    },
)


def method(choice: str) -> Method:
    """Return the method of a *choice*, ``name`` or ``name:option=value,option=value``; else `ConfigError`."""
    name, _, rest = choice.partition(":")
    kind: type[Method] = METHODS.load(name)
    defaults = {p.name: p.default for p in inspect.signature(kind).parameters.values()}
    given: dict[str, Any] = {}
    for pair in filter(None, rest.split(",")):
        option, _, value = (part.strip() for part in pair.partition("="))
        if option not in defaults:
            known = ", ".join(defaults) or "none"
            raise ConfigError(f"the method {name!r} has no option {option!r}", f"it has {known}")
        given[option] = _read(name, option, value, defaults)
    return kind(**given)


def _read(name: str, option: str, value: str, defaults: Mapping[str, Any]) -> Any:
    kind = type(defaults[option])
    try:
        if kind is bool:
            return {"true": True, "false": False}[value.lower()]
        return kind(value)
    except (ValueError, KeyError) as error:
        wanted = {bool: "true or false", int: "a whole number", float: "a number"}.get(kind, "a string")
        raise ConfigError(f"the method {name!r} takes {wanted} for {option}, not {value!r}") from error
