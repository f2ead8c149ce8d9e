"""Every pattern of the package, and every step of a page's way, takes time in proportion to the text."""

import importlib
import pkgutil
import random
import re
import sys
import time
from functools import partial
from itertools import count, permutations, product
from pathlib import Path
from types import BuiltinMethodType, FunctionType

import pytest
from hostile_pages import verdict_on
from library import Library
from prose import story
from scrapy.http import HtmlResponse

import dedup_middleware
from dedup_middleware.common import patterns
from dedup_middleware.common.budget import Budget
from dedup_middleware.common.urls import url_identity
from dedup_middleware.extraction import parse, texts_of
from dedup_middleware.extraction.features import features_of
from dedup_middleware.model import VerdictKind
from dedup_middleware.reasons import Reason
from dedup_middleware.text.titles import MAX_PART

#: Four times the text may take this many times as long: linear is 4, quadratic 16.
MOST = 9
#: Seconds of CPU below which no ratio is taken.
LEAST = 0.004


def seconds(call, runs=3):
    """Return the least CPU time of some *runs* of *call*: what another process takes away does not count."""
    times = []
    for _ in range(runs):
        begin = time.process_time()
        call()
        times.append(time.process_time() - begin)
    return min(times)


def is_linear(at, size):
    """Return whether the call that *at* makes for four times *size* takes about four times as long.

    Short times are not compared. A ratio that is too great is measured again, more often each time. The time of the
    shorter text is never taken once only: one unlucky run of it would hide that the longer takes too long.
    """
    for runs in (1, 2, 4):
        large = seconds(at(4 * size), runs)
        if large < LEAST or large <= MOST * seconds(at(size), runs + 2):
            return True
    return False


# --- patterns


def patterns_in(thing, depth=3):
    """Yield the patterns in *thing*: itself, its items or attributes, what it is a method of or has as defaults."""
    if isinstance(thing, (re.Pattern, patterns._Compiled)):
        yield thing if isinstance(thing, re.Pattern) else re.compile(thing.pattern, thing.flags)
        return
    inner = []
    if isinstance(thing, BuiltinMethodType):
        inner = [thing.__self__]
    elif isinstance(thing, partial):
        inner = [thing.func, *thing.args, *thing.keywords.values()]
    elif isinstance(thing, FunctionType):
        inner = [*(thing.__defaults__ or ()), *(cell.cell_contents for cell in thing.__closure__ or ())]
    elif isinstance(thing, dict):
        inner = [*thing, *thing.values()]
    elif isinstance(thing, (list, tuple, set, frozenset)):
        inner = [*thing]
    elif getattr(type(thing), "__module__", "").startswith("dedup_middleware") or isinstance(thing, type):
        inner = [*getattr(thing, "__dict__", {}).values()]
    for each in inner if depth else ():
        yield from patterns_in(each, depth - 1)


def compiled():
    """Return the patterns of all modules by the names of their places."""
    found = {}
    for module in pkgutil.walk_packages(dedup_middleware.__path__, "dedup_middleware."):
        try:
            importlib.import_module(module.name)
        except ImportError:  # an engine or a library that is not installed here
            continue
        for name, thing in vars(sys.modules[module.name]).items():
            own = isinstance(thing, type) and thing.__module__ != module.name
            for number, pattern in enumerate(() if own else patterns_in(thing)):
                found.setdefault(
                    pattern, f"{module.name.removeprefix('dedup_middleware.')}.{name}" + f"[{number}]" * (number > 0)
                )
    return {name: pattern for pattern, name in found.items()}


PATTERNS = compiled()
#: Patterns that are given short texts only, and how long they are.
BOUNDED = {"text.titles._VIEW_LAST": MAX_PART}
# A page's unit, again and again: one character of a class, two of two classes, and what some pattern looks for.
_OFTEN = "1a .,-:(<好"
_WORDS = ["1,000 ", "1.5", "1:2,", "(:-", "jan ", "1 jan ", "www.", "://", "</p", "<a b='c'", "20/", "1月", "v1."]
UNITS = [*_OFTEN, *"A\n>/@_=&'\"%;#$|+年ก\u0300\u2014", *map("".join, permutations(_OFTEN, 2)), *_WORDS]
# Around it: what makes a pattern begin, or fail at the end.
FRAMES = [("", ""), ("1.", "!"), ("(a", "\0")]


