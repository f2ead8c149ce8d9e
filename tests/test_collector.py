"""The garbage collector is spared what was there before the crawl, and gets it back afterwards."""

from __future__ import annotations

import gc
import weakref
from typing import TYPE_CHECKING

import pytest

from dedup_middleware.collector import StartFreeze

if TYPE_CHECKING:
    from collections.abc import Iterator


class Cycle:
    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def _nothing_frozen() -> Iterator[None]:
    gc.unfreeze()
    yield
    gc.unfreeze()


class TestOneProcess:
    def test_what_was_garbage_at_the_start_is_collected_after_the_end(self) -> None:
        gone = weakref.ref(Cycle())
        freeze = StartFreeze()
        freeze.begin()
        gc.collect()
        assert gone() is not None
        freeze.end()
        gc.collect()
        assert gone() is None

    def test_what_becomes_garbage_meanwhile_is_collected_as_ever(self) -> None:
        freeze = StartFreeze()
        freeze.begin()
        gone = weakref.ref(Cycle())
        gc.collect()
        assert gone() is None
        freeze.end()

    def test_what_somebody_else_froze_stays_frozen(self) -> None:
        gc.freeze()
        theirs = gc.get_freeze_count()
        freeze = StartFreeze()
        freeze.begin()
        assert gc.get_freeze_count() == theirs
        freeze.end()
        assert gc.get_freeze_count() == theirs

    def test_of_two_crawls_the_one_that_came_first_undoes_it_once(self) -> None:
        first, second = StartFreeze(), StartFreeze()
        first.begin()
        second.begin()
        second.end()
        assert gc.get_freeze_count()
        first.end()
        first.end()
        assert not gc.get_freeze_count()


class TestCrawl:
    def test_frozen_while_it_runs_and_not_after(self, site, crawl) -> None:
        outcome = crawl("strangers.Freezer", urls=site.add("/", "<p>hello"))
        assert outcome.items[0]["frozen"] > 10_000
        assert outcome.stats["process/frozen"] == 0

    def test_not_where_the_setting_says_so(self, site, crawl) -> None:
        outcome = crawl("strangers.Freezer", urls=site.add("/", "<p>hello"), settings={"DEDUP_GC_FREEZE": False})
        assert outcome.items[0]["frozen"] == 0
