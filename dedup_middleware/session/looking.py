"""What a page would be, judged as a crawl judges it, against a closed store to which nothing is written."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dedup_middleware.budget import UnjudgeableError
from dedup_middleware.model import Action
from dedup_middleware.session.opening import deduplication_of, open_to_look
from dedup_middleware.session.reading import PageContent, Reading
from dedup_middleware.session.runs import run_id
from dedup_middleware.visit import Visit

if TYPE_CHECKING:
    from dedup_middleware.inspection.records import Record
    from dedup_middleware.settings.config import Config


def would_be_judged(config: Config, url: str, html: bytes) -> Record:
    """Return the record that the page *html* would have, fetched from *url* now; its items are not asked.

    :class:`StoreError` if the store is not there, or in use. 0.1 s, and what the store takes to be opened.
    """
    opened = open_to_look(replace(config, log=None))
    try:
        session = deduplication_of(opened, run_id(None), _Nobody())
        reading = Reading(PageContent.of(url, html, {}))
        try:
            reading.read(session, config)
        except UnjudgeableError as error:
            state = Visit.unjudged(reading.url, error.reason, Action.DRY_RUN, config.threshold)
        else:
            assert reading.page is not None
            state = session.judge(reading.page, Action.DRY_RUN, config.threshold, config.budget())
        return session.recorder.record(state)
    finally:
        opened.store.close()


class _Nobody:
    """A `Listener` that is told and does nothing."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_args, **_named: None
