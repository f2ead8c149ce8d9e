"""Makes a corpus with every kind of copy and of look-alike, and writes the verdicts that the product gives on it.

Usage: python tests/test_golden.py            prints the verdicts, a line of JSON for each page
       python tests/test_golden.py --write    stores them in tests/golden.jsonl

The tests compare the verdicts with the stored ones, so that a change of a verdict, an original or a reason shows in a
diff. The pages come from a generator with a seed, in the order in which a crawl fetches them.
"""

import json
import random
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from opencc import OpenCC
from parsel import Selector
from prose import article, blog, several, story, zh_story

from dedup_middleware import Deduplicator

VERDICTS = Path(__file__).with_name("golden.jsonl")
STORED = VERDICTS.read_text(encoding="utf8").splitlines()
#: Stories of each kind: enough for boilerplate and templates to be recognised.
STORIES = 4
_NAME = "the Gazette"


def corpus():
    """Yield URL, HTML and item of each page, in the order of the crawl; the path of a URL names the kind of page."""
    for make in (_reposts, _edits, _views, _variants, _numbers, _templates, _short_pages, _threads, _items, _chinese):
        yield from ((url, html, rest[0] if rest else None) for url, html, *rest in make())


def _reposts():
    for n in range(STORIES):
        yield f"http://first.test/story/{n}", article(_NAME, story(n))
        yield f"http://second.test/repost/{n}", blog(_NAME, story(n))
        yield f"http://third.test/excerpt/{n}", blog(_NAME, story(n)[:4])
        yield f"http://third.test/with-more/{n}", blog(_NAME, [*story(n), *story(100 + n, 2)])
        yield f"http://first.test/story/{n}?sessionid=5f{n}c", article(_NAME, story(n))


def _edits():
    rng = random.Random("edits")
    for n in range(10, 10 + STORIES):
        words = [paragraph.split() for paragraph in story(n)]
        yield f"http://first.test/edited/{n}", article(_NAME, [" ".join(paragraph) for paragraph in words])
        for paragraph in words:
            for place in range(rng.randrange(9), len(paragraph), 23):
                paragraph[place] = rng.choice(["old", "new", "grey", "wide", "former"])
        yield f"http://second.test/edit/{n}", blog(_NAME, [" ".join(paragraph) for paragraph in words])
        yield f"http://second.test/reordered/{n}", blog(_NAME, story(n)[::-1])
        yield f"http://third.test/no-commas/{n}", blog(_NAME, [p.replace(",", "") for p in story(n)])


def _views():
    for n in range(20, 20 + STORIES):
        page = article(_NAME, story(n))
        yield f"http://first.test/view/{n}", page
        yield f"http://first.test/view/{n}/print", f"<title>Print</title><body>{''.join(f'<p>{p}' for p in story(n))}"
        yield f"http://m.first.test/view/{n}", page.replace("<nav>", "<nav class='small'>")
        yield f"http://first.test/view/{n}?page=2", article(_NAME, story(200 + n))
        yield f"http://first.test/updated/{n}", article(_NAME, [*story(n), f"Update: {story(300 + n, 1)[0]}"])


def _variants():
    for n, (colour, price) in enumerate([("red", "19.90"), ("blue", "19.90"), ("red", "24.90"), ("red", "19.90")]):
        facts = f"<p>Colour: {colour}</p><p class='price'>$ {price}</p>"
        page = article("Shop", story(30)).replace("</h1>", f"</h1>{facts}")
        yield f"http://shop.test/chair/{n}", page
    for n, sign in enumerate("✓✗✓"):
        yield f"http://shop.test/plan/{n}", article("Plan", [*story(31), f"Backups every night: {sign}"])


def _numbers():
    for day, wind in enumerate((12, 31, 12)):
        report = f"At the weather station by the lighthouse the keeper measured gusts of {wind} km/h before the rain."
        yield f"http://weather.test/report/{day}", article("Weather", [*story(40), report])
    for n, town in enumerate(("Riverton", "Lakewood", "Eastham")):
        ferry = f"The ferry to {town} was late again, and the pier master could not name a reason for the delay."
        yield f"http://ferry{n}.test/delay", article("Ferries", [*story(41), ferry])


