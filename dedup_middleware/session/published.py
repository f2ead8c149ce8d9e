"""What the published method that decides a crawl makes of its pages, and what it learns of them."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dedup_middleware.extraction.features import description_of
from dedup_middleware.extraction.structure import elements_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from lxml.etree import _Element

    from dedup_middleware.features import Made, PageFeatures
    from dedup_middleware.fingerprints.published import Learner
    from dedup_middleware.index.prints import PrintIndex


class Published:
    """The method of one crawl."""

    def __init__(self, learner: Learner, prints: PrintIndex, guard: Callable[[], AbstractContextManager[None]]) -> None:
        """Ask *learner*, and keep in *prints* what it has learned; *guard* notes what fails."""
        self._learner = learner
        self._prints = prints
        self._guard = guard

    def made(
        self, paragraphs: tuple[str, ...], url: str, features: PageFeatures | None, root: _Element | None
    ) -> Made | None:
        """Return what the method makes of a page; ``None`` while it learns, and then it learns of this one too.

        *root* is that of its tree, where there is one.
        """
        from dedup_middleware.fingerprints.literature.method import Text  # noqa: PLC0415 - few crawls have another method

        title = "" if features is None else features.title
        text = Text(paragraphs, title, url)
        if root is not None:
            elements = elements_of(root, paragraphs) if self._learner.method.sees_elements else ()
            text = text._replace(description=description_of(root), elements=elements)
        if self._learner.hear(text):
            self._remember()
        return self._prints.made(self._learner.fingerprint(text))

    @contextmanager
    def learning(self) -> Iterator[None]:
        """Let the method learn from what it is given meanwhile, instead of from the first pages; if it has not yet."""
        if self._learner.is_ready:
            yield
            return
        self._learner.pages = sys.maxsize
        yield
        self._learner.learn()
        self._remember()

    def _remember(self) -> None:
        with self._guard():
            learned = self._learner.method.learned()
            kept = self._prints.remember(learned)
            if kept != learned:
                # Another process that shares the store was first.
                self._learner.method.recall(kept)
