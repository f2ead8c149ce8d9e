"""Requests that are thought to repeat something wait; what they would have found is found all the same."""

from __future__ import annotations

import json
import os
import pickle
import random
from base64 import b64decode
from collections import Counter
from contextlib import closing
from functools import partial

import pytest
from crawling import IN_ORDER, run_job, run_scrapy, store_uri, write_job
from fault_injection import faults
from hypothesis import given
from hypothesis import strategies as st
from local_site import Answer
from prose import article, story

from dedup_middleware.economy.addresses import address_of
from dedup_middleware.economy.economy import Economy, Mode, Visited
from dedup_middleware.economy.rules import Hold
from dedup_middleware.economy.stored import learned_in, restore, save
from dedup_middleware.economy.values import TRAP
from dedup_middleware.economy.waiting import EARLIER, WaitingRoom
from dedup_middleware.records.crawls import read_counts
from dedup_middleware.report.crawls import Crawls
from dedup_middleware.settings import Config
from dedup_middleware.stores import open_store
from dedup_middleware.urls import without_secrets

HOST = "http://news.example"


@pytest.mark.parametrize(
    ("url", "shape", "variables"),
    [
        ("/p/12.html", "/p/*.html", {"1": "12"}),
        ("/doc-7/v2", "/doc-*/v*", {"1": "7", "2": "2"}),
        ("/2024/05/how-the-bridge-was-built/", "/*/*/*/", {"1": "2024", "2": "05", "3": "how-the-bridge-was-built"}),
        ("/p;jsessionid=AB12/x?b=2&a=1", "/p/x", {";jsessionid": "AB12", "b": "2", "a": "1"}),
        ("/f00dcafe12", "/*", {"1": "f00dcafe12"}),
        ("/view.php?id=3&id=4&empty", "/view.php", {"id": "3,4", "empty": ""}),
        ("/about", "/about", {}),
    ],
)
def test_an_address_is_its_shape_and_its_variables(url, shape, variables):
    found = address_of(HOST + url)
    assert found.shape == "news.example" + shape
    assert found.variables == variables


@given(st.text(max_size=200))
def test_any_text_has_an_address_or_none(text):
    address_of(text)
    address_of(HOST + "/" + text)


class Web:
    """An economy, and pages whose text is known by a name; `fetch` is what a crawl does with a request."""

    def __init__(self, mode=Mode.ON):
        self.economy = Economy(mode)
        self.first = {}
        self.held = {}

    def fetch(self, url, text, links=()):
        """Fetch the page with this *text*, if it need not wait; return whether it was fetched."""
        hold = self.economy.hold(url)
        if hold is not None:
            self.held[url] = hold
            return False
        self.visit(url, text, links)
        return True

    def visit(self, url, text, links=(), final_url=None):
        is_new = text is not None and text not in self.first
        original = None if text is None else self.first.setdefault(text, final_url or url)
        return self.economy.visited(Visited((url, final_url or url), original, tuple(links), brings_item=is_new))

    @property
    def rules(self):
        return {rule.name: (rule.support, rule.against) for rule in self.economy.rules.all() if rule.holds}


def test_a_session_id_is_left_out_after_two_texts():
    web = Web()
    for n in (1, 2):
        web.visit(f"{HOST}/a/{n}?sid=first{n}", f"story {n}")
        assert web.fetch(f"{HOST}/a/{n}?sid=other{n}", f"story {n}")
    assert web.rules == {"news.example/a/* without sid": (2, 0)}
    assert not web.fetch(f"{HOST}/a/1?sid=zzzz", "story 1")
    # Covered is only what was fetched.
    assert web.fetch(f"{HOST}/a/3?sid=zzzz", "story 3")


@pytest.mark.parametrize(
    ("view", "original"),
    [
        (HOST + "/a/{}/print", HOST + "/a/{}"),
        ("http://m.news.example/a/{}", HOST + "/a/{}"),
        ("http://mirror.example/doc-{}.html", HOST + "/doc?ref={}"),
        (HOST + "/a/{};jsessionid=0123456789ABCDEF?ref=front", HOST + "/a/{}"),
    ],
)
def test_a_view_of_a_page_is_held_once_the_page_was_fetched(view, original):
    web = Web()
    for n in range(40, 60):
        web.visit(original.format(n), n)
    for n in range(40, 44):
        web.visit(view.format(n), n)
    held = [n for n in range(44, 60) if not web.fetch(view.format(n), n)]
    assert len(held) >= 10
    assert web.fetch(view.format(99), 99)