def uses(name):
    """Return the methods of the pattern *name* that its module calls; those of a public name, that any does."""
    place, _, variable = name.partition("[")[0].rpartition(".")
    root = Path(dedup_middleware.__path__[0])
    module = root.joinpath(*place.split("."))
    own = module.with_suffix(".py") if module.with_suffix(".py").exists() else module / "__init__.py"
    sources = [own] if variable.startswith("_") else root.rglob("*.py")
    return {use for path in sources for use in re.findall(rf"\b{variable}\.(\w+)", path.read_text("utf-8"))}


def ways(pattern, name):
    """Return how *pattern* is used: at one place of a text, or wherever it can begin, which is most work."""
    called = uses(name)
    if called and called <= {"match", "fullmatch"}:
        return [getattr(pattern, method) for method in sorted(called)]
    return [pattern.findall]


def slow_on(pattern, way, size=3_000):
    """Return the first text on which *pattern*, used in this *way*, takes more than linear time; or an empty string."""
    for (before, after), unit in product(FRAMES, UNITS):

        def at(length, unit=unit, before=before, after=after):
            text = before + unit * (length // len(unit)) + after
            return partial(way, text if isinstance(pattern.pattern, str) else text.encode())

        if not is_linear(at, size // 4):
            return f"{before!r} + {unit!r} * n + {after!r}"
    return ""


@pytest.mark.parametrize("name", PATTERNS)
def test_every_pattern_takes_linear_time(name):
    for way in ways(PATTERNS[name], name):
        assert not slow_on(PATTERNS[name], way, BOUNDED.get(name, 3_000))


def test_a_careless_pattern_is_caught():
    """Its text takes far more than the least time, also on a fast machine."""
    assert {"text.words._SYMBOL", "text.titles._VIEW_LAST", "text.clauses._SENTENCE"} <= PATTERNS.keys()
    pattern = re.compile(r"\s+$")
    assert slow_on(pattern, pattern.findall, 6_000)


# --- a page

#: Pages of so many units, of which a part may be looked at again for each of some elements around it.
NESTED = {
    "links to the start": lambda size: "<a href='/'><div>" * 10 + "<b>x</b>y" * size,
    "headings": lambda size: "<h1><div>" * 10 + "<a href='/'>x</a>" * size,
    "pictures in links": lambda size: "<a href='/'><div>" * 10 + "<img alt=x>" * size,
}


@pytest.mark.parametrize("name", NESTED)
def test_what_a_page_has_beside_its_text_is_read_in_linear_time(name):
    def at(size):
        root = parse(f"<title>The town</title>{NESTED[name](size)}")
        return partial(features_of, root, texts_of(root))

    assert is_linear(at, 500)


# --- two pages

STORY = story(1)
#: Characters of each text, more than a store keeps of it and than is looked at at once.
LENGTH = 50_000
#: Seconds of CPU that the second page may take: it takes up to 0.8, twice that on a busy machine.
MOST_SECONDS = 3
FORMS = {
    "after": lambda text: f"<title>The town</title><p>{' '.join(STORY)}</p><p>{text}</p>",
    "inside": lambda text: f"<title>The town</title><p>{STORY[0]} {text} {' '.join(STORY[1:])}</p>",
    "lines": lambda text: f"<title>The town</title><p>{' '.join(STORY)}</p><pre>{text.replace(' ', chr(10))}</pre>",
    "paragraphs": lambda text: f"<p>{' '.join(STORY)}</p>" + "".join(f"<p>{part}</p>" for part in text.split(". ")),
    "around": lambda text: f"<title>{text}</title><h1>{text}</h1><p>{' '.join(STORY)}</p><footer>{text}</footer>",
}
_WORDS_OF_TEXT = [". ", "! ", "Abc ", "abc, ", "1,000 ", "1:2,", "C++ ", "not ", "5 May "]
_PARTS = [*"1aA .,-:(\"'%$年好。ก\u0300\u2014✓", *_WORDS_OF_TEXT]


def pair_of(chosen):
    """Return a text of a repeated unit of some parts, and one with an edit; and the names of what was *chosen*."""
    unit = "".join(chosen.choices(_PARTS, k=chosen.randint(1, 3)))
    form, edit = chosen.choice([*FORMS]), chosen.choice(["", "x2 y", "1.5", "-", "Not so. "])
    text = unit * (LENGTH // len(unit))
    place = chosen.choice([0, 1_000, LENGTH // 2, LENGTH])
    return FORMS[form](text), FORMS[form](text[:place] + edit + text[place:]), [repr(unit), form, edit, str(place)]


def pair_seconds(page, other, host):
    """Return the CPU time that *other* takes as a page of *host*, without a budget, after *page* at ``site``."""
    library = Library()
    verdict_on(library, HtmlResponse("http://site/1", body=page.encode()))
    response = HtmlResponse(f"http://{host}/2", body=other.encode())
    _ = response.selector.root
    return seconds(lambda: verdict_on(library, response), 1)


@pytest.mark.parametrize("seed", range(6))
def test_a_pair_of_hostile_near_copies_takes_linear_time(seed):
    """A budget would end a step that is too slow only after it, so each must be linear by itself."""
    chosen = random.Random(seed)
    for _ in range(4):
        page, other, names = pair_of(chosen)
        host = chosen.choice(["site", "other"])
        assert any(pair_seconds(page, other, host) < MOST_SECONDS for _ in range(3)), [*names, host]


@pytest.mark.parametrize(
    ("unit", "host"),
    [
        *product(["-1. ", "A. B. "], ["site", "other"]),
        ("1", "site"),
        ("$a. ", "other"),
        ("好。", "other"),
        ("ab\n", "site"),
    ],
)
def test_a_near_copy_of_a_page_of_one_thing_takes_linear_time(unit, host):
    text = unit * (LENGTH // len(unit))
    pages = FORMS["after"](text), FORMS["after"](f"{text} x2 y")
    assert any(pair_seconds(*pages, host) < MOST_SECONDS for _ in range(3))


def test_wherever_its_time_ends_a_page_and_its_item_are_kept(monkeypatch):
    """Each look at the clock takes a millisecond, so that a budget of so many ends at each look in turn."""
    clock, passed = count(), count(step=1000)
    monkeypatch.setattr("dedup_middleware.common.budget.time.thread_time", lambda: next(clock) / 1000)
    monkeypatch.setattr("dedup_middleware.common.budget.time.perf_counter", lambda: next(passed))
    outcomes = []
    text = [*STORY, *(f"{'A. b; ' * 3_000}{number}" for number in range(5))]
    for milliseconds in range(200):
        library = Library()
        library.visit("http://site/1", STORY, items=[{"text": "\n".join(STORY)}])
        reader, identities = library.deduplication.reader, (url_identity("http://other/2"),)
        page = reader.paragraphs("http://other/2", identities, text)
        visit = library.enter(page, Budget(milliseconds=milliseconds))
        found = library.deduplication.check_item(visit, {"text": "\n".join(STORY)})
        reason = found.rejection and found.rejection.reason
        outcomes.append((visit.verdict.kind, visit.verdict.reason, found.repeats, reason))
        library.deduplication.end(visit)
        if found.repeats:
            break
    item_kept = (VerdictKind.DUPLICATE, "", False, Reason.TOO_SLOW)
    assert [*dict.fromkeys(outcomes)] == [item_kept, (VerdictKind.DUPLICATE, "", True, None)]
    # At the beginning of each text that is read, and within it.
    assert outcomes.count(item_kept) > 5
