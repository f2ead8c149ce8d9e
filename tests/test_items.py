"""What becomes of items: of every type, one or several on a page, of pages and of JSON."""

import json

import pytest
from local_site import Answer
from prose import article, blog, headline, several, story, zh_story
from sample_spiders import ITEM_TYPES, TAGGABLE, UNTAGGABLE

TAG = {"DEDUP_ACTION": "tag"}
DRY_RUN = {"DEDUP_ACTION": "dry-run"}


def serve_json(site, path, entries, host=0):
    return site.add(path, Answer(json.dumps(entries), headers={"Content-Type": "application/json"}), host=host)


def entry(number, url="", tell=story):
    told = tell(number)
    return {"url": url or f"item{number}", "title": headline(f"Story {number}", told), "text": "\n".join(told)}


# --- actions


def test_tag_puts_the_verdict_on_every_item_whose_type_allows(site, crawl):
    firsts, copies = (
        {kind: site.add(f"/{n}", page("Copy", story(n)), host=host) for n, kind in enumerate(ITEM_TYPES)}
        for host, page in enumerate((article, blog))
    )
    pages = [*firsts.items(), *copies.items()]
    outcome = crawl(
        "sample_spiders.Steps", steps=[{"url": url, "cb_kwargs": {"kind": kind}} for kind, url in pages], settings=TAG
    )
    items = {i["url"]: i for i in outcome.items}

    assert outcome.kept == [url for _, url in pages]
    for kind in TAGGABLE:
        assert items[firsts[kind]]["dedup"] == {"original_url": None, "score": None, "verdict": "new"}
        assert items[copies[kind]]["dedup"] == {"original_url": firsts[kind], "score": 1.0, "verdict": "duplicate"}
    assert all(not items[url].get("dedup") for kind, url in pages if kind in UNTAGGABLE)
    assert {r["url"]: (r["original_url"], r["outcome"]) for r in outcome.records} == {
        url: (firsts[kind], "tagged" if kind in TAGGABLE else "kept") for kind, url in copies.items()
    }
    assert outcome.stats["dedup/items/tagged"] == len(TAGGABLE)
    assert outcome.stats["dedup/items/tag_refused"] == 2 * len(UNTAGGABLE)
    assert outcome.dropped == []
    assert len(outcome.problems) == len(UNTAGGABLE)
    (warning,) = [line for line in outcome.problems if "items of class sample_spiders.Item cannot be tagged" in line]
    assert "declare a field 'dedup' in it (scrapy.Field() in an Item" in warning
    assert f"items that cannot be tagged         {2 * len(UNTAGGABLE)}" in outcome.log.partition("dedup summary")[2]


def test_to_the_last_a_tagged_duplicate_repeats_the_first_page(site, crawl):
    first = site.add("/first", article("First", story(1)))
    copies = [site.add(f"/{n}", blog("Copy", story(1)), host=1) for n in range(3)]
    outcome = crawl("sample_spiders.Steps", steps=[{"url": url} for url in (first, *copies)], settings=TAG)

    assert {r["url"]: (r["original_url"], r["outcome"]) for r in outcome.records} == dict.fromkeys(
        copies, (first, "tagged")
    )


@pytest.mark.parametrize("kind", sorted({*ITEM_TYPES} - {"dict"}))
def test_an_item_of_another_class_is_another_item(site, crawl, kind):
    first = site.add("/first", article("First", story(1)))
    again = site.add("/again", blog("First", story(1)), host=1)
    outcome = crawl("sample_spiders.Steps", steps=[{"url": first}, {"url": again, "cb_kwargs": {"kind": kind}}])

    assert (outcome.kept, outcome.dropped) == ([first, again], [])
    # Where fields are named, these are all that counts.
    steps = [{"url": first}, {"url": again, "cb_kwargs": {"kind": kind}}]
    named = crawl("sample_spiders.Steps", steps=steps, settings={"DEDUP_ITEM_FIELDS": ["title"]})
    assert named.kept == [first]


