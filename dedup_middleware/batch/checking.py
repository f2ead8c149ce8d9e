"""Compares pages with their candidates, host by host, by the checks of a crawl."""

from __future__ import annotations

import json
import logging
from contextlib import nullcontext
from itertools import groupby
from operator import itemgetter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

from dedup_middleware.batch.pages import EQUAL, number_of
from dedup_middleware.canonical import storys_own
from dedup_middleware.checks.alignment import cover
from dedup_middleware.checks.detector import MIN_LIVE_WEIGHT, Detector
from dedup_middleware.inspection.recorder import Recorder
from dedup_middleware.model import Action, Match, Reach, StoredPage, Verdict, VerdictKind
from dedup_middleware.reasons import Reason
from dedup_middleware.urls import host_of
from dedup_middleware.visit import Visit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dedup_middleware.batch.pages import Job, Read
    from dedup_middleware.model import Page

logger = logging.getLogger(__name__)

#: Of a verdict; ``time`` only where the archive has it.
FIELDS = ("url", "verdict", "owner_url", "score", "reason", "witness", "difference", "evidence", "title")
# The place of the verdict on a page none of whose candidates is an original.
_LAST = 99


class Edge(NamedTuple):
    """The verdict on a page if the other page is an original."""

    page: int
    """-1 for a recognised template, whose id is the ``record``."""
    other: int
    """-1 for the verdict if no candidate is an original."""
    place: int
    """A candidate with a lower place is better."""
    duplicate: int
    """1 or 0."""
    score: float
    record: bytes
    """The line of the verdict."""


def checked(job: Job, rows: Iterable[Any]) -> Iterator[Edge]:
    """Yield the edges of pages; *rows* has the pages of each host together, in the order of their ids.

    A row has a page's ``host``, id (``page``) and ``content``, and its boilerplate (``common``: the numbers of clauses,
    separated by commas); and, unless the page has no candidates, the id of one of them (``other``), the ``share`` of
    the text by which it was found, and its content (``original``).
    """
    for _, of_host in groupby(rows, key=itemgetter("host")):
        yield from _Host(job).edges(of_host)


class _Host:
    """The pages of one host. What they share is noted as in a crawl: their site, and templates that they fill in."""

    def __init__(self, job: Job) -> None:
        self._job = job
        # What a detector looks up in a store; of an archive there is one original at a time.
        index: Any = SimpleNamespace(
            reach=Reach(),
            overrides=SimpleNamespace(mark=lambda *_: None),
            is_template=lambda _: False,
            suspects_unless_known=lambda _: iter(()),
        )
        self._index = index
        self._detector = Detector(index, job.fingerprint.hash, job.config.threshold)
        listener: Any = SimpleNamespace(count=None)
        preferences = self._detector.preferences
        self._recorder = Recorder(
            "", job.run, None, listener, nullcontext, hash_clause=job.fingerprint.hash, preferences=preferences
        )

    def edges(self, rows: Iterable[Any]) -> Iterator[Edge]:
        """Yield the edges of the pages in *rows*."""
        suspects: list[tuple[int, Any]] = []
        for _, of_page in groupby(rows, key=itemgetter("page")):
            found = [*of_page]
            read = self._job.decoded(found[0]["content"])
            yield self._without_original(found[0], read)
            if (page := read.page) is None:
                continue
            judged = [(self._judged(row, page), row) for row in found]
            judged.sort(key=lambda pair: -pair[0].match.score if pair[0].match else 0)
            for place, (verdict, row) in enumerate(judged):
                if self._detector.suspected_template(page, verdict):
                    suspects.append((place, row))
                elif verdict.match is not None:
                    yield self._edge(row["page"], row["other"], place, read, verdict)
        # The first of these were judged before their template was recognised, if it is one.
        for place, row in suspects:
            read = self._job.decoded(row["content"])
            if read.page is not None and (verdict := self._judged(row, read.page)).match is not None:
                yield self._edge(row["page"], row["other"], place, read, verdict)
        yield from (Edge(-1, -1, _LAST, 0, 0.0, template) for template in self._detector.templates.recognised)

    def _without_original(self, row: Any, read: Read) -> Edge:
        """Note the site of a page, and return the verdict on it if no candidate is an original."""
        reason, page = read.reason, read.page
        if page is not None and page.features is not None:
            self._detector.sites.note(host_of(page.url), page.features)
            if sum(_live(page, row["common"]).values()) < MIN_LIVE_WEIGHT:
                reason = Reason.TOO_LITTLE_TEXT
        verdict = Verdict(VerdictKind.UNJUDGED if reason else VerdictKind.NEW, reason=reason)
        return self._edge(row["page"], -1, _LAST, read, verdict)

    def _judged(self, row: Any, page: Page) -> Verdict:
        """Return what *page* is beside one candidate; ``new`` if they have too little in common."""
        if not row["original"] or (original := self._job.decoded(row["original"]).page) is None:
            return Verdict(VerdictKind.NEW)
        stored, live = StoredPage.of(original, row["other"] + 1), _live(page, row["common"])
        if row["share"] >= EQUAL:
            match = Match(stored, 1.0, frozenset(page.fingerprint.weights))
        elif sum(live.values()) >= MIN_LIVE_WEIGHT:
            match = Match(stored, cover(live, stored.hashes), stored.hashes & live.keys())
        else:
            return Verdict(VerdictKind.NEW)
        self._index.text = lambda _: self._job.kept_text(original)
        names = {*storys_own(original.features, original.url)}
        self._index.names = lambda _, identities: not names.isdisjoint(identities)
        try:
            verdict = self._detector.judge_pair(page, match, live.keys())
            return self._detector.preferences.applied(page, verdict, self._index)
        except Exception:
            # A bug, or a hostile page: the page is kept, and the batch goes on.
            logger.exception("%s could not be compared with %s", page.url, original.url)
            return Verdict(VerdictKind.NEW)

    def _edge(self, page: int, other: int, place: int, read: Read, verdict: Verdict) -> Edge:
        is_duplicate = verdict.kind is VerdictKind.DUPLICATE
        score = 0.0 if verdict.match is None else verdict.match.score
        visit = Visit(read.url, read.page, verdict, Action.DROP, self._job.config.threshold)
        record = self._recorder.record(visit)
        values = {name: getattr(record, name) for name in FIELDS} | ({"time": read.time} if read.time else {})
        return Edge(page, other, place, int(is_duplicate), score, json.dumps(values).encode("ascii"))


def _live(page: Page, common: str | None) -> dict[bytes, int]:
    """Return the weights of the clauses of *page* that are not boilerplate."""
    boilerplate = {*map(int, common.split(","))} if common else ()
    return {clause: w for clause, w in page.fingerprint.weights.items() if number_of(clause) not in boilerplate}
