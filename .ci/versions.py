"""Runs real crawls on each release of Scrapy that we promise, each in an environment of its own.

``python .ci/versions.py [VERSION...]`` needs an index of packages. The crawls and commands are the tests with the mark
``every_scrapy``. With the oldest Scrapy, all other packages are the oldest as well: those of the environment ``min`` of
tox. With a Scrapy that is too old, a crawl and a command have one line each.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from package import ROOT, copy_of_sources, environment, expect, run

VERSIONS = ("2.16.0", "2.17.*", "2.18.*", "2.19.*")
TOO_OLD = "2.15.*"
#: Releases that are tried at the same time.
AT_A_TIME = 2
TESTS_NEED = ("pytest>=8", "pytest-xdist>=3.3", "hypothesis>=6.100", "pydantic>=2")
MARK = "every_scrapy"
SPIDER = """
import scrapy


class One(scrapy.Spider):
    name = "one"
    custom_settings = {"ADDONS": {"dedup_middleware.Addon": 500}}
    start_urls = ["data:text/html,<p>One</p>"]

    def parse(self, response):
        yield {"text": response.text}
"""


def install(folder: Path, *packages: str | Path) -> Path:
    """Make an environment of *packages* in *folder*; return where its programs are."""
    programs = environment(folder)
    pip = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    run(programs / "python", *pip, *packages, folder=folder)
    return programs


def oldest_packages() -> list[str]:
    """Return what tox installs into its environment ``min``. Python 3.10 has no module that reads TOML."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    found = re.search(r"^\[tool\.tox\.env\.min\]$.*?^deps = \[(.*?)^\]$", project, re.MULTILINE | re.DOTALL)
    packages = re.findall(r'^ +"(.+?)"', found[1], re.MULTILINE) if found else []
    return packages or sys.exit("pyproject.toml has no packages for the environment min of tox")


def try_release(scratch: Path, wheel: Path, version: str) -> str:
    """Run the marked tests with this *version* of Scrapy; return a line about them."""
    packages = [f"scrapy=={version}"]
    if version == VERSIONS[0]:
        packages = oldest_packages()
    programs = install(scratch / version.strip(".*"), wheel, *packages, *TESTS_NEED)
    marked = [
        str(path) for path in sorted((ROOT / "tests").glob("test_*.py")) if MARK in path.read_text(encoding="utf-8")
    ]
    began = time.monotonic()
    shown = run(
        *(programs / "python", "-m", "pytest", "-p", "no:cacheprovider", "--numprocesses=1", "-m", MARK, *marked),
        folder=ROOT,
    )
    took = time.monotonic() - began
    code = "import scrapy; print(scrapy.__version__)"
    exact = run(programs / "python", "-c", code, folder=scratch).strip()
    return f"Scrapy {exact}: {shown.strip().splitlines()[-1].strip('= ')}, {took:.0f} s"


def try_too_old(scratch: Path, wheel: Path) -> str:
    """Crawl with a Scrapy that is too old, and without the packages that the plugin needs; return a line about it."""
    folder = scratch / "too-old"
    programs = install(folder, f"scrapy=={TOO_OLD}")
    run(programs / "python", "-m", "pip", "install", "--quiet", "--no-deps", wheel, folder=folder)
    (folder / "one.py").write_text(SPIDER, encoding="utf-8")
    line = r"Scrapy \S+ is installed, and dedup-middleware needs \S+ or newer\. Run `pip install .+`\.$"
    log = run(programs / "scrapy", "runspider", "one.py", folder=folder)
    command = (programs / "scrapy", "dedup", "doctor")
    done = subprocess.run(command, cwd=folder, text=True, capture_output=True, check=False)
    expect(line, log)
    expect("'item_scraped_count': 1", log)
    if done.returncode != 1 or not re.fullmatch(f"dedup: {line}\n?", done.stderr, re.MULTILINE) or "Traceback" in log:
        sys.exit(f"scrapy dedup doctor: exit status {done.returncode}\n{done.stderr}\n{log}")
    return f"Scrapy {TOO_OLD}: one line"


def main() -> None:
    """Try the releases that are named, or all."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        scratch = Path(temporary).resolve()
        source = copy_of_sources(scratch / "source")
        run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", scratch, source, folder=scratch)
        (wheel,) = scratch.glob("*.whl")
        tries = [partial(try_release, scratch, wheel, version) for version in sys.argv[1:] or VERSIONS]
        tries += [partial(try_too_old, scratch, wheel)] * (not sys.argv[1:])
        with ThreadPoolExecutor(AT_A_TIME) as pool:
            for line in pool.map(lambda each: each(), tries):
                print(line, flush=True)


if __name__ == "__main__":
    main()
