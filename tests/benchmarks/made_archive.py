"""Makes an archive as a crawl of many sites leaves it, as large as wanted, the same in every run.

Sites are English and Chinese, each with its menu and a notice within every story. Four pages in ten repeat an earlier
one, wholly or in part: printed, under a session, on a mirror or on another site, edited or shortened, or quoted.
"""

from __future__ import annotations

import random
from functools import lru_cache
from typing import TYPE_CHECKING

from prose import article, blog, story, zh_story

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Pages of one site, which come one after the other.
ON_SITE = 250
_KINDS = ["print", "session", "mirror", "mirror", "repost", "repost", "edited", "edited", "cut", "quote", "quote"]
_KINDS += ["again", "changed", "short", *["story"] * 16]


def archive(pages: int, *, seed: int = 0) -> Iterator[dict[str, str]]:
    """Yield so many pages, each with its ``url`` and ``html``."""
    for number in range(pages):
        chance = random.Random(f"{seed} {number}")
        kind = chance.choice(_KINDS) if number else "story"
        # Most copies are of pages that came shortly before.
        earlier = max(0, number - 1 - int(min(number, 2_000) * chance.random() ** 2))
        told, theirs = _told(seed, number), _told(seed, earlier)
        is_theirs = kind in {"print", "session", "mirror", "again", "changed"}
        site, url = (earlier if is_theirs else number) // ON_SITE, _url(earlier if is_theirs else number)
        text = {
            "story": told,
            "changed": told,
            "quote": [*told, theirs[0]],
            "edited": [_edited(paragraph, chance) for paragraph in theirs],
            "cut": theirs[: 2 + number % 4],
            "short": [f"Nothing to see at {number}."],
        }.get(kind, theirs)
        url = {
            "print": f"{url}?print=1",
            "session": f"{url}?sid={chance.randrange(10**9):x}",
            "mirror": url.replace("://", "://mirror."),
        }.get(kind, url)
        name = f"{''.join(random.Random(site).choices('abdegiklmnoprstu', k=7)).title()} Courier"
        notice = f"Readers of the {name} pay nothing for this text and may support the paper with a gift."
        html = (blog if site % 2 or kind == "print" else article)(name, [*text[:3], notice, *text[3:]])
        yield {"url": url, "html": html.replace("</body>", _menu(name) + "</body>")}


@lru_cache(4_000)
def _told(seed: int, number: int) -> list[str]:
    return (zh_story if number // ON_SITE % 3 == 2 else story)(seed * 10**7 + number)


@lru_cache(64)
def _menu(name: str) -> str:
    links = "".join(f'<li class="m{n}"><a href="/section/{n}">Section {n} of {name}</a></li>' for n in range(100))
    return f"<footer><ul>{links}</ul></footer>"


def _edited(paragraph: str, chance: random.Random) -> str:
    """Return *paragraph* with some of its words, or characters, changed."""
    words = paragraph.split(" ") if " " in paragraph else list(paragraph)
    for _ in range(max(1, len(words) // 40)):
        words[chance.randrange(len(words))] = chance.choice(("new", "old", "very", "且", "又"))
    return (" " if " " in paragraph else "").join(words)


def _url(number: int) -> str:
    return f"http://site-{number // ON_SITE}.example/{2000 + number % 20}/{number % 12 + 1:02}/{number:x}-story"
