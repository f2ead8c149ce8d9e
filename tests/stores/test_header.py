"""The header: it survives encoding, and garbage of any kind is a ValueError."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dedup_middleware.stores.base import Header


@settings(deadline=None)
@given(st.text(min_size=1))
def test_header_survives(scheme):
    header = Header.new(scheme)
    assert Header.decode(header.encode()) == header
    assert Header.new(scheme).key != header.key, "each store has its own"


@pytest.mark.parametrize(
    "change",
    [
        {"schema": 0}, {"schema": True}, {"schema": "1"}, {"schema": None}, {"scheme": ""}, {"scheme": 1},
        {"key": "00"}, {"key": "zz" * 16}, {"key": 5}, {"is_partial": 0}, {"more": 1},
        {"created": "yesterday"}, {"created": "2025-01-01T00:00:00"}, {"created": None},
    ],
)  # fmt: skip
def test_each_wrong_field_is_a_value_error(change):
    fields = json.loads(Header.new("x").encode()) | change
    with pytest.raises(ValueError):  # noqa: PT011
        Header.decode(json.dumps(fields).encode())
