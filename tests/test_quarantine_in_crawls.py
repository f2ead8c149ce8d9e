"""Crawls and their quarantine: every dropped item is in it, and comes back."""

from __future__ import annotations

import csv
import json
import shutil
from dataclasses import asdict

import pytest
from crawling import IN_ORDER, run_job, store_uri, write_job
from fault_injection import EXIT_STATUS
from itemadapter import ItemAdapter
from local_site import Site
from prose import article, blog, story
from sample_spiders_quarantine import KINDS
from test_commands import run_here
from test_taking_back import filled
from test_two_witnesses import visit

from dedup_middleware import open_quarantine
from dedup_middleware.delivery.item_codec import name_of

FEED = {"FEEDS": {"feed.jsonl": {"format": "jsonlines"}}}
FILE = "records.quarantine"


def add_pairs(site, count):
    """Serve *count* stories on one host and their reposts on another, and return the addresses, a pair at a time."""
    return [
        address
        for n in range(count)
        for address in (
            site.add(f"/story{n}", article(f"Story {n}", story(n))),
            site.add(f"/repost{n}", blog(f"Story {n}", story(n)), host=1),
        )
    ]


def stories(folder, urls, *, spider="Stories", plugin=True, feed=FEED, **settings):
    command = write_job(
        folder,
        f"sample_spiders_quarantine.{spider}",
        urls=",".join(urls),
        plugin=plugin,
        settings=IN_ORDER | feed | settings,
    )
    return run_job(folder, command)


def lines(path):
    return sorted(path.read_text(encoding="utf8").splitlines())


def urls_of(path):
    return [json.loads(line)["url"] for line in path.read_text(encoding="utf8").splitlines()]


def quarantined(folder):
    with open_quarantine(folder / FILE) as quarantine:
        return list(quarantine)


def dedup(folder, *arguments):
    log = folder / "records.jsonl"
    return run_here(*arguments, "-s", f"DEDUP_STORE={store_uri(folder)}", "-s", f"DEDUP_LOG={log}", folder=folder)


def restore(folder, *arguments):
    done = dedup(folder, "restore", *arguments)
    assert done.exit_status == 0, done.err
    return done


def test_what_is_delivered_and_what_is_restored_are_what_there_was(site, tmp_path):
    urls = add_pairs(site, len(KINDS))
    without = stories(tmp_path / "without", urls, plugin=False)
    folder = tmp_path / "with"
    outcome = stories(folder, urls)
    assert outcome.delivered == urls[::2]
    kept = quarantined(folder)
    assert [item.type for item in kept] == [name_of(kind) for kind in KINDS]
    assert [type(item.item) for item in kept] == KINDS
    assert [item.url for item in kept] == urls[1::2]
    assert [item.owner_url for item in kept] == urls[::2]
    assert {item.host for item in kept} == {"127.0.0.2"}

    assert "5 dropped items written to feed.jsonl" in restore(folder, "--all", "-o", "feed.jsonl").out
    assert lines(folder / "feed.jsonl") == lines(without.folder / "feed.jsonl")
    assert quarantined(folder) == []

    corrections = dedup(folder, "corrections", "--json").out
    told_apart = [(c["url"], c["owner_url"]) for c in map(json.loads, corrections.splitlines())]
    assert sorted(told_apart) == sorted(zip(urls[1::2], urls[::2], strict=True))
    (folder / "items.jsonl").unlink()
    again = stories(folder, urls)
    assert again.delivered == urls
    assert quarantined(folder) == []


@pytest.fixture(scope="module")
def restorable(tmp_path_factory):
    """A crawl that has dropped three items, each for another owner, and a later one that has dropped a fourth."""
    site = Site()
    folder = tmp_path_factory.mktemp("restorable")
    urls = add_pairs(site, 4)
    stories(folder, urls[:6])
    stories(folder, urls[6:])
    yield folder, urls
    site.close()


