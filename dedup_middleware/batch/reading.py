"""A part of an archive -> its pages, read and fingerprinted, and what tells which others they have to do with."""

from __future__ import annotations

import struct
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import xxhash

from dedup_middleware.batch.archive import Refused, entries
from dedup_middleware.batch.engine import Element
from dedup_middleware.batch.judging import BatchSession
from dedup_middleware.budget import UnjudgeableError
from dedup_middleware.canonical import storys_own
from dedup_middleware.checks.detector import MIN_LIVE_WEIGHT
from dedup_middleware.index.codec import host_mark
from dedup_middleware.index.whole_texts import equals_key
from dedup_middleware.reasons import Reason
from dedup_middleware.session.reading import Reading
from dedup_middleware.urls import host_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dedup_middleware.batch.archive import Entry, Part
    from dedup_middleware.batch.judging import Job
    from dedup_middleware.deduplicator import Deduplication
    from dedup_middleware.model import Page
    from dedup_middleware.settings.config import Config

#: A clause of a page: its hash, the page's place in its part, the mark of its host, and its share of the text, of 254.
POSTING = struct.Struct("<8sIHB")
#: What makes pages to be judged together whatever they say: its hash, and the page's place in its part.
TIE = struct.Struct("<8sI")
WHOLE = 254
_PART = struct.Struct("<I")
_AT_ONCE = 128


class Row(NamedTuple):
    """A page of an archive, read."""

    url: str
    page: Page | None
    reason: str = ""
    """Why it could not be read."""
    time: str = ""


def row_of(session: Deduplication, config: Config, entry: Entry) -> Row:
    """Return the page that *entry* is, as a crawl would read it. 1 to 6 ms."""
    reading = Reading(entry.content)
    try:
        reading.read(session, config)
    except UnjudgeableError as error:
        return Row(reading.url, None, error.reason, entry.time)
    except Exception:  # noqa: BLE001 - of a hundred million pages, one must not end a batch
        return Row(reading.url, None, Reason.ERROR, entry.time)
    return Row(reading.url, reading.page, "", entry.time)


@dataclass(frozen=True)
class ReadPart:
    """The first step: ``pages``; ``clauses``, ``ties`` and ``sites`` of them; a ``report``."""

    job: Job

    def __call__(self, number: int, part: Part) -> Iterator[Element]:
        """Read *part*, which has this *number*."""
        session, refused, links = BatchSession(self.job).session, Refused(), _Links(self.job.buckets)
        rows: list[Row] = []
        count = 0
        for count, entry in enumerate(entries(part, refused), 1):
            row = row_of(session, self.job.config, entry)
            rows.append(row)
            if row.page is not None:
                links.note(count - 1, row.page)
            if len(rows) == _AT_ONCE:
                yield Element("pages", number, (number, count - len(rows), rows))
                rows = []
        yield Element("pages", number, (number, count - len(rows), rows))
        yield from links.elements(number)
        yield Element("report", number, (number, count, refused))


class _Links:
    """What the pages of one part have in common with others, packed, by bucket."""

    def __init__(self, buckets: int) -> None:
        self._buckets = buckets
        self._clauses: defaultdict[int, bytearray] = defaultdict(bytearray)
        self._ties: defaultdict[int, bytearray] = defaultdict(bytearray)
        self._sites: defaultdict[int, list[object]] = defaultdict(list)

    def note(self, index: int, page: Page) -> None:
        if page.features is not None:
            host = host_of(page.url)
            self._sites[self._bucket(host.encode("utf8", "surrogatepass"))].append((index, host, page.features))
        for tie in ties(page):
            self._ties[self._bucket(tie)] += TIE.pack(tie, index)
        total = page.fingerprint.weight
        if total < MIN_LIVE_WEIGHT:
            return  # it owns nothing, and is not compared
        mark, buckets = host_mark(page.url), self._buckets
        for clause, weight in page.fingerprint.weights.items():
            share = max(1, WHOLE * weight // total)
            self._clauses[int.from_bytes(clause[:4], "big") % buckets] += POSTING.pack(clause, index, mark, share)

    def _bucket(self, key: bytes) -> int:
        return xxhash.xxh3_64_intdigest(key) % self._buckets

    def elements(self, number: int) -> Iterator[Element]:
        for kind, packed in (("clauses", self._clauses), ("ties", self._ties)):
            for bucket, value in packed.items():
                yield Element(kind, bucket, _PART.pack(number) + value)
        for bucket, pages in self._sites.items():
            yield Element("sites", bucket, (number, pages))


def part_of(value: bytes) -> tuple[int, memoryview]:
    """Return the number of the part that ``clauses`` or ``ties`` are of, and these."""
    return _PART.unpack_from(value)[0], memoryview(value)[_PART.size :]


def ties(page: Page) -> set[bytes]:
    """Return 8 bytes for each thing by which a page is found whatever is boilerplate.

    Itself at another time, the story's own page of a view, and its text: as an owner, or as a template.
    """
    named = {b"i" + identity for identity in (*page.identities, *storys_own(page.features, page.url))}
    if page.fingerprint.weight >= MIN_LIVE_WEIGHT:
        named.add(b"d" + page.fingerprint.digest)
        if (key := equals_key(page.fingerprint.exact_digest, page.features)) is not None:
            named.add(key)
    return {xxhash.xxh3_64_digest(each) for each in named}
