"""What a page says beside its main text: what it is called, and the texts around it.

It reads and hashes, and does not know what is compared with what.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from lxml import etree
from xxhash import xxh32_digest

from dedup_middleware.features import PageFeatures
from dedup_middleware.text.clauses import folded, one_line, without_separators

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dedup_middleware.extraction import Texts

# Not //title: icons have titles too.
_TITLE = etree.XPath("string(/html/head/title)")
_TEXT = etree.XPath("string()")
# Names of <meta> are compared without regard to case.
_DESCRIPTION = etree.XPath("string((//meta[translate(@name, 'DESCRIPTON', 'descripton') = 'description']/@content)[1])")
# In the head alone: what stands in the body, a reader may have written.
_ADDRESSES = etree.XPath("/html/head/link[@rel = 'canonical' or @rel = 'amphtml'][@href]")
_UNSEEN = frozenset({"script", "style", "noscript", "template", "head"})
#: What follows so many characters is no title any more.
MAX_TITLE = 300
#: Texts around the main text that are told apart; what follows counts as one.
MAX_TEXTS = 63
#: An address is cut here, and then leads nowhere.
MAX_ADDRESS = 2_000
_DIGITS = b"0123456789"


def features_of(root: etree._Element, found: Texts) -> PageFeatures:
    """Return what the page under *root*, with the texts *found* there, says beside its main text.

    0.1 ms; O(characters in these texts).
    """
    title, heading, texts = _short(_TITLE(root)), _short(found.heading), found.others
    if not title and not heading and (first := next(root.iter("h1"), None)) is not None:
        heading = _short(_TEXT(first))
    if heading in title or folded(heading) in folded(title):
        heading = ""
    rest = "\n".join(texts[MAX_TEXTS:])
    encoded = [*map(_encoded, texts[:MAX_TEXTS]), *[_encoded(rest)] * bool(rest)]
    bare = [text.translate(None, _DIGITS) for text in encoded]
    numbered = (xxh32_digest(text) for text, other in zip(encoded, bare, strict=True) if len(text) > len(other))
    named = {str(link.get("rel")): str(link.get("href")) for link in cast("list[Any]", _ADDRESSES(root))}
    canonical, amp = (named.get(rel, "")[:MAX_ADDRESS].strip() for rel in ("canonical", "amphtml"))
    return PageFeatures(title, heading, frozenset(map(xxh32_digest, bare)), frozenset(numbered), canonical, amp)


def description_of(root: etree._Element) -> str:
    """Return what the page under *root* gives as its summary, on one line; empty if it gives none. O(elements)."""
    return one_line(str(_DESCRIPTION(root)))


def _short(text: object) -> str:
    # A page can have a megabyte in its title: the beginning is cut off before anything reads it.
    return one_line(str(text)[: 10 * MAX_TITLE], MAX_TITLE)


def shown_text(root: etree._Element) -> Iterator[str]:
    """Yield the pieces of text that the page under *root* shows, its title and its links among them. O(page)."""
    yield str(_TITLE(root))
    hidden: etree._Element | None = None
    for event, element in etree.iterwalk(root, events=("start", "end", "comment", "pi")):
        if event == "start":
            if hidden is None and element.tag in _UNSEEN:
                hidden = element
            if hidden is None and element.text:
                yield element.text
            continue
        if element is hidden:
            hidden = None
        if hidden is None and element.tail:
            yield element.tail


def shown_folded(root: etree._Element) -> str:
    """Return all that the page under *root* shows, as :func:`as_shown`. As long as all else that is read of a page."""
    return as_shown(shown_text(root))


def as_shown(texts: Iterable[str]) -> str:
    """Return *texts* folded, and once more without separators, so that what is written in them is found."""
    # Half of a page is white space, and folding it would take as long as the rest.
    text = folded(" ".join(" ".join(texts).split()))
    return f"{text}\n{without_separators(text)}"


def text_hash(text: str) -> bytes:
    """Return the hash of one *text*, digits apart, as it is in :class:`PageFeatures`."""
    return xxh32_digest(_encoded(text).translate(None, _DIGITS))


def _encoded(text: str) -> bytes:
    return text.encode("utf8", "surrogatepass")
