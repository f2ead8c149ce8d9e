"""Reads the pages of an archive: a row for each, with its clauses and all that the later steps need of it."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import xxhash

from dedup_middleware.batch.archive import Refused, entries
from dedup_middleware.budget import UnjudgeableError
from dedup_middleware.checks.detector import MIN_LIVE_WEIGHT
from dedup_middleware.checks.preferences import Preferences
from dedup_middleware.errors import ConfigError
from dedup_middleware.extraction.extractor import extractor
from dedup_middleware.features import PageFeatures
from dedup_middleware.fingerprints import instance_of
from dedup_middleware.fingerprints.clauses import FAST_HASH_BYTES, HASH_BYTES
from dedup_middleware.index.lookup import TEXT_LIMIT
from dedup_middleware.index.schema import whole_text_key
from dedup_middleware.model import Fingerprint, Page
from dedup_middleware.reasons import Reason
from dedup_middleware.session.reader import PageReader
from dedup_middleware.session.reading import Reading
from dedup_middleware.urls import host_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from dedup_middleware.batch.archive import Entry
    from dedup_middleware.fingerprints import Fingerprinter
    from dedup_middleware.settings.config import Config
    from dedup_middleware.stores.base import Header

#: Pages of one file, and files.
FILE_PAGES, MAX_FILES = 2**22, 2**18
#: The id of a preferred page is its position in the archive. Those of other pages are greater by this number, for
#: originals are found in the order of ids.
POSITIONS = FILE_PAGES * MAX_FILES
#: The share of a clause that is all of a page's text. The text as a whole outweighs any number of clauses.
WHOLE, EQUAL = 1_000_000, 2_000_000


class Row(NamedTuple):
    """A page as the steps exchange it. Numbers are signed and have 64 bits."""

    page: int
    """Its id; -1 for the report on a file, which has the refused records in ``content``."""
    host: int
    url: int
    text: int | None
    """The hash of its text; ``None`` if the page has too little text to be an original."""
    content: bytes
    """The page as :meth:`Job.decoded` reads it."""
    clauses: list[int]
    shares: list[int]
    """The share of each clause in the text, of `WHOLE`."""


class Read(NamedTuple):
    """A page that was read."""

    url: str
    page: Page | None
    reason: str = ""
    """Why there is no page."""
    time: str = ""


@dataclass(frozen=True)
class Job:
    """The settings of one batch, and the header of the store that it makes, whose key all fingerprints have."""

    config: Config
    header: Header
    run: str

    @cached_property
    def fingerprint(self) -> Fingerprinter:
        """The fingerprinter of the store."""
        return instance_of(self.config.fingerprint, self.header.key)

    @cached_property
    def reader(self) -> PageReader:
        """The reader of a crawl with these settings."""
        return PageReader(self.run, self.fingerprint, extractor(self.config.extractor), None)

    def __getstate__(self) -> dict[str, Any]:
        # A fingerprinter cannot be sent to another process.
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def rows(self, number: int, path: Path) -> Iterator[Row]:
        """Yield the pages of the file at *path*, the *number*-th of the archive, and a report. 1 to 6 ms a page."""
        refused, count = Refused(), 0
        for entry in entries(path, refused):
            if count == FILE_PAGES:
                raise ConfigError(f"{path} has more than {FILE_PAGES} pages; split it into several files")
            yield self._row(number * FILE_PAGES + count, entry)
            count += 1
        report = json.dumps([number, count, refused.counts, refused.first])
        yield Row(-1, 0, 0, None, report.encode("ascii"), [], [])

    def _row(self, position: int, entry: Entry) -> Row:
        read = self._read(entry)
        page, is_preferred = read.page, Preferences(self.config.preferred).include(read.url)
        shares = {} if page is None else _shares(page)
        return Row(
            page=position if is_preferred else POSITIONS + position,
            host=_hash(host_of(read.url)),
            url=_hash(read.url if page is None else page.identities[0].hex()),
            text=number_of(page.fingerprint.digest) if page is not None and shares else None,
            content=_encoded(read),
            clauses=[*shares],
            shares=[*shares.values()],
        )

    def _read(self, entry: Entry) -> Read:
        reading, reason = Reading(entry.content), ""
        try:
            reading.read(self, self.config)  # type: ignore[arg-type] # of a session it needs the reader alone
        except UnjudgeableError as error:
            reason = error.reason
        except Exception:  # noqa: BLE001 - a hostile page must not end the batch
            reason = Reason.ERROR
        return Read(reading.url, None if reason else reading.page, reason, entry.time)

    def decoded(self, content: bytes) -> Read:
        """Return the page that a row has as *content*. 0.1 ms."""
        url, reason, time, *rest = json.loads(str(content, "utf8", "surrogatepass"))
        if not rest:
            return Read(url, None, reason, time)
        identity, paragraphs, made, around, is_doubtful, is_furniture = rest
        title, heading, texts, facts, canonical = around
        features = PageFeatures(title, heading, frozenset(_split(texts)), frozenset(_split(facts)), canonical)
        size, (clauses, weights, digest, exact_digest, with_digits, skeletons, portions) = HASH_BYTES, made
        fingerprint = Fingerprint(
            dict(zip(_split(clauses, size), weights, strict=True)),
            dict(zip(_split(with_digits, size), _split(skeletons), strict=True)),
            bytes.fromhex(digest),
            bytes.fromhex(exact_digest),
            portions=(*portions,),
        )
        page = Page(url, (bytes.fromhex(identity),), fingerprint, (*paragraphs,), self.run, features=features)
        return Read(url, replace(page, is_doubtful=is_doubtful, is_furniture=is_furniture), reason, time)

    def kept_text(self, page: Page) -> list[str]:
        """Return the text of *page* as far as a store keeps it."""
        limit = TEXT_LIMIT
        return "\n".join(page.paragraphs)[:limit].split("\n") if limit else []


def _encoded(read: Read) -> bytes:
    values: list[Any] = [read.url, read.reason, read.time]
    if (page := read.page) is not None:
        made, features = page.fingerprint, page.features or PageFeatures()
        clauses, skeletons = (_joined(made.weights), [*made.weights.values()]), made.skeletons
        digests = (made.digest.hex(), made.exact_digest.hex())
        around = (features.title, features.heading, _joined(features.texts), _joined(features.facts))
        values += [page.identities[0].hex(), page.paragraphs]
        values.append((*clauses, *digests, _joined(skeletons), _joined(skeletons.values()), made.portions))
        values += [(*around, features.canonical), page.is_doubtful, page.is_furniture]
    return json.dumps(values, ensure_ascii=False).encode("utf8", "surrogatepass")


def _joined(hashes: Iterable[bytes]) -> str:
    return b"".join(hashes).hex()


def _split(joined: str, size: int = FAST_HASH_BYTES) -> list[bytes]:
    packed = bytes.fromhex(joined)
    return [packed[start : start + size] for start in range(0, len(packed), size)]


def _shares(page: Page) -> dict[int, int]:
    """Return the clauses of *page* with their shares; none if it has too little text to be an original."""
    total = page.fingerprint.weight
    if total < MIN_LIVE_WEIGHT:
        return {}
    shares = {number_of(clause): WHOLE * weight // total for clause, weight in page.fingerprint.weights.items()}
    if (key := whole_text_key(page.fingerprint.exact_digest, page.features)) is not None:
        shares[number_of(key[1:])] = EQUAL
    return shares


def number_of(digest: bytes) -> int:
    """Return the first 8 bytes of a hash as a number."""
    return int.from_bytes(digest[:8], "big", signed=True)


def _hash(text: str) -> int:
    return number_of(xxhash.xxh3_64_digest(text.encode("utf8", "surrogatepass")))
