"""The real scrapyd: an egg with the add-on, deployed, and two jobs of one spider at the same time."""

import json
import re
import socket
import subprocess
import sys
import threading
import urllib.parse
import urllib.request
import zipfile
from contextlib import contextmanager, suppress

import pytest
from crawling import environment
from local_site import PATIENCE, Answer, wait_until
from prose import article, blog, story

pytest.importorskip("scrapyd")

SPIDER = """
import scrapy

class Pages(scrapy.Spider):
    name = "pages"

    async def start(self):
        first, *rest = self.urls.split(",")
        yield scrapy.Request(first, cb_kwargs={"rest": rest})

    def parse(self, response, rest):
        yield {"url": response.url, "title": response.css("title::text").get()}
        if rest:
            yield scrapy.Request(rest[0], cb_kwargs={"rest": rest[1:]})
"""
SETTINGS = """
BOT_NAME = "shop"
SPIDER_MODULES = ["shop.spiders"]
ADDONS = {"dedup_middleware.Addon": 500}
TELNETCONSOLE_ENABLED = False
"""
CONFIGURATION = """
[scrapyd]
bind_address = 127.0.0.1
http_port = {port}
poll_interval = 0.1
max_proc = 2
items_dir = items
logs_dir = logs
eggs_dir = eggs
dbs_dir = dbs
"""


def write_egg(path):
    """Write the project as ``scrapyd-deploy`` sends it and scrapyd keeps it."""
    files = {
        "shop/__init__.py": "",
        "shop/settings.py": SETTINGS,
        "shop/spiders.py": SPIDER,
        "EGG-INFO/PKG-INFO": "Metadata-Version: 1.0\nName: shop\nVersion: 1\n",
        "EGG-INFO/entry_points.txt": "[scrapy]\nsettings = shop.settings\n",
    }
    path.parent.mkdir(parents=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)


@contextmanager
def scrapyd(folder):
    """Run scrapyd in *folder*, where no ``scrapy.cfg`` is, nor above it; yield a function that asks its services."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (folder / "scrapyd.conf").write_text(CONFIGURATION.format(port=port))
    write_egg(folder / "eggs" / "shop" / "1.egg")

    def ask(service, *, post=False, **fields):
        url, data = f"http://127.0.0.1:{port}/{service}.json", urllib.parse.urlencode(fields)
        with urllib.request.urlopen(*([url, data.encode()] if post else [f"{url}?{data}"]), timeout=PATIENCE) as answer:
            return json.load(answer)

    def is_up():
        with suppress(OSError):
            return ask("daemonstatus")["status"] == "ok"
        return False

    with (folder / "daemon.log").open("wb") as log:
        env = environment() | {"XDG_DATA_HOME": str(folder / "data")}
        process = subprocess.Popen([sys.executable, "-m", "scrapyd"], cwd=folder, env=env, stdout=log, stderr=log)
        try:
            wait_until(lambda: process.poll() is not None or is_up())
            assert process.poll() is None, (folder / "daemon.log").read_text()
            yield ask
        finally:
            process.terminate()
            process.wait(30)


def fed(folder, job):
    lines = (folder / "items" / "shop" / "pages" / f"{job}.jl").read_text().splitlines()
    return [json.loads(line)["url"] for line in lines]


def test_two_jobs_of_one_spider_at_a_time(site, tmp_path):
    a, b = (site.add(f"/{name}", article(name, story(number))) for number, name in enumerate("ab"))
    release = threading.Event()
    held = site.add("/held", Answer(article("held", story(9)), hold=release))
    copies = [site.add(f"/{name}/copy", blog(name, story(number)), host=1) for number, name in enumerate("ab")]
    urls = [a, b, held, *copies]
    with scrapyd(tmp_path) as ask:
        jobs = []
        for number in (1, 2):
            jobs.append(ask("schedule", post=True, project="shop", spider="pages", urls=",".join(urls))["jobid"])
            wait_until(lambda number=number: site.paths().count("/held") == number)
        release.set()
        wait_until(lambda: {job["id"] for job in ask("listjobs", project="shop")["finished"]} == {*jobs})
    first, second = (fed(tmp_path, job) for job in jobs)
    assert first == [a, b, held]
    assert second == urls
    logs = [(tmp_path / "logs" / "shop" / "pages" / f"{job}.log").read_text() for job in jobs]
    store = tmp_path / "data" / "dedup-middleware" / "shop" / "pages"
    for log in logs:
        assert "'finish_reason': 'finished'" in log
        assert "Traceback" not in log
    assert re.search(rf"store (leveldb|rocksdb|sqlite):{re.escape(str(store / 'store'))}", logs[0])
    assert "'dedup/items/dropped': 2" in logs[0]
    assert "this crawl runs in pass-through" in logs[1]
    assert "'dedup/pass_through': 1" in logs[1]
    assert (store / "log.jsonl").exists()
    assert len(list(store.glob("log.pass-through-*[0-9].jsonl"))) == 1
