"""Every dropped item is stored with its drop: it can be listed, exported and released, and it comes back as it was."""

import csv
import json
import re
import shutil
from functools import partial

import pytest
import scrapy
from crawling import FEED, IN_ORDER, run_job, stepped, store_uri, write_job
from fault_injection import EXIT_STATUS, faults
from itemadapter import ItemAdapter
from local_site import Answer, Site
from prose import article, blog, story
from sample_spiders_items import KINDS, Timed
from scrapy import signals
from scrapy.exporters import BaseItemExporter
from test_claims_in_crawls import pair
from test_commands import run_here
from test_crashes import GZIP, again, killed, released
from test_two_witnesses import visit

from dedup_middleware.index.item_codec import PROJECT, name_of
from dedup_middleware.index.shared import index_for_command


class Marks:
    """A spider middleware that counts how often an item has passed it; the items of ``start()``, too."""

    async def process_start(self, start):
        async for output in start:
            yield self.marked(output)

    async def process_spider_output(self, response, result):
        async for output in result:
            yield self.marked(output)

    def marked(self, output):
        if isinstance(output, dict):
            output["passes"] = output.get("passes", 0) + 1
        return output


class StartRows(scrapy.Spider):
    """Yields rows with these *numbers* from ``start()``."""

    name = "start-rows"
    numbers = ()

    async def start(self):
        for number in self.numbers:
            yield {"sku": 1, "id": f"row-{number}", "name": "Kettle"}


class Responses:
    """An extension that counts the items that were scraped from no response, or from one of these URLs."""

    def __init__(self, stats):
        self.stats = stats

    @classmethod
    def from_crawler(cls, crawler):
        extension = cls(crawler.stats)
        crawler.signals.connect(extension.scraped, signals.item_scraped)
        return extension

    def scraped(self, item, response):
        self.stats.inc_value(f"scraped_from/{response and response.url}")


class Stuttering(BaseItemExporter):
    """An exporter that fails on its second item."""

    def __init__(self, file, **kwargs):
        super().__init__(dont_fail=True, **kwargs)
        self._file, self._any = file, False

    def export_item(self, item):
        if self._any:
            raise TypeError("the second item")
        self._any = True
        self._file.write(b"half\n")


def add_pairs(site, count):
    """Serve *count* stories on one host and their reposts on another, and return the URLs, a pair at a time."""
    return [
        url
        for n in range(count)
        for url in (
            site.add(f"/story{n}", article(f"Story {n}", story(n))),
            site.add(f"/repost{n}", blog(f"Story {n}", story(n)), host=1),
        )
    ]


def stories(folder, urls, *, spider="Stories", plugin=True, feed=FEED, **settings):
    command = write_job(
        folder,
        f"sample_spiders_items.{spider}",
        urls=",".join(urls),
        plugin=plugin,
        settings=IN_ORDER | feed | settings,
        afresh=True,
    )
    return run_job(folder, command)


def release_all(folder, **settings):
    """Let a crawl of no page release what is to be released."""
    return stories(folder, [], spider="Nothing", **settings)


def lines(path):
    return sorted(path.read_text(encoding="utf8").splitlines())


def urls_of(path):
    return [json.loads(line)["url"] for line in path.read_text(encoding="utf8").splitlines()]


def stored(folder):
    """Return the dropped items in the store of a crawl, oldest first."""
    with index_for_command(store_uri(folder), "test") as (_, index):
        return list(index.dropped)


def dedup(folder, *arguments):
    log = folder / "records.jsonl"
    return run_here(*arguments, "-s", f"DEDUP_STORE={store_uri(folder)}", "-s", f"DEDUP_LOG={log}", folder=folder)


def done(folder, *arguments):
    """Run a command that succeeds."""
    output = dedup(folder, *arguments)
    assert output.exit_status == 0, output.err
    return output


# --- kept and dropped together are what there was


@pytest.fixture(scope="module")
def reposts():
    """A site with a story and its repost for each kind of items."""
    site = Site()
    yield add_pairs(site, len(KINDS))
    site.close()


