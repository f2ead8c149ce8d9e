"""What a page is going to ask a store for that is far away, asked beforehand and at once."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from dedup_middleware.errors import DedupError
from dedup_middleware.index import codec, shared_codec
from dedup_middleware.index.whole_texts import equals_key, own_template_id
from dedup_middleware.stores.protocol import Question, SendingStore

if TYPE_CHECKING:
    from dedup_middleware.model import Page
    from dedup_middleware.stores.protocol import Arriving, FarStore

# Of pages that have something in common with one that is to be judged: themselves, their claims, texts, what their
# items said, and whether they are in doubt; of eight pages.
_FOLLOWED, _MOST = b"pgtsu", 8


class Fetch(NamedTuple):
    """A question, and whom to ask. What fails here, whoever reads then is told."""

    store: FarStore
    sending: SendingStore | None
    """The same, if it can do that."""
    question: Question

    def begin(self) -> Arriving | None:
        """Ask, and do not wait; ``None`` where :meth:`run` must be called instead, in a thread."""
        with suppress(DedupError):
            return None if self.sending is None else self.sending.begin_fetch(self.question)
        return None

    def run(self) -> None:
        """Ask, and wait for the answer."""
        with suppress(DedupError):
            self.store.fetch(self.question)


class Asker:
    """Whoever asks *store* beforehand."""

    def __init__(self, store: FarStore) -> None:
        self._store = store
        # To look takes 40 µs.
        self._sending = store if isinstance(store, SendingStore) else None

    def fetch(self, page: Page, titles: bytes | None) -> Fetch:
        """Return what asks for all that claiming and judging *page* does; *titles* is the key of `shared_titles`."""
        return Fetch(self._store, self._sending, _question_of(page, titles))


def _question_of(page: Page, titles: bytes | None) -> Question:
    claims = [shared_codec.claims_key(identity) for identity in page.identities]
    clauses = codec.clause_keys(page.fingerprint.weights)
    equals = equals_key(page.fingerprint.exact_digest, page.features)
    lists = [*claims, *clauses, *map(codec.canonical_key, page.identities), *([] if equals is None else [equals])]
    # What a copy of another page is asked for, and what the others know of its host.
    others = [codec.template_key(own_template_id(page)), *([] if titles is None else [titles])]
    named = [codec.identity_key(identity) for identity in page.identities]
    return Question(named, lists, others, _FOLLOWED, _MOST)
