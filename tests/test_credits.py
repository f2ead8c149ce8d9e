"""Credits and datelines are left out of a text, links where templates differ; sentences that begin alike stay."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_middleware.text.words import without_credits, without_links

SENTENCES = """
Reporting on the harbour takes patience.|Editing is half of the work.|Source of the river|Photosynthesis|Ends meet.|
Published authors read here every week.|Updated rules came into force.|Image quality is good.|
编辑部的故事|来源不明的水|完成了|记者在现场看到，门是开着的。|
The end of the street is closed.|A cat - or a dog|I - said he - am late|
Fine. A photo by Ann Moran hangs there.|
NEVER MIX - bleach and ammonia|BUY – shares of the line|Credits: 30 ECTS|Credit: EUR 500|Source: 3 wells
"""


@pytest.mark.parametrize("line", SENTENCES.replace("\n", "").split("|"))
def test_a_sentence_stays_as_it_is(line):
    assert [*without_credits([line])] == [line]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("LONDON (Reuters) - Trams stood.", ["Trams stood."]),
        ("NEW YORK, Sept. 5 — Trams stood.", ["Trams stood."]),
        ("LONDON, May 5 (Reuters) - Trams stood.", ["Trams stood."]),
        ("Credits: Ann Moran", []),
        ("Photo: 5 May 2020", []),
        ("Source: Harbour Post, 12.05.2020", []),
    ],
)
def test_credits_and_datelines_are_left_out(text, found):
    assert [*without_credits([text])] == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Read http://one.example/1?a=2 today.", "Read today."),
        ("Visit www.one.example now", "Visit now"),
        ("Write to ann.moran@one.example, please", "Write to , please"),
        ("请写信给ann@one.example。", "请写信给 。"),
        ("2 @ 5", "2 @ 5"),
        ("awww. nice", "awww. nice"),
    ],
)
def test_links_are_left_out(text, found):
    assert [" ".join(each.split()) for each in without_links([text])] == [found]


@given(st.lists(st.text() | st.text(alphabet="©()photo by: 12月日电[]A.-—新updated"), max_size=9))
def test_any_text_is_read_and_nothing_is_added(paragraphs):
    found = [*without_links(without_credits(paragraphs))]
    assert len(found) <= len(paragraphs)
    assert set("".join(found)) <= {*"".join(paragraphs), " "}
