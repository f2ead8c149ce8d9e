"""Estimates what the pages of a class bring: something new, or links to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dedup_middleware.order.recent import Recent

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dedup_middleware.order.url_shape import UrlShape

#: Values of a segment under one prefix from which on it is a variable, even if they are words.
MANY = 4
# What a host is thought to bring before its first page. The weight of the wider estimate, and the most that a class
# remembers, in texts: of twice as many, each counts half.
_PRIOR, _LEANING, _WINDOW = 0.5, 2.0, 40
#: Classes, texts of a class, and prefixes that are remembered.
MAX_CLASSES, MAX_TEXTS, MAX_PREFIXES = 40_000, 40_000, 20_000
_NOTHING = (0.0, 0.0)


class Classes:
    """What hosts, shapes, forms and places have brought so far. Each estimate leans on a wider one."""

    def __init__(self) -> None:
        self._values: Recent[int, set[str]] = Recent(MAX_PREFIXES)
        """Prefix of a path -> the words that the next segment was seen with; empty if they are many."""
        self._classes: Recent[int, tuple[float, float]] = Recent(MAX_CLASSES)
        """Class -> its texts, and what a page of each has brought, summed."""
        self._texts: Recent[int, tuple[float, float]] = Recent(MAX_TEXTS)
        """Class and text -> its pages, and what they have brought."""

    def wide(self, address: UrlShape) -> str:
        """Return the shape of *address* with ``*`` for each word that varies under its prefix."""
        prefix = address.host
        for segment in address.segments:
            values = self._values.get(hash(prefix), (segment,))
            prefix += "/" + (segment if values or not segment else "*")
        return prefix

    def learn_path(self, address: UrlShape) -> None:
        """Note the words in the path of *address*."""
        prefix = address.host
        for segment in address.segments:
            values = self._values.get(key := hash(prefix))
            if values is None:
                values = self._values[key] = {segment}
            elif values and "*" not in segment:
                values.add(segment)
                if len(values) >= MANY:
                    values.clear()
            prefix += "/" + (segment if values or not segment else "*")

    def add(self, keys: Iterable[int], text: str | None, value: float) -> None:
        """Note that a page of the classes *keys* with this *text* has brought *value*.

        Pages of one text count once, with the mean of what they have brought: one notice under many addresses says
        little about the pages that do not show it.
        """
        for key in keys:
            # What is taken out and set again becomes the youngest.
            texts, total = self._classes.pop(key, _NOTHING)
            if texts >= _WINDOW:
                texts, total = texts / 2, total / 2
            pages, brought = 0.0, 0.0
            if text is not None:
                pages, brought = self._texts.pop(mark := hash((key, text)), _NOTHING)
                self._texts[mark] = (pages + 1, brought + value)
            total += (brought + value) / (pages + 1) - (brought / pages if pages else 0)
            self._classes[key] = (texts + (not pages), max(total, 0.0))

    def of(self, keys: Iterable[int]) -> float:
        """Return what a page of the classes *keys* is expected to bring: 1 for something new."""
        value = _PRIOR
        for key in keys:
            texts, total = self._classes.get(key, _NOTHING)
            value = (total + _LEANING * value) / (texts + _LEANING)
        return value

    def keys(self, address: UrlShape, place: int) -> Iterable[int]:
        """Return the classes of a page at *address* that is linked from *place*, the widest first.

        Host; shape, without the words that vary; the same with the names of the parameters, and the place; then, for a
        word may stand for a kind of page, shape and form as they are.
        """
        wide = self.wide(address)
        keys = ("//" + address.host, wide, (wide + address.names, place), address.shape, address.form)
        return dict.fromkeys(map(hash, keys))