def test_one_notice_under_many_ids_is_no_rule():
    web = Web()
    for n in range(30):
        web.visit(f"{HOST}/item?id={n}&lang=en", "this article was removed")
    assert web.rules == {}
    assert all(web.economy.rules.hold(address_of(f"{HOST}/item?id={n}&lang=en")) is None for n in range(60))


def test_a_login_that_has_expired_proves_no_key():
    web = Web()
    for n in range(4):
        web.visit(f"{HOST}/s/{n}", n)
        web.visit(f"{HOST}/s/{n}?print=yes", n)
    for n in range(10, 20):
        web.visit(f"{HOST}/s/{n}", "please log in")
    assert web.rules
    assert all(web.fetch(f"{HOST}/s/{n}?print=yes", n) for n in range(10, 20))


def test_a_parameter_that_matters_on_one_page_in_five_is_found_out():
    web = Web()
    for n in range(100):
        web.visit(f"{HOST}/s/{n}", n)
    for n in range(100):
        web.fetch(f"{HOST}/s/{n}?page=2", n if n % 5 else f"second page of {n}")
    assert web.rules == {}


def test_a_mirror_that_diverges_is_sampled_until_it_is_withdrawn():
    web = Web()
    for n in range(200):
        web.visit(f"{HOST}/a/{n}", n)
    for n in range(200):
        web.fetch(f"http://mirror.example/a/{n}", n if n < 40 else f"its own {n}")
    assert web.rules == {}
    (rule,) = [rule for rule in web.economy.rules.all() if rule.against]
    assert rule.against_url.startswith("http://mirror.example/a/")


def test_a_redirect_counts_under_both_addresses():
    web = Web()
    for n in (1, 2):
        web.visit(f"{HOST}/go?id={n}", n, final_url=f"{HOST}/a/{n}")
        web.visit(f"{HOST}/go?id={n}&from=mail", n, final_url=f"{HOST}/a/{n}")
    assert not web.fetch(f"{HOST}/go?id=2&from=feed", 2)


def test_opaque_addresses_have_no_rules_and_no_values():
    web, chance = Web(), random.Random(5)
    for n in range(200):
        assert web.fetch(f"{HOST}/{chance.randrange(16**12):012x}a1", n % 50)
    assert web.rules == {}


def test_a_shape_that_brings_nothing_for_long_is_a_trap_and_not_before():
    web = Web()
    web.visit(f"{HOST}/", None, [f"{HOST}/day/0"])
    for n in range(1, TRAP):
        assert not web.visit(f"{HOST}/day/{n}", None, [f"{HOST}/day/{n + 1}"])
    (event,) = web.visit(f"{HOST}/day/{TRAP}", None, [f"{HOST}/day/{TRAP + 1}"])
    assert (event.kind, event.name) == ("trap", "news.example/day/*")
    assert web.economy.hold(f"{HOST}/day/999") == Hold("trap", "news.example/day/*")


def test_stories_behind_a_calendar_keep_it_from_being_a_trap():
    web = Web()
    for n in range(1000):
        story_of_day = [f"{HOST}/story/{n}"] if n % 100 == 0 else []
        web.visit(f"{HOST}/day/{n}", None, [f"{HOST}/day/{n + 1}", *story_of_day])
        for url in story_of_day:
            web.visit(url, url)
    assert web.economy.values.traps == set()


def test_at_idle_all_is_released_but_what_final_rules_hold_and_traps():
    web = Web()
    for n in range(60):
        web.visit(f"{HOST}/a/{n}", n)
    for n in range(60):
        web.fetch(f"{HOST}/a/{n}/print", n)
    waiting = Counter(web.held.values())
    assert sum(waiting.values()) > 30
    samples = web.economy.at_idle(waiting)
    assert 0 < sum(samples.values()) <= 20
    # They were clean, and there are 20 texts: the rest may stay.
    for url, hold in [*web.held.items()][: sum(samples.values())]:
        web.visit(url, int(url.split("/")[4]))
        waiting[hold] -= 1
    assert web.economy.at_idle(+waiting) == {}
    web.economy.mode = Mode.LAST
    assert web.economy.at_idle(+waiting) == +waiting


def test_what_waits_survives_a_crash_and_is_taken_once(tmp_path):
    room, hold = WaitingRoom(tmp_path / "waiting"), Hold("low_value", "a")
    for n in range(10):
        room.put(hold, b"%d" % n)
    assert sorted(room.take(hold, 3)) == [b"0", b"3", b"7"]
    with (tmp_path / "waiting").open("ab") as file:
        file.write(b"w12345678cut off")
    room.close()
    with closing(WaitingRoom(tmp_path / "waiting")) as again:
        assert again.counts() == {EARLIER: 7}
        assert [*again.take(EARLIER, 7)] == [b"1", b"2", b"4", b"5", b"6", b"8", b"9"]
        assert again.damaged == 0
    with closing(WaitingRoom(tmp_path / "waiting")) as again:
        assert again.counts() == {}


