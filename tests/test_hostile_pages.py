"""Hostile pages never stop a crawl, never eat it, and never cause a drop. `benchmarks/hostile.py` measures them."""

import contextlib
import encodings
import gzip
import pkgutil
import time

import pytest
import scrapy
from hostile_pages import HOSTILE, STORY, verdict_on
from hypothesis import given
from hypothesis import strategies as st
from library import Library
from local_site import Answer
from parsel import Selector
from prose import article, story
from sample_spiders import OneByOne
from scrapy.http import HtmlResponse

from dedup_middleware import extract_paragraphs
from dedup_middleware.checks.edits import Original, compare
from dedup_middleware.common.budget import Budget, UncheckableError
from dedup_middleware.extraction import check_complete, texts_of
from dedup_middleware.extraction.decoding import NO_CHARSETS
from dedup_middleware.model import Verdict, VerdictKind
from dedup_middleware.reasons import Reason
from dedup_middleware.text.clauses import folded, one_line, portions, sentences

GROUPS = 8


class Addresses(OneByOne):
    """Items of URLs alone, for any page."""

    name = "addresses"

    def parse(self, response, rest):
        yield {"url": response.url}
        if rest:
            yield scrapy.Request(rest[0], cb_kwargs={"rest": rest[1:]}, dont_filter=True)


def timed(library, response):
    """Return the CPU time that the product takes for one page beyond its parse."""
    with contextlib.suppress(ValueError):
        _ = response.selector.root
    begin = time.thread_time()
    verdict_on(library, response)
    return time.thread_time() - begin


