"""Requests that are expected to bring nothing new are fetched last; and all of them are fetched."""

from __future__ import annotations

import heapq
import json
import re
import sys
from collections import Counter
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import pytest
from crawling import IN_ORDER, Outcome, run_job, run_scrapy, write_job
from fault_injection import faults
from hypothesis import given
from hypothesis import strategies as st
from local_site import Answer, Site, redirect
from prose import article, story
from scrapy import signals
from scrapy.core.scheduler import BaseScheduler
from scrapy.dupefilters import RFPDupeFilter
from scrapy.utils.misc import load_object

from dedup_middleware import Addon
from dedup_middleware.cli.rules import learned
from dedup_middleware.order.order import MANY, MAX_CLASSES, MAX_PREFIXES, MAX_TEXTS, SAMPLED, FetchedPage, Order
from dedup_middleware.order.url_rules import MAX_KEYS, MAX_SHAPES, address_of
from dedup_middleware.records.file import Record, lines
from dedup_middleware.report.tallies import Crawls

if TYPE_CHECKING:
    from pathlib import Path


HOST = "http://news.example"


# --- addresses


@pytest.mark.parametrize(
    ("url", "shape", "variables"),
    [
        ("/p/12.html", "/p/*.html", {"1": "12"}),
        ("/doc-7/v2", "/doc-*/v*", {"1": "7", "2": "2"}),
        ("/2024/05/how-the-bridge-was-built/", "/*/*/*/", {"1": "2024", "2": "05", "3": "how-the-bridge-was-built"}),
        ("/p;jsessionid=AB12/x?b=2&a=1", "/p/x", {";jsessionid": "AB12", "b": "2", "a": "1"}),
        ("/f00dcafe12", "/*", {"1": "f00dcafe12"}),
        ("/view.php?id=3&id=4&empty", "/view.php", {"id": "3,4", "empty": ""}),
        ("/about", "/about", {}),
    ],
)
def test_an_address_is_its_shape_and_its_variables(url, shape, variables):
    found = address_of(HOST + url)
    assert found.shape == "news.example" + shape
    assert found.variables == variables


@given(st.text(max_size=200))
def test_any_text_has_an_address_or_none(text):
    order = Order()
    for url in (text, f"{HOST}/{text}"):
        place = order.place_of(url, HOST + "/")
        order.learn(FetchedPage((url,), url, (url,), place))
        order.is_last(url, place)


# --- what is learned


class Web:
    """An order, and pages whose text is known by a name."""

    def __init__(self):
        self.order = Order(b"key")
        self.first = {}

    def visit(self, url, text, links=(), on=HOST + "/"):
        """Fetch the page with this *text*, linked *on* a page; return whether others may be worth more now."""
        is_new = text is not None and text not in self.first
        original = None if text is None else self.first.setdefault(text, url)
        place = self.order.place_of(url, on)
        return self.order.learn(FetchedPage((url,), original, tuple(links), place, brings_item=is_new))

    def last(self, urls, on=HOST + "/"):
        """Return those of *urls* that are fetched last."""
        return {url for url in urls if self.order.is_last(url, self.order.place_of(url, on))}


def most(urls, last):
    """Return whether all *urls* are fetched *last*, but for the sample."""
    return len(last) > len(urls) * (1 - 3 / SAMPLED)


def test_a_session_id_is_left_out_after_two_texts():
    web = Web()
    for n in (1, 2):
        web.visit(f"{HOST}/a/{n}?sid=first{n}", f"story {n}")
        web.visit(f"{HOST}/a/{n}?sid=other{n}", f"story {n}")
    again = [f"{HOST}/a/1?sid=z{n}" for n in range(60)]
    assert most(again, web.last(again))
    # Only what was fetched is repeated.
    assert not web.last(f"{HOST}/a/3?sid=z{n}" for n in range(60))


