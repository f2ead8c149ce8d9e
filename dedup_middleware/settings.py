"""Reads the DEDUP_* settings into one frozen `Config`, and finds the folder of a spider's store and log.

Each setting is a row of `SETTINGS`, a field of `Config`, and a heading of docs/reference/settings.md.
A value that is not valid is found here, before the first request.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import quote, unquote

import platformdirs

from dedup_middleware.checks.table import CopyRules
from dedup_middleware.common.urls import HostPattern, as_in_urls, without_secrets
from dedup_middleware.errors import ConfigError, shown
from dedup_middleware.extraction import EXTRACTORS
from dedup_middleware.fingerprints import FINGERPRINTERS, another, names
from dedup_middleware.model import Action, Reworded, Scope, Unchanged
from dedup_middleware.stores import is_scheme, is_server, parse_uri, resolved_uri, uri_at
from dedup_middleware.stores.engines import MEMORY, SERVERS, forms
from dedup_middleware.stores.files import BESIDE
from dedup_middleware.text.clauses import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

PREFIX = "DEDUP_"
_V = TypeVar("_V")


# --- values


class InvalidPartError(ValueError):
    """A part of a value is not valid; the text names the part."""


def as_boolean(value: Any) -> bool:
    """Return *value* as Scrapy's ``getbool`` does; ``ValueError`` if it is not valid, as of all functions below."""
    if value in ("True", "true", "False", "false"):
        return value in ("True", "true")
    return bool(int(value))


def as_number(value: Any) -> float:
    """Return *value* as a finite number."""
    number = math.nan if isinstance(value, bool) else float(value)
    return _valid(number, math.isfinite(number))


def as_whole(value: Any, *, least: float = -math.inf) -> int:
    """Return *value* as a whole number of *least* or more."""
    number = as_number(value)
    return int(_valid(number, number == int(number) and number >= least))


def as_threshold(value: Any) -> float:
    """Return *value* as a share of a text. With half or less, two pages without common text could both be originals."""
    number = as_number(value)
    return _valid(number, 0.5 < number <= 1)  # noqa: PLR2004 - the bounds are the meaning


def as_days(value: Any) -> timedelta | None:
    """Return *value* as a number of days, or ``None``; the command line has only text."""
    if value in (None, "", "None"):
        return None
    days = as_number(value)
    return timedelta(days=_valid(days, 0 < days <= timedelta.max.days))


_SIZE = re.compile(r"([0-9.]+) ?(KB|MB|GB)", re.IGNORECASE)
_UNITS = {"KB": 1000, "MB": 1000**2, "GB": 1000**3}
# With less than the first, a store would keep no dropped item; SQLite cannot count beyond the second.
_MIN_SIZE, _MAX_SIZE = 100_000, 2**47


def as_size(value: Any) -> int:
    """Return *value*, a number of bytes or a text with a unit, in bytes; 0 for none."""
    written = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    size = as_number(written[1]) * _UNITS[written[2].upper()] if written else as_number(value)
    return int(_valid(size, size == 0 or _MIN_SIZE <= size < _MAX_SIZE))


def as_names(value: Any) -> tuple[str, ...]:
    """Return *value*, a list, or text with commas or in JSON as the command line has it, as names."""
    if isinstance(value, str):
        value = json.loads(value) if value.lstrip().startswith("[") else value.split(",")
    return tuple(stripped for part in _texts(value) if (stripped := part.strip()))


