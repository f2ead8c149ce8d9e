"""Some pages of an archive, judged one after the other on a store of their own, with what they must know of others.

The store is that of a crawl, but that the postings of pages of other worlds appear in it when these have come, and the
pages themselves as far as they are asked for, as *guests*. A guest may be looked at; as soon as it says enough to
matter, both worlds must be one.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from dedup_middleware.batch.judging import BatchSession
from dedup_middleware.batch.known import KnownSites
from dedup_middleware.batch.outcome import Ledger, mark_released
from dedup_middleware.batch.postings import Holding, number_of, position_of
from dedup_middleware.checks.detector import MIN_LIVE_WEIGHT, RELATED_THRESHOLD, Detector
from dedup_middleware.index import codec, page_codec
from dedup_middleware.index.exporting import Exporter
from dedup_middleware.index.index import Index
from dedup_middleware.model import Delivery, StoredPage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from dedup_middleware.batch.judging import Job
    from dedup_middleware.batch.known import Known
    from dedup_middleware.batch.reading import Row
    from dedup_middleware.model import Match, Page, Rejection

    Told = Mapping[bytes, tuple[Holding, ...]]

_ANY = Delivery("", "", None)


@dataclass
class Asked:
    """What a world wants of others, before it can be believed."""

    joins: set[int] = field(default_factory=set)
    """Positions of pages elsewhere that matter."""
    guests: set[int] = field(default_factory=set)
    """Positions of pages elsewhere that are to be looked at."""
    revised: set[int] = field(default_factory=set)
    """Positions of its own pages that have become others since: nobody can have them as guests."""


class Written(NamedTuple):
    """What is written down of a world."""

    verdicts: list[tuple[int, str]]
    """By position, lines of JSON."""
    clusters: list[tuple[int, str]]
    """By the position of the first page, likewise."""
    stored: list[tuple[int, str]]
    """By number, as `exchange` has them."""
    templates: list[str]
    """Likewise."""


class World:
    """Pages that are judged together. One thread, and 0.5 to 1.5 ms a page."""

    def __init__(self, job: Job, told: Told, guests: Iterable[tuple[int, Row]]) -> None:
        """Know what is *told* of clauses that pages elsewhere have too, all of them, and the *guests* by position."""
        self.asked = Asked()
        self._told = {clause: _changes(holdings) for clause, holdings in told.items()}
        self._most = job.config.common_clause + 2
        self._store = _Recording(told.keys())
        self._sites = KnownSites()
        self.batch = BatchSession(
            job, store=self._store, index=_Index, detector=_Detector, sites=self._sites, asked=self.asked
        )
        self.ledger = Ledger(self.batch.session, self.batch.index, job)
        index = self.batch.index
        assert isinstance(index, _Index)
        index.asked = self.asked
        elsewhere = {(each.number, each.since) for holdings in told.values() for each in holdings}
        index.elsewhere = {number for number, _ in elsewhere}
        index.moved = {number for number, since in elsewhere if since != position_of(number)}
        self._guests = {position: row.page for position, row in guests if row.page is not None}
        for position, page in self._guests.items():
            self._seat(page, position)

    def judge(self, position: int, row: Row, known: Known) -> str:
        """Judge the page at *position*, the next of this world, and return its verdict, a line of JSON.

        *known* is what of it is its site's.
        """
        self._sites.known = known
        self._store.now = position
        if row.page is not None and row.page.fingerprint.weight >= MIN_LIVE_WEIGHT:
            self._catch_up(row.page, position)
        line = self.ledger.judge(position, row)
        last = self.ledger.last
        if last is not None and last.claimed is not None and last.kept is not None:
            self._apply(last.claimed, last.kept.number)
        return line

    def end(self) -> Iterable[tuple[bytes, Holding]]:
        """Seal what was kept, show the guests out, and return who held which clauses that pages elsewhere have too."""
        self.batch.session.close()
        guests = [number_of(position, codec.host_mark(page.url)) for position, page in self._guests.items()]
        self._store.change_quietly([], [key(number) for number in guests for key in (codec.page_key, codec.text_key)])
        self.asked.revised.update(map(position_of, self._store.revised))
        return self._store.holdings()

    def written(self, verdicts: Iterable[tuple[int, str]]) -> Written:
        """Return what is to be written down of an ended world whose pages have these *verdicts*, by position."""
        heard, exporter = self.batch.heard, Exporter(self.batch.store, self.batch.index)
        return Written(
            [(position, mark_released(line, heard.urls)) for position, line in verdicts],
            [*self.ledger.clusters(heard.numbers)],
            [*exporter.page_lines()],
            [*exporter.other_lines()],
        )

    def _seat(self, page: Page, position: int) -> None:
        stored = StoredPage.of(page, number_of(position, codec.host_mark(page.url)))
        pairs = [(codec.page_key(stored.number), page_codec.encode_page(stored))]
        if limit := self.batch.job.config.text_limit:
            pairs.append((codec.text_key(stored.number), codec.encode_text(page.paragraphs, limit)))
        self._store.change_quietly(pairs, [])

    def _catch_up(self, page: Page, position: int) -> None:
        """Let the clauses of *page* lead to the pages elsewhere that held them before it came."""
        for clause in page.fingerprint.weights.keys() & self._told.keys():
            waiting = self._told[clause]
            if not waiting or waiting[0][0] >= position:
                continue
            key = codec.clause_key(clause)
            (value,) = self._store.get_many([key])
            holders = {*codec.decode_postings(value or b"")}
            while waiting and waiting[0][0] < position:
                _, comes, number = waiting.pop(0)
                if not comes:
                    holders.discard(number)
                elif len(holders) < self._most:
                    holders.add(number)
            pairs = [(key, codec.encode_postings(tuple(sorted(holders))))] if holders else []
            self._store.change_quietly(pairs, [key])

    def _apply(self, page: Page, number: int) -> None:
        """Note which clauses of *page*, which was kept, would lead to it, but have no room: elsewhere there may be."""
        clauses = (page.fingerprint.weights.keys() & self._told.keys()) - page.borrowed
        keys = codec.clause_keys(clauses)
        for key, value in zip(keys, self._store.get_many(keys), strict=True):
            holders = codec.decode_postings(value or b"")
            if number not in holders and len(holders) == self._most:
                self._store.note_applicant(key, number)


def _changes(holdings: Iterable[Holding]) -> list[tuple[int, bool, int]]:
    """Return when which numbers come, and go, in order; of what happens at once, going is first."""
    comes = [(each.since, True, each.number) for each in holdings]
    return sorted([*comes, *((each.until, False, each.number) for each in holdings if each.until >= 0)])


class _Recording:
    """A `Store` that notes when a page of its own world begins and ends to hold a clause that others have too.

    Hardly anything of it is scanned, and nothing need be sorted before it is.
    """

    uri = "memory:"

    def __init__(self, clauses: AbstractSet[bytes]) -> None:
        self.now = 0
        self.revised: set[int] = set()
        # By the first byte of keys: what they are of.
        self._pairs: defaultdict[bytes, dict[bytes, bytes]] = defaultdict(dict)
        self._keys = frozenset(codec.clause_keys(clauses))
        self._held: defaultdict[bytes, dict[int, Holding]] = defaultdict(dict)
        self._others: list[tuple[bytes, Holding]] = []

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """See Store."""
        pairs = self._pairs
        return [pairs[key[:1]].get(key) for key in keys]

    def scan(self, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
        """See Store. O(all pairs of the kinds that are asked for)."""
        asked = [pairs for kind, pairs in self._pairs.items() if start[:1] <= kind <= stop[:1]]
        return iter(sorted(pair for pairs in asked for pair in pairs.items() if start <= pair[0] < stop))

    def write(self, puts: Iterable[tuple[bytes, bytes]], deletes: Iterable[bytes] = (), *, sync: bool = False) -> None:  # noqa: ARG002 - nothing here outlives the process
        """See Store."""
        puts, deletes = list(puts), list(deletes)
        for key, value in [*((key, b"") for key in deletes), *puts]:
            if key in self._keys:
                self._note(key, value)
            elif key[:1] == codec.PAGES[0]:
                self._note_page(key, value)
        self.change_quietly(puts, deletes)

    def close(self) -> None:
        """See Store."""

    def change_quietly(self, puts: Iterable[tuple[bytes, bytes]], deletes: Iterable[bytes]) -> None:
        """Apply *deletes*, then *puts*, for what happens elsewhere."""
        for key in deletes:
            self._pairs[key[:1]].pop(key, None)
        for key, value in puts:
            self._pairs[key[:1]][key] = value

    def note_applicant(self, key: bytes, number: int) -> None:
        """Note that a page of this world would hold a clause if there were room."""
        self._others.append((key, Holding(self.now, number)))

    def holdings(self) -> list[tuple[bytes, Holding]]:
        """Return who has held which clauses, and when."""
        held = [(key[1:], each) for key, holders in self._held.items() for each in holders.values()]
        return [*held, *((key[1:], each) for key, each in self._others)]

    def _note(self, key: bytes, value: bytes) -> None:
        (before,) = self.get_many([key])
        was, is_ = (frozenset(codec.decode_postings(each or b"")) for each in (before, value))
        held = self._held[key]
        for number in was - is_:
            # Pages elsewhere end to hold it where they are judged.
            if number in held:
                self._others.append((key, held.pop(number)._replace(until=self.now)))
        for number in is_ - was:
            held[number] = Holding(self.now, number)

    def _note_page(self, key: bytes, value: bytes) -> None:
        (before,) = self.get_many([key])
        if before is not None and before != value:
            number = codec.decode_number(key[1:])
            if not value or _said(number, before) != _said(number, value):
                self.revised.add(number)


def _said(number: int, value: bytes) -> object:
    """Return what others can tell of a stored page."""
    return replace(page_codec.decode_page(number, value), delivery=_ANY, item_content=None)


class _Index(Index):
    """An index that notes which pages elsewhere it was asked for and does not have."""

    asked: Asked
    elsewhere: AbstractSet[int]
    """Pages elsewhere that hold clauses of ours."""
    moved: AbstractSet[int]
    """Those of them that came again, with another text."""

    def page(self, number: int) -> StoredPage | None:
        """See Lookup."""
        found = super().page(number)
        if number in self.moved:
            self.asked.joins.add(position_of(number))
        elif found is None and number in self.elsewhere:
            self.asked.guests.add(position_of(number))
        return found


@dataclass(frozen=True, slots=True)
class _Detector(Detector):
    """A detector that notes which pages elsewhere matter."""

    asked: Asked = field(default_factory=Asked)

    def _look_closely(
        self, page: Page, exact: Match, live: AbstractSet[bytes], threshold: float
    ) -> tuple[Match, Rejection | None]:
        match, objected = Detector._look_closely(self, page, exact, live, threshold)  # noqa: SLF001 - its own
        number = match.owner.number
        assert isinstance(self.index, _Index)
        if match.score >= RELATED_THRESHOLD and number in self.index.elsewhere:
            self.asked.joins.add(position_of(number))
        return match, objected
