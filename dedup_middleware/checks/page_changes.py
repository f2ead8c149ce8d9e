"""Finds what has changed on a page, and in its items, since they were stored.

The frame (menus, teasers, other people's comments) does not count, nor does an age by itself, "2 hours ago": it differs
between two fetches of one page. All else in the text is content: a date, a price, opening hours, a count.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from rapidfuzz.distance import Indel

from dedup_middleware.extraction.features import is_age
from dedup_middleware.items.reading import IS, content_of, written_values
from dedup_middleware.model import Changes, PageFeatures
from dedup_middleware.text import titles
from dedup_middleware.text.clauses import is_label, one_line, sentences

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from dedup_middleware.items.reading import ItemText
    from dedup_middleware.model import ItemContent, Page, StoredPage

#: Sentences of each text that are compared.
MAX_SENTENCES = 5_000
#: A sentence that shares less than this with the one in its place, in characters, is another one.
SAME_SENTENCE = 0.5
# Sentences that are looked at for the one that another one replaces.
_NEAR = 5
#: A text that has changed where no sentence shows it: in its markup or letter case, or beyond what is stored.
NOT_SHOWN = ("text", "", "")


def changes_of(page: Page, stored: StoredPage, text: Sequence[str] | None, *, is_cut: bool = False) -> Changes:
    """Return what has changed on *page* since it was *stored* with this *text*, which may be *cut*; falsy for nothing.

    Without *text*, the store has only a digest of it. O(sentences of both), or their product where most are others.
    """
    here, there = page.features or PageFeatures(), stored.features or PageFeatures()
    if text is None:
        found = Changes(values=() if page.fingerprint.digest == stored.digest else (NOT_SHOWN,))
    else:
        found = changes_between(text, page.paragraphs)
        if is_cut and not found and page.fingerprint.exact_digest != stored.exact_digest:
            found = Changes(values=(NOT_SHOWN,))
    names = (("title", there.title, here.title), ("heading", there.heading, here.heading))
    renamed = tuple(each for each in names if titles.row_of(each[1]) != titles.row_of(each[2]))
    return found._replace(values=(*renamed, *found.values), is_shown_otherwise=here.marks != there.marks)


def item_changes(
    items: Sequence[ItemText], known: ItemContent, before: Callable[[], tuple[Sequence[str], Sequence[str]]]
) -> Changes:
    """Return how *items* differ from what they were *known* to contain; falsy if they do not.

    *before* returns the texts and the values that the store has of them.
    """
    content = content_of(items, known)
    if content.digest == known.digest != b"":
        return Changes()
    texts, values = before()
    found = changes_between(texts, content.texts) if content.has_text and known.has_text else Changes()
    return with_values(
        found, (line for line in values if line not in content.shown), written_values(items, known.values)
    )


def with_values(found: Changes, removed: Iterable[str], added: Iterable[str]) -> Changes:
    """Return the changes *found*, and those from the values *removed* to those *added*, each with its field."""
    gone = [line.partition(IS)[::2] for line in removed]
    changed = list[tuple[str, str, str]]()
    for name, new in (line.partition(IS)[::2] for line in added):
        old = next((each for each in gone if each[0] == name), (name, ""))
        changed.append((*old, new))
        if old in gone:
            gone.remove(old)
    found = found._replace(values=(*changed, *((name, old, "") for name, old in gone)))
    return found or Changes(values=(NOT_SHOWN,))


def changes_between(before: Iterable[str], now: Iterable[str]) -> Changes:
    """Return what has changed between two texts.

    >>> found = changes_between(["It rained.", "12 people came."], ["It rained.", "14 people came.", "Few left."])
    >>> found.inserted, found.replaced
    (('Few left.',), (('12 people came.', '14 people came.'),))
    """
    old, new = ([*islice(_compared(text), MAX_SENTENCES)] for text in (before, now))
    inserted, deleted, replaced = list[str](), list[str](), list[tuple[str, str]]()
    gone, come = list[str](), list[str]()
    for block in [*Indel.opcodes(old, new), None]:
        if block is not None and block.tag != "equal":
            gone += old[block.src_start : block.src_end]
            come += new[block.dest_start : block.dest_end]
            continue
        for line in come:
            likes = (Indel.normalized_similarity(other, line) for other in gone[:_NEAR])
            place = next((n for n, like in enumerate(likes) if like >= SAME_SENTENCE), None)
            if place is None:
                inserted.append(line)
            else:
                replaced.append((gone[place], line))
                deleted += gone[:place]
                del gone[: place + 1]
        deleted += gone
        gone, come = [], []
    return Changes(tuple(inserted), tuple(deleted), tuple(replaced))


def _compared(text: Iterable[str]) -> Iterator[str]:
    """Yield the sentences of *text* that are compared."""
    for paragraph in text:
        for sentence in sentences(paragraph):
            line = one_line(sentence)
            if not (is_label(line) and is_age(line)):
                yield line