def as_key(value: Any) -> dict[str, tuple[str, ...]]:
    """Return *value*, names or names by class, as names by class; those of all classes are under the empty name."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        value = json.loads(value)
    by_class = value if isinstance(value, Mapping) else {"": value}
    names = {name: as_names(fields) for name, fields in by_class.items()}
    is_valid = all(isinstance(name, str) for name in names)
    for name in (name for name, fields in names.items() if name and not fields):
        raise InvalidPartError(f"the list of {shown(name)} is empty")
    return _valid({name: fields for name, fields in names.items() if fields}, is_valid)


# A host name or an IPv6 address in brackets, perhaps with a port.
_HOST = re.compile(r"([\w.-]+|\[[0-9a-fA-F:.]+\])(?::([0-9]{1,5}))?")


def as_patterns(value: Any) -> tuple[HostPattern | re.Pattern[str], ...]:
    """Return *value* as hosts and regular expressions; text with commas is a list if each part of it is a host."""
    if isinstance(value, str):
        parts = value.split(",")
        if value.lstrip().startswith('["'):
            value = json.loads(value)
        else:
            value = parts if all(_HOST.fullmatch(part.strip()) for part in parts) else [value]
    return tuple(_pattern(part) for part in _texts(value) if part.strip())


def _pattern(text: str) -> HostPattern | re.Pattern[str]:
    plain = _HOST.fullmatch(text.strip())
    try:
        if plain is None:
            return re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise InvalidPartError(f"{shown(text)} is not a valid regular expression: {shown(str(error))}") from error
    if host := as_in_urls(plain[1]):
        return HostPattern(host, int(plain[2]) if plain[2] else None)
    raise InvalidPartError(f"{shown(text)} is not a valid host")


# A path that begins as a URI of a store would, but for the colon.
_WITHOUT_COLON = re.compile(r"([a-z][a-z0-9+.-]*)(//+|\Z)")


def as_store(value: Any) -> str | None:
    """Return *value*, a URI or a path, as the URI of a store with an absolute path; ``None`` for the default store."""
    if value is None or value == "":
        return None
    if isinstance(value, str) and (named := _WITHOUT_COLON.match(value)) and is_scheme(named[1]):
        slashes, rest = "//" if is_server(named[1]) else "/", "…" if "@" in value else value[named.end() :]
        meant = f"{named[1]}:{slashes * bool(named[2])}{rest}"
        raise InvalidPartError(f"its colon is missing, write {meant!r} (and './{named[1]}' for a folder)")
    return resolved_uri(value) if isinstance(value, str) and ":" in value else uri_at(_path(value))


# An option of a path.
_OPTION = re.compile(r"\?\w+=\w*\Z")


def as_log(value: Any) -> tuple[Path, bool] | str | None:
    """Return *value* as a path, and whether new pages have records; "" for no records, ``None`` for the default."""
    if isinstance(value, str) and "://" in value:
        raise InvalidPartError("it is a URL")
    if value is None or value == "":
        return None if value is None else ""
    path = _path(value)
    option = found[0] if (found := _OPTION.search(path)) else ""
    if option not in {"", "?new=0", "?new=1"}:
        raise InvalidPartError(f"{option} is not an option of it")
    return Path(path.removesuffix(option)), option != "?new=0"


def _path(value: Any) -> str:
    path: str = os.fspath(value)
    return _valid(path, isinstance(path, str) and b"\0" not in os.fsencode(path))


def as_fingerprint(value: str) -> str:
    """Return *value*, the name of a fingerprint or a method."""
    if isinstance(value, str) and (another(value) is not None or value in FINGERPRINTERS):
        return value
    raise InvalidPartError(f"the names are {', '.join(names())}")


def as_extractor(value: str) -> str:
    """Return *value*, the name of an extractor."""
    return _valid(value, isinstance(value, str) and value in EXTRACTORS)


def _texts(value: Iterable[str]) -> Iterable[str]:
    return _valid(value, isinstance(value, (list, tuple)) and all(isinstance(part, str) for part in value))


def _valid(value: _V, is_valid: object) -> _V:
    if not is_valid:
        raise ValueError
    return value


# --- the table


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting."""

    name: str
    default: Any
    parse: Callable[[Any], Any]
    values: str
    """The values that are allowed, in Markdown."""
    decides: bool = False
    """Whether a page that is as it was is read again after a change: another verdict may follow."""

    def read(self, value: object, name: str = "") -> Any:
        """Return *value* parsed, ``None`` as the default; the :class:`ConfigError` shows *name*, by default its own."""
        try:
            return self.parse(self.default if value is None else value)
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            part = f": {error}" if isinstance(error, InvalidPartError) else ""
            allowed = self.values.replace("`", "")
            raise ConfigError(
                f"{name or self.name} = {_redacted(value)} is not valid{part}", f"use {allowed}"
            ) from error


