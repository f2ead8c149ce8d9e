"""A key names a thing: an item is judged by it, wherever it came from."""

from __future__ import annotations

import contextlib
import json
import math
import threading
from collections import Counter
from decimal import Decimal

import pytest
from crawling import Running, write_job
from fault_injection import faults
from keyed_shop import VARIANTS, serve
from local_site import Answer
from prose import article, blog, story
from test_commands import run_here
from test_crashes import FEED

from dedup_middleware import Deduplicator
from dedup_middleware.errors import ConfigError
from dedup_middleware.items.keys import ItemKeys
from dedup_middleware.records.counts import MIN_PAGES, summary
from dedup_middleware.report.tallies import Crawls
from dedup_middleware.settings import SETTINGS

KEY = {"DEDUP_KEY": ["id"]}
ROWS, OTHER = "sample_spiders_keys.Rows", "sample_spiders_keys.Other"
LAMP, KETTLE, BED = ({"id": n, "name": name} for n, name in enumerate(("Lamp", "Kettle", "Bed"), start=1))


def rows(site, path, *items, **more):
    """Serve *items* as rows of a JSON response at *path*, and return its URL."""
    body = json.dumps({"rows": items, **more})
    return site.add(path, Answer(body, headers={"Content-Type": "application/json"}))


def named(items):
    return sorted((item["id"], item["name"]) for item in items)


def verdicts(outcome):
    """Return the verdicts of the items, by key."""
    found = {}
    for record in outcome.all_records:
        if record.key:
            found.setdefault(record.key, []).append(record.verdict)
    return found


# --- the key of an item


def key(item, *fields, spider="spider"):
    return ItemKeys(spider, {"": fields}).of(item)


@pytest.mark.parametrize(
    "value",
    [None, "", " \n", [], {}, [""], [None, " "], set(), b"", math.nan, {"a": None}, object(), [object()]],
)
def test_an_empty_value_is_no_key(value):
    assert key({"id": value}, "id") is None
    assert key({"id": 1, "shop": value}, "id", "shop") is None
    assert key({"name": "Lamp"}, "id") is None


def test_values_of_other_types_are_other_keys_and_each_is_shown_otherwise():
    values = [
        1,
        "1",
        True,
        "true",
        1.0,
        0,
        False,
        "0",
        "1 ",
        [1],
        ["1"],
        "[1]",
        {"a": 1},
        Decimal(1),
        (1,),
        b"1",
        10**30,
    ]
    keys = [key({"id": value}, "id") for value in values]
    assert None not in keys
    assert len({each.identity for each in keys}) == len({each.text for each in keys}) == len(values)
    assert len({key({"id": 1}, "id", spider=spider).identity for spider in "ab"}) == 2
    assert key({"id": 1}, "id").identity != key({"no": 1}, "no").identity


def test_what_is_shown_leads_to_the_key():
    for value in (17, "17", "SKU-17", "two  spaces", ["a", 1], Decimal("1.5"), "ключ", "half \ud83d", "x" * 300):
        keys = ItemKeys("spider", {"": ("id",)})
        found = keys.of({"id": value})
        assert keys.shown(found.text) == found
    both = ItemKeys("spider", {"shop.Offer": ("sku", "seller"), "dict": ("id", "of")})
    found = both.of({"id": 1, "of": "acme"})
    assert found.text == '[1,"acme"]'
    assert both.shown(found.text) == found
    assert both.shown("shop.Offer [1,2]").paths == ("sku", "seller")


def test_a_key_may_be_nested_and_huge():
    item = {"offer": {"sku": "A" * 10**6}, "codes": ["x", "y"]}
    found = key(item, "offer.sku", "codes.1")
    assert len(found.text) <= 200
    other = {"offer": {"sku": "A" * 10**6}, "codes": ["x", "z"]}
    assert key(other, "offer.sku", "codes.1").text != found.text
    assert key(item, "offer.name") is key(item, "codes.2") is key(item, "offer.sku.0") is None
    loop: list[object] = []
    loop.append(loop)
    assert key({"id": loop}, "id") is None


def test_an_empty_list_is_named():
    with pytest.raises(ConfigError, match="the list of 'dict' is empty"):
        SETTINGS["DEDUP_KEY"].read({"dict": []})


# --- in crawls


