"""Pages that are checked in the order of a crawl, without one."""

from __future__ import annotations

from dedup_middleware import Deduplicator


class Pages(dict):
    """Pages by URL, which are checked without a crawl."""

    def add(self, path, html, host=0):
        url = f"http://host{host}.example{path}"
        self[url] = html
        return url

    def checked(self, urls, items=None, **options):
        """Return the verdict on each of *urls*, in this order; *items* are what a callback would make of them."""
        with Deduplicator(**options) as dedup:
            return {url: dedup.add(url, self[url], item=(items or {}).get(url)) for url in urls}

    def kept(self, urls, items=None, **options):
        return [url for url, verdict in self.checked(urls, items, **options).items() if not verdict.is_duplicate]

    def released(self, urls):
        """Return those of *urls* that are released in the end, though they were duplicates at first."""
        with Deduplicator() as dedup:
            for url in urls:
                dedup.add(url, self[url])
            return dedup.released
