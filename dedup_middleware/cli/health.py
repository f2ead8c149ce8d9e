"""What is well and what is wrong with a store, a log and the packages beneath: what ``scrapy dedup doctor`` finds.

It reads closed stores and changes nothing. A finding that is a problem says what to do, in words or by a command that
is safe to run as printed.
"""

from __future__ import annotations

import os
import platform
import shutil
from contextlib import suppress
from dataclasses import asdict, dataclass
from enum import Enum
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dedup_middleware.commandlines import scrapy_dedup
from dedup_middleware.errors import DedupError, RecordsError, StoreLockedError, UnreadableError
from dedup_middleware.fingerprints import fingerprinter
from dedup_middleware.index import schema
from dedup_middleware.index.in_doubt import InDoubt
from dedup_middleware.index.opening import index_for_command
from dedup_middleware.model import VerdictKind
from dedup_middleware.records.records import Record, log_exists, read_records
from dedup_middleware.records.unchecked import last_crawl, listed, mostly_unchecked
from dedup_middleware.stores import (
    ON_DISK,
    default_backend,
    parse_uri,
    refusals,
    resolved_uri,
    size_of_store,
    store_exists,
)
from dedup_middleware.text.clauses import one_line
from dedup_middleware.urls import without_secrets

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from dedup_middleware.index.index import Index
    from dedup_middleware.settings import Config
    from dedup_middleware.stores import OpenStore

_PACKAGES = (
    "dedup-middleware",
    "scrapy",
    "twisted",
    "parsel",
    "lxml",
    "w3lib",
    "itemadapter",
    "xxhash",
    "rapidfuzz",
    "jieba",
    "opencc",
    "plyvel",
    "rocksdict",
    "hiredis",
)
#: Bytes on a disk below which a crawl may soon be without room: some ten thousand pages.
_LITTLE_ROOM = 200 * 2**20
#: A compaction writes the new files before it removes the old ones.
_ROOM = 2
#: Characters of one finding, and of its remedy.
_SHOWN = 2_000
_ALL = (b"\x01", b"\xff" * 64)
_NEXT_TIME = "nothing to do: the next crawl checks it anew"
_NEVER = 'if it should be kept: request it with meta={"dedup": False}, or raise DEDUP_THRESHOLD'


class Level(str, Enum):
    """How good or bad a finding is."""

    OK = "ok"
    NOTE = "note"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    level: Level
    about: str
    text: str
    remedy: str = ""
    """What to do; of a problem, never empty."""

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return {**asdict(self), "level": self.level.value}


def finding_text(findings: Iterable[Finding]) -> str:
    """Return *findings* for a person: a line each, and its remedy below."""
    lines = []
    for finding in findings:
        lines.append(f"{finding.level.value:<8} {finding.about:<9} {one_line(finding.text, _SHOWN)}")
        if finding.remedy:
            lines.append(f"{'':<18} -> {one_line(finding.remedy, _SHOWN)}")
    return "\n".join(lines)


def ok(about: str, text: str) -> Finding:
    """Return a finding that all is well."""
    return Finding(Level.OK, about, text)


def note(about: str, text: str, remedy: str = "") -> Finding:
    """Return a finding that a person should know of."""
    return Finding(Level.NOTE, about, text, remedy)


def problem(about: str, text: str, remedy: str) -> Finding:
    """Return a finding of what is wrong, and how to mend it."""
    return Finding(Level.PROBLEM, about, text, remedy)


def versions() -> Iterator[Finding]:
    """Yield the versions of what the plugin stands on."""
    found = [(name, _version(name)) for name in _PACKAGES]
    known = ", ".join(f"{name} {number}" for name, number in found if number is not None)
    yield ok("versions", f"Python {platform.python_version()} on {platform.system()}; {known}")
    if default_backend() == "sqlite":
        yield note("versions", "neither plyvel nor rocksdict can be imported: the default store is SQLite")


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def store_health(config: Config, *, deep: bool) -> Iterator[Finding]:
    """Yield what is to be said of the store that *config* names. Seconds; *deep* reads all of it, minutes."""
    uri = resolved_uri(config.store)
    if uri == "memory:":
        yield note("store", "it is in memory: nothing is remembered after a crawl", "set DEDUP_STORE")
        return
    try:
        if not store_exists(uri):
            yield note("store", f"there is none yet at {without_secrets(uri, redact=False)}; the first crawl makes it")
        else:
            yield from _opened(uri, config, deep=deep)
    except StoreLockedError as error:
        yield note("store", str(error), "look again when that has ended")
    except DedupError as error:
        # Its line ends with what to do.
        said, _, remedy = str(error).partition(": ")
        yield problem("store", said, remedy or said)
    yield from _room(uri, config)


