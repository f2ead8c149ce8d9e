"""A crawl that does not check most of its pages reports it: in its log, in ``stats``, in ``doctor`` and in ``log``."""

import json
import re

import pytest
from crawling import REACTOR
from local_site import Answer
from prose import article, story
from test_commands import run_here
from test_nothing_is_lost import closing_server

from dedup_middleware.reasons import Reason
from dedup_middleware.records.counts import MIN_PAGES, NOT_COUNTED, REMEDIES, mostly_unchecked, summary

#: Between a short and a long story.
MAX_BYTES = 2_000


def small(site, number):
    """Serve so many pages that are checked, and return the steps that request them."""
    return [{"url": site.add(f"/small/{n}", article("A", story(n, 2)))} for n in range(number)]


def large(site, number):
    return [{"url": site.add(f"/large/{n}", article("A", story(n, 12)))} for n in range(number)]


def empty(site, number):
    return [{"url": site.add(f"/empty/{n}", article("A", ["Closed."]))} for n in range(number)]


def switched_off(site, number):
    return [{"url": step["url"], "meta": {"dedup": False}} for step in small(site, number)]


@pytest.fixture
def visit(crawl):
    """Crawl *steps*, in the same folder each time."""

    def visit(*steps, folder="crawl"):
        every = [step for some in steps for step in some]
        return crawl("sample_spiders.Steps", steps=every, settings={"DEDUP_MAX_BYTES": MAX_BYTES}, folder=folder)

    return visit


def command(outcome, name, *arguments):
    return run_here(name, *arguments, *outcome.here, folder=outcome.folder)


def pages_found(outcome):
    """Return the exit status of ``doctor``, and what it finds about pages."""
    said = command(outcome, "doctor", "--json")
    return said.exit_status, [finding for finding in said.json if finding["about"] == "pages"]


def summary_of(outcome):
    summary = outcome.log.partition("dedup summary")[2]
    return {label: int(number) for label, number in re.findall(r"^ +(\S.*?) {2,}(\d+)$", summary, re.MULTILINE)}


def test_most_pages_unchecked_are_a_warning_with_the_reason_and_the_remedy(site, visit):
    outcome = visit(large(site, 7), empty(site, 2), small(site, 5), switched_off(site, 5))
    (warning,) = outcome.problems
    assert "9 of 14 pages were not checked for duplicates" in warning
    assert "The most frequent reason: too_large (7). What to do: raise DEDUP_MAX_BYTES" in warning
    found = summary_of(outcome)
    assert (found["pages"], found["kept"], found["unchecked"], found["switched off"]) == (19, 5, 9, 5)
    assert (found["too_large"], found["too_little_text"]) == (7, 2)

    (sums,) = command(outcome, "stats", "--json").json
    assert (sums["stats"]["dedup/unchecked/too_large"], sums["stats"]["dedup/unchecked/too_little_text"]) == (7, 2)
    assert re.search(r"unchecked +9\n +too_large +7\n +too_little_text +2\n", command(outcome, "stats").out)

    status, findings = pages_found(outcome)
    texts = ["the last crawl did not check 7 pages: too_large", "the last crawl did not check 2 pages: too_little_text"]
    assert (status, [finding["text"] for finding in findings]) == (0, texts)
    assert findings[0]["remedy"].startswith("raise DEDUP_MAX_BYTES")

    said = command(outcome, "log")
    assert (said.exit_status, said.err) == (0, "")
    assert said.out == "No duplicates in 19 pages (9 unchecked: too_large 7, too_little_text 2)\n"
    assert command(outcome, "log", "--json", "--all").err == ""


@pytest.mark.parametrize("how_many", [6, 0])
def test_up_to_half_of_the_pages_are_no_warning_but_are_counted(site, visit, how_many):
    outcome = visit(large(site, how_many), small(site, 6), switched_off(site, 12))
    assert outcome.problems == []
    assert summary_of(outcome)["unchecked"] == how_many
    status, findings = pages_found(outcome)
    told = ["the last crawl did not check 6 pages: too_large"] if how_many else []
    assert (status, [finding["text"] for finding in findings]) == (0, told)


def test_doctor_looks_at_the_last_crawl_alone(site, visit):
    visit(large(site, 12), small(site, 1))
    # What is unchanged in it was new to the first one.
    _, (finding,) = pages_found(visit(small(site, 12), large(site, 1)))
    assert finding["text"] == "the last crawl did not check 1 page: too_large"


def test_pages_whose_items_are_checked_one_by_one_do_not_count(site, crawl):
    bodies = [[{"text": " ".join(story(n))}] for n in range(12)] + [[]] * 4
    urls = [
        site.add(f"/{n}", Answer(json.dumps(body), headers={"Content-Type": "application/json"}))
        for n, body in enumerate(bodies)
    ]
    steps = [{"url": url, "callback": "parse_api"} for url in urls]
    outcome = crawl("sample_spiders.Steps", steps=steps, settings={"DEDUP_ITEM_FIELDS": ["text"]}, folder="crawl")
    assert outcome.problems == []
    found = summary_of(outcome)
    assert (found["pages"], found["checked by item"], found["items checked"]) == (16, 12, 12)
    lines = [line.split() for line in outcome.log.partition("dedup summary\n")[2].splitlines()]
    assert [line[1] for line in lines if line[:1] == ["kept"]] == ["0", "12"]
    assert [line[1] for line in lines if line[:1] == ["unchecked"]] == ["4", "0"]
    assert outcome.stats["dedup/unchecked/items_checked"] == 12
    status, (finding,) = pages_found(outcome)
    assert (status, finding["text"]) == (0, "the last crawl did not check 4 pages: other_content_type")


@pytest.mark.skipif(REACTOR == "reactorless", reason="httpx flags no response without a length")
def test_a_site_of_which_every_page_is_cut_off_is_named(crawl):
    page = article("A", story(1)).encode()
    bodies = {f"/{n}": ("", page[: -100 - n]) for n in range(MIN_PAGES)}
    with closing_server(bodies) as root:
        outcome = crawl("sample_spiders.Steps", steps=[{"url": root + path} for path in bodies])
    (warning,) = outcome.problems
    assert "10 of 10 pages were not checked for duplicates" in warning
    assert "The most frequent reason: truncated_response (10)" in warning
    assert "must end with </body> or </html>" in warning


def test_few_pages_are_no_problem():
    few, most, half = MIN_PAGES - 1, MIN_PAGES, 2 * MIN_PAGES
    assert mostly_unchecked({"unchecked/truncated_response": few, "pages": few}) is None
    assert mostly_unchecked({}) is None
    assert mostly_unchecked({"unchecked/truncated_response": most, "pages": half}) is None
    assert mostly_unchecked({"unchecked/truncated_response": most, "pages": half - 1}) is not None


def test_the_warning_counts_as_the_summary_does_and_names_the_key_of_a_shop():
    numbers = {"unchecked/too_little_text": 11, "unchecked/other_content_type": 2, "lists": 1, "pages": 18}
    counted = dict(summary(numbers))
    warning = mostly_unchecked(numbers)
    assert (counted["  unchecked"], counted["  list pages (no items)"]) == (12, 1)
    assert warning.startswith("13 of 18 pages were not checked for duplicates, 1 of them a list page. ")
    assert "set DEDUP_KEY" in warning


def test_every_reason_that_stats_count_has_a_remedy():
    reasons = [*Reason]
    unchecked = reasons[: reasons.index(Reason.NEAR_MATCH)]
    assert set(unchecked) - set(NOT_COUNTED) == REMEDIES.keys()