def is_linear(name, once, twice):
    """Return whether a page of twice the size takes at most thrice the time; quadratic is four times.

    Times below 0.02 s are too short to compare, and a time that is too long is measured again.
    """
    state = HOSTILE[name]
    for _ in range(3):
        if state.full == 1 or state.charset == "punycode" or twice <= max(3 * once, 0.02):
            return True
        size = min(state.small, state.full // 2)
        once, twice = (min(timed(Library(), state.response(n)) for _ in range(3)) for n in (size, 2 * size))
    return False


@pytest.mark.parametrize("group", range(GROUPS))
def test_hostile_pages_drop_no_other_story_and_take_linear_time(group):
    offenders = []
    for name, state in [*HOSTILE.items()][group::GROUPS]:
        library = Library()
        once = timed(library, state.response(state.small // 2, "http://other/1"))
        twice = timed(library, state.response(state.small, "http://site/2"))
        other = HtmlResponse("http://site/3", body=article("Another", story(7)).encode())
        if verdict_on(library, other).kind is not VerdictKind.NEW:
            offenders.append((name, "another story was dropped"))
        if not is_linear(name, once, twice):
            offenders.append((name, "takes more than linear time"))
        library.check_invariants()
    assert offenders == []


# --- a parse that stopped


def is_complete(page):
    try:
        check_complete(Selector(text=page, type="html").root)
    except UncheckableError:
        return False
    return True


@pytest.mark.parametrize("opening", ["<div>", "<b>", "<ul><li>", "<table><tr><td>"])
@pytest.mark.parametrize("errors", ["", "<p a=1 a=1></i>&bogus;" * 200])
def test_a_page_is_complete_if_and_only_if_its_end_is_in_the_tree(opening, errors):
    for depth in (10, 500, 3_000):
        page = f"{errors}{opening * depth}{STORY}{'</div>' * depth}<p>The very end.</p>"
        text = "".join(Selector(text=page, type="html").root.itertext())
        assert is_complete(page) == ("The very end." in text)


def test_pages_that_are_the_same_until_the_parser_stops_are_no_duplicates():
    library = Library()
    beginning = f"<p>{STORY}</p>{'<div>' * 100_000}"
    for number in range(2):
        page = f"{beginning}{article('Own', story(number + 50))}".encode()
        verdict = verdict_on(library, HtmlResponse(f"http://site/{number}", body=page))
        assert verdict.kind is not VerdictKind.DUPLICATE
        if not is_complete(page.decode()):
            assert verdict == Verdict(VerdictKind.UNCHECKED, reason=Reason.NESTED_TOO_DEEPLY)


# --- caps


def test_time_is_looked_at_while_a_text_is_read():
    budget = Budget(milliseconds=0)
    root, fingerprint = Selector(text=STORY).root, Library().fingerprint
    with pytest.raises(UncheckableError, match=Reason.TOO_SLOW):
        texts_of(root, budget)
    with pytest.raises(UncheckableError, match=Reason.TOO_SLOW):
        fingerprint(["a"], budget)


@given(st.lists(st.text("ab, .\n", max_size=30)), st.integers(1, 40))
def test_portions_are_the_text(paragraphs, size):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dedup_middleware.text.clauses.PORTION", size)
        found = list(portions(paragraphs))
    assert all(len(portion) <= size for portion in found)
    assert "".join(found).replace("\n", "") == "".join(paragraphs).replace("\n", "")


# --- anything at all

CHARACTERS = "<>/=\"'&;! \0\ud800\u0300\u200b\ufdfa,.:1。”ก好"
soup = st.lists(st.sampled_from([*CHARACTERS, "<p>", "</p>", "<!--", "a b", "1.5", ": 1 jan "])).map("".join)
anything = st.one_of(st.text(), soup, st.binary().map(lambda b: b.decode("latin-1")))


@given(anything, anything)
def test_no_text_raises(page, other):
    paragraphs = [*extract_paragraphs(page), page]
    Library().fingerprint(paragraphs)
    assert 0 <= compare(paragraphs, Original([other, page])).score <= 1
    compare([page], Original([other]))
    for text in (page, other):
        folded(text), sentences(text), one_line(text)


# --- in a crawl

CODECS = sorted({module.name for module in pkgutil.iter_modules(encodings.__path__)} - {"aliases"})


def crawled(crawl, site, pages, **settings):
    """Crawl *pages* between a story and its copy; the crawl must end well, and drop the copy."""
    first = site.add("/first", article("A story", story(3)))
    urls = [site.add(f"/{number}", answer) for number, answer in enumerate(pages.values())]
    last = site.add("/last", article("A story", story(3)), host=1)
    outcome = crawl(
        "test_hostile_pages.Addresses",
        urls=",".join([first, *urls, last]),
        # Scrapy itself fails to look for a refresh in a page that it cannot decode: that is not what is asked here.
        settings={"METAREFRESH_ENABLED": False, "LOG_LEVEL": "WARNING", **settings},
    )
    assert (outcome.exit_status, outcome.stats["finish_reason"]) == (0, "finished")
    assert last in [item["url"] for item in outcome.dropped]
    assert sorted(outcome.kept) == sorted({first, *urls, last} - {item["url"] for item in outcome.dropped})
    assert "Traceback" not in outcome.log
    return outcome


def reasons(outcome):
    """Return why pages were not checked, in order."""
    return [record["reason"] for record in outcome.records if record["verdict"] == "unchecked"]


def test_a_crawl_over_hostile_pages_keeps_them_all(crawl, site):
    pages = {}
    for number, (name, state) in enumerate(HOSTILE.items()):
        own = "".join(f"<p>{paragraph}</p>" for paragraph in story(100 + number)).encode()
        pages[name] = Answer(state.body(min(state.small, 500)).replace(STORY.encode(), own), headers=state.headers)
    outcome = crawled(crawl, site, pages)
    numbers = [item["url"].rpartition("/")[2] for item in outcome.dropped]
    dropped = {list(pages)[int(number)] for number in numbers if number != "last"}
    # These do have one story, and "two encodings" has all that is left of the last one.
    assert dropped <= {name for name in pages if name.startswith(("UTF-16", "a story behind", "GB 18030"))}


def test_a_crawl_over_every_codec_of_python(crawl, site):
    pages = {
        name: Answer(article("Own", story(number + 10)), headers={"Content-Type": f"text/html; charset={name}"})
        for number, name in enumerate(CODECS)
    }
    outcome = crawled(crawl, site, pages)
    assert len(outcome.dropped) == 1
    # And one codec that makes of most bytes what cannot be decoded.
    assert reasons(outcome).count("no_charset") == len(NO_CHARSETS) + 1


def test_bombs_and_caps_in_a_crawl(crawl, site):
    def bomb(page):
        return Answer(gzip.compress(page.encode()), headers={"Content-Encoding": "gzip"})

    pages = {
        "text": bomb("<p>" + "a, b " * 1_000_000),
        "zeros": bomb("\0" * 5_000_000),
        "elements": bomb("<p>a, b" * 20_000),
        "depth": bomb("<div>" * 100_000),
        "clauses": bomb("".join(f"<p>The council of {n:x} voted for the plan, {n:x} of them." for n in range(2_000))),
        "time": bomb("<p>" + "a: 1 " * 790_000),
    }
    caps = {
        "DEDUP_MAX_BYTES": 4_000_000,
        "CONSTANTS": {
            "dedup_middleware.common.budget:MAX_ELEMENTS": 10_000,
            "dedup_middleware.common.budget:MAX_CLAUSES": 1_000,
            "dedup_middleware.common.budget:MAX_MILLISECONDS": 100,
        },
    }
    outcome = crawled(crawl, site, pages, **caps)
    reason_of = {record["url"]: record["reason"] for record in outcome.records}
    found = {name: reason_of[site.url(f"/{number}")] for number, name in enumerate(pages)}
    # Older versions of lxml follow to any depth.
    assert found.pop("depth") in ("nested_too_deeply", "too_many_elements")
    assert found == {
        "text": "too_large",
        "zeros": "too_large",
        "elements": "too_many_elements",
        "clauses": "too_many_clauses",
        "time": "too_slow",
    }
    assert len(outcome.dropped) == 1


@pytest.mark.parametrize("said", [story(1), [*story(1)[:4], *story(9)[:2]]], ids=["duplicate", "related"])
def test_the_evidence_is_found_behind_very_much_that_says_nothing(crawl, site, said):
    """And costs no more than the caps allow: from the first byte to the record, beyond a crawl without us."""
    known = site.add("/known", article("A story", story(1)))
    page = site.add("/page", f"<html><body><p>{'a; ' * 500_000}{' '.join(said)}</p>", host=1)
    # The first one loads what is loaded once a process.
    runs = [
        crawl("sample_spiders.OneByOne", urls=",".join(urls), plugin=plugin)
        for plugin in (True, False)
        for urls in ([known, f"{known}?2"], [known, page])
    ]
    short, long, short_without, long_without = (outcome.stats for outcome in runs)
    for what, most in (("process/cpu_s", 4), ("process/peak_mb", 100)):
        assert long[what] - short[what] - (long_without[what] - short_without[what]) < most
    (record,) = runs[1].records
    assert record["original_url"] == known
    assert len(record["evidence"]) == 5
    assert all(sentence.removesuffix("…") in " ".join(said) for sentence in record["evidence"])


@pytest.mark.parametrize("name", ["digits", "tiny sentences with signs", "lines", "Chinese"])
def test_a_page_and_its_copies_cost_no_more_than_the_caps_allow(crawl, site, name):
    """At a tenth of their full size, beyond a crawl without us: a second a page, and 150 MB in all."""
    state = HOSTILE[name]
    body = state.body(state.full // 10)
    bodies = [(body, 0), (body, 0), (body + b" x2 y", 0), (body, 1), (body + b" x2 y", 1)]
    urls = [site.add(f"/{n}", Answer(each, headers=state.headers), host=host) for n, (each, host) in enumerate(bodies)]
    runs = [crawl("sample_spiders.OneByOne", urls=",".join(urls), plugin=plugin) for plugin in (True, False)]
    ours, without = (outcome.stats for outcome in runs)
    assert ours["process/cpu_s"] - without["process/cpu_s"] < len(urls)
    assert ours["process/peak_mb"] - without["process/peak_mb"] < 150


def test_a_long_item_costs_no_more_than_its_page_may(crawl, site):
    """It is kept: what could not be compared is not known to be said elsewhere."""
    first, copy = (site.add(f"/{n}", article("A story", story(3)), host=n) for n in range(2))
    steps = [{"url": first}, {"url": copy, "callback": "parse_bulk"}]
    limit = {"CONSTANTS": {"dedup_middleware.common.budget:MAX_MILLISECONDS": 200}}
    outcome = crawl("sample_spiders.Steps", steps=steps, settings=limit)
    assert outcome.kept == [first, copy]
    # Unbounded, it takes minutes.
    assert outcome.stats["process/cpu_s"] < 20
