"""Pages that come again, byte for byte, are not read again; the crawl gives what reading them gives."""

import shutil
from dataclasses import replace

import pytest
from crawling import FEED, run_job, stepped, store_uri, write_job
from library import contents_of
from local_site import Answer
from prose import article, blog, story
from test_commands import run_here
from test_crashes import again, fed, killed

from dedup_middleware import Deduplicator
from dedup_middleware.cli.explain import explain, explanation_text
from dedup_middleware.records.file import Records
from dedup_middleware.report.data import gather
from dedup_middleware.report.tuning import recorded
from dedup_middleware.settings import Config

#: Read under another limit, every page is read: no page of a test takes so long.
READ_ALL = {"CONSTANTS": {"dedup_middleware.common.budget:MAX_MILLISECONDS": 99_999}}


def unread_of(outcome):
    """Return how many pages were not read; of the last crawl in the folder."""
    return outcome.stats.get("dedup/unread", 0)


def story_of(outcome):
    """Return all that came of a crawl, but for times, names of crawls and what it cost."""
    records = [
        {k: v for k, v in record.items() if k not in ("time", "crawl", "original_crawl")} for record in outcome.records
    ]
    for record, told in zip(records, outcome.records, strict=True):
        # The page of a duplicate that is not read is not written again: where it is the match of an unchanged page,
        # its crawl is the one that dropped it first.
        if told["verdict"] == "duplicate":
            record["original_is_of_this_crawl"] = told["original_crawl"] == told["crawl"]
    stats = {k: v for k, v in outcome.stats.items() if k.startswith("dedup/") and k != "dedup/unread"}
    return outcome.items, outcome.dropped, records, stats


#: Pages of a `Site` that are visited twice, or thrice.
REPEATED = 4


class Site:
    """Pages of each kind, and steps that crawl them."""

    def __init__(self, site):
        self.site = site
        text = story(1)
        a = site.add("/a", article("a", text))
        self.copy = site.add("/copy", blog("copy", text), host=1)
        near = site.add("/near", article("near", [*text[:4], *story(2, 2)]), host=2)
        short = site.add("/short", article("short", story(3, 1)[:1]))
        parts = "".join(f"<div class='part'><p>{p}</p></div>" for p in story(4))
        listed = site.add("/list", f"<html><title>Of many things</title><body>{parts}</body></html>")
        print_view = site.add("/a/print", article("a", text))
        said = site.add("/said", article("said", story(5)))
        said_again = site.add("/said-again", blog("said", story(5)), host=1)
        links = site.add("/links", article("links", story(6), links=(self.copy,)))
        self.steps = [
            *({"url": url} for url in (a, self.copy, near, short)),
            {"url": listed, "callback": "parse_parts"},
            {"url": print_view},
            *({"url": url, "callback": "parse_text"} for url in (said, said_again)),
            {"url": links},
            {"url": a},
            {"url": self.copy, "callback": "parse_links"},
        ]


@pytest.fixture
def pages(site):
    return Site(site)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"DEDUP_SCOPE": "crawl", "DEDUP_ACTION": "tag"},
        {"DEDUP_PREFERRED": ["127.0.0.2"], "DEDUP_EXPIRE_AFTER": 3, "FEEDS": {}},
    ],
    ids=str,
)
def test_a_second_and_a_third_crawl_give_what_reading_everything_gives(pages, tmp_path, settings):
    stepped(tmp_path / "unread", pages.steps, **settings)
    # A page that changes, and one that is new, among those that do not.
    more = pages.site.add("/more", blog("more", story(6)), host=2)
    late = pages.site.add("/late", article("late", story(7)))
    later_steps = [*pages.steps, {"url": more}, {"url": late}]
    for turn in range(2):
        shutil.copytree(tmp_path / "unread", tmp_path / f"read{turn}")
        unread = stepped(tmp_path / "unread", later_steps, **settings)
        read = stepped(tmp_path / f"read{turn}", later_steps, **settings, **READ_ALL)
        assert story_of(unread) == story_of(read)
        # Those that are there twice are known again the second time.
        assert unread_of(read) <= REPEATED
        pages.site.add("/late", blog("late", story(8)))
        # An original of another crawl does not count under the scope ``crawl``, so it is read.
        assert unread_of(unread) > REPEATED or settings.get("DEDUP_SCOPE") == "crawl"


