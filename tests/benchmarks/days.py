"""Measures what ``scrapy dedup changes`` names: crawls a site that changes each day, and compares.

``python tests/benchmarks/days.py [DAYS]`` (30 by default, a minute) crawls a paper of 40 stories day by day. Each day
some stories are new, some are changed, some moved to another address, and some removed; on all pages the menu, the
teasers, the counters and the comments are others. Prints, for each kind, how many pages were named on their day, were
missed, or were named wrongly.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from crawling import run_job, run_scrapy, write_job
from local_site import Answer, Site
from prose import story

PAGES, DAYS = 40, 30


def page(chance: random.Random, number: int, edits: int) -> str:
    """Return story *number* after so many *edits*, as it is shown now."""
    text = [
        *story(number),
        *(f"Update {n}: the council met again, and {number + n} people came." for n in range(edits)),
    ]
    teasers = "".join(
        f"<a href='/t{chance.randint(1, 99)}'>{' '.join(story(chance.randint(500, 900))[0].split()[:8])}</a> "
        for _ in range(3)
    )
    comments = "".join(f"<p>{story(chance.randint(900, 1300), 1)[0][:120]}</p>" for _ in range(2))
    body = "".join(f"<p>{paragraph}</p>" for paragraph in text)
    return (
        f"<html><head><title>Story {number} of the paper</title></head><body><nav>{teasers}</nav><main><article>"
        f"<h1>Story {number}</h1>{body}</article></main><section class='comments'>{comments}</section>"
        f"<footer>{chance.randint(1000, 9999)} views</footer></body></html>"
    )


class Paper:
    """A site, and what happens to its stories from day to day."""

    def __init__(self) -> None:
        self.site = Site(1)
        self._chance = random.Random(5)
        self._stories = {f"/{n}": n for n in range(PAGES)}
        self._edits = Counter[str]()
        self._next = PAGES

    def next_day(self, day: int) -> dict[str, str]:
        """Change the paper; return what became of each path that is not as it was."""
        chosen = self._chance.sample([*self._stories], 6)
        found = dict.fromkeys(chosen[:3], "changed") | dict.fromkeys(chosen[3:], "gone")
        self._edits.update(chosen[:3])
        told = [self._stories.pop(path) for path in chosen[3:]]
        new = {f"/moved/{day}/{told[0]}": told[0]} | {f"/{self._next + n}": self._next + n for n in range(3)}
        self._next += 3
        self._stories |= new
        return found | dict.fromkeys(new, "new")

    def served(self, became: dict[str, str]) -> list[str]:
        """Serve the pages of the day, and return the paths that are crawled: those, and what is gone."""
        for path, told in self._stories.items():
            self.site.add(path, page(self._chance, told, self._edits[path]))
        gone = [path for path, kind in became.items() if kind == "gone"]
        for path in gone:
            self.site.add(path, Answer("gone", status=404))
        return [*self._stories, *gone]


def named(paper: Paper, folder: Path, paths: list[str]) -> dict[str, str]:
    """Crawl *paths*; return what the command names, by path."""
    log = str(folder / "kept.jsonl")
    steps = [{"url": paper.site.url(path), "meta": {"handle_httpstatus_list": [404]}} for path in paths]
    settings = {"DEDUP_LOG": log, "LOG_LEVEL": "INFO"}
    run_job(folder, write_job(folder, "sample_spiders.Steps", steps=steps, settings=settings, afresh=True))
    lines = run_scrapy(folder, "dedup", "changes", "--json", "-s", f"DEDUP_LOG={log}").stdout.splitlines()
    return {c["url"].partition(str(paper.site.port))[2]: c["change"] for c in map(json.loads, lines)}


def main() -> None:
    """Print the counts."""
    days = int(sys.argv[1]) if len(sys.argv) > 1 else DAYS
    paper, counts = Paper(), Counter[str]()
    with tempfile.TemporaryDirectory() as scratch:
        named(paper, Path(scratch), paper.served({}))
        for day in range(1, days):
            became = paper.next_day(day)
            found = named(paper, Path(scratch), paper.served(became))
            for path, kind in became.items():
                counts[f"{kind} {'named' if found.get(path) == kind else 'missed'}"] += 1
            others = {path: kind for path, kind in found.items() if kind not in {"unchanged", "not seen"}}
            counts.update(f"{kind} invented" for path, kind in others.items() if became.get(path) != kind)
    paper.site.close()
    print(json.dumps(dict(sorted(counts.items()))))


if __name__ == "__main__":
    main()