@pytest.mark.parametrize(
    ("view", "original"),
    [("/a/{}/print", "/a/{}"), ("/print?id={}", "/a/{}"), ("/a/{};jsessionid=0123456789ABCDEF?ref=front", "/a/{}")],
)
def test_a_view_of_a_page_is_last_once_the_page_was_fetched(view, original):
    web = Web()
    for n in range(40, 100):
        web.visit(HOST + original.format(n), str(n))
    for n in range(40, 44):
        web.visit(HOST + view.format(n), str(n))
    views = [HOST + view.format(n) for n in range(44, 100)]
    assert most(views, web.last(views))


def test_one_notice_under_many_ids_says_little_about_the_others():
    web = Web()
    for n in range(10):
        web.visit(f"{HOST}/story/{n}", f"story {n}")
    for n in range(30):
        web.visit(f"{HOST}/item?id={n}&lang=en", "this article was removed")
    assert not web.last(f"{HOST}/item?id={n}&lang=en" for n in range(60))


def test_a_login_that_has_expired_proves_no_key():
    web = Web()
    for n in range(4):
        web.visit(f"{HOST}/s/{n}", str(n))
        web.visit(f"{HOST}/s/{n}?print=yes", str(n))
    for n in range(10, 20):
        web.visit(f"{HOST}/s/{n}", "please log in")
    assert not any(web.order.rules.repeats(address_of(f"{HOST}/s/{n}?print=yes")) for n in range(10, 20))


def test_a_parameter_that_matters_on_one_page_in_five_is_found_out():
    web = Web()
    for n in range(100):
        web.visit(f"{HOST}/s/{n}", str(n))
    for n in range(100):
        web.visit(f"{HOST}/s/{n}?page=2", str(n) if n % 5 else f"second page of {n}")
    assert not web.last(f"{HOST}/s/{n}?page=2" for n in range(100))


def test_a_rule_that_fails_lets_requests_be_judged_again():
    web = Web()
    for n in range(60):
        web.visit(f"{HOST}/s/{n}", str(n))
    risen = [web.visit(f"{HOST}/s/{n}?page=2", str(n) if n < 40 else f"second page of {n}") for n in range(60)]
    assert any(risen[40:])
    assert not any(risen[:40])
    assert not web.order.rules.repeats(address_of(f"{HOST}/s/50?page=3"))


FILTERS = {
    "query": [f"/shop/?colour={c}&size={s}" for c in range(20) for s in "abcdefghijklmnopqrst"],
    "path": [f"/shop/{c}/{s}/" for c in ("red", "blue", "teal", "gold", "pink") for s in map(chr, range(97, 123))],
    "slugs": [
        f"/{w}?sort={s}" for w in ("ships", "maps", "lamps", "tools", "ropes", "sails") for s in "abcdefghijklmnopqr"
    ],
}


@pytest.mark.parametrize("filters", FILTERS)
def test_a_trap_is_found_once_and_within_fifty_pages(filters):
    web, links = Web(), [HOST + path for path in FILTERS[filters]]
    web.visit(HOST + "/shop/", "lists", links)
    for n in range(5):
        web.visit(f"{HOST}/story/{n}", f"story {n}")
    # The same products, in one of four orders.
    for n, link in enumerate(links[:50]):
        web.visit(link, f"order {n % 4}", on=HOST + "/shop/")
    assert most(links[50:], web.last(links[50:], on=HOST + "/shop/"))
    assert not web.last(f"{HOST}/story/{n}" for n in range(100))


def test_a_word_that_varies_is_a_variable_and_one_that_does_not_is_none():
    classes = Order().classes
    for n in range(MANY):
        classes.learn_path(address_of(f"{HOST}/store/{chr(97 + n)}/x"))
    assert classes.wide(address_of(f"{HOST}/store/q/x")) == "news.example/store/*/x"
    assert classes.wide(address_of(f"{HOST}/other/q/x")) == "news.example/other/q/x"


