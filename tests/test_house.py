"""The laws of the house, read from the source: where Scrapy stops, who reads settings, what is documented."""

import ast
import json
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

import dedup_middleware
from dedup_middleware import errors
from dedup_middleware.errors import DedupError
from dedup_middleware.order.forms import FormLast
from dedup_middleware.plugin import addon
from dedup_middleware.reasons import Outcome, Reason
from dedup_middleware.records.crawl_lines import CrawlLine
from dedup_middleware.records.file import Record
from dedup_middleware.settings import SETTINGS

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "dedup_middleware"
MODULES = sorted(PACKAGE.rglob("*.py"))
#: From the ground up; each imports from those before it only, for types too. Modules that are not named are the ground.
FLOORS = (
    ("ground",),
    ("text",),
    ("fingerprints",),
    ("extraction",),
    ("stores",),
    ("index",),
    ("items",),
    ("checks",),
    ("settings",),
    ("visits",),
    ("records",),
    ("driver",),
    ("api",),
    ("plugin", "__init__"),
    ("order",),
    ("methods", "batch", "report"),
    ("cli",),
)
FLOOR_OF = {name: floor for floor, names in enumerate(FLOORS) for name in names}
SCRAPY = {"plugin", "order", "cli"}
MAX_LINES = 600


def name_of(module):
    return module.relative_to(PACKAGE).with_suffix("").as_posix()


@cache
def tree(module):
    return ast.parse(module.read_text(encoding="utf8"))


def imported(module):
    """Return the modules that *module* imports, by their full names, for types only or not."""
    names = set()
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_of(module)} imports relatively"
            names |= (
                {node.module} if node.module != "dedup_middleware" else {f"{node.module}.{a.name}" for a in node.names}
            )
    return names


def room_of(name):
    """Return the folder, or the module beside the folders, of the module *name* below the package."""
    return re.split(r"[./]", name)[0]


def floor_of(name):
    return FLOOR_OF.get(room_of(name), 0)


def test_a_floor_stands_on_those_below():
    above = []
    for module in MODULES:
        ours = (n.removeprefix("dedup_middleware.") for n in imported(module) if n.startswith("dedup_middleware."))
        wrong = {n for n in ours if floor_of(n) > floor_of(name_of(module))} - lazily_opened(module)
        above += [(name_of(module), name) for name in wrong]
    assert above == []


def lazily_opened(module):
    """Return what the door of the package names and does not load."""
    return {"plugin.addon"} if name_of(module) == "__init__" else set()


def test_an_engine_is_named_in_its_module_and_in_the_list_of_engines():
    engines = re.compile(r"\b(leveldb|rocksdb|plyvel|rocksdict)\b")
    named = {
        name_of(module)
        for module in MODULES
        for node in ast.walk(tree(module))
        # Docstrings, which have sentences, may.
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n" not in node.value
        if engines.search(node.value) and not node.value.endswith(".")
    }
    assert named - {"stores/engines", "stores/leveldb", "stores/rocksdb"} == set()


def test_scrapy_stops_at_the_plugin_and_the_order():
    scrapy = {"scrapy", "twisted"}
    others = [module for module in MODULES if room_of(name_of(module)) not in SCRAPY]
    assert [name_of(m) for m in others if {name.partition(".")[0] for name in imported(m)} & scrapy] == []


def test_all_floors_but_the_top_load_where_scrapy_is_not_installed():
    names = [
        f"dedup_middleware.{name_of(module).replace('/', '.')}"
        for module in MODULES
        if room_of(name_of(module)) not in SCRAPY
    ]
    hidden = "sys.modules |= dict.fromkeys(('scrapy', 'twisted'))"
    loaded = f"import importlib, sys; {hidden}; [*map(importlib.import_module, {names})]"
    subprocess.run([sys.executable, "-c", loaded], check=True)


