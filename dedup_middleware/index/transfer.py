"""Moves and merges stores by lines of JSON, and forgets pages.

The first line is of the store: its scheme, its hashing key (with it, colliding pages can be crafted) and the place of
the next page. Then a line a page, oldest first: what a person reads (URL, title, time, crawl, original, score, text),
and what the store has of it. Then a line for each known template, and each override. What a file contains is hostile
until it has been read here. Dropped items stay where they are.
"""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar

import msgspec

from dedup_middleware import bounded
from dedup_middleware.errors import ConfigError, UnreadableError
from dedup_middleware.fingerprints import fingerprinter, published_method
from dedup_middleware.fingerprints.method import unpacked
from dedup_middleware.index import schema
from dedup_middleware.index.in_doubt import Override, read_overrides
from dedup_middleware.index.index import MAX_HOLDERS, Changes
from dedup_middleware.index.lookup import TEXT_LIMIT
from dedup_middleware.index.opening import index_for_command, index_of
from dedup_middleware.stores import adopt_header, open_store, refusals, store_exists
from dedup_middleware.stores.base import SCHEMA_VERSION, Header
from dedup_middleware.stores.files import Holder
from dedup_middleware.urls import host_of, is_under, url_identity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import timedelta
    from pathlib import Path

    from typing_extensions import Self

    from dedup_middleware.index.index import Index
    from dedup_middleware.model import StoredPage

    _T = TypeVar("_T")

FORMAT = "dedup-middleware pages"
VERSION = 4

#: Bytes of a line: a page with the most clauses and the most text that a store keeps of one takes 2 MB.
MAX_LINE = 16 * 2**20
# Lines that cannot be read, and pages to be forgotten, that are named.
_NAMED = 20
# Pages that are imported by one batch: 50 MB in memory.
_PUT_AT_ONCE = 2000
# Pages that are forgotten between two batches that wait for the medium.
_SYNC_INTERVAL = 500


# --- lines


class _Line(msgspec.Struct, omit_defaults=True):
    def to_line(self) -> str:
        """Return it as one line, without its line end; bytes are in base64."""
        return msgspec.json.encode(self).decode("utf8")


class Origin(_Line, tag_field="format", tag=FORMAT):
    """The first line: the store that an export was made of."""

    version: int
    scheme: str
    key: str
    """The hashing key, in hexadecimal."""
    created: str
    place: Annotated[int, msgspec.Meta(ge=1, lt=2**40)]
    """The next page's."""
    learned: bytes = b""
    """What a published method has learned, if one decides there."""

    @classmethod
    def of(cls, header: Header, place: int, learned: bytes = b"") -> Origin:
        """Return the line of a store with this *header*."""
        return cls(VERSION, header.scheme, header.key.hex(), header.created, place, learned)

    @property
    def header(self) -> Header:
        """The header of the store; ``ValueError``."""
        header = Header(SCHEMA_VERSION, self.scheme, bytes.fromhex(self.key), self.created)
        return Header.decode(header.encode())

    @classmethod
    def read(cls, fields: dict[str, Any]) -> Origin:
        """Return what :meth:`to_line` made *fields* of; ``ValueError``."""
        _check(fields.get("version") == VERSION, f"its version is {fields.get('version')!r:.20}, and not {VERSION}")
        origin = msgspec.convert(fields, cls)
        _check(origin.header, "it has no header")
        return origin


