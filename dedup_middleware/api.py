"""The same verdicts without Scrapy: for archives, frames and programs of your own.

It drives a `Deduplication` as the plugin does, and decides nothing.
"""

from __future__ import annotations

import difflib
import logging
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, TypedDict, cast

from dedup_middleware.budget import MAX_MILLISECONDS, Budget, UncheckableError, page_budget
from dedup_middleware.checks.items import is_item
from dedup_middleware.errors import ConfigError, shown
from dedup_middleware.extraction import parse
from dedup_middleware.extraction.blocks import PageText
from dedup_middleware.extraction.decoding import decoded
from dedup_middleware.model import Action, Fetched, PageFeatures, Rejection, VerdictKind, Witness
from dedup_middleware.opening import deduplication_of, open_at_once, open_to_look, run_id
from dedup_middleware.reasons import Reason
from dedup_middleware.settings import PREFIX, Config
from dedup_middleware.stores import refusals
from dedup_middleware.text.clauses import one_line
from dedup_middleware.urls import as_requested, url_identity, without_secrets
from dedup_middleware.visit import Visit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from os import PathLike

    from lxml.etree import _Element
    from typing_extensions import Required, Self, Unpack

    from dedup_middleware.deduplicator import Deduplication
    from dedup_middleware.errors import DedupError
    from dedup_middleware.model import Page, StoredPage
    from dedup_middleware.records.records import Record

__all__ = ["Deduplicator", "Document", "Options", "Result"]

logger = logging.getLogger(__name__)


class Options(TypedDict, total=False):
    """The settings that a program may give, as docs/settings.md has them, without ``DEDUP_`` and in lower case."""

    threshold: float
    scope: str
    expire_after: float | None
    preferred: Sequence[str]
    item_fields: Sequence[str]
    fingerprint: str
    extractor: str
    redact_query: bool
    max_bytes: int


class Content(TypedDict, total=False):
    """What there is of a page beside its HTML, or instead of it."""

    text: str | None
    """Its main text, a paragraph a line, where you have it already."""
    paragraphs: Sequence[str] | None
    """The same, in paragraphs."""
    title: str | None
    """What it is called, where there is no HTML to tell."""
    encoding: str | None
    """That of HTML as bytes, if HTTP named one."""


class Document(Content, total=False):
    """A page for :meth:`Deduplicator.stream`."""

    url: Required[str]
    html: str | bytes | None
    """As text, or as bytes in the encoding that they name themselves."""
    item: Any
    """What you keep of it: a dict, or whatever itemadapter knows."""


@dataclass(frozen=True, slots=True)
class Result:
    """What was decided about a page, in plain values; those of a record in the log."""

    url: str
    verdict: str
    """``new``, ``same``, ``duplicate``, ``related`` or ``unchecked``."""
    original_url: str | None
    """The page that it repeats, wholly or in part."""
    score: float | None
    """Share of its non-boilerplate text that the original holds, 0-1."""
    reason: str
    """Why it is unchecked, or why a match did not make it a duplicate; else empty."""
    witness: str | None
    """Who kept a page whose text its original holds: ``page`` or ``item``; of a duplicate, who agreed."""
    difference: list[str]
    """What that witness says and the original does not, at most five pieces."""
    evidence: list[str]
    """Repeated sentences, at most five, as this page wrote them."""

    @property
    def is_duplicate(self) -> bool:
        """Whether the page only repeats another one; all others are to be kept."""
        return self.verdict == VerdictKind.DUPLICATE.value


