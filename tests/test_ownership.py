"""Which page is the original of a story, and for how long."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from urllib.parse import unquote

import pytest
from crawling import run_scrapy
from library import Library
from local_site import Answer, wait_until
from prose import article, blog, story
from test_claims_in_crawls import pair
from test_crashes import again, fed, killed

from dedup_middleware.index.schema import encode_page, page_key
from dedup_middleware.model import VerdictKind


def test_the_page_of_a_preferred_host_is_kept_and_takes_the_story(site, crawl):
    thief = site.add("/thief", blog("Copied", story(1)), host=1)
    original = site.add("/original", article("Original", story(1)))
    copy = site.add("/copy", blog("Copy", story(1)), host=2)
    steps = [{"url": url} for url in (thief, original, copy)]
    outcome = crawl("sample_spiders.Steps", steps=steps, settings={"DEDUP_PREFERRED": ["127.0.0.1"]})
    assert outcome.kept == [thief, original]
    record = outcome.record(original)
    assert (record["verdict"], record["original_url"], record["reason"]) == ("related", thief, "preferred")
    assert outcome.record(copy)["original_url"] == original


def test_a_drop_across_hosts_says_so(site, crawl):
    a, b = pair(site, 1)
    c = site.add("/c", blog("c", story(1)))
    outcome = crawl("sample_spiders.Steps", steps=[{"url": url} for url in (a, b, c)])
    assert outcome.record(b)["reason"] == "on another host"
    assert outcome.record(c)["reason"] == ""


def test_a_page_that_is_gone_owns_nothing_any_more(site, crawl):
    text = story(1)
    a = site.add("/a", Answer(article("a", text)), Answer("gone", status=410))
    b = site.add("/b", blog("b", text), host=1)
    outcome = crawl("sample_spiders.Steps", steps=[{"url": url} for url in (a, a, b)])
    assert outcome.kept == [a, b]
    assert outcome.dropped == []


def redirect(*urls):
    return [Answer("", status=302, headers={"Location": url}) for url in urls]


def test_a_page_is_what_its_redirects_end_at(site, crawl):
    ends = [site.add(f"/a/session/{n}", article("a", story(1))) for n in range(2)]
    hops = [site.add(f"/hop/{n}", *redirect(end)) for n, end in enumerate(ends)]
    a = site.add("/a", *redirect(*hops))
    assert crawl("sample_spiders.Steps", steps=[{"url": a}], folder="one").kept == ends[:1]
    again = crawl("sample_spiders.Steps", steps=[{"url": a}, {"url": ends[0]}], folder="one", afresh=True)
    assert again.verdicts == {ends[1]: ("duplicate", "dropped"), ends[0]: ("unchanged", "kept")}
    assert again.kept == ends[:1]


def test_a_page_that_is_requested_twice_at_a_time_is_two_pages_at_two_ends(site, crawl):
    both_asked = threading.Event()
    ends = [site.add(f"/a/session/{n}", article("a", story(1))) for n in range(2)]
    headers = [{"Location": end} for end in ends]
    a = site.add("/a", *(Answer("", status=302, headers=h, hold=both_asked) for h in headers))

    def let_both_go():
        wait_until(lambda: site.paths().count("/a") == len(ends))
        both_asked.set()

    threading.Thread(target=let_both_go, daemon=True).start()
    outcome = crawl("sample_spiders.Steps", steps=[{"url": a}, {"url": a}], together=True)
    assert len(outcome.kept) == 1
    assert sorted(outcome.kept + [item["url"] for item in outcome.dropped]) == ends


@pytest.mark.parametrize("host", [0, 1], ids=["same host", "another host"])
def test_who_redirected_to_a_page_cannot_replace_it(site, crawl, host):
    """The URL at which a redirect began is another page's once it answers by itself."""
    a = site.add("/a", article("a", story(1)))
    thief = site.add("/thief", *redirect(a), Answer(article("thief", story(2))), host=host)
    copy = site.add("/copy", blog("copy", story(1)), host=2)
    assert crawl("sample_spiders.Steps", steps=[{"url": thief}], folder="one").kept == [a]
    again = crawl("sample_spiders.Steps", steps=[{"url": thief}, {"url": copy}], folder="one", afresh=True)
    assert again.kept == [thief]
    assert again.record(copy)["original_url"] == a


def test_what_a_form_leads_to_is_not_the_same_page_each_time(site, crawl):
    start = site.add("/", "<html></html>")
    results = [site.add(f"/result/{n}", article("Result", story(n))) for n in range(2)]
    for n, result in enumerate(results):
        site.add(f"/search story={n}", *redirect(result))
    copies = [site.add(f"/copy/{n}", blog("Copy", story(n)), host=1) for n in range(2)]
    forms = [{"url": site.url("/search"), "story": n} for n in range(2)]
    steps = [{"url": start, "callback": "post_form", "cb_kwargs": form} for form in forms]
    outcome = crawl("sample_spiders.Everything", steps=[*steps, *({"url": url} for url in copies)])
    assert [item["url"] for item in outcome.items if item["url"] != "from start"] == [f"{url} " for url in results]
    assert [item["url"] for item in outcome.dropped] == copies


def test_pages_are_not_the_same_because_one_that_links_to_them_was_redirected(site, crawl):
    a, b = pair(site, 1)
    links = "".join(f'<a class="next" href="{url}">next</a>' for url in (a, b))
    start = site.add("/start", *redirect(site.add("/list", f"<html><body>{links}</body></html>")))
    outcome = crawl("sample_spiders.Steps", steps=[{"url": start, "callback": "parse_links_with_meta"}])
    assert len(outcome.kept) == 1
    assert len(outcome.dropped) == 1


