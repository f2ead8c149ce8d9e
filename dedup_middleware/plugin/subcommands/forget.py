"""``scrapy dedup forget``: take pages out of the store."""

from __future__ import annotations

import argparse
import json
import re
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

from dedup_middleware.commandlines import scrapy_dedup
from dedup_middleware.errors import CallError
from dedup_middleware.index.forgetting import Forgettable, choose, forget
from dedup_middleware.index.opening import index_for_upkeep
from dedup_middleware.inspection.progress import working
from dedup_middleware.plugin.commands import NOTHING_FOUND
from dedup_middleware.plugin.subcommands.call import add_common_options, ask, existing_store, host_named
from dedup_middleware.stores import ON_DISK, parse_uri, resolved_uri
from dedup_middleware.text.clauses import one_line
from dedup_middleware.urls import as_requested, without_secrets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dedup_middleware.index.forgetting import Chosen
    from dedup_middleware.index.index import Index
    from dedup_middleware.plugin.subcommands.call import Call
    from dedup_middleware.settings.config import Config


_AGE = re.compile(r"(\d{1,6})d")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Let *parser* read the options of the command."""
    add_common_options(parser)
    parser.add_argument("url", metavar="URL", nargs="?", help="the page's address, as the crawl had it")
    parser.add_argument("--host", metavar="H", help="pages of this host and its subdomains")
    parser.add_argument("--older-than", metavar="90d", type=_age, help="pages stored more than so many days ago")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be forgotten")
    parser.add_argument("--yes", action="store_true", help="do not ask")


def _age(text: str) -> timedelta:
    days = _AGE.fullmatch(text)
    if days is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no age: write a whole number of days, such as 90d")
    return timedelta(days=int(days[1]))


def run(call: Call) -> int:
    """Forget the pages that are wanted, once a person agrees, and print how many they are."""
    config, opts = call.config, call.opts
    wanted = _wanted(opts)
    with _index(config) as index, working("looking at each page of the store"):
        chosen = choose(index, wanted)
    if chosen and not (opts.yes or opts.dry_run):
        # The store is closed meanwhile: a crawl does not wait for a person.
        ask(f"This forgets {_count(chosen)} in {without_secrets(existing_store(config), redact=False)}.")
    if chosen and not opts.dry_run:
        with _index(config) as index, working("forgetting pages"):
            chosen = choose(index, wanted)
            forget(index, chosen)
    print(json.dumps(_report(config, chosen, opts)) if opts.json else _text(config, chosen, opts))
    # That nothing is old enough by now is what whoever asks every day mostly hears.
    return NOTHING_FOUND if opts.url and not chosen else 0


def _wanted(opts: argparse.Namespace) -> Forgettable:
    if not (opts.url or opts.host or opts.older_than is not None):
        raise CallError("say which pages: a URL, --host H, or --older-than 90d; `scrapy dedup reset` forgets all")
    return Forgettable(opts.url and as_requested(opts.url), host_named(opts.host), opts.older_than)


@contextmanager
def _index(config: Config) -> Iterator[Index]:
    with index_for_upkeep(
        existing_store(config),
        "forget",
        common=config.common_clause,
        text_limit=config.text_limit,
        fingerprint=config.fingerprint,
        distance=config.simhash_distance,
    ) as (_, index):
        yield index


def _count(chosen: Chosen) -> str:
    pages = len(chosen)
    return f"{pages} page{'s' * (pages != 1)}, {len(chosen.owners)} owners and {len(chosen.duplicates)} duplicates,"


def _report(config: Config, chosen: Chosen, opts: argparse.Namespace) -> dict[str, object]:
    return {
        "store": without_secrets(existing_store(config), redact=False),
        "dry_run": opts.dry_run,
        "owners": len(chosen.owners),
        "duplicates": len(chosen.duplicates),
        "in_doubt": chosen.in_doubt,
        "urls": chosen.urls,
    }


def _text(config: Config, chosen: Chosen, opts: argparse.Namespace) -> str:
    said = "would be" if opts.dry_run else "were" if len(chosen) != 1 else "was"
    lines = [f"{_count(chosen)} {said} forgotten" if chosen else "no page is meant, and none was forgotten"]
    lines += [f"    {one_line(url)}" for url in chosen.urls]
    if len(chosen) > len(chosen.urls):
        lines.append(f"    and {len(chosen) - len(chosen.urls)} more")
    if chosen.in_doubt:
        lines.append(f"{chosen.in_doubt} stay: the next crawl is to release or to roll back what a crash has left")
    store = resolved_uri(config.store)
    if chosen and not opts.dry_run and parse_uri(store)[0] in ON_DISK:
        lines.append(f"their room comes free by and by; `{scrapy_dedup('compact', store=store)}` gives it back at once")
    return "\n".join(lines)
