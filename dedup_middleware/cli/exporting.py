"""Items written as a crawl would write them: by Scrapy's own exporters, or the project's, without a crawl."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.exceptions import UsageError
from scrapy.extensions.feedexport import FileFeedStorage
from scrapy.utils.conf import feed_complete_default_values_from_settings, feed_process_params_from_cli
from scrapy.utils.misc import build_from_crawler, load_object

from dedup_middleware import permissions
from dedup_middleware.errors import ConfigError
from dedup_middleware.plugin.feeds import onto_disk

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scrapy.exporters import BaseItemExporter
    from scrapy.settings import BaseSettings, Settings

_STDOUT = "stdout:"


class Export:
    """A file, or standard output, and the format that items are written in."""

    def __init__(self, settings: BaseSettings, target: str, *, overwrite: bool) -> None:
        """Read *target* as ``scrapy crawl -o`` does: ``FILE``, ``FILE:FORMAT``, ``-:FORMAT``.

        Without *overwrite* a file is added to. :class:`ConfigError` for a format that there is not, or another address.
        """
        here = settings.copy()
        # The project's feeds are those of its crawls.
        here.set("FEEDS", {}, priority="cmdline")
        try:
            ((self._uri, options),) = feed_process_params_from_cli(
                here, [] if overwrite else [target], overwrite_output=[target] if overwrite else None
            ).items()
        except UsageError as error:
            raise ConfigError(str(error)) from error
        self._options = feed_complete_default_values_from_settings(options, here)
        self._settings = here
        if "://" in self._uri and not self._uri.startswith("file://"):
            raise ConfigError(f"-o {target} is no file; use -o FILE, or -o -:FORMAT for standard output")

    @property
    def is_stdout(self) -> bool:
        """Whether it goes to standard output."""
        return self._uri == _STDOUT

    def write(self, items: Iterable[Any]) -> None:
        """Write *items*, and return once they are on the disk; :class:`ConfigError` if they cannot be written.

        Then a file that was added to is as long as before.
        """
        before = None
        try:
            file = self._opened()
            try:
                before = file.tell() if file.seekable() else None
                self._export(items, file)
                file.flush()
                with suppress(io.UnsupportedOperation):  # standard output that somebody has put something else for
                    onto_disk(file.fileno())
            except Exception:
                if before is not None:
                    with suppress(OSError):
                        file.flush()
                        file.truncate(before)
                raise
            finally:
                if not self.is_stdout:
                    file.close()
        except OSError as error:
            if isinstance(error, BrokenPipeError):
                raise
            raise ConfigError(
                f"{self._uri} cannot be written ({error.strerror or error}); nothing was changed in the store"
            ) from error

    def _opened(self) -> BinaryIO:
        if self.is_stdout:
            return sys.stdout.buffer
        storage = FileFeedStorage(self._uri, feed_options=self._options)
        permissions.make_folder(Path(storage.path).parent)
        permissions.make_file(Path(storage.path))
        file = storage.open(Spider("dropped"))
        file.seek(0, os.SEEK_END)
        return cast("BinaryIO", file)

    def _export(self, items: Iterable[Any], file: BinaryIO) -> None:
        exporter = self._exporter(file)
        exporter.start_exporting()
        item = None
        try:
            for item in items:
                exporter.export_item(item)
            exporter.finish_exporting()
        except (TypeError, ValueError) as error:
            raise ConfigError(
                f"an item of class {type(item).__qualname__} cannot be written as {self._options['format']} "
                f"({error}); use another format"
            ) from error

    def _exporter(self, file: BinaryIO) -> BaseItemExporter:
        options = self._options
        kind = load_object(self._settings.getwithbase("FEED_EXPORTERS")[options["format"]])
        exporter: BaseItemExporter = build_from_crawler(
            kind,
            Crawler(Spider, cast("Settings", self._settings)),
            file,
            fields_to_export=options["fields"],
            encoding=options["encoding"],
            indent=options["indent"],
            **options["item_export_kwargs"],
        )
        return exporter
