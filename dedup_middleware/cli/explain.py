"""Runs ``scrapy dedup explain``: shows what is stored of a page, and why it was kept or dropped."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import msgspec
from rapidfuzz.distance import Levenshtein

from dedup_middleware.api import examined, would_be_checked
from dedup_middleware.checks.detector import Detector
from dedup_middleware.checks.edits import Original, compare
from dedup_middleware.cli.changes import change_lines
from dedup_middleware.cli.options import NO_PAGE, OF_PAGE_OR_KEY, Subcommand, option, url_argument
from dedup_middleware.common.plain_files import FILES, STREAMS, open_file
from dedup_middleware.common.urls import as_requested, identities_near, url_identity, without_secrets
from dedup_middleware.errors import ConfigError, NothingFoundError, StoreLockedError
from dedup_middleware.fingerprints import instance_of
from dedup_middleware.index.shared import index_for_command
from dedup_middleware.items.keys import ItemKeys, as_shown
from dedup_middleware.model import KEYED, VerdictKind, is_marked
from dedup_middleware.plugin.addon import annex
from dedup_middleware.reasons import Outcome, message_of
from dedup_middleware.records.file import Record, RecordFilter, recorded_near, records_of
from dedup_middleware.stores import store_exists
from dedup_middleware.text.clauses import marked_sentences, one_line
from dedup_middleware.text.terminal import fitted, plural, styled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dedup_middleware.checks.detector import Examined
    from dedup_middleware.cli.call import Call
    from dedup_middleware.fingerprints import Fingerprinter
    from dedup_middleware.index.index import Index
    from dedup_middleware.model import StoredPage
    from dedup_middleware.settings import Config


def explain(config: Config, name: str) -> dict[str, Any]:
    """Return what the store and the records contain of the page, or item, with this URL, or key, as its *name*.

    A key comes first. :class:`NothingFoundError` if there is nothing.
    """
    name = as_shown(name)
    url = as_requested(name)
    shown, identities = without_secrets(url, redact=config.redact_query), [url_identity(url)]
    may_be_key = bool(config.key) or "://" not in name
    last = last_record(config, RecordFilter(key=name)) if may_be_key else None
    keys: list[str] = []
    if last is None:
        last, keys = _last_of_page(config, shown)
    if last is None and not may_be_key:
        last = last_record(config, RecordFilter(key=name))
    is_key = last is not None and bool(last.key)
    if is_key or (last is None and config.key):
        of_key = [identity_of_key(config, name, last)]
        shown, identities = (name, of_key) if is_key or "://" not in name else (shown, identities + of_key)
    stored, near, note = None, "", ""
    try:
        stored, near = _stored(config, url, identities)
    except StoreLockedError as error:
        note = f"{error} Until then, only the records are shown."
    if is_key and not config.key:
        note = "DEDUP_KEY is not set here, so only the records are shown. Set it, as in -s DEDUP_KEY=id."
    forms = None if config.log is None else annex("forms")
    last_form = None if forms is None else forms.last_form(config.log, url)
    if last is None and stored is None:
        raise _not_found(config, shown, near, last_form, note)
    found = None if last is None else last.as_dict()
    return {"url": shown, "record": found, "keys": keys, "stored": stored, "fetched_last": last_form, "note": note}


def identity_of_key(config: Config, name: str, last: Record | None) -> bytes:
    """Return the identity of the key *name*; *last*, a record of it, has it in full, and its spider."""
    text, spider = (last.key, last.spider) if last is not None else (name, config.spider or "")
    return ItemKeys(spider, config.key).shown(text).identity


def _last_of_page(config: Config, url: str) -> tuple[Record | None, list[str]]:
    """Return the last record of the page at *url*, and the keys that its items had in that crawl."""
    last, keys = None, dict[str, str]()
    for record in records_of(config, RecordFilter(url=url)):
        if record.key:
            keys[record.key] = record.crawl
        else:
            last = record.standing_on(last)
    return last, [key for key, crawl in keys.items() if last is not None and crawl == last.crawl]


def last_record(config: Config, wanted: RecordFilter) -> Record | None:
    """Return the last of the records that are *wanted*, with what it still shows of those before."""
    last = None
    for record in records_of(config, wanted):
        last = record.standing_on(last)
    return last


def _not_found(config: Config, shown: str, near: str, last_form: dict[str, Any] | None, note: str) -> NothingFoundError:
    """Return the error that the page at *shown* is not there, with the nearest URL: *near* of the store, or a record's.

    So that nobody takes another page for it, only a URL with the same host and path counts.
    """
    log = "" if config.log is None else f" and the records {config.log}"
    what = [f"{shown} was not found in the store {without_secrets(config.store, redact=False)}{log}."]
    urls = [*filter(None, [without_secrets(near, redact=config.redact_query)]), *recorded_near(config, shown)]
    if urls:
        what.append(f"The nearest URL there is {min(urls, key=lambda url: Levenshtein.distance(shown, url))}.")
    elif not note:
        what.append("A page without items is not stored.")
    if last_form is not None:
        put_off = f"{last_form['nothing']} of {plural(last_form['pages'], 'page')} of that form brought nothing new"
        what.append(f"Requests of its form {last_form['form']} were put off: {put_off}.")
    return NothingFoundError(" ".join(what), note)


def _stored(config: Config, url: str, identities: list[bytes]) -> tuple[dict[str, Any] | None, str]:
    """Return what the store has with one of these *identities*; if that is nothing, a URL near *url* that it has."""
    if not store_exists(config.store):
        return None, ""
    with index_for_command(config.store, "explain") as (store, index):
        page = index.find(identities)
        if page is None:
            other = index.find(identities_near(url))
            return None, "" if other is None else other.url
        fingerprint = instance_of(config.fingerprint, store.header.key)
        found = _page_details(index, page, fingerprint) | {"repeated_by": [], "nearest": None}
        if page.original is None:
            others = (index.page(number) for number in index.duplicates_of(page.number))
            # One that was kept since, or repeats another page now, is left out.
            found["repeated_by"] = [each.url for each in others if each is not None and each.original == page.number]
            detector = Detector(index, fingerprint.hash, config.rules)
            if (near := detector.nearest(index.read_again(page, "", fingerprint))) is not None:
                found["nearest"] = {"url": near.original.url, "score": round(near.score, 4)}
        return found, ""


def _page_details(index: Index, page: StoredPage, fingerprint: Fingerprinter) -> dict[str, Any]:
    is_copy = page.original is not None
    original = None if page.original is None else index.page(page.original)
    # The marks belong to the verdict: of an original that has another text by now there are none.
    has_changed = original is not None and not original.is_original_of(page)
    text = index.text(page.number)
    if page.source == KEYED and page.item_content is not None:
        text = [*page.item_content.digest.decode("utf8", "replace").split("\n"), *index.items_of(page)[0]]
    is_held = original is not None and not has_changed
    held, near = page.hashes, frozenset[str]()
    if original is not None and is_held:
        held, near = original.hashes, compare(text, Original(index.text(original.number))).near
    marked = marked_sentences(text, held, fingerprint.hash)
    shares = ((each.text, 1.0 if each.share is not None and each.text in near else each.share) for each in marked)
    sentences = [(text, None if share is None else round(share, 4)) for text, share in shares]
    return {
        "kind": "duplicate" if is_copy else "original",
        "since": page.time,
        "crawl": page.run,
        "text": page.text_mark,
        "clauses": len(page.hashes),
        "original_url": original.url if original else None,
        "original_changed": has_changed,
        "score": page.score if is_copy else None,
        "sentences": [{"text": text, "share": share if is_held or not is_copy else None} for text, share in sentences],
    }


_LISTED = 10
_ITEMS_TOO = "In a crawl, its items are compared too before they are dropped."
_REPEATED = 0.5
#: Repeated sentences of a record that are shown.
_SENTENCES = 2
_STYLES = {"dropped": "red", "would_drop": "yellow", "tagged": "yellow", "released": "green", "related": "green"}


def run(call: Call) -> None:
    """Print the explanation, or the record that the page would have."""
    opts = call.opts
    if opts.other is None and opts.other_html is not None:
        raise ConfigError("--other-html needs the URL of the other page", "use `explain URL OTHER --other-html FILE`.")
    html, other_html = (None if name is None else _read(name) for name in (opts.html, opts.other_html))
    if opts.other is not None:
        # Two files need no store.
        config = call.config_of(opts.spider) if html and other_html else call.config
        found = examined(config, (opts.url, html), (opts.other, other_html))
        call.show(_as_dict(found), examined_text)
    elif html is None:
        call.show(explain(call.config, opts.url), explanation_text)
    else:
        record = would_be_checked(call.config, opts.url, html)
        print(record.to_line() if opts.json else record_text(record))
        if record.is_duplicate and not opts.json:
            print(_ITEMS_TOO)


def _as_dict(found: Examined) -> dict[str, Any]:
    """Return how two pages compare, as JSON has it."""
    return {
        "url": found.url,
        "other_url": found.other_url,
        "verdict": found.verdict.kind.value,
        "reason": found.verdict.reason or None,
        "score": round(found.score, 4),
        "relation": found.relation.value,
        "edits": [
            {"kind": edit.kind.value, "here": edit.here, "there": edit.there, "line": edit.line, "copy": may_differ}
            for edit, may_differ in found.edits
        ],
    }


def examined_text(shown: dict[str, Any]) -> str:
    """Return how two pages compare for a person: the verdict, then each edit."""
    reason = f": {shown['reason']} ({message_of(shown['reason'])})" if shown["reason"] else ""
    lines = [
        one_line(shown["url"]),
        f"  compared with {one_line(shown['other_url'])}",
        f"  {shown['relation']}: {shown['score']:.2f} of its text is there",
        "",
        styled(shown["verdict"], "bold") + reason,
    ]
    if shown["verdict"] == VerdictKind.DUPLICATE:
        lines.append(_ITEMS_TOO)
    edits = sorted(shown["edits"], key=itemgetter("copy"))
    for edit in edits[:_LISTED]:
        lines.append(f"  {'copy' if edit['copy'] else 'two':<5} {edit['kind']}")
        lines += [f"    {where:<6} {one_line(edit[where])}" for where in ("here", "there") if edit[where]]
    if len(edits) > _LISTED:
        lines.append(f"  and {len(edits) - _LISTED} more; --json has them all")
    return "\n".join(lines)


def _read(name: str) -> bytes:
    try:
        with nullcontext(sys.stdin.buffer) if name == "-" else open_file(name, kinds=(*FILES, *STREAMS)) as file:
            return file.read()
    except OSError as error:
        raise ConfigError(f"--html {name} cannot be read ({error.strerror or error})", "Name another file.") from error


def record_text(record: Record) -> str:
    """Return *record* for a person: a line, and the details below."""
    # What became of a duplicate implies its verdict. An unchanged page has the reason for which it was kept at first.
    is_unchanged = record.verdict == VerdictKind.UNCHANGED
    what = one_line(record.verdict if is_unchanged or record.outcome == Outcome.KEPT else record.outcome)
    score = "" if record.score is None else f"{record.score:.2f}"
    first = fitted(one_line(record.url or NO_PAGE), f"{what:<10} {score:>4}  ")
    details = [fitted(one_line(text), f"    {name:<8}  ") for name, text in _details(record) if text]
    return "\n".join([first.replace(what, styled(what, _STYLES.get(what, "bold")), 1), *details])


def _details(record: Record) -> Iterator[tuple[str, str | None]]:
    if record.verdict == VerdictKind.UNCHANGED and record.outcome != Outcome.KEPT:
        yield "items", record.outcome
    if record.outcome == Outcome.LINKS_LAST:
        yield "items", "none, so nothing was dropped; the links of the page are followed last"
    yield "key", record.key
    yield "was at", record.moved_from
    yield "original", record.original_url if record.original_url is None else record.original_url or NO_PAGE
    yield "reason", " ".join(filter(None, (record.reason, record.message and f"({record.message})")))
    yield from (("differs", own) for own in record.difference)
    yield from (("changed", line) for line in change_lines(record.changes))
    yield from (("repeats", sentence) for sentence in record.evidence[:_SENTENCES])
    yield "time", record.time[:19].replace("T", " ")


def explanation_text(explanation: dict[str, Any]) -> str:
    """Return what :func:`explain` found for a person, sentence by sentence."""
    stored, record = explanation["stored"], explanation["record"]
    lines = [one_line(explanation["url"])]
    if explanation["note"]:
        lines.append(f"  ({explanation['note']})")
    if record is not None:
        # A record without a text has only what is counted.
        is_of_stored = stored is None or not record["text"] or is_marked(record["text"], stored["text"])
        lines += [
            "",
            f"Last record{'' if is_of_stored else ', of an earlier text'}:",
            record_text(msgspec.convert(record, Record)),
        ]
    if keys := explanation["keys"]:
        more = f", and {len(keys) - _LISTED} more" if len(keys) > _LISTED else ""
        listed = one_line(", ".join(keys[:_LISTED]) + more)
        lines += ["", f"Its items have keys, and each is judged by its own (`explain KEY`): {listed}"]
    if stored is not None:
        lines += ["", *_stored_lines(stored)]
    if (last := explanation["fetched_last"]) is not None:
        what = f"{last['nothing']} of {plural(last['pages'], 'page')} of this form brought nothing new"
        lines += ["", f"Would be fetched last: {what}:", f"  {one_line(last['form'])}"]
    return "\n".join(lines)


def _stored_lines(stored: dict[str, Any]) -> Iterator[str]:
    since = one_line(stored["since"][:19].replace("T", " "))
    yield from (_lines_of_copy if stored["kind"] == "duplicate" else _lines_of_original)(since, stored)
    for sentence in stored["sentences"]:
        share = sentence["share"]
        mark = " " if share is None or stored["kind"] == "original" else "=" if share >= _REPEATED else "+"
        yield f"  {mark} {one_line(sentence['text'])}"
    if not stored["sentences"]:
        yield "  (not stored)"


def _lines_of_copy(since: str, stored: dict[str, Any]) -> Iterator[str]:
    if stored["original_url"] is None:
        yield f"Stored {since} as a duplicate of a page that is not stored any more:"
        return
    changed = stored["original_changed"]
    yield f"Stored {since} as a duplicate ({stored['score']:.2f} of its text) of"
    yield f"  {one_line(stored['original_url'])}{', which has changed since' if changed else ''}"
    yield "Its text:" if changed else "Its text ('=' repeated, '+' not repeated, ' ' too short to compare):"


def _lines_of_original(since: str, stored: dict[str, Any]) -> Iterator[str]:
    repeats = stored["repeated_by"]
    kind = "page" if stored["clauses"] else "item"
    pages = f"repeated by {plural(len(repeats), kind)}:" if repeats else f"not repeated by any {kind}."
    what = f"an original of {plural(stored['clauses'], 'clause')}" if stored["clauses"] else "the item with this key"
    yield f"Stored {since} as {what}, {pages}"
    yield from (f"  {one_line(url or NO_PAGE)}" for url in repeats[:_LISTED])
    if stored["nearest"] is not None:
        yield f"Nearest of the other originals, with {stored['nearest']['score']:.2f} of its text:"
        yield f"  {one_line(stored['nearest']['url'])}"
    yield "Its text:"


COMMAND = Subcommand(
    run,
    (
        "explain https://example.org/story",
        "explain https://example.org/story --html story.html",
        "explain https://example.org/story https://example.com/repost",
    ),
    (
        url_argument(help=OF_PAGE_OR_KEY),
        option("other", metavar="OTHER", nargs="?", help="compare the page with this one, edit by edit"),
        option("--html", metavar="FILE", help="check this HTML of the page now, and store nothing; -: standard input"),
        option("--other-html", metavar="FILE", help="the same for OTHER"),
    ),
)
