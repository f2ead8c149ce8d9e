"""Bytes of a page -> its text."""

from __future__ import annotations

import codecs

from w3lib.encoding import html_to_unicode

from dedup_middleware.budget import UnjudgeableError
from dedup_middleware.reasons import Reason

#: Codecs of Python, as `codecs.lookup` names them, that turn no bytes of a page into text; punycode takes minutes for a
#: megabyte.
NO_CHARSETS = frozenset(["base64", "bz2", "hex", "idna", "punycode", "quopri", "rot-13", "undefined", "uu", "zlib"])


def decoded(html: bytes, encoding: str | None = None) -> str:
    """Return *html* as a browser reads it: by its byte order mark, the *encoding* that HTTP named, or what it says.

    `UnjudgeableError` where that is no charset.
    """

    def checked(name: str) -> str:
        if codecs.lookup(name).name in NO_CHARSETS:
            raise UnjudgeableError(Reason.NO_CHARSET)
        return name

    header = None if encoding is None else f"text/html; charset={encoding}"
    try:
        # Twice, for the first time tells the charset: decoding by one that is none would take minutes, or raise.
        declared = html_to_unicode(header, html[:_HEAD])[0]
        checked(declared)
        return html_to_unicode(header, html)[1]
    except (LookupError, ValueError) as error:
        raise UnjudgeableError(Reason.NO_CHARSET) from error


# As far as browsers look for a declaration.
_HEAD = 1024
