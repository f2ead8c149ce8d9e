"""A crash costs nobody a story: what a feed's buffer takes with it is delivered by another page, or once more."""

from __future__ import annotations

import json
import random

import pytest
from benchmarks.crashes import StorySite, run_mishap, settings_of, witness
from crawling import Running, order, run_order
from local_site import Answer, wait_until
from mishaps import EDGES, EXIT_STATUS, STORE_CALLS
from prose import article, blog, story
from test_claims_in_crawls import FATES, pair

FEED = {"FEEDS": {"feed.jsonl": {"format": "jsonlines"}}}
HOLDING = {**FATES, **FEED, "HOLD_UNTIL": {"never": 1}, "CONCURRENT_REQUESTS": 1}


def killed(folder, site, steps, **settings):
    """Crawl *steps*, and kill the process once they have ended."""
    last = {"url": site.add("/last", article("Last", story(500))), "cb_kwargs": {"fate": "hold"}}
    command = order(folder, "strangers.Steps", steps=[*steps, last], settings=HOLDING | settings)
    with Running(folder, command) as running:
        wait_until((folder / "held").exists)
        return running.kill()


def again(folder, steps, **settings):
    """Crawl *steps* in the folder of an earlier crawl."""
    (folder / "held").unlink(missing_ok=True)
    command = order(folder, "strangers.Steps", steps=steps, settings=FEED | settings)
    return run_order(folder, command)


def fed(outcome, name="feed.jsonl"):
    return [item["url"] for item in outcome.lines(name)]


@pytest.mark.parametrize("settings", [{}, {"JOBDIR": "job"}], ids=["afresh", "jobdir"])
def test_what_was_dropped_for_a_page_that_a_crash_took_is_requested_again(site, tmp_path, settings):
    a, b = pair(site, 1)
    crashed = killed(tmp_path, site, [{"url": a}, {"url": b}], **settings)
    assert crashed.delivered == [a]
    assert [i["url"] for i in crashed.dropped] == [b]
    assert fed(crashed) == []

    outcome = again(tmp_path, [], **settings)
    assert fed(outcome) == [b]
    assert outcome.stats["dedup/journal/requested_again"] == 1
    assert any("1 dropped pages are requested again" in line for line in outcome.log.splitlines())
    assert outcome.problems == []

    third = again(tmp_path, [{"url": a}], **settings)
    assert "dedup/journal/requested_again" not in third.stats
    assert fed(third) == [b]
    assert third.record(a)["owner_url"] == b


def test_a_page_that_was_sealed_before_the_crash_still_owns_its_story(site, tmp_path):
    a, b = pair(site, 1)
    crashed = killed(tmp_path, site, [{"url": a}, {"url": b}], DEDUP_SEAL_INTERVAL=1)
    assert fed(crashed) == [a]
    outcome = again(tmp_path, [{"url": b}])
    assert fed(outcome) == [a]
    assert "dedup/journal/requested_again" not in outcome.stats
    assert [i["url"] for i in outcome.dropped] == [b, b]


def test_without_feeds_a_page_is_safe_when_the_pipelines_have_returned(site, tmp_path):
    a, b = pair(site, 1)
    killed(tmp_path, site, [{"url": a}], FEEDS={})
    outcome = again(tmp_path, [{"url": b}], FEEDS={})
    assert outcome.delivered == [a]


def test_the_journal_survives_one_crash_after_another(site, tmp_path):
    a, b = pair(site, 1)
    settings = {"JOBDIR": "job"}
    killed(tmp_path, site, [{"url": a}, {"url": b}], **settings)
    (tmp_path / "held").unlink()
    second = killed(tmp_path, site, [], **settings)
    assert fed(second) == []
    outcome = again(tmp_path, [], **settings)
    assert fed(outcome) == [b]


def test_a_page_whose_request_cannot_be_journalled_is_delivered_until_its_owner_is_sealed(site, crawl):
    a, b = pair(site, 1)
    c = site.add("/c", blog("c", story(1)), host=2)
    lonely = [site.add(f"/lonely/{n}", article("Lonely", story(n))) for n in range(50, 54)]
    steps = [{"url": a}, {"url": b, "callback": "nameless"}, *({"url": u} for u in lonely), {"url": c}]
    outcome = crawl("strangers.Steps", steps=steps, settings={**FEED, "DEDUP_SEAL_INTERVAL": 4})
    assert outcome.delivered == [a, b, *lonely]
    record = outcome.record(b)
    assert (record["verdict"], record["outcome"]) == ("related", "delivered")
    assert record["reason"] == "the owner is not sealed yet, and the request cannot be journalled"
    assert [i["url"] for i in outcome.dropped] == [c]


# --- feeds that fail, and feeds that are only stored at their end


