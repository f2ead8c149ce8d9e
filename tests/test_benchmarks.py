"""The commands that print the tables of docs/, on small corpora whose rows can be predicted."""

import json
import lzma
import re
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.corpus import ARTICLE_FIELDS, read_corpus, relabelled
from crawling import environment, start
from prose import article, blog, story

HERE = Path(__file__).parent
PRODUCT = "the product"
_TABLE = "At the weather station by the lighthouse, the keeper noted this for the day and the night. Gusts: {} kmh."


def row(number, cluster, told, page=article, **fields):
    fields = {"host": f"host{number}.test", "path": f"/{number}", "text": told, **fields}
    html = page(f"Title {number}", told)
    return {"id": f"page {number}", "html": html, "cluster": cluster, **fields}


#: A copy, a table with another number, and one text at two URLs of a host.
ROWS = [
    row(0, "copy", story(1)),
    row(1, "copy", story(1), blog),
    *(row(day, f"table {day}", [*story(6), _TABLE.format(day)]) for day in (12, 31)),
    *(row(40 + n, f"wall {n}", story(7, 1), host="wall.test", text=[]) for n in range(2)),
]


def written(path, rows):
    lines = "".join(json.dumps(each) + "\n" for each in rows)
    path.write_bytes(lzma.compress(lines.encode()) if path.suffix == ".xz" else lines.encode())
    return path


def run(name, *arguments):
    command = [sys.executable, str(HERE / "benchmarks" / name), *map(str, arguments)]
    process = start(HERE.parent, command, environment())
    printed = process.communicate(timeout=300)
    return subprocess.CompletedProcess(command, process.returncode or 0, *printed)


def table(finished):
    """Return the rows of the printed table, by the names of its columns."""
    assert (finished.returncode, finished.stderr) == (0, "")
    header, rule, *rows = ([c.strip() for c in line.strip("|").split("|")] for line in finished.stdout.splitlines())
    assert set(rule) == {"---"}
    return [dict(zip(header, cells, strict=True)) for cells in rows]


CRAWLS = ("text, given", "title, given", "text, reversed", "title, reversed")


def test_labelled_crawls_and_what_a_row_of_the_table_earns(tmp_path):
    corpus, saved = written(tmp_path / "tiny.jsonl.xz", ROWS), tmp_path / "saved.json"
    for found in table(run("detection.py", corpus, "--save", saved)):
        assert found["corpus"] in {"tiny", "all"}
        assert [found[name] for name in CRAWLS] == ["0, 1/1"] * 4
    printed = run("detection.py", corpus, "--without", "number", "slip", "--jobs", "1")
    assert (printed.returncode, printed.stderr) == (0, "")
    rows = [[cell.strip() for cell in each.strip("|").split("|")] for each in printed.stdout.splitlines()]
    # Of two tables that differ in a number, one is lost.
    assert rows[-2:] == [["number", *["+1, +0"] * 4, "tiny"], ["slip", *["="] * 4, ""]]


def test_verdicts_beside_those_of_a_run_before(tmp_path):
    corpus, saved = written(tmp_path / "tiny.jsonl", ROWS), tmp_path / "saved.json"
    run("detection.py", corpus, "--save", saved)
    for found in table(run("detection.py", corpus, "--against", saved, "--flips", "9"))[:1]:
        assert [found[name] for name in CRAWLS] == ["="] * 4
    before = json.loads(saved.read_text())
    crawl = before["tiny"]["text, given"]
    assert crawl["pages"]["page 1"] == [False, "duplicate", "cross_host", "page 0", 1.0, []]
    crawl["score"], crawl["pages"]["page 1"] = [0, 0, 1], [True, "new", "", None, None, []]
    saved.write_text(json.dumps(before))
    lines = run("detection.py", corpus, "--against", saved, "--flips", "9").stdout.splitlines()
    assert lines[2].startswith("| tiny | 0, 0→1/1 | = | = | = |")
    assert lines[-1] == "tiny, text, given: page 1 is dropped now: duplicate cross_host of page 0 (before: new)"
    assert "cannot be read" in run("detection.py", corpus, "--against", tmp_path / "nowhere").stderr


