"""``scrapy dedup store export`` and ``store import``: copies the pages of a store to a file, and back."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import sys
from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from dedup_middleware.checks.detector import Detector
from dedup_middleware.cli.call import add_host_option, existing_store, whole_file
from dedup_middleware.cli.commands import Subcommand
from dedup_middleware.errors import ConfigError
from dedup_middleware.fingerprints import fingerprinter, instance_of, is_published
from dedup_middleware.index import schema
from dedup_middleware.index.opening import index_for_command
from dedup_middleware.index.transfer import Exporter, Spool, fill, is_empty, is_export
from dedup_middleware.model import Page, Scope, VerdictKind
from dedup_middleware.opening import open_at_once
from dedup_middleware.records.log import host_named
from dedup_middleware.stores import resolved_uri
from dedup_middleware.stores.refusals import nothing_there
from dedup_middleware.terminal import counted, plural, progress, tell
from dedup_middleware.text.clauses import clauses, one_line
from dedup_middleware.urls import without_secrets

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from dedup_middleware.cli.call import Call
    from dedup_middleware.fingerprints import Fingerprinter
    from dedup_middleware.index.index import Index
    from dedup_middleware.index.transfer import Exported
    from dedup_middleware.model import StoredPage
    from dedup_middleware.settings import Config

# That of `gzip`: 9, Python's default, takes twice the time for hardly fewer bytes.
_GZIP_LEVEL = 6


# --- export


def _add_export_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--output", metavar="FILE", default="-", help="FILE, FILE.gz or FILE.xz (default: standard output)"
    )
    add_host_option(parser)


def export_pages(call: Call) -> None:
    """Write the pages; to standard error how many, if they do not go to standard output."""
    config, output = call.config, call.opts.output
    host = host_named(call.opts.host)
    with (
        index_for_command(existing_store(config), "store export", fingerprint=config.fingerprint) as (_, index),
        _opened(output) as file,
    ):
        exporter = Exporter(index, host)
        for line in exporter.lines() if output == "-" else counted(exporter.lines(), "lines written"):
            file.write(line + "\n")
    if output != "-":
        tell(f"Wrote {plural(exporter.pages, 'page')} to {output}. It contains the key of the store: keep it private.")
    if exporter.in_doubt:
        tell(f"Left out {plural(exporter.in_doubt, 'page')} in doubt after a crash. Crawl again, then export.")


@contextmanager
def _opened(output: str) -> Iterator[IO[str]]:
    """Open the file *output*, compressed by its suffix; ``-`` is standard output."""
    if output == "-":
        yield sys.stdout
        return
    path = Path(output)
    with ExitStack() as stack:
        raw: Any = stack.enter_context(whole_file(path, is_export))
        if path.suffix == ".gz":
            # Without a name and a time: the same pages make the same file.
            raw = stack.enter_context(gzip.GzipFile("", "wb", _GZIP_LEVEL, raw, mtime=0))
        elif path.suffix == ".xz":
            raw = stack.enter_context(lzma.open(raw, "wb"))
        yield stack.enter_context(io.TextIOWrapper(raw, encoding="utf8", newline="\n"))


# --- import


def _add_import_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files", metavar="FILE", nargs="+", type=Path, help="a file that `scrapy dedup store export` wrote"
    )
    parser.add_argument("--dry-run", action="store_true", help="read the files, and change nothing")


def import_pages(call: Call) -> None:
    """Import the files, and print what became of their pages."""
    config, opts = call.config, call.opts
    uri = resolved_uri(config.store)
    if uri == "memory:":
        raise ConfigError(nothing_there(uri))
    with Spool() as spool:
        for path in opts.files:
            with progress(f"reading {one_line(str(path))}"):
                spool.read(path)
        moves = len(spool.origins) == 1 and is_empty(uri)
        scheme = fingerprinter(config.fingerprint).scheme
        for origin in spool.origins:
            if origin.scheme != scheme:
                raise ConfigError(
                    f"The files contain fingerprints of scheme {origin.scheme!r:.80}, but "
                    f"DEDUP_FINGERPRINT={config.fingerprint!r} makes {scheme!r}. Set it as their store had it."
                )
        if not moves and is_published(config.fingerprint):
            # The fingerprints of a method cannot be computed from the stored text alone.
            raise ConfigError(
                f"Stores of DEDUP_FINGERPRINT={config.fingerprint!r} cannot be merged. "
                "Import one file into an empty store."
            )
        report: dict[str, Any] = {
            "store": without_secrets(uri, redact=False),
            "how": "moved" if moves else "merged",
            "dry_run": opts.dry_run,
            "read": len(spool.entries),
        }
        if not opts.dry_run:
            with progress("importing pages"):
                report |= _import(config, spool, moves=moves)
        report |= {"left_out": spool.refusals, "left_out_first": spool.refused}
    print(json.dumps(report) if opts.json else _text(report))


def _import(config: Config, spool: Spool, *, moves: bool) -> dict[str, int]:
    if moves:
        return fill(config.store, spool, fingerprint=config.fingerprint)
    # All pages of the store count.
    opened = open_at_once(replace(config, log=None, scope=Scope.STORE, expire_after=None))
    try:
        return merge(opened.index, spool, config)
    finally:
        opened.store.close()


def _text(report: dict[str, Any]) -> str:
    if report["dry_run"]:
        lines = [f"Read {report['read']} pages for {report['store']}, to be {report['how']}"]
    else:
        kinds = ", ".join(f"{report[kind]} {kind}" for kind in ("originals", "duplicates", "known") if kind in report)
        lines = [f"{report['how'].capitalize()} into {report['store']}: {kinds}"]
    if report["left_out"]:
        lines.append(f"Left out {report['left_out']}; crawls will check these pages again:")
        lines += [f"    {one_line(line)}" for line in report["left_out_first"]]
    return "\n".join(lines)


COMMANDS = {
    "store export": Subcommand(
        export_pages,
        ("store export -o pages.jsonl.xz", "store export --host example.org -o pages.jsonl"),
        _add_export_options,
    ),
    "store import": Subcommand(
        import_pages, ("store import pages.jsonl.xz", "store import a.jsonl b.jsonl --dry-run"), _add_import_options
    ),
}


# Pages between two batches that are synced to disk.
_SYNC_INTERVAL = 500


def merge(index: Index, spool: Spool, config: Config) -> Counter[str]:
    """Add the pages in *spool* to the store of *index*, originals first and the oldest before others; 3 ms a page.

    Returns how many became originals and duplicates, and how many were known. A known page stays as it is,
    unless the file has a younger one. *spool* counts what is left out.
    """
    store = index.store
    merging = _Merging(index, instance_of(config.fingerprint, store.header.key), config.threshold)
    there = [instance_of(config.fingerprint, origin.header.key) for origin in spool.origins]
    came = Counter(dict.fromkeys(("originals", "duplicates", "known"), 0))
    for count, (entry, exported) in enumerate(spool.pages(sorted(spool.entries)), 1):
        kind = merging.take(exported, there[entry.origin])
        if kind in came:
            came[kind] += 1
        else:
            spool.refuse(exported.url, kind)
        if count % _SYNC_INTERVAL == 0:
            store.write([], sync=True)
    store.write(spool.pairs, sync=True)
    return came


class _Merging:
    """Checks exported pages by their texts, as a crawl does, for each store hashes clauses with a key of its own."""

    def __init__(self, index: Index, fingerprint: Fingerprinter, threshold: float) -> None:
        self._index = index
        self._fingerprint = fingerprint
        self._detector = Detector(index, fingerprint.hash, threshold)
        self._threshold = threshold

    def take(self, exported: Exported, there: Fingerprinter) -> str:
        """Take one page, whose store hashed as *there*; return what it is here, or why it is left out."""
        known = exported.stored
        before = self._index.find(known.identities)
        if before is not None and before.time >= known.time:
            return "known"
        page = self._read_again(known, exported, there)
        if page is None:
            return "its text was cut or not kept"
        verdict = self._detector.check(page)
        if verdict.kind is VerdictKind.UNCHANGED:
            return "known"
        if verdict.kind is VerdictKind.DUPLICATE and verdict.match is not None:
            self._index.remember_duplicate(page, verdict.match)
        elif known.original is not None:
            return "it repeats nothing here"
        else:
            self._index.commit(self._detector.to_stored(page, verdict, self._threshold), durable=True)
        stored = self._index.find(page.identities)
        assert stored is not None
        # It was kept when, by whom and for what it was kept there.
        number, value = stored.number, schema.encode_page(replace(stored, kept=known.kept))
        named = [(schema.canonical_key(identity), schema.encode_number(number)) for identity in exported.names]
        self._index.store.write([(schema.page_key(number), value), *named])
        return "originals" if stored.original is None else "duplicates"

    def _read_again(self, known: StoredPage, exported: Exported, there: Fingerprinter) -> Page | None:
        """Return the page as this store hashes it; ``None`` if its text is not all that it was stored with."""
        text = tuple(exported.text or ())
        before = there(text)
        if not text or frozenset(before.weights) != known.hashes:
            return None
        fingerprint, source, features = self._fingerprint(text), known.source, known.features
        page = Page(known.url, known.identities, fingerprint, text, known.run, source=source, features=features)
        if not known.exact_digest and before.exact_digest:
            # It owned only what its items contain.
            page = page.restricted_to(fingerprint.weights.keys(), text)
        content = known.item_content
        if content is not None:
            # A clause that is in no text that was kept is left out.
            texts = ("\n".join(text), "\n".join(exported.item_text or ()))
            here = {there.hash(c): self._fingerprint.hash(c) for each in texts for c, _ in clauses(each)}
            hashes = frozenset(here[h] for h in content.hashes if h in here)
            content = replace(content, hashes=hashes, texts=tuple(exported.item_text or ()))
        return replace(page, item_content=content)
