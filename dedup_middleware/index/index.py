"""The stored pages of one store and its open claims, and how they change.

Nothing changes but in one atomic batch a page. Pages whose claim is open live in memory only, under
negative numbers; confirming one writes it. A crash therefore leaves nothing provisional behind.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from dedup_middleware.canonical import storys_own
from dedup_middleware.index import codec
from dedup_middleware.index.lookup import ALL
from dedup_middleware.index.revocable import Revocable
from dedup_middleware.index.superseding import as_duplicate, superseded_by
from dedup_middleware.index.unchanged import differ, has_given, must_be_read, own_words
from dedup_middleware.model import Scope, StoredPage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dedup_middleware.fingerprints.literature.method import Method
    from dedup_middleware.index.batch import Batch
    from dedup_middleware.index.journal import Journal, JournalEntry
    from dedup_middleware.index.open_claims import OpenClaims
    from dedup_middleware.index.shared_ahead import Fetch
    from dedup_middleware.model import Match, Page, Reach
    from dedup_middleware.stores import OpenStore

    _T = TypeVar("_T")


class Index(Revocable):
    """The stored pages and the open claims of one store.

    *common*: a clause held by more kept pages than this is boilerplate, without a vote, and its posting list is capped;
    on pages of one host, a clause held by more than two of that host's.
    *text_limit*: characters of a page's text kept, for `explain` and the second opinion; 0 keeps none.
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
        journal: Journal,
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
        self.journal = journal
        self.unsettled = journal.unsettled
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

    def take_over(self) -> None:
        """Take over what other processes have left that ended since; there is none where there are no others."""

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
        self, page: Page, *, claim: int | None = None, sealed: bool = False, feeds: frozenset[str] | None = frozenset()
    ) -> StoredPage | None:
        """Store *page* as an owner that *feeds* have taken; what its identity held before is superseded.

        In one batch. Its *claim*, if it has one, ends. It is unsealed, unless it is *sealed* now, or all it says was,
        by the same crawl and feeds. ``None`` where there is nothing to be written and sealed: for one that stands as it
        was.
        """
        if page.known is not None:
            return self._commit_again(page, sealed=sealed, feeds=feeds)
        ended = [] if claim is None else self._ended(claim)
        own = self.same_to_write(page.identities)
        if page.instead_of is not None:
            self._settle_first([page.instead_of.number])
        known = own[0] if own and own[0].says(page) and has_given(own[0], page) else None
        reached = self._reached(page, known, feeds)
        batch = self.batch(page.run)
        number = next((before.number for before in (*own, *ended)), None) or batch.number_for(page.url)
        stored = StoredPage.of(page, number, feeds=reached)
        batch.deletes += [codec.request_key(o.number) for o in own[:1] if o.owner is not None]
        unsealed = None if sealed else self.journal.unsealed(stored, known)
        if unsealed is not None:
            batch.puts.append(self.journal.unsealed_pair(stored.number, unsealed))
        named = codec.encode_number(stored.number)
        batch.puts += [(codec.canonical_key(identity), named) for identity in storys_own(page.features, page.url)]
        self._write(batch, stored, page, own, ended)
        if unsealed is not None:
            self.journal.note_unsealed(stored.number, unsealed)
        return stored

    def _ended(self, claim: int) -> list[StoredPage]:
        """End a *claim* for good; return what of it is in the store, and ends with the batch that replaces it."""
        self.release(claim)
        return []

    def _commit_again(self, page: Page, *, sealed: bool, feeds: frozenset[str] | None) -> StoredPage | None:
        """Note that *page*, an owner that stands unread for what the store has of it, was delivered again.

        Only what has changed is written: what its items said, which feeds have it, and, where that matters, when and by
        which crawl it was delivered. Its text is owned as it was; where it is not any more, it owns nothing.
        """
        known = self._still(page)
        if known is None:
            return None
        given = known if has_given(known, page) else None
        reached = self._reached(page, given, feeds)
        delivery = StoredPage.of(page, known.number, feeds=reached).delivery
        stored = replace(known, delivery=delivery, item_content=page.item_content)
        text, words = codec.item_text_key(known.number), own_words(stored)
        said = self._packed(words) if words else None
        is_as_it_was = not differ(stored, known) and (said is None or self.store.get_many([text]) == [said])
        is_certain = self.journal.unsealed_of(known.number) is None and reached == known.delivery.feeds
        if is_as_it_was and is_certain and self.reach.is_all:
            self._meet_again(known.number, page.run)
            return None
        batch = self.batch(page.run)
        unsealed = None if sealed else self.journal.unsealed(stored, given)
        if unsealed is not None:
            batch.puts.append(self.journal.unsealed_pair(stored.number, unsealed))
        batch.put_again(stored, known, page.body_digest)
        batch.put_or_delete(text, said)
        batch.write()
        if unsealed is not None:
            self.journal.note_unsealed(stored.number, unsealed)
        self._claims.touch(stored.hashes, stored.identities)
        return stored

    def _still(self, page: Page) -> StoredPage | None:
        """Return what the store has of *page* if that is what stands for it unread, and is as it was then."""
        known = page.known
        if known is None or not self.changed_since(page.known_at, page):
            return known
        own = self.same(page.identities)
        return own[0] if len(own) == 1 and not differ(own[0], known) else None

    def _meet_again(self, number: int, run: str) -> None:
        """Note that *run* has met the page *number* as it is stored. It may be forgotten, so it is not written."""
        self._met_again.add(number)
        self._met_by = run

    def _reached(self, page: Page, known: StoredPage | None, feeds: frozenset[str] | None) -> frozenset[str] | None:
        """Return the feeds that have items of *page* now, that is, *feeds* and those that count of before."""
        if known is None or feeds is None:
            return feeds
        # What another crawl has delivered and not sealed may still be lost.
        before = known.delivery if known.run == page.run else self.journal.certain(known)
        if before is None or (self.reach.scope is Scope.CRAWL and before.run != page.run):
            return feeds
        return None if before.feeds is None else feeds | before.feeds

    def remember_duplicate(  # noqa: PLR0913 - what is known of a dropped page, by name
        self,
        page: Page,
        match: Match,
        entry: JournalEntry | None = None,
        *,
        kept: bytes | None = None,
        journal: bool = False,
        suspected_template: bytes = b"",
    ) -> bool:
        """Store that *page* repeats ``match.owner``: no postings, so it can never own. Tell whether that was done.

        It is not for a page that stands unread for what the store had of it, and does not have any more.

        *entry* is how to request it again, if it was dropped: in the *journal* until that owner is sealed, else cleared
        from there. Its request as it is to be *kept* stays for as long as the page is stored. *suspected_template* is
        the key of the text that it may fill in, if any.
        """
        known = self._still(page)
        if known is None and page.known is not None:
            return False
        own = self.same_to_write(page.identities) if known is None else [known]
        batch = self.batch()
        stored = StoredPage.of(page, own[0].number if own else batch.number_for(page.url), match)
        if known is not None:
            stored = replace(known, delivery=stored.delivery, owner_digest=stored.owner_digest)
        if suspected_template:
            batch.puts.append((codec.suspect_key(suspected_template, stored.number), b""))
        note = self._put_request(batch, stored.number, entry, kept, match.owner.number if journal else None)
        if known is None:
            self._write(batch, stored, page, own)
        elif self.reach.is_all and not differ(stored, known):
            self._meet_again(known.number, page.run)
            batch.write_if_any()
        else:
            batch.put_again(stored, known, page.body_digest)
            batch.write()
        note()
        return True

    def _put_request(
        self, batch: Batch, number: int, entry: JournalEntry | None, kept: bytes | None, rests_on: int | None
    ) -> Callable[[], None]:
        """Put what `remember_duplicate` keeps of a request into *batch*; return what notes that it is written."""
        if entry is None:
            return lambda: None
        key = codec.request_key(number)
        request = None if kept is None else entry._replace(request=kept, crawl="").encode()
        if batch.is_of_new_page or self.store.get_many([key]) != [request]:
            batch.put_or_delete(key, request)
        if rests_on is not None:
            batch.puts.append(self.journal.entry_pair(entry, rests_on))
            return partial(self.journal.note_entry, entry, rests_on)
        if entry.key in self.journal.recovered:
            batch.deletes.append(codec.journal_key(entry.key))
            return partial(self.journal.forget, [entry.key])
        return lambda: None

    # --- writing

    def _write(
        self,
        batch: Batch,
        stored: StoredPage,
        page: Page,
        own: list[StoredPage],
        ended: Sequence[StoredPage] = (),
    ) -> None:
        """Write *batch*, and with it *page*, *stored* so, and its text in the place of what was its *own*.

        *ended* is what the store has of its claim.
        """
        with self._reading():
            made, superseded = page.fingerprint.made, superseded_by(page, stored, self)
            batch.replace(
                [*own, *superseded, *ended],
                stored.number,
                stored if stored.owner is None else None,
                page.borrowed,
                made,
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
