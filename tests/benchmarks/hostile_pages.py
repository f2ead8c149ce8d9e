"""Pages that mean harm: a table of builders, each for a page of any size, and the way of one page through the product.

A builder takes a size, about the number of its repeated parts, so that one table serves the suite (small), the doubling
tests (twice as large) and `benchmarks/hostile.py` (full size, up to ten megabytes).
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING

from prose import story, zh_story
from scrapy.http import HtmlResponse

from dedup_middleware.common.budget import UNLIMITED, UncheckableError
from dedup_middleware.common.urls import url_identity
from dedup_middleware.extraction import check_complete, texts_of
from dedup_middleware.extraction.body import browser_tree
from dedup_middleware.extraction.decoding import NO_CHARSETS
from dedup_middleware.extraction.features import features_of
from dedup_middleware.model import Verdict, VerdictKind
from dedup_middleware.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Callable

    from library import Library

    from dedup_middleware.common.budget import Budget

STORY = "".join(f"<p>{paragraph}</p>" for paragraph in story(1))
# Another one each time.
_NEW = count(1000)
HALF = " ".join(story(1)[:3])
ZH_STORY = "".join(f"<p>{paragraph}</p>" for paragraph in zh_story(1))


@dataclass(frozen=True)
class Hostile:
    """One kind of page."""

    build: Callable[[int], str | bytes]
    full: int
    """The size that makes some ten megabytes, or what else is worst."""
    small: int = 2_000
    charset: str = "utf-8"
    """What the header says; empty for nothing."""

    def body(self, size: int) -> bytes:
        """Return the page; as text it is in UTF-8, lone surrogates and all."""
        page = self.build(size)
        return page if isinstance(page, bytes) else page.encode("utf-8", "surrogatepass")

    @property
    def headers(self) -> dict[str, str]:
        """The header that goes with it."""
        return {"Content-Type": "text/html" + (f"; charset={self.charset}" if self.charset else "")}

    def response(self, size: int, url: str = "http://site/hostile") -> HtmlResponse:
        """Return the page as a spider would get it."""
        return HtmlResponse(url, body=self.body(size), headers=self.headers)


def text(part: str, full: int, before: str = "", after: str = "") -> Hostile:
    """Return the page of one paragraph that says *part* again and again."""
    return Hostile(lambda n: f"{STORY}<p>{before}{part * n}{after}</p>", full)


def markup(part: str, full: int, before: str = "", after: str = STORY) -> Hostile:
    """Return the page that has the markup *part* again and again, and a story after it."""
    return Hostile(lambda n: f"<body>{before}{part * n}{after}", full)


def told(part: str, full: int, form: str = "<p>{} {}</p>") -> Hostile:
    """Return the page that says *part* again and again, and then a story, all in one paragraph of this *form*."""
    return Hostile(lambda n: form.format(part * n, " ".join(story(1))), full)


def nested(opening: str, closing: str = "", full: int = 100_000) -> Hostile:
    """Return the page that opens *opening* again and again, and closes it as often."""
    return Hostile(lambda n: f"{opening * n}{STORY}{closing * n}<p>The end, which may be cut.</p>", full)


def various(part: str, full: int) -> Hostile:
    """Return the page of paragraphs that differ by a number in *part*."""
    return Hostile(lambda n: "".join(f"<p>{part.format(i)}</p>" for i in range(n)), full)


HOSTILE: dict[str, Hostile] = {
    # Depth.
    "deep divisions": nested("<div>", "</div>"),
    "deep and never closed": nested("<div>"),
    "deep inline": nested("<b>", "</b>"),
    "deep tables": nested("<table><tr><td>", "</td></tr></table>"),
    "deep lists of links": nested("<ul><li><a href=/x>", full=50_000),
    "deep mathematics": nested("<math><mrow>", "</mrow></math>"),
    "deep players": nested("<video><source src=/a.mp4>", "</video>", full=20_000),
    "deep raised words": nested("<sup>a", "</sup>"),
    "deep templates": nested("<template>", "</template>"),
    "deep text at each level": nested("<div>The council voted, and so on it went, "),
    "just within the depth that lxml follows": Hostile(lambda n: "<div>" * min(n, 2040) + STORY, 2040),
    # Numbers.
    "a million paragraphs": markup("<p>a, b", 1_400_000),
    "a million different paragraphs": replace(
        various("The council of {0:x} voted for the plan, {0:x} of them.", 140_000), small=500
    ),
    "a million breaks": markup("a,<br>", 1_300_000),
    "a million links": markup("<a href=/x>link</a> ", 450_000),
    "a million unknown tags": markup("<x-y>", 1_900),
    "a million options": markup("<option>One or another", 400_000, "<select>"),
    "many classes": Hostile(lambda n: "".join(f"<p class='c{i}'>a, b" for i in range(n)), 450_000),
    "many attributes on one element": Hostile(lambda n: f"<p {' '.join(f'a{i}' for i in range(n))}>{STORY}", 10_000),
    "sections with a text each": Hostile(lambda n: f"<section>{STORY}</section>" * n, 3_500, 100),
    "distinct tags": Hostile(lambda n: "".join(f"<t{i}>a, b</t{i}>" for i in range(n)), 400_000),
    # Size.
    "a text node of eleven megabytes": text("the council voted, and so ", 440_000),
    "one word": text("a", 10_000_000),
    "one Chinese word": text("好", 3_300_000),
    "a huge attribute": markup("a, ", 3_300_000, "<p title='", f"'>{STORY}"),
    "a huge class": markup("a-b C ", 1_600_000, "<p class='", f"'>{STORY}"),
    "a huge title": markup("a, ", 3_300_000, "<head><title>", f"</title>{STORY}"),
    "a huge comment": markup("a, <p>", 1_600_000, "<!--", f"-->{STORY}"),
    "a comment that never ends": markup("a, <p>", 1_600_000, f"{STORY}<!--", ""),
    "a huge script": markup("'<p>', ", 1_400_000, "<script>", f"</script>{STORY}"),
    "a huge attribute name": markup("a", 10_000_000, "<p ", f">{STORY}"),
    "character data": markup("<![CDATA[a, b]]>", 600_000),
    "an attribute that never ends": markup("a, <p>", 1_600_000, f"{STORY}<p title='", ""),
    # Characters.
    "combining marks": text("\u0300\u0316", 2_500_000, "a"),
    "marks beyond the basic plane": text("\U0001e8d0\U0001e944", 1_200_000, "a"),
    "marks between what is invisible": text("\u0300\u0316\u200b", 1_400_000, "a"),
    "zero width between letters": text("a\u200b\u200d,", 1_200_000),
    "directions": text("\u202e\u2066a, ", 1_000_000),
    "lone surrogates": text("a\ud800, ", 1_600_000),
    "NUL": text("a\0, ", 2_500_000),
    "controls": text("\x01\x1b[31m\x7f\x85, ", 800_000),
    "one that becomes eighteen": text("\ufdfa", 3_300_000),
    "others that become many": text("\u3300\u33ff\u2a74", 1_000_000),
    "Hangul in parts": text("\u1100\u1161\u11a8", 1_100_000),
    "capitals that become three": text("\u0390\u1e9e\ufb03", 1_000_000),
    "emoji": text("\U0001f469\u200d\U0001f680, ", 700_000),
    "references": text("&lt;&amp;&bogus;&#x110000;", 350_000),
    # What is quadratic for a careless pattern.
    "spaces": text(" ", 10_000_000, after="x"),
    "rare white space": text("\u2003\u3000\x0c", 1_400_000, after="x"),
    "Thai, then spaces": text(" ", 10_000_000, "ก", "x"),
    "digits": text("1", 9_990_000),
    "thousands": text("1,000 ", 1_600_000),
    "points": text(".", 10_000_000),
    "a point before many digits": text("1", 10_000_000, "1.", "."),
    "a colon before many spaces": text(": ", 5_000_000, after="1"),
    "dates": text(":1 jan ", 1_400_000),
    "years": text("收盘价：1999年", 450_000),
    "ends of sentences and quotes": text("a!”", 1_900_000),
    "quotes": text("”", 3_300_000, "a!"),
    "tiny sentences": text("A. B. C. ", 1_080_000),
    "tiny sentences with signs": text("-1. $a. ", 1_200_000),
    "lines": Hostile(lambda n: f"{STORY}<pre>" + "ab cd\n" * n + "</pre>", 1_600_000),
    "Chinese": Hostile(lambda n: ZH_STORY + "<p>" + "他说，好。" * n, 600_000),
    "a sentence without an end": text("a b ", 2_500_000),
    "dots of a teaser": text("..", 5_000_000, "a, ", "x"),
    "commas": text(",", 10_000_000),
    "short clauses": text("abc,", 2_500_000),
    "names in two parts": markup("<p class='aB-cD'>a, ", 500_000),
    "Traditional Chinese": text("體臺灣們，", 600_000),
    "title in capitals": text("A Title Here ", 700_000),
    # A known story behind very much that says nothing: its evidence is at the end.
    "a story behind tiny sentences": told("a; ", 3_200_000),
    "a story behind tiny Chinese sentences": told("好。", 1_600_000),
    "a story behind lines": told("ab\n", 3_200_000, "<pre>{} {}</pre>"),
    "a story behind paragraphs": told("<p>a; b; c.", 900_000),
    "half a story behind tiny sentences": Hostile(
        lambda n: f"<p>{'a; ' * n}{HALF} {' '.join(story(next(_NEW))[:2])}</p>", 3_200_000
    ),
    # Strange documents.
    "nothing": Hostile(lambda _: "", 1),
    "white space": Hostile(lambda n: " \n" * n, 5_000_000),
    "NUL alone": Hostile(lambda n: "\0" * n, 10_000_000),
    "a byte order mark alone": Hostile(lambda _: b"\xef\xbb\xbf", 1),
    "byte order marks": Hostile(lambda n: b"\xef\xbb\xbf" * n + STORY.encode(), 3_300_000),
    "text without scripts": Hostile(lambda n: f"<noscript>{STORY}</noscript>" * n + STORY, 3_500, 100),
    "documents in attributes": markup("<iframe srcdoc='<p>a, b</p>'></iframe>", 250_000),
    "bases": markup("<base href='http://[::bad'>", 380_000, "<head>"),
    "documents in documents": Hostile(lambda n: f"<html><body>{STORY}</body></html>" * n, 3_500, 100),
    "heads and bodies": Hostile(
        lambda n: f"<title>A</title><main>{STORY}</main>" + "<head><main>a, b</main></head><body>c</body>" * n, 220_000
    ),
    "ends of documents": Hostile(lambda n: STORY + "</html>a, b" * n, 900_000),
    "texts without scripts in the head": Hostile(
        lambda n: "<title>A</title>" + "<noscript><b>a, b</b></noscript>" * n + f"<main>{STORY}</main>", 300_000
    ),
    "titles of icons": markup("<title>a</title>", 600_000, "<svg>", f"</svg>{STORY}"),
    "plain text from here on": markup("<plaintext>a, <p>b", 550_000),
    "an entity of one's own": Hostile(lambda n: "<!DOCTYPE a [<!ENTITY b 'c'>]>" + "<p>&b;, d" * n, 1_000_000),
    "XML": Hostile(
        lambda n: f"<?xml version='1.0' encoding='utf-16'?><html>{STORY * max(1, n // 100)}</html>", 300_000
    ),
    "a stylesheet instead": markup("p{a:b}", 1_600_000, "<style>", ""),
    "noise": Hostile(lambda n: bytes(i * i * 7919 % 251 for i in range(n)), 1_000_000),
    "a compressed page": Hostile(lambda n: gzip.compress(b"<p>a, b" * n), 1_000_000),
    # Lies about the encoding.
    "UTF-16 that is said to be UTF-8": Hostile(lambda _: STORY.encode("utf-16"), 1),
    "UTF-16": Hostile(lambda n: ("<p>a, b" * n + STORY).encode("utf-16"), 350_000, charset="utf-16"),
    "UTF-16 cut in a letter": Hostile(lambda _: STORY.encode("utf-16")[:-1], 1, charset="utf-16"),
    "UTF-7": Hostile(lambda n: b"+ADw-p+AD4-a, b" * n, 600_000, charset="utf-7"),
    "two encodings": Hostile(lambda n: (ZH_STORY.encode() + ZH_STORY.encode("gb18030")) * max(1, n // 100), 300_000),
    "GB 18030 that is said to be UTF-8": Hostile(lambda _: ZH_STORY.encode("gb18030"), 1),
    "broken UTF-8": Hostile(lambda n: b"<p>a\xff\xfe\xc3(, b" * n, 800_000),
    "another encoding in the page": Hostile(lambda n: b"<meta charset=utf-16>" + b"<p>a, b" * n, 1_300_000, charset=""),
    "no encoding at all": Hostile(lambda n: b"\x81\x8d\x8f\x90\x9d" * n, 2_000_000, charset=""),
    "an unknown encoding": Hostile(lambda _: STORY, 1, charset="x-bogus\x00"),
    "punycode": Hostile(lambda n: b"a" * n + b"-" + b"b" * n, 50_000, charset="punycode"),
    "escapes": Hostile(
        lambda n: b"\\N{ARABIC LIGATURE SALLALLAHOU ALAYHE WASALLAM}\\u0300" * n, 180_000, charset="unicode_escape"
    ),
}


def verdict_on(library: Library, response: HtmlResponse, budget: Budget = UNLIMITED) -> Verdict:
    """Let *response* go its whole way through the product, and on to where its items are kept or dropped."""
    if response.encoding in NO_CHARSETS:
        return Verdict(VerdictKind.UNCHECKED, reason=Reason.NO_CHARSET)
    try:
        root = response.selector.root
    except (LookupError, ValueError):
        return Verdict(VerdictKind.UNCHECKED, reason=Reason.NOT_PARSED)
    try:
        check_complete(root)
        root = browser_tree(root, budget)
        texts = texts_of(root, budget)
        features = features_of(root, texts)
        identities = (url_identity(response.url),)
        page = library.deduplication.reader.paragraphs(
            response.url, identities, texts.paragraphs, features=features, budget=budget
        )
    except UncheckableError as error:
        return Verdict(VerdictKind.UNCHECKED, reason=error.reason)
    visit = library.enter(page, budget)
    item = {"title": features.title, "text": "\n".join(texts.paragraphs), "html": response.text[:100_000]}
    library.leave(visit, items=[item])
    library.deduplication.recorder.record(visit)
    return visit.verdict
