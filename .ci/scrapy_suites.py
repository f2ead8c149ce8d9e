"""Runs suites of Scrapy's own tests without and with the add-on in every crawl, and prints which tests differ.

``python .ci/scrapy_suites.py [VERSION...]`` needs an index of packages: the tests are in Scrapy's sdist. Without a
VERSION it takes the oldest and the newest release that we promise. A test that differs is run again, both ways, before
it counts. The exit status is 1 if a test differs.
"""

from __future__ import annotations

import configparser
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from package import copy_of_sources, expect, run
from versions import VERSIONS, install

if TYPE_CHECKING:
    from collections.abc import Sequence

SUITES = ("test_spidermiddleware*.py", "test_pipelines.py", "test_engine*.py")
#: Behind Scrapy's default settings: a crawl has them whatever settings of its own it has, in any process.
FORCED = """
if __import__("os").environ.get("DEDUP_FORCED"):
    ADDONS = {"dedup_middleware.Addon": 500}
    DEDUP_STORE = "memory:"
"""


class Scrapy:
    """One release with its tests, in an environment of its own."""

    def __init__(self, scratch: Path, wheel: Path, version: str) -> None:
        sdist = ("download", "--quiet", "--no-deps", "--no-binary", "scrapy", "--dest", scratch)
        run(sys.executable, "-m", "pip", *sdist, f"scrapy=={version}", folder=scratch)
        (archive,) = scratch.glob("scrapy-*.tar.gz")
        with tarfile.open(archive) as packed:
            packed.extractall(scratch, filter="data")
        (self.folder,) = (path for path in scratch.glob("scrapy-*") if path.is_dir())
        self.version = self.folder.name.removeprefix("scrapy-")
        # The installed package is what is tested.
        shutil.rmtree(self.folder / "scrapy")
        tox = configparser.ConfigParser(inline_comment_prefixes="#", interpolation=None)
        tox.read(self.folder / "tox.ini", encoding="utf-8")
        needs = tox["test-requirements"]["deps"].split("\n")
        self.programs = install(
            scratch / "environment", wheel, f"scrapy=={self.version}", *(need.strip() for need in needs if need.strip())
        )
        code = "import scrapy.settings.default_settings as it; print(it.__file__)"
        settings = Path(run(self.programs / "python", "-c", code, folder=scratch).strip())
        settings.write_text(settings.read_text(encoding="utf-8") + FORCED, encoding="utf-8")
        # What a crawl stores beside its store.
        self._home = scratch / "home"
        for forced in (False, True):
            command = (self.programs / "scrapy", "settings", "--get", "ADDONS")
            shown = run(*command, folder=scratch, env=self._environment(forced=forced))
            expect(r'^\{"dedup_middleware.Addon": 500\}$' if forced else r"^\{\}$", shown)

    def _environment(self, *, forced: bool) -> dict[str, str]:
        added = {"DEDUP_FORCED": "1" if forced else "", "HOME": str(self._home), "XDG_DATA_HOME": str(self._home)}
        return os.environ | added

    def outcomes(self, tests: Sequence[str], *, forced: bool) -> dict[str, str]:
        """Run *tests*; return what came of each, by its name for pytest."""
        report = self.folder / "report.xml"
        options = ("-q", "-n", "2", "-p", "no:cacheprovider", "-o", "junit_family=xunit1", f"--junitxml={report}")
        done = subprocess.run(
            [self.programs / "python", "-m", "pytest", *options, *tests],
            cwd=self.folder,
            env=self._environment(forced=forced),
            text=True,
            capture_output=True,
            check=False,
        )
        if done.returncode not in {0, 1}:
            sys.exit(f"Scrapy {self.version}: pytest has exit status {done.returncode}\n{done.stdout}{done.stderr}")
        found = {}
        for case in ET.parse(report).iter("testcase"):  # noqa: S314 - as above
            file, *kinds = case.attrib["file"], *case.attrib["classname"].split(".")
            kinds = kinds[len(Path(file).parts) :]
            tags = {child.tag for child in case} & {"failure", "error", "skipped"}
            found["::".join((file, *kinds, case.attrib["name"]))] = min(tags, default="passed")
        return found

    def differences(self) -> int:
        """Print the numbers of each suite, without and with the add-on, and what differs; return how many tests do."""
        files = sorted(path for pattern in SUITES for path in (self.folder / "tests").glob(pattern))
        suites = [path.relative_to(self.folder).as_posix() for path in files]
        without, forced = (self.outcomes(suites, forced=forced) for forced in (False, True))
        differ = {test for test in without | forced if without.get(test) != forced.get(test)}
        if again := sorted(differ & without.keys()):
            without |= self.outcomes(again, forced=False)
            forced |= self.outcomes(again, forced=True)
            differ = {test for test in differ if without.get(test) != forced.get(test)}
        print(f"Scrapy {self.version}, passed/failed{'':<26}{'without':>10}{'with':>10}{'differ':>10}")
        for suite in suites:
            numbers = [_numbers(outcomes, suite) for outcomes in (without, forced)]
            count = sum(test.startswith(f"{suite}::") for test in differ)
            print(f"  {suite:<48}{numbers[0]:>10}{numbers[1]:>10}{count:>10}")
        for test in sorted(differ):
            print(f"  {test}: {without.get(test)} without the add-on, {forced.get(test)} with it")
        return len(differ)


def _numbers(outcomes: dict[str, str], suite: str) -> str:
    counts = Counter(outcome for test, outcome in outcomes.items() if test.startswith(f"{suite}::"))
    return f"{counts['passed']}/{counts['failure'] + counts['error']}"


def main() -> None:
    """Try the releases that are named, or the oldest and the newest."""
    differ = 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        scratch = Path(temporary).resolve()
        source = copy_of_sources(scratch / "source")
        run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", scratch, source, folder=scratch)
        (wheel,) = scratch.glob("*.whl")
        for version in sys.argv[1:] or (VERSIONS[0], VERSIONS[-1]):
            folder = scratch / version.strip(".*")
            folder.mkdir()
            differ += Scrapy(folder, wheel, version).differences()
    print(f"{differ} tests differ")
    sys.exit(differ > 0)


if __name__ == "__main__":
    main()
