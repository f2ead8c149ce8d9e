"""What stands around the punctuation marks of a text, and how much of it two texts must share."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_middleware.errors import ConfigError
from dedup_middleware.fingerprints.method import Text, WeightedSet
from dedup_middleware.methods.punctuation import PunctuationNeighbours, neighbours

# Six marks, so that each of the three strings has two of them.
CLAUSES = ("港口的旧渡船", "下周停止运营", "因为船身已经生锈", "渔民们都很担心", "他们写信给议会", "希望买一艘新船")
MARKS = "，。！？，。"
TEXT = "".join(map("".join, zip(CLAUSES, MARKS, strict=True)))


def made(text: str, title: str = "", **options: float) -> WeightedSet:
    found = PunctuationNeighbours(**options).fingerprint(Text((text,), title))  # type: ignore[arg-type]
    assert found is not None
    return found


def edited(*places: int) -> str:
    """Return the text with the end of some clauses rewritten, each in front of its mark."""
    clauses = [clause[:-2] + "山羊" if n in places else clause for n, clause in enumerate(CLAUSES)]
    return "".join(map("".join, zip(clauses, MARKS, strict=True)))


def test_two_characters_stand_on_either_side_of_a_mark() -> None:
    assert neighbours(TEXT) == ["渡船下周", "运营因为", "生锈渔民", "担心他们", "议会希望", "新船"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One two, three four. Five!", ["woth", "urfi", "ve"]),
        ("ＡＢ，ＣＤ", ["abcd"]),
        ("ab｡cd", ["abcd"]),
        ("“Stop!” he said?! Then", ["ophe", "idth"]),
        ("up 1.5 to 1,600 now, then", ["owth"]),
        ("a, b, c", ["ab", "bc"]),
        ("!?", []),
        ("nothing here; nothing: there", []),
    ],
)
def test_width_case_space_and_other_marks_do_not_matter(text: str, expected: list[str]) -> None:
    assert neighbours(text) == expected


def test_a_mark_at_the_end_of_a_paragraph_looks_into_the_next() -> None:
    assert PunctuationNeighbours(strings=1, needed=1).fingerprint(Text(("旧渡船。", "新船"))) == made(
        "旧渡船。新船", strings=1, needed=1
    )


def test_the_fingerprint_is_the_title_and_three_strings() -> None:
    assert sorted(made(TEXT, "渡船停运").weights.values()) == [1, 1, 1, 1.5]
    assert sorted(made(TEXT).weights.values()) == [1, 1, 1]


@pytest.mark.parametrize(
    ("changed", "title", "score"),
    [
        ((), "渡船停运", 1),
        ((), "另一个标题", 1),
        ((0,), "渡船停运", 1),
        ((0, 1), "渡船停运", 1),
        ((0,), "另一个标题", 2 / 3),
        ((0, 2), "渡船停运", 2.5 / 3),
        ((0, 2, 4), "渡船停运", 1.5 / 3),
        ((0, 2, 4), "另一个标题", 0),
    ],
)
def test_the_title_and_two_strings_or_three_strings_are_a_duplicate(
    changed: tuple[int, ...], title: str, score: float
) -> None:
    method = PunctuationNeighbours()
    new, old = made(edited(*changed), title), made(TEXT, "渡船停运")
    assert method.score(new, old) == pytest.approx(score)
    assert method.is_alike(new, old) is (score == 1)
    assert set(method.keys(new)).isdisjoint(method.keys(old)) is (score == 0)


def test_a_text_with_fewer_marks_than_strings_has_no_fingerprint_whatever_its_title() -> None:
    assert PunctuationNeighbours().fingerprint(Text(("一二，三四。",), "渡船停运")) is None
    assert PunctuationNeighbours().fingerprint(Text(("一二，三四。五六！",), "渡船停运")) is not None


def test_equal_strings_of_one_text_count_each() -> None:
    found = made("一二，一二，一二，一二")
    assert list(found.weights.values()) == [3]
    assert PunctuationNeighbours().is_alike(found, found)


def test_options_change_what_is_taken_and_what_is_needed() -> None:
    assert neighbours(TEXT, 1)[0] == "船下"
    lenient = PunctuationNeighbours(needed=2)
    assert lenient.is_alike(made(edited(0)), made(TEXT))
    assert len(made(TEXT, strings=6, needed=5).weights) == 6
    assert PunctuationNeighbours(title=0).fingerprint(Text((TEXT,), "渡船停运")) == made(TEXT)


@pytest.mark.parametrize(
    "options", [{"characters": 0}, {"strings": 0}, {"title": -1}, {"needed": 4}, {"needed": 0.5}, {"strings": 2}]
)
def test_options_that_cannot_work_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="is not between"):
        PunctuationNeighbours(**options)  # type: ignore[arg-type]


@given(st.text(st.sampled_from("ab船，。,.!? 1\n")), st.integers(1, 5))
def test_each_mark_tells_at_most_so_many_characters_on_either_side(text: str, characters: int) -> None:
    found = neighbours(text, characters)
    assert len(found) <= sum(map(text.count, "，。,.!?"))
    assert all(1 <= len(both) <= 2 * characters and both.isalnum() for both in found)


@given(st.lists(st.sampled_from(["ab, ", "cd. ", "ef! ", "gh? ", "船。"]), max_size=30), st.text(max_size=5))
def test_a_text_that_has_a_fingerprint_is_alike_to_itself(pieces: list[str], title: str) -> None:
    method = PunctuationNeighbours()
    found = method.fingerprint(Text(("".join(pieces),), title))
    assert (found is None) == (len(pieces) < 3)
    assert found is None or method.score(found, found) == 1
