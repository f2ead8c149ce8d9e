"""Derives the site of a host: its registrable domain, by the public suffix list that tldextract brings.

The list is read when two hosts are compared for the first time, as two sets of strings: a tree of it has an object for
each label, which every full garbage collection of a crawl would look at.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from dedup_middleware.common.urls import host_of

if TYPE_CHECKING:
    from collections.abc import Iterable

_SNAPSHOT = ".tld_set_snapshot"
_RULE = re.compile(r"^[.*!]*\w\S*", re.MULTILINE)
# Dots of IDNA, which URLs may have in place of ASCII's.
_DOTS = re.compile("[.\u3002\uff0e\uff61]")


def are_one_site(urls: Iterable[str]) -> bool:
    """Return whether the hosts of *urls* are all on the same site."""
    hosts = set(map(host_of, urls))
    return len(hosts) == 1 or len(set(map(site_of, hosts))) <= 1


@lru_cache(maxsize=1024)
def site_of(host: str) -> str:
    """Return the registrable domain of *host*, as tldextract finds it; an IP address is a site.

    >>> site_of("news.bbc.co.uk")
    'bbc.co.uk'
    """
    if ":" not in host:
        labels = _DOTS.split(host.rstrip(".\u3002\uff0e\uff61"))
        if 0 < (begin := _suffix_begins(labels)) < len(labels) and labels[begin - 1]:
            return ".".join(labels[begin - 1 :])
    labels = host.split(".")
    return host if labels[-1].isdigit() else ".".join(labels[-2:])


def _suffix_begins(labels: list[str]) -> int:
    """Return which of *labels* is the first of the public suffix; their number if they have none."""
    rules, parents = _public_suffixes()
    found, parent = len(labels), ""
    for place in range(len(labels) - 1, -1, -1):
        label = _decoded(labels[place])
        if (name := label + parent) in rules:
            found = place
        elif name not in parents:
            # "*.ck" and, an exception, "!www.ck".
            return found if "*" + parent not in rules else place + ("!" + name in rules)
        parent = "." + name
    return found


def _decoded(label: str) -> str:
    label = label.lower()
    if label.startswith("xn--"):
        import idna  # noqa: PLC0415 - few hosts need its tables

        try:
            return idna.decode(label)
        except (UnicodeError, IndexError):
            pass
    return label


@cache
def _public_suffixes() -> tuple[frozenset[str], frozenset[str]]:
    """Return the rules of the public suffix list, and what is no rule and other rules end in."""
    rules = frozenset(_listed())
    parents = set()
    for rule in rules:
        while (rule := rule.partition(".")[2]) and rule not in rules and rule not in parents:
            parents.add(rule)
    return rules, frozenset(parents)


def _listed() -> list[str]:
    """Return the rules of the list, without an import of tldextract, which takes 70 ms in a program without Scrapy."""
    try:
        spec: Any = find_spec("tldextract")
        return _RULE.findall(spec.loader.get_data(spec.origin.replace("__init__.py", _SNAPSHOT)).decode())
    except (AttributeError, OSError):
        # A release that keeps its list elsewhere.
        import tldextract  # noqa: PLC0415 - see above

        return tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None, include_psl_private_domains=True).tlds