def test_the_same_values_are_dropped_wherever_they_come_from(site, crawl):
    one = rows(site, "/one", LAMP, LAMP, KETTLE)
    two = rows(
        site, "/two", {**KETTLE, "fetched_at": "2026-11-28T15:00:00"}, {"id": 3, "name": "Lamp"}, {"name": "Lamp"}
    )
    outcome = crawl(ROWS, urls=f"{one},{two}", settings=KEY, folder="a")
    assert sorted(str(item.get("id")) for item in outcome.items) == ["1", "2", "3", "None"]
    assert named(outcome.dropped) == [(1, "Lamp"), (2, "Kettle")]
    lines = [line.partition("Dropped: ")[2].strip() for line in outcome.drop_lines]
    assert lines == [
        f"item 1 of {one} was kept before, from the same page",
        f"item 2 of {two} was kept before, from {one}",
    ]
    duplicates = [r for r in outcome.records if r["verdict"] == "duplicate"]
    assert [(r["key"], r["url"], r["original_url"]) for r in duplicates] == [("1", one, one), ("2", two, one)]
    assert outcome.problems == []
    again = crawl(ROWS, urls=f"{one},{two}", settings=KEY, folder="a", afresh=True)
    assert len(again.items) == 4
    assert {r["key"]: r["verdict"] for r in again.records if r["items_kept"] and r["key"]} == dict.fromkeys(
        "123", "unchanged"
    )
    assert len(again.dropped) == 2
    assert again.problems == []


def test_another_key_is_another_thing_whatever_the_text(site, crawl):
    pages = [site.add(f"/{n}", article("Lamp", story(1)), host=n) for n in range(3)]
    steps = [{"url": url, "callback": "parse_text"} for url in pages]
    without = crawl("sample_spiders.Steps", steps=steps)
    assert len(without.items) == 1
    outcome = crawl("sample_spiders.Steps", steps=steps, settings={"DEDUP_KEY": ["url"]})
    assert [item["url"] for item in outcome.items] == pages
    assert outcome.dropped == []


def test_other_values_are_kept_and_one_warning_names_the_key(site, crawl):
    red, blue = {**LAMP, "colour": "red"}, {**LAMP, "colour": "blue"}
    urls = [rows(site, f"/{n}", *items) for n, items in enumerate(([red, KETTLE], [blue], [red, blue], [blue, red]))]
    outcome = crawl(ROWS, urls=",".join(urls), settings=KEY, folder="a")
    assert Counter(item.get("colour") for item in outcome.items) == {"red": 1, "blue": 1, None: 1}
    assert len(outcome.dropped) == 4
    (warning,) = outcome.problems
    assert "the key 1 " in warning
    (changed,) = [r for r in outcome.records if r["verdict"] == "changed"]
    assert changed["changes"]["values"] == [("colour", "red", "blue")]
    # Of two values one is what the key has now; the other one is a change, each time.
    again = crawl(ROWS, urls=",".join(urls[::-1]), settings=KEY | {"DEDUP_UNCHANGED": "drop"}, folder="a", afresh=True)
    assert [item["colour"] for item in again.items] == ["red"]


@pytest.mark.parametrize(("unchanged", "kept"), [("keep", 2), ("drop", 0), ("tag", 2)])
def test_the_second_crawl_does_with_what_is_unchanged_what_is_set(site, crawl, unchanged, kept):
    url = rows(site, "/one", LAMP, KETTLE)
    settings = KEY | {"DEDUP_UNCHANGED": unchanged}
    crawl(ROWS, urls=url, settings=settings, folder="a")
    rows(site, "/one", LAMP, KETTLE, {"id": 3, "name": "Bed"})
    again = crawl(ROWS, urls=url, settings=settings, folder="a", afresh=True)
    assert len(again.items) == kept + 1
    assert [f"Dropped: item {n} of {url} is unchanged" in line for n, line in enumerate(again.drop_lines, 1)] == (
        [True] * (2 - kept)
    )
    tags = {item["id"]: item["dedup"]["verdict"] for item in again.items if "dedup" in item}
    assert tags == ({1: "unchanged", 2: "unchanged"} if unchanged == "tag" else {})
    assert len(again.dropped) == 2 - kept
    rows(site, "/one", {**LAMP, "name": "Lamp II"}, KETTLE)
    third = crawl(ROWS, urls=url, settings=settings, folder="a", afresh=True)
    (changed,) = [r for r in third.records if r["verdict"] == "changed"]
    assert (changed["key"], changed["changes"]["values"]) == ("1", [("name", "Lamp", "Lamp II")])
    assert {1} <= {item["id"] for item in third.items}
    assert third.problems == again.problems == []


def test_what_a_key_had_before_its_latest_crawl_is_a_change(site, crawl):
    dear = {**LAMP, "name": "Lamp II"}
    given = []
    for items in ([LAMP], [LAMP, dear], [LAMP], [dear], [dear], [LAMP]):
        settings = KEY | {"DEDUP_UNCHANGED": "drop"}
        outcome = crawl(ROWS, urls=rows(site, "/one", *items), settings=settings, folder="a", afresh=True)
        given.append([item["name"] for item in outcome.items])
    assert given == [["Lamp"], ["Lamp II"], [], ["Lamp II"], [], ["Lamp"]]
    assert [r["changes"]["values"] for r in outcome.records if r["key"]] == [[("name", "Lamp II", "Lamp")]]


