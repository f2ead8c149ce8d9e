"""``scrapy dedup compare``: methods side by side on pages of one's own, as a user runs it."""

import gzip
import json
import lzma
import sys

import pytest
from benchmarks import corpus as benchmark
from hypothesis import given
from hypothesis import strategies as st
from prose import article, blog, story, zh_story
from test_commands import record, run_here, write_log

from dedup_middleware.errors import ConfigError
from dedup_middleware.methods.compare.corpus import CorpusPage
from dedup_middleware.methods.compare.results import scores
from dedup_middleware.methods.compare.run import Sweep
from dedup_middleware.methods.method import METHODS

THEIRS = '''
"""Methods of another package, each so simple that its results are known beforehand."""

import sys

from dedup_middleware.methods.method import Bits, Digest, Method, WeightedSet, feature, least_score


class Exact(Method):
    """All letters of the text."""

    threshold = 1.0

    def fingerprint(self, text):
        return Digest(feature("".join(text.paragraphs)))


class Overlap(Method):
    """The share of words."""

    def __init__(self, *, share=0.8):
        self.threshold = share

    def fingerprint(self, text):
        print("a library that talks")
        return WeightedSet({feature(word): 1.0 for word in " ".join(text.paragraphs).split()})


class Length(Method):
    """The number of paragraphs, in unary."""

    def __init__(self, *, distance=0):
        self.threshold = least_score(distance, 32)

    def fingerprint(self, text):
        return Bits(((1 << len(text.paragraphs)) - 1,), 32)


class Learner(Exact):
    """Only the texts that it has learned from."""

    learns = True

    def __init__(self):
        self._known = set()

    def fit(self, texts):
        self._known = {text.paragraphs for text in texts}

    def fingerprint(self, text):
        return super().fingerprint(text) if text.paragraphs in self._known else None


class Failing(Exact):
    def fingerprint(self, text):
        return 1 / 0


class Dying(Exact):
    def fingerprint(self, text):
        sys.exit("out of breath")
'''
KEYS = ["method", "precision", "recall", "f1", "lost", "ms_per_page", "bytes_per_page", "peak_mb"]


@pytest.fixture(autouse=True)
def _installed(install):
    """Have the packages of methods installed."""
    names = ["Exact", "Overlap", "Length", "Learner", "Failing", "Dying"]
    install("methods", THEIRS, **{name.lower(): name for name in names})
    install("methods", "import nothing_of_that_name", module="their_needy", needy="Needy")


@pytest.fixture(autouse=True)
def _measured_here(request):
    """Measure in this process, unless the test is about the processes of methods."""
    if not request.node.get_closest_marker("processes"):
        request.getfixturevalue("measured_here")


def rows():
    """Return three stories: one on three pages, of which one is half new, one on two, and one alone."""
    half = [*story(1)[:3], *story(4)[:3]]
    pages = {
        "first": (1, article("first", story(1))),
        "copy": (1, blog("copy", story(1))),
        "half": (1, article("half", half)),
        "other": (2, article("other", story(2))),
        "chinese": (3, article("chinese", zh_story(3, 7))),
        "copied": (3, blog("copied", zh_story(3, 7))),
    }
    return [
        {"id": name, "host": f"{name}.test", "path": "/", "html": html, "cluster": f"story {cluster}", "kind": "k"}
        for name, (cluster, html) in pages.items()
    ]


def write(path, pages):
    opened = {".xz": lzma.open, ".gz": gzip.open}.get(path.suffix, open)
    with opened(path, "wt", encoding="utf8") as file:
        file.writelines(f"{json.dumps(page, ensure_ascii=False)}\n" for page in pages)
    return path


@pytest.fixture
def corpus(tmp_path):
    return write(tmp_path / "pages.jsonl", rows())


@pytest.fixture
def unlabelled(tmp_path):
    pages = [{"url": f"http://{page['host']}/", "html": page["html"]} for page in rows()]
    return write(tmp_path / "mine.jsonl", pages)


def compare(corpus, *arguments):
    """Run the command in this process."""
    return run_here("compare", str(corpus), *arguments, folder=corpus.parent)


def methods(*names):
    return [word for name in names for word in ("--method", name)]


def columns(text, first, last):
    return [line.split()[first:last] for line in text.splitlines()]


def by_method(said):
    assert said.exit_status == 0, said.err
    return {row["method"]: row for row in json.loads(said.out)}