class Deduplicator:
    """Checks pages against a store, and keeps them in it.

    ::

        with Deduplicator("leveldb:store") as dedup:
            for url, html in pages:
                if not dedup.add(url, html).is_duplicate:
                    keep(url, html)

    Of a page there is its HTML, or its main text (``text=``, ``paragraphs=``, perhaps with ``title=``), or both: then
    the HTML only tells what it is called and what stands around the text. With ``item=``, a page is a duplicate only if
    its original's items contain what its item does, as in a crawl; without, what you keep of a page is taken to be its
    text. The next page may come from any host and in any language; the URL, or whatever name it has, is what makes a
    page itself.

    One thread at a time. 1 to 6 ms a page, most of it for parsing and reading HTML; ``tests/benchmarks/door.py`` tells.
    """

    def __init__(
        self,
        store: str = "memory:",
        *,
        log: str | PathLike[str] | None = None,
        max_milliseconds: float = MAX_MILLISECONDS,
        **options: Unpack[Options],
    ) -> None:
        """Open *store*, ``leveldb:PATH``, ``rocksdb:PATH``, ``sqlite:PATH`` or ``memory:``, or create it.

        A crawl may have filled it.

        Pages that take more CPU time than *max_milliseconds* are not checked.

        *log* is the path of a JSON Lines file to which every verdict of :meth:`add` and :meth:`keep` is appended that
        is not ``new``, as ``scrapy dedup log`` reads it. :class:`ConfigError` for a bad option; :class:`StoreError`,
        with its kinds :class:`StoreLockedError`, :class:`StoreCorruptError` and :class:`StoreVersionError`, where the
        store cannot be used.
        """
        self.released: list[str] = []
        """URLs of pages that were called duplicates, until later ones showed that they only fill in a template.

        They are to be kept after all: :meth:`keep` them. Grows while pages are added.
        """
        self._milliseconds = max_milliseconds
        self._config = Config.from_settings(_settings(store, log, options), None)
        self._opened = open_at_once(self._config)
        self._deduplication = deduplication_of(self._opened, run_id(None), _Listener(self))
        self._read: Reading | None = None

    def check(self, url: str, html: str | bytes | None = None, item: Any = None, **content: Unpack[Content]) -> Result:
        """Return what a page is; nothing is stored."""
        read = self._reading(url, html, item, content)
        state = self._examined(read)
        if state.is_duplicate and item is not None:
            self._deduplication.check_item(state, item, read.shows)
            if state.is_duplicate and state.objection is not None:
                state.overrule(state.objection, Witness.ITEM)
        return self._result(state)

    def keep(self, url: str, html: str | bytes | None = None, item: Any = None, **content: Unpack[Content]) -> Result:
        """Let a page own its text from now on, whatever it repeats, and return what it is.

        One that cannot be checked, ``unchecked``, owns nothing. The page that was checked last is not read again.
        """
        read = self._reading(url, html, item, content)
        state = self._examined(read)
        self._deduplication.enter(state)
        self._deduplication.keep_page(state, Rejection(Reason.KEPT))
        end_pass(self._deduplication, state, self._kept(read, item))
        self.released[:] = [other for other in self.released if other != read.url]
        return self._result(state)

    def add(self, url: str, html: str | bytes | None = None, item: Any = None, **content: Unpack[Content]) -> Result:
        """Return what a page is, and keep it unless it is a duplicate: what a crawl does with every page."""
        read = self._reading(url, html, item, content)
        state = self._examined(read)
        pass_through(self._deduplication, state, self._kept(read, item), item, read.shows)
        return self._result(state)

    def stream(self, pages: Iterable[Document | Sequence[Any]]) -> Iterator[Result]:
        """Yield what each of *pages* is, in their order: :meth:`add` for each.

        A page is a dict with the arguments of :meth:`add`, or ``(url, html)``, or ``(url, html, item)``. None is read
        before the one before has been checked.
        """
        for page in pages:
            yield self.add(**arguments_of(page))

    def learn(self, pages: Iterable[Document | Sequence[Any]]) -> None:
        """Let a published method that learns, ``fingerprint="i-match"`` for one, learn from *pages*, as for `stream`.

        Once in the life of a store, before its first page is checked: else it learns from the first pages that are, and
        calls none of these a duplicate. Other methods, and our own fingerprints, learn nothing.
        """
        if (published := self._deduplication.reader.published) is None:
            return
        with published.learning():
            for page in pages:
                content = arguments_of(page)
                self._reading(content.pop("url"), content.pop("html", None), content.pop("item", None), content)
        self._read = None

    def close(self) -> None:
        """Close the store and the log. A second call does nothing."""
        self._read = None
        if not self._opened.store.closed:
            self._deduplication.close()
            self._opened.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def note_released(self, pages: Sequence[StoredPage]) -> None:
        """Note pages that have turned out not to be duplicates; the listener calls it."""
        self._deduplication.recorder.released(pages)
        self.released += dict.fromkeys(page.url for page in pages)

    # --- inside

    def _reading(self, url: str, html: str | bytes | None, item: Any, content: Mapping[str, Any]) -> Reading:
        """Return the page as it is read; the one that was read last as it was. :class:`ConfigError` if it is none."""
        check_item(item)
        if self._opened.store.closed:
            raise refusals.closed(self._opened.store.uri)
        asked = PageContent.of(url, html, content)
        if self._read is None or self._read.content != asked:
            self._read = None
            read = Reading(asked)
            try:
                read.read(self._deduplication, self._config, page_budget(self._milliseconds))
            except UncheckableError as error:
                read.reason = error.reason
            self._read = read
        return self._read

    def _examined(self, read: Reading) -> Visit:
        config = self._config
        if read.page is None:
            return Visit.unchecked(read.url, read.reason, Action.DROP, config.threshold)
        return self._deduplication.check(read.page, Action.DROP, config.threshold, page_budget(self._milliseconds))

    def _kept(self, read: Reading, item: Any) -> Any:
        """Return what is kept of a page: the item, or else its text."""
        if item is not None:
            return item
        return {} if read.page is None else as_item(read.page, self._config.item_fields)

    def _result(self, state: Visit) -> Result:
        record = self._deduplication.recorder.record(state)
        names = (field.name for field in fields(Result))
        return Result(**{name: getattr(record, name) for name in names})


