"""A crash loses no story: the next crawl releases the items that were dropped in favour of lost originals."""

import random
import shutil
from argparse import Namespace

import pytest
from benchmarks.crashes import (
    StorySite,
    kinds_of_chains,
    run_chain,
    run_with_fault,
    settings_of,
)
from crawling import FEED, Running, run_job, run_scrapy, write_job
from fault_injection import EDGES, EXIT_STATUS, ROUND, STORE_CALLS, faults
from local_site import Site, wait_until
from prose import article, blog, story
from scrapy.exporters import JsonLinesItemExporter
from test_claims_in_crawls import FATES, pair

#: A feed that is on disk only when it ends.
GZIP = {
    "FEEDS": {
        "feed.gz": {"format": "jsonlines", "postprocessing": ["scrapy.extensions.postprocessing.GzipPlugin"]},
    }
}
HOLDING = {**FATES, **FEED, "HOLD_UNTIL": {"never": 1}, "CONCURRENT_REQUESTS": 1}


class TheirExporter(JsonLinesItemExporter):
    """An exporter of the project's own: it may keep what it got."""


def killed(folder, site, steps, **settings):
    """Crawl *steps*, and kill the process once they have ended."""
    last = {"url": site.add("/last", article("Last", story(500))), "cb_kwargs": {"fate": "hold"}}
    command = write_job(folder, "sample_spiders.Steps", steps=[*steps, last], settings=HOLDING | settings)
    with Running(folder, command) as running:
        wait_until((folder / "held").exists)
        return running.kill()


def again(folder, steps, **settings):
    """Crawl *steps* in the folder of an earlier crawl."""
    (folder / "held").unlink(missing_ok=True)
    command = write_job(folder, "sample_spiders.Steps", steps=steps, settings=FEED | settings)
    return run_job(folder, command)


def fed(outcome, name="feed.jsonl"):
    return [item["url"] for item in outcome.lines(name)]


def released(outcome):
    """Return how many items *outcome* says that its crawl released."""
    return outcome.stats.get("dedup/items/released", 0)


@pytest.mark.parametrize("settings", [{}, {"JOBDIR": "job"}], ids=["afresh", "jobdir"])
def test_what_a_drop_rests_on_is_in_the_feed_before(site, tmp_path, settings):
    """So a crash leaves nothing that had to be put right: what was not on disk is new to the next crawl."""
    (a, b), (c, d) = pair(site, 1), pair(site, 2)
    crashed = killed(tmp_path, site, [{"url": a}, {"url": b}, {"url": c}], **settings)
    assert crashed.kept == [a, c]
    assert [i["url"] for i in crashed.dropped] == [b]
    assert fed(crashed) == [a]
    outcome = again(tmp_path, [{"url": b}, {"url": d}, {"url": c}], **settings)
    assert fed(outcome) == [a, d]
    assert outcome.record(c)["original_url"] == d
    assert released(outcome) == 0
    assert outcome.problems == []


@pytest.mark.parametrize("settings", [{}, {"JOBDIR": "job"}], ids=["afresh", "jobdir"])
def test_an_item_of_a_feed_that_ends_late_is_released_after_a_crash(site, tmp_path, settings):
    a, b = pair(site, 1)
    crashed = killed(tmp_path, site, [{"url": a}, {"url": b}], **GZIP, **settings)
    assert crashed.kept == [a]
    assert [i["url"] for i in crashed.dropped] == [b]
    requests = len(site.paths())

    outcome = again(tmp_path, [], **settings)
    assert fed(outcome) == [a]
    assert len(site.paths()) == requests, "an item is released without a request"
    assert released(outcome) == 1
    assert "dedup: 1 stored item was released: a feed was lost\n" in outcome.log
    last = outcome.records[-1]
    assert (last["url"], last["outcome"], last["items_kept"]) == (a, "released", 1)
    assert outcome.problems == []

    third = again(tmp_path, [{"url": b}], **settings)
    assert released(third) == 0
    assert fed(third) == [a]
    assert (third.records[-1]["url"], third.records[-1]["original_url"]) == (b, a)


