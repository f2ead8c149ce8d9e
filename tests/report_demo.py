"""A log and a store worth looking at: the demo newspaper, checked without a crawl, and what makes a report warn.

It has a mirror that edits a word here and there, a club that shows all strangers one notice, and hostile pages.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from html import escape
from itertools import chain
from typing import TYPE_CHECKING

from crawling import store_uri
from msgspec.structs import replace
from prose import story

from dedup_middleware import Deduplicator
from dedup_middleware.records.crawl_lines import CrawlLine
from dedup_middleware.records.file import Record, RecordLog, lines
from dedup_middleware.settings import Config
from spiders.newspaper import Kind, site_map

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOSTS = {
    "lanzhou": "lanzhou-ribao.example",
    "wangxi": "wangxi.example",
    "beilan": "beilan.example",
    "courier": "courier.example",
    "tidewick": "tidewick-post.example",
    "wire": "wire.example",
    "mirror": "m.wangxi.example",
}
CLUB, JOINED = "club.example", "rowing.example"
COPIER = "daily-digest.example"
MIRROR, MIRRORED = "lanzhou-mirror.example", "lanzhou"
HOSTILE = "hostile.example"
SCRIPT = "<script>alert(1)</script>"
#: Turns the direction of writing, and colours a terminal.
OVERRIDE, COLOUR = "\u202egnp.exe", "\x1b[31mred"
TITLES = (SCRIPT, f"Turned {OVERRIDE} and {COLOUR}", "x" * 100_000, '"><img src=x onerror=alert(2)>')
_NOTICE = (
    "Members of the rowing club see the whole story here, with all pictures, and may comment on it until midnight.",
    "Whoever is not yet a member may ask at the boathouse on Saturdays, between ten and noon, for a form to fill in.",
    "The form is read by the secretary, who answers within a week, and by the treasurer, who never answers at all.",
    "A member rows as often as the weather allows, keeps the key of a locker, and is invited to the supper in March.",
    "Guests are welcome on the balcony during the regatta, where they find lemonade, a telescope and a visitors' book.",
    "Boats that are older than their rowers may be borrowed by anyone who promises to bring both of them home by dusk.",
    "Nobody has been refused in forty years, except a photographer who wished to be rowed upstream, alone, at night.",
    "The committee thanks all who have painted the jetty, and asks them to say where they have left the brushes.",
)
#: As no crawl writes it: a log is a file that anybody may have written to.
_FORGED = Record(
    time="\u202e",
    spider="news",
    crawl=COLOUR,
    url=f"javascript:alert(3)//{OVERRIDE}{COLOUR}",
    verdict="duplicate",
    outcome="dropped",
    original_url=f"https://{HOSTILE}/\u200f{SCRIPT}",
    score=0.9,
    reason=f"{SCRIPT}{COLOUR}",
    evidence=[SCRIPT, OVERRIDE],
    title=OVERRIDE,
)
_FORGED_NEAR_MISS = replace(
    _FORGED, url=f"javascript:alert(5)//{OVERRIDE}", verdict="related", outcome="kept", score=0.7
)
# It adds words: a text in which only one or two are replaced is another text.
_EDITS = ((" said ", " has said "), ("the ", "the very "), ("，", "，据悉"))


@dataclass(frozen=True, slots=True)
class Demo:
    """What a command is told of it."""

    folder: Path

    @property
    def settings(self) -> dict[str, object]:
        return {"DEDUP_STORE": store_uri(self.folder), "DEDUP_LOG": str(self.folder / "records.jsonl")}

    @property
    def config(self) -> Config:
        return Config.from_settings(self.settings, None)

    @property
    def here(self) -> tuple[str, ...]:
        return tuple(part for name, value in self.settings.items() for part in ("-s", f"{name}={value}"))


def demo(folder: Path, *, hostile: bool = True) -> Demo:
    """Check the pages, and let the records tell of two crawls of some hours each; with *hostile* pages, or without."""
    made = Demo(folder)
    log = folder / "records.jsonl"
    for pages in (_newspaper(), chain(_others(), _hostile() if hostile else ())):
        with Deduplicator(store_uri(folder), log=log) as dedup:
            for url, title, paragraphs in pages:
                dedup.add(url, _page(title, paragraphs))
    _spread(log)
    if hostile:
        with log.open("a", encoding="ascii", newline="\n") as file:
            file.write(f"{_FORGED.to_line()}\n{_FORGED_NEAR_MISS.to_line()}\n")
    return made


def _page(title: str, paragraphs: tuple[str, ...]) -> str:
    title, body = escape(title), "".join(f"<p>{escape(paragraph)}</p>" for paragraph in paragraphs)
    head = f"<!DOCTYPE html><html><head><meta charset='utf-8'><title>{title}</title></head>"
    return f"{head}<body><main><article><h1>{title}</h1>{body}</article></main></body></html>"


def _newspaper() -> Iterator[tuple[str, str, tuple[str, ...]]]:
    for page in site_map():
        # A brief on the site of its story is kept.
        if page.kind not in {Kind.LIST, Kind.REDIRECT} and "-brief" not in page.path:
            yield f"https://{HOSTS[page.site.key]}{page.path}", page.title, page.paragraphs


def _others() -> Iterator[tuple[str, str, tuple[str, ...]]]:
    originals = [page for page in site_map() if page.kind is Kind.ORIGINAL]
    for number, page in enumerate(originals):
        paragraphs = list(page.paragraphs)
        for place, (old, new) in enumerate(_EDITS):
            paragraphs[place % len(paragraphs)] = paragraphs[place % len(paragraphs)].replace(old, new, 1)
        if number % 3 == 0:
            paragraphs.append("Our readers may write to the desk about this story until the end of the month.")
        yield f"https://{COPIER}/{number:03}/{page.path.strip('/')}", page.title, tuple(paragraphs)
    for page in site_map():
        if page.site.key == MIRRORED and page.kind not in {Kind.LIST, Kind.REDIRECT}:
            yield f"https://{MIRROR}{page.path}", page.title, page.paragraphs
    yield f"https://{JOINED}/join", "For members", _NOTICE
    for number in range(30):
        yield f"https://{CLUB}/story/{number}", "For members", _NOTICE


def _hostile() -> Iterator[tuple[str, str, tuple[str, ...]]]:
    for number, title in enumerate(TITLES):
        for copy in (f"https://wire.example/odd/{number}", f"https://{HOSTILE}/{number}?q={SCRIPT}{OVERRIDE}"):
            yield copy, title, tuple(story(900 + number))


def _spread(log: Path) -> None:
    """Let an hour pass with every twenty lines, and a day between the crawls; bodies are as long as a newspaper's."""
    start = datetime(2026, 11, 18, 6, tzinfo=timezone.utc)
    found = [*lines(log)]
    crawls = list(dict.fromkeys(line.crawl for line in found))
    with closing(RecordLog(log)) as file:
        log.write_bytes(b"")
        for number, line in enumerate(found):
            day = crawls.index(line.crawl)
            stamp = (start + timedelta(minutes=3 * number, days=day)).isoformat(timespec="milliseconds")
            if isinstance(line, CrawlLine):
                settings = {"DEDUP_THRESHOLD": "0.75"} if day else {}
                about = {"project": "newsroom", "version": "0.1.0", "settings": settings}
                file.append(replace(line, time=stamp, spider="news", **about))
            else:
                file.append(replace(line, time=stamp, spider="news", bytes=30_000 + 371 * (number % 53)))