def test_a_value_is_kept_for_a_feed_that_has_another_value_of_its_key(site, crawl):
    one, two = ({f"{name}.jsonl": {"format": "jsonlines"}} for name in ("one", "two"))
    one["one.jsonl"]["item_classes"] = ["builtins.dict"]
    dear = {**LAMP, "name": "Lamp II"}
    for feeds, items in ((one, [LAMP]), (two, [LAMP, dear]), (one, [dear])):
        settings = KEY | {"DEDUP_UNCHANGED": "drop", "FEEDS": feeds}
        outcome = crawl(ROWS, urls=rows(site, "/one", *items), settings=settings, folder="a", afresh=True)
    lines = (outcome.folder / "one.jsonl").read_text().splitlines()
    assert [json.loads(line)["name"] for line in lines] == ["Lamp", "Lamp II"]


@pytest.mark.parametrize("action", ["tag", "dry-run"])
def test_tags_and_dry_runs_show_what_a_drop_does(site, crawl, action):
    url = rows(site, "/one", LAMP, LAMP, KETTLE)
    settings = KEY | {"DEDUP_ACTION": action}
    outcome = crawl(ROWS, urls=url, settings=settings)
    assert len(outcome.items) == 3
    (duplicate,) = [r for r in outcome.records if r["verdict"] == "duplicate"]
    assert (duplicate["key"], duplicate["items_would_drop"], duplicate["items_kept"]) == ("1", 1, 1)
    if action == "tag":
        assert Counter(item["dedup"]["verdict"] for item in outcome.items) == {"new": 2, "duplicate": 1}
    assert outcome.problems == []


@pytest.mark.parametrize("fate", ["drop", "fail"])
def test_an_item_that_its_pipelines_lose_owns_no_key(site, crawl, fate):
    lost = rows(site, "/lost", {**LAMP, "fate": fate}, KETTLE)
    found = rows(site, "/found", {**LAMP, "fate": fate}, KETTLE)
    settings = KEY | {"EXTRA_PIPELINES": {"sample_spiders.FatePipeline": 100}}
    outcome = crawl(ROWS, urls=f"{lost},{found}", settings=settings)
    assert named(outcome.items) == [(2, "Kettle")]
    kinds = {r.key: r.verdict for r in outcome.all_records if r.url == found}
    assert kinds == {"1": "new", "2": "duplicate", "": "unchecked"}


def test_an_item_waits_for_its_original_and_is_kept_if_that_fails(site, crawl):
    """Also where all are in flight at once; then the first that is kept is the original of those that follow."""
    urls = [rows(site, f"/{n}", {**LAMP, "fate": "hold fail-once"}) for n in range(4)]
    settings = KEY | FEED | {"EXTRA_PIPELINES": {"sample_spiders.FatePipeline": 100}, "HOLD_UNTIL": {"dedup/waits": 3}}
    outcome = crawl(ROWS, urls=",".join(urls), together="yes", settings=settings)
    assert named(outcome.items) == [(1, "Lamp")]
    assert len(outcome.dropped) == 2
    assert outcome.stats["dedup/claims/void"] == 1
    assert outcome.stats["dedup/claims/confirmed"] == 1


def test_what_its_page_does_not_deliver_is_judged_all_the_same(site, crawl):
    """A page is fetched again after its callback has failed: what it gave before is in the feed."""
    page = rows(site, "/fails", LAMP, KETTLE, fails=True)
    again = rows(site, "/again", LAMP, KETTLE)
    outcome = crawl(ROWS, urls=f"{page}", settings=KEY, folder="a")
    assert len(outcome.items) == 2
    outcome = crawl(ROWS, urls=f"{page},{again}", together="yes", settings=KEY, folder="b")
    assert named(outcome.items) == [(1, "Lamp"), (2, "Kettle")]
    assert len(outcome.dropped) == 2


def test_a_request_that_wants_no_check_gets_none(site, crawl):
    url = rows(site, "/one", LAMP, LAMP)
    for wanted, kept in (
        ({"dedup": False}, 2),
        ({"dedup": {"keep": True}}, 2),
        ({"dedup": {"action": "tag"}}, 2),
        ({}, 1),
    ):
        outcome = crawl(ROWS, urls=url, settings=KEY, meta=wanted)
        assert len(outcome.items) == kept, wanted


def test_what_a_lost_feed_had_is_released_once(site, crawl):
    url = rows(site, "/one", LAMP, KETTLE)
    late = {"FEED_STORAGES": {"late": "sample_spiders.LateStorage"}, "CHECKPOINT_INTERVAL": 1}
    lost = crawl(
        ROWS, urls=url, settings=KEY | late | {"FEEDS": {"late://fails/feed": {"format": "jsonlines"}}}, folder="a"
    )
    assert len(lost.items) == 2
    again = crawl(ROWS, urls=url, settings=KEY | late | FEED, folder="a", afresh=True)
    assert named(again.items) == [(1, "Lamp"), (2, "Kettle")]
    assert again.stats["dedup/items/released"] == 2


