"""What is in the store although no medium vouches for it yet, so that a crash costs nobody a story.

It remembers and forgets, and says what to write; others write it, in the batches that it belongs to.

An owner is *unsealed* from the batch that confirms it until its items are known to be on their medium: a feed's buffer
dies with the process. It is sealed for the crawl that sealed it: delivered again by another crawl, it is unsealed
again, and what was certain before is kept beside it. A page whose drop rests on what is not certain is *journalled*,
with its request. Sealing the delivery that it rests on clears both. What an unclean shutdown leaves is found when the
store is opened again: its owners are what they were before, or void, and its journalled pages are requested once more.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from dedup_middleware.index import codec, journal_codec, page_codec
from dedup_middleware.index.packing import undropped

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from collections.abc import Set as AbstractSet

    from dedup_middleware.model import Delivery, StoredPage
    from dedup_middleware.stores.protocol import Store

    Rest = tuple[int, str]
    """What a drop rests on: the number of an owner, and the crawl that delivers it."""


_TO_BE_RESTORED = b"to be restored"


class PackedRequest(NamedTuple):
    """The request of a page that is dropped, as the plugin packed it."""

    full: bytes
    """To be requested again after a crash."""
    redacted: bytes | None
    """Without secrets, for as long as the page is stored; ``None`` where nothing is left that leads to the page."""
    purpose: bytes
    """What is made of the page: that of two requests of one page for two callbacks differs."""


class JournalEntry(NamedTuple):
    """A page that was dropped, and how to get it once more."""

    identity: bytes
    """16 bytes: that of its request."""
    spider: str
    """Whose callback its request names."""
    request: bytes
    """The request, as the plugin packed it."""
    crawl: str = ""
    """The only crawl that may deliver it; "" for the next one, whichever it is."""
    purpose: bytes = b""
    """That of the request; in the key alone, so that an entry that was read does not have it."""

    @property
    def key(self) -> bytes:
        """What tells it from other entries of the same page: 24 bytes."""
        return codec.entry_key(self.identity, self.purpose, self.spider, self.crawl)

    def to_deliver(self, *, owns: bool = False) -> JournalEntry | None:
        """Return it as one of a page that is not to be dropped again; ``None`` if its request cannot be read here.

        Nor judged, unless it *owns* its text from now on.
        """
        request = undropped(self.request, owns=owns)
        # A visit of the spider's own is not what was asked for.
        return None if request is None else self._replace(request=request, purpose=_TO_BE_RESTORED)

    def is_to_be_delivered(self, key: bytes) -> bool:
        """Tell whether it was read under the *key* of one that :meth:`to_deliver` has made."""
        return self._replace(purpose=_TO_BE_RESTORED).key == key

    def encode(self) -> bytes:
        """Return it as bytes."""
        return journal_codec.encode_entry(self.identity, self.spider, self.request, self.crawl)


class Unsealed(NamedTuple):
    """An owner whose items may not be on their media yet."""

    run: str
    """The crawl that delivers it."""
    before: Delivery | None
    """What was certain before that crawl delivered it; ``None`` if nothing was."""
    worker: bytes = b""
    """Who runs that crawl, in a store that workers share."""


class Journal:
    """The unsealed owners and the journalled pages of one open store; those who share the store share it."""

    def __init__(self) -> None:
        self.owners: dict[int, Unsealed] = {}
        self.unsettled: dict[int, Delivery | None] = {}
        """Owners that an unclean shutdown left unsealed, and what is certain of each: the store has them as they were
        then, and what is read of them is to be as if they had been rolled back."""
        self.recovered: dict[bytes, JournalEntry] = {}
        """By key: pages that an unclean shutdown left, whose second visit is not over yet."""
        # The keys of entries by what they rest on, and the reverse.
        self._dropped: defaultdict[Rest, set[bytes]] = defaultdict(set)
        self._rests: dict[bytes, set[Rest]] = {}
        self._handed_out: set[bytes] = set()
        self._recovered = False

    def recover(self, store: Store) -> None:
        """Read, once, what an unclean shutdown left in *store*. O(what is left): 3 µs an owner or page."""
        if self._recovered:
            return
        self._recovered = True
        for key, value in store.scan(*codec.JOURNAL):
            self.recovered[key[1:]] = JournalEntry(*journal_codec.decode_entry(value))
        for key, value in store.scan(*codec.UNSEALED):
            self.unsettled[codec.decode_number(key[1:])] = decode_unsealed(value).before

    def go_on_from(self, before: Journal) -> None:
        """Take back what this process had unsealed in *before*, until its store was away, if nobody has it by now.

        Where that cannot be told, it is all void, as after an unclean shutdown.
        """

    # --- owners

    def certain(self, owner: StoredPage) -> Delivery | None:
        """Return what of the delivery of *owner* no crash can take back; ``None`` if nothing is."""
        unsealed = self.unsealed_of(owner.number)
        return owner.delivery if unsealed is None else unsealed.before

    def unsealed_of(self, number: int) -> Unsealed | None:
        """Return what the owner *number* is, if it is unsealed."""
        return self.owners.get(number)

    def unsealed(self, stored: StoredPage, known: StoredPage | None) -> Unsealed | None:
        """Return what *stored*, an owner that is confirmed, is from now on; ``None`` if all of it is certain.

        *known* is what the store had of it, if that was an owner with the same text.
        """
        before = None if known is None else self.certain(known)
        if before is not None and (before.run, before.feeds) == (stored.run, stored.delivery.feeds):
            return None
        return Unsealed(stored.run, before)

    def unsealed_pair(self, number: int, unsealed: Unsealed) -> tuple[bytes, bytes]:
        """Return the pair that says of an owner that it is unsealed."""
        return codec.unsealed_key(number), page_codec.encode_certain(unsealed.before)

    def note_unsealed(self, number: int, unsealed: Unsealed) -> None:
        """Note that the pair of :meth:`unsealed_pair` is written."""
        self.owners[number] = unsealed

    def unsealed_by(self, run: str, numbers: Iterable[int]) -> list[int]:
        """Return those of *numbers* that are unsealed, and by the crawl *run*: no other may seal them."""
        return [n for n in numbers if (unsealed := self.owners.get(n)) is not None and unsealed.run == run]

    def sealing_deletes(self, run: str, numbers: Collection[int], visited: Iterable[bytes]) -> list[bytes]:
        """Return the keys to delete once what *run* gave of the owners *numbers*, and entries *visited*, is safe."""
        keys = self._cleared({(number, run) for number in numbers}, visited)
        return [*map(codec.unsealed_key, self.unsealed_by(run, numbers)), *map(codec.journal_key, keys)]

    def note_sealed(self, run: str, numbers: Iterable[int], visited: Iterable[bytes]) -> None:
        """Note that the keys of :meth:`sealing_deletes` are gone."""
        sealed = {(number, run) for number in numbers}
        self.forget(self._cleared(sealed, visited))
        for rest in sealed:
            if (unsealed := self.owners.get(rest[0])) is not None and unsealed.run == run:
                del self.owners[rest[0]]
            for key in self._dropped.pop(rest, ()):
                self._rests[key].discard(rest)

    def _cleared(self, sealed: AbstractSet[Rest], visited: Iterable[bytes]) -> set[bytes]:
        """Return the keys of entries that nothing needs any more: what they rest on is sealed, or they are visited."""
        # A page that was visited may have been dropped once more since.
        keys = {key for key in visited if key in self.recovered}
        resting = {key for rest in sealed for key in self._dropped.get(rest, ())}
        return keys | {key for key in resting if self._rests[key] <= sealed}

    def give_up(self, numbers: Iterable[int]) -> None:
        """Note that these unsealed owners are to be what they were before: their items will not be safe any more."""
        for number in numbers:
            self.unsettled[number] = self.owners.pop(number).before

    def note_rolled_back(self, number: int) -> None:
        """Note that *number* is not unsealed any more. What was dropped for it stays journalled."""
        self.owners.pop(number, None)

    # --- dropped pages

    def look_at_others(self, *, is_idle: bool) -> None:
        """Look at what other processes were to deliver, at more of it when *is_idle*; there are none without others."""

    def note_taken_back(self, entry: JournalEntry, dropped: JournalEntry, *, requested: bool) -> None:
        """Note that *entry* is written in the place of *dropped*; whether its page is *requested* at once, too."""
        self.forget([dropped.key])
        self.recovered[entry.key] = entry
        if requested:
            self._handed_out.add(entry.key)

    def entry_pair(self, entry: JournalEntry, owner: int | None = None) -> tuple[bytes, bytes]:  # noqa: ARG002
        """Return the pair that journals a page, dropped in favour of *owner* if it was."""
        return codec.journal_key(entry.key), entry.encode()

    def note_entry(self, entry: JournalEntry, owner: int) -> None:
        """Note that the pair of :meth:`entry_pair` is written, of a page that is dropped in favour of *owner*."""
        self.recovered.pop(entry.key, None)
        unsealed = self.unsealed_of(owner)
        # If the owner is not unsealed, nothing in this crawl clears the entry, and the next one requests it in vain.
        rest = owner, "" if unsealed is None else unsealed.run
        self._dropped[rest].add(entry.key)
        self._rests.setdefault(entry.key, set()).add(rest)

    def hand_out(self, spider: str, run: str, met: Collection[bytes]) -> Iterator[tuple[bytes, JournalEntry]]:
        """Yield, by key, what an unclean shutdown left of *spider* and the crawl *run* may deliver; not those *met*.

        Each entry once, whichever crawl of the process asks.
        """
        for key, entry in list(self.recovered.items()):
            if entry.spider == spider and entry.crawl in ("", run) and not (key in met or key in self._handed_out):
                self._handed_out.add(key)
                yield key, entry

    def forget(self, keys: Iterable[bytes]) -> None:
        """Note that these entries are gone."""
        for key in keys:
            self.recovered.pop(key, None)
            for rest in self._rests.pop(key, ()):
                self._dropped[rest].discard(key)


def decode_unsealed(value: bytes) -> Unsealed:
    """Return what the pair of an unsealed owner says."""
    worker, run, certain = journal_codec.decode_unsealed(value)
    return Unsealed(run, page_codec.decode_certain(certain), worker)
