"""Lays the stories out: the pages of each site, their paths, and the links between them.

All of it follows from the article files, so each run of the demo has the same pages.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import lru_cache

from spiders.newspaper.stories import Kind, Story, load_stories

PAGE_SIZE = 6
"""Entries on one list page."""

RELATED = 3
"""Further stories linked below an article."""

BRIEF_PARAGRAPHS = 2
"""Paragraphs of a story that its brief already had."""

PARTIAL_KINDS = frozenset({Kind.BRIEF, Kind.TRIMMED})
"""Pages that have only a part of their story."""

UNLISTED_KINDS = frozenset({Kind.LIST, Kind.PRINT, Kind.SESSION})
"""Pages that are linked from an article or a sidebar, not as an entry of a list."""


@dataclass(frozen=True)
class Site:
    """One newspaper's host. *style* is the markup of its paragraphs: ``p``, ``br`` or ``div``."""

    key: str
    name: str
    language: str
    path: str
    style: str
    template: str
    encoding: str = "utf-8"

    @property
    def host(self) -> str:
        """Its host: of a domain that is reserved for examples."""
        return f"{self.key}.example"

    @property
    def front_page(self) -> str:
        """The URL of its front page."""
        return f"http://{self.host}/"


SITES = (
    Site("lanzhou", "澜州日报", "zh", "/content/{date}/{slug}.html", "p", "lanzhou.html"),
    Site("wangxi", "望溪新闻网", "zh", "/art/{slug}.htm", "br", "wangxi.html", "gb18030"),
    Site("beilan", "北岚在线", "zh", "/a/{slug}", "div", "beilan.html"),
    Site("courier", "The Harrowmere Courier", "en", "/{date}/{slug}", "p", "courier.html"),
    Site("tidewick", "Tidewick Post", "en", "/article.php?id={slug}", "br", "tidewick.html"),
    Site("wire", "The Northdale Wire", "en", "/stories/{slug}/", "div", "wire.html"),
    Site("mirror", "望溪新闻网", "zh", "/art/{slug}.htm", "br", "wangxi.html", "gb18030"),
)

MIRRORED, MIRROR = SITES[1], SITES[-1]


@dataclass(frozen=True)
class Link:
    """A link within a site."""

    path: str
    title: str
    teaser: str = ""


@dataclass(frozen=True)
class Page:
    """One URL of the demo: *path*, with its query, on *site*.

    *story* names the text of the page, or of a part of it (``PARTIAL_KINDS``); it is empty for a list. A redirect has a
    *target*, a path of the same site. A crawl has lost nothing if it kept a page with the whole of each story.
    """

    site: Site
    path: str
    kind: Kind
    story: str = ""
    title: str = ""
    author: str = ""
    published: str = ""
    paragraphs: tuple[str, ...] = ()
    target: str = ""
    print_path: str = ""
    links: tuple[Link, ...] = ()
    sidebar: tuple[Link, ...] = ()
    pager: tuple[Link, ...] = ()

    @property
    def url(self) -> str:
        """Its absolute URL."""
        return self.site.front_page.removesuffix("/") + self.path


@lru_cache(maxsize=1)
def site_map() -> tuple[Page, ...]:
    """Return every page of the demo: about 160, the same at each call."""
    stories = load_stories()
    pages: list[Page] = []
    for site in SITES[:-1]:
        pages += _site_pages(site, stories)
    mirrored = [page for page in pages if page.site == MIRRORED]
    return (*pages, *(_mirror(page) for page in mirrored))


def _site_pages(site: Site, stories: list[Story]) -> list[Page]:
    """Return the pages of *site*, linked: lists first, then what they list, newest first."""
    printed = [page for story in stories for page in _story_pages(site, story)]
    listed = sorted((page for page in printed if page.kind not in UNLISTED_KINDS), key=_newest, reverse=True)
    prints = {page.story: page for page in printed if page.kind is Kind.PRINT}
    linked = []
    for position, page in enumerate(listed):
        around = [_link(listed[(position + step) % len(listed)]) for step in range(1, RELATED + 1)]
        print_path = prints[page.story].path if page.story in prints else ""
        linked.append(replace(page, links=tuple(around), print_path=print_path))
    tracked = {page.path for page in printed if page.kind is Kind.SESSION}
    lists, sessions = _lists(site, listed, [page for page in linked if page.path in tracked])
    return [*lists, *linked, *prints.values(), *sessions]