def test_items_of_start_and_of_errbacks_have_keys_too(site, crawl):
    outcome = crawl("sample_spiders_keys.FromStart", url=rows(site, "/one"), settings=KEY)
    assert [(item["id"], item["name"]) for item in outcome.items] == [(1, "of start"), (2, "of the page")]
    assert len(outcome.dropped) == 1


def test_a_page_that_is_a_duplicate_keeps_its_new_key_and_its_links_are_followed_last(site, crawl):
    """What becomes of links follows from the page, as it does without keys."""
    for n, page in enumerate((article, blog)):
        link = f'<p><a class="next" href="/next{n}">next</a></p>'
        site.add(f"/{n}", page("Lamp", story(1)).replace("</body>", f'{link}<data value="x{n}"></data></body>'), host=n)
        site.add(f"/next{n}", article("Next", story(n + 5)), host=n)
    urls = ",".join(site.url(f"/{n}", n) for n in range(2))
    followed = []
    for settings in ({}, {"DEDUP_KEY": ["url"]}):
        outcome = crawl("sample_spiders.OneByOne", urls=urls, settings=settings)
        followed.append(outcome.stats.get("dedup/outlinks_last"))
        pages = [r for r in outcome.all_records if r.url == site.url("/1", 1) and not r.key]
        assert [(r.verdict, r.outcome) for r in pages] == [("duplicate", "links_last" if settings else "dropped")]
    assert followed == [1, 1]
    assert len(outcome.items) == 4


def test_an_item_without_a_key_repeats_none_that_has_one(site, crawl):
    """A page whose items have keys owns its text, for the sake of links: no item is dropped for it."""
    urls = [site.add(f"/{n}", page("Lamp", story(1)), host=n) for n, page in enumerate((article, blog))]
    steps = [{"url": urls[0], "callback": "parse_keyed"}, {"url": urls[1], "callback": "parse_plain"}]
    outcome = crawl("sample_spiders_keys.Plain", steps=steps, settings=KEY)
    assert len(outcome.items) == 3
    assert outcome.dropped == []


def test_two_classes_and_two_spiders_have_keys_of_their_own(site, crawl):
    row = {"sku": "A1", "price": 12}
    url = rows(site, "/one", row)
    settings = {"DEDUP_KEY": ["sku"]}
    kept = [
        crawl(spider, urls=url, kind=kind, settings=settings, folder="a", afresh=True)
        for spider, kind in (
            (ROWS, "Offer"),
            (ROWS, "OtherOffer"),
            (ROWS, "dict"),
            ("sample_spiders_keys.Other", "dict"),
        )
    ]
    assert [len(each.items) for each in kept] == [1, 1, 1, 1]
    by_class = {"DEDUP_KEY": {"sample_spiders_keys.Offer": ["sku"]}, "DEDUP_UNCHANGED": "drop"}
    url = rows(site, "/one", row, row)
    offers = crawl(ROWS, urls=url, kind="Offer", settings=by_class)
    assert len(offers.items) == 1
    assert {r.key for r in offers.all_records} == {"", "sample_spiders_keys.Offer A1"}
    assert len(crawl(ROWS, urls=url, kind="dict", settings=by_class).items) == 2


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (["idd", "of"], "'idd', 'of'"),
        ({"shop.Offerr": ["sku"], "dict": ["idd"]}, "'sku' in shop.Offerr; 'idd' in dict"),
    ],
)
def test_a_crawl_without_any_key_names_the_fields_alone(site, crawl, value, named):
    """Also where most pages were not checked: a key is what they lack."""
    urls = ",".join(rows(site, f"/{n}", LAMP) for n in range(MIN_PAGES))
    outcome = crawl(ROWS, urls=urls, settings={"DEDUP_KEY": value})
    (warning,) = outcome.problems
    assert warning.endswith(f"no item had the DEDUP_KEY {named}: check the spelling")


def test_a_crawl_whose_items_are_all_of_start_names_the_fields_too(crawl):
    outcome = crawl("sample_spiders_keys.OnlyStart", ids=[1], settings={"DEDUP_KEY": ["idd"]})
    (warning,) = outcome.problems
    assert warning.endswith("no item had the DEDUP_KEY 'idd': check the spelling")


def test_a_feed_that_is_overwritten_has_each_thing(site, crawl):
    url = rows(site, "/one", LAMP, LAMP)
    settings = KEY | {"DEDUP_SCOPE": "crawl", "DEDUP_UNCHANGED": "drop"}
    for _ in range(2):
        outcome = crawl(ROWS, urls=url, settings=settings, folder="a", afresh=True)
        assert named(outcome.items) == [(1, "Lamp")]
        assert len(outcome.dropped) == 1