def test_kept_with_exported_or_released_items_are_those_of_a_crawl_without_the_plugin(reposts, tmp_path):
    without = stories(tmp_path / "without", reposts, plugin=False)
    folder = tmp_path / "with"
    outcome = stories(folder, reposts)
    assert outcome.kept == reposts[::2]
    found = stored(folder)
    assert [item.type for item in found] == [name_of(kind) for kind in KINDS]
    PROJECT.give(KINDS[1:])
    assert [type(item.item) for item in found] == KINDS
    assert [(item.url, item.original_url) for item in found] == [*zip(reposts[1::2], reposts[::2], strict=True)]
    kept = (folder / "feed.jsonl").read_bytes()
    assert "Wrote 5 dropped items to feed.jsonl" in done(folder, "dropped", "-o", "feed.jsonl").out
    assert lines(folder / "feed.jsonl") == lines(without.folder / "feed.jsonl")

    allowed = done(folder, "allow", "--all").out
    assert "Allowed 5 pages; the next crawl with a feed releases 5 dropped items" in allowed
    (folder / "feed.jsonl").write_bytes(kept)
    outcome = release_all(folder)
    assert outcome.kept == reposts[1::2]
    assert released(outcome) == 5
    records = [(r["url"], r["outcome"], r["items_kept"]) for r in outcome.records]
    assert records == [(url, "released", 1) for url in reposts[1::2]]
    assert lines(folder / "feed.jsonl") == lines(without.folder / "feed.jsonl")
    assert stored(folder) == []
    assert outcome.problems == []

    again = stories(folder, reposts)
    assert again.kept == reposts
    assert released(again) == 0
    assert stored(folder) == []


@pytest.mark.every_scrapy
def test_a_released_item_passes_each_pipeline_and_no_spider_middleware_again(site, tmp_path):
    a, b = pair(site, 1)
    seen = {
        "SPIDER_MIDDLEWARES": {"test_dropped_items.Marks": 500},
        "EXTENSIONS": {"test_dropped_items.Responses": 0},
        "EXTRA_PIPELINES": {"sample_spiders.FatePipeline": 100},
    }
    steps = [{"url": a}, {"url": b, "cb_kwargs": {"fate": "replace"}}]
    assert [item["url"] for item in again(tmp_path, steps, **seen).dropped] == [b]
    done(tmp_path, "allow", b)
    outcome = again(tmp_path, [], **seen)
    item = outcome.items[-1]
    assert (item["url"], item["passes"], item["replaced"]) == (b, 1, True)
    assert outcome.stats["scraped_from/data:,dedup-release"] == outcome.stats["item_scraped_count"] == 1
    assert outcome.lines("feed.jsonl")[-1] == item


@pytest.mark.every_scrapy
@pytest.mark.parametrize("settings", [{}, {"JOBDIR": "job"}, {"DOWNLOAD_HANDLERS": {"data": None}}])
def test_a_release_is_no_request_and_its_line_names_the_cause(site, tmp_path, settings):
    urls = pair(site, 1)
    again(tmp_path, [{"url": url} for url in urls])
    done(tmp_path, "allow", "--all")
    outcome = again(tmp_path, [], **settings)
    assert outcome.stats["dedup/items/released"] == outcome.stats["item_scraped_count"] == 1
    requests = ("downloader/", "scheduler/", "response_received_count")
    assert {n: v for n, v in outcome.stats.items() if n.startswith(requests) and v} == {}
    assert "No dropped item is stored. Released items leave the store." in dedup(tmp_path, "dropped").err
    (line,) = [line for line in outcome.log.splitlines() if " released: " in line]
    assert line.endswith("dedup: 1 stored item was released: `scrapy dedup allow` was run")


