"""Nothing that was stored or handed over is trusted: bytes are values or damaged, and no file of others is lost."""

from __future__ import annotations

import builtins
import dataclasses
import gzip
import importlib
import io
import json
import os
import re
import stat
import sys
import tempfile
import zlib
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace

import hostile_bytes
import msgspec
import pytest
import scrapy
from hostile_bytes import ATTACKS, HEAD, MB, RECORD, dropped_item, item_value
from hypothesis import given
from hypothesis import strategies as st
from library import Library

from dedup_middleware.cli.allow import overrides_text
from dedup_middleware.cli.dropped import item_text
from dedup_middleware.cli.explain import explanation_text
from dedup_middleware.cli.store import info_text
from dedup_middleware.common import bounded, permissions
from dedup_middleware.common.permissions import whole_file
from dedup_middleware.errors import ConfigError, RecordsError, StoreCorruptError, StoreError, UnreadableError
from dedup_middleware.index import dropped_items, item_codec, schema
from dedup_middleware.index.overrides import Override
from dedup_middleware.index.transfer import opened_copy
from dedup_middleware.methods.method import unpacked as unpacked_print
from dedup_middleware.methods.shingling import Heintze
from dedup_middleware.methods.simhash import ESimHash, PSimHash, SimHash
from dedup_middleware.records.file import parse_record, pass_through_log, pass_through_logs_beside, remove_log
from dedup_middleware.stores import files
from dedup_middleware.stores.base import Header
from dedup_middleware.text.terminal import tell

POSIX = pytest.mark.skipif(os.name == "nt", reason="Windows has no such files")


# --- bytes


@pytest.mark.parametrize("name", ATTACKS)
def test_hostile_bytes_are_damaged_and_raise_nothing_else(tmp_path, name):
    attack = ATTACKS[name]
    assert attack.outcome(attack.make(tmp_path, attack.small))


def recall(method):
    """Return what reads what *method* has learned; loading its dictionary takes a second, so only where it is used."""
    return lambda data: cached(method).recall(data)


cached = cache(lambda method: method())


#: Every decoder of what a store has.
DECODERS = {
    "page": lambda data: schema.decode_page(1, data),
    "claim": lambda data: schema.decode_claim(1, data),
    "text": schema.decode_text,
    "postings": schema.decode_postings,
    "number": schema.decode_number,
    "identity": schema.decode_identity,
    "override": partial(schema.decode, Override),
    "dropped item": dropped_item,
    "drop": partial(schema.decode, dropped_items._Drop),
    "release": partial(schema.decode, dropped_items.Release),
    "fingerprint": unpacked_print,
    "frequencies": recall(SimHash),
    "shingles": recall(Heintze),
    "entropies": recall(ESimHash),
    "occurrences": recall(PSimHash),
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)
PACKED = st.one_of(
    st.binary(max_size=60),
    st.binary(max_size=60).map(zlib.compress),
    JSON.map(lambda value: zlib.compress(json.dumps(value).encode())),
    st.tuples(JSON, JSON).map(lambda both: b"".join(zlib.compress(json.dumps(each).encode()) for each in both)),
    JSON.map(lambda value: json.dumps(value).encode()),
    JSON.map(lambda value: item_value(schema.encode([*HEAD, json.dumps(value).encode()]))),
    JSON.map(lambda value: item_value(msgspec.msgpack.encode([*HEAD[:-1], value, b"{}"]))),
    JSON.map(msgspec.msgpack.encode),
)


@pytest.mark.parametrize("name", DECODERS)
@given(PACKED)
def test_any_bytes_are_a_value_or_damaged(name, data):
    with suppress(UnreadableError):
        DECODERS[name](data)


