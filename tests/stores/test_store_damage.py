"""Random damage to the files of a store: it is refused, or what it returns was written."""

import os
import random
import shutil

import pytest

from dedup_middleware.errors import StoreError
from dedup_middleware.stores import open_store

SCHEME = "test-scheme"
BATCHES, KEYS = 120, 40


def fill(uri, chance):
    """Write batches in three openings, the last of which is not closed; return all pairs."""
    written = set()
    for turn in range(3):
        store = open_store(f"{uri}?memory=4MB", fingerprint_scheme=SCHEME)
        for _ in range(BATCHES // 3):
            puts = {b"%03d" % chance.randrange(KEYS): chance.randbytes(chance.choice([10, 300, 5000])) for _ in "1234"}
            store.write(puts.items())
            written.update(puts.items())
        if turn < 2:
            store.compact()
            store.close()
    store.sync()
    return written


def read(uri):
    store = open_store(uri, fingerprint_scheme=SCHEME)
    try:
        found = dict(store.scan(b"0", b":"))
        store.get_many([*found])
    finally:
        store.close()
    return found


def flip(data, chance):
    for _ in range(chance.choice([1, 8])):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def cut(data, chance):
    del data[chance.randrange(len(data)) :]


def noise(data, chance):
    start = chance.randrange(len(data))
    data[start : start + 4096] = chance.randbytes(len(data[start : start + 4096]))


@pytest.mark.parametrize("damage", [flip, cut, noise])
def test_nothing_is_returned_that_was_not_written(uri, path, tmp_path, damage):
    chance = random.Random(damage.__name__)
    written = fill(uri, chance)
    whole = tmp_path / "whole"
    if path.is_dir():
        shutil.copytree(path, whole / "store")
    opened = open_store(uri, fingerprint_scheme=SCHEME)
    opened.in_process.close()
    if not path.is_dir():
        # The log of SQLite has all that is in so small a file.
        whole.mkdir()
        shutil.copy(path, whole)
    refusals = []
    for turn in range(20):
        folder = tmp_path / f"{turn}"
        shutil.copytree(whole, folder)
        victims = [file for file in sorted(folder.rglob("*")) if file.is_file() and file.stat().st_size]
        victim = chance.choice([file for file in victims if "LO" not in file.name])
        data = bytearray(victim.read_bytes())
        damage(data, chance)
        victim.write_bytes(data)
        try:
            found = read(f"{uri.partition(':')[0]}:{folder / 'store'}")
        except StoreError as error:
            refusals.append(str(error))
        else:
            # SQLite has no checksums of what it holds.
            assert uri.startswith("sqlite") or found.items() <= written, (victim.name, turn)
        shutil.rmtree(folder)
    assert len(refusals) > (0 if uri.startswith("sqlite") else 2)
    assert {len(text.splitlines()) for text in refusals} == {1}


def test_a_log_that_is_cut_has_lost_its_newest_batches_and_no_others(engine, path, tmp_path):
    store = open_store(f"{engine}:{path}", fingerprint_scheme=SCHEME)
    store.write([(b"synced", b"1")], sync=True)
    log = max((path / "db").glob("*.log")).relative_to(path)
    synced = (path / log).stat().st_size
    keys = [b"%02d" % number for number in range(20)]
    for key in keys:
        store.write([(key, key * 50)])
    counts = []
    for size in range(synced, (path / log).stat().st_size + 1, 301):
        left = tmp_path / "left"
        shutil.copytree(path, left)
        os.truncate(left / log, size)
        after = open_store(f"{engine}:{left}", fingerprint_scheme=SCHEME)
        assert after.get_many([b"synced"]) == [b"1"]
        held = [key for key, _ in after.scan(b"0", b":")]
        assert held == keys[: len(held)]
        counts.append(len(held))
        after.close()
        shutil.rmtree(left)
    store.close()
    assert counts[0] == 0
    assert counts[-1] > 15
