"""What other packages can add without touching this one: a fingerprint method, a store, an extraction.

Each is a package of its own here, as `pip` would have installed it, and all that it knows is documented.
"""

import json
import os

import pytest
from crawling import scrapy
from prose import article, blog, story

SHINGLES = '''
"""Shingles of four words, hashed under the store's key."""

from hashlib import blake2b

from dedup_middleware.model import Fingerprint


class Shingles:
    scheme = "fours-1"
    is_by_line = False

    def __init__(self, key):
        self._key = key

    def hash(self, clause):
        return blake2b(clause.encode(), digest_size=6, key=self._key).digest()

    def __call__(self, paragraphs, budget=None):
        words = " ".join(paragraphs).lower().split()
        weights = {self.hash(" ".join(words[i : i + 4])): 10 for i in range(len(words) - 3)}
        digest = blake2b(b"".join(sorted(weights)), digest_size=16, key=self._key).digest()
        return Fingerprint(weights, digest)
'''
FOLDER_STORE = '''
"""A store of one JSON file, rewritten for each batch: small, and safe."""

import json
from pathlib import Path

from dedup_middleware.errors import StoreError
from dedup_middleware.stores.base import Store


class FileStore(Store):
    def __init__(self, uri):
        self.uri = uri
        self._path = Path(uri.partition(":")[2])
        read = json.loads(self._path.read_text()) if self._path.exists() else {}
        self._pairs = {bytes.fromhex(key): bytes.fromhex(value) for key, value in read.items()}

    def get_many(self, keys):
        return [self._pairs.get(key) for key in keys]

    def scan(self, start, stop):
        return iter([(key, self._pairs[key]) for key in sorted(self._pairs) if start <= key < stop])

    def write(self, puts, deletes, *, sync=False):
        for key in deletes:
            self._pairs.pop(key, None)
        self._pairs.update(puts)
        draft = self._path.with_suffix(".tmp")
        draft.write_text(json.dumps({key.hex(): value.hex() for key, value in self._pairs.items()}))
        draft.replace(self._path)

    def close(self):
        pass


def open_store(uri):
    if Path(uri.partition(":")[2]).is_dir():
        raise StoreError(f"{uri} is a folder; name a file")
    return FileStore(uri)


def store_exists(uri):
    return Path(uri.partition(":")[2]).exists()


def remove_store(uri):
    found = store_exists(uri)
    Path(uri.partition(":")[2]).unlink(missing_ok=True)
    return found
'''
EXTRACTION = '''
"""Of a page, what is in <section class="story">, and nothing else; without one, what the product finds."""

from dedup_middleware.extraction import Extracted, weighted_dom


def by_section(root, budget):
    found = weighted_dom(root, budget)
    sections = root.xpath("//section[@class='story']")
    paragraphs = [" ".join("".join(p.itertext()).split()) for section in sections for p in section.iter("p")]
    return Extracted(paragraphs, found.features) if paragraphs else found
'''


def reposts(site):
    a, b = (site.add(f"/{name}", article(name, story(number))) for number, name in enumerate("ab", 1))
    return a, b, site.add("/c", blog("c", story(1)), host=1)


def test_a_fingerprint_method(site, crawl, install):
    environment = install("fingerprints", SHINGLES, fours="Shingles")
    a, b, c = reposts(site)
    chosen = {"DEDUP_FINGERPRINT": "fours"}
    outcome = crawl("sample_spiders.OneByOne", urls=f"{a},{b},{c}", settings=chosen, env=environment)
    assert (outcome.kept, outcome.exit_status, outcome.problems) == ([a, b], 0, [])
    assert outcome.record(c)["original_url"] == a
    # Its store is its own: another method's fingerprints mean nothing in it.
    refused = crawl("sample_spiders.OneByOne", urls=a, folder="crawl1", env=environment)
    assert refused.exit_status == 1
    assert "fours-1" in refused.log


def test_a_store(site, crawl, install, tmp_path):
    environment = install("stores", FOLDER_STORE, json="")
    store = {"DEDUP_STORE": f"json:{tmp_path}/pages.json"}
    a, b, c = reposts(site)
    outcome = crawl("sample_spiders.OneByOne", urls=f"{a},{b}", settings=store, env=environment)
    assert (outcome.kept, outcome.exit_status, outcome.problems) == ([a, b], 0, [])
    again = crawl("sample_spiders.OneByOne", urls=c, settings=store, env=environment)
    assert again.record(c)["original_url"] == a
    assert "items/dropped_for_earlier_crawls" in str(again.stats)

    def dedup(*words):
        said = scrapy(
            "dedup", *words, "-s", f"DEDUP_STORE={store['DEDUP_STORE']}", folder=tmp_path, env=os.environ | environment
        )
        assert said.returncode == 0, said.stderr
        return said.stdout

    info = json.loads(dedup("store", "info", "--json"))
    assert (info["originals"], info["duplicates"]) == (2, 1)
    assert a in dedup("explain", c)
    assert "Deleted the store" in dedup("store", "reset", "--yes")
    assert not (tmp_path / "pages.json").exists()


def test_an_extraction(site, crawl, install):
    environment = install("extractors", EXTRACTION, by_section="by_section")
    told = "".join(f"<p>{line}" for line in story(1))
    teaser = "".join(f"<p>{line}" for line in story(7, paragraphs=20))
    a = site.add("/a", f"<title>One</title><section class=story>{told}</section>")
    b = site.add("/b", f"<title>One</title><section class=story>{told}</section><article>{teaser}</article>", host=1)
    chosen = {"DEDUP_EXTRACTOR": "by-section"}
    assert crawl("sample_spiders.OneByOne", urls=f"{a},{b}").kept == [a, b]
    outcome = crawl("sample_spiders.OneByOne", urls=f"{a},{b}", settings=chosen, env=environment)
    assert (outcome.kept, outcome.exit_status, outcome.problems) == ([a], 0, [])


BROKEN = {
    "no module": ("fingerprints", "import nothing_of_that_name", "nothing_of_that_name"),
    "no scheme": ("fingerprints", SHINGLES.replace('scheme = "fours-1"', "pass"), "its scheme is None"),
    "a text": ("extractors", EXTRACTION.replace("return Extracted(", "return str("), "TypeError"),
    "an error": ("extractors", EXTRACTION.replace("found = ", "found = 1 / 0, "), "ZeroDivisionError"),
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_one_that_breaks_its_contract_ends_the_crawl_before_it_begins(site, crawl, install, broken):
    kind, code, line = broken
    code = code.replace("if paragraphs else found", "")
    environment = install(kind, code, theirs="Shingles" if kind == "fingerprints" else "by_section")
    setting = {"fingerprints": "DEDUP_FINGERPRINT", "extractors": "DEDUP_EXTRACTOR"}[kind]
    outcome = crawl("sample_spiders.OneByOne", urls=site.add("/a", "a"), settings={setting: "theirs"}, env=environment)
    assert outcome.exit_status == 1
    (said,) = [each for each in outcome.log.splitlines() if "'theirs' of dedup_middleware." in each]
    assert line in said
    assert "cannot be used (" in said or "cannot be imported from their_fingerprints:Shingles" in said
    assert "Fix its package, or choose another" in said or "Fix or remove its package" in said
    assert "Traceback" not in outcome.log
