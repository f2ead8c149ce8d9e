"""No command replaces a file that the package has not made, whatever name a user gives it."""

import json

import pytest
from prose import article, story
from test_commands import record, run_here, write_log

from dedup_middleware.fingerprints import fingerprinter
from dedup_middleware.stores import open_store

HOST = "http://news.example"
#: What people have in files of the kinds that the commands write.
FOREIGN = {
    "toml": b'[build-system]\nrequires = ["setuptools"]\n',
    "cfg": b"[settings]\ndefault = shop.settings\n",
    "array": b'[\n  {"name": "a"}\n]\n',
    "empty-array": b"[]\n",
    "rules": b'[\n  {\n    "args": [\n      "sid"\n    ],\n    "order": 1\n  }\n]\n',
    "html": b"<!doctype html>\n<title>Accounts</title>\n",
    "lines": b'{"format": "of mine"}\n',
    "log": b'{"url": "http://a/", "verdict": "duplicate"}\n',
    "png": b"\x89PNG\r\n\x1a\nwith another picture",
    "svg": b'<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg"/>\n',
    # matplotlib's own beginning, and another maker at its end.
    "pdf": b"%PDF-1.4\n%\xac\xdc \xab\xba\n1 0 obj\n<< /Creator (Matplotlib v3.9) >>\n%%EOF\n",
    "text": b"of mine",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a store, a log that shows a rule, and pages to compare."""
    folder = tmp_path_factory.mktemp("project")
    store = open_store(f"sqlite:{folder / 'store'}", fingerprint_scheme=fingerprinter("clauses").scheme)
    store.close()
    repeats = [record(f"{HOST}/a/{n}?sid=s{n}", original_url=f"{HOST}/a/{n}") for n in range(3)]
    write_log(folder / "log.jsonl", record(f"{HOST}/b", original_url=f"{HOST}/a"), *repeats)
    pages = [{"url": f"{HOST}/{n}", "html": article("A", story(n % 2)), "cluster": n % 2} for n in range(4)]
    (folder / "pages.jsonl").write_text("\n".join(map(json.dumps, pages)), encoding="utf8")
    return folder


#: The commands that write a file a user names: its place in their arguments is ``{}``.
COMMANDS = {
    "rules --export {}": ".json",
    "store export -o {}": ".jsonl",
    "report -o {}": ".html",
    "compare pages.jsonl --pure --method heintze --plot {}": ".png",
    "compare pages.jsonl --pure --method heintze --plot {} ": ".svg",
    "compare pages.jsonl --pure --method heintze --plot {}  ": ".pdf",
}


def run(command, path, folder):
    words = [str(path) if word == "{}" else word for word in command.split()]
    here = ["-s", f"DEDUP_STORE=sqlite:{folder / 'store'}", "-s", f"DEDUP_LOG={folder / 'log.jsonl'}"]
    return run_here(*words, *here, folder=folder)


@pytest.mark.usefixtures("measured_here")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_writes_a_new_file_and_one_of_its_own_and_no_other(command, folder, tmp_path):
    if "--plot" in command:
        pytest.importorskip("matplotlib")
    ours = tmp_path / f"ours{COMMANDS[command]}"
    if "--plot" in command:
        # Without the file, `test_compare.py` has it.
        ours.touch()
    for _ in range(2):
        done = run(command, ours, folder)
        assert done.exit_status == 0, done.err
        assert ours.stat().st_size > 0
    if "--plot" not in command:
        (empty := tmp_path / f"empty{COMMANDS[command]}").touch()
        assert run(command, empty, folder).exit_status == 0
    for name, content in FOREIGN.items():
        path = tmp_path / f"{name}{COMMANDS[command]}"
        path.write_bytes(content)
        run(command, path, folder).refused(str(path), "contains something else", "Name another file")
        assert path.read_bytes() == content, name


def test_a_batch_writes_into_no_folder_that_has_something(folder, tmp_path):
    (tmp_path / "verdicts.jsonl").write_text("of mine")
    run("batch pages.jsonl -o {}", tmp_path, folder).refused(str(tmp_path), "is not empty", "Name another folder")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["of mine"]


def test_dropped_items_are_appended_as_a_crawl_does(folder, tmp_path):
    path = tmp_path / "items.jsonl"
    path.write_text('{"of": "mine"}\n')
    assert run("dropped -o {}", path, folder).exit_status == 0
    assert path.read_text() == '{"of": "mine"}\n'


def test_the_export_of_rules_is_what_duplicate_url_discarder_reads(folder, tmp_path):
    path = tmp_path / "rules.json"
    assert "Wrote 1 rule to" in run("rules --export {}", path, folder).err
    (rule,) = json.loads(path.read_text())
    assert rule == {
        "order": 100,
        "urlPattern": {"include": ["news.example/a/"]},
        "processor": "queryRemoval",
        "args": ["sid"],
    }
