"""Who is compared: published methods by their names, with or without options, and our own fingerprint."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain, cycle
from typing import TYPE_CHECKING, cast

from dedup_middleware.checks.alignment import containment
from dedup_middleware.errors import ConfigError
from dedup_middleware.fingerprints import ClauseFingerprinter
from dedup_middleware.fingerprints.method import METHODS, Method, Text, WeightedSet, method, packed
from dedup_middleware.terminal import EXTRA

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from dedup_middleware.fingerprints.method import Print
    from dedup_middleware.methods.compare.corpus import PreparedPage

#: Our fingerprint, by its name among the values of ``DEDUP_FINGERPRINT``.
CLAUSES = "clauses"
# Any key will do where nobody can choose pages to fit it.
_KEY = b"scrapy dedup compare"


class MissingPackageError(Exception):
    """A method needs a package that is not installed; the message is one line."""


class Clauses(Method):
    """Our fingerprint alone: the share of a page's clauses that another one has, without any witness."""

    threshold = 0.8

    def __init__(self) -> None:
        self._fingerprint = ClauseFingerprinter(_KEY)

    def fingerprint(self, text: Text) -> Print | None:
        """Return its clauses, weighted by their letters; ``None`` if it has none."""
        weights = self._fingerprint(text.paragraphs).weights
        return WeightedSet(weights) if weights else None

    def score(self, new: Print, old: Print) -> float:
        """Return the share of *new* that *old* has."""
        if not (isinstance(new, WeightedSet) and isinstance(old, WeightedSet)):
            return 0.0
        return containment(cast("Mapping[bytes, int]", new.weights), old.weights.keys())


def contestant(choice: str) -> Method:
    """Return the method of a *choice*; `ConfigError` for a wrong one, `MissingPackageError` where it cannot work."""
    try:
        return Clauses() if choice == CLAUSES else method(choice)
    except ImportError as error:
        raise MissingPackageError(missing(error)) from error
    except ConfigError as error:
        if isinstance(error.__cause__, ImportError):
            raise MissingPackageError(str(error)) from error
        name = choice.partition(":")[0]
        if name == CLAUSES:
            raise ConfigError(f"{CLAUSES} has no options here; leave out {choice.removeprefix(CLAUSES)!r}") from error
        if name not in METHODS:
            raise ConfigError(f"{choice!r} is no method; there are {', '.join([CLAUSES, *METHODS.names()])}") from error
        raise


def missing(error: ImportError) -> str:
    """Return in a line what is missing, and the remedy."""
    return f"it needs {error.name or error}, which is not installed: {EXTRA}"


def all_choices() -> list[str]:
    """Return every contestant under its default options, ours first."""
    return [CLAUSES, *METHODS.names()]


_SWEEP = re.compile(
    r"(?P<choice>[^:]+:(?:.*,)?\s*(?P<option>[^=,:]+?)\s*=)\s*"
    r"(?P<first>-?[0-9.]*?[0-9])\.\.(?P<last>-?[0-9.]*?[0-9])(?::(?P<step>[0-9.]*?[0-9]))?"
)
# Each is a process.
_MAX_VALUES = 200


class Sweep:
    """The values of one option, from the first to the last."""

    def __init__(self, text: str) -> None:
        """Read *text*, ``METHOD:OPTION=A..B`` or ``METHOD:OPTION=A..B:STEP``; `ConfigError` if it is none.

        Without a step it is one unit of the finest digit given: 1 in 0..16, 0.1 in 0.5..0.9.
        """
        found = _SWEEP.fullmatch(text.strip())
        numbers = [] if found is None else [_number(found[name]) for name in ("first", "last", "step")]
        if found is None or None in numbers[:2] or (found["step"] and numbers[2] is None):
            raise ConfigError(f"{text!r} is no sweep; write METHOD:OPTION=A..B or METHOD:OPTION=A..B:STEP")
        first, last = (number for number in numbers[:2] if number is not None)
        step = numbers[2] or Decimal(1).scaleb(min(0, *(_exponent(number) for number in (first, last))))
        if last < first or numbers[2] == 0:
            raise ConfigError(f"{text!r} goes nowhere; write the smaller value first, and a step above 0")
        count = int((last - first) / step) + 1
        if count > _MAX_VALUES:
            raise ConfigError(f"{text!r} has {count} values, more than {_MAX_VALUES}; take larger steps")
        self.method: str = found["choice"].partition(":")[0]
        self.option: str = found["option"]
        self.values = [str(first + n * step) for n in range(count)]
        self.choices = [found["choice"] + value for value in self.values]


