"""Reads a page: bytes or HTML to paragraphs and fingerprint; recognises pages whose bytes have not changed."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from lxml import etree

from dedup_middleware import budget
from dedup_middleware.budget import UNLIMITED, Budget, UncheckableError
from dedup_middleware.extraction import EXTRACTORS
from dedup_middleware.index.lookup import TEXT_LIMIT
from dedup_middleware.model import Page
from dedup_middleware.reasons import Reason
from dedup_middleware.urls import addressed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lxml.etree import _Element

    from dedup_middleware.extraction import Extractor
    from dedup_middleware.fingerprints import Fingerprinter
    from dedup_middleware.index.lookup import Lookup
    from dedup_middleware.model import Fetched, PageFeatures, StoredPage
    from dedup_middleware.published import Published
    from dedup_middleware.settings import Config

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
        """Return the page whose tree has *root*; `UncheckableError` if it is not all there, or costs too much."""
        extracted, (url, identities, body_digest) = self.extract(root, budget), fetched
        features = addressed(extracted.features, url, identities)
        page = self.paragraphs(url, identities, extracted.paragraphs, features=features, root=root, budget=budget)
        doubtful, boilerplate = extracted.is_doubtful, extracted.is_boilerplate
        return replace(page, body_digest=body_digest, is_doubtful=doubtful, is_boilerplate=boilerplate)

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
            raise UncheckableError(Reason.NO_CHARSET)
        fingerprint = self._fingerprint(texts, budget)
        if self.published is not None and not source:
            fingerprint = replace(fingerprint, made=self.published.made(texts, url, features, root))
        return Page(url, identities, fingerprint, texts, self._run, source, features)

    def stored(self, index: Lookup, page: StoredPage) -> Page:
        """Return a stored *page* read again from its text. One get."""
        return index.read_again(page, self._run, self._fingerprint)


#: Raise it with every change by which a page may be read otherwise: its main text, its title, what stands around.
READING = 1
DIGEST_BYTES = 16


class BodyDigests:
    """Digests of the bytes of pages."""

    def __init__(self, key: bytes, config: Config) -> None:
        """Use the store's *key*, 16 bytes: nobody can make two pages with one digest. *config* says how they are read.

        SHA-256, which processors have built in: half the time of BLAKE2b there.
        """
        how = (
            (READING, _version(), etree.LXML_VERSION, etree.LIBXML_VERSION),
            (config.extractor, EXTRACTORS.version(config.extractor), config.fingerprint),
            (budget.MAX_ELEMENTS, budget.MAX_CLAUSES, budget.MAX_MILLISECONDS, TEXT_LIMIT),
        )
        self._hasher = sha256(key + repr(how).encode())

    def __call__(self, body: bytes, *how: str) -> bytes:
        """Return 16 bytes that tell this *body*, read so (its encoding), from any other. 0.06 ms for 100 kB."""
        hasher = self._hasher.copy()
        hasher.update(repr(how).encode("utf8", "backslashreplace"))
        hasher.update(body)
        return hasher.digest()[:DIGEST_BYTES]


def _version() -> str:
    """Return the version of this package; of sources that nobody has installed, none."""
    try:
        return version("dedup-middleware")
    except PackageNotFoundError:
        return ""
