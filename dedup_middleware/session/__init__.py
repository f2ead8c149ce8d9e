"""What a crawl and a program have in common: opened, each page from verdict to record, closed.

Law of this floor: it knows what happens to a page and in which order, and nothing of Scrapy.
"""
