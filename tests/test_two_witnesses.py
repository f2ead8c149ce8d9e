"""Pages that share text and are different pages: each row is a crawl that lost stories while text alone decided."""

import pytest
from local_site import Answer
from prose import article, blog, page, story, zh_story


def visit(crawl, urls, callback="parse", **kwargs):
    return crawl("sample_spiders.Witnesses", steps=[{"url": url, "callback": callback} for url in urls], **kwargs)


# --- the page speaks


def test_a_site_whose_boilerplate_is_taken_for_its_text_loses_nothing_and_finds_its_copies(pages):
    about = "".join(f"<p>{paragraph}</p>" for paragraph in story(300, 8))
    told = [page(f"Post number {n} of this year", f"<p>Short {n}.</p>", below=f"<div>{about}</div>") for n in range(8)]
    urls = [pages.add(f"/post/{n}", each) for n, each in enumerate(told)]
    again = pages.add("/post/3?sid=7", told[3])
    verdicts = pages.checked([*urls, again])
    assert pages.kept(urls) == urls
    assert verdicts[again].original_url == urls[3]


@pytest.mark.parametrize("tell", [story, zh_story])
@pytest.mark.parametrize("edit", ["added", "removed", "mended"])
def test_a_version_of_a_story_on_its_host_is_dropped_if_it_only_leaves_out(pages, tell, edit):
    text = tell(1, 8)
    edited = {
        "added": [*text[:3], tell(2, 1)[0][:80] + ".", *text[3:]],
        "removed": [*text[:3], *text[4:]],
        "mended": [text[0].replace("district", "distrcit"), *text[1:]],
    }[edit]
    title = "".join(text[0][:70])
    first = pages.add("/story/17", page(title, *text))
    edition = pages.add("/story/17?edition=2", page(title, *edited))
    is_kept = edit == "added" or (edit == "mended" and tell is story)
    assert pages.kept([first, edition]) == [first, *[edition] * is_kept]


def test_other_look_alikes_do_not_hide_the_copies_of_one(pages):
    """What they share stays telling, and leads to the first; what each says itself leads to it."""
    text = story(7, 4)
    towns = ["Norwich", "Leeds", "Cardiff", "Bristol", "Glasgow", "York"]
    title = "Warehouse operative wanted in {} from next month"
    told = [page(title.format(town), f"We have a warehouse in {town}, and you could run it.", *text) for town in towns]
    urls = [pages.add(f"/jobs/{n}", each) for n, each in enumerate(told)]
    copies = [pages.add(f"/jobs/{n}?session=1", each) for n, each in enumerate(told)]
    mirrors = [pages.add(f"/m/{n}", each, host=1) for n, each in enumerate(told)]
    verdicts = pages.checked([*urls, *copies, *mirrors])
    assert {url: verdict.original_url for url, verdict in verdicts.items() if verdict.is_duplicate} == dict(
        zip([*copies, *mirrors], [*urls, *urls], strict=True)
    )


# --- its item speaks


def test_a_page_that_hides_stories_does_not_take_them(site, crawl):
    """Its item holds what a reader sees; the originals come later."""
    hidden = [story(n, 3) for n in range(10, 20)]
    shown = " ".join(story(1))
    thief = page("A page", shown, *(f"<div style='left:-9999px'><p>{' '.join(told)}</p></div>" for told in hidden))
    first = site.add("/thief", Answer(thief), host=1)
    urls = [site.add(f"/{n}", article("Original", told)) for n, told in enumerate(hidden)]
    steps = [{"url": first, "callback": "parse_first_paragraph"}, *({"url": u, "callback": "parse_text"} for u in urls)]
    outcome = crawl("sample_spiders.Witnesses", steps=steps)
    assert outcome.kept == [first, *urls]


def test_items_without_text_own_no_story(site, crawl):
    """The first site's template defeats the selector."""
    broken = [site.add(f"/{n}", blog("Broken", story(n))) for n in range(5)]
    good = [site.add(f"/{n}", article("Good", story(n)), host=1) for n in range(5)]
    copies = [site.add(f"/{n}", article("Copy", story(n)), host=2) for n in range(5)]
    steps = [{"url": u, "callback": "parse_article_text"} for u in [*broken, *good, *copies]]
    outcome = crawl("sample_spiders.Witnesses", steps=steps)
    assert outcome.kept == [*broken, *good]
    assert {r["reason"] for r in outcome.records if r["url"] in good} == {"original_item_has_no_text"}
    # The good ones own what they said.
    assert {r["url"]: r["original_url"] for r in outcome.records if r["url"] in copies} == dict(
        zip(copies, good, strict=True)
    )


TECHNICIAN = page("Service technician for lifts in the county", *story(3, 8))
TEXT = "\n".join(story(3, 8))
#: Items of pages with one text, and which of them are kept.
ITEMS = {
    "a city beside the text": ([{"text": TEXT, "city": city} for city in ("Leeds", "York", "Leeds")], "ab"),
    "a number that no page shows": ([{"serial": 10**9 + n} for n in range(3)], "abc"),
    "a key of its page": ([{"uid": 10**9 + n} for n in range(3)], "a"),
    "a price in its text": ([{"text": f"{TEXT} {price}"} for price in ("19.90", "24.90", "€ 24.90")], "abc"),
    "a paragraph that the original item lacks": ([{"text": TEXT.partition("\n")[2]}, {"text": TEXT}], "ab"),
    "a summary of the same text": ([{"summary": TEXT[:200]}] * 2, "a"),
    "the same text in other markup": ([{"html": page("One", *story(3, 8))}, {"html": blog("Two", story(3, 8))}], "a"),
    "the text of another page": ([{"html": page("One", *story(3, 8))}, {"html": page("One", *story(2))}], "ab"),
}