def _templates():
    for n in range(50, 50 + STORIES):
        yield f"http://notary.test/office/{n}", article(f"Office {n}", [*story(49, 4), *story(n, 1)])
        yield f"http://agency{n}.test/terms", article("Terms", story(48))


def _short_pages():
    for n in range(STORIES):
        yield f"http://first.test/404/{n}", "<title>Not found</title><p>This page does not exist.</p>"
        yield f"http://first.test/list/{n}", article("List", [], tuple(f"/story/{m}" for m in range(n, n + 20)))
        yield f"http://first.test/brief/{n}", article("Brief", [story(60 + n, 1)[0]])
        yield f"http://second.test/brief/{n}", blog("Brief", [story(60 + n, 1)[0]])


def _threads():
    for answers in (2, 3, 3):
        yield (
            f"http://forum.test/thread?answers={answers}",
            several("Thread", [story(70 + n, 2) for n in range(answers)]),
        )
    yield "http://forum.test/cut", article("Cut", story(75))[:-90]


def _items():
    for n in range(80, 80 + STORIES):
        item = {"title": f"Story {n}", "text": " ".join(story(n)), "section": "harbour"}
        yield f"http://first.test/item/{n}", article(_NAME, story(n)), item
        yield f"http://second.test/item/{n}", blog(_NAME, story(n)), item
        yield f"http://first.test/item/{n}/amp", article(_NAME, story(n)), {**item, "section": "rivers"}
        more = {**item, "text": " ".join([*story(n), *story(90, 3)])}
        yield f"http://third.test/item/{n}", blog(_NAME, story(n)), more


def _chinese():
    traditional = OpenCC("s2t").convert
    for n in range(STORIES):
        yield f"http://zh.test/story/{n}", article("日报", zh_story(n))
        yield f"http://tw.test/story/{n}", blog("日報", [traditional(paragraph) for paragraph in zh_story(n)])
        yield f"http://zh2.test/excerpt/{n}", blog("转载", zh_story(n)[1:5])
        yield f"http://zh2.test/other/{n}", blog("转载", [*zh_story(n)[:3], *zh_story(100 + n, 3)])


def item_of(html):
    """Return the item that a spider with selectors of its own makes of a page: its title and its text."""
    page = Selector(html)
    text = page.xpath("(//article | //div[@class='text'] | //body)[1]//text()").getall()
    return {"title": page.xpath("string(//title)").get(""), "text": " ".join(text)}


def replayed(*, items, store=None):
    """Yield what came of each page of the corpus, in order; with a *store* on disk, each is the first of its process.

    With *items*, each page has one with title and text.
    """
    with ExitStack() as stack:
        dedup = stack.enter_context(Deduplicator(store or "memory:"))
        for url, html, item in corpus():
            if store is not None:
                stack.close()
                dedup = stack.enter_context(Deduplicator(store))
            found = dedup.add(url, html, item=item_of(html) if items and item is None else item)
            yield {
                "items": items,
                "url": url,
                "verdict": found.verdict,
                "original": found.original_url,
                "reason": found.reason,
                "score": found.score and round(found.score, 2),
            }


def lines():
    """Return the verdicts as they are stored."""
    return [json.dumps(row, ensure_ascii=False) for items in (False, True) for row in replayed(items=items)]


def test_the_verdicts_are_the_stored_ones():
    """After a change that is meant, run ``python tests/test_golden.py --write`` and review the diff."""
    assert lines() == STORED


@pytest.mark.parametrize("items", [False, True])
def test_a_verdict_does_not_depend_on_what_the_process_has_seen(tmp_path, *, items):
    assert [*replayed(items=items, store=f"leveldb:{tmp_path}/store")] == [*replayed(items=items)]


if __name__ == "__main__":
    text = "\n".join(lines()) + "\n"
    if "--write" in sys.argv:
        VERDICTS.write_text(text, encoding="utf8")
    else:
        sys.stdout.write(text)
