"""The posting lists of very many pages, gathered on disk and sorted there, for a store that is filled with all of them.

A key of a posting list is a hash: pages put one after the other would write, and read, all over the store.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from dedup_middleware.errors import ConfigError
from dedup_middleware.index import schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from typing_extensions import Self

# The kind of a key and two bytes of its hash tell its bucket: of these 24 bits so many that a bucket can be sorted in
# memory. 300 000 entries are some 25 MB.
_STEERING_BYTES, _HASH_BITS = 3, 16
_IN_BUCKET, _MAX_SPLIT = 300_000, 12
# Bytes held back before they go to the files.
_HELD = 64 * 2**20


class PostingSpool:
    """Who holds which clause or text; in a temporary folder, of some 600 bytes a news page."""

    def __init__(self, entries: int) -> None:
        """Make room for about so many *entries*, a page under a key each; it may be more or fewer."""
        split = max(0, min((entries // _IN_BUCKET).bit_length(), _MAX_SPLIT))
        self._shift = _HASH_BITS - split
        self._folder = tempfile.TemporaryDirectory(prefix="dedup-import-")
        self._held: defaultdict[int, bytearray] = defaultdict(bytearray)
        self._bytes = 0
        self._widths: dict[int, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def add(self, keys: Iterable[bytes], number: int) -> None:
        """Let the posting lists under *keys* have the page *number*; 0.3 µs a key. `ConfigError` without room."""
        held, shift, encoded = self._held, self._shift, schema.encode_number(number)
        for key in keys:
            held[int.from_bytes(key[:_STEERING_BYTES], "big") >> shift] += key + encoded
            self._widths[key[0]] = len(key)
            self._bytes += len(key) + len(encoded)
        if self._bytes > _HELD:
            self._flush()

    def lists(self, max_holders: int) -> Iterator[tuple[bytes, bytes]]:
        """Yield the lists as a store has them, in the order of their keys, each with its oldest pages alone."""
        self._flush()
        longest = max_holders * len(schema.encode_number(0))
        for file in sorted(Path(self._folder.name).iterdir()):
            width = self._widths[int(file.name, 16) >> (_HASH_BITS - self._shift)]
            under, held = b"", b""
            for entry in _sorted(file.read_bytes(), width + len(schema.encode_number(0))):
                key, number = entry[:width], entry[width:]
                if key == under:
                    held += number
                    continue
                if under:
                    yield under, held[:longest]
                under, held = key, number
            yield under, held[:longest]

    def _flush(self) -> None:
        try:
            for bucket, entries in self._held.items():
                with Path(self._folder.name, f"{bucket:06x}").open("ab") as file:
                    file.write(entries)
        except OSError as error:
            raise ConfigError(
                f"{self._folder.name} cannot be written ({error.strerror or error}): make room there, "
                "or name another folder in the environment variable TMPDIR"
            ) from error
        self._held.clear()
        self._bytes = 0


def _sorted(entries: bytes, width: int) -> list[bytes]:
    return sorted(entries[at : at + width] for at in range(0, len(entries), width))