class TestScores:
    @pytest.mark.processes
    def test_the_drops_of_each_method_are_scored_beside_its_costs(self, corpus):
        found = by_method(compare(corpus, "--pure", "--json", *methods("exact", "overlap", "length")))
        assert all(list(row) == KEYS for row in found.values())
        assert {name: [row[key] for key in KEYS[1:5]] for name, row in found.items()} == {
            # Two copies of three pages that should go.
            "clauses": [1.0, 0.6667, 0.8, 0],
            "exact": [1.0, 0.6667, 0.8, 0],
            "overlap": [1.0, 0.6667, 0.8, 0],
            # All English pages have six paragraphs, and one of them is another story.
            "length": [0.75, 1.0, 0.8571, 1],
        }
        # A digest of 8 bytes behind the letter of its kind, and the same as a key.
        assert found["exact"]["bytes_per_page"] == 17
        assert all(row["ms_per_page"] > 0 and row["peak_mb"] >= 0 for row in found.values())

    def test_methods_are_compared_with_checks_by_default(self, corpus):
        found = by_method(compare(corpus, "--json", "--fit", "1", *methods("exact", "length", "learner")))
        dropped = {name: (row["precision"], row["recall"], row["lost"]) for name, row in found.items()}
        assert dropped["exact"] == dropped["learner"] == (1.0, 0.6667, 0)
        # A check keeps another story that has equally many paragraphs.
        assert dropped["length"][2] == 0
        assert (dropped["clauses"][0], dropped["clauses"][2]) == (1.0, 0)
        assert dropped["clauses"][1] >= 0.6667

    @pytest.mark.processes
    def test_every_method_is_compared_if_none_is_named(self, corpus, monkeypatch):
        monkeypatch.setattr(METHODS, "ours", {})
        said = compare(corpus, "--pure").out
        assert columns(said, 0, 1)[1:] == [["clauses"], ["exact"], ["learner"], ["length"], ["overlap"]]

    def test_a_method_that_learns_does_so_from_the_first_pages(self, corpus):
        said = [compare(corpus, "--pure", "--json", "--fit", fit, *methods("learner")) for fit in ("0", "0.2", "1")]
        # It has learned the first story, which is enough for its copy, or all.
        assert [by_method(each)["learner"]["recall"] for each in said] == [0.3333, 0.3333, 0.6667]


def test_recall_is_of_the_copies_of_each_cluster_by_itself() -> None:
    """Of a, all three go, which is right beside the optional page that was kept; the copy of b is not found."""
    clusters = [("a", True), ("a", False), ("a", False), ("a", False), ("b", False), ("b", False)]
    pages = [CorpusPage(str(n), "", cluster, optional) for n, (cluster, optional) in enumerate(clusters)]
    assert scores(pages, [0, 0, 0, 0, 4, 5]) == (1.0, 0.6667, 0.8, 0)
    theirs = [benchmark.CorpusPage(p.id, "", (), "", "", p.cluster or "", "", p.is_optional) for p in pages]
    assert benchmark.drop_agreement(theirs, {"0", "4", "5"}).recall == pytest.approx(2 / 3)


page_lists = st.lists(
    st.tuples(st.sampled_from("abc"), st.booleans(), st.one_of(st.none(), st.integers(0, 9))), min_size=1, max_size=10
)


@given(page_lists)
def test_scores_are_those_of_the_benchmarks(drawn):
    pages = [CorpusPage(str(n), "", cluster, optional) for n, (cluster, optional, _) in enumerate(drawn)]
    originals = [n if original is None else original % len(drawn) for n, (_, _, original) in enumerate(drawn)]
    theirs = [benchmark.CorpusPage(p.id, "", (), "", "", p.cluster or "", "", p.is_optional) for p in pages]
    delivered = {str(n) for n, original in enumerate(originals) if n == original}
    agreement = benchmark.drop_agreement(theirs, delivered)
    expected = [agreement.precision, agreement.recall, agreement.f1, benchmark.lost_pages(theirs, delivered)]
    assert [*scores(pages, originals)] == pytest.approx(expected, abs=5e-5)


