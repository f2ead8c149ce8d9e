"""What a paragraph's 128 bits keep and what they do not see; how far apart paragraphs stand."""

from __future__ import annotations

import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prose import story, zh_story
from xxhash import xxh3_128_intdigest

import dedup_middleware
from dedup_middleware.errors import ConfigError
from dedup_middleware.fingerprints import simhash as module
from dedup_middleware.fingerprints.simhash import MIN_PARAGRAPH_WEIGHT, load_dictionary, paragraph_simhashes, simhash

if TYPE_CHECKING:
    from collections.abc import Callable

pytest.importorskip("jieba")

EN = (
    "The council has voted to rebuild the eastern flood wall before the autumn fair begins in earnest. Nobody had asked"
    " for it, said a retired surveyor. The province still weighs a subsidy, although winter storms had loosened the"
    " foundations of the wall and of the old grain store beside the tram line to the coast."
)
ZH = (
    "据当地媒体报道，旧粮仓的屋顶将在明年春天重新修建，工程费用由市政府和港务委员会共同承担。居民们表示欢迎。"
    "退休测量员认为，东边的防洪墙也应当尽快加固，因为去年冬季的风暴已经动摇了地基，而省里仍在权衡补贴方案。"
)
TEXTS = {"en": EN, "zh": ZH}
each_language = pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)

ANY_TEXT = st.text() | st.text(st.sampled_from("aB9東ไक한ا .,:;!?。！？…،؟।\n\r\t\u2028\u200b\u0301\ud800“”’'\")カ"))


def bits_of(text: str) -> int:
    bits = simhash(text)
    assert bits is not None
    return bits


def distance(one: str, other: str) -> int:
    return (bits_of(one) ^ bits_of(other)).bit_count()


def unspaced(text: str) -> str:
    return "".join(text.split())


class TestDistance:
    @each_language
    def test_the_same_text_has_the_same_bits(self, text: str) -> None:
        assert distance(text, text) == 0
        assert 0 < bits_of(text) < 2**128

    @pytest.mark.parametrize("tell", [story, zh_story], ids=["en", "zh"])
    def test_unrelated_paragraphs_stand_far_apart(self, tell: Callable[[int, int], list[str]]) -> None:
        # The stories of tests are made of few phrases: they share more than those of newspapers do.
        everything = [bits_of(" ".join(tell(number, 1))) for number in range(60)]
        distances = [(a ^ b).bit_count() for a, b in itertools.combinations(everything, 2)]
        assert 48 < statistics.mean(distances) < 64
        assert min(distances) > 16

    def test_without_a_common_word_it_is_half_of_the_bits(self) -> None:
        rng = random.Random(1)
        texts = [" ".join("".join(rng.choices("abcdefghij", k=9)) for _ in range(50)) for _ in range(60)]
        distances = [(bits_of(a) ^ bits_of(b)).bit_count() for a, b in itertools.combinations(texts, 2)]
        assert 63 < statistics.mean(distances) < 65
        assert 5 < statistics.stdev(distances) < 6.5

    def test_it_grows_with_the_share_of_words_replaced(self) -> None:
        rng = random.Random(2)

        def words(n: int) -> list[str]:
            return ["".join(rng.choices("abcdefghij", k=9)) for _ in range(n)]

        medians = []
        for replaced in (1, 3, 6, 15, 30, 60):
            found = []
            for _ in range(40):
                kept = words(60)
                found.append(distance(" ".join(kept), " ".join(words(replaced) + kept[replaced:])))
            medians.append(statistics.median(found))
        # 128 * acos(1 - share) / pi, for shares of 1/60, 5, 10, 25, 50 and 100 percent.
        assert medians == pytest.approx([7, 13, 18, 29, 43, 64], abs=3)

    @each_language
    def test_a_small_edit_moves_few_bits(self, text: str) -> None:
        edited = text.replace("subsidy", "grant").replace("居民们", "村民们")
        assert edited != text
        assert 0 < distance(text, edited) <= 16

    @pytest.mark.parametrize(
        ("report", "next_day"),
        [
            (
                "Shares of the harbour company closed at 6830 on Monday, while 214 ferries called at the port of Wick.",
                "Shares of the harbour company closed at 7115 on Monday, while 198 ferries called at the port of Wick.",
            ),
            (
                "偏北风4级，空气质量指数247，请市民注意防寒保暖，合理安排出行。",
                "偏北风6级，空气质量指数204，请市民注意防寒保暖，合理安排出行。",
            ),
        ],
        ids=["en", "zh"],
    )
    def test_another_number_moves_many(self, report: str, next_day: str) -> None:
        assert distance(report, next_day) > 16


