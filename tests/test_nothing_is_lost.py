"""Pages and items that only look like duplicates are kept, and so are copies whose original was lost."""

import contextlib
import gzip
import socketserver
import threading

import pytest
from fault_injection import faults
from prose import article, blog, several, story
from sample_spiders import Mishap, held
from scrapy.logformatter import LogFormatter
from scrapy.utils.conf import build_component_list
from scrapy.utils.defer import deferred_from_coro, ensure_awaitable
from scrapy.utils.misc import build_from_crawler
from test_claims_in_crawls import pair
from test_items import FIELDS, api_steps, entry, serve_json
from twisted.internet.defer import succeed

# --- parts of a project


class OwnProcessor:
    """The ``ITEM_PROCESSOR`` of a project: it knows nothing of ``from_crawler``."""

    def __init__(self, crawler):
        self._pipelines = [kind() for kind in build_component_list(crawler.settings.getwithbase("ITEM_PIPELINES"))]

    @classmethod
    def from_crawler(cls, crawler):
        return cls(crawler)

    async def open_spider_async(self):
        pass

    async def close_spider_async(self):
        pass

    async def process_item_async(self, item):
        for pipeline in self._pipelines:
            item = await ensure_awaitable(pipeline.process_item(item))
        return item


class PlainProcessor:
    """The same without ``async``, as projects wrote it before Scrapy had that."""

    def __init__(self, pipelines):
        self._pipelines = pipelines

    @classmethod
    def from_crawler(cls, crawler):
        return cls([kind() for kind in build_component_list(crawler.settings.getwithbase("ITEM_PIPELINES"))])

    def open_spider(self, spider):
        return succeed(None)

    def close_spider(self, spider):
        return succeed(None)

    def process_item(self, item, spider):
        for pipeline in self._pipelines:
            item = pipeline.process_item(item)
        return succeed(item)


class HoldingProcessor(PlainProcessor):
    """The same; it gives pipelines their crawler and the spider, and holds the first item until others have come."""

    def __init__(self, crawler):
        kinds = build_component_list(crawler.settings.getwithbase("ITEM_PIPELINES"))
        super().__init__([build_from_crawler(kind, crawler) for kind in kinds])
        self._crawler = crawler
        self._came = 0

    @classmethod
    def from_crawler(cls, crawler):
        return cls(crawler)

    def process_item(self, item, spider):
        for pipeline in self._pipelines:
            item = pipeline.process_item(item, spider)
        self._came += 1
        return deferred_from_coro(self._left(item, is_held=self._came == 1))

    async def _left(self, item, *, is_held):
        if is_held:
            await held(self._crawler)
        return item


def processed_by(processor):
    """Return the settings with which *processor* runs our pipeline alone, and a feed shows what comes out."""
    named = f"test_nothing_is_lost.{processor}"
    return {"ITEM_PROCESSOR": named, "ITEM_PIPELINES": {}, "FEEDS": {"feed.jsonl": {"format": "jsonlines"}}}


class Doorkeeper:
    """A spider middleware that lets no page with a closed door reach its callback."""

    def process_spider_input(self, response):
        if "/closed" in response.url:
            raise Mishap


class BrokenFormatter(LogFormatter):
    def dropped(self, item, exception, response, spider):
        raise Mishap


def products(site, number, finish="finish_item"):
    """Serve products with a text of their own, and for each a page of terms, which are the same for all."""
    terms = [site.add(f"/terms/{n}", article("Terms", story(300))) for n in range(number)]
    urls = [site.add(f"/product/{n}", article("Product", story(n, 3), links=(terms[n],))) for n in range(number)]
    steps = [{"url": url, "callback": "begin_item", "cb_kwargs": {"finish": finish}} for url in urls]
    return urls, terms, steps


def test_items_that_are_finished_on_pages_with_the_same_text_are_kept(site, crawl):
    urls, (first, *terms), steps = products(site, 6)
    outcome = crawl("sample_spiders.Steps", steps=steps)
    assert [(item["url"], item["text"]) for item in outcome.items] == [(u, story(n, 3)) for n, u in enumerate(urls)]
    assert outcome.dropped == []
    assert {r["url"]: r["original_url"] for r in outcome.records} == dict.fromkeys(terms, first)
    assert {(r["verdict"], r["outcome"], r["reason"]) for r in outcome.records} == {("related", "kept", "extra_text")}
    assert outcome.problems == []


