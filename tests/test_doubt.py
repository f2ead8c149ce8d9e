"""What extraction is not sure of, the verdict counts on less."""

from __future__ import annotations

import pytest
from prose import story

from dedup_middleware import Deduplicator
from dedup_middleware.common.budget import UNLIMITED
from dedup_middleware.extraction import parse, weighted_dom
from dedup_middleware.reasons import Reason

STORY = story(1, 8)
# A seventh of it is told in other words.
EDITED = [story(2)[0][:210], *STORY[:7], story(3)[0][:140]]
CALLED = " ".join(STORY[0].split()[:9])


def page(title: str, paragraphs: list[str], elsewhere: str = "") -> str:
    text = "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs)
    return f"<html><head><title>{title}</title></head><body><div class='a'>{text}</div>{elsewhere}</body></html>"


def cards(number: int) -> str:
    """Return more running text than a story has, each piece of it beside a long link."""
    pieces = [f"{paragraph[:150]}." for n in range(40, 40 + number) for paragraph in story(n, 2)]
    links = "<li><a href='/x'>A link as long as a headline of another page, or longer</a></li>" * 20
    box = f"{'<div>' * 9}<ul>{links}</ul><p>{{}}</p>{'</div>' * 9}"
    return "".join(map(box.format, pieces))


def is_doubtful(html: str) -> bool:
    return weighted_dom(parse(html), UNLIMITED).is_doubtful


def test_what_is_in_doubt() -> None:
    assert not is_doubtful(page(CALLED, STORY))
    assert is_doubtful(page("Wanted: xylophone tuner", STORY))  # nothing of its title is in the text
    assert is_doubtful(page(CALLED, STORY, cards(120)))  # it is a small part of what the page tells
    assert not is_doubtful(page("Wanted: xylophone tuner", []))  # there is nothing to doubt


@pytest.mark.parametrize("other", [page("Wanted: xylophone tuner", EDITED), page(CALLED, EDITED, cards(120))])
def test_of_a_text_in_doubt_only_nearly_all_is_a_copy(other: str) -> None:
    title = other.partition("<title>")[2].partition("<")[0]
    elsewhere = other.partition("</div>")[2].partition("</body>")[0]
    with Deduplicator("memory:") as dedup:
        first = dedup.add("http://one.example/1", page(title, STORY, elsewhere))
        assert not first.is_duplicate
        checked = dedup.check("http://two.example/1", other)
        assert (checked.verdict, checked.reason) == ("related", Reason.UNCERTAIN_EXTRACTION)
        assert dedup.check("http://two.example/2", page(title, STORY, elsewhere)).is_duplicate
        # The same copy of a text that is in no doubt.
        dedup.add("http://three.example/1", page(CALLED, story(5, 8)))
    with Deduplicator("memory:") as dedup:
        dedup.add("http://one.example/1", page(CALLED, STORY))
        assert dedup.check("http://two.example/1", page(CALLED, EDITED)).is_duplicate


@pytest.mark.parametrize("host", ["one.example", "two.example"])
@pytest.mark.parametrize(
    "shared",
    [
        "<div class='comments'>" + "".join(f"<div class='comment'><p>{p}</p></div>" for p in story(50, 8)) + "</div>",
        "<noscript>" + "".join(f"<div><p>{p}</p></div>" for p in story(50, 8)) + "</noscript>",
    ],
    ids=["comments", "noscript"],
)
def test_boilerplate_that_outweighs_a_text_makes_no_copy_of_it(shared: str, host: str) -> None:
    title = "Acme plumbing and heating services of the northern counties"
    first, second = (
        f"<title>{title}</title><h1>{title}</h1><article><p>{story(n, 1)[0]}</p></article>{shared}" for n in (1, 2)
    )
    with Deduplicator("memory:") as dedup:
        dedup.add("http://one.example/branch/1", first)
        assert not dedup.check(f"http://{host}/branch/2", second).is_duplicate
        assert dedup.check("http://one.example/branch/1?sid=2", first).is_duplicate
