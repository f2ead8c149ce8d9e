"""What of a damaged store holds together: half a page must never drop anything.

It reads the keys of `codec` and of `hamming`, decides which of them a repaired copy keeps, and
reports what is missing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dedup_middleware.errors import UnreadableError
from dedup_middleware.index import codec, page_codec, shared_codec
from dedup_middleware.index.hamming import HOLDER
from dedup_middleware.index.whole_texts import equals_key
from dedup_middleware.stores.repair import repair_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dedup_middleware.model import StoredPage

    Scan = Callable[[bytes, bytes], Iterator[tuple[bytes, bytes]]]

_TEXTS = (b"t", b"u")
_FIRST, _END = b"\x01", b"\xff" * 64
_A_PLACE = codec.page_number(1, "")
_KINDS = ("pages", "texts", "postings", "identities", "paragraph fingerprints")
_MISSING = "pages that are named and missing"
# What only those have who are at work: the workers themselves, and their open claims.
_OF_WORKERS = (shared_codec.WORKERS[0], shared_codec.CLAIMED[0], shared_codec.claims_key(b""))
_HOLDER_BYTES = len(HOLDER) + codec.SIMHASH_BYTES


@dataclass(frozen=True, slots=True)
class _Known:
    """What must agree with a page, packed."""

    repeats: int | None
    """Its owner, for a duplicate."""
    hashes: bytes
    hash_bytes: int
    identities: tuple[bytes, ...]
    simhashes: frozenset[int]
    equals: bytes | None
    """The key under which its whole text leads to it."""

    @classmethod
    def of(cls, page: StoredPage) -> _Known:
        equals = equals_key(page.exact_digest, page.features)
        size = len(next(iter(page.hashes), b""))
        return cls(page.owner, b"".join(page.hashes), size, page.identities, page.simhashes, equals)

    @property
    def owner(self) -> bool:
        return self.repeats is None

    def holds(self, clause_hash: bytes) -> bool:
        at = self.hashes.find(clause_hash)
        while at >= 0 and at % self.hash_bytes:
            at = self.hashes.find(clause_hash, at + 1)
        return self.owner and at >= 0 and len(clause_hash) == self.hash_bytes


class ConsistencyFilter:
    """Keeps the pages that are whole, and of all else what belongs to one of them.

    Takes about 1 kB of memory a page. A page is whole if it can be read and, for an owner in a store that keeps texts,
    its text too: without it there would be no second opinion. What it does not know it keeps.
    """

    def __init__(self, scan: Scan) -> None:
        """Read the pages and texts of *scan*."""
        self._scan = scan
        self.left_out = Counter(dict.fromkeys((*_KINDS, _MISSING), 0))
        """By kind: how many were left out, and how many pages something names that are not there."""
        self._missing: set[int] = set()
        # Open claims are nobody's once no worker is there, and nothing is wrong with what leads to them.
        self._claimed = {codec.decode_number(key[1:]) for key, _ in scan(*shared_codec.CLAIMED)}
        self._texts, self._keeps_texts = set[int](), False
        self._read_texts()
        self._pages = {page.number: _Known.of(page) for page in self._whole_pages()}

    @property
    def kept(self) -> dict[str, int]:
        """How many pages are kept, by kind."""
        owners = sum(page.owner for page in self._pages.values())
        return {"owners": owners, "duplicates": len(self._pages) - owners}

    def pairs(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield what the repaired copy is to hold, in the order of keys but for what is made anew."""
        place = 1 + max((number // _A_PLACE for number in self._pages), default=0)
        line = codec.Line(is_counted=False)
        for key, value in self._scan(_FIRST, _END):
            if key == codec.NEXT_PLACE_KEY:
                line = codec.decode_line(value)
            elif self._is_of_worker(key):
                continue
            elif key[:1] != codec.REPEATS[0] and (filtered := self._filtered(key, value)) is not None:
                yield key, filtered
        # Too low a number would give new pages the places of old ones.
        counts = (self.kept["owners"], self.kept["duplicates"])
        yield codec.NEXT_PLACE_KEY, codec.encode_line(codec.Line(max(place, line.place), *counts, line.is_counted))
        for number, page in self._pages.items() if line.is_counted else ():
            if page.repeats is not None:
                yield codec.repeat_key(page.repeats, number), b""
        self.left_out[_MISSING] = len(self._missing)

    def _read_texts(self) -> None:
        for key, value in self._scan(*_TEXTS):
            self._keeps_texts = True
            if _is_text(value):
                self._texts.add(codec.decode_number(key[1:]))

    def _whole_pages(self) -> Iterator[StoredPage]:
        for key, value in self._scan(*codec.PAGES):
            try:
                page = page_codec.decode_page(codec.decode_number(key[1:]), value)
            except UnreadableError:
                self.left_out["pages"] += 1
                continue
            if page.owner is None and self._keeps_texts and page.number not in self._texts:
                self.left_out["pages"] += 1
            else:
                yield page

    def _filtered(self, key: bytes, value: bytes) -> bytes | None:
        """Return *value* as it is to be kept under *key*; ``None`` if nothing of it is."""
        kind = key[:1]
        if kind in (b"c", b"e"):
            is_clause = kind == b"c"
            return self._postings(value, lambda p: p.holds(key[1:]) if is_clause else p.owner and p.equals == key)
        if kind in (b"p", b"u", b"d", b"a"):
            named = value if kind == b"a" else key[1:]
            number = codec.last_number(key) if kind == b"d" else codec.decode_number(named)
            return value if number in self._pages or codec.is_template_key(key) else None
        if kind == b"i":
            page = self._page(codec.decode_identity(value)[0])
            return self._kept("identities", value, sound=page is not None and key[1:] in page.identities)
        if kind in (b"t", b"s"):
            number = codec.decode_number(key[1:])
            return self._kept("texts", value, sound=self._page(number) is not None and _is_text(value))
        if key.startswith(HOLDER):
            page = self._page(codec.decode_number(key[_HOLDER_BYTES:]))
            bits = codec.decode_simhash(key[len(HOLDER) : _HOLDER_BYTES])
            return self._kept("paragraph fingerprints", value, sound=page is not None and bits in page.simhashes)
        return value

    def _postings(self, value: bytes, belongs: Callable[[_Known], bool]) -> bytes | None:
        try:
            numbers = codec.decode_postings(value)
        except UnreadableError:
            return self._kept("postings", value, sound=False)
        numbers = tuple(n for n in numbers if n not in self._claimed)
        kept = tuple(n for n in numbers if (page := self._page(n)) is not None and belongs(page))
        self.left_out["postings"] += len(numbers) - len(kept)
        return codec.encode_postings(kept) if kept else None

    def _is_of_worker(self, key: bytes) -> bool:
        """Tell whether *key* is there for a worker's sake alone."""
        return key[:1] in _OF_WORKERS or (key[:1] == _TEXTS[0] and codec.decode_number(key[1:]) in self._claimed)

    def _page(self, number: int) -> _Known | None:
        page = self._pages.get(number)
        if page is None:
            self._missing.add(number)
        return page

    def _kept(self, kind: str, value: bytes, *, sound: bool) -> bytes | None:
        self.left_out[kind] += not sound
        return value if sound else None


def _is_text(value: bytes) -> bool:
    try:
        codec.decode_text(value)
    except UnreadableError:
        return False
    return True


def repair(uri: str) -> dict[str, Any]:
    """Make a repaired copy of the store at *uri*, and return what it holds and what is missing.

    Raises what :func:`~dedup_middleware.stores.repair.repair_store` raises.
    """
    filters: list[ConsistencyFilter] = []

    def sound(scan: Scan) -> Iterator[tuple[bytes, bytes]]:
        filters.append(ConsistencyFilter(scan))
        return filters[0].pairs()

    repaired = repair_store(uri, sound=sound)
    (filter_,) = filters
    return {
        "store": uri,
        "copy": repaired.uri,
        "kept": filter_.kept,
        "left_out": dict(filter_.left_out),
        "batches_missing": repaired.batches_missing,
        "pairs_read": repaired.read,
        "pairs_written": repaired.written,
    }


def repair_text(report: dict[str, Any]) -> str:
    """Return what :func:`repair` found for a person."""
    missing = report["batches_missing"]
    lines = [
        f"store       {report['store']}",
        "            left as it is",
        f"copy        {report['copy']}",
        "            opened and read through: "
        + ", ".join(f"{number} {kind}" for kind, number in report["kept"].items()),
        *(f"left out    {number:>7}  {kind}" for kind, number in report["left_out"].items() if number),
    ]
    if missing is None:
        lines.append("whether the newest batches are missing, nothing tells: the watermark is damaged too")
    elif missing:
        lines.append(f"the newest {missing} synced batches are missing")
    return "\n".join(
        [
            *lines,
            "Pages that are missing will be delivered again; nothing is dropped in their favour.",
            f"To use the copy: set DEDUP_STORE={report['copy']}, or move it into the place of the store.",
        ]
    )
