"""``scrapy dedup store``: shows, shrinks, deletes and copies the store."""

from __future__ import annotations

import argparse
import gzip
import io
import lzma
import re
import sys
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from dedup_middleware.cli.call import NothingYetError, confirm
from dedup_middleware.cli.options import HOST, YES, Subcommand, option, url_argument
from dedup_middleware.common.permissions import whole_file
from dedup_middleware.common.urls import as_requested, without_secrets
from dedup_middleware.errors import CallError, ConfigError, NothingFoundError
from dedup_middleware.fingerprints import fingerprinter
from dedup_middleware.index import schema, transfer
from dedup_middleware.index.dropped_items import Release
from dedup_middleware.index.forget import choose, forget
from dedup_middleware.index.shared import index_for_command
from dedup_middleware.records.file import host_named, logs_of, recorded_url, remove_log
from dedup_middleware.stores import destroy_store, parse_uri, refusals, size_of_store, store_exists
from dedup_middleware.stores.engines import ENGINES
from dedup_middleware.text.clauses import one_line
from dedup_middleware.text.terminal import counted, plural, progress, tell

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dedup_middleware.cli.call import Call
    from dedup_middleware.index.forget import Chosen
    from dedup_middleware.settings import Config
    from dedup_middleware.stores import OpenStore

_AGE = re.compile(r"(\d{1,6})d")
# That of `gzip`: 9, Python's default, takes twice the time for hardly fewer bytes.
_GZIP_LEVEL = 6


# --- info


def info(call: Call) -> None:
    """Print the contents and the size of the store. A scan of all pages; :class:`StoreError` if it is in use."""
    uri = call.config.store
    size = size_of_store(uri)
    with index_for_command(uri, "store info") as (store, index):
        (originals, duplicates), at_work = index.count(), crawls_at_work(store)
        found = {
            "store": without_secrets(uri, redact=False),
            "fingerprint": store.header.scheme,
            "schema": store.header.schema,
            "created": store.header.created.isoformat(),
            "bytes": size,
            "originals": originals,
            "duplicates": duplicates,
            "dropped_items": index.dropped.count,
            "dropped_bytes": index.dropped.size,
            "to_release": to_release(store),
            "crawls": len(at_work),
        }
    call.show(found, info_text)


def info_text(found: Mapping[str, Any]) -> str:
    """Return what `info` found for a person, a line each."""
    size = found["bytes"]
    lines = {
        "store": found["store"],
        "fingerprint": found["fingerprint"],
        "schema": str(found["schema"]),
        "created": found["created"],
        "size": "unknown: it is on a server" if size is None else f"{size:,} bytes",
        "originals": f"{found['originals']:,}",
        "duplicates": f"{found['duplicates']:,}",
        "dropped items": f"{found['dropped_items']:,}, {found['dropped_bytes']:,} bytes",
        "to release": plural(found["to_release"], "item"),
        "in use by": plural(found["crawls"], "crawl"),
    }
    return "\n".join(f"{name:<14} {one_line(value)}" for name, value in lines.items())


def crawls_at_work(store: OpenStore) -> list[bytes]:
    """Return the workers that crawl with a shared *store*. A scan, and a look at each."""
    return [key[1:] for key, _ in store.scan(*schema.WORKERS) if store.worker and store.is_at_work(key[1:])]


def to_release(store: OpenStore) -> int:
    """Return how many items the next crawl releases, without those that processes at work have. A scan."""
    marks = [schema.decode(Release, value) for _, value in store.scan(*schema.RELEASES)]
    return sum(not (mark.holder and store.worker and store.is_at_work(mark.holder)) for mark in marks)


# --- forget


def _age(text: str) -> timedelta:
    days = _AGE.fullmatch(text)
    if days is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of days, such as 90d")
    return timedelta(days=int(days[1]))


