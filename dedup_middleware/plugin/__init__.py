"""Connects the core with Scrapy: the add-on and its components. Only `plugin` and `cli` import Scrapy or Twisted."""
