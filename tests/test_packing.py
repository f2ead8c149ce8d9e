"""Requests as bytes: those that a store has must be readable for ever."""

from __future__ import annotations

import base64
import pickle
import zlib

from dedup_middleware.index.packing import is_repeatable, packed, unpacked

FIELDS = {
    "url": "https://www.example.org/news/17.html",
    "callback": "parse",
    "errback": None,
    "headers": {},
    "method": "GET",
    "body": b"",
    "cookies": {},
    "meta": {"depth": 1},
    "encoding": "utf-8",
    "priority": 0,
    "dont_filter": False,
    "flags": [],
    "cb_kwargs": {"page": 17},
}
PACKED = base64.b85decode("ct4B~o`P#&nfeS8S4fei0t;1;GgB)Pa|?1(K|!mZms(z|Z)mOu3Oo`b5#0$C`5M{%=w8JYA}j@<X!8~<F4Y47Juh4=")


def test_what_was_packed_once_can_be_unpacked() -> None:
    assert unpacked(PACKED) == FIELDS


def test_what_was_packed_without_a_dictionary_can_be_unpacked() -> None:
    """In stores of before."""
    assert unpacked(zlib.compress(pickle.dumps(FIELDS))) == FIELDS


def test_an_ordinary_request_takes_a_third_of_its_pickle() -> None:
    value = packed(FIELDS)
    assert value is not None
    assert unpacked(value) == FIELDS
    assert 3 * len(value) < len(pickle.dumps(FIELDS))


def test_only_a_get_is_made_again_by_itself() -> None:
    assert is_repeatable(PACKED)
    assert not is_repeatable(packed({**FIELDS, "method": "POST"}) or b"")
    assert not is_repeatable(b"no request")
