"""The same verdicts without Scrapy: what the door promises."""

import gc
import itertools
import os
import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prose import article, blog, story, zh_story

from dedup_middleware import Deduplicator, Record
from dedup_middleware.errors import ConfigError, StoreError, StoreLockedError
from dedup_middleware.index.shared import index_for_command
from dedup_middleware.records.file import Records

A, B, C = "http://a.example/1", "http://b.example/2", "http://c.example/3"


def listed(store):
    """Return the URLs of the originals in *store*."""
    with index_for_command(store, "test") as (_, index):
        return {page.url for page in index.pages() if page.original is None}


class TestVerdicts:
    def test_a_page_is_html_text_or_paragraphs(self):
        title = "A lighthouse is rebuilt by two teachers"
        same = [
            {"html": f"<title>{title}</title><p>" + "<p>".join(story(1))},
            {"html": article("x", story(1)).encode(), "title": title},
            {"text": "\n".join(story(1)), "title": title},
            {"paragraphs": story(1), "title": title},
            {"paragraphs": story(1)},
            {"html": f"<title>{title}</title><p>something else</p>", "paragraphs": story(1)},
        ]
        for first in same:
            for second in same:
                with Deduplicator() as dedup:
                    dedup.add(A, **first)
                    assert dedup.add(B, **second).is_duplicate, (first, second)

    def test_what_cannot_be_checked_is_no_duplicate_and_says_why(self):
        with Deduplicator(max_bytes=1000) as dedup:
            assert dedup.add(A, "<p>Little.").reason == "too_little_text"
            assert dedup.add(B, article("x", story(1))).reason == "too_large"
            assert dedup.add(C, "").verdict == "unchecked"
            assert dedup.add(C, text="long " * 1000).reason == "too_large"
            # A row without a page must not end a stream.
            assert [v.reason for v in dedup.stream([(C, None), {"url": C}])] == ["too_little_text"] * 2


class TestItems:
    def test_an_item_that_says_more_than_its_originals_keeps_its_page(self):
        with Deduplicator() as dedup:
            dedup.add(A, article("a", story(1)), item={"text": " ".join(story(1))})
            more = dedup.check(B, blog("b", story(1)), item={"text": " ".join(story(1) + story(2)[:1])})
            same = dedup.check(B, blog("b", story(1)), {"text": " ".join(story(1))})
        assert (more.verdict, more.reason) == ("related", "extra_text")
        told = story(2)[0]
        assert all(piece.removesuffix("…") in told for piece in more.difference)
        assert more.difference
        assert same.verdict == "duplicate"

    def test_an_item_with_the_text_of_the_originals_is_dropped_wherever_its_lines_break(self):
        lines = [
            *story(1),
            "The new timetable lets you:",
            "- Use the boats that sail to the islands at night.",
        ]
        page = article("a", lines)
        for byline, text in itertools.product(("", "By A. Writer, 2 March "), (" ".join(lines), "".join(lines))):
            with Deduplicator() as dedup:
                dedup.add(A, page, item={"text": byline + text})
                assert dedup.check(f"{A}?sid=2", page, item={"text": text}).is_duplicate
                kept = dedup.check(f"{A}?sid=2", page, item={"text": text.replace("- Use", "+ Use")})
            assert kept.reason == "other_numbers"
            assert kept.difference

    def test_an_item_whose_last_number_is_the_beginning_of_the_originals_is_kept(self):
        text = f"{' '.join(story(1))} The tent sleeps 1"
        with Deduplicator() as dedup:
            dedup.add(f"{A}?size=2", article("a", [f"{text}2"]), item={"text": f"{text}2"})
            kept = dedup.check(f"{A}?size=1", article("a", [f"{text}2"]), item={"text": text})
        assert kept.reason == "extra_text"

    def test_without_an_item_what_is_kept_of_a_page_is_its_text(self):
        with Deduplicator() as dedup:
            dedup.keep(A, article("a", story(1)))
            assert dedup.check(B, blog("b", story(1)), item={"text": "\n".join(story(1))}).is_duplicate


