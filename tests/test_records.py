"""One line a record, for any page, and a log that can be read while it is written."""

import json
import subprocess
import sys
from urllib.parse import urlsplit

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from local_site import PATIENCE

import dedup_middleware
from dedup_middleware import open_records
from dedup_middleware.cli.explain import record_text
from dedup_middleware.common.urls import host_of
from dedup_middleware.errors import ConfigError, RecordsError
from dedup_middleware.records.file import CODES, Record, RecordLog, Records, remove_log

TEXT = st.text() | st.text(st.sampled_from('a\n\r\x00\x1b\x85\u2028\u2029\u202e\ud800\U0001f600天"\\'))
RECORDS = st.builds(
    Record,
    time=TEXT,
    spider=TEXT,
    crawl=TEXT,
    url=TEXT,
    verdict=st.sampled_from(sorted(CODES["verdict"])),
    outcome=st.sampled_from(sorted(CODES["outcome"])),
    original_url=st.none() | TEXT,
    original_crawl=st.none() | TEXT,
    score=st.none() | st.floats(0, 1),
    reason=st.sampled_from(sorted(CODES["reason"])),
    evidence=st.lists(TEXT, max_size=5),
    items_dropped=st.integers(0),
    items_kept=st.integers(0),
)


def record(number):
    return Record(
        time="2024-11-20", spider="s", crawl="r", url=f"http://a/{number}", verdict="unchanged", outcome="kept"
    )


def test_every_record_comes_back_as_it_was(tmp_path):
    path = tmp_path / "log.jsonl"
    written = []
    log = RecordLog(path)

    @given(RECORDS)
    def append(one):
        log.append(one)
        written.append(one)
        line = one.to_line()
        assert line.isascii()
        assert line.isprintable()
        assert one.as_dict() | json.loads(line) == one.as_dict()
        assert set(one.as_dict()) >= {"url", "verdict", "original_url", "score", "evidence", "time"}
        assert isinstance(one.host, str)

    append()
    log.close()
    assert list(Records(path)) == written
    assert len(path.read_bytes().splitlines()) == len(written)


@given(
    scheme=st.sampled_from(["http://", "https://", "HTTP://", "ftp://", ""]),
    rest=st.text(st.sampled_from("abXY09.-_:@/?#[]% \t中é"), max_size=24),
)
def test_a_host_is_what_python_takes_for_one(scheme, rest):
    try:
        known = urlsplit(scheme + rest).hostname or ""
    except ValueError:
        known = ""
    assert host_of(scheme + rest) == known.removesuffix(".")


def test_each_record_is_in_the_file_at_once(tmp_path):
    path = tmp_path / "some" / "folder" / "log.jsonl"
    log = RecordLog(path)
    for number in range(3):
        log.append(record(number))
        assert list(Records(path)) == [record(n) for n in range(number + 1)]
    log.close()


@pytest.mark.parametrize("kept", [1, 20, 80])
def test_a_torn_line_costs_nothing_but_itself(tmp_path, kept):
    """A crawl was killed while it wrote; the next one appends to the same file."""
    path = tmp_path / "log.jsonl"
    path.write_text(record(0).to_line() + "\n" + record(1).to_line()[:kept], encoding="ascii")
    assert list(Records(path)) == [record(0)]
    log = RecordLog(path)
    log.append(record(2))
    log.append(record(3))
    log.close()
    assert list(Records(path)) == [record(0), record(2), record(3)]


@pytest.mark.parametrize("line", ["", "null", "[]", "5", '"text"', "{}", '{"url": "x"}', "\x00\xff", "not json"])
def test_lines_that_hold_no_record_are_passed_over(tmp_path, line):
    path = tmp_path / "log.jsonl"
    path.write_text(f"{record(0).to_line()}\n{line}\n{record(1).to_line()}\n", encoding="latin1")
    assert list(Records(path)) == [record(0), record(1)]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)


def test_a_line_with_a_field_of_another_type_is_shown_or_passed_over(tmp_path):
    path = tmp_path / "log.jsonl"

    @given(name=st.sampled_from([*Record.__struct_fields__]), value=st.sampled_from(["", [5], {}]) | JSON)
    def show(name, value):
        path.write_text(json.dumps(record(0).as_dict() | {name: value}) + "\n", encoding="ascii")
        for one in Records(path):
            assert record_text(one)
            assert isinstance(one.host, str)
            assert one.items_dropped + one.items_kept is not None

    show()


def test_fields_of_later_versions_do_not_matter(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps(record(0).as_dict() | {"invented_later": 1}) + "\n", encoding="ascii")
    assert list(Records(path)) == [record(0)]


