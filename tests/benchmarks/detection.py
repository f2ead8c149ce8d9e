"""What the verdict is worth on labelled crawls, what each of its parts earns, and what other methods reach.

Usage: python tests/benchmarks/detection.py CORPUS... [--only VARIANT]... [--text extracted|true|body] [--reversed]
`corpus.py` says what a corpus is. Prints one table in Markdown: F1 (precision, recall) of the drops in each corpus, and
over all corpora the lost stories, the wrongly dropped pages by kind, and the time from a page's text to its verdict and
into the store. The pages are fed to the product in their order, in process, and all that is delivered arrives. A real
crawl differs in the order only: of two pages that cover one another to different shares, another one may come first.
With ``--reversed``, copies come before what they copy. A page that is taken back is judged once more.

What a part earns on well extracted text is one thing, what it saves where extraction fails another: ``--text body``
judges all text of the page. It takes three times as long: minutes for five corpora of 500 pages.
"""

from __future__ import annotations

import collections
import dataclasses
import sys
import time
from contextlib import ExitStack
from functools import cached_property, partial
from typing import TYPE_CHECKING, NoReturn, Protocol
from unittest.mock import patch

from corpus import (
    CRAWL_FIELDS,
    Agreement,
    CorpusError,
    CorpusPage,
    command,
    drop_agreement,
    lost_stories,
    parsed,
    read_corpus,
    table,
    whole_body,
    wrongly_dropped,
)
from rivals import Exact, Shingles, SimHash

from dedup_middleware.budget import Budget
from dedup_middleware.checks import comparison, detector, witness
from dedup_middleware.checks.detector import Detector
from dedup_middleware.checks.site import Sites
from dedup_middleware.checks.templates import Templates
from dedup_middleware.extraction import texts_of
from dedup_middleware.extraction.features import features_of
from dedup_middleware.fingerprints import ClauseFingerprinter
from dedup_middleware.fingerprints.simhash import SimHashFingerprinter
from dedup_middleware.identity import url_identity
from dedup_middleware.index import lookup
from dedup_middleware.index.index import Index
from dedup_middleware.index.journal import Journal
from dedup_middleware.index.open_claims import OpenClaims
from dedup_middleware.model import Action, Page
from dedup_middleware.session.passage import pass_through
from dedup_middleware.session.session import Session
from dedup_middleware.settings.table import DEFAULTS
from dedup_middleware.stores import open_store
from dedup_middleware.text import clauses as text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from dedup_middleware.delivery.taking_back import TakenBack
    from dedup_middleware.errors import DedupError


class Reading:
    """A page of a corpus and what is read from its HTML, once for all variants."""

    def __init__(self, page: CorpusPage) -> None:
        root = parsed(page.html)
        self.page = page
        texts = texts_of(root)
        self.extracted: Sequence[str] = texts.paragraphs
        self.features = features_of(root, texts)

    @cached_property
    def body(self) -> Sequence[str]:
        return whole_body(self.page.html)


#: What of a page may be judged; nothing where a corpus does not have it.
TEXTS: dict[str, Callable[[Reading], Sequence[str]]] = {
    "extracted": lambda reading: reading.extracted,
    "true": lambda reading: reading.page.text,
    "body": lambda reading: reading.body,
    "response": lambda reading: [reading.page.html],
}


class Judge(Protocol):
    """One crawl's memory."""

    def drops(self, reading: Reading, paragraphs: Sequence[str]) -> bool:
        """Tell whether the next page, whose text is *paragraphs*, is dropped; remember it if not."""


class Product:
    """The product as its doors drive it, with default settings and a new store in memory."""

    def __init__(
        self,
        *,
        threshold: float = DEFAULTS["DEDUP_THRESHOLD"],
        common: int = DEFAULTS["DEDUP_COMMON_CLAUSE"],
        index: Callable[..., Index] = Index,
        fingerprinter: Callable[[bytes], ClauseFingerprinter] = ClauseFingerprinter,
    ) -> None:
        store = open_store("memory:", fingerprint_scheme="benchmark")
        kept = index(store, OpenClaims(), Journal(), common=common, text_limit=DEFAULTS["DEDUP_TEXT_LIMIT"])
        fingerprint = fingerprinter(store.header.key)
        self._threshold = threshold
        self._session = Session(
            spider="benchmark",
            run="benchmark",
            detector=Detector(kept, fingerprint.hash, threshold),
            fingerprint=fingerprint,
            log=None,
            listener=Silence(self),
        )
        self.again: list[str] = []
        """Addresses of pages that are taken back, since this was asked last."""

    def drops(self, reading: Reading, paragraphs: Sequence[str]) -> bool:
        """See Judge. One item a page, which is safe before the next page comes."""
        url = reading.page.url
        page = self._session.page(url, (url_identity(url),), paragraphs, features=reading.features)
        state = self._session.examine(page, Action.DROP, self._threshold, Budget())
        pass_through(self._session, state, {})
        return state.is_duplicate


