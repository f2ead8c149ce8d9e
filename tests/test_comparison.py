"""What the second opinion takes for the same text, and what it never does."""

from __future__ import annotations

import random
import time
from dataclasses import replace

import pytest
from dedup_middleware.checks.alignment import MAX_WORDS, Comparison, compare
from hypothesis import example, given
from hypothesis import strategies as st
from prose import story, zh_story

EN = [
    "The Riverton council approved the new budget for the schools on Monday evening.",
    "The mayor of the town, Anna Smith, said that the decision was right for everybody in the region.",
    "Nobody in Riverton had expected it after the long debate.",
]
ZH = [
    "据当地媒体报道，张建国昨日在北京市出席了全国农业工作会议并发表了重要讲话。",
    "张建国强调，粮食安全是国之大者，要全面落实责任制，把饭碗牢牢端在自己手里。会议由省里的代表主持，共有来自各地的农民和专家参加。",
]
AR = [
    "قال الوزير أحمد منصور إن الحكومة ستبني ثلاث مدارس جديدة في المدينة القديمة خلال العام المقبل.",
    "وأضاف أحمد منصور أن المشروع سيوفر فرص عمل كثيرة لسكان المدينة القديمة وما حولها من القرى الصغيرة.",
]
TEXTS = st.builds(lambda tell, number: tell(number), st.sampled_from([story, zh_story]), st.integers(0, 50))


def replaced(paragraphs: list[str], *pairs: tuple[str, str]) -> list[str]:
    for old, new in pairs:
        assert any(old in paragraph for paragraph in paragraphs), old
        paragraphs = [paragraph.replace(old, new) for paragraph in paragraphs]
    return paragraphs


def misread(paragraphs: list[str], each: int) -> list[str]:
    """Return *paragraphs* with one letter in *each* replaced by another of the text; numbers are read well."""
    rng = random.Random(each)

    def read(character: str, paragraph: str) -> str:
        if not character.isalpha() or rng.randrange(each):
            return character
        return rng.choice("nocuelrt" if character.isascii() else paragraph)

    return ["".join(read(character, paragraph) for character in paragraph) for paragraph in paragraphs]


class TestSaid:
    @given(TEXTS)
    def test_a_text_says_itself(self, text: list[str]) -> None:
        assert compare(text, text) == Comparison(1.0)

    @given(TEXTS, TEXTS)
    def test_what_the_original_has_more_does_not_matter(self, text: list[str], more: list[str]) -> None:
        assert compare(text, text + more).containment == 1.0
        assert compare(text, more + text).containment == 1.0

    @given(st.lists(st.text(max_size=60)), st.lists(st.text(max_size=60)))
    def test_any_text_can_be_compared(self, text: list[str], other: list[str]) -> None:
        assert 0.0 <= compare(text, other).containment <= 1.0
        itself = compare(text, text)
        assert itself.containment in (0.0, 1.0)
        assert not itself.other_names + itself.other_numbers

    def test_another_story_is_not_said(self) -> None:
        assert compare(EN, story(1)).containment == 0.0
        assert compare(ZH, zh_story(1)).containment == 0.0
        assert compare(EN, ZH) == Comparison(0.0)

    @given(st.sampled_from([(story, zh_story), (zh_story, story)]), st.integers(0, 50), st.integers(20, 200))
    @example((zh_story, story), 10, 64)
    def test_what_the_original_has_of_others_hardly_changes_it(self, tell: tuple, number: int, each: int) -> None:
        """Of two alignments as good as each other either may be found, and a sentence on the line go either way."""
        original, page = tell[0](number), misread(tell[0](number), each)
        alone, one_sentence = compare(page, original).containment, 1.5 / (3 * len(original))
        assert abs(compare(page, original + original).containment - alone) <= one_sentence
        assert abs(compare(page, original + tell[1](number)).containment - alone) <= one_sentence

    def test_nothing_is_not_said(self) -> None:
        assert compare([], EN) == compare(EN, []) == compare(["…"], EN) == Comparison(0.0)


