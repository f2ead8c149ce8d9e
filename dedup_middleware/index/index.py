"""Changes the stored pages and the open claims of one store, in one atomic batch a page.

In a private store, pages whose claim is open are in memory only, under negative numbers; confirming a claim writes its
page. A crash therefore leaves nothing provisional behind.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from dedup_middleware.index import schema, shown
from dedup_middleware.index.dropped_items import basis_of
from dedup_middleware.index.lookup import Lookup
from dedup_middleware.model import Kept, PageFeatures, Scope, StoredPage, now

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from typing_extensions import ParamSpec

    from dedup_middleware.index.dropped_items import DroppedItem, KeyValue
    from dedup_middleware.model import Match, Page

    _T = TypeVar("_T")
    _P = ParamSpec("_P")
    Changed: TypeAlias = tuple[Iterable[tuple[bytes, bytes]], Iterable[bytes]]
    """Puts and deletes."""

# Places that are taken at once, so that processes do not wait for one another; one that ends leaves some of them empty,
# of 10^12.
_PLACES_TAKEN = 256
#: Pages in a posting list: copies are dropped, so that a clause of a story is on few kept pages.
MAX_HOLDERS = 5
# The same for lists of other kinds. Of the open claims of an identity, all count; what more pages have of what stands
# beside is what all pages of a site have.
_MAX_HOLDERS_OF = {b"k": 64, b"q": 2**12}
# Kinds of feeds that an original has reached, in all crawls: some are of one crawl alone, and each crawl adds them.
_MAX_FEEDS = 64
# A page with fewer clauses than this share of the former original's contains too little of its text to replace it.
_MIN_CLAUSE_SHARE = 0.5


class Index(Lookup):
    """The stored pages and the open claims of one store, to be read and changed."""

    _places = range(0)
    """The places that are taken, for the next pages that are stored for the first time."""

    def read_version(self) -> int:
        """Return a number that grows whenever a lookup may return something else, also by writes of other processes.

        In a shared store, a round trip.
        """
        if self.store.worker:
            self.open_claims.notice_others(self.store.changes_of_others())
        return self.open_claims.version

    def changed_since(self, version: int, page: Page) -> bool:
        """Return whether a verdict on *page* that was made at *version* may be another by now. A round trip as above.

        In a transaction whose writes rest on a ``False``, `OpenStore.require_unchanged` first.
        """
        if self.read_version() == version:
            return False
        # For another detector, any page may be alike to it.
        return self.beside is not None or self.open_claims.changed_since(version, page)

    def atomically(self, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Return what *work* returns; no other process writes while it runs. It may write one batch, as its last act.

        In a store that processes share, it may run more than once.
        """
        if not self.store.worker:
            with self.store.guard:
                return work(*args, **kwargs)
        places = self._places

        def run() -> _T:
            # Those that a try before this one took came to nothing.
            self._places = places
            return work(*args, **kwargs)

        try:
            return self.store.transaction(run)
        except BaseException:
            self._places = places
            raise

    def number_of(self, url: str, stored: Iterable[StoredPage] = ()) -> int:
        """Return the number of the page at *url*: of the first of what is *stored* of it on its host, else a new one.

        Within :meth:`atomically`.
        """
        mark = self.host_mark(url)
        for page in stored:
            if schema.host_bits(page.number) == mark:
                return page.number
        if not self._places:
            (value,) = self.store.get_many([schema.NEXT_PLACE_KEY])
            first = 1 if value is None else schema.decode_number(value)
            self._places = range(first, first + _PLACES_TAKEN)
            self.store.write([(schema.NEXT_PLACE_KEY, schema.encode_number(self._places.stop))])
        place, self._places = self._places[0], self._places[1:]
        return schema.page_number(place, mark)

    # --- claims

    def claim(self, page: Page) -> StoredPage:
        """Open a claim: *page* owns its text from now on. Returns it under its pending number. Within `atomically`."""
        claimed = self.open_claims.add(page, self.host_mark(page.url))
        if self.beside is not None:
            self.beside.claimed(claimed.number, page.note)
        if not page.is_keyed:
            others = [known for known in self.same(page.all_identities) if not known.has_text_of(page)]
            self.outdate(claimed.number, others, page.run)
        return claimed

    def lead_elsewhere(self, identities: Iterable[bytes], end: bytes, run: str) -> None:
        """Note that the pages with these *identities* lead to that with the identity *end* now, which may be they."""
        stored = [page for page in self.same(identities) if page.original is None and end not in page.identities]
        if stored:
            self.open_claims.leads[end] += [page.number for page in stored]
            self.outdate(0, stored, run)

    def outdate(self, claim: int, stored: Sequence[StoredPage], run: str) -> None:
        """Note that the page of a *claim* gives another thing than what is *stored*: no copy rests on that any more.

        What the crawl *run* has dropped for it is to be released.
        """
        originals = [page for page in stored if page.original is None]
        if originals:
            self.open_claims.outdate(claim, originals)
            self.store.write(self._releases_of_copies(originals, run))

    def void_claim(self, number: int) -> None:
        """End the claim *number*: no page owns its text any more."""
        self.open_claims.remove(number)
        if self.beside is not None:
            self.beside.ended(number)

    def _ended(self, claim: int) -> list[StoredPage]:
        """End a *claim* for good; return what of it is in the store, and ends with the batch that replaces it."""
        self.void_claim(claim)
        return []

    def join(self) -> None:
        """Note that this process begins to crawl, in a shared store."""

    def begin(self, run: str) -> frozenset[str]:
        """Note that the crawl *run* begins; return those that are at work."""
        beside = frozenset(self.open_claims.crawls)
        self.open_claims.crawls.append(run)
        return beside

    def end(self, run: str) -> None:
        """Note that the crawl *run* is over."""
        self.open_claims.crawl_ended(run)

    def sweep(self) -> None:
        """Remove the open claims of processes that are not at work any more; a private store has none."""

    # --- pages

    def commit(
        self,
        page: Page,
        claim: int | None = None,
        feeds: frozenset[str] | None = frozenset(),
        items: Callable[[int], list[KeyValue]] = lambda _: [],
    ) -> StoredPage | None:
        """Store *page* as an original that *feeds* have taken, in one batch; what its identity held is superseded.

        Within :meth:`atomically`. Its *claim*, if it has one, ends. What *items* returns for its number is put with it.
        Return it, ``None`` where nothing has changed.
        """
        if page.known is not None:
            return self._commit_again(page, feeds, items)
        own = self.same(page.all_identities)
        ended = [] if claim is None else self._ended(claim)
        former = page.replaces
        known_of_former = [] if former is None else self.same(former.identities)
        known = own[0] if own and own[0].has_text_of(page) and _has_given(own[0], page) else None
        changes = PageWrite(self, page.run)
        number = self.number_of(page.url, [*own, *ended])
        stored = StoredPage.of(page, number, feeds=self._reached(page, known, feeds))
        changes.puts += items(number)
        superseded = [] if former is None else _superseded_by(stored, former, known_of_former)
        self._write(changes, stored, page, own, ended, superseded=superseded)
        return stored

    def _commit_again(
        self, page: Page, feeds: frozenset[str] | None, items: Callable[[int], list[KeyValue]]
    ) -> StoredPage | None:
        """Note that *page*, an unread original, was kept again.

        Only what has changed is written: what its items contain, which feeds have it, and, where that matters, when and
        by which crawl it was kept. Its text is owned as it was; where it is not any more, it owns nothing.
        """
        known = page.known
        assert known is not None
        if self.changed_since(page.known_at, page):
            own = self.same(page.identities)
            # But for when and by whom it was fetched, it is to be as it was.
            if len(own) != 1 or replace(own[0], kept=known.kept) != known:
                return None
            known = own[0]
        else:
            self.store.require_unchanged()
        reached = self._reached(page, known if _has_given(known, page) else None, feeds)
        is_as_before = page.item_content == known.item_content and reached == known.kept.feeds
        if is_as_before and self.eligibility.is_all:
            self.met_again[known.number] = page.run
            return None
        stored = replace(known, kept=Kept(page.run, now(), reached), item_content=page.item_content)
        changes = PageWrite(self, page.run)
        changes.puts += items(known.number)
        changes.puts += puts_of(stored, None, None, page.body_digest)
        packed = packed_item_text(stored, self.text(known.number))
        changes.put_or_delete(schema.item_text_key(known.number), packed)
        changes.write()
        self.open_claims.touch(stored)
        return stored

    def _reached(self, page: Page, known: StoredPage | None, feeds: frozenset[str] | None) -> frozenset[str] | None:
        """Return the feeds that have items of *page* now, that is, *feeds* and those that count of before."""
        if known is None or feeds is None or (self.eligibility.scope is Scope.CRAWL and known.run != page.run):
            return feeds
        if known.kept.feeds is None:
            return None
        both = feeds | known.kept.feeds
        return both if len(both) <= _MAX_FEEDS else feeds

    def remember_duplicate(
        self,
        page: Page,
        match: Match,
        items: Callable[[int, bool], Changed] = lambda *_: ((), ()),
        *,
        is_dropped: bool = True,
    ) -> int:
        """Store that *page* repeats ``match.original``, without postings, so that it can never own; return its number.

        Call it within :meth:`atomically`. In one batch with the puts and deletes of *items*, which gets that number,
        and whether the page was stored before. Unless it *is dropped*, its items go on to the feeds.
        """
        own = self.same(page.all_identities)
        changes = PageWrite(self)
        number = own[0].number if own else self.number_of(page.url)
        puts, deletes = items(number, bool(own))
        changes.puts += puts
        changes.deletes += deletes
        feeds = frozenset[str]() if is_dropped else None
        self._write(changes, StoredPage.of(page, number, match, feeds=feeds), page, own)
        return number

    def note_dropped_again(self, duplicate: StoredPage, run: str) -> None:
        """Note that the crawl *run* has dropped a *duplicate* again, unless it has met the original as it was."""
        if duplicate.run != run and self.met_again.get(duplicate.original or 0) != run:
            dropped = replace(duplicate, kept=Kept(run, now(), frozenset()))
            self.store.write([(schema.page_key(duplicate.number), schema.encode_page(dropped))])

    def remove(self, number: int, run: str = "") -> None:
        """Remove the page *number*: its text is not owned any more. Within :meth:`atomically`, in one batch.

        What the crawl *run* has dropped for it is to be released.
        """
        page = self.page(number)
        if page is None or page.pending:
            return
        changes = PageWrite(self)
        changes.puts += self._releases_of_copies([page], run)
        changes.replace([page], number, None)
        changes.remove_page(page)
        changes.write()
        self.known_words.forget()
        self.open_claims.touch(page)

    def _releases_of_copies(self, originals: Iterable[StoredPage], run: str) -> list[KeyValue]:
        """Return what marks the items as to be released that the crawl *run* has dropped for what *originals* gave.

        They are compared with what the store has then. A scan of each one's copies.
        """
        items: list[DroppedItem] = []
        for original in originals:
            if original.original is None and run:
                copies = self.numbered(self.duplicates_of(original.number))
                dropped = [copy.number for copy in copies if copy.run == run and copy.kept.feeds is not None]
                items += (item for number in dropped for item in self._dropped_by(run, number, basis_of(original)))
        return self.dropped.to_release(items) if items else []

    def _dropped_by(self, run: str, copy: int, basis: bytes) -> list[DroppedItem]:
        """Return the stored items of a *copy* that the crawl *run* has dropped, not those of what it was before.

        Of a copy that was not read again, they are those that were dropped before for the same *basis*.
        """
        stored = self.dropped.get(self.dropped.of_page(copy))
        return [item for item in stored if item.crawl == run] or [item for item in stored if item.basis == basis != b""]

    # --- writing

    def _write(  # noqa: PLR0913 - what is written, by name
        self,
        changes: PageWrite,
        stored: StoredPage,
        page: Page,
        own: list[StoredPage],
        ended: Sequence[StoredPage] = (),
        *,
        superseded: Sequence[StoredPage] = (),
    ) -> None:
        """Write *changes*, and with them *page*, *stored* so, and its text in the place of what was its *own*.

        *ended* is what the store has of its claim; those that are *superseded* become its duplicates.
        """
        changes.replace(
            [*own, *superseded, *ended],
            stored.number,
            stored if stored.original is None else None,
            page.suppressed,
            page.note,
        )
        body_digest = b"" if _must_be_read(stored, own) else page.body_digest
        text = None if page.is_keyed else schema.encode_text(page.paragraphs)
        if not own and not page.source:
            before = self.shown_on(page.url)
            if (now := shown.updated(before, page)) is not before:
                changes.puts.append((schema.shown_key(page.url, self.store.header.key), shown.encode(now)))
        elif text is not None:
            self.known_words.replace(stored.number, page.paragraphs)
        item_text = packed_item_text(stored, page.paragraphs)
        changes.puts += puts_of(stored, text, item_text, body_digest)
        if own and item_text is None:
            changes.deletes.append(schema.item_text_key(stored.number))
        for other in own:
            if other.number != stored.number:
                changes.remove_page(other)
        if own and not page.is_keyed and not stored.is_original_as(own[0]):
            changes.puts += self._releases_of_copies(own, page.run)
        for view in superseded:
            changes.puts += puts_of(_as_duplicate(view, stored), None, None)
        changes.write()
        self.open_claims.renewed(stored.number)
        self.open_claims.touch(stored, *own, *superseded)


