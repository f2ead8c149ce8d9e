"""An original is what this crawl finds: if it has changed or is gone, what was dropped for its old text comes back."""

from itertools import permutations

import pytest
from crawling import IN_ORDER, stepped
from local_site import Answer, redirect
from prose import article, blog, story
from test_commands import run_here

TOLD = [*story(1), "It costs 20 euros."]


def crawled(folder, urls, **settings):
    steps = [{"url": url, "meta": {"handle_httpstatus_list": [404, 410]}} for url in urls]
    return stepped(folder, steps, **IN_ORDER, **settings)


@pytest.mark.parametrize("host", [0, 1], ids=["one site", "two sites"])
@pytest.mark.parametrize("becomes", ["another text", "another price", "404", "410", "redirected"])
@pytest.mark.parametrize("order", [*permutations((0, 1))], ids=["original first", "copy first"])
def test_the_copy_is_in_the_feed(tmp_path, site, host, becomes, order):
    copied = article("The story", TOLD) if host == 0 else blog("The story", TOLD)
    urls = [
        site.add("/own", article("The story", TOLD)),
        site.add("/own?utm_source=x" if host == 0 else "/copy", copied, host=host),
    ]
    first = crawled(tmp_path, urls)
    assert (first.kept, len(first.dropped)) == (urls[:1], 1)
    now = Answer(status=int(becomes)) if becomes.isdecimal() else article("The story", [*TOLD[:2], *story(2, 6)])
    if becomes == "another price":
        now = article("The story", [*story(1), "It costs 25 euros."])
    if becomes == "redirected":
        now = redirect(site.add("/elsewhere", article("Another story", story(5))))
    site.add("/own", now)
    second = crawled(tmp_path, [urls[n] for n in order])
    assert urls[1] in second.kept

    if "dedup/items/released" in second.stats:
        assert "dedup: 1 stored item was released: this crawl found the original changed, moved or gone\n" in second.log


# A story, and what its paper has put before it, one day after the other.
DAYS = [story(1), ["Our new app has every story of the region on the day on which it happens.", *story(1)], story(1)]


@pytest.mark.parametrize("order", [*permutations((0, 1))], ids=["original first", "copy first"])
def test_an_original_that_has_its_old_text_again_releases_nothing(tmp_path, site, order):
    """Neither what its copy repeats now, nor what earlier crawls have dropped of it."""
    for day, text in enumerate(DAYS):
        urls = [
            site.add("/own", article("The story", text)),
            site.add("/copy", blog("The story", text), host=1),
        ]
        crawl = crawled(tmp_path, [urls[n] for n in (order if day == len(DAYS) - 1 else (0, 1))])
        assert (crawl.kept, len(crawl.dropped)) == (urls[:1], 1)
    lines = (tmp_path / "feed.jsonl").read_text(encoding="utf8").splitlines()
    assert len(lines) == len(DAYS)
    assert [each["url"] for each in run_here("dropped", "--json", *crawl.here, folder=tmp_path).json] == urls[1:] * 2


@pytest.mark.parametrize("action", ["tag", "dry-run"])
@pytest.mark.parametrize("order", [*permutations((0, 1))], ids=["original first", "copy first"])
def test_what_was_not_dropped_is_not_released(tmp_path, site, action, order):
    urls = [site.add("/own", article("The story", TOLD)), site.add("/copy", blog("The story", TOLD), host=1)]
    assert len(crawled(tmp_path, urls).dropped) == 1
    site.add("/own", article("The story", [*TOLD[:2], *story(2, 6)]))
    assert sorted(crawled(tmp_path, [urls[n] for n in order], DEDUP_ACTION=action).kept) == sorted(urls)
