"""The stored pages of one store and its open claims, and how they change.

Nothing changes but in one atomic batch a page. Pages whose claim is open live in memory only, under
negative numbers; confirming one writes it. A crash therefore leaves nothing provisional behind.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from dedup_middleware.canonical import storys_own
from dedup_middleware.index import codec, page_codec
from dedup_middleware.index.batch import Batch
from dedup_middleware.index.dropped_items import DroppedItems
from dedup_middleware.index.in_doubt import InDoubt
from dedup_middleware.index.lookup import ALL, Lookup
from dedup_middleware.index.superseding import as_duplicate, superseded_by
from dedup_middleware.index.unchanged import differ, has_given, must_be_read, own_words
from dedup_middleware.model import Scope, StoredPage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from dedup_middleware.fingerprints.literature.method import Method
    from dedup_middleware.index.in_doubt import Doubt
    from dedup_middleware.index.open_claims import OpenClaims
    from dedup_middleware.index.shared_ahead import Fetch
    from dedup_middleware.index.shared_line import SharedLine
    from dedup_middleware.model import Match, Page, Reach
    from dedup_middleware.stores import OpenStore

    _T = TypeVar("_T")


class Reads(NamedTuple):
    """What a verdict rests on."""

    values: Mapping[bytes, bytes | None]
    """Of the store, by key."""
    upsets: int
    """See OpenClaims."""


class Index(Lookup):
    """The stored pages and the open claims of one store.

    *common*: a clause held by more kept pages than this is boilerplate, without a vote, and its posting list is capped;
    on pages of one host, a clause held by more than two of that host's.
    *text_limit*: characters of a page's text kept, for `explain` and the alignment; 0 keeps none.
    *distance*: within how many bits a paragraph is near, where pages have SimHashes; ``None`` where they have none.
    *method*: the published method that decides, if one does.
    *reach*: which owners may drop a page, and so whether what earlier crawls have delivered counts as delivered.
    Every method that reads the store raises :class:`StoreCorruptError` for what it cannot read there.
    """

    store: OpenStore

    def __init__(  # noqa: PLR0913 - what an index is made of, by name
        self,
        store: OpenStore,
        claims: OpenClaims,
        *,
        common: int,
        text_limit: int,
        distance: int | None = None,
        method: Method | None = None,
        reach: Reach = ALL,
    ) -> None:
        super().__init__(
            store, claims, common=common, text_limit=text_limit, distance=distance, method=method, reach=reach
        )
        self.in_doubt = InDoubt(store)
        self.dropped = DroppedItems(store, self.in_doubt)
        # One more than makes a clause common: the page that is judged may be a holder itself, and does not count then.
        self._max_holders = common + 2

    @property
    def version(self) -> int:
        """A number that grows whenever the answer to a lookup may have changed."""
        return self._claims.version

    def changed_since(self, version: int, page: Page) -> bool:
        """Tell whether a verdict on *page* that was made at *version* may be another by now."""
        return self._claims.changed_since(version, page)

    def atomically(self, work: Callable[[], _T]) -> _T:
        """Return what *work* returns; in a store that others change too, they do not while it runs."""
        return work()

    @property
    def is_far(self) -> bool:
        """Whether each lookup takes a while, and all of a page had better be made at once; see :meth:`fetching`."""
        return False

    def fetching(self, page: Page) -> Fetch | None:  # noqa: ARG002
        """Return what brings nearer what :meth:`claim` and all lookups of *page* ask for.

        ``None`` where all is near.
        """
        return None

    def noting(self) -> AbstractContextManager[Reads | None]:
        """Note what is read within the block, for :meth:`rests_on`; ``None`` where it is as easily read again."""
        return nullcontext()

    def is_upset(self, reads: Reads | None) -> bool:  # noqa: ARG002
        """Return whether anything has changed since that the store does not show, or may have."""
        return True

    def rests_on(self, reads: Reads) -> bool:  # noqa: ARG002
        """Return whether what was read may still be so; what :meth:`atomically` writes then rests on it, too."""
        return False

    def release_dead_claims(self) -> None:
        """Remove the open claims of processes that are not at work any more; a private store has none."""

    # --- claims

    def claim(self, page: Page) -> StoredPage:
        """Open a claim: *page* owns its text from now on, in memory. Returns it under its pending number."""
        pending = self._claims.add(page)
        if self._paragraphs is not None:
            self._paragraphs.claim(pending.number, pending.simhashes)
        return pending

    def release(self, number: int) -> None:
        """End the claim *number*: its text is nobody's again."""
        pending = self._claims.remove(number)
        if self._paragraphs is not None:
            self._paragraphs.release(number, pending.simhashes)

    def commit(
        self, page: Page, *, claim: int | None = None, durable: bool = False, feeds: frozenset[str] | None = frozenset()
    ) -> tuple[StoredPage | None, bool]:
        """Store *page* as an original that *feeds* have taken, in one batch; what its identity held is superseded.

        Its *claim*, if it has one, ends. It is in doubt, unless it is *durable*, or all its content was, by the same
        crawl and feeds. Return it, ``None`` where nothing has changed, and whether it was a duplicate before.
        """
        if page.known is not None:
            return self._commit_again(page, durable=durable, feeds=feeds), False
        ended = [] if claim is None else self._ended(claim)
        own = self.same(page.identities)
        former = page.instead_of
        known_of_former = [] if former is None else self.same(former.identities)
        known = own[0] if own and own[0].says(page) and has_given(own[0], page) else None
        reached = self._reached(page, known, feeds)
        batch = self.batch(page.run)
        number = next((before.number for before in (*own, *ended)), None) or batch.number_for(page.url)
        stored = StoredPage.of(page, number, feeds=reached)
        batch.puts += self._doubt(stored, known, self.in_doubt.of(number) if own else None, durable=durable)
        named = codec.encode_number(number)
        batch.puts += [(codec.canonical_key(identity), named) for identity in storys_own(page.features, page.url)]
        superseded = [] if former is None else superseded_by(stored, former, known_of_former)
        self._write(batch, stored, page, own, ended, superseded=superseded)
        return stored, bool(own) and own[0].owner is not None

    def _ended(self, claim: int) -> list[StoredPage]:
        """End a *claim* for good; return what of it is in the store, and ends with the batch that replaces it."""
        self.release(claim)
        return []

    def _commit_again(self, page: Page, *, durable: bool, feeds: frozenset[str] | None) -> StoredPage | None:
        """Note that *page*, an unread original, was kept again.

        Only what has changed is written: what its items contain, which feeds have it, and, where that matters, when and
        by which crawl it was delivered. Its text is owned as it was; where it is not any more, it owns nothing.
        """
        known = self._still(page)
        if known is None:
            return None
        given = known if has_given(known, page) else None
        reached = self._reached(page, given, feeds)
        delivery = StoredPage.of(page, known.number, feeds=reached).delivery
        stored = replace(known, delivery=delivery, item_content=page.item_content)
        text, words = codec.item_text_key(known.number), own_words(stored)
        packed = self._packed(words) if words else None
        is_as_it_was = not differ(stored, known) and (packed is None or self.store.get_many([text]) == [packed])
        doubt = self.in_doubt.of(known.number)
        is_certain = doubt is None and reached == known.delivery.feeds
        if is_as_it_was and is_certain and self.reach.is_all:
            self._met_again.add(known.number)
            self._met_by = page.run
            return None
        batch = self.batch(page.run)
        batch.puts += self._doubt(stored, given, doubt, durable=durable)
        batch.put_again(stored, known, page.body_digest)
        batch.put_or_delete(text, packed)
        batch.write()
        self._claims.touch(stored.hashes, stored.identities)
        return stored

    def _doubt(
        self, stored: StoredPage, known: StoredPage | None, doubt: Doubt | None, *, durable: bool
    ) -> list[tuple[bytes, bytes]]:
        """Return what puts *stored*, confirmed now, in doubt unless it is *durable*; see `InDoubt.after`.

        If other crawls may still lose items with content that it has not any more, it does not stand in for them: what
        was dropped in favour of those is released.
        """
        after = None if durable else self.in_doubt.after(stored, known, doubt)
        pairs = [] if after is None else [(codec.doubt_key(stored.number), after.encode())]
        if known is None and doubt is not None:
            runs = [run for run in doubt.runs if run != stored.run]
            lost = self.dropped.get(key for run in runs for key in self.dropped.lost_with(stored.number, run))
            pairs += self.dropped.to_release(lost)
        return pairs

    def _still(self, page: Page) -> StoredPage | None:
        """Return what the store has of an unread *page* if that is as it was when the page was looked up."""
        known = page.known
        if known is None or not self.changed_since(page.known_at, page):
            return known
        own = self.same(page.identities)
        return own[0] if len(own) == 1 and not differ(own[0], known) else None

    def _reached(self, page: Page, known: StoredPage | None, feeds: frozenset[str] | None) -> frozenset[str] | None:
        """Return the feeds that have items of *page* now, that is, *feeds* and those that count of before."""
        if known is None or feeds is None:
            return feeds
        # What another crawl has delivered and is still in doubt may be lost.
        before = known.delivery if known.run == page.run else self.in_doubt.durable(known)
        if before is None or (self.reach.scope is Scope.CRAWL and before.run != page.run):
            return feeds
        return None if before.feeds is None else feeds | before.feeds

    def remember_duplicate(
        self,
        page: Page,
        match: Match,
        items: Callable[[int], Iterable[tuple[bytes, bytes]]] = lambda _: (),
        *,
        template: bytes = b"",
    ) -> int:
        """Store that *page* repeats ``match.owner``, without postings, so that it can never own; return its number.

        Call it within :meth:`atomically`. In one batch with the pairs of *items*, which are given that number; items
        that other crawls have dropped of the page go. *template* is the key of the text that it may fill in, if any.
        """
        own = self.same(page.identities)
        batch = self.batch()
        number = own[0].number if own else batch.number_for(page.url)
        if own and own[0].owner is not None:
            batch.deletes += self.dropped.obsolete(number, page.run)
        if template:
            batch.puts.append((codec.suspect_key(template, number), b""))
        batch.puts += items(number)
        self._write(batch, StoredPage.of(page, number, match), page, own)
        return number

    # --- taking out

    def roll_back(self, number: int, doubt: Doubt) -> None:
        """Let an original in *doubt* be what it was before; without that, remove it. Call it within :meth:`atomically`.

        Its doubt stays: who rolls it back also sees to what was dropped in favour of it, and clears the doubt then.
        """
        page = self.page(number)
        if doubt.before is None or page is None:
            self.remove([number])
            return
        self.store.write([(codec.page_key(number), page_codec.encode_page(replace(page, delivery=doubt.before)))])
        self.touch([page])

    def remove(self, numbers: Iterable[int]) -> None:
        """Remove these pages, in a batch each: their text is not owned any more."""
        for number in numbers:
            page = self.page(number)
            if page is None or page.pending:
                continue
            batch = self.batch()
            with self._reading():
                batch.replace([page], number, None)
            batch.remove_identities(page.identities)
            batch.remove_page(page)
            batch.write()
            self.touch([page])

    def touch(self, pages: Iterable[StoredPage]) -> None:
        """Note that what is known of *pages* has changed."""
        self._claims.touch(*(keys for page in pages for keys in (page.hashes, page.identities)))

    # --- writing

    @cached_property
    def _shared_line(self) -> SharedLine | None:
        """The part that this process has in the line of a store far away."""
        return None

    def batch(self, run: str = "") -> Batch:
        """Return what collects the changes of one page, of the crawl *run*."""
        gives_way = None if self.reach.is_all or not run else self.counting(run)
        return Batch(
            self.store,
            self._paragraphs,
            self._max_holders,
            gives_way,
            prints=self.prints,
            shared_line=self._shared_line,
        )

    def _write(  # noqa: PLR0913 - what is written, by name
        self,
        batch: Batch,
        stored: StoredPage,
        page: Page,
        own: list[StoredPage],
        ended: Sequence[StoredPage] = (),
        *,
        superseded: Sequence[StoredPage] = (),
    ) -> None:
        """Write *batch*, and with it *page*, *stored* so, and its text in the place of what was its *own*.

        *ended* is what the store has of its claim; those that are *superseded* become its duplicates.
        """
        with self._reading():
            batch.replace(
                [*own, *superseded, *ended],
                stored.number,
                stored if stored.owner is None else None,
                page.borrowed,
                page.fingerprint.made,
            )
        said = own_words(stored)
        body_digest = b"" if must_be_read(stored, page, own) else page.body_digest
        batch.put_page(stored, self._packed(page.paragraphs), self._packed(said) if said else None, body_digest)
        if own and not said:
            batch.deletes.append(codec.item_text_key(stored.number))
        batch.remove_identities(i for known in own for i in known.identities if i not in stored.identities)
        for other in own[1:]:
            batch.remove_page(other)
        for view in superseded:
            batch.put_page(as_duplicate(view, stored), None)
        batch.write()
        touched = (stored, *own, *superseded)
        owned = (known.hashes for known in touched if known.owner is None)
        self._claims.touch(*owned, *(known.identities for known in touched))

    def _packed(self, texts: tuple[str, ...]) -> bytes | None:
        return codec.encode_text(texts, self._text_limit) if self._text_limit else None
