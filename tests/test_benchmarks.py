"""The commands that print the tables of docs/, on a corpus where every row can be known beforehand."""

from __future__ import annotations

import json
import lzma
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from benchmarks.corpus import ARTICLE_FIELDS, CorpusError, parsed, read_corpus, relabelled
from crawling import environment, start
from opencc import OpenCC
from prose import article, blog, story, zh_story

from dedup_middleware.checks import checklist

if TYPE_CHECKING:
    from collections.abc import Iterable

HERE = Path(__file__).parent
PRODUCT = "the product"

# Enough for a main text, too little to be checked: spaces do not count.
_BIO = (
    "Ines Varga writes of the sea, of ports and ferries, of tides and fog, and of all who live by it or on it. "
    "She is out at dawn, as a rule, in a boat of her own, and her dog is with her."
)
_REPORT = "The mill took in {} sacks of rye, said the foreman, and he expects rather more of it before the next rain."
_TABLE = "At the weather station by the lighthouse, the keeper noted this for the day and the night. Gusts: {} kmh."
#: Enough to be checked, too little for a passage that makes another story.
_NOTE = (
    "Two of the children who live by the {0} found a blue kite in the reeds and brought it to the mayor on her "
    "birthday. She let it fly from the roof of the {0} until the wind turned and the rain came in from the sea again."
)

_TOWN = "The ferry to {} was late again, and nobody at the pier could say when the next one would be there."
_TOWNS = [*enumerate(("Riverton", "Lakewood", "Eastham"))]


def notice(_: str, text: list[str]) -> str:
    """Return a page whose extracted text is a notice that all such pages have; it outweighs the *text*."""
    title = "Acme plumbing and heating services of the northern counties"
    hidden = "".join(f"<div><p>{paragraph}</p></div>" for paragraph in story(50, 8))
    main = "".join(f"<p>{paragraph}</p>" for paragraph in text)
    return f"<title>{title}</title><h1>{title}</h1><article>{main}</article><noscript>{hidden}</noscript>"


class TinyCrawl:
    """Pages of a made-up crawl, a case for each part of the verdict; the kind of a page is the name of its case."""

    def __init__(self) -> None:
        self.rows: list[dict[str, object]] = []
        self.add("copy", 1, story(1))
        self.add("copy", 1, story(1), page=blog)
        self.add("traditional", 2, zh_story(2))
        self.add("traditional", 2, [OpenCC("s2t").convert(paragraph) for paragraph in zh_story(2)])
        self.add("brief", 3, story(3)[:2])
        self.add("brief", 4, story(3))
        self.add("brief", 4, story(3)[:4])
        for day in (12, 31):
            self.add("report", f"report {day}", [*story(5), _REPORT.format(day)])
            self.add("table", f"table {day}", [*story(6), _TABLE.format(day)])
            self.add("bio", f"bio {day}", [_BIO], is_known=False)
            self.add("wall", f"wall {day}", story(7, 1), host="wall.test", is_known=False)
            self.add("boilerplate", f"boilerplate {day}", story(60 + day, 1), page=notice, is_known=False)
        for number, town in _TOWNS:
            self.add("name", f"town {number}", [*story(22), _TOWN.format(town)])
        self.add("passage", "short", story(23))
        self.add("passage", "long", [*story(23), *story(24, 1)])
        for site in range(4):
            self.add("boilerplate", f"site {site}", [*story(10 + site), *story(8, 5)])
        self.add("boilerplate", "little of its own", [_NOTE.format("mill"), *story(8, 5)])
        for section in range(3):
            self.add("section", f"section {section}", [*story(30 + section), *story(9, 5)], host="paper.test")
        self.add("section", "little of its own there", [_NOTE.format("quay"), *story(9, 5)], host="paper.test")

    def add(  # noqa: PLR0913 - the fields of a corpus
        self, kind: str, cluster: object, text: list[str], *, page=article, host: str = "", is_known=True
    ) -> None:
        number = len(self.rows)
        self.rows.append(
            {
                "id": f"page {number}",
                "host": host or f"host{number}.test",
                "path": f"/{number}",
                "html": page(f"Title {number}", text),
                "text": text if is_known else [],
                "cluster": str(cluster),
                "kind": kind,
            }
        )


