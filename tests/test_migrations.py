"""Stores that earlier versions have written are taken on: what they know, what they owe, and what they should not keep.

``stores/earlier/schema2-*.tar.xz`` were written by the version before schema 3, with a feed: a crawl of the pages a,
its copy b and c, that came to its end; then one of d and its copy e that was killed before d was sealed. The requests
of b and e had credentials. ``schema3-*.tar.xz`` by the version before schema 4: a crawl of a, its copy b and c, whose
items had the text. ``schema4-*.tar.xz`` by the version before schema 5: a and c, and b, a copy of a on another host,
whose items had the text; then d, and its copy e, by a crawl that was killed before d was sealed.
"""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from crawling import run_job, write_job
from engines import need
from prose import article, blog, story

from dedup_middleware import Deduplicator
from dedup_middleware.delivery.sealing import recover
from dedup_middleware.errors import StoreVersionError
from dedup_middleware.fingerprints import ClauseFingerprinter
from dedup_middleware.index import codec, journal_codec
from dedup_middleware.index.codec import NEXT_PLACE_KEY, decode_line
from dedup_middleware.index.counts import repeats_of
from dedup_middleware.index.migrations import MIGRATIONS
from dedup_middleware.index.opening import index_of
from dedup_middleware.index.packing import unpacked
from dedup_middleware.inspection.explain import explain
from dedup_middleware.inspection.stats import stats
from dedup_middleware.settings.config import Config
from dedup_middleware.stores import open_store, resolved_uri
from dedup_middleware.stores.layout import HEADER_KEY, SCHEMA_VERSION, Header

if TYPE_CHECKING:
    from dedup_middleware.stores import OpenStore

EARLIER = Path(__file__).parent / "stores" / "earlier"
OLD = "http://old.example"
PAGES = {
    f"{OLD}/a": article("a", story(1)),
    f"{OLD}/b?token=s3cret": blog("b", story(1)),
    f"{OLD}/c": article("c", story(2)),
    f"{OLD}/d": article("d", story(3)),
    f"{OLD}/e": blog("e", story(3)),
    "http://new.example/c": blog("c", story(2)),
}


def unpacked_store(schema: int, backend: str, folder: Path) -> str:
    """Return the URI of a store of *schema*."""
    need(backend)
    shutil.unpack_archive(EARLIER / f"schema{schema}-{backend}.tar.xz", folder, filter="data")
    return f"{backend}:{folder / 'store'}"


