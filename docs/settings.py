"""Writes default and values of each setting into ``reference/settings.md``, from its row in ``settings.py``.

Usage: python docs/settings.py
"""

from __future__ import annotations

import re
from pathlib import Path

from dedup_middleware.settings import SETTINGS, Setting

PAGE = Path(__file__).parent / "reference" / "settings.md"
_FILES = "../deployment/deploy.md#where-files-go-containers-kubernetes-scrapy-cloud"
#: Of settings whose default is a place.
_PLACES = {"DEDUP_STORE": f"[one per spider]({_FILES})", "DEDUP_LOG": f"[beside the default store]({_FILES})"}


def page() -> str:
    """Return the page, with each setting as it is now; a new one is the last, and still to be described."""
    text = PAGE.read_text(encoding="utf8")
    for name, setting in SETTINGS.items():
        heading = f"## {name}\n\n"
        before, found, rest = text.partition(heading)
        if not found:
            before, rest = f"{text}\n", ""
        text = before + heading + _line(setting) + re.sub(r"\ADefault: .*\n", "", rest)
    return text


def _line(setting: Setting) -> str:
    default = f'"{setting.default}"' if isinstance(setting.default, str) else str(setting.default)
    return f"Default: {_PLACES.get(setting.name, f'`{default}`')}. Values: {setting.values}.\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf8")