def test_a_resumed_crawl_releases_what_its_killed_run_kept_although_its_feed_is_overwritten(site, tmp_path):
    a, b = pair(site, 1)
    settings = {"JOBDIR": "job", "FEEDS": {"feed.jsonl": {"format": "jsonlines", "overwrite": True}}}
    late = {"FEEDS": {"feed.gz": {**GZIP["FEEDS"]["feed.gz"], "overwrite": True}}}
    assert killed(tmp_path, site, [{"url": a}, {"url": b}], **settings | late).kept == [a]
    outcome = again(tmp_path, [], **settings)
    assert fed(outcome) == [a]
    (warning,) = outcome.problems
    assert "resumes a JOBDIR, and Scrapy replaces feed.jsonl" in warning


@pytest.mark.parametrize("settings", [{}, {"JOBDIR": "job"}], ids=["afresh", "jobdir"])
def test_what_an_earlier_crawl_kept_is_no_original_for_a_crawl_of_its_own_scope(site, tmp_path, settings):
    """Under the scope ``crawl``, a drop rests on what its own crawl has brought to disk."""
    a, b = pair(site, 1)
    earlier = again(tmp_path, [{"url": a}], FEEDS={"earlier.jsonl": FEED["FEEDS"]["feed.jsonl"]})
    assert fed(earlier, "earlier.jsonl") == [a]
    crashed = killed(tmp_path, site, [{"url": a}, {"url": b}], DEDUP_SCOPE="crawl", **settings)
    assert [i["url"] for i in crashed.dropped] == [b]
    assert fed(crashed) == [a]


def test_a_drop_waits_for_what_only_this_crawl_gave_to_a_feed(site, tmp_path):
    """An earlier crawl kept the original, but had no feed that takes such items."""
    a, b = pair(site, 1)
    stories = {"stories.jsonl": {"format": "jsonlines", "item_classes": ["sample_spiders.DataItem"]}}
    steps = [{"url": url, "cb_kwargs": {"kind": "dataclass"}} for url in (a, b)]
    again(tmp_path, steps[:1])
    crashed = killed(tmp_path, site, steps, FEEDS={**FEED["FEEDS"], **stories})
    assert [i["url"] for i in crashed.dropped] == [b]
    assert fed(crashed, "stories.jsonl") == [a]


def test_without_feeds_an_original_is_durable_when_the_pipelines_have_returned(site, tmp_path):
    a, b = pair(site, 1)
    killed(tmp_path, site, [{"url": a}], FEEDS={})
    outcome = again(tmp_path, [{"url": b}], FEEDS={})
    assert outcome.kept == [a]


def test_an_item_is_released_until_it_is_durable(site, tmp_path):
    """One crash after another takes it from the feed again."""
    a, b = pair(site, 1)
    settings = {"JOBDIR": "job"}
    killed(tmp_path, site, [{"url": a}, {"url": b}], **settings, **GZIP)
    for _ in range(2):
        (tmp_path / "held").unlink()
        crashed = killed(tmp_path, site, [], **settings, **GZIP)
        assert crashed.kept[-1] == a
        assert fed(crashed) == []
    assert fed(again(tmp_path, [], **settings)) == [a]
    assert released(again(tmp_path, [], **settings)) == 0


# --- feeds that fail, and feeds that are only stored at their end


def test_after_a_feed_that_cannot_be_written_nothing_is_dropped_and_no_page_is_an_original(site, crawl):
    pairs = [pair(site, number) for number in range(3)]
    steps = [{"url": url} for urls in pairs for url in urls]
    settings = {"FEEDS": {"/dev/full": {"format": "jsonlines"}}}
    outcome = crawl("sample_spiders.Steps", steps=steps, settings=settings, folder="full")
    assert outcome.kept == [url for urls in pairs for url in urls]
    assert outcome.dropped == []
    assert any("the feed /dev/full cannot be written" in p and "nothing is dropped" in p for p in outcome.problems)

    better = crawl("sample_spiders.Steps", steps=steps, settings=FEED, folder="full", afresh=True)
    assert fed(better) == [a for a, _ in pairs]