@given(st.binary(max_size=60) | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_line_is_a_record_or_none(data):
    parse_record(data)
    for read in (Header.decode, item_codec.decode, bounded.loads):
        with suppress(ValueError):
            read(data)


@given(st.binary(max_size=200), st.integers(0, 100))
def test_nothing_is_unpacked_beyond_its_limit(data, most):
    packed = zlib.compress(data)
    if len(data) <= most:
        assert bounded.unpacked(packed, most) == data
    else:
        with pytest.raises(UnreadableError):
            bounded.unpacked(packed, most)


@given(st.lists(st.text(max_size=8).map(lambda text: text.replace("\n", " ").replace("\r", " ")), max_size=6))
def test_lines_that_are_too_long_are_none(lines):
    found = bounded.lines(io.BytesIO("".join(f"{line}\n" for line in lines).encode()), 5)
    assert [*found] == [None if len(line.encode()) > 5 else line.encode() for line in lines]


def test_commas_in_texts_are_no_values():
    written = json.dumps({"text": ',[{"\\' * 1000}).encode()
    assert bounded.loads(written, values=10) == {"text": ',[{"\\' * 1000}
    assert not bounded.has_more(b'{"truncated_response": "' + b",[{" * 1000, 10)
    assert bounded.has_more(json.dumps([0] * 12).encode(), 10)


def test_a_packed_file_is_read_up_to_a_hundred_times_its_size(tmp_path, monkeypatch):
    monkeypatch.setattr(bounded, "_FREE", MB)
    path = tmp_path / "file.gz"
    path.write_bytes(gzip.compress(bytes(50 * MB)))
    read = 0
    with bounded.opened(path) as file, pytest.raises(UnreadableError, match="100 times its size"):  # noqa: PT012
        while part := file.read(2**16):
            read += len(part)
    assert MB / 2 < read < 10 * MB


def test_a_damaged_value_is_the_stores_failure_and_no_defect():
    library = Library()
    library.deduplication.fail(UnreadableError("a page is cut off"))
    assert [type(failure) for failure in library.failures] == [StoreCorruptError]


def test_an_item_that_is_too_large_is_not_stored(monkeypatch):
    monkeypatch.setattr(item_codec, "MAX_BYTES", 1000)
    assert item_codec.encode({"text": "x" * 500})
    with pytest.raises(item_codec.NotStorableError):
        item_codec.encode({"text": "x" * 1000})


# --- classes


class Story(scrapy.Item):
    url = scrapy.Field()


@dataclasses.dataclass
class DataStory:
    url: str


class Spider(scrapy.Spider):
    name = "here"


@pytest.fixture
def project(monkeypatch):
    classes = item_codec.ProjectClasses()
    monkeypatch.setattr(item_codec, "PROJECT", classes)
    return classes


def test_classes_of_the_projects_packages_are_found_and_no_others(project):
    items = [Story(url="u"), DataStory("u")]
    for item in items:
        with pytest.raises(item_codec.NotStorableError):
            item_codec.encode(item)
    project.give([Spider])
    found = [item_codec.decode(item_codec.encode(item)) for item in items]
    assert (found, [*map(type, found)]) == (items, [Story, DataStory])


@pytest.mark.parametrize(
    "name",
    [
        "os:system",
        "subprocess:Popen",
        "scrapy.http.request:Request",
        "dedup_middleware.model:Page",
        "dedup_middleware:Deduplicator",
        "test_trust:Spider.name.__class__",
        "test_trust:sys",
        "antigravity:x",
        "this:x",
        ":",
        "test_trust",
        "",
    ],
)
def test_names_in_a_store_import_nothing_and_make_no_other_class(project, monkeypatch, name):
    project.give([Spider])
    modules = {*sys.modules}
    monkeypatch.setattr(importlib, "import_module", lambda *_: pytest.fail("imported"))
    monkeypatch.setattr(builtins, "__import__", _import_of_loaded(builtins.__import__))
    for tag in ("scrapy", "dataclass", "attrs", "pydantic"):
        values = {"dict": [["url", "u"]]}
        state = {"dict": [["__dict__", values]]} if tag == "pydantic" else values
        assert item_codec.decode(json.dumps({tag: [name, state]}).encode()) == {"url": "u"}
    assert item_codec.decode(json.dumps({"enum": [name, 1]}).encode()) == 1
    assert {*sys.modules} == modules


def _import_of_loaded(real):
    def imported(name, *args, **kwargs):
        assert name in sys.modules, name
        return real(name, *args, **kwargs)

    return imported


# --- files


def is_ours(start):
    return start.startswith(b"ours")


@given(st.binary(max_size=20), st.integers(0o400, 0o777))
def test_only_what_is_ours_is_replaced_and_its_mode_stays(before, mode):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "file")
        path.write_bytes(before)
        path.chmod(mode | 0o400)
        if before and not is_ours(before):
            with pytest.raises(permissions.NotOursError), permissions.replaced(path, is_ours):
                pass
            assert path.read_bytes() == before
        else:
            with permissions.replaced(path, is_ours) as file:
                file.write(b"ours, new")
            assert path.read_bytes() == b"ours, new"
        if os.name != "nt":
            assert stat.S_IMODE(path.stat().st_mode) == mode | 0o400
        assert [*Path(folder).iterdir()] == [path]


@POSIX
def test_a_file_is_private_from_the_first_byte_on(tmp_path):
    before = os.umask(0)
    try:
        with permissions.replaced(tmp_path / "file", is_ours) as file:
            (draft,) = tmp_path.iterdir()
            assert draft.name != "file.tmp"
            assert stat.S_IMODE(draft.stat().st_mode) == 0o600
            file.write(b"ours")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o600


def test_what_lies_beside_the_file_stays_and_a_failure_leaves_nothing(tmp_path):
    path, beside = tmp_path / "file", tmp_path / "file.tmp"
    path.write_bytes(b"ours")
    beside.write_bytes(b"not ours")
    with pytest.raises(ZeroDivisionError), permissions.replaced(path, is_ours) as file:  # noqa: PT012
        file.write(b"half")
        raise ZeroDivisionError
    assert (path.read_bytes(), beside.read_bytes()) == (b"ours", b"not ours")
    assert {*tmp_path.iterdir()} == {path, beside}


