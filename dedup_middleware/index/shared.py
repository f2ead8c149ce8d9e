"""Keeps the open claims: in memory, and in a store that several processes share."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from itertools import islice
from typing import TYPE_CHECKING

from dedup_middleware.index import schema
from dedup_middleware.index.index import Index
from dedup_middleware.model import StoredPage
from dedup_middleware.text import titles
from dedup_middleware.urls import host_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from collections.abc import Set as AbstractSet

    from dedup_middleware.model import Made, Page

# Pages whose packed texts are at hand: as many as a crawl has claimed at a time, mostly.
_IN_FLIGHT = 32
# Titles of a host that its workers share, see `titles_beside`: of what comes later, each worker has met enough. Letters
# of one that others can learn from. Hosts whose titles this worker has read, 150 bytes each; of others it reads again.
_FIRST_TITLES, _LONGEST_TITLE, _MAX_HOSTS = 12, 200, 20_000


class SharedIndex(Index):
    """See `Index`. What it reads in order to write, no other process changes meanwhile."""

    @cached_property
    def has_texts(self) -> bool:
        """See Lookup; others may keep some."""
        return True

    @property
    def version(self) -> int:
        """See Index; any change of another process may change any answer."""
        self._claims.notice_others(self.store.changes_of_others())
        return super().version

    def changed_since(self, version: int, page: Page) -> bool:
        """See Index. Where it returns ``False`` in a transaction, that ends only if no other process has written."""
        self._claims.notice_others(self.store.changes_of_others())
        if super().changed_since(version, page):
            return True
        self.store.require_unchanged()
        return False

    # --- claims

    def claim(self, page: Page) -> StoredPage:
        """Open a claim, in the store. One batch, of what :meth:`commit` then finds there already."""
        return self.atomically(partial(self._claim, page))

    def _claim(self, page: Page) -> StoredPage:
        changes = self.changes(page.run)
        claimed = replace(StoredPage.of(page, self.new_number(page.url)), is_claimed=True)
        with self._reading():
            changes.replace([], claimed.number, claimed, page.suppressed, page.fingerprint.made)
            changes.put_claim(claimed, self.store.worker, self._packed(page.paragraphs))
            changes.puts += self._title_of(page)
        changes.write()
        self.touch([claimed])
        return claimed

    def release(self, number: int) -> None:
        """See Index; does nothing where it is released already."""
        self.atomically(partial(self._release, number))

    def _release(self, number: int) -> None:
        changes, ended = self.changes(), self._ended(number)
        with self._reading():
            changes.replace(ended, number, None)
        changes.write()
        self.touch(ended)

    def _ended(self, claim: int) -> list[StoredPage]:
        found = self._find_claim(claim)
        return [] if found is None else [found[1]]

    def claimed(self, number: int) -> StoredPage | None:
        """See Lookup; of a worker who is at work. One get."""
        found = self._find_claim(number)
        if found is None:
            return None
        if self.store.is_at_work(found[0]):
            return found[1]
        # It does not count by now, though nothing was written.
        self._claims.touch_all()
        return None

    def _find_claim(self, number: int) -> tuple[bytes, StoredPage] | None:
        (value,) = self.store.get_many([schema.claimed_key(number)])
        if value is None:
            return None
        with self._reading():
            page = replace(schema.page_of_claim(number, value), is_claimed=True)
        return schema.worker_of_claim(value), page

    def numbers_of(self, page: Page, own: list[StoredPage]) -> set[int]:
        """See Lookup. One get an identity."""
        values = self.store.get_many([schema.claims_key(identity) for identity in page.identities])
        with self._reading():
            claims = {number for value in values if value for number in schema.decode_postings(value)}
        return claims.union(stored.number for stored in own)

    def release_dead_claims(self) -> None:
        """See Index. One scan of the open claims."""
        for key, value in list(self.store.scan(*schema.CLAIMED)):
            if not self.store.is_at_work(schema.worker_of_claim(value)):
                self.release(schema.decode_number(key[1:]))

    def _packed(self, texts: tuple[str, ...]) -> bytes | None:
        # Of a page that is kept, it was packed when that was claimed.
        return self._packed_lately(texts)

    @cached_property
    def _packed_lately(self) -> Callable[[tuple[str, ...]], bytes | None]:
        return lru_cache(_IN_FLIGHT)(super()._packed)

    # --- what belongs to a site in the titles of its pages: each worker learns it, and meets only some of the pages

    @cached_property
    def _read_titles(self) -> OrderedDict[str, int]:
        return OrderedDict()

    def _wants_titles(self, page: Page) -> bool:
        return self._read_titles.get(host_of(page.url), 0) < _FIRST_TITLES

    def titles_beside(self, page: Page) -> list[str]:
        """See Lookup. One get, or none."""
        if not self._wants_titles(page):
            return []
        host = host_of(page.url)
        found, before = self._titles_of(host), self._read_titles.get(host, 0)
        self._read_titles[host] = len(found)
        self._read_titles.move_to_end(host)
        if len(self._read_titles) > _MAX_HOSTS:
            self._read_titles.popitem(last=False)
        return found[before:]

    def _titles_of(self, host: str) -> list[str]:
        (value,) = self.store.get_many([schema.titles_key(host)])
        with self._reading():
            return [] if value is None else schema.decode_titles(value)

    def _title_of(self, page: Page) -> list[tuple[bytes, bytes]]:
        """Return what lets the others read the title of *page*; nothing if they have enough. One get, or none."""
        title = "" if page.features is None else page.features.title
        if not self._wants_titles(page) or len(title) > _LONGEST_TITLE or len(titles.parts(title)) <= 1:
            return []
        host = host_of(page.url)
        found = self._titles_of(host)
        is_new = title not in found and len(found) < _FIRST_TITLES
        return [(schema.titles_key(host), schema.encode_titles([*found, title]))] if is_new else []


#: Changes of which is remembered what they touched: as many as come between a download and its callback, and more.
_REMEMBERED_CHANGES = 64


class OpenClaims:
    """The pages whose claims are open, in memory, under negative numbers.

    Crawlers of one process that share a store share these too, so that they see one another's claims.
    """

    def __init__(self) -> None:
        self.pages: dict[int, StoredPage] = {}
        self.identities: defaultdict[bytes, set[int]] = defaultdict(set)
        self.made: dict[int, Made] = {}
        self.texts: dict[int, tuple[str, ...]] = {}
        self.version = 0
        self._postings: dict[bytes, tuple[int, ...]] = {}
        self._equals: dict[bytes, tuple[int, ...]] = {}
        self._made_alike: dict[bytes, tuple[int, ...]] = {}
        # Claims that are in none of these yet, and of each the clauses that are not to lead to it: most claims of a
        # program, and many of a crawl, are over before another page is looked up.
        self._unlisted: dict[int, frozenset[bytes]] = {}
        self._recent: deque[tuple[Collection[bytes], ...]] = deque(maxlen=_REMEMBERED_CHANGES)
        self._last = 0
        self._changes_of_others = 0

    @property
    def postings(self) -> Mapping[bytes, tuple[int, ...]]:
        """The claims that hold a clause, by its hash."""
        self._list_all()
        return self._postings

    @property
    def equals(self) -> Mapping[bytes, tuple[int, ...]]:
        """The claims with the same whole text and title, by `schema.whole_text_key`."""
        self._list_all()
        return self._equals

    @property
    def made_alike(self) -> Mapping[bytes, tuple[int, ...]]:
        """The claims in whose text a published method has found such a key."""
        self._list_all()
        return self._made_alike

    def add(self, page: Page) -> StoredPage:
        """Add *page* and return it under its pending number. O(clauses)."""
        self._last += 1
        pending = StoredPage.of(page, -schema.page_number(self._last, page.url))
        self.pages[pending.number] = pending
        self.texts[pending.number] = page.paragraphs
        self._unlisted[pending.number] = page.suppressed
        if (made := page.fingerprint.made) is not None:
            self.made[pending.number] = made
        for identity in pending.identities:
            self.identities[identity].add(pending.number)
        self.touch(pending.hashes, pending.identities)
        return pending

    def remove(self, number: int) -> StoredPage:
        """Forget the page *number* and return it. O(clauses)."""
        pending = self.pages.pop(number)
        del self.texts[number]
        made = self.made.pop(number, None)
        if self._unlisted.pop(number, None) is None:
            for lists, keys in self._lists(pending, made):
                _remove(lists, keys, number)
        for identity in pending.identities:
            self.identities[identity].discard(number)
            if not self.identities[identity]:
                del self.identities[identity]
        self.touch(pending.hashes, pending.identities)
        return pending

    def _list_all(self) -> None:
        for number, suppressed in self._unlisted.items():
            for lists, keys in self._lists(self.pages[number], self.made.get(number), suppressed):
                _add(lists, keys, number)
        self._unlisted.clear()

    def _lists(
        self, page: StoredPage, made: Made | None, suppressed: frozenset[bytes] = frozenset()
    ) -> Iterator[tuple[dict[bytes, tuple[int, ...]], AbstractSet[bytes]]]:
        """Yield the lists, and the keys in each, that lead to *page* but for what is *suppressed*."""
        yield self._postings, page.hashes - suppressed
        if (key := schema.whole_text_key(page.exact_digest, page.features)) is not None:
            yield self._equals, {key}
        if made is not None:
            yield self._made_alike, made.keys

    def touch(self, *touched: Collection[bytes]) -> None:
        """Note that what is known of these clauses and identities has changed. They are kept, not copied."""
        self.version += 1
        self._recent.append(touched)

    def notice_others(self, changes: int) -> None:
        """Note how much other processes have changed by now: if that has changed, so may anything have."""
        if changes != self._changes_of_others:
            self._changes_of_others = changes
            self.touch_all()

    def touch_all(self) -> None:
        """Note that what is known of anything may have changed, though nothing is written."""
        self.version += _REMEMBERED_CHANGES + 1

    def changed_since(self, version: int, page: Page) -> bool:
        """Tell whether anything that concerns *page* has changed since *version*. O(changes since * clauses)."""
        changes = self.version - version
        if not changes:
            return False
        # By a published method any page may be alike to it.
        if changes > len(self._recent) or page.fingerprint.made is not None:
            return True
        its_keys = page.fingerprint.weights.keys() | page.identities
        recent = islice(reversed(self._recent), changes)
        return any(not its_keys.isdisjoint(keys) for touched in recent for keys in touched)


# Nearly every key has one holder, so all keys are changed at once and the few that are shared are mended after.


def _add(lists: dict[bytes, tuple[int, ...]], keys: AbstractSet[bytes], number: int) -> None:
    others = {key: (*lists[key], number) for key in lists.keys() & keys}
    lists.update(dict.fromkeys(keys, (number,)))
    lists.update(others)


def _remove(lists: dict[bytes, tuple[int, ...]], keys: AbstractSet[bytes], number: int) -> None:
    held = {key: lists.pop(key) for key in lists.keys() & keys}
    alone = (number,)
    lists.update({key: tuple(n for n in numbers if n != number) for key, numbers in held.items() if numbers != alone})
