"""Authors who mean harm: texts made to collide, and copies that were there before the original."""

import random
from itertools import cycle

import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st
from library import Library
from prose import story, zh_story

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
]
HALVES = [[f"{text}." for text in half] for half in zip(*PAIRS, strict=True)]


@given(st.integers(0, 2**64 - 1))
def test_no_seed_of_a_fast_hash_would_do(seed):
    assert all(xxhash.xxh64_digest(one.encode(), seed) == xxhash.xxh64_digest(other.encode(), seed)
               for one, other in PAIRS)  # fmt: skip


def test_pages_that_would_collide_are_both_new():
    with Deduplicator() as dedup:
        verdicts = [
            dedup.add(f"http://site{n}.test/", text=" ".join(half)).verdict
            for n, half in enumerate([*HALVES, HALVES[0]])
        ]
    assert verdicts == ["new", "new", "duplicate"]


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
    likes = Deduplicator(preferred=[PREFERRED], reworded="drop")
    with Deduplicator(reworded="drop") as unset, likes as dedup:
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
    assert not library.deduplication.claims.rests_on_claim(victim)
    library.leave(thief)
    assert library.leave(victim).items.kept == 1
    assert library.visit(COPY, story(1)).verdict.match.original.url == VICTIM