def _must_be_read(stored: StoredPage, own: list[StoredPage]) -> bool:
    """Return whether a page, *stored* so in the place of its *own*, is to be read even if it comes unchanged.

    A page that owns only what its items contain is read until these were the same twice: its text shows what it owns
    when they change.
    """
    if stored.original is not None or stored.exact_digest:
        return False
    return all(known.item_content != stored.item_content for known in own)


def _has_given(known: StoredPage, page: Page) -> bool:
    """Return whether the items of the *known* original contained all that those of *page* contain now.

    If not, what is certain of the original is not certain of them: should they be lost, it must not count as kept.
    """
    before, now = known.item_content, page.item_content
    if before is None or now is None:
        return before is now
    return now.hashes <= before.hashes and now.items <= before.items and before.has_text >= now.has_text


def packed_item_text(stored: StoredPage, text: Sequence[str]) -> bytes | None:
    """Return text and values of the items of *stored*, packed beside its own *text*; ``None`` if its page has them."""
    content = stored.item_content
    if content is None:
        return None
    texts = content.texts if content.has_text and [*content.texts] != [*text] else ()
    features = stored.features or PageFeatures()
    named = f"{features.title}\n{features.heading}"
    values = [line for line in content.shown if line.partition(": ")[2] not in named]
    return schema.encode_item_text(texts, values, text) if texts or values else None


