"""How a text differs from its original: typed edits, and a score."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prose import story, zh_story

from dedup_middleware.checks.edits import MAX_WORDS, Comparison, Context, Original, compare
from dedup_middleware.checks.table import COPY, Kind, Relation
from dedup_middleware.text.words import without_numbering

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


def test_a_slip_is_a_letter_of_a_word_that_no_other_text_has():
    page = replaced(EN, "decision", "decisiom")
    assert kinds(page, EN, KNOWN) == [Kind.SLIP]
    assert kinds(page, EN) == [Kind.WORD], "with few texts in the store nothing tells a slip"
    few = Context(known=lambda: {"decision", "the"}.__contains__)
    assert kinds(page, EN, few) == [Kind.WORD], "other texts are in another language"
    assert kinds(replaced(EN, "council", "counsel"), EN, KNOWN) == [Kind.WORD]


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


@pytest.mark.parametrize(
    "lines",
    [
        ["Close the gas valve.", "Open the window.", "Light the burner."],
        ["Gate", "5", "Bridge", "7"],
        ["Home", "Leeds", "Away", "York"],
        ["关闭煤气阀门。", "打开窗户。", "点燃炉子。"],
    ],
)
def test_the_order_is_that_of_the_lines_that_both_have(lines):
    moved = [lines[0], lines[-1], *lines[2:-1], lines[1]]
    for more in ([], ["Show map"], ["Show map", "See also"]):
        assert kinds([*story(1), *moved], [*story(1), *lines, *more]) == [Kind.LINE, Kind.LINE]
        assert Kind.LINE in kinds([*story(1), *more, *moved], [*story(1), *lines])
        assert kinds([*story(1), *lines], [*story(1), *more, *lines]) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Take 1/2 tablets daily after every meal.", "Take 1-2 tablets daily after every meal."),
        ("The bid was 5/8 of the price in the first auction.", "The bid was 5–8 of the price in the first auction."),
        ("The area of the disc is pi r^2 in all drawings.", "The area of the disc is pi r/2 in all drawings."),
        ("The syringe holds 5 x 10⁶ cells in saline.", "The syringe holds 5 x 106 cells in saline."),
        ("The dose is 1½ tablets per day for a child.", "The dose is 11/2 tablets per day for a child."),
        ("Run it with if (!ready) return at the end.", "Run it with if (ready) return at the end."),
        ("The pump is not able to fail in this weather.", "The pump is notable to fail in this weather."),
        ("The court did not in any way find him guilty.", "The court did find him guilty."),
        ("It costs the town about 20 million euros", "It costs the town about 20"),
        ("施工的费用全部加起来大约是20亿元", "施工的费用全部加起来大约是20"),
        ("BUY – shares of the line at the price of today.", "SELL – shares of the line at the price of today."),
        ("医生说病人得了三份药回家去。", "医生说病人得了三分药回家去。"),
        ("他说他在那里等候渡轮的到来。", "他说他在哪里等候渡轮的到来。"),
    ],
)  # fmt: skip
def test_what_marks_and_single_words_tell_is_no_way_of_writing(one, other):
    both = ([*story(1), line, *story(2)] for line in (one, other))
    whole, cut = both
    assert set(kinds(cut, whole)) - COPY[Relation.ACROSS]
    if not one.startswith(other):
        assert set(kinds(whole, cut)) - COPY[Relation.ACROSS]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("It took 10–20 minutes in 2019 – 2021.", "It took 10-20 minutes in 2019-2021."),
        ("The dose is ½ of a tablet, or 1½ of it.", "The dose is 1/2 of a tablet, or 1 1/2 of it."),
        ("The hall has 20 m² for H₂O.", "The hall has 20 m2 for H2O."),
        ("It is 10⁶ all in all.", "It is 10^6 all in all."),
        ("It is free! Come to us (really!) on Monday.", "It is free. Come to us (really) on Monday."),
        ("He cannot do that.", "He can not do that."),
        ("公司向银行借了五百万元的款项。", "公司向银行藉了五百万元的款项。"),
    ],
)
def test_a_number_written_otherwise_is_the_same(one, other):
    assert kinds([*story(1), one], [*story(1), other]) == []
    assert kinds([*story(1), other], [*story(1), one]) == []


def test_a_date_by_itself_that_is_to_come_is_a_value():
    text, original = ([*story(1), "Closing date", day, *story(2)] for day in ("14 June 2028", "12 May 2027"))
    in_2026, in_2030 = (Context(now=(year - 1970) * 365.25 * 86400) for year in (2026, 2030))
    assert kinds(text, original, in_2026) == [Kind.LINE]
    assert kinds(text, [*story(1), "Closing date", *story(2)], in_2026) == [Kind.ADDED_FACT]
    assert kinds(text, original, in_2030) == [Kind.LABEL]


def test_a_label_of_the_site_that_stands_in_the_place_of_another_line_is_a_value():
    site = Context(is_sites={"Rejected", "More", "Share"}.__contains__)
    text = [*story(1), "Rejected", *story(2)]
    assert kinds(text, [*story(1), "Approved", *story(2)], site) == [Kind.LINE]
    assert kinds(text, [*story(1), *story(2)], site) == [Kind.LABEL]
    assert kinds(["More", "Share", *story(1)], ["Share", "More", *story(1)], site) == []


LIST = ["Wash the hands", "Open the box", "Read the label", "Count the pills", "Close the box"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([*(f"{n}. {line}" for n, line in enumerate(LIST, 1)), "20 people died on the quay of the harbour"], "12"),
        ([*(f"{n} {line}" for n, line in enumerate(LIST, 1)), "20 people died on the quay of the harbour."], "12"),
        (["20 cups of rice", "21 cups of water", "22 cups of salt"], "12"),
    ],
)
def test_a_number_that_numbers_no_line_is_one_of_its_text(one, other):
    assert Kind.NUMBER in kinds([line.replace("20", other) for line in one], one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (["1 cup rice", "2 cups water", "3 spoons salt"], (2, 3, 4)),
        (["1 cup of rice.", "2 cups of milk.", "3 cups of salt."], (2, 3, 4)),
        (["2019 A", "2020 B", "2021 C"], (1919, 1920, 1921)),
    ],
)
def test_quantities_that_follow_one_another_number_nothing(one, other):
    text = [f"{number}{line[line.index(' ') :]}" for number, line in zip(other, one, strict=True)]
    assert set(kinds([*story(1), *text], [*story(1), *one])) - COPY[Relation.ACROSS]


@pytest.mark.parametrize("form", ["{}. {}", "{}) {}", "({}) {}", "{}: {}"])
def test_sites_number_the_lines_of_a_list_in_ways_of_their_own(form):
    numbered = [form.format(number, line) for number, line in enumerate(LIST, 1)]
    assert without_numbering([*numbered, *story(1), *numbered]) == [*LIST, *story(1), *LIST]
    assert without_numbering(numbered[2:]) == numbered[2:], "it does not begin"


@pytest.mark.parametrize("negation", ["не", "لا", "nie", "değil", "không", "नहीं", "לא"])
def test_a_negation_more_is_another_sentence_in_many_languages(negation):
    text = "Alpha beta gamma delta {}epsilon zeta eta theta iota kappa."
    found = compare([text.format(f"{negation} ")], Original([text.format("")])).edits
    assert [edit.kind for edit in found] == [Kind.NEGATION]
