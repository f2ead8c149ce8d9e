"""A page and the one that it repeats, side by side, as a closed store has them."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dedup_middleware.checks.alignment import compare
from dedup_middleware.errors import StoreError
from dedup_middleware.fingerprints import instance_of
from dedup_middleware.identity import url_identity
from dedup_middleware.index.opening import index_for_command
from dedup_middleware.inspection.report.tallies import host_at
from dedup_middleware.stores import store_exists
from dedup_middleware.text.clauses import clauses
from dedup_middleware.text.evidence import marked_sentences
from dedup_middleware.urls import without_secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from dedup_middleware.index.index import Index
    from dedup_middleware.inspection.records import Record
    from dedup_middleware.settings.config import Config

SAME, NEARLY, OWN, TOO_SHORT = "=", "~", "+", ""


@dataclass(frozen=True, slots=True)
class Stored:
    """What is asked of an open store."""

    index: Index
    hash_clause: Callable[[str], bytes]
    redact_query: bool

    def pages_of(self, hosts: Collection[str], run: str | None) -> Counter[tuple[str, str]]:
        """Return the owners of each of *hosts*, by host and URL as records have it; of the crawl *run* alone, if given.

        Reads all pages: 15 µs each.
        """
        return Counter(
            (host, without_secrets(page.url, redact=self.redact_query))
            for page in self.index.pages()
            if page.owner is None and run in (None, page.run) and (host := host_at(page.url)) in hosts
        )

    def side_by_side(self, record: Record) -> dict[str, Any] | None:
        """Return the sentences of the page of *record* and of its owner, each with its mark; ``None`` if none are kept.

        Some 3 ms for a news page that was edited, 80 for the longest text that a store keeps.
        """
        page = self.index.find([url_identity(record.url)])
        owner = None if page is None or page.owner is None else self.index.page(page.owner)
        if page is None or owner is None:
            return None
        if without_secrets(owner.url, redact=self.redact_query) != record.owner_url:
            # It repeats another page by now.
            return None
        text, held_text = self.index.text(page.number), self.index.text(owner.number)
        if not text or not held_text:
            return None
        return {
            "page": self._marked(text, held_text, owner.hashes),
            "owner": self._marked(held_text, text, page.hashes),
            "owner_changed": not owner.is_owner_of(page),
        }

    def _marked(self, text: list[str], other: list[str], held: frozenset[bytes]) -> list[tuple[str, str]]:
        """Return the sentences of *text*, each with how the *other* one has it, of whose clauses *held* are kept."""
        said = held | {self.hash_clause(clause) for clause, _ in clauses("\n".join(other))}
        exactly = [*marked_sentences(text, said, self.hash_clause)]
        if all(sentence.repeated or sentence.share is None for sentence in exactly):
            return [(SAME if s.repeated else TOO_SHORT, s.text) for s in exactly]
        compared = compare(text, other, says=lambda clause: self.hash_clause(clause) in said)
        nearly = marked_sentences(text, said | {*map(self.hash_clause, compared.near)}, self.hash_clause)
        reworded = frozenset(compared.reworded)
        return [
            (_mark(one.share is None, one.repeated, two.repeated or one.text in reworded), one.text)
            for one, two in zip(exactly, nearly, strict=True)
        ]


def _mark(is_short: bool, is_same: bool, is_near: bool) -> str:  # noqa: FBT001 - three facts of one sentence
    return TOO_SHORT if is_short else SAME if is_same else NEARLY if is_near else OWN


@contextmanager
def stored(config: Config) -> Iterator[tuple[Stored | None, str]]:
    """Open the closed store of *config* for as long as the block runs; or none, and why."""
    opening = index_for_command(config.store, "report")
    with ExitStack() as opened:
        try:
            if not store_exists(config.store):
                yield None, f"there is no store {without_secrets(config.store, redact=False)}"
                return
            store, index = opened.enter_context(opening)
        except StoreError as error:
            yield None, str(error)
            return
        fingerprint = instance_of(config.fingerprint, store.header.key)
        yield Stored(index, fingerprint.hash, config.redact_query), ""


def most_doubtful(records: Sequence[Record], count: int) -> list[int]:
    """Return which *count* of *records* had the lowest scores: what should be looked at, if anything."""
    return sorted(range(len(records)), key=lambda n: (records[n].score or 0.0, n))[:count]
