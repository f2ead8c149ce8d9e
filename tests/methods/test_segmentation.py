"""Texts of any script are split into words, in linear time, and jieba leaves the project's settings alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dedup_middleware
from dedup_middleware.errors import ConfigError
from dedup_middleware.methods import segmentation
from dedup_middleware.methods.segmentation import load_dictionary, words_in

pytest.importorskip("jieba")

EN = "the council has voted to rebuild the eastern flood wall"
ZH = "旧粮仓的屋顶将在明年春天重新修建"
ANY_TEXT = st.text() | st.text(st.sampled_from("abब東ไक한ا .,:;!?。！？…،؟।\n\r\t\u2028\u200b\u0301\ud800“”’'\")カ"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("परिषद ने फैसला किया", ["परिषद", "ने", "फैसला", "किया"]),
        ("ขึ้นใหม่", ["ขึ", "ึ้", "้น", "นใ", "ให", "หม", "ม่"]),
        ("町議会はきめました", None),
        ("가을 축제가", ["가을", "축제가"]),
        ("ذهب الرجل", ["ذهب", "الرجل"]),
        ("городской совет", ["городской", "совет"]),
        (ZH, ["旧", "粮仓", "的", "屋顶", "将", "在", "明年", "春天", "重新", "修建"]),
    ],
    ids=["hi", "th", "ja", "ko", "ar", "ru", "zh"],
)
def test_every_script_has_words(text: str, words: list[str] | None) -> None:
    found = [*words_in(text)]
    assert len(found) > 1
    assert words is None or found == words


@given(ANY_TEXT.map(lambda text: text * 9))
@settings(deadline=None)
def test_any_text_has_words_without_spaces(text: str) -> None:
    found = [*words_in(text)]
    assert found == [*words_in(text)]
    assert not any(word.isspace() or not word for word in found)


@pytest.mark.parametrize(
    "piece",
    [EN + " ", ZH, "字", "a", "ไ", "a\u0301", "\u0301", "旧粮仓 ", "word ", "A。", "\ud800", "\u200b", "1,000.5 "],
)
def test_time_is_linear(piece: str) -> None:
    load_dictionary()

    def seconds(characters: int) -> float:
        text = piece * (characters // len(piece))
        start = time.process_time()
        list(words_in(text))
        return time.process_time() - start

    # Quadratic would be 64 times as long.
    assert any(seconds(80_000) < 24 * seconds(10_000) + 0.05 for _ in range(3))


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
            "from dedup_middleware.methods.segmentation import words_in;"
            f"print(json.dumps([*words_in({EN + ZH!r})]))"
        )
        ran = self.run(script, tmp_path, PYTHONHASHSEED="1")
        assert json.loads(ran.stdout) == [*words_in(EN + ZH)]
        assert ran.stderr == ""
        assert list(tmp_path.iterdir()) == []

    def test_english_does_not_load_it(self, tmp_path: Path) -> None:
        script = (
            "import sys; from dedup_middleware.methods.segmentation import words_in;"
            f"[*words_in({EN!r})]; print('jieba' in sys.modules)"
        )
        assert self.run(script, tmp_path).stdout == "False\n"

    def test_the_words_and_the_log_level_of_the_project_stay_its_own(self, tmp_path: Path) -> None:
        script = (
            "import logging, warnings; warnings.simplefilter('ignore'); import jieba;"
            "jieba.setLogLevel(logging.ERROR); jieba.add_word('旧粮仓的屋顶');"
            "from dedup_middleware.methods.segmentation import words_in;"
            f"print('/'.join(words_in({ZH!r})), logging.getLogger('jieba').level == logging.ERROR)"
        )
        assert self.run(script, tmp_path).stdout == f"{'/'.join(words_in(ZH))} True\n"

    def test_without_jieba_the_remedy_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "jieba", None)
        segmentation._tokenizer.cache_clear()
        with pytest.raises(ConfigError, match="`pip install jieba`"):
            load_dictionary()
        assert [*words_in(EN)] == EN.split()
