"""Measures which pages are called changed: checks each twice, with another frame, and then with one change.

Usage: python tests/benchmarks/recrawl.py CORPUS... [--pages 300]
The pages are those of each CORPUS (see `corpus.py`), and as many made ones. Each is stored with a menu, an ad, teasers,
comments, a date and counters, and comes again with others: it is to be ``unchanged``. Then it comes with one change as
well, a sentence, a number, a symbol, a picture or the title in turn: it is to be ``changed``, or a ``duplicate`` of
another page by now, and its difference is to name the change. Prints the verdicts by kind, and the pages that fail.
"""

from __future__ import annotations

import json
import random
import re
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from corpus import CRAWL_FIELDS, parser_of, read_corpus
from prose import article, story

from dedup_middleware import Deduplicator, extract_paragraphs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dedup_middleware.records.file import Record

NUMBER = re.compile(r"(?<![\w.,/-])\d{1,3}(?![\w.,/-])")
WORD = re.compile(r"[A-Za-z]{5,}|[\u4e00-\u9fff]{2}")
TITLE = re.compile(r"<title[^>]*>(?=[^<])", re.IGNORECASE)
BODY = re.compile(r"<body[^>]*>", re.IGNORECASE)
#: What each kind of change puts in the place of a word, or of a number.
CHANGES = {
    "sentence": "{}. Nobody had expected that so early. ",
    "number": "777",
    "symbol": "{} € ",
    "picture": "{}<img src='/pictures/new.png' alt='shown'>",
}
NAMES = {"sentence": "Nobody had expected", "number": "777", "symbol": "€", "title": "Another name of"}


def in_frame(html: str, seed: int) -> str:
    """Return a page in a frame that another *seed* has otherwise."""
    chance = random.Random(seed)

    def words(count: int) -> str:
        return " ".join(story(chance.randint(10_000, 90_000), 1)[0].split()[:count])

    def each(form: str, count: int) -> str:
        return "".join(form.format(words(7), words(14), n=chance.randint(1, 999)) for _ in range(count))

    above = f"<nav class='menu'>{each('<a href=/m{n}>{0}</a> ', 6)}</nav>"
    above += f"<div class='advertisement'><a href='/ad'>{words(5)}</a> from ${chance.randint(5, 99)}.99</div>"
    comment = "<div class='comment'><span>{0}</span> <span class='date'>{n} days ago</span><p>{1}.</p></div>"
    teaser = "<a href='/t{n}'><img src='/i{n}.jpg' alt=''>{0}</a><p>{1} and {0}.</p>"
    below = f"<section class='comments'><h3>Comments ({chance.randint(2, 99)})</h3>{each(comment, 3)}</section>"
    below += f"<aside class='teasers'><h3>Read more</h3>{each(teaser, 4)}</aside>"
    below += f"<footer>Last updated {chance.randint(1, 28)} March 2026. {chance.randint(100, 999)} views</footer>"
    found, end = BODY.search(html), html.lower().rfind("</body>")
    start, end = found.end() if found else 0, end if end > 0 else len(html)
    return html[:start] + above + html[start:end] + below + html[end:]


def changed(html: str, kind: str, chance: random.Random) -> str | None:
    """Return a page with one change of this *kind* in its main text or title; ``None`` if there is no place for it."""
    if kind == "title":
        found = TITLE.search(html)
        return html[: found.end()] + "Another name of " + html[found.end() :] if found else None
    paragraphs = [text for text in extract_paragraphs(html) if len(text) > 80]
    chance.shuffle(paragraphs)
    for text in paragraphs:
        places = [*(NUMBER if kind == "number" else WORD).finditer(text)]
        for place in chance.sample(places, min(5, len(places))):
            start = max(0, place.start() - 12)
            around = text[start : place.end() + 12]
            if html.count(around) == 1:
                at = html.find(around) + place.start() - start
                return html[:at] + CHANGES[kind].format(place[0]) + html[at + len(place[0]) :]
    return None


def is_named(kind: str, record: Record) -> bool:
    """Return whether the difference in *record* names a change of this *kind*."""
    changes = record.changes
    if record.verdict not in {"changed", "duplicate"} or changes is None:
        return False
    now = [new for _, _, new in changes.by_field()]
    return changes.shown_otherwise if kind == "picture" else any(NAMES[kind] in text for text in now)


def measure(name: str, pages: Iterable[tuple[str, str]]) -> None:
    """Print what is called changed of *pages*, each a URL and its HTML."""
    counts, kinds = Counter[str](), [*CHANGES, "title"]
    with Deduplicator() as dedup:
        kept = [page for n, page in enumerate(pages) if dedup.add(page[0], in_frame(page[1], n)).verdict == "new"]
        for n, (url, html) in enumerate(kept):
            same = dedup.check(url, in_frame(html, 100_000 + n))
            counts[f"same: {same.verdict}"] += 1
            kind = kinds[n % len(kinds)]
            other = changed(html, kind, random.Random(n))
            record = None if other is None else dedup.check(url, in_frame(other, 200_000 + n))
            named = "no place" if record is None else "named" if is_named(kind, record) else "missed"
            counts[f"{kind}: {named}"] += 1
            if same.verdict != "unchanged" or named == "missed":
                print(json.dumps({"url": url, "same": same.verdict, kind: named}), file=sys.stderr)
    print(json.dumps({"corpus": name, **dict(sorted(counts.items()))}))


def main() -> None:
    """Print a line of JSON for each corpus, and one for the made pages."""
    options = parser_of(__doc__, corpora="*", pages=300).parse_args()
    for path in options.corpora:
        pages = {page.url: page.html for page in read_corpus(path, CRAWL_FIELDS)}
        measure(path.name, random.Random(3).sample([*pages.items()], min(len(pages), options.pages)))
    measure("made", ((f"http://made.example/{n}", article(f"Story {n}", story(n))) for n in range(options.pages)))


if __name__ == "__main__":
    main()
