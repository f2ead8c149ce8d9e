"""``scrapy dedup store forget``: deletes pages from the store."""

from __future__ import annotations

import argparse
import json
import re
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

from dedup_middleware.cli.call import add_common_options, ask, existing_store, host_named
from dedup_middleware.commandlines import scrapy_dedup
from dedup_middleware.errors import CallError
from dedup_middleware.index.opening import index_for_command
from dedup_middleware.index.transfer import Forgettable, choose, forget
from dedup_middleware.stores import ON_DISK, parse_uri, resolved_uri
from dedup_middleware.terminal import working
from dedup_middleware.text.clauses import one_line
from dedup_middleware.urls import as_requested, without_secrets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dedup_middleware.cli.call import Call
    from dedup_middleware.index.index import Index
    from dedup_middleware.index.transfer import Chosen
    from dedup_middleware.settings import Config


_AGE = re.compile(r"(\d{1,6})d")

EXAMPLES = (
    "store forget https://example.org/story",
    "store forget --host example.org --dry-run",
    "store forget --older-than 90d --yes",
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Let *parser* read the options of the command."""
    add_common_options(parser)
    parser.add_argument("url", metavar="URL", nargs="?", help="page URL, exactly as it was crawled")
    parser.add_argument("--host", metavar="H", help="only pages of this host and its subdomains")
    parser.add_argument(
        "--older-than", metavar="90d", type=_age, help="only pages last stored more than N days ago, such as 90d"
    )
    parser.add_argument("--dry-run", action="store_true", help="show what would be deleted")
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")


def _age(text: str) -> timedelta:
    days = _AGE.fullmatch(text)
    if days is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no age: write a whole number of days, such as 90d")
    return timedelta(days=int(days[1]))


def run(call: Call) -> None:
    """Delete the pages that are wanted, after confirmation, and print how many they are."""
    config, opts = call.config, call.opts
    wanted = _wanted(opts)
    with _index(config) as index, working("looking at each page of the store"):
        chosen = choose(index, wanted)
    if chosen and not (opts.yes or opts.dry_run):
        # The store is closed meanwhile: a crawl does not wait for a person.
        ask(f"This deletes {_count(chosen)} in {without_secrets(existing_store(config), redact=False)}.")
    if chosen and not opts.dry_run:
        with _index(config) as index, working("deleting pages"):
            chosen = choose(index, wanted)
            forget(index, chosen)
    print(json.dumps(_report(config, chosen, opts)) if opts.json else _text(config, chosen, opts))


def _wanted(opts: argparse.Namespace) -> Forgettable:
    if not (opts.url or opts.host or opts.older_than is not None):
        raise CallError("name the pages: URL, --host H or --older-than 90d; `scrapy dedup store reset` deletes all")
    return Forgettable(opts.url and as_requested(opts.url), host_named(opts.host), opts.older_than)


@contextmanager
def _index(config: Config) -> Iterator[Index]:
    with index_for_command(existing_store(config), "store forget", fingerprint=config.fingerprint) as (_, index):
        yield index


def _count(chosen: Chosen) -> str:
    pages = len(chosen)
    return (
        f"{pages} page{'s' * (pages != 1)}, {len(chosen.originals)} originals and {len(chosen.duplicates)} duplicates,"
    )


def _report(config: Config, chosen: Chosen, opts: argparse.Namespace) -> dict[str, object]:
    return {
        "store": without_secrets(existing_store(config), redact=False),
        "dry_run": opts.dry_run,
        "originals": len(chosen.originals),
        "duplicates": len(chosen.duplicates),
        "in_doubt": chosen.in_doubt,
        "urls": chosen.urls,
    }


def _text(config: Config, chosen: Chosen, opts: argparse.Namespace) -> str:
    said = "would be" if opts.dry_run else "were" if len(chosen) != 1 else "was"
    lines = [f"{_count(chosen)} {said} deleted" if chosen else "no such page in the store; nothing to do"]
    lines += [f"    {one_line(url)}" for url in chosen.urls]
    if len(chosen) > len(chosen.urls):
        lines.append(f"    and {len(chosen) - len(chosen.urls)} more")
    if chosen.in_doubt:
        lines.append(f"{chosen.in_doubt} pages stay: the next crawl has to recover them first")
    store = resolved_uri(config.store)
    if chosen and not opts.dry_run and parse_uri(store)[0] in ON_DISK:
        lines.append(f"to reclaim their disk space at once: `{scrapy_dedup('store', 'compact', store=store)}`")
    return "\n".join(lines)
