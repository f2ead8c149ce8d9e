"""``scrapy dedup doctor``: checks packages, add-on, settings, store and records. It changes nothing."""

from __future__ import annotations

import inspect
import json
import os
import platform
import re
import shutil
import sys
from collections import Counter
from datetime import timedelta
from enum import Enum
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from scrapy.settings import SETTINGS_PRIORITIES
from scrapy.utils.misc import load_object
from scrapy.utils.project import ENVVAR, inside_project

from dedup_middleware.api import Deduplicator
from dedup_middleware.cli.call import NothingYetError
from dedup_middleware.cli.commands import TROUBLE
from dedup_middleware.cli.options import Subcommand, option
from dedup_middleware.cli.store import crawls_at_work, to_release
from dedup_middleware.common.urls import without_secrets
from dedup_middleware.errors import ConfigError, DedupError, StoreLockedError, shown
from dedup_middleware.fingerprints import fingerprinter
from dedup_middleware.index.shared import index_for_command
from dedup_middleware.plugin import addon
from dedup_middleware.plugin.feeds import place_of
from dedup_middleware.plugin.messages import other_extractor
from dedup_middleware.plugin.spider_middleware import DropLogFormatter
from dedup_middleware.records.counts import OF_ITEMS, OF_PAGES, REMEDIES, Counts, unchecked
from dedup_middleware.records.file import (
    LAST,
    RecordFilter,
    Records,
    crawl_named,
    last_crawl_line,
    last_line,
    log_exists,
)
from dedup_middleware.settings import PREFIX, SETTINGS, is_enabled, unknown_settings
from dedup_middleware.stores import default_backend, parse_uri, refusals, store_exists
from dedup_middleware.stores.engines import ENGINES, LAST_RESORT, LIBRARIES
from dedup_middleware.text.clauses import one_line
from dedup_middleware.text.terminal import plural, progress, styled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy.settings import BaseSettings

    from dedup_middleware.cli.call import Call
    from dedup_middleware.settings import Config
    from dedup_middleware.stores import OpenStore

_PACKAGES = (
    *("dedup-middleware", "scrapy", "twisted", "parsel", "lxml", "w3lib", "itemadapter", "xxhash", "rapidfuzz"),
    *("jieba", "opencc", *LIBRARIES, "hiredis"),
)
#: Bytes on a disk below which a crawl may soon be without room: some ten thousand pages.
_LITTLE_ROOM = 200 * 2**20
#: Characters of a finding, and of its remedy.
_SHOWN = 2_000
_ADDON = "dedup_middleware.Addon"
_ON = f"set ADDONS = {{{_ADDON!r}: 500}} in settings.py"
_REPLACED = "remove ADDONS = {} from settings.py: it replaces the ADDONS above it, which has the add-on"
_ADDONS_LINE = re.compile(r"^ADDONS\b", re.MULTILINE)
_ORIGINS = {priority: name for name, priority in SETTINGS_PRIORITIES.items()}
OK, NOTE, PROBLEM = "ok", "note", "problem"
_STYLES = {OK: "green", NOTE: "yellow", PROBLEM: "red"}


class Finding(NamedTuple):
    """One thing that was checked."""

    level: str
    about: str
    text: str
    remedy: str = ""
    """What to do, where the text does not end with it."""


def run(call: Call) -> int:
    """Print notes and problems, or with ``-v`` and ``--json`` all findings; return 1 if there are problems."""
    opts = call.opts
    levels: Counter[str] = Counter()
    for finding in _findings(call):
        levels[finding.level] += 1
        if opts.json:
            print(json.dumps(finding._asdict()), flush=True)
        elif opts.verbose or finding.level != OK:
            print(finding_text(finding), flush=True)
    if not opts.json:
        print(_summary(levels, verbose=opts.verbose))
    return TROUBLE if levels[PROBLEM] else 0


def finding_text(finding: Finding) -> str:
    """Return *finding* for a person: a line, and its remedy below."""
    level = styled(f"{finding.level:<8}", _STYLES[finding.level])
    lines = [f"{level} {finding.about:<9} {one_line(finding.text, _SHOWN)}"]
    if finding.remedy:
        lines.append(f"{'':<18} -> {one_line(finding.remedy, _SHOWN)}")
    return "\n".join(lines)


def _summary(levels: Counter[str], *, verbose: bool) -> str:
    problems, notes = levels[PROBLEM], levels[NOTE]
    found = plural(problems, "problem") if problems else "No problems"
    more = f", {plural(notes, 'note')}" if notes else ""
    return f"{found}{more} in {plural(levels.total(), 'check')}" + "; -v shows them all" * (not verbose)


