"""Pages of a store <-> lines of JSON, by which a store is moved and merged.

The first line, of a store: its scheme, its hashing key (who has it can craft pages that collide) and the next place in
line. Then a line a page, oldest first: what a person reads (URL, title, time, crawl, original, score, text), and what
the store has of it. Then a line for each text that is known to be a template, and each override. What a file contains
is hostile until it has been read here. Dropped items stay where they are.
"""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from dedup_middleware import bounded
from dedup_middleware.errors import ConfigError, UnreadableError
from dedup_middleware.fingerprints import fingerprinter, published_method
from dedup_middleware.index import schema
from dedup_middleware.index.in_doubt import Override, read_overrides
from dedup_middleware.index.index import Changes
from dedup_middleware.index.lookup import COMMON_IN_STORE, TEXT_LIMIT
from dedup_middleware.index.opening import index_for_command
from dedup_middleware.index.prints import PrintIndex
from dedup_middleware.index.shared import OpenClaims
from dedup_middleware.stores import adopt_header, open_store, refusals, store_exists
from dedup_middleware.stores.base import SCHEMA_VERSION, Header
from dedup_middleware.stores.files import Holder
from dedup_middleware.urls import host_of, is_under

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from typing_extensions import Self

    from dedup_middleware.index.index import Index
    from dedup_middleware.model import StoredPage
    from dedup_middleware.stores import OpenStore

FORMAT = "dedup-middleware pages"
VERSION = 3

#: Bytes of a line: a page with the most clauses and the most text that a store keeps of one takes 2 MB.
MAX_LINE = 16 * 2**20
_MAX_PLACE = 2**40 - 1
_COMMAND = "scrapy dedup store import"
# Lines that cannot be read of which it is said where they are.
_NAMED = 20
# Posting lists that lead to a news page: its clauses, and its text as a whole.
_KEYS_A_PAGE = 41
# Posting lists that are written in one batch.
_LISTS_AT_ONCE = 10_000


# --- lines


class _StoreLine(msgspec.Struct):
    """The first line; the hashing key in hexadecimal."""

    format: str
    version: int
    scheme: str
    key: str
    created: str
    place: int
    learned: bytes = b""


class _PageLine(msgspec.Struct, omit_defaults=True):
    """A line of a page; bytes in base64."""

    url: str
    number: int
    page: bytes
    title: str = ""
    time: str = ""
    run: str = ""
    original_url: str | None = None
    score: float | None = None
    text: list[str] | None = None
    item_text: list[str] | None = None
    body_digest: bytes = b""
    unlisted: list[bytes] = []
    suspect_of: list[bytes] = []
    names: list[bytes] = []
    made: bytes = b""


@dataclass(frozen=True, slots=True)
class Origin:
    """The store that an export was made of."""

    header: Header
    place: int
    """The next page's, in line."""
    learned: bytes = b""
    """What a published method has learned, if one decides there."""

    def to_line(self) -> str:
        """Return it as one line, without its line end."""
        header = self.header
        line = _StoreLine(FORMAT, VERSION, header.scheme, header.key.hex(), header.created, self.place, self.learned)
        return msgspec.json.encode(line).decode("ascii")

    @classmethod
    def read(cls, fields: dict[str, Any]) -> Origin:
        """Return what :meth:`to_line` made *fields* of; `UnreadableError`."""
        if fields.get("version") != VERSION:
            raise UnreadableError(f"its version is {fields.get('version')!r:.20}, and this release reads {VERSION}")
        try:
            line = msgspec.convert(fields, _StoreLine)
            header = Header(SCHEMA_VERSION, line.scheme, bytes.fromhex(line.key), line.created)
            return cls(Header.decode(header.encode()), _place(line.place), line.learned)
        except ValueError as error:
            raise UnreadableError(f"its first line cannot be read: {error}") from error


