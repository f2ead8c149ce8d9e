"""The garbage collector is spared what was there before the crawl, and gets it back afterwards."""

from __future__ import annotations

import gc
import weakref
from typing import TYPE_CHECKING

import pytest

from dedup_middleware.plugin.collector import TunedCollector

if TYPE_CHECKING:
    from collections.abc import Iterator


class Cycle:
    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def _as_python_has_it() -> Iterator[None]:
    before = gc.get_threshold()
    gc.unfreeze()
    gc.set_threshold(700, 10, 10)
    yield
    gc.unfreeze()
    gc.set_threshold(*before)


class TestOneProcess:
    def test_what_was_garbage_at_the_start_is_collected_after_the_end(self) -> None:
        gone = weakref.ref(Cycle())
        tuned = TunedCollector()
        tuned.begin()
        gc.collect()
        assert gone() is not None
        tuned.end()
        gc.collect()
        assert gone() is None

    def test_what_becomes_garbage_meanwhile_is_collected_as_ever(self) -> None:
        tuned = TunedCollector()
        tuned.begin()
        gone = weakref.ref(Cycle())
        gc.collect()
        assert gone() is None
        tuned.end()

    def test_what_somebody_else_froze_stays_frozen(self) -> None:
        gc.freeze()
        theirs = gc.get_freeze_count()
        tuned = TunedCollector()
        tuned.begin()
        assert gc.get_freeze_count() == theirs
        tuned.end()
        assert gc.get_freeze_count() == theirs

    def test_of_two_crawls_the_one_that_came_first_undoes_it_once(self) -> None:
        first, second = TunedCollector(), TunedCollector()
        first.begin()
        second.begin()
        second.end()
        assert gc.get_freeze_count()
        first.end()
        first.end()
        assert not gc.get_freeze_count()

    def test_the_youngest_are_looked_through_more_rarely_and_all_as_often_as_before(self) -> None:
        tuned = TunedCollector()
        tuned.begin()
        youngest, middle, oldest = gc.get_threshold()
        assert youngest == 7_000
        assert youngest * (middle + 1) * (oldest + 1) == pytest.approx(700 * 11 * 11, rel=0.01)
        tuned.end()
        assert gc.get_threshold() == (700, 10, 10)

    def test_thresholds_of_ones_own_stay(self) -> None:
        tuned = TunedCollector()
        gc.set_threshold(50_000, 20, 20)
        tuned.begin()
        assert gc.get_threshold() == (50_000, 20, 20)
        tuned.end()
        assert gc.get_threshold() == (50_000, 20, 20)
        tuned.begin()
        gc.set_threshold(123, 10, 10)
        tuned.end()
        assert gc.get_threshold() == (123, 10, 10)


class TestCrawl:
    def test_frozen_while_it_runs_and_not_after(self, site, crawl) -> None:
        outcome = crawl("sample_spiders.Freezer", urls=site.add("/", "<p>hello"))
        assert outcome.items[0]["frozen"] > 10_000
        assert outcome.stats["process/frozen"] == 0

    def test_not_where_the_setting_says_so(self, site, crawl) -> None:
        outcome = crawl("sample_spiders.Freezer", urls=site.add("/", "<p>hello"), settings={"DEDUP_TUNE_GC": False})
        assert outcome.items[0]["frozen"] == 0
