"""Measures what the worst pages and bytes cost, each at full size and in a process of its own.

Usage: python tests/benchmarks/hostile.py [--only NAME]... [--bytes]
The command prints one table in Markdown: seconds of CPU and megabytes of peak memory above those of Scrapy's own parse,
for the worst of a page, its copies on the same and on another host, and near-copies there, under the default limits.
``--bytes`` does the same for the content of stores, archives and logs, above that of a harmless one. The exit status is
1 if a case takes more than two seconds or 300 MB, or raises.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from corpus import table
from hostile_bytes import ATTACKS
from hostile_pages import HOSTILE, STORY, ZH_STORY, verdict_on
from library import Library

from dedup_middleware.common.budget import page_budget
from dedup_middleware.settings import SETTINGS

MAX_SECONDS = 2.0
MAX_MEGABYTES = 300
#: Seconds of wall time until a case is given up; the parse itself may be slow.
PATIENCE = 120


def peak_megabytes() -> float:
    """Return the most memory that this process has had; `ru_maxrss` is inherited from the process that started it."""
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1024


def measure_page(name: str) -> dict[str, object]:
    """Return what the most expensive of the page *name*, its copies and near-copies costs."""
    case, library = HOSTILE[name], Library()
    # What is created once a process is no page's cost.
    for story in ("", STORY, ZH_STORY, "<p>體\u0300" * 40):
        verdict_on(library, HOSTILE["nothing"].response(1).replace(url="http://warm/", body=story.encode()))
    page = case.response(case.full, "http://site/0")
    responses = [page, *(page.replace(url=f"http://{host}/copy") for host in ("site", "other"))]
    responses += [page.replace(url=f"http://{host}/near", body=page.body + b" x2 y") for host in ("site", "other")]
    for response in responses:
        with contextlib.suppress(ValueError):  # Scrapy reports what cannot be parsed
            _ = response.selector.root
    megabytes, seconds, outcomes = peak_megabytes(), [], []
    for response in responses:
        begin = time.process_time()
        verdict = verdict_on(library, response, page_budget())
        seconds.append(time.process_time() - begin)
        outcomes.append(verdict.reason or verdict.kind.value)
    too_large = " (too large)" * any(len(response.body) > SETTINGS["DEDUP_MAX_BYTES"].default for response in responses)
    return {
        "size": len(responses[0].body),
        "seconds": max(seconds),
        "megabytes": peak_megabytes() - megabytes,
        "outcome": " / ".join(dict.fromkeys(outcomes)) + too_large,
    }


def measure_bytes(name: str) -> dict[str, object]:
    """Return what it costs to read the bytes *name*."""
    attack = ATTACKS[name]
    with tempfile.TemporaryDirectory() as folder:
        # In a process of its own: what was needed to make them does not count.
        make = "import sys, pathlib; from hostile_bytes import ATTACKS as A; a = A[sys.argv[1]]; "
        make += "print(a.make(pathlib.Path(sys.argv[2]), a.full))"
        command = [sys.executable, "-c", make, name, str(Path(folder, "harmful"))]
        made = subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path(__file__).parent)
        path = Path(made.stdout.strip())
        attack.outcome(attack.make(Path(folder, "harmless"), 0))
        megabytes, begin = peak_megabytes(), time.process_time()
        outcome = attack.outcome(path)
        return {
            "size": path.stat().st_size,
            "seconds": time.process_time() - begin,
            "megabytes": peak_megabytes() - megabytes,
            "outcome": outcome,
        }


def row_of(name: str) -> tuple[list[str], bool]:
    """Return the row of the case *name*, measured in a process of its own, and whether it keeps within the limits."""
    command = [sys.executable, __file__, "--measure", name]
    try:
        found = json.loads(subprocess.run(command, capture_output=True, timeout=PATIENCE, check=True).stdout)
    except subprocess.TimeoutExpired:
        return [name, "-", "-", "-", f"longer than {PATIENCE} seconds"], False
    except subprocess.CalledProcessError as error:
        return [name, "-", "-", "-", f"uncaught: {error.stderr.decode().strip()[-80:] or error.returncode}"], False
    costs = [f"{found['size'] / 1e6:.3f}", f"{found['seconds']:.2f}", f"{found['megabytes']:.0f}"]
    is_good = found["seconds"] <= MAX_SECONDS and found["megabytes"] <= MAX_MEGABYTES
    return [name, *costs, found["outcome"]], is_good


def main() -> int:
    """Print the table; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="NAME", choices=[*HOSTILE, *ATTACKS], action="append")
    parser.add_argument("--bytes", action="store_true")
    parser.add_argument("--measure", metavar="NAME", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if name := options.measure:
        print(json.dumps(measure_page(name) if name in HOSTILE else measure_bytes(name)))
        return 0
    rows = [row_of(name) for name in options.only or (ATTACKS if options.bytes else HOSTILE)]
    print(table(["case", "MB", "s", "MB of memory", "outcome"], [row for row, _ in rows]))
    failed = sum(not is_good for _, is_good in rows)
    print(f"\n{failed} of {len(rows)} take more than {MAX_SECONDS} seconds or {MAX_MEGABYTES} MB, or raise")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
