"""What the worst pages and bytes cost, each at full size and in a process of its own; and a search for worse pages.

Usage: python tests/benchmarks/hostile.py [--only NAME]... | --bytes | --fuzz MINUTES
Prints one table in Markdown: seconds of CPU and megabytes of peak memory above those of Scrapy's own parse, for a page
and for its copy at another address, under the default caps; and the worst. Exit status 1 if a page takes more than two
seconds or 300 MB, or raises. ``--bytes`` does the same for what a store, an archive or a log may have that others can
write, above what a harmless one takes. ``--fuzz`` looks for pages and texts that raise, with atheris (libFuzzer) if it
is installed, else with random changes; what it finds is printed, to become a case in `hostile_pages.py`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import random
import resource
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

from dedup_middleware import extract_paragraphs
from dedup_middleware.budget import page_budget
from dedup_middleware.checks.alignment import compare
from dedup_middleware.settings import SETTINGS

MAX_SECONDS = 2.0
MAX_MEGABYTES = 300
#: Seconds of wall time a case may take before it is given up; the parse itself may be slow.
PATIENCE = 120


def peak_megabytes() -> float:
    """Return the most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(name: str) -> None:
    """Print what case *name* costs, as JSON."""
    state, library = HOSTILE[name], Library()
    # What is made once a process is no page's cost.
    verdict_on(library, HOSTILE["nothing"].response(1))
    for story in (STORY, ZH_STORY, "<p>體\u0300" * 40):
        verdict_on(library, HOSTILE["nothing"].response(1).replace(url="http://warm/", body=story.encode()))
    seconds, verdicts = [], []
    responses = [state.response(state.full, f"http://site/{number}") for number in range(2)]
    too_large = [len(response.body) > SETTINGS["DEDUP_MAX_BYTES"].default for response in responses]
    parsing = time.process_time()
    with contextlib.suppress(ValueError):  # what cannot be parsed is Scrapy's to say
        _ = [response.selector.root for response in responses]
    parsed, megabytes = time.process_time(), peak_megabytes()
    for response in responses:
        begin = time.process_time()
        verdict = verdict_on(library, response, page_budget())
        seconds.append(time.process_time() - begin)
        verdicts.append(verdict.reason or verdict.kind.value)
    print(
        json.dumps(
            {
                "size": len(responses[0].body),
                "parse": (parsed - parsing) / 2,
                "seconds": max(seconds),
                "megabytes": peak_megabytes() - megabytes,
                "verdict": " / ".join(dict.fromkeys(verdicts)) + (" (too large)" if any(too_large) else ""),
            }
        )
    )


def report(names: list[str]) -> bool:
    """Print the table of the cases *names*; tell whether all keep within the bars."""
    rows, measured = [], {}
    for name in names:
        try:
            done = subprocess.run(
                [sys.executable, __file__, "--measure", name],
                capture_output=True,
                text=True,
                timeout=PATIENCE,
                check=True,
            )
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            rows.append([name, "-", "-", "-", "-", f"FAILED: {str(error.stderr)[-300:]}"])
            continue
        m = measured[name] = json.loads(done.stdout)
        costs = [f"{m['size'] / 1e6:.2f}", f"{m['parse']:.2f}", f"{m['seconds']:.2f}", f"{m['megabytes']:.0f}"]
        rows.append([name, *costs, m["verdict"]])
    print(table(["page", "MB", "parse, s", "above it, s", "above it, MB", "verdict"], rows))
    for what, most in (("seconds", MAX_SECONDS), ("megabytes", MAX_MEGABYTES)):
        worst = max(measured, key=lambda name: measured[name][what])
        print(f"\nworst of {len(names)}: {measured[worst][what]:.2f} {what} (bar {most}), {worst}")
    failed = len(names) - len(measured)
    print(f"\nuncaught, or out of patience: {failed}")
    return not failed and all(
        m["seconds"] <= MAX_SECONDS and m["megabytes"] <= MAX_MEGABYTES for m in measured.values()
    )


def measure_attack(name: str, path: Path) -> None:
    """Print what it costs to read *path* as the attack *name* has it read, above a harmless input, as JSON."""
    attack = ATTACKS[name]
    attack.outcome(attack.make(path.parent / "harmless", 0))
    megabytes, begin = _peak_here(), time.process_time()
    outcome = attack.outcome(path)
    seconds = time.process_time() - begin
    print(json.dumps({"seconds": seconds, "megabytes": _peak_here() - megabytes, "outcome": outcome}))


