"""Reads a page: HTML or paragraphs -> what is compared."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dedup_middleware.budget import UNLIMITED, Budget, UnjudgeableError
from dedup_middleware.canonical import addressed
from dedup_middleware.model import Page
from dedup_middleware.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lxml.etree import _Element

    from dedup_middleware.extraction.extractor import Extractor
    from dedup_middleware.features import PageFeatures
    from dedup_middleware.fingerprints import Fingerprinter
    from dedup_middleware.index.lookup import Lookup
    from dedup_middleware.model import Fetched, StoredPage
    from dedup_middleware.session.published import Published


_UNDECODED = "\ufffd"
# Of the characters of a text that was decoded as what it is not, more are the mark of this.
_MAX_UNDECODED = 0.05


class PageReader:
    """Reads the pages of one crawl, *run*."""

    def __init__(self, run: str, fingerprint: Fingerprinter, extract: Extractor, published: Published | None) -> None:
        """Use *extract* for HTML and *fingerprint* for text; *published* is the published method that decides."""
        self.extract = extract
        self.published = published
        self._run = run
        self._fingerprint = fingerprint

    def html(self, fetched: Fetched, root: _Element, budget: Budget) -> Page:
        """Return the page whose tree has *root*; `UnjudgeableError` if it is not all there, or costs too much."""
        extracted, (url, identities, body_digest) = self.extract(root, budget), fetched
        features = addressed(extracted.features, url, identities)
        page = self.paragraphs(url, identities, extracted.paragraphs, features=features, root=root, budget=budget)
        doubtful, furniture = extracted.is_doubtful, extracted.is_furniture
        return replace(page, body_digest=body_digest, is_doubtful=doubtful, is_furniture=furniture)

    def paragraphs(  # noqa: PLR0913 - what a page is made of
        self,
        url: str,
        identities: tuple[bytes, ...],
        paragraphs: Iterable[str],
        *,
        source: bytes = b"",
        features: PageFeatures | None = None,
        root: _Element | None = None,
        budget: Budget = UNLIMITED,
    ) -> Page:
        """Return the page, or the item of the request *source*, that has this text; within *budget*, or it raises."""
        texts = tuple(paragraphs)
        if sum(text.count(_UNDECODED) for text in texts) > _MAX_UNDECODED * sum(map(len, texts)):
            raise UnjudgeableError(Reason.NO_CHARSET)
        fingerprint = self._fingerprint(texts, budget)
        if self.published is not None and not source:
            fingerprint = replace(fingerprint, made=self.published.made(texts, url, features, root))
        return Page(url, identities, fingerprint, texts, self._run, source, features)

    def stored(self, index: Lookup, page: StoredPage) -> Page:
        """Return a stored *page* read again from its text. One get."""
        return index.read_again(page, self._run, self._fingerprint)
