"""Which addresses tell pages of one text apart."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from dedup_middleware.checks.pair import has_own_address

APART = [
    ("/branch/1", "/branch/2"),
    ("/branch/leeds", "/branch/york"),
    ("/филиал/псков", "/филиал/тверь"),
    ("/branch?id=1", "/branch?id=2"),
    ("/show.php?mod=branch&id=1", "/show.php?mod=branch&id=2"),
    ("/branch?leeds", "/branch?york"),
    ("/филиал?id=1", "/филиал?id=2"),
    ("/v1/index2.php?branch=Leeds", "/v1/index2.php?branch=York"),
]
ALIKE = [
    ("/news/41", "/print/41"),
    ("/news/41?ref=home", "/news/41?ref=mail"),
    ("/2025/fair?sid=1", "/2025/fair?sid=2"),
    ("/what-became-of-it?sid=a", "/what-became-of-it?sid=b"),
    ("/show.php?id=41&sid=1", "/show.php?id=41&sid=2"),
    ("/branch", "/branch?id=2"),
    ("/leaks/?sid=2fd06dce", "/leaks/?sid=826d9947"),
    ("/leeds/opening-hours", "/york/opening-hours"),
]


@pytest.mark.parametrize(
    ("one", "other", "apart"), [(*pair, True) for pair in APART] + [(*pair, False) for pair in ALIKE]
)
def test_whether_two_addresses_name_two_pages(one: str, other: str, apart: bool) -> None:  # noqa: FBT001 - a case
    urls = [f"http://example.org{quote(path, '/?=&')}" for path in (one, other)]
    assert (has_own_address(*urls) and has_own_address(*reversed(urls))) == apart
