"""What a method has learned besides the frequencies of words, as bytes."""

from __future__ import annotations

import json
import zlib
from typing import Any

from dedup_middleware.errors import UnreadableError


def packed_before(rest: bytes, known: Any) -> bytes:
    """Return *known*, which JSON can say, and after it the *rest*, for `unpacked_before`."""
    return zlib.compress(json.dumps(known, ensure_ascii=False).encode("utf8", "surrogatepass")) + rest


def unpacked_before(learned: bytes) -> tuple[Any, bytes]:
    """Return what was packed, and the rest; :class:`UnreadableError` if nothing was."""
    stream = zlib.decompressobj()
    try:
        return json.loads(stream.decompress(learned).decode("utf8", "surrogatepass")), stream.unused_data
    except (zlib.error, ValueError) as error:
        raise UnreadableError(f"what a method has learned cannot be read: {error}") from error