def _redacted(value: object) -> str:
    """Return *value* for an error, text without what may be user and password of a mistyped URL."""
    if isinstance(value, str) and "@" in value:
        before, _, after = value.rpartition("@")
        scheme, colon, _ = before.partition(":")
        value = f"{scheme}{colon}…@{after}" if colon and "@" not in scheme else f"…@{after}"
    return shown(value)


def _choice(names: Iterable[str]) -> str:
    return ", ".join(f'`"{name}"`' for name in names)


_STORES = "".join(f"`{form}`, " for form in (*forms(), f"{SERVERS[0]}://HOST", MEMORY)) + "or a path"
_FINGERPRINTS = f"{_choice(FINGERPRINTERS.ours)}, or the name of a method"
_BOOLEAN = "`True` or `False`"
_DAYS = "a number of days above 0, or `None`"
THRESHOLD = Setting("DEDUP_THRESHOLD", 0.8, as_threshold, "a number above 0.5, at most 1", decides=True)
_SETTINGS = (
    Setting("DEDUP_ENABLED", default=True, parse=as_boolean, values=_BOOLEAN),
    Setting("DEDUP_STORE", None, as_store, _STORES),
    Setting("DEDUP_LOG", None, as_log, 'a path, also with `?new=0`, or `""` for no records'),
    Setting("DEDUP_ACTION", "drop", Action, _choice(action.value for action in Action)),
    THRESHOLD,
    Setting("DEDUP_REWORDED", "keep", Reworded, _choice(each.value for each in Reworded), decides=True),
    Setting("DEDUP_PRIORITY_ADJUST", -1000, as_whole, "a whole number"),
    Setting("DEDUP_SCOPE", "auto", Scope, _choice(scope.value for scope in Scope)),
    Setting("DEDUP_UNCHANGED", "keep", Unchanged, _choice(each.value for each in Unchanged)),
    Setting("DEDUP_EXPIRE_AFTER", None, as_days, _DAYS),
    Setting("DEDUP_KEY", [], as_key, "a list of names, such as `['product_id']`, or a dict of such lists by class"),
    Setting("DEDUP_ITEM_FIELDS", [], as_names, "a list of names, such as `['title', 'text']`", decides=True),
    Setting("DEDUP_PREFERRED", [], as_patterns, "a list of hosts and regular expressions"),
    Setting("DEDUP_DROPPED_SIZE", "200MB", as_size, "`0`, or a size from `100KB`, in KB, MB or GB"),
    Setting("DEDUP_DROPPED_AGE", 90, as_days, _DAYS),
    Setting("DEDUP_REDACT_QUERY", default=False, parse=as_boolean, values=_BOOLEAN),
    Setting("DEDUP_MAX_BYTES", 10_000_000, partial(as_whole, least=1), "a whole number from 1"),
    Setting("DEDUP_FINGERPRINT", "clauses", as_fingerprint, _FINGERPRINTS, decides=True),
    Setting("DEDUP_EXTRACTOR", "weighted-dom", as_extractor, _choice(EXTRACTORS.ours), decides=True),
)
#: Name -> setting.
SETTINGS: Mapping[str, Setting] = {setting.name: setting for setting in _SETTINGS}


def is_enabled(settings: Mapping[Any, Any]) -> bool:
    """Return DEDUP_ENABLED; if it is false, the other settings are not read."""
    return bool(SETTINGS["DEDUP_ENABLED"].read(settings.get("DEDUP_ENABLED")))


def puts_off(settings: Mapping[Any, Any]) -> bool:
    """Return whether DEDUP_PRIORITY_ADJUST lets requests be put off: it is valid, and not 0."""
    with suppress(ConfigError):
        return bool(SETTINGS["DEDUP_PRIORITY_ADJUST"].read(settings.get("DEDUP_PRIORITY_ADJUST")))
    return False