class TestCorpora:
    def test_a_corpus_may_be_packed(self, tmp_path):
        for suffix in (".gz", ".xz"):
            corpus = write(tmp_path / f"pages{suffix}", rows())
            assert "0.6667" in compare(corpus, "--pure", *methods("clauses")).out

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("", ["is empty", "a page a line"]),
            ("html,cluster\n", ["line 1", "not JSON"]),
            ('{"html": "a", "cluster": 1}\n[1]\n', ["line 2", "not a JSON object"]),
            ('\n{"cluster": 1}\n', ["line 2", "no html"]),
            ('{"html": 1}\n', ["line 1", "html must be a string, got 1"]),
            ('{"html": "a", "cluster": ["b"]}\n', ["line 1", "cluster must be a string or a whole number"]),
            ('{"html": "a", "id": true}\n', ["line 1", "id must be a string or a whole number, got True"]),
            ('{"html": "a", "optional": "yes"}\n', ["line 1", "optional must be true or false"]),
            ('{"html": "a", "id": 1}\n{"html": "a", "id": "1"}\n', ["line 2", "'1' is that of line 1"]),
            ('{"html": "a", "cluster": 1}\n{"html": "a"}\n', ["line 2", "Label all pages, or none"]),
        ],
    )
    def test_a_mistake_in_a_corpus_is_a_line(self, tmp_path, text, words):
        corpus = tmp_path / "bad.jsonl"
        corpus.write_text(text)
        compare(corpus, *methods("clauses")).refused(str(corpus), *words)

    @pytest.mark.parametrize(
        ("name", "content", "words"),
        [
            ("none", None, ["near line 0", "No such file"]),
            ("a.xz", b"not packed", ["line 1", "not JSON"]),
            ("b.gz", gzip.compress(b'{"html": ""}\n' * 9, mtime=0)[:-9], ["near line", "cannot be unpacked"]),
            ("c.jsonl", b"{\xff}", ["near line 1", "can't decode byte 0xff"]),
        ],
    )
    def test_a_file_that_cannot_be_read_is_a_line(self, tmp_path, name, content, words):
        if content is not None:
            (tmp_path / name).write_bytes(content)
        compare(tmp_path / name, *methods("clauses")).refused(name, *words)

    def test_a_log_of_records_contains_no_pages(self, tmp_path):
        write_log(tmp_path / "records.jsonl", record("http://a/"))
        said = compare(tmp_path / "records.jsonl", *methods("clauses"))
        said.refused("these are records, which contain no pages", "HTTPCACHE_ENABLED=True")


class TestPagesWithoutClusters:
    def test_methods_are_compared_with_each_other(self, unlabelled):
        said = compare(unlabelled, "--pure", *methods("exact", "length"))
        costs, agreement, disputed = said.out.strip().split("\n\n")
        assert columns(costs, 0, 2) == [["method", "drops"], ["clauses", "2"], ["exact", "2"], ["length", "4"]]
        assert [line.split() for line in agreement.splitlines()] == [
            ["drops", "in", "common", "1", "2", "3"],
            ["1", "clauses", "2", "2", "2"],
            ["2", "exact", "2", "2", "2"],
            ["3", "length", "2", "2", "4"],
        ]
        assert [line.split() for line in disputed.splitlines()[1:]] == [
            ["http://half.test/", "3", "1", "2"],
            ["http://other.test/", "3", "1", "2"],
        ]

    def test_the_same_as_json(self, unlabelled):
        said = json.loads(compare(unlabelled, "--pure", "--json", *methods("length")).out)
        assert [list(row) for row in said["methods"]] == [KEYS, KEYS]
        assert {row["f1"] for row in said["methods"]} == {None}
        assert said["agreement"] == [{"method": "clauses", "other": "length", "both": 2, "either": 4, "agreement": 0.5}]
        half = {"id": "3", "url": "http://half.test/", "dropped_by": ["length"], "kept_by": ["clauses"]}
        assert said["disputed"][0] == half


class TestMethodsThatCannotBeMeasured:
    @pytest.mark.parametrize(
        ("choice", "words"),
        [
            ("simhahs", ["'simhahs' is not one of", "overlap"]),
            ("clauses:x=1", ["clauses has no options here"]),
            ("overlap:colour=red", ["has no option 'colour'"]),
            ("overlap:share=much", ["a number for share"]),
        ],
    )
    def test_a_wrong_choice_is_a_line(self, corpus, choice, words):
        compare(corpus, *methods(choice)).refused(*words)

    def test_a_method_whose_package_is_missing_is_left_out(self, corpus):
        said = compare(corpus, "--pure", *methods("needy", "exact"))
        assert columns(said.out, 0, 1) == [["method"], ["clauses"], ["exact"]]
        (line,) = said.err.splitlines()
        assert line.startswith("dedup: left out needy: ")
        assert "nothing_of_that_name" in line
        assert said.exit_status == 0

    @pytest.mark.processes
    @pytest.mark.parametrize(("name", "words"), [("failing", "ZeroDivisionError"), ("dying", "out of breath")])
    def test_a_method_that_fails_spoils_no_other(self, corpus, name, words):
        said = compare(corpus, "--pure", *methods(name, "exact"))
        assert columns(said.out, 0, 1) == [["method"], ["clauses"], ["exact"]]
        failed, summary = said.err.splitlines()
        assert failed.startswith(f"dedup: {name} failed: ")
        assert words in failed
        assert summary == "dedup: 1 of 3 methods could not be measured."
        assert said.exit_status == 1


