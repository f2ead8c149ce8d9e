"""Stores that are looked after: pages forgotten, exported, imported, and files compacted."""

from __future__ import annotations

import gzip
import lzma
import random
import shutil
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from crawling import Outcome, run_job, store_uri, write_job
from engines import ENGINES, need
from library import Library, contents_of
from local_site import Site
from prose import article, blog, story
from test_commands import at_a_terminal, run, run_here

from dedup_middleware import Deduplicator
from dedup_middleware.errors import StoreError, StoreLockedError
from dedup_middleware.fingerprints import ClauseFingerprinter
from dedup_middleware.index import schema
from dedup_middleware.index.forget import choose, forget
from dedup_middleware.index.shared import index_of
from dedup_middleware.index.transfer import pairs_of
from dedup_middleware.stores import open_store

if TYPE_CHECKING:
    from pathlib import Path


@dataclass
class Town:
    """A site of two hosts with copies of its stories, and what came of crawls of it: each is made once."""

    root: Path
    site: Site = field(default_factory=lambda: Site(hosts=2))
    crawls: dict[tuple[str, ...], Path] = field(default_factory=dict)

    def __post_init__(self):
        self.stories = [self.site.add(f"/{n}", article(f"Story {n}", story(n))) for n in range(1, 5)]
        self.copies = [self.site.add(f"/copy-{n}", blog(f"Story {n}", story(n)), host=1) for n in range(1, 4)]
        self.partly = self.site.add("/partly", blog("Else", [*story(1)[:3], *story(9)[:3]]), host=1)


class Shop:
    """Folders of crawls of a town's site, for one test."""

    def __init__(self, root, town):
        self.root = root
        self.site, self.stories, self.copies, self.partly = town.site, town.stories, town.copies, town.partly
        self._crawls, self._kept = town.crawls, town.root

    def crawl(self, folder, *urls):
        where, urls = self.root / folder, urls or tuple(self.all)
        if not where.exists() and urls in self._crawls:
            shutil.copytree(self._crawls[urls], where)
            return Outcome(where, 0, "")
        is_first = not where.exists()
        outcome = run_job(where, write_job(where, "sample_spiders.OneByOne", urls=",".join(urls), afresh=True))
        if is_first:
            self._crawls[urls] = self._kept / str(len(self._crawls))
            shutil.copytree(where, self._crawls[urls])
        return outcome

    @property
    def all(self):
        return [*self.stories, *self.copies, self.partly]

    def run(self, folder, *arguments):
        where = self.root / folder
        where.mkdir(exist_ok=True)
        return run_here(*arguments, "-s", f"DEDUP_STORE={store_uri(where)}", folder=self.root)

    def report(self, folder, *arguments):
        said = self.run(folder, *arguments, "--json")
        assert said.exit_status == 0, said.err
        (report,) = said.json
        return report

    def pairs(self, folder):
        return contents_of(store_uri(self.root / folder))


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    town = Town(tmp_path_factory.mktemp("town"))
    with closing(town.site):
        yield town


@pytest.fixture
def shop(tmp_path, town):
    return Shop(tmp_path, town)


def verdicts(outcome):
    names = ("url", "verdict", "outcome", "original_url", "score", "reason", "difference", "evidence")
    return sorted(tuple(map(str, map(record.get, names))) for record in outcome.records)