def unknown_settings(settings: Mapping[Any, Any]) -> list[str]:
    """Return a line for each unknown DEDUP_* setting, with the nearest known name."""
    from difflib import get_close_matches  # noqa: PLC0415 - few crawls need it

    # The prefix alone makes two short names alike.
    lines, known = [], [name.removeprefix(PREFIX) for name in SETTINGS]
    for name in sorted(name for name in settings if name.startswith(PREFIX) and name not in SETTINGS):
        near = get_close_matches(name.removeprefix(PREFIX), known, 1)
        meant = f"; did you mean {PREFIX}{near[0]}?" if near else ""
        lines.append(f"{name} is not a setting of dedup-middleware{meant}")
    return lines


# --- default places of a store and of records

#: The name of our folder in a project's data folder and in a JOBDIR.
FOLDER = "dedup"
_SCRAPYS_BOT_NAME = "scrapybot"
# Most file systems allow names of 255 bytes, and suffixes follow.
_MAX_NAME = 150
# In a quoted name, two hexadecimal digits follow each "%".
_CUT = "%~"


class DefaultPlace(NamedTuple):
    """The folders in which a spider may have its folder, the best first; all absolute. Creates none of them."""

    roots: tuple[Path, ...] = ()
    project: Path | None = None
    """The root in a project, where a command finds a spider by its name."""

    @classmethod
    def of(cls, settings: Mapping[Any, Any], project: Path | None) -> DefaultPlace:
        """Return the place of crawls and commands with these *settings* in this working folder.

        The roots are in the *project*'s folder, if there is one; in the JOBDIR; and in the user's data folder under the
        bot's name. Where the bot has Scrapy's default name, which unrelated scripts share, the name of the working
        folder is used.
        """
        working = _folder(Path.cwd)
        roots = [] if project is None else [project]
        if working is not None and (jobdir := settings.get("JOBDIR")):
            roots.append(working / jobdir / FOLDER)
        name = _bot(settings) or ("" if working is None else f"{working.name}-{_digest(str(working))}")
        data = _folder(lambda: platformdirs.user_data_path("dedup-middleware", appauthor=False))
        if name and data is not None:
            roots.append(data / as_file_name(name))
        return cls(tuple(roots), project)

    @property
    def tried(self) -> str:
        """The roots, for a message that none of them can be written to."""
        return " or ".join(map(str, self.roots)) or "any folder of this user"

    def folder(self, spider: str) -> Path | None:
        """Return the folder of *spider* in the first root that has its store or records, or can be written to.

        ``None`` without such a root. The name of a spider leads to no other folder.
        """
        folders = (root / as_file_name(spider) for root in self.roots)
        return next((folder for folder in folders if _is_usable(folder)), None)

    def known_spiders(self) -> set[str]:
        """Return the names of the spiders that have a folder, without very long names."""
        names: set[str] = set()
        for root in self.roots:
            with suppress(OSError):
                names.update(entry.name for entry in root.iterdir() if entry.is_dir())
        return {unquote(name) for name in names if _CUT not in name}


def _bot(settings: Mapping[Any, Any]) -> str:
    """Return the name of the bot; empty for Scrapy's default name, which unrelated scripts share."""
    name = str(settings.get("BOT_NAME") or "")
    return "" if name == _SCRAPYS_BOT_NAME else name


def as_file_name(name: str) -> str:
    """Return *name* without separators and of a bounded length; different for different names."""
    quoted = quote(name, safe="", errors="surrogatepass") or "%"
    if len(quoted) > _MAX_NAME:
        return f"{quoted[:_MAX_NAME]}{_CUT}{_digest(name)}"
    return quoted if quoted.strip(".") else quoted.replace(".", "%2E")


def _folder(find: Callable[[], Path]) -> Path | None:
    """Return the folder that *find* returns; ``None`` where it was removed, or the user has no home."""
    try:
        folder = find()
    except (OSError, RuntimeError):
        return None
    # Earlier versions of platformdirs return "~/.local/share" for a user without a home.
    return folder if folder.is_absolute() else None


def _digest(text: str) -> str:
    return blake2b(text.encode("utf8", "surrogatepass"), digest_size=8).hexdigest()


