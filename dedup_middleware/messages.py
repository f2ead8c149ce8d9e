"""What a crawl's log says of the plugin at its start and at its end.

Law of this file: texts only; whoever asks for them logs them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dedup_middleware.addresses import without_secrets
from dedup_middleware.model import Action, Scope

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from dedup_middleware.config import Config
    from dedup_middleware.stores import OpenStore


def at_start(config: Config, store: OpenStore, overwritten: Iterable[str]) -> Iterator[str]:
    """Yield the lines of a crawl that begins; *overwritten* names its feeds that will be."""
    if config.store_is_default and not config.store.startswith("leveldb:"):
        yield "plyvel cannot be had here, so the store is SQLite"
    age = "new" if store.created else "kept from earlier crawls"
    yield f"action {config.action.value}, store {config.store} ({age})"
    feeds = ", ".join(without_secrets(uri, redact=False) for uri in overwritten)
    if feeds and not store.created and config.scope is Scope.STORE and config.action is Action.DROP:
        yield (
            f"{feeds} will be overwritten, but the store is kept: stories that earlier crawls delivered under "
            "other URLs will not be in it; DEDUP_SCOPE=crawl or `scrapy dedup reset` changes that"
        )


def at_end(config: Config, stat: Callable[[str], int]) -> str:
    """Return the summary of a crawl; *stat* gives the value of a ``dedup/*`` stat."""
    lines = [
        ("pages looked at", stat("pages")),
        ("items delivered", stat("items/delivered")),
        ("duplicates dropped", stat("items/dropped")),
        ("  in favour of earlier crawls", stat("items/dropped_for_earlier_crawls")),
        ("links followed last", stat("outlinks_last")),
    ]
    sometimes = (
        ("items/tagged", "duplicates tagged"),
        ("items/would_drop", "duplicates that would drop"),
        ("journal/requested_again", "dropped pages requested again"),
    )
    lines += [(label, stat(name)) for name, label in sometimes if stat(name)]
    text = "".join(f"\n  {label:<30} {value:>7}" for label, value in lines)
    if config.log is not None:
        text += f"\n  every verdict, with evidence:   {config.log}\n  to read it:                     scrapy dedup log"
    return f"dedup summary{text}"
