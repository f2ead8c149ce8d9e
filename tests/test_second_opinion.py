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