def _is_usable(folder: Path) -> bool:
    """Return whether *folder* has a store or records, or can be written to, if need be after its creation."""
    try:
        if any((folder / name).exists() for name in ("store", "log.jsonl")):
            return True
        above = next(f for f in (folder, *folder.parents) if f.exists())
        return above.is_dir() and os.access(above, os.W_OK | os.X_OK)
    except (OSError, StopIteration):
        return False


# --- the settings of a crawl

# Characters of a setting's value in a report.
_MAX_TEXT = 300


@dataclass(frozen=True, slots=True)
class Config:
    """The settings of a crawl or a command, checked."""

    enabled: bool
    spider: str | None
    """``None`` for a command that names no spider, and for programs."""
    store: str
    store_is_default: bool
    log: Path | None
    log_is_default: bool
    log_has_new: bool
    """Whether new pages have records."""
    place: DefaultPlace
    action: Action
    threshold: float
    reworded: Reworded
    priority_adjust: int
    scope: Scope
    """Never `Scope.AUTO`."""
    scope_reason: str
    """Why *scope* has this value, for the crawl's log."""
    overwritten: tuple[str, ...]
    """The URIs of the feeds that replace what earlier crawls wrote."""
    unchanged: Unchanged
    expire_after: timedelta | None
    key: dict[str, tuple[str, ...]]
    """By class, the fields that name a thing; under the empty name, those of all other classes."""
    item_fields: tuple[str, ...]
    preferred: tuple[HostPattern | re.Pattern[str], ...]
    dropped_size: int
    """Bytes for dropped items."""
    dropped_age: timedelta | None
    redact_query: bool
    max_bytes: int
    fingerprint: str
    extractor: str
    jobdir: Path | None
    bot: str
    """The project's name; empty if it has Scrapy's default name."""
    changed: dict[str, str]
    """The settings that differ from their defaults, without user and password, as text."""

    @property
    def rules(self) -> CopyRules:
        """What the comparison reads of them."""
        return CopyRules(self.threshold, self.reworded is Reworded.DROP)

    @property
    def deciding(self) -> tuple[Any, ...]:
        """The values of the settings that decide verdicts."""
        return tuple(getattr(self, name.removeprefix(PREFIX).lower()) for name, s in SETTINGS.items() if s.decides)

    @classmethod
    def from_settings(
        cls,
        settings: Mapping[Any, Any],
        spider: str | None,
        *,
        project: Path | None = None,
        feeds: Iterable[str] = (),
        overwritten: Collection[str] = (),
    ) -> Config:
        """Read the settings of a crawl of *spider*; without one, the default store is in memory and there is no log.

        *project* is our folder in the project's data folder, if there is a project. *feeds* are the URIs of the crawl's
        feeds, and *overwritten* those that replace what earlier crawls wrote. :class:`ConfigError` for a bad setting.
        """
        values = {name.removeprefix(PREFIX).lower(): s.read(settings.get(name)) for name, s in SETTINGS.items()}
        changed = _changed(settings, values)
        store, log = values.pop("store"), values.pop("log")
        scope, scope_reason = _scope(values.pop("scope"), overwritten)
        place = DefaultPlace.of(settings, project)
        folder = None if spider is None else place.folder(spider)
        config = cls(
            spider=spider,
            store=store or _default_store(folder, values["fingerprint"]),
            store_is_default=not store,
            log=(folder and folder / "log.jsonl") if log is None else log[0] if log else None,
            log_is_default=log is None,
            log_has_new=not log or log[1],
            scope=scope,
            scope_reason=scope_reason,
            overwritten=(*overwritten,),
            place=place,
            jobdir=Path(jobdir) if (jobdir := settings.get("JOBDIR")) else None,
            bot=_bot(settings),
            changed=changed,
            **values,
        )
        config._check(feeds)
        return config

    def _check(self, feeds: Iterable[str]) -> None:
        """Raise ConfigError for settings that cannot be combined."""
        scheme, path = parse_uri(self.store)
        if scheme == "memory" and not self.store_is_default and self.jobdir:
            raise ConfigError(
                f"DEDUP_STORE = {self.store!r} cannot be used with JOBDIR = {str(self.jobdir)!r}: "
                "a resumed crawl needs the pages of its earlier runs",
                "use a store on disk",
            )
        if self.log is None:
            return
        log = os.path.realpath(self.log)
        if path and _is_of_store(log, os.path.realpath(path)):
            raise ConfigError(
                f"DEDUP_LOG = {str(self.log)!r} is inside DEDUP_STORE = {self.store!r}", "use a path outside of it"
            )
        if log in (os.path.realpath(uri.removeprefix("file://")) for uri in feeds):
            raise ConfigError(f"DEDUP_LOG = {str(self.log)!r} is also a feed", "use a path of its own")


