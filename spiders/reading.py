"""Recognises articles, and reads their title, date and text.

Works on news sites in general, without rules for each, and does not use the plugin. It misses articles that neither
declare themselves nor have much text, and keeps some boilerplate.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from parsel import Selector

LONG_TEXT = 250
"""Characters of text, without links, from which a page that does not declare itself counts as an article."""

BLOCKS = """
//body//*[self::p or self::div or self::td or self::article or self::section][normalize-space()]
[not(.//p or .//div or .//table or .//ul or .//script)]
[not(ancestor-or-self::nav or ancestor::header or ancestor::footer or ancestor::aside or ancestor::form)]
"""

TITLES = ('//meta[@property="og:title"]/@content', "//h1//text()", "//title/text()")
DATES = (
    '//meta[@property="article:published_time"]/@content',
    '//meta[translate(@name, "PD", "pd")="publishdate" or @name="pubdate" or @name="date"]/@content',
    "//time/@datetime",
)
JSON_LD = '//script[@type="application/ld+json"]/text()'
ARTICLE_TYPE = re.compile(r'"@type"\s*:\s*\[?\s*"[A-Za-z]*(?:Article|BlogPosting)"')
JSON_LD_DATE = re.compile(r'"datePublished"\s*:\s*"([^"]+)"')


def read_article(page: Selector) -> dict[str, str] | None:
    """Return ``title``, ``published`` (as the page writes it, or empty) and ``text``; ``None`` if it is no article.

    Newlines separate the paragraphs of the text. Linear in the size of the page.
    """
    text = _main_text(page)
    if not text or not (_declares_article(page) or len(text) >= LONG_TEXT):
        return None
    return {"title": _first(page, TITLES), "published": _published(page), "text": text}


def _main_text(page: Selector) -> str:
    """Return the longest text of siblings with one tag, or of a block with ``<br>`` between its paragraphs."""
    groups: defaultdict[tuple[object, str], list[str]] = defaultdict(list)
    for block in page.xpath(BLOCKS):
        linked = sum(map(len, block.xpath(".//a//text()").getall()))
        lines = _lines(block)
        if linked * 2 < sum(map(len, lines)):
            alone = block.root.tag != "p" and len(lines) > 1
            groups[block.root if alone else block.root.getparent(), block.root.tag] += lines
    return "\n".join(max(groups.values(), key=lambda lines: sum(map(len, lines)), default=[]))


def _lines(block: Selector) -> list[str]:
    pieces = block.xpath(".//text()|.//br").getall()
    text = "".join("\n" if piece.startswith("<br") else re.sub(r"\s+", " ", piece) for piece in pieces)
    return [line.strip() for line in text.split("\n") if line.strip()]


def _declares_article(page: Selector) -> bool:
    declared = page.xpath('//meta[@property="og:type"]/@content').get("").strip().lower() == "article"
    # Front pages have an <article> for each teaser.
    return declared or len(page.xpath("//article")) == 1 or bool(page.xpath(JSON_LD).re_first(ARTICLE_TYPE))


def _published(page: Selector) -> str:
    return _first(page, DATES) or page.xpath(JSON_LD).re_first(JSON_LD_DATE) or ""


def _first(page: Selector, paths: tuple[str, ...]) -> str:
    """Return the first of *paths* that has text, on one line."""
    texts = (" ".join("".join(page.xpath(path).getall()[:1]).split()) for path in paths)
    return next(filter(None, texts), "")
