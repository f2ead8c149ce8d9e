"""Decodes the bytes of a page as Scrapy does for ``response.text``, and recognises truncated HTML."""

from __future__ import annotations

import re
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from w3lib.encoding import (
    html_body_declared_encoding,
    html_to_unicode,
    http_content_type_encoding,
    read_bom,
    resolve_encoding,
)

from dedup_middleware.common.budget import UncheckableError
from dedup_middleware.reasons import Reason

#: Codecs of Python, as `codecs.lookup` names them, that turn no bytes of a page into text; punycode takes minutes for a
#: megabyte.
NO_CHARSETS = frozenset(["base64", "bz2", "hex", "idna", "punycode", "quopri", "rot-13", "undefined", "uu", "zlib"])

# From this version on, Scrapy detects encodings with charset-normalizer. Older versions try cp1252.
_DETECTS = (2, 19)


def decoded(html: bytes, encoding: str | None = None) -> str:
    """Return the text of *html* as a crawl has it in ``response.text``; *encoding* is the one that HTTP named.

    In this order count: a byte order mark, *encoding*, the declaration in the page, detection. Undecodable bytes become
    U+FFFD. `UncheckableError` if the page names a codec that is not a charset. Detection takes longer than parsing: up
    to some 50 ms.
    """
    header = None if encoding is None else f"text/html; charset={encoding}"
    named = read_bom(html)[0] or http_content_type_encoding(header) or html_body_declared_encoding(html)
    if named in NO_CHARSETS:
        raise UncheckableError(Reason.NO_CHARSET)
    try:
        if named is not None:
            return html_to_unicode(f"charset={named}", html)[1]
        return html_to_unicode(None, html, default_encoding="ascii", auto_detect_fun=_detected)[1]
    except (LookupError, ValueError) as error:
        raise UncheckableError(Reason.NO_CHARSET) from error


def _detected(html: bytes) -> str | None:
    """Return the encoding that Scrapy detects in *html*, which declares none; ``None`` if it detects none."""
    # As scrapy.http.TextResponse._auto_detect_fun does it. It is not called there: this package runs without Scrapy.
    for name in ("ascii", "utf-8") if _detects_all() else ("ascii", "utf-8", "cp1252"):
        try:
            html.decode(name)
        except UnicodeError:
            continue
        return resolve_encoding(name)
    if not _detects_all():
        return None
    from charset_normalizer import from_bytes  # noqa: PLC0415 - few pages need it, and it takes 30 ms to import

    best = from_bytes(html).best()
    return None if best is None else resolve_encoding(best.encoding)


@cache
def _detects_all() -> bool:
    """Return whether the installed Scrapy detects more than ASCII, UTF-8 and cp1252; True if there is no Scrapy."""
    try:
        major, minor = version("scrapy").split(".")[:2]
    except PackageNotFoundError:
        return True
    return (int(major), int(minor)) >= _DETECTS


# What may contain tags that are not tags of the page: scripts that write pages, conditional comments. Each match leaves
# out the last ">", so that only a closed one ends with it. An unclosed one reaches to the end, as it does for a parser.
_NOT_MARKUP = re.compile(r"<!--.*?(?:--(?=>)|\Z)|<script\b.*?(?:</script(?=\s*>)|\Z)", re.DOTALL | re.IGNORECASE)
_DOCUMENT = re.compile(r"<(?P<end>/?)(?:html|body)\b", re.IGNORECASE)


def is_cut_off(html: str) -> bool:
    """Return whether the text *html* of a page ends before the page does. Linear time.

    - A page that opens ``<html>`` or ``<body>`` must close one of them: a connection breaks between two tags as well as
      inside one. What follows the end tag, such as a counter's script, may be incomplete.
    - Other pages are fragments. They must end with a tag or a comment.

    HTML allows both end tags to be left out. Such a page looks like one that was cut off, and counts as one.
    """
    markup = _NOT_MARKUP.sub("-", html)
    tags = [match["end"] for match in _DOCUMENT.finditer(markup)]
    if tags:
        return tags[-1] != "/"
    return not markup.rstrip().endswith(">")