@pytest.mark.parametrize(
    ("arguments", "numbers"),
    [
        (["--run", "last"], [7]),
        (["--host", "127.0.0.2"], [1, 3, 5, 7]),
        (["--host", "127.0.0.1"], []),
        (["--below", "0.1"], []),
        (["{3}"], [3]),
        (["--owner", "{4}"], [5]),
    ],
)
def test_what_is_wanted_is_chosen(restorable, tmp_path, arguments, numbers):
    crawled, urls = restorable
    folder = tmp_path / "copy"
    shutil.copytree(crawled, folder)
    restore(folder, *(a.format(*urls) for a in arguments), "-O", "out.jsonl")
    assert (urls_of(folder / "out.jsonl") if numbers else []) == [urls[n] for n in numbers]
    assert (folder / "out.jsonl").exists() == bool(numbers)
    assert [item.url for item in quarantined(folder)] == [u for u in urls[1::2] if urls.index(u) not in numbers]


def test_formats_are_those_of_scrapy(restorable, tmp_path):
    crawled, urls = restorable
    folder = tmp_path / "copy"
    shutil.copytree(crawled, folder)
    restore(folder, urls[1], "-o", "out.csv")
    with (folder / "out.csv").open(encoding="utf8", newline="") as file:
        assert [row["url"] for row in csv.DictReader(file)] == [urls[1]]
    shown = restore(folder, urls[3], "-o", "-:jsonlines")
    assert [json.loads(line)["url"] for line in shown.out.splitlines()] == [urls[3]]
    assert "1 dropped item written" in shown.err
    for wrong, said in (
        ("out.nope", "Unrecognized output format"),
        ("s3://b/out.csv", "is no file"),
        ("/dev/null/x.csv", "cannot be written"),
    ):
        dedup(folder, "restore", "--all", "-o", wrong).refused(said)
    assert [item.url for item in quarantined(folder)] == [urls[5], urls[7]]
    sums = json.loads(dedup(folder, "stats", "--json").out)
    assert (sums["quarantined"], sums["quarantine_bytes"]) == (2, (folder / FILE).stat().st_size)
    assert str(folder / FILE) in dedup(folder, "reset", "--log", "--yes").out
    assert not (folder / FILE).exists()


def test_items_that_cannot_be_written_stay_where_they_are(restorable, tmp_path):
    crawled, _ = restorable
    folder = tmp_path / "copy"
    shutil.copytree(crawled, folder)
    (folder / "out.bad").write_text("as before\n", encoding="utf8")
    exporters = json.dumps({"bad": "sample_spiders_quarantine.Stuttering"})
    done = dedup(folder, "restore", "--all", "-o", "out.bad", "-s", f"FEED_EXPORTERS={exporters}")
    done.refused("cannot be written as bad (the second item)")
    assert (folder / "out.bad").read_text(encoding="utf8") == "as before\n"
    assert len(quarantined(folder)) == 4


def test_a_drop_that_is_taken_back_leaves_nothing_to_restore(site, crawl):
    urls = filled(site)
    outcome = visit(crawl, urls)
    assert [item["url"] for item in outcome.dropped] == urls[1:3]
    assert set(outcome.delivered) == set(urls)
    assert quarantined(outcome.folder) == []


# --- what goes wrong


KEEP = "dedup_middleware.delivery.quarantine:Quarantine.keep"
WRITE_DOWN = "dedup_middleware.index.index:Index.remember_duplicate"


def crash_at(place, moment, nth):
    faults = {"at": [place], "nth": nth, "moment": moment, "kind": "exit"}
    return {"EXTENSIONS": {"fault_injection.FaultInjection": 0}, "FAULTS": faults}