def test_overrides_can_be_listed_and_removed(reposts, tmp_path):
    stories(tmp_path, reposts)
    done(tmp_path, "allow", *reposts[1:4:2])
    listed = [(o["url"], o["original_url"]) for o in done(tmp_path, "allow", "--list", "--json").json]
    assert sorted(listed) == sorted([(reposts[1], reposts[0]), (reposts[3], reposts[2])])
    done(tmp_path, "allow", "--remove", reposts[1])
    assert [o["url"] for o in done(tmp_path, "allow", "--list", "--json").json] == [reposts[3]]
    outcome = stories(tmp_path, reposts)
    # Its items were to be released all the same; the pages are no duplicates of each other for this crawl.
    assert {url for url, verdict in outcome.verdicts.items() if verdict[0] == "duplicate"} == set(reposts[5::2])


@pytest.mark.parametrize(("feed", "crawl"), [(FEED, "crawl with a feed"), ({}, "crawl")], ids=["feed", "no feed"])
def test_an_item_that_a_feed_wanted_waits_for_a_crawl_with_such_a_feed(site, tmp_path, feed, crawl):
    a, b = add_pairs(site, 1)
    stories(tmp_path, [a, b], feed=feed)
    assert f"Allowed 1 page; the next {crawl} releases 1 dropped item" in done(tmp_path, "allow", b).out
    smoke = stories(tmp_path, [], spider="Nothing", feed={}).kept
    assert [smoke, release_all(tmp_path).kept] == ([[], [b]] if feed else [[b], []])
    assert stored(tmp_path) == []


@pytest.mark.every_scrapy
@pytest.mark.parametrize("removed", [False, True])
def test_an_item_of_a_jobdir_is_released_in_any_crawl_once_a_person_allows_it(site, tmp_path, removed):
    a, b = add_pairs(site, 1)
    job = {"JOBDIR": str(tmp_path / "job"), "DEDUP_SCOPE": "crawl"}
    assert [item["url"] for item in stories(tmp_path, [a, b], **job).dropped] == [b]
    if removed:
        shutil.rmtree(tmp_path / "job")
    done(tmp_path, "allow", b)
    assert release_all(tmp_path).kept == [b]


def test_the_same_item_is_not_kept_a_second_time_when_its_page_is_fetched_after_the_release(site, tmp_path):
    """If the page has changed, it is."""
    a, b, c, d = add_pairs(site, 2)
    site.add("/repost1", Answer(blog("Story 1", story(1))), Answer(blog("Story 1", story(7))), host=1)
    assert stories(tmp_path, [a, b, c, d]).kept == [a, c]
    done(tmp_path, "allow", "--all")
    outcome = stories(tmp_path, [a, b, c, d])
    assert released(outcome) == 2
    assert sorted(outcome.kept) == sorted([a, b, c, d, d])
    assert [item["url"] for item in outcome.dropped] == [b]
    assert [(r["verdict"], r["items_dropped"]) for r in outcome.records if r["url"] == b][-1] == ("unchanged", 1)
    assert stored(tmp_path) == []
    assert stories(tmp_path, [a, b, c, d]).kept == [a, b, c, d]


@pytest.mark.parametrize("is_released", [False, True])
@pytest.mark.parametrize(("rank", "kept"), [("3", 0), ("5", 1)])
def test_an_item_with_another_value_of_a_named_field_is_another_item(site, tmp_path, is_released, rank, kept):
    """Its page is not read again. Without a name, a rank is a detail of the fetch."""
    a, b = add_pairs(site, 1)
    text = "\n".join(story(0))

    def ranked(*steps):
        steps = [{"url": url, "cb_kwargs": {"text": text, "rank": rank}} for url, rank in steps]
        return stepped(tmp_path, steps, DEDUP_ITEM_FIELDS=["text", "rank"])

    assert ranked((a, "3"), (b, "3")).kept == [a]
    if is_released:
        done(tmp_path, "allow", b)
    ranks = [item["rank"] for item in ranked((a, "3"), (b, rank)).items if item["url"] == b]
    assert ranks == ["3"] * is_released + [rank] * kept


