"""Writes and reads records: lines of JSON, ASCII only, one for every page, and two for every crawl."""

from __future__ import annotations

import errno
import json
import math
import os
import re
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import asdict, replace
from rapidfuzz.distance import Prefix

from dedup_middleware.common import permissions
from dedup_middleware.common.bounded import loads
from dedup_middleware.common.plain_files import DEVICES, FILES, STREAMS, ends_torn, open_file
from dedup_middleware.common.urls import as_in_urls, as_requested, bare, host_of, is_under, without_secrets
from dedup_middleware.errors import PATH_ERRORS, ConfigError, RecordsError
from dedup_middleware.model import VerdictKind, is_marked
from dedup_middleware.reasons import Outcome, Reason
from dedup_middleware.records.crawl_lines import CrawlLine, WrittenLine
from dedup_middleware.text.clauses import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from os import PathLike
    from typing import BinaryIO

    from dedup_middleware.common.plain_files import Kinds
    from dedup_middleware.index.dropped_items import DroppedItem
    from dedup_middleware.model import Changes
    from dedup_middleware.settings import Config

#: Evidence in a record: enough to see at a glance why; `scrapy dedup explain` shows every sentence.
MAX_EVIDENCE, EVIDENCE_CHARACTERS = 5, 200
MAX_CHANGES = 20
_MAX_DIFFERENCES, _DIFFERENCE_CHARACTERS, _TITLE_CHARACTERS = 5, 100, 200
#: Bytes of a line: its texts are cut, and its URLs as long as pages make them.
MAX_LINE = 2**20
#: The field of changes of the text.
TEXT = "text"
#: Names the crawl that has written the last line.
LAST = "last"
#: Replaces a verdict, an outcome or a reason that is not ours: there may be any number of them.
OTHER = "other"
# Characters of a URL, beyond which it is not the nearest one.
_MAX_URL = 2_000
# Values of a record, of which it has some forty.
_MAX_VALUES = 1_000
# Bytes of a file that show what it is, some thirty records, and how the lines begin.
_START, _PAGE, _CRAWL = 32_768, b'{"time":"', b'{"event":"'
# Bytes that fit in the cache of a processor: larger blocks take half as long again.
_BLOCK = 1 << 18
#: The values of each field that has codes.
CODES: dict[str, frozenset[str]] = {
    "verdict": frozenset(kind.value for kind in VerdictKind),
    "outcome": frozenset(outcome.value for outcome in Outcome),
    "reason": frozenset({"", *(reason.value for reason in Reason)}),
}
_VERDICTS, _OUTCOMES, _REASONS = CODES.values()
_DUPLICATE, _RELATED = VerdictKind.DUPLICATE.value, VerdictKind.RELATED.value
_UNCHANGED = VerdictKind.UNCHANGED.value
_AS_BEFORE = (_UNCHANGED, VerdictKind.CHANGED.value)


