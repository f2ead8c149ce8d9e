"""Authors who mean harm: texts made to collide, and copies that were there before the original."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import islice

import collisions
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st
from library import Library, preferences
from poisoning import CASES, PREFERRED, SPOOFS, VICTIM, Loot, crawled
from prose import article, blog, story, zh_story

from dedup_middleware.checks.detector import LITTLE_TEXT_WEIGHT
from dedup_middleware.fingerprints import ClauseFingerprinter
from dedup_middleware.model import VerdictKind
from dedup_middleware.reasons import Reason
from dedup_middleware.urls import host_of

NEW, UNCHANGED, DUPLICATE, RELATED = VerdictKind.NEW, VerdictKind.UNCHANGED, VerdictKind.DUPLICATE, VerdictKind.RELATED

# --- collisions

#: What `benchmarks/collisions.py` prints. None of it is meaningful text.
PAIRS = [
    ("ndqwgvx\u0270\u0239\u050372y\u02af\u05e6\u01010c", "ndqwgvx\u0250\u057al\u07c3\u0105\u02af\u05e6s\u037dy"),
    ("hfpyilt\u01a8\u0242\u050383z\u01ffk6\u018d0b", "hfpyilt\u0188\u0583l\u07c4\u0146\u01ffk6u\u067dx"),
    ("mnbrpof\u0447wnq\u0778\u0286\u06957y9t0a", "mnbrpof\u0467jm\u0641l8z\u06957y\u8ffdw"),
    ("wycdiws\u05f2lp\u0481l\u3e59rf38r2b", "wycdiws\u05d2yqj\u0778u\u0199rf3\u7f7fx"),
    ("wfrflxm\u05f2fd\u03c3i\u0e40\u0690m290d", "wfrflxm\u05d2seg\u07f5r\u0180\u0690m\u113dz"),
    ("bgtspog\u05d0\u06b2l\u077d\u0205\u028bwx8f0c", "bgtspog\u05f0\u0371\u0501q6y\u028bwx\u7c7dy"),
    ("rfyutke\u010d\u0795b\u0779\u02c6\u0511g5\u01052d", "rfyutke\u012d\u0454\u0281m9z\u0511g5s\u047fz"),
    ("roqtpvk\u01e1\u0443\u03c0a\u8e11o52v\u03bey", "roqtpvk\u01c1\u0784g\u072dz\u0151o52\u01c21c"),
    ("ujcephd\u027b\u043e\u028299t\ub368n\u018c2b", "ujcephd\u025b\u077fb\u0785\u02c0\ub368nu\u063fx"),
    ("msntgyg\u07c2p2i\u0773\u0205\u0511\xebx\u06ffz", "msntgyg\u07e2c1\u0441g6y\u0511\xeb\u024f2d"),
    ("oquwwmw\u04df\u0798q\u07b1\u02c6os\u012d\u01dc0r", "oquwwmw\u04ff\u0457\u0642e9zos\u012dv\u8f48"),
    ("rogbmal\u0223ku\u04c26\u4ea3wj4\u4b7dw", "rogbmal\u0203xvk\u0782v\u01e3wj45b0a"),
    ("jtgcdli\u06f3\u0240\u07839\u7f5b\u0727g\u021d1s", "jtgcdli\u06d3\u0581v\u07c5y\u029b\u0727gw\u9f89"),
    ("rxzwbhv\u06b2\u0491\u07828\u6f81\u59e5\u02ce1b", "rxzwbhv\u0692\u07d2v\u0784x\u02c1\u59e5z\u06bex"),
    ("zmmdsmv\u07fa\u0109\u05038\u4dafw0f\u01df1q", "zmmdsmv\u07da\u044al\u07c4v\xefw0fv\ubf87"),
    ("juvaogq\u01ad\u0240\u0501l7v\u049d\u0435y\u5fc8", "juvaogq\u018d\u0581l\u0778\u0242\u049d\u0435\u02992r"),
    ("mgjymxg\u03c9\u078ak\u0781\u02032\u0c892f0d", "mgjymxg\u03e9\u0449\u04c256w2\u0c89\u1c7dz"),
    ("wuhykfd\u0135m3\u0501i\u4ed9ehl291b", "wuhykfd\u0115z4l\u0775v\u0219ehl\u113ex"),
    ("ddvhbsu\u07e4\u03be\u07c364yl7\u05643i2c", "ddvhbsu\u07c4\u06ffw\u07c2\u0185l7\u0564\u2d3fy"),
    ("svaqhlv\u07f4dd\u02424\u1e9d\u16b2\u021f1w", "svaqhlv\u07d4qea\u0780s\u01dd\u16b2w\ubf8d"),
    ("zdhfdlr\u0669\u03e9\u028298z\u03bc3e5n0a", "zdhfdlr\u0649\u072ab\u0785\u0286\u03bc3e\u4e7dw"),
    ("dsrladb\u05f1cn\u02839\u3f69p\u02c81i0b", "dsrladb\u05d1pob\u07c5u\u02a9p\u02c8\u0d3dx"),
    ("trejjqw\u04b9\u0240\u06c29\u2e2f\u018cet\u5f4a", "trejjqw\u0499\u0581s\u0785t\u016f\u018ce\u01590t"),
    ("kcrltck\u077fc1\u0240b3zp\u03e732f0c", "kcrltck\u075fp2a\u072e\u0146p\u03e73\u1c7dy"),
    ("zhxegqv\u07a2c6\u03c1b6y\u01bfmf6h1a", "zhxegqv\u0782p7g\u076e\u0205\u01bfmf\u5cfew"),
    ("vnfrydo\u0579\u043d\u02c0b\u4f4b\u87b92m0d", "vnfrydo\u0559\u077ec\u072ev\u028b\u87b9\u1e3dz"),
    ("mscggzg\u0240\u06f8w\u0783\u0105ovmlt\u5f49", "mscggzg\u0260\u03b7\u07c272yovml\u01590s"),
    ("uzbpezs\u07a1b1\u04425\u2dc3\u89be\xe01v", "uzbpezs\u0781o2i\u0781t\u0103\u89ber\ucf8c"),
    ("mimazvy\u048byun\u07b1\u0203\u022b0y8c0c", "mimazvy\u04ablt\u0582e6w\u022b0y\u7bbdy"),
    ("vejsvrj\u04d9\u079eb\u07c1y\xfc\u0111x\u019e1z", "vejsvrj\u04f9\u045d\u02835\u7dbc\u0111xu\uaf90"),
    ("kylvqph\u07c9\u06b2s\u072f\u0240qu02\u30fey", "kylvqph\u07e9\u0371\u06c0c7tqu02481c"),
    ("gwudonh\u0445\u0439r\u072ex\u01d4\ud6353k0b", "gwudonh\u0465\xf8\u0680b\u6e94\ud635\u2dbdx"),
]
HALVES = [[f"{text}." for text in half] for half in zip(*PAIRS, strict=True)]


class SeededFast(ClauseFingerprinter):
    """Hashes with xxh64 under a secret seed, as a faster product might."""

    def _digest(self, clause: str) -> bytes:
        return xxhash.xxh64_digest(clause.encode(), int.from_bytes(self._key[:8], "big"))


class TestCollisions:
    @given(st.integers(0, 2**64 - 1))
    def test_no_seed_tells_the_pairs_apart(self, seed: int) -> None:
        assert all(collisions.collides(pair, seed) for pair in PAIRS)

    def test_more_pairs_can_be_had_at_once(self) -> None:
        made = list(islice(collisions.pairs(random.Random(2)), 3))
        assert len({text for pair in [*made, *PAIRS] for text in pair}) == 2 * (3 + len(PAIRS))
        assert all(collisions.collides(pair, seed) for pair in made for seed in range(100))

    @given(st.binary(min_size=16, max_size=64))
    def test_under_the_keys_of_stores_none_of_them_collide(self, key: bytes) -> None:
        fingerprint = ClauseFingerprinter(key)
        one, other = map(fingerprint, HALVES)
        assert len(one.weights) == len(other.weights) == len(PAIRS)
        assert one.weights.keys().isdisjoint(other.weights)

    @pytest.mark.parametrize(
        ("fingerprinter", "kind"), [(ClauseFingerprinter, NEW), (SeededFast, DUPLICATE)], ids=["BLAKE2b", "xxh64"]
    )
    def test_a_page_that_would_collide_is_new(
        self, fingerprinter: type[ClauseFingerprinter], kind: VerdictKind
    ) -> None:
        one, other = HALVES
        library = Library(fingerprint=fingerprinter(b"a key of a store"))
        page = library.page("http://two/", other)
        assert page.fingerprint.weight >= LITTLE_TEXT_WEIGHT
        library.visit("http://one/", one)
        assert library.detector.check(page).kind is kind

    def test_a_crawl_keeps_both(self, site, crawl) -> None:
        # Four clauses a paragraph, as a text would have them.
        one, other = ([" ".join(half[n : n + 4]) for n in range(0, len(half), 4)] for half in HALVES)
        urls = [site.add("/one", article("One", one)), site.add("/other", blog("Other", other), host=1)]
        outcome = crawl("sample_spiders.Steps", steps=[{"url": url} for url in urls])
        assert (outcome.kept, outcome.records) == (urls, [])
        assert outcome.stats["dedup/verdict/new"] == 2


# --- copies before the original

COPY = "http://third.test/story"


#: These leave the original alone even where its host is not preferred.
HARMLESS = {"by four, so that it is boilerplate"}


@pytest.fixture(params=[story, zh_story])
def loot(request) -> Loot:
    """Return a story that is stolen, and others."""
    return Loot(request.param(1), [request.param(number) for number in range(2, 18)], random.Random(1))


@pytest.mark.parametrize("name", CASES)
class TestStolenStories:
    def test_the_original_is_kept_where_its_host_is_preferred_and_its_copies_are_dropped(
        self, name: str, loot: Loot
    ) -> None:
        library, victim = crawled(CASES[name](loot), loot.story, [PREFERRED])
        assert (victim.items_kept, victim.items_dropped) == (1, 0)
        library.check_invariants()
        copy = library.visit(COPY, loot.story)
        assert copy.is_duplicate
        assert copy.verdict.match is not None
        assert copy.verdict.match.original.url == VICTIM

    def test_it_would_be_dropped_elsewhere(self, name: str, loot: Loot) -> None:
        _, victim = crawled(CASES[name](loot), loot.story, [])
        assert victim.is_duplicate == (name not in HARMLESS)

    def test_no_thief_takes_it_back(self, name: str, loot: Loot) -> None:
        thefts = CASES[name](loot)
        library, _ = crawled(thefts, loot.story, [PREFERRED])
        library.begin("the next crawl")
        for url, text in thefts:
            library.visit(url, text)
        victim = library.visit(VICTIM, loot.story)
        assert (victim.verdict.kind, victim.items_kept) == (UNCHANGED, 1)
        copy = library.visit(COPY, loot.story)
        assert copy.verdict.match is None or copy.verdict.match.original.url == VICTIM
        library.check_invariants()


@pytest.mark.parametrize("name", ["with a word in fifteen replaced", "with 2 % of its letters misread"])
def test_some_thieves_are_found_by_the_second_opinion_only(name: str, loot: Loot) -> None:
    _, victim = crawled(CASES[name](loot), loot.story, [])
    assert victim.verdict.reason.startswith(Reason.NEAR_MATCH)


def test_the_record_of_an_original_says_why_it_is_kept() -> None:
    _, victim = crawled([("http://thief.test/", story(1))], story(1), [PREFERRED])
    assert (victim.verdict.kind, victim.verdict.reason) == (RELATED, Reason.PREFERRED)


@pytest.mark.parametrize("thief", SPOOFS)
def test_an_address_that_shows_a_preferred_host_is_not_preferred(thief: str) -> None:
    library, victim = crawled([(thief, story(1))], story(1), [PREFERRED])
    assert victim.items_kept == 1
    # Nor does it take the story by coming again, or with another text.
    for text in (story(1), [*story(1), *story(2, 1)]):
        library.visit(thief, text)
        assert library.check(COPY, story(1)).match.original.url == VICTIM
    assert Library.visit(crawled([], story(1), [PREFERRED])[0], thief, story(1)).is_duplicate


@pytest.mark.parametrize(
    "url", [f"http://{PREFERRED}/", f"http://{PREFERRED}./", f"http://a.b.{PREFERRED.upper()}.:8080/x", VICTIM]
)
def test_a_preferred_host_is_known_however_it_is_written(url: str) -> None:
    library = Library(preferred=[PREFERRED])
    library.visit("http://thief.test/", story(1))
    assert library.visit(url, story(1)).items_kept == 1
    assert not host_of(url).endswith(".")


def test_a_thief_whose_items_are_under_way_cannot_stop_the_original() -> None:
    library = Library(preferred=[PREFERRED])
    thief = library.enter(library.page("http://thief.test/", story(1)))
    victim = library.enter(library.page(VICTIM, story(1)))
    assert not library.deduplication.rests_on_claim(victim)
    library.leave(thief)
    assert library.leave(victim).items_kept == 1
    assert library.visit(COPY, story(1)).verdict.match.original.url == VICTIM


def test_an_original_that_was_dropped_is_kept_once_its_host_is_preferred() -> None:
    library, victim = crawled([("http://thief.test/", story(1))], story(1), [])
    assert victim.is_duplicate
    library.detector = replace(library.detector, preferences=preferences([PREFERRED]))
    library.begin("the next crawl")
    assert library.visit(VICTIM, story(1)).items_kept == 1


def test_crawls_are_not_deceived_by_addresses(site, crawl) -> None:
    steps, originals, copies = [], [], []
    for number, path in enumerate(("/127.0.0.1/", "/?u=http://127.0.0.1/", "/@127.0.0.1/", "/#@127.0.0.1/")):
        text = story(number)
        thief = site.add(path.partition("#")[0], blog("Copied", text), host=1)
        if number % 2:
            thief = thief.replace("//", "//127.0.0.1:80@")
        originals.append(site.add(f"/{number}", article("Original", text)))
        copies.append(site.add(f"/{number}", blog("Copy", text), host=2))
        steps += [{"url": url} for url in (thief, originals[-1], copies[-1], thief)]
    outcome = crawl("sample_spiders.Steps", steps=steps, settings={"DEDUP_PREFERRED": ["127.0.0.1"]})
    assert [url for url in outcome.kept if url in originals] == originals
    dropped = [item["url"] for item in outcome.dropped]
    assert [url for url in dropped if url in copies] == copies
    # A thief is a duplicate of the original from then on.
    assert {url for url in dropped if url not in copies} <= set(outcome.kept) - {*originals}
    assert [outcome.record(copy)["original_url"] for copy in copies] == originals
