"""A log is searched and summed without reading all of it as JSON: what comes of it is the same."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dedup_middleware.errors import RecordsError
from dedup_middleware.reasons import Reason
from dedup_middleware.records import log as records_log
from dedup_middleware.records.counts import counts_of
from dedup_middleware.records.log import (
    CODES,
    Record,
    RecordFilter,
    Records,
    last_record,
    lines_with,
    parse_record,
)
from dedup_middleware.urls import host_of

if TYPE_CHECKING:
    from pathlib import Path

HOSTS = ["a.test", "b.a.test", "NEWS.test", "xn--bcher-kva.test", "127.0.0.1:80", "[::1]"]
URLS = st.builds("http://{}/{}".format, st.sampled_from(HOSTS), st.sampled_from(["", "é", '"', "\\", "x?a.test"]))
TEXTS = st.sampled_from(["", "\u2028", "\ud800", '"url": "http://a.test/"', "{", "a.test", "\x1b[31m", "new\nline"])
RECORDS = st.builds(
    Record,
    time=st.just("2026-11-20T10:00:00.000+00:00"),
    spider=TEXTS,
    run=st.sampled_from(["one", "two"]),
    url=URLS,
    verdict=st.sampled_from(["duplicate", "related", "unchanged", "unchecked"]),
    outcome=st.sampled_from(["dropped", "kept"]),
    original_url=st.none() | URLS,
    score=st.none() | st.floats(0, 1),
    reason=st.sampled_from(["", *Reason]).map(str),
    evidence=st.lists(TEXTS, max_size=2),
    items_dropped=st.integers(0, 3),
    title=TEXTS,
)
JUNK = st.sampled_from(["", "{", "[]", "null", '{"url": 5}', '{"url": "http://a.test/', "no JSON: a.test", "\xff"])
LINES = st.lists(RECORDS.map(Record.to_line) | JUNK, max_size=12)
FILTERS = st.builds(
    RecordFilter,
    host=st.none() | st.sampled_from(["a.test", "news.test", "127.0.0.1", "::1", "nowhere.test"]),
    original=st.none() | URLS,
    run=st.sampled_from([None, "one", "three"]),
    min_score=st.sampled_from([0.0, 0.5]),
    below=st.sampled_from([0.9, 2.0]),
    url=st.none() | URLS,
)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("log") / "log.jsonl"


@pytest.fixture(autouse=True, params=[64, 1 << 18], ids=["small blocks", "large blocks"])
def _block_size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records_log, "_BLOCK", request.param)


def write(log: Path, lines: list[str], *, torn: bool) -> None:
    log.write_bytes(("\n".join(lines) + "\n" * (not torn)).encode("utf8", "surrogatepass"))


@given(lines=LINES, wanted=FILTERS, torn=st.booleans())
@settings(max_examples=150)
def test_what_is_found_is_what_reading_every_record_finds(
    *, log: Path, lines: list[str], wanted: RecordFilter, torn: bool
) -> None:
    write(log, lines, torn=torn)
    every = (parse_record(line) for line in log.read_text(encoding="utf8", errors="replace").split("\n"))
    assert [*Records(log, wanted)] == [record for record in every if record is not None and wanted.has(record)]


@given(LINES, st.sampled_from([None, "one"]))
@settings(max_examples=100)
def test_counts_are_those_of_every_record(log: Path, lines: list[str], run: str | None) -> None:
    write(log, lines, torn=False)
    every = [record for record in Records(log) if run in (None, record.run)]
    found = counts_of(log, run)
    assert found.verdicts == Counter(record.verdict for record in every)
    assert found.outcomes == Counter(record.outcome for record in every)
    assert found.items_dropped == sum(record.items_dropped for record in every)
    repeats = [record for record in every if record.verdict == "duplicate"]
    assert found.pairs == Counter((host_of(r.url) or "?", host_of(r.original_url or "") or "?") for r in repeats)


@given(LINES)
@settings(max_examples=100)
def test_the_last_record_is_read_from_the_end(log: Path, lines: list[str]) -> None:
    write(log, lines, torn=False)
    assert last_record(log) == next(iter([*Records(log)][::-1]), None)


def test_codes_of_others_count_together(log: Path) -> None:
    """However many there are: the memory that they take is bounded."""
    own = Record("t", "s", "r", "http://a.test/", "duplicate", "dropped", original_url="http://b.test/").as_dict()
    fields = [*CODES, "url", "original_url"]
    write(log, [json.dumps({**own, name: f"http://{n}{'x' * 400}/"}) for name in fields for n in range(50)], torn=False)
    counts = counts_of(log)
    assert counts.verdicts == {"duplicate": 200, "other": 50}
    assert counts.outcomes == {"dropped": 200, "other": 50}
    assert counts.pairs == {("a.test", "b.test"): 100, ("?", "b.test"): 50, ("a.test", "?"): 50}
    assert {record.reason for record in Records(log)} == {"", "other"}


def test_a_log_that_cannot_be_read_is_a_line(tmp_path: Path) -> None:
    with pytest.raises(RecordsError, match="No log found"):
        counts_of(tmp_path / "none")
    with pytest.raises(RecordsError, match="cannot be read"):
        [*lines_with(tmp_path, b"x")]
