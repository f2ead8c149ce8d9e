"""Explains one page by what the log and a closed store contain of it. It changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dedup_middleware.checks.alignment import compare
from dedup_middleware.errors import NothingFoundError, StoreLockedError
from dedup_middleware.fingerprints import instance_of
from dedup_middleware.index.opening import index_for_command
from dedup_middleware.records.log import last_record, log_exists
from dedup_middleware.stores import store_exists
from dedup_middleware.text.evidence import marked_sentences
from dedup_middleware.urls import as_requested, url_identity, without_secrets

if TYPE_CHECKING:
    from dedup_middleware.fingerprints import Fingerprinter
    from dedup_middleware.index.index import Index
    from dedup_middleware.model import StoredPage
    from dedup_middleware.settings import Config


def explain(config: Config, url: str) -> dict[str, Any]:
    """Return what the store and the log contain of *url*; :class:`NothingFoundError` if that is nothing."""
    url = as_requested(url)
    shown = without_secrets(url, redact=config.redact_query)
    last = None
    if config.log is not None and log_exists(config.log):
        last = last_record(config.log, shown, lambda record: record.url == shown)
    stored, note = None, ""
    try:
        stored = _stored(config, url)
    except StoreLockedError as error:
        note = f"{str(error).rstrip('.')}. Until then, only the log is shown."
    if last is None and stored is None:
        log = "" if config.log is None else f" and the log {config.log}"
        why = note or "A page without items is not stored."
        store = without_secrets(config.store, redact=False)
        raise NothingFoundError(f"Nothing found of {shown} in the store {store}{log}. {why}")
    return {"url": shown, "record": None if last is None else last.as_dict(), "stored": stored, "note": note}


def _stored(config: Config, url: str) -> dict[str, Any] | None:
    if not store_exists(config.store):
        return None
    with index_for_command(config.store, "explain") as (store, index):
        page = index.find([url_identity(url)])
        if page is None:
            return None
        fingerprint = instance_of(config.fingerprint, store.header.key)
        if page.original is None:
            others = (index.page(number) for number in index.duplicates_of(page.number))
            # One that was kept since, or repeats another page now, is left out.
            repeated_by = [other.url for other in others if other is not None and other.original == page.number]
        else:
            repeated_by = []
        return {**_page_details(index, page, fingerprint), "repeated_by": repeated_by}


def _page_details(index: Index, page: StoredPage, fingerprint: Fingerprinter) -> dict[str, Any]:
    original = None if page.original is None else index.page(page.original)
    text = index.text(page.number)
    held = page.hashes
    if original is not None:
        held = original.hashes
        nearly = compare(
            text, index.text(original.number), has=lambda clause: fingerprint.hash(clause) in original.hashes
        )
        held |= frozenset(map(fingerprint.hash, nearly.near))
    is_gone = page.original is not None and original is None
    return {
        "kind": "original" if page.original is None else "duplicate",
        "since": page.time,
        "run": page.run,
        "clauses": len(page.hashes),
        "original_url": original.url if original else None,
        "original_changed": original is not None and not original.is_original_of(page),
        "score": page.score if page.original is not None else None,
        "sentences": [
            {"text": s.text, "share": None if s.share is None or is_gone else round(s.share, 4)}
            for s in marked_sentences(text, held, fingerprint.hash)
        ],
    }