def _superseded_by(stored: StoredPage, former: StoredPage, known: Iterable[StoredPage]) -> list[StoredPage]:
    """Return the originals that give way to *stored*, a preferred page.

    *former* is the original when *stored* was checked, *known* what its identities lead to now. A page is not replaced
    if it has another text by now, is not an original any more, or is still pending.
    """
    return [
        page
        for page in known
        if page.original is None
        and not page.pending
        and page.number != stored.number
        and page.digest == former.digest
        and len(stored.hashes) >= _MIN_CLAUSE_SHARE * len(page.hashes)
    ]


def _as_duplicate(former: StoredPage, original: StoredPage) -> StoredPage:
    """Return the *former* original as a duplicate of *original*. Its score counts clauses: their weights are unknown.

    No check has compared it with *original*, only the reverse. So it has its own content as that of its original: the
    verdict stands where both have the same clauses, else the page is checked when it is fetched again.
    """
    share = len(former.hashes & original.hashes) / len(former.hashes) if former.hashes else 0.0
    return replace(
        former,
        original=original.number,
        original_digest=former.content,
        item_content=None,
        score=round(share, 4),
        standing=None,
    )


def puts_of(
    page: StoredPage, text: bytes | None, item_text: bytes | None, body: bytes = b""
) -> list[tuple[bytes, bytes]]:
    """Return what a store has of *page* under its number and its identities, but for posting lists.

    *text* and *item_text* are packed. *body* is the digest of the bytes that it was read from, if these are to show
    that it is the same.
    """
    number = page.number
    puts = [(schema.page_key(number), schema.encode_page(page))]
    puts += [(schema.identity_key(i), schema.encode_number(number) + body) for i in page.identities]
    if page.original is not None:
        puts.append((schema.repeat_key(page.original, number), b""))
    if text is not None:
        puts.append((schema.text_key(number), text))
    if item_text is not None:
        puts.append((schema.item_text_key(number), item_text))
    return puts


