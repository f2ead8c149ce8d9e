"""Decides which requests are fetched last, from what the pages of their host have shown."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

from dedup_middleware.order.recent import Recent
from dedup_middleware.order.url_rules import Rules, address_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dedup_middleware.order.url_rules import UrlShape

#: A request whose page is expected to bring less is fetched last: 1 is something new.
LEAST = 0.15
#: What a link to a page is worth, beside the page.
OF_A_LINK = 0.6
#: One in so many of these goes first all the same, so that an error is found.
SAMPLED = 20
#: What a page of another host is thought to bring to the one that links to it.
_ELSEWHERE = 0.5
_MAX_SEEN, _MAX_FORMS = 80_000, 5_000
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


class FetchedPage(NamedTuple):
    """What became of a page."""

    urls: tuple[str, ...]
    """That of its request, and where its redirects ended."""
    original_url: str | None
    """Of the page whose text it shows, its own if it is new; ``None`` if it was not judged."""
    links: tuple[str, ...] = ()
    """The URLs of the requests that came from it."""
    place: int = 0
    """Where the link to it stands, as `place_of` returns it."""
    brings_item: bool = False
    is_foreign: bool = False
    """Whether a link or a redirect of another site led to it: others chose its URL, so that it teaches nothing."""


class Order:
    """What one crawl has learned about the requests of each host. Pure: requests are URLs here."""

    def __init__(self, key: bytes = b"") -> None:
        """Use *key*, a secret of the store, to choose the sample, so that no site can tell which requests are in it."""
        self.rules = Rules()
        self.classes = Classes()
        self._key = key[:64]
        self.forms: Recent[str, tuple[int, int]] = Recent(_MAX_FORMS)
        """Form -> its pages, and how many of them brought nothing."""
        self._seen: Recent[int, bool] = Recent(_MAX_SEEN)
        self._page_url, self._page_place = "", ("", 0)
        """The page that was asked for last, its host and its place: all its links have them."""

    def place_of(self, url: str, page_url: str) -> int:
        """Return the place of a link to *url*: the form of the page that has it; 0 if that is on another host."""
        if page_url != self._page_url:
            page = address_of(page_url)
            self._page_url = page_url
            self._page_place = ("", 0) if page is None else (page.host, self._place(page))
        host, place = self._page_place
        return place if url.partition("://")[2].startswith(host + "/") else 0

    def _place(self, page: UrlShape) -> int:
        # No `hash`: the requests of a JOBDIR outlive the process.
        return crc32(f"{self.classes.wide(page)}{page.names}".encode("utf8", "replace")) or 1

    def is_last(self, url: str, place: int = 0) -> bool:
        """Return whether *url*, linked from *place*, is to be fetched last."""
        address = address_of(url)
        if address is None:
            return False
        if not self.rules.repeats(address) and self.classes.of(self.classes.keys(address, place)) >= LEAST:
            return False
        digest = blake2b(url.encode("utf8", "replace"), key=self._key, digest_size=4).digest()
        return int.from_bytes(digest, "big") % SAMPLED != 0

    def learn(self, page: FetchedPage) -> bool:
        """Learn from *page*; return whether requests of its host that are fetched last may be worth more now."""
        is_risen = False
        if page.original_url is not None and not page.is_foreign:
            for url in page.urls:
                is_risen |= self.rules.learn(url, page.original_url)
        address = address_of(page.urls[0])
        if address is None:
            return is_risen
        for url in page.urls:
            self._note(address.host, url)
        links = self._new_links(address.host, page.links)
        value = 1.0 if page.brings_item else OF_A_LINK * self._best_link(address, links)
        pages, nothing = self.forms.get(address.form, (0, 0))
        self.forms[address.form] = (pages + 1, nothing + (not value))
        if page.is_foreign:
            return is_risen
        keys = self.classes.keys(address, page.place)
        before = self.classes.of(keys)
        self.classes.add(keys, page.original_url, value)
        return is_risen or before < LEAST <= self.classes.of(keys)

    def _new_links(self, host: str, links: Iterable[str]) -> list[UrlShape]:
        """Return those of the *links* of a page that its *host* has not shown before, and learn their paths."""
        new = [address for url in links if self._note(host, url) and (address := address_of(url)) is not None]
        for address in new:
            if address.host == host:
                self.classes.learn_path(address)
        return new

    def _best_link(self, page: UrlShape, links: list[UrlShape]) -> float:
        """Return what the best of these *links* of *page* is expected to bring.

        A link to the same shape leads deeper into a trap.
        """
        best, shape, place = 0.0, self.classes.wide(page), self._place(page)
        for address in links:
            if address.host != page.host:
                best = max(best, _ELSEWHERE)
            elif self.classes.wide(address) != shape and not self.rules.repeats(address):
                best = max(best, self.classes.of(self.classes.keys(address, place)))
        return best

    def _note(self, host: str, url: str) -> bool:
        """Note that *host* has shown *url*; return whether it had not before."""
        if (key := hash((host, url))) in self._seen:
            return False
        self._seen[key] = True
        return True