class TestWhatDoesNotMatter:
    @each_language
    def test_the_order_of_sentences(self, text: str) -> None:
        mark = "。" if "。" in text else ". "
        reordered = mark.join(reversed(text.rstrip(".。").split(mark))) + mark
        assert reordered != text
        assert distance(text, reordered) == 0

    @pytest.mark.parametrize(
        "other",
        [
            EN.upper(),
            EN.replace(" ", "  \n\t"),
            EN.replace(".", "!").replace(",", " –"),
            EN.replace("wall", "w\u200ball"),
            EN.replace("old grain", "“old” (grain)"),
            "".join(chr(ord(c) + 0xFEE0) if c.isalpha() else c for c in EN),
        ],
        ids=["case", "spaces", "marks", "zero width", "quotes", "full width"],
    )
    def test_how_it_is_written(self, other: str) -> None:
        # Line ends are sentence ends, and then no sentence is long: what counts less counts less for all.
        assert distance(EN, other) == 0 or ("\n" in other and distance(EN, other) <= 16)

    def test_the_script_of_chinese(self) -> None:
        traditional = str.maketrans(
            "据当报旧粮仓顶将费费员认为东边应当尽冬风经动权衡补贴",
            "據當報舊糧倉頂將費費員認為東邊應當盡冬風經動權衡補貼",
        )
        assert ZH.translate(traditional) != ZH
        assert distance(ZH, ZH.translate(traditional)) == 0

    def test_how_often_a_word_is_said(self) -> None:
        words = "harbour surveyor foundations subsidy grandmother lighthouse botanist quarrel"
        assert distance(words, f"{words} {words} {words}") == 0


def test_words_of_long_sentences_and_long_words_count_more() -> None:
    long = "harbour surveyor foundations subsidies grandmother lighthouse botanists"
    both = bits_of(f"{long}. quarrel. pamphlet.")
    without_long, without_short = bits_of(f"{'. '.join(long.split())}. quarrel. pamphlet."), bits_of(long)
    assert (both ^ without_short).bit_count() < (without_long ^ without_short).bit_count()


@given(st.lists(st.lists(st.integers(0, 2**128 - 1), max_size=40), max_size=4))
def test_the_sums_are_those_of_the_textbook(columns: list[list[int]]) -> None:
    weighted = [(bits, 1 << power) for power, column in enumerate(columns) for bits in column]
    expected = 0
    for bit in range(128):
        if sum(w if bits >> bit & 1 else -w for bits, w in weighted) > 0:
            expected |= 1 << bit
    assert module._majority([list(column) for column in columns]) == expected


