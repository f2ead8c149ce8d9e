"""Renders a report as one page of HTML without external resources.

Its content security policy allows only the scripts and styles in it, no request, and no HTML made of text. The data is
compressed; the pairs in chunks, which are unpacked when one of them is opened.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dedup_middleware.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dedup_middleware.report.data import Report

_HERE = Path(__file__).parent
_LIBRARIES = ("uplot.js", "table-core.js")
#: In this order: each uses those before it.
_SCRIPTS = (
    *("text.js", "charts.js", "sections.js", "clusters.js", "scores.js", "table.js", "sheet.js", "crawls.js"),
    *("labels.js", "diff.js", "pair.js", "start.js"),
)
#: Pages whose pairs are unpacked together.
PAGES_TOGETHER = 100


def html(report: Report) -> str:
    """Return the page of *report*. 0.03 ms and 200 bytes a dropped page, and 3 kB where both texts are shown."""
    styles = [_read("libraries/uplot.css"), _read("report.css")]
    scripts = [*(_read(f"libraries/{name}") for name in _LIBRARIES), _own_script()]
    data = [_data_element("summary", report.summary)]
    for number, start in enumerate(range(0, len(report.details), PAGES_TOGETHER)):
        data.append(_data_element(f"pairs-{number}", report.details[start : start + PAGES_TOGETHER]))
    parts = {
        "policy": _policy(styles, scripts),
        "styles": "\n".join(f"<style>{style}</style>" for style in styles),
        "scripts": "\n".join(f"<script>{script}</script>" for script in scripts),
        "data": "\n".join(data),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], _read("template.html"))


def is_report(start: bytes) -> bool:
    """Return whether a file with this *start* is a page of :func:`html`, of this or another version."""
    return start.lower().startswith(b"<!doctype html") and b"<title>scrapy dedup report</title>" in start


def words() -> dict[str, Any]:
    """Return the texts of the page, by language."""
    read: dict[str, Any] = json.loads(_read("script/words.json"))
    read["en"]["reasons"] |= {reason.value: reason.message for reason in Reason}
    return read


def _own_script() -> str:
    texts = json.dumps(words(), ensure_ascii=False).replace("<", "\\u003c")
    own = "\n".join(_read(f"script/{name}") for name in _SCRIPTS)
    return f'(() => {{\n"use strict";\nconst WORDS = {texts}, PAGES_TOGETHER = {PAGES_TOGETHER};\n{own}}})();\n'


def _policy(styles: Iterable[str], scripts: Iterable[str]) -> str:
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {' '.join(map(_hash, scripts))}",
            f"style-src {' '.join(map(_hash, styles))}",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _data_element(name: str, value: object) -> str:
    """Return *value* in an element that no browser runs or shows: JSON, deflated, in base64."""
    packed = base64.b64encode(zlib.compress(json.dumps(value, allow_nan=False, separators=(",", ":")).encode()))
    return f'<script type="application/octet-stream" id="{name}">{packed.decode()}</script>'


def _read(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf8")
