"""Decides which requests are fetched last, from what the pages of their host have shown."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

from dedup_middleware.order.addresses import address_of
from dedup_middleware.order.classes import Classes
from dedup_middleware.order.recent import Recent
from dedup_middleware.order.rules import Rules

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dedup_middleware.order.addresses import Address

#: A request whose page is expected to bring less is fetched last: 1 is something new.
LEAST = 0.15
#: What a link to a page is worth, beside the page.
OF_A_LINK = 0.6
#: One in so many of these goes first all the same, so that an error is found.
SAMPLED = 20
#: What a page of another host is thought to bring to the one that links to it.
_ELSEWHERE = 0.5
_MAX_SEEN, _MAX_FORMS = 80_000, 5_000


class Fetched(NamedTuple):
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

    def place_of(self, url: str, page_url: str) -> int:
        """Return the place of a link to *url*: the form of the page that has it; 0 if that is on another host."""
        address, page = address_of(url), address_of(page_url)
        if address is None or page is None or address.host != page.host:
            return 0
        self.classes.learn_path(address)
        return self._place(page)

    def _place(self, page: Address) -> int:
        # No `hash`: the requests of a JOBDIR outlive the process.
        return crc32(f"{self.classes.wide(page)}{page.names}".encode("utf8", "replace")) or 1

    def form_if_last(self, url: str, place: int = 0) -> str | None:
        """Return the form of *url*, linked from *place*, if it is to be fetched last; ``None`` if it is not."""
        address = address_of(url)
        if address is None or not (self.rules.repeats(address) or self.classes.of(address, place) < LEAST):
            return None
        digest = blake2b(url.encode("utf8", "replace"), key=self._key, digest_size=4).digest()
        return address.form if int.from_bytes(digest, "big") % SAMPLED else None

    def learn(self, page: Fetched) -> bool:
        """Learn from *page*; return whether requests of its host that are fetched last may be worth more now."""
        is_risen = False
        if page.original_url is not None:
            for url in dict.fromkeys(page.urls):
                is_risen |= self.rules.learn(url, page.original_url)
        address = address_of(page.urls[0])
        if address is None:
            return is_risen
        for url in page.urls:
            self._note(address.host, url)
        value = 1.0 if page.brings_item else OF_A_LINK * self._best_link(address, page.links)
        pages, nothing = self.forms.get(address.form, (0, 0))
        self.forms[address.form] = (pages + 1, nothing + (not value))
        before = self.classes.of(address, page.place)
        self.classes.add(address, page.place, page.original_url, value)
        return is_risen or before < LEAST <= self.classes.of(address, page.place)

    def _best_link(self, page: Address, links: Iterable[str]) -> float:
        """Return the value of the best of the *links* of *page* that its host has not shown before.

        A link to the same shape leads deeper into a trap.
        """
        best, shape, place = 0.0, self.classes.wide(page), self._place(page)
        for url in links:
            address = address_of(url) if self._note(page.host, url) else None
            if address is None:
                continue
            if address.host != page.host:
                best = max(best, _ELSEWHERE)
            elif self.classes.wide(address) != shape and not self.rules.repeats(address):
                best = max(best, self.classes.of(address, place))
        return best

    def _note(self, host: str, url: str) -> bool:
        """Note that *host* has shown *url*; return whether it had not before."""
        if (key := hash((host, url))) in self._seen:
            return False
        self._seen[key] = True
        return True