def forget_pages(call: Call) -> None:
    """Delete the pages that are wanted, after confirmation, and print how many they are."""
    config, opts = call.config, call.opts
    if not (opts.url or opts.host or opts.older_than is not None):
        raise CallError("name the pages by URL, --host or --older-than; `scrapy dedup store reset` deletes all")
    wanted = {"url": opts.url and as_requested(opts.url), "host": host_named(opts.host), "older_than": opts.older_than}
    store = without_secrets(config.store, redact=False)
    opening = partial(index_for_command, config.store, "store forget", fingerprint=config.fingerprint)
    with opening() as (_, index), progress("choosing pages"):
        chosen = choose(index, **wanted)
    if opts.url and not (chosen.total or chosen.to_release):
        what = f"{recorded_url(opts.url, config)} is not stored in {store}"
        raise NothingFoundError(what, "See `scrapy dedup explain URL`.")
    if chosen.total and not opts.dry_run:
        if not opts.yes:
            # The store is closed meanwhile: a crawl does not wait for a person.
            confirm(f"This deletes {_count(chosen)} from {store}.")
        with opening() as (_, index), progress("deleting pages"):
            chosen = choose(index, **wanted)
            forget(index, chosen)
    numbers = {"originals": len(chosen.originals), "duplicates": len(chosen.duplicates)}
    report = {"store": store, "dry_run": opts.dry_run, **numbers, "to_release": chosen.to_release, "urls": chosen.urls}
    call.show(report, lambda _: _forgotten_text(config, chosen, is_dry_run=opts.dry_run))


def _count(chosen: Chosen) -> str:
    originals, duplicates = plural(len(chosen.originals), "original"), plural(len(chosen.duplicates), "duplicate")
    return f"{plural(chosen.total, 'page')} ({originals}, {duplicates})"


def _forgotten_text(config: Config, chosen: Chosen, *, is_dry_run: bool) -> str:
    if chosen.total:
        lines = [f"Would delete {_count(chosen)}" if is_dry_run else f"Deleted {_count(chosen)}"]
    else:
        lines = ["No such page in the store; nothing to do"]
    lines += [f"    {one_line(url)}" for url in chosen.urls]
    if chosen.total > len(chosen.urls):
        lines.append(f"    and {chosen.total - len(chosen.urls)} more")
    if chosen.to_release:
        lines.append(f"Kept {plural(chosen.to_release, 'page')} with items that the next crawl has to release first")
    if chosen.total and not is_dry_run and parse_uri(config.store)[0] in ENGINES:
        lines.append(
            f"To reclaim their disk space now: `{refusals.scrapy_dedup('store', 'compact', store=config.store)}`"
        )
    return "\n".join(lines)


# --- reset and compact


def reset(call: Call) -> None:
    """Delete the store, and the records if that is wanted, after confirmation."""
    opts = call.opts
    try:
        config = call.config
    except NothingYetError:
        call.show({"removed": False, "log_removed": False}, lambda _: "No store; nothing to do")
        return
    store, shown_store = config.store, without_secrets(config.store, redact=False)
    logs = logs_of(config) if opts.log else []
    doomed = [f"the store {shown_store} with its dropped items"] * store_exists(store)
    doomed += [f"the records {path}" for path in logs]
    if doomed and not opts.yes:
        confirm(f"This deletes {' and '.join(doomed)}.")
    removed = destroy_store(store)
    logs = [path for path in logs if remove_log(path)]
    lines = [f"Deleted the store {shown_store}"] * removed + [f"Deleted the records {path}" for path in logs]
    shown = config.log and str(config.log)
    call.show(
        {"store": shown_store, "removed": removed, "log": shown, "log_removed": bool(logs)},
        lambda _: "\n".join(lines) or f"No store at {shown_store}; nothing to do",
    )


def compact(call: Call) -> None:
    """Compact the store, and print its size before and after."""
    uri = call.config.store
    before = size_of_store(uri)
    with index_for_command(uri, "store compact") as (store, _), progress("compacting the store"):
        store.compact()
    after, shown = size_of_store(uri), without_secrets(uri, redact=False)
    sizes = "" if before is None or after is None else f": {before:,} bytes before, {after:,} after"
    found = {"store": shown, "bytes_before": before, "bytes_after": after}
    call.show(found, lambda _: f"Compacted the store {shown}{sizes}")


