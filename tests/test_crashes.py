"""A crash costs nobody a story: what a feed's buffer takes with it is delivered by another page, or once more."""

from __future__ import annotations

import json
import random

import pytest
from benchmarks.crashes import StorySite, run_with_fault, settings_of, witness
from crawling import Running, run_job, run_scrapy, write_job
from fault_injection import EDGES, EXIT_STATUS, ROUND, STORE_CALLS
from local_site import Answer, wait_until
from prose import article, blog, story
from test_claims_in_crawls import FATES, pair

from dedup_middleware.index.packing import purpose

FEED = {"FEEDS": {"feed.jsonl": {"format": "jsonlines"}}}
HOLDING = {**FATES, **FEED, "HOLD_UNTIL": {"never": 1}, "CONCURRENT_REQUESTS": 1}


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


@pytest.mark.parametrize("settings", [{}, {"JOBDIR": "job"}], ids=["afresh", "jobdir"])
def test_what_an_earlier_crawl_has_stored_this_one_has_not(site, tmp_path, settings):
    """Where only pages of this crawl may drop others, an owner is sealed for the crawl that sealed it."""
    a, b = pair(site, 1)
    earlier = again(tmp_path, [{"url": a}], FEEDS={"earlier.jsonl": FEED["FEEDS"]["feed.jsonl"]})
    assert fed(earlier, "earlier.jsonl") == [a]
    scope = {"DEDUP_SCOPE": "crawl", **settings}
    crashed = killed(tmp_path, site, [{"url": a}, {"url": b}], **scope)
    assert [i["url"] for i in crashed.dropped] == [b]
    assert fed(crashed) == []
    assert fed(again(tmp_path, [], **scope)) == [b]


def test_what_an_earlier_crawl_has_stored_a_crash_of_this_one_does_not_take(site, tmp_path):
    a, b = pair(site, 1)
    again(tmp_path, [{"url": a}])
    killed(tmp_path, site, [{"url": a}, {"url": b}])
    outcome = again(tmp_path, [{"url": b}])
    assert fed(outcome) == [a]
    assert "dedup/journal/requested_again" not in outcome.stats


def test_what_only_this_crawl_has_given_to_a_feed_a_crash_takes_from_it(site, tmp_path):
    """The owner was stored by an earlier crawl, which had no feed that takes such items."""
    a, b = pair(site, 1)
    stories = {"stories.jsonl": {"format": "jsonlines", "item_classes": ["sample_spiders.DataItem"]}}
    steps = [{"url": url, "cb_kwargs": {"kind": "dataclass"}} for url in (a, b)]
    again(tmp_path, steps[:1])
    crashed = killed(tmp_path, site, steps, FEEDS={**FEED["FEEDS"], **stories})
    assert [i["url"] for i in crashed.dropped] == [b]
    outcome = again(tmp_path, [], FEEDS=stories)
    assert fed(outcome, "stories.jsonl") == [b]


def test_a_page_that_was_sealed_before_the_crash_still_owns_its_story(site, tmp_path):
    a, b = pair(site, 1)
    steps = [{"url": a}, {"url": site.add("/last", article("Last", story(500))), "cb_kwargs": {"fate": "hold"}}]
    # The second wait of a round is for the store.
    fault = {"at": ["dedup_middleware.delivery.disk_waits:Waits._over"], "nth": 2, "moment": "after", "kind": "exit"}
    extra = {"EXTENSIONS": {"fault_injection.FaultInjection": 0}, "FAULTS": fault, "DEDUP_SEAL_INTERVAL": 1}
    crashed = run_job(tmp_path, write_job(tmp_path, "sample_spiders.Steps", steps=steps, settings=HOLDING | extra))
    assert crashed.exit_status == EXIT_STATUS
    assert fed(crashed) == [a]
    outcome = again(tmp_path, [{"url": b}])
    assert fed(outcome) == [a]
    assert "dedup/journal/requested_again" not in outcome.stats
    assert [i["url"] for i in outcome.dropped] == [b]


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
    outcome = crawl("sample_spiders.Steps", steps=steps, settings={**FEED, "DEDUP_SEAL_INTERVAL": 4})
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
    outcome = crawl("sample_spiders.Steps", steps=steps, settings=settings, folder="full")
    (first, copy), (second, _), (third, last) = pairs
    assert outcome.delivered == [first, second, pairs[1][1], third, last]
    assert [i["url"] for i in outcome.dropped] == [copy]
    assert outcome.verdicts[last] == ("duplicate", "delivered")
    assert any("the feed /dev/full cannot be written" in p and "nothing is dropped" in p for p in outcome.problems)

    better = crawl("sample_spiders.Steps", steps=[], settings=FEED, folder="full", afresh=True)
    assert fed(better) == [copy]