def test_after_a_feed_that_cannot_be_written_nothing_is_dropped_and_nobody_owns(site, crawl):
    pairs = [pair(site, number) for number in range(3)]
    steps = [{"url": url} for urls in pairs for url in urls]
    feeds = {"FEEDS": {"/dev/full": {"format": "jsonlines"}}}
    settings = {**feeds, "DEDUP_SEAL_INTERVAL": 2}
    outcome = crawl("strangers.Steps", steps=steps, settings=settings, folder="full")
    (first, copy), (second, _), (third, last) = pairs
    assert outcome.delivered == [first, second, pairs[1][1], third, last]
    assert [i["url"] for i in outcome.dropped] == [copy]
    assert outcome.verdicts[last] == ("duplicate", "delivered")
    assert any("the feed /dev/full cannot be written" in p and "nothing is dropped" in p for p in outcome.problems)

    better = crawl("strangers.Steps", steps=[], settings=FEED, folder="full", afresh=True)
    assert fed(better) == [copy]


def test_a_feed_that_fails_at_its_end_is_told_and_its_pages_are_requested_again(site, crawl):
    a, b = pair(site, 1)
    storages = {"FEED_STORAGES": {"late": "strangers.LateStorage"}}
    settings = {**storages, "FEEDS": {"late://user:secret@fails": {"format": "jsonlines"}}}
    outcome = crawl("strangers.Steps", steps=[{"url": a}, {"url": b}], settings=settings, folder="late")
    assert [i["url"] for i in outcome.dropped] == [b]
    (line,) = [p for p in outcome.problems if "dedup" in p]
    assert "the feed late://fails could not be stored" in line
    assert "secret" not in line
    better = crawl("strangers.Steps", steps=[], settings=FEED, folder="late", afresh=True)
    assert fed(better) == [b]


def test_an_item_that_is_a_batch_of_its_own_is_not_safe_before_that_is_stored(site, crawl):
    a, b = pair(site, 1)
    feeds = {"late://fails/%(batch_id)d": {"format": "jsonlines", "batch_item_count": 1}}
    settings = {"FEED_STORAGES": {"late": "strangers.LateStorage"}, "FEEDS": feeds, "DEDUP_SEAL_INTERVAL": 1}
    failed = crawl("strangers.Steps", steps=[{"url": a}], settings=settings, folder="late")
    assert failed.stats["dedup/failures"] == 1
    better = crawl("strangers.Steps", steps=[{"url": b}], settings=FEED, folder="late", afresh=True)
    assert fed(better) == [b]


def test_a_feed_that_is_stored_at_its_end_seals_then(site, crawl):
    a, b = pair(site, 1)
    c = site.add("/c", blog("c", story(1)), host=2)
    storages = {"FEED_STORAGES": {"late": "strangers.LateStorage"}}
    settings = {**storages, "FEEDS": {"late://works": {"format": "jsonlines"}}, "DEDUP_SEAL_INTERVAL": 1}
    outcome = crawl("strangers.Steps", steps=[{"url": a}, {"url": b}], settings=settings, folder="late")
    assert [i["url"] for i in outcome.dropped] == [b]
    assert outcome.problems == []
    better = crawl("strangers.Steps", steps=[{"url": c}], settings=settings, folder="late", afresh=True)
    assert better.delivered == []
    assert "dedup/journal/requested_again" not in better.stats


# --- short forms of the campaigns in benchmarks/crashes.py


@pytest.fixture(scope="module")
def told():
    told = StorySite.build(45, together=False)
    yield told
    told.site.close()


# Before a step is after the one before it, so the long form's other edges are the same places here.
@pytest.mark.parametrize(("edge", "moment"), [*((edge, "after") for edge in EDGES), ("seal", "before")])
def test_a_process_that_ends_at_an_edge_loses_no_story(told, edge, moment):
    chance = random.Random(edge + moment)
    nth = chance.randint(1, 2 if edge in ("flush", "seal") else 12)
    mishap = {"at": [EDGES[edge]], "nth": nth, "moment": moment, "kind": "exit"}
    status, seen = run_mishap(told, settings_of(jobdir=True, interval=5), mishap)
    assert status == EXIT_STATUS
    assert (seen.lost, seen.self_drops) == (set(), 0)


@pytest.mark.parametrize("nth", [3, 10, 40, 90, 150])
def test_a_call_of_the_store_that_fails_ends_no_crawl_and_loses_no_story(told, nth):
    mishap = {"at": STORE_CALLS, "nth": nth, "kind": "fail"}
    status, seen = run_mishap(told, settings_of(jobdir=False, interval=5), mishap)
    assert status == 0
    assert (seen.lost, seen.self_drops, seen.missing) == (set(), 0, 0)


def test_the_witness_sees_what_is_lost(tmp_path):
    (tmp_path / "records.jsonl").write_text(json.dumps({"url": "b", "owner_url": "a", "outcome": "dropped"}) + "\n")
    (tmp_path / "feed.jsonl").write_text('{"url": "c"}\n{"url": "d"}\n{"url": "to')
    outcome = type("Left", (), {"folder": tmp_path})()
    seen = witness({"a": 1, "b": 1, "c": 2, "d": 2, "e": 3}, outcome)
    assert (seen.lost, seen.twice, seen.missing, seen.self_drops) == ({1}, 1, 1, 0)


