"""Checks pages without Scrapy: for archives, data frames and programs of your own.

It drives a `Deduplication` as the plugin does, and decides nothing.
"""

from __future__ import annotations

import difflib
import logging
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypedDict, cast

from dedup_middleware.common.budget import MAX_MILLISECONDS, UncheckableError, page_budget
from dedup_middleware.common.urls import as_requested, identities_near, url_identity, without_secrets
from dedup_middleware.driver.deduplicator import Deduplication
from dedup_middleware.driver.opening import new_crawl, open_at_once
from dedup_middleware.errors import ConfigError, NothingFoundError, shown
from dedup_middleware.extraction import parse
from dedup_middleware.extraction.decoding import decoded
from dedup_middleware.items.item_values import item_fields
from dedup_middleware.model import Action, Fetched, PageFeatures, Rejection
from dedup_middleware.reasons import Reason, message_of
from dedup_middleware.settings import PREFIX, Config
from dedup_middleware.stores import refusals, store_exists
from dedup_middleware.text.clauses import one_line
from dedup_middleware.visits.visit import Fate, Visit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from os import PathLike

    from lxml.etree import _Element
    from typing_extensions import Required, Self, Unpack

    from dedup_middleware.checks.detector import Examined
    from dedup_middleware.errors import DedupError
    from dedup_middleware.model import Page, StoredPage
    from dedup_middleware.records.file import Record
    from dedup_middleware.visits.page_reader import PageReader

__all__ = ["Deduplicator", "Document", "Options"]

logger = logging.getLogger(__name__)


class Options(TypedDict, total=False):
    """The settings that a program may give, in lower case and without ``DEDUP_``: docs/reference/settings.md."""

    threshold: float
    reworded: str
    scope: str
    expire_after: float | None
    preferred: Sequence[str]
    key: Sequence[str] | Mapping[str, Sequence[str]]
    item_fields: Sequence[str]
    fingerprint: str
    extractor: str
    redact_query: bool
    max_bytes: int


class Content(TypedDict, total=False):
    """The parts of a page beside its HTML, or instead of it."""

    text: str | None
    """Its main text, a paragraph a line."""
    paragraphs: Sequence[str] | None
    """Its main text, in paragraphs."""
    title: str | None
    """Its title, where there is no HTML."""
    encoding: str | None
    """The encoding of HTML as bytes, if HTTP named one."""


class Document(Content, total=False):
    """A page for :meth:`Deduplicator.stream`."""

    url: Required[str]
    html: str | bytes | None
    """As text, or as bytes in the encoding that they name themselves."""
    item: Any
    """What you keep of it: a dict, or any other item that itemadapter supports."""