@pytest.mark.every_scrapy
def test_a_request_may_ask_for_something_else(site, crawl):
    added = "Nobody has asked the gulls what they think of it, nor will anybody ask them."
    nine_of_ten = [*story(1, paragraphs=10)[:9], added]
    first = site.add("/first", article("First", story(1, paragraphs=10)))
    asked = {
        "/off": False,
        "/tag": {"action": "tag"},
        "/dry-run": {"action": "dry-run"},
        "/on": True,
        "/default": {},
        "/nonsense": "please",
        "/nonsense-action": {"action": "delete"},
        "/nonsense-keep": {"keep": "high"},
        "/nonsense-key": {"threshold": 0.9},
    }
    urls = {path: site.add(path, article("Copy", nine_of_ten), host=1) for path in asked}
    steps = [{"url": first}, *({"url": urls[path], "meta": {"dedup": value}} for path, value in asked.items())]
    outcome = crawl("sample_spiders.Steps", steps=steps)
    verdicts = {path: outcome.verdicts[url] for path, url in urls.items()}

    assert [i["url"] for i in outcome.dropped] == [urls["/on"], urls["/default"]]
    assert outcome.kept == [first, *(u for p, u in urls.items() if p not in ("/on", "/default"))]
    assert verdicts["/off"] == ("unchecked", "kept")
    assert verdicts["/tag"] == ("duplicate", "tagged")
    assert verdicts["/dry-run"] == ("duplicate", "would_drop")
    assert [i["url"] for i in outcome.items if "dedup" in i] == [urls["/tag"]]
    nonsense = [p for p in asked if p.startswith("/nonsense")]
    assert {verdicts[p] for p in nonsense} == {("unchecked", "kept")}
    assert len(outcome.problems) == len(nonsense)
    for path, line in zip(nonsense, outcome.problems, strict=True):
        assert 'ERROR: dedup: meta["dedup"]' in line
        assert urls[path] in line
    assert "Traceback" not in outcome.log


# --- several items on a page

#: As long as a text, without a name: what a copy may have more, and what no item may be dropped with.
OWN_TEXT = (
    "Nobody in our street ever liked it, and neither did the gulls who live up there, but we shall miss the noise in "
    "spring and the old men who sat there all day long, and talked about the boats and the weather of the week."
)


def test_items_of_a_page_that_has_several_are_checked_one_by_one(site, crawl):
    old, older, new = story(1, 10), story(2, 10), [OWN_TEXT]
    first = site.add("/first", several("First", [old, older]))
    mixed = site.add("/mixed", several("Mixed", [old, new, older]), host=1)
    whole = site.add("/whole", several("Whole", [older, old]), host=1)
    steps = [{"url": url, "callback": "parse_parts"} for url in (first, mixed, whole)]
    outcome = crawl("sample_spiders.Steps", steps=steps)

    assert [(i["url"], i["text"]) for i in outcome.items] == [
        (first, " ".join(old)),
        (first, " ".join(older)),
        (mixed, " ".join(new)),
    ]
    assert [(i["url"], i["text"]) for i in outcome.dropped] == [
        (mixed, " ".join(old)),
        (mixed, " ".join(older)),
        (whole, " ".join(older)),
        (whole, " ".join(old)),
    ]
    assert outcome.record(mixed)["items_dropped"] == 2
    assert outcome.record(mixed)["items_kept"] == 1
    assert outcome.verdicts[mixed] == ("duplicate", "dropped")
    assert outcome.problems == []


def test_one_item_goes_with_its_page_and_pages_without_items_own_nothing(site, crawl):
    listed, told = story(1), story(2)
    overview = site.add("/list", article("List", listed, links=("/x",)))
    article_of_list = site.add("/article", article("Article", listed))
    copied_list = site.add("/article?view=list", article("Article", listed, links=("/y",)))
    first = site.add("/first", article("First", told))
    repost = site.add("/repost", blog("Repost", told), host=1)
    for path, number in (("/x", 8), ("/y", 9)):
        site.add(path, article(path, story(number)))
    steps = [
        {"url": overview, "callback": "parse_links"},
        {"url": article_of_list},
        {"url": copied_list, "callback": "parse_links"},
        {"url": first},
        {"url": repost},
    ]
    outcome = crawl("sample_spiders.Steps", steps=steps)
    # An item without text, and without a value of its own, goes with its page, for it is the only one.
    assert [item["url"] for item in outcome.dropped] == [repost]
    assert outcome.record(repost)["original_url"] == first
    # A list is no original, a list that repeats an article loses no items and its links come last.
    assert outcome.kept == [site.url("/x"), article_of_list, site.url("/y"), first]
    assert outcome.verdicts[copied_list] == ("duplicate", "links_last")
    assert outcome.stats["dedup/outlinks_last"] == 1
    assert outcome.problems == []


# --- items of pages that are no HTML

FIELDS = {"DEDUP_ITEM_FIELDS": ["title", "text"]}


def api_steps(urls, kind="dict", **more):
    return [{"url": url, "callback": "parse_api", "cb_kwargs": {"kind": kind}, **more} for url in urls]