class TestMoving:
    def test_a_moved_store_is_the_same_store(self, shop):
        shop.crawl("a")
        shop.run("a", "allow", shop.copies[0])
        shop.run("a", "store", "export", "-o", "store.jsonl.gz")
        report = shop.report("b", "store", "import", "store.jsonl.gz")
        assert (report["originals"], report["duplicates"], report["dropped_items"]) == (5, 3, 3)
        shop.run("b", "store", "export", "-o", "again.jsonl.gz")
        assert (shop.root / "again.jsonl.gz").read_bytes() == (shop.root / "store.jsonl.gz").read_bytes()
        assert shop.pairs("b") == shop.pairs("a")
        assert shop.crawl("b", shop.partly).kept[0] == shop.copies[0]

    def test_what_a_published_method_made_moves_too(self, tmp_path):
        assert moved(tmp_path / "shingles", "shingles")

    def test_a_file_that_is_not_whole_changes_nothing(self, shop):
        shop.crawl("a", *shop.stories[:2])
        shop.run("a", "store", "export", "-o", "whole")
        lines = (shop.root / "whole").read_bytes().splitlines(keepends=True)
        header, *pairs, end = lines
        page = pairs[-1].split(b'"')[1]
        for spoilt, words in {
            b"".join(lines[:9]): "not complete",
            b"".join([*lines[:9], lines[9][:9]]): "",
            b"".join([header, *pairs, b"1\n"]): "not complete",
            b"".join([*lines, pairs[0]]): "not complete",
            b"".join([header, pairs[1], pairs[0], b"2\n"]): "line 3",
            b"".join([header, b'["%b","!"]\n' % page, b"1\n"]): "",
            b"".join([header, b'["AGhlYWRlcg==",""]\n', b"1\n"]): "line 2",
            b"".join([header, b"[" * 100_000]): "",
            b"".join([header, b'["', b"A" * 20_000_000, b'",""]\n', end]): "too long",
            gzip.compress(b"".join(lines))[:-40]: "unpacked",
            header.replace(b'"schema": ', b'"schema": 9'): "schema",
            header.replace(b'"key": "', b'"key": "0'): "",
            b'{"url": "http://a/"}\n': "not an export",
            b"": "not an export",
        }.items():
            (shop.root / "spoilt").write_bytes(spoilt)
            shop.run("b", "store", "import", "spoilt").refused("spoilt", words, "scrapy dedup store export")
            assert not (shop.root / "b" / "store").exists()
        shop.run("b", "store", "import", "absent").refused("absent", "cannot be read")
        run_here(
            "store", "import", "whole", "-s", f"DEDUP_STORE={store_uri(shop.root / 'b')}",
            "-s", "DEDUP_FINGERPRINT=shingles", folder=shop.root,
        ).refused("DEDUP_FINGERPRINT", "scheme")  # fmt: skip

    def test_only_an_empty_store_is_filled(self, shop):
        shop.crawl("a", shop.stories[0])
        shop.run("a", "store", "export", "-o", "store.jsonl")
        before = shop.pairs("a")
        shop.run("a", "store", "import", "store.jsonl").refused("is not empty", "scrapy dedup store reset")
        assert shop.pairs("a") == before
        shop.run("a", "store", "forget", shop.stories[0], "--yes")
        shop.run("a", "store", "import", "store.jsonl").refused("is not empty", "-s DEDUP_STORE=URI")

    def test_an_import_that_was_cut_off_is_no_store(self, shop, monkeypatch):
        shop.crawl("a", shop.stories[0])
        shop.run("a", "store", "export", "-o", "store.jsonl")

        def on_full_disk(*_):
            raise StoreError("the store cannot be written: No space left on device")

        with monkeypatch.context() as patched:
            patched.setattr("dedup_middleware.index.transfer._in_batches", on_full_disk)
            shop.run("b", "store", "import", "store.jsonl").refused("No space left")
        for command in (["store", "info"], ["store", "import", "store.jsonl"]):
            shop.run("b", *command).refused("was cut off", "scrapy dedup store reset")
        assert "was cut off" in shop.crawl("b", shop.stories[0]).log
        shop.run("b", "store", "reset", "--yes")
        assert shop.report("b", "store", "import", "store.jsonl")["originals"] == 1

    def test_a_file_has_what_would_be_printed_and_its_key_is_named(self, shop):
        shop.crawl("a", shop.stories[0])
        assert "key" in shop.run("a", "store", "export", "-o", "store.jsonl").err
        assert (shop.root / "store.jsonl").read_text() == shop.run("a", "store", "export").out

    def test_a_store_that_a_crawl_writes_to_is_not_copied(self, tmp_path):
        uri = f"sqlite:{tmp_path / 'store'}?shared=1"
        with Deduplicator(uri) as dedup:
            dedup.add("http://a/", text="\n".join(story(1)))
        with closing(open_store(uri, fingerprint_scheme=None)) as store:
            pairs = pairs_of(store)
            next(pairs)
            done = run("store", "forget", "--host", "a", "--yes", "-s", f"DEDUP_STORE={uri}", folder=tmp_path)
            assert done.exit_status == 0, done.err
            with pytest.raises(StoreLockedError):
                list(pairs)
            store.write([(schema.claimed_key(1), b"a worker")])
            with pytest.raises(StoreLockedError):
                list(pairs_of(store))


