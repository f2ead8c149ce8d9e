"""Nothing is lost with its original: whatever becomes of the first copy, one copy is kept."""

from __future__ import annotations

import threading

import pytest
from crawling import Running, run_job, write_job
from local_site import Answer, wait_until
from prose import article, blog, story

FATES = {"EXTRA_PIPELINES": {"sample_spiders.FatePipeline": 100}}
FAILING = [
    "plain_raises",
    "coroutine_raises",
    "generator_raises_first",
    "async_generator_raises_first",
    "generator_raises_last",
    "async_generator_raises_last",
]
RAISES_LAST = [name for name in FAILING if name.endswith("last")]


def pair(site, number, first="a", second="b"):
    """Serve story *number* twice and return both URLs."""
    text = story(number)
    return (
        site.add(f"/{number}/{first}", article(first, text)),
        site.add(f"/{number}/{second}", blog(second, text), host=1),
    )


def test_a_page_whose_callback_raises_owns_nothing(site, crawl):
    pairs = {name: pair(site, number) for number, name in enumerate(FAILING)}
    steps = [step for name, (a, b) in pairs.items() for step in ({"url": a, "callback": name}, {"url": b})]
    outcome = crawl("sample_spiders.Steps", steps=steps)
    expected = [(a, b) if name in RAISES_LAST else (b,) for name, (a, b) in pairs.items()]
    assert outcome.kept == [url for urls in expected for url in urls]
    assert outcome.dropped == []
    assert len(outcome.problems) == len(FAILING)
    assert all("Spider error processing" in line for line in outcome.problems)
    assert outcome.stats["spider_exceptions/Mishap"] == len(FAILING)
    assert outcome.stats["dedup/claims/void"] == len(FAILING)
    assert outcome.stats["dedup/pages"] == 2 * len(FAILING)


def test_a_duplicate_whose_callback_raises_stays_a_duplicate(site, crawl):
    pairs = {name: pair(site, number) for number, name in enumerate(FAILING)}
    steps = [step for name, (a, b) in pairs.items() for step in ({"url": a}, {"url": b, "callback": name})]
    outcome = crawl("sample_spiders.Steps", steps=steps)
    assert outcome.kept == [a for a, _ in pairs.values()]
    assert [i["url"] for i in outcome.dropped] == [pairs[name][1] for name in RAISES_LAST]
    assert {url: verdict for url, (verdict, _) in outcome.verdicts.items()} == dict.fromkeys(
        [b for _, b in pairs.values()], "duplicate"
    )


@pytest.mark.parametrize("fate", ["drop", "fail"])
def test_an_item_that_its_pipelines_lose_owns_nothing(site, crawl, fate):
    a, b = pair(site, 1)
    c = site.add("/1/c", article("c", story(1)))
    steps = [{"url": a, "cb_kwargs": {"fate": fate}}, {"url": b}, {"url": c}]
    outcome = crawl("sample_spiders.Steps", steps=steps, settings=FATES)
    assert outcome.kept == [b]
    assert outcome.record(c)["original_url"] == b
    assert outcome.dropped[-1]["url"] == c


def test_an_item_that_a_pipeline_replaces_is_safe(site, crawl):
    a, b = pair(site, 1)
    steps = [{"url": a, "cb_kwargs": {"fate": "replace"}}, {"url": b}]
    outcome = crawl("sample_spiders.Steps", steps=steps, settings=FATES)
    (item,) = outcome.items
    assert (item["url"], item["replaced"]) == (a, True)
    assert outcome.record(b)["original_url"] == a
    assert outcome.problems == []


@pytest.mark.parametrize("end", ["", "drop", "fail"])
def test_twins_in_flight_wait_for_the_first(site, crawl, end):
    """The first copy is held in a slow pipeline until the two others wait for it; then it ends well or badly."""
    a, b = pair(site, 1)
    c = site.add("/1/c", article("c", story(1)))
    steps = [{"url": url, "cb_kwargs": {"fate": f"hold {end}"}, "priority": -n} for n, url in enumerate((a, b, c))]
    settings = {
        **FATES,
        "HOLD_UNTIL": {"dedup/waits": 2},
        "CONSTANTS": {"dedup_middleware.plugin.threads:MAX_WAIT": 20},
    }
    outcome = crawl("sample_spiders.Steps", steps=steps, together=True, settings=settings)
    lost = {i["url"] for i in outcome.dropped if i["type"] != "DuplicateItem"}
    if end:
        # Every copy that takes over meets the same end: each was given its chance, so none was lost to a verdict.
        assert outcome.kept == []
        assert [r for r in outcome.records if r["verdict"] == "duplicate"] == []
        assert lost == ({a, b, c} if end == "drop" else set())
    else:
        (original,) = outcome.kept
        assert {r["url"]: r["original_url"] for r in outcome.records} == dict.fromkeys({a, b, c} - {original}, original)
        assert outcome.stats["dedup/items/dropped"] == 2
        assert outcome.problems == []
    assert "dedup/waits/given_up" not in outcome.stats


