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


def _is_frozen(thing: Cycle) -> bool:
    """The collector does not tell what it was asked to leave alone.

    Counting would not do: a thread that another test began ends when it likes, and its frozen objects with it.
    """
    return not any(other is thing for other in gc.get_objects())


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
        old = Cycle()
        gc.collect()
        gone = weakref.ref(old)
        del old
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
        theirs = Cycle()
        gc.freeze()
        ours = Cycle()
        tuned = TunedCollector()
        tuned.begin()
        assert _is_frozen(theirs)
        assert not _is_frozen(ours)
        tuned.end()
        assert _is_frozen(theirs)

    def test_of_two_crawls_the_one_that_came_first_undoes_it_once(self) -> None:
        first, second = TunedCollector(), TunedCollector()
        first.begin()
        second.begin()
        second.end()
        assert gc.get_freeze_count()
        first.end()
        first.end()
        assert not gc.get_freeze_count()

    def test_the_youngest_are_looked_through_more_rarely_and_all_after_as_many_new_ones(self) -> None:
        tuned = TunedCollector()
        tuned.begin()
        youngest, middle, oldest = gc.get_threshold()
        assert youngest == 7_000
        assert youngest * (middle + 1) * (oldest + 1) == pytest.approx(700 * 11 * 11, rel=0.01)
        tuned.end()
        assert gc.get_threshold() == (700, 10, 10)

    def test_thresholds_of_ones_own_stay(self) -> None:
        tuned = TunedCollector()
        for theirs in ((50_000, 20, 20), (50_000, 10, 10), (0, 10, 10)):
            gc.set_threshold(*theirs)
            tuned.begin()
            assert gc.get_threshold() == theirs
            tuned.end()
            assert gc.get_threshold() == theirs
        gc.set_threshold(700, 10, 10)
        tuned.begin()
        gc.set_threshold(123, 10, 10)
        tuned.end()
        assert gc.get_threshold() == (123, 10, 10)

    def test_what_somebody_freezes_meanwhile_stays_frozen(self) -> None:
        tuned = TunedCollector()
        tuned.begin()
        theirs = [[n] for n in range(1000)]
        gc.freeze()
        tuned.end()
        assert gc.get_freeze_count() > len(theirs)

    def test_where_the_collector_is_off_it_stays_off_and_nothing_is_frozen(self) -> None:
        gc.disable()
        try:
            tuned = TunedCollector()
            tuned.begin()
            assert not gc.get_freeze_count()
            tuned.end()
            assert not gc.isenabled()
        finally:
            gc.enable()

    def test_what_an_earlier_crawl_has_just_left_is_not_frozen(self) -> None:
        gone = weakref.ref(Cycle())
        tuned = TunedCollector()
        tuned.begin()
        assert gone() is None
        tuned.end()


class TestCrawl:
    def test_frozen_while_it_runs_and_not_after(self, site, crawl) -> None:
        outcome = crawl("sample_spiders.Freezer", urls=site.add("/", "<p>hello"))
        assert outcome.items[0]["frozen"] > 10_000
        assert outcome.stats["process/frozen"] == 0

    def test_not_where_the_setting_says_so(self, site, crawl) -> None:
        outcome = crawl("sample_spiders.Freezer", urls=site.add("/", "<p>hello"), settings={"DEDUP_TUNE_GC": False})
        assert outcome.items[0]["frozen"] == 0

    def test_two_crawls_at_a_time_leave_it_as_it_was(self, site, crawl) -> None:
        runs = [{"spider": "sample_spiders.Freezer", "args": {"urls": site.add(f"/{n}", "<p>hello")}} for n in range(2)]
        outcome = crawl("", runs=runs)
        assert outcome.items[0]["frozen"] > 10_000
        assert outcome.stats["process/frozen"] == 0
        before, after = outcome.stats["process/thresholds"][:3], outcome.stats["process/thresholds"][3:]
        assert before == after

    def test_an_extension_that_tunes_it_too_has_its_way(self, site, crawl) -> None:
        theirs = {"EXTENSIONS": {"sample_spiders.OwnThresholds": 0}}
        outcome = crawl("sample_spiders.Freezer", urls=site.add("/", "<p>hello"), settings=theirs)
        assert outcome.items[0]["thresholds"] == outcome.stats["process/thresholds"][3:] == [50_000, 10, 10]