@pytest.mark.parametrize("interval", [1, 100])
@pytest.mark.parametrize("place", [(KEEP, "before"), (KEEP, "after"), (WRITE_DOWN, "after")])
def test_after_a_crash_each_dropped_item_is_kept_and_comes_back_once(site, tmp_path, place, interval):
    urls = add_pairs(site, 4)
    crashed = stories(tmp_path, urls, DEDUP_SEAL_INTERVAL=interval, **crash_at(*place, nth=3))
    assert crashed.exit_status == EXIT_STATUS
    dropped = [item["url"] for item in crashed.dropped]
    assert dropped == [urls[1], urls[3]]
    assert [item.url for item in quarantined(tmp_path)][:2] == dropped

    stories(tmp_path, urls)  # in which the pages are seen again, and those of the journal
    restore(tmp_path, "--all", "-o", "feed.jsonl")
    fed = urls_of(tmp_path / "feed.jsonl")
    assert set(fed) == set(urls)
    if interval == 100:  # nothing of the first crawl was safe
        # The one that was kept, and not yet dropped, is so twice.
        assert sorted(fed) == sorted([*urls, *[urls[5]] * (place == (KEEP, "after"))])


def test_a_damaged_quarantine_costs_no_item_and_is_not_touched(site, tmp_path):
    urls = add_pairs(site, 2)
    (tmp_path / FILE).write_bytes(b"garbage" * 1000)
    outcome = stories(tmp_path, urls)
    assert outcome.delivered == urls
    (line,) = outcome.problems
    assert "the quarantine" in line
    assert "is damaged, or is something else" in line
    assert (tmp_path / FILE).read_bytes() == b"garbage" * 1000


def test_a_full_disk_costs_no_item(site, tmp_path):
    urls = add_pairs(site, 30)
    outcome = stories(tmp_path, urls, EXTENSIONS={"sample_spiders_quarantine.FullDisk": 1000})
    kept = [item.url for item in quarantined(tmp_path)]
    assert sorted(outcome.delivered + kept) == sorted(urls)
    assert outcome.delivered[-1] == urls[-1]
    (line,) = outcome.problems
    assert "database or disk is full" in line
    assert "make room on its disk" in line


def test_an_item_with_a_field_that_cannot_be_stored_is_dropped_and_stored_without_it(site, tmp_path):
    urls = add_pairs(site, 6)
    outcome = stories(tmp_path, urls, spider="Unkeepable", feed={})
    assert outcome.delivered == urls[::2]
    assert outcome.stats["dedup/items/stored_in_part"] == 6
    assert len(outcome.problems) == 5  # one a class
    assert "without 'extra' (scrapy.http.response.html.HtmlResponse)" in outcome.problems[0]
    items = [ItemAdapter(item.item) for item in quarantined(tmp_path)]
    assert [item["url"] for item in items] == urls[1::2]
    assert not any(item.get("extra") for item in items)


def test_an_item_of_a_class_that_cannot_be_stored_is_kept(site, tmp_path):
    urls = add_pairs(site, 2)
    outcome = stories(tmp_path, urls, spider="Foreign", feed={})
    assert outcome.delivered == urls
    assert outcome.stats["dedup/items/not_keepable"] == 2
    assert len(outcome.problems) == 1
    assert "sample_spiders_quarantine.ForeignStory cannot be stored" in outcome.problems[0]
    assert outcome.record(urls[1])["reason"] == "its item cannot be kept in the quarantine"


@pytest.mark.parametrize("setting", [{"DEDUP_QUARANTINE": 0}, {"DEDUP_STORE": "memory:", "DEDUP_LOG": ""}])
def test_without_a_quarantine_there_is_no_file(site, tmp_path, setting):
    urls = add_pairs(site, 1)
    outcome = stories(tmp_path, urls, **setting)
    assert outcome.delivered == urls[:1]
    assert not list(tmp_path.rglob("*quarantine*"))


def test_without_a_log_it_is_beside_the_store(site, tmp_path):
    stories(tmp_path, add_pairs(site, 1), DEDUP_LOG="")
    with open_quarantine(tmp_path / "store.quarantine") as quarantine:
        (item,) = quarantine
    assert asdict(item)["item"] == dict(item.item)
