"""Reads what a page has beside its main text: title, heading, the texts and facts around it.

A fact is a number with its unit, currency or label. Another price, amount, size or serial number makes another page of
the same words. Dates and times of day do not, for pages show when they were fetched, published or printed.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from lxml import etree
from xxhash import xxh32_digest

from dedup_middleware.common.patterns import pattern
from dedup_middleware.extraction.marks import icon_of, mark_of
from dedup_middleware.fingerprints import fast_hash
from dedup_middleware.model import PageFeatures
from dedup_middleware.text.characters import LETTER_MARKS
from dedup_middleware.text.clauses import MONTHS, folded, one_line, without_separators
from dedup_middleware.text.titles import without_view
from dedup_middleware.text.words import LETTERS, SIGNS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_TITLE = etree.XPath("string(/html/head/title)")
_TEXT = etree.XPath("string()")
# Names of <meta> are compared without regard to case.
_DESCRIPTION = etree.XPath("string((//meta[translate(@name, 'DESCRIPTON', 'descripton') = 'description']/@content)[1])")
# In the head alone: what stands in the body, a reader may have written.
_CANONICAL = etree.XPath("string((/html/head/link[@rel = 'canonical'][@href])[last()]/@href)")
# Not //, which lists all nodes before it takes some. Of parents, not of ancestors: those take the depth of the page.
_TEXTS = etree.XPath("/descendant::text()[not(parent::script or parent::style or parent::title)]", smart_strings=False)
_LINKS = etree.XPath("/descendant::a/@href", smart_strings=False)
_CHOSEN = etree.XPath("/descendant::option[@selected]/text()", smart_strings=False)
_DATA_TEXTS = etree.XPath(
    "/descendant::script[@type = 'application/ld+json' or @type = 'application/json']/text()", smart_strings=False
)
_DATA = etree.XPath("/descendant::script[@type = 'application/ld+json' or @type = 'application/json']")
_OG_TITLE = etree.XPath("/html/head/meta[@property = 'og:title'][1]/@content", smart_strings=False)
_SITE_NAME = etree.XPath("/html/head/meta[@property = 'og:site_name'][1]/@content", smart_strings=False)
_READ_JSON = json.JSONDecoder(strict=False).decode
# What has no text inside, so that each is read in constant time.
_EMPTY = ("audio", "embed", "frame", "iframe", "img", "input", "object", "source", "track", "video")
# What style sheets make icons of, where it is empty.
_ICONS = ("b", "em", "i", "span")
#: What follows so many characters is no title any more; and so many titles, icons' among them, are looked at.
MAX_TITLE, MAX_TITLES = 300, 100
#: Links to ``/`` of a page that may name its site, and texts of each that are read.
MAX_HOME_LINKS, MAX_HOME_TEXTS = 4, 8
#: Bytes of the digest of all that a page shows.
CONTENT_DIGEST = 16
#: Pictures, files and the like that are told apart; what follows counts as one. Things in the data that have names.
MAX_MARKS, MAX_NAMED = 64, 16
#: Formats by which two templates are compared: the least of their hashes, which estimate how many both have.
TEMPLATE_SKETCH = 16
#: Texts around the main text that are told apart; what follows counts as one.
MAX_TEXTS = 127
#: Values with numbers that are read from the data of one script, and characters of the data of all scripts.
MAX_DATA, MAX_DATA_LENGTH = 256, 200_000
#: An address is cut here, and then leads nowhere.
MAX_ADDRESS = 2_000
_DIGITS = b"0123456789"
symbols_of = pattern(f"[{SIGNS}]").findall
_DIGIT = pattern(r"[\d\u00b2\u00b3\u00b9]")
# Characters of a line that may be a date and little else.
_MAX_DATE = 60


class Texts(NamedTuple):
    """The visible text of a page, links apart."""

    paragraphs: list[str]
    """Those of its main text."""
    others: list[str]
    """All others, in document order."""
    heading: str
    """The first ``<h1>`` that is not a link, empty without one."""
    marks: Sequence[str] = ()
    """What the page shows outside of its frame that is not text: see `marks`."""
    exact: Sequence[str] = ()
    """What counts as it is written: texts with digits outside of the main text and the frame, links within the text."""
    labels: Sequence[str] = ()
    """The short texts of the frame: menus, breadcrumbs."""
    formats: frozenset[str] = frozenset()
    """The tags and classes of the block-level elements that hold text."""
    is_boilerplate: bool = False
    """Whether the main text calls itself boilerplate, a notice or comments, although other text does not."""


def features_of(root: etree._Element, found: Texts) -> PageFeatures:
    """Return what the page under *root*, with the texts *found* there, has beside its main text. O(characters)."""
    heading, texts = _short(found.heading), found.others
    title = _short(_title_of(root))
    if not title and not heading and (first := next(root.iter("h1"), None)) is not None:
        heading = _short(_TEXT(first))
    rest = "\n".join(texts[MAX_TEXTS:])
    around = frozenset(map(text_hash, [*texts[:MAX_TEXTS], *[rest] * bool(rest)]))
    data, named = _data_of(root)
    around |= {line_hash(text) for text in [*found.exact[:MAX_TEXTS], *named] if not is_passing(text)}
    # The numbers of a title are a part of it, and "page 1 of 2" names a view.
    names = {title, found.heading}
    with_facts = [text for text in texts if has_number(text) and text not in names and without_view(text)]
    facts = [*all_facts(with_facts, counts=False), *data]
    canonical = str(_CANONICAL(root))[:MAX_ADDRESS].strip()
    more = ["\n".join(found.marks[MAX_MARKS:])] * (len(found.marks) > MAX_MARKS)
    marks = frozenset(map(fast_hash, [*found.marks[:MAX_MARKS], *more]))
    lines = (*texts, *found.labels)
    template = frozenset(sorted(map(fast_hash, found.formats))[:TEMPLATE_SKETCH])
    return PageFeatures(
        title,
        heading,
        around,
        frozenset(map(fast_hash, facts)),
        canonical,
        marks,
        template,
        lines,
        found.is_boilerplate,
        tuple(dict.fromkeys(filter(None, map(_short, _site_names(root))))),
    )


def features_of_text(heading: str) -> PageFeatures:
    """Return what a page of nothing but text has beside it: its *heading*."""
    return PageFeatures(heading=_short(heading))


def _title_of(root: etree._Element) -> str:
    """Return the title of the page under *root*: in its head, or the first elsewhere that is not that of an icon."""
    if title := str(_TITLE(root)):
        return title
    titles = islice(root.iter("title"), MAX_TITLES)
    return next((str(_TEXT(each)) for each in titles if next(each.iterancestors("svg", "template"), None) is None), "")


def _site_names(root: etree._Element) -> Iterator[str]:
    """Yield what the page under *root* says that its site is called: ``og:site_name``, the text of links to ``/``.

    Only links above the first heading that is no link itself: what follows, a reader may have written.
    """
    yield from cast("list[str]", _SITE_NAME(root))
    heading, links = None, 0
    for element in root.iter("a", "h1"):
        is_heading = element.tag == "h1"
        if heading is not None and (is_heading or next(element.iterancestors("h1"), None) is not heading):
            return
        heading = element if is_heading else None
        if not is_heading and element.get("href") == "/":
            yield " ".join(islice(cast("Iterator[str]", element.itertext()), MAX_HOME_TEXTS))
            yield from (image.get("alt", "") for image in islice(element.iter("img"), 1))
            links += 1
            if links == MAX_HOME_LINKS:
                return


def shown_digest(root: etree._Element) -> bytes:
    """Return 16 bytes that change with anything that the page under *root* shows, menus and teasers included.

    That is its title, all its text, what is not text, the data in its scripts, and the paths that its links lead to:
    queries carry sessions and trackers. Empty if the page shows no text. O(characters).
    """
    texts, links, chosen, data = (cast("list[str]", find(root)) for find in (_TEXTS, _LINKS, _CHOSEN, _DATA_TEXTS))
    lines = [line for text in texts if (line := " ".join(text.split()))]
    if not lines:
        return b""
    paths = [link.partition("#")[0].partition("?")[0] for link in links]
    icons = [icon_of(each) for each in root.iter(*_ICONS) if not each.text and not len(each)]
    lists = ([_title_of(root)], lines, map(mark_of, root.iter(*_EMPTY)), icons, chosen, paths, data)
    shown = "\0\0".join("\0".join(each) for each in lists)
    return sha256(shown.encode("utf8", "surrogatepass")).digest()[:CONTENT_DIGEST]


def _data_of(root: etree._Element) -> tuple[list[str], list[str]]:
    """Return the facts in what the scripts of the page carry as JSON, and the names that it has for what it is about.

    What exceeds `MAX_DATA_LENGTH` counts as one fact.
    """
    facts, names, room = list[str](), [*cast("list[str]", _OG_TITLE(root))], MAX_DATA_LENGTH
    for script in cast("list[Any]", _DATA(root)):
        text = script.text or ""
        room -= len(text)
        if room < 0:
            facts.append(text)
            break
        try:
            data = _READ_JSON(text)
        except (ValueError, RecursionError):
            facts += all_facts([text])
            continue
        facts += facts_of_data(data, MAX_DATA)
        if script.get("type") == "application/ld+json":
            names += _names_in(data)
    return facts, [f"name {one_line(name, MAX_TITLE)}" for name in names]


def _names_in(data: Any) -> Iterator[str]:
    """Yield the names of the things in *data*, of a page's JSON-LD."""
    graph = data.get("@graph") if isinstance(data, dict) else data
    for thing in [data, *(graph if isinstance(graph, list) else [])][:MAX_NAMED]:
        if isinstance(thing, dict):
            yield from (name for key in ("name", "headline") if isinstance(name := thing.get(key), str))