def _findings(call: Call) -> Iterator[Finding]:
    yield from _versions()
    yield from _plugin(call.settings_of(call.opts.spider))
    for line in unknown_settings(call.settings):
        yield Finding(PROBLEM, "settings", line, "correct or remove it")
    try:
        config = call.config
    except NothingYetError as error:
        folder = place_of(call.settings).folder("SPIDER")
        if folder is None:
            remedy = "no default place can be written to, so a crawl drops nothing: set DEDUP_STORE and DEDUP_LOG"
            yield Finding(NOTE, "store", str(error), remedy)
        else:
            first = f"no crawl has run here yet; the first one writes its store and its records to {folder}"
            yield Finding(NOTE, "store", first)
        return
    except ConfigError as error:
        yield Finding(PROBLEM, "settings", str(error))
        return
    yield from _settings(call.settings_of(config.spider), config)
    for about, check in (("settings", _choices), ("store", _store), ("disk", _disk), ("records", _records)):
        try:
            yield from check(config)
        except DedupError as error:  # noqa: PERF203 - each by itself
            yield Finding(NOTE if isinstance(error, StoreLockedError) else PROBLEM, about, str(error))


def _versions() -> Iterator[Finding]:
    known = ", ".join(f"{name} {number}" for name in _PACKAGES if (number := _version(name)) is not None)
    yield Finding(OK, "versions", f"Python {platform.python_version()} on {platform.system()}; {known}")
    if default_backend() == LAST_RESORT:
        none = f"neither {' nor '.join(LIBRARIES)} can be imported"
        yield Finding(NOTE, "versions", f"{none}: the default store is SQLite")


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _plugin(settings: BaseSettings) -> Iterator[Finding]:
    """Yield whether the add-on is on, and whether its components are where it places them."""
    if not is_enabled(settings):
        yield Finding(NOTE, "plugin", "DEDUP_ENABLED is false: nothing is checked", "set DEDUP_ENABLED = True")
    addons = settings.getdict("ADDONS")
    if not any(_loaded(name) is addon.Addon and priority is not None for name, priority in addons.items()):
        if inside_project():
            what = "the add-on is not on: crawls with these settings drop nothing"
            yield Finding(PROBLEM, "plugin", what, _REPLACED if _is_replaced() else _ON)
        else:
            yield Finding(NOTE, "plugin", "not in a project: the script that crawls decides whether the add-on is on")
        return
    yield Finding(OK, "plugin", "the add-on is on")
    yield from _components(settings.copy())


def _is_replaced() -> bool:
    """Return whether the settings of the project name the add-on in an ADDONS that a later one replaces."""
    module = sys.modules.get(os.environ.get(ENVVAR, ""))
    try:
        source = "" if module is None else inspect.getsource(module)
    except (OSError, TypeError):
        return False
    return _ADDON in source and len(_ADDONS_LINE.findall(source)) > 1


def _components(settings: BaseSettings) -> Iterator[Finding]:
    addon.Addon().update_settings(settings)
    for name, path, priority in addon.COMPONENTS:
        kind = load_object(path)
        found = {_loaded(component): at for component, at in settings.getwithbase(name).items()}
        if (at := found.get(kind)) != priority:
            what = "is disabled" if at is None else f"was moved from {priority} to {at}"
            level, remedy = PROBLEM if at is None else NOTE, f"remove it from {name}: the add-on adds it"
            yield Finding(level, "plugin", f"{kind.__name__} {what} in {name}", remedy)
    formatter = load_object(settings.get("LOG_FORMATTER"))
    if formatter is not DropLogFormatter:
        text = f"LOG_FORMATTER is the project's own, {formatter.__qualname__}: it formats the Dropped: lines"
        yield Finding(NOTE, "plugin", text)


def _loaded(component: Any) -> type | None:
    try:
        kind = load_object(component)
    except Exception:  # noqa: BLE001 - a module of the project can raise anything; the crawl will report it
        return None
    return kind if isinstance(kind, type) else None


# --- settings


def _settings(settings: BaseSettings, config: Config) -> Iterator[Finding]:
    """Yield the value of each of our settings in *config*, and where *settings* have it from."""
    for name in SETTINGS:
        priority = settings.getpriority(name)
        origin = "default" if priority is None else _ORIGINS.get(priority, f"priority {priority}")
        if name == "DEDUP_SCOPE" and config.scope_reason != name:
            origin += f": {config.scope_reason}"
        value = _as_set(getattr(config, name.removeprefix(PREFIX).lower()))
        value = without_secrets(value, redact=False) if name == "DEDUP_STORE" else value
        yield Finding(OK, "settings", f"{name} = {shown(value)} ({origin})")


def _as_set(value: Any) -> Any:
    """Return *value* of a configuration as a settings file has it."""
    if isinstance(value, timedelta):
        days = value / timedelta(days=1)
        return int(days) if days == int(days) else days
    if isinstance(value, dict):
        # Without names by class, DEDUP_KEY is a list.
        names = {kind: [*fields] for kind, fields in value.items()}
        return names if any(names) else names.get("", [])
    if isinstance(value, tuple):
        return [each.pattern if isinstance(each, re.Pattern) else each for each in value]
    return value.value if isinstance(value, Enum) else str(value) if isinstance(value, Path) else value