class TestSweeps:
    def test_each_value_of_an_option_is_scored(self, corpus):
        said = compare(corpus, "--pure", "--sweep", "overlap:share=0.3..0.9:0.3")
        assert [line.split() for line in said.out.splitlines()] == [
            ["share", "precision", "recall", "F1", "lost"],
            ["0.3", "0.7500", "1.0000", "0.8571", "1"],
            ["0.6", "1.0000", "1.0000", "1.0000", "0"],
            ["0.9", "1.0000", "0.6667", "0.8000", "0"],
        ]
        found = by_method(compare(corpus, "--pure", "--json", "--sweep", "length:distance=0..1"))
        assert list(found) == ["length:distance=0", "length:distance=1"]

    @pytest.mark.parametrize(
        ("text", "values"),
        [
            ("m:a=0..3", ["0", "1", "2", "3"]),
            ("m:a=0..16:8", ["0", "8", "16"]),
            ("m:a=0.90..0.92", ["0.90", "0.91", "0.92"]),
            ("m:a=-1..1", ["-1", "0", "1"]),
            ("m:a=1..2:.5", ["1.0", "1.5", "2.0"]),
            ("m:a=2..2", ["2"]),
        ],
    )
    def test_its_values(self, text, values):
        assert Sweep(text).values == values
        assert Sweep(text.replace("m:", "m:bits=128,")).choices == [f"m:bits=128,a={value}" for value in values]

    @pytest.mark.parametrize(
        "text",
        [
            *("simhash", "m:a=1", "m:a=..2", "m:a=x..2", "m:a=1..2..3", "m:a=1.2.3..4", "m:=1..2"),
            *("m:a=2..1", "m:a=1..2:0", "m:a=1..2:-1", "m:a=0..999"),
        ],
    )
    def test_an_invalid_sweep(self, text):
        with pytest.raises(ConfigError, match=r"is not a sweep\. Write METHOD|invalid range|has 1000 values"):
            Sweep(text)


class TestFiles:
    @pytest.mark.parametrize(
        ("arguments", "suffix", "start"),
        [
            (["--method", "length"], "png", b"\x89PNG"),
            (["--sweep", "length:distance=0..3"], "png", b"\x89PNG"),
            (["--sweep", "length:distance=0..1"], "svg", b"<?xml"),
            (["--method", "exact"], "pdf", b"%PDF"),
        ],
    )
    def test_a_picture_is_drawn(self, corpus, arguments, suffix, start):
        pytest.importorskip("matplotlib")
        said = compare(corpus, "--pure", "--plot", f"drawn.{suffix}", *arguments)
        assert (said.exit_status, said.err) == (0, "")
        assert (corpus.parent / f"drawn.{suffix}").read_bytes().startswith(start)

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["--sweep", "length:distance=0..1", *methods("exact")], "--sweep names its method"),
            (["--plot", "nowhere/drawn.png"], "a folder that exists"),
            (["--plot", "drawn.txt"], "is not a picture. Give it a name that ends in .png or .svg or .pdf"),
        ],
    )
    def test_options_that_cannot_work_are_a_line(self, corpus, arguments, words):
        pytest.importorskip("matplotlib")
        compare(corpus, *arguments).refused(words)

    def test_pages_without_clusters_have_no_scores_to_draw(self, unlabelled):
        pytest.importorskip("matplotlib")
        for arguments in (["--plot", "drawn.png", *methods("exact")], ["--sweep", "length:distance=0..1"]):
            compare(unlabelled, "--pure", *arguments).refused("has no clusters to score by")

    def test_without_matplotlib_a_picture_is_refused(self, corpus, monkeypatch):
        monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
        said = compare(corpus, "--plot", "drawn.png", *methods("clauses"))
        said.refused("--plot needs matplotlib", 'pip install "dedup-middleware[compare]"')

    @pytest.mark.processes
    def test_no_other_file_is_left_behind(self, corpus, tmp_path, monkeypatch):
        scratch = tmp_path / "scratch"
        scratch.mkdir()
        monkeypatch.setattr("tempfile.tempdir", str(scratch))
        compare(corpus, *methods("clauses"))
        assert list(scratch.iterdir()) == []
        assert sorted(path.name for path in tmp_path.iterdir()) == ["pages.jsonl", "scratch"]


def test_a_table_is_as_wide_as_the_terminal():
    from dedup_middleware.text.terminal import Table, rendered  # noqa: PLC0415 - as the command does, when asked

    table = Table(["method", "recall"], [["a method with a long name, and 中文", "0.5"], ["b", "1"]])
    assert rendered(table).splitlines()[1:] == ["a method with a long name, and 中文     0.5", "b" + "1".rjust(42)]
    shown = rendered(table, 30).splitlines()
    assert shown[1] == "a method wi…, and 中文     0.5"
