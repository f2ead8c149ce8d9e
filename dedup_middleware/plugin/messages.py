"""Formats the lines in Scrapy's log: at its start, meanwhile, and at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dedup_middleware.common.urls import without_secrets
from dedup_middleware.model import Action, Scope, Unchanged
from dedup_middleware.reasons import Reason
from dedup_middleware.records.counts import summary
from dedup_middleware.settings import SETTINGS
from dedup_middleware.stores import default_backend
from dedup_middleware.stores.engines import LAST_RESORT, LIBRARIES
from dedup_middleware.stores.refusals import reset, scrapy_dedup
from dedup_middleware.text.terminal import plural

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from dedup_middleware.driver.opening import Resources
    from dedup_middleware.index.dropped_items import DroppedItem
    from dedup_middleware.records.crawl_lines import CrawlLine
    from dedup_middleware.settings import Config
    from dedup_middleware.visits.visit import Visit


#: Of a store, by whether a dry run leaves it as it is, and whether it was made now.
_AGES = {
    (False, False): "kept from earlier crawls",
    (False, True): "new",
    (True, False): "kept from earlier crawls, not written to",
    (True, True): "not there, and not created",
}


def at_start(opened: Resources) -> Iterator[str]:
    """Yield the lines that are logged when a crawl begins."""
    config, store = opened.config, opened.store
    if config.store_is_default and config.store.startswith(f"{LAST_RESORT}:") and default_backend() == LAST_RESORT:
        yield f"neither {' nor '.join(LIBRARIES)} is available here, so the default store is SQLite"
    is_dry = config.action is Action.DRY_RUN
    uri = without_secrets(config.store, redact=False)
    action = "none (pass-through)" if opened.trouble and is_dry else config.action.value
    scope, age = f"{config.scope.value} ({config.scope_reason})", _AGES[is_dry and uri != "memory:", store.created]
    yield f"action {action}, scope {scope}, store {uri} ({age}), records {config.log or 'none'}"
    if config.unchanged is not Unchanged.KEEP and config.scope is Scope.CRAWL:
        yield f"DEDUP_UNCHANGED={config.unchanged.value} has no effect in this scope: no earlier page counts"


#: The settings that choose the store of a crawl.
_CHOOSING = ("DEDUP_STORE", "DEDUP_FINGERPRINT")
# Of those in the line of a crawl.
_EXTRACTOR, _ACTION = "DEDUP_EXTRACTOR", "DEDUP_ACTION"


def warnings_at_start(opened: Resources, before: CrawlLine | None) -> Iterator[str]:
    """Yield how the crawl differs from what was set, and from the crawl that wrote *before* to its records."""
    config = opened.config
    if opened.trouble:
        records = f"its records are in {config.log}" if config.log else "no records are kept"
        until = "Until it ends" if opened.awaited is None else "Until the store is back"
        what = "this crawl runs in pass-through: it keeps every page and drops nothing"
        yield f"{opened.trouble} {until}, {what}; {records}"
        return
    if opened.store.caution:
        yield opened.store.caution
    if config.store == "memory:" and config.action is Action.DROP:
        yield (
            "DEDUP_STORE is in memory: dropped items are gone at the end of this crawl, and cannot be released. "
            "Set it to a path to store them"
        )
    if before is not None:
        if config.log_is_default:
            yield from _other_store(config, before)
        if (other := other_extractor(config, before)) is not None:
            yield other
    if opened.no_records:
        yield f"{opened.no_records} This crawl keeps no records"
        return
    if config.log_is_default and config.log is None:
        yield f"cannot write to {config.place.tried}: no records are kept. Set DEDUP_LOG"


def _other_store(config: Config, before: CrawlLine) -> Iterator[str]:
    if not _has_same_store(config, before):
        other = ", ".join(f"{name}={before.settings[name]}" for name in _CHOOSING if name in before.settings)
        yield (
            f"the last crawl that wrote to {config.log} had another store ({other or 'the default one'}): commands and "
            "report mix the records of both. Set DEDUP_LOG to give each store its own records"
        )


def _has_same_store(config: Config, before: CrawlLine) -> bool:
    return all(config.changed.get(name) == before.settings.get(name) for name in _CHOOSING)


def other_extractor(config: Config, before: CrawlLine) -> str | None:
    """Return the warning that the crawl *before* filled the store by another extractor; ``None`` if it did not."""
    was = before.settings.get(_EXTRACTOR, SETTINGS[_EXTRACTOR].default)
    is_same = config.spider in {None, before.spider} and _has_same_store(config, before)
    # A dry run has not written to the store.
    if not is_same or config.extractor == was or before.settings.get(_ACTION) == Action.DRY_RUN.value:
        return None
    return (
        f"{_EXTRACTOR} is {config.extractor!r}, and the last crawl with this store had {was!r}: pages count as changed "
        f"whose text it chooses otherwise, and copies of stored pages may be kept. Set {was!r} again, or begin with a "
        f"new store: {reset(config.store)}"
    )


def of_feeds(*, torn: Iterable[str], pipes: Iterable[str]) -> Iterator[str]:
    """Yield a line for each feed that ended within a line, and does so no more, and for each in a named pipe."""
    for path in torn:
        yield (
            f"the feed {without_secrets(path, redact=False)} ended within a line: an earlier crawl was killed. That "
            "line has an end now, and the next item a line of its own"
        )
    for path in pipes:
        yield (
            f"the feed {without_secrets(path, redact=False)} is a named pipe. The crawl stands still at its first "
            "item until a program reads the pipe"
        )


def overwritten_again(feeds: Sequence[str]) -> str:
    """Return the warning that a crawl goes on in its JOBDIR, and its *feeds* are overwritten."""
    named = ", ".join(without_secrets(uri, redact=False) for uri in feeds)
    return (
        f"this crawl resumes a JOBDIR, and Scrapy replaces {named}: what the earlier runs wrote there is lost. "
        "Resume with -o (overwrite: False) to append"
    )


def back(opened: Resources, seconds: float) -> str:
    """Return the line that the store, just *opened*, was away for so many *seconds*."""
    uri = without_secrets(opened.config.store, redact=False)
    # It may have been new before, too.
    what = " and has nothing in it" if opened.store.created else ""
    return f"the store {uri} is back after {seconds:.0f} s{what}; pages are checked again from now on"


def one_original(config: Config, host: str, original: str, repeats: int, pages: int) -> str:
    """Return the warning that *repeats* of the *pages* of *host* repeat the one page *original*."""
    line = f"{repeats} of {pages} pages of {host} repeat {original}"
    if config.action is Action.DROP:
        line += ". If they should not, stop the crawl"
    if config.log is not None:
        line += f": `{crawl_command(config, 'log', '--host', host, '--original', original)}` shows them"
    if config.action is Action.DROP and config.store != "memory:":
        allow = scrapy_dedup("allow", "--host", host, "--original", original, store=config.store)
        line += f"; `{allow}` releases their items in the next crawl"
    return line


def one_other_host(config: Config, host: str, other: str, repeats: int, pages: int) -> str:
    """Return the warning that *repeats* of the *pages* of *host* repeat pages of the host *other*."""
    line = (
        f"{repeats} of {pages} pages of {host} repeat pages of {other}, which came first. "
        f"Set DEDUP_PREFERRED = [{host!r}] to keep those of {host}, or [{other!r}] if {other} has the originals"
    )
    if config.log is not None:
        line += f"; `{crawl_command(config, 'log', '--host', host)}` shows them"
    return line


def cause_of_release(item: DroppedItem, *, by_person: bool) -> str:
    """Return why a stored *item* is released: *by_person*, or by the crawl."""
    if by_person:
        return "`scrapy dedup allow` was run"
    # An item that was kept is stored until its feed has ended.
    return "a feed was lost" if item.was_kept else "this crawl found the original changed, moved or gone"


def released(count: int, cause: str) -> str:
    """Return the line that so many stored items were released because of one *cause*."""
    return f"{plural(count, 'stored item')} {'was' if count == 1 else 'were'} released: {cause}"


def dropped(visit: Visit) -> str:
    """Return why an item of *visit* is dropped. An item with a key is named by it: its page may list others."""
    of_page = f" of {visit.url}" if visit.key and visit.url else visit.url
    what = f"item {visit.key}{of_page}" if visit.key else of_page
    match = visit.verdict.match
    if match is None:
        return f"{what} {'is unchanged' if visit.compares_itself else 'repeats its released item'}"
    url = match.original.url
    if not visit.key:
        return f"{what} repeats {url} (score {match.score:.2f})"
    # An item of `start()` has no page.
    where = "" if not url else ", from the same page" if url == visit.url else f", from {url}"
    return f"{what} was kept before{where}"


def fields_not_found(fields: Collection[str]) -> str:
    """Return the warning that no item had these *fields*, which a setting names; an empty text without any."""
    names = ", ".join(map(repr, sorted(fields)))
    return f"no item had the DEDUP_ITEM_FIELDS {names}: check the spelling" if names else ""


def no_key(fields: Mapping[str, Sequence[str]]) -> str:
    """Return the warning that no item had a key of these *fields*, by class, which a setting names."""
    named = [f"{', '.join(map(repr, names))}{f' in {kind}' if kind else ''}" for kind, names in fields.items()]
    return f"no item had the DEDUP_KEY {'; '.join(named)}: check the spelling"


def originals_pending(numbers: Mapping[str, int]) -> str:
    """Return the warning that a tenth of the copies, or more, had an original that was not durable in time."""
    pending = numbers.get(f"kept/{Reason.ORIGINAL_PENDING}", 0)
    copies = pending + numbers.get("verdict/duplicate", 0)
    if not pending or 10 * pending < copies:
        return ""
    given_up = numbers.get("waits/given_up", 0)
    # For most there was no room; or they have waited in vain; or none has waited, as where nothing is dropped.
    if 2 * numbers.get("waits/no_room", 0) > given_up:
        remedy = "Raise SCRAPER_SLOT_MAX_ACTIVE_SIZE: the responses of pages that wait take at most so many bytes"
    elif given_up:
        remedy = "Raise DOWNLOAD_TIMEOUT, for which a copy waits, or let items spend less time in the pipelines"
    else:
        remedy = "None of them has waited for that, and all were kept"
    return (
        f"{pending} of {copies} copies were not treated as duplicates, because items of their originals were in the "
        f"pipelines. {remedy}"
    )


def at_end(opened: Resources, numbers: Mapping[str, int], *, is_away: bool) -> str:
    """Return the summary of a crawl with these *numbers*, its stats; its store *is away* or not."""
    config = opened.config
    sometimes = (
        ("items/tag_refused", "items that cannot be tagged"),
        ("items/not_storable", "duplicates not storable"),
        ("requests_last", "requests fetched last"),
        ("upgrades", "originals replaced"),
        ("away", "times the store was away"),
        ("away_seconds", "  seconds in all"),
    )
    lines = [*summary(numbers), ("links followed last", numbers.get("outlinks_last", 0))]
    lines += ((label, numbers[name]) for name, label in sometimes if numbers.get(name))
    text = "".join(f"\n  {label:<30} {value:>7}" for label, value in lines)
    if is_away:
        text += "\n  the store is still away: pages that were not durable are new to the next crawl"
    if opened.trouble:
        text += f"\n  pass-through: nothing was dropped, because {opened.trouble}"
    if config.log is not None:
        where = {
            "records until the failure" if numbers.get("failures") else "records": config.log,
            "list the duplicates": crawl_command(config, "log"),
            "open the report": crawl_command(config, "report", "--open"),
        }
        text += "".join(f"\n  {label:<27}{value}" for label, value in where.items())
    return f"dedup summary{text}"


def crawl_command(config: Config, *words: str) -> str:
    """Return the command ``scrapy dedup WORDS`` for the records and the store of this crawl.

    With its spider where that leads there: in the project, if no setting names another log.
    """
    project = config.place.project
    if config.log_is_default and config.log is not None and project is not None and project in config.log.parents:
        return scrapy_dedup(*words, spider=config.spider)
    store = None if config.store == "memory:" else config.store
    log = None if config.log is None else config.log.absolute()
    return scrapy_dedup(*words, store=store, log=log, key=config.key)
