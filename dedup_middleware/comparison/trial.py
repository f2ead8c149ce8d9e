"""One method decides the pages of a corpus, in their order, and is timed."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dedup_middleware.comparison.contestants import contestant
from dedup_middleware.fingerprints.literature.method import packed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dedup_middleware.comparison.prepared import PreparedPage
    from dedup_middleware.fingerprints.literature.method import Method, Print, Text

# Of the CPU: a slow machine, or a slow method, must not change a verdict.
_AN_HOUR = 3_600_000
# What a method loads with its first text is not that text's.
_ANY_TEXT = (
    "The harbour council has decided to rebuild the old grain store, because winter storms had loosened its stones.",
    "港务委员会决定重新修建旧粮仓的屋顶，因为冬季风暴动摇了地基，而省里仍在权衡补贴方案。",
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a method has decided."""

    owners: list[int]
    """For each page, the number of the page for which it was dropped; its own if it was kept."""
    seconds: float
    """CPU time of the process for all pages."""


def pages_to_learn(pages: Sequence[PreparedPage], share: float) -> list[PreparedPage]:
    """Return the first *share* (0-1) of those pages that have a text, at least one."""
    with_text = [page for page in pages if page.text.paragraphs]
    return with_text[: max(1, round(share * len(with_text)))]


def ready(choice: str, pages: Sequence[PreparedPage], share: float) -> Method:
    """Return the method of *choice* with all that it loads loaded, fitted on the first *share* of *pages*."""
    made = contestant(choice)
    if made.learns:
        made.fit(page.text for page in pages_to_learn(pages, share))
    made.fingerprint(pages[0].text._replace(paragraphs=_ANY_TEXT, title=_ANY_TEXT[0]))
    return made


def alone(made: Method, texts: Sequence[Text]) -> Outcome:
    """Let the method decide by itself: a text that is alike to one that was kept before is dropped for the first such.

    It looks up those that were kept by the keys of its fingerprints. A text without paragraphs is kept, unasked.
    """
    catalogue: defaultdict[bytes, list[int]] = defaultdict(list)
    kept: dict[int, Print] = {}
    owners = []
    began = time.process_time()
    for number, text in enumerate(texts):
        owner = number
        new = made.fingerprint(text) if text.paragraphs else None
        if new is not None:
            keys = list(dict.fromkeys(made.keys(new)))
            found = sorted({other for key in keys if key in catalogue for other in catalogue[key]})
            owner = next((other for other in found if made.is_alike(new, kept[other])), number)
            if owner == number:
                kept[number] = new
                for key in keys:
                    catalogue[key].append(number)
        owners.append(owner)
    return Outcome(owners, time.process_time() - began)


def witnessed(pages: Sequence[PreparedPage], choice: str, learned: Sequence[PreparedPage] = ()) -> Outcome:
    """Let a `Deduplicator` decide by the fingerprint *choice*, with the product's witnesses around it.

    It learns from the pages *learned* first, if there are any. The time is that from HTML to verdict. A page that was
    released counts as kept.
    """
    from dedup_middleware import Deduplicator  # noqa: PLC0415 - the door stands on the floors above

    owners: list[int] = []
    numbers: dict[str, int] = {}
    with Deduplicator("memory:", fingerprint=choice, max_milliseconds=_AN_HOUR) as dedup:
        if learned:
            dedup.learn([{"url": page.text.url, "html": page.html} for page in learned])
        began = time.process_time()
        for number, page in enumerate(pages):
            judged = dedup.add(page.text.url, page.html)
            owner = judged.owner_url if judged.is_duplicate else None
            owners.append(number if owner is None else numbers[owner])
            numbers[judged.url] = number
        seconds = time.process_time() - began
        for url in dedup.released:
            owners[numbers[url]] = numbers[url]
    return Outcome(owners, seconds)


def size_of(made: Method, text: Text) -> int:
    """Return how many bytes a store keeps of *text* for the method: its fingerprint, packed, and its keys."""
    new = made.fingerprint(text) if text.paragraphs else None
    return 0 if new is None else len(packed(new)) + sum(map(len, dict.fromkeys(made.keys(new))))
