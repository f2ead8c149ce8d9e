"""A spider with page objects, in a module of its own because importing web-poet takes as long as a small crawl."""

from __future__ import annotations

from sample_spiders import Steps
from web_poet import HttpResponse, WebPage, field


class StoryPage(WebPage):
    @field
    def title(self) -> str | None:
        return self.css("title::text").get()

    @field
    def url(self) -> str:
        return str(self.response.url)


class Pages(Steps):
    """The items come from page objects."""

    name = "pages"

    async def parse(self, response, page: StoryPage):
        yield await page.to_item()

    def parse_bytes(self, response, http: HttpResponse):
        yield {"url": str(http.url), "bytes": len(http.body)}