class TestWhatIsStored:
    def test_checking_stores_nothing(self, tmp_path):
        store = f"leveldb:{tmp_path / 'store'}"
        with Deduplicator(store) as dedup:
            for url in (A, B):
                assert dedup.check(url, article("a", story(1))).verdict == "new"
        assert listed(store) == set()

    def test_keeping_lets_a_page_own_its_text_whatever_it_repeats(self, tmp_path):
        store = f"leveldb:{tmp_path / 'store'}"
        with Deduplicator(store) as dedup:
            dedup.keep(A, article("a", story(1)))
            assert dedup.check(B, blog("b", story(1))).is_duplicate
            kept = dedup.keep(B, blog("b", story(1)))
            assert (kept.verdict, kept.reason, kept.original_url) == ("related", "kept_on_request", A)
        assert listed(store) == {A, B}

    @pytest.mark.parametrize("feeds", [{}, {"feed.jsonl": {"format": "jsonlines"}}])
    def test_a_crawl_knows_what_a_program_kept_and_the_reverse(self, site, crawl, tmp_path, feeds):
        store = f"leveldb:{tmp_path / 'store'}"
        here, new = site.add("/here", article("here", story(1))), site.add("/new", article("new", story(2)))
        with Deduplicator(store) as dedup:
            dedup.add(A, blog("a", story(1)))
        outcome = crawl(
            "sample_spiders.OneByOne", urls=f"{here},{new}", settings={"DEDUP_STORE": store, "FEEDS": feeds}
        )
        assert outcome.kept == [new]
        assert outcome.record(here)["original_url"] == A
        with Deduplicator(store) as dedup:
            assert dedup.check(B, blog("b", story(2))).original_url == new

    def test_verdicts_are_those_of_a_crawl(self, site, crawl):
        texts = [article("1", story(1)), article("2", zh_story(2)), blog("c", story(1)[:4]), blog("c", story(3))]
        pages = {site.add(f"/{n}", html, host=n % 3): html for n, html in enumerate(texts)}
        outcome = crawl("sample_spiders.OneByOne", urls=",".join(pages))
        with Deduplicator() as dedup:
            verdicts = [verdict.as_dict() for verdict in dedup.stream(pages.items())]
        told = {record["url"]: record for record in outcome.records}
        for verdict in verdicts:
            record = told.get(verdict["url"], {"verdict": "new"})
            names = record.keys() & {"verdict", "original_url", "score", "evidence"}
            assert {name: record[name] for name in names} == {name: verdict[name] for name in names}

    def test_the_log_is_one_that_scrapy_dedup_reads(self, tmp_path):
        log = tmp_path / "log.jsonl"
        with Deduplicator(log=log) as dedup:
            dedup.check(C, blog("c", story(1)))
            dedup.add(A, article("a", story(1)))
            dedup.add(B, blog("b", story(1)))
        assert [(r.url, r.original_url, r.outcome) for r in Records(log)] == [(A, None, "kept"), (B, A, "dropped")]

    def test_secrets_are_not_written_down(self, tmp_path):
        with Deduplicator(log=tmp_path / "log.jsonl", redact_query=True) as dedup:
            dedup.add("http://me:secret@a.example/?token=secret", article("a", story(1)))
            verdict = dedup.add("http://b.example/?token=secret", blog("b", story(1)))
        assert (verdict.url, verdict.original_url) == ("http://b.example/?token=*", "http://a.example/?token=*")
        _, *records = (tmp_path / "log.jsonl").read_text().splitlines()  # the name of the folder is in the first line
        assert not any("secret" in line for line in records[:-1])


