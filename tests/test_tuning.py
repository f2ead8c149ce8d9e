"""``scrapy dedup tune``: verdicts replayed at other thresholds, pairs checked by eye, and what the answers suggest."""

import json
import os
import stat
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prose import article, blog, story
from test_commands import Crawled, at_a_terminal, run, run_here, running_crawl, write_log

from dedup_middleware.errors import RecordsError
from dedup_middleware.reasons import Reason
from dedup_middleware.records.file import Record
from dedup_middleware.report.answers import Answer, Answers
from dedup_middleware.report.tuning import (
    ENOUGH,
    ENOUGH_TO_LOWER,
    recorded,
    replay,
    suggestion,
    suggestion_text,
)

SCORES = st.floats(0.5, 1)
THRESHOLDS = st.floats(0.5, 1, exclude_min=True)


def verdict(number, score, threshold=0.8, **fields):
    """Return the record of a page with *score*, checked at *threshold*."""
    is_duplicate = score >= threshold
    said = {
        "verdict": "duplicate" if is_duplicate else "related",
        "outcome": "dropped" if is_duplicate else "kept",
        "reason": "" if is_duplicate else Reason.BELOW_THRESHOLD.value,
        "items_dropped": int(is_duplicate),
        "items_kept": int(not is_duplicate),
        "original_url": f"http://original.example/{number}",
        "crawl": "r",
    } | fields
    return Record("2024-11-20", "s", url=f"http://page.example/{number}", score=round(score, 4), **said)


def verdicts(*scores, threshold=0.8):
    return [verdict(number, score, threshold) for number, score in enumerate(scores)]


class TestReplay:
    @given(st.lists(SCORES), THRESHOLDS)
    def test_at_todays_threshold_it_is_what_happened(self, scores, today):
        records = verdicts(*scores, threshold=today)
        dropped = sum(record.verdict == "duplicate" for record in records)
        row = replay(recorded(records).cases, today)
        assert row[1:] == (dropped, dropped, dropped, dropped)

    @given(st.lists(SCORES), THRESHOLDS, st.lists(THRESHOLDS, min_size=2))
    def test_a_higher_threshold_never_drops_more(self, scores, today, thresholds):
        cases = recorded(verdicts(*scores, threshold=today)).cases
        for low, high in pairwise(replay(cases, threshold) for threshold in sorted(thresholds)):
            assert low.pages >= high.pages
            assert low.pages_at_most >= high.pages_at_most
            assert high.pages <= high.pages_at_most
            assert high.items <= high.items_at_most

    def test_what_would_be_dropped_more_is_an_upper_bound(self):
        cases = recorded(verdicts(0.75, 0.79, 0.85, 0.95)).cases
        assert replay(cases, 0.7)[1:] == (2, 2, 4, 4)
        assert replay(cases, 0.77)[1:] == (2, 2, 3, 3)
        assert replay(cases, 0.9)[1:] == (1, 1, 1, 1)

    def test_what_a_witness_has_kept_stays(self):
        kept = verdict(0, 0.9, verdict="related", outcome="kept", reason="other_title")
        found = recorded([kept, verdict(1, 0.9)])
        assert [case.number for case in found.cases] == [1]
        assert found.kept == {"other_title": 1}

    def test_a_page_that_was_released_is_not_dropped(self):
        taken = verdict(0, 0.9, verdict="related", outcome="released", reason="released")
        found = recorded([verdict(0, 0.9), verdict(1, 0.9), taken])
        assert [case.number for case in found.cases] == [1]
        again = recorded([verdict(0, 0.9), taken, verdict(0, 0.95)])
        assert [case.score for case in again.cases] == [0.95]

    @pytest.mark.parametrize("fields", [{"score": None}, {"score": float("nan")}, {"score": 7}, {"original_url": None}])
    def test_a_record_without_a_score_counts_for_nothing(self, fields):
        record = Record(**verdict(0, 0.9).as_dict() | fields)
        assert recorded([record]).cases == []


def label(url="http://a/", *, same=True, time="2026-11-26T10:00:00.000+00:00"):
    return Answer(url, "http://o/", 0.83, same, "", time)