def test_a_crawl_of_unchanged_originals_writes_nothing(pages, tmp_path):
    steps = [step for step in pages.steps if "callback" not in step]
    first = stepped(tmp_path, steps)
    # Not the page that links to a duplicate.
    steps = [step for step in steps if step["url"] in first.kept and not step["url"].endswith("/links")]
    before = contents_of(store_uri(tmp_path))
    outcome = stepped(tmp_path, steps)
    assert contents_of(store_uri(tmp_path)) == before
    assert unread_of(outcome) == outcome.stats["dedup/pages"] == len(steps) > 2


@pytest.mark.parametrize(
    "changed",
    [
        Answer(article("a", story(1)) + "<!-- now -->"),
        Answer(article("a", story(1)), headers={"Content-Type": "text/html; charset=iso-8859-1"}),
    ],
    ids=["bytes", "encoding"],
)
def test_what_would_be_read_otherwise_is_read(site, tmp_path, changed):
    a = site.add("/a", article("a", story(1)))
    stepped(tmp_path, [{"url": a}])
    site.add("/a", changed)
    assert unread_of(stepped(tmp_path, [{"url": a}])) == 0
    assert unread_of(stepped(tmp_path, [{"url": a}])) == 1


def test_a_dropped_page_whose_original_is_gone_is_kept(site, tmp_path):
    a = site.add("/a", article("a", story(1)))
    copy = site.add("/copy", blog("copy", story(1)), host=1)
    stepped(tmp_path, [{"url": a}, {"url": copy}])
    site.add("/a", Answer("gone", 410))
    outcome = stepped(tmp_path, [{"url": a}, {"url": copy}])
    assert (outcome.kept, unread_of(outcome)) == ([copy], 0)
    assert unread_of(stepped(tmp_path, [{"url": copy}])) == 1


def test_a_duplicate_that_its_item_keeps_becomes_an_original_with_all_its_text(site, tmp_path):
    """The callback has changed the tree by then."""
    a = site.add("/a", article("a", story(1)))
    copy = site.add("/copy", blog("copy", story(1)), host=1)
    third = site.add("/third", blog("third", story(1)), host=2)
    stepped(tmp_path, [{"url": a}, {"url": copy}])
    steps = [{"url": copy, "callback": "strip_and_tell"}]
    outcome = stepped(tmp_path, steps)
    assert unread_of(outcome) == 0
    assert (outcome.kept, outcome.record(copy)["reason"]) == ([copy], "original_item_has_no_text")
    site.add("/a", Answer("gone", 410))
    outcome = stepped(tmp_path, [{"url": a}, {"url": third}])
    assert outcome.record(third)["original_url"] == copy


@pytest.mark.parametrize("callback", ["parse", "parse_text"])
def test_a_copy_is_not_read_again_while_its_original_is_as_it_was(site, tmp_path, callback):
    a = site.add("/a", article("a", story(1)))
    copy = site.add("/copy", article("copy", story(1)), host=1)
    steps = [{"url": url, "callback": callback} for url in (a, copy)]
    stepped(tmp_path, steps[:1])
    outcome = stepped(tmp_path, steps[1:])
    names = ("verdict", "outcome", "reason", "score", "evidence", "original_url", "text", "items_dropped")
    first = unread_of(outcome), outcome.dropped, [outcome.record(copy)[name] for name in names]
    outcome = stepped(tmp_path, steps)
    again = unread_of(outcome), outcome.dropped, [outcome.record(copy)[name] for name in names]
    assert (first[0], again[0]) == (0, 2)
    assert first[1:] == again[1:]
    # The same item is compared again once its original gives less, and so is another one.
    stepped(tmp_path, [{"url": a, "callback": "parse"}])
    outcome = stepped(tmp_path, steps[1:])
    assert (outcome.kept, unread_of(outcome)) == (([], 1) if callback == "parse" else ([copy], 0))
    if callback == "parse":
        outcome = stepped(tmp_path, [{"url": copy, "cb_kwargs": {"price": "12 euros"}}])
        assert (outcome.kept, unread_of(outcome)) == ([copy], 0)


