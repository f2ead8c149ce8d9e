"""A host of which most pages repeat one page is told of at once."""

import shlex
from typing import Any

from crawling import run_scrapy
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from prose import article, blog, story
from test_two_witnesses import visit

from dedup_middleware.records.file import Record
from dedup_middleware.records.signs import MIN_PAGES, MIN_PAGES_OF_ANOTHER, Signs

NOTICE = story(1)


def shop(site, number):
    """Serve pages that take the shop's notice for their text, and return their URLs."""
    return [site.add(f"/shirt/{n}", blog("Shirt", NOTICE)) for n in range(number)]


def test_one_page_that_drops_most_of_a_host_is_told_of_while_the_crawl_runs(site, crawl):
    other = [site.add(f"/other/{n}", article("Other", story(50 + n))) for n in range(5)]
    urls = [*other, *shop(site, 25)]
    outcome = crawl("sample_spiders.Steps", steps=[{"url": url} for url in urls])
    assert len(outcome.dropped) == 24
    (warning,) = outcome.problems
    # At the twentieth page of the host, fourteen of which repeat the fifteenth.
    assert f"14 of 20 pages of 127.0.0.1 repeat {urls[5]}" in warning
    assert outcome.stats["dedup/hosts_with_one_original"] == 1
    lines = outcome.log.splitlines()
    # The line of the page that it comes with follows.
    assert sum("Dropped:" in line for line in lines[: lines.index(warning)]) == 13

    _, shows, _, allows, _ = warning.split("`")
    said = run_scrapy(outcome.folder, *shlex.split(shows)[1:], "--json")
    assert len(said.stdout.splitlines()) == 24
    said = run_scrapy(outcome.folder, *shlex.split(allows)[1:])
    assert said.stdout.startswith("Allowed 24 pages")


def mirrored(site, number):
    """Serve pages on two hosts, and return the steps of a crawl that fetches those of the first one first."""
    pairs = [
        (site.add(f"/{n}", article("A", story(n))), site.add(f"/{n}", blog("B", story(n)), host=1))
        for n in range(number)
    ]
    return [{"url": url} for pair in zip(*pairs, strict=True) for url in pair]


def test_a_host_that_only_repeats_another_is_told_of_once_with_the_setting(site, crawl):
    steps = mirrored(site, MIN_PAGES_OF_ANOTHER + 10)
    outcome = crawl("sample_spiders.Steps", steps=steps)
    (warning,) = outcome.problems
    assert "30 of 30 pages of 127.0.0.2 repeat pages of 127.0.0.1, which came first" in warning
    assert "DEDUP_PREFERRED = ['127.0.0.2']" in warning
    assert outcome.stats["dedup/hosts_that_repeat_another"] == 1
    _, shows, _ = warning.split("`")
    assert len(run_scrapy(outcome.folder, *shlex.split(shows)[1:], "--json").stdout.splitlines()) == 40
    for preferred, dropped in (("127.0.0.1", 40), ("127.0.0.2", 0)):
        outcome = crawl("sample_spiders.Steps", steps=steps, settings={"DEDUP_PREFERRED": [preferred]})
        assert (len(outcome.dropped), outcome.problems) == (dropped, [])


def told(signs: Signs, url: str, original: str | None = None, **fields: Any) -> list[dict[str, Any]]:
    """Return the signs that a page at *url* completes, a copy of *original* or a new page."""
    copy = {"verdict": "duplicate", "outcome": "dropped", "original_url": original, "items_dropped": 1, "score": 1.0}
    record = Record("", "news", "one", url, "new", items_kept=1)
    record = replace(record, **(fields or (copy if original else {})))
    signs.add(record)
    return [sign for _, sign in signs.of(record)]


