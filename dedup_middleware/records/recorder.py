"""Counts and records what happens in a crawl, and warns where a host repeats one page or one other host."""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from dedup_middleware.budget import Budget
from dedup_middleware.checks.items import field_of
from dedup_middleware.errors import TROUBLE
from dedup_middleware.model import Standing, VerdictKind
from dedup_middleware.reasons import DIFFERENCES, Outcome, Reason, message_of
from dedup_middleware.records.counts import kind_of
from dedup_middleware.records.log import (
    DIFFERENCE_CHARACTERS,
    EVIDENCE_CHARACTERS,
    EVIDENCE_SENTENCES,
    MAX_DIFFERENCES,
    TITLE_CHARACTERS,
    Record,
)
from dedup_middleware.text.clauses import as_written, one_line, repeated_sentences
from dedup_middleware.urls import host_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dedup_middleware.checks.detector import Preferences
    from dedup_middleware.errors import DedupError, UnreadableError
    from dedup_middleware.index.lookup import Lookup
    from dedup_middleware.model import StoredPage
    from dedup_middleware.records.crawls import CrawlCounts, FormLast
    from dedup_middleware.records.log import RecordLog
    from dedup_middleware.visit import Listener, Visit

# For these the difference is clauses, which have no spaces: they are written as in the page.
_CLAUSES = (Reason.EXTRA_TEXT, Reason.OTHER_NUMBERS)
#: CPU time for the evidence of one page, beside its budget: ordinary pages take 1.
EVIDENCE_MILLISECONDS = 100


