"""The second crawl tells what is new, changed and unchanged, and may drop what is unchanged."""

import json
import re

import msgspec
import pytest
from crawling import run_scrapy, stepped
from local_site import Answer
from prose import article, blog, story

from dedup_middleware import Deduplicator
from dedup_middleware.checks.page_changes import changes_between
from dedup_middleware.cli.changes import change_lines
from dedup_middleware.model import Changes
from dedup_middleware.records.file import RecordedChanges

URL = "http://news.example/story"
TEXT = story(1)


def page(text=None, *, title="The bridge is closed", menu="", below=""):
    body = "".join(f"<p>{p}</p>" for p in text or TEXT)
    return (
        f"<html><head><title>{title}</title></head><body><nav><a href='/'>Home</a>{menu}</nav>"
        f"<main><article><h1>Bridge</h1>{body}</article></main>{below}</body></html>"
    )


def verdict_of(before, now):
    with Deduplicator() as dedup:
        assert dedup.add(URL, before).verdict == "new"
        return dedup.add(URL, now).verdict


COMMENTS = "<section class='comments'><h3>Comments (12)</h3><p>I was there myself, and saw it all happen.</p></section>"


@pytest.mark.parametrize(
    "now",
    [
        page([TEXT[0].replace(TEXT[0].split()[5], "elsewhere", 1), *TEXT[1:]]),
        page(TEXT[1:]),
        page([*TEXT, "The last sentence was written today."]),
        page([*TEXT[1:], TEXT[0]]),
        page(title="The bridge is open"),
        page().replace("<h1>Bridge</h1>", "<h1>Ferry</h1>"),
        page([f"{TEXT[0]} <img src='/map.png'>", *TEXT[1:]]),
        page([f"{TEXT[0]} It cost 12 million €.", *TEXT[1:]]),
    ],
    ids=["word", "deleted", "added", "moved", "title", "heading", "picture", "number"],
)
def test_what_the_content_shows_is_a_change(now):
    assert verdict_of(page(), now) == "changed"


@pytest.mark.parametrize(
    ("was", "now"),
    [("12 million €", "14 million €"), ("-5 °C", "5 °C"), ("3 : 1", "1 : 3"), ("114/2024", "141/2024")],
)
def test_one_number_or_symbol_is_a_change(was, now):
    before = page([f"It was {was} in the end, as they had said.", *TEXT])
    assert verdict_of(before, before.replace(was, now)) == "changed"


@pytest.mark.parametrize(
    "now",
    [
        page(menu="<a href='/sport'>Sport</a>"),
        page(below="<footer>1,204 views. Updated 12 May 2026 10:14</footer>"),
        page(below=COMMENTS),
        page(below="<aside><a href='/other'>Another story that many read</a></aside>"),
        page().replace("<p>", "<p class='big'>"),
    ],
    ids=["menu", "footer", "comments", "teasers", "markup"],
)
def test_what_stands_around_the_content_is_none(now):
    assert verdict_of(page(), now) == "unchanged"


def test_an_icon_is_read_with_the_content_beside_it_and_not_with_the_frame():
    icons = "<div><i class='icon-share'></i><i class='icon-like'></i></div>"
    before = page(below=icons + COMMENTS)
    assert verdict_of(before, before.replace("Comments (12)", "Comments (13)")) == "unchanged"
    assert verdict_of(before, before.replace("icon-like", "icon-liked")) == "changed"


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("1 hour ago", "2 hours ago"),
        ("Posted yesterday", "Posted 2 days ago"),
        ("Just now", "vor 5 Minuten"),
        ("3小时前", "昨天"),
    ],
)
def test_an_age_by_itself_is_none(was, now):
    before = page([*TEXT[:3], was, *TEXT[3:]])
    assert verdict_of(before, before.replace(was, now)) == "unchanged"


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("Deadline: 9 May", "Deadline: 30 June"),
        ("Saturday 9 May 2026", "Saturday 16 May 2026"),
        ("Open 10:00 - 18:00", "Open 12:00 - 16:00"),
        ("Price: 20 euros", "Price: 25 euros"),
        ("12 members", "14 members"),
        ("2 days", "3 days"),
        ("今天12度", "今天15度"),
    ],
)
def test_any_other_line_of_the_text_is_one_with_both_wordings(was, now):
    before = page([*TEXT[:3], was, *TEXT[3:]])
    with Deduplicator() as dedup:
        dedup.add(URL, before)
        found = dedup.add(URL, before.replace(was, now))
    assert found.verdict == "changed"
    assert found.changes.replaced == [(was, now)]


