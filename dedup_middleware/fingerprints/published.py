"""A published method as the one that decides: what ``DEDUP_FINGERPRINT`` may name beside our own fingerprints.

Pages keep their clauses: what is repeated is shown by them, and what their items said. What is alike, the method says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dedup_middleware.fingerprints.clauses import ClauseFingerprinter

if TYPE_CHECKING:
    from dedup_middleware.fingerprints.literature.method import Method, Print, Text

#: Pages that a method which learns looks at before it makes its first fingerprint.
LEARNED_FROM = 200


def clauses_beside(choice: str) -> type[ClauseFingerprinter]:
    """Return the fingerprint of pages beside what the method of *choice* makes of them; its scheme names that too."""
    return type("ClausesBeside", (ClauseFingerprinter,), {"scheme": f"{ClauseFingerprinter.scheme}+{choice}"})


class Learner:
    """A *method* that has learned, or learns from the first pages that it is given."""

    def __init__(self, method: Method, learned: bytes = b"") -> None:
        """Take up what it has *learned* before, if anything; `UnreadableError` as `recall`."""
        self.method = method
        self.is_ready = not method.learns or bool(learned)
        self.pages = LEARNED_FROM
        """From how many it learns."""
        self._texts: list[Text] = []
        if learned:
            method.recall(learned)

    def fingerprint(self, text: Text) -> Print | None:
        """Return what the method makes of *text*; ``None`` as long as it learns, too."""
        return self.method.fingerprint(text) if self.is_ready else None

    def hear(self, text: Text) -> bool:
        """Let it learn from *text* if it still does; tell whether it has learned now, so that this can be kept."""
        if self.is_ready or not text.paragraphs:
            return False
        self._texts.append(text)
        if len(self._texts) >= self.pages:
            self.learn()
        return self.is_ready

    def learn(self) -> None:
        """Learn from what it has heard so far, and from nothing later."""
        self.method.fit(self._texts)
        self.is_ready = True
        self._texts = []
