"""A page as a program gives it -> a page as the core sees it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from w3lib.encoding import html_to_unicode

from dedup_middleware.budget import UnjudgeableError
from dedup_middleware.errors import ConfigError
from dedup_middleware.extraction import parse
from dedup_middleware.extraction.features import as_shown, shown_folded
from dedup_middleware.features import PageFeatures
from dedup_middleware.identity import url_identity
from dedup_middleware.reasons import Reason
from dedup_middleware.text.clauses import one_line
from dedup_middleware.urls import as_requested, without_secrets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lxml.etree import _Element

    from dedup_middleware.model import Page
    from dedup_middleware.session.session import Session
    from dedup_middleware.settings.config import Config


class Reading:
    """A page as it was read."""

    def __init__(self, asked: tuple[Any, ...]) -> None:
        self.asked = asked
        self.url = ""
        self.page: Page | None = None
        self.reason = ""
        """Why it could not be read."""
        self._root: _Element | None = None

    def read(self, session: Session, config: Config) -> None:
        """Read the page; `UnjudgeableError` if that cannot be done, or costs too much."""
        url, html, text, paragraphs, title = self.asked
        with suppress(ConfigError):  # what is no URL is a name all the same
            url = as_requested(url)
        self.url = without_secrets(url, redact=config.redact_query)
        if text is not None and paragraphs is None:
            paragraphs = text.split("\n")
        if html is None and paragraphs is None:
            raise ConfigError(f"of {self.url} there is nothing to judge; give its html, text or paragraphs")
        budget = config.budget()
        if html is not None and len(html) > config.max_bytes:
            raise UnjudgeableError(Reason.TOO_LARGE)
        if html is not None:
            self._root = parse(html_to_unicode(None, html)[1] if isinstance(html, bytes) else html)
        if paragraphs is None:
            assert self._root is not None
            self.page = session.read(self.url, (url_identity(url),), self._root, budget)
            return
        features = None if title is None else PageFeatures(one_line(title))
        if self._root is not None:
            features = session.extract(self._root, budget).features
        given = [line for paragraph in paragraphs if (line := " ".join(paragraph.split()))]
        self.page = session.page(self.url, (url_identity(url),), given, features=features, budget=budget)

    def shown(self) -> str:
        """Return all that the page shows, folded."""
        assert self.page is not None
        if self._root is not None:
            return shown_folded(self._root)
        return as_shown(self.page.paragraphs)

    def as_item(self, names: Sequence[str]) -> dict[str, str]:
        """Return what is kept of a page of which no item was made: its text and title, under *names* that are heard."""
        if self.page is None:
            return {}
        text = "\n".join(self.page.paragraphs)
        title = "" if self.page.features is None else self.page.features.title
        return {names[0]: text} if names else {"title": title, "text": text}
