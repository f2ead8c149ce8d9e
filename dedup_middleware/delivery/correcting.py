"""What a person has told apart, listed and taken back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dedup_middleware.errors import ConfigError, NothingFoundError
from dedup_middleware.index.corrections import forget, read_corrections
from dedup_middleware.index.opening import index_for_command
from dedup_middleware.stores import resolved_uri, store_exists
from dedup_middleware.stores.refusals import nothing_there
from dedup_middleware.text.clauses import one_line
from dedup_middleware.urls import as_requested, without_secrets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dedup_middleware.settings.config import Config


def corrections(config: Config, *, forgotten: str | None = None) -> list[dict[str, Any]]:
    """Return the corrections in a closed store, oldest first; or those of the page *forgotten*, which are taken back.

    :class:`NothingFoundError` if there is none to forget; :class:`StoreError` if the store is in use or fails.
    """
    if not store_exists(config.store):
        raise ConfigError(nothing_there(resolved_uri(config.store)))
    limits = {"common": config.common_clause, "text_limit": config.text_limit}
    with index_for_command(config.store, "corrections", **limits) as (store, index):
        found = sorted(read_corrections(store), key=lambda told: told.time)
        if forgotten is not None:
            shown = without_secrets(as_requested(forgotten), redact=config.redact_query)
            found = [told for told in found if told.url == shown]
            if not found:
                raise NothingFoundError(f"{shown} was not corrected; `scrapy dedup corrections` lists what was")
            forget(index, found)
    return [{"url": told.url, "owner_url": told.owner_url, "time": told.time} for told in found]


def corrections_text(found: Sequence[dict[str, Any]], *, forgotten: bool) -> str:
    """Return what :func:`corrections` found for a person."""
    if not found:
        return "nothing was restored yet"
    may = "may repeat again" if forgotten else "does not repeat"
    return "\n".join(f"{c['time'][:19]}  {one_line(c['url'])}\n    {may} {one_line(c['owner_url'])}" for c in found)
