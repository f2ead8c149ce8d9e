"""Verdicts that are taken back: pages that were dropped for a text which later pages show to be a template.

Law of this file: it chooses what to request again, each page once a crawl. Which pages may have to be taken back stands
in the store from the moment they are dropped, and what is requested is in its journal first: neither a crash nor a
pause costs anybody a page.
"""

from __future__ import annotations

from collections import OrderedDict
from datetime import datetime, timezone
from typing import TYPE_CHECKING, NamedTuple

from dedup_middleware.model import VerdictKind
from dedup_middleware.records import Record
from dedup_middleware.templates import has_own_address

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dedup_middleware.case import Case
    from dedup_middleware.detector import Detector
    from dedup_middleware.journal import Entry, PackedRequest
    from dedup_middleware.model import StoredPage
    from dedup_middleware.safety import Safety

#: Requests that are kept as they were, with their credentials, about 2 kB each; of others the store has the rest.
MOST_REQUESTS = 5_000
#: What a record says came of such a page, and why.
OUTCOME = "taken-back"
A_TEMPLATE = "its owner's text is a template"


class TakenBack(NamedTuple):
    """A page that was dropped for a template."""

    page: StoredPage
    owner_url: str
    entry: Entry | None
    """Its request, as it is made again; ``None`` where it is not."""
    is_restorable: bool
    """Whether the store has its request."""

    def record(self, spider: str, run: str) -> Record:
        """Return the record of its drop being taken back."""
        return Record(
            time=datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
            spider=spider,
            run=run,
            url=self.page.url,
            verdict=VerdictKind.RELATED.value,
            outcome=OUTCOME,
            owner_url=self.owner_url,
            score=self.page.score,
            reason=A_TEMPLATE,
        )


class TakingBack:
    """The pages of a store that were dropped and may have to be taken back."""

    def __init__(self, detector: Detector, safety: Safety, run: str, *, enabled: bool) -> None:
        self._detector = detector
        self._safety = safety
        self._run = run
        self._enabled = enabled
        self._seen_to: set[bytes] = set()
        self._met: set[bytes] = set()
        # By identity.
        self._requests: OrderedDict[bytes, PackedRequest] = OrderedDict()

    def finished(self, case: Case) -> Iterator[list[TakenBack]]:
        """Note *case*, whose output has been seen to its end; yield what is to be taken back by now, by text."""
        if case.doubt and case.items_dropped and case.page is not None and case.request is not None:
            self._requests[case.page.identities[0]] = case.request
            if len(self._requests) > MOST_REQUESTS:
                self._requests.popitem(last=False)
        recognised = self._detector.templates.recognised
        texts = recognised - self._seen_to if len(recognised) > len(self._seen_to) else set()
        if case.doubt in recognised:
            # Judged before that was known, and dropped since.
            texts.add(case.doubt)
        self._seen_to |= texts
        for text in texts:
            if taken := [*self._of(text)]:
                yield taken

    def _of(self, text: bytes) -> Iterator[TakenBack]:
        index = self._detector.index
        chosen: list[StoredPage] = []
        for page in index.doubtful(text):
            identity = page.identities[0]
            is_met = identity in self._met or not index.reach.has(page, self._run)
            if is_met or any(_says_the_same(page, other) for other in chosen):
                continue
            self._met.add(identity)
            chosen.append(page)
            owner, kept = index.page(page.owner or 0), index.request_of(page)
            entry = self._safety.take_back(page, text, self._requests.pop(identity, None)) if self._enabled else None
            is_restorable = kept is not None and kept.to_deliver() is not None
            yield TakenBack(page, "" if owner is None else owner.url, entry, is_restorable)


def _says_the_same(page: StoredPage, other: StoredPage) -> bool:
    """Tell whether *page* is the *other* one at another address of its: whatever that is, so is this."""
    here, there = page.around, other.around
    if page.letters != other.letters or here is None or there is None:
        return False
    is_alike = (here.title, here.heading, here.texts) == (there.title, there.heading, there.texts)
    return is_alike and not has_own_address(page.url, other.url)