@given(st.lists(st.sampled_from([None, "a", "b", "c"]), max_size=80))
def test_it_is_never_wrong_and_misses_no_original_that_most_pages_repeat(originals):
    signs, seen = Signs(), []
    reported = None
    for original in originals:
        seen.append(original)
        for sign in told(signs, "http://host/", original and f"http://host/{original}"):
            assert reported is None
            reported = original
            assert sign["pages"] == len(seen) >= MIN_PAGES
            assert sign["repeats"] == seen.count(original)
            assert 2 * sign["repeats"] > len(seen)
    for name in "abc":
        ends = [n for n in range(MIN_PAGES, len(seen) + 1) if seen[n - 1] == name and 2 * seen[:n].count(name) > n]
        assert not ends or reported is not None


def test_hosts_with_few_pages_are_forgotten():
    signs = Signs()
    for n in range(30_000):
        told(signs, f"http://host{n}/", "http://other/" if n % 2 else None)
    assert max(len(signs._pages), len(signs._originals)) <= 10_000
    many = [told(signs, "http://host/", "http://other/1") for _ in range(MIN_PAGES)]
    assert [sign["repeats"] for found in many for sign in found] == [MIN_PAGES]


def test_a_field_that_keeps_nearly_all_is_told_of_once():
    signs, kept = Signs(), {"verdict": "related", "reason": "item_field_differs", "difference": ["views: 7"]}
    said = [
        told(signs, f"http://host{n}/", **kept) if n % 15 else told(signs, f"http://host{n}/", f"http://other{n}/")
        for n in range(3 * MIN_PAGES)
    ]
    assert [sign for found in said for sign in found] == [{"field": "views", "kept": MIN_PAGES - 2, "pages": MIN_PAGES}]


def test_what_repeats_one_page_or_copies_with_low_scores_is_no_mirror():
    signs = Signs()
    for n in range(MIN_PAGES_OF_ANOTHER):
        assert signs.all()["mirrors"] == []
        told(signs, "http://one/", "http://other/1")
        copy = {"verdict": "duplicate", "outcome": "dropped", "original_url": f"http://other/{n}", "score": 0.85}
        told(signs, "http://two/", **copy)
        told(signs, "http://three/", f"http://other/{n}")
    found = signs.all()
    assert [sign["host"] for sign in found["one_original"]] == ["one"]
    assert [(sign["host"], sign["of"], sign["score"]) for sign in found["mirrors"]] == [("three", "other", 1.0)]


def test_a_field_that_keeps_every_duplicate_is_named_with_its_remedy(site, crawl):
    title, text = "The harbour council rebuilds the old grain store", story(1)
    told = "<html><title>{}</title><h1>{}</h1>{}<aside><span>{}</span> readers so far today</aside></html>"
    body = "".join(f"<p>{paragraph}</p>" for paragraph in text)
    pages = [told.format(title, title, body, 1000 + 7 * n) for n in range(MIN_PAGES + 1)]
    urls = [site.add(f"/story{f'?s{n}=1' if n else ''}", each) for n, each in enumerate(pages)]
    steps = [{"url": url, "callback": "parse_price"} for url in urls]
    outcome = crawl("sample_spiders.Witnesses", steps=steps)
    assert outcome.kept == urls
    (warning,) = outcome.problems
    assert f"of {MIN_PAGES} pages that repeat another one of their host, {MIN_PAGES} were kept" in warning
    assert "another 'price'" in warning
    assert outcome.stats["dedup/kept/item_field_differs"] == MIN_PAGES
    assert outcome.record(urls[1])["difference"] == ["price: 1007"]
    named = crawl("sample_spiders.Witnesses", steps=steps, settings={"DEDUP_ITEM_FIELDS": ["text"]})
    assert named.kept == urls[:1]
    assert not any("price" in line for line in named.problems)


def test_a_field_that_no_item_has_is_named(site, crawl):
    url = site.add("/a", article("A story", story(1)))
    fields = {"DEDUP_ITEM_FIELDS": ["text", "citty", "prize"]}
    outcome = visit(crawl, [url], "parse_text", settings=fields)
    (warning,) = outcome.problems
    assert warning.endswith("no item had the DEDUP_ITEM_FIELDS 'citty', 'prize': check the spelling")
    assert visit(crawl, [], settings=fields).problems == []
