"""The documentation: its code runs, its links lead somewhere, and its commands and settings are those of the code."""

from __future__ import annotations

import json
import os
import re
import runpy
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from crawling import environment, run, scrapy
from local_site import PATIENCE, wait_until
from prose import article, blog, story

from dedup_middleware.errors import ConfigError
from dedup_middleware.records.file import Records
from dedup_middleware.settings import Config, PageOptions

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))["project"]
#: Languages whose blocks are run, or marked as an illustration by a comment in the line before them.
CODE = {"console", "python"}
#: Pages that make a project of their own; the others look at a crawl of the demo.
OWN_PROJECT = {"getting-started/quickstart.md", "zh/quickstart.md"}
#: Files that blocks show lines of. Any other file of a block is written, and its page has a command that uses it.
NOT_WRITTEN = {"settings.py", "spider.py"}
QUICKSTART, ITS_TRANSLATION = sorted(OWN_PROJECT)
#: The file with the output of the demo's crawl.
OF_THE_CRAWL = "crawl.txt"
#: Blocks that show what a command prints in the project of the demo: the page, and how the command above it begins.
#: Lines may be left out, and so may what "…" stands for.
SHOWN = [
    ("how-to/try-it.md", "scrapy crawl news"),
    ("how-to/try-it.md", "scrapy dedup tune --at"),
    ("how-to/find-out-why.md", "scrapy dedup explain 'http://tidewick.example/article.php?id=peat'"),
    ("deployment/look-after-a-store.md", "scrapy dedup store info"),
]
_FENCE = re.compile(r"^```(\S*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A fenced block of a page."""

    page: str
    language: str
    text: str
    is_illustration: bool
    before: str
    """The text above it."""


def blocks(path):
    text = path.read_text(encoding="utf8")
    name = path.relative_to(DOCS if DOCS in path.parents else ROOT).as_posix()
    return [
        Block(name, found[1], found[2], text[: found.start()].rstrip().endswith("-->"), text[: found.start()].rstrip())
        for found in _FENCE.finditer(text)
    ]


BLOCKS = {block[0].page: block for path in PAGES if (block := blocks(path))}


def test_every_block_has_a_language_and_data_can_be_read():
    for block in (block for page in BLOCKS.values() for block in page):
        assert block.language in {*CODE, "text", "json", "toml"} or block.language.startswith("{"), block
        if block.language == "json":
            json.loads(block.text)
        elif block.language == "toml":
            tomllib.loads(block.text)


def file_of(block):
    """Return the file that the first line of a block of Python names."""
    named = re.match(r"# (\S+\.py)\n", block.text)
    return named[1] if named and block.language == "python" else None


def settings_in(block):
    names = {}
    exec(block.text, names)
    return {name: value for name, value in names.items() if name.isupper()}


@pytest.mark.parametrize("page", [page for page, found in BLOCKS.items() if any(map(file_of, found))])
def test_settings_are_valid(page):
    for block in BLOCKS[page]:
        if (file_of(block) or "").endswith("settings.py"):
            Config.from_settings(settings_in(block), "news")


# --- blocks that run


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """Return a project with the store and the log of a crawl of the demo."""
    folder = tmp_path_factory.mktemp("demo")
    for name in ("scrapy.cfg", "settings", "spiders", "pyproject.toml"):
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, folder / name)
    # One request after the other: what the pages show of this crawl does not depend on which of two answers first.
    output = run_shell("scrapy crawl news -s CONCURRENT_REQUESTS=1", folder)
    (folder / OF_THE_CRAWL).write_text(output, encoding="utf8")
    # The crawls of the pages need not be as long.
    with (folder / "settings" / "__init__.py").open("a", encoding="utf8") as file:
        file.write("CLOSESPIDER_PAGECOUNT = 15\n")
    # An archive of past crawls, and labelled pages.
    site = [{"url": f"http://{name}.example/1", "html": blog(name, story(1)), "cluster": 1} for name in "abc"]
    (folder / "crawl-2024").mkdir()
    for name in ("crawl-2023.jsonl", "crawl-2024/a.jsonl", "pages.jsonl"):
        (folder / name).write_text("\n".join(map(json.dumps, site)), encoding="utf8")
    return folder


