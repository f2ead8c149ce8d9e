"""Reads pages: HTML and texts to paragraphs and fingerprint, and bodies to digests, which show what has not changed."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING

from lxml import etree

from dedup_middleware.common import budget
from dedup_middleware.common.budget import UNLIMITED, Budget, UncheckableError
from dedup_middleware.common.urls import canonical_url, url_identity
from dedup_middleware.extraction import EXTRACTORS
from dedup_middleware.extraction.body import browser_tree
from dedup_middleware.extraction.features import shown_digest
from dedup_middleware.extraction.plain import read_text, text_digest
from dedup_middleware.model import TEXT_LIMIT, Fingerprint, Page
from dedup_middleware.reasons import Reason
from dedup_middleware.text.clauses import MIN_TEXT_WEIGHT, pieces
from dedup_middleware.text.words import without_numbering
from dedup_middleware.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from lxml.etree import _Element

    from dedup_middleware.errors import DedupError, UnreadableError
    from dedup_middleware.extraction import Extracted, Extractor
    from dedup_middleware.fingerprints import Fingerprinter
    from dedup_middleware.index.beside import Beside
    from dedup_middleware.model import Fetched, PageFeatures
    from dedup_middleware.settings import Config

_UNDECODED = "\ufffd"
# A text with a greater share of these characters was decoded with the wrong encoding.
_MAX_UNDECODED = 0.05
#: Raise it with every change by which a page may be read otherwise: its main text, its title, its context.
READING = 8
DIGEST_BYTES = 16


class PageReader:
    """Reads the pages of one crawl, *run*."""

    def __init__(
        self,
        run: str,
        fingerprint: Fingerprinter,
        extract: Extractor,
        beside: Beside | None = None,
        fail: Callable[[DedupError | UnreadableError], None] = lambda _: None,
    ) -> None:
        """Use *extract* for HTML and *fingerprint* for text; *beside* is another detector, *fail* gets its trouble."""
        self.extract = extract
        self._beside = beside
        self._fail = fail
        self._run = run
        self._fingerprint = fingerprint

    def html(self, fetched: Fetched, root: _Element, budget: Budget) -> Page:
        """Return the page whose tree has *root*; `UncheckableError` if it is not all there, or costs too much."""
        root = browser_tree(root, budget)
        return self._page(fetched, self.extract(root, budget), budget, root)

    def text(self, fetched: Fetched, text: str, media_type: str, budget: Budget) -> Page:
        """Return the page of a plain *text*; `UncheckableError` if it is data, or costs too much."""
        return self._page(fetched, read_text(text, media_type, budget), budget)

    def _page(self, fetched: Fetched, extracted: Extracted, budget: Budget, root: _Element | None = None) -> Page:
        """Return the page with what was *extracted*; without a *root*, the paragraphs are all that it shows."""
        (url, identities, body_digest), features = fetched, extracted.features
        features = replace(features, canonical=canonical_url(features.canonical, url, identities))
        page = self.paragraphs(url, identities, extracted.paragraphs, features=features, root=root, budget=budget)
        if self._beside is None and page.fingerprint.weight < MIN_TEXT_WEIGHT:
            page = self._whole(page, text_digest(extracted.paragraphs) if root is None else shown_digest(root))
            budget.check_time()
        canonical = url_identity(features.canonical) if features.canonical else b""
        return replace(page, body_digest=body_digest, canonical=canonical)

    def _whole(self, page: Page, digest: bytes) -> Page:
        """Return a *page* with little text as one clause: the *digest* of all that it shows.

        So it is found by a page that shows the same, and no other page contains a part of it.
        """
        if not digest:
            return page
        weights = {self._fingerprint.hash(f"\0{digest.hex()}"): 0}
        return replace(page, fingerprint=Fingerprint(weights, digest, is_whole=True), paragraphs=())

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
        """Return the page, or the item of the request *source*, with this text; `UncheckableError` beyond *budget*."""
        texts = tuple(without_numbering(pieces(paragraphs)))
        text = "".join(texts)
        if text.count(_UNDECODED) > _MAX_UNDECODED * len(text):
            raise UncheckableError(Reason.NO_CHARSET)
        fingerprint = self._fingerprint(texts, budget)
        note = None
        if self._beside is not None and not source:
            note = self._beside.note(texts, url, features, root, self._fail)
        return Page(url, identities, fingerprint, texts, self._run, source, features, note=note)


class BodyDigests:
    """Digests of the bytes of pages, by the key of a store: no page can be made to have the digest of another."""

    def __init__(self, key: bytes, config: Config) -> None:
        """Use the store's *key*, 16 bytes; pages that *config* has read, or compared, otherwise have other digests."""
        how = (
            (READING, __version__, etree.LXML_VERSION, etree.LIBXML_VERSION),
            (EXTRACTORS.version(config.extractor), *config.deciding),
            (budget.MAX_ELEMENTS, budget.MAX_CLAUSES, budget.MAX_MILLISECONDS, TEXT_LIMIT),
        )
        # Processors have instructions for SHA-256.
        self._hasher = sha256(key + repr(how).encode())

    def __call__(self, body: bytes, *how: str) -> bytes:
        """Return 16 bytes of this *body*, read in the way of *how*: its encoding and its class."""
        hasher = self._hasher.copy()
        hasher.update(repr(how).encode("utf8", "backslashreplace"))
        hasher.update(body)
        return hasher.digest()[:DIGEST_BYTES]
