"""Credits and datelines are left out of a text, links where templates differ; sentences that begin alike stay."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prose import story, zh_story

from dedup_middleware.text.words import without_credits, without_links


@pytest.mark.parametrize(
    "line",
    [
        *["Reporting by Ann Moran; editing by Dan Oakes", "Additional reporting by Ann Moran", "Edited by: Ann Moran"],
        *[
            "Photo: Ann Moran",
            "Source: The Harbour Gazette",
            "Quelle: Hafenblatt",
            "Foto: Anna Moran",
            "(Photo by A. Moran)",
        ],
        *[
            "Updated 5 May 2024, 10:15",
            "Published: 2024-05-01",
            "Last updated on Monday, May 5",
            "Aktualisiert am 5. Mai",
        ],
        *[
            "责任编辑：王小明",
            "来源：海港日报",
            "（责编：王小明、李明）",
            "记者/王明",
            "更新时间：2024-05-01",
            "(完)",
            "（完）",
            "ENDS",
        ],
        *["© 2024 The Harbour Gazette", "Copyright 2024", "All rights reserved.", "Permalink: http://one.example/1"],
    ],
)
def test_a_credit_is_left_out(line: str) -> None:
    assert [*without_credits(["A sentence.", line])] == ["A sentence."]


@pytest.mark.parametrize(
    "line",
    [
        *[
            "Reporting on the harbour takes patience.",
            "Editing is half of the work.",
            "Source of the river",
            "Photosynthesis",
        ],
        *[
            "Published authors read here every week.",
            "Updated rules came into force.",
            "Ends meet.",
            "Image quality is good.",
        ],
        *["编辑部的故事", "来源不明的水", "完成了", "记者在现场看到，门是开着的。", "The end of the street is closed."],
        *["A cat - or a dog", "I - said he - am late", "Fine. A photo by Ann Moran hangs there."],
    ],
)
def test_a_sentence_stays_as_it_is(line: str) -> None:
    assert [*without_credits([line])] == [line]


@pytest.mark.parametrize(
    ("dateline", "text"),
    [
        *[
            (dateline, story(1, 1)[0])
            for dateline in ("LONDON (Reuters) - ", "HARBOUR TOWN, May 5 (AP) — ", "PARIS – ")
        ],
        *[
            (dateline, zh_story(1, 1)[0])
            for dateline in ("新华社北京4月1日电", "（新华社北京4月1日电）", "本报讯5月6日电（记者王明）")
        ],
    ],
)
def test_a_dateline_is_left_out_of_its_paragraph(dateline: str, text: str) -> None:
    (found,) = without_credits([dateline + text])
    assert found.strip() == text


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
def test_links_are_left_out(text: str, found: str) -> None:
    assert [" ".join(each.split()) for each in without_links([text])] == [found]


@given(st.lists(st.text() | st.text(alphabet="©()photo by: 12月日电[]A.-—新updated"), max_size=9))
def test_any_text_is_read_and_nothing_is_added(paragraphs: list[str]) -> None:
    found = [*without_links(without_credits(paragraphs))]
    assert len(found) <= len(paragraphs)
    assert set("".join(found)) <= {*"".join(paragraphs), " "}


@pytest.mark.parametrize(
    "text",
    [
        "A" * 200_000,
        "A " * 100_000,
        "a@" * 100_000,
        "www." * 50_000,
        "a" * 200_000 + "@",
        "(" * 200_000,
        "1月" * 99_999,
    ],
)
def test_credits_are_found_in_linear_time(text: str) -> None:
    began = time.process_time()
    for _ in without_links(without_credits([text])):
        pass
    assert time.process_time() - began < 2
