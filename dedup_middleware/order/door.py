"""Lists what the core uses of this annexe: `plugin/ordering.py`, which names it, imports it from here."""

from dedup_middleware.order.forms import last_form
from dedup_middleware.order.queue import TwoTierQueue
from dedup_middleware.order.requests import RequestOrder

__all__ = ["RequestOrder", "TwoTierQueue", "last_form"]
