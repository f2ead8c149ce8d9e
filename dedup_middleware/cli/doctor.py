"""``scrapy dedup doctor``: what is well, what is wrong, and what to do; and how a page is or would be checked."""

from __future__ import annotations

import json
import re
import sys
from datetime import timedelta
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy.settings import SETTINGS_PRIORITIES
from scrapy.utils.misc import load_object
from scrapy.utils.project import inside_project

from dedup_middleware.api import would_be_checked
from dedup_middleware.cli import health
from dedup_middleware.cli.call import NothingYetError, add_common_options, settings_of
from dedup_middleware.cli.health import Finding, Level, note, ok, problem
from dedup_middleware.errors import ConfigError, NothingFoundError, RecordsError, shown
from dedup_middleware.plugin import addon
from dedup_middleware.plugin.downloader_middleware import DedupDownloaderMiddleware
from dedup_middleware.plugin.extension import DedupExtension
from dedup_middleware.plugin.item_pipeline import DedupItemPipeline, DropLogFormatter
from dedup_middleware.plugin.spider_middleware import DedupCallbackMiddleware, DedupSpiderMiddleware
from dedup_middleware.records import explain
from dedup_middleware.settings import PREFIX, SETTINGS, is_enabled, unknown_settings
from dedup_middleware.terminal import working

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from scrapy.settings import BaseSettings

    from dedup_middleware.cli.call import Call
    from dedup_middleware.settings import Config

#: The exit status where there are problems.
PROBLEMS = 4

