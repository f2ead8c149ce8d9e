"""What a crawl's project has to say: its folder, its feeds, its settings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.exceptions import NotConfigured
from scrapy.utils.project import inside_project, project_data_dir

from dedup_middleware.settings.config import Config
from dedup_middleware.settings.places import OURS, Place

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


def read_config(settings: BaseSettings, spider: str | None) -> Config:
    """Return :meth:`Config.from_settings` of a crawl of *spider*, or of a command that is told of none."""
    feeds = [str(uri) for uri in settings.getdict("FEEDS")]
    return Config.from_settings(settings, spider, project=project_folder(), feeds=feeds)


def place_of(settings: BaseSettings) -> Place:
    """Return where a crawl or a command with these *settings*, in this working folder, looks."""
    return Place.of(settings, project_folder())


def project_folder() -> Path | None:
    """Return our folder in the data folder of the project that the working folder is in; ``None`` outside of one.

    Scrapy makes the data folder. ``SCRAPY_SETTINGS_MODULE`` alone makes a project for Scrapy, but gives it none.
    """
    try:
        return Path(project_data_dir(), OURS).absolute() if inside_project() else None
    except (NotConfigured, OSError):
        return None