def _opened(uri: str, config: Config, *, deep: bool) -> Iterator[Finding]:
    with index_for_command(uri, "doctor") as (store, index):
        shown, header = without_secrets(uri, redact=False), store.header
        yield ok("store", f"{shown} opens")
        if store.caution:
            said, _, remedy = store.caution.rpartition(": ")
            yield note("store", said, remedy)
        wanted = fingerprinter(config.fingerprint).scheme
        if header.scheme != wanted:
            yield problem(
                "store",
                f"crawls will refuse it: it holds fingerprints of scheme {header.scheme!r}, and DEDUP_FINGERPRINT = "
                f"{config.fingerprint!r} makes {wanted!r}",
                f"set that to what it was made with, or remove the store: {refusals.reset(uri)}",
            )
        at_work = crawls_at_work(store)
        if at_work:
            yield ok("store", shared_by(at_work))
        yield from _left_over(store, at_work)
        if deep and at_work:
            yield note("store", "it is written to, and was not read through", "read it when no crawl has it open")
        elif deep:
            yield _read_through(index)


def _left_over(store: OpenStore, at_work: Collection[bytes]) -> Iterator[Finding]:
    items, originals = to_release(store), in_doubt(store, at_work)
    if items or originals:
        yield note(
            "store",
            f"pending: {items} dropped items to release, and {originals} originals of a crawl that did not end cleanly",
            "crawl with the spider, or the JOBDIR, that they are of",
        )
    else:
        yield ok("store", "no pending recovery work")


def _read_through(index: Index) -> Finding:
    """Decode every page, text and posting list; :class:`StoreCorruptError` for the first that is damaged."""
    pages = postings = 0
    for page in index.pages():
        pages += 1
        index.text(page.number)
    with refusals.of_value(index.store.uri, UnreadableError):
        for key, value in index.store.scan(*_ALL):
            if key[:1] in schema.POSTINGS:
                postings += len(schema.decode_postings(value)) > 0
    return ok("store", f"all of it was read: {pages} pages, {postings} posting lists")


def _room(uri: str, config: Config) -> Iterator[Finding]:
    scheme, path = parse_uri(uri)
    if scheme not in ON_DISK:
        return
    size = 0
    # What is wrong with it was said before.
    with suppress(DedupError):
        size = (size_of_store(uri) or 0) if store_exists(uri) else 0
    above = _nearest(Path(path))
    free = shutil.disk_usage(above).free
    said = f"{size / 2**20:.1f} MB, and {free / 2**20:.0f} MB are free beside it"
    if free < _LITTLE_ROOM:
        yield problem("room", said, f"make room on the disk of {above}")
    elif free < _ROOM * size:
        yield note("room", f"{said}: too little to compact it", "make room before that is needed")
    else:
        yield ok("room", said)
    places = {"store": Path(path), "log": config.log}
    for name, place in places.items():
        if place is None:
            continue
        if _is_writable(place):
            yield ok("place", f"the {name} {place} can be written")
        else:
            yield problem(
                "place", f"the {name} {place} cannot be written", f"make it and its folder yours: {place.parent}"
            )


def _nearest(path: Path) -> Path:
    """Return *path*, or the first folder above it that is there."""
    return next(folder for folder in (path, *path.absolute().parents) if folder.exists())


def _is_writable(path: Path) -> bool:
    nearest = _nearest(path)
    return os.access(nearest, os.W_OK) and (nearest == path or nearest.is_dir())


