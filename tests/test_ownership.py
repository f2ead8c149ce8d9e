"""Which page is the original of a story, and for how long."""

from dataclasses import replace
from datetime import datetime, timedelta, timezone

from library import Library
from local_site import redirect
from prose import article, story

from dedup_middleware.index.schema import encode_page, page_key
from dedup_middleware.model import VerdictKind


def test_a_page_is_what_its_redirects_end_at(site, crawl):
    ends = [site.add(f"/a/session/{n}", article("a", story(1))) for n in range(2)]
    hops = [site.add(f"/hop/{n}", redirect(end)) for n, end in enumerate(ends)]
    a = site.add("/a", *map(redirect, hops))
    assert crawl("sample_spiders.Steps", steps=[{"url": a}], folder="one").kept == ends[:1]
    again = crawl("sample_spiders.Steps", steps=[{"url": a}, {"url": ends[0]}], folder="one", afresh=True)
    assert again.verdicts == {ends[1]: ("duplicate", "dropped"), ends[0]: ("unchanged", "kept")}
    assert again.kept == ends[:1]


def test_an_original_older_than_the_lease_drops_nothing():
    library = Library(lease=timedelta(days=2))
    original = library.index.commit(library.page("a", range(20)))
    copy = library.page("b", range(20))
    for age, expected in ((1, VerdictKind.DUPLICATE), (3, VerdictKind.NEW)):
        time = (datetime.now(timezone.utc) - timedelta(days=age)).isoformat()
        library.store.write(
            [(page_key(original.number), encode_page(replace(original, kept=replace(original.kept, time=time))))]
        )
        assert library.detector.check(copy).kind is expected


# --- what a spider sees of us


def test_nothing_of_ours_is_in_the_meta_that_a_spider_sees(site, crawl):
    """Spiders copy it: into items, into requests."""
    plain = site.add("/plain", article("plain", story(1)))
    redirected = site.add("/redirected", redirect(site.add("/end", article("end", story(2)))))
    missing = site.url("/missing")
    steps = [{"url": url, "callback": "parse_meta", "errback": "give_up_meta"} for url in (plain, redirected, missing)]
    steps.append({"url": plain, "callback": "parse_inline", "cb_kwargs": {"url": redirected}})
    outcome = crawl("sample_spiders.Steps", steps=steps)
    assert len(outcome.items) == 4
    assert [item for item in outcome.items if any("dedup" in key for key in item["meta"])] == []
    assert outcome.problems == []
