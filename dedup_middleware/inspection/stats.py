"""``scrapy dedup stats``: the sums of the log and the store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dedup_middleware.errors import RecordsError, StoreLockedError
from dedup_middleware.index.counts import counted
from dedup_middleware.index.opening import index_for_command
from dedup_middleware.inspection.chosen_records import run_named
from dedup_middleware.inspection.left_over import crawls_at_work, shared_by, to_release
from dedup_middleware.inspection.records import log_exists
from dedup_middleware.inspection.sums import Sums, sums_of
from dedup_middleware.inspection.tables import Table, rendered
from dedup_middleware.stores import store_exists
from dedup_middleware.text.clauses import one_line
from dedup_middleware.urls import without_secrets

if TYPE_CHECKING:
    from dedup_middleware.settings.config import Config

_LISTED = 10


def stats(config: Config, run: str | None = None) -> dict[str, Any]:
    """Return the sums of the log, or of one *run* there, and of the store; of a store in use, only that it is."""
    summary: dict[str, Any] = {
        "store": without_secrets(config.store, redact=False),
        "log": None if config.log is None else str(config.log),
    }
    summary |= _store_sums(config)
    sums = Sums()
    try:
        if config.log is not None and log_exists(config.log):
            sums = sums_of(config.log, run_named(config.log, run))
    except RecordsError as error:
        summary["note"] = str(error)
    return summary | {
        "verdicts": dict(sums.verdicts.most_common()),
        "outcomes": dict(sums.outcomes.most_common()),
        "unchecked": dict(sums.unchecked.most_common()),
        "kept": {f"by the {witness}: {reason}": count for (witness, reason), count in sums.kept.most_common()},
        "items_dropped": sums.items_dropped,
        "hosts": {f"{host} repeats {owner}": count for (host, owner), count in sums.pairs.most_common(_LISTED)},
    }


def _store_sums(config: Config) -> dict[str, Any]:
    if not store_exists(config.store):
        return {"state": "absent"}
    try:
        with index_for_command(config.store, "stats", common=config.common_clause, text_limit=config.text_limit) as (
            store,
            index,
        ):
            at_work = crawls_at_work(store)
            line = counted(store)
            items = {
                "dropped_items": index.dropped.count,
                "dropped_bytes": index.dropped.size,
                "to_release": to_release(store),
            }
    except StoreLockedError as error:
        return {"state": "in use by a running crawl", "holder": None if error.holder is None else str(error.holder)}
    sums = {"owners": line.owners, "duplicates": line.duplicates, **items}
    state = shared_by(at_work) if at_work else "closed"
    return {"state": state, "created": store.header.created, **sums}


def stats_text(sums: dict[str, Any], *, terminal: bool = False) -> str:
    """Return what :func:`stats` found for a person; at a *terminal* in tables, if rich is installed."""
    holder = f": {sums['holder']}" if sums.get("holder") else ""
    store = "none is named" if sums["store"] == "memory:" else sums["store"]
    lines = [f"store       {store}", f"            {sums['state']}{holder}"]
    if "owners" in sums:
        lines.append(f"            created {sums['created']}, {sums['owners']} owners, {sums['duplicates']} duplicates")
        lines.append(f"            {sums['dropped_items']} dropped items, {sums['dropped_bytes']} bytes")
    if sums.get("to_release"):
        lines.append(f"            {sums['to_release']} dropped items to be released by the next crawl")
    lines.append(f"log         {sums['log'] or 'none'}")
    if "note" in sums:
        lines.append(f"            {sums['note']}")
    names = {
        "verdicts": "verdicts",
        "outcomes": "outcomes",
        "not checked": "unchecked",
        "kept": "kept",
        "hosts": "hosts",
    }
    for name, field in names.items():
        rows = [(one_line(key), str(value)) for key, value in sums[field].items()]
        if terminal and rows:
            lines += ["", rendered(Table((name, "pages"), rows), terminal=True)]
        else:
            lines += [f"{'' if place else name:<11} {count:>7}  {key}" for place, (key, count) in enumerate(rows)]
    lines.append(f"items dropped {sums['items_dropped']:>5}")
    return "\n".join(lines)