def test_a_feed_that_fails_at_its_end_is_told_and_its_pages_are_requested_again(site, crawl):
    a, b = pair(site, 1)
    storages = {"FEED_STORAGES": {"late": "sample_spiders.LateStorage"}}
    settings = {**storages, "FEEDS": {"late://user:secret@fails": {"format": "jsonlines"}}}
    outcome = crawl("sample_spiders.Steps", steps=[{"url": a}, {"url": b}], settings=settings, folder="late")
    assert [i["url"] for i in outcome.dropped] == [b]
    (line,) = [p for p in outcome.problems if "dedup" in p]
    assert "the feed late://fails could not be stored" in line
    assert "secret" not in line
    better = crawl("sample_spiders.Steps", steps=[], settings=FEED, folder="late", afresh=True)
    assert fed(better) == [b]


def test_an_item_that_is_a_batch_of_its_own_is_not_safe_before_that_is_stored(site, crawl):
    a, b = pair(site, 1)
    feeds = {"late://fails/%(batch_id)d": {"format": "jsonlines", "batch_item_count": 1}}
    settings = {"FEED_STORAGES": {"late": "sample_spiders.LateStorage"}, "FEEDS": feeds, "DEDUP_SEAL_INTERVAL": 1}
    failed = crawl("sample_spiders.Steps", steps=[{"url": a}], settings=settings, folder="late")
    assert failed.stats["dedup/failures"] == 1
    better = crawl("sample_spiders.Steps", steps=[{"url": b}], settings=FEED, folder="late", afresh=True)
    assert fed(better) == [b]


def test_a_feed_that_is_stored_at_its_end_seals_then(site, crawl):
    a, b = pair(site, 1)
    c = site.add("/c", blog("c", story(1)), host=2)
    storages = {"FEED_STORAGES": {"late": "sample_spiders.LateStorage"}}
    settings = {**storages, "FEEDS": {"late://works": {"format": "jsonlines"}}, "DEDUP_SEAL_INTERVAL": 1}
    outcome = crawl("sample_spiders.Steps", steps=[{"url": a}, {"url": b}], settings=settings, folder="late")
    assert [i["url"] for i in outcome.dropped] == [b]
    assert outcome.problems == []
    better = crawl("sample_spiders.Steps", steps=[{"url": c}], settings=settings, folder="late", afresh=True)
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
    # How many rounds there are is the disk's business, beyond the first.
    nth = 1 if edge in ROUND else random.Random(edge + moment).randint(1, 12)
    fault = {"at": EDGES[edge], "nth": nth, "moment": moment, "kind": "exit"}
    status, seen = run_with_fault(told, settings_of(jobdir=True, interval=5), fault)
    assert status == EXIT_STATUS
    assert (seen.lost, seen.self_drops) == (set(), 0)


@pytest.mark.parametrize("nth", [3, 10, 40, 90, 150])
def test_a_call_of_the_store_that_fails_ends_no_crawl_and_loses_no_story(told, nth):
    fault = {"at": STORE_CALLS, "nth": nth, "kind": "fail"}
    status, seen = run_with_fault(told, settings_of(jobdir=False, interval=5), fault)
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
    settings = {"FEED_STORAGES": {"late": "sample_spiders.LateStorage"}, "FEEDS": feeds}
    for _ in range(2):
        outcome = crawl("sample_spiders.Steps", steps=[{"url": url}], settings=settings, folder="late", afresh=True)
    (line,) = [line for line in outcome.log.splitlines() if "will be overwritten" in line]
    assert "late://works" in line
    assert "secret" not in line