def test_an_item_is_kept_if_its_released_copy_has_failed_in_a_pipeline(site, tmp_path):
    a, b = pair(site, 1, shown="fail-once")
    steps = [{"url": a}, {"url": b, "cb_kwargs": {"fate": "fail-once"}}]
    assert again(tmp_path, steps).kept == [a]
    done(tmp_path, "allow", b)
    outcome = again(tmp_path, steps, EXTRA_PIPELINES={"sample_spiders.FatePipeline": 100})
    assert (released(outcome), outcome.kept) == (1, [a, a, b])


# --- reading changes nothing


def test_an_export_changes_nothing(reposts, tmp_path):
    first = stories(tmp_path, reposts)
    listed = done(tmp_path, "dropped", "--json").out
    for name in ("one.jsonl", "two.jsonl"):
        done(tmp_path, "dropped", "-o", name)
    assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "two.jsonl").read_bytes()
    assert urls_of(tmp_path / "one.jsonl") == reposts[1::2]
    assert done(tmp_path, "dropped", "--json").out == listed
    for _ in range(2):
        later = stories(tmp_path, reposts)
        assert later.kept == first.kept
        assert [item["url"] for item in later.dropped] == reposts[1::2]
        assert released(later) == 0
        done(tmp_path, "dropped", "-o", "one.jsonl")


@pytest.fixture(scope="module")
def crawled(tmp_path_factory):
    """A crawl that has dropped three items, each for another original, and a later one that has dropped a fourth."""
    site = Site()
    folder = tmp_path_factory.mktemp("crawled")
    urls = add_pairs(site, 4)
    stories(folder, urls[:6])
    stories(folder, urls[6:])
    yield folder, urls
    site.close()


FILTERS = [
    (["--crawl", "last"], [7]),
    (["--host", "127.0.0.2"], [1, 3, 5, 7]),
    (["--host", "127.0.0.1"], []),
    (["--below", "0.1"], []),
    (["--host", "127.0.0.2", "--below", "1"], []),
    (["{3}"], [3]),
    (["--original", "{4}"], [5]),
    (["--original", "{4}", "--crawl", "last"], []),
]


@pytest.mark.every_scrapy
def test_filters_choose_what_is_listed_and_exported(crawled):
    folder, urls = crawled
    for wanted, numbers in FILTERS:
        arguments = [argument.format(*urls) for argument in wanted]
        listed = dedup(folder, "dropped", *arguments, "--json").json
        assert [(each["url"], each["original_url"]) for each in listed] == [(urls[n], urls[n - 1]) for n in numbers]
        shown = done(folder, "dropped", *arguments, "-o", "-:jsonlines")
        assert [json.loads(line)["url"] for line in shown.out.splitlines()] == [urls[n] for n in numbers], wanted
        output = dedup(folder, "dropped", *arguments)
        assert output.exit_status == (0 if numbers else 3)
        assert all(urls[n] in output.out for n in numbers), wanted
        assert ("No such dropped item" in output.err) == (not numbers), wanted


@pytest.mark.parametrize(("arguments", "numbers"), [FILTERS[0], FILTERS[2], FILTERS[6]], ids=str)
def test_filters_choose_what_is_allowed(crawled, tmp_path, arguments, numbers):
    folder, urls = crawled
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    report = done(copy, "allow", *(argument.format(*urls) for argument in arguments), "--json").json[0]
    assert report["allowed"] == [urls[n] for n in numbers]
    assert report["items"] == len(numbers)
    outcome = release_all(copy)
    assert outcome.kept == [urls[n] for n in numbers]
    assert [item.url for item in stored(copy)] == [u for u in urls[1::2] if urls.index(u) not in numbers]


