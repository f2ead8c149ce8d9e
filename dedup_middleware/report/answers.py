"""What a person has answered about pairs of pages: the same story, or different ones.

The answers are in a file beside the log, JSON Lines; each is written at once, and none is ever removed.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, NamedTuple

from dedup_middleware import bounded, permissions
from dedup_middleware.checks.alignment import compare
from dedup_middleware.errors import RecordsError
from dedup_middleware.fingerprints import instance_of
from dedup_middleware.index.opening import index_for_command
from dedup_middleware.model import now
from dedup_middleware.records.log import MAX_LINE, ends_torn
from dedup_middleware.stores import store_exists
from dedup_middleware.text.clauses import marked_sentences, one_line
from dedup_middleware.urls import host_of, is_under, url_identity

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from typing_extensions import Self

    from dedup_middleware.fingerprints import Fingerprinter
    from dedup_middleware.index.index import Index
    from dedup_middleware.model import StoredPage
    from dedup_middleware.settings import Config


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer."""

    url: str
    original_url: str
    score: float
    """Of the verdict that was checked, 0-1."""
    same: bool
    time: str
    """UTC, ISO 8601."""

    @property
    def pair(self) -> tuple[str, str]:
        """Which two pages it is about."""
        return self.url, self.original_url


class Answers:
    """The answers in one file, the last one about each pair."""

    def __init__(self, path: Path) -> None:
        """Read those at *path*, if there are any; :class:`RecordsError` if that fails or it holds something else."""
        self.path = path
        self._by_pair: dict[tuple[str, str], Answer] = {}
        try:
            lines = _lines(path) if path.exists() else []
        except OSError as error:
            raise RecordsError(f"the answers {path} cannot be read ({error.strerror}); ask their original") from error
        for line in lines:
            if (answer := _parse(line)) is not None:
                self._by_pair[answer.pair] = answer
        if lines and not self._by_pair:
            raise RecordsError(f"{path} is where answers are kept, and holds something else; move it away")

    @classmethod
    def beside(cls, log: Path) -> Self:
        """Return the answers about the records of *log*."""
        return cls(log.with_name(f"{log.stem}.answers.jsonl"))

    def about(self, host: str | None = None) -> list[Answer]:
        """Return those about pages of *host* and its subdomains; all if it is ``None``."""
        return [a for a in self._by_pair.values() if host is None or is_under(host_of(a.url), [host])]

    def add(self, pair: tuple[str, str], score: float, *, same: bool) -> None:
        """Write one answer; :class:`RecordsError` if the medium fails."""
        answer = Answer(*pair, score, same, now())
        try:
            permissions.make_file(self.path)
            begin = "\n" * ends_torn(self.path)
            with self.path.open("a", encoding="ascii", newline="\n") as file:
                file.write(f"{begin}{json.dumps(asdict(answer))}\n")
        except OSError as error:
            raise RecordsError(
                f"the answers {self.path} cannot be written ({error.strerror}); make room, or make them writable"
            ) from error
        self._by_pair[pair] = answer


def _lines(path: Path) -> list[bytes]:
    with path.open("rb") as file:
        return [line or b"" for line in bounded.lines(file, MAX_LINE)]


def _parse(line: bytes) -> Answer | None:
    try:
        fields = bounded.loads(line)
        answer = Answer(**{name: fields[name] for name in Answer.__slots__})
    except (ValueError, TypeError, KeyError):
        return None
    texts = (answer.url, answer.original_url, answer.time)
    is_score = type(answer.score) in {float, int} and 0 <= answer.score <= 1
    is_ours = all(isinstance(text, str) for text in texts) and is_score and isinstance(answer.same, bool)
    return answer if is_ours else None


_SHOWN = 8
_CHARACTERS = 200


class SideBySide(NamedTuple):
    """The sentences of a page and its original; those that are too short to tell are left out."""

    both: list[str]
    """As the page wrote them."""
    own: list[str]
    """What only the page says,"""
    originals: list[str]
    """and what only the original does."""


def side_by_side(config: Config, pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], SideBySide]:
    """Return the texts of those *pairs* of URLs, of a page and its original, that a closed store has both of.

    The store is closed again at once. Some 5 ms a pair. `StoreError` if it is in use, or cannot be read.
    """
    if not store_exists(config.store):
        return {}
    found = {}
    with index_for_command(config.store, "tune") as (store, index):
        fingerprint = instance_of(config.fingerprint, store.header.key)
        for pair in pairs:
            page, original = (index.find([url_identity(url)]) for url in pair)
            if page is not None and original is not None and page.number != original.number:
                found[pair] = _compared(index, fingerprint, page, original)
    return {pair: texts for pair, texts in found.items() if texts.both or texts.own}


def _compared(index: Index, fingerprint: Fingerprinter, page: StoredPage, original: StoredPage) -> SideBySide:
    both, own = _split(index, fingerprint, page, original)
    _, originals = _split(index, fingerprint, original, page)
    return SideBySide(both, own, originals)


def _split(
    index: Index, fingerprint: Fingerprinter, page: StoredPage, other: StoredPage
) -> tuple[list[str], list[str]]:
    """Return the sentences of *page* that *other* says, in the same or nearly the same words, and those that not."""
    text = index.text(page.number)
    nearly = compare(text, index.text(other.number), has=lambda clause: fingerprint.hash(clause) in other.hashes)
    held = other.hashes | frozenset(map(fingerprint.hash, nearly.near))
    telling = [s for s in marked_sentences(text, held, fingerprint.hash) if s.share is not None]
    return [s.text for s in telling if s.repeated], [s.text for s in telling if not s.repeated]


def side_by_side_lines(texts: SideBySide) -> list[str]:
    """Return what differs for a person: ``+`` the page's own sentences, ``-`` its original's, and one that both say."""
    lines = [f"= {len(texts.both)} sentences in both, such as: {one_line(texts.both[0], _CHARACTERS)}"] * bool(
        texts.both
    )
    for mark, sentences in (("+", texts.own), ("-", texts.originals)):
        lines += [f"{mark} {one_line(sentence, _CHARACTERS)}" for sentence in sentences[:_SHOWN]]
        if len(sentences) > _SHOWN:
            lines.append(f"{mark} … and {len(sentences) - _SHOWN} more")
    return lines
