"""What came of each page of an archive, and of its clusters: pages that tell one story."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from dedup_middleware.batch.postings import position_of
from dedup_middleware.checks.preferences import REPLACES, Preferences
from dedup_middleware.index import codec, page_codec
from dedup_middleware.model import Action, VerdictKind
from dedup_middleware.session.reading import as_item, pass_through
from dedup_middleware.visit import Visit

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from dedup_middleware.batch.judging import Job
    from dedup_middleware.batch.reading import Row
    from dedup_middleware.deduplicator import Deduplication
    from dedup_middleware.index.index import Index
    from dedup_middleware.model import StoredPage
    from dedup_middleware.settings.config import Config

#: Which page of a cluster is its owner: the one that the archive has first, has most of, or prefers.
CHOICES = ("earliest", "longest", "preferred")
_FIELDS = ("url", "verdict", "owner_url", "score", "reason", "witness", "difference", "evidence", "title")


class Ledger:
    """Judges the pages of an archive in a session, under numbers that tell their positions, and notes what came."""

    def __init__(self, session: Deduplication, index: Index, job: Job) -> None:
        self._session = session
        self._index = index
        self._job = job
        self._preferred: dict[int, int] = {}
        self.last: Visit | None = None
        """The page that was judged last."""

    def judge(self, position: int, row: Row) -> str:
        """Judge the page at *position*, keep it unless it is a duplicate, and return its verdict, a line of JSON.

        It is what a crawl does with every page of which it makes one item.
        """
        config = self._job.config
        if row.page is None:
            state = Visit.unjudged(row.url, row.reason, Action.DROP, config.threshold)
        else:
            self._queue_up(position)
            state = self._session.judge(row.page, Action.DROP, config.threshold, config.budget())
            pass_through(self._session, state, as_item(row.page, config.item_fields))
            self._note(state, row)
        self.last = state
        record = self._session.recorder.record(state)
        said = {name: getattr(record, name) for name in _FIELDS}
        return json.dumps(said | ({"time": row.time} if row.time else {}))

    def _queue_up(self, position: int) -> None:
        """Let the next page that is stored have the number of one at *position*."""
        store = self._index.store
        (value,) = store.get_many([codec.NEXT_PLACE_KEY])
        line = codec.decode_line(value)._replace(place=position + 1)
        store.write([(codec.NEXT_PLACE_KEY, codec.encode_line(line))])

    def _note(self, state: Visit, row: Row) -> None:
        match, page = state.verdict.match, row.page
        assert page is not None
        is_preferred = match is not None and state.verdict.reason in REPLACES
        if not (row.time or is_preferred):
            return
        stored = self._index.find(page.identities)
        if stored is None:
            return
        if row.time:
            dated = replace(stored, delivery=replace(stored.delivery, time=row.time))
            self._index.store.write([(codec.page_key(stored.number), page_codec.encode_page(dated))])
        if match is not None and is_preferred and stored.number != match.owner.number:
            self._preferred[stored.number] = match.owner.number

    def clusters(self, released: Collection[int]) -> Iterator[tuple[int, str]]:
        """Yield the clusters of two pages and more, by the position of the first, each as a line of JSON.

        Pages of the numbers that were *released* are in none.
        """
        owners = {p.number: p.owner for p in self._index.pages() if p.owner is not None and p.number not in released}
        # One that was replaced is a duplicate of the better one by now, not the other way round.
        owners |= {number: former for number, former in self._preferred.items() if former not in owners}
        members: defaultdict[int, set[int]] = defaultdict(set)
        for number in owners:
            root = _root(number, owners)
            members[root] |= {number, root}
        for root, numbers in sorted(members.items(), key=lambda cluster: min(cluster[1])):
            found = [page for number in sorted(numbers) if (page := self._index.page(number)) is not None]
            if len(found) > 1:
                owner = _owner(found, self._job)
                said = {"owner": owner.url, "size": len(found), "urls": [page.url for page in found]}
                yield position_of(min(root, found[0].number)), json.dumps(said)


def _root(number: int, owners: dict[int, int]) -> int:
    seen = set()
    while number in owners and number not in seen:
        seen.add(number)
        number = owners[number]
    return number


def _owner(pages: list[StoredPage], job: Job) -> StoredPage:
    """Return that of *pages*, the earliest first, that is to stand for all."""
    if job.owner == "longest":
        return max(pages, key=lambda page: len(page.hashes))
    if job.owner == "preferred":
        config: Config = job.config
        preferences = Preferences(config.preferred)
        return next((page for page in pages if preferences.include(page.url)), pages[0])
    return pages[0]


def mark_released(line: str, urls: Collection[str]) -> str:
    """Return the verdict *line*, with a note if it is of a duplicate at one of *urls*, which turned out to be none."""
    if not urls:
        return line
    said = json.loads(line)
    is_one = said["url"] in urls and said["verdict"] == VerdictKind.DUPLICATE.value
    return json.dumps(said | {"released": True}) if is_one else line
