"""Builds sdist and wheel, checks them, and tries the wheel in a new environment, away from the repository.

``python .ci/package.py [FOLDER]`` needs git and an index of packages, and leaves sdist and wheel in FOLDER, if given.
The trial is that of a container: no Scrapy project, and a home that cannot be written to.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import venv
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).parent.parent

TEXT = (
    "The ferry to the islands starts again on Monday, after four months in the dock of the yard at Tidewick.",
    "Both of her engines were replaced, and the ramp is now wide enough for the lorry that brings the school's meals.",
    "The first boat leaves at half past six, and the last one returns from the outer island shortly before dusk.",
    "Tickets cost what they cost before the winter, but children who go to school on the other side travel free.",
    "The harbour master expects a queue on the first morning and asks drivers to be at the pier in good time.",
)
TITLE = "Ferry to the islands returns"
PAGES = {
    "/ferry": "<header>The Harbour News</header><article><h1>{title}</h1>{text}</article>",
    "/ferry?print=1": "<h1>{title}</h1><div>{text}</div>",
}
SPIDER = """
import scrapy


class TwoPages(scrapy.Spider):
    name = "two"
    custom_settings = {{"ADDONS": {{"dedup_middleware.Addon": 500}}, "CONCURRENT_REQUESTS": 1, "LOG_LEVEL": "INFO"}}
    start_urls = ["{root}/ferry"]

    def parse(self, response):
        yield {{"text": " ".join(response.css("p::text").getall())}}
        if response.url.endswith("/ferry"):
            yield response.follow("/ferry?print=1")