@pytest.mark.parametrize("name", ITEMS)
def test_what_only_an_item_has_keeps_it(pages, name):
    items, kept = ITEMS[name]
    urls = [pages.add(f"/jobs/{letter}", TECHNICIAN) for letter in "abcde"[: len(items)]]
    assert "".join(url[-1] for url in pages.kept(urls, dict(zip(urls, items, strict=True)))) == kept


@pytest.mark.parametrize(("field", "kept"), [("serial", "abc"), ("city", "a")])
def test_of_named_fields_every_value_counts_and_of_others_none(pages, field, kept):
    urls = [pages.add(f"/jobs/{letter}", TECHNICIAN) for letter in "abc"]
    items = {url: {"serial": 10**9 + n, "city": "Leeds"} for n, url in enumerate(urls)}
    assert "".join(url[-1] for url in pages.kept(urls, items, item_fields=[field])) == kept


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"wifi": "✓"}, {"wifi": "✗"}),
        ({"stars": "★★★☆☆"}, {"stars": "★★☆☆☆"}),
        ({"operator": "&&"}, {"operator": "||"}),
        ({"language": "C++"}, {"language": "C#"}),
        ({"change": "+5 %"}, {"change": "-5 %"}),
        ({"price": "40 €"}, {"price": "40 $"}),
        ({"price": "19.90"}, {"price": "24.90"}),
        ({"wifi": "yes", "parking": "no"}, {"wifi": "no", "parking": "yes"}),
    ],
)
def test_a_value_is_compared_to_the_symbol_and_by_its_field(pages, one, other):
    def told(values):
        rows = "".join(f"<dd class={name}>{value}</dd>" for name, value in values.items())
        return page("Rooms of the old harbour office by the quay", *story(3), below=f"<dl>{rows}</dl>")

    urls = [pages.add(f"/room.html{query}", told(values)) for query, values in (("", one), ("?r=2", other))]
    again = pages.add("/room.html?r=2&sid=1", told(other))
    items = {url: {"url": url, **values} for url, values in zip((*urls, again), (one, other, other), strict=True)}
    assert pages.kept([*urls, again], items) == urls


def test_a_word_of_the_url_is_content_and_a_word_for_a_view_is_not(site, crawl):
    # The last one is at another address: what its file is called is its own.
    named = ["leeds", "york", "print", "leeds/amp", "print-york.html"]
    leeds, york, *views = (site.add(f"/jobs/{name}", TECHNICIAN + "<a href=/print>print</a>") for name in named)
    outcome = visit(crawl, [leeds, york, *views], "parse_filename")
    assert outcome.kept == [leeds, york, views[-1]]


def test_a_title_is_checked_as_the_page_check_checks_it(pages):
    title = "The council rebuilds the old grain store"
    titles = (f"Harbour news: {title}", title, "The council sells the old grain store")
    urls = [
        pages.add(f"/{path}", page(name, *story(3)))
        for path, name in zip(("news", "amp/news", "sale"), titles, strict=True)
    ]
    items = {url: {"url": url, "title": name} for url, name in zip(urls, titles, strict=True)}
    assert pages.kept(urls, items) == [urls[0], urls[2]]


def test_what_an_item_says_beyond_its_page_is_known_in_the_next_crawl(site, crawl):
    """A store remembers what was kept, not what was on the page."""
    first = site.add("/first", article("First", story(1)))
    copies = [site.add(f"/{n}", blog("Copy", story(1)), host=n) for n in (1, 2)]
    given = [{"more": " ".join(story(2))}, {"more": " ".join(story(2))}, {"more": " ".join(story(3))}]
    steps = [
        {"url": url, "callback": "parse_text_and_more", "cb_kwargs": more}
        for url, more in zip((first, *copies), given, strict=True)
    ]
    crawl("sample_spiders.Witnesses", steps=steps[:1], folder="both")
    again = crawl("sample_spiders.Witnesses", steps=steps[1:], folder="both")
    assert again.kept == [first, copies[1]]


# --- what strangers found


def test_an_item_that_is_finished_on_a_page_of_terms_is_kept_however_long_these_are(site, crawl):
    terms = story(300, 20)
    steps = []
    for n in range(4):
        finish = site.add(f"/shipping?for={n}", page("Shipping and returns for all of our products", *terms))
        url = site.add(
            f"/product/{n}", page(f"Product {n}", *story(n, 2), f"<a class=next href='{finish}'>shipping</a>")
        )
        steps.append({"url": url, "callback": "begin_item", "cb_kwargs": {"finish": "finish_joined_item"}})
    outcome = crawl("sample_spiders.Witnesses", steps=steps)
    assert outcome.kept == [step["url"] for step in steps]


def test_sessions_in_a_path_lead_to_the_same_page(pages):
    told = page("Tram returns", *story(1))
    first = pages.add("/a/tram", told)
    copies = [
        pages.add(path, told) for path in ("/a/tram;jsessionid=AB12CD", "/(S(ab12))/a/tram", "/a/tram/index.html")
    ]
    assert pages.kept([first, *copies]) == [first]


def test_variants_that_only_a_script_shows_are_kept(site, crawl):
    title = "A tent for two in any weather of the year"
    told = [page(title, *story(3), below=f"<script>{{'sku': 'T-{n}'}}</script>") for n in range(3)]
    urls = [site.add(f"/tent?variant={n}", each) for n, each in enumerate(told)]
    session = site.add("/tent?variant=2&sid=1", told[2])
    outcome = visit(crawl, [*urls, session], "parse_sku")
    assert outcome.kept == urls
    assert outcome.record(urls[1])["difference"] == ["sku: T-1"]