def _number(text: str | None) -> Decimal | None:
    return Decimal(text) if text and re.fullmatch(r"-?([0-9]+(\.[0-9]+)?|\.[0-9]+)", text) else None


def _exponent(number: Decimal) -> int:
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)
    return exponent


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

    originals: list[int]
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
    originals = []
    began = time.process_time()
    for number, text in enumerate(texts):
        original = number
        new = made.fingerprint(text) if text.paragraphs else None
        if new is not None:
            keys = list(dict.fromkeys(made.keys(new)))
            found = sorted({other for key in keys if key in catalogue for other in catalogue[key]})
            original = next((other for other in found if made.is_alike(new, kept[other])), number)
            if original == number:
                kept[number] = new
                for key in keys:
                    catalogue[key].append(number)
        originals.append(original)
    return Outcome(originals, time.process_time() - began)


def witnessed(pages: Sequence[PreparedPage], choice: str, learned: Sequence[PreparedPage] = ()) -> Outcome:
    """Let a `Deduplicator` decide by the fingerprint *choice*, with the product's witnesses around it.

    It learns from the pages *learned* first, if there are any. The time is that from HTML to verdict. A page that was
    released counts as kept.
    """
    from dedup_middleware import Deduplicator  # noqa: PLC0415 - the door stands on the floors above

    originals: list[int] = []
    numbers: dict[str, int] = {}
    with Deduplicator("memory:", fingerprint=choice, max_milliseconds=_AN_HOUR) as dedup:
        if learned:
            dedup.learn([{"url": page.text.url, "html": page.html} for page in learned])
        began = time.process_time()
        for number, page in enumerate(pages):
            checked = dedup.add(page.text.url, page.html)
            original = checked.original_url if checked.is_duplicate else None
            originals.append(number if original is None else numbers[original])
            numbers[checked.url] = number
        seconds = time.process_time() - began
        for url in dedup.released:
            originals[numbers[url]] = numbers[url]
    return Outcome(originals, seconds)


def size_of(made: Method, text: Text) -> int:
    """Return how many bytes a store keeps of *text* for the method: its fingerprint, packed, and its keys."""
    new = made.fingerprint(text) if text.paragraphs else None
    return 0 if new is None else len(packed(new)) + sum(map(len, dict.fromkeys(made.keys(new))))


#: Characters.
LENGTHS = (1000, 2000, 3000, 4000)
# Of each length. The fastest of some rounds counts: what else a machine does only ever adds to it.
_TEXTS = 20
_ROUNDS = 3


def texts_of_length(texts: Sequence[Text], length: int, count: int = _TEXTS) -> list[Text]:
    """Return *count* texts of just *length* characters: those of *texts*, cut where too long, spliced where too short.

    Paragraphs stay paragraphs, and begin again with the first where there are too few. `ValueError` if there are none.
    """
    if not any(text.paragraphs for text in texts):
        raise ValueError("no page has a main text")
    paragraphs = cycle(chain.from_iterable(text.paragraphs for text in texts))
    titles = cycle(text.title for text in texts if text.paragraphs)
    return [_text(paragraphs, next(titles), length) for _ in range(count)]


def _text(paragraphs: Iterator[str], title: str, length: int) -> Text:
    taken: list[str] = []
    while length:
        taken.append(next(paragraphs)[:length])
        length -= len(taken[-1])
    return Text(tuple(taken), title)


def milliseconds(made: Method, texts: Iterable[Text]) -> float:
    """Return how much CPU time, on average, the method takes for the fingerprint of one of *texts*."""
    chosen = list(texts)
    rounds = []
    for _ in range(_ROUNDS):
        began = time.process_time()
        for text in chosen:
            made.fingerprint(text)
        rounds.append(time.process_time() - began)
    return min(rounds) * 1000 / len(chosen)