# --- export and import


def export(call: Call) -> None:
    """Write a copy of the store; to standard error what it has, if the copy does not go to standard output."""
    config, output = call.config, call.opts.output
    opening = index_for_command(config.store, "store export", fingerprint=config.fingerprint)
    with opening as (store, index), _opened(output) as file:
        # A copy has no claims that a crash has left open.
        index.sweep()
        lines = transfer.lines_of(store.header, transfer.pairs_of(store))
        for line in lines if output == "-" else counted(lines, "lines written"):
            file.write(line + "\n")
    if output != "-":
        tell(f"Wrote {output}. It contains the texts and the key of the store: keep it private.")


@contextmanager
def _opened(output: str) -> Iterator[IO[str]]:
    """Open the file *output*, compressed by its suffix; ``-`` is standard output."""
    if output == "-":
        yield sys.stdout
        return
    path = Path(output)
    with ExitStack() as stack:
        raw: Any = stack.enter_context(whole_file(path, transfer.is_copy))
        if path.suffix == ".gz":
            # Without a name and a time: the same store makes the same file.
            raw = stack.enter_context(gzip.GzipFile("", "wb", _GZIP_LEVEL, raw, mtime=0))
        elif path.suffix == ".xz":
            raw = stack.enter_context(lzma.open(raw, "wb"))
        yield stack.enter_context(io.TextIOWrapper(raw, encoding="utf8", newline="\n"))


def import_(call: Call) -> None:
    """Fill the empty store with a copy of another one, and print what it has."""
    config, path = call.config, call.opts.file
    uri = config.store
    if uri == "memory:":
        raise refusals.absent(uri)
    with transfer.opened_copy(path) as (header, _):
        scheme = fingerprinter(config.fingerprint).scheme
        if header.scheme != scheme:
            raise ConfigError(
                f"{path} contains fingerprints of scheme {header.scheme!r:.80}, but "
                f"DEDUP_FINGERPRINT={config.fingerprint!r} makes {scheme!r}",
                "Set it as the store of the file had it.",
            )
    with progress(f"importing {one_line(str(path))}"):
        counts, shown = transfer.import_copy(path, uri), without_secrets(uri, redact=False)
    kinds = (plural(count, kind.replace("_", " ")[:-1]) for kind, count in counts.items())
    call.show({"store": shown, **counts}, lambda _: f"Imported into {shown}: {', '.join(kinds)}")


_TOO = option("--log", action="store_true", help="delete the records too")
_INTO = option(
    "-o", "--output", metavar="FILE", default="-", help="FILE, FILE.gz or FILE.xz (default: standard output)"
)
_FROM = option("file", metavar="FILE", type=Path, help="a file that `scrapy dedup store export` wrote")
COMMANDS = {
    "store info": Subcommand(info, ("store info", "store info --json -s DEDUP_STORE=sqlite:/data/dedup")),
    "store forget": Subcommand(
        forget_pages,
        (
            "store forget https://example.org/story",
            "store forget --host example.org --dry-run",
            "store forget --older-than 90d --yes",
        ),
        (
            *(url_argument(nargs="?"), HOST),
            option(
                "--older-than", metavar="DAYS", type=_age, help="only pages last stored more than DAYS ago, such as 90d"
            ),
            option("--dry-run", action="store_true", help="show what would be deleted, and delete nothing"),
            YES,
        ),
    ),
    "store reset": Subcommand(reset, ("store reset", "store reset --log --yes"), (_TOO, YES)),
    "store compact": Subcommand(compact, ("store compact",)),
    "store export": Subcommand(export, ("store export -o store.jsonl.xz",), (_INTO,)),
    "store import": Subcommand(import_, ("store import store.jsonl.xz -s DEDUP_STORE=sqlite:/data/dedup",), (_FROM,)),
}