@POSIX
def test_a_link_that_others_have_put_there_is_not_followed(tmp_path):
    victim = tmp_path / "victim"
    victim.write_bytes(b"root's")
    (tmp_path / "file.tmp").symlink_to(victim)
    (tmp_path / "link").symlink_to(victim)
    with permissions.replaced(tmp_path / "file", is_ours) as file:
        file.write(b"ours")
    with pytest.raises(permissions.NotOursError), permissions.replaced(tmp_path / "link", is_ours):
        pass
    assert victim.read_bytes() == b"root's"


@POSIX
def test_a_device_and_a_pipe_are_written_to(tmp_path):
    with whole_file(tmp_path / ".." / ".." / ".." / ".." / ".." / ".." / ".." / "dev" / "null", is_ours) as file:
        file.write(b"x")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with whole_file(pipe, is_ours) as file:
            file.write(b"through")
        assert os.read(reader, 99) == b"through"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.parametrize("content", [b"name,salary\nme,1\n", b"\0\1\2", b'{"x": 1}\n'])
def test_a_log_that_is_none_is_not_removed(tmp_path, content):
    path = tmp_path / "salaries.csv"
    path.write_bytes(content)
    with pytest.raises(RecordsError, match="cannot be removed"):
        remove_log(path)
    assert path.read_bytes() == content


def test_only_logs_in_pass_through_are_found_beside_a_log(tmp_path):
    log = tmp_path / "log.jsonl"
    ours = pass_through_log(log)
    for name in ("log.2024.jsonl", "log.quarantine", "log.pass-through-x.jsonl", ours.name):
        (tmp_path / name).write_bytes(RECORD)
    (tmp_path / "log.pass-through-7.jsonl").write_bytes(b"notes\n")
    assert pass_through_logs_beside(log) == [ours]


def test_files_beside_a_lock_are_not_taken_for_ours_by_their_names(tmp_path):
    lock = tmp_path / "x.lock"
    holder, workers = tmp_path / "x.lock.holder", tmp_path / "x.lock.workers"
    holder.write_text("mine")
    workers.mkdir()
    (workers / "poetry.lock").write_text("mine")
    with files.held(lock, "sqlite:x", "test"):
        pass
    files.Workers(lock).remove()
    assert (holder.read_text(), (workers / "poetry.lock").read_text()) == ("mine", "mine")
    other = tmp_path / "poetry.lock"
    other.write_text("mine")
    with (
        pytest.raises(StoreError, match="is not a lock of ours"),
        files.held(other, "sqlite:poetry", "test"),
    ):
        pass
    assert other.read_text() == "mine"


def test_a_server_that_answers_without_an_end_is_left(tmp_path, monkeypatch):
    answers = pytest.importorskip("dedup_middleware.stores.redis")
    monkeypatch.setattr(answers, "MAX_ANSWER", MB)
    path = tmp_path / "size"
    path.write_bytes(b"%d" % (64 * MB))
    assert "more than" in hostile_bytes.asked(path)


def test_the_name_of_a_file_does_not_steer_the_terminal(tmp_path, capsys):
    with pytest.raises(ConfigError) as caught, opened_copy(tmp_path / "\x1b]0;x\x07.jsonl"):
        pass
    tell(str(caught.value))
    assert not re.search("[\x1b\x07]", capsys.readouterr().err)


def test_what_a_store_says_of_itself_does_not_steer_the_terminal():
    """Who shares it may have written more than URLs and texts: times, and the name of its fingerprints."""
    evil = "\x1b]0;x\x07\x9b31m"
    info = dict.fromkeys(("bytes", "originals", "duplicates", "dropped_items", "dropped_bytes", "to_release"), 0)
    info |= {"crawls": 0, "schema": 1, "store": "memory:", "created": evil, "fingerprint": evil}
    stored = {
        "kind": "original",
        "since": evil,
        "clauses": 1,
        "repeated_by": [],
        "nearest": {"url": evil, "score": 0.5},
        "sentences": [],
    }
    copy = stored | {"kind": "duplicate", "original_url": None, "score": 1.0}
    bare = {"url": "", "note": "", "record": None, "keys": [evil]}
    last = {"form": evil, "requests": 1, "pages": 1, "nothing": 1}
    item = SimpleNamespace(time=evil, score=1.0, url="http://a/", original_url="http://b/")
    shown = [
        info_text(info),
        *(explanation_text(bare | {"stored": page, "fetched_last": last}) for page in (stored, copy)),
        overrides_text([{"url": "http://a/", "original_url": "http://b/", "time": evil, "keys": [evil]}], removed=None),
        item_text(item),
    ]
    assert [text for text in shown if re.search("[\x1b\x07\x9b]", text)] == []
