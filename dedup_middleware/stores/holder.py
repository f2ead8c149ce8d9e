"""Who has a store open: a file beside its lock, for whoever finds the store in use.

It only informs. The lock alone decides; a file that is left over, missing or unreadable changes
nothing.
"""

from __future__ import annotations

import json
import os
import platform
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from dedup_middleware import permissions, times

if TYPE_CHECKING:
    from pathlib import Path

#: Bytes; more than that no holder has written.
_MAX_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that has a store open."""

    what: str
    """What it does: ``spider news``, ``scrapy dedup stats``."""
    brief: bool
    """Whether it will be done in a moment: a command, not a crawl."""
    pid: int
    host: str
    since: str
    """ISO 8601, UTC, to the second."""

    @classmethod
    def this_process(cls, what: str, *, brief: bool = False) -> Holder:
        """Return this process, from now on."""
        since = times.now()
        return cls(what, brief, os.getpid(), platform.node(), since)

    @classmethod
    def written(cls, path: Path) -> Holder | None:
        """Return the one that the file *path* names; ``None`` if it names none."""
        try:
            with path.open("rb") as file:
                holder = cls(**json.loads(file.read(_MAX_BYTES)))
        except (OSError, ValueError, TypeError):
            return None
        kinds = (str, bool, int, str, str)
        said = (holder.what, holder.brief, holder.pid, holder.host, holder.since)
        return holder if all(type(value) is kind for value, kind in zip(said, kinds, strict=True)) else None

    def write(self, path: Path) -> None:
        """Write it down in the file *path*; where that cannot be done, on a full disk, nobody is named there.

        The file is whole at any time, or missing.
        """
        draft = path.with_name(path.name + ".tmp")
        with suppress(OSError):
            path.unlink(missing_ok=True)
            permissions.make_file(draft)
            draft.write_text(json.dumps(asdict(self)), encoding="ascii")
            draft.replace(path)

    def __str__(self) -> str:
        elsewhere = "" if self.host == platform.node() else f" on {self.host}"
        return f"process {self.pid}{elsewhere} ({self.what}, since {self.since})"