@dataclass(frozen=True, slots=True)
class Exported:
    """A page, with all that a store has of it but its dropped items."""

    page: StoredPage
    text: tuple[str, ...] | None
    """Its paragraphs, as far as they are kept."""
    item_text: tuple[str, ...] | None
    """The text of its items, as far as it is kept, where that is not its own text."""
    body_digest: bytes = b""
    unlisted: frozenset[bytes] = frozenset()
    """Keys of posting lists that do not lead to it, though it has what they stand for: boilerplate, or suppressed."""
    suspect_of: tuple[bytes, ...] = ()
    """The templates that it may fill in."""
    names: tuple[bytes, ...] = ()
    """The identities of what it names as its story's own page."""
    made: bytes = b""
    """What a published method has made of it."""

    def to_line(self, original_url: str | None) -> str:
        """Return it as one line, without its line end; *original_url* is for a person who reads it."""
        page = self.page
        line = _PageLine(
            _whole(page.url),
            page.number,
            schema.encode_page(page),
            "" if page.features is None else _whole(page.features.title),
            page.time,
            _whole(page.run),
            None if original_url is None else _whole(original_url),
            None if page.original is None else page.score,
            _whole_texts(self.text),
            _whole_texts(self.item_text),
            self.body_digest,
            sorted(self.unlisted),
            [*self.suspect_of],
            [*self.names],
            self.made,
        )
        return msgspec.json.encode(line).decode("utf8")

    @classmethod
    def read(cls, fields: dict[str, Any]) -> Exported:
        """Return what :meth:`to_line` made *fields* of; `UnreadableError` if a store cannot have it."""
        try:
            line = msgspec.convert(fields, _PageLine)
            _place(schema.place_of(line.number))
            page = schema.decode_page(line.number, line.page)
            _check(_whole(page.url) == line.url, "its URL is not the one that it was stored under")
            _check(datetime.fromisoformat(page.time).utcoffset() is not None, "it has no time")
            _check(0 <= page.score <= 1, "its score is not valid")
            _check(page.identities, "it has no identity")
            return cls(
                page,
                None if line.text is None else tuple(line.text),
                None if line.item_text is None else tuple(line.item_text),
                line.body_digest,
                frozenset(line.unlisted),
                tuple(template_of(template) for template in line.suspect_of),
                tuple(_of_size(identity, schema.IDENTITY_BYTES) for identity in line.names),
                line.made,
            )
        except UnreadableError:
            raise
        except ValueError as error:
            raise UnreadableError(f"a page cannot be read: {error}") from error


def template_line(template: bytes) -> str:
    """Return the line, without its end, that marks a text as a template."""
    return json.dumps({"template": template.hex()})


def template_of(template: bytes) -> bytes:
    """Return *template*, if it can be a template hash; ``ValueError``."""
    return _of_size(template, schema.TEMPLATE_BYTES)


def _override_of(fields: object) -> Override:
    override = msgspec.convert(fields, Override)
    _check(override.identities and override.original_identities, "a page has no identity")
    for identity in (*override.identities, *override.original_identities):
        _of_size(identity, schema.IDENTITY_BYTES)
    return override


def _check(holds: object, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)


def _of_size(value: bytes, size: int) -> bytes:
    _check(len(value) == size, f"it has {len(value)} bytes where {size} must be")
    return value


def _place(place: int) -> int:
    _check(1 <= place <= _MAX_PLACE, "it has no place in line")
    return place


def _whole(text: str) -> str:
    """Return *text* as JSON can have it: without half a character."""
    return text.encode("utf8", "replace").decode("utf8")


def _whole_texts(texts: Iterable[str] | None) -> list[str] | None:
    return None if texts is None else [*map(_whole, texts)]


# --- a store -> lines