def log_health(config: Config) -> Iterator[Finding]:
    """Yield what is to be said of the log; of one that is there, whether its first records can be read."""
    if config.log is None:
        yield note("log", "no records are kept: nothing tells later why a page was dropped", "set DEDUP_LOG to a path")
    elif not log_exists(config.log):
        yield note("log", f"there is none yet at {config.log}; the first record makes it")
    elif config.log.stat().st_size and next(iter(read_records(config.log)), None) is None:
        yield problem("log", f"{config.log} holds something else than records", "set DEDUP_LOG to another path")
    else:
        yield ok("log", f"{config.log}, {config.log.stat().st_size / 2**20:.1f} MB")


def pages_health(config: Config) -> Iterator[Finding]:
    """Yield how many pages the last crawl in the log did not check; a problem if they are most of those with items."""
    try:
        last = last_crawl(config)
    except RecordsError:  # the findings about the log report it
        return
    if last is None:
        return
    found = mostly_unchecked(last.with_items, last.checked, "pages with items in the last crawl")
    if found is not None:
        yield problem("pages", found.text, found.remedy)
    elif last.unchecked:
        count = sum(last.unchecked.values())
        yield note("pages", f"the last crawl did not check {count} of its pages: {listed(last.unchecked)}")
    else:
        yield ok("pages", "the last crawl checked all pages")


def as_explained(explanation: dict[str, Any], config: Config) -> Iterator[Finding]:
    """Yield what is known of a page, as `explain.explain` returns it, in the store and the log of *config*."""
    stored, record = explanation["stored"], explanation["record"]
    if explanation["note"]:
        yield note("page", explanation["note"])
    if record is not None:
        last = Record(**record)
        allow = scrapy_dedup("allow", last.url, store=resolved_uri(config.store))
        yield from as_checked(last, "was", f"if it is no duplicate: `{allow}`")
    if stored is None:
        yield note("page", "the store does not have it: it gave no item, or was forgotten")
    elif stored["kind"] == "original":
        repeats = len(stored["repeated_by"])
        yield ok("page", f"it owns {stored['clauses']} clauses since {stored['since']}; {repeats} pages repeat it")
    elif stored["original_url"] is None:
        yield note("page", f"it was dropped on {stored['since']} for a page that is not stored any more", _NEXT_TIME)
    else:
        yield ok("page", f"it is kept as a duplicate of {stored['original_url']} ({stored['score']:.0%})")


def as_checked(record: Record, tense: str = "would be", remedy: str = _NEVER) -> Iterator[Finding]:
    """Yield how the page of *record* was or would be checked, the difference, and the *remedy* if that is wrong."""
    score = "" if record.score is None else f", {record.score:.0%} of its text"
    original = "" if record.original_url is None else f" of {record.original_url}{score}"
    reason = f": {record.message}" if record.message else ""
    yield ok("page", f"it {tense} checked {record.verdict}{original}{reason}")
    for own in record.difference:
        yield ok("difference", own)
    for sentence in record.evidence:
        yield ok("repeated", sentence)
    if record.verdict == VerdictKind.DUPLICATE.value:
        yield note("page", "its items are compared too, before they are dropped", remedy)


def crawls_at_work(store: OpenStore) -> list[bytes]:
    """Return the workers that crawl with a shared *store*. A scan, and a look at each."""
    shared = store.shared
    if shared is None:
        return []
    return [key[1:] for key, _ in store.scan(*schema.WORKERS) if shared.is_at_work(key[1:])]


def shared_by(at_work: Collection[bytes]) -> str:
    """Return the state of a store that is shared by these."""
    return f"shared by {len(at_work)} crawl{'s' * (len(at_work) != 1)} now"


def to_release(store: OpenStore) -> int:
    """Return how many dropped items are to be released. A scan."""
    return sum(1 for _ in store.scan(*schema.RELEASES))


def in_doubt(store: OpenStore, at_work: Collection[bytes]) -> int:
    """Return how many originals are in doubt, but for those of the workers *at_work*. A scan."""
    return sum(doubt.worker not in at_work for _, doubt in InDoubt(store).left_behind())
