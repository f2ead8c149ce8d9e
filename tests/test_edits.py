"""How a text differs from its original: typed edits, and a score."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prose import story, zh_story

from dedup_middleware.checks.edits import MAX_WORDS, Comparison, Context, Original, compare
from dedup_middleware.checks.table import Kind

EN = [
    "The Riverton council approved the new budget for the schools on Monday evening.",
    "The mayor of the town, Anna Smith, said that the decision was right for everybody in the region.",
    "Nobody in Riverton had expected it after the long debate, which took four hours.",
]
ZH = [
    "据当地媒体报道，张建国昨日在北京市出席了全国农业工作会议并发表了重要讲话。",
    "张建国强调，粮食安全是国之大者，要全面落实责任制，把饭碗牢牢端在自己手里。",
]
AR = [
    "قال الوزير أحمد منصور إن الحكومة ستبني ثلاث مدارس جديدة في المدينة القديمة خلال العام المقبل.",
    "وأضاف أحمد منصور أن المشروع سيوفر فرص عمل كثيرة لسكان المدينة القديمة وما حولها من القرى الصغيرة.",
]
TEXTS = st.builds(lambda tell, number: tell(number), st.sampled_from([story, zh_story]), st.integers(0, 50))
#: The words of the text stand in other texts, too.
KNOWN = Context(known=lambda: " ".join(EN).split().__contains__)


def replaced(paragraphs, old, new):
    assert any(old in paragraph for paragraph in paragraphs), old
    return [paragraph.replace(old, new) for paragraph in paragraphs]


def kinds(text, original, context=None):
    return [edit.kind for edit in compare(text, Original(original), context).edits]


class TestLaws:
    @given(TEXTS)
    def test_a_text_has_no_edits_of_itself(self, text):
        assert compare(text, Original(text)) == Comparison((), 1.0)

    @given(TEXTS, TEXTS)
    def test_what_the_original_has_more_does_not_matter(self, text, more):
        assert compare(text, Original([*text, *more])) == Comparison((), 1.0)
        assert compare(text, Original([*more, *text])) == Comparison((), 1.0)

    @given(TEXTS)
    def test_neither_does_the_order(self, text):
        assert compare(text[::-1], Original(text)) == Comparison((), 1.0)

    @given(TEXTS, TEXTS, st.integers(0, 6), st.sampled_from([0.2, 0.5, 0.9]))
    def test_a_text_of_which_the_original_has_little_is_told_by_that(self, text, other, shared, least):
        text = [line.replace("the", "a") for line in text[shared:]] + text[:shared]
        full = compare(text, Original([*text[:shared], *other]))
        found = compare(text, Original([*text[:shared], *other]), Context(least=least))
        assert found == full or (found.edits == () and full.score <= found.score < least)

    @given(st.lists(st.text(max_size=60)), st.lists(st.text(max_size=60)))
    def test_any_two_texts_can_be_compared(self, text, other):
        found = compare(text, Original(other))
        assert 0.0 <= found.score <= 1.0
        assert all(edit.here in "\n".join(text) or edit.kind is not Kind.PASSAGE or edit.here for edit in found.edits)

    @pytest.mark.parametrize(("text", "other"), [(EN, story(1)), (ZH, zh_story(1)), (EN, ZH), (AR, EN)])
    def test_another_story_is_another_one(self, text, other):
        assert compare(text, Original(other)).score < 0.2


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        (EN, "town, Anna Smith, said", "town Anna Smith said"),
        (EN, "right for", "RIGHT for"),
        (EN, "council", "Council"),
        (ZH, "重要讲话", "重要講話"),
        (ZH, "着" if "着" in "".join(ZH) else "责任制", "責任制"),
        (EN, "long debate", "long - debate"),
    ],
)
def test_letter_case_punctuation_and_script_are_no_edit(text, old, new):
    assert kinds(replaced(text, old, new), text) == []


@pytest.mark.parametrize(
    ("text", "old", "new", "kind"),
    [
        (EN, "took four hours", "took 4 hours", Kind.NUMBER),
        (["It costs 20 euros for each child who comes."], "20", "25", Kind.NUMBER),
        (["The council of the town spent 4,500 pounds on the roof."], "4,500", "4,700", Kind.NUMBER),
        (["Team A played for an hour without any goal at all."], "Team A", "Team B", Kind.NUMBER),
        (ZH, "张建国强调", "李明华强调", None),
        (EN, "Anna Smith", "Carla Jones", Kind.NAME),
        (EN, "Riverton had", "Lakewood had", Kind.NAME),
        (EN, "was right", "was not right", Kind.NEGATION),
        (["รายงานที่อ่านในห้องโถงกล่าวว่า ชาวบ้านเห็นด้วย และผู้ที่ค้นหาไม่พบสิ่งอื่นใด"], "เห็น", "ไม่เห็น", Kind.NEGATION),
        (["The loop ends as soon as it is seen that a == b holds for both of them."], "a ==", "a !=", Kind.SYMBOL),
        (
            ["The ends of the two ropes meet if a + b is more than the width of the hall."],
            "a + b",
            "a - b",
            Kind.SYMBOL,
        ),
        (["The tank was filled for $20 before the tests began."], "$20", "€20", Kind.SYMBOL),
        (EN, "said that", "stated that", Kind.WORD),
        (AR, "كثيرة", "عديدة", Kind.WORD),
        (["Is it free for all? It is free. Ask us at the desk."], "It is free.", "It costs nothing.", Kind.LINE),
        (EN, "the new budget", "the budget", Kind.LEFT_OUT),
        (EN, "the new budget", "the new and long budget", Kind.ADDED),
        (EN, "the new budget", "the new budget of 2031", Kind.ADDED_FACT),
    ],
)
def test_an_edit_has_a_kind(text, old, new, kind):
    found = kinds(replaced(text, old, new), text)
    assert found
    if kind is None:
        # A script without capitals does not show names: it is a word like any other.
        assert found == [Kind.WORD]
    elif old == "took four hours":
        # A number in letters is a word.
        assert found[0] in {Kind.NUMBER, Kind.ADDED_FACT, Kind.WORD}
    else:
        assert found == [kind]


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("Photo: Anna Smith", Kind.LABEL),
        ("12 May 2027", Kind.LABEL),
        ("Read more about the schools", Kind.LINE_ADDED),
        ("When: 12 May 2027, 18:30", Kind.ADDED_FACT),
        ("Doors open 18:30", Kind.ADDED_FACT),
        ("It had been asked for by parents.", Kind.ADDED),
        ("It had been asked for by a lawyer, Peter Grant.", Kind.ADDED_FACT),
        ("It had been asked for by 300 parents of the town.", Kind.ADDED_FACT),
    ],
)
def test_a_line_that_is_added_has_one(line, kind):
    assert kinds([EN[0], line, *EN[1:]], EN) == [kind]


@pytest.mark.parametrize(("value", "other"), [("closed", "open"), ("open", "closed"), ("no", "open")])
def test_a_value_that_other_lines_have_too_is_one_of_its_line(value, other):
    def told(gate):
        return [*EN, "Gate", gate, "Bridge", "open", "Lift", "closed"]

    assert Kind.LINE in kinds(told(value), told(other))
    assert kinds(told(value), told(value)) == []
    assert Kind.LINE not in kinds([*EN, "Gate", "Share", *told(value)[4:]], told(value)), "a line more"


def test_numbers_that_change_places_are_other_numbers():
    assert Kind.NUMBER in kinds([*EN, "Leeds 2–1 York"], [*EN, "Leeds 1–2 York"])
    moved = ["In 2019 the council of the town paid for the roof of the school.", *EN]
    back = ["The council of the town paid for the roof of the school in 2019.", *EN]
    assert Kind.NUMBER not in kinds(moved, back), "a phrase has moved"


def test_a_passage_is_more_than_a_sentence():
    more = (
        "nobody knows yet what the parents will say to it, for they have not been asked, and few of them were there. "
    )
    assert kinds([EN[0], more, *EN[1:]], EN) == [Kind.ADDED]
    several = " ".join(more.replace("parents", who) for who in ("parents", "teachers", "pupils", "others"))
    assert Kind.PASSAGE in kinds([EN[0], several, *EN[1:]], EN)


def test_a_slip_is_a_letter_of_a_word_that_no_other_text_has():
    page = replaced(EN, "decision", "decisiom")
    assert kinds(page, EN, KNOWN) == [Kind.SLIP]
    assert kinds(page, EN) == [Kind.WORD], "with few texts in the store nothing tells a slip"
    few = Context(known=lambda: {"decision", "the"}.__contains__)
    assert kinds(page, EN, few) == [Kind.WORD], "other texts are in another language"
    assert kinds(replaced(EN, "council", "counsel"), EN, KNOWN) == [Kind.WORD]


def test_several_places_or_a_clause_are_reworded():
    page = replaced(replaced(replaced(EN, "approved", "said yes to"), "for the", "of the"), "on Monday", "that Monday")
    assert set(kinds(page, EN)) == {Kind.REWORDED}
    filled = replaced(replaced(replaced(EN, "approved", "passed"), "for the", "of the"), "on Monday", "that Monday")
    assert set(kinds(filled, EN)) == {Kind.WORD}, "a form was filled in again"
    clause = "settled the question of all its schools after some hours"
    assert Kind.REWORDED in kinds(replaced(EN, "approved the new budget for the schools", clause), EN)
    assert kinds(replaced(EN, "approved the new budget", "declined the new budget"), EN) == [Kind.WORD]


def test_boilerplate_does_not_count():
    notice = "All rights of this text are reserved by the publisher of these 300 pages."
    page = [notice, *EN]
    assert compare(page, Original(EN), Context(counts=lambda line: "reserved" not in line)) == Comparison((), 1.0)
    assert compare(page, Original(EN)).score < 1.0


def test_where_a_few_other_edits_decide_the_comparison_ends():
    page = [f"{line} It is {number}." for number, line in enumerate(story(3), 100)]
    whole = compare(page, Original(story(3))).edits
    assert len(compare(page, Original(story(3)), Context(allowed=frozenset())).edits) < len(whole)


def test_words_beyond_the_most_that_are_aligned_make_no_copy():
    words = [f"{chr(97 + n % 26)}{chr(97 + n // 26 % 26)}{chr(97 + n // 676)}word" for n in range(2 * MAX_WORDS)]
    sentences = [" ".join(words[n : n + 12]) + "." for n in range(0, len(words), 12)]
    edited = [sentence.replace("word", "wort", 1) for sentence in sentences]
    assert Kind.TOO_LONG in kinds(edited, sentences)


def test_what_is_not_read_is_not_equal():
    rows = [f"Row {n}" for n in range(MAX_WORDS + 500)]
    assert kinds([*rows[:-100], "Another row", *rows[-99:]], rows) == [Kind.TOO_LONG]
    assert kinds(rows[:MAX_WORDS], rows) == []


@pytest.mark.parametrize(
    ("british", "american"),
    [("neighbours", "neighbors"), ("realised", "realized"), ("centre", "center"), ("organisation", "organization")],
)
def test_british_and_american_spellings_are_one_word(british, american):
    text = "The {} of the harbour office in the old town had been there for years."
    everything_is_known = Context(known=lambda: bool)
    assert compare([text.format(british)], Original([text.format(american)]), everything_is_known).edits == ()


@pytest.mark.parametrize(("one", "other"), [("prise", "prize"), ("tour", "tor"), ("four", "for")])
def test_words_that_are_spelled_alike_are_two(one, other):
    text = "The {} of the harbour office in the old town had been there for years."
    assert compare([text.format(one)], Original([text.format(other)]), Context(known=lambda: bool)).edits


def test_the_lines_of_a_list_in_another_order_are_another_list():
    race = [*story(1), "Anna Weber", "Clara Jung", "Eva Holt", *story(2)]
    other = [*story(1), "Clara Jung", "Anna Weber", "Eva Holt", *story(2)]
    assert [edit.kind for edit in compare(other, Original(race)).edits] == [Kind.LINE, Kind.LINE]
    assert compare(["1 Anna", "2 Anna", "3 Eva"], Original(["1 Eva", "2 Anna", "3 Eva"])).edits
    moved = [*story(2), "Anna Weber", "Clara Jung", "Eva Holt", *story(1)]
    assert compare(moved, Original(race)).edits == ()


@pytest.mark.parametrize("negation", ["не", "لا", "nie", "değil", "không", "नहीं", "לא"])
def test_a_negation_more_is_another_sentence_in_many_languages(negation):
    text = "Alpha beta gamma delta {}epsilon zeta eta theta iota kappa."
    found = compare([text.format(f"{negation} ")], Original([text.format("")])).edits
    assert [edit.kind for edit in found] == [Kind.NEGATION]


def test_another_rating_in_symbols_replaces_the_line():
    assert [e.kind for e in compare([*story(1), "★★★★☆"], Original([*story(1), "★☆☆☆☆"])).edits] == [Kind.LINE]
    assert [e.kind for e in compare([*story(1), "***"], Original(story(1))).edits] == [Kind.LINE_ADDED]
