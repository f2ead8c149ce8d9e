"""Which texts of one host are editions of one story."""

from __future__ import annotations

import pytest
from prose import story, zh_story

from dedup_middleware.checks.editions import MAX_SENTENCES, is_edition

TEXT = story(1, 8)


@pytest.mark.parametrize("tell", [story, zh_story])
def test_adding_and_leaving_out_make_an_edition_and_both_do_not(tell) -> None:
    text = tell(1, 8)
    longer, shorter = [*text, *tell(2, 1)], text[:-1]
    assert is_edition(text, text)
    assert is_edition(longer, text)
    assert is_edition(shorter, text)
    assert not is_edition([*shorter, *tell(2, 1)], text)


def test_slips_that_are_mended_make_no_other_page() -> None:
    slipped = [TEXT[0].replace("council", "concil").replace("foundations", "fuondations"), *TEXT[1:]]
    assert is_edition(TEXT, slipped)
    assert is_edition(slipped, TEXT)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("It was approved by the council.", "It was rejected by the council."),
        ("It costs 900 a month.", "It costs 950 a month."),
        ("Best answer: yes.", "Best answer: no."),
        ("She is John's sister.", "She is Joan's sister."),
    ],
)
def test_another_word_in_one_place_makes_another_page(old: str, new: str) -> None:
    assert not is_edition([*TEXT, new], [*TEXT, old])


def test_an_editor_goes_over_the_whole_text() -> None:
    def said_otherwise(number: int, paragraph: str) -> str:
        first, *rest = paragraph.split(", ")
        return ", ".join([first.replace(first.split()[-1], f"together{'abcdefgh'[number] * 3}"), *rest])

    reworded = [said_otherwise(number, paragraph) for number, paragraph in enumerate(TEXT)]
    assert all(a != b for a, b in zip(TEXT, reworded, strict=True))
    assert is_edition(reworded, TEXT)
    assert not is_edition([*reworded[:2], *TEXT[2:]], TEXT)
    assert not is_edition([*reworded, "It costs 950 a month."], [*TEXT, "It costs 900 a month."])


def test_texts_with_little_in_common_are_not_compared() -> None:
    assert not is_edition(story(2, MAX_SENTENCES), story(3, MAX_SENTENCES))
