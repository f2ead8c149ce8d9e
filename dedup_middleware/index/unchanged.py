"""Pages that came again: what is new of them, and, where not a byte is, what stands for them unread.

It builds such pages and remembers which have come; it reads and writes nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dedup_middleware.index.codec import place_of
from dedup_middleware.model import Fingerprint, Page

if TYPE_CHECKING:
    from dedup_middleware.model import StoredPage


def page_of(known: StoredPage, version: int, run: str, body_digest: bytes) -> Page:
    """Return the page that the crawl *run* has fetched again, *known* at a *version* of the index, without its text."""
    # Weights are unknown here; read the page to get them.
    unweighed = Fingerprint(
        dict.fromkeys(known.hashes, 0),
        dict(zip(known.skeletons, known.skeletons, strict=True)),
        known.digest,
        known.exact_digest,
        simhashes=known.simhashes,
    )
    return Page(
        known.url,
        known.identities,
        unweighed,
        (),
        run,
        source=known.source,
        features=known.features,
        body_digest=body_digest,
        known=known,
        known_at=version,
    )


def differ(stored: StoredPage, known: StoredPage) -> bool:
    """Tell whether *stored* says anything that *known* does not, but for when and by whom it was fetched."""
    return replace(stored, delivery=known.delivery) != known


def must_be_read(stored: StoredPage, page: Page, own: list[StoredPage]) -> bool:
    """Tell whether *page*, which is *stored* so in the place of its *own*, is to be read though it comes unchanged.

    One that is kept beside another leads to it by what both say, as long as that one is there. And of one that owns
    only what its items said, but for those that have said the same twice, the text would tell what it owns if they say
    something else.
    """
    if stored.owner is not None:
        return False
    is_whole = bool(stored.exact_digest)
    return bool(page.borrowed) or not (is_whole or any(known.item_content == stored.item_content for known in own))


def has_given(known: StoredPage, page: Page) -> bool:
    """Tell whether the items of the *known* owner have said all that those of *page* say now.

    If not, what is certain of the owner is not certain of them: should they be lost, it must not count as delivered.
    """
    before, now = known.item_content, page.item_content
    if before is None or now is None:
        return before is now
    return now.hashes <= before.hashes and now.values <= before.values and before.has_text >= now.has_text


def own_words(stored: StoredPage) -> tuple[str, ...]:
    """Return the text of the items of *stored*, unless that is its own text, or none."""
    said = stored.item_content
    return said.texts if said is not None and said.has_text and not said.is_text_of(stored.hashes) else ()


class Numbers:
    """A set of page numbers, a bit for each page of the store: 125 kB for a million."""

    def __init__(self) -> None:
        self._bits = bytearray()

    def add(self, number: int) -> None:
        """Add the *number* of a stored page. O(1), amortised."""
        byte, bit = divmod(place_of(number), 8)
        if byte >= len(self._bits):
            self._bits.extend(bytes(byte + 1 - len(self._bits)))
        self._bits[byte] |= 1 << bit

    def __contains__(self, number: int) -> bool:
        """Tell whether the *number* of a stored page was added."""
        byte, bit = divmod(place_of(number), 8)
        return byte < len(self._bits) and bool(self._bits[byte] >> bit & 1)
