"""What an extraction method is, and ours.

Another one is a function of a package of its own, chosen by the name of its entry point; see `registry`. It may call
ours, and change what comes of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from dedup_middleware.extraction import check_complete, texts_of
from dedup_middleware.extraction.features import features_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lxml.etree import _Element

    from dedup_middleware.budget import Budget
    from dedup_middleware.features import PageFeatures


class Extracted(NamedTuple):
    """What is read of a page."""

    paragraphs: Sequence[str]
    """Those of its main text, in document order, none empty."""
    features: PageFeatures
    """What it says beside that: what it is called, and what stands around."""


#: From the root of a parsed page, and what it may cost. It changes nothing of the tree, which the callback gets, and
#: raises :class:`UnjudgeableError` for a page that cannot be judged.
Extractor: TypeAlias = "Callable[[_Element, Budget], Extracted]"


def weighted_dom(root: _Element, budget: Budget) -> Extracted:
    """Return what the page under *root* says. One to one and a half times the time of a bare parse."""
    check_complete(root)
    budget.check_time()
    texts = texts_of(root, budget)
    return Extracted(texts.paragraphs, features_of(root, texts))