def test_an_item_that_was_dropped_for_one_that_a_crash_took_is_requested_once_more(site, tmp_path):
    told = json.dumps([{"title": "A", "text": " ".join(story(1))}])
    answer = Answer(told, headers={"Content-Type": "application/json"})
    a, b = (site.add(f"/api/{name}", answer, host=host) for host, name in enumerate("ab"))
    steps = [{"url": url, "callback": "parse_api"} for url in (a, b)]
    fields = {"DEDUP_ITEM_FIELDS": ["text"], "DEDUP_SEAL_INTERVAL": 1000}
    crashed = killed(tmp_path, site, steps, **fields)
    assert len(crashed.dropped) == 1
    assert crashed.lines("feed.jsonl") == []
    outcome = again(tmp_path, [], **fields)
    assert outcome.stats["dedup/journal/requested_again"] == 1
    assert len(outcome.lines("feed.jsonl")) == 1
    third = again(tmp_path, [], **fields)
    assert "dedup/journal/requested_again" not in third.stats
    assert len(third.lines("feed.jsonl")) == 1


def api(site, name, text, *, host=0):
    """Put an item with this *text* on the site, as JSON; an answer for each visit if there are several."""
    texts = [text] if isinstance(text, str) else text
    answers = [
        Answer(json.dumps([{"title": name, "text": told}]), headers={"Content-Type": "application/json"})
        for told in texts
    ]
    return site.add(f"/api/{name}", *answers, host=host)


def test_an_item_that_its_page_does_not_have_any_more_is_requested_once(site, tmp_path):
    told, other = (" ".join(story(number)) for number in (1, 2))
    a, b = api(site, "a", told), api(site, "b", [told, other], host=1)
    steps = [{"url": url, "callback": "parse_api"} for url in (a, b)]
    fields = {"DEDUP_ITEM_FIELDS": ["text"], "DEDUP_SEAL_INTERVAL": 1000}
    assert len(killed(tmp_path, site, steps, **fields).dropped) == 1
    outcome = again(tmp_path, [], **fields)
    assert outcome.stats["dedup/journal/requested_again"] == 1
    assert [item["title"] for item in outcome.lines("feed.jsonl")] == ["b"]
    assert "dedup/journal/requested_again" not in again(tmp_path, [], **fields).stats


def test_a_page_that_has_moved_since_is_requested_once(site, tmp_path):
    a, _ = pair(site, 1)
    moved = site.add("/moved", article("moved", story(1)), host=2)
    b = site.add("/b-moves", Answer(blog("b", story(1))), Answer("", status=301, headers={"Location": moved}), host=1)
    assert [i["url"] for i in killed(tmp_path, site, [{"url": a}, {"url": b}]).dropped] == [b]
    outcome = again(tmp_path, [])
    assert outcome.stats["dedup/journal/requested_again"] == 1
    assert fed(outcome) == [moved]
    assert "dedup/journal/requested_again" not in again(tmp_path, []).stats


@pytest.mark.parametrize(
    ("step", "requests"),
    [
        ({"cb_kwargs": {"fate": "fail"}}, 1),
        ({"callback": "generator_raises_last"}, 1),
        ({"cb_kwargs": {"fate": "drop"}}, 0),
    ],
    ids=["pipeline fails", "callback raises", "project drops"],
)
def test_a_page_that_fails_when_it_is_requested_again_is_requested_once_more(site, tmp_path, step, requests):
    a, b = pair(site, 1)
    assert [i["url"] for i in killed(tmp_path, site, [{"url": a}, {"url": b, **step}]).dropped] == [b]
    assert again(tmp_path, [], **FATES).stats["dedup/journal/requested_again"] == 1
    third = again(tmp_path, [])
    assert third.stats.get("dedup/journal/requested_again", 0) == requests
    assert fed(third)[-1:] == [b] * requests


def test_a_page_that_has_moved_to_a_duplicate_is_requested_once(site, tmp_path):
    a, _ = pair(site, 1)
    moved = site.add("/moved", article("moved", story(1)), host=2)
    b = site.add("/b-moves", Answer(blog("b", story(1))), Answer("", status=301, headers={"Location": moved}), host=1)
    assert [i["url"] for i in killed(tmp_path, site, [{"url": a}, {"url": b}]).dropped] == [b]
    outcome = again(tmp_path, [{"url": a, "priority": 10}], CONCURRENT_REQUESTS=1)
    assert (fed(outcome), outcome.record(moved)["outcome"]) == ([a], "dropped")
    assert "dedup/journal/requested_again" not in again(tmp_path, []).stats


def test_a_feed_that_will_be_overwritten_is_named_without_its_password(site, crawl):
    url = site.add("/a", article("a", story(1)))
    feeds = {"late://user:secret@works": {"format": "jsonlines", "overwrite": True}}
    settings = {"FEED_STORAGES": {"late": "strangers.LateStorage"}, "FEEDS": feeds}
    for _ in range(2):
        outcome = crawl("strangers.Steps", steps=[{"url": url}], settings=settings, folder="late", afresh=True)
    (line,) = [line for line in outcome.log.splitlines() if "will be overwritten" in line]
    assert "late://works" in line
    assert "secret" not in line