class Deduplicator:
    """Checks pages against a store, and keeps them in it.

    >>> story = "The old bridge will be closed for nine weeks, the harbour authority said on Monday. Trams turn at the "
    >>> story += "market square, and a ferry carries passengers across the river until May, every quarter of an hour."
    >>> with Deduplicator() as dedup:
    ...     for host in ("a.example", "b.example"):
    ...         found = dedup.add(f"http://{host}/bridge", text=story)
    ...         print(found.verdict, found.original_url)
    new None
    duplicate http://a.example/bridge

    Give the HTML of a page, or its main text (``text=`` or ``paragraphs=``, perhaps with ``title=``), or both: then the
    HTML is only read for its title and context. With ``item=``, a page is a duplicate only if the original's item
    contains what its item contains, as in a crawl; without, the text of a page is its item. Pages may come from any
    host and in any language. The URL, or any other name, identifies a page.

    Use it in one thread at a time. 1 to 6 ms a page, most of it to parse and read HTML.
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

        It may be the store of a crawl. *log* is the path of a JSON Lines file, as ``scrapy dedup log`` reads it:
        :meth:`add` and :meth:`keep` append every verdict that is not ``new``. :class:`ConfigError` for a bad option;
        :class:`StoreError`, with its kinds :class:`StoreLockedError`, :class:`StoreCorruptError` and
        :class:`StoreVersionError`, where the store cannot be used. Pages that take more CPU time than
        *max_milliseconds* are not checked.
        """
        if not isinstance(max_milliseconds, (int, float)) or not max_milliseconds > 0:
            raise ConfigError(f"max_milliseconds = {shown(max_milliseconds)} is not valid", "Use a number above 0.")
        self._milliseconds = max_milliseconds
        self._config = Config.from_settings(_settings(store, log, options), None)
        self._opened = open_at_once(self._config)
        self._deduplication = Deduplication(self._opened, new_crawl(), _Listener())
        self._read: Reading | None = None

    def check(self, url: str, html: str | bytes | None = None, item: Any = None, **content: Unpack[Content]) -> Record:
        """Return the verdict on a page; nothing is stored.

        >>> with Deduplicator() as dedup:
        ...     print(dedup.check("http://a.example/", text="It rained.").reason)
        too_little_text
        """
        _, visit = self._examined(url, html, item, content)
        return _judged(self._deduplication, visit, item)

    def keep(self, url: str, html: str | bytes | None = None, item: Any = None, **content: Unpack[Content]) -> Record:
        """Make a page an original, even if it repeats another one, and return the verdict.

        A page that is ``unchecked`` does not become an original. The page that was checked last is not read again.

        >>> story = "The old bridge will be closed for nine weeks, the harbour authority said on Monday. Trams turn at "
        >>> story += "the market square, and a ferry carries passengers across the river until May, every quarter hour."
        >>> with Deduplicator() as dedup:
        ...     dedup.keep("http://a.example/bridge", text=story).verdict
        ...     print(dedup.keep("http://b.example/bridge", text=story).reason)
        'new'
        kept_on_request
        """
        return self._taken(url, html, item, content, is_kept=True)

    def add(self, url: str, html: str | bytes | None = None, item: Any = None, **content: Unpack[Content]) -> Record:
        """Return the verdict on a page, and make it an original unless it is a duplicate, as a crawl does.

        >>> story = "The old bridge will be closed for nine weeks, the harbour authority said on Monday. Trams turn at "
        >>> story += "the market square, and a ferry carries passengers across the river until May, every quarter hour."
        >>> with Deduplicator() as dedup:
        ...     dedup.add("http://a.example/1", text=story, item={"text": story, "price": "12 EUR"}).is_duplicate
        ...     dedup.add("http://b.example/1", text=story, item={"text": story, "price": "14 EUR"}).is_duplicate
        ...     dedup.add("http://c.example/1", text=story, item={"text": story, "price": "12 EUR"}).is_duplicate
        False
        False
        True
        """
        return self._taken(url, html, item, content)

    def stream(self, pages: Iterable[Document | Sequence[Any]]) -> Iterator[Record]:
        """Yield the verdict on each of *pages*, in their order: :meth:`add` for each.

        A page is a dict with the arguments of :meth:`add`, or ``(url, html)``, or ``(url, html, item)``. Each is read
        after the one before has been checked.

        >>> story = "The old bridge will be closed for nine weeks, the harbour authority said on Monday. Trams turn at "
        >>> story += "the market square, and a ferry carries passengers across the river until May, every quarter hour."
        >>> with Deduplicator() as dedup:
        ...     pages = [{"url": f"http://{host}.example/", "text": story} for host in "ab"]
        ...     [found.verdict for found in dedup.stream(pages)]
        ['new', 'duplicate']
        """
        for page in pages:
            yield self.add(**_arguments_of(page))

    def learn(self, pages: Iterable[Document | Sequence[Any]]) -> None:
        """Let a method that learns, such as ``fingerprint="i-match"``, learn from *pages*, as for :meth:`stream`.

        Call it once for a store, before its first page is checked. Otherwise it learns from the first pages that are
        checked, and calls none of these a duplicate. Other methods, and our own fingerprints, learn nothing.
        """
        if (beside := self._deduplication.index.beside) is None:
            return
        with beside.learning(self._deduplication.fail):
            for page in pages:
                content = _arguments_of(page)
                self._reading(content.pop("url"), content.pop("html", None), content.pop("item", None), content)
        self._read = None

    def close(self) -> None:
        """Close the store and the records. A second call does nothing."""
        self._read = None
        if not self._opened.store.closed:
            self._deduplication.close()
            self._opened.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- inside

    def _taken(self, url: str, html: Any, item: Any, content: Mapping[str, Any], *, is_kept: bool = False) -> Record:
        """Take a page all the way, with one item: a program has no pipelines and no feeds; return its record.

        *item*, where there is one, is compared before it is dropped. If the page *is kept*, it repeats nothing.
        """
        kept, visit = self._examined(url, html, item, content)
        core = self._deduplication
        core.enter(visit)
        if is_kept:
            core.claims.overrule(visit, Rejection(Reason.KEPT_ON_REQUEST))
        decisions = core.process(visit, kept, is_compared=item is not None and not is_kept, may_wait=False)
        decisions += core.end(visit)
        if decisions[-1].fate is Fate.KEEP:
            # The program has it: no feed of a later crawl still has to.
            core.claims.item_left(visit, feeds=None)
        return core.recorder.record(visit)

    def _examined(self, url: str, html: Any, item: Any, content: Mapping[str, Any]) -> tuple[Any, Visit]:
        """Return what is kept of a page, its item or else its text, and its visit, checked: that of an item with a key.

        A page whose item has a key is not read.
        """
        if self._config.key and item is not None:
            self._check_item(item)
            shown = without_secrets(PageContent.of(url, html, content).requested_url, redact=self._config.redact_query)
            page = Visit.unchecked(shown, "", Action.DROP)
            if (visit := self._deduplication.verdicts.check_keyed(page, item)) is not None:
                return item, visit
        read = self._reading(url, html, item, content)
        text = {} if read.page is None else as_item(read.page, self._config.item_fields)
        return text if item is None else item, read.checked(self._deduplication, Action.DROP)

    def _reading(self, url: str, html: Any, item: Any, content: Mapping[str, Any]) -> Reading:
        """Return the page, read; the last one as it was. :class:`ConfigError` for a wrong argument."""
        self._check_item(item)
        given = PageContent.of(url, html, content)
        if self._read is None or self._read.content != given:
            self._read = None
            self._read = Reading(given, self._deduplication.reader, self._config, self._milliseconds)
        return self._read

    def _check_item(self, item: Any) -> None:
        """Raise :class:`ConfigError` if *item* is of no class of items, and `StoreError` if the store is closed."""
        if item is not None and item_fields(item) is None:
            raise ConfigError(
                f"item = {shown(item)} is not an item", "use a dict, or an attrs, dataclass, pydantic or Scrapy item"
            )
        if self._opened.store.closed:
            raise refusals.closed(self._opened.store.uri)