# --- pages with several items own what these say


def test_a_front_page_that_gives_headlines_owns_no_story(site, crawl):
    numbers = range(1, 4)
    front = site.add("/", several("Front", [[f"Headline {n}", *story(n)] for n in numbers]))
    details = [site.add(f"/{n}", article(f"Headline {n}", story(n))) for n in numbers]
    copy = site.add("/copy", blog("Copy", story(1)), host=1)
    steps = [{"url": front, "callback": "parse_headlines"}, *({"url": url} for url in [*details, copy])]
    outcome = crawl("sample_spiders.Steps", steps=steps, folder="front")
    assert outcome.kept == [front] * 3 + details
    assert {r["url"]: r["original_url"] for r in outcome.records} == {copy: details[0]}

    again = crawl("sample_spiders.Steps", steps=steps, folder="front", afresh=True)
    assert again.kept == [front] * 3 + details
    assert again.problems == []


# --- feeds

JSON_LINES = {"format": "jsonlines"}


@pytest.mark.parametrize("options", [{}, {"batch_item_count": 1}], ids=["whole", "batches"])
def test_an_item_that_its_feed_cannot_write_owns_nothing(site, crawl, options):
    before = site.add("/before", article("Before", story(1)))
    a, b = pair(site, 2)
    c = site.add("/c", article("c", story(2)))
    steps = [{"url": before}, {"url": a, "callback": "parse_unwritable"}, {"url": b}, {"url": c}]
    settings = {"FEEDS": {"feed%(batch_id)d.jsonl": {**JSON_LINES, **options}}}
    outcome = crawl("sample_spiders.Steps", steps=steps, settings=settings)
    assert outcome.kept == [before, a, b]
    assert outcome.record(c)["original_url"] == b
    assert [i["url"] for i in outcome.dropped] == [c]
    fed = [i["url"] for path in sorted(outcome.folder.glob("feed*.jsonl")) for i in outcome.lines(path.name)]
    assert fed == [before, b]
    (problem,) = outcome.problems
    assert "Error caught on signal handler" in problem


# --- what a project's middlewares give in place of a page


def test_what_an_errback_gives_for_a_page_that_its_callback_never_got_is_kept(site, crawl):
    closed = [site.add(f"/closed/{n}", article("Closed", story(1))) for n in range(3)]
    a, b = pair(site, 1)
    steps = [*({"url": url, "errback": "give_up"} for url in closed), {"url": a}, {"url": b}]
    settings = {"SPIDER_MIDDLEWARES": {"test_nothing_is_lost.Doorkeeper": 543}}
    outcome = crawl("sample_spiders.Steps", steps=steps, settings=settings)
    assert outcome.kept == [*closed, a]
    assert all(i["gave_up"] for i in outcome.items[:3])
    assert [i["url"] for i in outcome.dropped] == [b]
    assert outcome.record(b)["original_url"] == a


# --- pages that are incomplete, or may be