def description_of(root: etree._Element) -> str:
    """Return what the page under *root* gives as its summary, on one line; empty if it gives none. O(elements)."""
    return one_line(str(_DESCRIPTION(root)))


def _short(text: object) -> str:
    # A page can have a megabyte in its title: the beginning is cut off before anything reads it.
    return one_line(str(text)[: 10 * MAX_TITLE], MAX_TITLE)


def text_hash(text: str) -> bytes:
    """Return the hash of one *text*, as it is in :class:`PageFeatures`: without dates, times of day and digits."""
    if len(text) < _MAX_DATE and _DIGIT.search(text):
        text = _without_date(text)
    return xxh32_digest(text.encode("utf8", "surrogatepass").translate(None, _DIGITS))


def line_hash(text: str) -> bytes:
    """Return the hash of one *text* as it is written, which is another one than any `text_hash`."""
    return xxh32_digest(f"={text}".encode("utf8", "surrogatepass"))


def is_passing(text: str) -> bool:
    """Return whether the short *text* changes from one fetch of a page to the next: it is a date, an age, a count.

    >>> [is_passing(text) for text in ("28 November 2026", "2 hours ago", "4 min read", "1,113 views", "14 days")]
    [True, True, True, True, False]
    """
    return len(text) <= _MAX_DATE and has_number(text) and _is_passing(text)