def test_formats_are_those_of_scrapy(crawled, tmp_path):
    folder, urls = crawled
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    done(copy, "dropped", urls[1], "-o", "out.csv")
    with (copy / "out.csv").open(encoding="utf8", newline="") as file:
        assert [row["url"] for row in csv.DictReader(file)] == [urls[1]]
    shown = done(copy, "dropped", urls[3], "-o", "-:jsonlines")
    assert [json.loads(line)["url"] for line in shown.out.splitlines()] == [urls[3]]
    assert "Wrote 1 dropped item" in shown.err
    done(copy, "dropped", urls[1], "-o", "out.jsonl")
    done(copy, "dropped", urls[3], "-o", "out.jsonl")
    assert urls_of(copy / "out.jsonl") == [urls[1], urls[3]]
    done(copy, "dropped", urls[5], "-O", "out.jsonl")
    assert urls_of(copy / "out.jsonl") == [urls[5]]
    for wrong, words in (
        ("out.nope", "Unrecognized output format"),
        ("s3://b/out.csv", "is not a file"),
        ("/dev/null/x.csv", "cannot be written"),
    ):
        dedup(copy, "dropped", "-o", wrong).refused(words)
    assert len(stored(copy)) == 4


def test_an_exporter_that_fails_leaves_the_file_as_it_was(crawled, tmp_path):
    folder, _ = crawled
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    (copy / "out.bad").write_text("as before\n", encoding="utf8")
    exporters = json.dumps({"bad": "test_dropped_items.Stuttering"})
    failed = dedup(copy, "dropped", "-o", "out.bad", "-s", f"FEED_EXPORTERS={exporters}")
    failed.refused("cannot be written as bad (the second item)")
    assert (copy / "out.bad").read_text(encoding="utf8") == "as before\n"
    assert len(stored(copy)) == 4


# --- how long they are stored


@pytest.mark.parametrize(("spider", "parts"), [("Stamped", 1), ("StampedParts", 3)])
def test_an_item_that_has_the_time_of_its_fetch_is_stored_and_released_once(site, tmp_path, spider, parts):
    a, b = add_pairs(site, 1)
    stamped = partial(stories, tmp_path, spider=spider)
    found = []
    for _ in range(3):
        assert len(stamped([a, b]).dropped) == parts
        found.append(stored(tmp_path))
        assert [item.item["part"] for item in found[-1]] == list(range(parts))
    assert found[0][0].item["scraped_at"] < found[2][0].item["scraped_at"]
    sums = done(tmp_path, "store", "info", "--json").json[0]
    assert sums["dropped_items"] == parts

    (tmp_path / "feed.jsonl").unlink()
    done(tmp_path, "allow", b)
    later = stamped([site.add("/other", article("other", story(50)))])
    assert later.stats["dedup/items/released"] == parts
    assert urls_of(tmp_path / "feed.jsonl").count(b) == parts
    assert stored(tmp_path) == []


@pytest.mark.parametrize("settings", [{"DEDUP_KEY": ["sku"]}, {"DEDUP_ITEM_FIELDS": ["name"]}], ids=["key", "fields"])
def test_no_item_of_a_response_takes_the_place_of_another(site, crawl, settings):
    """A later crawl may have other ids for the same things, and then each takes the place of one."""

    def rows(path, *numbers):
        found = [{"sku": 1, "id": f"row-{n}", "name": "\n".join(story(1))} for n in numbers]
        return site.add(path, Answer(json.dumps({"rows": found}), headers={"Content-Type": "application/json"}))

    for numbers in ((1, 2, 3), (4, 5, 6)):
        urls = f"{rows('/original', 0)},{rows('/rows', *numbers)}"
        outcome = crawl("sample_spiders_keys.Rows", urls=urls, settings=settings, folder="kept", afresh=True)
        assert [item["id"] for item in outcome.dropped] == [f"row-{n}" for n in numbers]
        assert [item.item["id"] for item in stored(outcome.folder)] == [item["id"] for item in outcome.dropped]


def test_no_item_of_start_takes_the_place_of_another(crawl):
    for numbers in ((0, 1, 2, 3), (0, 4, 5, 6)):
        more = {"settings": {"DEDUP_KEY": ["sku"]}, "folder": "kept", "afresh": True}
        outcome = crawl("test_dropped_items.StartRows", numbers=numbers, **more)
        assert [item["id"] for item in outcome.dropped] == [f"row-{n}" for n in numbers[1:]]
        assert [item.item["id"] for item in stored(outcome.folder)] == [item["id"] for item in outcome.dropped]