@pytest.mark.parametrize("kind", ["sqlite", "redis"])
def test_of_processes_that_meet_a_thing_at_once_one_keeps_it(site, tmp_path, request, kind):
    uri = f"sqlite:{tmp_path / 'shared'}?shared=1"
    if kind == "redis":
        uri = f"{request.getfixturevalue('redis_server').url}/0?store=keys"
    items = [{"id": n, "name": f"Lamp {n}"} for n in range(40)]
    urls = ",".join(rows(site, f"/{n}", *items[n * 5 : n * 5 + 20]) for n in range(5))
    for answers in site.pages.values():
        answers[0].hold = threading.Barrier(2)  # both have begun
    settings = KEY | FEED | {"DEDUP_STORE": uri}
    folders = [tmp_path / f"worker{n}" for n in range(2)]
    with contextlib.ExitStack() as stack:
        jobs = [write_job(each, ROWS, urls=urls, together="yes", settings=settings) for each in folders]
        crawls = [stack.enter_context(Running(*each)) for each in zip(folders, jobs, strict=True)]
        outcomes = [each.wait() for each in crawls]
    assert named([item for each in outcomes for item in each.items]) == named(items)
    assert [each.problems for each in outcomes] == [[], []]


DEFECTS = [
    "driver.verdicts:Verdicts.key_of",
    "driver.verdicts:Verdicts.check_keyed",
    "driver.verdicts:verdict_on",
    "driver.claiming:placed",
    "items.reading:ItemCheck.exact",
    "index.lookup:Lookup.kept_at",
    "driver.claiming:Claims.item_left",
]


@pytest.mark.parametrize("place", DEFECTS)
def test_a_defect_of_ours_takes_no_item_with_a_key(site, crawl, place):
    urls = ",".join(rows(site, f"/{n}", LAMP, KETTLE, LAMP) for n in range(2))
    outcome = crawl(ROWS, urls=urls, settings=KEY | faults(place, every=True, kind="bug"))
    assert outcome.exit_status == 0
    assert len(outcome.items) + len(outcome.dropped) == 6
    assert set(named(outcome.items)) == {(1, "Lamp"), (2, "Kettle")}
    assert outcome.stats["dedup/defects"] >= 1


def test_another_method_leaves_keys_as_they_are(site, crawl):
    settings = KEY | {"DEDUP_FINGERPRINT": "simhash"}
    outcome = crawl(ROWS, urls=rows(site, "/one", LAMP, KETTLE, LAMP), settings=settings)
    assert named(outcome.items) == [(1, "Lamp"), (2, "Kettle")]
    assert outcome.problems == []


def test_a_dropped_item_is_stored_and_can_be_released(site, crawl):
    url = rows(site, "/one", LAMP, LAMP)
    outcome = crawl(ROWS, urls=url, settings=KEY, folder="a")
    assert len(outcome.items) == 1
    assert "1 dropped item" in run_here("allow", url, *outcome.here, folder=outcome.folder).out
    again = crawl(ROWS, urls=rows(site, "/two", KETTLE), settings=KEY, folder="a", afresh=True)
    assert named(again.items) == [(1, "Lamp"), (2, "Kettle")]
    assert again.problems == []


KEEP, DROP = ({"DEDUP_UNCHANGED": what} for what in ("keep", "drop"))


@pytest.mark.parametrize("together", ["", "yes"])
def test_a_released_item_is_given_once_and_its_original_as_before(site, crawl, together):
    urls = [rows(site, f"/{n}", LAMP) for n in range(4)]

    def crawled(unchanged, **settings):
        settings = KEY | FEED | unchanged | settings
        outcome = crawl(ROWS, urls=",".join(urls), together=together, settings=settings, folder="a", afresh=True)
        assert outcome.problems == []
        return outcome

    first = crawled(KEEP)
    assert len(first.items) == 1
    options, folder = (*first.here, "-s", "DEDUP_KEY=id"), first.folder
    assert "3 dropped items" in run_here("allow", "1", *options, folder=folder).out
    again = crawled(KEEP)
    assert again.stats["dedup/items/released"] == 3
    assert len(again.items) == 4, "the original is unchanged"
    assert [line.endswith("repeats its released item") for line in again.drop_lines] == [True] * 3
    assert run_here("dropped", "--json", *options, folder=folder).json == []
    for unchanged, kept, settings in (
        (DROP, 0, {}),
        (KEEP, 4, {}),
        (KEEP, 4, {"DEDUP_SCOPE": "crawl"}),
        (DROP, 0, {}),
    ):
        later = crawled(unchanged, **settings)
        assert (len(later.items), len(later.dropped)) == (kept, 4 - kept), unchanged
        assert verdicts(later) == {"1": ["new" if settings else "unchanged"] * 4}
    run_here("allow", "--remove", "1", *options, folder=folder)
    removed = crawled(KEEP)
    assert (len(removed.items), len(removed.dropped)) == (1, 3)


