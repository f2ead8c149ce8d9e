"""Pages of other stores, taken into one: a story that several have is owned by the page that had it first.

Each page is read again from its text under the key of this store, and judged like any other. An owner that repeats a
page of another store becomes its duplicate, for it has been delivered there and here. A page whose text does not tell
all that it owned (cut, or not kept) is left out, and so is a duplicate that repeats nothing here: crawls judge them
anew.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from dedup_middleware.checks.detector import Detector
from dedup_middleware.errors import ConfigError
from dedup_middleware.fingerprints import instance_of, is_published
from dedup_middleware.index import schema
from dedup_middleware.model import Page, VerdictKind
from dedup_middleware.text.clauses import clauses

if TYPE_CHECKING:
    from dedup_middleware.features import ItemContent
    from dedup_middleware.fingerprints import Fingerprinter
    from dedup_middleware.index.index import Index
    from dedup_middleware.index.transfer import Entry, Exported, Spool
    from dedup_middleware.model import StoredPage
    from dedup_middleware.settings.config import Config
    from dedup_middleware.stores import OpenStore

#: Pages between two batches that wait for the medium.
_SYNC_INTERVAL = 500


def merge(store: OpenStore, index: Index, spool: Spool, config: Config) -> Counter[str]:
    """Take the pages in *spool* into *store*, owners first and the oldest before others; 3 ms a page.

    Returns how many became owners and duplicates, and how many were known: those of before stay as they are, if they
    are as young. What is left out, *spool* is told.
    """
    refuse_published(config)
    here = instance_of(config.fingerprint, store.header.key)
    origins = [o.header for o in spool.origins]
    there = [instance_of(config.fingerprint, header.key) for header in origins]
    merging = _Merging(store, index, here, config.threshold)
    came = Counter(dict.fromkeys(("owners", "duplicates", "known"), 0))
    for count, (entry, exported) in enumerate(spool.pages(sorted(spool.entries)), 1):
        kind = merging.take(entry, exported, there[entry.origin])
        if kind in came:
            came[kind] += 1
        else:
            spool.refuse(exported.page.url, kind)
        if count % _SYNC_INTERVAL == 0:
            store.write([], sync=True)
    store.write([*spool.pairs], sync=True)
    return came


def refuse_published(config: Config) -> None:
    """Raise :class:`ConfigError` under a published method: what it made of a page, its text alone does not tell."""
    if is_published(config.fingerprint):
        raise ConfigError(
            f"stores of DEDUP_FINGERPRINT={config.fingerprint!r} cannot be merged: import one file into an empty store"
        )


class _Merging:
    def __init__(self, store: OpenStore, index: Index, fingerprint: Fingerprinter, threshold: float) -> None:
        self._store = store
        self._index = index
        self._fingerprint = fingerprint
        self._detector = Detector(index, fingerprint.hash, threshold)
        self._threshold = threshold

    def take(self, entry: Entry, exported: Exported, there: Fingerprinter) -> str:
        """Take one page, whose store hashed as *there*; return what it is here, or why it is left out."""
        before = self._index.find(exported.page.identities)
        if before is not None and before.time >= exported.page.time:
            return "known"
        page = self._read_again(exported, there)
        if page is None:
            return "its text was cut or not kept"
        verdict = self._detector.judge(page)
        if verdict.kind is VerdictKind.SAME:
            return "known"
        if verdict.kind is VerdictKind.DUPLICATE and verdict.match is not None:
            self._index.remember_duplicate(page, verdict.match)
        elif entry.is_duplicate:
            return "it repeats nothing here"
        else:
            self._index.commit(self._detector.as_kept(page, verdict, self._threshold), durable=True)
        stored = self._index.find(page.identities)
        assert stored is not None
        self._keep_delivery(stored, exported)
        return "owners" if stored.owner is None else "duplicates"

    def _keep_delivery(self, stored: StoredPage, came: Exported) -> None:
        """Let *stored* have been delivered when, by whom and to what *came* was, and name what that names."""
        kept = replace(stored, delivery=came.page.delivery)
        named = [(schema.canonical_key(identity), schema.encode_number(kept.number)) for identity in came.names]
        self._store.write([(schema.page_key(kept.number), schema.encode_page(kept)), *named])

    def _read_again(self, exported: Exported, there: Fingerprinter) -> Page | None:
        """Return the page as this store hashes it; ``None`` if its text is not all that it was stored with."""
        known, text = exported.page, exported.text or ()
        if not text or frozenset(there(text).weights) != known.hashes:
            return None
        page = Page(
            known.url,
            known.identities,
            self._fingerprint(text),
            text,
            known.run,
            source=known.source,
            features=known.features,
        )
        if not known.exact_digest and there(text).exact_digest:
            # It owned only what its items said.
            page = page.restricted_to(page.fingerprint.weights.keys(), text)
        return replace(page, item_content=self._said(exported, there))

    def _said(self, exported: Exported, there: Fingerprinter) -> ItemContent | None:
        """Return what its items said; of a clause that is in no text that was kept, they said nothing."""
        known = exported.page.item_content
        if known is None:
            return None
        here = {
            there.hash(clause): self._fingerprint.hash(clause)
            for text in (exported.text or (), exported.item_text or ())
            for clause, _ in clauses("\n".join(text))
        }
        hashes = frozenset(here[h] for h in known.hashes if h in here)
        return replace(known, hashes=hashes, texts=exported.item_text or ())