def _peak_here() -> float:
    # Not ru_maxrss, which a process takes over from the one that has started it.
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1024


def report_attacks(names: list[str]) -> bool:
    """Print the table of the attacks *names*; return whether all keep within the bars."""
    rows, failed = [], 0
    for name in names:
        seconds = megabytes = math.inf
        with tempfile.TemporaryDirectory() as folder:
            path = ATTACKS[name].make(Path(folder, "harmful"), ATTACKS[name].full)
            size = path.stat().st_size
            read = [sys.executable, __file__, "--measure-attack", name, str(path)]
            try:
                done = subprocess.run(read, capture_output=True, text=True, timeout=PATIENCE, check=True)
                found = json.loads(done.stdout)
                seconds, megabytes, outcome = found["seconds"], found["megabytes"], found["outcome"]
            except subprocess.TimeoutExpired:
                outcome = f"out of patience after {PATIENCE} seconds"
            except subprocess.CalledProcessError as error:
                outcome = "uncaught: " + (
                    error.stderr.strip().rpartition("\n")[2][:80] or f"signal {-error.returncode}"
                )
        failed += seconds > MAX_SECONDS or megabytes > MAX_MEGABYTES
        rows.append([name, f"{size / 1000:.1f}", f"{seconds:.2f}", f"{megabytes:.0f}", outcome])
        print(*rows[-1], sep=" | ", file=sys.stderr, flush=True)
    print(table(["input", "kB", "s", "MB", "outcome"], rows))
    print(f"\n{failed} of {len(names)} take more than {MAX_SECONDS} seconds or {MAX_MEGABYTES} MB, or raise")
    return not failed


def try_bytes(library: Library, data: bytes) -> None:
    """Let *data* go through everything that reads text; whatever it raises is a find."""
    page = data.decode("utf-8", "surrogateescape")
    paragraphs = [*extract_paragraphs(page), page]
    library.fingerprint(paragraphs)
    half = len(page) // 2
    compare([page[:half]], [page[half:]])
    compare(paragraphs, [page[::-1], STORY])


def fuzz(minutes: float) -> None:
    """Look for what raises, for so many *minutes*."""
    library = Library()
    seeds = [state.body(50) for state in HOSTILE.values()]

    def one(data: bytes) -> None:
        try_bytes(library, data)

    try:
        import atheris  # noqa: PLC0415 - optional
    except ImportError:
        print("atheris is not installed: random changes of the known cases")
        rng, end, runs = random.Random(time.time_ns()), time.monotonic() + 60 * minutes, 0
        while time.monotonic() < end:
            data = bytearray(rng.choice(seeds) + rng.choice(seeds))
            for _ in range(rng.randrange(20)):
                at = rng.randrange(len(data) + 1)
                data[at : at + rng.randrange(4)] = rng.randbytes(rng.randrange(6))
            one(bytes(data))
            runs += 1
        print(f"{runs} runs, nothing raised")
        return
    folder = Path(tempfile.mkdtemp())
    for number, seed in enumerate(seeds):
        (folder / f"seed{number}").write_bytes(seed)
    atheris.instrument_all()
    atheris.Setup(
        [sys.argv[0], str(folder), f"-max_total_time={int(60 * minutes)}", "-max_len=4096", "-timeout=10"], one
    )
    atheris.Fuzz()


def main() -> int:
    """Print the table, or fuzz; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="NAME", choices=HOSTILE, action="append")
    parser.add_argument("--fuzz", metavar="MINUTES", type=float)
    parser.add_argument("--measure", metavar="NAME", choices=HOSTILE, help=argparse.SUPPRESS)
    parser.add_argument("--bytes", action="store_true")
    parser.add_argument("--attack", metavar="NAME", choices=ATTACKS, action="append")
    parser.add_argument("--measure-attack", metavar=("NAME", "PATH"), nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(options.measure)
    elif options.measure_attack:
        measure_attack(options.measure_attack[0], Path(options.measure_attack[1]))
    elif options.bytes or options.attack:
        return 0 if report_attacks(options.attack or list(ATTACKS)) else 1
    elif options.fuzz:
        fuzz(options.fuzz)
    else:
        return 0 if report(options.only or list(HOSTILE)) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