EXAMPLES = ("doctor", "doctor --deep", "doctor https://example.org/story --html story.html")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Let *parser* read the options of the command."""
    add_common_options(parser)
    parser.add_argument(
        "url", metavar="URL", nargs="?", help="page URL, exactly as it was crawled: show how it is checked"
    )
    parser.add_argument("--html", metavar="FILE", help="check this HTML of the page now; -: standard input")
    parser.add_argument("--deep", action="store_true", help="read the whole store too; takes minutes if it is large")


def run(call: Call) -> int:
    """Print the findings; 4 if some of them are problems."""
    opts = call.opts
    if opts.html is not None and opts.url is None:
        raise ConfigError("--html FILE is the page of which URL? add its address")
    found = []
    for finding in _page(call) if opts.url is not None else _all(call):
        found.append(finding)
        print(json.dumps(finding.as_dict()) if opts.json else health.finding_text([finding]), flush=True)
    return PROBLEMS if any(finding.level is Level.PROBLEM for finding in found) else 0


def _all(call: Call) -> Iterator[Finding]:
    yield from health.versions()
    yield from standing(settings_of(call.settings, call.opts.spider))
    yield from misspelt(call.settings)
    try:
        config = call.config
    except NothingYetError as error:
        yield health.note("store", str(error))
        return
    except ConfigError as error:
        said, _, remedy = str(error).partition("; ")
        yield health.problem("settings", said, remedy or said)
        return
    yield from resolved(settings_of(call.settings, config.spider), config)
    with working("reading the store"):
        of_store = list(health.store_health(config, deep=call.opts.deep))
    yield from of_store
    yield from health.log_health(config)
    with working("reading the last crawl"):
        pages = list(health.pages_health(config))
    yield from pages


def _page(call: Call) -> Iterator[Finding]:
    config, opts = call.config, call.opts
    if opts.html is not None:
        yield from health.as_checked(would_be_checked(config, opts.url, _read(opts.html)))
        return
    try:
        explanation = explain.explain(config, opts.url)
    except (NothingFoundError, RecordsError) as error:
        remedy = "`scrapy dedup doctor URL --html FILE` tells how it would be checked, with its page in FILE"
        yield health.note("page", str(error), remedy)
    else:
        yield from health.as_explained(explanation, config)


def _read(name: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise ConfigError(f"--html {name} cannot be read ({error.strerror or error}); name another file") from error


_ADDON = "dedup_middleware.Addon"
_ON = f"ADDONS = {{{_ADDON!r}: 500}}"
_PASSWORD = re.compile(r"//[^/]*@")
_ORIGINS = {priority: name for name, priority in SETTINGS_PRIORITIES.items()}

# Where each stands: in which setting, whether before all others, after them, or anywhere.
_FIRST, _LAST = "before", "after"
_COMPONENTS: tuple[tuple[str, type, int, str], ...] = (
    ("DOWNLOADER_MIDDLEWARES", DedupDownloaderMiddleware, addon.DOWNLOADER_MIDDLEWARE_PRIORITY, _FIRST),
    ("SPIDER_MIDDLEWARES", DedupSpiderMiddleware, addon.SPIDER_MIDDLEWARE_PRIORITY, _FIRST),
    ("SPIDER_MIDDLEWARES", DedupCallbackMiddleware, addon.CALLBACK_MIDDLEWARE_PRIORITY, _LAST),
    ("ITEM_PIPELINES", DedupItemPipeline, addon.PIPELINE_PRIORITY, _FIRST),
    ("EXTENSIONS", DedupExtension, addon.EXTENSION_PRIORITY, _LAST),
)


def misspelt(settings: BaseSettings) -> Iterator[Finding]:
    """Yield those of *settings* that look like ours and are none."""
    for line in unknown_settings(settings):
        yield problem("settings", line, "mend its name, or take it out")


def resolved(settings: BaseSettings, config: Config) -> Iterator[Finding]:
    """Yield what each of our settings comes to in *config*, and where *settings* have it from."""
    for name in SETTINGS:
        priority = settings.getpriority(name)
        origin = "default" if priority is None else _ORIGINS.get(priority, f"priority {priority}")
        if name == "DEDUP_SCOPE" and config.scope_reason != name:
            origin += f": {config.scope_reason}"
        value = _as_set(getattr(config, name.removeprefix(PREFIX).lower()))
        value = _PASSWORD.sub("//…@", value) if isinstance(value, str) else value
        yield ok("settings", f"{name} = {shown(value)} ({origin})")


def _as_set(value: Any) -> Any:
    """Return *value* of a configuration as somebody would set it."""
    if isinstance(value, timedelta):
        return f"{value / timedelta(days=1):g} days"
    if isinstance(value, tuple):
        return [each.pattern if isinstance(each, re.Pattern) else each for each in value]
    return value.value if isinstance(value, Enum) else str(value) if isinstance(value, Path) else value


def standing(settings: BaseSettings) -> Iterator[Finding]:
    """Yield whether the add-on is on, and whether its components stand where they should among those of *settings*."""
    if not is_enabled(settings):
        yield note("plugin", "DEDUP_ENABLED is false: nothing is checked", "set DEDUP_ENABLED = True")
    if _is_on(settings):
        yield ok("plugin", "the add-on is on")
        settings = settings.copy()
        addon.Addon().update_settings(settings)
    elif any(_priorities(settings, name).get(kind) is not None for name, kind, *_ in _COMPONENTS):
        yield note("plugin", "the add-on is not in ADDONS, and the project places components itself", f"add {_ON}")
    elif not inside_project():
        yield note("plugin", "no project is here: whether the plugin is on, only the script that crawls can tell")
        return
    else:
        yield problem("plugin", "the add-on is not on: crawls with these settings drop nothing", f"add {_ON}")
        return
    for name, kind, priority, side in _COMPONENTS:
        yield _place(settings, name, kind, priority, side)
    formatter = load_object(settings.get("LOG_FORMATTER"))
    if formatter is not DropLogFormatter:
        yield note(
            "plugin",
            f"LOG_FORMATTER is the project's own, {formatter.__qualname__}, and says how a Dropped: line looks",
        )


def _place(settings: BaseSettings, name: str, kind: type, priority: int, side: str) -> Finding:
    others = _priorities(settings, name)
    mine = others.pop(kind, None)
    where = f"{kind.__name__} in {name}"
    if mine is None:
        return problem("plugin", f"{where} is switched off", f"take it out of {name}, and leave it to the add-on")
    wrong = [other for other, at in others.items() if at is not None and (at < mine if side == _FIRST else at > mine)]
    # A project's own extension may come after ours; a feed must not.
    if name == "EXTENSIONS":
        wrong = [other for other in wrong if other.__name__ == "FeedExporter"]
    if wrong:
        names = ", ".join(sorted(other.__qualname__ for other in wrong))
        remedy = f"leave its place to the add-on ({priority}), or move {names}"
        return problem("plugin", f"{where} stands at {mine}, and should stand {side} {names}", remedy)
    if mine != priority:
        return note("plugin", f"{where} was moved from {priority} to {mine}, which does no harm")
    return ok("plugin", f"{where} stands at {mine}")


def _priorities(settings: BaseSettings, name: str) -> dict[type, int | None]:
    """Return where each component of *name* stands; ``None`` for one that is switched off."""
    found: dict[type, int | None] = {}
    for component, priority in settings.getwithbase(name).items():
        kind = _loaded(component)
        if kind is not None:
            found[kind] = priority
    return found


def _loaded(component: Any) -> type | None:
    try:
        kind = load_object(component)
    except Exception:  # noqa: BLE001 - whatever a module of the project's raises; the crawl itself will say so
        return None
    return kind if isinstance(kind, type) else None


def _is_on(settings: BaseSettings) -> bool:
    addons = settings.getdict("ADDONS")
    return any(_loaded(name) is addon.Addon and priority is not None for name, priority in addons.items())