def test_a_change_is_named_in_sentences():
    before = ["It rained all day.", "12 people came.", "Nobody had expected that.", "The mayor spoke."]
    now = ["It rained all day.", "14 people came.", "The mayor spoke.", "Trams were late, too."]
    assert changes_between(before, now) == Changes(
        inserted=("Trams were late, too.",),
        deleted=("Nobody had expected that.",),
        replaced=(("12 people came.", "14 people came."),),
    )


def test_the_difference_of_a_long_sentence_is_in_what_is_recorded():
    before, after = (" ".join(f"{name}{n}" for n in range(60)) for name in ("word", "more"))
    long = f"They said that {before} cost 12 EUR {after}."
    with Deduplicator() as dedup:
        dedup.add(URL, page([long, *TEXT]))
        changes = dedup.add(URL, page([long.replace("12 EUR", "14 EUR"), *TEXT])).changes
    ((old, new),) = changes.replaced
    assert "12 EUR" in old
    assert "14 EUR" in new
    assert len(old) <= 200


def test_a_changed_page_may_repeat_another():
    with Deduplicator() as dedup:
        dedup.add(URL, page())
        dedup.add("http://other.example/", page(story(2)))
        found = dedup.add(URL, page(story(2)))
        assert (found.verdict, found.original_url) == ("duplicate", "http://other.example/")
        assert found.changes.replaced


def test_a_page_that_is_made_of_what_other_pages_have_may_change_its_title():
    """That is too little to find another page by, not to compare the page with itself."""
    parts = [[story(100 + 5 * column + row, 1)[0] for row in range(5)] for column in range(4)]
    pages = {
        f"http://news.example/{step}/{first}": page([part[(step * n + first) % 5] for n, part in enumerate(parts)])
        for step in range(5)
        for first in range(5)
    }
    with Deduplicator() as dedup:
        for url, html in pages.items():
            last = dedup.add(url, html)
        assert (last.verdict, last.reason) == ("unchecked", "too_little_text")
        for url, html in pages.items():
            assert dedup.check(url, html.replace("The bridge is closed", "A farewell")).verdict == "changed"


# --- crawls


DROP = {"DEDUP_UNCHANGED": "drop"}


@pytest.fixture
def paper(site):
    """A paper of five pages; each call brings the steps of a crawl."""
    for n in range(5):
        site.add(f"/{n}", article(f"page {n}", story(n)))
    return lambda: [{"url": site.url(f"/{n}")} for n in range(5)]


@pytest.mark.every_scrapy
def test_with_drop_the_second_feed_has_what_is_new_or_changed(site, tmp_path, paper):
    first = stepped(tmp_path, paper(), **DROP)
    assert len(first.kept) == 5
    site.add("/1", article("page 1", [*story(1), "It was opened again today."]))
    # Another menu is no change.
    site.add("/2", article("page two", story(2)))
    new = site.add("/new", article("new", story(9)))
    second = stepped(tmp_path, [*paper(), {"url": new}], **DROP)
    assert second.kept == [site.url("/1"), new]
    assert sorted(item["url"] for item in second.dropped) == sorted(site.url(f"/{n}") for n in (0, 2, 3, 4))
    assert {item["why"] for item in second.dropped} == {f"{item['url']} is unchanged" for item in second.dropped}
    assert second.stats["dedup/items/dropped"] == 4
    (record,) = [r for r in second.records if r.get("verdict") == "changed"]
    assert record["url"] == site.url("/1")
    assert record["changes"]["inserted"] == ["It was opened again today."]
    assert not any(record["changes"][name] for name in ("deleted", "replaced", "shown_otherwise", "values"))
    assert second.stats["item_dropped_count"] == 4
    assert second.stats["dedup/unchanged_dropped"] == 4
    assert "dedup/items/dropped_for_earlier_crawls" not in second.stats
    assert re.search(r"^    unchanged, items dropped +4$", second.log, re.MULTILINE)
    assert re.search(r"^    kept +2$", second.log, re.MULTILINE)
    # A third crawl finds all of them as they were.
    third = stepped(tmp_path, [*paper(), {"url": new}], **DROP)
    assert third.kept == []
    assert len(third.dropped) == 6