@pytest.fixture(params=["leveldb", "sqlite"])
def earlier(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return unpacked_store(2, request.param, tmp_path)


def opened(uri: str) -> contextlib.closing[OpenStore]:
    return contextlib.closing(open_store(uri, fingerprint_scheme=ClauseFingerprinter.scheme, migrations=MIGRATIONS))


def test_it_is_the_store_that_it_was(earlier: str) -> None:
    with opened(earlier) as store:
        assert (store.created, store.migrated_from) == (False, 2)
        assert store.header.schema == SCHEMA_VERSION
        index = index_of(store, common=3, text_limit=20_000)
        recover(index)
        pages = {page.url.removeprefix(OLD): page for page in index.pages()}
        assert {url: page.owner is None for url, page in pages.items()} == {
            "/a": True,
            "/b?token=s3cret": False,
            "/c": True,
            "/e": False,
        }
        assert pages["/b?token=s3cret"].owner == pages["/a"].number
        assert pages["/a"].delivery.feeds is None
        assert index.text(pages["/a"].number) == story(1)
        assert [entry.identity for entry in index.journal.recovered.values()] == [pages["/e"].identities[0]]
    with opened(earlier) as store:
        assert store.migrated_from is None


def test_kept_requests_lose_their_credentials_and_those_to_be_made_again_do_not(earlier: str) -> None:
    with opened(earlier) as store:
        kept = [journal_codec.decode_entry(value)[2] for _, value in store.scan(*codec.REQUESTS)]
        owed = [journal_codec.decode_entry(value)[2] for _, value in store.scan(*codec.JOURNAL)]
    assert (len(kept), len(owed)) == (2, 1)
    assert all(b"Authorization" not in unpacked(request)["headers"] for request in kept)
    assert all("cookies" in unpacked(request) and not unpacked(request)["cookies"] for request in kept)
    assert all(b"Authorization" in unpacked(request)["headers"] for request in owed)


def test_a_crawl_takes_it_on_and_pays_what_the_killed_one_owed(earlier: str, tmp_path: Path) -> None:
    folder = tmp_path / "crawl"
    settings = {
        "DOWNLOADER_MIDDLEWARES": {"sample_spiders.Archive": 900},
        "ARCHIVE": PAGES,
        "COOKIES_ENABLED": False,
        "DEDUP_STORE": earlier,
        "FEEDS": {"feed.jsonl": {"format": "jsonlines"}},
    }
    steps = [{"url": "http://new.example/c"}]
    outcome = run_job(folder, write_job(folder, "sample_spiders.Steps", steps=steps, settings=settings))
    assert (outcome.exit_status, outcome.problems) == (0, [])
    assert [item["url"] for item in outcome.lines("feed.jsonl")] == [f"{OLD}/e"]
    assert [item["url"] for item in outcome.dropped] == ["http://new.example/c"]
    assert outcome.record("http://new.example/c")["owner_url"] == f"{OLD}/c"
    assert "migrated from schema 2" in outcome.log
    with opened(earlier) as store:
        assert store.migrated_from is None


def test_an_upgrade_that_is_interrupted_is_done_again(earlier: str) -> None:
    def interrupted(store: OpenStore) -> None:
        MIGRATIONS[2](store)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        open_store(earlier, fingerprint_scheme=ClauseFingerprinter.scheme, migrations={**MIGRATIONS, 2: interrupted})
    with opened(earlier) as store:
        assert store.migrated_from == 2


def test_one_that_is_too_old_or_newer_is_refused_untouched(earlier: str) -> None:
    with opened(earlier) as store:
        header = Header.decode(store.get_many([HEADER_KEY])[0] or b"")
        store.write([(HEADER_KEY, Header(SCHEMA_VERSION + 1, header.scheme, header.key, header.created).encode())])
    with pytest.raises(StoreVersionError, match=r"newer than schema .* upgrade dedup-middleware"):
        open_store(earlier, fingerprint_scheme=ClauseFingerprinter.scheme, migrations=MIGRATIONS)


def test_it_becomes_as_private_as_a_new_one(earlier: str) -> None:
    path = Path(resolved_uri(earlier).partition(":")[2])
    with opened(earlier):
        pass
    files = [path, *path.rglob("*")] if path.is_dir() else list(path.parent.glob("store*"))
    assert files
    assert {file.stat().st_mode & 0o077 for file in files} == {0}


@pytest.fixture(params=["leveldb", "sqlite"])
def third(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return unpacked_store(3, request.param, tmp_path)


def test_owners_whose_titles_and_items_are_not_known_drop_little_until_they_are_delivered_again(
    third: str, tmp_path: Path
) -> None:
    with opened(third) as store:
        assert (store.migrated_from, store.header.schema) == (3, SCHEMA_VERSION)
        pages = {page.url.removeprefix(OLD): page for page in index_of(store, common=3, text_limit=20_000).pages()}
        assert {url: page.owner is None for url, page in pages.items()} == {"/a": True, "/b": False, "/c": True}
        assert (pages["/a"].features, pages["/a"].item_content) == (None, None)
    a = f"{OLD}/a"
    # On its own host; with text; without.
    copies = [f"{OLD}/copy", "http://new.example/text", "http://new.example/bare"]
    settings = {
        "DOWNLOADER_MIDDLEWARES": {"sample_spiders.Archive": 900},
        "ARCHIVE": {url: article("a", story(1)) for url in (a, *copies)},
        "DEDUP_STORE": third,
    }

    def crawled(folder: str, *urls: str) -> tuple[list[str], list[str]]:
        steps = [{"url": url, "callback": "parse" if "bare" in url else "parse_text"} for url in urls]
        outcome = run_job(
            tmp_path / folder, write_job(tmp_path / folder, "sample_spiders.Steps", steps=steps, settings=settings)
        )
        assert (outcome.exit_status, outcome.problems) == (0, [])
        return outcome.delivered, [item["url"] for item in outcome.dropped]

    assert crawled("bare", copies[2]) == ([], [copies[2]])
    assert crawled("again", a, *copies) == ([a], copies)


@pytest.fixture(params=["leveldb", "sqlite"])
def fourth(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return unpacked_store(4, request.param, tmp_path)


def test_pages_in_json_are_read_and_the_hashes_of_a_store_stay_as_long_as_they_are(fourth: str) -> None:
    with opened(fourth) as store:
        assert (store.migrated_from, store.header.schema, store.header.hash_bytes) == (4, SCHEMA_VERSION, 8)
        index = index_of(store, common=3, text_limit=20_000)
        recover(index)
        pages = {page.url[-1]: page for page in index.pages()}
        assert {url: page.owner is None for url, page in pages.items()} == {
            "a": True,
            "b": False,
            "c": True,
            "e": False,
        }
        assert pages["a"].features is not None
        assert story(1)[0].startswith(pages["a"].features.title)
        assert pages["a"].item_content is not None
        assert [entry.identity for entry in index.journal.recovered.values()] == [pages["e"].identities[0]]
    config = {"DEDUP_STORE": fourth, "DEDUP_LOG": ""}
    with Deduplicator(store=fourth) as dedup:
        copy = dedup.add("http://new.example/c", blog("c", story(2)), item={"text": "\n".join(story(2))})
        assert copy.owner_url == f"{OLD}/c"
        assert not dedup.add(f"{OLD}/d", article("d", story(3)), item={"text": "\n".join(story(3))}).is_duplicate
    with opened(fourth) as store:
        index = index_of(store, common=3, text_limit=20_000)
        pages = {page.url: page for page in index.pages()}
        assert {len(h) for page in pages.values() for h in page.hashes} == {8}
        assert {len(key) for key, _ in store.scan(b"c", b"d")} == {9}
        counts = [len([*filter(kind, pages.values())]) for kind in (lambda p: p.owner is None, lambda p: p.owner)]
        repeats = {page.number for page in pages.values() if page.owner == pages[f"{OLD}/a"].number}
    for _ in range(2):
        sums = stats(Config.from_settings(config, None))
        assert [sums["owners"], sums["duplicates"]] == counts
        assert explain(Config.from_settings(config, None), f"{OLD}/a")["stored"]["repeated_by"] == [
            "http://copy.example/b"
        ]
    with opened(fourth) as store:
        assert decode_line(store.get_many([NEXT_PLACE_KEY])[0]).is_counted
        assert set(repeats_of(store, pages[f"{OLD}/a"].number)) == repeats


def test_commands_leave_an_older_store_as_it_is(fourth: str) -> None:
    config = Config.from_settings({"DEDUP_STORE": fourth, "DEDUP_LOG": ""}, None)
    sums = stats(config)
    assert (sums["owners"], sums["duplicates"], sums["journalled"]) == (3, 2, 1)
    assert explain(config, f"{OLD}/d")["stored"]["repeated_by"] == ["http://copy.example/e"]
    with opened(fourth) as store:
        assert store.migrated_from == 4
        assert not decode_line(store.get_many([NEXT_PLACE_KEY])[0]).is_counted


def test_pages_of_which_nobody_knows_the_bytes_are_read_once_more(fourth: str, tmp_path: Path) -> None:
    copy, interrupted = "http://copy.example/b", "http://copy.example/e"
    pages = {f"{OLD}/a": article("a", story(1)), copy: article("b", story(1)), f"{OLD}/c": article("c", story(2))}
    settings = {
        "DOWNLOADER_MIDDLEWARES": {"sample_spiders.Archive": 900},
        "ARCHIVE": {**pages, interrupted: blog("e", story(3))},
        "DEDUP_STORE": fourth,
        "FEEDS": {"feed.jsonl": {"format": "jsonlines"}},
    }
    steps = [{"url": url, "callback": "parse_text"} for url in pages]
    for unread in (0, 3):
        folder = tmp_path / str(unread)
        outcome = run_job(folder, write_job(folder, "sample_spiders.Steps", steps=steps, settings=settings))
        assert (outcome.exit_status, outcome.problems) == (0, [])
        assert [url for url in outcome.delivered if url != interrupted] == [f"{OLD}/a", f"{OLD}/c"]
        assert outcome.stats.get("dedup/unread", 0) == unread
