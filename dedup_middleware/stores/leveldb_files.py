"""What the files of a LevelDB say of themselves, read without LevelDB and without changing anything.

LevelDB checks what it reads, and not what is absent. It passes over a log that is gone or zeroed in the middle; and
where the end of the manifest is cut off, it takes the state of some time ago for the present one and removes the
tables that have come since: of 1520 damaged stores, 2 opened so without a word. The formats:
github.com/google/leveldb, doc/log_format.md, doc/impl.md and db/version_edit.cc. It looks for what is missing. Whether
what is there is rotten, checksums tell, which LevelDB tests.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dedup_middleware.stores.log_files import check_batches, numbered_logs, records

if TYPE_CHECKING:
    from pathlib import Path


def checked(folder: Path) -> list[Path]:
    """Return the files that count in the LevelDB in *folder*; ``ValueError`` says what is wrong if parts are gone.

    Reads the manifest and the logs, at most some 64 MB: 0.1 s.
    """
    try:
        state = _State.of_database(folder)
    except FileNotFoundError as error:
        raise ValueError(f"{folder.name}/{error.filename.rpartition('/')[2]} is missing") from None
    except (UnicodeDecodeError, IsADirectoryError, IndexError) as error:
        raise ValueError(f"{folder.name}/CURRENT or the manifest it names cannot be read: {error}") from None
    files = [folder / "CURRENT", folder / state.manifest]
    for number, size in state.tables.items():
        table = next((t for t in (folder / f"{number:06}.{end}" for end in ("ldb", "sst")) if t.exists()), None)
        if table is None or table.stat().st_size != size:
            raise ValueError(f"table {number:06} in {folder.name} is missing, or not as long as it was")
        files.append(table)
    logs = numbered_logs(folder)
    # LevelDB makes a log before the manifest names it, and removes one only when the manifest names a later one. 0 is
    # the name of none: the database was being created.
    if state.log and state.log not in logs:
        raise ValueError(f"log {state.log:06} in {folder.name} is missing")
    check_batches([logs[number] for number in sorted(logs) if number >= state.log], state.sequence)
    return [*files, *logs.values()]


@dataclass
class _State:
    """What a manifest says: which logs and tables count."""

    manifest: str = ""
    log: int = 0
    sequence: int = 0
    tables: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of_database(cls, folder: Path) -> _State:
        state = cls((folder / "CURRENT").read_text("ascii").removesuffix("\n"))
        for record in records(folder / state.manifest):
            state._apply(_Edit(record))
        return state

    def _apply(self, edit: _Edit) -> None:
        while edit.more:
            tag = edit.number()
            if tag == 1:
                edit.skip()
            elif tag == 2:  # noqa: PLR2004 - the tags of db/version_edit.cc
                self.log = edit.number()
            elif tag in (3, 9):
                edit.number()
            elif tag == 4:  # noqa: PLR2004
                self.sequence = edit.number()
            elif tag == 5:  # noqa: PLR2004
                edit.number()
                edit.skip()
            elif tag == 6:  # noqa: PLR2004
                edit.number()
                self.tables.pop(edit.number(), None)
            elif tag == 7:  # noqa: PLR2004
                edit.number()
                table = edit.number()
                self.tables[table] = edit.number()
                edit.skip()
                edit.skip()
            else:
                raise ValueError(f"the manifest has an unknown tag {tag}")


class _Edit:
    """One record of a manifest, read from its beginning; ``IndexError`` behind its end."""

    def __init__(self, record: bytes) -> None:
        self._record = record
        self._position = 0

    @property
    def more(self) -> bool:
        return self._position < len(self._record)

    def number(self) -> int:
        value = shift = 0
        while True:
            byte = self._record[self._position]
            self._position += 1
            value |= (byte & 127) << shift
            if byte < 128:  # noqa: PLR2004 - the highest bit says that more follow
                return value
            shift += 7

    def skip(self) -> None:
        length = self.number()
        self._position += length
