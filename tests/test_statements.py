"""What the documents about safety state has a test, which they name; and the tests of statements that need no crawl."""

import ast
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from library import Library
from prose import article, story
from scrapy.settings import Settings

from dedup_middleware import model
from dedup_middleware.api import Deduplicator
from dedup_middleware.batch import archive
from dedup_middleware.common import bounded
from dedup_middleware.common.urls import host_of
from dedup_middleware.index import dropped_items, item_codec, schema, transfer
from dedup_middleware.index.shared import index_for_command
from dedup_middleware.plugin import item_flow
from dedup_middleware.plugin.shared_state import Entry
from dedup_middleware.records import file
from dedup_middleware.visits.durability import Durability

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "dedup_middleware"
#: Each paragraph, bullet and table of these names a test, or why it has none, in a comment that no reader sees.
DOCUMENTS = ("docs/deployment/security-and-privacy.md", "docs/explanation/delivery-guarantees.md", "SECURITY.md")
SECURITY = (ROOT / DOCUMENTS[0]).read_text(encoding="utf8")
DELIVERY = (ROOT / DOCUMENTS[1]).read_text(encoding="utf8")
#: Why a statement may have no test: it is not about the plugin.
NOT_OURS = {
    "a pointer",
    "an introduction",
    "the table below",
    "what other sites do",
    "what others on the network do",
    "what people do",
    "what pipelines do",
    "what Scrapy does",
}
_COMMENT = re.compile(r"<!-- (test|no test): (.*?) -->", re.DOTALL)
MB = 2**20


# --- the documents


def units(document):
    """Return the paragraphs, bullets and tables of *document*, each with the comment that follows it."""
    text = re.sub(r"^```.*?^```$", "", (ROOT / document).read_text(encoding="utf8"), flags=re.MULTILINE | re.DOTALL)
    found = []
    for block in re.split(r"\n\s*\n", text):
        if block.startswith("<!--"):
            found[-1] += block
        elif block.strip() and not block.startswith("#"):
            found += re.split(r"\n(?=- )", block.strip("\n"))
    return [unit for unit in found if not unit.endswith(":")]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_statement_names_its_test(document):
    assert [unit for unit in units(document) if not _COMMENT.search(unit)] == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_test_that_a_statement_names_exists(document):
    named = _COMMENT.findall((ROOT / document).read_text(encoding="utf8"))
    assert {why for kind, why in named if kind == "no test"} <= NOT_OURS
    missing = set()
    for name in (name for kind, names in named if kind == "test" for name in names.split()):
        file, _, test = name.partition("::")
        path = ROOT / "tests" / file
        if not path.is_file() or f"def {test}(" not in path.read_text(encoding="utf8"):
            missing.add(name)
    assert missing == set()


# --- code


def calls():
    """Return the names that the package calls, or imports, with the modules that do."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
            names = []
            if isinstance(node, ast.Call) and isinstance(node.func, (ast.Name, ast.Attribute)):
                names = [ast.unparse(node.func)]
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                names = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
            for name in names:
                found.setdefault(name, set()).add(path.relative_to(PACKAGE).as_posix())
    return found


def test_pickles_are_read_in_one_place():
    found = calls()
    readers = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "yaml"}
    assert {name: places for name, places in found.items() if name.split(".")[0] in readers and "." not in name} == {
        "pickle": {"batch/archive.py"}
    }
    assert found["pickle.loads"] == {"batch/archive.py"}
    assert "pickle.load" not in found


def test_nothing_runs_code_that_comes_as_text():
    assert {"eval", "exec", "compile", "os.system", "runpy", "code"}.isdisjoint(calls())


# --- numbers


def number(text):
    amount, unit = re.fullmatch(r"([\d,]+)( MB| characters|)", text).groups()
    return int(amount.replace(",", "")) * (MB if unit == " MB" else 1)


def limit(row):
    """Return the numbers of *row* in the table of limits."""
    (cell,) = re.findall(rf"^\| {re.escape(row)} \| (.*?) \|$", SECURITY, re.MULTILINE)
    return [number(found) for found in re.findall(r"\d[\d,]*(?: MB| characters|)", cell.split(" (")[0])]


def test_the_limits_are_those_of_the_code():
    redis = pytest.importorskip("dedup_middleware.stores.redis")
    assert limit("a stored text") == [model.TEXT_LIMIT]
    assert limit("a dropped item, a stored page") == [item_codec.MAX_BYTES] == [schema._MAX_PAGE]
    assert dropped_items._MAX_BYTES >= item_codec.MAX_BYTES
    assert limit("a line of an export; of a log") == [transfer.MAX_LINE, file.MAX_LINE]
    assert limit("values in one piece of JSON") == [bounded.MAX_VALUES]
    assert limit("a line or page of an archive") == [archive.MAX_BYTES]
    assert "a hundred times its size, or 64 MB" in SECURITY
    assert (bounded._MAX_RATIO, bounded._FREE) == (archive._MAX_COLUMN_RATIO, archive._MAX_COLUMN) == (100, 64 * MB)
    assert limit("an answer of a Redis server; the values for one page") == [redis.MAX_ANSWER, redis._MAX_BYTES]


def test_numbers_of_claims_and_checkpoints():
    assert "for at most three minutes" in DELIVERY
    assert item_flow.MAX_WAIT == 180
    assert "after every 100 pages" in DELIVERY
    assert Durability.interval == 100


# --- claims


def test_the_responses_that_wait_have_as_much_room_as_the_scraper():
    """They take none of the scraper's own; what waits for a disk only takes none at all."""
    slot = SimpleNamespace(max_active_size=10_000)
    settings = Settings({"SCRAPER_SLOT_MAX_ACTIVE_SIZE": 10_000})
    crawler = SimpleNamespace(settings=settings, engine=SimpleNamespace(scraper=SimpleNamespace(slot=slot)))
    counted = []
    waits = item_flow.OriginalWait(SimpleNamespace(crawler=crawler, count=counted.append))

    def begun(size, *, is_delivered=False):
        claims = SimpleNamespace(is_delivered=lambda _: is_delivered)
        return waits.begin(Entry(SimpleNamespace(claims=claims), SimpleNamespace(size=size)))

    first, second = begun(6_000), begun(0)
    assert slot.max_active_size == 10_000 + 6_000 + 1_024
    assert begun(3_000) is None
    assert begun(3_000, is_delivered=True) is not None
    assert slot.max_active_size == 10_000 + 6_000 + 1_024
    first.end()
    assert begun(3_000) is not None
    second.end()
    assert slot.max_active_size == 10_000 + 3_000
    assert (counted.count("waits"), counted.count("waits/no_room")) == (4, 1)


# --- sites


def test_ports_of_a_host_are_one_site():
    assert host_of("http://site.example:8080/") == host_of("https://site.example/")
    library = Library()
    library.index.commit(library.page("http://a.example:81/1", range(20)))
    (stored,) = library.index.pages()
    assert host_of(stored.url) == "a.example"


# --- privacy


def test_a_store_is_not_encrypted(tmp_path):
    uri = f"sqlite:{tmp_path / 'store'}"
    texts = story(1)
    with Deduplicator(uri) as dedup:
        dedup.keep("http://a.example/", article("A", texts))
    with index_for_command(uri, "test") as (_, index):
        (page,) = index.pages()
        assert texts[0] in "\n".join(index.text(page.number))
