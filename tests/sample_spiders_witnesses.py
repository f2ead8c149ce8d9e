"""A spider whose callbacks give items of many kinds, by what these say."""

from __future__ import annotations

import json

from sample_spiders import Steps


def text_of(response):
    return " ".join(response.css("p::text").getall())


class Witnesses(Steps):
    name = "witnesses"

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.seen = set()

    def parse_first_paragraph(self, response):
        yield {"url": response.url, "text": response.css("p::text").get()}

    def parse_article_text(self, response):
        yield {"url": response.url, "text": " ".join(response.css("article p::text").getall())}

    def parse_price(self, response):
        yield {"url": response.url, "price": response.css("span::text").re_first(r"[\d.]+"), "uid": id(response)}

    def parse_text_and_more(self, response, more):
        yield {"url": response.url, "text": text_of(response), "more": more}

    def parse_fields(self, response, **fields):
        yield {"url": response.url, **fields}

    def parse_data(self, response):
        yield {"url": response.url, **json.loads(response.css("script::text").get())}

    def parse_filename(self, response):
        yield {"url": response.url, "filename": response.url.rpartition("/")[2].partition(".")[0]}

    def finish_joined_item(self, response, item):
        yield {**item, "text": [*item["text"], *response.css("p::text").getall()]}

    def parse_sku(self, response):
        yield {"url": response.url, "sku": response.css("script::text").re_first("T-[0-9]")}

    def parse_numbered(self, response, number):
        yield {"url": response.url, "number": number, "meta": sorted(response.meta)}