# The pages of a site have most of these in common. 1 MB at the most.
@lru_cache(maxsize=2048)
def _is_passing(text: str) -> bool:
    line = folded(text)
    if _ISO.fullmatch(text.strip()) or _READING.search(line):
        return True
    bare = _without_times(line, " ")
    words = _WORDS.findall(bare)
    if not has_number(bare):
        # "25:23" may be the score of a set.
        return all(map(_PUBLISHED.fullmatch, words)) and _CLOCK.fullmatch(text.strip()) is None
    return bool(words) and (_AGO.search(bare) is not None or all(map(_READERS.match, words)))


def is_age(text: str) -> bool:
    """Return whether the short *text* tells how long ago its page was made, and nothing else.

    >>> [is_age(text) for text in ("Posted 2 hours ago", "Just now", "vor 3 Stunden", "3小时前", "2 hours", "9 May")]
    [True, True, True, True, False, False]
    """
    text = folded(text) if len(text) <= _MAX_DATE else ""
    words = _WORDS.findall(text)
    has_passed = _AGO.search(text) is not None or any(map(_NOW.fullmatch, words))
    return has_passed and all(map(_OF_AGE.fullmatch, words))


# The pages of a site have most of their short texts in common. 3 MB at the most.
_without_date = lru_cache(maxsize=2048)(lambda text: _without_times(folded(text), ""))


# --- facts

