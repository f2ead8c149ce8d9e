"""A Bloom filter: whether a content was seen before, in a few bits a page, and now and then wrongly.

Source: B. Bloom, "Space/time trade-offs in hash coding with allowable errors", Communications of the ACM 13 (7), 1970;
a text in Chinese of the web on crawlers, of unknown author, proposes it for pages.

Specified: an array of m bits and k hash functions; a content that is seen sets the bits of its k positions, and one
whose bits are all set counts as seen. What was seen is never denied. Once n of them are in, a stranger's bits are all
set with the probability p = (1 - e^(-kn/m))^k, which is least at k = ln 2 · m/n; so n and p tell m and k.

Left open: what is hashed, n and p. The main text, folded, with single spaces, by BLAKE2b, for which nobody can write
two texts that agree; a million pages, and one stranger in a hundred.

Departures: none in `BloomFilter.seen`, which is the filter, by the library rbloom. But a filter answers for all that it
has seen together: it cannot say which text is repeated, so it is no comparison of two. The fingerprint is therefore
what the filter is fed with, 128 bits from which all k positions follow, and two are alike if those are equal: that is
the filter without its false positives, and *capacity* and *rate* make no difference to it. Who wants those asks `seen`.
"""

from __future__ import annotations

from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING

from dedup_middleware.errors import ConfigError
from dedup_middleware.fingerprints.method import Digest, Method, Text, within
from dedup_middleware.methods.two_stage import content

if TYPE_CHECKING:
    from rbloom import Bloom

# What rbloom takes its positions from.
_HASH_BYTES = 16


class BloomFilter(Method):
    """A `Method`: the hash of the content; and a filter of such hashes. O(length of the text)."""

    threshold = 1.0

    def __init__(self, *, capacity: int = 1_000_000, rate: float = 0.01) -> None:
        """Let the filter take one stranger in 1 / *rate*, 1e-9 to 0.5, for seen, once *capacity* prints are in it.

        *capacity* is 1 to 100 million; at a hundredth, each takes 10 bits. `ConfigError` if rbloom is not installed.
        """
        self._capacity = int(within("capacity", capacity, 1, 100_000_000))
        self._rate = within("rate", rate, 1e-9, 0.5)
        try:
            import rbloom  # noqa: F401, PLC0415 - only this method needs it
        except ImportError as error:
            raise ConfigError(
                f"the method 'bloom' has its filter from rbloom ({error}): `pip install rbloom`"
            ) from error

    @cached_property
    def _filter(self) -> Bloom:
        # Not before something is to be seen: fingerprints alone need no memory.
        from rbloom import Bloom  # noqa: PLC0415 - only this method needs it

        return Bloom(self._capacity, self._rate, _signed)

    def fingerprint(self, text: Text) -> Digest | None:
        """Return the hash of the content of *text*; ``None`` if it has none."""
        found = content(text)
        if not found:
            return None
        return Digest(blake2b(found.encode("utf8", "surrogatepass"), digest_size=_HASH_BYTES).digest())

    def seen(self, made: Digest) -> bool:
        """Tell whether *made* was asked for before, and know it from now on. O(1).

        Always true if it was; if not, true for *rate* of them once *capacity* are in, for more of them beyond. The same
        prints in the same order have the same answers in every process.
        """
        known = made.value in self._filter
        self._filter.add(made.value)
        return known


def _signed(value: bytes) -> int:
    return int.from_bytes(value, "big", signed=True)
