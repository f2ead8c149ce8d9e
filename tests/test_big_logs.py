"""A log is searched and summed without reading all of it as JSON: what comes of it is the same."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_middleware.errors import RecordsError
from dedup_middleware.reasons import Reason
from dedup_middleware.records import file as records_file
from dedup_middleware.records.counts import Counts
from dedup_middleware.records.file import (
    CODES,
    Record,
    RecordFilter,
    Records,
    crawl_lines,
    last_crawl_line,
    last_line,
    lines_with,
    parse_record,
)

HOSTS = ["a.test", "b.a.test", "NEWS.test", "xn--bcher-kva.test", "127.0.0.1:80", "[::1]"]
URLS = st.builds("http://{}/{}".format, st.sampled_from(HOSTS), st.sampled_from(["", "é", '"', "\\", "x?a.test"]))
TEXTS = st.sampled_from(["", "\u2028", "\ud800", '"url": "http://a.test/"', "{", "a.test", "\x1b[31m", "new\nline"])
RECORDS = st.builds(
    Record,
    time=st.just("2026-11-20T10:00:00.000+00:00"),
    spider=TEXTS,
    crawl=st.sampled_from(["one", "two"]),
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
CRAWLS = st.sampled_from(['{"event":"begin","time":"t","spider":"s","crawl":"one"}', '{"event":"end"}'])
LINES = st.lists(RECORDS.map(Record.to_line) | JUNK | CRAWLS, max_size=12)
FILTERS = st.builds(
    RecordFilter,
    host=st.none() | st.sampled_from(["a.test", "news.test", "127.0.0.1", "::1", "nowhere.test"]),
    original=st.none() | URLS,
    crawl=st.sampled_from([None, "one", "three"]),
    min_score=st.sampled_from([0.0, 0.5]),
    below=st.sampled_from([0.9, 2.0]),
    url=st.none() | URLS,
)


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return tmp_path_factory.mktemp("log") / "log.jsonl"


@pytest.fixture(autouse=True, params=[64, 1 << 18], ids=["small blocks", "large blocks"])
def _block_size(request, monkeypatch):
    monkeypatch.setattr(records_file, "_BLOCK", request.param)


def write(log, lines, *, torn):
    log.write_bytes(("\n".join(lines) + "\n" * (not torn)).encode("utf8", "surrogatepass"))


@given(lines=LINES, wanted=FILTERS, torn=st.booleans())
def test_what_is_found_is_what_reading_every_record_finds(*, log, lines, wanted, torn):
    write(log, lines, torn=torn)
    every = (parse_record(line) for line in log.read_bytes().split(b"\n"))
    assert [*Records(log, wanted)] == [record for record in every if record is not None and wanted.has(record)]


@given(LINES)
def test_the_last_line_is_read_from_the_end(log, lines):
    write(log, lines, torn=False)
    assert last_line(log) == next(iter([*records_file.lines(log)][::-1]), None)
    assert last_crawl_line(log) == next(iter([*crawl_lines(log)][::-1]), None)


def test_codes_of_others_count_together(log):
    """However many there are: the memory that they take is bounded."""
    own = Record("t", "s", "r", "http://a.test/", "duplicate", "dropped", original_url="http://b.test/").as_dict()
    fields = [*CODES, "url", "original_url"]
    write(log, [json.dumps({**own, name: f"http://{n}{'x' * 400}/"}) for name in fields for n in range(50)], torn=False)
    counts = Counts()
    for record in Records(log):
        counts.add(record)
    assert (counts.numbers["verdict/duplicate"], counts.numbers["verdict/other"]) == (200, 50)
    assert counts.pairs == {("a.test", "b.test"): 100, ("?", "b.test"): 50, ("a.test", "?"): 50}
    assert {record.reason for record in Records(log)} == {"", "other"}


def test_a_log_that_cannot_be_read_is_a_line(tmp_path):
    with pytest.raises(RecordsError, match="No records found"):
        [*records_file.lines(tmp_path / "none")]
    with pytest.raises(RecordsError, match="cannot be read"):
        [*lines_with(tmp_path, b"x")]
