"""What a published method is: it makes a fingerprint of a text, and tells which two fingerprints are alike.

A fingerprint is of one of three kinds, and stores and comparisons know the kinds, not the methods.
"""

from __future__ import annotations

import inspect
import math
import struct
from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

import xxhash

from dedup_middleware.errors import ConfigError, UnreadableError
from dedup_middleware.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

#: Of a feature in a set.
FEATURE_BYTES = 8
# Of sums and quotients of weights.
ROUNDING = 1e-9


class Text(NamedTuple):
    """A page as a method sees it."""

    paragraphs: tuple[str, ...]
    """Those of its main text, in document order, none empty."""
    title: str = ""
    url: str = ""
    description: str = ""
    """What the page gives as its summary, ``<meta name=description>``."""
    elements: tuple[str, ...] = ()
    """The block-level elements around each paragraph, outermost first: ``article/ul/li``. Only for a method that
    `sees_elements`."""


@dataclass(frozen=True, slots=True)
class Digest:
    """Equal or not."""

    value: bytes


@dataclass(frozen=True, slots=True)
class Bits:
    """Alike by their Hamming distance."""

    values: tuple[int, ...]
    """One number for the text, or one for each of its paragraphs, in order."""
    size: int
    """How many bits each has."""


@dataclass(frozen=True, slots=True)
class WeightedSet:
    """Alike by their overlap."""

    weights: Mapping[bytes, float]
    """Feature (`FEATURE_BYTES`) -> its weight, above 0."""


Print: TypeAlias = "Digest | Bits | WeightedSet"


class Method(ABC):
    """A published method.

    The arguments of its constructor are its options: all by keyword, each with a default that is a number, a text or a
    truth value, and `ConfigError` for values that it cannot use. The same text under the same options, after the same
    `fit`, has the same fingerprint in every process.
    """

    learns: ClassVar[bool] = False
    """Whether it makes fingerprints only after `fit`, of what a corpus tells: frequencies of words, for example."""
    sees_elements: ClassVar[bool] = False
    """Whether it goes by `Text.elements`, which takes as long as a bare parse to find."""
    threshold: float
    """From this score on two texts are alike, 0 to 1."""

    def fit(self, texts: Iterable[Text]) -> None:  # noqa: B027 - most methods learn nothing
        """Learn from *texts*, once, before the first fingerprint: what is learned later would make these drift."""

    def learned(self) -> bytes:
        """Return what `fit` has learned, for `recall`; empty where there is nothing to learn."""
        return b""

    def recall(self, learned: bytes) -> None:  # noqa: B027 - the same
        """Know what another one of the same options had `learned`. `UnreadableError` if it is none of it."""

    @abstractmethod
    def fingerprint(self, text: Text) -> Print | None:
        """Return the fingerprint of *text*; ``None`` if it has nothing that this method goes by."""

    def score(self, new: Print, old: Print) -> float:
        """Return how much alike a *new* text is to an *old* one, 0 to 1; by default, by the kind of fingerprint."""
        if isinstance(new, Digest) and isinstance(old, Digest):
            return float(new.value == old.value)
        if isinstance(new, Bits) and isinstance(old, Bits):
            return bits_alike(new, old)
        if isinstance(new, WeightedSet) and isinstance(old, WeightedSet):
            return jaccard(new, old)
        return 0.0

    def is_alike(self, new: Print, old: Print) -> bool:
        """Tell whether the text of *new* only repeats that of *old*."""
        return self.score(new, old) >= self.threshold - ROUNDING

    def keys(self, made: Print) -> Iterable[bytes]:
        """Yield what to look *made* up by: texts that are alike have at least one key in common.

        Or nearly always, for a method that looks up by chance, as LSH does. By default: the digest; each feature of a
        set; of bits, so many blocks that the threshold leaves one unchanged.
        """
        if isinstance(made, Digest):
            yield made.value
        elif isinstance(made, WeightedSet):
            yield from made.weights
        else:
            yield from blocks(made, distance_of(self.threshold, made.size))


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
    """Return how many of *size* bits may differ where a score of *threshold* is asked for."""
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
    """Return the option *value* if it is one of *values*; else :class:`ConfigError`."""
    if value not in (known := [*values]):
        raise ConfigError(f"{name} = {value!r} is none of {', '.join(map(repr, known))}")
    return value


def within(name: str, value: float, least: float, most: float) -> float:
    """Return the option *value* if it is between *least* and *most*; else :class:`ConfigError`."""
    if not least <= value <= most:
        raise ConfigError(f"{name} = {value!r} is not between {least} and {most}")
    return value


# --- in stores