class Recorder:
    """Counts and records the pages of one crawl, *run*, of *spider*; *fail* gets trouble with the log or the store."""

    def __init__(  # noqa: PLR0913, PLR0917 - what a recorder needs
        self,
        spider: str,
        run: str,
        log: RecordLog | None,
        crawl: CrawlCounts | None,
        listener: Listener,
        fail: Callable[[DedupError | UnreadableError], None],
        *,
        hash_clause: Callable[[str], bytes],
        preferences: Preferences,
        find: Callable[[bytes], StoredPage | None] = lambda _: None,
    ) -> None:
        """*find* returns the stored page with an identity."""
        self._spider = spider
        self._run = run
        self._log = log
        self._crawl = crawl
        self._has_warned = False
        self._listener = listener
        self._count = listener.count
        self._fail = fail
        self._hash_clause = hash_clause
        self._find = find
        self._alarms = Alarms(listener, preferences)
        # Drops by the number of their original, where that is another crawl's so far.
        self._drops_for_earlier: Counter[int] = Counter()

    def resume_from(self, before: Recorder) -> None:
        """Share the counts of *before*, the recorder of the same crawl until now."""
        self._alarms, self._drops_for_earlier = before._alarms, before._drops_for_earlier
        self._crawl, self._has_warned = before._crawl, before._has_warned

    def dropped(self, visit: Visit) -> None:
        """Count an item of *visit* that is dropped now."""
        self._count("items/dropped", 1)
        match = visit.verdict.match
        if match is not None and match.original.run != self._run:
            self._drops_for_earlier[match.original.number] += 1

    def finished(self, visit: Visit) -> None:
        """Count *visit*; record it unless it is new."""
        verdict = visit.verdict
        if visit.released:
            self._count("items/released", visit.items_kept)
            self._record(visit)
            if self._crawl is not None:
                self._crawl.add_released(visit.items_kept)
            return
        self._count("pages", 1)
        self._count(f"verdict/{verdict.kind.value}", 1)
        if visit.items_would_drop:
            self._count("items/would_drop", visit.items_would_drop)
        has_items = bool(visit.items_kept or visit.items_dropped)
        reason = _reason(visit, visit.standing)
        kind = kind_of(verdict.kind.value, reason, has_items=has_items)
        if verdict.kind is VerdictKind.UNCHECKED:
            self._count(f"unchecked/{reason}", 1)
            if visit.items_kept and kind == verdict.kind.value:
                self._count(f"items/unchecked/{reason}", visit.items_kept)
        if kind in {"lists", "without_items"}:
            self._count(kind, 1)
        if reason in DIFFERENCES:
            self._count(f"kept/{reason}", 1)
        self._watch(self._alarms.finished, visit)
        if verdict.kind is not VerdictKind.NEW:
            self._record(visit)
        if self._crawl is not None:
            self._watch(self._crawl.add, host_of(visit.url), kind, visit.items_dropped)

    def _watch(self, count: Callable[..., None], *page: object) -> None:
        """Call *count* with *page*, and warn the first time that it fails: no item depends on it."""
        try:
            count(*page)
        except TROUBLE as error:
            self._warn_once(f"{error} Until then the report lacks the number of pages")
        except Exception as error:  # noqa: BLE001 - a plugin bug
            self._warn_once(f"{error!r} while pages were counted; please report it")

    def _warn_once(self, line: str) -> None:
        if not self._has_warned:
            self._listener.warn(line)
        self._has_warned = True

    def count_requests(self, what: str, amount: int) -> None:
        """Count requests for the report; see `crawls.Counts.requests`."""
        if self._crawl is not None:
            self._crawl.add_requests(what, amount)

    def fetched_last(self, forms: list[FormLast]) -> None:
        """Note for the report which *forms* were fetched last."""
        if self._crawl is not None:
            self._crawl.fetched_last(forms)

    def _record(self, visit: Visit) -> None:
        if self._log is not None:
            try:
                self._log.append(self.record(visit))
            except TROUBLE as error:
                self._fail(error)

    def released(self, pages: Sequence[StoredPage]) -> None:
        """Record that these *pages* are not duplicates after all, in a program: it stores no dropped items."""
        if self._log is not None:
            try:
                for page in pages:
                    self._log.append(self._record_of_released(page))
            except TROUBLE as error:
                self._fail(error)

    def close(self, index: Lookup) -> None:
        """Count the items dropped for originals of earlier crawls, which *index* has; close the log."""
        for number, drops in self._drops_for_earlier.items():
            original = None
            try:
                original = index.page(number)
            except TROUBLE as error:
                self._fail(error)
            # An original that this crawl has kept too, after the drop, bears this crawl's name by now.
            if original is None or original.run != self._run:
                self._count("items/dropped_for_earlier_crawls", drops)
        if self._crawl is not None:
            self._watch(self._crawl.close)
        if self._log is not None:
            try:
                self._log.close()
            except TROUBLE as error:
                self._fail(error)

    def evidence(self, visit: Visit) -> list[str]:
        """Return the first repeated sentences of a page, in reading order."""
        if visit.verdict.match is None or visit.page is None:
            return []
        budget = Budget(milliseconds=EVIDENCE_MILLISECONDS)
        shared = visit.verdict.match.shared
        repeated = repeated_sentences(visit.page, shared, self._hash_clause, budget, EVIDENCE_SENTENCES)
        return [one_line(sentence, EVIDENCE_CHARACTERS) for sentence in repeated]

    def standing(self, visit: Visit) -> Standing | None:
        """Return what is stored of the verdict on a page that is kept: as long as it is unchanged, that stands."""
        verdict, match = visit.verdict, visit.verdict.match
        if verdict.kind is VerdictKind.UNCHANGED:
            return visit.standing
        if verdict.kind is VerdictKind.NEW or visit.released:
            return None
        return Standing(
            original=match.original.identities[0] if match else b"",
            original_text=match.original.text_mark if match else "",
            score=round(match.score, 4) if match else None,
            reason=str(verdict.reason),
            difference=tuple(self._difference(visit)),
            evidence=tuple(self.evidence(visit)),
        )

    def record(self, visit: Visit) -> Record:
        """Return the record of *visit*; of an unchanged page with the verdict that stands."""
        page, as_before = visit.page, visit.as_before
        standing = None if as_before is None else as_before.standing
        reason = _reason(visit, standing)
        features = None if page is None else page.features
        if standing is None:
            match = visit.verdict.match
            original = match.original if match else None
            original_text = original.text_mark if original else ""
            score = round(match.score, 4) if match else None
            difference, evidence = self._difference(visit), self.evidence(visit)
        else:
            original = self._find(standing.original) if standing.original else None
            original_text, score = standing.original_text, standing.score
            difference, evidence = [*standing.difference], [*standing.evidence]
        return Record(
            time=_now(),
            spider=self._spider,
            run=self._run,
            url=visit.url,
            verdict=visit.verdict.kind.value,
            outcome=visit.outcome.value,
            original_url=original.url if original else None,
            original_run=original.run if original else None,
            score=score,
            reason=reason,
            message=message_of(reason),
            difference=difference,
            evidence=evidence,
            items_dropped=visit.items_dropped,
            items_kept=visit.items_kept,
            title=one_line(features.title, TITLE_CHARACTERS) if features else "",
            bytes=visit.size,
            canonical=features.canonical or None if features else None,
            text=(as_before or page).text_mark if page else "",
            original_text=original_text,
        )

    @staticmethod
    def _difference(visit: Visit) -> list[str]:
        """Return what decided, as the page wrote it: clauses have no spaces and punctuation."""
        own: Sequence[str] = visit.verdict.difference[:MAX_DIFFERENCES]
        if own and visit.verdict.reason in _CLAUSES and visit.page is not None:
            budget = Budget(milliseconds=EVIDENCE_MILLISECONDS)
            own = as_written(budget.watched(visit.page.paragraphs), own)
        return [one_line(each, DIFFERENCE_CHARACTERS) for each in own]

    def _record_of_released(self, page: StoredPage) -> Record:
        return Record(
            time=_now(),
            spider=self._spider,
            run=self._run,
            url=page.url,
            verdict=VerdictKind.RELATED.value,
            outcome=Outcome.RELEASED.value,
            score=page.score,
            reason=Reason.RELEASED.value,
            message=Reason.RELEASED.message,
            title=one_line(page.features.title, TITLE_CHARACTERS) if page.features else "",
        )


