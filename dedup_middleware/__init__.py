"""Scrapy plugin that drops pages whose text is already in the store, follows their links last, and shows why."""

from dedup_middleware.addon import Addon
from dedup_middleware.extraction import extract_paragraphs

__all__ = ["Addon", "extract_paragraphs"]