class RecordedChanges(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What has changed on a page since the store got it: at most 20 of each, sentences cut at 200 characters."""

    replaced: list[tuple[str, str]] = []
    """What stood there, and what stands there now."""
    deleted: list[str] = []
    inserted: list[str] = []
    shown_otherwise: bool = False
    """Whether pictures, media, files, formulas or form values are others."""
    values: list[tuple[str, str, str]] = []
    """Title, heading, fields of items, and a text of which no sentence shows the change: name, before, after."""

    @classmethod
    def of(cls, changes: Changes) -> RecordedChanges | None:
        """Return *changes* as a record has them: what there is, cut."""
        if not changes:
            return None
        return cls(
            [_cut_pair(old, new) for old, new in changes.replaced[:MAX_CHANGES]],
            [*map(_cut, changes.deleted[:MAX_CHANGES])],
            [*map(_cut, changes.inserted[:MAX_CHANGES])],
            changes.is_shown_otherwise,
            [(_cut(name), *_cut_pair(old, new)) for name, old, new in changes.values[:MAX_CHANGES]],
        )

    def by_field(self) -> Iterator[tuple[str, str, str]]:
        """Yield each change: the field, what it was and what it is; empty for nothing."""
        yield from self.values
        yield from ((TEXT, *pair) for pair in self.replaced)
        yield from ((TEXT, old, "") for old in self.deleted)
        yield from ((TEXT, "", new) for new in self.inserted)


class Record(WrittenLine, msgspec.Struct, frozen=True, gc=False):
    """The verdict on one page, and what happened to its items.

    Of a new page, and of an unchanged one that shared no text, a record has only what is counted.
    """

    time: str
    """UTC, ISO 8601."""
    spider: str
    crawl: str
    url: str
    verdict: str
    outcome: str = Outcome.KEPT.value
    """``kept``, ``dropped``, ``tagged``, ``would_drop``, ``links_last`` for a duplicate without items, or
    ``released`` for one whose dropped items were released."""
    original_url: str | None = None
    original_crawl: str | None = None
    """The crawl that kept the original last."""
    original_is_earlier: bool = False
    """Of a duplicate: whether a crawl that was over when this one began has kept the original, and this one has not."""
    score: float | None = None
    """Share of the page's non-boilerplate text that the original contains, 0-1."""
    reason: str = ""
    """A code, see `reasons`."""
    message: str = ""
    """The reason for people."""
    difference: list[str] = []
    """At most five pieces of the page or item that the original lacks."""
    changes: RecordedChanges | None = None
    """Of a changed page."""
    moved_from: str | None = None
    """The URL of the page when it was stored, where it has moved."""
    evidence: list[str] = []
    """Repeated sentences, at most five, as this page wrote them."""
    is_item: bool = False
    """Whether it is of an item that was checked by itself, by its key, or because the page at ``url`` cannot be."""
    key: str = ""
    """The key of the item, where ``DEDUP_KEY`` names its fields; at most 200 characters."""
    items_dropped: int = 0
    items_kept: int = 0
    items_would_drop: int = 0
    """Of the kept ones, those that the action ``drop`` would have dropped."""
    title: str = ""
    """At most 200 characters."""
    bytes: int = 0
    """The length of the decompressed body; 0 for an item."""
    canonical: str | None = None
    """The page's canonical URL, where that is another one."""
    text: str = ""
    """Of the text that the verdict was made on: see `text_mark`."""
    original_text: str = ""
    """The same of the original, as it was then."""

    @property
    def thing(self) -> str:
        """What is followed from crawl to crawl: the key of an item, behind a space, else the URL of a page."""
        return f" {self.key}" if self.key else self.url

    @property
    def host(self) -> str:
        """The host of ``url``, without port; empty for a URL that has none."""
        return host_of(self.url)

    @property
    def is_duplicate(self) -> bool:
        """Whether the page only repeats another one; keep all others."""
        return self.verdict == _DUPLICATE

    @property
    def is_related(self) -> bool:
        """Whether the page was kept though it shares text; now, or when its text was read that is unchanged since."""
        return self.verdict == _RELATED or (self.verdict in _AS_BEFORE and self.score is not None)

    def standing_on(self, before: Record | None) -> Record:
        """Return the record with what *before*, the one before of its page, shows: if it is unchanged since then."""
        if before is None or self.verdict != _UNCHANGED or not is_marked(self.text, before.text):
            return self
        return replace(self, difference=before.difference, evidence=before.evidence)

    def as_dict(self) -> dict[str, Any]:
        """Return all fields as plain values."""
        return asdict(self) | {"changes": None if self.changes is None else asdict(self.changes)}


def _cut_pair(old: str, new: str) -> tuple[str, str]:
    """Return a sentence as it was and as it is, cut so that the first difference is in both."""
    old, new = one_line(old), one_line(new)
    same = Prefix.similarity(old, new)
    start = max(0, same - EVIDENCE_CHARACTERS // 2) if max(len(old), len(new)) > EVIDENCE_CHARACTERS else 0
    mark = "…" if start else ""
    return _cut(mark + old[start:]), _cut(mark + new[start:])


def _cut(text: str) -> str:
    return one_line(text, EVIDENCE_CHARACTERS)


# Recorders cut texts so, and the report does again: another program may have written the records.


def cut_evidence(texts: Iterable[str]) -> list[str]:
    """Return the first of these repeated sentences, each on a line and cut."""
    return [*map(_cut, islice(texts, MAX_EVIDENCE))]


def cut_difference(texts: Iterable[str], most: int = _MAX_DIFFERENCES) -> list[str]:
    """Return the first of these pieces that an original lacks, at *most* so many, each on a line and cut."""
    return [one_line(text, _DIFFERENCE_CHARACTERS) for text in islice(texts, most)]


def cut_title(title: str) -> str:
    """Return *title* on a line and cut."""
    return one_line(title, _TITLE_CHARACTERS)


_page_decoder, _crawl_decoder = msgspec.json.Decoder(Record), msgspec.json.Decoder(CrawlLine)


def parse_record(line: bytes) -> Record | None:
    """Return the record that is in *line*, with `OTHER` for codes that are not ours; ``None`` if it has no record."""
    try:
        record = _page_decoder.decode(line)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        # Half a character is JSON to Python alone.
        try:
            record = msgspec.convert(loads(line.decode("utf8", "replace"), values=_MAX_VALUES), Record)
        except (ValueError, msgspec.MsgspecError):
            return None
    if record.verdict in _VERDICTS and record.outcome in _OUTCOMES and record.reason in _REASONS:
        return record
    return replace(record, **{name: OTHER for name, codes in CODES.items() if getattr(record, name) not in codes})


def _parse_line(line: bytes) -> Record | CrawlLine | None:
    if not line.startswith(_CRAWL):
        return parse_record(line)
    try:
        return _crawl_decoder.decode(line)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


# --- writing


class RecordLog:
    """Appends lines to a file, each at once, so that a reader may follow."""

    def __init__(self, path: Path, *, redact: bool = False) -> None:
        """Open *path* for appending, with its folders; :class:`RecordsError` if that cannot be done.

        URLs are written without user and password, and with *redact* without the values in their queries.
        """
        self.path = path
        self._redact = redact
        try:
            permissions.make_folder(path.parent)
            permissions.make_file(path)
            if path.is_file() and not _is_ours(path):
                raise RecordsError(f"DEDUP_LOG = {str(path)!r} has no records", "set another path", misnamed=True)
            self._is_torn = ends_torn(path)
            # Without a buffer: what several processes append stays a line each.
            self._file = open_file(path, "ab", (*FILES, *DEVICES), buffering=0)
        except (OSError, ValueError) as error:  # ValueError: a NUL or a lone surrogate in the path
            detail = getattr(error, "strerror", None) or error
            misnamed = not isinstance(error, OSError) or error.errno in PATH_ERRORS
            remedy = "set another path" if misnamed else "set another path, or make it and its folder writable"
            what = f"DEDUP_LOG = {str(path)!r} cannot be written ({detail})"
            raise RecordsError(what, remedy, misnamed=misnamed) from error

    def append(self, line: Record | CrawlLine) -> None:
        """Write one line; :class:`RecordsError` if the disk fails."""
        # The other URLs were redacted when the pages were read; this one is part of a page.
        if isinstance(line, Record) and line.canonical:
            line = replace(line, canonical=without_secrets(line.canonical, redact=self._redact))
        written = b"\n" * self._is_torn + f"{line.to_line()}\n".encode("ascii")
        try:
            count = self._file.write(written)
        except OSError as error:
            detail = error.strerror or str(error)
        else:
            self._is_torn = count != len(written)
            detail = os.strerror(errno.ENOSPC) if self._is_torn else ""
        if detail:
            raise RecordsError(f"DEDUP_LOG {self.path} cannot be written ({detail})", "Make room on its disk.")

    def close(self) -> None:
        """Close the file."""
        try:
            self._file.close()
        except OSError as error:
            raise RecordsError(f"DEDUP_LOG {self.path} could not be closed ({error.strerror}).") from error


def _is_ours(path: Path) -> bool:
    """Return whether the file *path* has records, by its beginning; an empty one has, and one with a torn line."""
    with open_file(path) as file:
        *whole_lines, rest = file.read(_START).split(b"\n")
    if not whole_lines:
        return any(rest[: len(first)] == first[: len(rest)] for first in (_PAGE, _CRAWL))
    return any(_parse_line(line) is not None for line in whole_lines)


def log_exists(path: Path) -> bool:
    """Return whether there is a file of records at *path*; :class:`RecordsError` where that may not be looked at."""
    try:
        return path.exists()
    except OSError as error:
        raise _unreadable(path, error) from error


def remove_log(path: Path) -> bool:
    """Remove records and return whether there were any; :class:`RecordsError` for another file, or if that fails."""
    try:
        refuse_foreign_log(path)
        path.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise RecordsError(f"The records {path} cannot be removed ({error.strerror}).") from error
    return True


def refuse_foreign_log(path: Path) -> None:
    """Raise :class:`RecordsError` if *path* exists and has no records; ``OSError``."""
    # A link is removed, and not what it leads to.
    if os.path.lexists(path) and not (path.is_file() and _is_ours(path)):
        raise RecordsError(f"The file {path} cannot be removed: it has no records", "remove it yourself")


def pass_through_log(path: Path) -> Path:
    """Return where this process writes its records when another one writes to *path*."""
    return path.with_name(f"{path.stem}.pass-through-{os.getpid()}{path.suffix}")


def pass_through_logs_beside(path: Path) -> list[Path]:
    """Return the files of records that crawls in pass-through have written beside *path*."""
    name = re.compile(rf"{re.escape(path.stem)}\.pass-through-\d+{re.escape(path.suffix)}")
    beside = path.parent.iterdir() if path.parent.is_dir() else ()
    files = (file for file in beside if name.fullmatch(file.name) and file.is_file() and not file.is_symlink())
    return sorted(filter(_is_ours, files))


def logs_of(config: Config) -> list[Path]:
    """Return the files of records that crawls of *config* have written, also in pass-through; :class:`RecordsError`."""
    if config.log is None:
        return []
    logs = [*[config.log] * log_exists(config.log), *pass_through_logs_beside(config.log)]
    for path in logs:
        refuse_foreign_log(path)
    return logs


# --- reading


def opened(path: Path, kinds: Kinds = (*FILES, *STREAMS)) -> BinaryIO:
    """Open the records at *path*; :class:`RecordsError` if it does not exist or cannot be read.

    They may come from another program, as at ``/dev/stdin``, unless they are none of these *kinds*.
    """
    try:
        file: BinaryIO = open_file(path, kinds=kinds)
    except FileNotFoundError:
        raise RecordsError(
            f"No records found at {path}", "Run a crawl first, or use -s DEDUP_LOG=PATH or --spider NAME."
        ) from None
    except (OSError, ValueError) as error:  # ValueError: a NUL or a lone surrogate
        raise _unreadable(path, error) from error
    return file


def _unreadable(path: Path, error: OSError | ValueError) -> RecordsError:
    detail = getattr(error, "strerror", None) or error
    return RecordsError(
        f"The records {str(path)!r} cannot be read ({detail})", "Check its permissions, or name another."
    )


def blocks(file: BinaryIO) -> Iterator[bytes]:
    """Yield what follows in *file*, in whole lines of some hundred kilobytes together; the last line may be torn."""
    rest = b""
    while chunk := file.read(_BLOCK):
        cut = chunk.rfind(b"\n") + 1
        if cut:
            yield rest + chunk[:cut]
            rest = b""
        # The end of a line that is too long is no record.
        rest = rest + chunk[cut:] if len(rest) <= MAX_LINE else b""
    if rest:
        yield rest


def lines_with(path: Path, wanted: bytes, *, ignore_case: bool = False) -> Iterator[bytes]:
    """Yield the lines of the file at *path* that contain *wanted*, in lower case if *ignore_case*, in order."""
    with opened(path) as file:
        for block in blocks(file):
            searched, start = block.lower() if ignore_case else block, 0
            while (found := searched.find(wanted, start)) >= 0:
                start = block.find(b"\n", found) + 1 or len(block)
                yield block[block.rfind(b"\n", 0, found) + 1 : start]


def as_written(text: str) -> bytes:
    """Return the bytes that stand for *text* in a record."""
    return json.dumps(text)[1:-1].encode("ascii")


def lines(path: Path) -> Iterator[Record | CrawlLine]:
    """Yield the lines of the file at *path*, oldest first; what is neither a record nor of a crawl is left out."""
    with opened(path) as file:
        for block in blocks(file):
            for line in block.split(b"\n"):
                if line and (parsed := _parse_line(line)) is not None:
                    yield parsed


def crawl_lines(path: Path) -> Iterator[CrawlLine]:
    """Yield the lines of crawls in the file at *path*, oldest first, without reading the records."""
    for line in lines_with(path, _CRAWL):
        if isinstance(parsed := _parse_line(line), CrawlLine):
            yield parsed


def _from_the_end(path: Path) -> Iterator[Record | CrawlLine]:
    with opened(path, FILES) as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - 2 * MAX_LINE))
        found = file.read().split(b"\n")
    for line in reversed(found):
        if line and (parsed := _parse_line(line)) is not None:
            yield parsed


