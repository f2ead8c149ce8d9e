"""A set-up that cannot do what its author means is named in one line, with what to do."""

import pytest
from crawling import run_job, run_scrapy, write_job
from local_site import Answer
from prose import article, blog, story

from dedup_middleware.errors import ConfigError
from dedup_middleware.settings import Config
from dedup_middleware.stores import refusals

ADDONS = 'set ADDONS = {"dedup_middleware.Addon": 500}'
MIDDLEWARES = "dedup_middleware.plugin.spider_middleware"
SPIDER = "sample_spiders.OneByOne"


def by_hand(folder, url, **settings):
    return run_job(folder, write_job(folder, SPIDER, plugin=False, settings=settings, urls=url))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {
                "SPIDER_MIDDLEWARES": {
                    f"{MIDDLEWARES}.DedupSpiderMiddleware": 5,
                    f"{MIDDLEWARES}.DedupCallbackMiddleware": 900,
                }
            },
            f"without its extension dedup does nothing: {ADDONS}",
        ),
        ({"SPIDER_MIDDLEWARES": {"dedup_middleware.Addon": 5}}, "it is an add-on, and no middleware, pipeline or ext"),
        (
            {"EXTENSIONS": {"dedup_middleware.plugin.extension.DedupExtension": 5}, "DEDUP_STORE": "memory:"},
            f"and DedupCallbackMiddleware and DedupItemPipeline: {ADDONS}",
        ),
    ],
    ids=["middlewares", "addon", "extension"],
)
def test_what_is_named_by_hand(site, tmp_path, settings, words):
    url = site.add("/a", article("A", story(1)))
    outcome = by_hand(tmp_path, url, **settings)
    assert len([line for line in outcome.problems if words in line]) == 1
    assert outcome.kept == [url]


def test_a_plugin_that_is_off_is_one_line(site, crawl):
    outcome = crawl(SPIDER, urls=site.add("/a", article("A", story(1))), settings={"DEDUP_ENABLED": False})
    (line,) = [line for line in outcome.log.splitlines() if "dedup: " in line]
    assert line.endswith("INFO: dedup: off, because DEDUP_ENABLED is false: no page is checked, and nothing is dropped")


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        ("leveldb//tmp/x", "leveldb:/tmp/x"),
        ("sqlite//x", "sqlite:/x"),
        ("redis//host/1", "redis://host/1"),
        ("memory", "memory:"),
        ("rocksdb", "rocksdb:"),
    ],
)
def test_a_uri_without_its_colon_makes_no_folder(value, meant, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=f"its colon is missing, write '{meant}'"):
        Config.from_settings({"DEDUP_STORE": value}, None)
    assert Config.from_settings({"DEDUP_STORE": f"./{value}"}, None).store.endswith(value.replace("//", "/"))
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DEDUP_STORE", "sqlite://user:pass-word@h"),
        ("DEDUP_STORE", "leveldb:////user:pass-word@h/x"),
        ("DEDUP_STORE", "redis//user:pass-word@h"),
        ("DEDUP_STORE", "redis:/user:pass-word@h"),
        ("DEDUP_STORE", "rediss://user:pass-word@h:0"),
        ("DEDUP_STORE", "postgres://user:pass-word@h"),
        ("DEDUP_STORE", "other://pass-word/heim@host"),
        ("DEDUP_STORE", "other:host?password=pass-word"),
        ("DEDUP_STORE", "user:pass-word@h"),
        ("DEDUP_LOG", "http://user:pass-word@h/log"),
        ("DEDUP_SCOPE", "user:pass-word@h"),
    ],
)
def test_no_error_about_a_setting_repeats_a_password(name, value):
    with pytest.raises(ConfigError, match=name) as caught:
        Config.from_settings({name: value}, None)
    assert "pass-word" not in str(caught.value)


def test_no_error_about_a_store_repeats_a_password():
    uri = "theirs://user:pass-word@host/x"
    for error in (
        *(make(uri) for make in (refusals.absent, refusals.foreign, refusals.locked, refusals.closed)),
        *(make(uri, "detail") for make in (refusals.corrupt, refusals.away, refusals.no_path)),
        refusals.failed(uri, "read", "detail"),
        refusals.reset(uri),
    ):
        assert "pass-word" not in str(error)
        assert "host/x" in str(error)


