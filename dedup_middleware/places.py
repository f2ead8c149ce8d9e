"""Where the store and the log of a spider are when no setting says it. ★ Scrapy glue: it asks for the project.

Law of this file: it names folders and makes none of its own; a crawl and a command in the same place are given the same
answer.
"""

from __future__ import annotations

import os
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, unquote

import platformdirs
from scrapy.exceptions import NotConfigured
from scrapy.settings.default_settings import BOT_NAME
from scrapy.utils.project import inside_project, project_data_dir

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy.settings import BaseSettings
    from typing_extensions import Self

_OURS = "dedup"
_APPLICATION = "dedup-middleware"
# A file name has 255 bytes at most nearly everywhere, and others come behind this one.
_LONGEST_NAME = 150
# What is quoted has two hexadecimal digits behind each "%".
_CUT = "%~"


class Place(NamedTuple):
    """The folders in which a spider may have its folder, the best first; all absolute."""

    roots: tuple[Path, ...]
    project: Path | None
    """The one that is the project's, where a command finds a spider by its name."""

    @classmethod
    def of(cls, settings: BaseSettings) -> Self:
        """Return where a crawl or a command with these *settings*, in this working folder, looks.

        In the project; or in the working folder, where an earlier version has left a store outside any project; in the
        JOBDIR; in the user's data folder, by the bot's name, or by that of the working folder where the bot has
        Scrapy's default name, which unrelated scripts share.
        """
        project = _project_folder()
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
    if len(quoted) > _LONGEST_NAME:
        return f"{quoted[:_LONGEST_NAME]}{_CUT}{_digest(name)}"
    return quoted if quoted.strip(".") else quoted.replace(".", "%2E")


def _roots(settings: BaseSettings, project: Path | None, working: Path | None) -> Iterator[Path]:
    if project is not None:
        yield project
    elif working is not None and (working / ".scrapy" / _OURS).is_dir():
        yield working / ".scrapy" / _OURS
    jobdir = settings.get("JOBDIR")
    if jobdir and working is not None:
        yield working / jobdir / _OURS
    bot = str(settings.get("BOT_NAME") or BOT_NAME)
    name = bot if bot != BOT_NAME else working and f"{working.name}-{_digest(str(working))}"
    users = _users_folder()
    if name and users is not None:
        yield users / as_file_name(name)


def _project_folder() -> Path | None:
    """Return our folder in the data folder of the project that the working folder is in; ``None`` outside of one.

    Scrapy makes the data folder. ``SCRAPY_SETTINGS_MODULE`` alone makes a project for Scrapy, but gives it none.
    """
    try:
        return Path(project_data_dir(), _OURS).absolute() if inside_project() else None
    except (NotConfigured, OSError):
        return None


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
        return any((folder / name).exists() for name in ("store", "store.sqlite", "log.jsonl"))
    except OSError:
        return False


def _folders_in(root: Path) -> list[str]:
    try:
        return [entry.name for entry in root.iterdir() if entry.is_dir()]
    except OSError:
        return []