def last_line(path: Path) -> Record | CrawlLine | None:
    """Return the last line of the file at *path*, if its end has one."""
    return next(_from_the_end(path), None)


def last_crawl_line(path: Path) -> CrawlLine | None:
    """Return the last line of a crawl in the file at *path*, if its end has one."""
    return next((line for line in _from_the_end(path) if isinstance(line, CrawlLine)), None)


def is_named(key: str, text: str) -> bool:
    """Return whether a person may mean the *key* of a record by *text*: all of it, or without its class or quotes."""
    return bool(key) and text in {named for each in (key, key.partition(" ")[2]) for named in (each, each.strip('"'))}


@dataclass(frozen=True, slots=True)
class RecordFilter:
    """Chooses records and dropped items: those that match all of these."""

    host: str | None = None
    """Of the page, as in URLs; its subdomains count."""
    original: str | None = None
    """The URL of the page that it repeats, as records have it."""
    crawl: str | None = None
    min_score: float = 0.0
    below: float = math.inf
    """More than its score."""
    url: str | None = None
    """Of the page, as records have it."""
    key: str | None = None
    """Of the item, as records have it, or without its class or quotes."""

    @property
    def needle(self) -> tuple[bytes, bool]:
        """What the line of such a record contains, the rarest of what is known; and whether in lower case."""
        if text := self.url or self.original or self.key:
            return as_written(text), False
        if self.host:
            return as_written(self.host), True
        return (as_written(self.crawl), False) if self.crawl else (b"{", False)

    def has(self, record: Record | DroppedItem) -> bool:
        """Return whether *record* matches."""
        if self.host and not is_under(host_of(record.url), [self.host]):
            return False
        found = (record.url, record.original_url, record.crawl)
        if any(value and value != has for value, has in zip((self.url, self.original, self.crawl), found, strict=True)):
            return False
        if self.key and (not isinstance(record, Record) or not is_named(record.key, self.key)):
            return False
        return self.min_score <= (record.score or 0.0) < self.below