def test_links_of_another_host_teach_nothing():
    web, other = Web(), "http://other.example/"
    for n in range(200):
        assert web.order.place_of(f"{HOST}/{chr(97 + n % 26)}/{n}", other) == 0
    assert web.order.classes.wide(address_of(f"{HOST}/q/1")) == "news.example/q/*"
    web.visit(other, "a list", [f"{HOST}/story/{n}" for n in range(60)])
    # A page of the host that has the same links still brings something.
    web.visit(HOST + "/list/1", "list", [f"{HOST}/story/{n}" for n in range(60)])
    assert web.order.forms["news.example/list/*"] == (1, 0)


def test_a_mirror_decides_nothing_about_the_host_that_it_repeats():
    web, mirror = Web(), "http://mirror.example"
    for n in range(100):
        web.visit(f"{mirror}/a/{n}", str(n), on=mirror + "/")
    for n in range(40):
        web.visit(f"{HOST}/doc?ref={n}", f"own {n}")
    assert not web.last(f"{HOST}/doc?ref={n}" for n in range(40, 100))
    assert web.order.rules.all() == []


def test_without_the_key_the_sample_is_not_known():
    def sample(key):
        web = Web()
        web.order = Order(key)
        for n in range(4):
            web.visit(f"{HOST}/s/{n}", str(n))
            web.visit(f"{HOST}/s/{n}?sid=a", str(n))
        urls = {f"{HOST}/s/1?sid={n}" for n in range(2000)}
        return urls - web.last(urls)

    one, other = sample(b"one"), sample(b"other")
    assert all(0.03 < len(found) / 2000 < 0.07 for found in (one, other))
    assert len(one & other) < len(one) / 2


