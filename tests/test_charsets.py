"""A program's bytes and a crawl's are read as the same text, whether they declare their encoding or not."""

import random
from importlib.metadata import version

import pytest
from crawling import store_uri
from hypothesis import given
from hypothesis import strategies as st
from local_site import Answer
from prose import article, story
from scrapy.http import HtmlResponse, TextResponse

from dedup_middleware import Deduplicator
from dedup_middleware.extraction.decoding import decoded

WORDS = {
    "ja": (
        "、。",
        "市議会は 図書館の 建設計画を 来年の春 工事が 住民は 橋の下で 三年後に 完成する 発表した 古い倉庫を",
    ),
    "ru": (
        ", ",
        "городской совет одобрил строительство моста через реку жители обсуждают новую библиотеку весной начнётся",
    ),
    "el": (", ", "το δημοτικό συμβούλιο ενέκρινε την κατασκευή νέας γέφυρας στο ποτάμι οι κάτοικοι συζητούν"),
    "ko": (", ", "시의회는 월요일 새로운 도서관 건설 계획을 승인했다고 밝혔다 주민들은 환영한다"),
    "zh": ("，。", "市政府 星期一 宣布 新图书馆 将于 明年春天 动工 预计 三年后 完工 居民 对此 表示欢迎"),
    "fr": (
        ", ",
        "le conseil a approuvé jeudi la construction d’un pont près de l’école où les élèves étudiaient à côté",
    ),
}
ENCODINGS = [
    *(
        ("ja", "shift_jis"),
        ("ja", "euc_jp"),
        ("ja", "iso2022_jp"),
        ("ru", "cp1251"),
        ("ru", "koi8_r"),
        ("el", "cp1253"),
    ),
    *(("ko", "euc_kr"), ("zh", "gb18030"), ("zh", "utf-16-le"), ("fr", "cp1252")),
    *((language, "utf-8") for language in WORDS),
]
DETECTS = tuple(map(int, version("scrapy").split(".")[:2])) >= (2, 19)


def told(language, seed, paragraphs=6):
    """Return the paragraphs of a story that no other *seed* tells."""
    pause, words = WORDS[language]
    rng, gap = random.Random(f"{language}{seed}"), " " if language in {"ru", "el", "ko", "fr"} else ""
    return [
        pause[0].join(gap.join(rng.choices(words.split(), k=6)) for _ in range(8)) + pause[-1]
        for _ in range(paragraphs)
    ]


def page(language, seed):
    """Return a page that declares no encoding."""
    return article("x", told(language, seed)).replace("<meta charset='utf-8'>", "")


@given(
    st.sampled_from(ENCODINGS),
    st.integers(0, 50),
    st.sampled_from(["nowhere", "header", "meta", "meta behind a long head", "wrong", "unknown"]),
    st.binary(max_size=20),
    st.sampled_from([HtmlResponse, TextResponse]),
)
def test_a_program_reads_the_text_that_a_crawl_reads(written, seed, declared, damage, kind):
    language, encoding = written
    html, header = page(language, seed), None
    name = {"wrong": "iso-8859-5", "unknown": "x-bogus"}.get(declared, encoding)
    if declared == "header":
        header = name
    elif declared != "nowhere":
        filler = "<meta name='a' content='b'>" * 60 if "long" in declared else ""
        html = html.replace("<head>", f"<head>{filler}<meta charset='{name}'>")
    body = html.encode(encoding, "replace") + damage
    media_type = "text/html" if kind is HtmlResponse else "text/plain"
    headers = {"Content-Type": media_type + (f"; charset={header}" if header else "")}
    assert decoded(body, header) == kind("http://a.example/", body=body, headers=headers).text


def test_a_codec_that_is_declared_late_is_no_charset_either():
    filler = "<meta name='a' content='b'>" * 60
    with Deduplicator() as dedup:
        html = article("x", story(1)).replace("<meta charset='utf-8'>", f"{filler}<meta charset='punycode'>")
        assert dedup.add("http://a.example/", html.encode()).reason == "no_charset"


@pytest.mark.skipif(not DETECTS, reason="older versions of Scrapy take all undeclared encodings for cp1252")
@pytest.mark.parametrize(("language", "encoding"), [("ja", "shift_jis"), ("ru", "cp1251")])
def test_a_program_finds_what_a_crawl_has_kept_in_an_undeclared_encoding(site, crawl, language, encoding):
    url = site.add("/a", Answer(page(language, 1).encode(encoding), headers={"Content-Type": "text/html"}))
    outcome = crawl("sample_spiders.Steps", steps=[{"url": url}])
    with Deduplicator(store_uri(outcome.folder)) as dedup:
        verdict = dedup.check("http://b.example/", page(language, 1).encode(encoding))
        assert (verdict.is_duplicate, verdict.original_url) == (True, url)
        # In UTF-8 it is the same story.
        assert dedup.check("http://b.example/", page(language, 1).encode()).original_url == url
        assert dedup.check("http://b.example/", page(language, 2).encode(encoding)).verdict == "new"