"""


class Handler(BaseHTTPRequestHandler):
    """Serves the two pages."""

    def do_GET(self) -> None:
        """Answer with a page, or 404."""
        template = PAGES.get(self.path, "")
        body = template.format(title=TITLE, text="".join(f"<p>{text}</p>" for text in TEXT))
        page = f"<!DOCTYPE html><html><head><title>{TITLE}</title></head><body>{body}</body></html>".encode()
        self.send_response(200 if template else 404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def run(*command: str | Path, folder: Path, env: dict[str, str] | None = None) -> str:
    """Run *command*, and return what it prints; a failure ends the script, with that."""
    done = subprocess.run(list(map(str, command)), cwd=folder, env=env, text=True, capture_output=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def expect(pattern: str, text: str) -> None:
    """End the script unless *text* has a match of *pattern*."""
    if not re.search(pattern, text, re.MULTILINE):
        sys.exit(f"not found: {pattern}\n{text}")


def environment(folder: Path) -> Path:
    """Make a virtual environment in *folder*; return where its programs are."""
    venv.create(folder, with_pip=True)
    return folder / ("Scripts" if os.name == "nt" else "bin")


def copy_of_sources(folder: Path) -> Path:
    """Copy what git knows of the repository: neither leftovers of a build nor caches get into a package."""
    git = shutil.which("git") or sys.exit("git is not installed")
    names = run(git, "ls-files", "-z", "--cached", "--others", "--exclude-standard", folder=ROOT)
    for name in filter(None, names.split("\0")):
        target = folder / name
        if (ROOT / name).is_file():  # a file that was deleted is known until the next commit
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target)
    return folder


def link_to_site(source: Path) -> None:
    """Let the README in *source* link the site: a package index has no files of the repository."""
    project, readme = (source / "pyproject.toml").read_text(encoding="utf-8"), source / "README.md"
    found = re.search(r'^Documentation = "(.+/)"$', project, re.MULTILINE)
    site = found[1] if found else sys.exit("pyproject.toml has no URL of the documentation")
    text = readme.read_text(encoding="utf-8")
    text = re.sub(r"\]\(docs/([^)#]+)\.md", rf"]({site}\1.html", text)
    text = re.sub(r"\]\(docs/images/(?:[^)]*/)?([^)/]+)\)", rf"]({site}_images/\1)", text)
    text = re.sub(r"\[([^\]]+)\]\([A-Z]+\.md\)", r"`\1`", text)  # files of the repository that are not in the site
    if relative := re.findall(r"\]\((?!https://|#)[^)]*\)", text):
        sys.exit(f"links of the README that lead nowhere on a package index: {relative}")
    readme.write_text(text, encoding="utf-8")


def build(scratch: Path) -> tuple[Path, Path, str]:
    """Return sdist, wheel and version; the wheel is built from the sdist."""
    tools = environment(scratch / "tools")
    run(tools / "python", "-m", "pip", "install", "--quiet", "build", "twine", folder=scratch)
    source, dist = copy_of_sources(scratch / "source"), scratch / "dist"
    link_to_site(source)
    run(tools / "python", "-m", "build", "--outdir", dist, source, folder=scratch)
    (sdist,), (wheel,) = dist.glob("*.tar.gz"), dist.glob("*.whl")
    run(tools / "python", "-m", "twine", "check", "--strict", sdist, wheel, folder=scratch)
    found = re.search(r'^__version__ = "(.+)"$', (ROOT / "dedup_middleware/version.py").read_text(), re.MULTILINE)
    version = found[1] if found else sys.exit("dedup_middleware has no __version__")
    if (sdist.name, wheel.name.split("-")[1]) != (f"dedup_middleware-{version}.tar.gz", version):
        sys.exit(f"the version is {version}, and the packages are {sdist.name} and {wheel.name}")
    strays = [n for n in ZipFile(wheel).namelist() if not n.startswith("dedup_middleware") or n.endswith(".pyc")]
    if strays:
        sys.exit(f"the wheel has files of others: {strays}")
    return sdist, wheel, version


def try_wheel(scratch: Path, wheel: Path, version: str) -> None:
    """Install the *wheel*, and crawl two pages of which one is dropped."""
    programs, home = environment(scratch / "clean"), scratch / "home"
    run(programs / "python", "-m", "pip", "install", "--quiet", wheel, folder=scratch)
    work = scratch / "work"
    for folder in (work, home):
        folder.mkdir()
    home.chmod(0o500)
    env = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "SCRAPY", "XDG"))}
    env.update(HOME=str(home), USERPROFILE=str(home), PATH=os.pathsep.join([str(programs), env["PATH"]]))
    code = "import dedup_middleware as d; print(d.__version__, d.Deduplicator.__name__, d.__file__)"
    shown = run(programs / "python", "-c", code, folder=work, env=env)
    expect(rf"^{re.escape(version)} Deduplicator {re.escape(str(scratch))}", shown)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    (work / "two.py").write_text(SPIDER.format(root=f"http://127.0.0.1:{server.server_port}"), encoding="utf-8")
    named = ("-s", "DEDUP_STORE=store", "-s", "DEDUP_LOG=log.jsonl")
    log = run(programs / "scrapy", "runspider", "two.py", "-O", "kept.jsonl", *named, folder=work, env=env)
    server.shutdown()
    expect(r"Dropped: \S+/ferry\?print=1 repeats \S+/ferry \(score 1\.00\)$", log)
    expect(r"^  items kept +1$", log)
    expect(r"^  items dropped +1$", log)
    kept = (work / "kept.jsonl").read_text(encoding="utf-8").splitlines()
    if len(kept) != 1:
        sys.exit(f"the feed has {len(kept)} items")
    for command, pattern in (
        (("--version",), f"^dedup-middleware {re.escape(version)}$"),
        (("log", *named), r"^dropped +1\.00  http://\S+/ferry\?print=1$"),
        (("store", "info", *named), "^originals +1$"),
        (("report", *named), "^Wrote report.html: 1 duplicate in 2 pages$"),
    ):
        expect(pattern, run(programs / "scrapy", "dedup", *command, folder=work, env=env))


def main() -> None:
    """Build, check, try; keep the packages where the first argument is a folder."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        scratch = Path(temporary).resolve()
        sdist, wheel, version = build(scratch)
        try_wheel(scratch, wheel, version)
        for package in (sdist, wheel):
            print(f"{package.name}: {package.stat().st_size:,} bytes")
            if len(sys.argv) > 1:
                Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
                shutil.copy2(package, sys.argv[1])


if __name__ == "__main__":
    main()
