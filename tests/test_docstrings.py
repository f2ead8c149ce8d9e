"""The examples in docstrings run, and print what they say."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import dedup_middleware

PACKAGE = Path(dedup_middleware.__file__).parent
WITH_EXAMPLES = sorted(
    ".".join(module.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
    for module in PACKAGE.rglob("*.py")
    if ">>> " in module.read_text(encoding="utf8")
)


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_each_example_prints_what_it_says(name):
    found = doctest.testmod(import_module(name))
    assert found.attempted > 0
    assert found.failed == 0


def test_the_public_names_have_examples():
    for name in ("Deduplicator", "extract_paragraphs", "extract_text"):
        assert ">>> " in getattr(dedup_middleware, name).__doc__