def test_a_damaged_byte_costs_its_own_request_alone(tmp_path):
    path, hold = tmp_path / "waiting", Hold("low_value", "a")
    packed = [pickle.dumps({"url": f"{HOST}/{n}", "headers": {b"Cookie": [b"s"]}}) for n in range(5)]
    with closing(WaitingRoom(path)) as room:
        for each in packed:
            room.put(hold, each)
    whole = path.read_bytes()
    begins = whole.index(b"\n") + 1
    for place in range(begins, len(whole) - 1):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x15]) + whole[place + 1 :])
        with closing(WaitingRoom(path)) as again:
            left = [*again.take(EARLIER, 5)]
            # A damaged end of a line takes the next request too.
            lost = 2 if whole[place] == 10 else 1
            assert left == [each for each in packed if each in left], place
            assert len(left) >= 5 - lost, place
            assert again.damaged, place


def test_what_waits_outlives_a_disk_that_is_full_for_a_while(tmp_path):
    resource = pytest.importorskip("resource")
    hold, before = Hold("low_value", "a"), resource.getrlimit(resource.RLIMIT_FSIZE)
    with closing(WaitingRoom(tmp_path / "waiting")) as room:
        room.put(hold, b"first")
        resource.setrlimit(resource.RLIMIT_FSIZE, ((tmp_path / "waiting").stat().st_size + 5, before[1]))
        try:
            with pytest.raises(OSError, match=r"No space|too large"):
                room.put(hold, b"refused")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        room.put(hold, b"second")
    with closing(WaitingRoom(tmp_path / "waiting")) as again:
        assert [*again.take(EARLIER, 2)] == [b"first", b"second"]
        assert again.damaged == 0


# --- crawls


@pytest.fixture
def shop(site):
    """A shop whose products are shown under many addresses; the stories in it, by number."""

    def product(n):
        texts = story(n)
        links = [f"/p/{n}?sid=s{n}x{k}" for k in range(3)] + [f"/p/{n}?view=print", f"/p/{(n + 1) % 30}?sid=t{n}"]
        return article(f"Product {n} of the harbour", texts, tuple(links))

    for n in range(30):
        site.add(f"/p/{n}", product(n))
    site.add("/", article("Harbour shop", ["All products."], tuple(f"/p/{n}?sid=f{n}" for n in range(30))))
    return site


def crawled(folder, site, rules, **settings):
    command = write_job(
        folder,
        "sample_spiders.Followers",
        url=site.url("/"),
        settings={"DEDUP_RULES": rules, "DEPTH_PRIORITY": 1} | settings,
        afresh=True,
    )
    outcome = run_job(folder, command)
    assert outcome.problems == []
    assert outcome.exit_status == 0
    return outcome


def products(outcome):
    return sorted({url.split("?")[0] for url in outcome.kept})


def test_on_finds_every_story_with_fewer_requests(shop, tmp_path):
    plain = crawled(tmp_path / "off", shop, "off")
    before = len(shop.paths())
    on = crawled(tmp_path / "on", shop, "on")
    assert products(on) == products(plain)
    # 165 to 173 of 215: which samples are drawn depends on the URL, and so on the site's port.
    assert len(shop.paths()) - before < 0.9 * before
    assert on.stats["dedup/rules/left_out"] > 0
    assert on.stats["dedup/rules/held"] == on.stats["dedup/rules/left_out"] + on.stats.get("dedup/rules/released", 0)
    crawls = Crawls(read_counts(on.folder / "records.jsonl")).summary()
    assert crawls["requests"] == {
        name: on.stats[f"dedup/rules/{name}"]
        for name in ("held", "released", "left_out")
        if f"dedup/rules/{name}" in on.stats
    }
    assert Counter(rule["change"] for rule in crawls["rules"])["found"] == on.stats["dedup/rules/found"]
    left_out = [line["left_out"] for line in on.lines("left-out.jsonl")]
    assert len(left_out) == on.stats["dedup/rules/left_out"]
    assert "requests held back" in on.log
    shown = run_scrapy(tmp_path / "on", "dedup", "rules", "--json")
    rules = [json.loads(line) for line in shown.stdout.splitlines()]
    assert {rule["state"] for rule in rules} <= {"final", "holds"}
    assert run_scrapy(tmp_path / "on", "dedup", "rules", "--left-out").stdout.split() == left_out
    assert rules[0]["id"] in run_scrapy(tmp_path / "on", "dedup", "explain", left_out[0]).stdout
    off = run_scrapy(tmp_path / "on", "dedup", "rules", "--off", rules[0]["id"])
    assert rules[0]["name"] in off.stdout
    assert run_scrapy(tmp_path / "on", "dedup", "rules").stdout.startswith(f"{rules[0]['id']}  off")
    assert run_scrapy(tmp_path / "on", "dedup", "rules", "--off", "12345678").returncode == 3