class _Listener:
    """Logs the events of a program; see `Listener` for its methods."""

    def count(self, name: str, amount: int = 1) -> None:
        pass

    def warn(self, line: str) -> None:
        logger.warning("%s", line)

    def defect(self, error: Exception, where: object) -> None:  # noqa: ARG002 - see Listener
        raise error

    def failed(self, error: DedupError) -> None:
        logger.error("%s From now on every page is unchecked: keep it", error)

    def one_original(self, host: str, original: str, repeats: int, pages: int) -> None:
        logger.warning("%d of %d pages of %s repeat %s", repeats, pages, host, original)

    def one_other_host(self, host: str, other: str, repeats: int, pages: int) -> None:
        line = "%d of %d pages of %s repeat pages of %s, which came first; preferred= names the host to keep"
        logger.warning(line, repeats, pages, host, other)


def _settings(store: str, log: str | PathLike[str] | None, options: Options) -> dict[str, object]:
    """Return the settings that a program has given; :class:`ConfigError` for an unknown one."""
    for name in options:
        if name not in Options.__annotations__:
            near = difflib.get_close_matches(name, Options.__annotations__, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise ConfigError(f"{name} is not an option of Deduplicator{hint}")
    given = {PREFIX + name.upper(): value for name, value in options.items()}
    return {**given, "DEDUP_STORE": store, "DEDUP_LOG": "" if log is None else log}


@dataclass(frozen=True, slots=True)
class PageContent:
    """What a program gives of a page, checked."""

    url: str
    html: str | bytes | None = None
    text: str | None = None
    paragraphs: tuple[str, ...] | None = None
    title: str | None = None
    encoding: str | None = None
    media_type: str = ""
    """Of an archive: the `text_type` of what is in *html*; empty for HTML."""

    @classmethod
    def of(cls, url: object, html: object, content: Mapping[str, object]) -> PageContent:
        """Return the page with these arguments; :class:`ConfigError` for a wrong one."""
        known = ["url", "html", *Content.__annotations__]
        if unknown := content.keys() - set(known):
            raise ConfigError(f"{min(unknown)!r} is not a part of a page", f"use {', '.join([*known, 'item'])}")
        given = {"url": url} | {name: content.get(name) for name in ("text", "title", "encoding")}
        for name, value in given.items():
            if not isinstance(value, str if name == "url" else (str, type(None))):
                raise ConfigError(f"{name} = {shown(value)} must be str")
        if not url:
            raise ConfigError("url = '' is empty", "use the URL of the page, or another name")
        paragraphs = content.get("paragraphs")
        if paragraphs is not None and given["text"] is not None:
            raise ConfigError("text= and paragraphs= are the same text", "give one of them")
        return cls(html=_as_html(html), paragraphs=_as_paragraphs(paragraphs), **given)  # type: ignore[arg-type]

    @property
    def lines(self) -> tuple[str, ...] | None:
        """Its main text, as it was given; ``None`` if the HTML has it."""
        return self.paragraphs if self.text is None else tuple(self.text.split("\n"))

    @property
    def requested_url(self) -> str:
        """The URL as a request has it."""
        with suppress(ConfigError):  # a name that is not a URL
            return as_requested(self.url)
        return self.url

    @property
    def size(self) -> int:
        """The length of the longer of HTML and text."""
        return max(len(self.html or ""), sum(map(len, self.lines or ())))


def _as_html(value: object) -> str | bytes | None:
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    if value is None or isinstance(value, (str, bytes)):
        return value
    raise ConfigError(f"html = {shown(value)} must be str or bytes")


def _as_paragraphs(value: object) -> tuple[str, ...] | None:
    if value is None:
        return None
    if isinstance(value, (str, bytes, dict)):
        raise ConfigError(f"paragraphs = {shown(value)} must be a list of str", "use text= for one str")
    paragraphs = (*cast("Iterable[str]", value),)
    if not all(isinstance(line, str) for line in paragraphs):
        raise ConfigError(f"paragraphs = {shown(paragraphs)} must be a list of str")
    return paragraphs


class Reading:
    """A page as it was read."""

    def __init__(
        self, content: PageContent, reader: PageReader, config: Config, milliseconds: float = MAX_MILLISECONDS
    ) -> None:
        """Read the page with *reader*, within the bounds of *config* and *milliseconds* of CPU time."""
        self.content = content
        self._milliseconds = milliseconds
        url = content.requested_url
        self.url = without_secrets(url, redact=config.redact_query)
        self.page: Page | None = None
        self.reason = ""
        """Why it could not be read."""
        try:
            self.page = self._page((url_identity(url),), reader, config.max_bytes)
        except UncheckableError as error:
            self.reason = error.reason

    def _page(self, identities: tuple[bytes, ...], reader: PageReader, max_bytes: int) -> Page:
        """Return the page; `UncheckableError` if it cannot be read, or costs too much."""
        content, html, paragraphs = self.content, self.content.html, self.content.lines
        if content.size > max_bytes:
            raise UncheckableError(Reason.TOO_LARGE)
        budget, features = page_budget(self._milliseconds), PageFeatures(one_line(content.title or ""))
        root: _Element | None = None
        html = decoded(html, content.encoding) if isinstance(html, bytes) else html
        if html is not None and content.media_type:
            return reader.text(Fetched(self.url, identities, b""), html, content.media_type, budget)
        if html is not None:
            root = parse(html, budget)
            features = reader.extract(root, budget).features if paragraphs is not None else features
        if paragraphs is None:
            if root is None:
                raise UncheckableError(Reason.TOO_LITTLE_TEXT)
            return reader.html(Fetched(self.url, identities, b""), root, budget)
        given = [line for paragraph in paragraphs if (line := " ".join(paragraph.split()))]
        return reader.paragraphs(self.url, identities, given, features=features, root=root, budget=budget)

    def checked(self, deduplication: Deduplication, action: Action) -> Visit:
        """Return the visit of the page with its provisional verdict."""
        if self.page is None:
            return Visit.unchecked(self.url, self.reason, action)
        return deduplication.verdicts.check(self.page, action, page_budget(self._milliseconds))


def as_item(page: Page, names: Sequence[str]) -> dict[str, str]:
    """Return the text and title of a *page* as its item; if DEDUP_ITEM_FIELDS has *names*, its text under the first."""
    text = "\n".join(page.paragraphs)
    title = "" if page.features is None else page.features.title
    return {names[0]: text} if names else {"title": title, "text": text}


def _arguments_of(page: object) -> dict[str, Any]:
    """Return *page* as the arguments of `Deduplicator.add`; :class:`ConfigError` if it cannot be."""
    if isinstance(page, dict) and "url" in page:
        return dict(page)
    if isinstance(page, (tuple, list)) and len(page) in (2, 3):
        return dict(zip(("url", "html", "item"), page, strict=False))
    raise ConfigError(
        f"{shown(page)} is not a page", "use a dict with its 'url' and 'html', (url, html), or (url, html, item)"
    )


def _judged(deduplication: Deduplication, visit: Visit, item: Any) -> Record:
    """Return the record of *visit*, whose verdict is provisional, with its *item*, if there is one."""
    if visit.is_duplicate:
        found = deduplication.check_item(visit, item)
        visit.verdict = replace(found.verdict, candidates=())
        if found.rejection is not None and visit.is_duplicate:
            visit.overrule(found.rejection)
    return deduplication.recorder.record(visit)


def would_be_checked(config: Config, url: str, html: bytes) -> Record:
    """Return the record that the page *html* would have, fetched from *url* now; its items are not checked.

    :class:`StoreError` if the store is not there, or in use.
    """
    with _looking(config) as session:
        reading = Reading(PageContent.of(url, html, {}), session.reader, config)
        return _judged(session, reading.checked(session, Action.DRY_RUN), None)


def examined(config: Config, page: tuple[str, bytes | None], other: tuple[str, bytes | None]) -> Examined:
    """Return how a *page*, its URL and its HTML, compares with the *other* one; without HTML, as it is stored.

    :class:`StoreError` if the store is not there, or in use; :class:`NothingFoundError` if it does not have a page;
    :class:`ConfigError` for HTML that cannot be checked.
    """
    if not store_exists(config.store) and page[1] and other[1]:
        config = replace(config, store="memory:", store_is_default=True)
    with _looking(config) as session:
        index = session.index
        if index.beside is not None:
            raise ConfigError(
                f"DEDUP_FINGERPRINT = {config.fingerprint!r} has scores of its own, which two pages alone do not show. "
                "Use `scrapy dedup compare`, or -s DEDUP_FINGERPRINT=clauses with both pages from files."
            )

        def read(url: str, html: bytes) -> Page:
            reading = Reading(PageContent.of(url, html, {}), session.reader, config)
            if reading.page is None:
                raise ConfigError(f"the HTML of {reading.url} cannot be checked: {message_of(reading.reason)}")
            return reading.page

        def stored(url: str) -> StoredPage:
            found = index.find([url_identity(as_requested(url))])
            if found is None:
                shown = without_secrets(url, redact=config.redact_query)
                near = index.find(identities_near(as_requested(url)))
                what = f"{shown} was not found in the store {without_secrets(config.store, redact=False)}"
                hint = near and f"The nearest URL there is {without_secrets(near.url, redact=config.redact_query)}."
                raise NothingFoundError(what, hint or "")
            return found

        (url, html), (other_url, other_html) = page, other
        if html is None:
            here = index.read_again(stored(url), session.run, session.opened.fingerprint)
        else:
            here = read(url, html)
        there = stored(other_url) if other_html is None else index.atomically(index.claim, read(other_url, other_html))
        return session.detector.examine(here, there)


@contextmanager
def _looking(config: Config) -> Iterator[Deduplication]:
    """Open the store of *config* for a look, which leaves it as it is."""
    if config.store != "memory:" and not store_exists(config.store):
        raise refusals.absent(config.store)
    opened = open_at_once(replace(config, log=None), looks=True)
    try:
        with refusals.translated(opened.store.uri, "read", refusals.of_value):
            yield Deduplication(opened, new_crawl(), _Listener())
    finally:
        opened.store.close()
