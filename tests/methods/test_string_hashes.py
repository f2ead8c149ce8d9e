from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_middleware.methods.string_hashes import STRING_HASHES, bkdr, djb, elf, pjw, sdbm

# What Partow's reference code prints.
KEY = b"abcdefghijklmnopqrstuvwxyz1234567890"
REFERENCE = {
    "elf": 126631744,
    "rs": 4097835502,
    "js": 1651003062,
    "pjw": 126631744,
    "bkdr": 3153586616,
    "sdbm": 3449571336,
    "djb": 729241521,
    "ap": 882643939,
}
EMPTY = {"elf": 0, "rs": 0, "js": 1315423911, "pjw": 0, "bkdr": 0, "sdbm": 0, "djb": 5381, "ap": 0xAAAAAAAA}

BITS = 2**32


def test_each_gives_what_the_reference_code_prints() -> None:
    assert {name: function(KEY) for name, function in STRING_HASHES.items()} == REFERENCE


def test_each_begins_with_its_constant() -> None:
    assert {name: function(b"") for name, function in STRING_HASHES.items()} == EMPTY


@pytest.mark.parametrize(
    ("symbol", "value"), [(b"printf", 0x077905A6), (b"exit", 0x0006CF04), (b"syscall", 0x0B09985C)]
)
def test_symbols_have_the_hashes_that_linkers_know(symbol: bytes, value: int) -> None:
    assert elf(symbol) == value


@pytest.mark.parametrize(
    ("symbol", "value"), [(b"printf", 0x156B2BB8), (b"exit", 0x7C967E3F), (b"syscall", 0xBAC212A0)]
)
def test_gnu_linkers_know_those_of_djb(symbol: bytes, value: int) -> None:
    assert djb(symbol) == value


@given(st.binary())
def test_each_has_32_bits(data: bytes) -> None:
    assert all(0 <= function(data) < BITS for function in STRING_HASHES.values())


@given(st.binary(max_size=40))
def test_elf_is_pjw_and_has_28_bits(data: bytes) -> None:
    assert elf(data) == pjw(data) < 2**28


@given(st.binary(), st.binary())
def test_bkdr_sdbm_and_djb_are_polynomials(head: bytes, tail: bytes) -> None:
    for function, base in ((bkdr, 131), (sdbm, 65599), (djb, 33)):
        moved = (function(head) - function(b"")) * pow(base, len(tail), BITS)
        assert function(head + tail) == (moved + function(tail)) % BITS


@given(st.binary(min_size=1))
def test_the_last_byte_always_counts(data: bytes) -> None:
    other = data[:-1] + bytes([data[-1] ^ 1])
    assert all(function(data) != function(other) for name, function in STRING_HASHES.items() if name != "ap")
