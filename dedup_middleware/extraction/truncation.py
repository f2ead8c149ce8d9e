"""Recognises HTML that ends before its page does."""

from __future__ import annotations

import re

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
