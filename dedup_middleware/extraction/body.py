"""Finds where the body of a page begins, as browsers do.

A page may leave out ``<html>``, ``<head>`` and ``<body>``. The parser of lxml was made for HTML 4: it leaves what it
does not know, such as ``<main>`` and ``<article>``, in the head, and what follows ``</html>`` in a tree of its own.
"""

from __future__ import annotations

from copy import deepcopy
from itertools import chain
from typing import TYPE_CHECKING

from lxml import etree

from dedup_middleware.common.budget import UNLIMITED, Budget, UncheckableError
from dedup_middleware.common.patterns import pattern
from dedup_middleware.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# What stands in a head, by the HTML standard: any other element begins the body. Two of them may contain text that
# browsers show without scripts, or elsewhere. It is read as if in the body, and begins nothing. Of <noscript>, text
# without any element is no such text, but markup that some tool has escaped.
_METADATA = "meta link script style title base basefont noframes"
_TEXT = "descendant::text()[not(parent::script or parent::style)][normalize-space()]"
_UNSEEN = [*_METADATA.split(), f"noscript[not(* and {_TEXT})]", "template[not(@shadowrootmode)]"]
_IS_SHOWN = etree.XPath(f"not({' or '.join(f'self::{each}' for each in _UNSEEN)})")
# To count what a head contains takes a quarter of the time that a look at each element does.
_IS_ELSEWHERE = etree.XPath(
    f"boolean(/html/head[count(*) > {' + '.join(f'count({each})' for each in _UNSEEN)}]"
    " or /html/frameset or /html/body[1]/following-sibling::head)"
)
_BEGIN_NOTHING = frozenset({"noscript", "template"})
# Control characters, which a parser puts into a tree and lxml does not.
_UNWRITABLE = pattern(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def browser_tree(root: etree._Element, budget: Budget = UNLIMITED) -> etree._Element:
    """Return the root of the tree that a browser makes of a page of which a parser has made the tree under *root*.

    That is *root* for nearly all pages; to find out takes less than a hundredth of the time that reading them does.
    Else it is a copy with all that is shown in one body, and takes about half a parse; *root* stays as it is.
    :class:`UncheckableError` where that takes more than the *budget*. Linear time.
    """
    if not etree.iselement(root):
        return root
    later = [*root.itersiblings("html")]
    if not later and not _IS_ELSEWHERE(root):
        return root
    page = deepcopy(root)
    bodies = page.findall("body")
    content = _content(chain([page], map(deepcopy, later)), budget)
    budget.check_time()
    for part in bodies:
        page.remove(part)
    for part in page.findall("head"):
        part.tail = None
    if content:
        body = etree.SubElement(page, "body")
        body.attrib.update(bodies[0].attrib if bodies else {})
        _fill(body, content)
    return page


def _content(pages: Iterable[etree._Element], budget: Budget) -> list[etree._Element | str]:
    """Return what the body of a page shows: elements, with their tails, and texts; *pages* are its trees.

    A page of frames shows nothing beside these.
    """
    content: list[etree._Element | str] = []
    has_begun = False
    for count, each in enumerate(_parts(pages), 1):
        if count > budget.elements:
            raise UncheckableError(Reason.TOO_MANY_ELEMENTS)
        if isinstance(each, str):
            is_shown = has_begun = has_begun or bool(each.strip())
        elif each.tag == "body":
            has_begun, is_shown = True, False
        elif each.tag == "frameset" and not has_begun:
            break
        else:
            # Comments have no name.
            is_shown = has_begun or (isinstance(each.tag, str) and bool(_IS_SHOWN(each)))
            has_begun = has_begun or (is_shown and each.tag not in _BEGIN_NOTHING)
        if is_shown:
            content.append(each)
    return content


def _parts(pages: Iterable[etree._Element]) -> Iterator[etree._Element | str]:
    """Yield what stands in *pages*, or in a head or a body of theirs; each body comes before its content."""
    for page in pages:
        yield page.text or ""
        for part in [*page]:
            if part.tag != "head":
                yield part
            if part.tag in {"head", "body"}:
                yield part.text or ""
                yield from [*part]
                yield part.tail or ""


def _fill(body: etree._Element, content: Iterable[etree._Element | str]) -> None:
    """Put the *content* into the *body*. Linear time: each text is written once."""
    last, texts = None, list[str]()
    for each in [*content, None]:
        if isinstance(each, str):
            texts.append(each)
            continue
        text = _UNWRITABLE.sub(" ", "".join(texts))
        if last is None:
            body.text = text
        elif text:
            last.tail = _UNWRITABLE.sub(" ", last.tail or "") + text
        if each is not None:
            body.append(each)
        last, texts = each, []