def _newest(page: Page) -> tuple[str, str]:
    return page.published, page.path


def _story_pages(site: Site, story: Story) -> list[Page]:
    """Return the pages of *story* on *site*, not yet linked."""
    places = [(story.kind, story.site), *((copy.kind, copy.site) for copy in story.copies)]
    here = [(kind, delay) for delay, (kind, where) in enumerate(places) if where == site.key]
    # A view for printing has the date of its article.
    return [_print_run(site, story, kind, here[0][1] if kind is Kind.PRINT else delay) for kind, delay in here]


def _print_run(site: Site, story: Story, kind: Kind, delay: int) -> Page:
    path = site.path.format(slug=story.slug, date=f"{story.published:%Y-%m/%d}")
    published = story.published + timedelta(minutes=50 * delay)
    page = Page(site, path, kind, story.slug, story.title, story.author, "", story.paragraphs)
    if kind is Kind.BRIEF:
        published = story.published - timedelta(hours=2)
        brief_path = site.path.format(slug=f"{story.slug}-brief", date=f"{story.published:%Y-%m/%d}")
        page = replace(page, path=brief_path, paragraphs=story.paragraphs[:BRIEF_PARAGRAPHS])
    elif kind is Kind.TRIMMED:
        page = replace(page, paragraphs=story.paragraphs[: -story.trim])
    elif kind is Kind.EDITED:
        page = replace(page, paragraphs=tuple(_edited(text, story) for text in story.paragraphs))
    elif kind is Kind.INTRO:
        page = replace(page, paragraphs=(story.intro, *story.paragraphs, story.outro))
    elif kind is Kind.PRINT:
        page = replace(page, path=f"/print/{story.slug}")
    elif kind is Kind.REDIRECT:
        page = replace(page, path=f"/old/{story.slug}", target=path)
    return replace(page, published=published.isoformat(timespec="minutes"))


def _edited(text: str, story: Story) -> str:
    for old, new in story.edits:
        text = text.replace(old, new)
    return text


def _lists(site: Site, listed: list[Page], tracked: list[Page]) -> tuple[list[Page], list[Page]]:
    """Return the list pages, and the pages with the session ids of the links in their sidebars."""
    chunks = [listed[start : start + PAGE_SIZE] for start in range(0, len(listed), PAGE_SIZE)]
    paths = ["/", *(f"/list/{number}" for number in range(2, len(chunks) + 1))]
    pager = tuple(Link(path, str(number)) for number, path in enumerate(paths, start=1))
    lists, sessions = [], []
    for path, chunk in zip(paths, chunks, strict=True):
        sid = f"{zlib.crc32(f'{site.key}{path}'.encode()) & 0xFFFF:04x}"
        visited = [replace(page, path=_with_session(page.path, sid), kind=Kind.SESSION) for page in tracked]
        entries, most_read = tuple(map(_entry, chunk)), tuple(map(_link, visited))
        lists.append(Page(site, path, Kind.LIST, title=site.name, links=entries, sidebar=most_read, pager=pager))
        sessions += visited
    return lists, sessions


def _with_session(path: str, sid: str) -> str:
    return f"{path}{'&' if '?' in path else '?'}sid={sid}"


def _link(page: Page) -> Link:
    return Link(page.path, page.title)


def _entry(page: Page) -> Link:
    return Link(page.path, page.title, page.paragraphs[0][: 28 if page.site.language == "zh" else 72] + "…")


def _mirror(page: Page) -> Page:
    """Return the same page on the mirror host. Links within a site are paths, so they need no change."""
    return replace(page, site=MIRROR, kind=Kind.LIST if page.kind is Kind.LIST else Kind.MIRROR)
