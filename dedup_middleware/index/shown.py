"""Keeps what the first pages of a host have shown beside their texts, each with the number of pages.

That are words and parts of titles, short lines, and what stands around the text. What several pages of a host show
beside other texts is its frame, and what most of them show is the site's: it sets none of them apart. A value in the
store for each host, of its own pages with a text of their own.
"""

from __future__ import annotations

from functools import lru_cache
from struct import Struct
from typing import TYPE_CHECKING

from dedup_middleware.errors import UnreadableError
from dedup_middleware.fingerprints import fast_hash
from dedup_middleware.text import titles
from dedup_middleware.text.clauses import SHORT, folded

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dedup_middleware.model import Page

#: On so many pages of its host something is frame; on half of them, too, it is the site's.
SITE_PAGES = 3
#: Pages of a host that are counted: after these, what is the site's stays the site's.
COUNTED_PAGES = 100
#: Entries of a host, 6 bytes each: what one page alone shows makes room first.
MAX_SHOWN = 512
# Short lines of one page that are counted.
_MAX_LINES = 40
_ENTRY = Struct(">4sH")
#: Under this hash, all pages are counted.
PAGES = b"\0\0\0\0"


def has_word(shown: Mapping[bytes, int], word: str) -> bool:
    """Return whether the *word*, folded, stands in most titles of a host, and in several."""
    return _is_sites(shown, _of_word(word))


def has_line(shown: Mapping[bytes, int], line: str) -> bool:
    """Return whether the short *line* stands on most pages of a host, and on several."""
    return _is_sites(shown, _of_line(line))


def has_part(shown: Mapping[bytes, int], part: str) -> bool:
    """Return whether a *part* of titles, its words, stands in several titles of a host: the site's, or a section's."""
    return is_frame(shown, _of_part(part))


def is_frame(shown: Mapping[bytes, int], hash_: bytes) -> bool:
    """Return whether several pages of a host have shown what has this *hash_* around their texts."""
    return shown.get(hash_, 0) >= SITE_PAGES


def is_frame_line(shown: Mapping[bytes, int], line: str) -> bool:
    """Return whether several pages of a host have shown the short *line* in their texts."""
    return is_frame(shown, _of_frame_line(line))


def _is_sites(shown: Mapping[bytes, int], hash_: bytes) -> bool:
    return shown.get(hash_, 0) >= max(SITE_PAGES, shown.get(PAGES, 0) / 2)


def _of_word(word: str) -> bytes:
    return fast_hash(f"t{word}")


def _of_part(part: str) -> bytes:
    return fast_hash(f"p{part}")


def _of_line(line: str) -> bytes:
    return fast_hash(f"l{folded(line)}")


def _of_frame_line(line: str) -> bytes:
    return fast_hash(f"f{line}")


def _shown_by(page: Page, *, is_repeat: bool) -> Iterable[bytes]:
    """Return the hashes of what *page* shows that may be its site's, each once.

    What a page shows around a text that its host has already may be what sets the two apart: it is no frame.
    """
    lines = [line for line in page.paragraphs if len(line) <= SHORT][:_MAX_LINES]
    found = [*map(_of_line, lines)]
    if (features := page.features) is not None:
        found += map(_of_word, titles.site_row(f"{features.title} {features.heading}").split())
    if features is not None and not is_repeat:
        found += map(_of_frame_line, lines)
        found += map(_of_part, map(titles.row_of, titles.parts(features.title)))
        found += [*features.texts, *features.facts, *features.marks]
    return dict.fromkeys(found)


@lru_cache(maxsize=64)
def decode(value: bytes | None) -> Mapping[bytes, int]:
    """Return the number of pages that have shown each entry of a *value*."""
    if value is not None and (len(value) % _ENTRY.size or len(value) > MAX_SHOWN * _ENTRY.size):
        raise UnreadableError(f"what a host has shown is {len(value)} bytes long")
    return dict(_ENTRY.iter_unpack(value or b""))


def encode(shown: Mapping[bytes, int]) -> bytes:
    """Return the value of what a host has *shown*."""
    return b"".join([_ENTRY.pack(hash_, count) for hash_, count in shown.items()])


def updated(shown: Mapping[bytes, int], page: Page, *, is_repeat: bool = False) -> Mapping[bytes, int]:
    """Return what a host has *shown* with what a new *page* of it shows; *shown* itself once enough are counted.

    *is_repeat*: whether the host has shown the text of the page before.
    """
    if shown.get(PAGES, 0) >= COUNTED_PAGES:
        return shown
    found = dict(shown)
    for hash_ in (*_shown_by(page, is_repeat=is_repeat), PAGES):
        found[hash_] = found.pop(hash_, 0) + 1
    extra = len(found) - MAX_SHOWN
    for hash_ in sorted(found, key=lambda h: found[h] > 1)[:extra] if extra > 0 else ():
        del found[hash_]
    return found