_MONTH = rf"{MONTHS}\.?"
# Dates and times of day, which say when a page was made or fetched.
_TIME = pattern(
    rf"""(?<!\d)(?:
        (?:19|20)\d\d[-/.]\d\d?[-/.]\d\d?(?:t\d\d?)? | \d\d?[-/]\d\d?[-/](?:19|20)?\d\d | \d\d?\.\d\d?\.(?:19|20)\d\d
        | \d{{1,4}}\ ?[年月日号時时分秒] | \d\d?(?:st|nd|rd|th|\.)?\ +{_MONTH}(?:,?\ +(?:19|20)\d\d)?
        | \d\d?:\d\d(?::\d\d)?(?:\ ?[ap]\.?m\b)? | (?:19|20)\d\d(?!\d)
    ) | \b(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,?\ +(?=\d)
    | \b{_MONTH}\ +\d\d?(?:st|nd|rd|th)?\b(?:,?\ +(?:19|20)\d\d\b)?""",
    re.VERBOSE,
)
# Where the pattern above can begin: with one class of characters first, `re` finds these in a tenth of the time.
_MAY_BE_TIME = pattern(
    r"[\dadfjmnostw](?:(?<=\d)(?<!\d\d)|(?<!\w\w)(?=on|ue|ed|hu|ri|at|un|an|eb|ar|pr|ay|ul|ug|ep|ct|ov|ec))"
)
# Folding makes digits of fractions.
_HAS_NUMBER = pattern(r"[\d¼-¾⅐-⅞]")
_NUMBER = pattern(r"\d+(?:[.,/⁄:x×-]\d+)*")
# What stands after a number: a unit, or a noun of one or two words.
_UNIT = pattern(rf" *([%‰°€£¥₹₽$]|{LETTERS}(?:[ .-]{{1,2}}{LETTERS})?)")
_WORDS = pattern(LETTERS)
_IN_WORD = pattern(rf"[\w{LETTER_MARKS}]")
_JOINED = str.maketrans(".-", "  ")
_CURRENCY, _SIGNS = frozenset("$€£¥₹₽#№"), frozenset("-−+")
_LABEL_LENGTH = 24
#: Letters of the name of a unit: "kg", "m2", "kWh".
MAX_UNIT = 3
# A number by itself is a fact from this length on: a serial number, a price with its decimals.
_MIN_BARE = 5
#: Lines with numbers around a text that are read: some twenty times what a page has.
MAX_FACTS_LENGTH = 10_000
# What counts readers, or the time since: it differs from one fetch of a page to the next.
_COUNTED = pattern(
    r"comment|kommentar|coment|repl|antwort|respuesta|réponse|view|visit|hit|like|share|vote|read|follow|download|rating|"
    r"review|answer|post|star|sec|min|hour|day|week|month|year|stunde|tag|woche|jahr|heure|jour|hora|día|ago\b|"
    r"[条條次人赞讚贊顶踩楼级秒週件回]|参与|跟贴|评论|評論|回复|阅读|閱讀|浏览|点击|分享|收藏|小时|小時|天前|分钟|分鐘|周前|个月|コメント|ビュー"
)
# The same by itself in a line: what counts readers, says that time has passed, or stands beside a date.
_READERS = pattern(
    _COUNTED.pattern.partition("|sec|")[0]
    + "|[条條次人赞讚贊顶踩]|参与|跟贴|评论|評論|回复|阅读|閱讀|浏览|点击|分享|收藏"
)
_ISO = pattern(
    r"(?:19|20)\d\d-?[01]\d-?[0-3]\d(?:[T ]\d\d:?\d\d(?::?\d\d(?:\.\d{1,9})?)?)?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?"
)
_CLOCK = pattern(r"\d\d?:\d\d")
_AGO = pattern(r"\bago\b|\bvor\b|\bhace\b|il y a|\bfa\b|назад|前\Z")
# "4 min read" is counted from the text.
_READING = pattern(r"\d min(?:ute)?s? read\b|\breading time\b|\blese(?:zeit|dauer)\b|阅读时间|閱讀時間")
_PUBLISHED = pattern(r"(?:publi|updat|post)\w*|last|on|at|am|um|uhr|le|el|de|stand|(?:发布|更新|時間|时间)\w*")
_NOW = pattern(r"now|today|yesterday|heute|gestern|hier|ayer|hoy|сегодня|вчера|刚刚|剛剛|昨天|今天")
# What an age is made of.
_OF_AGE = pattern(
    rf"{_NOW.pattern}|{_PUBLISHED.pattern}|ago|vor|hace|il|y|fa|назад|just|an?|einer?|[秒分钟鐘小时時天周週个個月年]+前|"
    r"(?:sec|min|hour|day|week|month|year|stunde|tag|woche|monat|jahr|heure|jour|semaine|mois|hora|día|semana)\w*"
)
_VERSION_POINTS = 2
# A URL, a path, a date, a token or a time in milliseconds rather than a text: "a/b.js", "2024-05-01T10:00", "826d9947".
_IDENTIFIER = pattern(r"://|^\S*/\S*$|^\d{4}-\d\d-\d\d|^(?=.*\d)(?=.*[a-zA-Z])[\w.~-]{8,}$|^\d{9,}$")


