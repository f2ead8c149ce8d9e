"""Reads the stories from ``articles/``.

An article file has a head of ``key: value`` lines, a blank line, and paragraphs with blank lines between them:

``site``, ``title``, ``author``, ``published``
    where, by whom and when the story first appears;
``kind``
    how the first page behaves, ``original`` if absent;
``copies``
    ``kind [site]`` with commas between: the other pages that carry the story, on its own site unless one is named;
``edit`` (may be repeated), ``trim``, ``intro``, ``outro``
    what an edited copy rewrites (``old -> new``), how many last paragraphs a trimmed copy lacks, and what stands
    around the story in an intro copy;
``issue`` (may be repeated)
    ``date | value | value …``: one story for each line, with the values in place of ``{0}``, ``{1}`` ….
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from pathlib import Path

ARTICLES = Path(__file__).parent / "articles"


class Kind(Enum):
    """What a page is to its story."""

    ORIGINAL = "original"
    REPOST = "repost"
    PRINT = "print"
    SESSION = "session"
    MIRROR = "mirror"
    EDITED = "edited"
    TRIMMED = "trimmed"
    INTRO = "intro"
    DAILY = "daily"
    BRIEF = "brief"
    FOLLOWUP = "followup"
    REDIRECT = "redirect"
    FLAKY = "flaky"
    WALL = "wall"
    LIST = "list"


@dataclass(frozen=True)
class Copy:
    """Another page that has a story."""

    kind: Kind
    site: str


@dataclass(frozen=True)
class Story:
    """One story as its author filed it."""

    slug: str
    site: str
    kind: Kind
    title: str
    author: str
    published: datetime
    paragraphs: tuple[str, ...]
    copies: tuple[Copy, ...] = ()
    edits: tuple[tuple[str, str], ...] = ()
    trim: int = 0
    intro: str = ""
    outro: str = ""


def load_stories() -> list[Story]:
    """Return every story, by file name. Raises :class:`ValueError` naming the file that cannot be used."""
    return [story for path in sorted(ARTICLES.glob("*.txt")) for story in _read(path)]


def _read(path: Path) -> list[Story]:
    head, *paragraphs = path.read_text(encoding="utf-8").strip().split("\n\n")
    fields: dict[str, list[str]] = {}
    for line in head.splitlines():
        key, _, value = line.partition(": ")
        fields.setdefault(key, []).append(value)
    issues = [[part.strip() for part in issue.split("|")] for issue in fields.get("issue", ())]
    if not issues:
        return [_story(path.stem, fields, paragraphs)]
    stories = []
    for number, (date, *values) in enumerate(issues, start=1):
        dated = {**fields, "published": [f"{date}T07:00"], "title": [fields["title"][0].format(*values)]}
        stories.append(_story(f"{path.stem}-{number}", dated, [text.format(*values) for text in paragraphs]))
    return stories


def _story(slug: str, fields: dict[str, list[str]], paragraphs: list[str]) -> Story:
    def one(key: str, default: str = "") -> str:
        return fields.get(key, [default])[0]

    site, text = one("site"), "\n".join(paragraphs)
    copies = [copy.split() for copy in one("copies").split(",") if copy]
    edits = [(old, new) for old, _, new in (edit.partition(" -> ") for edit in fields.get("edit", ()))]
    for old, _ in edits:
        if old not in text:
            message = f"{slug}: the edit of {old!r} finds nothing to rewrite"
            raise ValueError(message)
    return Story(
        slug=slug,
        site=site,
        kind=Kind(one("kind", Kind.ORIGINAL.value)),
        title=one("title"),
        author=one("author"),
        published=datetime.fromisoformat(one("published")),
        paragraphs=tuple(paragraphs),
        copies=tuple(Copy(Kind(kind), where[0] if where else site) for kind, *where in copies),
        edits=tuple(edits),
        trim=int(one("trim", "0")),
        intro=one("intro"),
        outro=one("outro"),
    )
