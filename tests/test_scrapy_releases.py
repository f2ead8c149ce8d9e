"""What differs between releases of Scrapy: what an older one lacks."""

import re
from pathlib import Path

import pytest
import scrapy
from crawling import IN_ORDER, run_job, write_job
from prose import article, blog, story
from scrapy.exceptions import NotConfigured
from scrapy.settings import Settings
from test_commands import run_here

from dedup_middleware import Addon
from dedup_middleware.plugin.addon import OLDEST_SCRAPY

ROOT = Path(__file__).parent.parent
OLD = (
    "Scrapy 2.13.4 is installed, and dedup-middleware needs 2.16 or newer. Run `pip install --upgrade 'scrapy>=2.16'`."
)


@pytest.mark.every_scrapy
def test_commands_read_what_a_crawl_has_written(site, tmp_path):
    urls = site.add("/first", article("First", story(1))), site.add("/copy", blog("Copy", story(1)), host=1)
    settings = IN_ORDER
    outcome = run_job(tmp_path, write_job(tmp_path, "sample_spiders.Articles", urls=",".join(urls), settings=settings))
    commands = {
        "doctor": "No problems",
        "doctor -v": f"scrapy {scrapy.__version__}",
        "log": "dropped +1.00",
        "stats": "duplicates +1",
        "dropped": "/copy",
        f"explain {urls[1]}": "duplicate",
        "store info": "originals +1",
        f"allow {urls[1]}": "Allowed 1 page",
    }
    for command, shown in commands.items():
        output = run_here(*command.split(), *outcome.here, folder=tmp_path)
        assert (output.exit_status, output.err) == (0, ""), command
        assert re.search(shown, output.out), command


def test_an_older_scrapy_crawls_without_the_plugin(monkeypatch):
    _pretend(monkeypatch, (2, 13, 4))
    with pytest.raises(NotConfigured, match=re.escape(OLD)):
        Addon().update_settings(Settings())


@pytest.mark.parametrize("arguments", [["doctor"], ["log"], ["store", "info"], ["allow", "http://news.example/1"]])
def test_with_an_older_scrapy_a_command_is_one_line(monkeypatch, tmp_path, arguments):
    _pretend(monkeypatch, (2, 13, 4))
    output = run_here(*arguments, folder=tmp_path)
    assert (output.exit_status, output.out, output.err) == (1, "", f"dedup: {OLD}\n")


def test_without_a_package_scrapy_crawls_without_the_plugin(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "dedup_middleware.plugin.extension", None)
    with pytest.raises(NotConfigured, match=r"lacks a package it needs .*pip install --upgrade dedup-middleware"):
        Addon().update_settings(Settings())


def test_the_oldest_scrapy_is_that_of_the_package_and_of_the_crawls_in_ci():
    oldest = ".".join(map(str, OLDEST_SCRAPY))
    project, versions = ((ROOT / name).read_text(encoding="utf8") for name in ("pyproject.toml", ".ci/versions.py"))
    assert f'"scrapy>={oldest}",' in project
    assert f'"scrapy=={oldest}.0",' in project
    assert f'VERSIONS = ("{oldest}.0", ' in versions


def _pretend(monkeypatch, version):
    monkeypatch.setattr(scrapy, "version_info", version)
    monkeypatch.setattr(scrapy, "__version__", ".".join(map(str, version)))