def test_of_several_on_one_page_one_more_is_given_each_time_they_are_allowed(site, crawl):
    url = rows(site, "/one", LAMP, LAMP, LAMP)

    def crawled(unchanged=KEEP):
        outcome = crawl(ROWS, urls=url, settings=KEY | unchanged, folder="a", afresh=True)
        return len(outcome.items), len(outcome.dropped), outcome.stats.get("dedup/items/released", 0)

    assert crawled() == (1, 2, 0)
    # Those that are given again repeat the released ones; then one place is one thing more.
    for said, crawls in (
        ("2 dropped items", [(3, 2, 2), (2, 1, 0)]),
        ("1 dropped item", [(3, 1, 1), (3, 0, 0)]),
    ):
        outcome = crawl(ROWS, urls=url, settings=KEY, folder="a", afresh=True)
        assert said in run_here("allow", url, *outcome.here, folder=outcome.folder).out
        assert [crawled(), crawled()] == crawls
        assert crawled(DROP) == (0, 3, 0)


# --- what is shown


def test_changes_log_and_explain_list_by_key(site, crawl):
    urls = [rows(site, f"/{n}?s=1", item) for n, item in enumerate((LAMP, KETTLE, {"id": 3, "name": "Bed"}))]
    crawl(ROWS, urls=",".join(urls), settings=KEY, folder="a")
    items = [{**LAMP, "name": "Lamp II"}, KETTLE, {"id": "3", "name": "Bed"}]
    urls = [rows(site, f"/{n}?s=2", item) for n, item in enumerate(items)]
    outcome = crawl(ROWS, urls=",".join(urls), settings=KEY, folder="a")

    def dedup(*arguments):
        output = run_here(*arguments, *outcome.here, "-s", "DEDUP_KEY=id", folder=outcome.folder)
        assert output.exit_status == 0, output
        return output.out

    lines = dedup("changes").splitlines()
    assert [line for line in lines if not line.startswith("not compared")] == [
        "new 1",
        f'  "3" {urls[2]}',
        "changed 1",
        f"  1 {urls[0]}",
        "    name: Lamp -> Lamp II",
        "moved 0",
        "gone 0",
        "not seen 1",
        f"  3 {urls[2].replace('s=2', 's=1')}",
        "unchanged 1",
    ]
    found = [json.loads(line) for line in dedup("changes", "--json").splitlines()]
    assert {each.get("key"): each["change"] for each in found} == {
        "1": "changed",
        "2": "unchanged",
        '"3"': "new",
        "3": "not seen",
    }
    assert [json.loads(line)["verdict"] for line in dedup("log", "--key", "1", "--json").splitlines()] == [
        "new",
        "changed",
    ]
    assert "Last record" in dedup("explain", urls[0])
    explained = dedup("explain", "1")
    assert "name: Lamp -> Lamp II" in explained
    assert "Stored" in explained
    assert "    name: Lamp II" in explained


def test_items_of_start_are_known_to_the_next_crawl_by_key(crawl):
    settings = KEY | {"DEDUP_UNCHANGED": "drop"}
    first = crawl("sample_spiders_keys.OnlyStart", ids=[1, 2, 3, 3], settings=settings, folder="a")
    assert [line.partition("Dropped: ")[2].strip() for line in first.drop_lines] == ["item 3 was kept before"]
    again = crawl("sample_spiders_keys.OnlyStart", ids=[1, 3, 4], settings=settings, folder="a", afresh=False)
    found = {
        line["key"]: line["change"] for line in run_here("changes", "--json", *again.here, folder=again.folder).json
    }
    assert found == {"1": "unchanged", "2": "not seen", "3": "unchanged", "4": "new"}


def test_dropped_items_are_shown_found_and_allowed_by_key(site, crawl):
    url = rows(site, "/one", LAMP, LAMP, KETTLE, KETTLE)
    outcome = crawl(ROWS, urls=url, settings=KEY, folder="a")

    def dedup(*arguments):
        return run_here(*arguments, *outcome.here, "-s", "DEDUP_KEY=id", folder=outcome.folder)

    assert [line["key"] for line in dedup("dropped", "--json").json] == ["1", "2"]
    lines = dedup("dropped", "2").out.splitlines()
    assert [line.partition("1.00  ")[2] or line.split()[-1] for line in lines] == [f"2 {url}", url]
    assert "17 was not found" in dedup("dropped", "17").err
    assert "DEDUP_KEY is not set" in run_here("dropped", "2", *outcome.here, folder=outcome.folder).err
    assert "releases 1 dropped item" in dedup("allow", "2").out
    again = crawl(ROWS, urls=rows(site, "/two", BED), settings=KEY, folder="a", afresh=True)
    assert named(again.items) == [(2, "Kettle"), (3, "Bed")]


