"""What makes two texts of two pages does so in any script: with vowel signs, with points, with spaces or without."""

from __future__ import annotations

import random
import unicodedata
from typing import NamedTuple

import pytest
from library import verdicts
from prose import page

from dedup_middleware.text.words import are_letters, tokens


class Script(NamedTuple):
    """How a script writes words and sentences."""

    letters: str
    marks: str = ""
    """What stands on, below or after a letter: Unicode has it as a mark."""
    space: str = " "
    end: str = "."


def span(first, last, category):
    """Return the characters from *first* to *last* whose Unicode category begins so."""
    found = map(chr, range(ord(first), ord(last) + 1))
    return "".join(c for c in found if unicodedata.category(c).startswith(category))


SCRIPTS = {
    "Latin": Script("abcdefghiklmnoprstuvwz"),
    "Latin, decomposed": Script("abcdefghiklmnoprstuvwz", "\u0301\u0308\u030c"),
    "Greek": Script(span("α", "ω", "L")),
    "Cyrillic": Script(span("а", "я", "L")),
    "Armenian": Script(span("ա", "ֆ", "L"), end="։"),
    "Georgian": Script(span("ა", "ჰ", "L")),
    "Hebrew": Script(span("א", "ת", "L")),
    "Hebrew, pointed": Script(span("א", "ת", "L"), span("\u05b0", "\u05bc", "M")),
    "Arabic": Script(span("ا", "ي", "L"), end="؟"),
    "Arabic, pointed": Script(span("ا", "ي", "L"), span("\u064b", "\u0652", "M"), end="؟"),
    "Devanagari": Script(span("क", "ह", "L"), span("ा", "ौ", "M") + "्", end="।"),
    "Bengali": Script(span("ক", "হ", "L"), span("া", "ৌ", "M") + "্", end="।"),
    "Tamil": Script(span("க", "ஹ", "L"), span("ா", "ௌ", "M") + "்"),
    "Telugu": Script(span("క", "హ", "L"), span("ా", "ౌ", "M") + "్"),
    "Malayalam": Script(span("ക", "ഹ", "L"), span("ാ", "ൌ", "M") + "്"),
    "Sinhala": Script(span("ක", "ෆ", "L"), span("ා", "ෟ", "M")),
    "Ethiopic": Script(span("ሀ", "ፐ", "L"), end="።"),
    "Thai": Script(span("ก", "ฮ", "L"), span("ั", "ู", "M") + "่้", space="", end=" "),
    "Lao": Script(span("ກ", "ຮ", "L"), span("ັ", "ູ", "M") + "່້", space="", end=" "),
    "Khmer": Script(span("ក", "អ", "L"), span("ា", "ៅ", "M"), space="", end="។"),
    "Burmese": Script(span("က", "အ", "L"), span("ါ", "း", "M"), space="", end="။"),
    "Hangul": Script(span("가", "깋", "L")),
    "Japanese": Script(span("ぁ", "ん", "L") + span("亀", "亞", "L"), space="", end="。"),
    "Chinese": Script(span("一", "人", "L"), space="", end="。"),
}
each_script = pytest.mark.parametrize("script", SCRIPTS)
each_item = pytest.mark.parametrize("with_text", [True, False], ids=["text", "title"])


class Prose:
    """Texts in one script: the same in every run."""

    def __init__(self, script):
        self._script = SCRIPTS[script]
        self._random = random.Random(script)

    def word(self):
        script, rng = self._script, self._random
        letters = (
            rng.choice(script.letters) + (rng.choice(script.marks) if script.marks and rng.random() < 0.6 else "")
            for _ in range(rng.randint(3, 6))
        )
        return unicodedata.normalize("NFD" if "\u0301" in script.marks else "NFC", "".join(letters))

    def sentence(self, words=12):
        return self._script.space.join(self.word() for _ in range(words)) + self._script.end

    def text(self, paragraphs=10):
        return [" ".join(self.sentence() for _ in range(3)).strip() for _ in range(paragraphs)]

    def with_value(self, value):
        """Return a sentence with this *value*: the same one for each value."""
        before, after = Prose.sentence(self), Prose.sentence(self)
        return f"{before.rstrip(self._script.end)} {value} {after}"


HERE, THERE, SAME_SITE = "http://one.example/a", "http://two.example/b", "http://one.example/c"


def outcome(first, second, *, with_text):
    """Return the verdict on the *second* of two pages: URL, title and text."""
    return verdicts(
        *(
            (url, page(title, *text), {"title": title} | ({"text": "\n".join(text)} if with_text else {}))
            for url, title, text in (first, second)
        )
    )[1]


@each_script
def test_a_word_has_its_marks(script):
    prose = Prose(script)
    for _ in range(50):
        word = prose.word()
        assert are_letters(word)
        assert "".join(tokens(word)) == word
        # Where spaces divide words, a word is one; else each token begins with a letter.
        assert tokens(word) == [word] or all(
            not unicodedata.category(token[0]).startswith("M") for token in tokens(word)
        )


@each_script
@each_item
def test_a_copy_on_another_site_is_one(script, *, with_text):
    prose = Prose(script)
    title, text = prose.sentence(5), prose.text()
    assert outcome((HERE, title, text), (THERE, title, text), with_text=with_text) == "duplicate"


@each_script
@each_item
def test_a_page_that_adds_half_as_much_is_another(script, *, with_text):
    prose = Prose(script)
    title, text = prose.sentence(5), prose.text()
    more = prose.text(5)
    for added in ([*text, *more], [*more, *text], [p for pair in zip(text[::2], more, strict=False) for p in pair]):
        assert outcome((HERE, title, text), (THERE, title, added), with_text=with_text) != "duplicate"


def values(script):
    """Yield pairs of values of which one stands in each text."""
    prose = Prose(script)
    yield "40", "45"
    yield "12.5", "125"
    yield "✓", "✗"
    word = prose.word()
    # A character that both have is none that was replaced.
    yield word, next(other for other in iter(prose.word, "") if set(word).isdisjoint(other))


@each_script
@each_item
def test_another_value_in_a_sentence_or_a_title_is_another_page(script, *, with_text):
    for here, there in values(script):
        prose = Prose(script)
        title, text = prose.sentence(5), prose.text()
        sentence = prose.with_value("@")
        one, other = ([*text[:4], sentence.replace("@", value), *text[4:]] for value in (here, there))
        assert outcome((HERE, title, one), (THERE, title, other), with_text=with_text) != "duplicate", (here, there)
        assert outcome((HERE, title, one), (SAME_SITE, title, other), with_text=with_text) != "duplicate"
        if here.isdecimal():
            titles = [f"{title} {value}" for value in (here, there)]
            assert outcome((HERE, titles[0], text), (THERE, titles[1], text), with_text=with_text) != "duplicate"