def test_copies_are_compared_with_what_the_items_of_an_original_contain_now(site, tmp_path):
    a = site.add("/a", article("a", story(1)))
    copy = site.add("/copy", article("copy", story(1)), host=1)
    told = {"url": copy, "callback": "parse_text"}
    stepped(tmp_path, [{"url": a}])
    outcome = stepped(tmp_path, [{"url": a, "callback": "parse_text"}, told])
    assert unread_of(outcome) == 1
    assert [item["url"] for item in outcome.dropped] == [copy]
    # And again with less, from then on.
    assert unread_of(stepped(tmp_path, [{"url": a}])) == 1
    assert stepped(tmp_path, [told]).kept == [copy]


def test_what_an_unread_page_gives_to_another_feed_is_there_before_a_copy_is_dropped(site, tmp_path):
    """The feed of the first crawl did not take the item; that of the second did, and the process is killed."""
    a = site.add("/a", article("a", story(1)))
    copy = site.add("/copy", blog("copy", story(1)), host=1)
    stories = {"stories.jsonl": {"format": "jsonlines", "item_classes": ["sample_spiders.DataItem"]}}
    steps = [{"url": url, "cb_kwargs": {"kind": "dataclass"}} for url in (a, copy)]
    again(tmp_path, steps[:1])
    again(tmp_path, steps[:1])
    crashed = killed(tmp_path, site, steps, FEEDS={**FEED["FEEDS"], **stories})
    assert [item["url"] for item in crashed.dropped] == [copy]
    assert fed(crashed, "stories.jsonl") == [a]
    assert fed(again(tmp_path, [], FEEDS=stories), "stories.jsonl") == [a]


def test_an_original_that_comes_again_renews_its_lease(site, tmp_path):
    a = site.add("/a", article("a", story(1)))
    stepped(tmp_path, [{"url": a}], DEDUP_EXPIRE_AFTER=1)
    before = contents_of(store_uri(tmp_path))
    outcome = stepped(tmp_path, [{"url": a}], DEDUP_EXPIRE_AFTER=1)
    assert unread_of(outcome) == 1
    changed = {key[:1] for key, value in contents_of(store_uri(tmp_path)).items() if before.get(key) != value}
    assert changed == {b"p"}


def test_a_form_answers_each_question_with_its_own_page(site, tmp_path):
    start = site.add("/", "<html></html>")
    for n in range(2):
        site.add(f"/search story={n}", article("Result", story(n)))
    forms = [{"url": site.url("/search"), "story": n} for n in range(2)]
    steps = [{"url": start, "callback": "post_form", "cb_kwargs": form} for form in forms]
    for expected in (0, 2):
        command = write_job(tmp_path, "test_sample_spiders.Everything", steps=steps, settings=FEED, afresh=True)
        outcome = run_job(tmp_path, command)
        assert unread_of(outcome) == expected
        assert len([item for item in outcome.items if item["url"] != "from start"]) == 2


def config_of(folder):
    return Config.from_settings({"DEDUP_STORE": store_uri(folder), "DEDUP_LOG": str(folder / "records.jsonl")}, None)


def view(folder, *command):
    """Return the output of a command on the store and the log in *folder*."""
    named = "-s", f"DEDUP_STORE={store_uri(folder)}", "-s", f"DEDUP_LOG={folder / 'records.jsonl'}"
    output = run_here(*command, *named, folder=folder)
    assert output.exit_status == 0, output.err
    return output.out


#: What a record has of a verdict.
VERDICT = ("original_url", "score", "reason", "message", "title", "text", "original_text")


def near_misses(config):
    """Return the URLs, the reasons and the texts of the near misses of a report."""
    report = gather(config)
    columns, tables = report.summary["pairs"]["columns"], report.summary["pairs"]["tables"]
    rows = zip(columns["url"], columns["reason"], report.details, strict=True)
    rows = [(url, tables["reason"][reason], detail["texts"]) for url, reason, detail in rows]
    return rows[len(rows) - report.summary["near"]["pages"] :]