def run_shell(command, folder):
    """Return the output of a command of the documentation; 3 says that this crawl has no such page."""
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done: subprocess.CompletedProcess[str]
    if re.fullmatch(r"scrapy [^|&;<>()$`*?\n]+", command):
        # No shell is needed, and a process that is forked has imported Scrapy.
        done = scrapy(*shlex.split(command)[1:], folder=folder, env=env)
    else:
        bash = ["bash", "-c", command]
        done = subprocess.run(bash, cwd=folder, env=env, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode in {0, 3}, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


def commands(block):
    return [line.removeprefix("$ ") for line in block.text.splitlines() if line.startswith("$ ")]


def runs(block):
    if block.is_illustration or block.page in OWN_PROJECT:
        return False
    return block.language == "console" or (block.language == "python" and file_of(block) not in NOT_WRITTEN)


#: What the Python blocks find: two pages with one text.
_GIVEN = f"""
html = {article("Ferry", story(1))!r}
url, pages = "http://a.example/", [("http://a.example/1", html), ("http://b.example/1", {blog("b", story(1))!r})]
"""


@pytest.mark.research
@pytest.mark.parametrize("page", [page for page, found in BLOCKS.items() if any(map(runs, found))])
def test_the_blocks_of_a_page_run(page, demo, tmp_path):
    folder = shutil.copytree(demo, tmp_path / "project")
    url = [each.url for each in Records(folder / ".scrapy/dedup/news/log.jsonl") if each.is_duplicate][-1]
    for block in filter(runs, BLOCKS[page]):
        if name := file_of(block):
            (folder / name).write_text(block.text, encoding="utf8")
        elif block.language == "python":
            (folder / "block.py").write_text(_GIVEN + block.text, encoding="utf8")
            done = run(folder, [sys.executable, str(folder / "block.py")], environment())
            assert done.returncode == 0, done.stderr
            expected = BLOCKS[page][BLOCKS[page].index(block) + 1 :][:1]
            if expected and expected[0].before.endswith(("prints:", "输出：")):
                assert done.stdout == expected[0].text
        else:
            for command in commands(block):
                if "--plot" in command:
                    pytest.importorskip("matplotlib")
                # Of all methods, and all values of an option, one is enough: each is measured by a process of its own.
                shorter = re.sub(r"(dedup compare [^-\s]+)$", r"\1 --method bloom", command)
                shorter = re.sub(r"(--sweep [^=]+=)(\d+)\.\.\S+", r"\1\2..\2", shorter)
                run_shell(re.sub(r"\bURL\b", f"'{url}'", shorter), folder)


@pytest.mark.research
@pytest.mark.parametrize(("page", "begin"), SHOWN, ids=[command for _, command in SHOWN])
def test_a_page_shows_what_a_command_prints_of_the_demo(page, begin, demo):
    found = BLOCKS[page]
    # The command and its output are in one block, or in two.
    at, command = next(
        (n, line)
        for n, block in enumerate(found)
        for line in commands(block)
        if line.startswith(begin)
        and ("\n" in block.text.strip() or found[n + 1].language == "text")
        and "-s " not in line
    )
    lines = [line for line in found[at].text.splitlines() if not line.startswith("$ ")]
    shown = lines or found[at + 1].text.splitlines()
    is_crawl = command.startswith("scrapy crawl")
    printed = (demo / OF_THE_CRAWL).read_text(encoding="utf8") if is_crawl else run_shell(command, demo)
    ahead = iter([" ".join(line.split()) for line in printed.splitlines()])
    missing = [line for line in shown if line and not any(map(_as_pattern(line).search, ahead))]
    assert missing[:1] == [], printed


def _as_pattern(line):
    """Return the pattern of a *line* that a page shows, "…" for anything; it may end a line of the log."""
    return re.compile(f"(^|: ){'.*'.join(map(re.escape, ' '.join(line.split()).split('…')))}$")


def test_the_quickstart_has_the_same_code_in_both_languages():
    assert [b[1:4] for b in BLOCKS[QUICKSTART]] == [b[1:4] for b in BLOCKS[ITS_TRANSLATION]]


@pytest.mark.research
def test_the_quickstart_does_what_it_shows(tmp_path):
    port, server, output = str(free_port()), None, ""
    for block in BLOCKS[QUICKSTART]:
        text = block.text.replace("8765", port)
        if block.is_illustration or block.language not in CODE:
            continue
        if name := file_of(block):
            with (tmp_path / name).open("a", encoding="utf8") as file:
                file.write(text)
            continue
        for command in commands(block._replace(text=text)):
            if command.endswith("&"):
                server = subprocess.Popen(["bash", "-c", f"exec {command[:-1]}"], cwd=tmp_path, start_new_session=True)
                wait_until(lambda: is_open(port))
            else:
                output += run_shell(command, tmp_path)
    os.killpg(server.pid, signal.SIGTERM)
    server.wait()
    assert re.search(r"Dropped: \S+ repeats \S+ferry.html.* \(score 1.00\)", output)
    assert "extra_text" in output
    assert re.search(
        r"differs   The first boat leaves at 6:10 in the morning, and a crossing costs £\d as before\.", output
    )
    items = [json.loads(line) for line in (tmp_path / "stories.jsonl").read_text(encoding="utf8").splitlines()]
    # Two in the first crawl. In the second one these two again, for they are the same pages, and the released item.
    assert len(items) == 5


def free_port():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return unused.getsockname()[1]


def is_open(port):
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", int(port))) == 0


def test_where_the_line_of_the_add_on_goes_is_said_with_it():
    """The settings of a new project have an ``ADDONS = {}``, which wins over a line above it."""
    line = 'ADDONS = {"dedup_middleware.Addon": 500}\n'
    lines = [block for page in BLOCKS.values() for block in page if line in block.text]
    assert len(lines) > 5
    assert [each.page for each in lines if "ADDONS = {}" not in each.before[-300:] + each.text] == []


@pytest.mark.parametrize("page", ["reference/settings.md", "zh/guide.md"])
def test_each_option_of_a_request_has_a_row(page):
    text = (DOCS / page).read_text(encoding="utf8")
    with pytest.raises(ConfigError) as refused:
        PageOptions.from_meta("all", Config.from_settings({"DEDUP_STORE": "memory:"}, None))
    names = str(refused.value).partition("any of ")[2].rstrip(".").split(", ")
    assert len(names) == 3  # as both pages say
    assert all(f'| `{{"{name}": ' in text for name in names)


def test_what_is_lost_has_one_name_and_the_f1_of_a_method_one_place():
    texts = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf8") for path in PAGES}
    other = re.compile(r"(pages|stor(y|ies)( that (was|were))?) lost\b|\blos(t|es?) (no |\\d+ )?stor", re.IGNORECASE)
    assert [(page, found[0]) for page, text in texts.items() if (found := other.search(text))] == []
    corpora = re.compile(r"^\|.*\b(F1|synth_en)\b.*\|\n\|[-|: ]+\n\|.*(`clauses`|news_zh)", re.MULTILINE)
    assert [page for page, text in texts.items() if corpora.search(text)] == ["docs/benchmarks/methods.md"]


# --- links, commands


def headings(path):
    """Return the anchors of the headings of a page, as GitHub and MyST make them."""
    text = _FENCE.sub("", path.read_text(encoding="utf8"))
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def links():
    for path in [*PAGES, *(ROOT / name for name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"))]:
        text = _FENCE.sub("", path.read_text(encoding="utf8"))
        yield from (
            (path, target)
            for target in re.findall(r"\]\(([^)\s]+)\)|src=\"([^\"]+)\"", text)
            for target in target
            if target
        )


def place_of(path, target):
    """Return the file and the anchor that a link on the page *path* leads to, ``None`` if it is not of the site."""
    name, _, anchor = target.partition("#")
    if name.startswith(("https://", "http://")):
        return None
    return (path.parent / name if name else path), anchor


def test_every_link_leads_to_a_page_and_a_heading():
    wrong = []
    for path, target in links():
        if place := place_of(path, target):
            page = place[0] / "index.md" if place[0].is_dir() else place[0]
            if not page.exists() or (place[1] and place[1] not in headings(page)):
                wrong.append((path.name, target))
    assert wrong == []


@pytest.mark.parametrize(
    ("script", "made"),
    [
        ("pair_picture", "images/pair.svg"),
        ("cli_reference", "reference/cli.md"),
        ("settings", "reference/settings.md"),
        ("table", "explanation/how-it-works.md"),
    ],
)
def test_what_is_made_of_the_code_is_as_its_script_makes_it(script, made):
    """The picture of a pair, the help of the commands, the row of each setting, and the table of edits."""
    found = runpy.run_path(str(DOCS / f"{script}.py"))
    make = found["picture" if made.endswith(".svg") else "page"]
    assert (DOCS / made).read_text(encoding="utf8") == make(), f"run: python docs/{script}.py"


def test_every_extra_that_a_page_names_exists():
    named = {
        name for page in PAGES for name in re.findall(r"dedup-middleware\[(\w+)\]", page.read_text(encoding="utf8"))
    }
    assert named <= PROJECT["optional-dependencies"].keys()