class TestTelling:
    @pytest.mark.parametrize(
        "text",
        [
            "",
            " \n",
            "…!?。",
            "By our own correspondent",
            "责任编辑：王小明",
            "\u0301" * 99,
            "-" * 999,
            "Share this! " * 3,
        ],
    )
    def test_little_text_has_none(self, text: str) -> None:
        assert simhash(text) is None

    def test_a_paragraph_tells_from_one_long_sentence_on(self) -> None:
        assert simhash("字" * (MIN_PARAGRAPH_WEIGHT // 3 - 1)) is None
        assert simhash("字" * (MIN_PARAGRAPH_WEIGHT // 3)) is not None
        assert simhash("word " * (MIN_PARAGRAPH_WEIGHT // 4 - 1)) is None
        assert simhash("word " * (MIN_PARAGRAPH_WEIGHT // 4)) is not None

    def test_each_telling_paragraph_has_its_own_in_order(self) -> None:
        assert paragraph_simhashes([]) == []
        assert paragraph_simhashes(iter(["a caption", EN, "", ZH, EN])) == [bits_of(EN), bits_of(ZH), bits_of(EN)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("परिषद ने पूर्वी बाढ़ दीवार को फिर से बनाने का फैसला किया और राज्य ने अभी तक कोई पैसा नहीं दिया", "दिया"),
        ("สภาได้ลงมติให้สร้างกำแพงกันน้ำท่วมด้านตะวันออกขึ้นใหม่ก่อนงานเทศกาลฤดูใบไม้ร่วงจะเริ่มขึ้น", "ขึ้น"),
        ("町議会は秋の祭りが始まる前に東側の防潮堤をつくりなおすことをきめましたが、県はまだ検討しています。", "検討"),
        (
            "의회는 가을 축제가 시작되기 전에 동쪽 홍수 방벽을 다시 쌓기로 결정했지만 도청은 아직 검토하고 있다",
            "검토하고",
        ),
        ("ذهب الرجل إلى السوق القديم واشترى خبزا كثيرا ثم عاد إلى البيت قبل أن تبدأ العاصفة الشديدة", "الشديدة"),
        ("Городской совет решил до осени восстановить восточную дамбу, хотя область ещё не дала денег", "денег"),
    ],
    ids=["hi", "th", "ja", "ko", "ar", "ru"],
)
def test_every_script_has_words(one: str, other: str) -> None:
    assert 0 < distance(one, one.replace(other, "")) < 32
    assert distance(one, EN) > 40


class TestHostile:
    @given(ANY_TEXT.map(lambda text: text * 9))
    @settings(deadline=None)
    def test_any_text_has_bits_or_none(self, text: str) -> None:
        bits = simhash(text)
        assert bits is None or 0 <= bits < 2**128
        assert bits == simhash(text)

    def test_one_word_repeated_is_that_word(self) -> None:
        assert simhash("spam " * 200_000) == xxh3_128_intdigest(b"spam")

    def test_lone_surrogates_are_letters_like_others(self) -> None:
        assert distance(EN, EN.replace("subsidy", "\ud800\udfff\ud800")) <= 16

    @pytest.mark.parametrize(
        "piece",
        [EN + " ", ZH, "字", "a", "ไ", "a\u0301", "\u0301", "旧粮仓 ", "word ", "A。", "\ud800", "\u200b", "1,000.5 "],
    )
    def test_time_is_linear(self, piece: str) -> None:
        load_dictionary()

        def seconds(characters: int) -> float:
            text = piece * (characters // len(piece))
            spent = []
            for _ in range(3):
                start = time.process_time()
                simhash(text)
                spent.append(time.process_time() - start)
            return min(spent)

        # Quadratic would be 64 times as long.
        assert seconds(160_000) < 24 * seconds(20_000) + 0.05


class TestDictionary:
    def run(self, script: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
        root = str(Path(dedup_middleware.__file__).parents[1])
        environment = {**os.environ, "PYTHONPATH": root, "TMPDIR": str(folder), **environment}
        return subprocess.run(
            [sys.executable, "-W", "error", "-c", script],
            env=environment,
            cwd=folder,
            capture_output=True,
            check=True,
            encoding="utf8",
        )

    def test_another_process_agrees_and_neither_prints_nor_leaves_a_file(self, tmp_path: Path) -> None:
        script = (
            "import json, logging; logging.basicConfig(level=0);"
            "from dedup_middleware.fingerprints.simhash import paragraph_simhashes;"
            f"print(json.dumps(paragraph_simhashes({[EN, ZH]!r})))"
        )
        for seed in "12":
            ran = self.run(script, tmp_path, PYTHONHASHSEED=seed)
            assert json.loads(ran.stdout) == paragraph_simhashes([EN, ZH])
            assert ran.stderr == ""
        assert list(tmp_path.iterdir()) == []

    def test_the_bits_are_those_of_every_version(self) -> None:
        # Whoever changes them makes every store's paragraph fingerprints meaningless: a new scheme.
        assert [f"{bits:032x}" for bits in paragraph_simhashes([EN, ZH])] == [
            "f9ad1944bf3258a1ae3def720a81db80",
            "de0f77ba4ea5e7d4c85b5fc14c72375d",
        ]

    def test_english_does_not_load_it(self, tmp_path: Path) -> None:
        script = (
            "import sys; from dedup_middleware.fingerprints.simhash import simhash;"
            f"simhash({EN!r}); print('jieba' in sys.modules)"
        )
        assert self.run(script, tmp_path).stdout == "False\n"

    def test_the_words_and_the_log_level_of_the_project_stay_its_own(self, tmp_path: Path) -> None:
        script = (
            "import logging, warnings; warnings.simplefilter('ignore'); import jieba;"
            "jieba.setLogLevel(logging.ERROR); jieba.add_word('旧粮仓的屋顶');"
            "from dedup_middleware.fingerprints.simhash import simhash;"
            f"print(simhash({ZH!r}), logging.getLogger('jieba').level == logging.ERROR)"
        )
        assert self.run(script, tmp_path).stdout == f"{bits_of(ZH)} True\n"

    def test_without_jieba_the_remedy_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "jieba", None)
        module._tokenizer.cache_clear()
        with pytest.raises(ConfigError, match="`pip install jieba`"):
            load_dictionary()
        assert simhash(EN) is not None
