"""What the commands show: records, and the explanation of one page.

It reads records and closed stores, and returns plain data beside its text form. It changes nothing, but that the pages
of a store of before schema 5 are counted once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dedup_middleware.checks.alignment import compare
from dedup_middleware.errors import NothingFoundError, StoreLockedError
from dedup_middleware.fingerprints import instance_of
from dedup_middleware.index.opening import index_for_command
from dedup_middleware.records.log_reader import as_written, last_lines_with
from dedup_middleware.records.records import Record, log_exists, parse_record
from dedup_middleware.stores import store_exists
from dedup_middleware.text.clauses import one_line
from dedup_middleware.text.evidence import marked_sentences
from dedup_middleware.urls import as_requested, url_identity, without_secrets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dedup_middleware.fingerprints import Fingerprinter
    from dedup_middleware.index.index import Index
    from dedup_middleware.model import StoredPage
    from dedup_middleware.settings import Config

_LISTED = 10


def record_text(record: Record) -> str:
    """Return *record* for a person: a line, and its first evidence below."""
    score = f"{record.score:>4.0%}" if record.score is not None else "    "
    time, verdict, outcome = map(one_line, (record.time[:19], record.verdict, record.outcome))
    text = f"{time}  {verdict:<9} {outcome:<10} {score}  {one_line(record.url)}"
    if record.original_url:
        text += f"\n    repeats {one_line(record.original_url)}"
    if record.message:
        text += f"\n    because: {one_line(record.message)}"
    text += "".join(f"\n    its own: {one_line(own)}" for own in record.difference)
    return text + "".join(f"\n    | {one_line(sentence)}" for sentence in record.evidence[:2])


def explain(config: Config, url: str) -> dict[str, Any]:
    """Return all that is known of *url*, from the store and the log; :class:`NothingFoundError` if that is nothing."""
    url = as_requested(url)
    shown = without_secrets(url, redact=config.redact_query)
    last = _last_record(config, shown)
    explanation: dict[str, Any] = {"url": shown, "record": None if last is None else last.as_dict()}
    try:
        explanation["stored"] = _stored(config, url)
        explanation["note"] = ""
    except StoreLockedError as error:
        explanation["stored"] = None
        explanation["note"] = f"{error}; until then this is what the log says"
    if last is None and explanation["stored"] is None:
        log = "a log (there is none)" if config.log is None else f"the log {config.log}"
        store = without_secrets(config.store, redact=False)
        raise NothingFoundError(
            f"nothing is known of {shown}: neither the store {store} nor {log} names it"
            + (f" ({explanation['note']})" if explanation["note"] else "; a page that gave no item is not kept")
        )
    return explanation


def _stored(config: Config, url: str) -> dict[str, Any] | None:
    if not store_exists(config.store):
        return None
    with index_for_command(config.store, "explain") as (
        store,
        index,
    ):
        page = index.find([url_identity(url)])
        if page is None:
            return None
        fingerprint = instance_of(config.fingerprint, store.header.key)
        repeats = (
            [] if page.original is not None else [index.page(number) for number in index.duplicates_of(page.number)]
        )
        return {
            **_page_details(index, page, fingerprint),
            # One that was kept since, or repeats another page now, is none.
            "repeated_by": [other.url for other in repeats if other is not None and other.original == page.number],
        }


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


def explanation_text(explanation: dict[str, Any]) -> str:
    """Return what :func:`explain` found for a person, sentence by sentence."""
    stored, record = explanation["stored"], explanation["record"]
    lines = [one_line(explanation["url"])]
    if explanation["note"]:
        lines.append(f"  ({explanation['note']})")
    if record is not None:
        lines += ["", "the last record:", *record_text(Record(**record)).splitlines()]
    if stored is not None:
        lines += ["", *_stored_lines(stored)]
    return "\n".join(lines)


def _stored_lines(stored: dict[str, Any]) -> Iterator[str]:
    sentences = stored["sentences"]
    if stored["kind"] == "duplicate":
        yield f"stored {one_line(stored['since'])} as a duplicate: {stored['score']:.0%} of its text is in"
        if stored["original_url"] is None:
            yield "  a page that is not stored any more, so that nothing tells which sentences it repeats:"
        else:
            yield f"  {one_line(stored['original_url'])}" + ", which has changed since" * stored["original_changed"]
            yield "sentence by sentence ('=' repeated, '+' not, ' ' too short to tell):"
        for sentence in sentences:
            share = sentence["share"]
            yield f"  {' ' if share is None else '=' if share >= 0.5 else '+'} {one_line(sentence['text'])}"  # noqa: PLR2004
    else:
        repeats = len(stored["repeated_by"])
        since, clauses = one_line(stored["since"]), stored["clauses"]
        yield f"stored {since} as an original of {clauses} clauses; repeated by {repeats}:"
        yield from (f"  {one_line(url)}" for url in stored["repeated_by"][:_LISTED])
        yield "its text:"
        yield from (f"    {one_line(sentence['text'])}" for sentence in sentences)
    if not sentences:
        yield "  (its text is not stored)"


def _last_record(config: Config, url: str) -> Record | None:
    if config.log is None or not log_exists(config.log):
        return None
    found = (parse_record(line.decode("utf8", "replace")) for line in last_lines_with(config.log, as_written(url)))
    return next((record for record in found if record is not None and record.url == url), None)
