"""The documentation's recipes for recurring crawls, for a week, beside what they give without the plugin."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import scrapy
from crawling import IN_ORDER, run_job, write_job
from local_site import Answer, redirect
from prose import article, blog, story

from dedup_middleware.records.file import Records

DAYS = range(1, 8)
PAGE = Path(__file__).parents[1] / "docs/how-to/recurring-crawls.md"
RECIPES = dict(re.findall(r"```python\n# (\w+)\.py\n(.*?)```", PAGE.read_text(encoding="utf8"), re.DOTALL))
CLASS = re.compile(r"class (\w+):")
MODES = {"plain": {}, "keep": {}, "drop": {"DEDUP_UNCHANGED": "drop"}}


class Shop(scrapy.Spider):
    """The items of an ordinary spider: a page, and what it offers."""

    name = "shop"
    urls = ""
    offers = True

    async def start(self):
        for url in self.urls.split(","):
            yield scrapy.Request(url)

    def parse(self, response):
        text = "\n".join(response.css("article p::text").getall())
        yield {"url": response.url, "title": response.css("title::text").get(), "text": text}
        for line in response.css("li.offer::text").getall() if self.offers else ():
            name, price = line.split(": ")
            yield {"url": response.url, "name": name, "price": price}


def rows_of(folder):
    """Return the rows of all tables of the database in *folder*."""
    (file,) = folder.glob("*.sqlite")
    with closing(sqlite3.connect(file)) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {row for table in tables for row in database.execute(f"SELECT * FROM {table}")}


def crawled(folder, urls, mode, *, offers=False, **settings):
    command = write_job(
        folder,
        "test_recipes.Shop",
        urls=",".join(urls),
        offers=offers,
        settings=IN_ORDER | settings | MODES[mode],
        plugin=mode != "plain",
        afresh=True,
    )
    outcome = run_job(folder, command)
    assert outcome.problems == []
    return outcome


def shown(name, text, day, price=20):
    """Return a page with two offers, and a frame that is another one each day."""
    offers = f"<ul><li class='offer'>small: {price} euros</li><li class='offer'>large: 40 euros</li></ul>"
    frame = f"<aside><p>{100 * day} views</p><p>Most read: {story(50 + day, 1)[0][:60]}</p></aside>"
    return article(name, text).replace("</article>", f"{offers}</article>").replace("<footer>", f"{frame}<footer>")


def as_of(site, day):
    """Serve the site as it is on a *day*, and return the URLs that a crawl asks for, in an order of that day."""
    urls = [site.add(f"/{n}", shown(f"page {n}", story(n), day)) for n in range(2)]
    urls.append(site.add("/price", shown("price", story(2), day, price=20 + 5 * (day >= 3) + 5 * (day >= 6))))
    urls.append(site.add("/text", shown("text", [*story(3), f"Open until {6 + day // 3} p.m. in winter."], day)))
    urls.append(site.add("/gone", Answer("", status=404) if day >= 5 else shown("gone", story(4), day)))
    urls.append(site.add("/latest", shown("latest", story(20 + day), day)))
    urls += [site.add(f"/archive/{day - 1}", shown("latest", story(20 + day - 1), day))] if day > 1 else []
    if day >= 4:
        urls.append(site.add("/new", shown("moved", story(5), day)))
    urls.append(site.add("/old", redirect(site.url("/new")) if day >= 4 else shown("moved", story(5), day)))
    return urls if day % 2 else urls[::-1]


@pytest.mark.parametrize("recipe", ["to_sqlite", "to_tables"])
def test_tables_have_each_day_what_they_have_without_but_for_copies(site, tmp_path, recipe):
    pipeline = {"EXTRA_PIPELINES": {f"{recipe}.{CLASS.findall(RECIPES[recipe])[0]}": 300}}
    copy = site.add("/copy", blog("page 0", story(0)), host=1)
    written = dict.fromkeys(MODES, 0)
    for day in DAYS:
        urls, found = [*as_of(site, day), copy], dict[str, Any]()
        for mode in MODES:
            folder = tmp_path / mode
            folder.mkdir(exist_ok=True)
            (folder / f"{recipe}.py").write_text(RECIPES[recipe], encoding="utf8")
            outcome = crawled(folder, urls, mode, offers="offer" in RECIPES[recipe], **pipeline)
            written[mode] += len(outcome.kept)
            found[mode] = rows_of(folder)
        assert found["keep"] == found["drop"] == {row for row in found["plain"] if copy not in row}
    assert written["drop"] < written["keep"] < written["plain"]


@pytest.mark.parametrize("mode", ["plain", "drop"])
def test_a_server_that_answers_304_sends_what_has_changed(site, tmp_path, mode):
    """Without the plugin, the items of all pages come each day."""
    cache = {
        "HTTPCACHE_ENABLED": True,
        "HTTPCACHE_POLICY": "scrapy.extensions.httpcache.RFC2616Policy",
        "HTTPCACHE_DIR": str(tmp_path / "cache"),
    }
    kept = []
    for day in DAYS:
        urls = []
        for n in range(3):
            is_changed = day == 1 or (n, day) == (1, 4)
            tag = {"ETag": f'"{1 + (n == 1 and day >= 4)}"', "Cache-Control": "max-age=0"}
            text = [*story(n), *(["It was opened again."] if tag["ETag"] == '"2"' else [])]
            answer = Answer(article(f"page {n}", text), headers=tag) if is_changed else Answer(status=304, headers=tag)
            urls.append(site.add(f"/{n}", answer))
        outcome = crawled(tmp_path, urls, mode, **cache)
        not_modified = {1: 0, 4: 2}.get(day, 3)
        assert outcome.stats.get("httpcache/revalidate", 0) == not_modified
        assert outcome.stats.get("dedup/unread", 0) == (0 if mode == "plain" else not_modified)
        kept.append(outcome.kept)
    changed = [urls[1:2] if day == 4 else [] for day in DAYS[1:]]
    assert kept == [urls, *(changed if mode == "drop" else [urls] * 6)]


def test_a_week_of_news_has_both_wordings_of_each_change(site, tmp_path):
    """Counts and comments stand in the text, and in that of the item."""
    seen = "The ferry was seen by {} people."
    comments = [story(90 + day, 1)[0][:80] for day in (0, *DAYS)]
    for day in DAYS:
        urls = []
        for n in range(9):
            text = [*story(n), seen.format(100 * n + day), comments[day]]
            urls.append(site.add(f"/{n}", article(f"page {n}", text), host=n % 3))
        assert sorted(crawled(tmp_path, urls, "drop").kept) == sorted(urls)
        if day == 1:
            continue
        found = [record for record in Records(tmp_path / "records.jsonl") if record.verdict == "changed"]
        assert sorted(record.url for record in found) == sorted(urls)
        for record in found:
            n = int(record.url.rpartition("/")[2])
            _, before, after = zip(*record.changes.by_field(), strict=True)
            assert {*filter(None, before)} == {seen.format(100 * n + day - 1), comments[day - 1].strip()}
            assert {*filter(None, after)} == {seen.format(100 * n + day), comments[day].strip()}
