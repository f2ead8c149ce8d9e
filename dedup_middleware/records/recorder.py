"""Counts and records what happens in a crawl, and warns where a host repeats one page or one other host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from dedup_middleware.common.budget import Budget
from dedup_middleware.errors import TROUBLE
from dedup_middleware.model import Standing, VerdictKind, now_exactly
from dedup_middleware.reasons import Reason, message_of
from dedup_middleware.records.counts import Counts
from dedup_middleware.records.file import MAX_EVIDENCE, Record, RecordedChanges, cut_difference, cut_evidence, cut_title
from dedup_middleware.records.signs import Signs
from dedup_middleware.text.clauses import repeated_sentences

if TYPE_CHECKING:
    from collections.abc import Callable

    from dedup_middleware.checks.detector import Preferences
    from dedup_middleware.errors import DedupError, UnreadableError
    from dedup_middleware.model import StoredPage
    from dedup_middleware.records.crawl_lines import CrawlLine
    from dedup_middleware.records.file import RecordLog
    from dedup_middleware.visits.visit import Listener, Visit

#: CPU time for the evidence of one page, beside its budget: ordinary pages take 1.
EVIDENCE_MILLISECONDS = 100


@dataclass(eq=False)
class RecordMaker:
    """Makes the records of the pages of one *crawl* of *spider*."""

    spider: str
    crawl: str
    hash_clause: Callable[[str], bytes]
    find: Callable[[bytes], StoredPage | None] = lambda _: None
    """Returns the stored page with an identity."""
    is_earlier: Callable[[StoredPage], bool] = lambda _: False
    """Returns whether only earlier crawls have kept an original."""

    def evidence(self, visit: Visit) -> list[str]:
        """Return the first repeated sentences of a page, in reading order."""
        if visit.verdict.match is None or visit.page is None:
            return []
        budget = Budget(milliseconds=EVIDENCE_MILLISECONDS)
        shared = visit.verdict.match.shared
        return cut_evidence(repeated_sentences(visit.page, shared, self.hash_clause, budget, MAX_EVIDENCE))

    @staticmethod
    def standing(visit: Visit) -> Standing | None:
        """Return what is stored of the verdict on a page that is kept: as long as it is unchanged, that stands."""
        verdict, match = visit.verdict, visit.verdict.match
        if verdict.kind is VerdictKind.UNCHANGED:
            return visit.standing
        is_as_new = verdict.kind is VerdictKind.CHANGED and match is None
        if verdict.kind is VerdictKind.NEW or is_as_new or visit.items.released:
            return None
        return Standing(
            original=match.original.identities[0] if match else b"",
            original_text=match.original.text_mark if match else "",
            score=round(match.score, 4) if match else None,
            reason=str(verdict.reason),
        )

    def record(self, visit: Visit, *, briefly: bool = False) -> Record:
        """Return the record of *visit*; *briefly*, with only what is counted if the page shares no text.

        Of an unchanged page, it has the verdict that stands; the evidence is in the record of that verdict, which has
        the same URL and text.
        """
        verdict, match, standing = visit.verdict, visit.verdict.match, visit.standing
        reason = _reason(visit, standing)
        record = Record(
            time=now_exactly(),
            spider=self.spider,
            crawl=self.crawl,
            url=visit.url,
            verdict=verdict.kind.value,
            outcome=visit.outcome.value,
            reason=reason,
            message=message_of(reason),
            original_is_earlier=visit.is_duplicate and match is not None and self.is_earlier(match.original),
            is_item=visit.is_item and not visit.items.released,
            key=visit.key,
            items_dropped=visit.items.dropped,
            items_kept=visit.items.kept,
            items_would_drop=visit.items.would_drop + visit.items.tagged if visit.is_duplicate else 0,
            moved_from=verdict.moved.url if verdict.moved is not None and not visit.is_duplicate else None,
        )
        if briefly and match is None and not reason and standing is None and not verdict.changes:
            return record
        return replace(
            record,
            difference=cut_difference(verdict.difference),
            changes=RecordedChanges.of(verdict.changes),
            evidence=self.evidence(visit),
            bytes=visit.size,
            **_shown_of(visit),
            **self._original_of(visit),
        )

    def _original_of(self, visit: Visit) -> dict[str, Any]:
        """Return the fields of a record on the original of *visit*: that of the verdict that stands, or of its own."""
        standing, match, original = visit.standing, visit.verdict.match, None
        fields: dict[str, Any] = {}
        if standing is not None:
            fields = {"score": standing.score, "original_text": standing.original_text}
            original = self.find(standing.original) if standing.original else None
        elif match is not None:
            original = match.original
            fields = {"score": round(match.score, 4), "original_text": original.text_mark}
        if original is not None:
            fields |= {"original_url": original.url, "original_crawl": original.run}
        return fields


@dataclass(eq=False, kw_only=True)
class Recorder(RecordMaker):
    """Counts and records the pages of one crawl."""

    log: RecordLog | None
    listener: Listener
    preferences: Preferences
    fail: Callable[[DedupError | UnreadableError], None]
    """Gets trouble with the records or the store."""
    begin: CrawlLine | None
    """The line to write before the next one."""

    def __post_init__(self) -> None:
        self.counts = Counts()
        self._has_new = self.begin is None or self.begin.has_new
        # The last line, as far as it is known.
        self._end = None if self.begin is None else replace(self.begin, event="end")
        self._signs: Signs | None = Signs()
        self._has_warned_of_key = False

    def resume_from(self, before: Recorder) -> None:
        """Share the counts of *before*, the recorder of the same crawl until now."""
        self.counts, self._signs, self.begin, self._end = before.counts, before._signs, before.begin, before._end

    def finished(self, visit: Visit) -> None:
        """Count and record *visit*."""
        record = self.record(visit, briefly=True)
        for name, number in self.counts.add(record):
            self.listener.count(name, number)
        if self._has_new or visit.verdict.kind is not VerdictKind.NEW or visit.items.released:
            self._write(record)
        if visit.verdict.reason == Reason.KEY_GIVEN_TWICE and not self._has_warned_of_key:
            self._has_warned_of_key = True
            self.listener.warn(
                f"this crawl has given the key {visit.key} twice, with other values, and keeps both; so it does "
                "with all such keys. If they name two things, add a field to DEDUP_KEY"
            )
        if self._signs is not None and not visit.items.released:
            try:
                self._signs.add(record)
                for kind, sign in self._signs.of(record):
                    self._warn(kind, record, **sign)
            except Exception as error:  # noqa: BLE001 - a plugin bug: the crawl goes on without warnings
                self._signs = None
                self.listener.warn(f"{error!r} while hosts were watched; please report it")

    def _warn(self, kind: str, record: Record, *, pages: int, **sign: Any) -> None:
        if kind == "fields":
            self.listener.warn(
                f"of {pages} pages that repeat another one of their host, {sign['kept']} were kept only because their "
                f"items have another {sign['field']!r}. If that field is not content, name the fields that are in "
                "DEDUP_ITEM_FIELDS"
            )
        elif kind == "one_original":
            self.listener.count("hosts_with_one_original", 1)
            self.listener.one_original(sign["host"], sign["original"], sign["repeats"], pages)
        elif not self.preferences.include(record.original_url or ""):
            self.listener.count("hosts_that_repeat_another", 1)
            self.listener.one_other_host(sign["host"], sign["of"], sign["repeats"], pages)

    def gone(self, url: str) -> None:
        """Count and record that the page at *url*, which the store has, is gone."""
        record = Record(now_exactly(), self.spider, self.crawl, url, VerdictKind.GONE.value)
        for name, number in self.counts.add(record):
            self.listener.count(name, number)
        self._write(record)

    def note(self, **fields: Any) -> None:
        """Note *fields* of the last line of the crawl."""
        if self._end is not None:
            self._end = replace(self._end, **fields)

    def _write(self, line: Record | CrawlLine) -> None:
        if self.log is None:
            return
        try:
            if self.begin is not None:
                self.log.append(self.begin)
                self.begin = None
            self.log.append(line)
        except TROUBLE as error:
            self.fail(error)

    def close(self) -> None:
        """Write that the crawl has ended, and close the file."""
        if self._end is not None:
            self._write(replace(self._end, time=now_exactly()))
        if self.log is not None:
            try:
                self.log.close()
            except TROUBLE as error:
                self.fail(error)


def _shown_of(visit: Visit) -> dict[str, Any]:
    """Return the fields of a record that show the page of *visit*."""
    if visit.page is None:
        return {}
    fields: dict[str, Any] = {"text": (visit.as_before or visit.page).text_mark}
    if (features := visit.page.features) is not None:
        fields |= {"title": cut_title(features.title), "canonical": features.canonical or None}
    return fields


def _reason(visit: Visit, standing: Standing | None) -> str:
    if visit.items.keyed and not visit.items.processed:
        return str(Reason.ITEMS_HAVE_KEYS)
    if visit.items.are_checked:
        return str(Reason.ITEMS_CHECKED)
    return visit.verdict.reason if standing is None else standing.reason
