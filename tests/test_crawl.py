"""What a user of the one ADDONS line sees of a crawl."""

import pytest
from prose import article, blog, story, zh_story

pytestmark = pytest.mark.every_scrapy


@pytest.mark.parametrize("tell", [story, zh_story])
def test_a_repost_is_dropped_natively_with_its_original_and_evidence(site, crawl, tell):
    text = tell(1)
    first = site.add("/first", article("First", text))
    other = site.add("/other", article("Other", tell(2)))
    repost = site.add("/repost", blog("Repost", text), host=1)
    outcome = crawl("sample_spiders.OneByOne", urls=f"{first},{other},{repost}")

    assert [i["url"] for i in outcome.items] == [first, other]
    (dropped,) = outcome.dropped
    assert dropped["url"] == repost
    assert dropped["type"] == "DuplicateItem"
    (line,) = outcome.drop_lines
    assert f"[scrapy.core.scraper] INFO: Dropped: {repost} repeats {first} (score 1.00)" in line
    record = outcome.record(repost)
    assert (record["verdict"], record["outcome"], record["original_url"]) == ("duplicate", "dropped", first)
    assert record["score"] == 1.0
    assert all(any(sentence in paragraph for paragraph in text) for sentence in record["evidence"])
    assert record["evidence"]
    assert outcome.stats["item_dropped_count"] == 1
    assert outcome.stats["item_dropped_reasons_count/DuplicateItem"] == 1
    assert outcome.stats["item_scraped_count"] == 2
    assert outcome.stats["dedup/items/dropped"] == 1
    assert f"Crawled (200) <GET {repost}> (referer: {other}) ['dedup: duplicate 1.00']" in outcome.log
    assert outcome.problems == []
    assert outcome.exit_status == 0


@pytest.mark.parametrize("kind", ["sqlite", "memory"])
def test_a_repost_is_dropped_with_every_kind_of_store(site, crawl, tmp_path, kind):
    """The default kind is in all other tests; with these two, once, no original ever became durable."""
    first, repost = site.add("/a", article("A", story(1))), site.add("/b", blog("B", story(1)), host=1)
    store = "memory:" if kind == "memory" else f"sqlite:{tmp_path / 'own'}"
    outcome = crawl("sample_spiders.OneByOne", urls=f"{first},{repost}", settings={"DEDUP_STORE": store})
    assert (outcome.kept, [item["url"] for item in outcome.dropped]) == ([first], [repost])


def test_with_the_plugin_off_nothing_changes(site, crawl):
    text = story(1)
    urls = ",".join([site.add("/a", article("A", text)), site.add("/b", blog("B", text))])
    without = crawl("sample_spiders.OneByOne", urls=urls, plugin=False)
    off = crawl("sample_spiders.OneByOne", urls=urls, settings={"DEDUP_ENABLED": False, "DEDUP_ACTION": "?"})
    assert without.items == off.items
    assert off.dropped == []
    assert not (off.folder / "store").exists()


@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [
        ("DEDUP_THRESHOLD", "0.3", "DEDUP_THRESHOLD = '0.3' is not valid"),
        ("DEDUP_ACTION", "delete", 'DEDUP_ACTION = \'delete\' is not valid. Use "drop", "tag", "dry-run"'),
        ("DEDUP_STORE", "tarantool://:secret@db/0", "Use leveldb:PATH"),
    ],
)
def test_a_bad_setting_ends_the_crawl_before_its_first_request(site, crawl, setting, value, said):
    url = site.add("/a", article("A", story(1)))
    feed_settings = {"FEEDS": {"feed.json": {"format": "json", "overwrite": True}}}
    kept = crawl("sample_spiders.Articles", urls=url, settings=feed_settings, folder="bad")
    assert kept.exit_status == 0
    before = (kept.folder / "feed.json").read_text()
    requests = len(site.requests)
    (kept.folder / "log.txt").unlink()

    outcome = crawl("sample_spiders.Articles", urls=url, settings={setting: value, **feed_settings}, folder="bad")
    assert outcome.exit_status == 1
    assert len(site.requests) == requests
    (problem,) = [line for line in outcome.problems if "dedup" in line]
    assert said in problem
    assert "secret" not in outcome.log.split("Overridden settings")[-1].split("Enabled")[-1]
    assert "Traceback" not in outcome.log + outcome.stderr
    assert (kept.folder / "feed.json").read_text() == before