class Exported(_Line):
    """The line of a page, with all that a store has of it but its dropped items."""

    url: str
    number: schema.Number
    page: bytes
    title: str = ""
    time: str = ""
    run: str = ""
    original_url: str | None = None
    score: float | None = None
    text: list[str] | None = None
    """Its paragraphs, as far as they are kept."""
    item_text: list[str] | None = None
    """The text of its items, as far as it is kept, where that is not its own text."""
    body_digest: bytes = b""
    unlisted: list[bytes] = []
    """Keys of posting lists that do not lead to it, though it has what they stand for: boilerplate, or suppressed."""
    suspect_of: list[schema.Template] = []
    """The templates that it may fill in."""
    names: list[schema.Identity] = []
    """The identities of what it names as its canonical URL."""
    signature: bytes = b""
    """The signature that a published method gives it, packed."""

    @classmethod
    def of(cls, page: StoredPage, *, original_url: str | None = None, **known: Any) -> Exported:
        """Return the line of *page*; *known* are the fields from `text` on, and *original_url* is for a person."""
        for name in ("text", "item_text"):
            if known.get(name) is not None:
                known[name] = [*map(schema.whole, known[name])]
        return cls(
            url=schema.whole(page.url),
            number=page.number,
            page=schema.encode_page(page),
            title="" if page.features is None else schema.whole(page.features.title),
            time=page.time,
            run=page.run,
            original_url=None if original_url is None else schema.whole(original_url),
            score=None if page.original is None else page.score,
            **known,
        )

    @property
    def stored(self) -> StoredPage:
        """The page, as the store has it; :class:`UnreadableError`."""
        return schema.decode_page(self.number, self.page)

    @classmethod
    def read(cls, fields: dict[str, Any]) -> Exported:
        """Return what :meth:`to_line` made *fields* of; ``ValueError`` if a store cannot have it."""
        line = msgspec.convert(fields, cls)
        page = line.stored
        _check(schema.whole(page.url) == line.url, "its URL is not the one that it was stored under")
        _check(datetime.fromisoformat(page.time).utcoffset() is not None, "it has no time")
        _check(page.identities, "it has no identity")
        return line


class Known(_Line):
    """The line of a template, or of an override."""

    template: schema.Template | None = None
    override: Override | None = None


def _check(holds: object, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)


def is_export(start: bytes) -> bool:
    """Return whether a file that begins so, unpacked, is an export, of this or another version."""
    return start.startswith(b'{"format":' + json.dumps(FORMAT).encode("ascii"))


# --- a store -> lines


class Exporter:
    """The pages of one closed store, those of *host* and its subdomains, or all. It reads, and writes nothing.

    What an unclean shutdown left is read as the next crawl will find it: an original in doubt is not there.
    """

    def __init__(self, index: Index, host: str | None = None) -> None:
        self._index = index
        self._store = index.store
        self._host = host
        self._in_doubt = {number for number, _ in index.in_doubt.left_behind()}
        self.in_doubt = len(self._in_doubt)
        """Originals that a crash has left in doubt; they are left out."""
        self.pages = 0
        """Lines of pages so far."""

    def lines(self) -> Iterator[str]:
        """Yield the lines, without their ends: some 40 gets a page. 100 bytes of memory for each suspect page."""
        (value,) = self._store.get_many([schema.NEXT_PLACE_KEY])
        place = 1 if value is None else schema.decode_number(value)
        learned = b"" if self._index.signatures is None else self._index.signatures.learned()
        yield Origin.of(self._store.header, place, learned).to_line()
        templates = []
        suspects, names = defaultdict[int, list[bytes]](list), defaultdict[int, list[bytes]](list)
        for key, _ in self._store.scan(*schema.TEMPLATES):
            if schema.is_template_key(key):
                templates.append(key[1:])
            else:
                suspects[schema.last_number(key)].append(key[1 : 1 + schema.TEMPLATE_BYTES])
        for key, value in self._store.scan(*schema.CANONICAL):
            names[schema.decode_number(value)].append(key[1:])
        for page in self._index.pages():
            if self._is_wanted(page.url) and page.number not in self._in_doubt:
                yield self._exported(page, suspects.get(page.number, []), names.get(page.number, [])).to_line()
                self.pages += 1
        yield from (Known(template).to_line() for template in templates)
        for override in read_overrides(self._store):
            if self._is_wanted(override.url):
                yield Known(override=override).to_line()

    def _is_wanted(self, url: str) -> bool:
        return self._host is None or is_under(host_of(url), [self._host])

    def _exported(self, page: StoredPage, suspect_of: list[bytes], names: list[bytes]) -> Exported:
        number = page.number
        original = None if page.original is None else self._index.page(page.original)
        listed = sorted(schema.listed([page])) if page.original is None else []
        identities = [schema.identity_key(identity) for identity in page.identities]
        keys = [schema.text_key(number), schema.item_text_key(number), *listed, *identities]
        text, item_text, *values = self._store.get_many(keys)
        with refusals.of_value(self._store.uri):
            lists = zip(listed, values, strict=False)
            unlisted = [key for key, value in lists if number not in schema.decode_postings(value or b"")]
            known = [schema.decode_identity(value) for value in values[len(listed) :] if value is not None]
            paragraphs, of_items = (None if v is None else schema.decode_text(v) for v in (text, item_text))
        return Exported.of(
            page,
            original_url=None if original is None else original.url,
            text=paragraphs,
            item_text=of_items,
            body_digest=next((digest for leads_to, digest in known if leads_to == number), b""),
            unlisted=unlisted,
            suspect_of=suspect_of,
            names=names,
            signature=b"" if self._index.signatures is None else self._index.signatures.packed(number),
        )