def test_an_original_whose_pipeline_raises_late_costs_no_copy_its_item(site, tmp_path):
    """A copy waits for it, and takes over; the other is dropped in favour of that copy."""
    is_held = threading.Event()
    a = site.add("/a", article("a", story(1)))
    copies = [site.add(f"/{n}", Answer(blog(f"{n}", story(1)), hold=is_held), host=n) for n in (1, 2)]
    steps = [{"url": a, "cb_kwargs": {"fate": "hold fail"}}, *({"url": url} for url in copies)]
    settings = {
        **FATES,
        "FEEDS": {"feed.jsonl": {"format": "jsonlines"}},
        "CONSTANTS": {"dedup_middleware.plugin.threads:MAX_WAIT": 20},
    }
    settings["HOLD_UNTIL"] = {"dedup/waits": 2}
    command = write_job(tmp_path, "sample_spiders.Steps", steps=steps, together=True, settings=settings)
    with Running(tmp_path, command) as running:
        wait_until((tmp_path / "held").exists)
        is_held.set()
        outcome = running.wait()
    (original,) = outcome.kept
    assert original in copies
    assert [item["url"] for item in outcome.lines("feed.jsonl")] == [original]
    assert {item["url"] for item in outcome.dropped} == {*copies} - {original}
    assert outcome.stats["dedup/claims/void"] == 1
    assert "dedup/waits/given_up" not in outcome.stats


def test_a_twin_takes_over_when_the_callback_it_waits_for_raises(site, crawl):
    """Whichever comes first: its item is out, its callback still runs, and raises while the others wait for it."""
    urls = [site.add(f"/{n}", article("Twin", story(1))) for n in range(3)]
    steps = [{"url": url, "callback": "raises_when_held", "priority": -n} for n, url in enumerate(urls)]
    settings = {
        "HOLD_UNTIL": {"dedup/waits": 2},
        "CONSTANTS": {"dedup_middleware.plugin.threads:MAX_WAIT": 20},
    }
    outcome = crawl("sample_spiders.Steps", steps=steps, together=True, settings=settings)
    assert sorted(outcome.kept) == urls
    assert outcome.dropped == []
    assert outcome.stats["dedup/claims/void"] == 3
    assert "dedup/waits/given_up" not in outcome.stats


def test_a_twin_does_not_wait_longer_than_dedup_wait(site, crawl):
    a, b = pair(site, 1)
    steps = [{"url": a, "cb_kwargs": {"fate": "hold"}}, {"url": b, "priority": -1}]
    settings = {
        **FATES,
        "HOLD_UNTIL": {"dedup/waits/given_up": 1},
        "CONSTANTS": {"dedup_middleware.plugin.threads:MAX_WAIT": 0.2},
        "CONCURRENT_REQUESTS": 1,
    }
    outcome = crawl("sample_spiders.Steps", steps=steps, together=True, settings=settings)
    assert sorted(outcome.kept) == [a, b]
    record = outcome.record(b)
    assert (record["verdict"], record["outcome"], record["original_url"]) == ("related", "kept", a)
    assert record["reason"] == "the original's claim was still open"
    assert outcome.problems == []


def test_a_crash_voids_the_claims_that_are_open(site, tmp_path):
    (a, b), (c, d) = pair(site, 1), pair(site, 2)
    settings = {**FATES, "HOLD_UNTIL": {"never": 1}}
    steps = [{"url": a}, {"url": c, "cb_kwargs": {"fate": "hold"}}]
    with Running(tmp_path, write_job(tmp_path, "sample_spiders.Steps", steps=steps, settings=settings)) as running:
        wait_until((tmp_path / "held").exists)
        crashed = running.kill()
    assert crashed.kept == [a]
    steps = [{"url": url} for url in (b, d, c)]
    outcome = run_job(tmp_path, write_job(tmp_path, "sample_spiders.Steps", steps=steps, afresh=True))
    assert outcome.kept == [d]
    assert {r["url"]: r["original_url"] for r in outcome.records} == {b: a, c: d}
    assert outcome.problems == []


MANY = {
    "CONCURRENT_REQUESTS": 400,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 400,
    "LOG_LEVEL": "INFO",
    "CONSTANTS": {"dedup_middleware.plugin.threads:MAX_WAIT": 30},
    **FATES,
}


@pytest.mark.parametrize("end", ["fail-once", "fail"])
def test_two_hundred_twins_in_flight_end_well(site, crawl, end):
    """All wait for the first one, which fails, then for the next one; where all fail, none is dropped."""
    page = article("twin", story(1, paragraphs=3))
    number = 50 if end == "fail" else 200
    urls = [site.add(f"/{n}", page, host=n % 3) for n in range(number)]
    steps = [{"url": url, "cb_kwargs": {"fate": f"hold {end}"}} for url in urls]
    settings = {**MANY, "HOLD_UNTIL": {"dedup/waits": number - 1}}
    outcome = crawl("sample_spiders.Steps", steps=steps, together=True, settings=settings)
    if end == "fail":
        assert outcome.kept == outcome.dropped == []
        assert len(outcome.problems) == number
        return
    (original,) = outcome.kept
    assert {r["original_url"] for r in outcome.records} == {original}
    assert outcome.stats["dedup/items/dropped"] == len(outcome.dropped) == number - 2
    assert "dedup/waits/given_up" not in outcome.stats
    (error, *warnings) = outcome.problems
    assert "Error processing" in error
    assert all(f"repeat {original}" in warning for warning in warnings)
    assert len(warnings) == outcome.stats["dedup/hosts_with_one_original"] == 3
