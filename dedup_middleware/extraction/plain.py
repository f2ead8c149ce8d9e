"""Reads pages of plain text and of Markdown: their paragraphs are what blank lines separate."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING

from dedup_middleware.common.budget import UNLIMITED, Budget, UncheckableError
from dedup_middleware.extraction import Extracted
from dedup_middleware.extraction.blocks import collapsed
from dedup_middleware.extraction.features import CONTENT_DIGEST, features_of_text
from dedup_middleware.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PLAIN, MARKDOWN = "text/plain", "text/markdown"
# JSON, XML and HTML, which servers call plain text as well. Markdown may begin with a link, or with HTML.
_DATA = ("{", "[", "<")
_BLANK_LINES = re.compile(r"\n\s*\n")
_HEADING = re.compile(r"^# +(\S.*)", re.MULTILINE)
_CODE = "```"


def text_type(content_type: str) -> str:
    """Return the media type in the header *content_type* if its texts are read as pages; else an empty string."""
    media_type = content_type.partition(";")[0].strip().lower()
    return media_type if media_type in {PLAIN, MARKDOWN} else ""


def read_text(text: str, media_type: str, budget: Budget = UNLIMITED) -> Extracted:
    r"""Return what the page of this *text* contains; :class:`UncheckableError` for data, and beyond the *budget*.

    All of it is the main text, but for the first heading of Markdown (``# ``). The lines of a paragraph run on. Linear
    time.

    >>> read_text("Trams turn at the\nmarket square.\n\nA ferry runs.\n", "text/plain").paragraphs
    ['Trams turn at the market square.', 'A ferry runs.']
    """
    if media_type == PLAIN and text.lstrip().startswith(_DATA):
        raise UncheckableError(Reason.OTHER_CONTENT_TYPE)
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    heading = _HEADING.search(text.partition(_CODE)[0]) if media_type == MARKDOWN else None
    if heading is not None:
        text = f"{text[: heading.start()]}\n\n{text[heading.end() :]}"
    paragraphs: list[str] = []
    for part in _parts(text):
        if paragraph := collapsed(part):
            paragraphs.append(paragraph)
            if len(paragraphs) > budget.elements:
                raise UncheckableError(Reason.TOO_MANY_ELEMENTS)
            budget.check_time()
    return Extracted(paragraphs, features_of_text("" if heading is None else heading[1]))


def _parts(text: str) -> Iterator[str]:
    start = 0
    for gap in _BLANK_LINES.finditer(text):
        yield text[start : gap.start()]
        start = gap.end()
    yield text[start:]


def text_digest(paragraphs: Iterable[str]) -> bytes:
    """Return 16 bytes that change with anything in *paragraphs*; empty if there are none."""
    shown = "\n".join(paragraphs).encode("utf8", "surrogatepass")
    return sha256(shown).digest()[:CONTENT_DIGEST] if shown else b""