_DIGEST, _BITS, _SET = b"d", b"b", b"s"
#: Bytes of a fingerprint: a set of all the shingles that are read of a text takes 1 MB.
MAX_PACKED = 8 * 2**20


def packed(made: Print) -> bytes:
    """Return *made* for a store, to be read by `unpacked`; weights have 32 bits there."""
    if isinstance(made, Digest):
        return _DIGEST + made.value
    if isinstance(made, Bits):
        width = -(-made.size // 8)
        return _BITS + struct.pack(">H", made.size) + b"".join(value.to_bytes(width, "big") for value in made.values)
    return _SET + b"".join(name + struct.pack(">f", weight) for name, weight in sorted(made.weights.items()))


def unpacked(value: bytes) -> Print:
    """Return what was `packed` as *value*; :class:`UnreadableError` if nothing was."""
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
    raise UnreadableError(f"a fingerprint cannot be read: it is of the kind {kind!r}")


def _bits(packed: bytes) -> Bits:
    (size,) = struct.unpack_from(">H", packed)
    width = -(-size // 8)
    values = tuple(int.from_bytes(packed[at : at + width], "big") for at in range(2, len(packed), width))
    if (len(packed) - 2) % width or any(value >> size for value in values):
        raise ValueError("its bits are not as many as it says")
    return Bits(values, size)


def _weighted_set(packed: bytes) -> WeightedSet:
    weights = dict(struct.iter_unpack(f">{FEATURE_BYTES}sf", packed))
    if not all(0 < weight < math.inf for weight in weights.values()):
        raise ValueError("a weight is none")
    return WeightedSet(weights)


_HERE = "dedup_middleware.methods"

#: By name, in the order of docs/methods.md.
METHODS = Registry(
    "dedup_middleware.methods",
    {
        "paragraphs": f"{_HERE}.paragraph_simhash:ParagraphSimHash",
        "long-sentences": f"{_HERE}.long_sentences:LongSentences",
        "shingles": f"{_HERE}.shingling:Shingles",
        "heintze": f"{_HERE}.shingling:Heintze",
        "bharat": f"{_HERE}.shingling:Bharat",
        "supershingles": f"{_HERE}.supershingles:SuperShingles",
        "fetterly": f"{_HERE}.supershingles:Fetterly",
        "i-match": f"{_HERE}.i_match:IMatch",
        "simhash": f"{_HERE}.charikar:Charikar",
        "e-simhash": f"{_HERE}.e_simhash:ESimHash",
        "p-simhash": f"{_HERE}.p_simhash:PSimHash",
        "top-words": f"{_HERE}.top_words:TopWords",
        "segments": f"{_HERE}.segments:Segments",
        "keywords": f"{_HERE}.keyword_digests:KeywordDigests",
        "random-projection": f"{_HERE}.random_projection:RandomProjection",
        "near-pages": f"{_HERE}.near_pages:NearPages",
        "idf-top": f"{_HERE}.idf_top:IdfTop",
        "punctuation": f"{_HERE}.punctuation:PunctuationNeighbours",
        "topic-distances": f"{_HERE}.topic_distances:TopicDistances",
        "length-classes": f"{_HERE}.length_classes:LengthClasses",
        "two-stage": f"{_HERE}.two_stage:TwoStage",
        "bloom": f"{_HERE}.bloom:BloomFilter",
        "vectors": f"{_HERE}.vector_space:WordVectors",
        "characters": f"{_HERE}.vector_space:CharacterVectors",
        "minhash": f"{_HERE}.minhash:MinHashLSH",
    },
)


def method(choice: str) -> Method:
    """Return the method of a *choice*, ``name`` or ``name:option=value,option=value``; else `ConfigError`."""
    name, _, rest = choice.partition(":")
    made: type[Method] = METHODS.load(name)
    defaults = {p.name: p.default for p in inspect.signature(made).parameters.values()}
    given: dict[str, Any] = {}
    for pair in filter(None, rest.split(",")):
        option, _, value = (part.strip() for part in pair.partition("="))
        if option not in defaults:
            known = ", ".join(defaults) or "none"
            raise ConfigError(f"the method {name!r} has no option {option!r}; it has {known}")
        given[option] = _read(name, option, value, defaults)
    return made(**given)


def _read(name: str, option: str, value: str, defaults: Mapping[str, Any]) -> Any:
    kind = type(defaults[option])
    try:
        if kind is bool:
            return {"true": True, "false": False}[value.lower()]
        return kind(value)
    except (ValueError, KeyError) as error:
        wanted = {bool: "true or false", int: "a whole number", float: "a number"}.get(kind, "a text")
        raise ConfigError(f"the method {name!r} takes {wanted} for {option}, not {value!r}") from error
