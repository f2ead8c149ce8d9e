"""A key names a thing: an item is judged by it, wherever it came from."""

from __future__ import annotations

import json

import pytest
from local_site import Answer

KEY = {"DEDUP_KEY": ["id"]}


def rows(site, path, *items, **more):
    """Serve *items* as rows of a JSON response at *path*, and return its URL."""
    body = json.dumps({"rows": items, **more})
    return site.add(path, Answer(body, headers={"Content-Type": "application/json"}))


def ids(items):
    return sorted((item["id"], item["name"]) for item in items)


def test_the_same_values_are_dropped_wherever_they_come_from(site, crawl):
    lamp, kettle = {"id": 1, "name": "Lamp"}, {"id": 2, "name": "Kettle"}
    one = rows(site, "/one", lamp, lamp, kettle)
    two = rows(site, "/two", {**kettle, "fetched_at": "2026-11-28T15:00:00"}, {"id": 3, "name": "Lamp"})
    outcome = crawl("sample_spiders_keys.Rows", urls=f"{one},{two}", settings=KEY, folder="a")
    assert ids(outcome.items) == [(1, "Lamp"), (2, "Kettle"), (3, "Lamp")]
    assert ids(outcome.dropped) == [(1, "Lamp"), (2, "Kettle")]
    assert f"Dropped: {two} repeats {one} (score 1.00)" in outcome.drop_lines[-1]
    assert [(r["key"], r["url"], r["original_url"]) for r in outcome.records if r["verdict"] == "duplicate"] == [
        ("1", one, one),
        ("2", two, one),
    ]
    assert outcome.problems == []
    again = crawl("sample_spiders_keys.Rows", urls=f"{one},{two}", settings=KEY, folder="a", afresh=True)
    assert ids(again.items) == [(1, "Lamp"), (2, "Kettle"), (3, "Lamp")]
    assert {r["key"]: r["verdict"] for r in again.records if r["items_kept"]} == dict.fromkeys("123", "unchanged")
    assert len(again.dropped) == 2
    assert again.problems == []