def _choices(config: Config) -> Iterator[Finding]:
    """Raise `ConfigError` for a choice with options that do not exist, or of a package that is not installed."""
    Deduplicator(fingerprint=config.fingerprint, extractor=config.extractor).close()
    return iter(())


# --- store and log


def _store(config: Config) -> Iterator[Finding]:
    """Yield the findings on the store that *config* names."""
    uri, shown_uri = config.store, without_secrets(config.store, redact=False)
    if uri == "memory:" and config.store_is_default and config.spider is not None:
        what = f"cannot write to {config.place.tried}: a crawl drops nothing"
        yield Finding(PROBLEM, "store", what, "set DEDUP_STORE and DEDUP_LOG")
    elif uri == "memory:":
        what = "it is in memory: the store, and dropped items, are gone at the end of a crawl"
        yield Finding(NOTE, "store", what, "set DEDUP_STORE to a path")
    elif not store_exists(uri):
        yield Finding(NOTE, "store", f"no store at {shown_uri} yet; the first crawl makes it")
    else:
        with index_for_command(uri, "doctor") as (store, _):
            yield Finding(OK, "store", f"{shown_uri} opens")
            yield from _opened(store, config)


def _opened(store: OpenStore, config: Config) -> Iterator[Finding]:
    if store.caution:
        yield Finding(NOTE, "store", store.caution)
    wanted = fingerprinter(config.fingerprint).scheme
    if store.header.scheme != wanted:
        text = f"crawls refuse it: it has fingerprints of scheme {store.header.scheme!r}, but DEDUP_FINGERPRINT = "
        remedy = f"set that to the one it was made with, or delete the store: {refusals.reset(store.uri)}"
        yield Finding(PROBLEM, "store", f"{text}{config.fingerprint!r} makes {wanted!r}", remedy)
    at_work = crawls_at_work(store)
    if at_work:
        yield Finding(OK, "store", f"shared by {plural(len(at_work), 'crawl')} now")
    if items := to_release(store):
        remedy = "crawl again with the same spider, and the same JOBDIR if it had one"
        yield Finding(NOTE, "store", f"pending: {plural(items, 'item')} to release", remedy)
    else:
        yield Finding(OK, "store", "no item is to be released")


def _disk(config: Config) -> Iterator[Finding]:
    """Yield whether the disk has room, and whether the store and the records can be written."""
    scheme, path = parse_uri(config.store)
    for name, place in (("store", Path(path) if scheme in ENGINES else None), ("records", config.log)):
        if place is None:
            continue
        # The place, or the first folder above it that exists.
        nearest = next(each for each in (place, *place.absolute().parents) if each.exists())
        free = shutil.disk_usage(nearest).free
        if not os.access(nearest, os.W_OK) or not (nearest == place or nearest.is_dir()):
            remedy = f"check ownership and permissions of {nearest}"
            yield Finding(PROBLEM, "disk", f"cannot write the {name} at {place}", remedy)
        elif free < _LITTLE_ROOM:
            text = f"{free / 2**20:.0f} MB are free for the {name} at {place}"
            yield Finding(PROBLEM, "disk", text, f"make room on the disk of {nearest}")
        else:
            yield Finding(OK, "disk", f"can write the {name} at {place}; {free / 2**30:.0f} GB are free")


def _records(config: Config) -> Iterator[Finding]:
    """Yield whether the records can be read, and how many pages of the last crawl were not checked."""
    log = config.log
    if log is None:
        yield Finding(NOTE, "records", "no records are kept that show why pages are dropped", "set DEDUP_LOG to a path")
    elif not log_exists(log):
        yield Finding(NOTE, "records", f"no records at {log} yet; the first crawl writes them")
    elif log.is_fifo() or (log.stat().st_size and last_line(log) is None):
        what = "is a named pipe, not a file" if log.is_fifo() else "has no records"
        yield Finding(PROBLEM, "records", f"{log} {what}", "set DEDUP_LOG to another path")
    else:
        counts = Counts()
        if log.stat().st_size:
            with progress("reading the records"):
                counts = Counts(Records(log, RecordFilter(crawl=crawl_named(log, LAST))))
        yield Finding(OK, "records", f"{log}, {log.stat().st_size / 2**20:.1f} MB")
        before = last_crawl_line(log)
        if before is not None and (other := other_extractor(config, before)) is not None:
            yield Finding(NOTE, "settings", other)
        for what, (_, of) in (("page", OF_PAGES), ("item", OF_ITEMS)):
            for reason, count in unchecked(counts.numbers, of).most_common():
                text = f"the last crawl did not check {plural(count, what)}: {reason}"
                yield Finding(NOTE, f"{what}s", text, REMEDIES.get(reason, ""))


_VERBOSE = option("-v", "--verbose", action="store_true", help="show all findings, not only notes and problems")
COMMAND = Subcommand(run, ("doctor", "doctor -v --spider news", "doctor --json"), (_VERBOSE,))