def test_watch_fetches_the_same_pages_in_the_same_order(shop, tmp_path):
    order = {}
    for rules in ("off", "watch"):
        before = len(shop.paths())
        outcome = crawled(tmp_path / rules, shop, rules, **IN_ORDER)
        order[rules] = shop.paths()[before:], outcome.kept
    assert order["watch"] == order["off"]
    assert outcome.stats["dedup/rules/would_hold"] > 0
    assert "dedup/rules/held" not in outcome.stats


@pytest.mark.every_scrapy
def test_last_fetches_everything_in_the_end(shop, tmp_path):
    crawled(tmp_path / "off", shop, "off")
    plain, count = Counter(shop.paths()), len(shop.paths())
    outcome = crawled(tmp_path / "last", shop, "last")
    assert Counter(shop.paths()[count:]) == plain
    assert "dedup/rules/left_out" not in outcome.stats


def test_after_a_defect_in_the_rules_all_that_waits_is_fetched(shop, crawl):
    fault = faults("economy.economy:Economy.visited", nth=100, kind="bug")
    settings = {"DEDUP_RULES": "on", "DEPTH_PRIORITY": 1, **fault}
    outcome = crawl("sample_spiders.Followers", url=shop.url("/"), settings=settings)
    assert outcome.stats["dedup/rules/released"] == outcome.stats["dedup/rules/held"] > 0
    assert "dedup/rules/left_out" not in outcome.stats
    (line,) = outcome.problems
    assert "the URL rules failed, and the crawl goes on without them" in line


@pytest.mark.every_scrapy
def test_a_crawl_that_was_stopped_finds_the_same_stories_when_it_goes_on(shop, tmp_path):
    stopped = crawled(tmp_path, shop, "on", JOBDIR=str(tmp_path / "job"), CLOSESPIDER_PAGECOUNT=50)
    assert stopped.stats["finish_reason"] == "closespider_pagecount"
    before = products(stopped)
    went_on = crawled(tmp_path, shop, "on", JOBDIR=str(tmp_path / "job"))
    assert sorted({*before, *products(went_on)}) == sorted(shop.url(f"/p/{n}") for n in range(30))


def test_what_was_left_out_is_fetched_by_another_run_of_the_jobdir(shop, tmp_path):
    job = str(tmp_path / "job")
    left_out = crawled(tmp_path, shop, "on", JOBDIR=job).stats["dedup/rules/left_out"]
    count = len(shop.paths())
    assert "dedup/rules/left_out" not in crawled(tmp_path, shop, "last", JOBDIR=job).stats
    assert len(shop.paths()) - count == left_out > 0