def test_after_a_feed_that_fails_at_its_end_the_next_crawl_releases_the_kept_items(site, crawl):
    a, b = pair(site, 1)
    storages = {"FEED_STORAGES": {"late": "sample_spiders.LateStorage"}}
    settings = {**storages, "FEEDS": {"late://user:secret@fails": {"format": "jsonlines"}}}
    outcome = crawl("sample_spiders.Steps", steps=[{"url": a}, {"url": b}], settings=settings, folder="late")
    assert [i["url"] for i in outcome.dropped] == [b]
    (line,) = [p for p in outcome.problems if "dedup" in p]
    assert "the feed late://fails could not be stored" in line
    assert "secret" not in line
    better = crawl("sample_spiders.Steps", steps=[], settings=FEED, folder="late", afresh=True)
    assert fed(better) == [a], "what was kept for the feed is released"
    assert released(better) == 1
    assert better.problems == []


def test_an_item_that_is_a_batch_of_its_own_is_not_durable_before_the_batch_is_stored(site, crawl):
    a, b = pair(site, 1)
    feeds = {"late://fails/%(batch_id)d": {"format": "jsonlines", "batch_item_count": 1}}
    settings = {"FEED_STORAGES": {"late": "sample_spiders.LateStorage"}, "FEEDS": feeds, "CHECKPOINT_INTERVAL": 1}
    failed = crawl("sample_spiders.Steps", steps=[{"url": a}], settings=settings, folder="late")
    assert failed.stats["dedup/failures"] == 1
    better = crawl("sample_spiders.Steps", steps=[{"url": b}], settings=FEED, folder="late", afresh=True)
    assert fed(better) in ([a], [b]), "it is stored, or new"


@pytest.mark.parametrize(
    ("options", "is_durable"),
    [
        ({"format": "jsonlines"}, True),
        ({"format": "csv"}, True),
        ({"format": "jsonlines", "postprocessing": ["scrapy.extensions.postprocessing.GzipPlugin"]}, False),
        ({"format": "theirs"}, False),
        ({"format": "jsonlines", "uri": "late://feed"}, False),
    ],
    ids=["lines", "csv", "gzip", "exporter", "storage"],
)
def test_a_feed_is_durable_while_the_crawl_runs_or_at_its_end(site, tmp_path, options, is_durable):
    a, b = pair(site, 1)
    options = {**options}
    settings = {
        "FEEDS": {options.pop("uri", "other"): options},
        "FEED_EXPORTERS": {"theirs": "test_crashes.TheirExporter"},
        "FEED_STORAGES": {"late": "sample_spiders.LateStorage"},
        "CHECKPOINT_INTERVAL": 1,
    }
    crashed = killed(tmp_path, site, [{"url": a}, {"url": b}], **settings)
    assert [item["url"] for item in crashed.dropped] == [b]
    assert released(again(tmp_path, [])) == (not is_durable)


# --- short forms of the campaigns in benchmarks/crashes.py


@pytest.fixture(scope="module")
def told():
    told = StorySite.build(30, together=False)
    yield told
    told.site.close()


# The moment before a step is that after the step before it, so most edges need one moment only.
@pytest.mark.parametrize(("edge", "moment"), [*((edge, "after") for edge in EDGES), ("checkpoint", "before")])
def test_a_process_that_ends_at_an_edge_loses_no_story(told, edge, moment):
    # How many checkpoints there are beyond the first depends on the disk.
    nth = 1 if edge in ROUND else random.Random(edge + moment).randint(1, 8)
    fault = faults(EDGES[edge], nth=nth, moment=moment)
    status, seen = run_with_fault(told, settings_of(jobdir=True, interval=5), fault)
    assert status == EXIT_STATUS
    assert (seen.lost, seen.self_drops) == (set(), 0)


@pytest.mark.parametrize("nth", [3, 40, 80])
def test_a_call_of_the_store_that_fails_ends_no_crawl_and_loses_no_story(told, nth):
    fault = faults(*STORE_CALLS, nth=nth, kind="fail")
    status, seen = run_with_fault(told, settings_of(jobdir=False, interval=5), fault)
    assert status == 0
    assert (seen.lost, seen.self_drops, seen.missing) == (set(), 0, 0)


