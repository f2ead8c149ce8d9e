"""What a text is reduced to, in any script."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dedup_middleware.text.clauses import MIN_CLAUSE_WEIGHT, clauses, one_line, sentences, weight

#: What a hostile or a careless page holds: every script, marks, terminators, controls, lone surrogates.
ANY_TEXT = st.text() | st.text(st.sampled_from("aB9東ไक한ا .,:;!?。！？…،؟।\n\r\t\u2028\u200b\u0301\ud800“”’'\")）"))
LETTERS = "abcdefgh天地玄黄宇宙कखगабв"
WORDS = st.text(st.sampled_from(LETTERS), min_size=1, max_size=30)


def of(text):
    return [clause for clause, _ in clauses(text)]


class TestClauses:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            (
                "据当地媒体报道，旧粮仓的屋顶将在明年春天重新修建。省里仍在权衡补贴方案！",
                ["据当地媒体报道", "旧粮仓的屋顶将在明年春天重新修建", "省里仍在权衡补贴方案"],
            ),
            ("The council has voted to rebuild; no one (they said) had asked for it.", ["thecouncilhasvotedtorebuild"]),
            ("ذهب الرجل إلى السوق، واشترى خبزا كثيرا؟", ["ذهبالرجلإلىالسوق", "واشترىخبزاكثيرا"]),
            (
                "परिषद ने पुल बनाने का फैसला किया। राज्य ने अभी पैसा नहीं दिया।",
                ["परिषदनेपुलबनानेकाफैसलाकिया", "राज्यनेअभीपैसानहींदिया"],
            ),
            ("วันนี้อากาศดีมากที่กรุงเทพ พรุ่งนี้ฝนจะตกหนักมาก", ["วันนี้อากาศดีมากที่กรุงเทพ", "พรุ่งนี้ฝนจะตกหนักมาก"]),
            (
                "今日はとても天気がいいです。明日は雨が降るでしょう、たぶん。",
                ["今日はとても天気がいいです", "明日は雨が降るでしょう"],
            ),
            ("오늘 날씨가 아주 좋습니다. 내일은 비가 올 것입니다.", ["오늘날씨가아주좋습니다", "내일은비가올것입니다"]),
            ("Сегодня очень хорошая погода, завтра будет дождь.", ["сегодняоченьхорошаяпогода", "завтрабудетдождь"]),
        ],
        ids=["zh", "en", "ar", "hi", "th", "ja", "ko", "ru"],
    )
    def test_every_script_is_cut_at_its_own_punctuation(self, text, expected):
        assert of(text) == expected

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("He said “the mill owners’ plan” was ready", "he said 'the mill owners' plan\" was ready"),
            ("THE HARBOUR COUNCIL HAS DECIDED", "the harbour council has decided"),
            ("Ｔｈｅ　ｈａｒｂｏｕｒ　ｃｏｕｎｃｉｌ　２０２４", "The harbour council 2024"),
            ("the har\u200bbour\ufeff coun\u00adcil has\u2060 decided", "the harbour council has decided"),
            ("the harbour\u00a0council  has\tdecided", "the harbour council has decided"),
            ("die Straße am Hafen wird gebaut", "DIE STRASSE AM HAFEN WIRD GEBAUT"),
            ("le café du port est fermé", "le cafe\u0301 du port est ferme\u0301"),
            ("《港务委员会》决定重新修建旧粮仓", "「港务委员会」决定重新修建旧粮仓"),
            ("港务委员会决定在 2024 年修建粮仓", "港务委员会决定在２０２４年修建粮仓"),
            ("the state-owned harbour council", "the state\u2011owned harbour council"),
            ("the council sold 12,000 trees in May", "the council sold 12000 trees in May"),
            ("the council sold 12'000 trees in May", "the council sold 12\u202f000 trees in May"),
            ("the council sold 1,234,567 trees in May", "the council sold 1 234 567 trees in May"),
            ("كتاب\u200fجديد في المدينة الكبيرة", "كتابجديد في المدينة الكبيرة"),
        ],
    )
    def test_the_way_of_writing_does_not_matter(self, one, other):
        assert of(one) == of(other) != []

    @pytest.mark.parametrize("number", ["3.14", "12:30", "1,000", "1,00,000", "３．１４", "12：30", "٣.١٤", "10.000,5"])
    def test_a_number_stays_whole(self, number):
        assert len(of(f"the harbour council said {number} was the figure")) == 1

    def test_what_is_too_short_to_tell_is_left_out(self):
        assert of("he said, yes; 据报道，今天！ Monday.") == []
        assert of("a" * (MIN_CLAUSE_WEIGHT - 1)) == []
        assert list(clauses("a" * MIN_CLAUSE_WEIGHT)) == [("a" * MIN_CLAUSE_WEIGHT, MIN_CLAUSE_WEIGHT)]
        assert list(clauses("旧粮仓屋顶")) == [("旧粮仓屋顶", MIN_CLAUSE_WEIGHT)]

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("Wind: 40 km/h.", [("wind40kmh", 0)]),
            ("Wind：40 km/h.", [("wind40kmh", 0)]),
            ("Wind: 4.5 m/s.", [("wind4\x005ms", 0)]),
            ("Rain 12 mm, hail.", [("rain12mm", 0)]),
            ("Temperature: 23 degrees.", [("temperature23degrees", 20)]),
            ("涨跌：12%。成交：35万手。", [("涨跌12", 0), ("成交35万手", 0)]),
            ("收盘价：6830元。", [("收盘价6830元", 16)]),
        ],
    )
    def test_a_number_stays_with_its_label_however_light(self, text, expected):
        assert list(clauses(text)) == expected

    @pytest.mark.parametrize("text", ["40", "40 %", "5 km", "12:30", "3 rooms", "Wind: strong", "涨3%", "€ 12.50"])
    def test_a_number_without_a_label_is_left_out(self, text):
        assert of(text) == []

    def test_a_date_is_no_number_with_a_label(self):
        dates = "November 20, 2024|Nov 20, 2024|20 Nov 2024|20 November 2024|Wed 20 Nov|20/11/2024|11月20日 12:30"
        for text in (*dates.split("|"), "11月20日", "2024-11-20", "2024-11-20 12:30"):
            assert of(text) == [], text

    @given(ANY_TEXT)
    def test_any_text_gives_clauses_of_letters_and_digits_only(self, text):
        for clause, clause_weight in clauses(text):
            is_light = weight(clause) < MIN_CLAUSE_WEIGHT
            assert clause_weight == (0 if is_light else weight(clause))
            assert not is_light or any(map(str.isdigit, clause)), "only labelled numbers may be light"
            assert not any(c.isspace() or c in ".,:;!?。！？“”’'\"" for c in clause)

    @given(st.lists(WORDS, min_size=5, max_size=20))
    def test_case_and_width_and_spacing_change_nothing(self, words):
        text = "-".join(words)
        assert of(text) == of(text.upper()) == of(text.replace("-", " ")) == of(text.replace("a", "ａ"))


class TestSentences:
    def test_they_are_kept_as_they_were_written(self):
        assert sentences('He said: "Go!"  Then 3.14 trees fell… and “who?” asked.\nNext line') == [
            'He said: "Go!"',
            "Then 3.14 trees fell…",
            "and “who?”",
            "asked.",
            "Next line",
        ]
        assert sentences("“天气很好。”他说。明天呢？") == ["“天气很好。”", "他说。", "明天呢？"]
        assert sentences("वह गया। फिर आया।") == ["वह गया।", "फिर आया।"]
        assert sentences("ماذا؟ نعم؛ حسنا.") == ["ماذا؟", "نعم؛ حسنا."]

    @given(ANY_TEXT)
    @example("...!!!")
    @example("?!a")
    def test_they_cover_every_letter_and_digit_in_order(self, text):
        position = 0
        for sentence in sentences(text):
            assert sentence == sentence.strip() != ""
            start = text.index(sentence, position)
            assert not any(c.isalnum() for c in text[position:start])
            position = start + len(sentence)
        assert not any(c.isalnum() for c in text[position:])

    @given(ANY_TEXT)
    @example("3…14 and so the council decided")
    @example("the harbour council .\u0301 has decided")
    def test_every_end_of_a_sentence_is_a_clause_break(self, text):
        """So the clauses of the sentences are the clauses of the text: evidence counts what the verdict counted."""
        assert [clause for sentence in sentences(text) for clause in of(sentence)] == of(text)


class TestLittleOnes:
    @given(ANY_TEXT, st.integers(1, 40))
    def test_one_line_is_one_short_line_that_steers_no_terminal(self, text, limit):
        line = one_line(text, limit)
        assert len(line) <= limit
        assert len(line.splitlines()) <= 1
        assert not any(c in line for c in "\x1b\x9b\u061c\u200e\u200f\u202e\u2066\x00\x7f")
