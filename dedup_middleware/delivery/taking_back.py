"""Verdicts that are taken back: pages that were dropped for a text which later pages show to be a template.

It chooses what to request again, each page once a crawl and text. Which pages may have to be taken
back stands in the store from the moment they are dropped, and what is requested is in its journal first: neither a
crash nor a pause costs anybody a page.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from dedup_middleware.checks.addresses import has_own_address

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dedup_middleware.checks.detector import Detector
    from dedup_middleware.delivery.page_state import PageState
    from dedup_middleware.delivery.safety import Safety
    from dedup_middleware.index.journal import JournalEntry, PackedRequest
    from dedup_middleware.model import StoredPage

#: Bytes of requests that are kept as they were, with their credentials; of others the store has what it may keep.
MAX_BYTES = 20_000_000
# Pages that say the same, by which another one is looked at.
_MAX_COMPARED = 20


class TakenBack(NamedTuple):
    """A page that was dropped for a template."""

    page: StoredPage
    owner_url: str
    entry: JournalEntry | None
    """Its request, as it is made again; ``None`` where it is not."""
    is_restorable: bool
    """Whether the store has its request."""
    at_once: bool
    """Whether it is requested at once; else when its spider has nothing else to do."""


class TakingBack:
    """The pages of a store that were dropped and may have to be taken back."""

    def __init__(self, detector: Detector, safety: Safety, run: str, *, enabled: bool) -> None:
        self._detector = detector
        self._safety = safety
        self._run = run
        self._enabled = enabled
        self._seen_to: set[bytes] = set()
        self._met: set[tuple[bytes, bytes]] = set()
        # By identity and purpose: a page may be requested for several callbacks.
        self._requests: OrderedDict[bytes, dict[bytes, PackedRequest]] = OrderedDict()
        self._bytes = 0

    def finished(self, state: PageState) -> Iterator[list[TakenBack]]:
        """Note *state*, whose output has been seen to its end; yield what is to be taken back by now, by template."""
        if state.suspected_template and state.items_dropped and state.page is not None and state.request is not None:
            self._remember(state.page.identities[0], state.request)
        recognised = self._detector.templates.recognised
        templates = recognised - self._seen_to if len(recognised) > len(self._seen_to) else set()
        if state.suspected_template in recognised:
            # Judged before that was known, and dropped since.
            templates.add(state.suspected_template)
        self._seen_to |= templates
        for template in templates:
            if taken := [*self._of(template)]:
                yield taken

    def _remember(self, identity: bytes, request: PackedRequest) -> None:
        known = self._requests.setdefault(identity, {})
        self._bytes += len(request.full) * (request.purpose not in known)
        known[request.purpose] = request
        while self._bytes > MAX_BYTES:
            _, forgotten = self._requests.popitem(last=False)
            self._bytes -= sum(len(other.full) for other in forgotten.values())

    def _of(self, template: bytes) -> Iterator[TakenBack]:
        index = self._detector.index
        chosen: defaultdict[tuple[object, ...], list[StoredPage]] = defaultdict(list)
        copies = []
        for page in list(index.suspect_drops(template)):
            if (page.identities[0], template) in self._met or not index.reach.has(page, self._run):
                continue
            alike = chosen[_said_by(page)]
            if any(not has_own_address(page.url, other.url) for other in alike[:_MAX_COMPARED]):
                copies.append(page)
            else:
                alike.append(page)
        self._safety.note_template(template, copies if self._enabled else [])
        for page in chain.from_iterable(chosen.values()):
            self._met.add((page.identities[0], template))
            yield from self._taken(page, template)

    def _taken(self, page: StoredPage, template: bytes) -> Iterator[TakenBack]:
        index, requests = self._detector.index, self._requests.pop(page.identities[0], {})
        self._bytes -= sum(len(request.full) for request in requests.values())
        owner, kept = index.page(page.owner or 0), index.request_of(page)
        is_restorable = kept is not None and kept.to_deliver() is not None
        # Those of earlier crawls their spider may still visit itself: they wait as those that a crash has left.
        at_once = page.run == self._run
        known: list[PackedRequest | None] = [*requests.values()]
        for request in known or [None]:
            entry = None
            if self._enabled:
                entry = self._safety.journal_again(page, template, request, at_once=at_once)
            yield TakenBack(page, "" if owner is None else owner.url, entry, is_restorable, at_once)


def _said_by(page: StoredPage) -> tuple[object, ...]:
    """Return what *page* says, but for numbers around it: of two that say the same, one may be a fetch of the other."""
    features = page.features
    return page.exact_digest, None if features is None else (features.title, features.heading, features.texts)
