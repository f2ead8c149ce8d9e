"""Finds hosts that repeat one page or one other host, and fields that keep the duplicates: signs of a wrong setting.

A crawl looks at each record as it writes it, and warns of each sign once. The report shows those of all records.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from dedup_middleware.items.reading import field_of
from dedup_middleware.reasons import Outcome, Reason
from dedup_middleware.records.counts import NO_HOST, counted_as, host_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dedup_middleware.records.file import Record

#: Fewer pages of a host prove nothing.
MIN_PAGES = 20
#: Fewer pages that repeat one other host prove nothing: articles of agencies are on the sites of all newspapers.
MIN_PAGES_OF_ANOTHER = 30
#: From this score on, on average, the pages of a host are those of another one.
MIRRORED = 0.9
#: A field that keeps this share of the pages that repeat another does not identify them.
NEARLY_ALL = 0.9
_MAX_HOSTS, _MAX_PAIRS = 10_000, 100_000
# Of duplicates that lose no item.
_WITHOUT_EFFECT = Outcome.LINKS_LAST.value

#: A kind, and what is known of it.
Sign = tuple[str, dict[str, Any]]


class Signs:
    """Add records, oldest first. Of very many hosts, those with fewest pages are forgotten."""

    def __init__(self) -> None:
        self._pages: Counter[str] = Counter()
        self._originals: Counter[tuple[str, str]] = Counter()
        self._others: Counter[tuple[str, str]] = Counter()
        self._scores: Counter[tuple[str, str]] = Counter()
        """The sum of the scores, in ten-thousandths."""
        self._compared = 0
        self._fields: Counter[str] = Counter()
        self._reported: set[tuple[str, str]] = set()

    def add(self, record: Record) -> None:
        """Take *record* into account; of an item only its fields: items of one response often repeat another's."""
        is_copy = record.is_duplicate and record.outcome != _WITHOUT_EFFECT
        fields = {*map(field_of, record.difference)} if record.reason == Reason.ITEM_FIELD_DIFFERS else set[str]()
        self._compared += is_copy or bool(fields)
        self._fields.update(fields)
        if record.is_item or counted_as(record)[0] is None or (host := host_at(record.url)) == NO_HOST:
            return
        self._pages[host] += 1
        if is_copy:
            self.repeat(host, record.original_url or "", score_of(record))
        if len(self._pages) > _MAX_HOSTS or len(self._originals) > _MAX_PAIRS:
            self._forget()

    def repeat(self, host: str, original: str, score: float | None, count: int = 1) -> None:
        """Count a page of *host* that repeats *original*; -1 where its items were released since."""
        self._originals[host, original] += count
        if (other := host_at(original)) != host:
            self._others[host, other] += count
            self._scores[host, other] += count * round(10_000 * (score or 0.0))

    def _forget(self) -> None:
        self._pages = Counter(dict(self._pages.most_common(_MAX_HOSTS // 2)))
        for name in ("_originals", "_others", "_scores"):
            pairs = getattr(self, name).most_common(_MAX_PAIRS // 2)
            setattr(self, name, Counter({pair: count for pair, count in pairs if pair[0] in self._pages}))

    def of(self, record: Record) -> Iterator[Sign]:
        """Yield the signs that *record*, which was added last, has completed, each once."""
        host, original = host_at(record.url), record.original_url or ""
        for kind, sign in (*self._of_pair(host, original), *self._of_fields({*map(field_of, record.difference)})):
            # That a host repeats one page is the better warning.
            known = {("one_original", host), (kind, name := sign.get("host") or sign["field"])}
            if not known & self._reported:
                self._reported.add((kind, name))
                yield kind, sign

    def all(self) -> dict[str, list[dict[str, Any]]]:
        """Return all signs by kind, the worst first."""
        of_pairs = [sign for pair in self._originals for sign in self._of_pair(*pair)]
        of_hosts = [each for kind, each in of_pairs if kind == "one_original"]
        mirrors = {each["host"]: each for kind, each in of_pairs if kind == "mirrors"}
        # A host that repeats one page has a warning already.
        for each in of_hosts:
            mirrors.pop(each["host"], None)
        fields = [each for _, each in self._of_fields(self._fields)]
        return {
            "one_original": sorted(of_hosts, key=lambda sign: -sign["repeats"]),
            "fields": sorted(fields, key=lambda sign: -sign["kept"]),
            "mirrors": sorted(mirrors.values(), key=lambda sign: -sign["repeats"]),
        }

    def _of_pair(self, host: str, original: str) -> Iterator[Sign]:
        """Yield that most pages of *host* repeat *original*; or else, that they repeat pages of its host."""
        pages, repeats = self._pages[host], self._originals[host, original]
        if pages >= MIN_PAGES and 2 * repeats > pages:
            yield "one_original", {"host": host, "original": original, "repeats": repeats, "pages": pages}
            return
        other = host_at(original)
        repeats = self._others[host, other]
        if repeats < MIN_PAGES_OF_ANOTHER or 2 * repeats <= pages:
            return
        score = round(self._scores[host, other] / (10_000 * repeats), 4)
        if score >= MIRRORED:
            yield "mirrors", {"host": host, "of": other, "repeats": repeats, "pages": pages, "score": score}

    def _of_fields(self, names: Iterable[str]) -> Iterator[Sign]:
        for name in names:
            if self._compared >= MIN_PAGES and (kept := self._fields[name]) >= NEARLY_ALL * self._compared:
                yield "fields", {"field": name, "kept": kept, "pages": self._compared}


def score_of(record: Record) -> float | None:
    """Return the score of *record*; ``None`` if it is not a share, as in records that were edited by hand."""
    score = record.score
    return score if score is not None and 0 <= score <= 1 else None