class Silence:
    """A Listener to whom nothing matters but failures, and what is to be judged once more."""

    def __init__(self, product: Product) -> None:
        self._product = product

    def count(self, name: str, amount: int = 1) -> None:
        """Count nothing."""

    def failed(self, error: DedupError) -> NoReturn:
        """Raise *error*."""
        raise error

    def one_owner(self, host: str, owner: str, repeats: int, pages: int) -> None:
        """Say nothing."""

    def field_that_keeps(self, field: str, kept: int, pages: int) -> None:
        """Say nothing."""

    def taken_back(self, taken: Sequence[TakenBack]) -> None:
        """Let the pages be judged once more."""
        self._product.again += [page.page.url for page in taken]

    def not_keepable(self, kind: type, field: str, value_kind: type) -> None:
        pass

    def tag_refused(self, kind: type) -> None:
        """Say nothing."""


# --- variants of the product


def with_simhash(distance: int) -> Callable[[], Product]:
    """Return the product that also looks for paragraphs within *distance* bits."""
    return partial(Product, index=partial(Index, distance=distance), fingerprinter=SimHashFingerprinter)


def never(*_: object, **__: object) -> None:
    """Stand in for a rule that is switched off."""


# --- the table


@dataclasses.dataclass(frozen=True)
class Variant:
    """One row: who judges, which of `TEXTS` if it is a certain one, and what of the product is replaced meanwhile."""

    judge: Callable[[], Judge] = Product
    text: str = ""
    patched: Sequence[AbstractContextManager[object]] = ()


NO_VETO = patch.multiple(detector, other_numbers=never, replaced=never)
NO_WITNESS = patch.multiple(detector, objection=never)
NO_TITLE_BETWEEN = patch.multiple(witness, _between_hosts=never)
NO_TEMPLATES = patch.object(Templates, "learn", never)
NO_HOST_RULE = patch.multiple(witness, _on_one_host=never)
NO_FACTS = patch.multiple(witness, _own_facts=never, own_address=never)
NO_EDITIONS = patch.multiple(witness, is_edition=never)
NO_SITES = patch.object(Sites, "_is_known", never)
NO_EQUALS = patch.object(Index, "equals", lambda *_: iter(()))
NO_BORROWING = patch.object(Page, "beside", lambda page, *_: page)
NO_LEAST_WEIGHT = patch.multiple(detector, MIN_LIVE_WEIGHT=0)
NO_HOST_FREQUENCY = patch.multiple(lookup, COMMON_ON_HOST=sys.maxsize)
NO_DOUBT = patch.multiple(detector, DOUBTFUL_THRESHOLD=0.0)
NO_OPINION = patch.object(Detector, "_compare", lambda *_: None)
NO_NAME_VETO = patch.multiple(comparison, _other_names=lambda *_: frozenset())
NO_COMMON = partial(Product, common=sys.maxsize)