@pytest.mark.every_scrapy
def test_the_next_crawl_begins_with_the_rules_at_half_weight(shop, tmp_path):
    crawled(tmp_path, shop, "watch")
    shown = run_scrapy(tmp_path, "dedup", "rules", "--json").stdout.splitlines()
    first = {rule["name"]: rule["texts"] for rule in map(json.loads, shown)}
    assert first
    with closing(open_store(store_uri(tmp_path), fingerprint_scheme=None)) as store:
        economy = Economy(Mode.ON)
        restore(economy, store)
    assert {rule.name: rule.support for rule in economy.rules.all()} == {name: n // 2 for name, n in first.items()}
    assert not any(rule.is_final for rule in economy.rules.all())


def test_links_of_a_sitemap_and_of_an_api_never_wait(shop, tmp_path):
    links = [f"/p/{n}?sid=api{n}x{k}" for k in range(4) for n in range(30)]
    shop.add("/", Answer(json.dumps({"products": links}), headers={"Content-Type": "application/json"}))
    outcome = crawled(tmp_path, shop, "on")
    assert len([path for path in shop.paths() if "api" in path]) == len(links)
    assert len(products(outcome)) == 30


def test_no_secret_of_a_url_is_saved():
    web = Web()
    for n in range(60):
        web.visit(f"{HOST}/a/{n}", n)
        web.visit(f"{HOST}/a/{n}?token=secret{n}", n if n < 50 else f"its own {n}")
    with closing(open_store("memory:", fingerprint_scheme="clauses")) as store:
        for rule in web.economy.rules.all():
            rule.is_off = True
        save(web.economy, store, partial(without_secrets, redact=True))
        saved = [learned for _, learned in learned_in(store)]
    assert any(learned.against_url.endswith("?token=*") for learned in saved)
    assert not any("secret" in learned.against_url for learned in saved)


def test_where_nothing_can_wait_the_crawl_fetches_everything(shop, tmp_path):
    crawled(tmp_path / "off", shop, "off")
    count = len(shop.paths())
    folder = tmp_path / "on" / "job" / "dedup"
    folder.mkdir(parents=True)
    (folder / "waiting").write_bytes(b"notes of mine, 1998")
    command = write_job(
        tmp_path / "on",
        "sample_spiders.Followers",
        url=shop.url("/"),
        settings={"DEDUP_RULES": "on", "JOBDIR": str(folder.parent)},
    )
    outcome = run_job(tmp_path / "on", command)
    assert len(products(outcome)) == 30
    assert len(shop.paths()) == 2 * count
    (problem,) = outcome.problems
    assert f"no request can wait in {folder / 'waiting'} (it contains something else; move that away)" in problem
    assert (folder / "waiting").read_bytes() == b"notes of mine, 1998"


def test_requests_that_a_full_disk_refuses_are_fetched_at_once(shop, tmp_path):
    crawled(tmp_path / "off", shop, "off")
    plain, count = Counter(shop.paths()), len(shop.paths())
    full = faults("economy.waiting:WaitingRoom.put", kind="full", every=True)
    command = write_job(
        tmp_path / "on", "sample_spiders.Followers", url=shop.url("/"), settings={"DEDUP_RULES": "on"} | full
    )
    outcome = run_job(tmp_path / "on", command)
    assert Counter(shop.paths()[count:]) == plain
    (problem,) = outcome.problems
    assert "requests cannot wait ([Errno 28] No space left on device), and are fetched at once" in problem


def test_a_trap_is_no_trap_for_a_crawl_that_only_watches(site, tmp_path):
    for n in range(TRAP + 30):
        site.add(f"/day/{n}", article("Days", [" ".join(story(n))], (f"/day/{n + 1}",)))
    site.add("/", article("Calendar", ["All days."], ("/day/0",)))
    outcome = run_job(
        tmp_path,
        write_job(tmp_path, "sample_spiders.Followers", url=site.url("/"), settings={"DEDUP_RULES": "watch"}),
    )
    assert len(site.paths()) > TRAP + 30
    (line,) = [line for line in outcome.log.splitlines() if "brought nothing new" in line]
    assert line.endswith("/day/* brought nothing new; this crawl fetches them all the same")
    assert "no more are fetched" not in outcome.log


def test_a_request_that_waits_is_stored_whole_and_private(shop, tmp_path):
    job, cookies = tmp_path / "job", {"session": "s3cret"}
    # Else Scrapy asks the network for the list of public suffixes.
    settings = {"FOLLOW_WITH": cookies, "COOKIES_ENABLED": False, "CLOSESPIDER_PAGECOUNT": 60}
    stopped = crawled(tmp_path, shop, "last", JOBDIR=str(job), **settings)
    assert stopped.stats["dedup/rules/held"] > 0
    waiting = job / "dedup" / "waiting"
    requests = [pickle.loads(b64decode(line[9:])) for line in waiting.read_bytes().splitlines()[1:]]
    assert requests
    assert [request for request in requests if request["cookies"] != cookies] == []
    if os.name != "nt":
        assert waiting.stat().st_mode & 0o777 == 0o600


def test_by_default_nothing_is_learned_about_requests(shop, tmp_path):
    command = write_job(tmp_path, "sample_spiders.Followers", url=shop.url("/"), settings={})
    outcome = run_job(tmp_path, command)
    assert not [name for name in outcome.stats if name.startswith("dedup/rules/")]
    assert Config.from_settings({}, None).rules is Mode.OFF


def test_what_must_not_wait_does_not(shop, tmp_path):
    outcome = crawled(tmp_path, shop, "on", FOLLOW_BY="nameless")
    assert "dedup/rules/held" not in outcome.stats
    assert outcome.stats["dedup/rules/not_packed"] > 0
    assert len(products(outcome)) == 30