def test_the_lines_of_a_recrawl_that_keeps_nothing_add_up(site, crawl):
    """A page whose items are judged by their keys is not one that was kept, whether its text was checked or not."""
    pages = [site.add(f"/{n}", article("Lamp", story(n))) for n in range(3)]
    api = site.add("/api", Answer(json.dumps([{"url": "x"}]), headers={"Content-Type": "application/json"}))
    steps = [*({"url": url, "callback": "parse_text"} for url in pages), {"url": api, "callback": "parse_api"}]
    settings = {"DEDUP_KEY": ["url"], "DEDUP_UNCHANGED": "drop"}
    for _ in range(2):
        outcome = crawl("sample_spiders.Steps", steps=steps, settings=settings, folder="a", afresh=True)
    assert outcome.items == []
    lines = summary({name.removeprefix("dedup/"): n for name, n in outcome.stats.items()})
    assert [(label, n) for label, n in lines if n] == [
        ("pages", 4),
        ("  judged by key", 4),
        ("items checked", 4),
        ("  unchanged, items dropped", 4),
        ("items dropped", 4),
    ]
    found = Crawls()
    for record in outcome.all_records:
        found.add(record)
    report = found.sum.as_dict()
    assert +Counter(report["pages"]) == {"skipped": sum(report["skipped"].values())} == {"skipped": 4}
    assert +Counter(report["items"]) == {"unchanged_dropped": 4}


def test_what_is_allowed_by_key_is_listed_and_removed_by_it(site, crawl):
    """Also what was dropped before the key was set."""
    pages = [article("Rug", story(1)), blog("Rug", story(1)), article("Rug", story(2)), blog("Rug", story(2))]
    urls = [site.add(f"/{n}", page, host=n % 2) for n, page in enumerate(pages)]
    steps = [{"url": url, "cb_kwargs": {"id": "K-3", "colour": "brass"}} for url in urls]
    for some, settings in ((steps[:2], {}), (steps[2:], {"DEDUP_KEY": ["id", "colour"]})):
        outcome = crawl("sample_spiders.Steps", steps=some, settings=settings, folder="a", afresh=True)
        assert len(outcome.dropped) == 1
    copies = set(urls[1::2])

    def dedup(*arguments, key="id,colour"):
        return run_here(*arguments, *outcome.here, "-s", f"DEDUP_KEY={key}", folder=outcome.folder)

    shown = '["K-3","brass"]'
    for name in (shown, '["K-3", "brass"]'):
        allowed = dedup("allow", name).out.splitlines()
        assert allowed[0].startswith("Allowed 2 pages; the next crawl releases 2 dropped items")
        assert {*allowed[1:]} == {f"    {shown} {url}" for url in copies}
        for listed in (dedup("allow", "--list"), dedup("allow", "--remove", name)):
            assert {line.partition("  ")[2] for line in listed.out.splitlines()[::2]} == {
                f"{shown} {url}" for url in copies
            }
        assert dedup("allow", "--list").out == "No page is allowed\n"
        for command in (["dropped"], ["explain"], ["log", "--key"]):
            assert dedup(*command, name).exit_status == 0
    assert "DEDUP_KEY is not set here" in dedup("allow", shown, key="").err
    assert '["K-9", "red"] is not stored in' in dedup("allow", '["K-9", "red"]').err


def test_items_of_start_are_shown_without_a_page(crawl):
    outcome = crawl("sample_spiders_keys.OnlyStart", ids=[1, 1], settings=KEY, folder="a")

    def lines(*arguments):
        output = run_here(*arguments, *outcome.here, "-s", "DEDUP_KEY=id", folder=outcome.folder)
        assert output.exit_status == 0, output
        return [" ".join(line.split()) for line in output.out.splitlines()]

    none = "(no page: start())"
    dropped = lines("dropped")
    assert [line.partition("1.00 ")[2] or line for line in dropped] == [f"1 {none}", f"original {none}"]
    assert lines("log")[:3] == [f"dropped 1.00 {none}", "key 1", f"original {none}"]
    explained = lines("explain", "1")
    assert explained[-4].endswith("as the item with this key, repeated by 1 item:")
    assert explained[-3] == none
    assert lines("allow", "1")[1] == f"1 {none}"
    assert lines("allow", "--list")[1] == f"is not a duplicate of {none}"
    assert lines("allow", "--remove", "1")[1] == f"may be a duplicate again of {none}"
    assert lines("allow", "--list") == ["No page is allowed"]


