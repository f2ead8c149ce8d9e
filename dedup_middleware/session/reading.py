"""A page as a program gives it -> a page as it is judged."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, cast

from dedup_middleware.budget import UnjudgeableError
from dedup_middleware.checks.item_values import is_item
from dedup_middleware.errors import ConfigError
from dedup_middleware.extraction import parse
from dedup_middleware.extraction.charsets import decoded
from dedup_middleware.extraction.shown import PageText
from dedup_middleware.features import PageFeatures
from dedup_middleware.identity import url_identity
from dedup_middleware.model import Action, Fetched, Witness
from dedup_middleware.reasons import Reason
from dedup_middleware.session.opening import deduplication_of, open_to_look
from dedup_middleware.session.runs import run_id
from dedup_middleware.settings.kinds import shown
from dedup_middleware.text.clauses import one_line
from dedup_middleware.urls import as_requested, without_secrets
from dedup_middleware.visit import Visit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from lxml.etree import _Element

    from dedup_middleware.deduplicator import Deduplication
    from dedup_middleware.inspection.records import Record
    from dedup_middleware.model import Page
    from dedup_middleware.settings.config import Config


# Of a page as a tuple.
_LENGTHS = (2, 3)


@dataclass(frozen=True, slots=True)
class PageContent:
    """What a program gives of a page, checked."""

    url: str
    html: str | bytes | None = None
    text: str | None = None
    paragraphs: tuple[str, ...] | None = None
    title: str | None = None
    encoding: str | None = None

    @classmethod
    def of(  # noqa: C901 - a check for each argument
        cls, url: object, html: object, content: Mapping[str, object]
    ) -> PageContent:
        """Return what the arguments say; :class:`ConfigError` for what is no page."""
        known = [field.name for field in fields(cls)]
        if unknown := content.keys() - set(known):
            raise ConfigError(f"a page has no {min(unknown)!r}; it has {', '.join([*known, 'item'])}")
        given = {name: content.get(name) for name in ("text", "title", "encoding")}
        for name, value in {"url": url, **given}.items():
            if not isinstance(value, str) and (value is not None or name == "url"):
                raise ConfigError(f"{name} = {shown(value)} is no text; use a str")
        if not url:
            raise ConfigError("url = '' names no page; use its URL, or a name of its own")
        if isinstance(html, (bytearray, memoryview)):
            html = bytes(html)
        if not isinstance(html, (str, bytes, type(None))):
            raise ConfigError(f"html = {shown(html)} is no page; use a str, or bytes")
        paragraphs = content.get("paragraphs")
        if isinstance(paragraphs, (str, bytes, dict)):
            raise ConfigError(f"paragraphs = {shown(paragraphs)} is no list of texts; one text is text=")
        if paragraphs is not None:
            if given["text"] is not None:
                raise ConfigError("text= and paragraphs= are the same text; give one of them")
            paragraphs = (*cast("Iterable[object]", paragraphs),)
            if not all(isinstance(line, str) for line in paragraphs):
                raise ConfigError(f"paragraphs = {shown(paragraphs)} is no list of texts; use a list of str")
        return cls(url, html, paragraphs=paragraphs, **given)  # type: ignore[arg-type]


class Reading:
    """A page as it was read."""

    def __init__(self, content: PageContent) -> None:
        self.content = content
        self.url = ""
        self.page: Page | None = None
        self.reason = ""
        """Why it could not be read."""
        self._root: _Element | None = None

    def read(self, session: Deduplication, config: Config) -> None:
        """Read the page; `UnjudgeableError` if that cannot be done, or costs too much."""
        content, url = self.content, self.content.url
        with suppress(ConfigError):  # what is no URL is a name all the same
            url = as_requested(url)
        self.url = without_secrets(url, redact=config.redact_query)
        html, paragraphs = content.html, content.paragraphs
        if content.text is not None:
            paragraphs = tuple(content.text.split("\n"))
        if html is None and paragraphs is None:
            raise UnjudgeableError(Reason.NOT_TEXT)
        if max(len(html or ""), sum(map(len, paragraphs or ()))) > config.max_bytes:
            raise UnjudgeableError(Reason.TOO_LARGE)
        budget = config.budget()
        if html is not None:
            self._root = parse(decoded(html, content.encoding) if isinstance(html, bytes) else html)
        if paragraphs is None:
            assert self._root is not None
            self.page = session.reader.html(Fetched(self.url, (url_identity(url),), b""), self._root, budget)
            return
        features = PageFeatures(one_line(content.title or ""))
        if self._root is not None:
            features = session.reader.extract(self._root, budget).features
        given = [line for paragraph in paragraphs if (line := " ".join(paragraph.split()))]
        self.page = session.reader.paragraphs(
            self.url, (url_identity(url),), given, features=features, root=self._root, budget=budget
        )

    def shows(self, words: str) -> bool:
        """Return whether the page contains *words*, separated by spaces."""
        assert self.page is not None
        return PageText(self._root, self.page.paragraphs).shows(words)


def as_item(page: Page, names: Sequence[str]) -> dict[str, str]:
    """Return what is kept of a *page* of which no item was made: its text and title, under *names* that are heard."""
    text = "\n".join(page.paragraphs)
    title = "" if page.features is None else page.features.title
    return {names[0]: text} if names else {"title": title, "text": text}


def check_item(item: Any) -> None:
    """Raise :class:`ConfigError` for what is no item: nothing would be heard of it."""
    if item is not None and not is_item(item):
        raise ConfigError(
            f"item = {shown(item)} is no item; use a dict, or an attrs, dataclass, pydantic or Scrapy item"
        )


def arguments_of(page: object) -> dict[str, Any]:
    """Return *page* as the arguments of `Deduplicator.add`; :class:`ConfigError` if it is none."""
    if isinstance(page, dict) and "url" in page:
        return dict(page)
    if isinstance(page, (tuple, list)) and len(page) in _LENGTHS:
        return dict(zip(("url", "html", "item"), page, strict=False))
    raise ConfigError(
        f"{shown(page)} is no page: use a dict with its 'url' and 'html', (url, html), or (url, html, item)"
    )


def pass_through(
    deduplication: Deduplication, visit: Visit, kept: Any, item: Any = None, shows: Callable[[str], bool] = bool
) -> None:
    """Take the page of *visit*, with one item, all the way, for programs, which have no pipelines and no feeds.

    *kept* is what the page is known to have delivered if it becomes an original. *item*, where there is one, is
    compared before it is dropped, and *shows* returns whether its page contains words.
    """
    deduplication.enter(visit)
    if visit.is_duplicate and item is not None:
        deduplication.check_item(visit, item, shows)
        if visit.is_duplicate and visit.objection is not None:
            deduplication.keep(visit, visit.objection, Witness.ITEM)
    end_pass(deduplication, visit, kept)


def end_pass(deduplication: Deduplication, visit: Visit, kept: Any) -> None:
    """Take a page that has entered to its end, with the item *kept*."""
    if visit.is_duplicate and deduplication.drop(visit, kept):
        deduplication.count_drop(visit)
    else:
        deduplication.deliver(visit, kept)
        # The program has it: no feed of a later crawl still has to.
        deduplication.item_left(visit, feeds=None)
        deduplication.end_callback(visit, several=False)
    deduplication.finish(visit)


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
