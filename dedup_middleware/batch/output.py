"""What a batch leaves in its folder: verdicts, clusters, and a file of pages for ``scrapy dedup import``.

All of them are drafts until they are complete. The file of pages has the key of their store, so they are readable by
their owner alone.
"""

from __future__ import annotations

import json
import lzma
from collections import Counter, defaultdict
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from dedup_middleware import permissions
from dedup_middleware.batch.engine import Element
from dedup_middleware.batch.postings import position_of
from dedup_middleware.errors import ConfigError
from dedup_middleware.index.exchange import Origin

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from collections.abc import Set as AbstractSet
    from pathlib import Path

    from dedup_middleware.batch.engine import Engine, Values
    from dedup_middleware.batch.judging import Job
    from dedup_middleware.batch.rounds import Judged
    from dedup_middleware.batch.steps import WorldEnd

#: How the verdicts are counted that later pages have shown to be wrong.
RELEASED = "released"
NAMES = ("verdicts.jsonl", "clusters.jsonl", "store.jsonl.xz")
# A tenth of the time of the default for a fifth more bytes.
XZ_PRESET = 1


@dataclass
class Files:
    """The files of a batch, open; each takes bytes, and what is of the store packed by `packed`."""

    verdicts: IO[bytes]
    clusters: IO[bytes]
    store: IO[bytes]


@contextmanager
def files_in(folder: Path) -> Iterator[Files]:
    """Yield the drafts of the files in *folder*, which is made; they take their places once the block has ended.

    :class:`ConfigError` where they cannot be written, or are there.
    """
    paths = [folder / name for name in NAMES]
    # Before hours are spent on them.
    if there := [path for path in paths if path.exists()]:
        raise ConfigError(f"{there[0]} is there already: name another folder with -o, or remove it")
    drafts = [path.with_name(f"{path.name}.tmp") for path in paths]
    try:
        with ExitStack() as opened:
            try:
                permissions.make_folder(folder)
                for draft in drafts:
                    draft.unlink(missing_ok=True)
                    permissions.make_file(draft)
                files = Files(*(opened.enter_context(draft.open("wb")) for draft in drafts))
            except ValueError as error:
                raise OSError(str(error)) from error  # a NUL in the path
            yield files
        for draft, path in zip(drafts, paths, strict=True):
            draft.replace(path)
    except OSError as error:
        raise ConfigError(
            f"{folder} cannot be written ({error.strerror or error}); name another folder with -o"
        ) from error
    finally:
        for draft in drafts:
            with suppress(OSError, ValueError):
                draft.unlink(missing_ok=True)


def packed(lines: Iterable[str]) -> bytes:
    """Return *lines* as a piece of the file of pages: what is packed piece by piece is unpacked as one."""
    packer = lzma.LZMACompressor(preset=XZ_PRESET)
    return b"".join([*(packer.compress(f"{line}\n".encode("ascii")) for line in lines), packer.flush()])


def write_judged(engine: Engine, job: Job, judged: Judged, files: Files) -> Counter[str]:
    """Write what came of a batch on *engine*, in the archive's order; return how many verdicts of which kind."""
    sorts = _Sort(job.buckets, judged.pages, judged.last_round, judged.gone)
    shards = engine.gathered([engine.each(data, "world", sorts) for data in judged.data], ("lines",), _write)
    files.store.write(packed([Origin(job.header, judged.pages + 1).to_line()]))
    for kind, file in (("verdicts", files.verdicts), ("clusters", files.clusters), ("store", files.store)):
        for value in engine.stream(shards, kind):
            file.write(value)
    came: Counter[str] = Counter()
    templates: set[str] = set()
    for value in engine.collect(shards, "sums"):
        counts, more = value
        came += counts
        templates |= more
    files.store.write(packed(sorted(templates)))
    return came


@dataclass(frozen=True)
class _Sort:
    """Worlds -> their ``lines``, those of neighbours together; without such as have been judged once more."""

    shards: int
    pages: int
    last_round: Mapping[int, int]
    gone: AbstractSet[int]
    """See `Judged`."""

    def __call__(self, element: Element) -> Iterator[Element]:
        end: WorldEnd = element.value
        if end.world in self.gone or self.last_round.get(end.world, 1) != end.round:
            return
        found: defaultdict[int, list[list[Any]]] = defaultdict(lambda: [[], [], [], []])
        for place, (position, line) in (
            *((0, verdict) for verdict in end.written.verdicts),
            *((1, cluster) for cluster in end.written.clusters),
            *((2, (position_of(number), line)) for number, line in end.written.stored),
        ):
            found[position * self.shards // self.pages][place].append((position, line))
        for line in end.written.templates:
            found[0][3].append(line)
        for shard, lines in found.items():
            yield Element("lines", shard, lines)


def _write(key: int, values: Values) -> Iterator[Element]:
    """Lines of one shard -> what is written of it, and ``sums``."""
    gathered: list[list[Any]] = [[], [], [], []]
    for value in values["lines"]:
        for lines, more in zip(gathered, value, strict=True):
            lines.extend(more)
    verdicts, clusters, stored = ([line for _, line in sorted(lines)] for lines in gathered[:3])
    yield Element("verdicts", key, as_text(verdicts))
    yield Element("clusters", key, as_text(clusters))
    yield Element("store", key, packed(stored))
    yield Element("sums", key, (counted(verdicts), set(gathered[3])))


def as_text(lines: Iterable[str]) -> bytes:
    """Return *lines* as bytes, each with its end."""
    return "".join(f"{line}\n" for line in lines).encode("ascii")


def counted(verdicts: Iterable[str]) -> Counter[str]:
    """Return how many of these lines have which verdict; and what was released, too."""
    found: Counter[str] = Counter()
    for line in verdicts:
        said = json.loads(line)
        found[said["verdict"]] += 1
        found[RELEASED] += "released" in said
    return found