@pytest.mark.parametrize(
    ("cap", "reason"),
    [
        ({"DEDUP_MAX_BYTES": 500}, "too_large"),
        ({"CONSTANTS": {"dedup_middleware.common.budget:MAX_CLAUSES": 5}}, "too_many_clauses"),
    ],
)
def test_an_item_that_costs_more_than_it_may_is_kept(site, crawl, cap, reason):
    one, copy = (serve_json(site, f"/{name}", [entry(1, name)]) for name in ("one", "copy"))
    outcome = crawl("sample_spiders.Steps", steps=api_steps([one, copy]), settings=FIELDS | cap)
    assert outcome.kept == ["one", "copy"]
    assert [r["reason"] for r in outcome.records] == ["items_checked", reason] * 2
    assert outcome.problems == []


def test_items_of_an_api_are_checked_by_their_fields(site, crawl):
    """For items of every type; and the same crawl on the same store keeps the same again."""
    kinds = list(ITEM_TYPES)
    feeds = {}
    for number, kind in enumerate(kinds):
        a, b = entry(number, f"{kind} a"), entry(number + 100, f"{kind} b", zh_story)
        # One response twice tells the same story: never compared with itself.
        one = serve_json(site, f"/{number}/one", [a, b, entry(number, f"{kind} twin")])
        copy = serve_json(site, f"/{number}/copy", [entry(number, f"{kind} copy"), entry(number + 200, f"{kind} new")])
        feeds[kind] = (one, copy)
    steps = [step for kind, urls in feeds.items() for step in api_steps(urls, kind)]
    outcome = crawl("sample_spiders.Steps", steps=steps, settings=FIELDS, folder="api")
    expected = [f"{kind} {name}" for kind in kinds for name in ("a", "b", "twin", "new")]
    assert sorted(outcome.kept) == sorted(expected)
    assert [i["url"] for i in outcome.dropped] == [f"{kind} copy" for kind in kinds]
    assert {i["type"] for i in outcome.dropped} == {"DuplicateItem"}
    assert len(outcome.drop_lines) == len(kinds)
    assert all("] INFO: Dropped:" in line for line in outcome.drop_lines)
    duplicate = [r for r in outcome.records if r["verdict"] == "duplicate"]
    assert [(r["url"], r["original_url"]) for r in duplicate] == [(copy, one) for one, copy in feeds.values()]
    assert all(r["evidence"] for r in duplicate)
    assert outcome.stats["dedup/items/dropped"] == len(kinds)
    assert outcome.problems == []

    again = crawl("sample_spiders.Steps", steps=steps, settings=FIELDS, folder="api", afresh=True)
    assert sorted(again.kept) == sorted(expected)
    assert len(again.dropped) == len(kinds)
    assert again.problems == []


@pytest.mark.parametrize("settings", [{}, TAG, DRY_RUN], ids=["drop", "tag", "dry-run"])
def test_items_that_cannot_be_read_are_kept(site, crawl, settings):
    a, b = (site.add(f"/{n}", page("A", story(1)), host=n) for n, page in enumerate((article, blog)))
    c = site.add("/c", article("C", story(2)))
    steps = [{"url": a}, *({"url": url, "callback": "parse_detached"} for url in (b, c))]
    outcome = crawl("sample_spiders.Steps", steps=steps, settings=settings | {"ITEM_PIPELINES": {}})
    assert outcome.stats["item_scraped_count"] == 5
    assert [problem for problem in outcome.problems if "cannot be tagged" not in problem] == []


def test_pages_of_a_spider_for_an_api_are_checked_as_pages(site, crawl):
    one = serve_json(site, "/one", [entry(1, "a")])
    page = site.add("/page", article("Page", story(2)), host=1)
    copy = site.add("/copy", blog("Copy", story(2)), host=2)
    # The API repeats it, and a page repeats the API.
    two = serve_json(site, "/two", [entry(2, "b")])
    told = site.add("/told", article("Told", story(1)), host=1)
    first, second = api_steps([one, two])
    pages = [{"url": url, "callback": "parse_text"} for url in (page, copy, told)]
    steps = [first, *pages[:2], second, pages[2]]
    outcome = crawl("sample_spiders.Steps", steps=steps, settings=FIELDS)
    assert outcome.kept == ["a", page]
    assert [i["url"] for i in outcome.dropped] == [copy, "b", told]
    assert outcome.record(copy)["original_url"] == outcome.record(two)["original_url"] == page
    assert outcome.record(told)["original_url"] == one
    assert outcome.problems == []