# --- whose a page in the journal is


def test_two_callbacks_on_one_page_are_both_requested_again(site, tmp_path):
    a, b = pair(site, 1)
    steps = [{"url": a}, {"url": b}, {"url": b, "callback": "parse_other"}]
    assert [i["url"] for i in killed(tmp_path, site, steps, JOBDIR="job").dropped] == [b, b]
    outcome = again(tmp_path, [], JOBDIR="job")
    assert sorted(item.get("other", False) for item in outcome.lines("feed.jsonl")) == [False, True]
    assert "dedup/journal/requested_again" not in again(tmp_path, [], JOBDIR="job").stats


def test_another_crawl_does_not_deliver_what_a_crawl_for_itself_is_to_deliver(site, tmp_path):
    """Where only pages of this crawl may drop others, its own feed is to have the story."""
    a, b = pair(site, 1)
    scope = {"DEDUP_SCOPE": "crawl"}
    assert [i["url"] for i in killed(tmp_path, site, [{"url": a}, {"url": b}], JOBDIR="one", **scope).dropped] == [b]
    other = again(tmp_path, [{"url": b}], JOBDIR="other", FEEDS={"other.jsonl": {"format": "jsonlines"}}, **scope)
    assert fed(other, "other.jsonl") == [b]
    assert "dedup/journal/requested_again" not in other.stats
    assert fed(again(tmp_path, [], JOBDIR="one", **scope)) == [b]
    assert "dedup/journal/requested_again" not in again(tmp_path, [], JOBDIR="one", **scope).stats


def test_items_of_one_page_are_requested_again_together(site, tmp_path):
    told = json.dumps([{"title": str(number), "text": " ".join(story(number))} for number in (1, 2, 3)])
    answer = Answer(told, headers={"Content-Type": "application/json"})
    a, b = (site.add(f"/api/{name}", answer, host=host) for host, name in enumerate("ab"))
    steps = [{"url": url, "callback": "parse_then_forget", "cb_kwargs": {"kind": "dict"}} for url in (a, b)]
    fields = {"DEDUP_ITEM_FIELDS": ["text"], "DEDUP_SEAL_INTERVAL": 1000}
    assert len(killed(tmp_path, site, steps, **fields).dropped) == 3
    outcome = again(tmp_path, [], **fields)
    assert outcome.stats["dedup/journal/requested_again"] == 1
    # What fitted into no buffer was on its medium before.
    assert [item["title"] for item in outcome.lines("feed.jsonl")][-3:] == ["1", "2", "3"]
    assert "dedup/journal/requested_again" not in again(tmp_path, [], **fields).stats


def test_a_page_that_cannot_be_judged_and_fails_when_it_is_requested_again_stays_journalled(site, tmp_path):
    a, _ = pair(site, 1)
    short = Answer(article("short", ["Gone."]))
    b = site.add("/b-shrinks", Answer(blog("b", story(1))), short, host=1)
    steps = [{"url": a}, {"url": b, "cb_kwargs": {"fate": "fail"}}]
    assert [i["url"] for i in killed(tmp_path, site, steps).dropped] == [b]
    assert again(tmp_path, [], **FATES).verdicts[b] == ("unjudged", "delivered")
    third = again(tmp_path, [])
    assert third.stats["dedup/journal/requested_again"] == 1
    assert fed(third)[-1:] == [b]


@pytest.mark.parametrize("scopes", [("crawl", "store"), ("store", "crawl")])
def test_a_crawl_that_is_taken_up_under_another_scope_is_the_same_one(site, tmp_path, scopes):
    a, b = pair(site, 1)
    before, after = scopes
    assert len(killed(tmp_path, site, [{"url": a}, {"url": b}], JOBDIR="job", DEDUP_SCOPE=before).dropped) == 1
    assert fed(again(tmp_path, [], JOBDIR="job", DEDUP_SCOPE=after)) == [b]


