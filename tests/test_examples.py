"""The programs in examples/, run as their users run them."""

import json
import shutil
import subprocess
import sys
import threading
from io import BytesIO
from pathlib import Path
from urllib.request import Request, urlopen

import polars as pl
import pytest
from local_site import PATIENCE
from prose import article, blog, story, zh_story
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

EXAMPLES = Path(__file__).parent.parent / "examples"
PAGES = {
    "http://a.example/1.html": article("a", story(1)),
    "http://a.example/2.html": article("b", zh_story(2)),
    "http://b.example/3.html": blog("c", story(1)),
}
A, B, C = PAGES


def run(name, *arguments):
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE).stdout


def test_every_example_has_a_test():
    tested = Path(__file__).read_text(encoding="utf8")
    assert all(f'"{path.stem}"' in tested for path in EXAMPLES.iterdir() if path.suffix in {".py", ".ipynb"})


def test_a_folder(tmp_path):
    for number, html in enumerate(PAGES.values(), 1):
        (tmp_path / f"{number}.html").write_text(html, encoding="utf8")
    (line,) = run("folder", tmp_path).splitlines()
    assert line == f"{tmp_path}/3.html repeats file://{tmp_path}/1.html (1.00)"


# Its writer leaves temporary files open.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_archives(tmp_path):
    path = tmp_path / "crawl.warc.gz"
    with path.open("wb") as file:
        writer = WARCWriter(file)
        for url, html in PAGES.items():
            headers = StatusAndHeaders("200 OK", [("Content-Type", "text/html; charset=utf-8")], protocol="HTTP/1.1")
            record = writer.create_warc_record(url, "response", payload=BytesIO(html.encode()), http_headers=headers)
            writer.write_record(record)
    lines = run("warc", path, "--store", f"leveldb:{tmp_path}/store").splitlines()
    assert [json.loads(line)["url"] for line in lines] == [A, B]
    again = run("warc", path, "--store", f"leveldb:{tmp_path}/store").splitlines()
    assert [json.loads(line) for line in again] == [{"url": url, "verdict": "unchanged"} for url in (A, B)]


def test_a_frame(tmp_path):
    pl.DataFrame({"url": list(PAGES), "html": list(PAGES.values())}).write_parquet(tmp_path / "pages.parquet")
    run("frame", tmp_path / "pages.parquet", tmp_path / "marked.parquet")
    marked = pl.read_parquet(tmp_path / "marked.parquet")
    assert marked["verdict"].to_list() == ["new", "new", "duplicate"]
    assert marked["repeats"].to_list() == [None, None, A]


def test_a_notebook(site, crawl):  # "records"
    first, repost = site.add("/first", article("First", story(1))), site.add("/repost", blog("A", story(1)), host=1)
    part = site.add("/part", blog("A", story(1)[:4] + story(2)[:2]), host=2)
    outcome = crawl("sample_spiders.OneByOne", urls=f"{first},{repost},{part}")
    notebook = json.loads((EXAMPLES / "records.ipynb").read_text(encoding="utf8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells)
    folder = outcome.folder / ".scrapy" / "dedup" / "news"
    folder.mkdir(parents=True)
    shutil.copy(outcome.folder / "records.jsonl", folder / "log.jsonl")
    code = "\n".join(line for cell in cells for line in ["", "print('----')", *"".join(cell["source"]).splitlines()])
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=outcome.folder, check=True, capture_output=True, text=True, timeout=PATIENCE
    )
    _, verdicts, hosts, scores, on_the_line = done.stdout.split("----")
    assert "dropped" in verdicts
    assert hosts.index("127.0.0.2") < hosts.index("127.0.0.1")
    assert "0.95" in scores
    assert on_the_line.count("duplicate") == 1
    assert on_the_line.count("related") == 1


def test_a_service():  # "service"
    command = [sys.executable, str(EXAMPLES / "service.py"), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as service:
        stop = threading.Timer(PATIENCE, service.kill)
        stop.start()
        try:
            address = service.stdout.readline().split()[-1]

            def ask(page):
                with urlopen(Request(address, json.dumps(page).encode()), timeout=PATIENCE) as answer:
                    return json.load(answer)

            answers = [ask({"url": url, "html": html}) for url, html in PAGES.items()]
            with pytest.raises(OSError, match="400"):
                ask({"url": 5})
        finally:
            stop.cancel()
            service.kill()
    assert [answer["verdict"] for answer in answers] == ["new", "new", "duplicate"]
