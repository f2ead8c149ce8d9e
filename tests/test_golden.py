"""The verdicts on a made corpus are those that are stored, so that each change of one shows in a diff."""

from __future__ import annotations

import json
from collections import Counter

from golden import VERDICTS, lines

STORED = VERDICTS.read_text(encoding="utf8").splitlines()


def test_the_verdicts_are_the_stored_ones() -> None:
    """After a change that is meant, run ``python tests/golden.py --write`` and review the diff."""
    assert lines() == STORED


def test_the_corpus_has_every_verdict() -> None:
    verdicts = Counter(json.loads(line).get("verdict") for line in STORED)
    assert all(verdicts[kind] for kind in ("new", "duplicate", "related", "unchecked")), verdicts