class TestAnswers:
    def test_they_are_kept_for_their_original_alone(self, tmp_path):
        log = tmp_path / "log.jsonl"
        Answers.beside(log).add(label())
        (path,) = tmp_path.iterdir()
        assert path.name == "log.answers.jsonl"
        if os.name != "nt":
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
        (answer,) = Answers.beside(log).about()
        assert (answer.url, answer.original_url, answer.score, answer.same) == ("http://a/", "http://o/", 0.83, True)
        assert json.loads(path.read_text(encoding="ascii"))["time"] == answer.time == label().time

    def test_the_last_answer_about_a_pair_counts(self, tmp_path):
        answers = Answers(tmp_path / "checked")
        for same in (True, False):
            answers.add(label(same=same))
        assert [answer.same for answer in answers.about()] == [False]
        assert Answers(answers.path).about() == answers.about()

    @pytest.mark.parametrize("line", ["", "null", "[]", "{}", "no json", "[" * 10_000])
    def test_lines_that_hold_no_answer_are_passed_over(self, tmp_path, line):
        path = tmp_path / "checked"
        Answers(path).add(label())
        good = path.read_text(encoding="ascii")
        strange = json.dumps(json.loads(good) | {"url": "http://b/", "score": "NaN"})
        path.write_text(f"{line}\n{strange}\n{good}", encoding="ascii")
        assert [answer.url for answer in Answers(path).about()] == ["http://a/"]

    def test_a_file_that_holds_something_else_is_left_alone(self, tmp_path):
        path = tmp_path / "checked"
        path.write_text("mine\n", encoding="ascii")
        with pytest.raises(RecordsError, match="Move it away"):
            Answers(path)
        with pytest.raises(RecordsError, match="cannot be read"):
            Answers(tmp_path)
        with pytest.raises(RecordsError, match="cannot be written"):
            Answers(tmp_path / "no" / "folder").add(label())

    def test_the_newer_label_of_two_files_counts(self, tmp_path):
        ours, theirs = Answers(tmp_path / "ours"), Answers(tmp_path / "theirs")
        ours.add(label(time="2026-11-26T10:00:00.000+00:00"))
        ours.add(label("http://b/", time="2026-11-26T12:00:00.000+00:00"))
        for url in ("http://a/", "http://b/", "http://c/"):
            theirs.add(label(url, same=False, time="2026-11-26T11:00:00.000+00:00"))
        assert ours.add_newer(theirs) == 2
        assert ours.add_newer(theirs) == 0
        assert {each.url: each.same for each in ours.about()} == {
            "http://a/": False,
            "http://b/": True,
            "http://c/": False,
        }
        assert Answers(ours.path).about() == ours.about()


def answers_of(same, different):
    scored = [(score, True) for score in same] + [(score, False) for score in different]
    return [Answer(f"http://a/{n}", "http://o/", s, is_same, "", "") for n, (s, is_same) in enumerate(scored)]


def suggested(same, different, today=0.8):
    return suggestion(answers_of(same, different), today)


class TestSuggestion:
    RECORDED = st.lists(st.integers(5000, 10_000).map(lambda score: score / 10_000), max_size=30)

    @given(RECORDED, RECORDED, st.integers(5001, 10_000).map(lambda score: score / 10_000))
    def test_it_drops_no_pair_that_was_called_different(self, same, different, today):
        found = suggested(same, different, today)
        assert found.missing == max(0, ENOUGH - len(same) - len(different))
        assert suggestion_text(found)
        if found.threshold is None:
            assert found.missing or max(different) >= 0.99
            return
        assert 0.5 < found.threshold <= 1
        assert all(score < found.threshold for score in different)
        if found.threshold < today:
            assert found.checked == sum(found.threshold <= score < today for score in same) >= ENOUGH_TO_LOWER
        elif found.threshold > today:
            assert any(score >= today for score in different)

    @pytest.mark.parametrize(
        ("same", "different", "threshold"),
        [
            ([0.9] * 10, [], 0.8),  # nothing speaks for another one
            ([0.9] * 9, [0.8367], 0.84),  # just above
            ([0.9] * 9, [0.84], 0.85),
            ([0.9] * 9, [0.995], 1.0),
            ([0.9] * 9, [1.0], None),
            ([0.9] * 6 + [0.72] * 4, [], 0.8),  # too few to lower it
            ([0.9] * 5 + [0.7291, 0.73, 0.74, 0.75, 0.76], [], 0.72),
            ([0.9] * 5 + [0.7291, 0.73, 0.74, 0.75, 0.76], [0.7134], 0.72),
            ([0.9] * 5 + [0.7291, 0.73, 0.74, 0.75, 0.76], [0.7234], 0.8),  # four of them are left
            ([0.7691] * 9, [0.7695], 0.8),
            ([0.5] * 5 + [0.5] * 5, [], 0.8),  # one half is too little for a threshold
        ],
    )
    def test_precision_comes_first(self, same, different, threshold):
        assert suggested(same, different).threshold == threshold

    def test_it_says_what_it_rests_on(self):
        text = suggestion_text(suggested([0.75, *[0.9] * 9, 0.82], [0.8367, 0.6]))
        assert text.startswith("Labelled pairs: 11 duplicates, 2 different.\n")
        # Nine without an error: 1 - 0.05 ** (1/9).
        assert "All 9 labelled pairs with scores from 0.84 are duplicates:\nat most 28% of such drops are wrong" in text
        assert "2 labelled duplicates below it would be kept." in text
        assert text.endswith("\nSuggested: DEDUP_THRESHOLD = 0.84")
        lowered = suggestion_text(suggested([0.7, 0.71, 0.72, 0.73, 0.74, *[0.9] * 9], [0.6]))
        assert "All 5 labelled pairs with scores from 0.7 to 0.8 are duplicates" in lowered
        text = suggestion_text(suggested([0.9] * 9 + [0.81], [0.6]))
        assert text.endswith("\nSuggested: keep DEDUP_THRESHOLD = 0.8")
        assert "meta={'dedup': False}" in suggestion_text(suggested([0.9] * 9, [1.0]))
        assert "No pair with a score from 0.8 is labelled" in suggestion_text(suggested([], [0.6] * 10))

    def test_labels_of_pages_that_a_check_keeps_do_not_count(self):
        by_checks = [Answer(f"http://c/{n}", "http://o/", 0.99, n == 0, "other_numbers", "") for n in range(3)]
        found = suggestion([*answers_of([0.9] * 9, [0.6]), *by_checks], 0.8)
        assert (found.threshold, found.different, found.by_checks, found.by_checks_same) == (0.8, 1, 3, 1)
        assert "Pages that a check keeps at any threshold: 3 labels, 1 duplicate." in suggestion_text(found)
        assert suggestion(by_checks, 0.8).missing == ENOUGH