def facts_of(text: str, *, counts: bool = True) -> Iterator[str]:
    """Yield the numbers of *text*, folded, with the unit, currency or label beside each. O(len(text)).

    Without *counts*, those before a longer word are left out, for it counts visits, answers, rooms; and versions, too:
    "Sphinx 1.0.7".
    """
    text = _without_times(without_separators(folded(text)), " ; ")
    for number in _NUMBER.finditer(text):
        unit = found[1].translate(_JOINED) if (found := _UNIT.match(text, number.end())) else ""
        before = text[max(0, number.start() - _LABEL_LENGTH) : number.start()]
        sign = before[-1:] if before[-1:] in _SIGNS and not _IN_WORD.match(before[-2:-1]) else ""
        currency = before.rstrip(" -−+")[-1:]
        if currency in _CURRENCY:
            yield f"{currency}{sign}{number[0]} {unit}"
        elif unit:
            if (counts or len(unit.split()[0]) <= MAX_UNIT) and not _COUNTED.match(unit):
                yield f"{sign}{number[0]} {unit}"
        elif label := _last_word(before):
            if not _COUNTED.match(label) and (counts or number[0].count(".") < _VERSION_POINTS):
                yield f"{label} {sign}{number[0]}"
        elif len(number[0]) >= _MIN_BARE:
            yield f"{sign}{number[0]}"


def _without_times(text: str, mark: str) -> str:
    """Return *text* with *mark* in place of each date and time of day."""
    pieces: list[str] = []
    end = 0
    for place in _MAY_BE_TIME.finditer(text):
        start = place.start()
        if start >= end and (found := _TIME.match(text, start)):
            pieces += text[end:start], mark
            end = found.end()
    return "".join([*pieces, text[end:]])


def has_number(text: str) -> bool:
    """Return whether *text* contains a digit or a fraction."""
    return _HAS_NUMBER.search(text) is not None


def all_facts(texts: Iterable[str], *, counts: bool = True) -> set[str]:
    """Return the facts in *texts*; what follows the first `MAX_FACTS_LENGTH` of them counts as one. O(characters)."""
    text = "\n".join(filter(has_number, texts))
    return {
        *facts_of(text[:MAX_FACTS_LENGTH], counts=counts),
        *([text[MAX_FACTS_LENGTH:]] if len(text) > MAX_FACTS_LENGTH else []),
    }


def facts_of_data(data: object, most: int) -> Iterator[str]:
    """Yield the facts in *data*, parsed JSON, with keys as labels; of its first *most* strings and numbers.

    URLs, dates and identifiers are left out: they differ between two fetches of one page.
    """
    lines: list[str] = []
    waiting: list[tuple[str, object]] = [("", data)]
    while waiting and len(lines) < most:
        key, value = waiting.pop()
        if isinstance(value, dict):
            waiting.extend(reversed([(str(name), each) for name, each in value.items()]))
        elif isinstance(value, list):
            waiting.extend((key, each) for each in reversed(value))
        elif isinstance(value, (int, float, str)) and not isinstance(value, bool):
            text = str(value).removesuffix(".0")
            if has_number(text) and not _IDENTIFIER.search(text):
                lines.append(f"{key}: {text}")
    # Marked, for what a script carries is compared with what another script carries, not with the text of a page.
    return (f"data {fact}" for fact in facts_of("\n".join(lines)))


def _last_word(text: str) -> str:
    text = text.rstrip(" -−+").rstrip(":.").rstrip()
    word = next(iter(_WORDS.findall(text)[-1:]), "")
    return word if text.endswith(word) else ""
