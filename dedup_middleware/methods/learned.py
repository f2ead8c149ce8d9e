"""What a method has learned, as bytes: JSON, packed."""

from __future__ import annotations

import json
import zlib
from typing import Any

from dedup_middleware import bounded
from dedup_middleware.errors import ConfigError

# Of what is learned, unpacked, and values in it: two hundred pages have ten thousand words.
_MAX_BYTES, _MAX_VALUES = 32 * 2**20, 1_000_000


def packed_before(rest: bytes, known: Any) -> bytes:
    """Return *known*, which JSON can express, and after it the *rest*, for `unpacked_before`."""
    written = json.dumps(known, ensure_ascii=False).encode("utf8", "surrogatepass")
    if len(written) > _MAX_BYTES or bounded.has_more(written, _MAX_VALUES):
        raise ConfigError("there are more words in these pages than can be kept; learn from fewer pages")
    return zlib.compress(written) + rest


def unpacked_before(learned: bytes) -> tuple[Any, bytes]:
    """Return what was packed, and the rest; :class:`UnreadableError` if nothing was."""
    found, rest = bounded.unpacked_before(learned, _MAX_BYTES)
    return bounded.loads(found, values=_MAX_VALUES), rest
