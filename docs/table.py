"""Writes the table of edits into ``explanation/how-it-works.md``, from the one that decides.

Usage: python docs/table.py
"""

from __future__ import annotations

from pathlib import Path

from dedup_middleware.checks.table import COPY, REWORDED, Edit, Kind, Relation, rejection_of

PAGE = Path(__file__).parent / "explanation" / "how-it-works.md"
_BEGIN, _END = "<!-- Made by docs/table.py; a test compares. -->\n", "<!-- The end of the table. -->\n"
_SETTING = "[`DEDUP_REWORDED`](../reference/settings.md#dedup_reworded)"


def table() -> str:
    """Return the table: a line for each kind of edit, a column for each relation, and the reason of a record."""
    header = ["edit", *(relation.value for relation in Relation), "reason"]
    rows = [[kind.value, *(_cell(kind, relation) for relation in Relation), _reason(kind)] for kind in Kind]
    return "".join(f"| {' | '.join(row)} |\n" for row in (header, ["---"] * len(header), *rows))


def page() -> str:
    """Return the page, with the table as it is now."""
    before, _, rest = PAGE.read_text(encoding="utf8").partition(_BEGIN)
    return f"{before}{_BEGIN}\n{table()}\n{_END}{rest.partition(_END)[2]}"


def _cell(kind: Kind, relation: Relation) -> str:
    if kind in COPY[relation]:
        return "copy"
    return f"**two**, or copy: {_SETTING}" if kind in REWORDED and relation is Relation.ACROSS else "**two**"


def _reason(kind: Kind) -> str:
    rejection = rejection_of([Edit(kind, "")], frozenset())
    return "" if rejection is None else f"`{rejection.reason}`"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf8")
