"""Leaves out what a page adds to a story without adding to it: credits, datelines, copyright lines, links.

Every outlet and every view of a page writes its own.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Longer lines that begin like a credit are sentences.
_MAX_LINE = 120
# English, German, French, Spanish and Chinese, as a line of its own.
_CREDIT = re.compile(
    r"""\W{0,3}(?:
    (?:©|\(c\)|copyright\b|all\ rights\ reserved)
    |(?:(?:additional\ )?reporting|editing|edited|written|compiled|translated|photos?|photography|pictures?|image|video
        |source|credits?|quelle|foto|bild|crédits?|fuente)\b(?:\ and\ \w+)?\s?(?:by\b|von\b|par\b|por\b|[:：])
    |(?:first|last|originally|zuletzt)?\ ?
        (?:updated|published|posted|modified|aktualisiert|veröffentlicht|publié|actualizado)\b
        (?=\W*(?:on|at|am|le|el)?\W*(?:[^\W\d]+,?\ )?[^\W\d]*\.?\ ?\d)
    |(?:责任编辑|责编|编辑|编审|来源|稿源|出处|作者|记者|校对|审核|图源|摄影|发布时间|更新时间|責任編輯|來源|記者)\s?[:：/／]
    |(?:完|end|ends|fin)\W*$
    |(?:url|permalink|link)\s?[:：]
    )""",
    re.IGNORECASE | re.VERBOSE,
)
# At the beginning of a paragraph: "LONDON (Reuters) - ", "新华社北京4月1日电（记者王明）".
_DATELINE = re.compile(
    r"[（(【]?[^\s，。（(]{0,14}\d{1,2}月\d{1,2}日[电電讯訊][)）】]?(?:\s?[（(][^）)]{0,30}[）)])?"
    r"|[A-Z][A-Z.,/ ]{2,30}(?:,? (?:[A-Z][a-z]{2,8}\.? \d{1,2}))?\s?(?:\([A-Z][\w .]{1,20}\))?\s?[-—–]+\s"
)
# The local part of an address has at most 64 characters (RFC 5321); without the limit a long word takes quadratic time.
_LINK = re.compile(r"(?:\b[a-z]{3,6}://|\bwww\.)[^\s<>（）]+|(?<![A-Za-z0-9_.+-])[A-Za-z0-9_.+-]{1,64}@[\w-]+\.[\w.]+")


def without_credits(paragraphs: Iterable[str]) -> Iterator[str]:
    """Yield *paragraphs* without credits and datelines. O(characters)."""
    for paragraph in paragraphs:
        if len(paragraph) <= _MAX_LINE and _CREDIT.match(paragraph):
            continue
        dateline = _DATELINE.match(paragraph)
        yield paragraph[dateline.end() :] if dateline else paragraph


def without_links(paragraphs: Iterable[str]) -> Iterator[str]:
    """Yield *paragraphs* without URLs and e-mail addresses, which another template shows as links. O(characters)."""
    for text in paragraphs:
        yield _LINK.sub(" ", text) if "://" in text or "@" in text or "www." in text else text
