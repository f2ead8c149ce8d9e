"""Where the store and the log of a spider are when no setting says it.

It names folders and makes none of its own; a crawl and a command in the same place are given the same
answer.
"""

from __future__ import annotations

import os
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, unquote

import platformdirs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typing_extensions import Self

    from dedup_middleware.settings.config import Settings

#: Our folder in others.
OURS = "dedup"
# What Scrapy calls a crawl that has no name of its own.
SCRAPYS_BOT_NAME = "scrapybot"
_APPLICATION = "dedup-middleware"
# A file name has 255 bytes at most nearly everywhere, and others come behind this one.
_MAX_NAME = 150
# What is quoted has two hexadecimal digits behind each "%".
_CUT = "%~"


class Place(NamedTuple):
    """The folders in which a spider may have its folder, the best first; all absolute."""

    roots: tuple[Path, ...]
    project: Path | None
    """The one that is the project's, where a command finds a spider by its name."""

    @classmethod
    def of(cls, settings: Settings, project: Path | None) -> Self:
        """Return where a crawl or a command with these *settings*, in this working folder, looks.

        In the *project*'s folder, where there is one; or in the working folder, where an earlier version has left a
        store outside any project; in the JOBDIR; in the user's data folder, by the bot's name, or by that of the
        working folder where the bot has Scrapy's default name, which unrelated scripts share.
        """
        return cls(tuple(_roots(settings, project, _working_folder())), project)

    def folder(self, spider: str) -> Path | None:
        """Return the folder of *spider*: in the first root that can be written to, or has a store or a log of it.

        ``None`` where there is none. No name leads out of its root.
        """
        folders = (root / as_file_name(spider) for root in self.roots)
        return next((folder for folder in folders if _is_writable(folder) or _has_something(folder)), None)

    def known_spiders(self) -> set[str]:
        """Return the names of the spiders that have a folder, whatever is in it; without those that are too long."""
        return {unquote(name) for root in self.roots for name in _folders_in(root) if _CUT not in name}


NOWHERE = Place((), None)


def as_file_name(name: str) -> str:
    """Return *name* as one without separators and of a bounded length; different ones for different names."""
    quoted = quote(name, safe="", errors="surrogatepass") or "%"
    if len(quoted) > _MAX_NAME:
        return f"{quoted[:_MAX_NAME]}{_CUT}{_digest(name)}"
    return quoted if quoted.strip(".") else quoted.replace(".", "%2E")


def _roots(settings: Settings, project: Path | None, working: Path | None) -> Iterator[Path]:
    if project is not None:
        yield project
    elif working is not None and (working / ".scrapy" / OURS).is_dir():
        yield working / ".scrapy" / OURS
    jobdir = settings.get("JOBDIR")
    if jobdir and working is not None:
        yield working / jobdir / OURS
    bot = str(settings.get("BOT_NAME") or SCRAPYS_BOT_NAME)
    name = bot if bot != SCRAPYS_BOT_NAME else working and f"{working.name}-{_digest(str(working))}"
    users = _users_folder()
    if name and users is not None:
        yield users / as_file_name(name)


def _users_folder() -> Path | None:
    try:
        folder = platformdirs.user_data_path(_APPLICATION, appauthor=False)
    except RuntimeError:  # nobody knows the user's home
        return None
    # Earlier versions of platformdirs then leave the "~" in it, and a folder of that name would be made.
    return folder if folder.is_absolute() else None


def _working_folder() -> Path | None:
    try:
        return Path.cwd()
    except OSError:  # it has been removed
        return None


def _digest(text: str) -> str:
    return blake2b(text.encode("utf8", "surrogatepass"), digest_size=8).hexdigest()


def _is_writable(folder: Path) -> bool:
    """Tell whether *folder* can be made and written to, or is there and can be written to."""
    try:
        above = next(f for f in (folder, *folder.parents) if f.exists())
        return above.is_dir() and os.access(above, os.W_OK | os.X_OK)
    except (OSError, StopIteration):
        return False


def _has_something(folder: Path) -> bool:
    """Tell whether a store or a log is in the *folder* of a spider, as far as can be seen."""
    try:
        return any((folder / name).exists() for name in ("store", "store.rocksdb", "store.sqlite", "log.jsonl"))
    except OSError:
        return False


def _folders_in(root: Path) -> list[str]:
    try:
        return [entry.name for entry in root.iterdir() if entry.is_dir()]
    except OSError:
        return []
