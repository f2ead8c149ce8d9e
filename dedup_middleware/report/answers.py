"""Stores the labels that a person gives to pairs of pages: duplicates, or different.

They are in a file of JSON Lines beside the records. Each is written at once, and no command removes the file.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import msgspec

from dedup_middleware.common import bounded, permissions
from dedup_middleware.common.plain_files import ends_torn, open_file
from dedup_middleware.common.urls import host_of, is_under
from dedup_middleware.errors import RecordsError
from dedup_middleware.records.file import MAX_LINE

if TYPE_CHECKING:
    from pathlib import Path

    from typing_extensions import Self


class Answer(msgspec.Struct, frozen=True):
    """The label of a pair."""

    url: str
    original_url: str
    score: Annotated[float, msgspec.Meta(ge=0, le=1)]
    """Of the verdict, 0-1."""
    same: bool
    reason: str
    """Of the verdict, a code."""
    time: str
    """UTC, ISO 8601."""

    @property
    def pair(self) -> tuple[str, str]:
        """The URLs of the page and the original."""
        return self.url, self.original_url


_decoder = msgspec.json.Decoder(Answer)


class Answers:
    """The labels in one file; of a pair, the last one."""

    def __init__(self, path: Path) -> None:
        """Read the file at *path*, if it exists; :class:`RecordsError` if it cannot be read or is another file."""
        self.path = path
        self._by_pair: dict[tuple[str, str], Answer] = {}
        lines: list[bytes] = []
        try:
            if path.exists():
                with open_file(path) as file:
                    lines = [line or b"" for line in bounded.lines(file, MAX_LINE)]
        except OSError as error:
            raise RecordsError(
                f"The labels {path} cannot be read ({error.strerror})", "Check its permissions."
            ) from error
        for line in lines:
            with suppress(msgspec.MsgspecError, ValueError, RecursionError):
                answer = _decoder.decode(line)
                self._by_pair[answer.pair] = answer
        if lines and not self._by_pair:
            raise RecordsError(f"{path} is not a file of labels", "Move it away, or name another one.")

    @classmethod
    def given(cls, path: Path) -> Self:
        """Return the labels in the file that a person has named; :class:`RecordsError` also if it does not exist."""
        if not path.is_file():
            raise RecordsError(f"No labels found at {path}", "Download them from a report.")
        return cls(path)

    @classmethod
    def beside(cls, log: Path) -> Self:
        """Return the labels of the records of *log*."""
        return cls(log.with_name(f"{log.stem}.answers.jsonl"))

    def about(self, host: str | None = None) -> list[Answer]:
        """Return the labels of pages of *host* and its subdomains, or all."""
        return [a for a in self._by_pair.values() if host is None or is_under(host_of(a.url), [host])]

    def add_newer(self, others: Self) -> int:
        """Write the labels of *others* that are newer than those of their pairs here, and return their number."""
        newer = [
            answer
            for answer in others.about()
            if (known := self._by_pair.get(answer.pair)) is None or known.time < answer.time
        ]
        for answer in newer:
            self.add(answer)
        return len(newer)

    def add(self, answer: Answer) -> None:
        """Write one label; :class:`RecordsError` if the disk fails."""
        try:
            permissions.make_file(self.path)
            begin = "\n" * ends_torn(self.path)
            with open_file(self.path, "a", encoding="ascii", newline="\n") as file:
                file.write(f"{begin}{json.dumps(msgspec.structs.asdict(answer))}\n")
        except OSError as error:
            raise RecordsError(
                f"The labels {self.path} cannot be written ({error.strerror})", "Make room, or check its permissions."
            ) from error
        self._by_pair[answer.pair] = answer