def _is_of_store(file: str, store: str) -> bool:
    return file.startswith(store + os.sep) or file.removeprefix(store) in BESIDE


def _changed(settings: Mapping[Any, Any], values: Mapping[str, Any]) -> dict[str, str]:
    """Return the *settings* whose *values* differ from the default, as text."""
    differing = (name for name, s in SETTINGS.items() if values[name.removeprefix(PREFIX).lower()] != s.read(None))
    return {name: _as_text(settings.get(name)) for name in differing}


def _as_text(value: object) -> str:
    """Return *value* on one line, cut, and without user and password."""
    text = os.fspath(value) if isinstance(value, (str, os.PathLike)) else shown(value)
    return one_line(without_secrets(text, redact=False), _MAX_TEXT)


def _scope(scope: Scope, overwritten: Collection[str]) -> tuple[Scope, str]:
    """Return the scope of a crawl with these *overwritten* feeds, and the reason."""
    if scope is not Scope.AUTO:
        return scope, "DEDUP_SCOPE"
    if not overwritten:
        return Scope.STORE, "no feed is overwritten"
    feeds = ", ".join(without_secrets(uri, redact=False) for uri in overwritten)
    return Scope.CRAWL, f"{feeds} {'is' if len(overwritten) == 1 else 'are'} overwritten"


def _default_store(folder: Path | None, fingerprint: str) -> str:
    """Return the URI of the store in a spider's *folder*; a store in memory if there is no folder.

    Each method has a store of its own, because no method can read the fingerprints of another.
    """
    if folder is None:
        return "memory:"
    name = "store-" + re.sub(r"[^\w.+-]", "_", fingerprint) if another(fingerprint) else "store"
    return uri_at(str(folder / name))


@dataclass(frozen=True, slots=True)
class PageOptions:
    """The options in a request's ``meta["dedup"]``, with the crawl's settings for the rest."""

    action: Action
    unchanged: Unchanged = Unchanged.KEEP
    keep: bool = False
    """Whether the page is kept and becomes an original, even if it is a duplicate."""

    @classmethod
    def from_meta(cls, value: object, config: Config) -> PageOptions:
        """Read ``meta["dedup"]``; ``None`` and ``True`` stand for the crawl's settings. ConfigError if not valid."""
        options = cls(**{"action": config.action, "unchanged": config.unchanged, **_options_in(value)})
        if config.action is Action.DRY_RUN and options.action is Action.DROP:
            options = replace(options, action=Action.DRY_RUN)  # a dry run stores no dropped item
        keeps = options.keep or (options.action is Action.DRY_RUN and options.unchanged is Unchanged.DROP)
        return replace(options, unchanged=Unchanged.KEEP) if keeps else options


def _options_in(value: object) -> dict[str, Any]:
    options = {} if value is None or value is True else value
    if not isinstance(options, dict) or not options.keys() <= _OPTIONS.keys():
        allowed = f"use False, or a dict with any of {', '.join(_OPTIONS)}"
        raise ConfigError(f'meta["dedup"] = {shown(value)} is not valid', allowed)
    given = ((name, option) for name, option in options.items() if option is not None)
    return {name: _OPTIONS[name].read(option, f'meta["dedup"]["{name}"]') for name, option in given}


_OPTIONS = {
    "action": SETTINGS["DEDUP_ACTION"],
    "unchanged": SETTINGS["DEDUP_UNCHANGED"],
    "keep": Setting("keep", default=False, parse=as_boolean, values=_BOOLEAN),
}
