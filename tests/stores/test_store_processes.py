"""Other processes and other threads: a second process, a fork, a close under load. Clear errors, no crash, no harm."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import dedup_middleware
from dedup_middleware.errors import StoreError, StoreLockedError
from dedup_middleware.stores import open_store

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    Hold = Callable[[str], AbstractContextManager[subprocess.Popen[str]]]

SCHEME = "test-scheme"

_FORK = """
import os, sys, warnings
from dedup_middleware.errors import StoreError, StoreLockedError
from dedup_middleware.stores import open_store

warnings.simplefilter("ignore", DeprecationWarning)
store = open_store(sys.argv[1], fingerprint_scheme="test-scheme")
store.write([(b"%d" % n, bytes(1000)) for n in range(3000)], sync=True)
under_way = store.scan(b"0", b":")
next(under_way)
guard = store.medium.guard
if sys.argv[2] == "held":
    guard.acquire()
child = os.fork()
if child == 0:
    for call in (
        lambda: store.get_many([b"1"]),
        lambda: store.scan(b"0", b":"),
        lambda: list(under_way),
        lambda: store.write([(b"child", b"1")]),
        lambda: store.write([(b"child", b"1")], sync=True),
        lambda: store.close(),
    ):
        try:
            call()
        except StoreError as error:
            assert "parent of this process" in str(error), error
        else:
            print("the child was let through")
    if not sys.argv[1].startswith("memory"):
        try:
            open_store(sys.argv[1], fingerprint_scheme="test-scheme")
        except StoreLockedError:
            print("refused")
        else:
            print("the child opened the store again")
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
if sys.argv[2] == "held":
    guard.release()
other = "from dedup_middleware.stores import open_store; import sys; open_store(*sys.argv[1:2], fingerprint_scheme='x')"
import subprocess
if not sys.argv[1].startswith("memory"):
    late = subprocess.run([sys.executable, "-c", other, sys.argv[1]], stderr=subprocess.PIPE, text=True)
    assert "StoreLockedError" in late.stderr, late.stderr
store.write([(b"parent", b"1")], sync=True)
assert store.get_many([b"parent", b"child", b"2999"]) == [b"1", None, bytes(1000)]
assert sum(1 for _ in under_way) == 2999
store.close()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize("guard", ["free", "held"])
def test_forked_child_is_refused_and_harms_nobody(uri: str, guard: str) -> None:
    """Also when it ends, and when another thread of the parent was at work in the store during the fork."""
    environment = {**os.environ, "PYTHONPATH": str(Path(dedup_middleware.__file__).parents[1])}
    command = [sys.executable, "-c", _FORK, uri, guard]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "refused\n", "")
    store = open_store(uri, fingerprint_scheme=SCHEME)
    assert store.get_many([b"parent", b"child"]) == [b"1", None]
    store.close()


def test_second_process_is_refused_a_hundred_times(uri: str, hold: Hold) -> None:
    with hold(uri):
        for _ in range(100):
            with pytest.raises(StoreLockedError, match="in use by another"):
                open_store(uri, fingerprint_scheme=SCHEME)
    open_store(uri, fingerprint_scheme=SCHEME).close()


def test_closing_while_another_thread_works(uri: str) -> None:
    """A hundred times: the worker gets a clear error from the very call that comes too late."""
    for turn in range(100):
        store = open_store(uri, fingerprint_scheme=SCHEME)
        store.write((b"%03d" % number, b"v" * 100) for number in range(300))
        ended: list[str] = []
        # The third round of the work tells the other thread to close; from there on they race.
        busy = threading.Event()

        def work(store=store, ended=ended, busy=busy) -> None:
            try:
                while True:
                    store.get_many([b"%03d" % number for number in range(0, 300, 7)])
                    for _ in store.scan(b"0", b":"):
                        busy.set()
                    store.write([(b"more", b"1")])
            except StoreError as error:
                ended.append(str(error))

        worker = threading.Thread(target=work)
        worker.start()
        assert busy.wait(30)
        store.close()
        worker.join(30)
        assert not worker.is_alive()
        assert ["is closed" in text for text in ended] == [True], turn