@dataclass(frozen=True, slots=True)
class Records:
    """The records in the file at *path* that are *wanted*, oldest first; each iteration reads the file again."""

    path: Path
    wanted: RecordFilter = RecordFilter()

    def __iter__(self) -> Iterator[Record]:
        needle, ignore_case = self.wanted.needle
        for line in lines_with(self.path, needle, ignore_case=ignore_case):
            record = None if line.startswith(_CRAWL) else parse_record(line)
            if record is not None and self.wanted.has(record):
                yield record


def records_of(config: Config, wanted: RecordFilter) -> Iterable[Record]:
    """Return the records of *config* that are *wanted*; none where there is no file."""
    return Records(config.log, wanted) if config.log is not None and log_exists(config.log) else ()


def recorded_near(config: Config, url: str) -> Iterator[str]:
    """Yield the URLs of records that differ from *url* in their scheme, a final slash or parameters."""
    if config.log is None or not log_exists(config.log) or not (wanted := bare(url).casefold()):
        return
    for line in lines_with(config.log, as_written(wanted), ignore_case=True):
        record = parse_record(line)
        if record is not None and bare(record.url).casefold() == wanted and len(record.url) <= _MAX_URL:
            yield record.url


def open_records(path: str | PathLike[str], *, crawl: str | None = None, host: str | None = None) -> Records:
    """Return the records in the file at *path*: of *crawl*, ``last`` for the latest, and on *host*, or all.

    ``pandas.DataFrame(record.as_dict() for record in open_records(path))`` has a row for each.
    :class:`RecordsError` if there is no file, or it cannot be read; :class:`ConfigError` if *host* is not a host name.
    """
    opened(log := Path(path)).close()
    return Records(log, RecordFilter(host_named(host), crawl=crawl_named(log, crawl)))


def recorded_url(url: str, config: Config) -> str:
    """Return *url*, typed or copied by a person, as the records of *config* have it; :class:`ConfigError`."""
    return without_secrets(as_requested(url), redact=config.redact_query)


def host_named(host: str | None) -> str | None:
    """Return the *host* that a person has named, as URLs have it; :class:`ConfigError` if it is not a host name."""
    read = None if host is None else as_in_urls(host)
    if read == "":
        raise ConfigError(f"{host!r} is not a host name", "Use for example example.org.")
    return read


def crawl_named(log: Path, crawl: str | None) -> str | None:
    """Return the name of the *crawl* that a person has named: ``last`` is the one that has written the last line."""
    if crawl != LAST:
        return crawl
    if (line := last_line(log)) is None:
        raise RecordsError(f"{log} has no record yet, so there is no last crawl.")
    return line.crawl


def log_of(config: Config) -> Path:
    """Return the path of the configured records; :class:`RecordsError` without one."""
    if config.log is None and config.log_is_default:
        raise RecordsError("No records are named", "Use --spider NAME, or -s DEDUP_LOG=PATH.")
    if config.log is None:
        raise RecordsError("DEDUP_LOG is empty, so no records were kept", "Set it to a path, or leave it out.")
    return config.log