@contextlib.contextmanager
def closing_server(bodies, kind="text/html"):
    """Serve *bodies* by path on loopback, each after its headers, and close the connection; yield the root URL."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            path = self.rfile.readline().split()[1].decode()
            while self.rfile.readline().strip():
                pass
            headers, body = bodies[path]
            self.wfile.write(f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n{headers}\r\n".encode() + body)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_a_page_that_was_cut_off_is_not_checked(site, crawl):
    whole = [article("Whole", story(n)).encode() for n in (1, 2)]
    urls = [site.add(f"/{n}", page.decode()) for n, page in enumerate(whole)]
    cut = [page[: len(page) * 9 // 10] for page in whole]
    bodies = {
        "/length": (f"Content-Length: {len(whole[0])}\r\n", cut[0]),
        "/chunked": ("Transfer-Encoding: chunked\r\n", b"%x\r\n%b\r\n" % (len(cut[1]), cut[1])),
    }
    with closing_server(bodies) as root:
        first = [root + path for path in bodies]
        steps = [{"url": url} for url in (*first, *urls)]
        outcome = crawl("sample_spiders.Steps", steps=steps, settings={"DOWNLOAD_FAIL_ON_DATALOSS": False})
    assert outcome.kept == [*first, *urls]
    assert outcome.verdicts == dict.fromkeys(first, ("unchecked", "kept"))
    assert {r["reason"] for r in outcome.records} == {"truncated_response"}
    assert outcome.stats["dedup/unchecked/truncated_response"] == 2


def test_pages_that_end_with_their_connection_are_checked(crawl):
    """HTTP/1.0 and ``Connection: close`` name no length, and nearly all such pages are complete."""
    packed = gzip.compress(blog("B", story(2)).encode())
    bodies = {
        "/a1": ("", article("A", story(1)).encode()),
        "/b1": ("Connection: close\r\n", blog("B", story(1)).encode()),
        "/a2": ("", article("A", story(2)).encode() + b"\n<!-- served in 3 ms"),
        "/b2": ("Content-Encoding: gzip\r\n", packed),
    }
    with closing_server(bodies) as root:
        outcome = crawl("sample_spiders.Steps", steps=[{"url": root + path} for path in bodies])
    assert outcome.kept == [root + "/a1", root + "/a2"]
    assert [item["url"] for item in outcome.dropped] == [root + "/b1", root + "/b2"]


# --- the start and the log line


def test_a_defect_of_ours_at_the_start_costs_nobody_a_crawl(site, crawl):
    a, b = pair(site, 1)
    fault = faults("driver.core:Detector", kind="bug")
    outcome = crawl("sample_spiders.Steps", steps=[{"url": a}, {"url": b}], settings=fault)
    assert outcome.exit_status == 0
    assert outcome.kept == [a, b]
    (line,) = outcome.problems
    assert "dedup: the plugin failed to start; the crawl goes on without it" in line
    assert outcome.stats["dedup/failures"] == 1


@pytest.mark.every_scrapy
@pytest.mark.parametrize(
    "place",
    [
        "order.requests:RequestOrder.__init__",
        "order.order:Order.learn",
        "records.signs:Signs.add",
        "driver.releases:Releaser.has_any",
    ],
)
def test_a_defect_in_an_optional_part_is_one_warning_and_the_rest_works(site, crawl, place):
    pages = [url for n in range(3) for url in pair(site, n)]
    settings = faults(place, every=True, kind="bug")
    outcome = crawl("sample_spiders.Steps", steps=[{"url": url} for url in pages], settings=settings)
    assert outcome.kept == pages[::2]
    assert [item["url"] for item in outcome.dropped] == pages[1::2]
    (line,) = outcome.problems
    assert "WARNING: dedup: " in line
    assert "please report it" in line


DEFECTS = [
    "driver.deduplicator:Deduplication.enter",
    "driver.deduplicator:Deduplication.process",
    "driver.deduplicator:Deduplication.end",
    "driver.deduplicator:Deduplication.check_item",
    "driver.deduplicator:Deduplication._repeated",
    "driver.deduplicator:Deduplication._keep",
    "driver.claiming:Claims.end",
    "driver.deduplicator:Deduplication._finish",
    "driver.claiming:Claims._write",
    "driver.comparing:content_of",
    "visits.drops:Drops.write",
    "visits.drops:Drops.note",
    "visits.durability:Durability.delivered",
    "visits.durability:Durability._settle",
    "index.index:Index.commit",
    "index.index:Index.remember_duplicate",
    "index.item_codec:encode",
    "index.dropped_items:DroppedItems.pairs",
    "index.dropped_items:DroppedItems.make_room",
    "items.reading:ItemCheck.read",
    "checks.detector:Detector.check",
    "checks.detector:Detector.judge",
    "checks.proof:Prover.check",
    "records.counts:Counts.add",
    "records.recorder:Recorder.evidence",
    "records.file:RecordLog.append",
    "plugin.downloader_middleware:identities_of",
    "plugin.shared_state:SharedState.count",
    "plugin.feeds:Feeds.wanting",
]


@pytest.mark.parametrize("place", DEFECTS)
def test_a_defect_of_ours_takes_no_item(site, crawl, place):
    """Wherever it is, and each time: every item is either kept or dropped, and one of each story is kept."""
    items = {"parse": 1, "parse_parts": 2}
    text = {callback: [story(n), story(n + 10)] for n, callback in enumerate(items)}
    pages = {site.add(f"/{callback}", several(callback, text[callback])): callback for callback in items}
    copies = {site.add(f"/{callback}/copy", several("copy", text[callback]), host=1): callback for callback in items}
    steps = [{"url": url, "callback": callback} for url, callback in (pages | copies).items()]
    outcome = crawl("sample_spiders.Steps", steps=steps, settings=faults(place, every=True, kind="bug"))
    assert outcome.exit_status == 0
    assert [url for url in outcome.kept if url in pages] == [u for u, c in pages.items() for _ in range(items[c])]
    given = outcome.kept + [item["url"] for item in outcome.dropped]
    assert sorted(given) == sorted(url for url, c in (pages | copies).items() for _ in range(items[c]))
    # Scrapy reports what is raised while its signals are sent.
    assert "please report it" in outcome.log or "Error caught on signal handler" in outcome.log


@pytest.mark.every_scrapy
@pytest.mark.parametrize("processor", ["OwnProcessor", "PlainProcessor", "HoldingProcessor"])
def test_an_item_processor_of_the_projects_own_may_make_our_pipeline(site, crawl, processor):
    a, b = pair(site, 1)
    outcome = crawl("sample_spiders.Steps", steps=[{"url": a}, {"url": b}], settings=processed_by(processor))
    assert outcome.exit_status == 0
    assert [item["url"] for item in outcome.lines("feed.jsonl")] == [a]
    assert [item["url"] for item in outcome.dropped] == [b]
    assert "log_count/ERROR" not in outcome.stats


@pytest.mark.every_scrapy
def test_an_item_processor_without_async_gets_items_and_nothing_to_await(site, crawl):
    """Also where an item would wait for its original, which is in the pipelines: it is kept."""
    first, copy, later, other = (serve_json(site, f"/{n}", [entry(s, str(n))]) for n, s in enumerate((1, 1, 1, 2)))
    settings = FIELDS | processed_by("HoldingProcessor")
    until = {"HOLD_UNTIL": {"dedup/waits/given_up": 1}}
    steps = [step | {"priority": -n} for n, step in enumerate(api_steps([first, copy]))]
    outcome = crawl("sample_spiders.Steps", steps=steps, together=True, settings=settings | until, folder="api")
    assert sorted(item["url"] for item in outcome.lines("feed.jsonl")) == ["0", "1"]
    assert outcome.stats["dedup/waits/given_up"] == 1
    assert "log_count/ERROR" not in outcome.stats
    steps = api_steps([later, other])
    again = crawl("sample_spiders.Steps", steps=steps, settings=settings, folder="api", afresh=True)
    assert sorted(item["url"] for item in again.lines("feed.jsonl")) == ["0", "1", "3"]
    assert [item["url"] for item in again.dropped] == ["2"]
    assert "log_count/ERROR" not in again.stats


def test_after_a_defect_of_ours_nothing_more_of_the_page_is_dropped(site, crawl):
    """What was not read any more may be in any of its items."""
    told = several("Parts", [story(1), story(2)])
    page, copy, last = (site.add(f"/{n}", told, host=n) for n in range(3))
    steps = [{"url": url, "callback": "parse_parts"} for url in (page, copy, last)]
    fault = faults("checks.detector:Detector.judge", kind="bug")
    outcome = crawl("sample_spiders.Steps", steps=steps, settings=fault)
    assert outcome.kept == [page, page, copy, copy]
    assert [item["url"] for item in outcome.dropped] == [last, last]
    assert outcome.stats["dedup/defects"] == 1


def test_a_formatter_that_raises_costs_no_item_its_signal(site, crawl):
    a, b = pair(site, 1)
    broken = {"LOG_FORMATTER": "test_nothing_is_lost.BrokenFormatter"}
    outcome = crawl("sample_spiders.Steps", steps=[{"url": a}, {"url": b}], settings=broken)
    assert outcome.kept == [a]
    assert [(i["url"], i["type"]) for i in outcome.dropped] == [(b, "DuplicateItem")]
    assert outcome.stats["item_dropped_count"] == 1
    assert outcome.record(b)["outcome"] == "dropped"
    (problem,) = outcome.problems
    assert "LOG_FORMATTER" in problem
