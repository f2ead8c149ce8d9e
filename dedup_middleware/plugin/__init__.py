"""All that knows Scrapy: the add-on and its components, feeds, requests, commands.

Law of this floor: nothing below imports scrapy or twisted.
"""
