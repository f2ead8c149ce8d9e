"""What every extraction promises that can be chosen by name."""

import inspect
import subprocess
import sys
from importlib.util import find_spec

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree
from parsel import Selector
from prose import article, blog, story, zh_story

from dedup_middleware.api import Deduplicator
from dedup_middleware.common.budget import UNLIMITED, Budget, UncheckableError
from dedup_middleware.errors import ConfigError
from dedup_middleware.extraction import EXTRACTORS, extractor
from dedup_middleware.methods.extractors import density, trafilatura
from dedup_middleware.model import PageFeatures
from dedup_middleware.reasons import Reason

each_extractor = pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.skipif(name == "trafilatura" and not find_spec(name), reason="no package"))
        for name in EXTRACTORS.ours
    ],
)

MENU = "".join(f'<li><a href="/section/{n}">Section {n} of the paper</a></li>' for n in range(30))
LINKS = f"<html><head><title>All sections</title></head><body><div><ul>{MENU}</ul></div></body></html>"
TOLD = "".join(f"<p>{paragraph}</p>" for paragraph in story(1))


def page(body):
    head = f"<html><head><title>In the news</title></head><body><nav><ul>{MENU}</ul></nav>"
    return f"{head}<article>{body}</article></body></html>"


STORIES = {
    "an article": page(TOLD),
    "a newspaper": article("One", story(1)),
    "a blog": blog("One", story(1)),
    "2000 elements deep": page("<div>" * 2000 + TOLD + "</div>" * 2000),
    "no element is closed": LINKS.replace("</li>", "").replace("</ul></div></body></html>", "<p>")
    + "<p>".join(story(1)),
    "comments": page("<!-- one -->".join(f"<p>{paragraph}<!-- two -->" for paragraph in story(1))),
    "Chinese": page("".join(f"<p>{paragraph}</p>" for paragraph in zh_story(1))),
}
NO_TEXT = {"nothing": "", "white space": " \n ", "only links": LINKS}
PAGES = STORIES | NO_TEXT | {"half a character": page(TOLD.replace("e", "\ud800"))}


def root_of(html):
    """Return the tree that a callback gets."""
    root = Selector(text=html.encode("utf8", "replace").decode(), huge_tree=True).root
    assert isinstance(root, etree._Element)
    return root


def extracted(name, html, budget=UNLIMITED):
    return extractor(name)(root_of(html), budget)


def text_of(name, html):
    return "\n".join(extracted(name, html).paragraphs)


@each_extractor
def test_it_finds_the_story_and_not_the_menu(name):
    for case, html in STORIES.items():
        text = text_of(name, html)
        # `same-format` cuts off both ends of a text.
        assert all(part in text for part in (zh_story(1) if case == "Chinese" else story(1))[1:-1]), case
        # In a list that is not closed, the last item contains the story.
        assert text.count("Section") <= (case == "no element is closed"), case
        assert "Sport" not in text


@each_extractor
def test_it_finds_most_of_a_megabyte_in_one_line(name):
    assert len(text_of(name, page(f"<p>{' '.join(story(1, 4000))[:1_000_000]}</p>"))) > 790_000


@each_extractor
def test_there_may_be_no_main_text(name):
    for case, html in NO_TEXT.items():
        assert [*extracted(name, html).paragraphs] == [], case


@each_extractor
def test_it_reads_the_same_again_and_does_not_change_the_tree(name):
    for case, html in PAGES.items():
        root = root_of(html)
        before = etree.tostring(root)
        first, second = extractor(name)(root, Budget()), extractor(name)(root, Budget())
        assert first == second, case
        assert isinstance(first.features, PageFeatures)
        assert all(paragraph == paragraph.strip() != "" for paragraph in first.paragraphs), case
        assert etree.tostring(root) == before, case


@each_extractor
def test_it_finds_title_heading_and_context(name):
    titled = extracted(name, article("One", story(1))).features
    assert titled.title.startswith("In North")
    headed = extracted(name, f"<body><h1>The harbour is closed</h1><div>{TOLD}</div><span>17 readers").features
    assert (headed.title, headed.heading) == ("", "The harbour is closed")
    if name not in {"weighted-dom", "trafilatura"}:
        found = extracted(name, page(f"{TOLD}<table><tr><td><b>17 readers"))
        assert "17" not in "".join(found.paragraphs)
        assert found.features.texts


