"""Stories for tests: as many as wanted, each with its own sentences, the same in every run."""

# ruff: noqa: E501 - lists of words

from __future__ import annotations

import random
from html import escape

_WHO = "the harbour council|a retired surveyor|the night ferry crew|two local teachers|the mill owners|a young botanist|the fire brigade|the district court"
_DID = "has decided to rebuild|refused to sell|quietly inspected|promised to reopen|voted to protect|complained about|wants to replace|paid for"
_WHAT = "the old grain store|a row of lime trees|the tram line to the coast|the public baths|the lighthouse stairs|a collection of maps|the eastern flood wall|the market hall"
_WHY = "because winter storms had loosened its foundations|after a long quarrel over the cost|so that children can walk to school safely|although nobody had asked for it|while the province still weighs a subsidy|before the autumn fair begins in earnest"
_ZH_WHO = "港务委员会|退休测量员|夜班轮渡船员|两位当地教师|磨坊业主|年轻的植物学家|消防队员|地区法院"
_ZH_DID = "决定重新修建|拒绝出售|悄悄检查了|承诺重新开放|投票保护|公开抱怨|打算更换|出钱修缮"
_ZH_WHAT = (
    "旧粮仓的屋顶|河边那排椴树|通往海岸的电车线|公共浴场的大厅|灯塔里的楼梯|一批珍贵的地图|东边的防洪墙|集市大厅的石柱"
)
_ZH_WHY = "因为冬季风暴动摇了地基|在一场关于费用的长期争吵之后|好让孩子们安全步行上学|尽管没有任何人提出要求|而省里仍在权衡补贴方案|赶在秋季庙会正式开始之前"


#: From so many characters on a text is a story, and not a notice.
LONG = 200


def story(number: int, paragraphs: int = 6) -> list[str]:
    """Return the paragraphs of English story *number*."""
    rng = random.Random(f"en{number}")
    place = f"{rng.choice(['North', 'South', 'Upper', 'Lower'])} {''.join(rng.choices('aeioubdglmnrst', k=7)).title()}"
    return [
        " ".join(
            f"In {place} {rng.choice(_WHO.split('|'))} {rng.choice(_DID.split('|'))} {rng.choice(_WHAT.split('|'))}"
            f" {''.join(rng.choices('abcdefghilmnoprstuv', k=9))}, {rng.choice(_WHY.split('|'))}"
            f" {''.join(rng.choices('abcdefghilmnoprstuv', k=9))}."
            for _ in range(3)
        )
        for _ in range(paragraphs)
    ]


def zh_story(number: int, paragraphs: int = 6) -> list[str]:
    """Return the paragraphs of Chinese story *number*."""
    rng = random.Random(f"zh{number}")
    han = [chr(c) for c in range(0x4E8E, 0x5F00)]
    return [
        "".join(
            f"{''.join(rng.choices(han, k=3))}市{rng.choice(_ZH_WHO.split('|'))}{rng.choice(_ZH_DID.split('|'))}"
            f"{rng.choice(_ZH_WHAT.split('|'))}，{''.join(rng.choices(han, k=3))}{rng.choice(_ZH_WHY.split('|'))}。"
            for _ in range(3)
        )
        for _ in range(paragraphs)
    ]


def headline(name: str, paragraphs: list[str]) -> str:
    """Return what a page with these *paragraphs* is called: by its beginning, or *name* where there is no story."""
    text = " ".join(paragraphs)
    end = 24 if text[:1] > "\u3000" else 60
    return text[:end].rpartition(" ")[0] or text[:end] if len(text) > LONG else name


def article(name: str, paragraphs: list[str], links: tuple[str, ...] = ()) -> str:
    """Return a page as a newspaper would serve it, *name* in its menu, under the headline of its story."""
    title = headline(name, paragraphs)
    menu = "".join(f'<li><a href="/section/{n}">{n}</a></li>' for n in ("Home", "World", "Sport", name))
    body = "".join(f"<p>{p}</p>" for p in paragraphs)
    more = "".join(f'<li><a class="next" href="{link}">more</a></li>' for link in links)
    return (
        f"<!DOCTYPE html><html><head><meta charset='utf-8'><title>{title}</title></head><body>"
        f"<nav><ul>{menu}</ul></nav><main><article><h1>{title}</h1>{body}</article></main>"
        f"<aside><ul>{more}</ul></aside><footer>All rights reserved</footer></body></html>"
    )


def blog(name: str, paragraphs: list[str], links: tuple[str, ...] = ()) -> str:
    """Return the same story as another site would serve it."""
    title = headline(name, paragraphs)
    body = "<br><br>".join(paragraphs)
    more = " | ".join(f'<a class="next" href="{link}">read on</a>' for link in links)
    return (
        f"<html><head><meta charset='utf-8'><title>{title}</title></head><body><div id='top'>"
        f"<a href='/'>home</a> <a href='/about'>{name}</a></div><div class='wrap'><div class='post'><h2>{title}</h2>"
        f"<div class='text'>{body}</div></div></div><div class='links'>{more}</div></body></html>"
    )


def page(
    title: str, *body: str, heading: str | None = None, head: str = "", below: str = "", menu: str = "Home"
) -> str:
    """Return a page with *body* as its main text, paragraphs or markup, and *below* after it; without an empty heading."""
    blocks = "".join(part if part.startswith("<") else f"<p>{part}</p>" for part in body)
    called = escape(title if heading is None else heading)
    return (
        f"<!DOCTYPE html><html><head><meta charset=utf-8><title>{escape(title)}</title>{head}</head><body>"
        f"<nav><a href=/>{menu}</a> <a href=/all>All</a></nav><main>{f'<h1>{called}</h1>' if called else ''}"
        f"<article>{blocks}</article></main>{below}</body></html>"
    )


def linked(html: str, **links: str) -> str:
    """Return the page with ``<link rel=… href=…>`` in its head."""
    tags = "".join(f'<link rel="{rel}" href="{href}">' for rel, href in links.items())
    return html.replace("</head>", f"{tags}</head>")


def several(title: str, parts: list[list[str]]) -> str:
    """Return a page that tells several stories, each in a ``div.part``."""
    body = "".join(f"<div class='part'>{''.join(f'<p>{p}</p>' for p in part)}</div>" for part in parts)
    return article(headline(title, parts[0]), []).replace("</h1>", f"</h1>{body}")
