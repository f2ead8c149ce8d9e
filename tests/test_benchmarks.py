"""The commands that print the tables of docs/, on a corpus where every row can be known beforehand."""

from __future__ import annotations

import json
import lzma
import os
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.corpus import ARTICLE_FIELDS, CorpusError, read_corpus
from engines import ENGINES, need
from opencc import OpenCC
from prose import article, blog, story, zh_story

HERE = Path(__file__).parent
PRODUCT = "the product"

# Enough for a main text, too little to be judged: spaces do not count.
_BIO = (
    "Ines Varga writes of the sea, of ports and ferries, of tides and fog, and of all who live by it or on it. "
    "She is out at dawn, as a rule, in a boat of her own, and her dog is with her."
)
_REPORT = "The mill took in {} sacks of rye, said the foreman, and he expects rather more of it before the next rain."
_TABLE = "At the weather station by the lighthouse, the keeper noted this for the day and the night. Gusts: {} kmh."


_TOWN = "The ferry to {} was late again, and nobody at the pier could say when the next one would be there."
_TOWNS = [*enumerate(("Riverton", "Lakewood", "Eastham"))]


class TinyCrawl:
    """Pages of a made-up crawl, a case for each rule; the kind of a page is the name of its case."""

    def __init__(self) -> None:
        self.rows: list[dict[str, object]] = []
        self.add("original", 1, story(1))
        self.add("copy", 1, story(1), page=blog)
        self.add("original", 2, zh_story(2))
        self.add("traditional", 2, [OpenCC("s2t").convert(paragraph) for paragraph in zh_story(2)])
        self.add("brief", 3, story(3)[:2])
        self.add("whole", 4, story(3))
        self.add("excerpt", 4, story(3)[:4])
        for day in (12, 31):
            self.add("report", f"report {day}", [*story(5), _REPORT.format(day)])
            self.add("table", f"table {day}", [*story(6), _TABLE.format(day)])
            self.add("bio", f"bio {day}", [_BIO])
            self.add("wall", f"wall {day}", story(7, 1), host="wall.test")
        for site in range(4):
            self.add("original", f"site {site}", [*story(10 + site), *story(8, 5)])
        self.add("boilerplate", "little of its own", [*story(20, 1), *story(8, 5)])
        for section in range(3):
            self.add("original", f"section {section}", [*story(30 + section), *story(9, 5)], host="paper.test")
        self.add("section", "little of its own there", [*story(21, 1), *story(9, 5)], host="paper.test")

    def add(self, kind: str, cluster: object, text: list[str], *, page=article, host: str = "") -> None:
        number = len(self.rows)
        self.rows.append(
            {
                "id": f"page {number}",
                "host": host or f"host{number}.test",
                "path": f"/{number}",
                "html": page(f"Title {number}", text),
                "text": text,
                "cluster": str(cluster),
                "kind": kind,
            }
        )


@pytest.fixture(scope="module")
def corpora(tmp_path_factory) -> list[Path]:
    """Return the same corpus twice: plain and packed."""
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in TinyCrawl().rows)
    folder = tmp_path_factory.mktemp("corpora")
    (folder / "plain.jsonl").write_text(lines, encoding="utf8")
    (folder / "packed.jsonl.xz").write_bytes(lzma.compress(lines.encode()))
    return [folder / "plain.jsonl", folder / "packed.jsonl.xz"]