@pytest.mark.parametrize("unchanged", ["keep", "drop", "tag"])
def test_a_value_of_the_item_is_one_whatever_happens_to_unchanged_pages(tmp_path, paper, unchanged):
    def found(**values):
        return stepped(tmp_path, [{**step, "cb_kwargs": values} for step in paper()], DEDUP_UNCHANGED=unchanged)

    found(price="12 EUR")
    other = found(price="14 EUR")
    changed = [r for r in other.records if r.get("verdict") == "changed"]
    assert len(changed) == len(other.kept) == 5
    assert all(r["changes"]["values"] == [("price", "12 EUR", "14 EUR")] for r in changed)
    assert len(found(price="14 EUR").kept) == (0 if unchanged == "drop" else 5)
    # One without it is another item, too.
    assert len(found().kept) == 5


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("<p>The pier is <del>not</del> open.</p>", "<p>The pier is not open.</p>"),
        ("<p>See <img src='/1.png'></p>", "<p>See <img src='/2.png'></p>"),
        ("...", "!!!"),
    ],
    ids=["struck", "picture", "no words"],
)
def test_an_item_whose_markup_has_changed_is_kept(tmp_path, paper, was, now):
    def steps(html):
        return [{**step, "cb_kwargs": {"html": html}} for step in paper()]

    stepped(tmp_path, steps(was), **DROP)
    assert stepped(tmp_path, steps(was), **DROP).kept == []
    found = stepped(tmp_path, steps(now), **DROP)
    assert len(found.kept) == 5
    changes = [record["changes"] for record in found.records if record.get("verdict") == "changed"]
    lines = [change_lines(msgspec.convert(each, RecordedChanges)) for each in changes]
    assert lines == [[f"html: {was} -> {now}"]] * 5


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("114/2024", "141/2024"),
        ("Open from 3 May 2026", "Open from 4 May 2026"),
        ("12 seats", "14 seats"),
        ("a - b", "a + b"),
    ],
)
def test_what_may_be_a_count_for_the_page_is_none_in_its_item(site, tmp_path, was, now):
    """Where an item has it, it is what the project wants."""

    def crawl(line):
        url = site.add("/a", article("a", [*story(1), line, *story(2, 1)]))
        return stepped(tmp_path, [{"url": url, "callback": "parse_text"}], **DROP)

    assert len(crawl(was).kept) == 1
    assert len(crawl(was).dropped) == 1
    assert len(crawl(now).kept) == 1
    assert len(crawl(now).dropped) == 1


def test_one_request_may_want_its_page_in_any_case(site, tmp_path, paper):
    stepped(tmp_path, paper(), **DROP)
    steps = paper()
    steps[2]["meta"] = {"dedup": {"unchanged": "keep"}}
    steps[3]["meta"] = {"dedup": False}
    assert stepped(tmp_path, steps, **DROP).kept == [site.url("/2"), site.url("/3")]


@pytest.mark.parametrize("settings", [{"DEDUP_UNCHANGED": "tag"}, {"DEDUP_ACTION": "tag"}])
def test_items_bear_what_became_of_their_page(site, tmp_path, paper, settings):
    stepped(tmp_path, paper(), **settings)
    site.add("/1", article("page 1", [*story(1), "It was opened again today."]))
    second = stepped(tmp_path, paper(), **settings)
    tags = {item["url"]: item.get("dedup", {}).get("verdict") for item in second.items}
    changed = "changed" if "DEDUP_ACTION" in settings else None
    assert tags == {site.url(f"/{n}"): changed if n == 1 else "unchanged" for n in range(5)}


# --- scrapy dedup changes


def kept(folder):
    """Return the option that names records which are kept from crawl to crawl."""
    return "-s", f"DEDUP_LOG={folder / 'kept.jsonl'}"


def logged(folder, steps, **settings):
    """Crawl *steps*, with records that are kept."""
    return stepped(folder, steps, **{"DEDUP_LOG": str(folder / "kept.jsonl"), **settings})