VARIANTS = {
    "the product": Variant(),
    "true text instead of the extracted": Variant(text="true"),
    "whole body instead of the extracted text": Variant(text="body"),
    "no Traditional to Simplified": Variant(patched=[patch.object(text, "simplified", str)]),
    "no number veto": Variant(patched=[NO_VETO]),
    "no light labelled numbers": Variant(patched=[patch.multiple(text, _is_fact=never)]),
    "no second witness": Variant(patched=[NO_WITNESS]),
    "no title between hosts": Variant(patched=[NO_TITLE_BETWEEN]),
    "no templates": Variant(patched=[NO_TEMPLATES]),
    "no rule of one host": Variant(patched=[NO_HOST_RULE]),
    "nothing around the text, no address": Variant(patched=[NO_FACTS]),
    "no editions": Variant(patched=[NO_EDITIONS]),
    "nothing learned of sites": Variant(patched=[NO_SITES]),
    "no equal texts": Variant(patched=[NO_EQUALS]),
    "look-alikes hold what they share": Variant(patched=[NO_BORROWING]),
    "candidates from 15 % on": Variant(patched=[patch.multiple(detector, CANDIDATE_SHARE=0.15)]),
    "nine tenths aligned": Variant(patched=[patch.multiple(comparison, NEAR=0.9)]),
    "no least live weight": Variant(patched=[NO_LEAST_WEIGHT]),
    "no common clauses": Variant(NO_COMMON),
    "no host frequency": Variant(patched=[NO_HOST_FREQUENCY]),
    "no common clauses, no host frequency": Variant(NO_COMMON, patched=[NO_HOST_FREQUENCY]),
    "none of the rules from the veto on": Variant(
        NO_COMMON, patched=[NO_VETO, NO_NAME_VETO, NO_WITNESS, NO_LEAST_WEIGHT, NO_HOST_FREQUENCY]
    ),
    "no second opinion": Variant(patched=[NO_OPINION]),
    "no name veto": Variant(patched=[NO_NAME_VETO]),
    "main texts never in doubt": Variant(patched=[NO_DOUBT]),
    "SimHash candidates, distance 3": Variant(with_simhash(3)),
    "SimHash candidates, distance 10": Variant(with_simhash(10)),
    "threshold 0.7": Variant(partial(Product, threshold=0.7)),
    "threshold 0.7, no number veto": Variant(partial(Product, threshold=0.7), patched=[NO_VETO]),
    "threshold 0.75": Variant(partial(Product, threshold=0.75)),
    "threshold 0.85": Variant(partial(Product, threshold=0.85)),
    "threshold 0.9": Variant(partial(Product, threshold=0.9)),
    "rival: Jaccard of 5-character shingles 0.7": Variant(partial(Shingles, 0.7)),
    "rival: Jaccard of 5-character shingles 0.8": Variant(partial(Shingles, 0.8)),
    "rival: SimHash, 64 bits, distance 3": Variant(SimHash),
    "rival: hash of the extracted text": Variant(Exact),
    "rival: hash of the response's body": Variant(Exact, text="response"),
}


@dataclasses.dataclass
class Row:
    """What one variant has done so far."""

    agreements: list[Agreement | None] = dataclasses.field(default_factory=list)
    """For each corpus; ``None`` where it lacks what the variant reads."""
    lost: int = 0
    wrong: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    pages: int = 0
    seconds: float = 0.0

    def add(self, variant: Variant, readings: Sequence[Reading], chosen: str) -> None:
        """Crawl one more corpus; the variant judges the *chosen* one of `TEXTS` if it does not say which."""
        texts = [TEXTS[variant.text or chosen](reading) for reading in readings]
        if not any(texts):
            self.agreements.append(None)
            return
        with ExitStack() as patches:
            for patched in variant.patched:
                patches.enter_context(patched)
            judge = variant.judge()
            start = time.perf_counter()
            dropped = []
            places = {reading.page.url: place for place, reading in enumerate(readings)}
            for reading, said in zip(readings, texts, strict=True):
                dropped.append(judge.drops(reading, said))
                while again := getattr(judge, "again", None):
                    place = places[again.pop()]
                    dropped[place] = judge.drops(readings[place], texts[place])
            self.seconds += time.perf_counter() - start
        pages = [reading.page for reading in readings]
        delivered = {page.id for page, is_dropped in zip(pages, dropped, strict=True) if not is_dropped}
        self.agreements.append(drop_agreement(pages, delivered))
        self.lost += lost_stories(pages, delivered)
        self.wrong += wrongly_dropped(pages, delivered)
        self.pages += len(pages)

    def cells(self) -> Iterator[str]:
        """Yield the row's cells."""
        for a in self.agreements:
            yield f"{a.f1:.3f} ({a.precision:.3f}, {a.recall:.3f})" if a else "-"
        yield str(self.lost)
        yield ", ".join(f"{count} {kind}" for kind, count in self.wrong.most_common()) or "0"
        yield f"{1000 * self.seconds / self.pages:.2f}" if self.pages else "-"


def main() -> None:
    """Print the table."""
    parser = command(__doc__, VARIANTS)
    parser.add_argument("--text", choices=["extracted", "true", "body"], default="extracted")
    parser.add_argument("--reversed", action="store_true")
    options = parser.parse_args()
    rows = {name: Row() for name in options.only or VARIANTS}
    try:
        for corpus in options.corpora:
            readings = [Reading(page) for page in read_corpus(corpus, CRAWL_FIELDS)][:: -1 if options.reversed else 1]
            for name, row in rows.items():
                row.add(VARIANTS[name], readings, options.text)
    except CorpusError as error:
        sys.exit(str(error))
    names = [corpus.name.partition(".")[0] for corpus in options.corpora]
    header = ["variant", *(f"{name}: F1 (precision, recall)" for name in names), "lost", "wrongly dropped", "ms a page"]
    print(table(header, [[name, *row.cells()] for name, row in rows.items()]))


if __name__ == "__main__":
    main()