def test_memory_is_bounded():
    web = Web()
    for n in range(12_000):
        web.visit(f"http://h{n % 500}.example/{n:x}x/w{n % 7}/{n}?p{n % 40}={n}", str(n // 2), [f"{HOST}/{n}"])
    classes, rules = web.order.classes, web.order.rules
    assert len(classes._classes) <= MAX_CLASSES
    assert len(classes._texts) <= MAX_TEXTS
    assert len(classes._values) <= MAX_PREFIXES
    assert len(rules._pages) <= MAX_SHAPES
    assert len(rules._texts) <= MAX_KEYS


class HeapScheduler(BaseScheduler):
    """A scheduler of a project's own, as scrapy-redis is one: it sorts by priority, and knows no queues of Scrapy."""

    def __init__(self, dupefilter):
        self.dupefilter, self.heap, self.count = dupefilter, [], 0

    @classmethod
    def from_crawler(cls, crawler):
        crawler.signals.connect(lambda: cls.check(crawler), signals.spider_idle)
        return cls(RFPDupeFilter.from_crawler(crawler))

    @staticmethod
    def check(crawler):
        engine = crawler.engine
        scheduler = engine.scheduler if hasattr(engine, "scheduler") else engine._slot.scheduler
        assert vars(scheduler).keys() == {"dupefilter", "heap", "count"}

    def has_pending_requests(self):
        return bool(self.heap)

    def enqueue_request(self, request):
        if not request.dont_filter and self.dupefilter.request_seen(request):
            return False
        self.count += 1
        heapq.heappush(self.heap, (-request.priority, self.count, request))
        return True

    def next_request(self):
        return heapq.heappop(self.heap)[-1] if self.heap else None


# --- crawls

#: Enough for rules: each has a text.
PRODUCTS = 14


@pytest.fixture
def shop(site):
    return filled(site)


def filled(site):
    """A shop whose products are shown under many addresses."""

    def product(n):
        links = [f"/p/{n}?sid=s{n}x{k}" for k in range(3)] + [f"/p/{n}?view=print", f"/p/{(n + 1) % PRODUCTS}?sid=t{n}"]
        return article(f"Product {n} of the harbour", story(n), tuple(links))

    for n in range(PRODUCTS):
        site.add(f"/p/{n}", product(n))
    site.add("/", article("Harbour shop", ["All products."], tuple(f"/p/{n}?sid=f{n}" for n in range(PRODUCTS))))
    return site


def fan(site):
    """A shop with 120 filters on its first page, and 60 stories three levels deep."""
    filters = [
        f"/shop/{c}/{s}" for c, s in product(("red", "blue", "teal", "gold", "pink", "grey"), "abcdefghijklmnopqrst")
    ]
    for n, path in enumerate(filters):
        site.add(path, article("Shop", story(1000 + n % 4)))
    for n in range(60):
        deeper = tuple(f"/story/{number}" for number in range(3 * n + 3, min(3 * n + 6, 60)))
        site.add(f"/story/{n}", article(f"Story {n}", story(n), deeper))
    site.add("/", article("Home", ["Welcome."], (*filters, "/story/0", "/story/1", "/story/2")))
    return site


BREADTH_FIRST = {
    "DEPTH_PRIORITY": 1,
    # Scrapy 2.16 waits so long before each callback that on loopback a crawl has ended before it has learned anything.
    "CONSTANTS": {"scrapy.utils.defer:_DEFER_DELAY": 0},
    "SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleFifoDiskQueue",
    "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
}
PLAIN = {"DEDUP_ENABLED": False}


def linked(site):
    """Return the paths that a crawl without the plugin fetches: what is linked from the first page on, once each."""
    found = {"/": 1}
    for path in (waiting := ["/"]):
        for answer in site.pages.get((0, path.partition("?")[0]), [])[:1]:
            links = {link.replace(" ", "%20"): 1 for link in re.findall(r'href="([^"]+)"', str(answer.body))}
            waiting += links.keys() - found.keys()
            found |= links
    return Counter(found)


def crawled(folder, site, **settings):
    """Crawl *site*; return what came of it, and the paths that were fetched."""
    before = len(site.paths())
    command = write_job(
        folder, "sample_spiders.Followers", url=site.url("/"), settings=BREADTH_FIRST | settings, afresh=True
    )
    outcome = run_job(folder, command)
    assert [line for line in outcome.problems if " repeat " not in line] == []
    return outcome, site.paths()[before:]


class Crawled(NamedTuple):
    """A crawl of the shop, to be looked at."""

    shop: Site
    folder: Path
    outcome: Outcome
    fetched: list[str]


@pytest.fixture(scope="module")
def shop_crawl(tmp_path_factory):
    shop, folder = filled(Site()), tmp_path_factory.mktemp("shop")
    yield Crawled(shop, folder, *crawled(folder, shop))
    shop.close()


@pytest.fixture(params=["shop", "fan"])
def web(request, site):
    return fan(site) if request.param == "fan" else request.getfixturevalue("shop")


@pytest.mark.every_scrapy
@pytest.mark.parametrize("web", ["shop", "fan"])
def test_without_a_limit_the_pages_fetched_are_those_of_a_plain_crawl(web, site, shop_crawl, tmp_path):
    found = shop_crawl if web == "shop" else Crawled(fan(site), tmp_path, *crawled(tmp_path, site))
    outcome = found.outcome
    assert Counter(found.fetched) == linked(found.shop)
    assert outcome.stats["dedup/requests_last"] > 0
    assert "requests fetched last" in outcome.log


@pytest.mark.parametrize(("web", "resumed_with"), [("shop", PLAIN), ("fan", {})], indirect=["web"])
@pytest.mark.every_scrapy
def test_a_job_that_is_stopped_fetches_the_same_pages_with_or_without_the_plugin(web, tmp_path, resumed_with):
    job = {"JOBDIR": str(tmp_path / "job")}
    first, before = crawled(tmp_path / "order", web, CLOSESPIDER_PAGECOUNT=50, **IN_ORDER, **job)
    assert first.stats["finish_reason"] == "closespider_pagecount"
    assert first.stats["dedup/requests_last"] > 0
    _, after = crawled(tmp_path / "order", web, **job, **resumed_with)
    assert Counter(before + after) == linked(web)


@pytest.mark.every_scrapy
def test_in_a_trap_the_stories_come_first(site, tmp_path):
    fan(site)
    found = []
    for name, settings in (
        ("plain", PLAIN),
        ("order", {}),
        ("deep", {"SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.LifoMemoryQueue"}),
    ):
        _, fetched = crawled(tmp_path / name, site, CLOSESPIDER_PAGECOUNT=140, CONCURRENT_REQUESTS=2, **settings)
        found.append(len({path for path in fetched if path.startswith("/story/")}))
    plain, order, deep = found
    assert plain < 25
    assert order > 35
    assert deep > 35


def test_made_up_links_on_one_page_cost_no_story_its_turn(site, tmp_path):
    for n in range(60):
        site.add(f"/story/{n}", article(f"Story {n}", story(n)))
    made_up = [f"/story/0?x{n % 4}={n}" for n in range(160)]
    site.add("/people/7", article("Somebody", story(500), tuple(made_up)))
    site.add("/", article("Home", ["Welcome."], ("/people/7", "/list")))
    site.add("/list", article("List", ["All."], tuple(f"/story/{n}" for n in range(60))))
    outcome, fetched = crawled(tmp_path, site)
    assert len({url for url in outcome.kept if "/story/" in url}) == 60
    assert fetched.index("/story/59") < 170


@pytest.mark.every_scrapy
def test_with_a_scheduler_of_the_projects_own_a_priority_is_lowered_once(shop, tmp_path):
    settings = {"SCHEDULER": "test_order.HeapScheduler"}
    outcome, fetched = crawled(tmp_path, shop, **settings)
    assert Counter(fetched) == linked(shop)
    last = outcome.stats["dedup/requests_last"]
    assert last > 0
    assert outcome.stats["response_received_count"] == len(fetched) + outcome.stats.get("robotstxt/response_count", 0)
    tail = fetched[-last // 2 :]
    assert len([path for path in tail if "x" in path or "print" in path]) > len(tail) / 2


def test_a_queue_of_the_projects_own_stays(shop, tmp_path):
    outcome, fetched = crawled(tmp_path, shop, SCHEDULER_PRIORITY_QUEUE="scrapy.pqueues.ScrapyPriorityQueue")
    assert outcome.stats["dedup/requests_last"] > 0
    assert len({path.split("?")[0] for path in fetched if "/p/" in path}) == PRODUCTS


def test_switched_off_or_in_a_dry_run_the_order_is_scrapys(shop, tmp_path):
    _, plain = crawled(tmp_path / "plain", shop, **IN_ORDER, **PLAIN)
    for settings in ({"DEDUP_PRIORITY_ADJUST": 0}, {"DEDUP_ACTION": "dry-run"}):
        outcome, fetched = crawled(tmp_path / min(settings), shop, **IN_ORDER, **settings)
        assert fetched == plain, settings
        assert "dedup/requests_last" not in outcome.stats


class WithoutTheAnnexe(Addon):
    """The add-on where `order/` is not installed."""

    def update_settings(self, settings):
        sys.modules["dedup_middleware.order"] = None
        super().update_settings(settings)


@pytest.mark.every_scrapy
@pytest.mark.parametrize(
    ("settings", "is_ours"),
    [
        ({}, True),
        ({"DEDUP_PRIORITY_ADJUST": 0}, False),
        ({"ADDONS": {"test_order.WithoutTheAnnexe": 500}}, False),
    ],
    ids=["default", "switched off", "not installed"],
)
def test_a_queue_of_scrapy_is_replaced_only_where_requests_are_put_off(shop, tmp_path, settings, *, is_ours):
    shown = {"EXTENSIONS": {"test_order.ShowQueue": 0}}
    outcome, fetched = crawled(tmp_path, shop, **shown, **settings)
    assert Counter(fetched) == linked(shop)
    assert outcome.dropped
    assert outcome.stats["queue"] == ("TwoTierQueue" if is_ours else "DownloaderAwarePriorityQueue")
    assert ("dedup/requests_last" in outcome.stats) == is_ours
    explained = run_scrapy(tmp_path, "dedup", "explain", fetched_url(outcome))
    assert ("Would be fetched last: " in explained.stdout) == is_ours


def fetched_url(outcome):
    return next(record["url"] for record in outcome.records if "?sid=" in record["url"])


class ShowQueue:
    """An extension that shows the class of the scheduler's queues as a stat."""

    @classmethod
    def from_crawler(cls, crawler):
        kind = load_object(crawler.settings["SCHEDULER_PRIORITY_QUEUE"])
        crawler.stats.set_value("queue", kind.__name__)
        return cls()


@pytest.mark.parametrize("wanted", [{"priority": 1}, {"dont_filter": True}, {"meta": {"dedup": False}}])
def test_what_a_spider_wants_at_once_is_not_put_off(shop, tmp_path, wanted):
    limit = {"CLOSESPIDER_PAGECOUNT": 100} if "dont_filter" in wanted else {}
    outcome, _ = crawled(tmp_path, shop, FOLLOW_WITH=wanted, **limit)
    assert "dedup/requests_last" not in outcome.stats


def test_links_of_an_api_are_not_put_off(shop, tmp_path):
    links = [f"/p/{n}?sid=api{n}x{k}" for k in range(4) for n in range(PRODUCTS)]
    shop.add("/", Answer(json.dumps({"products": links}), headers={"Content-Type": "application/json"}))
    _, fetched = crawled(tmp_path, shop, **IN_ORDER)
    assert set(fetched[1 : 1 + len(links)]) == set(links)


@pytest.mark.every_scrapy
@pytest.mark.parametrize(
    "place",
    [
        "order.order:Order.learn",
        "order.order:Order.is_last",
        "order.order:Order.place_of",
        "order.queue:TwoTierQueue._is_busy",
    ],
)
def test_after_a_defect_requests_come_as_they_are(shop, crawl, place):
    settings = BREADTH_FIRST | faults(place, nth=10, kind="bug")
    outcome = crawl("sample_spiders.Followers", url=shop.url("/"), settings=settings)
    assert len({path.split("?")[0] for path in shop.paths() if "/p/" in path}) == PRODUCTS
    (line,) = outcome.problems
    assert "the order of requests failed, and the crawl goes on without; please report it" in line


def test_a_full_disk_costs_no_request(shop, tmp_path):
    settings = BREADTH_FIRST | faults("order.queue:TwoTierQueue._put_off", kind="full", every=True)
    run_job(tmp_path, write_job(tmp_path, "sample_spiders.Followers", url=shop.url("/"), settings=settings))
    assert Counter(shop.paths()) == linked(shop)


# --- what is shown


@pytest.mark.every_scrapy
def test_what_was_fetched_last_is_counted_and_explained(shop_crawl):
    last = shop_crawl.outcome.stats["dedup/requests_last"]
    crawls = Crawls()
    for line in lines(shop_crawl.folder / "records.jsonl"):
        crawls.add(line)
    summary = crawls.summary()
    assert summary["requests_last"] == last
    assert sum(form["requests"] for form in summary["last"]) == last
    assert {form["form"].partition("/")[2] for form in summary["last"]} <= {"p/*?sid", "p/*?view"}
    (sid,) = [form for form in summary["last"] if form["form"].endswith("?sid")]
    assert 0 < sid["nothing"] <= sid["pages"]
    url = shop_crawl.shop.url("/p/3?sid=another")
    explained = run_scrapy(shop_crawl.folder, "dedup", "explain", url)
    assert (explained.returncode, explained.stdout) == (3, "")
    assert f"{url} was not found in the store" in explained.stderr
    assert f"The nearest URL there is {shop_crawl.shop.url('/p/3')}" in explained.stderr
    put_off = f"were put off: {sid['nothing']} of {sid['pages']} pages of that form brought nothing new."
    assert f"Requests of its form {sid['form']} {put_off}" in explained.stderr
    fetched = next(record["url"] for record in shop_crawl.outcome.records if "?sid=" in record["url"])
    shown = run_scrapy(shop_crawl.folder, "dedup", "explain", fetched).stdout
    assert f"Would be fetched last: {sid['nothing']} of {sid['pages']} pages of this form" in shown


def test_a_crawl_that_keeps_another_page_of_a_text_is_no_counter_example():
    def found(crawl, first, second):
        for n in range(3):
            original, copy = (f"{HOST}/p/{n}{query}" for query in (first, second))
            yield Record("2026-11-20T12:00:00+00:00", "s", crawl, original, "new")
            yield Record("2026-11-20T12:00:00+00:00", "s", crawl, copy, "duplicate", "dropped", original)

    both = [*found("a", "", "?sid=1"), *found("b", "?sid=1", "")]
    (rule,) = learned(both)
    assert (len(rule.texts), rule.against, rule.holds) == (3, 0, True)
    other = Record("2026-11-20T12:00:00+00:00", "s", "b", f"{HOST}/p/2?sid=2", "new")
    (rule,) = learned([*both, other])
    assert (rule.against, rule.against_url) == (1, other.url)


@pytest.mark.every_scrapy
def test_rules_are_read_from_the_records(shop_crawl, tmp_path):
    shop, folder = shop_crawl.shop, shop_crawl.folder
    lines = [json.loads(line) for line in run_scrapy(folder, "dedup", "rules", "--json").stdout.splitlines()]
    (rule,) = [line for line in lines if line["name"].endswith("/p/* without sid")]
    assert rule["holds"]
    assert rule["texts"] > 10
    assert rule["against"] == 0
    shown = run_scrapy(folder, "dedup", "rules", "--host", "127.0.0.1").stdout
    assert f"holds  {rule['texts']} texts, 0 against\n    {rule['name']}" in shown
    assert "No URL rule found yet" in run_scrapy(folder, "dedup", "rules", "--host", "other.example").stdout
    exported = tmp_path / "rules.json"
    assert run_scrapy(folder, "dedup", "rules", "--export", str(exported)).returncode == 0
    rules = json.loads(exported.read_text())
    assert {"order": 100, "processor": "queryRemoval", "args": ["sid"]}.items() <= rules[0].items() or len(rules) > 1
    assert all(rule["urlPattern"]["include"] == [f"127.0.0.1:{shop.port}/p/"] for rule in rules)


STORIES = 20


@pytest.mark.parametrize("way", ["links", "redirects"])
def test_what_another_site_links_puts_nothing_off(site, tmp_path, way):
    """A page number that is too high shows the first page again. Links to it elsewhere put no second page off."""

    def last(linked):
        """Return how many requests of a crawl are put off, where another site has *linked* so many made-up pages."""
        for n in range(STORIES):
            for page, text in ((0, n), (1, 100 + n), (99, n)):
                site.add(f"/story/{n}/{page}", article(f"Story {n}", story(text)))
        firsts = tuple(f"/story/{n}/0" for n in range(STORIES))
        site.add("/all", article("All", ["All stories."], (*firsts, "/more")))
        site.add("/more", article("More", ["Their other pages."], tuple(f"/story/{n}/1" for n in range(STORIES))))
        made_up = tuple(site.url(f"/story/{n}/99") for n in range(linked))
        if way == "redirects":
            made_up = tuple(site.add(f"/go/{n}", redirect(url), host=1) for n, url in enumerate(made_up))
        site.add("/", article("Elsewhere", ["Links."], (*made_up, site.url("/all"))), host=1)
        command = write_job(
            tmp_path / f"{linked}", "sample_spiders.Followers", url=site.url("/", host=1), settings=BREADTH_FIRST
        )
        outcome = run_job(tmp_path / f"{linked}", command)
        assert len({url for url in outcome.kept if "/story/" in url}) == 2 * STORIES
        return outcome.stats.get("dedup/requests_last", 0)

    assert last(6) == last(0)