def json_lines(rows: Iterable[dict[str, object]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


@pytest.fixture(scope="module")
def corpora(tmp_path_factory) -> list[Path]:
    """Return the same corpus twice: plain and packed."""
    lines = json_lines(TinyCrawl().rows)
    folder = tmp_path_factory.mktemp("corpora")
    (folder / "plain.jsonl").write_text(lines, encoding="utf8")
    (folder / "packed.jsonl.xz").write_bytes(lzma.compress(lines.encode()))
    return [folder / "plain.jsonl", folder / "packed.jsonl.xz"]


def run(name: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(HERE / "benchmarks" / name), *map(str, arguments)]
    process = start(HERE.parent, command, environment())
    said = process.communicate(timeout=300)
    return subprocess.CompletedProcess(command, process.returncode or 0, *said)


def table(finished: subprocess.CompletedProcess[str]) -> list[dict[str, str]]:
    """Return the rows of the printed table, by the names of its columns."""
    assert (finished.returncode, finished.stderr) == (0, "")
    header, rule, *rows = ([c.strip() for c in line.strip("|").split("|")] for line in finished.stdout.splitlines())
    assert set(rule) == {"---"}
    return [dict(zip(header, row, strict=True)) for row in rows]


@pytest.fixture(scope="module")
def detection(tmp_path_factory) -> dict[str, dict[str, str]]:
    """Return the rows of the table by variant; each case is a corpus of its own."""
    folder, rows = tmp_path_factory.mktemp("cases"), TinyCrawl().rows
    paths = {str(row["kind"]): folder / f"{row['kind']}.jsonl" for row in rows}
    for kind, path in paths.items():
        path.write_text(json_lines(row for row in rows if row["kind"] == kind), encoding="utf8")
    return {row["variant"]: row for row in table(run("detection.py", *paths.values()))}


def cases_of(row: dict[str, str]) -> dict[str, str]:
    """Return the cells of the cases in which the variant drops other pages than the product."""
    return {name: cell for name, cell in row.items() if name not in ("variant", "lost", "changes") and cell != "="}


def test_the_product_is_right_about_every_case_in_both_orders(detection) -> None:
    row = detection[PRODUCT]
    assert set(cases_of(row).values()) == {"0/0, 1.000/1.000"}
    assert (row["lost"], row["changes"]) == ("0", "")


def test_every_check_has_a_row(detection) -> None:
    checks = {*checklist.ONE_SITE, *checklist.BETWEEN_SITES, *checklist.ITEMS}
    names = {f"no {check.__name__}" for check in checks}
    assert len(names) == len(checks)
    assert names <= detection.keys()


@pytest.mark.parametrize(
    ("variant", "lost"),
    [
        ("no other_numbers", {"table": "1/1"}),
        ("no new_address", {"wall": "1/1"}),
        ("no other_boilerplate", {"boilerplate": "1/1"}),
        ("no replaced_words", {"name": "2/2"}),
        ("no new_passage", {"passage": "1/0"}),
        (
            "no check",
            {"report": "1/1", "table": "1/1", "wall": "1/1", "name": "2/2", "passage": "1/0", "boilerplate": "1/1"},
        ),
        ("no least live weight", {"bio": "1/1"}),
        ("no common clauses", {"boilerplate": "1/0"}),
        ("no light labelled numbers", {"table": "1/1"}),
        ("rival: hash of the extracted text", {"bio": "1/1", "wall": "1/1", "boilerplate": "1/1"}),
    ],
)
def test_pages_that_a_part_keeps_are_lost_without_it(detection, variant: str, lost: dict[str, str]) -> None:
    row = detection[variant]
    found = {case: cell.partition(",")[0] for case, cell in cases_of(row).items()}
    assert {case: cell for case, cell in found.items() if cell != "0/0"} == lost
    assert row["lost"] == str(sum(int(n) for cell in lost.values() for n in cell.split("/")))
    assert row["changes"] == ""


@pytest.mark.parametrize(
    ("variant", "case", "recall"),
    [
        ("no Traditional to Simplified", "traditional", "0.000/0.000"),
        ("whole body", "copy", "1.000/0.000"),
        ("rival: hash of the extracted text", "traditional", "0.000/0.000"),
        ("rival: hash of the response's body", "copy", "0.000/0.000"),
    ],
)
def test_copies_that_a_part_finds_are_kept_without_it(detection, variant: str, case: str, recall: str) -> None:
    assert detection[variant][case] == f"0/0, {recall}"


def test_a_variant_that_changes_no_verdict_is_marked(detection) -> None:
    row = detection["no templates"]
    assert (cases_of(row), row["lost"], row["changes"]) == ({}, "0", "nothing")


def test_a_variant_that_drops_other_pages_with_the_same_scores_is_marked(tmp_path: Path) -> None:
    # Both pages have one text, so both verdicts on the second one are right.
    rows = [row for row in TinyCrawl().rows if row["kind"] == "wall"]
    corpus = tmp_path / "wall.jsonl"
    corpus.write_text(json_lines({**row, "optional": True} for row in rows), encoding="utf8")
    product, variant = table(run("detection.py", corpus, "--only", "no new_address"))
    assert (product["variant"], product["wall"]) == (PRODUCT, variant["wall"])
    assert variant["changes"] == "other pages"


def test_a_page_that_looks_like_json_is_read_as_html() -> None:
    assert parsed('{"text": "no markup"}').tag == "html"


class TestLabels:
    """What is right depends on the order."""

    STORY, REST = story(50), story(51, 1)

    @staticmethod
    def labels(tmp_path: Path, *rows: dict[str, object]) -> list[tuple[str, bool]]:
        """Return cluster and optionality of *rows* in their order."""
        path = tmp_path / "pages.jsonl"
        path.write_text(json_lines({"id": str(n), "html": "", **row} for n, row in enumerate(rows)), encoding="utf8")
        return [(page.cluster, page.optional) for page in relabelled(read_corpus(path, ARTICLE_FIELDS))]

    def test_a_derived_page_is_a_copy_only_after_a_page_that_contains_it(self, tmp_path: Path) -> None:
        whole = {"cluster": "whole", "text": [*self.STORY, *self.REST]}
        trimmed = {"cluster": "whole", "own": "trimmed", "of": "whole", "text": self.STORY, "optional": True}
        assert self.labels(tmp_path, whole, trimmed) == [("whole", False), ("whole", False)]
        assert self.labels(tmp_path, trimmed, whole) == [("trimmed", False), ("whole", False)]

    def test_a_page_of_another_cluster_that_contains_all_of_it_makes_a_page_optional(self, tmp_path: Path) -> None:
        whole = {"cluster": "whole", "text": [*self.STORY, *self.REST]}
        part = {"cluster": "part", "text": "\n".join(self.STORY)}
        assert self.labels(tmp_path, whole, part) == [("whole", False), ("part", True)]
        assert self.labels(tmp_path, part, whole) == [("part", False), ("whole", False)]
        # The facts of a page and its title are text, but for a title that is set apart.
        assert self.labels(tmp_path, whole, {**part, "facts": ["7 eggs"]})[1] == ("part", False)
        titled = {**part, "text": ["A title", *self.STORY]}
        assert [self.labels(tmp_path, whole, {**titled, "nt": nt})[1][1] for nt in (False, True)] == [False, True]

    def test_wrapped_quotes_are_compared_by_runs_of_words(self, tmp_path: Path) -> None:
        lines = [f"> {line}" for line in " ".join(self.STORY).replace(", ", ",\n> ").split("\n")]
        mail = {"cluster": "mail", "shingle": True, "text": self.STORY}
        quote = {"cluster": "quote", "shingle": True, "text": lines}
        assert self.labels(tmp_path, mail, quote) == [("mail", False), ("quote", True)]

    def test_new_versions_and_briefs_are_optional_after_their_story(self, tmp_path: Path) -> None:
        page = {"cluster": "1", "host": "a.test", "text": self.STORY}
        edited = {"cluster": "1", "host": "a.test", "kind": "edited", "text": [*self.STORY, *self.REST]}
        assert self.labels(tmp_path, page, edited)[1] == ("1", True)
        assert self.labels(tmp_path, page, {**edited, "host": "b.test"})[1] == ("1", False)
        brief = {"cluster": "1-brief", "kind": "brief", "text": self.REST}
        assert self.labels(tmp_path, page, brief)[1] == ("1-brief", True)
        assert self.labels(tmp_path, brief, page)[0] == ("1-brief", False)

    def test_pages_that_may_go_either_way_stay_optional(self, tmp_path: Path) -> None:
        page = {"cluster": "1", "text": self.STORY, "optional": True}
        assert self.labels(tmp_path, page) == [("1", True)]
        # For this order only, where the page was made from others.
        assert self.labels(tmp_path, {**page, "site": "a"}) == [("1", False)]
        assert self.labels(tmp_path, {**page, "may": True}) == [("1", True)]


def test_a_corpus_without_true_text_is_crawled_by_all_but_true_text(tmp_path: Path) -> None:
    rows = [{**row, "text": []} for row in TinyCrawl().rows if row["kind"] == "copy"]
    (tmp_path / "wild.jsonl").write_text(json_lines(rows), encoding="utf8")
    product, row = table(run("detection.py", tmp_path / "wild.jsonl", "--only", "true text"))
    assert (product["wild"], row["wild"]) == ("0/0, 1.000/1.000", "0/0, 0.000/0.000")


def test_extraction_of_articles_that_are_known(corpora: list[Path]) -> None:
    rows = table(run("extraction.py", *corpora, "--rounds", "1", "--limit", "8"))
    assert [row["corpus"] for row in rows] == ["plain"] * (len(rows) // 2) + ["packed"] * (len(rows) // 2)
    found = {row["extractor"]: row for row in rows}
    assert all(row["pages"] == "8" for row in rows)
    assert found[PRODUCT]["F1"] == "1.0000"
    assert float(found[PRODUCT]["time, in parses"]) > 1
    body = found["rival: all text of the body"]
    assert (body["recall"], float(body["precision"]) < 1) == ("1.0000", True)


def test_extraction_by_kind_of_page(corpora: list[Path]) -> None:
    rows = table(run("extraction.py", corpora[0], "--rounds", "1", "--limit", "8", "--kinds"))
    (*kinds, time) = rows
    assert all(row["the product"].endswith("(0)") for row in kinds)
    assert kinds[-1] | {"kind": "all", "pages": "8"} == kinds[-1]
    assert float(time["the product"]) > 1


def test_extraction_by_name_beside_the_product(corpora: list[Path]) -> None:
    rows = table(run("extraction.py", corpora[0], "--rounds", "1", "--limit", "8", "--extractor", "density"))
    assert [row["extractor"] for row in rows] == [PRODUCT, "density"]
    assert all(float(row["F1"]) > 0.9 for row in rows)
    halves = [table(run("extraction.py", corpora[0], "--only", PRODUCT, "--half", half))[0] for half in "01"]
    (whole,) = table(run("extraction.py", corpora[0], "--only", PRODUCT))
    assert sum(int(half["pages"]) for half in halves) == int(whole["pages"])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("missing.jsonl", None),
        ("empty.jsonl", b""),
        ("words.jsonl", b"no JSON\n"),
        ("numbers.jsonl", b"1\n2\n"),
        ("list.jsonl", b"[1]\n"),
        ("binary.jsonl", b"\xff\xfe\x00"),
        ("cut.jsonl.xz", lzma.compress(b'{"id": "1", "html": ""}\n' * 100)[:-30]),
        ("plain.jsonl.xz", b'{"id": "1", "html": ""}\n'),
        ("fields.jsonl", b'{"id": "1"}\n'),
        ("null.jsonl", b'{"id": "1", "html": null}\n'),
    ],
)
def test_what_is_wrong_with_a_corpus_is_one_line(tmp_path: Path, name: str, content) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(CorpusError) as error:
        read_corpus(tmp_path / name, ARTICLE_FIELDS)
    (line,) = str(error.value).splitlines()
    assert name in line


@pytest.mark.parametrize("command", ["detection.py", "extraction.py"])
def test_a_corpus_that_cannot_be_read_ends_the_command(tmp_path: Path, command: str) -> None:
    (tmp_path / "bare.jsonl").write_text('{"id": "1", "html": "<p>no address, no text"}\n')
    finished = run(command, tmp_path / "bare.jsonl")
    assert (finished.returncode, finished.stdout) == (1, "")
    (line,) = finished.stderr.splitlines()
    assert "bare.jsonl" in line


def test_no_thief_makes_an_original_of_a_preferred_host_drop(corpora: list[Path]) -> None:
    rows = table(run("poisoning.py", corpora[0], "--stories", "2"))
    assert {(row["victims"], row["dropped with it"]) for row in rows} == {("2", "0")}
    assert rows[0]["dropped without the setting"] == "2"


def test_a_small_store_is_filled_checked_against_and_looked_at() -> None:
    finished = run("million.py", "--pages", "50", "--new", "5", "--in-doubt", "10", "--store", "sqlite", "--text")
    assert (finished.returncode, finished.stderr) == (0, "")
    found = json.loads(finished.stdout)
    assert (found["pages"], found["store"]) == (50, "sqlite")
    assert found["ms"]["median"] > 0
    assert {"bytes_a_page", "info_s", "explain_s", "recover_s", "memory_mb"} <= found.keys()


def test_a_pair_that_collides_under_every_seed_is_printed() -> None:
    finished = run("collisions.py", "--pairs", "1", "--seeds", "10")
    assert (finished.returncode, finished.stderr) == (0, "")
    one, other = json.loads(finished.stdout)
    assert len(one.encode()) == len(other.encode()) == 24
