"""Where pages are judged: a session on a store in memory that begins empty, with the key of the whole batch."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dedup_middleware.checks.detector import Detector
from dedup_middleware.checks.preferences import Preferences
from dedup_middleware.deduplicator import Deduplication
from dedup_middleware.extraction.extractor import extractor
from dedup_middleware.fingerprints import instance_of
from dedup_middleware.index.index import Index
from dedup_middleware.index.open_claims import OpenClaims
from dedup_middleware.stores.medium import Medium
from dedup_middleware.stores.memory import MemoryStore
from dedup_middleware.stores.opened import OpenStore

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dedup_middleware.model import StoredPage
    from dedup_middleware.settings.config import Config
    from dedup_middleware.stores.layout import Header
    from dedup_middleware.stores.protocol import Store


@dataclass(frozen=True)
class Job:
    """What all processes of one batch are told."""

    config: Config
    header: Header
    """Of the store that the batch makes: all fingerprints are made under its key."""
    run: str
    owner: str = "earliest"
    """Which page of a cluster is its owner, see `outcome.CHOICES`."""
    buckets: int = 8
    """Into how many parts clauses, hosts and pages are sorted."""


class BatchSession:
    """A session in which pages are read, or judged, one after the other."""

    def __init__(
        self,
        job: Job,
        *,
        store: Store | None = None,
        index: type[Index] = Index,
        detector: type[Detector] = Detector,
        **detecting: Any,
    ) -> None:
        """Use *store*, in memory, and these kinds of *index* and *detector*, the latter with what is *detecting*."""
        config = job.config
        self.job = job
        medium = Medium(store or MemoryStore(), job.header, ExitStack(), remembers=False)
        self.store = OpenStore(medium, created=True, leave=medium.close)
        self.index = index(self.store, OpenClaims(), common=config.common_clause, text_limit=config.text_limit)
        fingerprint = instance_of(config.fingerprint, job.header.key, job.header.hash_bytes)
        preferences = Preferences(config.preferred)
        self.detector = detector(self.index, fingerprint.hash, config.threshold, preferences, **detecting)
        self.heard = Heard()
        self.session = Deduplication(
            spider="",
            run=job.run,
            detector=self.detector,
            fingerprint=fingerprint,
            extract=extractor(config.extractor),
            log=None,
            listener=self.heard,
            max_characters=config.max_bytes,
            item_fields=config.item_fields,
        )


class Heard:
    """A `Listener` that remembers which pages were released."""

    def __init__(self) -> None:
        self.numbers: set[int] = set()
        self.urls: set[str] = set()

    def released(self, pages: Sequence[StoredPage]) -> None:
        """See Listener."""
        self.numbers.update(page.number for page in pages)
        self.urls.update(page.url for page in pages)

    def failed(self, error: Exception) -> None:
        """See Listener. There is no disk that could fail."""
        raise error

    def __getattr__(self, name: str) -> Any:
        return lambda *_args, **_named: None
