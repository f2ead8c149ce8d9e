"""What two stored pages share and what each says for itself, sentence by sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dedup_middleware.checks.alignment import compare
from dedup_middleware.fingerprints import instance_of
from dedup_middleware.identity import url_identity
from dedup_middleware.index.opening import index_for_command
from dedup_middleware.stores import store_exists
from dedup_middleware.text.clauses import one_line
from dedup_middleware.text.evidence import marked_sentences

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dedup_middleware.fingerprints import Fingerprinter
    from dedup_middleware.index.index import Index
    from dedup_middleware.model import StoredPage
    from dedup_middleware.settings.config import Config

_SHOWN = 8
_CHARACTERS = 200


class SideBySide(NamedTuple):
    """The sentences of a page and its owner; those that are too short to tell are left out."""

    both: list[str]
    """As the page wrote them."""
    own: list[str]
    """What only the page says,"""
    owners: list[str]
    """and what only the owner does."""


def side_by_side(config: Config, pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], SideBySide]:
    """Return the texts of those *pairs* of URLs, of a page and its owner, that a closed store has both of.

    The store is closed again at once. Some 5 ms a pair. `StoreError` if it is in use, or cannot be read.
    """
    if not store_exists(config.store):
        return {}
    found = {}
    with index_for_command(config.store, "tune") as (store, index):
        fingerprint = instance_of(config.fingerprint, store.header.key)
        for pair in pairs:
            page, owner = (index.find([url_identity(url)]) for url in pair)
            if page is not None and owner is not None and page.number != owner.number:
                found[pair] = _compared(index, fingerprint, page, owner)
    return {pair: texts for pair, texts in found.items() if texts.both or texts.own}


def _compared(index: Index, fingerprint: Fingerprinter, page: StoredPage, owner: StoredPage) -> SideBySide:
    both, own = _split(index, fingerprint, page, owner)
    _, owners = _split(index, fingerprint, owner, page)
    return SideBySide(both, own, owners)


def _split(
    index: Index, fingerprint: Fingerprinter, page: StoredPage, other: StoredPage
) -> tuple[list[str], list[str]]:
    """Return the sentences of *page* that *other* says, in the same or nearly the same words, and those that not."""
    text = index.text(page.number)
    nearly = compare(text, index.text(other.number), says=lambda clause: fingerprint.hash(clause) in other.hashes)
    held = other.hashes | frozenset(map(fingerprint.hash, nearly.near))
    telling = [s for s in marked_sentences(text, held, fingerprint.hash) if s.share is not None]
    return [s.text for s in telling if s.repeated], [s.text for s in telling if not s.repeated]


def side_by_side_lines(texts: SideBySide) -> list[str]:
    """Return what differs for a person: ``+`` the page's own sentences, ``-`` its owner's, and one that both say."""
    lines = [f"= {len(texts.both)} sentences that both say, such as: {one_line(texts.both[0], _CHARACTERS)}"] * bool(
        texts.both
    )
    for mark, sentences in (("+", texts.own), ("-", texts.owners)):
        lines += [f"{mark} {one_line(sentence, _CHARACTERS)}" for sentence in sentences[:_SHOWN]]
        if len(sentences) > _SHOWN:
            lines.append(f"{mark} … and {len(sentences) - _SHOWN} more")
    return lines