@each_extractor
def test_it_stops_at_the_budget_and_at_a_truncated_page(name):
    many, slow = Reason.TOO_MANY_ELEMENTS, Reason.TOO_SLOW
    for body, budget, reason in (
        (TOLD, Budget(elements=20), many),
        ("<!-- -->" * 200, Budget(elements=150), many),
        (TOLD, Budget(milliseconds=0), slow),
        ("<div>" * 4000 + TOLD, Budget(), Reason.NESTED_TOO_DEEPLY),
    ):
        with pytest.raises(UncheckableError, match=reason):
            extracted(name, page(body), budget)
    elements = sum(1 for _ in root_of(page(TOLD)).iter())
    assert extracted(name, page(TOLD), Budget(elements=elements)).paragraphs


@each_extractor
def test_a_repost_is_a_duplicate_by_it(name):
    pages = [("a/1", article("a", story(1))), ("a/2", article("a", story(2))), ("b/1", blog("b", story(1)))]
    with Deduplicator("memory:", extractor=name) as dedup:
        verdicts = [dedup.add(f"http://{path}", html).verdict for path, html in pages]
    assert verdicts == ["new", "new", "duplicate"]


@pytest.mark.parametrize("name", [name for name in EXTRACTORS.ours if name != "weighted-dom"])
def test_it_names_its_source_and_what_is_ours(name):
    said = inspect.getdoc(inspect.getmodule(EXTRACTORS.load(name)))
    parts = [said.find(f"\n\n{part}: ") for part in ("Source", "Specified", "Left open", "Departures")]
    assert -1 < parts[0] < parts[1] < parts[2] < parts[3]


def test_no_extraction_is_imported_before_it_is_chosen():
    code = (
        "import sys, dedup_middleware.api; from dedup_middleware.extraction import extractor; "
        "extractor('weighted-dom'); print([name for name in sys.modules if '.methods' in name])"
    )
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert said.strip() == "[]"


# --- of one method each


@given(st.floats(0, 1), st.integers(-1, 1), st.integers(0, 3000), st.integers(0, 3000))
def test_density_weighs_the_two_examples_as_published_and_no_less_what_is_deeper(share, kind, one, other):
    assert density.weight(0.8, kind=1, depth=density.DEEP) == pytest.approx(0.9)
    assert density.weight(0.2, kind=-1, depth=0) == pytest.approx(0.1)
    low, high = sorted((one, other))
    assert density.weight(share, kind, low) <= density.weight(share, kind, high)


@pytest.mark.parametrize(
    ("barred", "text"),
    [
        ("<footer><p>Printed, as ever, on paper.</p></footer>", "on paper"),
        ("<div class='related-posts'><p>Read this, too.</p></div>", "Read this"),
        ("<p style='display: none'>No reader sees it.</p>", "No reader"),
        ("<p>No mark at all</p>", "No mark"),
        ("<p><a href='/x'>A link, as a whole.</a></p>", "A link"),
        ("<table><caption>A title, of a table.</caption></table>", "A title"),
    ],
)
def test_tags_leave_out_what_a_rule_bars(barred, text):
    assert text not in text_of("tags", page(f"{TOLD}{barred}{TOLD}"))


@pytest.mark.parametrize(
    "sign", ["div itemprop=articleBody", "article", "main", "div role=main", "div class=post", "div id=article-content"]
)
def test_tags_look_first_where_the_markup_has_an_article(sign):
    tag = sign.partition(" ")[0]
    html = f"<body><div class=x><p>Elsewhere, something else is said.</p></div><{sign}>{TOLD}</{tag}>"
    assert story(1)[0] in text_of("tags", html)
    assert "Elsewhere" not in text_of("tags", html)
    assert "Elsewhere" in text_of("tags", html.replace(f"<{sign}>", "<div>"))


def test_one_format_is_that_with_the_most_text_without_the_tenth_at_each_end():
    told = "".join(f"<font size=3>{paragraph}</font><br>" for paragraph in story(1))
    aside = "<font size=1>A remark in small letters.</font>"
    text = text_of("same-format", f"<body>{aside}{told}{aside}")
    assert story(1)[3] in text
    assert "remark" not in text
    sentences = [f"Sentence number {n:02d} is here." for n in range(20)]
    assert text_of("same-format", f"<body><p>{' '.join(sentences)}</p>") == " ".join(sentences[2:18])


@pytest.mark.skipif(not find_spec("trafilatura"), reason="no package")
def test_a_page_too_deep_for_another_package_is_not_checked():
    with pytest.raises(UncheckableError, match=Reason.NESTED_TOO_DEEPLY):
        extracted("trafilatura", page("<ul><li>" * 1000 + TOLD))


def test_a_package_that_is_not_installed_is_named_before_the_first_page(monkeypatch):
    trafilatura._library.cache_clear()
    monkeypatch.setitem(sys.modules, "trafilatura", None)
    with pytest.raises(ConfigError, match="Run `pip install trafilatura lxml_html_clean`"):
        Deduplicator("memory:", extractor="trafilatura")
    trafilatura._library.cache_clear()
