"""An archive as a crawl of many sites leaves it, as large as wanted, the same in every run.

Sites are English and Chinese, each with its menu, teasers, footer and a notice within every story. One page in four
repeats an earlier one: printed, under a session, on a mirror, or on another site, whole, edited or shortened. Others
quote a sentence, fill in a template, come again, or say next to nothing.
"""

from __future__ import annotations

import random
from functools import lru_cache
from typing import TYPE_CHECKING

from prose import headline, story, zh_story

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Pages of one site, which come one after the other, but for those of its neighbour.
ON_SITE = 250
#: How many of a hundred pages are of which kind; the others tell a story of their own.
_KINDS = {
    "print": 4, "session": 2, "mirror": 4, "repost": 6, "edited": 6, "cut": 3, "quote": 10, "branch": 2, "again": 2,
    "changed": 1, "short": 3,
}  # fmt: skip
#: As far back an earlier page is looked for.
_BACK = 2_000
_TEMPLATES = (
    '<main><article><h1>{title}</h1><p class="by">By our staff</p>{paragraphs}</article></main>',
    '<div class="wrap"><div class="post"><h2>{title}</h2><div class="entry">{paragraphs}</div></div></div>',
    '<section id="content"><header><h1>{title}</h1></header><div class="body">{paragraphs}</div></section>',
)


def archive(pages: int, *, seed: int = 0) -> Iterator[dict[str, str]]:
    """Yield so many pages, each with its ``url`` and ``html``. 0.3 ms each."""
    kinds = [kind for kind, share in _KINDS.items() for _ in range(share)]
    for number in range(pages):
        chance = random.Random(f"{seed} {number}")
        kind = chance.choice(kinds + ["story"] * (100 - len(kinds)))
        earlier = number - 1 - int(min(number, _BACK) * chance.random() ** 2)
        yield _page(seed, number, kind if number else "story", max(0, earlier), chance)


def _page(seed: int, number: int, kind: str, earlier: int, chance: random.Random) -> dict[str, str]:
    site, theirs, ours = number // ON_SITE * 2 + chance.randrange(2), _home(earlier), _home(number)
    url, at = _url(earlier), _url(number, site)
    own, before = _told(seed, number), _told(seed, earlier)
    branch = f"Branch office of the harbour bank, number {number}, in {chance.choice('ABCDEFGH')} Street {number % 97}"
    edited = [_edited(paragraph, chance) for paragraph in before]
    return {
        "print": lambda: _made(theirs, f"{url}?print=1", before, 1),
        "session": lambda: _made(theirs, f"{url}?sid={chance.randrange(10**9):x}", before),
        "mirror": lambda: _made(theirs, url.replace("://", "://mirror."), before),
        "again": lambda: _made(theirs, url, before),
        "changed": lambda: _made(theirs, url, own),
        "branch": lambda: _made(ours, f"{_url(number)}-branch", [*_told(seed, 10**6 + ours), branch]),
        "short": lambda: _made(site, at, [f"Nothing to see at {number}."]),
        "repost": lambda: _made(site, at, before),
        "edited": lambda: _made(site, at, edited),
        "cut": lambda: _made(site, at, before[: 2 + number % 4]),
        "quote": lambda: _made(site, at, [*own, before[0].split(", ")[0] + "."]),
        "story": lambda: _made(site, at, own),
    }[kind]()


def _home(number: int) -> int:
    """Return the site of the page *number*, of the two that are crawled at a time."""
    return number // ON_SITE * 2


@lru_cache(4_000)
def _told(seed: int, number: int) -> list[str]:
    return (zh_story if number // ON_SITE % 3 == 2 else story)(seed * 10**7 + number)


def _edited(paragraph: str, chance: random.Random) -> str:
    """Return *paragraph* with some of its words, or characters, changed."""
    words = paragraph.split(" ") if " " in paragraph else list(paragraph)
    for _ in range(max(1, len(words) // 40)):
        words[chance.randrange(len(words))] = chance.choice(("new", "old", "very", "且", "又"))
    return (" " if " " in paragraph else "").join(words)


def _url(number: int, site: int | None = None) -> str:
    host = _home(number) if site is None else site
    return f"http://site-{host}.example/{2000 + number % 20}/{number % 12 + 1:02}/{number:x}-story"


def _made(site: int, url: str, paragraphs: list[str], template: int | None = None) -> dict[str, str]:
    title = headline(f"Page {url[-12:]}", paragraphs)
    notice = f"Readers of the {_name(site)} pay nothing for this text and may support the paper with a gift"
    told = "".join(f"<p>{paragraph}</p>" for paragraph in [*paragraphs[:3], f"{notice}.", *paragraphs[3:]])
    body = _TEMPLATES[site % 3 if template is None else template].format(title=title, paragraphs=told)
    return {"url": url, "html": _around(site).format(title=title, body=body, url=url)}


def _name(site: int) -> str:
    """Return what a *site* is called; without numbers, which would tell a copy from its story."""
    return f"{''.join(random.Random(site).choices('abdegiklmnoprstu', k=7)).title()} Courier"


@lru_cache(64)
def _around(site: int) -> str:
    """Return what stands around the stories of a *site*."""
    name = _name(site)
    menu = "".join(f'<li class="m{n}"><a href="/section/{n}">Section {n} of {name}</a></li>' for n in range(40))
    others = (story(9 * 10**6 + site * 20 + n, 1)[0][:70] for n in range(15))
    teasers = "".join(
        f'<div class="teaser"><a href="/t/{n}"><img src="{n}.jpg"><span>{other}</span></a><em>{n} comments</em></div>'
        for n, other in enumerate(others)
    )
    style = "".join(f".c{n} {{{{ margin: {n}px; color: #{n:03x} }}}} " for n in range(60))
    return (
        f"<!DOCTYPE html><html><head><meta charset='utf-8'><title>{{title}} | {name}</title>"
        f"<style>{style}</style><script>var page = '{{url}}';</script></head><body>"
        f"<nav><ul>{menu}</ul></nav>{{body}}<aside>{teasers}</aside>"
        f"<footer><p>{name}. All rights reserved.</p><ul>{menu[:1500].rpartition('<li')[0]}</ul></footer></body></html>"
    )
