"""A host of which most pages repeat one page is told of at once."""

import shlex

from crawling import run_scrapy
from hypothesis import given
from hypothesis import strategies as st
from prose import article, blog, story
from test_two_witnesses import visit

from dedup_middleware.records.recorder import MIN_PAGES, MIN_PAGES_OF_ANOTHER, FieldAlarm, OneOriginalAlarm

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


def test_a_few_pages_of_another_host_are_no_sign(site, crawl):
    outcome = crawl("sample_spiders.Steps", steps=mirrored(site, MIN_PAGES_OF_ANOTHER - 1))
    assert len(outcome.dropped) == MIN_PAGES_OF_ANOTHER - 1
    assert outcome.problems == []


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


@given(st.lists(st.sampled_from([None, "a", "b", "c"]), max_size=80))
def test_it_is_never_wrong_and_misses_no_original_that_most_pages_repeat_from_the_first(originals):
    alarm, seen = OneOriginalAlarm(), []
    told = None
    for original in originals:
        seen.append(original)
        if (numbers := alarm.note_page("host", original)) is not None:
            assert told is None
            told = original
            repeats, pages = numbers
            assert pages == len(seen) >= MIN_PAGES
            assert 2 * repeats > pages
            assert repeats <= seen.count(original)
    always = all(2 * seen[: n + 1].count("a") > n + 1 for n in range(len(seen)))
    if always and len(seen) >= MIN_PAGES:
        assert told == "a"


def test_hosts_that_were_not_seen_for_long_are_forgotten():
    alarm = OneOriginalAlarm()
    for n in range(30_000):
        alarm.note_page(f"host{n}", None)
    assert len(alarm._hosts) <= 10_000


def test_a_field_that_keeps_nearly_all_is_told_of_once():
    alarm = FieldAlarm()
    told = [alarm.note_page(frozenset(["views"] if number % 15 else [])) for number in range(3 * MIN_PAGES)]
    assert [line for line in told if line] == [("views", MIN_PAGES - 2, MIN_PAGES)]
    assert not any(alarm.note_page(frozenset()) for _ in range(100))


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
