"""Keeps what the first pages of a host have shown beside their texts, with the number of pages and of texts.

That are words and parts of titles, short lines, and what stands around the text. What pages with several texts show is
the frame of their host, and what most pages show is the site's: it sets none of them apart. A value in the store for
each host, of its own pages only.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import chain
from struct import Struct
from typing import TYPE_CHECKING

from dedup_middleware.errors import UnreadableError
from dedup_middleware.fingerprints import fast_hash
from dedup_middleware.text import titles
from dedup_middleware.text.clauses import SHORT, folded

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dedup_middleware.model import Page

#: Beside so many texts of a host something is frame; on so many of its pages, and on half of them, it is the site's.
SEVERAL = 3
#: Pages of a host that are counted: after these, what is the site's stays the site's.
COUNTED_PAGES = 100
#: Entries of a host, 11 bytes each: what one page alone shows makes room first.
MAX_SHOWN = 512
# Short lines of one page that are counted.
_MAX_LINES = 40
# The hash of what is shown; the number of pages; and two bytes that tell each of the first texts apart, zeros for none.
_ENTRY = Struct(f">4s{1 + 2 * SEVERAL}s")
_NONE = bytes(1 + 2 * SEVERAL)
#: Under this hash, all pages are counted.
PAGES = b"\0\0\0\0"


def has_word(shown: Mapping[bytes, bytes], word: str) -> bool:
    """Return whether the *word*, folded, stands in most titles of a host, and over several texts."""
    return _is_sites(shown, _of_word(word))


def has_line(shown: Mapping[bytes, bytes], line: str) -> bool:
    """Return whether the short *line* stands in the text of most pages of a host, and in several texts."""
    return _is_sites(shown, _of_line(line))


def is_frame_line(shown: Mapping[bytes, bytes], line: str) -> bool:
    """Return whether the short *line* stands in several texts of a host."""
    return is_frame(shown, _of_line(line))


def is_frame_part(shown: Mapping[bytes, bytes], part: str) -> bool:
    """Return whether a *part* of a title stands over several texts of a host: it is the site's, or a section's."""
    return is_frame(shown, _of_part(part))


def is_name(shown: Mapping[bytes, bytes], part: str) -> bool:
    """Return whether a page of a host says that its site is called as this *part* of a title."""
    return _of_name(part) in shown


def is_frame(shown: Mapping[bytes, bytes], hash_: bytes) -> bool:
    """Return whether a host has shown what has this *hash_* around several texts."""
    return shown.get(hash_, _NONE)[-2:] != b"\0\0"


def _is_sites(shown: Mapping[bytes, bytes], hash_: bytes) -> bool:
    return is_frame(shown, hash_) and shown[hash_][0] >= shown.get(PAGES, _NONE)[0] / 2


def _of_word(word: str) -> bytes:
    return fast_hash(f"t{word}")


def _of_name(name: str) -> bytes:
    return fast_hash(f"n{titles.row_of(name)}")


def _of_part(part: str) -> bytes:
    return fast_hash(f"p{titles.row_of(part)}")


def _of_line(line: str) -> bytes:
    return fast_hash(f"l{folded(line)}")


def _shown_by(page: Page) -> Iterable[bytes]:
    """Return the hashes of what *page* shows that may be its host's, each once."""
    lines = [line for line in page.paragraphs if len(line) <= SHORT][:_MAX_LINES]
    found = [*map(_of_line, lines)]
    if (features := page.features) is not None:
        found += map(_of_word, titles.site_row(f"{features.title} {features.heading}").split())
        found += map(_of_part, titles.parts(features.title))
        found += map(_of_name, features.site_names)
        found += [*features.texts, *features.facts, *features.marks]
    return dict.fromkeys(found)


# The values are bytes, which no collection looks at.
@lru_cache(maxsize=64)
def decode(value: bytes | None) -> Mapping[bytes, bytes]:
    """Return what a *value* has under each hash: a byte for the pages, and two for each of the first texts."""
    if value is not None and (len(value) % _ENTRY.size or len(value) > MAX_SHOWN * _ENTRY.size):
        raise UnreadableError(f"what a host has shown is {len(value)} bytes long")
    return dict(_ENTRY.iter_unpack(value or b""))


def encode(shown: Mapping[bytes, bytes]) -> bytes:
    """Return the value of what a host has *shown*."""
    return b"".join(chain.from_iterable(shown.items()))


def updated(shown: Mapping[bytes, bytes], page: Page) -> Mapping[bytes, bytes]:
    """Return what a host has *shown* with what a new *page* of it shows; *shown* itself once enough are counted."""
    if shown.get(PAGES, _NONE)[0] >= COUNTED_PAGES:
        return shown
    found, text = dict(shown), page.fingerprint.digest[:2]
    text = text if any(text) else b"\0\1"
    new = _with(_NONE, text)
    for hash_ in (*_shown_by(page), PAGES):
        entry = found.pop(hash_, None)
        found[hash_] = new if entry is None else _with(entry, text)
    extra = len(found) - MAX_SHOWN
    if extra > 0:
        rare = [hash_ for hash_, entry in found.items() if entry[0] == 1]
        for hash_ in [*rare, *found][:extra]:
            found.pop(hash_, None)
    return found


def _with(entry: bytes, text: bytes) -> bytes:
    """Return an *entry* with one page more, of this *text*."""
    pages = bytes((entry[0] + 1,))
    if entry[-2:] != b"\0\0":
        return pages + entry[1:]
    texts = [entry[place : place + 2] for place in range(1, len(entry), 2)]
    if text not in texts:
        texts[texts.index(b"\0\0")] = text
    return b"".join((pages, *texts))
