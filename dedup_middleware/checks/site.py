"""Finds what the pages of a host share: parts of titles, texts and facts around the main text.

It counts every page of a crawl, dropped ones included, and the first titles that other processes of a shared store have
seen. It remembers them in memory only, and forgets the oldest of very many. What it does not know counts as a page's
own, which only keeps pages.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from dedup_middleware.features import PageFeatures
from dedup_middleware.text import titles
from dedup_middleware.text.clauses import folded

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping
    from collections.abc import Set as AbstractSet

#: What has stood on pages of so many other titles is no page's.
OTHER_TITLES = 2
# About 100 bytes each; 700 of a host that has no more.
_MAX_KEPT = 200_000
_NOTHING: Mapping[Hashable, frozenset[int]] = MappingProxyType({})


class Sites:
    """Parts of titles, and texts around the main text, by host."""

    def __init__(self) -> None:
        # In two generations: what is not met again while as many others are is forgotten.
        self._young: dict[str, dict[Hashable, frozenset[int]]] = {}
        self._old: dict[str, dict[Hashable, frozenset[int]]] = {}
        # How many things the younger one has, of all hosts.
        self._kept = 0

    def note(self, host: str, features: PageFeatures, titles_beside: Iterable[str] = ()) -> None:
        """Note a page of *host*, and what others there are called. O(texts around it), 10 µs for thirty."""
        for called in (features, *map(PageFeatures, titles_beside)):
            self.note_title(host, called)
        self._note(host, features.texts | features.facts, hash(folded(f"{features.title}\n{features.heading}")))

    def note_title(self, host: str, features: PageFeatures) -> None:
        """Note what a page of *host* is called. O(parts)."""
        parts = titles.parts(features.title)
        for part in parts if len(parts) > 1 else ():
            others = hash(tuple(other for other in parts if other != part))
            self._note(host, frozenset([titles.site_row(part)]), others)

    def _note(self, host: str, things: frozenset[Hashable], title: int) -> None:
        """Note that *things* stand on a page of *host* with this *title*."""
        if not things:
            return
        young, old = self._young.setdefault(host, {}), self._old.get(host)
        # Not `things - young.keys()`, which goes through all that is known of the host.
        new = things.difference(young)
        self._kept += len(new)
        if old and new:
            young.update({thing: old[thing] for thing in new if thing in old})
            new = new.difference(young)
        young.update(dict.fromkeys(new, frozenset([title])))
        for thing in things - new:
            met = young[thing]
            if len(met) <= OTHER_TITLES and title not in met:
                young[thing] = met | {title}
        if self._kept > _MAX_KEPT // 2:
            self._young, self._old, self._kept = {}, self._young, 0

    def own_parts(self, host: str, features: PageFeatures) -> list[str]:
        """Return the parts of what a page of *host* is called that are not the site's; all, if all are."""
        parts = titles.parts(features.title) or titles.parts(features.heading)
        return [part for part in parts if not self.has_part(host, titles.site_row(part))] or [*parts]

    def has_part(self, host: str, words: str) -> bool:
        """Return whether *words*, separated by spaces, are known to be a part that titles of *host* have."""
        return self._is_known(host, words)

    def own_texts(self, host: str, texts: AbstractSet[bytes]) -> set[bytes]:
        """Return those of the *texts* around a page of *host* that are not the site's."""
        return {text for text in texts if not self._is_known(host, text)}

    def _is_known(self, host: str, thing: Hashable) -> bool:
        met = self._young.get(host, _NOTHING).get(thing) or self._old.get(host, _NOTHING).get(thing)
        return met is not None and len(met) > OTHER_TITLES
