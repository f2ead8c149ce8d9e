"""Renders pages as HTML: a template is a file of ``templates/`` with ``$names``, and all values are escaped here."""

from __future__ import annotations

import json
from functools import lru_cache
from html import escape
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING
from zlib import crc32

from spiders.newspaper.edition import SITES
from spiders.newspaper.stories import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from spiders.newspaper.edition import Link, Page, Site

TEMPLATES = Path(__file__).parent / "templates"

WORDS = {
    "zh": {"more": "相关阅读", "print": "打印本页", "latest": "最新报道", "most_read": "热门", "comments": "网友评论"},
    "en": {"more": "Read next", "print": "Print", "latest": "Latest", "most_read": "Most read", "comments": "Comments"},
}

COMMENTS = {
    "zh": (
        "写得真细，看完想去现场看看。",
        "希望后续也能跟踪报道一下。",
        "我家就住附近，情况基本属实。",
        "沙发！支持记者多跑基层。",
        "有没有人知道具体要怎么报名？",
        "转给我爸看了，他说早该这样了。",
    ),
    "en": (
        "Lovely piece, thank you for going there.",
        "My uncle worked on this, he will be pleased.",
        "And who is going to pay for it all?",
        "First time I have read to the end of anything this week.",
        "Please follow this up in the autumn.",
        "I walk past every day and had no idea.",
    ),
}


def render(page: Page) -> bytes:
    """Return *page* as HTML in its site's encoding; its footer links the other sites of its language."""
    site, words = page.site, WORDS[page.site.language]
    values = {
        "lang": site.language,
        "encoding": site.encoding,
        "site": escape(site.name),
        "title": escape(page.title),
        "author": escape(page.author),
        "published": page.published,
        "metadata": _metadata(page),
        "body": _body(page),
        "links": _items(page.links),
        "sidebar": _items(page.sidebar),
        "pager": " ".join(f'<a href="{escape(to.path)}">{to.title}</a>' for to in page.pager),
        "print_link": f'<a href="{page.print_path}">{words["print"]}</a>' if page.print_path else "",
        "comments": _comments(page),
        "partners": " | ".join(map(_front_page, (of for of in SITES if of.language == site.language))),
        **{f"word_{name}": word for name, word in words.items()},
    }
    return _template(_template_name(page)).substitute(values).encode(site.encoding)


def _front_page(site: Site) -> str:
    return f'<a href="{site.front_page}">{escape(site.name)}</a>'


def _template_name(page: Page) -> str:
    # A mirrored print page has the kind of all mirrored pages, and keeps its path.
    if page.path.startswith("/print/"):
        return "print.html"
    return {Kind.LIST: "list.html", Kind.WALL: "wall.html"}.get(page.kind, page.site.template)


@lru_cache
def _template(name: str) -> Template:
    return Template((TEMPLATES / name).read_text(encoding="utf-8"))


def _body(page: Page) -> str:
    texts = [escape(text, quote=False) for text in page.paragraphs]
    if page.site.style == "br":
        indent = "\u3000\u3000" if page.site.language == "zh" else ""
        return "<br><br>\n".join(indent + text for text in texts)
    if page.site.style == "div":
        return "\n".join(f'<div class="t"><span>{text}</span></div>' for text in texts)
    return "\n".join(f"<p>{text}</p>" for text in texts)


def _items(links: Iterable[Link]) -> str:
    return "\n".join(
        f'<li><a href="{escape(link.path)}">{escape(link.title)}</a>'
        + (f"<p>{escape(link.teaser)}</p>" if link.teaser else "")
        + "</li>"
        for link in links
    )


def _metadata(page: Page) -> str:
    facts = {
        "@context": "https://schema.org",
        "@type": "NewsArticle",
        "headline": page.title,
        "datePublished": page.published,
    }
    # "</script>" inside a JSON string would end the element.
    return json.dumps(facts, ensure_ascii=False).replace("</", "<\\/")


def _comments(page: Page) -> str:
    pool = COMMENTS[page.site.language]
    # The same with and without a session id.
    first = crc32(page.path.partition("sid=")[0].rstrip("?&").encode()) % len(pool)
    chosen = [pool[(first + step) % len(pool)] for step in range(3)]
    return "\n".join(f'<div class="comment">{escape(text)}</div>' for text in chosen)
