"""What a page is going to ask a store for that is far away, asked beforehand and at once."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from dedup_middleware.errors import DedupError
from dedup_middleware.index import codec, shared_codec
from dedup_middleware.index.lookup import equals_key, own_template_id
from dedup_middleware.stores.protocol import Question, SendingStore

if TYPE_CHECKING:
    from dedup_middleware.model import Page
    from dedup_middleware.stores.protocol import Arriving, FarStore

# Of pages that have something in common with one that is to be judged: themselves, their claims, texts, what their
# items said, and whether they are unsealed; of so many.
_FOLLOWED, _MOST = b"pgtsu", 8


class Fetch(NamedTuple):
    """A question, and whom to ask. What fails here, whoever reads then is told."""

    store: FarStore
    question: Question

    def begin(self) -> Arriving | None:
        """Ask, and do not wait; ``None`` where :meth:`run` must be called instead, in a thread."""
        if isinstance(self.store, SendingStore):
            with suppress(DedupError):
                return self.store.begin_fetch(self.question)
        return None

    def run(self) -> None:
        """Ask, and wait for the answer."""
        with suppress(DedupError):
            self.store.fetch(self.question)


def fetch_of(page: Page, store: FarStore, titles: bytes | None) -> Fetch:
    """Return how *store* is asked for all that claiming and judging *page* asks for; *titles* as of `shared_titles`."""
    claims = [shared_codec.claims_key(identity) for identity in page.identities]
    clauses = [codec.clause_key(clause) for clause in page.fingerprint.weights]
    equals = equals_key(page.fingerprint.exact_digest, page.features)
    lists = [*claims, *clauses, *map(codec.canonical_key, page.identities), *([] if equals is None else [equals])]
    # What a copy of another page is asked for, and what the others know of its host.
    others = [codec.template_key(own_template_id(page)), *([] if titles is None else [titles])]
    named = [codec.identity_key(identity) for identity in page.identities]
    return Fetch(store, Question(named, lists, others, _FOLLOWED, _MOST))
