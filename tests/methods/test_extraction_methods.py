"""What every extraction promises that can be chosen by name."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree
from parsel import Selector
from prose import article, blog, story, zh_story

from dedup_middleware.api import Deduplicator
from dedup_middleware.budget import UNLIMITED, Budget, UncheckableError
from dedup_middleware.errors import ConfigError
from dedup_middleware.extraction import EXTRACTORS, Extracted, extractor
from dedup_middleware.methods.extractors import density, learned, same_format, trafilatura
from dedup_middleware.methods.extractors.reading import Line
from dedup_middleware.model import PageFeatures
from dedup_middleware.reasons import Reason

if TYPE_CHECKING:
    from lxml.etree import _Element

LITERATURE = Path(density.__file__).parent
try:
    extractor("trafilatura")
    MISSING = ""
except ConfigError as error:
    MISSING = str(error)
each_extractor = pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.skipif(name == "trafilatura" and bool(MISSING), reason=MISSING))
        for name in EXTRACTORS.ours
    ],
)

MENU = "".join(f'<li><a href="/section/{n}">Section {n} of the paper</a></li>' for n in range(30))
LINKS = f"<html><head><title>All sections</title></head><body><div><ul>{MENU}</ul></div></body></html>"
TOLD = "".join(f"<p>{paragraph}</p>" for paragraph in story(1))
ZH_TOLD = "".join(f"<p>{paragraph}</p>" for paragraph in zh_story(1))


def page(told: str) -> str:
    return (
        f"<html><head><title>In the news</title></head><body><nav><ul>{MENU}</ul></nav>"
        f"<article>{told}</article></body></html>"
    )


PAGES = {
    "an article": page(TOLD),
    "nothing": "",
    "white space": " \n ",
    "only links": LINKS,
    "2000 elements deep": page("<div>" * 2000 + TOLD + "</div>" * 2000),
    "a megabyte in one line": page(f"<p>{' '.join(story(1, 4000))[:1_000_000]}</p>"),
    "no element is closed": LINKS.replace("</li>", "").replace("</ul></div></body></html>", "<p>")
    + "<p>".join(story(1)),
    "Chinese": page(ZH_TOLD),
    "half a character": page(TOLD.replace("e", "\ud800")),
    "comments": page("<!-- one -->".join(f"<p>{paragraph}<!-- two -->" for paragraph in story(1))),
}


def root_of(html: str) -> _Element:
    """Return the tree that a callback gets."""
    root = Selector(text=html.encode("utf8", "replace").decode(), huge_tree=True).root
    assert isinstance(root, etree._Element)
    return root


def extracted(name: str, html: str, budget: Budget = UNLIMITED) -> Extracted:
    return extractor(name)(root_of(html), budget)


def text_of(found: Extracted) -> str:
    return "\n".join(found.paragraphs)


@each_extractor
def test_it_finds_the_story_and_not_the_menu(name: str) -> None:
    for html in (page(TOLD), article("One", story(1)), blog("One", story(1))):
        text = text_of(extracted(name, html))
        # One of them cuts off what stands at the ends of a text.
        assert all(paragraph in text for paragraph in story(1)[1:-1])
        assert "Section" not in text
        assert "Sport" not in text


@each_extractor
def test_it_finds_a_story_in_chinese(name: str) -> None:
    text = text_of(extracted(name, PAGES["Chinese"]))
    assert all(paragraph in text for paragraph in zh_story(1)[1:-1])
    assert "Section" not in text


@each_extractor
def test_it_finds_the_story_in_odd_markup(name: str) -> None:
    for case in ("2000 elements deep", "no element is closed", "comments"):
        text = text_of(extracted(name, PAGES[case]))
        assert all(paragraph in text for paragraph in story(1)[1:-1]), case
        # Of a list that is not closed, the last item holds the story.
        assert text.count("Section") <= 1, case


@each_extractor
def test_it_finds_most_of_a_megabyte(name: str) -> None:
    assert len(text_of(extracted(name, PAGES["a megabyte in one line"]))) > 790_000


@each_extractor
def test_there_may_be_no_main_text(name: str) -> None:
    for case in ("nothing", "white space", "only links"):
        assert [*extracted(name, PAGES[case]).paragraphs] == [], case


@each_extractor
def test_it_reads_the_same_again_and_leaves_the_tree_alone(name: str) -> None:
    for case, html in PAGES.items():
        root = root_of(html)
        before = etree.tostring(root)
        first, second = extractor(name)(root, Budget()), extractor(name)(root, Budget())
        assert first == second, case
        assert isinstance(first.features, PageFeatures)
        assert all(paragraph == paragraph.strip() != "" for paragraph in first.paragraphs), case
        assert etree.tostring(root) == before, case


@each_extractor
def test_it_says_what_stands_around(name: str) -> None:
    titled = extracted(name, article("One", story(1))).features
    assert titled.title.startswith("In North")
    headed = extracted(name, f"<body><h1>The harbour is closed</h1><div>{TOLD}</div><span>17 readers").features
    assert (headed.title, headed.heading) == ("", "The harbour is closed")


@pytest.mark.parametrize("name", ["density", "tags", "same-format", "learned"])
def test_what_it_leaves_out_stands_around(name: str) -> None:
    found = extracted(name, page(f"{TOLD}<table><tr><td><b>17 readers"))
    assert "17" not in text_of(found)
    assert found.features.texts


@each_extractor
def test_it_stops_at_what_a_page_may_cost(name: str) -> None:
    with pytest.raises(UncheckableError, match=Reason.TOO_MANY_ELEMENTS):
        extracted(name, page(TOLD), Budget(elements=20))
    with pytest.raises(UncheckableError, match=Reason.TOO_MANY_ELEMENTS):
        extracted(name, page("<!-- -->" * 200), Budget(elements=150))
    with pytest.raises(UncheckableError, match=Reason.TOO_SLOW):
        extracted(name, page(TOLD), Budget(milliseconds=0))
    elements = sum(1 for _ in root_of(page(TOLD)).iter())
    assert extracted(name, page(TOLD), Budget(elements=elements)).paragraphs


@each_extractor
def test_it_refuses_a_page_that_its_parser_has_cut_off(name: str) -> None:
    with pytest.raises(UncheckableError, match=Reason.NESTED_TOO_DEEPLY):
        extracted(name, page("<div>" * 4000 + TOLD))


@each_extractor
def test_a_repost_is_a_duplicate_by_it(name: str) -> None:
    with Deduplicator("memory:", extractor=name) as dedup:
        verdicts = [
            dedup.add("http://a/1", article("a", story(1))).verdict,
            dedup.add("http://a/2", article("a", story(2))).verdict,
            dedup.add("http://b/1", blog("b", story(1))).verdict,
        ]
    assert verdicts == ["new", "new", "duplicate"]


def test_each_module_names_its_source_and_what_is_ours() -> None:
    modules = {place.partition(":")[0].rpartition(".") for place in EXTRACTORS.ours.values()}
    for name in [name for package, _, name in modules if package == "dedup_middleware.methods.extractors"]:
        said = ast.get_docstring(ast.parse((LITERATURE / f"{name}.py").read_text(encoding="utf8")))
        assert said is not None, name
        parts = [said.find(f"\n\n{part}: ") for part in ("Source", "Specified", "Left open", "Departures")]
        assert -1 < parts[0] < parts[1] < parts[2] < parts[3], name


def test_none_is_imported_before_it_is_chosen() -> None:
    code = (
        "import sys, dedup_middleware.api; from dedup_middleware.extraction import extractor; "
        "extractor('weighted-dom'); print([name for name in sys.modules if '.methods' in name])"
    )
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert said.strip() == "[]"


# --- of one method each


def test_density_weighs_the_two_examples_as_published() -> None:
    assert density.weight(0.8, kind=1, depth=density.DEEP) == pytest.approx(0.9)
    assert density.weight(0.2, kind=-1, depth=0) == pytest.approx(0.1)


@given(st.floats(0, 1), st.integers(-1, 1), st.integers(0, 3000), st.integers(0, 3000))
def test_density_weighs_no_less_what_is_deeper(share: float, kind: int, one: int, other: int) -> None:
    low, high = sorted((one, other))
    assert density.weight(share, kind, low) <= density.weight(share, kind, high)


def test_density_prunes_a_light_list_with_the_paragraphs_in_it() -> None:
    listed = "".join(
        f'<li><a href="/a/long/way/to/another/page/{n}">Go</a><p>A heavy teaser.</p></li>' for n in range(9)
    )
    assert "teaser" not in text_of(extracted("density", page(f"{TOLD}<ul>{listed}</ul>")))


@pytest.mark.parametrize(
    ("boilerplate", "says"),
    [
        ("<footer><p>Printed, as ever, on paper.</p></footer>", "on paper"),
        ("<div class='related-posts'><p>Read this, too.</p></div>", "Read this"),
        ("<p style='display: none'>Nobody, ever, sees it.</p>", "Nobody"),
        ("<p>No mark at all</p>", "No mark"),
        ("<p><a href='/x'>A link, as a whole.</a></p>", "A link"),
        ("<table><caption>A title, of a table.</caption></table>", "A title"),
    ],
)
def test_tags_leave_out_what_a_rule_bars(boilerplate: str, says: str) -> None:
    told = f"{TOLD}{boilerplate}{TOLD}"
    assert says in told
    assert says not in text_of(extracted("tags", page(told)))


@pytest.mark.parametrize(
    "sign", ["div itemprop=articleBody", "article", "main", "div role=main", "div class=post", "div id=article-content"]
)
def test_tags_look_first_where_an_article_is_said_to_be(sign: str) -> None:
    tag = sign.partition(" ")[0]
    html = f"<body><div class=x><p>Elsewhere, something else is said.</p></div><{sign}>{TOLD}</{tag}>"
    text = text_of(extracted("tags", html))
    assert story(1)[0] in text
    assert "Elsewhere" not in text
    assert "Elsewhere" in text_of(extracted("tags", html.replace(f"<{sign}>", "<div>")))


def test_one_format_is_that_with_the_most_text() -> None:
    told = "".join(f"<font size=3>{paragraph}</font><br>" for paragraph in story(1))
    aside = "<font size=1>A remark in small letters.</font>"
    text = text_of(extracted("same-format", f"<body>{aside}{told}{aside}"))
    assert story(1)[3] in text
    assert "remark" not in text


def test_one_format_loses_the_tenth_at_each_end() -> None:
    sentences = [f"Sentence number {n:02d} is here." for n in range(20)]
    text = text_of(extracted("same-format", f"<body><p>{' '.join(sentences)}</p>"))
    assert text == " ".join(sentences[2:18])


@given(st.lists(st.text("ab. 。\n", max_size=30), max_size=8))
def test_what_is_left_between_the_tenths_is_in_the_text(paragraphs: list[str]) -> None:
    kept = [*same_format.trimmed(paragraphs)]
    assert len(kept) == len(paragraphs)
    assert all(part in whole for part, whole in zip(kept, paragraphs, strict=True))
    spoken = sum(map(len, paragraphs)) and any(map(same_format.sentences, paragraphs))
    assert bool("".join(kept)) <= bool(spoken)


def test_learned_counts_words_and_links_of_a_line_and_of_its_neighbours() -> None:
    first, second = learned.features_of_lines([Line("one two three", 0, 0.0), Line("四五", 0, 0.5)])
    one, other, none = [0.0, pytest.approx(1.386, abs=1e-3), 3.0], [0.5, pytest.approx(0.693, abs=1e-3), 1.0], [0.0] * 3
    assert first == [*one, *none, *other]
    assert second == [*other, *one, *none]


def test_learned_prefers_long_lines_without_links() -> None:
    sentence = Line("The old harbour was closed for good on a rainy day in March by order of the council.", 0, 0.0)
    label, link = Line("Contact", 0, 0.0), Line(sentence.text, 0, 1.0)
    assert learned.score(learned.features_of_lines([sentence] * 3)[1]) > 0
    assert learned.score(learned.features_of_lines([label] * 3)[1]) < 0
    assert learned.score(learned.features_of_lines([link] * 3)[1]) < 0


def test_the_numbers_are_learned_of_one_half_and_measured_on_the_other(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    rows = [{"id": str(n), "html": article(str(n), story(n)), "text": story(n)} for n in range(12)]
    corpus = tmp_path / "tiny.jsonl"
    corpus.write_text("\n".join(map(json.dumps, rows)), encoding="utf8")
    program = Path(__file__).parent.parent / "benchmarks" / "train_blocks.py"
    said = subprocess.run([sys.executable, program, corpus], check=True, capture_output=True, text=True).stdout.split(
        "\n"
    )
    assert said[0].startswith("WEIGHTS = (")
    assert said[1].startswith("BIAS = ")
    cells = [line.strip("| ").split(" | ") for line in said[5:7]]
    assert [row[0] for row in cells] == ["learned from", "the other"]
    assert sum(int(row[1]) for row in cells) == 12
    assert all(float(row[7]) > 0.9 for row in cells)


@pytest.mark.skipif(bool(MISSING), reason=MISSING)
def test_what_another_package_cannot_go_down_to_is_not_checked() -> None:
    with pytest.raises(UncheckableError, match=Reason.NESTED_TOO_DEEPLY):
        extracted("trafilatura", page("<ul><li>" * 1000 + TOLD))


def test_a_package_that_is_not_installed_is_named_before_the_first_page(monkeypatch: pytest.MonkeyPatch) -> None:
    trafilatura._library.cache_clear()
    monkeypatch.setitem(sys.modules, "trafilatura", None)
    with pytest.raises(ConfigError, match="run pip install trafilatura"):
        Deduplicator("memory:", extractor="trafilatura")
    trafilatura._library.cache_clear()