@pytest.mark.parametrize("settings", [{}, READ_ALL], ids=["unread", "read"])
def test_the_verdict_on_an_unchanged_page_stands_in_each_view(site, tmp_path, settings):
    """Also where the records of the crawl that made it are gone: then without the evidence."""
    text = story(1)
    a = site.add("/a", article("a", text))
    near = site.add("/near", article("near", [*text[:4], *story(2, 2)]), host=2)
    steps = [{"url": a}, {"url": near}]
    first = stepped(tmp_path, steps)
    assert first.record(near)["verdict"] == "related"
    for is_first in (True, False):
        outcome = stepped(tmp_path, steps, **settings)
        assert unread_of(outcome) == (0 if settings and is_first else 2)
        record = outcome.record(near)
        assert (record["verdict"], record["outcome"]) == ("unchanged", "kept")
        assert {name: record[name] for name in VERDICT} == {name: first.record(near)[name] for name in VERDICT}
        assert record["reason"] == "below_threshold"
        assert not record["evidence"]

        config = config_of(tmp_path)
        assert explain(config, near)["record"]["reason"] == "below_threshold"
        assert "below_threshold" in view(tmp_path, "explain", near)
        shown = view(tmp_path, "log", "--crawl", "last")
        assert shown.startswith("unchanged ")
        assert near in shown
        assert "below_threshold" in shown
        ((url, reason, texts),) = near_misses(config)
        assert (url, reason) == (near, "below_threshold")
        assert texts is not None
        (case,) = recorded(Records(config.log)).cases
        assert case.pair == (near, a)
    # The page that it shares text with is gone: the reason stands.
    view(tmp_path, "store", "forget", a, "--yes")
    record = stepped(tmp_path, steps[1:], **settings).record(near)
    assert (record["reason"], record["original_url"]) == ("below_threshold", None)


def test_a_verdict_is_never_shown_beside_a_newer_text(site, tmp_path):
    """Not of the page, nor of its original; here new pages have no records."""
    text, other = story(1), story(5)
    a = site.add("/a", article("a", text))
    b = site.add("/b", Answer(article("b", text)), Answer(article("b", story(3))), host=1)
    c = site.add("/c", Answer(article("c", other)), Answer(article("c", story(4))))
    near = site.add("/near", article("near", [*other[:4], *story(2, 2)]), host=2)
    log = tmp_path / "kept.jsonl"
    steps = [{"url": url} for url in (a, b, c, near)]
    config = replace(config_of(tmp_path), log=log)
    first = stepped(tmp_path, steps, DEDUP_LOG=f"{log}?new=0")
    assert [item["url"] for item in first.dropped] == [b]
    texts = [detail["texts"] for detail in gather(config).details]
    assert len(texts) == 2
    assert None not in texts
    assert "Last record:" in explanation_text(explain(config, b))

    # A page that the store has would be recorded as changed.
    view(tmp_path, "store", "forget", b, "--yes")
    second = stepped(tmp_path, steps, DEDUP_LOG=f"{log}?new=0")
    assert b in second.kept
    report = gather(config)
    assert [detail["texts"] for detail in report.details] == [None, None]
    assert all(detail["evidence"] for detail in report.details)
    shown = explanation_text(explain(config, b))
    assert "Last record, of an earlier text:" in shown
    assert "as an original" in shown
    # The verdict on this page stands: its text has not changed. The evidence is in the record of that verdict.
    assert explain(config, near)["record"]["evidence"]
    shown = explanation_text(explain(config, near))
    assert "Last record:" in shown
    assert "below_threshold" in shown


def test_a_change_too_short_for_a_clause_is_one(tmp_path):
    """The clauses of the page are as they were; it is compared with other pages afresh."""
    text = story(1)
    for number, minutes in enumerate((20, 20, 30)):
        dedup = Deduplicator(store_uri(tmp_path), log=tmp_path / "records.jsonl")
        with dedup:
            dedup.add("http://a.test/", article("a", text))
            dedup.add("http://b.test/", article("b", [*text[:4], *story(2, 2), f"{minutes} min"]))
        record = [each for each in Records(tmp_path / "records.jsonl") if each.url == "http://b.test/"][-1]
        assert record.verdict == ("related", "unchanged", "changed")[number]
        assert record.reason == "below_threshold"
