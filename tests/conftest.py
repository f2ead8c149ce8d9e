import contextlib
import io
import itertools
import os
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent / "benchmarks"))
sys.path.insert(0, str(Path(__file__).parent))

from crawling import forked_crawls, run_job, write_job
from local_site import Site
from nightly import BY_NIGHT
from redis_server import RedisServer

from dedup_middleware import Deduplicator
from dedup_middleware.methods.compare import measure

# Hundreds of processes import the package and its tests, and each one would compile them again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A test promises no time: on a busy machine one of a millisecond has taken 400. By day, a run tries what the last one
# has tried.
settings.register_profile("day", deadline=None, derandomize=True, max_examples=40)
settings.register_profile("night", deadline=None, max_examples=1000)
settings.load_profile("night" if BY_NIGHT else "day")


#: What compares methods or opens a browser, beside the tests that are marked one by one.
RESEARCH = ("methods", "test_compare.py", "test_report_page.py")


def pytest_xdist_auto_num_workers():
    """Return one worker more than there are cores: a crawl waits for a third of its time."""
    return len(os.sched_getaffinity(0)) + 1 if hasattr(os, "sched_getaffinity") else None


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.relative_to(Path(__file__).parent).parts[0] in RESEARCH:
            item.add_marker(pytest.mark.research)
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker(pytest.mark.nightly)


@pytest.fixture(scope="session", autouse=True)
def _forked_crawls():
    with forked_crawls():
        yield


@pytest.fixture(autouse=True)
def _nobodys_data(monkeypatch):
    """Keep tests away from the data of their user: a file is in the way."""
    monkeypatch.setenv("XDG_DATA_HOME", "/dev/null/data")


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory):
    with RedisServer(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def site():
    site = Site()
    yield site
    site.close()


@pytest.fixture
def crawl(tmp_path):
    """Run a crawl in a folder of its own: ``crawl("sample_spiders.Articles", urls=…, settings=…)``."""
    numbers = itertools.count(1)

    def run(spider, *, folder=None, **kwargs):
        path = tmp_path / (folder or f"crawl{next(numbers)}")
        return run_job(path, write_job(path, spider, **kwargs))

    return run


@pytest.fixture
def install(tmp_path_factory, monkeypatch):
    """Put a package with entry points where Python finds it: ``install(kind, code, name="attribute")``.

    Returns the environment in which crawls find it, too.
    """
    packages = tmp_path_factory.mktemp("packages")

    def install(kind, code, *, module="", **names):
        module = module or f"their_{kind}"
        about = packages / f"{module}-1.0.dist-info"
        about.mkdir(parents=True)
        (packages / f"{module}.py").write_text(code)
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
        points = "".join(
            f"{name.replace('_', '-')} = {module}:{of}\n".replace(":\n", "\n") for name, of in names.items()
        )
        (about / "entry_points.txt").write_text(f"[dedup_middleware.{kind}]\n{points}")
        monkeypatch.syspath_prepend(str(packages))
        monkeypatch.delitem(sys.modules, module, raising=False)
        return {"PYTHONPATH": str(packages)}

    return install


@pytest.fixture
def measured_here(monkeypatch):
    """Have ``scrapy dedup compare`` measure methods in this process, which has imported everything."""
    one_at_a_time = threading.Lock()

    def measured(run, _):
        with one_at_a_time, contextlib.redirect_stdout(io.StringIO()):
            return measure.measure(run)

    monkeypatch.setattr(measure, "_in_process", measured)


class Pages(dict):
    """Pages by URL, which are checked without a crawl."""

    def add(self, path, html, host=0):
        url = f"http://host{host}.example{path}"
        self[url] = html
        return url

    def checked(self, urls, items=None, **options):
        """Return the verdict on each of *urls*, in this order; *items* are what a callback would make of them."""
        with Deduplicator(**options) as dedup:
            return {url: dedup.add(url, self[url], item=(items or {}).get(url)) for url in urls}

    def kept(self, urls, items=None, **options):
        return [url for url, verdict in self.checked(urls, items, **options).items() if not verdict.is_duplicate]


@pytest.fixture
def pages():
    return Pages()