class Exporter:
    """The pages of one closed store, those of *host* and its subdomains, or all. It reads, and writes nothing.

    What an unclean shutdown left is read as the next crawl will find it: an original in doubt is not there.
    """

    def __init__(self, store: OpenStore, index: Index, host: str | None = None) -> None:
        self._store = store
        self._index = index
        self._host = host
        self._in_doubt = {number for number, _ in index.in_doubt.left_behind()}
        self.in_doubt = len(self._in_doubt)
        """Originals that a crash has left in doubt; they are left out."""
        self.pages = 0
        """Lines of pages so far."""

    def lines(self) -> Iterator[str]:
        """Yield the lines, without their ends: some 40 gets a page, 1 ms. 100 bytes of memory for each suspect page."""
        (value,) = self._store.get_many([schema.NEXT_PLACE_KEY])
        place = 1 if value is None else schema.decode_number(value)
        learned = b"" if self._index.prints is None else self._index.prints.learned()
        yield Origin(self._store.header, place, learned).to_line()
        templates, suspects = self._templates()
        names = self._names()
        for page in self._index.pages():
            if self._is_wanted(page.url) and page.number not in self._in_doubt:
                original = None if page.original is None else self._index.page(page.original)
                exported = self._exported(page, suspects.get(page.number, []), names.get(page.number, []))
                yield exported.to_line(None if original is None else original.url)
                self.pages += 1
        yield from map(template_line, templates)
        for override in read_overrides(self._store):
            if self._is_wanted(override.url):
                yield msgspec.json.encode({"override": override}).decode("utf8")

    def _is_wanted(self, url: str) -> bool:
        return self._host is None or is_under(host_of(url), [self._host])

    def _templates(self) -> tuple[list[bytes], dict[int, list[bytes]]]:
        """Return the texts that are known to be templates, and by page those that it may fill in."""
        templates: list[bytes] = []
        suspects: defaultdict[int, list[bytes]] = defaultdict(list)
        for key, _ in self._store.scan(*schema.TEMPLATES):
            if schema.is_template_key(key):
                templates.append(key[1:])
            else:
                suspects[schema.last_number(key)].append(schema.suspected_template(key))
        return templates, suspects

    def _names(self) -> dict[int, list[bytes]]:
        """Return by page the identities of what it names as its story's own."""
        names: defaultdict[int, list[bytes]] = defaultdict(list)
        for key, value in self._store.scan(*schema.CANONICAL):
            names[schema.decode_number(value)].append(key[1:])
        return names

    def _exported(self, page: StoredPage, suspect_of: Iterable[bytes], names: Iterable[bytes]) -> Exported:
        number, store = page.number, self._store
        keys = sorted(schema.listed([page])) if page.original is None else []
        identities = [schema.identity_key(identity) for identity in page.identities]
        texts = [schema.text_key(number), schema.item_text_key(number)]
        with refusals.of_value(store.uri, UnreadableError):
            lists = zip(keys, store.get_many(keys), strict=True)
            unlisted = [key for key, value in lists if value is None or number not in schema.decode_postings(value)]
            known = [schema.decode_identity(value) for value in store.get_many(identities) if value is not None]
            text, item_text = (None if v is None else tuple(schema.decode_text(v)) for v in store.get_many(texts))
        return Exported(
            page,
            text,
            item_text,
            next((digest for leads_to, digest in known if leads_to == number), b""),
            frozenset(unlisted),
            tuple(suspect_of),
            tuple(names),
            b"" if self._index.prints is None else self._index.prints.packed(number),
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
        self.templates: set[bytes] = set()
        self.overrides: list[Override] = []
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
            raise ConfigError(f"{path} cannot be read ({error.strerror or error}); name another file") from error

    def pages(self, entries: Iterable[Entry]) -> Iterator[tuple[Entry, Exported]]:
        """Yield the pages of *entries*, in their order."""
        for entry in entries:
            self._file.seek(entry.offset)
            yield entry, Exported.read(bounded.loads(self._file.readline()))

    @property
    def pairs(self) -> Iterator[tuple[bytes, bytes]]:
        """What a store is to have beside the pages."""
        yield from ((schema.template_key(template), b"") for template in self.templates)
        yield from map(Override.encode, self.overrides)

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
                    self._add(f"{path}, line {count}", line, fields, numbers)
        except UnreadableError as error:
            self.refuse(str(path), str(error))
        if numbers is None:
            raise ConfigError(f"{path} is no export of a store: make one with `scrapy dedup store export -o FILE`")

    def _add_origin(self, path: Path, fields: dict[str, Any]) -> None:
        try:
            self.origins.append(Origin.read(fields))
        except UnreadableError as error:
            raise ConfigError(f"{path} cannot be imported: {error}") from error

    def _add(self, where: str, line: bytes | None, fields: dict[str, Any] | None, numbers: set[int]) -> None:
        try:
            if line is None or fields is None:
                raise UnreadableError("the line cannot be read, or is cut off or too long")
            if "template" in fields:
                self.templates.add(template_of(bytes.fromhex(str(fields["template"]))))
                return
            if "override" in fields:
                self.overrides.append(_override_of(fields["override"]))
                return
            page = Exported.read(fields).page
            if page.number in numbers:
                raise UnreadableError("another page has its number")
        except ValueError as error:
            self.refuse(where, str(error))
            return
        numbers.add(page.number)
        offset = self._file.seek(0, 2)
        self._file.write(line + b"\n")
        entry = Entry(page.original is not None, page.time, page.number, len(self.origins) - 1, offset, page.original)
        self.entries.append(entry)


def is_export(start: bytes) -> bool:
    """Return whether a file that begins so, unpacked, is an export, of this or another version."""
    return start.startswith(b'{"format":' + json.dumps(FORMAT).encode("ascii"))


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

    It has the same key then, and makes the same verdicts. *fingerprint* as for `index_for_upkeep`. Returns how many
    originals and duplicates it has. 0.1 ms a page.
    """
    (origin,) = spool.origins
    scheme, method = fingerprinter(fingerprint).scheme, published_method(fingerprint)
    store = open_store(uri, fingerprint_scheme=scheme, holder=Holder.this_process(_COMMAND, brief=True))
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
        prints = None if method is None else PrintIndex(store, OpenClaims(), method)
        if prints is not None and origin.learned:
            prints.remember(origin.learned)
        put_pages(store, (exported for _, exported in spool.pages(entries)), count=len(entries), prints=prints)
        store.write([*spool.pairs], sync=True)
        adopt_header(store, origin.header)
    finally:
        store.close()
    duplicates = sum(entry.is_duplicate for entry in entries)
    return {"originals": len(entries) - duplicates, "duplicates": duplicates}


def put_pages(store: OpenStore, pages: Iterable[Exported], *, count: int, prints: PrintIndex | None = None) -> None:
    """Write *pages*, about *count*, into *store*, which has none, under the numbers that they had."""
    with PostingSpool(count * _KEYS_A_PAGE) as postings:
        for exported in pages:
            _put(store, exported, postings, prints)
        lists = postings.lists(COMMON_IN_STORE + 2)
        while batch := [*islice(lists, _LISTS_AT_ONCE)]:
            store.write(batch)


def _put(store: OpenStore, exported: Exported, postings: PostingSpool, prints: PrintIndex | None) -> None:
    """Write a page under the number that it had, in one batch, and note which *postings* lead to it."""
    page = exported.page
    changes = Changes(store, 0)
    changes.put_page(page, _packed(exported.text), _packed(exported.item_text), exported.body_digest)
    changes.puts += [(schema.suspect_key(template, page.number), b"") for template in exported.suspect_of]
    named = schema.encode_number(page.number)
    changes.puts += [(schema.canonical_key(identity), named) for identity in exported.names]
    if page.original is None:
        postings.add(schema.listed([page]) - exported.unlisted, page.number)
        if prints is not None and exported.made:
            puts, _ = prints.changes((), page.number, prints.remade(exported.made))
            changes.puts += puts
    changes.write()


def _packed(text: tuple[str, ...] | None) -> bytes | None:
    return None if text is None else schema.encode_text(text, TEXT_LIMIT)


# The kind of a key and two bytes of its hash tell its bucket: of these 24 bits so many that a bucket can be sorted in
# memory. 300 000 entries are some 25 MB.
_STEERING_BYTES, _HASH_BITS = 3, 16
_IN_BUCKET, _MAX_SPLIT = 300_000, 12
# Bytes held back before they go to the files.
_HELD = 64 * 2**20


class PostingSpool:
    """Who holds which clause or text; in a temporary folder, of some 600 bytes a news page."""

    def __init__(self, entries: int) -> None:
        """Make room for about so many *entries*, a page under a key each; it may be more or fewer."""
        split = max(0, min((entries // _IN_BUCKET).bit_length(), _MAX_SPLIT))
        self._shift = _HASH_BITS - split
        self._folder = tempfile.TemporaryDirectory(prefix="dedup-import-")
        self._held: defaultdict[int, bytearray] = defaultdict(bytearray)
        self._bytes = 0
        self._widths: dict[int, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def add(self, keys: Iterable[bytes], number: int) -> None:
        """Let the posting lists under *keys* have the page *number*; 0.3 µs a key. `ConfigError` without room."""
        held, shift, encoded = self._held, self._shift, schema.encode_number(number)
        for key in keys:
            held[int.from_bytes(key[:_STEERING_BYTES], "big") >> shift] += key + encoded
            self._widths[key[0]] = len(key)
            self._bytes += len(key) + len(encoded)
        if self._bytes > _HELD:
            self._flush()

    def lists(self, max_holders: int) -> Iterator[tuple[bytes, bytes]]:
        """Yield the lists as a store has them, in the order of their keys, each with its oldest pages alone."""
        self._flush()
        longest = max_holders * len(schema.encode_number(0))
        for file in sorted(Path(self._folder.name).iterdir()):
            width = self._widths[int(file.name, 16) >> (_HASH_BITS - self._shift)]
            under, held = b"", b""
            for entry in _sorted(file.read_bytes(), width + len(schema.encode_number(0))):
                key, number = entry[:width], entry[width:]
                if key == under:
                    held += number
                    continue
                if under:
                    yield under, held[:longest]
                under, held = key, number
            yield under, held[:longest]

    def _flush(self) -> None:
        try:
            for bucket, entries in self._held.items():
                with Path(self._folder.name, f"{bucket:06x}").open("ab") as file:
                    file.write(entries)
        except OSError as error:
            raise ConfigError(
                f"{self._folder.name} cannot be written ({error.strerror or error}): make room there, "
                "or name another folder in the environment variable TMPDIR"
            ) from error
        self._held.clear()
        self._bytes = 0


def _sorted(entries: bytes, width: int) -> list[bytes]:
    return sorted(entries[at : at + width] for at in range(0, len(entries), width))