@pytest.mark.parametrize("then", ["another story", "a longer story", "another repost"])
def test_a_page_that_shows_something_else_leaves_the_item_that_was_dropped_before(site, crawl, then):
    told, more = story(1, 8), "The man who had told the paper of this died a few days later, at home and in peace."
    now = {
        "another story": story(2),
        "a longer story": [*told, *story(3)],
        "another repost": story(4, 8),
    }[then]
    a = site.add("/a", article("a", told))
    c = site.add("/c", article("c", story(4, 8)))
    b = site.add("/b", Answer(article("b", [*told, more])), Answer(article("b", now)), host=1)
    one = {"callback": "parse_text", "folder": "one", "afresh": True}
    outcome = visit(crawl, [a, c, b], **one)
    assert outcome.kept == [a, c]
    (dropped,) = stored(outcome.folder)
    visit(crawl, [a, c, b], **one)
    assert dropped in stored(outcome.folder)
    done(outcome.folder, "allow", b)
    texts = [item["text"] for item in visit(crawl, [], **one).items]
    assert dropped.item["text"] in texts
    assert more in dropped.item["text"]
    assert stored(outcome.folder) == []


def test_beyond_their_size_the_oldest_go(site, tmp_path):
    urls = add_pairs(site, 5)
    outcome = stories(tmp_path, urls, spider="Bulky", feed={}, DEDUP_DROPPED_SIZE="100KB")
    assert [item["url"] for item in outcome.dropped] == urls[1::2]
    sums = done(tmp_path, "store", "info", "--json").json[0]
    assert 50_000 < sums["dropped_bytes"] <= 100_000
    assert [item.url for item in stored(tmp_path)] == urls[1::2][-sums["dropped_items"] :]


def test_beyond_their_age_they_go(site, tmp_path):
    urls = add_pairs(site, 3)
    stories(tmp_path, urls[:4], feed={})
    kept = stories(tmp_path, urls[4:], feed={})
    assert [item["url"] for item in kept.dropped] == urls[5:]
    assert [item.url for item in stored(tmp_path)] == urls[1::2]
    moment = 0.001 / 86_400
    stories(tmp_path, urls[4:], feed={}, DEDUP_DROPPED_AGE=moment)
    assert urls[1] not in [item.url for item in stored(tmp_path)]


@pytest.mark.parametrize("feed", [{}, FEED], ids=["no feed", "feed"])
def test_with_no_room_none_is_left_after_the_crawl(site, tmp_path, feed):
    urls = add_pairs(site, 3)
    outcome = stories(tmp_path, urls, feed=feed, DEDUP_DROPPED_SIZE=0)
    assert outcome.kept == urls[::2]
    assert [item["url"] for item in outcome.dropped] == urls[1::2]
    assert stored(tmp_path) == []


BOUNDS = pytest.mark.parametrize(
    "bound", [{"DEDUP_DROPPED_SIZE": 0}, {"DEDUP_DROPPED_AGE": 0.001 / 86_400}], ids=["size", "age"]
)


@BOUNDS
def test_no_bound_removes_an_item_that_is_kept_until_its_feed_ends(site, tmp_path, bound):
    pairs = [pair(site, number) for number in range(4)]
    crashed = killed(tmp_path, site, [{"url": url} for both in pairs for url in both], **bound, **GZIP)
    assert len(crashed.dropped) == 4
    outcome = again(tmp_path, [], **bound)
    assert released(outcome) == 4
    assert urls_of(tmp_path / "feed.jsonl") == [a for a, _ in pairs]