@pytest.mark.parametrize("items", ["filtered", "unstorable"])
def test_a_kill_loses_no_item_of_a_feed_and_drops_none_that_cannot_be_stored(told, items):
    kinds = {"filtered": items == "filtered", "unstorable": items == "unstorable"}
    options = Namespace(kept=False, interval=5, fingerprint="clauses", **kinds)
    _, _, settings = kinds_of_chains(options)[0]
    # By pages, not by time: a busy machine has not begun to crawl after half a second.
    seen = run_chain(told, [12, 22], settings, options)
    assert seen["dropped"] or seen["twice"]
    wrong = {name: seen[name] for name in ("lost", "missing", "self_drops", "unstorable_dropped") if seen[name]}
    assert wrong == {}
    assert seen["ended_well"] == 1


@pytest.mark.parametrize(("fate", "releases"), [("fail", 1), ("drop", 0)], ids=["pipeline fails", "project drops"])
def test_an_item_that_fails_when_it_is_released_is_released_once_more(site, tmp_path, fate, releases):
    a, b = pair(site, 1, shown=fate)
    steps = [{"url": a}, {"url": b, "cb_kwargs": {"fate": fate}}]
    assert [i["url"] for i in again(tmp_path, steps).dropped] == [b]
    assert run_scrapy(tmp_path, "dedup", "allow", b).returncode == 0
    second = again(tmp_path, [], **FATES)
    assert (released(second), fed(second)) == (1, [a])
    third = again(tmp_path, [])
    assert released(third) == releases
    assert fed(third) == [a] + [b] * releases
    assert released(again(tmp_path, [])) == 0


# --- which crawl releases an item


def test_what_a_person_allows_after_a_crash_is_kept_in_any_case(site, tmp_path):
    """The next crawl releases what was kept, and what a person has allowed."""
    a, b = pair(site, 1)
    c = site.add("/c", blog("c", story(1)), host=2)
    assert len(killed(tmp_path, site, [{"url": url} for url in (a, b, c)], **GZIP).dropped) == 2
    allowed = run_scrapy(tmp_path, "dedup", "allow", c)
    assert (allowed.returncode, allowed.stderr) == (0, "")
    outcome = again(tmp_path, [])
    assert fed(outcome) == [a, c]
    assert released(outcome) == 2


# --- a crash while what an earlier crash took is released

RELEASE = [
    ("index.dropped_items:DroppedItems.releases", "before"),
    ("index.dropped_items:DroppedItems.take", "after"),
    ("driver.deduplicator:Deduplication.enter", "after"),
    ("driver.deduplicator:Deduplication.end", "before"),
    ("driver.deduplicator:Deduplication.released_item_left", "before"),
    ("driver.deduplicator:Deduplication.released_item_left", "after"),
    ("visits.durability:Durability._settle", "before"),
    ("visits.durability:Durability._settle", "after"),
]


@pytest.fixture(scope="module")
def killed_crawl(tmp_path_factory):
    """The folder of a crawl that was killed before its feed was stored, and the pages that it kept."""
    site, folder = Site(), tmp_path_factory.mktemp("killed")
    pairs = [pair(site, number) for number in range(3)]
    originals = [a for a, _ in pairs]
    assert killed(folder, site, [{"url": u} for both in pairs for u in both], **GZIP).kept == originals
    yield folder, originals
    site.close()


@pytest.mark.parametrize(("place", "moment"), RELEASE)
def test_a_crash_at_any_step_of_a_release_loses_no_item(killed_crawl, tmp_path, place, moment):
    folder, originals = killed_crawl
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    nth = 1 if place.startswith(("visits.durability", "index.dropped")) else 2
    crashed = again(tmp_path, [], **faults(place, nth=nth, moment=moment), CHECKPOINT_INTERVAL=1)
    assert crashed.exit_status == EXIT_STATUS
    outcome = again(tmp_path, [])
    assert set(fed(outcome)) == set(originals)
    # Those that are on disk, and that the store still has, come twice.
    on_disk = len(fed(crashed))
    assert len(fed(outcome)) <= len(originals) + on_disk
    assert released(again(tmp_path, [])) == 0