def test_the_commands_and_the_addon_load_without_the_packages_that_the_plugin_needs():
    """So that a line says what to do, with an old Scrapy too."""
    packages = ("jieba", "msgspec", "opencc", "platformdirs", "plyvel", "rapidfuzz", "tldextract", "xxhash")
    code = (
        f"import sys\nsys.modules.update(dict.fromkeys({packages}))\n"
        "import dedup_middleware.cli.commands, dedup_middleware.plugin.addon"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_crawl_loads_and_compiles_nothing_that_it_may_not_need():
    paths = [path for _, path, _ in addon.COMPONENTS] + ["dedup_middleware.order.queue.TwoTierQueue"]
    unneeded = {*("difflib", "idna", "opencc", "pickletools", "dedup_middleware.api")} - scrapy_loads()
    unneeded |= {f"dedup_middleware.{room}" for room in ("batch", "cli", "methods", "report")}
    unneeded |= {f"dedup_middleware.stores.{engine}" for engine in ("leveldb", "redis", "rocksdb", "sqlite")}
    code = (
        "import gc, json, sys\nfrom scrapy.utils.misc import load_object\n"
        "from dedup_middleware.common import patterns\n"
        f"[*map(load_object, {paths})]\n"
        "kept = [each for each in gc.get_objects() if isinstance(each, patterns._Compiled)]\n"
        "compiled = [each.pattern for each in kept if type(each) is patterns._Compiled]\n"
        "print(json.dumps([len(kept), compiled, [*sys.modules]]))"
    )
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    patterns, compiled, loaded = json.loads(found.stdout)
    assert unneeded.isdisjoint(loaded)
    assert patterns
    assert compiled == []


def scrapy_loads():
    """Return the modules that Scrapy's own crawler imports."""
    code = "import sys, scrapy.crawler, scrapy.downloadermiddlewares.cookies; print(*sys.modules)"
    return {*subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()}


def test_settings_are_read_in_one_place():
    read = [
        (name_of(module), node.value)
        for module in MODULES
        if room_of(name_of(module)) != "settings"
        for call in ast.walk(tree(module))
        if isinstance(call, (ast.Call, ast.Subscript))
        for node in (call.args if isinstance(call, ast.Call) else [call.slice])
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in SETTINGS
    ]
    assert read == []


def test_every_module_has_a_docstring_and_at_most_600_lines():
    assert [name_of(module) for module in MODULES if not ast.get_docstring(tree(module))] == []
    assert [name_of(m) for m in MODULES if len(m.read_text(encoding="utf8").splitlines()) > MAX_LINES] == []


def test_every_setting_is_in_the_chinese_table():
    rows = rows_of("docs/zh/guide.md")
    assert {name for name in rows if name.startswith("DEDUP_")} == SETTINGS.keys()
    for name in SETTINGS.keys() - {"DEDUP_STORE", "DEDUP_LOG"}:
        assert rows[name][0] == f"`{shown(SETTINGS[name].default)}`", name


def test_no_page_names_a_setting_that_does_not_exist():
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    named = {name for page in pages for name in re.findall(r"\bDEDUP_[A-Z_]*[A-Z]\b", page.read_text(encoding="utf8"))}
    assert named - {"DEDUP_REDIS_PASSWORD"} == SETTINGS.keys()


def rows_of(page):
    """Return the rows of the tables of *page*, by the name in their first cell."""
    lines = (ROOT / page).read_text(encoding="utf8").splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return {row[0].strip("`"): row[1:] for row in cells}


def shown(default):
    return f'"{default}"' if isinstance(default, str) else str(default)


def reference(name):
    return (ROOT / "docs" / "reference" / f"{name}.md").read_text(encoding="utf8")


def test_every_reason_and_outcome_is_in_the_docs():
    _, _, reasons = reference("records").partition("## Reasons")
    assert set(Reason) <= {*re.findall(r"`([^`]+)`", reasons)}
    (line,) = re.findall(r"^\| `outcome` \|.*", reference("records"), re.MULTILINE)
    assert set(Outcome) <= {*re.findall(r"`([^`]+)`", line)}


def test_every_field_of_a_record_is_in_the_docs():
    of_records, _, rest = reference("records").partition("## Reasons")
    of_crawls = rest.partition("## Crawls")[2].partition("## Counts")[0]
    for text, fields in (
        (of_records, Record.__struct_fields__),
        (of_crawls, (*CrawlLine.__struct_fields__, *FormLast.__struct_fields__)),
    ):
        first_cells = [line.split("|")[1] for line in text.splitlines() if line.startswith("|")]
        assert {name for cell in first_cells for name in re.findall(r"`([^`]+)`", cell)} == set(fields)


def test_every_stat_is_in_the_docs():
    documented = set(re.findall(r"`dedup/([a-zA-Z_/']+)`", reference("records").partition("## Stats")[2]))
    counted = {
        call.args[0].value
        for module in MODULES
        for call in ast.walk(tree(module))
        if isinstance(call, ast.Call) and re.search(r"(?<!text\.)count$", ast.unparse(call.func)) and call.args
        if isinstance(call.args[0], ast.Constant) and isinstance(call.args[0].value, str)
        if re.fullmatch(r"[a-z_/]+", call.args[0].value)  # and not the punctuation that `str.count` counts
    }
    assert counted
    assert counted <= documented


def test_the_oldest_releases_that_we_promise_are_those_that_we_test():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))
    names = [re.match(r"([a-zA-Z0-9_-]+)>=([0-9.]+)", line) for line in project["project"]["dependencies"]]
    pins = dict(line.split("==") for line in project["tool"]["tox"]["env"]["min"]["deps"] if "==" in line)
    assert all(found and release(pins[found[1]]) == release(found[2]) for found in names), pins


