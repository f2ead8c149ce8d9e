"""A closed store -> the lines of `exchange`. It reads, and writes nothing.

What an unclean shutdown left is read as the next crawl will find it: an owner that no feed vouches for is not there.
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING

import xxhash

from dedup_middleware.errors import UnreadableError
from dedup_middleware.index import codec, exchange
from dedup_middleware.index.batch import listed
from dedup_middleware.index.overrides import read_overrides
from dedup_middleware.stores import refusals
from dedup_middleware.urls import host_of, is_under

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dedup_middleware.index.index import Index
    from dedup_middleware.model import StoredPage
    from dedup_middleware.stores import OpenStore


class Exporter:
    """The pages of one store, those of *host* and its subdomains, or all."""

    def __init__(self, store: OpenStore, index: Index, host: str | None = None) -> None:
        self._store = store
        self._index = index
        self._host = host
        self._in_doubt = {number for number, _ in index.in_doubt.left_behind()}
        self.in_doubt = len(self._in_doubt)
        """Originals that a crash has left in doubt; they are left out."""
        self.pages = 0
        """Lines of pages so far."""

    def lines(self) -> Iterator[str]:
        """Yield the lines, without their ends: some 40 gets a page, 1 ms. 100 bytes of memory for each suspect page."""
        (value,) = self._store.get_many([codec.NEXT_PLACE_KEY])
        prints = self._index.prints
        learned = b"" if prints is None else prints.learned()
        yield exchange.Origin(self._store.header, codec.decode_line(value).place, learned).to_line()
        yield from (line for _, line in self.page_lines())
        yield from self.other_lines()

    def page_lines(self) -> Iterator[tuple[int, str]]:
        """Yield the number and the line of each page."""
        _, suspects = self._templates()
        names = self._names()
        for page in self._pages():
            yield page.number, self._exported(page, suspects, names).to_line(self._owner_url(page))
            self.pages += 1

    def other_lines(self) -> Iterator[str]:
        """Yield the lines of templates and overrides."""
        templates, _ = self._templates()
        yield from map(exchange.template_line, templates)
        for told in read_overrides(self._store):
            if self._is_wanted(told.url):
                yield exchange.override_line(told)

    def comparable_lines(self) -> Iterator[str]:
        """Yield a line a page, by address, with nothing in it that depends on when and by whom it was fetched.

        Two stores that know the same have the same lines. 0.5 kB of memory a page.
        """
        lines = []
        for page in self._pages():
            text = "\n".join(self._index.text(page.number)).encode("utf8", "surrogatepass")
            said = {
                "url": page.url,
                "owner_url": self._owner_url(page),
                "score": page.score if page.owner is not None else None,
                "title": "" if page.features is None else page.features.title,
                "text": xxhash.xxh3_128_hexdigest(text),
            }
            lines.append((page.url, json.dumps(said)))
            self.pages += 1
        yield from (line for _, line in sorted(lines))

    def _pages(self) -> Iterator[StoredPage]:
        for page in self._index.pages():
            if self._is_wanted(page.url) and page.number not in self._in_doubt:
                yield page

    def _is_wanted(self, url: str) -> bool:
        return self._host is None or is_under(host_of(url), [self._host])

    def _owner_url(self, page: StoredPage) -> str | None:
        owner = None if page.owner is None else self._index.page(page.owner)
        return None if owner is None else owner.url

    def _templates(self) -> tuple[list[bytes], dict[int, list[bytes]]]:
        """Return the texts that are known to be templates, and by page those that it may fill in."""
        templates: list[bytes] = []
        suspects: defaultdict[int, list[bytes]] = defaultdict(list)
        for key, _ in self._store.scan(b"d", b"e"):
            if codec.is_template_key(key):
                templates.append(key[1:])
            else:
                suspects[codec.last_number(key)].append(codec.suspected_template(key))
        return templates, suspects

    def _names(self) -> dict[int, list[bytes]]:
        """Return by page the identities of what it names as its story's own."""
        names: defaultdict[int, list[bytes]] = defaultdict(list)
        for key, value in self._store.scan(*codec.CANONICAL):
            names[codec.decode_number(value)].append(key[1:])
        return names

    def _exported(
        self, page: StoredPage, suspects: dict[int, list[bytes]], names: dict[int, list[bytes]]
    ) -> exchange.Exported:
        number, store = page.number, self._store
        keys = sorted(listed([page])) if page.owner is None else []
        identities = [codec.identity_key(identity) for identity in page.identities]
        texts = [codec.text_key(number), codec.item_text_key(number)]
        prints = self._index.prints
        with refusals.of_value(store.uri, UnreadableError):
            lists = zip(keys, store.get_many(keys), strict=True)
            unlisted = [key for key, value in lists if value is None or number not in codec.decode_postings(value)]
            known = [codec.decode_identity(value) for value in store.get_many(identities) if value is not None]
            text, said = (None if v is None else tuple(codec.decode_text(v)) for v in store.get_many(texts))
        return exchange.Exported(
            page,
            text,
            said,
            next((digest for leads_to, digest in known if leads_to == number), b""),
            frozenset(unlisted),
            tuple(suspects.get(number, ())),
            tuple(names.get(number, ())),
            b"" if prints is None else prints.packed(number),
        )
