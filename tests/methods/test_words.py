"""Words of texts of any script, what a corpus contains of them, and how jieba is loaded."""

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nightly import tries
from test_linear_time import is_linear

import dedup_middleware
from dedup_middleware.errors import ConfigError
from dedup_middleware.methods import vocabulary as module
from dedup_middleware.methods.vocabulary import STOP_WORDS, FrequencyMethod, content_words, load_dictionary, words

pytest.importorskip("jieba")

EN = "the council has voted to rebuild the eastern flood wall"
ZH = "旧粮仓的屋顶将在明年春天重新修建"
ANY_TEXT = st.text() | st.text(st.sampled_from("abब東ไक한ا .,:;!?。！？…،؟।\n\r\t\u2028\u200b\u0301\ud800“”’'\")カ"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The old ferry, and its Hull.", ["the", "old", "ferry", "and", "its", "hull"]),
        (ZH, ["旧", "粮仓", "的", "屋顶", "将", "在", "明年", "春天", "重新", "修建"]),
        ("老市場關門", ["老", "市场", "关门"]),
        ("ＦＥＲＲＹ 7路", ["ferry", "7", "路"]),
        ("2024年iPhone发布", ["2024", "年", "iphone", "发布"]),
        ("one\ntwo", ["one", "two"]),
        ("परिषद ने फैसला किया", ["परिषद", "ने", "फैसला", "किया"]),
        ("ขึ้นใหม่", ["ขึ", "ึ้", "้น", "นใ", "ให", "หม", "ม่"]),
        ("가을 축제가", ["가을", "축제가"]),
        ("ذهب الرجل", ["ذهب", "الرجل"]),
        ("городской совет", ["городской", "совет"]),
        ("…!?。， 😀", []),
        ("", []),
    ],
)
def test_words_are_folded_and_in_order_without_punctuation(text, expected):
    assert words(text) == expected


@settings(max_examples=tries(20, 1000))
@given(ANY_TEXT.map(lambda text: text * 9))
def test_any_text_has_words_without_spaces_and_the_same_again(text):
    found = words(text)
    assert found == words(text)
    assert not any(word.isspace() or not word or word in ",.。" for word in found)
    assert content_words(text) == [word for word in found if word not in STOP_WORDS]


@pytest.mark.parametrize(
    "piece",
    [EN + " ", ZH, "字", "a", "ไ", "a\u0301", "\u0301", "旧粮仓 ", "word ", "A。", "\ud800", "\u200b", "1,000.5 "],
)
def test_time_is_linear(piece):
    load_dictionary()
    assert is_linear(lambda size: partial(words, piece * (size // len(piece))), 10_000)


def test_stop_words_are_what_texts_are_cut_into():
    assert [word for word in sorted(STOP_WORDS) if words(word) != [word]] == []
    assert content_words("The ferry will not run again") == ["ferry", "run"]
    assert content_words("渡船在港口，但是我们没有船票") == ["渡船", "港口", "船票"]


class Frequencies(FrequencyMethod):
    threshold = 1.0

    def fingerprint(self, text): ...


@given(st.lists(st.lists(st.sampled_from(["ferry", "goat", "渡船", "港口", "\ud800"]), max_size=8), max_size=8))
def test_a_word_counts_once_a_text_and_at_least_once(corpus):
    known, other = Frequencies(), Frequencies()
    known.count(iter(corpus))
    other.count(reversed(corpus))
    assert known.texts == len(corpus)
    for word in ("ferry", "goat", "渡船", "港口", "\ud800", "never"):
        assert known.frequency(word) == max(1, sum(word in text for text in corpus))
    assert known.learned() == other.learned()


class TestDictionary:
    def run(self, script, folder, **environment):
        root = str(Path(dedup_middleware.__file__).parents[1])
        environment = {**os.environ, "PYTHONPATH": root, "TMPDIR": str(folder), **environment}
        command = [
            sys.executable,
            "-W",
            "error",
            "-c",
            "from dedup_middleware.methods.vocabulary import words;" + script,
        ]
        return subprocess.run(command, env=environment, cwd=folder, capture_output=True, check=True, encoding="utf8")

    def test_another_process_finds_the_same_and_neither_prints_nor_leaves_a_file(self, tmp_path):
        script = f"import json, logging; logging.basicConfig(level=0); print(json.dumps(words({EN + ZH!r})))"
        ran = self.run(script, tmp_path, PYTHONHASHSEED="1")
        assert json.loads(ran.stdout) == words(EN + ZH)
        assert ran.stderr == ""
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("choice", ["shingles", "characters", "long-sentences", "segments", "bloom"])
    def test_only_methods_that_cut_words_load_it(self, choice, tmp_path):
        script = (
            f"words({EN!r}); import sys; from dedup_middleware.methods.method import Text, method;"
            f"method({choice!r}).fingerprint(Text(({ZH!r},))); print('jieba' in sys.modules)"
        )
        assert self.run(script, tmp_path).stdout == "False\n"

    def test_the_words_and_the_log_level_of_the_project_stay_its_own(self, tmp_path):
        script = (
            "import logging, warnings; warnings.simplefilter('ignore'); import jieba;"
            "jieba.setLogLevel(logging.ERROR); jieba.add_word('旧粮仓的屋顶');"
            f"print('/'.join(words({ZH!r})), logging.getLogger('jieba').level == logging.ERROR)"
        )
        assert self.run(script, tmp_path).stdout == f"{'/'.join(words(ZH))} True\n"

    def test_without_jieba_the_remedy_is_named(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "jieba", None)
        module._tokenizer.cache_clear()
        with pytest.raises(ConfigError, match="Run `pip install jieba`"):
            load_dictionary()
        assert words(EN) == EN.split()
