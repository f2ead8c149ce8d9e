"""A log is searched and summed without reading all of it as JSON: what comes of it is the same."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dedup_middleware.errors import RecordsError
from dedup_middleware.records import log_reader, recorder
from dedup_middleware.records.log_reader import RecordFilter, as_written, last_lines_with, lines_with, parts, records
from dedup_middleware.records.recorder import sums_of
from dedup_middleware.records.records import Record, read_records
from dedup_middleware.settings import Config
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
    reason=TEXTS,
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
    everything=st.booleans(),
)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("log") / "log.jsonl"


@pytest.fixture(autouse=True, params=[64, 1 << 18], ids=["small blocks", "large blocks"])
def _block_size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_reader, "_AT_ONCE", request.param)


def write(log: Path, lines: list[str], *, torn: bool) -> Config:
    log.write_bytes(("\n".join(lines) + "\n" * (not torn)).encode("utf8", "surrogatepass"))
    return Config.from_settings({"DEDUP_LOG": str(log), "DEDUP_STORE": "memory:"}, "news")


@given(lines=LINES, wanted=FILTERS, torn=st.booleans())
@settings(max_examples=150)
def test_what_is_found_is_what_reading_every_record_finds(
    *, log: Path, lines: list[str], wanted: RecordFilter, torn: bool
) -> None:
    config = write(log, lines, torn=torn)
    whole = [record for record in read_records(log) if wanted.has(record)]
    found = [*records(config, wanted)]
    # Read line by line, a torn last line is a record still to come.
    assert found[: len(whole)] == whole
    assert len(found) <= len(whole) + torn


@given(LINES, st.sampled_from([None, "one"]))
@settings(max_examples=100)
def test_sums_are_those_of_every_record(log: Path, lines: list[str], run: str | None) -> None:
    write(log, lines, torn=False)
    every = [record for record in read_records(log) if run in (None, record.run)]
    found = sums_of(log, run)
    assert found.verdicts == Counter(record.verdict for record in every)
    assert found.outcomes == Counter(record.outcome for record in every)
    assert found.items_dropped == sum(record.items_dropped for record in every)
    repeats = [record for record in every if record.verdict == "duplicate"]
    assert found.pairs == Counter((host_of(r.url) or "?", host_of(r.original_url or "") or "?") for r in repeats)


def test_several_processes_sum_up_what_one_does(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [line for n in range(500) for line in (made(n), "{torn")]
    write(log, lines, torn=False)
    alone = sums_of(log)
    monkeypatch.setattr(recorder, "_WORTH_A_PROCESS", 20_000)
    monkeypatch.setattr("os.cpu_count", lambda: 3)
    assert len(parts(log, 3)) == 3
    assert sums_of(log) == alone
    assert sum(alone.verdicts.values()) == 500


def made(number: int) -> str:
    return Record("t", "s", "r", f"http://a.test/{number}", "unchanged", "kept").to_line()


@given(LINES, URLS)
@settings(max_examples=100)
def test_from_the_end_the_same_lines_are_found(log: Path, lines: list[str], url: str) -> None:
    write(log, lines, torn=False)
    assert [*last_lines_with(log, as_written(url))] == [*lines_with(log, as_written(url))][::-1]


@pytest.mark.parametrize("count", [1, 2, 3, 50])
def test_parts_are_whole_lines(log: Path, count: int) -> None:
    log.write_text("".join(f"{json.dumps(n)}\n" for n in range(100)))
    data = log.read_bytes()
    pieces = [data[start:end] for start, end in parts(log, count)]
    assert b"".join(pieces) == data
    assert all(piece.endswith(b"\n") for piece in pieces)


def test_a_log_that_cannot_be_read_is_a_line(tmp_path: Path) -> None:
    with pytest.raises(RecordsError, match="there is no log"):
        sums_of(tmp_path / "none")
    with pytest.raises(RecordsError, match="cannot be read"):
        [*lines_with(tmp_path, b"x")]