def changes(folder, *options):
    """Return the paths of each kind of change."""
    shown = run_scrapy(folder, "dedup", "changes", "--json", *kept(folder), *options)
    assert shown.returncode == 0, shown.stderr
    found = {}
    for line in shown.stdout.splitlines():
        change = json.loads(line)
        found.setdefault(change["change"], set()).add("/" + change["url"].rpartition("/")[2])
    return found


@pytest.mark.every_scrapy
def test_changes_names_what_became_of_each_page(site, tmp_path, paper):
    logged(tmp_path, paper())
    alone = run_scrapy(tmp_path, "dedup", "changes", *kept(tmp_path))
    assert (alone.returncode, "no two crawls" in alone.stderr) == (3, True)
    site.add("/1", article("page 1", [*story(1), "It was opened again today."]))
    site.add("/2", Answer("gone", status=404))
    site.add("/new", article("new", story(9)))
    copy = site.add("/copy", blog("copy", story(9)), host=1)
    urls = [*map(site.url, ("/0", "/1", "/2", "/new")), copy]
    steps = [{"url": url, "meta": {"handle_httpstatus_list": [404]}} for url in urls]
    logged(tmp_path, steps)
    assert changes(tmp_path, "--since", "last") == changes(tmp_path)
    expected = {
        "new": {"/new", "/copy"},
        "changed": {"/1"},
        "gone": {"/2"},
        "not seen": {"/3", "/4"},
        "unchanged": {"/0"},
    }
    assert changes(tmp_path) == expected
    shown = run_scrapy(tmp_path, "dedup", "changes", *kept(tmp_path)).stdout
    assert f"changed 1\n  {site.url('/1')}\n    + It was opened again today.\n" in shown
    assert "unchanged 1" in shown
    assert f"  {copy} repeats {site.url('/new')}\n" in shown
    # Over several crawls, a page is named by what became of it in all.
    logged(tmp_path, steps)
    assert changes(tmp_path) == {"unchanged": {"/0", "/1", "/new", "/copy"}, "not seen": {"/3", "/4"}}
    first = json.loads((tmp_path / "kept.jsonl").read_text().splitlines()[0])["crawl"]
    assert changes(tmp_path, "--since", first) == expected
    assert changes(tmp_path, "--since", first, "--host", "other.example") == {}
    target = tmp_path / "changes.jsonl"
    written = run_scrapy(tmp_path, "dedup", "changes", *kept(tmp_path), "--since", first, "-o", str(target))
    assert written.returncode == 0
    assert len(target.read_text().splitlines()) == 7


def test_what_has_vanished_since_a_crawl_was_not_seen_though_one_after_that_has_seen_it(tmp_path, paper):
    log = {"DEDUP_LOG": str(tmp_path / "kept.jsonl")}
    for pages in (5, 5, 3, 3):
        stepped(tmp_path, paper()[:pages], **log)
    first = json.loads((tmp_path / "kept.jsonl").read_text().splitlines()[0])["crawl"]
    vanished = {"unchanged": {"/0", "/1", "/2"}, "not seen": {"/3", "/4"}}
    assert changes(tmp_path, "--since", first) == vanished
    # A crawl that was stopped shows nothing of what it has not fetched.
    stepped(tmp_path, paper(), **log, CLOSESPIDER_PAGECOUNT=1)
    assert changes(tmp_path, "--since", first) == vanished
    stepped(tmp_path, paper(), **log)
    assert changes(tmp_path, "--since", first) == {"unchanged": {f"/{n}" for n in range(5)}}


def test_changes_names_what_is_gone_once_and_what_repeats_another_page_now(site, tmp_path, paper):
    copy = site.add("/copy", blog("copy", story(0)), host=1)
    steps = [*paper(), {"url": copy}, {"url": site.url("/gone"), "meta": {"handle_httpstatus_list": [404]}}]
    site.add("/gone", article("gone", story(8)))
    logged(tmp_path, steps)
    # One is a copy of another page now, one was a copy before.
    site.add("/4", article("page 3", story(3)))
    site.add("/copy", blog("own", story(7)), host=1)
    site.add("/gone", Answer("gone", status=404))
    logged(tmp_path, steps)
    expected = {"changed": {"/4", "/copy"}, "unchanged": {"/0", "/1", "/2", "/3"}}
    assert changes(tmp_path) == expected | {"gone": {"/gone"}}
    logged(tmp_path, steps)
    assert changes(tmp_path) == {"unchanged": {f"/{name}" for name in (0, 1, 2, 3, 4, "copy")}}


