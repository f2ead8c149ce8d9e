"""The second opinion in the verdict: what it finds and what it keeps."""

from __future__ import annotations

import re

import pytest
from library import Library
from prose import story, zh_story

from dedup_middleware.model import VerdictKind
from dedup_middleware.reasons import Reason

NEW, DUPLICATE, RELATED = VerdictKind.NEW, VerdictKind.DUPLICATE, VerdictKind.RELATED


def edited(paragraphs: list[str], *, each: int = 1) -> list[str]:
    """Return *paragraphs* with a word added to each sentence, or to one in *each*."""
    number = 0

    def edit(sentence: re.Match[str]) -> str:
        nonlocal number
        number += 1
        if number % each:
            return sentence[0]
        return (
            re.sub("^(.{9})的?", r"\1又", sentence[0])
            if "。" in sentence[0]
            else re.sub(" has | to ", r"\g<0>now ", sentence[0], count=1)
        )

    return [re.sub("[^.。]+[.。] ?", edit, paragraph) for paragraph in paragraphs]


@pytest.mark.parametrize("tell", [story, zh_story])
class TestEditedCopies:
    def test_a_word_in_every_other_sentence_makes_no_other_story(self, tell: type) -> None:
        library = Library()
        library.visit("http://one/", tell(1))
        case = library.visit("http://two/", edited(tell(1), each=2))
        assert (case.verdict.kind, case.verdict.reason.split(", ")[0]) == (DUPLICATE, Reason.NEAR_MATCH)
        assert case.items_dropped
        assert len(library.deduplication.recorder.evidence(case)) == 5

    def test_a_claim_that_is_open_has_its_text(self, tell: type) -> None:
        library = Library()
        library.enter(library.page("http://one/", tell(1)))
        assert library.check("http://two/", edited(tell(1), each=2)).kind is DUPLICATE


class TestTemplates:
    REPORT = (
        "The football club of {town} has ended its season with a party at the ground behind the railway station.",
        "The players were welcomed by {name}, who has been their president for longer than anybody remembers.",
        "There was music by the brass band and a dinner for everybody who had helped with the new stand this year.",
        "The youngest of the teams received the cup that it had won in the spring against all of its neighbours.",
        "In the summer the pitch will be sown anew, and the floodlights are going to be replaced by modern ones.",
        "Members can have their say on the plans for the clubhouse in the meeting at the beginning of the autumn.",
        "The next season begins with a match of the first team against its oldest rival, as it has for a generation.",
    )

    def test_another_name_in_the_same_report_is_another_story(self) -> None:
        library = Library()
        one, other = (
            [line.format(town=town, name=name) for line in self.REPORT] + story(3)
            for town, name in (("Harlow Bridge", "Edna Quill"), ("Upper Delver", "Tom Marston"))
        )
        library.visit("http://one/", one)
        case = library.visit("http://two/", other)
        assert (case.verdict.kind, case.verdict.reason) == (RELATED, Reason.OTHER_NAMES)
        assert case.items_kept

    def test_other_numbers_in_sentences_that_are_nearly_the_same_too(self) -> None:
        library = Library()
        one = [
            *story(1),
            "The rebuilding of the wall in the harbour will cost the town 45,000 pounds in the coming year.",
        ]
        other = [*edited(story(1), each=2), one[-1].replace("45,000", "72,000").replace("coming", "very next")]
        library.visit("http://one/", one)
        case = library.visit("http://two/", other)
        assert (case.verdict.kind, case.verdict.reason) == (RELATED, Reason.OTHER_NUMBERS)