def test_two_stores_in_one_default_log_are_named(site, tmp_path):
    urls = ",".join(
        [site.add("/a", article("A", story(1))), site.add("/b", blog("B", story(1)), host=1)],
    )
    jobdir = {"JOBDIR": str(tmp_path / "job"), "DEDUP_LOG": None}
    stores = [f"sqlite:{tmp_path / name}" for name in ("one", "one", "two")]
    problems = []
    for store in stores:
        command = write_job(tmp_path, SPIDER, settings=jobdir | {"DEDUP_STORE": store}, urls=urls, afresh=True)
        problems.append(run_job(tmp_path, command).problems)
    assert problems[:2] == [[], []]
    (line,) = problems[2]
    assert f"had another store (DEDUP_STORE={stores[0]})" in line
    assert "Set DEDUP_LOG to give each store its own records" in line


def test_another_extractor_on_a_store_is_one_warning(site, tmp_path):
    url = site.add("/a", article("A", story(1)))
    problems = []
    for extractor in ("weighted-dom", "tags", "tags"):
        settings = {"DEDUP_EXTRACTOR": extractor, "DEDUP_LOG": str(tmp_path / "kept.jsonl")}
        command = write_job(tmp_path, SPIDER, settings=settings, urls=url, afresh=True)
        problems.append(run_job(tmp_path, command).problems)
    assert (problems[0], problems[2]) == ([], [])
    (line,) = problems[1]
    assert "DEDUP_EXTRACTOR is 'tags', and the last crawl with this store had 'weighted-dom'" in line
    assert "Set 'weighted-dom' again, or begin with a new store: `scrapy dedup store reset -s DEDUP_STORE=" in line
    found = run_scrapy(tmp_path, "dedup", "doctor", "-s", "DEDUP_EXTRACTOR=density").stdout
    assert "DEDUP_EXTRACTOR is 'density'" in found


def rss(stories):
    items = "".join(f"<item><title>{n}</title><description>{story(n)[0]}</description></item>" for n in stories)
    return Answer(f"<rss><channel>{items}</channel></rss>", headers={"Content-Type": "application/rss+xml"})


def test_a_crawl_whose_items_come_from_unchecked_pages_is_named(site, crawl):
    pages = [{"url": site.add(f"/{n}", article("A", story(n)))} for n in range(3)]
    feeds = [{"url": site.add("/rss", rss(range(20))), "callback": "parse_rss"}]
    (line,) = crawl("sample_spiders.Steps", steps=pages + feeds, folder="feeds").problems
    assert "20 of 23 items were not checked for duplicates. The most frequent reason: other_content_type (20)" in line
    assert "DEDUP_ITEM_FIELDS" in line
    fields = {"DEDUP_ITEM_FIELDS": ["text"]}
    assert crawl("sample_spiders.Steps", steps=pages + feeds, settings=fields, folder="fields").problems == []


def test_standard_output_needs_a_format(site, crawl):
    folder = crawl(SPIDER, urls=site.add("/a", article("A", story(1))), folder="a").folder
    done = run_scrapy(folder, "dedup", "dropped", "-o", "-")
    assert (done.returncode, done.stdout) == (1, "")
    assert "Name it, as in -o -:jsonlines." in done.stderr
    for command in (["report", "-o"], ["rules", "--export"]):
        done = run_scrapy(folder, "dedup", *command, "-")
        assert (done.returncode, done.stdout) == (1, "")
        assert "Name a file, or /dev/stdout for standard output." in done.stderr
    assert not (folder / "-").exists()


def test_why_no_item_of_a_page_is_stored(site, crawl):
    first = site.add("/first", article("First", story(1)))
    copy = site.add("/copy", blog("Copy", story(1)), host=1)
    settings = {"DEDUP_DROPPED_SIZE": 0}
    outcome = crawl(SPIDER, urls=f"{first},{copy}", settings=settings, folder="a")
    assert [item["url"] for item in outcome.dropped] == [copy]

    def why(url):
        done = run_scrapy(outcome.folder, "dedup", "dropped", url)
        assert (done.returncode, done.stdout) == (3, "")
        return done.stderr.removeprefix("dedup: ").strip()

    assert why(first) == f"{first} was kept, and none of its items was dropped. `scrapy dedup explain URL` has more."
    assert why(copy).startswith(f"No item of {copy} is stored any more. Old ones are removed: see DEDUP_DROPPED_SIZE")
    assert why("http://nowhere.example/").startswith("http://nowhere.example/ was not found in the store")
