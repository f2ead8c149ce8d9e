"""A store in memory with pages of made-up clauses, and crawls over them without Scrapy."""

from __future__ import annotations

import random
import sys
from collections import Counter
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dedup_middleware import Deduplicator
from dedup_middleware.common.budget import UNLIMITED, Budget
from dedup_middleware.common.urls import request_identity, url_identity
from dedup_middleware.driver.deduplicator import Deduplication
from dedup_middleware.driver.opening import Resources
from dedup_middleware.extraction import weighted_dom
from dedup_middleware.fingerprints import ClauseFingerprinter
from dedup_middleware.index.claims import OpenClaims
from dedup_middleware.index.index import Index
from dedup_middleware.index.schema import (
    PAGES,
    decode_claim,
    decode_identity,
    decode_number,
    decode_page,
    decode_postings,
    encode_number,
    last_number,
    listed,
    repeat_key,
)
from dedup_middleware.index.shared import index_of
from dedup_middleware.index.shown import PAGES as PAGES_SHOWN
from dedup_middleware.index.shown import decode
from dedup_middleware.model import Action, Eligibility, Page, Scope
from dedup_middleware.settings import Config
from dedup_middleware.stores import OpenStore, open_store
from dedup_middleware.visits.page_reader import BodyDigests
from dedup_middleware.visits.visit import Fate, Listener

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from datetime import timedelta

    from dedup_middleware.checks.detector import Detector
    from dedup_middleware.errors import DedupError
    from dedup_middleware.model import Verdict
    from dedup_middleware.records.file import RecordLog
    from dedup_middleware.visits.durability import DiskWaits, Flush
    from dedup_middleware.visits.visit import Decision, Visit

#: What every clause of :func:`clause` weighs.
CLAUSE_WEIGHT = 30
COMMON = 3
fingerprint = ClauseFingerprinter(b"a key of a store")


