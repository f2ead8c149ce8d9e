"""Decides which requests are fetched last, from what the pages of their host have shown."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

from dedup_middleware.order.classes import Classes
from dedup_middleware.order.recent import Recent
from dedup_middleware.order.url_rules import Rules
from dedup_middleware.order.url_shape import address_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dedup_middleware.order.url_shape import UrlShape

#: A request whose page is expected to bring less is fetched last: 1 is something new.
LEAST = 0.15
#: What a link to a page is worth, beside the page.
OF_A_LINK = 0.6
#: One in so many of these goes first all the same, so that an error is found.
SAMPLED = 20
#: What a page of another host is thought to bring to the one that links to it.
_ELSEWHERE = 0.5
_MAX_SEEN, _MAX_FORMS = 80_000, 5_000


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
