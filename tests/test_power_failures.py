"""A power failure at each step of a checkpoint, in any order of the steps, loses no story.

What the machine had is modelled: of a feed, what it had when its disk was last waited for; of the store's log, any
beginning that has what it had then.
"""

from __future__ import annotations

import os
import random
import shutil
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

import pytest
from engines import ENGINES, need
from nightly import tries
from test_away import Crawl, Quiet

from dedup_middleware.driver.deduplicator import Deduplication
from dedup_middleware.driver.releases import Releaser

if TYPE_CHECKING:
    from collections.abc import Callable

    from dedup_middleware.visits.durability import Wait

    Then = Callable[[Wait], None]

NAMES = [f"{story}.{copy}" for story in range(3) for copy in "ab"]


def stories(names):
    return {name.partition(".")[0] for name in names}


class Kind(NamedTuple):
    """A kind of store, and where in its folder its database and its log are."""

    scheme: str
    database: str
    log: str
    options: str = ""

    def uri(self, folder):
        return f"{self.scheme}:{folder / self.database}{self.options}"


KINDS = {
    **{engine: Kind(engine, "", "db/*.log") for engine in ENGINES},
    "sqlite": Kind("sqlite", "db", "db-wal"),
    "shared": Kind("sqlite", "db", "db-wal", "?shared=1"),
}


class Machine(Crawl):
    """One whose disks have things when it says so, and who looks at each step at what a power failure would leave."""

    def __init__(self, kind, path, chance):
        super().__init__(kind.uri(path), "one", interval=1)
        self.kind = kind
        self.deduplication = Deduplication(self.opened, "one", Quiet(), flush=self.hand_over, disks=self)
        self.deduplication.claims.durability.interval = 1
        self.releaser = Releaser(self.deduplication)
        self.path = path
        self.chance = chance
        self.handed = []
        self.closing = []
        self.waits = deque()
        self.over = []
        self.to_visit = deque(NAMES)
        self.log = max(path.glob(kind.log))
        self.durable = self.log.stat().st_size
        self.looked_at = set()
        store = self.opened.store.in_process.store
        self.sync, store.sync = store.sync, self.synced

    # --- its disks

    def hand_over(self):
        self.handed += self.buffer
        self.buffer.clear()
        closing = set()
        if self.chance.random() < 0.5:
            # What a batch that is closing has taken is on its medium later.
            batch = len(self.handed)
            self.closing.append(batch)
            closing.add(batch)
            return closing, lambda: None
        return closing, self.to_disk(len(self.handed))

    def to_disk(self, count):
        def wait():
            self.look()
            self.safe = max(self.safe, self.handed[:count], key=len)
            self.look()

        return wait

    def begin(self, wait, then):
        self.waits.append((wait, then))

    def finish(self):
        while self.waits or self.over:
            self.wait_for_one()
            self.tell_one()

    def synced(self):
        """Stand for the sync of the store."""
        size = self.log.stat().st_size
        if not self.opened.store.closed:
            # Pages come meanwhile.
            self.visit_one()
            self.look()
        self.sync()
        self.durable = max(self.durable, size)

    # --- what happens in any order

    def visit_one(self):
        if self.to_visit:
            self.visit([self.to_visit.popleft()])

    def wait_for_one(self):
        if self.waits:
            self.waits.rotate(self.chance.randrange(len(self.waits)))
            wait, then = self.waits.popleft()
            wait()
            self.over.append(then)

    def tell_one(self):
        if self.over:
            self.over.pop(self.chance.randrange(len(self.over)))(lambda: None)

    def close_one(self):
        if self.closing:
            batch = self.closing.pop(0)
            self.deduplication.claims.durability.wait_for_disk(self.to_disk(batch), batch)

    def run(self):
        while self.to_visit or self.waits or self.over or self.closing:
            self.chance.choice([self.visit_one, self.wait_for_one, self.tell_one, self.close_one])()
            self.look()

    # --- a power failure

    def look(self):
        """Let the power fail here; then another crawl visits more copies of what has been told so far."""
        size = self.log.stat().st_size
        told = [f"{story}.c" for story in sorted(stories([name for name in NAMES if name not in self.to_visit]))]
        for cut in {self.durable, self.chance.randint(self.durable, size), size}:
            seen = (cut, len(self.safe), len(self.to_visit))
            if seen in self.looked_at:
                continue
            self.looked_at.add(seen)
            left = self.path.with_name("left")
            shutil.copytree(self.path, left)
            os.truncate(left / self.log.relative_to(self.path), cut)
            after = Crawl(self.kind.uri(left), "two")
            after.visit(told)
            after.end()
            lost = stories(after.dropped) - stories(after.safe + self.safe)
            if cut == size:
                # The dropped items are whole.
                lost |= stories(self.dropped) - stories(after.safe + self.safe)
            assert not lost
            shutil.rmtree(left)


@pytest.mark.nightly
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("seed", range(tries(1, 20)))
def test_a_power_failure_at_any_step_of_a_checkpoint_loses_no_story(name, seed, tmp_path):
    need(name)
    path = tmp_path / "store"
    machine = Machine(KINDS[name], path, random.Random(seed))
    machine.run()
    machine.end()
    assert stories(machine.safe) == stories(NAMES)
    assert len(machine.looked_at) > 2 * len(NAMES)