class TestNearlySaid:
    @pytest.mark.parametrize(
        ("text", "edits"),
        [
            (EN, [("approved", "passed"), ("debate", "debates")]),
            (EN, [("council", "counci1".replace("1", "i")), ("expected", "expectod")]),
            (EN, [("The mayor", "And the mayor"), ("town, Anna", "town Anna"), ("Smith, said", "Smith said")]),
            (ZH, [("并发表了", "并作了"), ("主持，共有", "主持共有")]),
            (AR, [("ستبني", "سوف تبني"), ("كثيرة", "عديدة")]),
        ],
    )
    def test_a_few_edits(self, text: list[str], edits: list[tuple[str, str]]) -> None:
        comparison = compare(replaced(text, *edits), text)
        assert comparison.containment == 1.0
        assert comparison.near
        assert not comparison.other_names
        assert not comparison.other_numbers

    @pytest.mark.parametrize(("tell", "comma", "stop"), [(story, ",", "."), (zh_story, "，", "。")])
    def test_clauses_that_are_joined_or_split(self, tell: type, comma: str, stop: str) -> None:
        page = [p.replace(comma, "").replace(f"{stop} ", "; ").replace(stop, f"{stop}\n") for p in tell(1)]
        assert compare(page, tell(1)).containment == 1.0

    @pytest.mark.parametrize("tell", [story, zh_story])
    def test_paragraphs_in_another_order(self, tell: type) -> None:
        covers = [compare(misread(tell(number)[::-1], 60), tell(number)).containment for number in range(12)]
        assert sum(containment >= 0.8 for containment in covers) >= 10, covers

    def test_characters_that_writers_interchange(self) -> None:
        original = ["工作人员要做好登记，账户里的钱要按份数分清。", "各地都要做好准备，账户必须每天核对一次。"]
        page = replaced(original, ("做", "作"), ("账", "帐"))
        assert compare(page, original).containment == 1.0
        assert not compare(page, original).other_names


class TestOtherNames:
    @pytest.mark.parametrize(
        ("text", "edits", "names"),
        [
            (EN, [("Anna Smith", "Carla Jones")], ("anna smith", "carla jones")),
            (EN, [("Riverton", "Lakewood")], ("riverton", "lakewood")),
            (ZH, [("张建国", "李明华")], ("张 建 国", "李 明 华")),
            (AR, [("أحمد منصور", "سالم الكعبي")], ("أحمد منصور", "سالم الكعبي")),
        ],
    )
    def test_a_template_filled_with_another_name(
        self, text: list[str], edits: list[tuple[str, str]], names: tuple[str, str]
    ) -> None:
        assert names in compare(replaced(text, *edits), text).other_names

    def test_a_name_that_the_original_has_elsewhere_is_none(self) -> None:
        original = [*EN, "Carla Jones, who had asked for it, was content with what the council of Riverton did."]
        assert not compare(replaced(EN, ("Anna Smith", "Carla Jones")), original).other_names

    @pytest.mark.parametrize(
        ("text", "old", "new", "names"),
        [
            ([p.replace("张建国", "张伟") for p in ZH], "张伟", "张磊", ("张 伟", "张 磊")),
            ([p.replace("张建国", "张伟") for p in ZH], "张伟", "李伟", ("张 伟", "李 伟")),
            ([f"{EN[1]} Nobody asked Anna Smith."], "Smith", "Smyth", ("smith", "smyth")),
            ([EN[0].replace("Riverton", "Wade")], "Wade", "Wide", ("wade", "wide")),
        ],
    )
    def test_names_that_differ_in_a_letter(self, text: list[str], old: str, new: str, names: tuple[str, str]) -> None:
        assert names in compare(replaced(text, (old, new)), text).other_names

    def test_a_letter_of_a_name_once_may_be_a_slip_and_what_says_it_is_not_said(self) -> None:
        original = EN[:2]
        comparison = compare(replaced(original, ("Riverton", "Rivertone")), original)
        assert not comparison.other_names
        assert 0.3 < comparison.containment < 0.7

    def test_where_other_words_slip_names_do(self) -> None:
        page = replaced(EN, ("Smith", "Smitb"), ("decision", "decisiom"), ("everybody", "everybcdy"))
        assert compare(page, EN).containment == 1.0
        assert not compare(page, EN).other_names

    def test_a_name_that_is_always_another_one_has_not_slipped(self) -> None:
        original = [
            "The government of Austria said that it would favour a new programme for the schools.",
            "Teachers across Austria had asked for it, and their neighbours were glad about it.",
        ]
        spelt = replaced(original, ("favour", "favor"), ("programme", "program"), ("neighbours", "neighbors"))
        assert compare(spelt, original).containment == 1.0
        comparison = compare(replaced(spelt, ("Austria", "Australia")), original)
        assert ("austria", "australia") in comparison.other_names
        assert comparison.containment == 0.0

    @pytest.mark.parametrize(("simplified", "traditional"), [("着眼", "著眼"), ("卫生", "衞生"), ("凭借", "憑藉")])
    def test_traditional_characters_of_taiwan_and_hong_kong_are_none(self, simplified: str, traditional: str) -> None:
        original = [
            f"各地的专家认为{simplified}是重要的工作，大家都应当支持。",
            f"他们再次强调{simplified}需要各方面的长期努力。",
        ]
        page = replaced(original, (simplified, traditional))
        assert replace(compare(page, original), near=(), reworded=()) == Comparison(1.0)

    def test_capitals_of_a_headline_tell_nothing(self) -> None:
        head = ["Riverton Council Says Yes To New School Budget After A Very Long And Heated Debate On Monday"]
        assert not compare(replaced(head, ("Heated", "Bitter")), head).other_names


