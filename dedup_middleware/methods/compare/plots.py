"""Draws the results of a comparison: what each method finds, and what it costs.

matplotlib is imported with the first picture, and needs no display.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from dedup_middleware.common import permissions
from dedup_middleware.common.plain_files import open_file
from dedup_middleware.common.registry import required
from dedup_middleware.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dedup_middleware.methods.compare.results import MethodRow

_INK, _PALE, _GRID = "#22303c", "#b9c6d2", "#e3e8ec"
_PRECISION, _RECALL, _OTHERS, _OURS = "#c2571a", "#2f6f9f", "#7d8b97", "#2b8a5e"
# Bytes at the end of a PDF in which its maker is.
_END = 2**16
# Inches.
_WIDTH, _LINE = 10.0, 0.3
_MAKER = "scrapy dedup compare"
# By the suffix of the file. Without dates, the same results give the same file.
_METADATA: dict[str, dict[str, Any]] = {
    ".png": {"Software": _MAKER},
    ".svg": {"Date": None, "Creator": _MAKER},
    ".pdf": {"CreationDate": None, "Creator": _MAKER},
}


def check(path: Path) -> None:
    """Raise `ConfigError` if no picture can be written to *path*."""
    if path.suffix.lower() not in _METADATA:
        raise ConfigError(f"{path} is not a picture", f"give it a name that ends in {' or '.join(_METADATA)}")
    required("matplotlib.figure", "--plot", extra="compare")
    if path.is_file() and not permissions.is_made_by_us(path.resolve(), partial(_is_picture, path)):
        raise ConfigError(f"{path} cannot be written ({permissions.NotOursError(path).strerror})", "Name another file.")


def save(figure: Any, path: Path) -> None:
    """Write *figure* to *path*; `ConfigError` if that cannot be done."""
    suffix = path.suffix.lower()
    styled = required("matplotlib", "--plot", extra="compare").rc_context({"svg.hashsalt": "dedup"})
    with styled, permissions.whole_file(path, partial(_is_picture, path)) as file:
        figure.savefig(file, dpi=160, metadata=_METADATA[suffix], format=suffix[1:])


def _is_picture(path: Path, start: bytes) -> bool:
    """Return whether *path*, which begins with *start*, is a picture of ours: a PDF has its maker near its end."""
    if start.startswith(b"%PDF"):
        with open_file(path) as file:
            file.seek(max(0, path.stat().st_size - _END))
            start = file.read()
    return _MAKER.encode("ascii") in start


def comparison(rows: Sequence[MethodRow], corpus: str, *, pure: bool) -> Any:
    """Return precision, recall and F1 of each method, the best on top, beside the time for a page."""
    ordered = sorted(rows, key=lambda row: row.scores.f1 if row.scores else 0.0)
    figure = _figure(1.7 + _LINE * len(rows))
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=[3, 2])
    _draw_scores(left, ordered, corpus)
    _draw_times(right, ordered, "fingerprint and look-up" if pure else "from HTML to verdict")
    figure.legend(loc="outside lower left", ncols=3, frameon=False, fontsize=9)
    return figure


def _draw_scores(left: Any, ordered: Sequence[MethodRow], corpus: str) -> None:
    places, found = range(len(ordered)), [row.scores for row in ordered if row.scores is not None]
    left.hlines(places, [min(each[:2]) for each in found], [max(each[:2]) for each in found], color=_PALE, lw=2)
    left.scatter([each.precision for each in found], places, color=_PRECISION, s=30, zorder=3, label="precision")
    left.scatter([each.recall for each in found], places, color=_RECALL, s=30, zorder=3, label="recall")
    left.scatter([each.f1 for each in found], places, color=_INK, marker="|", s=130, zorder=4, label="F1")
    for place, each in zip(places, found, strict=True):
        left.annotate(f"{each.f1:.3f}", (1.03, place), va="center", fontsize=8, color=_INK, annotation_clip=False)
    left.set_yticks(places, [row.method for row in ordered])
    left.set_xlim(-0.02, 1.02)
    left.set_ylim(-0.7, len(ordered) - 0.3)
    _finish(left, "x", f"Scores · {corpus}, F1 at the right")


def _draw_times(right: Any, ordered: Sequence[MethodRow], what: str) -> None:
    places = range(len(ordered))
    times = [max(row.measured.ms_per_page, 0.001) for row in ordered]
    colours = [_OURS if row.method == "clauses" else _OTHERS for row in ordered]
    right.scatter(times, places, c=colours, s=42, zorder=3)
    right.hlines(places, min(times) / 2, times, color=colours, lw=1.2)
    for place, time in zip(places, times, strict=True):
        right.annotate(f"{time:.2g}", (time, place), (7, 0), textcoords="offset points", va="center", fontsize=8)
    right.set_xscale("log")
    right.set_xlim(min(times) / 2, max(times) * 3)
    right.xaxis.set_major_formatter("{x:g}")
    right.minorticks_off()
    _finish(right, "x", f"Milliseconds a page, {what}")
    right.tick_params(labelleft=False)


def sweep(method: str, option: str, values: Sequence[str], rows: Sequence[MethodRow]) -> Any:
    """Return precision, recall and F1 over the values of an *option* of *method*."""
    figure = _figure(5)
    axes = figure.subplots()
    numbers = [float(value) for value in values]
    found = [row.scores for row in rows if row.scores is not None]
    for place, (name, colour) in enumerate((("precision", _PRECISION), ("recall", _RECALL), ("F1", _INK))):
        axes.plot(numbers, [each[place] for each in found], color=colour, marker="o", ms=4, lw=2, label=name)
    best = max(range(len(found)), key=lambda n: found[n].f1)
    axes.axvline(numbers[best], color=_PALE, lw=1, zorder=0)
    axes.set_ylim(-0.02, 1.05)
    axes.set_xlabel(option)
    _finish(axes, "both", f"{method} · best F1 {found[best].f1:.3f} at {option} = {values[best]}")
    figure.legend(loc="outside lower left", ncols=3, frameon=False, fontsize=9)
    return figure


def _figure(height: float) -> Any:
    return required("matplotlib.figure", "--plot", extra="compare").Figure(
        figsize=(_WIDTH, height), layout="constrained"
    )


def _finish(axes: Any, grid: str, title: str) -> None:
    """Set the title of *axes*, and the *grid*: ``x`` or ``both``."""
    axes.set_title(title, loc="left", fontsize=11, color=_INK)
    axes.grid(axis=grid, color=_GRID, lw=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(length=0, labelcolor=_INK, labelsize=9)
