"""A local shop whose products have keys: lists of cards that overlap, pages with session ids, and an API."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from local_site import Answer

if TYPE_CHECKING:
    from local_site import Site

VARIANTS = ("red", "green", "blue")
#: Cards of a list, and how many of them are also on the next one; rows of a response of the API.
CARDS, SHARED, ROWS = 20, 8, 30
TEXT = "A lamp of brushed steel that turns by itself to where you read, with a cord of two metres and a switch of oak. "


def serve(site: Site, products: dict[int, int], session: str) -> str:
    """Serve a shop with *products*, each with its price, and URLs with this *session*; return the URL where it begins.

    Each product has a page with its variants, which are in the API, too; cards show the first variant.
    """
    keys = [(n, colour) for n in products for colour in VARIANTS]
    variants = [(f"{n}-{colour}", f"Lamp {n} {colour}", f"{products[n]}.90") for n, colour in keys]
    cards = variants[:: len(VARIANTS)]
    starts, rest = range(0, len(cards), CARDS - SHARED), len(cards)
    for place, start in enumerate(starts):
        at = [f"/p/{key.split('-')[0]}?session={session}{place}" for key, _, _ in cards]
        shown = [
            f'<li data-id="{key}"><a href="{url}">{name}</a> <b>{price}</b></li>'
            for url, (key, name, price) in zip(at, cards, strict=True)
        ]
        links = [f'<a class="list" href="/list/{place + 1}">more</a>'] if start + CARDS - SHARED < rest else []
        links += [f'<a class="api" href="/api/{n}">rows</a>' for n in range(0, len(variants), ROWS) if not place]
        listed = "".join(shown[start : start + CARDS] + links)
        site.add(f"/list/{place}", f"<title>Lamps</title><ul>{listed}</ul>")
    for n in products:
        of_page = [row for row in variants if row[0].startswith(f"{n}-")]
        rows = "".join(f'<tr data-id="{key}"><td>{name} <b>{price}</b></tr>' for key, name, price in of_page)
        site.add(f"/p/{n}", f"<title>Lamp {n}</title><h1>Lamp {n}</h1><p>{TEXT * 3}</p><table>{rows}</table>")
    for start in range(0, len(variants), ROWS):
        rows = [dict(zip(("product_id", "name", "price"), row, strict=True)) for row in variants[start : start + ROWS]]
        site.add(f"/api/{start}", Answer(json.dumps({"rows": rows}), headers={"Content-Type": "application/json"}))
    return site.url("/list/0")
