"""The table decides: each of its rows has a pair of pages with another verdict once the row is another one."""

from __future__ import annotations

import re
from typing import NamedTuple

import pytest
from prose import story

from dedup_middleware import Deduplicator
from dedup_middleware.checks.table import COPY, Kind, Relation

ORIGINAL = "http://one.example/story"
#: Where the second page is, for each relation.
AT = {
    Relation.SAME_ADDRESS: "http://one.example/story?from=mail",
    Relation.SAME_SITE: "http://one.example/news/2",
    Relation.ACROSS: "http://two.example/news/2",
}
TITLE = "The harbour council rebuilds the old grain store"


def paragraphs(text):
    return tuple(" ".join(each.split()) for each in text.split("\n\n"))


TOLD = paragraphs("""
Those who walk there every morning have seen the scaffolding grow, and they know that it will stay for a long time.
The children from the school next door have painted the fence, and their teacher has promised them a visit.

In the old days the grain came by barge, and left the town on carts that were drawn by four horses each. Whoever
wanted to buy some had to come before noon, since the gates were shut when the bells began to ring.

The work costs 4200 euros a month, which Margaret Holt has found in a fund that nobody had thought of for years. It is
not certain that the roof will be finished before the storms begin, although the builders say it will.

Nothing of this is in the plans that were shown in spring, which is why some neighbours have written to the council.
They do not mind the noise, as they say, but would like to be asked before the street is closed for half a year.

What has become of the old millstones is another question, and one to which everybody gives you another answer. Some
say that they lie in a garden behind the church, and others that they went to a museum in the capital. Those who could
know best have moved away since, and do not answer any letters, or answer them with a joke.

A small museum is to open on the upper floor, with the old scales and some of the sacks in which grain was kept. The
lower floor stays empty until somebody has an idea, and all who have one are asked to write it down.
""")
FREE = "Entry is free for everyone who lives in the town."
(SWALLOWS,) = paragraphs("""
Whether the swallows will come back to their old nests is what we all wonder about, and what the birds themselves will
not tell. The nests were under the eaves, and there are no eaves any more, since the new roof ends where the wall
does. Some of us have put up boxes of wood, and hope that swallows are not too proud for these.
""")
#: What other pages of both sites show, too.
SITES = "Out of our own newsroom"
PAID = "Nobody gets in without a card from the office."


class Told(NamedTuple):
    """What a page says, and the item of it."""

    lines: tuple[str, ...] = TOLD
    title: str = TITLE
    value: str = ""
    beside: str = ""

    @property
    def html(self):
        text = "".join(f"<p>{line}</p>" for line in self.lines)
        beside = "".join(f"<aside><p>{each}</p></aside>" for each in (self.value, self.beside) if each)
        head = f"<!DOCTYPE html><html><head><title>{self.title}</title></head><body><nav><a href=/>Home</a></nav>"
        return f"{head}<main><h1>{self.title}</h1>{text}</main>{beside}</body></html>"

    @property
    def item(self):
        item = {"title": self.title, "text": "\n".join(self.lines)}
        return item | {"town": self.value} if self.value else item


def with_text(old, new):
    """Return what is told with *new* in the place of *old*."""
    assert sum(old in line for line in TOLD) == 1
    return Told(tuple(line.replace(old, new) for line in TOLD))


def with_line(line, place=2):
    return Told((*TOLD[:place], line, *TOLD[place:]))


#: For each kind of edit the original, and a page that differs from it by an edit of this kind only.
PAIRS = {
    Kind.LEFT_OUT: (Told(), with_text(" and some of the sacks in which", " and sacks in which")),
    Kind.LABEL: (Told(), with_line(SITES)),
    Kind.LINE_ADDED: (Told(), with_line("What the town makes of it")),
    Kind.SLIP: (Told(), with_text("scaffolding", "scafolding")),
    Kind.ADDED: (
        Told(),
        with_line("Whether the swallows will come back to their old nests is what we all wonder about."),
    ),
    Kind.PASSAGE: (Told(), with_line(SWALLOWS)),
    Kind.ADDED_FACT: (
        Told(),
        with_line("Whether all of the 730 swallows will come back to their nests is not clear to us."),
    ),
    Kind.LINE: (with_line(FREE), with_line(PAID)),
    Kind.WORD: (Told(), with_text("scales", "hooks")),
    Kind.REWORDED: (
        Told(),
        with_text(
            "In the old days the grain came by barge, and left the town on carts that were drawn by four horses each.",
            "In former times the grain came by boat, and left our town on carts that were pulled by four horses each.",
        ),
    ),
    Kind.NUMBER: (Told(), with_text("4200", "5200")),
    Kind.NAME: (Told(), with_text("Margaret Holt", "Margaret Vane")),
    Kind.NEGATION: (Told(), with_text("It is not certain", "It is certain")),
    Kind.SYMBOL: (with_text("4200 euros", "4200 €"), with_text("4200 euros", "4200 $")),
    Kind.TITLE: (Told(), Told(title=TITLE.replace("rebuilds", "sells"))),
    Kind.TITLE_WORDS: (Told(), Told(title=TITLE.replace("old grain", "old round grain"))),
    Kind.HEADLINE: (Told(), Told(title="Builders, scales and a museum on the upper floor")),
    Kind.VALUE: (Told(value="Leeds"), Told(value="York")),
    Kind.CONTENT: (Told(beside="From 4.50 € a day"), Told(beside="From 6.50 € a day")),
}
#: What is looked at elsewhere: of a text too long to be compared all would be lost or kept with it.
ELSEWHERE = {Kind.TOO_LONG}


