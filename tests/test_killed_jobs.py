"""A JOBDIR crawl that was killed at any moment ends when it is resumed, and fetches all that can be read."""

from __future__ import annotations

import json
import os
import pickle
import random
import shutil
import struct
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest
import scrapy
from crawling import IN_ORDER, Running, run_job, write_job
from local_site import Answer, Site, wait_until
from nightly import tries
from prose import article, story
from sample_spiders import Articles
from scrapy.dupefilters import RFPDupeFilter
from scrapy.settings import Settings
from scrapy.squeues import MarshalLifoDiskQueue, PickleFifoDiskQueue, PickleLifoDiskQueue

from dedup_middleware.order.disk_queues import GIVEN_AGAIN, UNREADABLE
from dedup_middleware.order.queue import TwoTierQueue

pytestmark = [
    pytest.mark.every_scrapy,
    # Scrapy 2.15 leaves the files of an empty queue open.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

SCRAPYS_OWN = {"SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.DownloaderAwarePriorityQueue"}
FIRST_IN_FIRST_OUT = {"SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleFifoDiskQueue"}


class Starts(Articles):
    """All start requests wait in one queue."""

    async def start(self):
        for url in self.urls.split(","):
            yield scrapy.Request(url)


# --- crawls


def command(folder, site, **settings):
    """Return the command of a crawl of *site* with a JOBDIR, in a project with the ADDONS line."""
    urls = ",".join(site.url(f"/start{n}") for n in range(6))
    common = IN_ORDER | {"JOBDIR": "job"}
    return write_job(folder, "test_killed_jobs.Starts", urls=urls, settings=common | settings, afresh=True)


@pytest.fixture(scope="module")
def pages():
    """Six pages to start from, each with links to five others."""
    site = Site(hosts=1)
    for start in range(6):
        links = [f"/link{n}" for n in range(5 * start, 5 * start + 5)]
        site.add(f"/start{start}", article(f"Start {start}", story(start), tuple(links)))
        for number, link in enumerate(links):
            site.add(link, article(link, story(100 + 5 * start + number)))
    yield site
    site.close()


class Stopped(NamedTuple):
    """A job that was stopped while start requests and links waited."""

    site: Site
    folder: Path
    fetched: set[str]

    def copied(self, folder):
        """Copy the job to *folder*; return the folder of the queues of its one slot."""
        shutil.copytree(self.folder / "job", folder / "job")
        (slot,) = [path for path in (folder / "job" / "requests.queue").iterdir() if path.is_dir()]
        return slot

    def missing_after(self, folder, **settings):
        """Resume the job in *folder* to its end; return the number of pages that were never fetched, and what came."""
        before = len(self.site.paths())
        outcome = run_job(folder, command(folder, self.site, **settings))
        assert outcome.stats["finish_reason"] == "finished"
        return len({path for _, path in self.site.pages} - self.fetched - {*self.site.paths()[before:]}), outcome


@pytest.fixture(scope="module")
def stopped(pages, tmp_path_factory):
    made = {}

    def stop(**settings):
        name = str(settings)
        if name not in made:
            folder, before = tmp_path_factory.mktemp("stopped"), len(pages.paths())
            run_job(folder, command(folder, pages, CLOSESPIDER_PAGECOUNT=4, **settings))
            made[name] = Stopped(pages, folder, {*pages.paths()[before:]})
        return made[name]

    return stop


def without_its_files(queue):
    """Leave what a kill may leave while queuelib removes an empty queue."""
    for path in queue.glob("q*"):
        path.unlink()


def without_its_entries(queue):
    queue.write_bytes(queue.read_bytes()[:4])


def cut_in_an_entry(queue):
    path = queue / "q00000" if queue.is_dir() else queue
    path.write_bytes(path.read_bytes()[:-9])


def begun_in_an_entry(queue):
    info = json.loads((queue / "info.json").read_text())
    info["tail"][2] += 7
    (queue / "info.json").write_text(json.dumps(info))


def without_its_info(queue):
    (queue / "info.json").write_text("")


TEARS = {
    "start requests removed": ({}, "0s", without_its_files, 30, "5 requests in"),
    "start requests cut": ({}, "0s", cut_in_an_entry, 6, "1 request in"),
    "start requests moved": ({}, "0s", begun_in_an_entry, 0, ""),
    "start requests without info": ({}, "0s", without_its_info, 0, ""),
    "links removed": ({}, "0", without_its_entries, 2, ""),
    "links cut": ({}, "0", cut_in_an_entry, 1, "1 request in"),
    "links begun and not written": ({}, "0", lambda queue: queue.write_bytes(b""), 2, ""),
    "links in a folder removed": (FIRST_IN_FIRST_OUT, "0", without_its_files, 2, "2 requests in"),
    "links in a folder cut": (FIRST_IN_FIRST_OUT, "0", cut_in_an_entry, 1, "1 request in"),
    "links in a folder moved": (FIRST_IN_FIRST_OUT, "0", begun_in_an_entry, 0, ""),
}


@pytest.mark.parametrize("name", TEARS)
def test_a_job_with_a_torn_queue_ends_and_every_other_page_is_fetched(name, stopped, tmp_path):
    settings, queue, tear, missing, told = TEARS[name]
    slot = stopped(**settings).copied(tmp_path)
    tear(slot / queue)
    found, outcome = stopped(**settings).missing_after(tmp_path, **settings)
    assert found == missing
    assert [f"dedup: {told}" in line and f"/{queue} " in line for line in outcome.problems] == [True] * bool(told)
    assert outcome.stats.get("dedup/requests_unreadable", 0) == int(told.partition(" ")[0] or 0)


def test_so_does_one_that_hung_without_the_plugin_and_was_interrupted(stopped, tmp_path):
    """An orderly stop writes down again what Scrapy's queue cannot read."""
    job = stopped()
    without_its_files(job.copied(tmp_path) / "0s")
    before = len(job.site.paths())
    with Running(tmp_path, command(tmp_path, job.site, **SCRAPYS_OWN)) as running:
        wait_until(lambda: len({*job.site.paths()[before:]} | job.fetched) == 6)
        running.interrupt()
        assert running.wait().stats["finish_reason"] == "shutdown"
    found, outcome = job.missing_after(tmp_path)
    assert found == 30 + 2
    (warning,) = outcome.problems
    assert "5 requests in " in warning


class SeenAtOnce(RFPDupeFilter):
    """Brings to disk at once what was seen, as Scrapy 2.15 does: what was lost is not found again."""

    def request_seen(self, request):
        seen = super().request_seen(request)
        self.file.flush()
        return seen


@pytest.mark.parametrize("settings", [{}, FIRST_IN_FIRST_OUT], ids=["lifo", "fifo"])
def test_all_that_waits_when_a_crawl_is_killed_is_fetched_when_it_is_resumed(site, tmp_path, settings):
    links = [site.add(f"/link{n}", article(f"Link {n}", story(n)), host=n % 2) for n in range(30)]
    held = Answer(article("Held", story(31)), hold=(release := threading.Event()))
    links.insert(15, site.add("/held", held, host=1))
    start = site.add("/start", article("Start", story(32), tuple(links)))
    common = IN_ORDER | {"JOBDIR": "job", "DUPEFILTER_CLASS": "test_killed_jobs.SeenAtOnce"}
    command = write_job(tmp_path, "test_killed_jobs.Starts", urls=start, settings=common | settings)
    with Running(tmp_path, command) as running:
        wait_until(lambda: "/held" in site.paths())
        running.kill()
    release.set()
    before = len(site.paths())
    outcome = run_job(tmp_path, command)
    assert {*site.paths()} == {path for _, path in site.pages}
    assert len(site.paths()[before:]) > 10
    assert outcome.problems == []


class WithParse(Starts):
    """Has a callback for links which another version of the spider lacks."""

    def parse(self, response):
        yield from response.follow_all(css="a.next", callback=self.parse_link)

    def parse_link(self, response):
        yield {"url": response.url}


def test_requests_for_a_callback_that_is_gone_are_left_out(pages, tmp_path):
    urls = ",".join(pages.url(f"/start{n}") for n in range(6))
    job = {"urls": urls, "settings": IN_ORDER | {"JOBDIR": "job"}}
    before = len(pages.paths())
    stopping = job | {"settings": job["settings"] | {"CLOSESPIDER_PAGECOUNT": 4}}
    run_job(tmp_path, write_job(tmp_path, "test_killed_jobs.WithParse", **stopping))
    outcome = run_job(tmp_path, write_job(tmp_path, "test_killed_jobs.Starts", **job, afresh=True))
    assert outcome.stats["finish_reason"] == "finished"
    assert {path for path in pages.paths()[before:] if "start" in path} == {f"/start{n}" for n in range(6)}
    (warning,) = outcome.problems
    assert "parse_link" in warning
    assert outcome.stats["dedup/requests_unreadable"] == 2


# --- queues


class Job:
    """The queues of a crawl that fetches nothing, in *folder*; what it reports is kept."""

    def __init__(self, folder, kind=PickleLifoDiskQueue):
        self.folder, self.kind = folder, kind
        self.warnings = []
        self.unreadable = 0
        downloader = SimpleNamespace(
            get_slot_key=lambda request: request.meta.get("download_slot"), slots={}, active=()
        )
        self.crawler = SimpleNamespace(
            settings=Settings({"CONCURRENT_REQUESTS": 2}),
            spider=Starts(),
            engine=SimpleNamespace(downloader=downloader),
            get_extension=lambda _: SimpleNamespace(requests=None, warn=self.warnings.append, count=self.count),
        )

    def count(self, name, number):
        assert name == "requests_unreadable"
        self.unreadable += number

    def opened(self, state=()):
        starts = PickleFifoDiskQueue
        return TwoTierQueue.from_crawler(self.crawler, self.kind, str(self.folder), state, start_queue_cls=starts)

    def drained(self, state=()):
        """Open the queues, and return the URLs of all that waits in them until they end."""
        queue, found = self.opened(state), []
        while (request := queue.pop()) is not None:
            found.append(request.url)
        assert len(queue) == 0
        assert queue.close() == {}
        return found


def request(number, slot="a.example", priority=0, *, is_start=False):
    meta = {"download_slot": slot, "is_start_request": is_start}
    return scrapy.Request(f"http://{slot}/{number}", priority=priority, meta=meta)


def files_in(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class Kills:
    """Reads the files of a job before and after whatever changes one: what a kill leaves at that moment."""

    CHANGES = (
        *((Path, name) for name in ("unlink", "write_text", "replace")),
        *((os, name) for name in ("remove", "write", "truncate")),
    )

    def __init__(self, folder, monkeypatch):
        self.folder = folder
        self.waiting = set()
        self.found = []
        """Files, and what was waiting then."""
        for owner, name in self.CHANGES:
            monkeypatch.setattr(owner, name, self._watched(getattr(owner, name)))

    def _watched(self, change):
        def watched(*args, **kwargs):
            self.read()
            done = change(*args, **kwargs)
            self.read()
            return done

        return watched

    def read(self):
        """Remember what a kill would leave now."""
        now = files_in(self.folder), {*self.waiting}
        if now not in self.found[-1:]:
            self.found.append(now)


@pytest.mark.parametrize("kind", [PickleLifoDiskQueue, PickleFifoDiskQueue])
def test_a_kill_at_any_moment_takes_no_request_that_waits(tmp_path, kind):
    """But for the one that is taken out at that moment. At its end nothing waits any more."""
    chance, folder = random.Random(1), tmp_path / "queues"
    job, state = Job(folder, kind), {}
    with pytest.MonkeyPatch.context() as monkeypatch:
        kills = Kills(folder, monkeypatch)
        for run in range(3):
            queue = job.opened(state)
            for turn in range(25):
                if chance.random() < (0.6, 0.5, 0.3)[run]:
                    added = request(
                        100 * run + turn, chance.choice("ab"), chance.choice((0, 1)), is_start=turn % 3 == 0
                    )
                    queue.push(added)
                    kills.waiting.add(added.url)
                elif (taken := queue.pop()) is not None:
                    kills.waiting.discard(taken.url)
                kills.read()
            state = queue.close()
    assert len(kills.found) > 100
    for number, (files, waiting) in enumerate(kills.found):
        killed = Job(tmp_path / str(number), kind)
        for name, content in files.items():
            (killed.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (killed.folder / name).write_bytes(content)
        assert len(waiting - {*killed.drained(state if number % 2 else {})}) <= 1
        assert killed.drained() == []
        assert killed.warnings == []


def test_what_a_fifo_queue_gave_out_long_before_a_kill_it_gives_out_no_more(tmp_path):
    job = Job(tmp_path / "queues", PickleFifoDiskQueue)
    queue = job.opened()
    for number in range(400):
        queue.push(request(number))
    for _ in range(300):
        queue.pop()
    on_their_way = job.crawler.settings["CONCURRENT_REQUESTS"]
    killed = shutil.copytree(job.folder, tmp_path / "killed")
    queue.close()
    first, *_ = found = Job(killed, PickleFifoDiskQueue).drained()
    assert found == [f"http://a.example/{n}" for n in range(int(first.rpartition("/")[2]), 400)]
    assert 300 - GIVEN_AGAIN - 70 < int(first.rpartition("/")[2]) <= 300 - GIVEN_AGAIN - on_their_way


@pytest.mark.parametrize("kind", [PickleLifoDiskQueue, PickleFifoDiskQueue])
def test_of_a_queue_that_is_cut_anywhere_all_that_is_whole_is_read(tmp_path, kind):
    """A request may contain what looks like other requests."""
    job, ends = Job(tmp_path / "whole", kind), []
    queue = job.opened()
    fake = pickle.dumps({"url": "http://fake.example"}, protocol=4)
    for number in range(2):
        queue.push(request(number).replace(body=fake + struct.pack(">L", len(fake)) + b"\0\0\0\4" * 2))
        ((name, content),) = files_in(job.folder).items()
        ends.append(len(content))
    state = queue.close()
    for length in range(ends[-1]):
        cut = Job(shutil.copytree(job.folder, tmp_path / str(length)), kind)
        os.truncate(cut.folder / name, length)
        whole = {f"http://a.example/{number}" for number, end in enumerate(ends) if end <= length}
        assert {*cut.drained(state)} == whole, length
        assert len(cut.warnings) <= 1
        assert cut.unreadable <= 2


@pytest.mark.nightly
@pytest.mark.parametrize("kind", [PickleLifoDiskQueue, PickleFifoDiskQueue, MarshalLifoDiskQueue])
def test_whatever_its_files_contain_a_queue_ends_with_one_warning(tmp_path, kind):
    job, chance = Job(tmp_path / "whole", kind), random.Random(1)
    queue = job.opened()
    for number in range(20):
        queue.push(request(number))
    state = queue.close()
    for turn in range(tries(30, 1000)):
        other = Job(shutil.copytree(job.folder, tmp_path / str(turn)), kind)
        path = chance.choice([path for path in other.folder.rglob("*") if path.is_file()])
        content = bytearray(path.read_bytes())
        begin = chance.randrange(len(content))
        content[begin : begin + chance.randrange(9)] = chance.randbytes(chance.choice((0, 1, 4)))
        path.write_bytes(content)
        assert len(other.drained(state)) <= 20
        assert len(other.warnings) <= 1


def test_a_queue_that_can_be_read_no_further_stays_under_another_name(tmp_path):
    """Requests of other queues are served; what is added later waits in a new one."""
    job = Job(tmp_path)
    queue = job.opened()
    for number in range(5):
        queue.push(request(number, is_start=True))
    queue.push(request(5, "b.example"))
    (path,) = tmp_path.rglob("q00000")
    os.truncate(path, 0)
    assert [queue.pop().url, queue.pop(), len(queue)] == ["http://b.example/5", None, 0]
    queue.push(request(6, is_start=True))
    assert [queue.pop().url, queue.pop(), len(queue)] == ["http://a.example/6", None, 0]
    assert queue.close() == {}
    (warning,) = job.warnings
    assert "5 requests in " in warning
    assert path.parent.with_name(path.parent.name + UNREADABLE).is_dir()