class TestOtherNumbers:
    @pytest.mark.parametrize(
        ("text", "old", "new"),
        [
            ("The council of the town spent 4,500 pounds on the roof of the old school", "4,500", "4,700"),
            ("市政府昨日宣布旧粮仓的屋顶修缮工程共花费三百万元", "三百万", "五百万"),
        ],
    )
    def test_a_sentence_with_another_number_is_not_said(self, text: str, old: str, new: str) -> None:
        comparison = compare([text.replace(old, new)], [text])
        assert comparison.containment == 0.0
        assert comparison.other_numbers


class TestVotes:
    def test_boilerplate_does_not_count(self) -> None:
        notice = "All rights of this text are reserved by the publisher of these pages. "
        page = [notice + story(1)[0]]
        assert compare(page, story(1), votes=lambda clause: "reserved" not in clause).containment == 1.0
        assert compare(page, story(1)).containment < 1.0

    def test_what_the_original_does_not_own_is_not_said(self) -> None:
        assert compare(EN, EN, has=lambda _: False) == Comparison(0.0)


@pytest.mark.parametrize(
    "hostile",
    [
        ["a" * 20_000],
        ["字" * 20_000],
        ["a, " * 7_000],
        ["x" + "\u0301" * 19_000],
        [". ".join(f"w{n}" for n in range(4_000))],
        ["字词" * 10_000],
        ["A" * 10_000 + ". " + "1 " * 5_000],
        [", ".join(f"clause {n:05}" for n in range(5_000))],
        [" ".join(f"Name{chr(97 + n % 26)}{chr(97 + n // 26 % 26)} said it." for n in range(1_200))],
    ],
)
def test_hostile_texts_take_no_longer_than_long_ones(hostile: list[str]) -> None:
    other = [paragraph[: len(paragraph) // 2] + "b" + paragraph[len(paragraph) // 2 :] for paragraph in hostile]
    start = time.process_time()
    for page, original in ((hostile, other), (other, hostile), (hostile, ZH), (EN, hostile)):
        assert 0.0 <= compare(page, original).containment <= 1.0
    assert time.process_time() - start < 4


def test_words_beyond_the_most_that_are_aligned_are_not_said() -> None:
    words = [f"{chr(97 + n % 26)}{chr(97 + n // 26 % 26)}{chr(97 + n // 676)}word" for n in range(2 * MAX_WORDS)]
    sentences = [" ".join(words[n : n + 12]) + "." for n in range(0, len(words), 12)]
    edited = [sentence.replace("word", "wort", 1) for sentence in sentences]
    assert 0.4 < compare(edited, sentences).containment < 0.6


def test_what_is_filtered_would_not_have_been_a_copy() -> None:
    skipped = 0
    for seed in range(20):
        rng = random.Random(seed)
        tell = zh_story if seed % 4 else story
        original = tell(seed)
        # The other story has other words where these are characters.
        other = [p.translate({n: n + rng.choice([0, 0x300]) for n in range(0x4E00, 0x8000)}) for p in tell(seed + 1000)]
        page = [*tell(seed)[: rng.randrange(7)], *other[: rng.randrange(4)]]
        characters = sorted({*"".join(original), *"".join(page), *"的地得0123 ab"})
        spoiled = [
            "".join(rng.choice(characters) if rng.random() < seed % 10 / 20 else character for character in paragraph)
            for paragraph in page
        ]
        whole = compare(spoiled, original)
        filtered = compare(spoiled, original, is_filtered=True)
        assert filtered == whole or max(filtered.containment, whole.containment) < 0.8
        skipped += filtered != whole
    assert skipped > 3