def _keys_of(page: StoredPage) -> list[bytes]:
    """Return the keys that lead to *page*, but for posting lists; those of a claim, and its text."""
    if page.is_claimed:
        return [schema.claimed_key(page.number), schema.text_key(page.number)]
    repeats = [] if page.original is None else [schema.repeat_key(page.original, page.number)]
    return [*map(schema.identity_key, page.identities), *repeats]


class PageWrite:
    """Puts and deletes for one page; :meth:`write` makes them all at once, or none."""

    def __init__(self, index: Index, run: str = "") -> None:
        """Collect for a page of the crawl *run*: in a full posting list, pages that cannot drop it make room."""
        self.puts: list[tuple[bytes, bytes]] = []
        self.deletes: list[bytes] = []
        self._store = index.store
        self._beside = index.beside
        self._counts = None if index.eligibility.is_all or not run else index.counting(run)

    def write(self) -> None:
        """Apply what was collected, if anything was; :class:`StoreError` if it fails."""
        if self.puts or self.deletes:
            self._store.write(self.puts, self.deletes)

    def put_or_delete(self, key: bytes, value: bytes | None) -> None:
        """Let *key* have this *value*, or none."""
        if value is None:
            self.deletes.append(key)
        else:
            self.puts.append((key, value))

    def replace(
        self,
        pages: Iterable[StoredPage],
        number: int,
        new: StoredPage | None,
        suppressed: frozenset[bytes] = frozenset(),
        note: object = None,
    ) -> None:
        """Let *new*, under *number*, own its text but for *suppressed*, instead of *pages*; ``None``: no page does.

        *note* is what another detector has noted of *new*.
        """
        pages = list(pages)
        self.deletes += chain.from_iterable(map(_keys_of, pages))
        before = [page for page in pages if page.original is None]
        mine = frozenset(page.number for page in before) | {number}
        held, now = schema.listed(before), schema.listed([] if new is None else [new])
        # What its own claim holds, under the number that the page has now, stays as it is, and need not be read.
        if standing := held & now:
            standing -= schema.listed(page for page in before if page.number != number or not page.is_claimed)
        held, now = held - standing, now - standing
        if self._beside is not None:
            more = self._beside.replaced(mine, number, None if new is None else note)
            held, now = held | more.held, now | more.now
            self.puts += more.puts
            self.deletes += more.deletes
        others, alone, keys = frozenset(schema.clause_keys(suppressed)), schema.encode_number(number), [*(held | now)]
        for key, value in zip(keys, self._store.get_recent(keys), strict=True):
            if value is None:
                if key in now:
                    self.puts.append((key, alone))
                continue
            holders = frozenset(schema.decode_postings(value))
            after = holders - mine
            # What it had before it goes on holding as it did: as one of the holders, or not.
            if key in now and (bool(holders & mine) or holders <= mine if key in held else key not in others):
                most = _MAX_HOLDERS_OF.get(key[:1], MAX_HOLDERS)
                if len(after) >= most and self._counts is not None:
                    after = frozenset(filter(self._counts, after))
                if len(after) < most:
                    after |= {number}
            if after != holders:
                self.put_or_delete(key, schema.encode_postings(sorted(after)) if after else None)

    def remove_page(self, page: StoredPage) -> None:
        """Remove *page*, which :meth:`replace` has taken as one of its pages, and its texts."""
        self.deletes += [key(page.number) for key in (schema.page_key, schema.text_key, schema.item_text_key)]
