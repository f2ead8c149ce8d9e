"""Merges the pages of exports into a store that has pages: each is fingerprinted and checked again."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from dedup_middleware.checks.detector import Detector
from dedup_middleware.fingerprints import instance_of
from dedup_middleware.index import schema
from dedup_middleware.model import Page, VerdictKind
from dedup_middleware.text.clauses import clauses

if TYPE_CHECKING:
    from dedup_middleware.fingerprints import Fingerprinter
    from dedup_middleware.index.index import Index
    from dedup_middleware.index.transfer import Exported, Spool
    from dedup_middleware.model import StoredPage
    from dedup_middleware.settings import Config

# Pages between two batches that are synced to disk.
_SYNC_INTERVAL = 500


def merge(index: Index, spool: Spool, config: Config) -> Counter[str]:
    """Add the pages in *spool* to the store of *index*, originals first and the oldest before others; 3 ms a page.

    Returns how many became originals and duplicates, and how many were known: those of before stay as they are, if they
    are as young. *spool* counts what is left out.
    """
    store = index.store
    merging = _Merging(index, instance_of(config.fingerprint, store.header.key), config.threshold)
    there = [instance_of(config.fingerprint, origin.header.key) for origin in spool.origins]
    came = Counter(dict.fromkeys(("originals", "duplicates", "known"), 0))
    for count, (entry, exported) in enumerate(spool.pages(sorted(spool.entries)), 1):
        kind = merging.take(exported, there[entry.origin])
        if kind in came:
            came[kind] += 1
        else:
            spool.refuse(exported.url, kind)
        if count % _SYNC_INTERVAL == 0:
            store.write([], sync=True)
    store.write(spool.pairs, sync=True)
    return came


class _Merging:
    """Checks exported pages by their texts, as a crawl does, for each store hashes clauses with a key of its own."""

    def __init__(self, index: Index, fingerprint: Fingerprinter, threshold: float) -> None:
        self._index = index
        self._fingerprint = fingerprint
        self._detector = Detector(index, fingerprint.hash, threshold)
        self._threshold = threshold

    def take(self, exported: Exported, there: Fingerprinter) -> str:
        """Take one page, whose store hashed as *there*; return what it is here, or why it is left out."""
        known = exported.stored
        before = self._index.find(known.identities)
        if before is not None and before.time >= known.time:
            return "known"
        page = self._read_again(known, exported, there)
        if page is None:
            return "its text was cut or not kept"
        verdict = self._detector.check(page)
        if verdict.kind is VerdictKind.UNCHANGED:
            return "known"
        if verdict.kind is VerdictKind.DUPLICATE and verdict.match is not None:
            self._index.remember_duplicate(page, verdict.match)
        elif known.original is not None:
            return "it repeats nothing here"
        else:
            self._index.commit(self._detector.as_kept(page, verdict, self._threshold), durable=True)
        stored = self._index.find(page.identities)
        assert stored is not None
        # It was kept when, by whom and for what it was kept there.
        number, value = stored.number, schema.encode_page(replace(stored, kept=known.kept))
        named = [(schema.canonical_key(identity), schema.encode_number(number)) for identity in exported.names]
        self._index.store.write([(schema.page_key(number), value), *named])
        return "originals" if stored.original is None else "duplicates"

    def _read_again(self, known: StoredPage, exported: Exported, there: Fingerprinter) -> Page | None:
        """Return the page as this store hashes it; ``None`` if its text is not all that it was stored with."""
        text = tuple(exported.text or ())
        before = there(text)
        if not text or frozenset(before.weights) != known.hashes:
            return None
        made, source, features = self._fingerprint(text), known.source, known.features
        page = Page(known.url, known.identities, made, text, known.run, source=source, features=features)
        if not known.exact_digest and before.exact_digest:
            # It owned only what its items contain.
            page = page.restricted_to(made.weights.keys(), text)
        content = known.item_content
        if content is not None:
            # A clause that is in no text that was kept is left out.
            texts = ("\n".join(text), "\n".join(exported.item_text or ()))
            here = {there.hash(c): self._fingerprint.hash(c) for each in texts for c, _ in clauses(each)}
            hashes = frozenset(here[h] for h in content.hashes if h in here)
            content = replace(content, hashes=hashes, texts=tuple(exported.item_text or ()))
        return replace(page, item_content=content)