def test_a_crawl_that_was_stopped_does_not_say_what_was_not_seen(tmp_path, paper):
    logged(tmp_path, paper())
    logged(tmp_path, paper(), CLOSESPIDER_PAGECOUNT=2)
    assert "not seen" not in changes(tmp_path)


def test_without_records_of_new_pages_no_page_is_called_new_that_the_store_has(tmp_path, paper):
    for _ in range(2):
        logged(tmp_path, paper(), DEDUP_LOG=f"{tmp_path / 'kept.jsonl'}?new=0")
    assert changes(tmp_path) == {"unchanged": {f"/{n}" for n in range(5)}}
    assert "leaves out new pages" in run_scrapy(tmp_path, "dedup", "changes", *kept(tmp_path)).stderr


def test_a_change_is_written_with_its_field_and_both_wordings(site, tmp_path, paper):
    site.add("/5", article("page 5", ["It costs 20 euros.", *story(5)]))
    steps = [*paper(), {"url": site.url("/5")}]
    logged(tmp_path, [{**step, "cb_kwargs": {"price": 12}} for step in steps])
    site.add("/5", article("page 5", ["It costs 25 euros.", *story(5), "Seats are left."]))
    logged(tmp_path, [{**step, "cb_kwargs": {"price": 14, "seats": 3}} for step in steps])
    target = tmp_path / "changes.jsonl"
    assert run_scrapy(tmp_path, "dedup", "changes", *kept(tmp_path), "-o", str(target)).returncode == 0
    found = {line["url"]: line for line in map(json.loads, target.read_text().splitlines())}
    assert {line["change"] for line in found.values()} == {"changed"}
    of_items = [{"field": "price", "before": "12", "after": "14"}, {"field": "seats", "before": "", "after": "3"}]
    assert all(found[site.url(f"/{n}")]["changes"] == of_items for n in range(5))
    assert found[site.url("/5")]["changes"][-2:] == [
        {"field": "text", "before": "It costs 20 euros.", "after": "It costs 25 euros."},
        {"field": "text", "before": "", "after": "Seats are left."},
    ]
    shown = run_scrapy(tmp_path, "dedup", "changes", *kept(tmp_path)).stdout
    assert f"  {site.url('/0')}\n    price: 12 -> 14\n    seats: + 3\n" in shown


@pytest.mark.parametrize("scope", [{"DEDUP_SCOPE": "crawl"}, {"FEEDS": {"f.jsonl": {"overwrite": True}}}])
def test_where_no_earlier_page_counts_it_is_not_known_what_has_changed(site, tmp_path, paper, scope):
    copy = site.add("/copy", blog("copy", story(0)), host=1)
    for _ in range(2):
        outcome = logged(tmp_path, [*paper(), {"url": copy}], **DROP, **scope)
        assert len(outcome.kept) == 5
        site.add("/1", article("page 1", [*story(1), "It was opened again today."]))
    assert changes(tmp_path) == {"not compared": {*(f"/{n}" for n in range(5)), "/copy"}}
    shown = run_scrapy(tmp_path, "dedup", "changes", *kept(tmp_path))
    assert "not compared 6\nunchanged 0" in shown.stdout
    assert "is not known" in shown.stderr
    assert "DEDUP_UNCHANGED=drop has no effect in this scope" in outcome.log


def test_a_list_without_items_is_no_trouble(site, tmp_path, paper):
    front = site.add("/front", "<title>Front</title><a href='/0'>page 0</a>")
    for _ in range(2):
        logged(tmp_path, [*paper(), {"url": front, "callback": "parse_rss"}])
    shown = run_scrapy(tmp_path, "dedup", "changes", *kept(tmp_path))
    assert "not compared 1 (1 without items)\nunchanged 5" in shown.stdout
    assert shown.stderr == ""