class _Listener:
    """Logs what a person should know; see `Listener` for its methods."""

    def __init__(self, dedup: Deduplicator) -> None:
        self._dedup = dedup

    def count(self, name: str, amount: int = 1) -> None:
        pass

    def failed(self, error: DedupError) -> None:
        logger.error("%s; from now on every page is unchecked, and to be kept", error)

    def one_original(self, host: str, original: str, repeats: int, pages: int) -> None:
        logger.warning("%d of %d pages of %s repeat %s", repeats, pages, host, original)

    def one_other_host(self, host: str, other: str, repeats: int, pages: int) -> None:
        line = "%d of %d pages of %s repeat pages of %s, which came first; preferred= names the host to keep"
        logger.warning(line, repeats, pages, host, other)

    def field_that_keeps(self, field: str, kept: int, pages: int) -> None:
        logger.warning("of %d pages that repeat another one, %d were kept for another %r alone", pages, kept, field)

    def released(self, pages: Sequence[StoredPage]) -> None:
        self._dedup.note_released(pages)

    def not_keepable(self, kind: type, left_out: Mapping[str, type]) -> None:
        pass

    def tag_refused(self, kind: type) -> None:
        pass


def _settings(store: str, log: str | PathLike[str] | None, options: Options) -> dict[str, object]:
    """Return the settings that a program has given; :class:`ConfigError` for one that there is not."""
    for name in options:
        if name not in Options.__annotations__:
            near = difflib.get_close_matches(name, Options.__annotations__, n=1)
            raise ConfigError(f"{name} is no option of Deduplicator" + (f"; did you mean {near[0]}?" if near else ""))
    given = {PREFIX + name.upper(): value for name, value in options.items()}
    return {**given, "DEDUP_STORE": store, "DEDUP_LOG": "" if log is None else log}


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

    def read(self, session: Deduplication, config: Config, budget: Budget) -> None:
        """Read the page; `UncheckableError` if that cannot be done, or costs too much."""
        content, url = self.content, self.content.url
        with suppress(ConfigError):  # what is no URL is a name all the same
            url = as_requested(url)
        self.url = without_secrets(url, redact=config.redact_query)
        html, paragraphs = content.html, content.paragraphs
        if content.text is not None:
            paragraphs = tuple(content.text.split("\n"))
        if html is None and paragraphs is None:
            raise UncheckableError(Reason.NOT_TEXT)
        if max(len(html or ""), sum(map(len, paragraphs or ()))) > config.max_bytes:
            raise UncheckableError(Reason.TOO_LARGE)
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

    *kept* is what the page is known to have kept if it becomes an original. *item*, where there is one, is
    compared before it is dropped, and *shows* returns whether its page contains words.
    """
    deduplication.enter(visit)
    if visit.is_duplicate and item is not None:
        deduplication.check_item(visit, item, shows)
        if visit.is_duplicate and visit.objection is not None:
            deduplication.keep_page(visit, visit.objection, Witness.ITEM)
    end_pass(deduplication, visit, kept)


def end_pass(deduplication: Deduplication, visit: Visit, kept: Any) -> None:
    """Take a page that has entered to its end, with the item *kept*."""
    if visit.is_duplicate and deduplication.drop(visit, kept):
        deduplication.count_drop(visit)
    else:
        deduplication.keep_item(visit, kept)
        # The program has it: no feed of a later crawl still has to.
        deduplication.item_left(visit, feeds=None)
        deduplication.end_callback(visit, several=False)
    deduplication.finish(visit)


def would_be_checked(config: Config, url: str, html: bytes) -> Record:
    """Return the record that the page *html* would have, fetched from *url* now; its items are not asked.

    :class:`StoreError` if the store is not there, or in use. 0.1 s, and what the store takes to be opened.
    """
    opened = open_to_look(replace(config, log=None))
    try:
        session = deduplication_of(opened, run_id(None), _Nobody())
        reading = Reading(PageContent.of(url, html, {}))
        try:
            reading.read(session, config, page_budget())
        except UncheckableError as error:
            state = Visit.unchecked(reading.url, error.reason, Action.DRY_RUN, config.threshold)
        else:
            assert reading.page is not None
            state = session.check(reading.page, Action.DRY_RUN, config.threshold, page_budget())
        return session.recorder.record(state)
    finally:
        opened.store.close()


class _Nobody:
    """A `Listener` that is told and does nothing."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_args, **_named: None
