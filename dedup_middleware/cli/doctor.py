"""``scrapy dedup doctor``: checks the packages, the add-on, the settings, the store and the log. It changes nothing."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
from collections import Counter
from contextlib import suppress
from datetime import timedelta
from enum import Enum
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from scrapy.settings import SETTINGS_PRIORITIES
from scrapy.utils.misc import load_object
from scrapy.utils.project import inside_project

from dedup_middleware.cli.call import NothingYetError
from dedup_middleware.cli.commands import TROUBLE, Subcommand
from dedup_middleware.cli.store import crawls_at_work, in_doubt, to_release
from dedup_middleware.errors import ConfigError, DedupError, RecordsError, StoreLockedError, shown
from dedup_middleware.fingerprints import fingerprinter
from dedup_middleware.index import schema
from dedup_middleware.index.opening import index_for_command
from dedup_middleware.plugin import addon
from dedup_middleware.plugin.downloader_middleware import DedupDownloaderMiddleware
from dedup_middleware.plugin.extension import DedupExtension
from dedup_middleware.plugin.spider_middleware import (
    DedupCallbackMiddleware,
    DedupItemPipeline,
    DedupSpiderMiddleware,
    DropLogFormatter,
)
from dedup_middleware.records.counts import last_crawl, listed, mostly_unchecked
from dedup_middleware.records.log import Records, log_exists
from dedup_middleware.settings import PREFIX, SETTINGS, is_enabled, unknown_settings
from dedup_middleware.stores import (
    ON_DISK,
    default_backend,
    parse_uri,
    refusals,
    resolved_uri,
    size_of_store,
    store_exists,
)
from dedup_middleware.terminal import plural, progress, styled
from dedup_middleware.text.clauses import one_line
from dedup_middleware.urls import without_secrets

if TYPE_CHECKING:
    import argparse
    from collections.abc import Collection, Iterator

    from scrapy.settings import BaseSettings

    from dedup_middleware.cli.call import Call
    from dedup_middleware.index.index import Index
    from dedup_middleware.settings import Config
    from dedup_middleware.stores import OpenStore

_PACKAGES = (
    *("dedup-middleware", "scrapy", "twisted", "parsel", "lxml", "w3lib", "itemadapter", "xxhash", "rapidfuzz"),
    *("jieba", "opencc", "plyvel", "rocksdict", "hiredis"),
)
#: Bytes on a disk below which a crawl may soon be without room: some ten thousand pages.
_LITTLE_ROOM = 200 * 2**20
#: A compaction writes the new files before it removes the old ones.
_ROOM_FACTOR = 2
#: Characters of a finding, and of its remedy.
_SHOWN = 2_000
_ALL_KEYS = (b"\x01", b"\xff" * 64)
_ADDON = "dedup_middleware.Addon"
_ON = f"add ADDONS = {{{_ADDON!r}: 500}} to settings.py"
_PASSWORD = re.compile(r"//[^/]*@")
_ORIGINS = {priority: name for name, priority in SETTINGS_PRIORITIES.items()}
# The place of each component: its setting, its priority, and whether it belongs before all others or after them.
_COMPONENTS: tuple[tuple[str, type, int, str], ...] = (
    ("DOWNLOADER_MIDDLEWARES", DedupDownloaderMiddleware, addon.DOWNLOADER_MIDDLEWARE_PRIORITY, "before"),
    ("SPIDER_MIDDLEWARES", DedupSpiderMiddleware, addon.SPIDER_MIDDLEWARE_PRIORITY, "before"),
    ("SPIDER_MIDDLEWARES", DedupCallbackMiddleware, addon.CALLBACK_MIDDLEWARE_PRIORITY, "after"),
    ("ITEM_PIPELINES", DedupItemPipeline, addon.PIPELINE_PRIORITY, "before"),
    ("EXTENSIONS", DedupExtension, addon.EXTENSION_PRIORITY, "after"),
)
OK, NOTE, PROBLEM = "ok", "note", "problem"
_STYLES = {OK: "green", NOTE: "yellow", PROBLEM: "red"}


class Finding(NamedTuple):
    """One thing that was checked."""

    level: str
    about: str
    text: str
    remedy: str = ""
    """What to do, where the text does not end with it."""


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-v", "--verbose", action="store_true", help="show all findings, not only notes and problems")
    parser.add_argument("--deep", action="store_true", help="read the whole store too; takes minutes if it is large")


def run(call: Call) -> int:
    """Print the notes and problems, or with ``-v`` and ``--json`` all findings; 1 if there are problems."""
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
    yield from components(call.settings_of(call.opts.spider))
    for line in unknown_settings(call.settings):
        yield Finding(PROBLEM, "settings", line, "correct or remove it")
    try:
        config = call.config
    except NothingYetError as error:
        yield Finding(NOTE, "store", str(error))
        return
    except ConfigError as error:
        yield Finding(PROBLEM, "settings", str(error))
        return
    yield from _settings(call.settings_of(config.spider), config)
    with progress("checking the store"):
        of_store = [*_store(config, deep=call.opts.deep)]
    yield from of_store
    yield from _room(config)
    yield from _log(config)
    with progress("reading the last crawl"):
        of_pages = [*_pages(config)]
    yield from of_pages


def _versions() -> Iterator[Finding]:
    known = ", ".join(f"{name} {number}" for name in _PACKAGES if (number := _version(name)) is not None)
    yield Finding(OK, "versions", f"Python {platform.python_version()} on {platform.system()}; {known}")
    if default_backend() == "sqlite":
        yield Finding(NOTE, "versions", "neither plyvel nor rocksdict can be imported: the default store is SQLite")


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


# --- the add-on and its components


def components(settings: BaseSettings) -> Iterator[Finding]:
    """Yield whether the add-on is on, and whether its components are where they belong among those of *settings*."""
    if not is_enabled(settings):
        yield Finding(NOTE, "plugin", "DEDUP_ENABLED is false: nothing is checked", "set DEDUP_ENABLED = True")
    addons = settings.getdict("ADDONS")
    if any(_loaded(name) is addon.Addon and priority is not None for name, priority in addons.items()):
        yield Finding(OK, "plugin", "the add-on is on")
        settings = settings.copy()
        addon.Addon().update_settings(settings)
    elif any(_priorities(settings, name).get(kind) is not None for name, kind, *_ in _COMPONENTS):
        yield Finding(NOTE, "plugin", "the add-on is not in ADDONS, but the project adds its components", _ON)
    elif not inside_project():
        yield Finding(NOTE, "plugin", "not in a project: whether the plugin is on depends on the script that crawls")
        return
    else:
        yield Finding(PROBLEM, "plugin", "the add-on is not on: crawls with these settings drop nothing", _ON)
        return
    for name, kind, priority, side in _COMPONENTS:
        yield _place(settings, name, kind, priority, side)
    formatter = load_object(settings.get("LOG_FORMATTER"))
    if formatter is not DropLogFormatter:
        text = f"LOG_FORMATTER is the project's own, {formatter.__qualname__}: it formats the Dropped: lines"
        yield Finding(NOTE, "plugin", text)


def _place(settings: BaseSettings, name: str, kind: type, priority: int, side: str) -> Finding:
    others = _priorities(settings, name)
    mine = others.pop(kind, None)
    where = f"{kind.__name__} in {name}"
    if mine is None:
        return Finding(PROBLEM, "plugin", f"{where} is disabled", f"remove it from {name}; the add-on adds it")
    wrong = [k for k, at in others.items() if at is not None and (at < mine if side == "before" else at > mine)]
    # A project's own extension may come after ours; a feed must not.
    if name == "EXTENSIONS":
        wrong = [other for other in wrong if other.__name__ == "FeedExporter"]
    if wrong:
        names = ", ".join(sorted(other.__qualname__ for other in wrong))
        remedy = f"remove it from {name}, so that the add-on places it at {priority}; or move {names}"
        return Finding(PROBLEM, "plugin", f"{where} is at {mine}, but must be {side} {names}", remedy)
    if mine != priority:
        return Finding(NOTE, "plugin", f"{where} was moved from {priority} to {mine}, which does no harm")
    return Finding(OK, "plugin", f"{where} is at {mine}")


def _priorities(settings: BaseSettings, name: str) -> dict[type, int | None]:
    """Return the priority of each component of *name*; ``None`` for one that is disabled."""
    found = ((_loaded(component), priority) for component, priority in settings.getwithbase(name).items())
    return {kind: priority for kind, priority in found if kind is not None}


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
        value = _PASSWORD.sub("//…@", value) if isinstance(value, str) else value
        yield Finding(OK, "settings", f"{name} = {shown(value)} ({origin})")


def _as_set(value: Any) -> Any:
    """Return *value* of a configuration as a settings file has it."""
    if isinstance(value, timedelta):
        return f"{value / timedelta(days=1):g} days"
    if isinstance(value, tuple):
        return [each.pattern if isinstance(each, re.Pattern) else each for each in value]
    return value.value if isinstance(value, Enum) else str(value) if isinstance(value, Path) else value


# --- store and log


def _store(config: Config, *, deep: bool) -> Iterator[Finding]:
    """Yield the findings on the store that *config* names. Seconds; *deep* reads all of it, minutes."""
    uri = resolved_uri(config.store)
    shown_uri = without_secrets(uri, redact=False)
    try:
        if uri == "memory:":
            yield Finding(NOTE, "store", "it is in memory: nothing is remembered after a crawl", "set DEDUP_STORE")
        elif not store_exists(uri):
            yield Finding(NOTE, "store", f"no store at {shown_uri} yet; the first crawl makes it")
        else:
            with index_for_command(uri, "doctor") as (store, index):
                yield Finding(OK, "store", f"{shown_uri} opens")
                yield from _opened(store, index, config, deep=deep)
    except StoreLockedError as error:
        yield Finding(NOTE, "store", str(error))
    except DedupError as error:
        yield Finding(PROBLEM, "store", str(error))


def _opened(store: OpenStore, index: Index, config: Config, *, deep: bool) -> Iterator[Finding]:
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
    yield _pending(store, at_work)
    if deep and at_work:
        yield Finding(NOTE, "store", "not read through, because crawls write to it", "run --deep when none has it open")
    elif deep:
        yield _read_through(index)


def _pending(store: OpenStore, at_work: Collection[bytes]) -> Finding:
    items, originals = to_release(store), in_doubt(store, at_work)
    if not items and not originals:
        return Finding(OK, "store", "no pending recovery work")
    text = (
        f"pending: {plural(items, 'dropped item')} to release, {plural(originals, 'original')} in doubt after a crash"
    )
    return Finding(NOTE, "store", text, "crawl again with the same spider, and the same JOBDIR if it had one")


def _read_through(index: Index) -> Finding:
    """Decode every page, text and posting list; :class:`StoreCorruptError` for the first that is damaged."""
    pages = postings = 0
    for page in index.pages():
        pages += 1
        index.text(page.number)
    with refusals.of_value(index.store.uri):
        for key, value in index.store.scan(*_ALL_KEYS):
            if key[:1] in schema.POSTINGS:
                postings += len(schema.decode_postings(value)) > 0
    return Finding(OK, "store", f"all of it was read: {pages} pages, {postings} posting lists")


def _room(config: Config) -> Iterator[Finding]:
    uri = resolved_uri(config.store)
    scheme, path = parse_uri(uri)
    if scheme not in ON_DISK:
        return
    size = 0
    with suppress(DedupError):  # a problem of the store, which is reported already
        size = (size_of_store(uri) or 0) if store_exists(uri) else 0
    above = _nearest(Path(path))
    free = shutil.disk_usage(above).free
    text = f"{size / 2**20:.1f} MB, and {free / 2**20:.0f} MB are free on its disk"
    if free < _LITTLE_ROOM:
        yield Finding(PROBLEM, "room", text, f"make room on the disk of {above}")
    elif free < _ROOM_FACTOR * size:
        yield Finding(NOTE, "room", f"{text}: too little to compact it", "make room before that is needed")
    else:
        yield Finding(OK, "room", text)
    for name, place in (("store", Path(path)), ("log", config.log)):
        if place is None:
            continue
        nearest = _nearest(place)
        if os.access(nearest, os.W_OK) and (nearest == place or nearest.is_dir()):
            yield Finding(OK, "place", f"the {name} {place} can be written")
        else:
            remedy = f"check ownership and permissions of {nearest}"
            yield Finding(PROBLEM, "place", f"the {name} {place} cannot be written", remedy)


def _nearest(path: Path) -> Path:
    """Return *path*, or the first folder above it that exists."""
    return next(folder for folder in (path, *path.absolute().parents) if folder.exists())


def _log(config: Config) -> Iterator[Finding]:
    """Yield the finding on the log: whether its first records can be read."""
    if config.log is None:
        yield Finding(NOTE, "log", "no records are kept that show why pages are dropped", "set DEDUP_LOG to a path")
    elif not log_exists(config.log):
        yield Finding(NOTE, "log", f"no log at {config.log} yet; the first record makes it")
    elif config.log.stat().st_size and next(iter(Records(config.log)), None) is None:
        yield Finding(PROBLEM, "log", f"{config.log} is not a log of records", "set DEDUP_LOG to another path")
    else:
        yield Finding(OK, "log", f"{config.log}, {config.log.stat().st_size / 2**20:.1f} MB")


def _pages(config: Config) -> Iterator[Finding]:
    """Yield how many pages the last crawl in the log did not check; a problem if they are most of those with items."""
    try:
        last = last_crawl(config)
    except RecordsError:  # a problem of the log, which is reported already
        return
    if last is None:
        return
    found = mostly_unchecked(last.with_items, last.checked, "pages with items in the last crawl")
    if found is not None:
        yield Finding(PROBLEM, "pages", found.text, found.remedy)
    elif last.unchecked:
        text = f"the last crawl did not check {last.unchecked.total()} of its pages: {listed(last.unchecked)}"
        yield Finding(NOTE, "pages", text)
    else:
        yield Finding(OK, "pages", "the last crawl checked all pages")


COMMANDS = {"doctor": Subcommand(run, ("doctor", "doctor -v --spider news", "doctor --deep --json"), _add_options)}