def moved(folder, fingerprint):
    """Tell whether a store made with *fingerprint* is the same after it has been moved."""
    folder.mkdir()
    uri = store_uri(folder)
    with Deduplicator(uri, fingerprint=fingerprint) as dedup:
        for n in range(6):
            dedup.add(f"http://h{n}/", text="\n".join(story(n % 4)), title="A title")
    named = ("-s", f"DEDUP_FINGERPRINT={fingerprint}", "-s")
    run_here("store", "export", "-o", "pages", *named, f"DEDUP_STORE={uri}", folder=folder)
    (folder / "b").mkdir()
    other = store_uri(folder / "b")
    run_here("store", "import", "pages", *named, f"DEDUP_STORE={other}", folder=folder)
    pairs = []
    for where in (uri, other):
        with closing(open_store(where, fingerprint_scheme=None)) as store:
            pairs.append(dict(store.scan(b"\x01", b"\xff" * 64)))
    assert b"m" in {key[:1] for key in pairs[0]}
    return pairs[0] == pairs[1]


def age(shop, folder, *, days, url=None):
    """Let the pages of a store, or the one at *url*, be *days* older than they are."""
    with closing(open_store(store_uri(shop.root / folder), fingerprint_scheme=None)) as store:
        for page in index_of(store).pages():
            then = datetime.fromisoformat(page.time) - timedelta(days=days)
            old = replace(page, kept=replace(page.kept, time=then.isoformat(timespec="seconds")))
            if url in (None, page.url):
                store.write([(schema.page_key(page.number), schema.encode_page(old))])


class TestForgetting:
    def test_an_original_is_forgotten_with_what_repeats_it(self, shop):
        shop.crawl("a")
        dry = shop.report("a", "store", "forget", shop.stories[0], "--dry-run")
        assert (dry["originals"], dry["duplicates"], dry["urls"]) == (1, 1, [shop.stories[0], shop.copies[0]])
        assert shop.report("a", "store", "forget", shop.stories[0], "--yes") == dry | {"dry_run": False}
        again = shop.run("a", "store", "forget", shop.stories[0], "--yes")
        assert (again.exit_status, again.out) == (3, "")
        assert f"{shop.stories[0]} is not stored in " in again.err
        assert shop.run("a", "store", "forget", "--older-than", "90d").exit_status == 0
        outcome = shop.crawl("a", shop.copies[0], shop.stories[0], shop.copies[1])
        assert outcome.kept == [shop.copies[0]]
        assert outcome.record(shop.stories[0])["original_url"] == shop.copies[0]

    def test_nothing_is_left_of_a_store_whose_hosts_are_forgotten(self, shop):
        shop.crawl("a")
        report = shop.report("a", "store", "forget", "--host", "127.0.0.1", "--yes")
        assert (report["originals"], report["duplicates"]) == (4, 3)
        assert shop.report("a", "store", "info")["originals"] == 1
        shop.report("a", "store", "forget", "--host", "127.0.0.2", "--yes")
        assert {key[:1] for key in shop.pairs("a")} == {b"n"}

    def test_only_what_is_old_enough_is_forgotten(self, shop):
        shop.crawl("a", *shop.stories)
        age(shop, "a", days=91, url=shop.stories[2])
        assert shop.report("a", "store", "forget", "--older-than", "92d", "--yes")["originals"] == 0
        assert shop.report("a", "store", "forget", "--older-than", "90d", "--yes")["urls"] == [shop.stories[2]]
        assert "is not a number of days" in shop.run("a", "store", "forget", "--older-than", "soon").err

    def test_it_asks_first(self, shop):
        shop.crawl("a", *shop.stories)
        shop.run("a", "store", "forget", "--host", "127.0.0.1").refused("4 pages", "--yes")
        shop.run("a", "store", "forget").refused("name the pages", "--older-than", status=2)
        named = ("store", "forget", shop.stories[0], "-s", f"DEDUP_STORE={store_uri(shop.root / 'a')}")
        assert shop.report("a", "store", "info")["originals"] == 4
        said = at_a_terminal(*named, folder=shop.root, keys="y\n").replace("\n", "")
        assert "Deleted 1 page (1 original, 0 duplicates)" in said
        assert f"`scrapy dedup store compact -s DEDUP_STORE={store_uri(shop.root / 'a')}`" in said

    def test_what_is_still_to_be_released_stays(self, shop):
        shop.crawl("a")
        shop.run("a", "allow", shop.copies[0])
        report = shop.report("a", "store", "forget", "--host", "127.0.0.2", "--yes")
        assert (report["originals"], report["duplicates"], report["to_release"]) == (1, 2, 1)
        assert "Kept 1 page" in shop.run("a", "store", "forget", shop.stories[0], "--yes").out
        assert shop.crawl("a", shop.partly).kept[:2] == [shop.copies[0], shop.partly]

    def test_all_that_leads_to_a_page_goes_with_it(self):
        library = Library()
        with_template = [library.visit(f"http://h{n}/", range(n * 10, n * 10 + 20)) for n in range(8)]
        assert {state.verdict.kind.value for state in with_template} == {"new", "related"}
        copy = library.visit("http://copy/", range(20))
        assert copy.is_duplicate
        chosen = choose(library.index, host="h0")
        assert (len(chosen.originals), len(chosen.duplicates)) == (1, 1)
        forget(library.index, chosen)
        library.check_invariants()
        assert library.index.count() == (7, 0)


