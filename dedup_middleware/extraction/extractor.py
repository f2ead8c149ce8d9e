"""What an extraction method is, and ours.

Another one is a function of a package of its own, chosen by the name of its entry point; see `registry`. It may call
ours, and change what comes of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from dedup_middleware.budget import Budget
from dedup_middleware.errors import ConfigError
from dedup_middleware.extraction import EXTRACTORS, check_complete, parse, texts_of
from dedup_middleware.extraction.features import features_of
from dedup_middleware.features import PageFeatures
from dedup_middleware.text.titles import is_echoed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lxml.etree import _Element


#: With a smaller share of a page's running text outside of furniture, there is more elsewhere that may be the main one.
SURE_SHARE = 0.1


class Extracted(NamedTuple):
    """What is read of a page."""

    paragraphs: Sequence[str]
    """Those of its main text, in document order, none empty."""
    features: PageFeatures
    """What it says beside that: what it is called, and what stands around."""
    is_doubtful: bool = False
    """Whether the paragraphs may not be the main text. Then only what repeats nearly all of them is a copy."""
    is_furniture: bool = False
    """Whether the paragraphs stand in furniture, such as comments or a notice, while other text does not."""


#: From the root of a parsed page, and what it may cost. It changes nothing of the tree, which the callback gets, and
#: raises :class:`UnjudgeableError` for a page that cannot be judged.
Extractor: TypeAlias = "Callable[[_Element, Budget], Extracted]"


def weighted_dom(root: _Element, budget: Budget) -> Extracted:
    """Return what the page under *root* says. One to one and a half times the time of a bare parse."""
    check_complete(root)
    budget.check_time()
    texts = texts_of(root, budget)
    features = features_of(root, texts)
    is_sure = texts.share >= SURE_SHARE and is_echoed(f"{features.title} {features.heading}", texts.paragraphs)
    is_doubtful = bool(texts.paragraphs) and not is_sure
    return Extracted(texts.paragraphs, features, is_doubtful, texts.is_furniture)


def extractor(name: str) -> Extractor:
    """Return the extraction *name*; :class:`ConfigError` where it is none, lacks a package, or fails on a page."""
    found: Extractor = EXTRACTORS.load(name)
    if found is not weighted_dom:
        try:
            _try_out(found)
        except ConfigError:
            raise
        except Exception as error:
            raise ConfigError(
                f"the extraction {name!r} cannot be used ({error!r}); mend its package, or choose another"
            ) from error
    return found


def _try_out(extract: Extractor) -> None:
    paragraphs, features, *_ = extract(parse("<title>A</title><p>The ferry was late, and nobody knew why."), Budget())
    if isinstance(paragraphs, str) or not all(isinstance(paragraph, str) for paragraph in paragraphs):
        raise TypeError("its paragraphs must be a list of str")
    if not isinstance(features, PageFeatures):
        raise TypeError("its features must be PageFeatures, as features_of returns them")