def test_what_cannot_be_read_or_written_is_one_line_with_a_remedy(tmp_path):
    with pytest.raises(RecordsError, match=r"No records found at .*\. Run a crawl first"):
        list(Records(tmp_path / "absent"))
    with pytest.raises(RecordsError, match="cannot be read"):
        list(Records(tmp_path))
    with pytest.raises(RecordsError, match=r"DEDUP_LOG .* cannot be written .*\. Set another path"):
        RecordLog(tmp_path)
    (tmp_path / "file").touch()
    for path in (tmp_path / "file" / "log.jsonl", tmp_path / "a\0b", tmp_path / "\ud800"):
        with pytest.raises(RecordsError, match="Set another path") as raised:
            RecordLog(path)
        assert str(raised.value).isprintable()
    with pytest.raises(RecordsError, match="cannot be removed"):
        remove_log(tmp_path)


def test_a_line_that_fits_in_part_is_a_records_error(tmp_path):
    resource = pytest.importorskip("resource")
    log = RecordLog(tmp_path / "log.jsonl")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50, before[1]))
    try:
        with pytest.raises(RecordsError, match="Make room"):
            log.append(record(0))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    log.append(record(1))
    log.close()
    assert list(Records(log.path)) == [record(1)]


@pytest.mark.parametrize("content", ["hello\n", '{"url": "an item"}\n', "\n\n", "a\nb\nc"])
def test_a_file_with_something_else_is_refused(tmp_path, content):
    path = tmp_path / "file"
    path.write_text(content)
    with pytest.raises(RecordsError, match="has no records") as refused:
        RecordLog(path)
    assert refused.value.misnamed
    assert path.read_text() == content


@pytest.mark.parametrize("content", ["", '{"time":"torn', '{"event":"begin"'])
def test_a_file_that_was_just_begun_is_one(tmp_path, content):
    path = tmp_path / "file"
    path.write_text(content)
    RecordLog(path).close()


class TestOpenRecords:
    """What a program reads of a log."""

    @pytest.fixture
    def path(self, tmp_path):
        """Return a log of two crawls and three hosts."""
        path = tmp_path / "log.jsonl"
        log = RecordLog(path)
        places = [("a.example", "1"), ("www.a.example", "1"), ("b.example", "2"), ("a.example", "2")]
        for host, run in places:
            log.append(Record("2024-11-20", "s", run, f"http://{host}/", "duplicate", "dropped", score=0.9))
        log.close()
        return path

    def test_it_has_the_records_that_are_wanted_as_often_as_one_looks(self, path):
        everything = open_records(path)
        assert list(everything) == list(everything) == list(Records(path))
        assert [record.crawl for record in open_records(str(path), crawl="last")] == ["2", "2"]
        assert [record.crawl for record in open_records(path, crawl="1")] == ["1", "1"]
        hosts = [record.host for record in open_records(path, host="A.example")]
        assert hosts == ["a.example", "www.a.example", "a.example"]
        assert list(open_records(path, crawl="last", host="www.a.example")) == []
        assert list(open_records(path, crawl="3")) == []

    def test_it_reads_as_it_goes(self, path):
        found = iter(open_records(path))
        first = next(found)
        with path.open("a", encoding="ascii") as file:
            file.write(record(7).to_line() + "\n")
        assert [*found][-1] == record(7)
        assert first.host == "a.example"

    def test_a_frame_is_a_line(self, path):
        table = pl.DataFrame([one.as_dict() for one in open_records(path)], infer_schema_length=None)
        assert table.columns == list(Record.__struct_fields__)
        assert table["score"].to_list() == [0.9] * 4

    def test_what_cannot_be_read_is_one_line_at_once(self, path):
        with pytest.raises(RecordsError, match="No records found"):
            open_records(path.with_name("absent"))
        for wrong in (path.parent, path.with_name("a\0b"), path / "log"):
            with pytest.raises(RecordsError, match="cannot be read") as raised:
                open_records(wrong)
            assert str(raised.value).isprintable()
        with pytest.raises(ConfigError, match="not a host name"):
            open_records(path, host="http://a.example/")

    def test_an_empty_log_has_no_last_crawl(self, tmp_path):
        (tmp_path / "log").touch()
        assert list(open_records(tmp_path / "log")) == []
        with pytest.raises(RecordsError, match="no last crawl"):
            open_records(tmp_path / "log", crawl="last")

    def test_it_needs_no_scrapy(self):
        hidden = "import sys; sys.modules |= dict.fromkeys(('scrapy', 'twisted'))"
        names = "from dedup_middleware import Record, Records, open_records"
        subprocess.run([sys.executable, "-c", f"{hidden}; {names}"], check=True, timeout=PATIENCE)
        assert {"Record", "Records", "open_records"} <= {*dedup_middleware.__all__}