def release(version):
    numbers = [int(number) for number in version.split(".")]
    return numbers + [0] * (3 - len(numbers))


def test_the_changelog_begins_with_the_version():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf8")
    assert re.findall(r"^## (\S+)", text, re.MULTILINE)[0] == dedup_middleware.__version__


# --- circles and predicates


def imports_of_ours():
    """Return the modules of the package that each module imports, for types too, without the name of the package."""
    names = {name_of(module).replace("/", ".").removesuffix(".__init__"): module for module in MODULES}
    names["dedup_middleware"] = names.pop("__init__")
    found = {}
    for name, module in names.items():
        ours = set()
        for node in ast.walk(tree(module)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "dedup_middleware":
                inner = (node.module or "").removeprefix("dedup_middleware").removeprefix(".")
                for alias in node.names:
                    full = f"{inner}.{alias.name}".removeprefix(".")
                    ours.add(full if full in names else inner or "dedup_middleware")
        found[name] = ours & names.keys() - {name}
    return found


def reachable(graph, start):
    seen, waiting = set[str](), [*graph[start]]
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += graph[name]
    return seen


def test_no_module_imports_itself_by_way_of_others():
    graph = imports_of_ours()
    behind = {name: reachable(graph, name) for name in graph}
    circles = {frozenset(other for other in behind[name] if name in behind[other]) for name in graph}
    assert circles == {frozenset()}


#: Predicates that note what they have looked at.
ACTING = [
    "stores/redis:is_at_work: self._at_work[worker]",
]
PREDICATE = re.compile(r"_?(is|has|may|can|are|needs)_")
#: Of lists, dicts, sets and stores.
CHANGES = {
    "add",
    "append",
    "clear",
    "discard",
    "extend",
    "insert",
    "pop",
    "popitem",
    "remove",
    "setdefault",
    "update",
    "write",
}


def test_a_predicate_changes_nothing():
    wrong = []
    for module in MODULES:
        for function in ast.walk(tree(module)):
            if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) and PREDICATE.match(function.name):
                wrong += [f"{name_of(module)}:{function.name}: {change}" for change in changes_in(function)]
    assert sorted(wrong) == ACTING


def changes_in(function):
    """Return what is assigned in *function* to an attribute or an element, and its calls that change an attribute."""
    found = []
    for node in ast.walk(function):
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found += [ast.unparse(target) for target in targets if isinstance(target, (ast.Attribute, ast.Subscript))]
        called = getattr(node, "func", None)
        if isinstance(called, ast.Attribute) and called.attr in CHANGES and isinstance(called.value, ast.Attribute):
            found.append(ast.unparse(called))
    return found


# --- names


def test_no_two_modules_have_one_name():
    assert repeated(module.stem for module in MODULES if module.stem != "__init__") == []


def test_no_two_classes_have_one_name():
    assert repeated(n.name for module in MODULES for n in tree(module).body if isinstance(n, ast.ClassDef)) == []


def repeated(names):
    return [name for name, times in Counter(names).items() if times > 1]


# --- errors


def test_an_error_has_what_happened_and_what_to_do_by_themselves():
    names = {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, DedupError)}
    joined = [
        (name_of(module), call.lineno)
        for module in MODULES
        for call in ast.walk(tree(module))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in names and call.args
        if re.search(r"[;:] (use|set|name|write|choose|remove|run)\b", ast.unparse(call.args[0]))
    ]
    assert joined == []
