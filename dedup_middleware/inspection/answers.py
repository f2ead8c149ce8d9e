"""What a person has answered about pairs of pages: the same story, or different ones.

The answers are in a file beside the log, JSON Lines; each is written at once, and none is ever removed.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from dedup_middleware import bounded, permissions, times
from dedup_middleware.errors import RecordsError
from dedup_middleware.inspection.records import MAX_LINE, ends_torn
from dedup_middleware.urls import host_of, is_under

if TYPE_CHECKING:
    from pathlib import Path

    from typing_extensions import Self


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer."""

    url: str
    owner_url: str
    score: float
    """Of the verdict that was judged, 0-1."""
    same: bool
    time: str
    """UTC, ISO 8601."""

    @property
    def pair(self) -> tuple[str, str]:
        """Which two pages it is about."""
        return self.url, self.owner_url


class Answers:
    """The answers in one file, the last one about each pair."""

    def __init__(self, path: Path) -> None:
        """Read those at *path*, if there are any; :class:`RecordsError` if that fails or it holds something else."""
        self.path = path
        self._by_pair: dict[tuple[str, str], Answer] = {}
        try:
            lines = _lines(path) if path.exists() else []
        except OSError as error:
            raise RecordsError(f"the answers {path} cannot be read ({error.strerror}); ask their owner") from error
        for line in lines:
            if (answer := _parse(line)) is not None:
                self._by_pair[answer.pair] = answer
        if lines and not self._by_pair:
            raise RecordsError(f"{path} is where answers are kept, and holds something else; move it away")

    @classmethod
    def beside(cls, log: Path) -> Self:
        """Return the answers about the records of *log*."""
        return cls(log.with_name(f"{log.stem}.judged.jsonl"))

    def about(self, host: str | None = None) -> list[Answer]:
        """Return those about pages of *host* and its subdomains; all if it is ``None``."""
        return [a for a in self._by_pair.values() if host is None or is_under(host_of(a.url), [host])]

    def add(self, pair: tuple[str, str], score: float, *, same: bool) -> None:
        """Write one answer; :class:`RecordsError` if the medium fails."""
        answer = Answer(*pair, score, same, times.now())
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
    texts = (answer.url, answer.owner_url, answer.time)
    is_score = type(answer.score) in {float, int} and 0 <= answer.score <= 1
    is_ours = all(isinstance(text, str) for text in texts) and is_score and isinstance(answer.same, bool)
    return answer if is_ours else None
