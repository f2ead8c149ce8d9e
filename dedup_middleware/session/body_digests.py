"""Digests of the bytes of pages: which would be read as they were the last time, and need not be.

So a digest is that of the bytes, and of all that decides how they are read: the extraction, its limits, the libraries.
"""

from __future__ import annotations

from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from lxml import etree

from dedup_middleware import budget
from dedup_middleware.extraction import EXTRACTORS
from dedup_middleware.index.lookup import TEXT_LIMIT

if TYPE_CHECKING:
    from dedup_middleware.settings.config import Config

#: Raise it with every change by which a page may be read otherwise: its main text, its title, what stands around.
READING = 1
DIGEST_BYTES = 16


class BodyDigests:
    """Digests of the bytes of pages."""

    def __init__(self, key: bytes, config: Config) -> None:
        """Use the store's *key*, 16 bytes: nobody can make two pages with one digest. *config* says how they are read.

        SHA-256, which processors have built in: half the time of BLAKE2b there.
        """
        how = (
            (READING, _version(), etree.LXML_VERSION, etree.LIBXML_VERSION),
            (config.extractor, EXTRACTORS.version(config.extractor), config.fingerprint),
            (budget.MAX_ELEMENTS, budget.MAX_CLAUSES, config.max_milliseconds, TEXT_LIMIT),
        )
        self._hasher = sha256(key + repr(how).encode())

    def __call__(self, body: bytes, *how: str) -> bytes:
        """Return 16 bytes that tell this *body*, read so (its encoding), from any other. 0.06 ms for 100 kB."""
        hasher = self._hasher.copy()
        hasher.update(repr(how).encode("utf8", "backslashreplace"))
        hasher.update(body)
        return hasher.digest()[:DIGEST_BYTES]


def _version() -> str:
    """Return the version of this package; of sources that nobody has installed, none."""
    try:
        return version("dedup-middleware")
    except PackageNotFoundError:
        return ""