class TestCompacting:
    @pytest.mark.parametrize("backend", [*ENGINES, "sqlite"])
    def test_room_is_given_back_and_nothing_else(self, backend, tmp_path):
        need(backend)
        uri = f"{backend}:{tmp_path / 'store'}"
        keys = [n.to_bytes(4, "big") for n in range(1, 3001)]
        # Twice, for what is removed by the process that wrote it is never written into LevelDB's tables.
        for puts, deletes in (keys, []), ([], keys[10:]):
            with closing(open_store(uri, fingerprint_scheme=ClauseFingerprinter.scheme)) as store:
                # Values that no engine compresses: its own diary must not weigh.
                pairs = [(b"z" + key, random.Random(key).randbytes(2000)) for key in puts]
                store.write(pairs, [b"z" + key for key in deletes], sync=True)
        open_store(uri, fingerprint_scheme=None).close()
        (report,) = run_here("store", "compact", "--json", "-s", f"DEDUP_STORE={uri}", folder=tmp_path).json
        assert report["bytes_after"] * 10 < report["bytes_before"]
        with closing(open_store(uri, fingerprint_scheme=ClauseFingerprinter.scheme)) as store:
            assert [key for key, _ in store.scan(b"z", b"{")] == [b"z" + key for key in keys[:10]]
        assert "bytes before" in run_here("store", "compact", "-s", f"DEDUP_STORE={uri}", folder=tmp_path).out

    def test_where_there_is_no_store_it_says_so(self, tmp_path):
        for name in (["store", "compact"], ["store", "export"], ["store", "forget", "--host", "h"]):
            run_here(*name, "-s", "DEDUP_STORE=sqlite:none", folder=tmp_path).refused("no store found", "Crawl first")


def test_compressed_files_are_told_by_what_is_in_them(shop):
    shop.crawl("a", *shop.stories[:2])
    plain = shop.run("a", "store", "export").out.encode()
    for name, packed in {"gz": gzip.compress(plain), "xz": lzma.compress(plain), "plain": plain}.items():
        (shop.root / f"pages.{name}.bin").write_bytes(packed)
        assert shop.report(name, "store", "import", f"pages.{name}.bin")["originals"] == 2