class TestMistakes:
    @pytest.mark.parametrize(
        ("options", "line"),
        [
            ({"threshold": 2}, "DEDUP_THRESHOLD = 2 is not valid. Use a number above 0.5, at most 1"),
            ({"reworded": "yes"}, "DEDUP_REWORDED = 'yes' is not valid. Use "),
            ({"treshold": 0.9}, "treshold is not an option of Deduplicator; did you mean threshold?"),
            ({"max_milliseconds": "1000"}, "max_milliseconds = '1000' is not valid. Use a number above 0"),
            ({"max_milliseconds": 0}, "max_milliseconds = 0 is not valid. Use a number above 0"),
            ({"wait": 1}, "wait is not an option of Deduplicator"),
            (
                {"fingerprint": "sha1"},
                "DEDUP_FINGERPRINT = 'sha1' is not valid: the names are clauses, paragraphs",
            ),
        ],
    )
    def test_a_bad_option_is_one_line(self, options, line):
        with pytest.raises(ConfigError) as raised:
            Deduplicator(**options)
        assert str(raised.value).startswith(line)
        assert len(str(raised.value).splitlines()) == 1

    @pytest.mark.parametrize(
        ("page", "line"),
        [
            ({"url": None, "html": "<p>"}, "url = None must be str"),
            ({"url": "", "html": "<p>"}, "url = '' is empty"),
            ({"url": A, "html": 5}, "html = 5 must be str or bytes"),
            ({"url": A, "text": b"x"}, "text = b'x' must be str"),
            ({"url": A, "paragraphs": "x"}, "paragraphs = 'x' must be a list of str. Use text= for one str"),
            ({"url": A, "paragraphs": ["x", None]}, "paragraphs = ('x', None) must be a list of str"),
            ({"url": A, "paragraphs": ["x"], "text": "x"}, "text= and paragraphs= are the same text"),
            ({"url": A, "html": "<p>", "item": "x"}, "item = 'x' is not an item. Use a dict"),
            ({"url": A, "html": "<p>", "item": [{"a": 1}]}, "item = [{'a': 1}] is not an item. Use a dict"),
        ],
    )
    def test_a_wrong_argument_is_one_line_each_time(self, page, line):
        with Deduplicator() as dedup:
            for _ in range(2):
                with pytest.raises(ConfigError) as raised:
                    dedup.add(**page)
                assert str(raised.value).startswith(line)

    @pytest.mark.parametrize("page", ["http://a.example", {A: "<p>"}, (A,), (A, "<p>", {}, 4), None])
    def test_a_stream_of_something_else(self, page):
        line = r"is not a page\. Use a dict with its 'url' and 'html'"
        with Deduplicator() as dedup, pytest.raises(ConfigError, match=line):
            list(dedup.stream([page]))

    def test_a_page_with_what_there_is_not(self):
        with Deduplicator() as dedup, pytest.raises(ConfigError, match=r"'body' is not a part of a page\. Use url"):
            dedup.check(A, body="<p>")

    def test_a_store_in_use_is_refused_and_left_alone(self, tmp_path):
        store = f"leveldb:{tmp_path / 'store'}"
        holds = f"from dedup_middleware import Deduplicator; d = Deduplicator({store!r}); print(flush=True); input()"
        with subprocess.Popen([sys.executable, "-c", holds], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
            other.stdout.readline()
            with pytest.raises(StoreLockedError, match=f"process {other.pid} .*a program"):
                Deduplicator(store)
            other.communicate(b"\n")

    def test_once_closed_it_says_so(self):
        dedup = Deduplicator()
        dedup.close()
        dedup.close()
        with pytest.raises(StoreError, match="closed"):
            dedup.check(A, article("a", story(1)))


def test_it_needs_no_scrapy_and_loads_none(tmp_path):
    program = (
        "import sys; from dedup_middleware import Deduplicator, extract_paragraphs\n"
        f"with Deduplicator('leveldb:{tmp_path}/store') as d:\n"
        " d.add('http://a.example/', '<p>' + 'a, b. ' * 200, item={})\n"
        "assert not {'scrapy', 'twisted'} & set(sys.modules)"
    )
    for hidden in ("", "import sys; sys.modules |= dict.fromkeys(('scrapy', 'twisted'))\n"):
        check = program if not hidden else program.rpartition("\n")[0]
        subprocess.run([sys.executable, "-c", hidden + check], check=True, env=os.environ)


@given(st.text(max_size=300), st.text(max_size=30))
def test_no_page_and_no_address_stops_it(html, path):
    with Deduplicator() as dedup:
        verdict = dedup.add(f"http://a.example/{path}", html)
    assert isinstance(verdict, Record)
    assert not verdict.is_duplicate


def test_no_container_outlives_its_page():
    """Each full garbage collection of a crawl would look at it."""
    with Deduplicator() as dedup:
        kept = []
        for number in range(240):
            if number in (40, 239):
                gc.collect()
                kept.append(Counter(type(each).__qualname__ for each in gc.get_objects()))
            url = f"http://a.example/{number}/{'abcdefghij'[number % 10]}"
            dedup.add(url, article(f"Story {number}", story(number)), {"text": "\n".join(story(number)), "url": url})
        kinds = "frozenset", "set", "PageFeatures", "Address", "StoredPage", "Match", "Page", "Visit", "Verdict"
        grown = {kind: kept[1][kind] - kept[0][kind] for kind in kinds}
    assert sum(grown.values()) < 150, grown
