"""The checks in the order in which they are made. Each is a pure function over a pair of pages.

A check reads the pair and returns why the page is not a copy of the original, or ``None``. The first rejection decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from dedup_middleware.checks import between_sites, numbers, one_site
from dedup_middleware.model import Rejection
from dedup_middleware.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Callable

    from dedup_middleware.checks.pair import Pair

    Check: TypeAlias = Callable[[Pair], Rejection | None]

#: A page whose main text may be another one is a copy from this containment on.
DOUBTFUL_THRESHOLD = 0.95


def doubtful(pair: Pair) -> Rejection | None:
    """Reject a page whose extracted text may not be its main text, unless the original contains nearly all of it."""
    is_doubtful = pair.page.is_doubtful and pair.score < DOUBTFUL_THRESHOLD
    return Rejection(Reason.DOUBTFUL) if is_doubtful else None


# Quick checks first.
ONE_SITE: tuple[Check, ...] = (
    doubtful,
    numbers.other_numbers,
    one_site.title,
    one_site.facts,
    one_site.context,
    one_site.address,
    one_site.text,
)
BETWEEN_SITES: tuple[Check, ...] = (
    doubtful,
    between_sites.furniture,
    numbers.other_numbers,
    between_sites.title,
    between_sites.replaced,
    between_sites.symbols,
    between_sites.passage,
)
#: For items that stand for a page each: they have nothing around their text.
ITEMS: tuple[Check, ...] = (numbers.other_numbers, between_sites.replaced, between_sites.symbols)


def first_rejection(pair: Pair, *, is_template: bool) -> Rejection | None:
    """Return the first rejection of *pair* by the checks that apply to it, or ``None`` for a copy.

    *is_template*: pages that fill in one template are compared as pages of one site are, on different sites too.
    """
    are_strict = pair.is_one_site or is_template
    checks = ITEMS if pair.are_items else ONE_SITE if are_strict else BETWEEN_SITES
    return next((found for check in checks if (found := check(pair)) is not None), None)