def clause(number: int) -> str:
    """Return clause *number*, with no word of another."""
    words = random.Random(number)
    return " ".join("".join(words.choices("abcdefghijklmnopqrstuvwxyz", k=6)) for _ in range(CLAUSE_WEIGHT // 6))


def page_of(name: str, clauses: Iterable[int | str], *, request: str | None = None, run: str = "run") -> Page:
    """Return the page that a GET of *request* (default: its own URL) ended at under *name*, a URL or one on a site."""
    url = name if "://" in name else f"http://site/{name}"
    paragraphs = tuple(c if isinstance(c, str) else clause(c) for c in clauses)
    asked = request_identity((url if request is None else request).encode())
    return Page(url, (asked, url_identity(url)), fingerprint(paragraphs), paragraphs, run)


def contents_of(uri: str) -> dict[bytes, bytes]:
    """Return every pair of the store at *uri*, but for its header and the names of those who had it open."""
    with closing(open_store(uri, fingerprint_scheme=None)) as store:
        return {key: value for key, value in store.scan(b"\x01", b"\xff" * 9) if key[:1] != b"w"}


class Library(Listener):
    """One store in memory, and what a crawl does with it."""

    def __init__(  # noqa: PLR0913 - what a library is made of, by name
        self,
        *,
        threshold: float = 0.8,
        scope: Scope = Scope.STORE,
        lease: timedelta | None = None,
        fingerprint: ClauseFingerprinter = fingerprint,
        preferred: Collection[str] = (),
        room: int = sys.maxsize,
        store: OpenStore | None = None,
        flush: Flush | None = None,
        disks: DiskWaits | None = None,
        dropped_size: int | None = None,
    ) -> None:
        self.fingerprint = fingerprint
        self.flush = flush
        self.disks = disks
        self.ends_late = False
        # A program stores no dropped items.
        self.config = Config.from_settings({"DEDUP_THRESHOLD": threshold, "DEDUP_PREFERRED": [*preferred]}, None)
        if dropped_size is not None:
            self.config = replace(self.config, spider="spider", dropped_size=dropped_size)
        self.store = store or open_store("memory:", fingerprint_scheme=fingerprint.scheme, room=room)
        eligibility = Eligibility(scope, lease)
        self.index = index_of(self.store, eligibility=eligibility)
        self.stats: Counter[str] = Counter()
        self.failures: list[DedupError] = []
        self.begin("run")

    def begin(self, run: str, log: RecordLog | None = None) -> None:
        """Begin another crawl on the same store."""
        digest = BodyDigests(self.store.header.key, self.config)
        opened = Resources(self.config, self.store, self.index, self.fingerprint, weighted_dom, digest, log)
        self.deduplication = Deduplication(
            opened, run, self, flush=self.flush, disks=self.disks, feeds_end_late=lambda: self.ends_late
        )
        self.deduplication.claims.durability.interval = 1

    @property
    def detector(self) -> Detector:
        return self.deduplication.detector

    def count(self, name: str, amount: int = 1) -> None:
        """See Listener; so are the next two."""
        self.stats[name] += amount

    def defect(self, error: Exception, _: object) -> None:
        raise error

    def failed(self, error: DedupError) -> None:
        self.failures.append(error)

    def crash(self) -> None:
        """Forget what was in memory only, as a process does that is killed and begun again."""
        self.index = Index(self.store, OpenClaims(), eligibility=self.index.eligibility)

    def page(self, name: str, clauses: Iterable[int | str], *, request: str | None = None) -> Page:
        """Return a page of the present crawl."""
        page = page_of(name, clauses, request=request, run=self.deduplication.run)
        return replace(page, fingerprint=self.fingerprint(page.paragraphs))

    def check(self, name: str, clauses: Iterable[int | str]) -> Verdict:
        return self.detector.verdict(self.page(name, clauses))

    def enter(self, page: Page, budget: Budget = UNLIMITED) -> Visit:
        """Let *page* enter the spider: if it is new, its claim is pending afterwards."""
        visit = self.deduplication.verdicts.check(page, Action.DROP, budget)
        self.deduplication.enter(visit)
        return visit

    def decide(self, visit: Visit, items: Iterable[object], *, is_compared: bool = True) -> list[Decision]:
        """Take *items*, all that the page gives, to their decisions; a duplicate waits for nothing."""
        decisions: list[Decision] = []
        for item in items:
            decisions += self.deduplication.process(visit, item, is_compared=is_compared, may_wait=False)
        return decisions + self.deduplication.end(visit)

    def leave(self, visit: Visit, *, items: int | Sequence[object] = 1) -> Visit:
        """Let the output of the page flow to its end, its items into the pipelines and out, or into the drop.

        *items*: what they are, or how many without text that follow their page.
        """
        given = [{}] * items if isinstance(items, int) else items
        for fate, _ in self.decide(visit, given, is_compared=not isinstance(items, int)):
            if fate is Fate.KEEP:
                self.deduplication.claims.item_left(visit)
        return visit

    def visit(
        self,
        name: str,
        clauses: Iterable[int | str],
        *,
        request: str | None = None,
        items: int | Sequence[object] = 1,
    ) -> Visit:
        """Crawl a page from its response to the end of its output."""
        return self.leave(self.enter(self.page(name, clauses, request=request)), items=items)

    def contents(self) -> dict[bytes, bytes]:
        """Return every pair that the index has written."""
        return dict(self.store.scan(b"\x01", b"\xff"))

    def check_invariants(self) -> None:  # noqa: C901, PLR0912 - a branch for each kind of key
        """Assert that the store holds together."""
        pairs = self.contents()
        pages = {
            number: decode_page(number, value)
            for key, value in pairs.items()
            if PAGES[0] <= key < PAGES[1]
            for number in [decode_number(key[1:])]
        }
        originals = {number: page for number, page in pages.items() if page.original is None}
        claims = {
            number: decode_claim(number, value)[1]
            for key, value in pairs.items()
            if key[:1] == b"g"
            for number in [decode_number(key[1:])]
        }
        holders = originals | claims
        for key, value in pairs.items():
            kind, rest = key[:1], key[1:]
            if kind in (b"c", b"e"):
                numbers = decode_postings(value)
                assert 0 < len(numbers) == len(set(numbers))
                assert all(key in listed([holders[number]]) for number in numbers)
            elif kind == b"i":
                assert rest in pages[decode_identity(value)[0]].identities
            elif kind in (b"t", b"s"):
                assert decode_number(rest) in pages.keys() | claims.keys()
            elif kind == b"b":
                assert decode(value)[PAGES_SHOWN][0] >= 1
            elif kind == b"j":
                assert b"v" + encode_number(decode_number(value)) + rest in pairs
            elif kind == b"v":
                assert b"j" + rest[-12:] in pairs
            elif kind == b"r":
                assert b"j" + rest in pairs
            elif kind == b"n":
                assert decode_number(value) > max(pages, default=0) >> 16
            elif kind == b"o":
                assert pages[last_number(key)].original == decode_number(key[1:8])
            elif kind == b"q":
                assert all(rest in claims[number].identities for number in decode_postings(value))
            elif kind in (b"g", b"w"):
                assert rest
            else:
                assert kind == b"p", key
        repeats = {repeat_key(page.original, number) for number, page in pages.items() if page.original is not None}
        assert repeats == {key for key in pairs if key[:1] == b"o"}
        assert all(0 < number < 2**55 for number in pages)


def verdicts(*pages: tuple[str, str] | tuple[str, str, Any]) -> list[str]:
    """Return the verdicts on *pages* in their order."""
    with Deduplicator() as dedup:
        return [dedup.add(*each).verdict for each in pages]