def test_of_two_callbacks_the_one_that_fails_stays_journalled(site, tmp_path):
    a, b = pair(site, 1)
    steps = [{"url": a}, {"url": b}, {"url": b, "callback": "parse_other", "cb_kwargs": {"fate": "fail"}}]
    assert len(killed(tmp_path, site, steps).dropped) == 2
    assert again(tmp_path, [], **FATES).stats["dedup/journal/requested_again"] == 2
    third = again(tmp_path, [])
    assert third.stats["dedup/journal/requested_again"] == 1
    assert third.lines("feed.jsonl")[-1]["other"] is True


def test_a_visit_for_its_links_only_does_not_deliver_a_page(site, tmp_path):
    a, b = pair(site, 1)
    assert len(killed(tmp_path, site, [{"url": a}, {"url": b, "cb_kwargs": {"fate": "fail"}}]).dropped) == 1
    assert fed(again(tmp_path, [{"url": b, "callback": "parse_links"}], **FATES)) == []
    assert fed(again(tmp_path, [{"url": b, "callback": "parse_links"}])) == [b]


def test_a_page_that_asks_for_patience_stays_journalled(site, tmp_path):
    a, _ = pair(site, 1)
    wait = Answer(article("Too many requests", ["Please slow down."]))
    told = Answer(blog("b", story(1)))
    b = site.add("/b", told, wait, wait, told, host=1)
    assert len(killed(tmp_path, site, [{"url": a}, {"url": b, "callback": "parse_or_wait"}]).dropped) == 1
    second = again(tmp_path, [])
    assert (second.stats["dedup/journal/requested_again"], fed(second)) == (1, [])
    assert fed(again(tmp_path, [])) == [b]


# --- the spider comes first


def test_what_the_spider_asks_for_itself_is_not_asked_for_in_its_place(site, tmp_path):
    """With what it needs today: a token, other arguments. Scrapy asks for a page only once."""
    a, b = pair(site, 1)
    step = {"url": b, "headers": {"X-Token": "yesterday"}, "dont_filter": False}
    assert len(killed(tmp_path, site, [{"url": a}, step]).dropped) == 1
    today = {**step, "headers": {"X-Token": "today"}}
    outcome = again(tmp_path, [today])
    assert fed(outcome) == [b]
    assert site.asked_with("X-Token", "/1/b") == ["yesterday", "today"]
    assert "dedup/journal/requested_again" not in outcome.stats
    assert "dedup/journal/requested_again" not in again(tmp_path, []).stats


def test_what_a_crash_left_is_asked_for_when_the_spider_has_nothing_else_to_do(site, tmp_path):
    """It may have to log in first."""
    a, b = pair(site, 1)
    assert len(killed(tmp_path, site, [{"url": a}, {"url": b}]).dropped) == 1
    others = [site.add(f"/other/{n}", article("Other", story(10 + n))) for n in range(3)]
    (tmp_path / "held").unlink()
    steps = [{"url": url, "priority": -1} for url in others]
    outcome = run_job(tmp_path, write_job(tmp_path, "sample_spiders.Steps", steps=steps, together=True, settings=FEED))
    assert fed(outcome)[-1] == b


@pytest.mark.parametrize(
    ("name", "headers"), [("Cookie", {}), ("Authorization", {"Authorization": "Basic Zm9vOmJhcg=="})]
)
def test_a_redirected_page_is_asked_for_again_with_what_its_redirect_took(site, tmp_path, name, headers):
    a = site.add("/a", article("a", story(1)))
    end = site.add("/end", blog("b", story(1)), host=1)
    b = site.add("/b", Answer("", status=301, headers={"Location": end}))
    cookies = {} if headers else {"consent": "yes"}
    step = {"url": b, "headers": headers, "cookies": cookies}
    assert len(killed(tmp_path, site, [{"url": a}, step], JOBDIR="job").dropped) == 1
    assert fed(again(tmp_path, [], JOBDIR="job")) == [end]
    first, second = site.asked_with(name, "/b")
    assert first == second
    assert first is not None


