"""Keeps what the pages of a host have shown: parts of titles and short lines, each with the number of pages.

What several pages of one host show beside other texts is the site's, and sets none of them apart. A value in the store
for each host, of its own pages only.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from dedup_middleware.errors import UnreadableError
from dedup_middleware.fingerprints import fast_hash
from dedup_middleware.text import titles
from dedup_middleware.text.clauses import SHORT, folded

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dedup_middleware.model import Page

#: On so many other pages of its host a part of a title, or a line, is the site's.
SITE_PAGES = 3
#: Entries of a host, 6 bytes each: what one page alone shows makes room first.
MAX_SHOWN = 256
# Short lines of one page that are counted.
_MAX_LINES = 40
_HASH_BYTES = 4
_COUNT_BYTES = 2
_ENTRY = _HASH_BYTES + _COUNT_BYTES
#: Under this hash, all pages are counted.
PAGES = b"\0\0\0\0"


def of_title(word: str) -> bytes:
    """Return the hash of a *word* of a title, folded; of a version, which is another one on each page, none."""
    return fast_hash(f"t{word}")


def of_line(line: str) -> bytes:
    """Return the hash of a short *line*."""
    return fast_hash(f"l{folded(line)}")


def shown_by(page: Page) -> Iterator[bytes]:
    """Yield the hashes of what *page* shows that may be its site's, each once."""
    found: dict[bytes, None] = {}
    if page.features is not None:
        words = titles.site_row(f"{page.features.title} {page.features.heading}").split()
        found.update(dict.fromkeys(map(of_title, words)))
    short = [line for line in page.paragraphs if len(line) <= SHORT]
    found.update(dict.fromkeys(map(of_line, short[:_MAX_LINES])))
    yield from found


@lru_cache(maxsize=64)
def decode(value: bytes | None) -> Mapping[bytes, int]:
    """Return the number of pages that have shown each entry of a *value*."""
    value = value or b""
    if len(value) % _ENTRY or len(value) > MAX_SHOWN * _ENTRY:
        raise UnreadableError(f"what a host has shown is {len(value)} bytes long")
    starts = range(0, len(value), _ENTRY)
    counts = (int.from_bytes(value[n + _HASH_BYTES : n + _ENTRY], "big") for n in starts)
    return dict(zip((value[n : n + _HASH_BYTES] for n in starts), counts, strict=True))


def encode(shown: Mapping[bytes, int]) -> bytes:
    """Return the value of what a host has *shown*."""
    return b"".join(hash_ + count.to_bytes(_COUNT_BYTES, "big") for hash_, count in shown.items())


def has_word(shown: Mapping[bytes, int], word: str) -> bool:
    """Return whether the *word*, folded, stands in most titles of a host, and in several."""
    return _is_sites(shown, of_title(word))


def has_line(shown: Mapping[bytes, int], line: str) -> bool:
    """Return whether the short *line* stands on most pages of a host, and on several."""
    return _is_sites(shown, of_line(line))


def _is_sites(shown: Mapping[bytes, int], hash_: bytes) -> bool:
    return shown.get(hash_, 0) >= max(SITE_PAGES, shown.get(PAGES, 0) / 2)


def updated(shown: Mapping[bytes, int], page: Page) -> dict[bytes, int]:
    """Return what a host has *shown* with what a new *page* of it shows."""
    found = dict(shown)
    if found.get(PAGES, 0) >= 2 ** (8 * _COUNT_BYTES) - 1:
        return found
    for hash_ in (*shown_by(page), PAGES):
        found[hash_] = found.pop(hash_, 0) + 1
    extra = len(found) - MAX_SHOWN
    for hash_ in sorted(found, key=lambda h: found[h] > 1)[: max(0, extra)]:
        del found[hash_]
    return found