def _reason(visit: Visit, standing: Standing | None) -> str:
    if visit.items_are_checked:
        return str(Reason.ITEMS_CHECKED)
    return visit.verdict.reason if standing is None else standing.reason


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")


#: Fewer pages of a host prove nothing.
MIN_PAGES = 20
#: Fewer pages that repeat one other host prove nothing: articles of agencies are on the sites of all newspapers.
MIN_PAGES_OF_ANOTHER = 30
#: A field that keeps this share of the pages that repeat another does not identify them.
NEARLY_ALL = 0.9
_MAX_HOSTS = 10_000


@dataclass(slots=True)
class _Host:
    pages: int = 0
    original: str = ""
    repeats: int = 0
    """How many pages repeated *original* since it became the candidate: no more than really did."""
    votes: int = 0
    reported: bool = False


class OneOriginalAlarm:
    """Counts by the majority vote of R. Boyer and J. Moore (1981): one candidate a host, however many originals it has.

    An original is a page, or a host. Of very many hosts, those are forgotten from which no page has come for longest.
    """

    def __init__(self, min_repeats: int = 0) -> None:
        """Warn from *min_repeats* repeats of one original on."""
        self._min_repeats = min_repeats
        self._hosts: OrderedDict[str, _Host] = OrderedDict()

    def note_page(self, host: str, original: str | None) -> tuple[int, int] | None:
        """Note a page of *host* that repeats *original*, or none; O(1).

        Return (pages that repeat *original*, pages of the host) the first time that the former are most of the latter.
        """
        seen = self._hosts.setdefault(host, _Host())
        self._hosts.move_to_end(host)
        if len(self._hosts) > _MAX_HOSTS:
            self._hosts.popitem(last=False)
        seen.pages += 1
        if original is None:
            return None
        if original == seen.original:
            seen.repeats += 1
            seen.votes += 1
        elif seen.votes:
            seen.votes -= 1
        else:
            seen.original, seen.repeats, seen.votes = original, 1, 1
        least = max(self._min_repeats, seen.pages // 2 + 1)
        if seen.reported or seen.pages < MIN_PAGES or seen.repeats < least:
            return None
        seen.reported = True
        return seen.repeats, seen.pages

    def has_reported(self, host: str) -> bool:
        """Return whether most pages of *host* have repeated one original."""
        return host in self._hosts and self._hosts[host].reported


class FieldAlarm:
    """Counts the pages whose items were compared, and by which field each was kept."""

    def __init__(self) -> None:
        self._compared = 0
        self._kept: Counter[str] = Counter()
        self._reported: set[str] = set()

    def note_page(self, fields: frozenset[str]) -> tuple[str, int, int] | None:
        """Note a page that was kept by *fields* of its item alone, or by none and dropped; O(fields).

        Return (field, pages that it kept, pages) the first time that the former are nearly all of the latter.
        """
        self._compared += 1
        self._kept.update(fields)
        for name in fields - self._reported:
            if self._compared >= MIN_PAGES and self._kept[name] >= NEARLY_ALL * self._compared:
                self._reported.add(name)
                return name, self._kept[name], self._compared
        return None


_TAKES_EFFECT = (Outcome.DROPPED, Outcome.TAGGED, Outcome.WOULD_DROP)


class Alarms:
    """Warns, once each, that most pages of a host repeat one page or host, or that one field keeps the duplicates."""

    def __init__(self, listener: Listener, preferences: Preferences) -> None:
        self._listener = listener
        self._preferences = preferences
        self._originals = OneOriginalAlarm()
        self._others = OneOriginalAlarm(MIN_PAGES_OF_ANOTHER)
        self._fields = FieldAlarm()

    def finished(self, visit: Visit) -> None:
        """Note *visit*, whose items have all been kept or dropped."""
        match, host = visit.verdict.match, host_of(visit.url)
        takes_effect = visit.outcome in _TAKES_EFFECT
        if host:
            self._note_page(host, match.original.url if match is not None and takes_effect else None)
        kept = visit.verdict.reason == Reason.ITEM_FIELD_DIFFERS
        if kept or takes_effect:
            found = self._fields.note_page(frozenset(map(field_of, visit.verdict.difference if kept else ())))
            if found is not None:
                field, kept_pages, pages = found
                self._listener.warn(
                    f"of {pages} pages that repeat another one of their host, {kept_pages} were kept only because "
                    f"their items have another {field!r}. If that field is not content, name the fields that are in "
                    "DEDUP_ITEM_FIELDS"
                )

    def _note_page(self, host: str, original: str | None) -> None:
        if (numbers := self._originals.note_page(host, original)) is not None and original is not None:
            self._listener.count("hosts_with_one_original", 1)
            self._listener.one_original(host, original, *numbers)
        other = None if original is None or self._preferences.include(original) else host_of(original)
        numbers = self._others.note_page(host, other if other != host else None)
        # That they repeat one page of it is the better warning.
        if numbers is not None and other is not None and not self._originals.has_reported(host):
            self._listener.count("hosts_that_repeat_another", 1)
            self._listener.one_other_host(host, other, *numbers)
