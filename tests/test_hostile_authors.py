"""Authors who mean harm: texts made to collide, and copies that were there before the original."""

from __future__ import annotations

import random
from itertools import cycle

import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st
from library import Library
from prose import article, blog, story, zh_story

from dedup_middleware import Deduplicator

#: Pairs of texts that have the same xxh64 under every seed; none is meaningful text. Below 32 bytes, xxh64 takes words
#: of eight bytes one after the other, the seed in the first step only: h = rotl(h ^ k(word), 27) * P1 + P4. Each pair
#: has a first word in common, second words whose k differ by the bit 2^36 alone, which the rotation moves to 2^63,
#: where no multiplication by an odd number and no addition moves it, and third words whose k differ by 2^63 too.
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


@given(st.integers(0, 2**64 - 1))
def test_no_seed_of_a_fast_hash_would_do(seed):
    assert all(xxhash.xxh64_digest(one.encode(), seed) == xxhash.xxh64_digest(other.encode(), seed)
               for one, other in PAIRS)  # fmt: skip


def test_pages_that_would_collide_are_both_new():
    with Deduplicator() as dedup:
        verdicts = [dedup.add(f"http://site{n}.test/", text=" ".join(half)).verdict for n, half in enumerate(HALVES)]
    assert verdicts == ["new", "new"]


# --- copies before the original

PREFERRED = "example.org"
VICTIM, COPY = f"http://news.{PREFERRED}/story", "http://third.test/story"
#: URLs that show the preferred host, or one like it, and are not on it.
SPOOFS = [
    f"http://evil{PREFERRED}/story",
    f"http://{PREFERRED}.evil.test/story",
    f"http://news.{PREFERRED}.evil.test./story",
    f"http://{PREFERRED.replace('.', '-')}/story",
    f"http://{PREFERRED}@thief.test/story",
    f"http://user:{PREFERRED}@thief.test/story",
    f"http://thief.test/@{PREFERRED}/story",
    f"http://thief.test/?from=http://{PREFERRED}/story",
    f"http://thief.test/#@{PREFERRED}/story",
]


def reworded(told):
    """Return a text with a word in fifteen, or a character in forty, replaced."""
    edited = []
    for paragraph in told:
        parts = paragraph.split(" ") if " " in paragraph else [*paragraph]
        step, other = (15, "other") if " " in paragraph else (40, "且")
        parts[1::step] = [other] * len(parts[1::step])
        edited.append((" " if " " in paragraph else "").join(parts))
    return edited


#: The pages that thieves make of a text and spam.
THEFTS = {
    "word for word": lambda told, _: [told],
    "with spam before it": lambda told, spam: [spam[0] + told],
    "with spam between its paragraphs": lambda told, spam: [
        [p for pair in zip(told, cycle(spam[0]), strict=False) for p in pair]
    ],
    "in another order": lambda told, _: [random.Random(1).sample(told, len(told))],
    "reworded": lambda told, _: [reworded(told)],
    "by three, each with spam of its own": lambda told, spam: [told + spam[n] for n in range(3)],
    "by four, so that it is boilerplate": lambda told, spam: [told + spam[n] for n in range(4)],
}
#: Here the original is kept even if its host is not preferred.
HARMLESS = "by four, so that it is boilerplate"


@pytest.mark.parametrize("language", [story, zh_story])
@pytest.mark.parametrize("name", THEFTS)
def test_the_original_is_kept_if_its_host_is_preferred_and_its_copies_are_dropped(name, language):
    told = language(1)
    spam = [[p for n in range(3) for p in language(10 * thief + n)] for thief in range(1, 5)]
    thefts = [(f"http://thief{n}.test/story", "\n".join(text)) for n, text in enumerate(THEFTS[name](told, spam))]
    with Deduplicator() as unset, Deduplicator(preferred=[PREFERRED]) as dedup:
        for url, text in thefts:
            unset.add(url, text=text)
            dedup.add(url, text=text)
        assert unset.add(VICTIM, paragraphs=told).is_duplicate == (name != HARMLESS)
        assert not dedup.add(VICTIM, paragraphs=told).is_duplicate
        assert dedup.check(COPY, paragraphs=told).original_url == VICTIM
        # No thief takes it back.
        for url, text in thefts:
            dedup.add(url, text=text)
        assert dedup.add(VICTIM, paragraphs=told).verdict == "unchanged"
        assert dedup.check(COPY, paragraphs=told).original_url in {VICTIM, None}


def test_the_record_of_an_original_says_why_it_is_kept():
    with Deduplicator(preferred=[PREFERRED]) as dedup:
        dedup.add("http://thief.test/", paragraphs=story(1))
        found = dedup.add(VICTIM, paragraphs=story(1))
    assert (found.verdict, found.original_url, bool(found.reason)) == ("related", "http://thief.test/", True)


@pytest.mark.parametrize("thief", SPOOFS)
def test_a_url_that_shows_a_preferred_host_is_not_preferred(thief):
    with Deduplicator(preferred=[PREFERRED]) as dedup:
        dedup.add(thief, paragraphs=story(1))
        assert not dedup.add(VICTIM, paragraphs=story(1)).is_duplicate
        # Nor does it take the story by coming again, or with another text.
        for text in (story(1), [*story(1), *story(2, 1)]):
            dedup.add(thief, paragraphs=text)
            assert dedup.check(COPY, paragraphs=story(1)).original_url == VICTIM


@pytest.mark.parametrize("url", [f"http://{PREFERRED}./", f"http://a.b.{PREFERRED.upper()}.:8080/x"])
def test_a_preferred_host_is_recognised_however_it_is_written(url):
    with Deduplicator(preferred=[PREFERRED]) as dedup:
        dedup.add("http://thief.test/", paragraphs=story(1))
        assert not dedup.add(url, paragraphs=story(1)).is_duplicate


def test_a_thief_whose_items_are_under_way_cannot_stop_the_original():
    library = Library(preferred=[PREFERRED])
    thief = library.enter(library.page("http://thief.test/", story(1)))
    victim = library.enter(library.page(VICTIM, story(1)))
    assert not library.deduplication.rests_on_claim(victim)
    library.leave(thief)
    assert library.leave(victim).items_kept == 1
    assert library.visit(COPY, story(1)).verdict.match.original.url == VICTIM


def test_crawls_are_not_deceived_by_addresses(site, crawl):
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