def tune(folder, *arguments):
    return run_here("tune", *arguments, "-s", "DEDUP_LOG=log.jsonl", folder=folder)


class TestCommand:
    @pytest.fixture
    def folder(self, tmp_path):
        """Return the folder of a log of two crawls, without a store."""
        first = [verdict(n, score, crawl="1") for n, score in enumerate((0.78, 0.82, 0.93))]
        second = [verdict(3, 0.79, crawl="2", title="Tram", evidence=["Output by both."]), verdict(4, 0.97, crawl="2")]
        write_log(tmp_path / "log.jsonl", *first, *second)
        return tmp_path

    def test_it_prints_a_table_and_the_pairs_to_check(self, folder):
        said = tune(folder, "--at", "0.7,0.95", "--show", "1")
        assert said.exit_status == 0
        assert "Only the evidence in the records is shown: no store found" in said.err
        head, *rows = said.out.splitlines()[:4]
        assert head.split() == ["threshold", "pages", "dropped", "items", "dropped", "change"]
        assert [" ".join(row.split()) for row in rows] == [
            "0.70 3 to 5 3 to 5 up to 2 more",
            "0.80 3 3 current",
            "0.95 1 1 2 fewer",
        ]
        assert "0.7900  Tram" in said.out
        assert "    = Output by both." in said.out
        assert "similar to http://original.example/3" in said.out
        assert "duplicate of http://original.example/1" in said.out
        assert "http://page.example/0" not in said.out
        assert said.out.endswith("0 duplicates, 0 different. Label 10 more to get a suggestion.\n")
        assert [path.name for path in folder.iterdir()] == ["log.jsonl"]

    def test_json_is_one_object(self, folder):
        (found,) = tune(folder, "--json", "--crawl", "last").json
        assert found["crawls"] == 1
        assert {row["threshold"] for row in found["rows"]} >= {0.55, 0.8, 1.0}
        assert [(pair["score"], pair["texts"]) for pair in found["pairs"]] == [(0.79, None), (0.97, None)]
        assert found["suggestion"]["missing"] == 10

    def test_the_crawl_and_the_host_may_be_chosen(self, folder):
        (found,) = tune(folder, "--json", "--crawl", "1", "--host", "page.example").json
        assert sum(row["pages"] for row in found["rows"] if row["threshold"] == 0.8) == 2
        tune(folder, "--host", "other.example").refused("No verdict", "--crawl", status=3)
        tune(folder, "--host", "http://x/").refused("not a host name")

    def test_todays_threshold_is_that_of_the_settings(self, folder):
        (found,) = tune(folder, "--json", "-s", "DEDUP_THRESHOLD=0.75").json
        assert found["threshold"] == 0.75

    @pytest.mark.parametrize("arguments", [("--at", "0.5"), ("--at", "x"), ("--at", "0.7,,1"), ("--show", "-1")])
    def test_wrong_options_are_wrong_usage(self, folder, arguments):
        said = tune(folder, *arguments)
        assert said.exit_status == 2
        assert arguments[0] in said.err

    def test_labels_of_a_report_are_added(self, folder):
        saved = Answers(folder / "downloaded.jsonl")
        for each in answers_of([0.82] * 9, [0.79]):
            saved.add(each)
        said = tune(folder, "--labels", "downloaded.jsonl")
        assert "10 labels in downloaded.jsonl, 10 of them new" in said.err
        assert "Labelled pairs: 9 duplicates, 1 different." in said.out
        assert "10 labels in downloaded.jsonl, 0 of them new" in tune(folder, "--labels", "downloaded.jsonl").err
        assert "Labelled pairs: 9 duplicates, 1 different." in tune(folder).out

    def test_a_file_without_labels_is_refused(self, folder):
        (folder / "other").write_text("mine\n", encoding="ascii")
        tune(folder, "--labels", "other").refused("other is not a file of labels")
        tune(folder, "--labels", "nowhere").refused("No labels found at nowhere")
        tune(folder, "--labels", ".").refused("No labels found at .")
        assert {path.name for path in folder.iterdir()} == {"log.jsonl", "other"}

    def test_a_published_method_has_a_threshold_of_its_own(self, folder):
        tune(folder, "-s", "DEDUP_FINGERPRINT=simhash").refused("DEDUP_FINGERPRINT = 'simhash'", "its own threshold")

    def test_without_a_log_it_is_one_line(self, tmp_path):
        tune(tmp_path).refused("No records found")
        (tmp_path / "log.jsonl").touch()
        tune(tmp_path).refused("No verdict", status=3)

    def test_a_page_cannot_steer_the_terminal(self, tmp_path):
        hostile = "\x1b[2J\r\n\u202eevil\x9b"
        fields = {"title": hostile, "evidence": [hostile], "difference": [hostile], "original_url": hostile}
        record = Record(**verdict(0, 0.82).as_dict() | fields | {"url": "http://a/" + hostile})
        write_log(tmp_path / "log.jsonl", record, verdict(1, 0.9, verdict="related", reason=hostile))
        said = tune(tmp_path)
        assert "evil" in said.out
        assert said.out.replace("\n", "").isprintable()


