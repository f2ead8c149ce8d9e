"""Draws ``images/pair.svg``: a page, the repost that is dropped for it, and a sentence that keeps another.

Usage: python docs/pair_picture.py

The texts are made up; verdict, score and reason are those of `Deduplicator`. The font is monospaced, and each run of
text has its length, so that the marks fit in every browser. The picture is as wide as the text of a page on a phone.
"""

from __future__ import annotations

import sys
import textwrap
from dataclasses import dataclass
from difflib import SequenceMatcher
from html import escape
from pathlib import Path

from dedup_middleware import Deduplicator, Record

PICTURE = Path(__file__).parent / "images" / "pair.svg"
ORIGINAL_URL = "http://courier.example/ferry"
COPY_URL, OTHER_URL = "http://blog.example/2025/ferry", "http://blog.example/2025/fares"
TITLE = "Ferry returns on Monday"
ORIGINAL = (
    "The ferry across the Tarn returns on Monday after eleven weeks in dry dock. Engineers replaced both shafts, and "
    "the last inspection found no faults. The first boat leaves at 6:10, and a crossing costs £2 as before. "
    "The harbour office expects long queues on the first morning. Season tickets are valid for three more weeks."
)
COPY = f"Good news for commuters! {ORIGINAL}"

WIDTH, MARGIN, SIZE, ADVANCE, LEADING = 400, 14, 14, 8.4, 21
COLUMNS = int((WIDTH - 2 * MARGIN) / ADVANCE)
_STYLE = f"""
    text {{ font: {SIZE}px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: #1c2128; }}
    .card {{ fill: #fff; stroke: #d0d7de; }}
    .same {{ fill: #d8f3e6; }} .own {{ fill: #ffd591; }}
    .quiet {{ fill: #57606a; }} .kept {{ fill: #0f6b5c; font-weight: bold; }}
    .dropped {{ fill: #b3261e; font-weight: bold; }}
    @media (prefers-color-scheme: dark) {{
      text {{ fill: #e6edf3; }} .card {{ fill: #161b22; stroke: #30363d; }}
      .same {{ fill: #12392f; }} .own {{ fill: #7a4b00; }}
      .quiet {{ fill: #9da7b3; }} .kept {{ fill: #5fd0b9; }} .dropped {{ fill: #ff8f85; }}
    }}"""


def verdict(text: str) -> Record:
    """Return the record of a page of another site with *text*, beside the original."""
    with Deduplicator() as dedup:
        dedup.add(ORIGINAL_URL, title=TITLE, text=ORIGINAL)
        return dedup.check(COPY_URL, title=TITLE, text=text)


def own_words(text: str, other: str) -> set[int]:
    """Return the numbers of the words of *text* that *other* lacks at that place."""
    words = text.split()
    blocks = SequenceMatcher(None, words, other.split(), autojunk=False).get_matching_blocks()
    return {*range(len(words))} - {block.a + offset for block in blocks for offset in range(block.size)}


@dataclass
class Sheet:
    """Lines of text from top to bottom."""

    y: float = MARGIN
    body: str = ""

    def line(self, text: str, kind: str = "", column: int = 0) -> None:
        """Write *text* from *column* on, in the present line."""
        x, length = MARGIN + column * ADVANCE, len(text) * ADVANCE
        place = f'x="{x:.1f}" y="{self.y + SIZE:.1f}" textLength="{length:.1f}"'
        self.body += f'  <text class="{kind}" {place}>{escape(text)}</text>\n'

    def marked(self, text: str, other: str) -> None:
        """Write *text*, wrapped, on the colour of what *other* has too, or of what it lacks."""
        own, number = own_words(text, other), 0
        for line in textwrap.wrap(text, COLUMNS):
            column = 0
            for word in line.split():
                kind = "own" if number in own else "same"
                x, width = MARGIN + column * ADVANCE - 2, len(word) * ADVANCE + 4
                # Between two words of one kind, the colour goes on.
                if column + len(word) < len(line) and (number in own) == (number + 1 in own):
                    width += ADVANCE
                place = f'x="{x:.1f}" y="{self.y:.1f}" width="{width:.1f}" height="{LEADING - 2}"'
                self.body += f'  <rect class="{kind}" {place}/>\n'
                column, number = column + len(word) + 1, number + 1
            self.line(line)
            self.y += LEADING

    def heading(self, word: str, kind: str, url: str) -> None:
        """Write what happened to the page at *url*."""
        self.line(word, kind)
        self.line(url.removeprefix("http://"), "quiet", len(word) + 1)
        self.y += LEADING + 4


def picture() -> str:
    """Return the picture."""
    changed = COPY.replace("£2", "£3")
    dropped, other = verdict(COPY), verdict(changed)
    if (dropped.verdict, other.verdict) != ("duplicate", "related"):
        sys.exit(f"choose other texts: the verdicts are {dropped.verdict} and {other.verdict}")
    sheet = Sheet()
    sheet.heading("kept", "kept", ORIGINAL_URL)
    sheet.marked(ORIGINAL, COPY)
    sheet.y += LEADING / 2
    sheet.heading("dropped", "dropped", COPY_URL)
    sheet.marked(COPY, ORIGINAL)
    sheet.y += LEADING / 2
    sheet.line(f"score {dropped.score:.2f}, reason {dropped.reason}", "quiet")
    sheet.y += 1.5 * LEADING
    sheet.heading("kept", "kept", OTHER_URL)
    sheet.marked(next(sentence for sentence in changed.split(". ") if "£3" in sentence) + ".", ORIGINAL)
    sheet.line(f"score {other.score:.2f}, reason {other.reason}", "quiet")
    sheet.y += LEADING
    height = sheet.y + MARGIN - 4
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" '
        f'height="{height:.0f}" role="img">\n'
        f"  <title>A page and its repost on another site, with the words that differ marked</title>\n"
        f"  <style>{_STYLE}\n  </style>\n"
        f'  <rect class="card" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1:.0f}" rx="8"/>\n'
        f"{sheet.body}</svg>\n"
    )


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf8")