def test_what_is_restored_is_delivered_though_it_is_in_the_journal_too(site, tmp_path):
    pairs = [pair(site, number) for number in range(4)]
    assert len(killed(tmp_path, site, [{"url": url} for urls in pairs for url in urls]).dropped) == 4
    assert "4 dropped pages to be requested again" in run_scrapy(tmp_path, "dedup", "stats").stdout
    assert run_scrapy(tmp_path, "dedup", "restore", "--all").returncode == 0
    outcome = again(tmp_path, [{"url": a} for a, _ in pairs])
    assert {b for _, b in pairs} <= set(fed(outcome))


def test_what_cannot_be_asked_for_any_more_is_told(site, tmp_path):
    a, b = pair(site, 1)
    command = {"steps": [{"url": a}, {"url": b, "callback": "parse_other"}]}
    assert len(killed(tmp_path, site, **command).dropped) == 1
    (tmp_path / "held").unlink()
    outcome = run_job(tmp_path, write_job(tmp_path, "sample_spiders.StepsWithoutOther", settings=FEED))
    assert outcome.stats["dedup/journal/unreadable"] == 1
    assert [p for p in outcome.problems if "1 dropped pages cannot be requested again" in p]
    assert fed(again(tmp_path, [])) == [b]


def test_after_a_crash_nobody_is_told_to_remove_the_journal(site, tmp_path):
    a, b = pair(site, 1)
    feed = {"FEEDS": {"new.jsonl": {"format": "jsonlines", "overwrite": True}}}
    assert len(killed(tmp_path, site, [{"url": a}, {"url": b}]).dropped) == 1
    again(tmp_path, [], **feed)
    lines = [line for line in again(tmp_path, [], **feed).log.splitlines() if "will be overwritten" in line]
    assert ["scrapy dedup reset" in line for line in lines] == [False, True]


@pytest.mark.parametrize("restored", [False, True])
def test_a_page_whose_output_a_middleware_cuts_off_stays_journalled(site, tmp_path, restored):
    a, b = pair(site, 1)
    if restored:
        again(tmp_path, [{"url": a}, {"url": b}])
        assert run_scrapy(tmp_path, "dedup", "restore", "--all").returncode == 0
    else:
        assert len(killed(tmp_path, site, [{"url": a}, {"url": b}]).dropped) == 1
    cut = again(tmp_path, [], SPIDER_MIDDLEWARES={"sample_spiders.RaisingMiddleware": 500})
    assert cut.stats["dedup/journal/requested_again"] == 1
    assert fed(again(tmp_path, []))[-1] == b


def test_the_purpose_of_a_request_is_the_same_in_every_process():
    """Whatever the order and identity of what it holds, and however it was made this time."""
    text = str(b"ab", "ascii")  # another object
    one = {"callback": "parse", "cb_kwargs": {"x": text, "y": {"s", "t"}}, "meta": {"own": "ab", "retry_times": 1}}
    two = {"callback": "parse", "cb_kwargs": {"y": {"t", "s"}, "x": "ab"}, "meta": {"proxy": "http://p", "own": text}}
    assert purpose(one) == purpose(two) != purpose({**one, "callback": "other"})
    assert purpose(one) == b"['parse',{'x':'ab','y':('s','t')},{'own':'ab'}]"
    values = (1, "1", b"1", 1.5, None, True, [1], {1}, {1: 1})
    assert len({purpose({**one, "cb_kwargs": {"x": value}}) for value in values}) == len(values)


@pytest.mark.parametrize("end", ["killed", "feed fails"])
def test_what_only_a_lost_delivery_said_has_not_been_delivered(site, tmp_path, end):
    a = site.add("/a", article("a", story(1)))
    copy = site.add("/copy", article("copy", story(1)), host=1)
    again(tmp_path, [{"url": a}])  # without the text, and safe
    told = {"url": a, "callback": "parse_text"}
    if end == "killed":
        killed(tmp_path, site, [told])
    else:
        late = {"late://fails/x.jsonl": {"format": "jsonlines"}}
        again(tmp_path, [told], FEED_STORAGES={"late": "sample_spiders.LateStorage"}, FEEDS=late)
    outcome = again(tmp_path, [{"url": copy, "callback": "parse_text"}])
    assert [item["url"] for item in outcome.lines("feed.jsonl") if "text" in item] == [copy]