def run(name: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join(filter(None, [str(HERE.parent), os.environ.get("PYTHONPATH")]))
    return subprocess.run(
        [sys.executable, str(HERE / "benchmarks" / name), *map(str, arguments)],
        capture_output=True,
        text=True,
        encoding="utf8",
        env={**os.environ, "PYTHONPATH": paths, "PYTHONIOENCODING": "utf8"},
        check=False,
    )


def table(finished: subprocess.CompletedProcess[str]) -> list[dict[str, str]]:
    """Return the rows of the printed table, by the names of its columns."""
    assert (finished.returncode, finished.stderr) == (0, "")
    header, rule, *rows = ([c.strip() for c in line.strip("|").split("|")] for line in finished.stdout.splitlines())
    assert set(rule) == {"---"}
    return [dict(zip(header, row, strict=True)) for row in rows]


@pytest.fixture(scope="module")
def detection(corpora: list[Path]) -> dict[str, dict[str, str]]:
    return {row["variant"]: row for row in table(run("detection.py", *corpora))}


def test_the_product_is_right_about_all_of_them(detection) -> None:
    row = detection[PRODUCT]
    assert row["plain: F1 (precision, recall)"] == row["packed: F1 (precision, recall)"] == "1.000 (1.000, 1.000)"
    assert (row["lost"], row["wrongly dropped"]) == ("0", "0")


# Both corpora are crawled, so all that is lost is lost twice.
@pytest.mark.parametrize(
    ("variant", "wrong"),
    [
        ("no number veto", "2 report, 2 table"),
        ("no light labelled numbers", "2 table"),
        ("no second witness", "2 wall"),
        ("no least live weight", "2 bio"),
        ("no common clauses", "2 boilerplate"),
        ("no common clauses, no host frequency", "2 boilerplate"),
        (
            "none of the rules from the veto on",
            "2 report, 2 table, 2 bio, 2 wall, 2 boilerplate, 2 section",
        ),
        ("rival: Jaccard of 5-character shingles 0.8", "2 report, 2 table, 2 bio, 2 wall"),
        ("rival: hash of the extracted text", "2 bio, 2 wall"),
        ("rival: hash of the response's body", "0"),
    ],
)
def test_what_a_rule_keeps_is_dropped_without_it(detection, variant: str, wrong: str) -> None:
    assert detection[variant]["wrongly dropped"] == wrong
    assert detection[variant]["lost"] == str(sum(int(part.split()[0]) for part in wrong.split(", ")))


@pytest.mark.parametrize(
    ("variant", "recall"),
    [
        ("true text instead of the extracted", "1.000"),
        ("no Traditional to Simplified", "0.667"),
        ("rival: hash of the extracted text", "0.333"),
        ("rival: hash of the response's body", "0.000"),
    ],
)
def test_what_a_rule_finds_is_kept_without_it(detection, variant: str, recall: str) -> None:
    assert detection[variant]["plain: F1 (precision, recall)"].endswith(f", {recall})")


def test_one_variant_on_another_text(corpora: list[Path]) -> None:
    (row,) = table(run("detection.py", corpora[0], "--only", PRODUCT, "--text", "true"))
    assert row["variant"] == PRODUCT


def test_a_corpus_without_true_text_has_no_row_of_it(tmp_path: Path) -> None:
    rows = [{**row, "text": []} for row in TinyCrawl().rows]
    (tmp_path / "wild.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf8")
    variant = "true text instead of the extracted"
    (row,) = table(run("detection.py", tmp_path / "wild.jsonl", "--only", variant))
    assert row["wild: F1 (precision, recall)"] == row["ms a page"] == "-"


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


def test_the_second_opinion_finds_edited_copies_and_no_other_names(tmp_path: Path) -> None:
    corpus = tmp_path / "tiny.jsonl"
    rows = [
        {"id": str(n), "html": "", "cluster": n, "text": [_TOWN.format(town), *story(n), _TOWN.format(town)]}
        for n, town in _TOWNS
    ]
    corpus.write_text("\n".join(map(json.dumps, rows)), encoding="utf8")
    lines = [line.strip("| ").split(" | ") for line in run("second_opinion.py", corpus).stdout.splitlines()]
    shares = {line[0]: line[1].split(" / ") for line in lines if len(line) > 1}
    assert shares["paragraphs in another order"] == ["100%", "100%", "100%"]
    assert shares["a word in fifteen replaced"][:2] == ["0%", "100%"]
    assert shares["the same report with other names"][1] == "0%"


def test_no_thief_makes_an_original_of_a_preferred_host_drop(corpora: list[Path]) -> None:
    rows = table(run("poisoning.py", corpora[0], "--stories", "2"))
    assert {(row["victims"], row["dropped with it"]) for row in rows} == {("2", "0")}
    assert rows[0]["dropped without the setting"] == "2"


@pytest.mark.parametrize("store", [*ENGINES, "sqlite"])
def test_a_small_store_is_filled_judged_against_and_looked_at(store: str) -> None:
    need(store)
    finished = run("million.py", "--pages", "100", "--new", "10", "--unsealed", "20", "--store", store, "--text")
    assert (finished.returncode, finished.stderr) == (0, "")
    found = json.loads(finished.stdout)
    assert (found["pages"], found["store"]) == (100, store)
    assert found["ms"]["median"] > 0
    assert {"bytes_a_page", "stats_s", "explain_s", "recover_s", "memory_mb"} <= found.keys()


def test_string_hashes_collide_where_strings_are_equal_and_where_there_is_no_slot(corpora: list[Path]) -> None:
    equal, *hashes = table(run("string_hashes.py", *corpora, "--slots", "2"))
    (whole,) = (column for column in equal if column.startswith("collisions of "))
    count = int(whole.split()[-1])
    # Both corpora are the same: every page comes again.
    assert count // 2 <= int(equal[whole]) < count
    assert {row[whole] for row in hashes} == {equal[whole]}
    assert {row["in 2 slots"] for row in hashes} == {str(count - 2)}
    published = {row["hash"]: row["published: collisions of 1000"] for row in [equal, *hashes]}
    assert (len(hashes), published["equal strings"], published["ap"]) == (8, "419", "543")


def test_an_index_of_features_is_as_large_as_what_it_is_asked_to_hold() -> None:
    rows = table(run("feature_index.py", "500", "40", "--lookups", "100", "--stores", "sqlite"))
    kinds = ["dict", "SortedDict", "sqlite"]
    assert [(row["features"], row["index"]) for row in rows] == [(n, kind) for n in ("500", "40") for kind in kinds]
    assert all(float(row["insert, µs"]) > 0 and float(row["look up, µs"]) > 0 for row in rows)
    # Two objects of 8 bytes take more, and in a file there is no less.
    assert all(int(row["bytes a feature"]) >= 16 for row in rows)


def test_a_pair_that_collides_under_every_seed_is_printed() -> None:
    finished = run("collisions.py", "--pairs", "1", "--seeds", "10")
    assert (finished.returncode, finished.stderr) == (0, "")
    one, other = json.loads(finished.stdout)
    assert len(one.encode()) == len(other.encode()) == 24


def test_distances_in_word_order_and_negation_are_printed() -> None:
    rows = {row["method"]: row for row in table(run("word_order.py"))}
    # A bag of words sees no order, with positions or without: `mu=1` leaves them out.
    assert rows["simhash"]["word order"] == rows["p-simhash:mu=1"]["word order"] == "0"
    assert all(0 <= int(row[pair]) <= 64 for row in rows.values() for pair in row if pair != "method")
    assert {"e-simhash", "p-simhash", "p-simhash:positions=bdr"} <= rows.keys()