# --- lines -> a store


class Entry(NamedTuple):
    """A page in the spool; sorted, originals come first, and the oldest of them before the others."""

    is_duplicate: bool
    time: str
    number: int
    origin: int
    """The place of its store in `Spool.origins`."""
    offset: int
    original: int | None


class Spool:
    """The pages of some files, on disk, in a private temporary file; 250 bytes each in memory.

    Files are read to their end and checked before anything is written. They may be compressed, cut off, or no such
    files at all; what cannot be read is counted and left out.
    """

    def __init__(self) -> None:
        self.origins: list[Origin] = []
        self.entries: list[Entry] = []
        self.pairs: list[tuple[bytes, bytes]] = []
        """What a store is to have beside the pages: templates and overrides."""
        self.refused: list[str] = []
        """The first lines that cannot be read: where they are and why."""
        self.refusals = 0
        """How many there are."""
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the spool is left

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def read(self, path: Path) -> None:
        """Read the file *path*: 0.2 ms a page. :class:`ConfigError` where it cannot be read, or is no export."""
        try:
            with bounded.opened(path) as file:
                self._read_lines(path, bounded.lines(file, MAX_LINE))
        except OSError as error:
            raise ConfigError(
                f"{path} cannot be read ({error.strerror or error}); name another file, or, if {tempfile.gettempdir()} "
                "is full, another folder in the environment variable TMPDIR"
            ) from error

    def pages(self, entries: Iterable[Entry]) -> Iterator[tuple[Entry, Exported]]:
        """Yield the pages of *entries*, in their order."""
        decoder = msgspec.json.Decoder(Exported)
        for entry in entries:
            self._file.seek(entry.offset)
            yield entry, decoder.decode(self._file.readline())

    def refuse(self, where: str, why: str) -> None:
        """Note that something is left out, *where* and *why*."""
        self.refusals += 1
        if len(self.refused) < _NAMED:
            self.refused.append(f"{where}: {why}")

    def _read_lines(self, path: Path, lines: Iterator[bytes | None]) -> None:
        numbers: set[int] | None = None
        try:
            for count, line in enumerate(lines, 1):
                fields = None if line is None else _object(line)
                if fields is not None and fields.get("format") == FORMAT:
                    self._add_origin(path, fields)
                    numbers = set()
                elif numbers is None:
                    break
                else:
                    try:
                        self._add(fields, numbers)
                    except ValueError as error:
                        self.refuse(f"{path}, line {count}", str(error))
        except UnreadableError as error:
            self.refuse(str(path), str(error))
        if numbers is None:
            raise ConfigError(f"{path} is not an export of a store: make one with `scrapy dedup store export -o FILE`")

    def _add_origin(self, path: Path, fields: dict[str, Any]) -> None:
        try:
            self.origins.append(Origin.read(fields))
        except ValueError as error:
            raise ConfigError(f"{path} cannot be imported: {error}; export the store again") from error

    def _add(self, fields: dict[str, Any] | None, numbers: set[int]) -> None:
        if fields is None:
            raise UnreadableError("the line cannot be read, or is cut off or too long")
        if "url" not in fields:
            known = msgspec.convert(fields, Known)
            _check(known != Known(), "it is neither a page nor a template nor an override")
            self.pairs += [(schema.template_key(known.template), b"")] if known.template is not None else []
            self.pairs += [known.override.encode()] if known.override is not None else []
        else:
            exported = Exported.read(fields)
            page, offset = exported.stored, self._file.seek(0, 2)
            _check(page.number not in numbers, "another page has its number")
            # Not the line itself: of JSON, what is read here may be more than what `pages` can read.
            self._file.write(exported.to_line().encode("utf8") + b"\n")
            numbers.add(page.number)
            origin = len(self.origins) - 1
            self.entries.append(Entry(page.original is not None, page.time, page.number, origin, offset, page.original))


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        fields = bounded.loads(line)
    except UnreadableError:
        return None
    return fields if isinstance(fields, dict) else None