def labels(tmp_path, *rows):
    """Return cluster and optionality of *rows* in their order."""
    path = written(tmp_path / "pages.jsonl", ({"id": str(n), "html": "", **each} for n, each in enumerate(rows)))
    return [(page.cluster, page.optional) for page in relabelled(read_corpus(path, ARTICLE_FIELDS))]


def test_what_is_right_depends_on_the_order(tmp_path):
    told, rest = story(50), story(51, 1)
    whole = {"cluster": "whole", "text": [*told, *rest]}
    trimmed = {"cluster": "whole", "own": "trimmed", "of": "whole", "text": told, "optional": True}
    part = {"cluster": "part", "text": "\n".join(told)}
    edited = {"cluster": "whole", "host": "a.test", "kind": "edited", "text": told}
    for rows, expected in [
        ((whole, trimmed), [("whole", False), ("whole", False)]),
        ((trimmed, whole), [("trimmed", False), ("whole", False)]),
        ((whole, part), [("whole", False), ("part", True)]),
        ((part, whole), [("part", False), ("whole", False)]),
        # A fact of its own is text.
        ((whole, {**part, "facts": ["7 eggs"]}), [("whole", False), ("part", False)]),
        # A site's own new version may be dropped or kept, another site's is a copy.
        (({**whole, "host": "a.test"}, edited), [("whole", False), ("whole", True)]),
        (({**whole, "host": "b.test"}, edited), [("whole", False), ("whole", False)]),
    ]:
        assert labels(tmp_path, *rows) == expected


def test_extractors_side_by_side(tmp_path):
    corpus = written(tmp_path / "tiny.jsonl", ROWS)
    pages, time = table(run("extraction.py", corpus, "--rounds", "1", "--only", PRODUCT, "--only", "density"))
    assert (pages["pages"], pages[PRODUCT]) == ("4", "1.000 (0)")
    assert float(time[PRODUCT]) > 1


def test_what_each_stage_of_the_extraction_costs(tmp_path):
    (found,) = table(run("stages.py", written(tmp_path / "tiny.jsonl", ROWS), "--rounds", "1"))
    assert found["pages"] == "6"
    assert float(found["all"]) > float(found["walk"]) > 0


def test_a_small_store_is_filled_and_measured(tmp_path):
    sizes = ("--first", "4", "--pages", "50", "--new", "5")
    growth, _, last = run("capacity.py", *sizes, f"sqlite:{tmp_path}/store").stdout.rpartition("\n\n")
    found = json.loads(last)
    assert (found["pages"], found["store"]) == (50, "sqlite")
    assert found["new page"]["median"] > 0
    rows = [each.strip("| ").split(" | ") for each in growth.splitlines()]
    assert [each[0] for each in rows] == ["pages in sqlite", "---", "4", "40", "50"]
    assert int(rows[-1][1].replace(",", "")) == found["bytes_a_page"]
    assert all(float(cell) > 0 for each in rows[2:] for cell in each[2:])


def test_what_other_tools_would_drop(tmp_path):
    pytest.importorskip("datasketch")
    tools = [name for tool in ("the product", "URL", "page digest") for name in ("--only", tool)]
    (product, url, digest) = table(run("neighbours.py", written(tmp_path / "tiny.jsonl", ROWS), *tools))
    assert product["tiny"] == "0 / 1.00"
    assert url["tiny"] == digest["tiny"] == "0 / 0.00"
    (timed,) = table(run("neighbours.py", tmp_path / "tiny.jsonl", *tools[:2], "--time"))
    assert re.fullmatch(r"0 / 1\.00 / \d+\.\d ms", timed["tiny"])


def test_what_the_plugin_costs_a_crawl(tmp_path):
    (found,) = table(run("cost.py", written(tmp_path / "tiny.jsonl", ROWS), "--rounds", "1"))
    assert (found["corpus"], found["pages"], found["dropped"]) == ("tiny", "6", "1")
    assert float(found["CPU"]) > 0 < float(found["again, pages only"])
