"""Tests which hosts are one site."""

import gc
import random

import pytest
import tldextract

from dedup_middleware.common import sites
from dedup_middleware.common.sites import are_one_site, site_of


def registrable_domain(host, extract):
    """Return the site of *host* by what tldextract *extract*s."""
    found = extract(host)
    if found.suffix and found.domain:
        return f"{found.domain}.{found.suffix}"
    labels = host.split(".")
    return host if labels[-1].isdigit() else ".".join(labels[-2:])


def hosts_under(rule, draw):
    """Return hosts that a *rule* of the public suffix list matches, and some beside it."""
    name = rule.removeprefix("!").replace("*", draw.choice(("www", "x", "*")))
    ascii_only = name.encode("idna").decode() if name.isprintable() and "*" not in name else name
    before = (draw.choice(("a", "www", "com", "xn--p1ai", "xn--bad--", "1")) for _ in range(3))
    return [name, f"{next(before)}.{name}", f"{next(before)}.{next(before)}.{ascii_only}", name.partition(".")[2] + "."]


def test_a_site_is_a_registrable_domain():
    assert site_of("news.bbc.co.uk") == "bbc.co.uk"
    assert site_of("ann.github.io") == "ann.github.io"
    assert site_of("a.b.ck") == "a.b.ck"
    assert site_of("a.www.ck") == "www.ck"
    assert site_of("127.0.0.1") == "127.0.0.1"
    assert site_of("2001:db8::1") == "2001:db8::1"


@pytest.mark.skipif(not hasattr(tldextract.tldextract, "Trie"), reason="an older one reads nested wildcards otherwise")
def test_a_site_is_what_tldextract_finds():
    draw = random.Random(1)
    extract = tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None, include_psl_private_domains=True)
    hosts = [host for rule in sorted(extract.tlds) for host in hosts_under(rule, draw)]
    assert [host for host in hosts if site_of(host) != registrable_domain(host, extract)] == []


def test_a_release_of_tldextract_with_its_list_elsewhere(monkeypatch):
    listed = sorted(sites._listed())
    monkeypatch.setattr(sites, "_SNAPSHOT", "moved")
    assert sorted(sites._listed()) == listed


def test_the_list_of_suffixes_has_no_containers():
    site_of.cache_clear()
    sites._public_suffixes.cache_clear()
    gc.collect()
    before = len(gc.get_objects())
    assert not are_one_site(("http://a.example.co.uk", "http://b.example.org"))
    gc.collect()
    assert len(gc.get_objects()) - before < 100