def is_empty(uri: str) -> bool:
    """Return whether the store at *uri* has no page, or is not there; :class:`StoreError` if it cannot be opened."""
    if not store_exists(uri):
        return True
    with index_for_command(uri, "store import") as (_, index):
        return next(index.pages(), None) is None


def fill(uri: str, spool: Spool, *, fingerprint: str) -> dict[str, int]:
    """Let the empty store at *uri*, which is made if it is not there, be the one that the pages in *spool* are of.

    It has the same key then, and makes the same verdicts. *fingerprint* as for `index_for_command`. Returns how many
    originals and duplicates it has.
    """
    (origin,) = spool.origins
    holder = Holder.this_process("scrapy dedup store import", brief=True)
    store = open_store(uri, fingerprint_scheme=fingerprinter(fingerprint).scheme, holder=holder)
    try:
        adopt_header(store, replace(origin.header, is_partial=True))
        numbers = {entry.number for entry in spool.entries}
        entries = []
        for entry in sorted(spool.entries, key=lambda entry: entry.number):
            if entry.original is None or entry.original in numbers:
                entries.append(entry)
            else:
                spool.refuse(f"page {entry.number}", "the page that it repeats is not in the file")
        place = max([origin.place, *(schema.place_of(entry.number) + 1 for entry in entries)])
        # First: where an import is interrupted, no later page may take the number of one that is there.
        store.write([(schema.NEXT_PLACE_KEY, schema.encode_number(place))])
        index = index_of(store, method=published_method(fingerprint))
        if index.signatures is not None and origin.learned:
            index.signatures.remember(origin.learned)
        put_pages(index, (exported for _, exported in spool.pages(entries)))
        store.write(spool.pairs, sync=True)
        adopt_header(store, origin.header)
    finally:
        store.close()
    duplicates = sum(entry.is_duplicate for entry in entries)
    return {"originals": len(entries) - duplicates, "duplicates": duplicates}


def put_pages(index: Index, pages: Iterable[Exported]) -> None:
    """Write *pages*, oldest first, into the store of *index* under the numbers that they had."""
    for step in _in_steps(pages, _PUT_AT_ONCE):
        changes, postings = Changes(index), defaultdict[bytes, list[int]](list)
        for exported in step:
            page, named = exported.stored, schema.encode_number(exported.number)
            changes.put_page(page, _packed(exported.text), _packed(exported.item_text), exported.body_digest)
            changes.puts += [(schema.suspect_key(template, page.number), b"") for template in exported.suspect_of]
            changes.puts += [(schema.canonical_key(identity), named) for identity in exported.names]
            if page.original is None:
                for key in schema.listed([page]).difference(exported.unlisted):
                    postings[key].append(page.number)
                if index.signatures is not None and exported.signature:
                    signature = index.signatures.with_keys(unpacked(exported.signature))
                    changes.puts += index.signatures.changes((), page.number, signature)[0]
        # In their order, both gets and puts take a fraction of the time.
        keys = sorted(postings)
        for key, value in zip(keys, index.store.get_many(keys), strict=True):
            numbers = [*schema.decode_postings(value or b""), *postings[key]]
            changes.puts.append((key, schema.encode_postings(numbers[:MAX_HOLDERS])))
        changes.write()