def test_an_original_older_than_the_lease_drops_nothing():
    library = Library(lease=timedelta(days=2))
    original, _ = library.index.commit(library.page("a", range(20)))
    copy = library.page("b", range(20))
    for age, expected in ((1, VerdictKind.DUPLICATE), (3, VerdictKind.NEW)):
        time = (datetime.now(timezone.utc) - timedelta(days=age)).isoformat()
        library.store.write(
            [(page_key(original.number), encode_page(replace(original, kept=replace(original.kept, time=time))))]
        )
        assert library.detector.check(copy).kind is expected


def test_secrets_in_urls_are_not_written_down(site, crawl):
    a = site.add("/a?token=s3cret&page", article("a", story(1)))
    b = site.add("/b?token=s3cret", blog("b", story(1)), host=1)
    outcome = crawl(
        "sample_spiders.Steps",
        steps=[{"url": a}, {"url": b}],
        settings={"DEDUP_REDACT_QUERY": True, "LOG_LEVEL": "INFO"},
    )
    assert [i["url"] for i in outcome.dropped] == [b]
    (record,) = outcome.records
    assert record["original_url"] == a.replace("=s3cret", "=*")
    assert record["url"] == b.replace("=s3cret", "=*")
    (line,) = outcome.drop_lines
    assert "s3cret" not in line
    files = [path for path in outcome.folder.rglob("*") if path.is_file()]
    stored = b"".join(
        path.read_bytes() for path in files if path.relative_to(outcome.folder).parts[0].startswith("store")
    )
    assert stored.count(b"token=*") >= 2


# --- what a person allows


def test_a_page_that_a_person_allows_is_released_once(site, crawl):
    a, b = pair(site, 1)
    c = site.add("/c", blog("c", story(1)), host=2)
    feed = {"FEEDS": {"feed.jsonl": {"format": "jsonlines"}}}
    first = crawl("sample_spiders.Steps", steps=[{"url": url} for url in (a, b, c)], settings=feed, folder="one")
    assert [i["url"] for i in first.dropped] == [b, c]

    allowed = run_scrapy(first.folder, "dedup", "allow", "--host", "127.0.0.2")
    assert (allowed.returncode, allowed.stderr) == (0, "")
    assert allowed.stdout.splitlines() == [
        "1 page marked as no duplicate; the next crawl of the spider releases 1 dropped item",
        f"    {b}",
    ]
    requests = len(site.paths())
    second = crawl("sample_spiders.Steps", steps=[], settings=feed, folder="one", afresh=True)
    assert second.kept == [b]
    assert len(site.paths()) == requests
    third = crawl("sample_spiders.Steps", steps=[], settings=feed, folder="one", afresh=True)
    assert third.kept == []

    allowed = run_scrapy(first.folder, "dedup", "allow", "--original", a, "--json")
    assert json.loads(allowed.stdout)["allowed"] == [c]  # the other one is an original by now


def test_what_is_allowed_may_be_named_as_a_browser_shows_it(site, crawl):
    a = site.add("/%E5%85%B6", article("a", story(1)))
    b = site.add("/%E4%BB%96", blog("b", story(1)), host=1)
    outcome = crawl("sample_spiders.Steps", steps=[{"url": a}, {"url": b}])
    assert [i["url"] for i in outcome.dropped] == [b]
    for wanted in (["--original", unquote(a)], [unquote(b)], ["--host", "127.0.0.2."]):
        allowed = run_scrapy(outcome.folder, "dedup", "allow", *wanted, "--json")
        assert json.loads(allowed.stdout)["allowed"] == [b]
    refused = run_scrapy(outcome.folder, "dedup", "allow", "--host", "no host")
    assert (refused.returncode, len(refused.stderr.splitlines())) == (1, 1)


def test_allow_needs_the_name_of_a_page_that_was_dropped(site, crawl):
    a = site.add("/a", article("a", story(1)))
    outcome = crawl("sample_spiders.Steps", steps=[{"url": a}])
    refused = run_scrapy(outcome.folder, "dedup", "allow")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == "dedup: name the pages: URL, --host H, --original URL, --run R, --below SCORE, or --all\n"
    refused = run_scrapy(outcome.folder, "dedup", "allow", a)
    assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (3, "", 1)
    assert f"{a} is not stored" in refused.stderr


# --- what a spider sees of us


def test_nothing_of_ours_is_in_the_meta_that_a_spider_sees(site, crawl):
    """Spiders copy it: into items, into requests."""
    plain = site.add("/plain", article("plain", story(1)))
    redirected = site.add("/redirected", *redirect(site.add("/end", article("end", story(2)))))
    missing = site.url("/missing")
    steps = [{"url": url, "callback": "parse_meta", "errback": "give_up_meta"} for url in (plain, redirected, missing)]
    steps.append({"url": plain, "callback": "parse_inline", "cb_kwargs": {"url": redirected}})
    outcome = crawl("sample_spiders.Steps", steps=steps)
    assert len(outcome.items) == 4
    assert [item for item in outcome.items if any("dedup" in key for key in item["meta"])] == []
    assert outcome.problems == []


def test_after_a_crash_an_item_is_released_though_its_redirect_ends_elsewhere_by_now(site, tmp_path):
    """The session that it led into may be over."""
    a = site.add("/a", article("a", story(1)))
    over = site.add("/b/session/0", Answer(article("b", story(1))), Answer("over", status=403))
    b = site.add("/b", *redirect(over, site.add("/b/session/1", article("b", story(1)))))
    assert [i["url"] for i in killed(tmp_path, site, [{"url": a}, {"url": b}]).dropped] == [over]
    assert fed(again(tmp_path, [])) == [over]
    assert fed(again(tmp_path, [])) == [over]