#: Those of the text, for the other texts, in another order than its sentences have.
WORDS = sorted({word for line in TOLD for word in re.findall(r"[a-z]{3,}", line)})


def verdict(original, page, relation, *, reworded="keep"):
    """Return the verdict on a *page* after its *original*, in a store that knows the words of other texts."""
    with Deduplicator(reworded=reworded) as dedup:
        for number in range(24):
            told = (*story(number), " ".join(WORDS[number::24]), SITES)
            host = "one.example" if number % 2 else "two.example"
            dedup.add(f"http://{host}/other/{number}", Told(told, f"Story {number} of this week").html)
        assert dedup.add(ORIGINAL, original.html, original.item).verdict == "new"
        return dedup.add(AT[relation], page.html, page.item).verdict


#: At the same address a slip is a word; a passage is sentences added, too; what is rewritten has words more and less.
AS_WELL = {
    Kind.SLIP: {Kind.WORD},
    Kind.PASSAGE: {Kind.PASSAGE, Kind.ADDED},
    Kind.REWORDED: {Kind.REWORDED, Kind.ADDED, Kind.LEFT_OUT},
}


def test_every_row_has_a_pair():
    assert {*Kind} == PAIRS.keys() | ELSEWHERE
    assert {*Relation} == COPY.keys() == AT.keys()


@pytest.mark.parametrize("relation", Relation)
def test_what_is_equal_is_a_copy_and_what_is_told_differs_by_the_edit(relation):
    for original, page in PAIRS.values():
        assert verdict(original, original, relation) == verdict(page, page, relation) == "duplicate"


@pytest.mark.parametrize("kind", [kind for kind in PAIRS if kind is not Kind.CONTENT])
def test_across_sites_each_row_decides(kind, monkeypatch):
    pair = PAIRS[kind]
    is_copy = kind in COPY[Relation.ACROSS]
    assert (verdict(*pair, Relation.ACROSS) == "duplicate") is is_copy
    monkeypatch.setitem(COPY, Relation.ACROSS, COPY[Relation.ACROSS] ^ {kind})
    assert (verdict(*pair, Relation.ACROSS) == "duplicate") is not is_copy


@pytest.mark.parametrize("kind", PAIRS)
def test_at_the_same_address_each_row_decides(kind, monkeypatch):
    pair = PAIRS[kind]
    is_copy = kind in COPY[Relation.SAME_ADDRESS]
    assert (verdict(*pair, Relation.SAME_ADDRESS) == "duplicate") is is_copy
    monkeypatch.setitem(COPY, Relation.SAME_ADDRESS, COPY[Relation.SAME_ADDRESS] ^ AS_WELL.get(kind, {kind}))
    assert (verdict(*pair, Relation.SAME_ADDRESS) == "duplicate") is not is_copy


@pytest.mark.parametrize("kind", PAIRS)
def test_at_another_address_of_a_site_every_edit_makes_two(kind):
    assert verdict(*PAIRS[kind], Relation.SAME_SITE) != "duplicate"


@pytest.mark.parametrize("kind", PAIRS)
def test_reworded_places_are_dropped_where_that_is_set_and_nothing_else(kind):
    expected = {relation: kind in COPY[relation] for relation in (Relation.SAME_ADDRESS, Relation.ACROSS)}
    expected[Relation.ACROSS] |= kind in {Kind.WORD, Kind.CONTENT}
    found = {each: verdict(*PAIRS[kind], each, reworded="drop") == "duplicate" for each in expected}
    assert found == expected