def test_explain_finds_a_key_without_the_setting_and_one_that_is_a_url(site, crawl):
    urls = ["http://shop.example/17", "http://shop.example/18"]
    page = rows(site, "/one", *({"id": url, "name": "Lamp"} for url in urls))
    outcome = crawl(ROWS, urls=page, settings=KEY)

    def explained(name, *options):
        return run_here("explain", name, "--json", *outcome.here, *options, folder=outcome.folder).json[0]

    for url in urls:
        found = explained(url)
        assert (found["record"]["key"], found["stored"]) == (url, None)
        assert "DEDUP_KEY is not set here" in found["note"]
        assert explained(url, "-s", "DEDUP_KEY=id")["stored"]["kind"] == "original"
    found = explained(page)
    assert (found["record"]["key"], found["keys"]) == ("", urls)
    shown = run_here("explain", page, *outcome.here, folder=outcome.folder).out
    assert f"(`explain KEY`): {', '.join(urls)}" in shown
    assert "of an earlier text" not in shown


# --- without Scrapy


def test_a_program_names_things_too():
    with Deduplicator(key=["id"]) as dedup:
        one = dedup.add("http://a.example/1", "<p>one", item={"id": 1, "price": 10})
        assert (one.verdict, one.key) == ("new", "1")
        assert dedup.add("http://a.example/2", "<p>one", item={"id": 2, "price": 10}).verdict == "new"
        same = dedup.check("http://a.example/3", item={"id": 1, "price": 10})
        assert (same.verdict, same.original_url) == ("duplicate", "http://a.example/1")
        assert dedup.add("http://a.example/3", item={"id": 1, "price": 10}).is_duplicate
        changed = dedup.add("http://a.example/3", item={"id": 1, "price": 12})
        assert (changed.verdict, changed.reason) == ("changed", "key_given_twice")
        assert changed.changes.values == [("price", "10", "12")]
        assert dedup.keep("http://a.example/4", item={"id": 1, "price": 12}).reason == "kept_on_request"


def test_an_archive_of_items_is_judged_by_key(tmp_path):
    """Items without the key, and pages, are judged by their text, as without the option."""
    text = "\n".join(story(1))
    lines = [LAMP, KETTLE, LAMP, {**LAMP, "name": "Lamp II"}, {**BED, "text": text}, {"id": 4, "text": text}]
    lines += [{"url": f"http://{host}.example/", "text": text} for host in "ab"]
    (tmp_path / "feed.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf8")
    done = run_here("batch", "feed.jsonl", "--key", "id", "-o", "checked", "--json", folder=tmp_path)
    assert done.exit_status == 0, done.err
    (report,) = done.json
    assert report["items"] == {"changed": 1, "duplicate": 1, "new": 4}
    assert report["verdicts"] == {"duplicate": 1, "new": 1}
    found = [json.loads(line) for line in (tmp_path / "checked" / "keys.jsonl").read_text("utf8").splitlines()]
    assert [(each["key"], each["verdict"]) for each in found[:4]] == [
        ("1", "new"),
        ("2", "new"),
        ("1", "duplicate"),
        ("1", "changed"),
    ]
    assert found[2]["original_url"] == f"{tmp_path / 'feed.jsonl'}:1"
    assert found[3]["changes"] == [["name", "Lamp", "Lamp II"]]
    (tmp_path / "feed.json").write_text(f"[\n{json.dumps(LAMP)},\n{json.dumps(LAMP)}\n]\n", encoding="utf8")
    alone = run_here("batch", "feed.json", "--key", "id", "-o", "alone", folder=tmp_path)
    assert "2 items judged by key: 1 duplicate, 1 new" in alone.out


# --- a shop


def test_a_shop_has_each_product_once_and_the_second_crawl_what_has_changed(site, crawl):
    """Fewer of all than in tests/benchmarks/keys.py, which has the same shop in its size."""
    first, settings = dict.fromkeys(range(30), 10), {"DEDUP_KEY": ["product_id"]}
    outcome = crawl("sample_spiders_keys.Shop", url=serve(site, first, "a"), settings=settings, folder="a")
    assert Counter(item["product_id"] for item in outcome.items) == dict.fromkeys(
        (f"{n}-{colour}" for n in first for colour in VARIANTS), 1
    )
    assert outcome.problems == []
    second = {n: 12 if n < 2 else 10 for n in range(32) if n != 9}
    again = crawl("sample_spiders_keys.Shop", url=serve(site, second, "b"), settings=settings, folder="a", afresh=False)
    lines = run_here("changes", "--json", *again.here, folder=again.folder).json
    found: dict[str, list[str]] = {}
    for line in lines:
        found.setdefault(line["change"], []).append(line["key"])
    expected = {"changed": (0, 1), "new": (30, 31), "not seen": (9,), "unchanged": {*range(2, 30)} - {9}}
    assert {kind: sorted(keys) for kind, keys in found.items()} == {
        kind: sorted(f"{n}-{colour}" for n in numbers for colour in VARIANTS) for kind, numbers in expected.items()
    }
    changes = [line["changes"] for line in lines if line["change"] == "changed"]
    assert changes == [[{"field": "price", "before": "10.90", "after": "12.90"}]] * 6
    assert again.problems == []