def _packed(text: list[str] | None) -> bytes | None:
    return None if text is None else schema.encode_text(text, TEXT_LIMIT)


def _in_steps(values: Iterable[_T], size: int) -> Iterator[list[_T]]:
    rest = iter(values)
    while step := list(islice(rest, size)):
        yield step


# --- pages that are forgotten


@dataclass(frozen=True, slots=True)
class Forgettable:
    """Which pages: all that have every one of these."""

    url: str | None = None
    """As a request has it, or as the store shows it."""
    host: str | None = None
    """As in URLs; its subdomains count."""
    older_than: timedelta | None = None
    """Stored longer ago than that, and not written since."""

    def has(self, page: StoredPage, now: datetime) -> bool:
        """Return whether *page* is one of them."""
        if self.url is not None and page.url != self.url and url_identity(self.url) not in page.identities:
            return False
        if self.host is not None and not is_under(host_of(page.url), [self.host]):
            return False
        return self.older_than is None or datetime.fromisoformat(page.time) < now - self.older_than


@dataclass(slots=True)
class Chosen:
    """The pages to be forgotten, by number: 100 bytes each in memory."""

    originals: set[int] = field(default_factory=set)
    duplicates: set[int] = field(default_factory=set)
    """With those whose original is forgotten."""
    in_doubt: int = 0
    """Pages that stay, because a crawl is to release or to roll back what a crash has left."""
    urls: list[str] = field(default_factory=list)
    """The first few."""

    def __len__(self) -> int:
        """Return how many pages there are."""
        return len(self.originals) + len(self.duplicates)


def choose(index: Index, wanted: Forgettable) -> Chosen:
    """Return the pages of *index* that are *wanted*, and the duplicates of those that are originals; writes nothing.

    Reads every page.
    """
    now, chosen = datetime.now(timezone.utc), Chosen()
    awaited = {schema.decode_number(key[1:]) for key, _ in index.store.scan(*schema.IN_DOUBT)}
    awaited |= {item.number for item in index.dropped.get(key[1:] for key, _ in index.store.scan(*schema.RELEASES))}
    stay: set[int] = set()
    for page in index.pages():
        if not wanted.has(page, now):
            continue
        if page.number in awaited:
            stay.add(page.number)
        elif page.original is not None:
            chosen.duplicates.add(page.number)
        else:
            chosen.originals.add(page.number)
            repeats = {*index.duplicates_of(page.number)}
            stay |= repeats & awaited
            chosen.duplicates |= repeats - awaited
    chosen.in_doubt = len(stay)
    first = map(index.page, sorted(chosen.originals | chosen.duplicates)[:_NAMED])
    chosen.urls = [page.url for page in first if page is not None]
    return chosen


def forget(index: Index, chosen: Chosen) -> None:
    """Remove the *chosen* pages, 1 ms each: a batch a page, so that what a crash leaves is whole.

    Duplicates go first: each has its original as long as it is there.
    """
    store = index.store
    for step in _in_steps([*sorted(chosen.duplicates), *sorted(chosen.originals)], _SYNC_INTERVAL):
        index.remove(step)
        items = index.dropped.get(key for number in step for key in index.dropped.of_page(number))
        store.write([], index.dropped.deletes(items), sync=True)
    suspects = (key for key, _ in store.scan(*schema.TEMPLATES) if not schema.is_template_key(key))
    gone = (key for key in suspects if schema.last_number(key) in chosen.duplicates)
    for keys in _in_steps(gone, _SYNC_INTERVAL):
        store.write([], keys, sync=True)