@BOUNDS
def test_no_bound_removes_an_item_that_a_person_has_allowed(site, tmp_path, bound):
    urls = add_pairs(site, 2)
    stories(tmp_path, urls[:2])
    done(tmp_path, "allow", urls[1])
    other = write_job(tmp_path, "sample_spiders.Articles", urls=",".join(urls[2:]), settings=IN_ORDER | bound)
    assert len(run_job(tmp_path, other).dropped) >= 1
    assert urls[1] in [item.url for item in stored(tmp_path)]
    assert release_all(tmp_path).kept == [urls[1]]


# --- what goes wrong


STEPS = [
    ("visits.drops:Drops.write", "before"),
    ("index.dropped_items:DroppedItems.pairs", "after"),
    ("index.index:Index.remember_duplicate", "before"),
    ("index.index:Index.remember_duplicate", "after"),
    ("index.dropped_items:DroppedItems.make_room", "before"),
    ("index.dropped_items:DroppedItems.make_room", "after"),
    ("visits.drops:Drops.note", "after"),
    ("plugin.spider_middleware:DuplicateItem", "after"),
]


@pytest.mark.parametrize(
    ("place", "moment", "interval"), [(*step, (1, 100)[number // 2 % 2]) for number, step in enumerate(STEPS)]
)
def test_a_crash_at_any_step_of_a_drop_loses_no_item(site, tmp_path, place, moment, interval):
    """Before the batch of the drop the item is not dropped, and after it is stored."""
    urls = add_pairs(site, 4)
    crashed = stories(tmp_path, urls, CHECKPOINT_INTERVAL=interval, **faults(place, moment=moment, nth=3))
    assert crashed.exit_status == EXIT_STATUS
    dropped = [item["url"] for item in crashed.dropped]
    assert dropped == [urls[1], urls[3]]
    found = [item.url for item in stored(tmp_path)]
    assert found[:2] == dropped
    assert found[2:] in ([], [urls[5]])

    stories(tmp_path, urls)
    done(tmp_path, "dropped", "-o", "feed.jsonl")
    assert set(urls_of(tmp_path / "feed.jsonl")) == set(urls)


@pytest.mark.parametrize("place", ["stores.opened:OpenStore.write", "index.index:Index.remember_duplicate"])
def test_after_a_store_that_fails_at_a_drop_the_item_is_kept(site, tmp_path, place):
    urls = add_pairs(site, 4)
    nth = 2 if place.startswith("index") else 8
    outcome = stories(tmp_path, urls, **faults(place, nth=nth, kind="fail"))
    assert outcome.exit_status == 0
    dropped = [item["url"] for item in outcome.dropped]
    assert sorted(outcome.kept + dropped) == sorted(urls)
    assert outcome.kept[-2:] == urls[-2:]
    assert any("nothing is dropped" in line for line in outcome.problems)
    assert set(dropped) <= {item.url for item in stored(tmp_path)}
    # What was dropped rests on what is in the feed.
    assert set(urls_of(tmp_path / "feed.jsonl")) == {*urls} - {*dropped}
    assert release_all(tmp_path).problems == []


@pytest.mark.parametrize(
    ("spider", "said", "classes"),
    [
        ("Unstorable", "with a value of class scrapy.http.response.html.HtmlResponse cannot be stored", 5),
        ("Foreign", "sample_spiders_items.ForeignStory cannot be stored", 1),
    ],
)
def test_an_item_of_a_class_or_with_a_value_that_cannot_be_stored_is_kept(site, tmp_path, spider, said, classes):
    urls = add_pairs(site, 6)
    outcome = stories(tmp_path, urls, spider=spider, feed={})
    assert outcome.kept == urls
    assert outcome.stats["dedup/items/not_storable"] == 6
    assert len(outcome.problems) == classes  # one a class
    assert said in outcome.problems[0]
    assert re.search(r"duplicates not storable +6\n", outcome.log)
    assert outcome.record(urls[1])["reason"] == "item_not_storable"
    assert stored(tmp_path) == []


def test_what_is_compared_is_stored_so_that_a_copy_with_it_is_dropped(site, tmp_path):
    urls = add_pairs(site, len(KINDS))
    outcome = stories(tmp_path, urls, spider="Timed", feed={})
    assert outcome.kept == urls[::2]
    assert outcome.problems == []
    PROJECT.give(KINDS[1:])
    dropped = [item.item for item in stored(tmp_path)]
    assert [*map(type, dropped)] == KINDS
    assert all(ItemAdapter(item)["extra"] == Timed().extra(None) for item in dropped)


@pytest.mark.parametrize("spider", ["Unstorable", "Foreign", "PartlyStorable"])
def test_a_dry_run_and_tags_announce_only_what_a_drop_drops(site, tmp_path, spider):
    """An item that cannot be stored is kept, whatever the action; the warnings and the stats are the same."""
    bodies = [(article, blog)[copy](f"Story {n}", story(n)) for n in range(6) for copy in (0, 1)]
    urls = [site.add(f"/{n // 2}/{n % 2}", body, host=n % 2) for n, body in enumerate(bodies)]
    real, dry, tagged = (
        stories(tmp_path / action, urls, spider=spider, feed={}, DEDUP_ACTION=action)
        for action in ("drop", "dry-run", "tag")
    )

    def kept(outcome):
        return [(r["url"], r["verdict"], r["reason"], r["outcome"] == "kept") for r in outcome.records]

    assert kept(real) == kept(dry) == kept(tagged)
    assert real.stats["dedup/items/not_storable"] >= 4
    drops = real.stats.get("dedup/items/dropped", 0)
    assert dry.stats.get("dedup/items/would_drop", 0) == drops == (2 if spider == "PartlyStorable" else 0)
    for outcome in (dry, tagged):
        assert outcome.stats["dedup/items/not_storable"] == real.stats["dedup/items/not_storable"]
        cannot = [[line[20:] for line in each.problems if "cannot be stored" in line] for each in (outcome, real)]
        assert cannot[0] == cannot[1] != []


def test_an_item_whose_class_is_gone_is_released_as_a_dict_and_kept_when_it_comes_again(site, tmp_path):
    a, b = add_pairs(site, 1)
    stories(tmp_path, [a, b], spider="Passing")
    done(tmp_path, "allow", "--all")
    outcome = release_all(tmp_path)
    assert (outcome.kept, outcome.problems) == ([b], [])
    assert stories(tmp_path, [a, b], spider="Passing").kept == [a, b]


def test_an_item_that_cannot_be_read_any_more_costs_no_other(site, tmp_path):
    """It stays in the store, and the crawl goes on."""
    urls = add_pairs(site, 3)
    stories(tmp_path, urls)
    done(tmp_path, "allow", "--all")
    # Each is read twice: to find out whether a feed wants it, and to release it.
    outcome = release_all(tmp_path, **faults("index.item_codec:decode", nth=4, kind="bug"))
    assert outcome.exit_status == 0
    assert outcome.kept == [urls[1], urls[5]]
    assert [item.url for item in stored(tmp_path)] == [urls[3]]
    assert release_all(tmp_path).kept == [urls[3]]


@pytest.mark.parametrize(
    "place",
    [
        "driver.releases:Releaser.visit",
        "driver.releases:Releaser.released",
        "index.index:Index.page",
        "index.index:Index.commit",
        "driver.deduplicator:Deduplication.enter",
        "driver.deduplicator:Deduplication.released_item_left",
        "visits.durability:Durability.delete_when_durable",
    ],
)
def test_a_defect_of_ours_in_a_release_loses_no_item(site, tmp_path, place):
    """It is released by this crawl or by the next one."""
    urls = add_pairs(site, 2)
    stories(tmp_path, urls)
    done(tmp_path, "allow", "--all")
    outcome = release_all(tmp_path, **faults(place, kind="bug"), CHECKPOINT_INTERVAL=1)
    assert outcome.exit_status == 0
    assert "ZeroDivisionError" in outcome.log
    release_all(tmp_path)
    assert set(urls_of(tmp_path / "feed.jsonl")) == set(urls)
    assert stored(tmp_path) == []