#: Sentences that a copy may have more: no name and no number is in them.
OWN = (
    "Our readers had been waiting for this all winter long, and have told us so in letters, on cards and at the door.",
    "What it means for those who live there has been explained here before, and is explained on this page once again.",
)


@pytest.fixture
def paired(site, crawl):
    """Crawl a story, a repost with a sentence of its own, and a page that has three fifths of it."""
    pages = [
        site.add("/first", article("First", story(1))),
        site.add(
            "/repost",
            blog("Repost", [story(1)[0], OWN[0], *story(1)[1:3], OWN[1], *story(1)[3:5]]),
            host=1,
        ),
        site.add("/partly", blog("First again", [*story(1)[:4], *story(5)[:2]]), host=1),
    ]
    outcome = crawl("sample_spiders.OneByOne", urls=",".join(pages))
    assert [record["verdict"] for record in outcome.records] == ["duplicate", "related"]
    return outcome


class TestAtATerminal:
    def test_it_shows_both_pages_asks_and_keeps_the_answers(self, paired):
        def tuned(*arguments, keys):
            return at_a_terminal("tune", *paired.here, *arguments, folder=paired.folder, keys=keys)

        said = tuned(keys="what?\nn\nyes\n")
        repost, partly = paired.records
        first, second = said.index(repost["url"]), said.index(partly["url"])
        assert first < second
        original_says, page_says = f"- {story(1)[5][:30]}", f"+ {OWN[0][:30]}"
        assert original_says in said[first:second]
        assert page_says in said[first:second]
        assert f"To release its items: scrapy dedup allow {repost['url']}" in said
        assert "Labelled pairs: 1 duplicate, 1 different. Label 8 more" in said
        kept = [(answer.url, answer.same) for answer in Answers.beside(paired.folder / "records.jsonl").about()]
        assert kept == [(repost["url"], False), (partly["url"], True)]
        assert "Duplicates?" not in tuned(keys="")

    def test_while_a_crawl_has_the_store_the_log_tells_what_it_can(self, paired):
        with running_crawl(Crawled(paired, "", "", "", "")):
            said = run("tune", *paired.here, folder=paired.folder)
        assert said.exit_status == 0
        assert "Only the evidence in the records is shown: " in said.err
        assert f"    = {paired.records[0]['evidence'][0]}" in said.out
